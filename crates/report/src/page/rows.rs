//! The table of the page.

use insight::{Finished, Progress, Summary, Variant, words};
use maud::{Markup, html};
use record::units;

use super::limits::named;
use crate::table::{before_compression, both_times, off_by, published_rate};

pub(super) fn table(summary: &Summary<'_>) -> Markup {
    let published = summary.variants.iter().any(|variant| variant.published_s.is_some());
    let rates = summary.variants.iter().any(|variant| published_rate(summary, variant).is_some());
    let fastest = summary.slowest_and_fastest().map(|(_, fast)| fast.name.as_str());
    let several = summary.finished().count() > 1;
    // Where copies share no link, a column of dashes would push others out of sight.
    let of_link = summary.finished().any(|(_, figures)| figures.link_share.is_some());
    html! {
        @if !summary.variants.is_empty() {
            section {
                div.scroll tabindex="0" role="region" aria-label="Table of variants" {
                    table.rows {
                        thead {
                            tr {
                                th scope="col" { "variant" }
                                th.n scope="col" { "time" }
                                th.n scope="col" { "MB/s" }
                                @if of_link { th.n scope="col" { "of link" } }
                                th.n scope="col" { "gain" }
                                th scope="col" { "held by" }
                                @if published {
                                    th.n.theirs scope="col" { "published" }
                                    th.n.theirs scope="col" { "its gain" }
                                }
                                @if rates {
                                    th.n scope="col" { "MB/s a node" }
                                    th.n.theirs scope="col" { "MB/s published" }
                                }
                            }
                        }
                        tbody {
                            @for variant in &summary.variants {
                                @let best = several && fastest == Some(variant.name.as_str());
                                tr.best[best] {
                                    th scope="row" title=(variant.name) { (variant.name) }
                                    @match variant.finished() {
                                        Some(figures) => (finished(summary, variant, figures, of_link)),
                                        None => { td.none colspan=(4 + usize::from(of_link)) { (state(variant)) } }
                                    }
                                    @if published { (theirs(summary, variant)) }
                                    @if rates { (rates_of(summary, variant)) }
                                }
                            }
                        }
                    }
                }
                (remarks(summary))
            }
        }
    }
}

fn finished(summary: &Summary<'_>, variant: &Variant, figures: &Finished, of_link: bool) -> Markup {
    let verdict = &figures.verdict;
    let [ours, _] = both_times(summary, variant);
    html! {
        td.n {
            (ours.unwrap_or_default())
            @if let Some(laps) = figures.seconds_interval.filter(|laps| reads_apart(laps.low, laps.high)) {
                small { (units::show_interval(laps.low, laps.high)) }
            }
        }
        td.n { (words::mb_per_s(figures.bytes_per_s)) }
        @if of_link { td.n { (figures.link_share.map_or_else(|| "-".to_owned(), words::percent)) } }
        td.n {
            (figures.gain.map_or_else(|| "-".to_owned(), words::gain))
            @if let Some(laps) = figures.gain_interval.filter(|laps| words::gain(laps.low) != words::gain(laps.high)) {
                small { (words::three_digits(laps.low)) " to " (words::gain(laps.high)) }
            }
        }
        td {
            (named(verdict.limit))
            @if verdict.limit.is_some() {
                @if figures.limits.is_empty() { " (inferred)" } @else { " " (words::percent(verdict.share)) }
            }
        }
    }
}

/// Whether the ends of an interval of seconds read differently.
fn reads_apart(low: f64, high: f64) -> bool {
    units::show_seconds(low) != units::show_seconds(high)
}

fn theirs(summary: &Summary<'_>, variant: &Variant) -> Markup {
    let [_, theirs] = both_times(summary, variant);
    html! {
        td.n.theirs {
            (theirs.as_deref().unwrap_or("-"))
            @if let Some(off) = summary.off_published(variant) { small { "ours " (off_by(off)) } }
        }
        td.n.theirs { (variant.published_gain.map_or_else(|| "-".to_owned(), words::gain)) }
    }
}

/// Ours and the published ones, of the same kind.
fn rates_of(summary: &Summary<'_>, variant: &Variant) -> Markup {
    let ours = variant.finished().and_then(|figures| figures.node_bytes_per_s);
    let theirs = published_rate(summary, variant);
    // A smaller index may be over before its rate is reached.
    let both =
        ours.zip(theirs).filter(|(_, theirs)| *theirs > 0.0 && summary.manifest.scale == 1.0);
    let shown = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), words::mb_per_s);
    html! {
        td.n { (shown(ours)) }
        td.n.theirs {
            (shown(theirs))
            @if let Some((ours, theirs)) = both { small { "ours " (off_by(ours / theirs - 1.0)) } }
        }
    }
}

fn state(variant: &Variant) -> String {
    match &variant.progress {
        Progress::Partial { recovered_bytes, total_bytes, seconds } if *total_bytes > 0 => format!(
            "stopped after {} at {}",
            units::show_seconds(*seconds),
            words::done(*recovered_bytes as f64 / *total_bytes as f64)
        ),
        Progress::Partial { seconds, .. } => {
            format!("stopped after {}", units::show_seconds(*seconds))
        }
        _ => "not run".to_owned(),
    }
}

/// What a reader must know to read the table right.
fn remarks(summary: &Summary<'_>) -> Markup {
    let counts = || summary.finished().map(|(_, figures)| figures.laps_s.len());
    let (laps, least) = (counts().max().unwrap_or(0), counts().min().unwrap_or(0));
    let several = if least < laps { format!("{least} to {laps}") } else { laps.to_string() };
    let refetched: u64 = summary.finished().map(|(_, figures)| figures.refetched_chunks).sum();
    let verified = summary.finished().all(|(_, figures)| figures.verified);
    let mut counted = summary.finished().map(|(_, figures)| figures.documents);
    let documents = counted.next().map(|first| (first, counted.all(|count| count == first)));
    html! {
        p.remarks {
            @if let Some(baseline) = summary.baseline.as_ref().filter(|_| summary.variants.len() > 1) {
                "Gain: how many times as fast as " (baseline) ". "
            }
            @if let Some(said) = before_compression(summary) { (said) " " }
            @if let Some(comparison) = &summary.comparison { (comparison) " " }
            @if summary.variants.iter().any(|variant| summary.off_published(variant).is_some()) {
                "Below a published time stands how much longer or shorter ours is. "
            }
            @if laps >= insight::stats::MIN_LAPS {
                "Medians of " (several) " laps with bootstrap intervals (95 %; with few laps no wider "
                "than the laps themselves). "
            } @else if laps > 1 {
                "Medians of " (several) " laps. "
            } @else if laps == 1 && summary.manifest.target == "virtual" {
                "One lap each: virtual time with the same seed gives the same figures again. "
            } @else if laps == 1 {
                "One lap each, so small differences mean nothing. "
            }
            @if laps > 1 && summary.manifest.question.is_some() {
                "Of a twin a lap is a draw of what is not known, but for the first: the answer goes by that one. "
            }
            @if let (true, Some((documents, is_same))) = (verified, documents) {
                "Every finished copy was checked against its source"
                @if is_same { ": " (words::counted(words::count(documents), "document", "documents")) }
                ". "
            }
            @if refetched > 0 {
                (words::counted(words::count(refetched), "damaged chunk was", "damaged chunks were"))
                " fetched again. "
            }
        }
    }
}

/// A cell with a bar, `share` of what is left beside the words, 0 to 1.
pub(super) fn amount(class: &str, share: f64, text: &str) -> Markup {
    html! {
        td class=(class) { span.amount style=(format!("--share:{share:.3}")) {} (text) }
    }
}
