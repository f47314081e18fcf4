//! The HTML report: one page that needs nothing else, neither scripts nor anything from outside.

pub(crate) mod charts;
mod details;
mod findings;
mod following;
mod limits;
mod link;
mod loads;
mod nodes;
mod rows;
mod threads;

use insight::words::{self, unbroken};
use insight::{Summary, curves};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::text::visible;
use record::{Manifest, RunDir};

use limits::chip;

/// The style sheet of every page.
pub(crate) const CSS: &str = include_str!("page.css");

/// Keeps the browser from loading anything from outside, even if text of a record were taken for a reference.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of a run, whatever state it was left in. Everything that comes from the record is escaped, and what would
/// turn or hide the text beside it is written out.
pub fn html(run: &RunDir) -> String {
    let summary = Summary::of(run);
    let curves = curves(run, &summary);
    let manifest = summary.manifest;
    // One that stopped while it followed has a curve of its lag, and no row.
    let follows = !summary.following.is_empty() || curves.iter().any(|curve| curve.lag.len() > 1);
    // Loads and followers have tables of their own, and no recovery to draw.
    let copies = summary.loads.is_empty() && !follows;
    let body = html! {
        (head(&summary))
        main {
            (gaps(&summary))
            (changes(&summary))
            @if let Some(diagnosis) = &summary.watched {
                (findings::section(diagnosis))
            } @else if !summary.loads.is_empty() {
                (loads::section(&summary, &curves))
            } @else if follows {
                (following::section(&summary, &curves))
            } @else {
                (rows::table(&summary))
            }
            @if let Some(answer) = crate::what_if::of_run(run) { section {
                h2 { "What the twin answers" }
                pre tabindex="0" { (answer) }
            } }
            @if copies {
                (charts::indexing_and_recovery(&curves).unwrap_or_else(|| charts::recovered(&summary, &curves)))
            }
            // A cluster that was only watched shows neither its accounting nor its link.
            @if summary.watched.is_none() {
                @if copies {
                    (charts::accounting(&summary))
                    (threads::section(&summary))
                    (verdicts(&summary))
                }
                (link::section(&summary, &curves))
            }
            (nodes::section(&summary, &curves))
            (details::notes(run, summary.watched.is_some()))
            (details::details(run, &summary))
        }
        footer { "narrows " (manifest.version) ", run " (manifest.run) ". " (STANDS_ALONE) }
    };
    whole(&format!("{}: {}", manifest.plan, summary.headline), "", &body)
}

/// What every page says of itself.
pub(crate) const STANDS_ALONE: &str =
    "This page stands alone: it loads nothing and can be kept or sent as it is.";

/// A whole page around `body`, with a style sheet of its own beside that of all pages.
pub(crate) fn whole(title: &str, own_css: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(CSS)) (PreEscaped(own_css)) }
            }
            body { (body) }
        }
    };
    visible(&page.into_string()).into_owned()
}

fn head(summary: &Summary<'_>) -> Markup {
    let manifest = summary.manifest;
    html! {
        header {
            p.kicker {
                b { "narrows" } " " (manifest.plan) " on " (manifest.target) ", "
                span { (day(&manifest.started)) }
            }
            h1 { (unbroken(&summary.headline)) "." }
            @for sentence in &summary.details { p.detail { (unbroken(sentence)) } }
            @if !manifest.about.is_empty() { p.about { (manifest.about) } }
            @if let Some(path) = path(manifest) { p.path { (unbroken(&path)) } }
        }
    }
}

/// The day of an RFC 3339 time; the details have the rest.
fn day(started: &str) -> &str {
    started.split('T').next().unwrap_or(started)
}

fn path(manifest: &Manifest) -> Option<String> {
    let link = manifest.link.as_ref()?;
    let carried = link.ceiling_bytes_per_s.map_or_else(String::new, |rate| {
        format!(" Without its delay and its limit it carried {} here.", words::rate(rate as f64))
    });
    Some(format!(
        "Link: {} round trip, {} ({} Mbit/s) each way.{carried}",
        words::rtt(link.rtt_ms),
        words::rate(link.rate_bytes_per_s as f64),
        words::three_digits(link.rate_bytes_per_s as f64 * 8e-6).trim_end_matches(".00")
    ))
}

fn gaps(summary: &Summary<'_>) -> Markup {
    html! {
        @if !summary.gaps.is_empty() {
            section.gaps aria-label="What is missing" {
                ul { @for gap in &summary.gaps { li { (gap) } } }
            }
        }
    }
}

fn changes(summary: &Summary<'_>) -> Markup {
    let changes = &summary.manifest.changes;
    html! {
        @if !changes.is_empty() {
            section.changes aria-label="What is not as in the plan" {
                p { "Not as in the plan:" }
                ul { @for change in changes { li { (change) } } }
            }
        }
    }
}

fn verdicts(summary: &Summary<'_>) -> Markup {
    html! {
        @if summary.finished().next().is_some() {
            section {
                h2 { "Why" }
                dl.verdicts {
                    @for (variant, figures) in summary.finished() {
                        dt { (chip(figures.verdict.limit)) (variant.name) }
                        dd { (unbroken(&figures.verdict.text)) "." }
                    }
                }
            }
        }
    }
}
