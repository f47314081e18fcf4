//! The charts of the page. Colour says which limit held a variant; words say which variant it is.

use insight::{Curves, Finished, Point, Shade, Summary, words};
use maud::{Markup, html};
use record::{Limit, units};

use super::limits::{class, key, legend};
use crate::svg::axis::byte_unit;
use crate::svg::bars::{Bar, BarChart, Part};
use crate::svg::line::{Line, LineChart};
use crate::svg::{Shaded, shade_words};

/// Widths for windows and for telephones: the page shows the one that fits.
pub(crate) const WIDTHS: [(&str, f64); 2] = [("wide", 960.0), ("slim", 420.0)];
/// Width of one of several small charts side by side.
pub(crate) const SMALL: f64 = 306.0;
/// The colours of variants that lie over each other, in their order.
pub(crate) const SERIES: [&str; 4] = ["series-0", "series-1", "series-2", "series-3"];
/// The colours of what is shaded, of one variant after the other: none is that of a limit.
const SHADES: [&str; 4] = ["shade-0", "shade-1", "shade-2", "shade-3"];
/// Shaded times of a variant that are told at once; the others are folded, and all are drawn.
const MOST_SHADES: usize = 6;
/// If the longest time is more than so many times the shortest, the scale of time is logarithmic.
const LOG_FROM: f64 = 3.0;
/// If it is more than so many times the shortest, the shortest is a mere stroke beside it on an axis that both share.
const OVERLAY_UP_TO: f64 = 20.0;

pub(super) fn figures<'a>(summary: &'a Summary<'_>, variant: &str) -> Option<&'a Finished> {
    summary.finished().find(|(other, _)| other.name == variant).map(|(_, figures)| figures)
}

pub(super) fn limit_of(summary: &Summary<'_>, variant: &str) -> Option<Limit> {
    figures(summary, variant).and_then(|figures| figures.verdict.limit)
}

/// Recovered bytes over time, all variants in one chart.
pub(crate) fn recovered(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| curve.recovered.len() > 1).collect();
    let longest = drawn.iter().map(|curve| curve.seconds).fold(0.0, f64::max);
    let shortest = drawn.iter().map(|curve| curve.seconds).fold(f64::INFINITY, f64::min);
    let log = longest > shortest * LOG_FROM;
    let most = drawn
        .iter()
        .flat_map(|curve| &curve.recovered)
        .map(|point| point.value)
        .fold(1.0, f64::max);
    let mut held: Vec<Option<Limit>> =
        drawn.iter().map(|curve| limit_of(summary, &curve.variant)).collect();
    held.sort_by_key(|limit| (limit.is_none(), *limit));
    held.dedup();
    // A twin whose nodes come back with their files copies nothing.
    let is_any = drawn.iter().any(|curve| curve.recovered.iter().any(|point| point.value > 0.0));
    let (factor, unit) = byte_unit(most);
    let chart = |(class_name, width): (&str, f64)| {
        let chart = LineChart {
            id: format!("recovered-{class_name}"),
            title: "Recovered bytes over time by variant".to_owned(),
            desc: describe(summary, &drawn),
            width,
            plot_height: if width > 500.0 { 300.0 } else { 220.0 },
            lines: drawn.iter().map(|curve| recovered_line(summary, curve)).collect(),
            time_s: (if log { shortest / 30.0 } else { 0.0 }, longest),
            log,
            max: most * 1.02,
            factor,
            unit,
            labels: true,
            shades: shades_of(&drawn),
            ..LineChart::default()
        };
        html! { div class=(class_name) { (chart.render()) } }
    };
    html! {
        @if is_any { section {
            h2 { "Recovered bytes over time" }
            @if summary.watched.is_some() {
                p.hint { "All recoveries together, since the first look." }
            } @else {
                p.hint {
                    "Time since each variant's start"
                    @if log { ", on a logarithmic scale" }
                    ". The colour is the limit that held the variant."
                }
                (legend(&held))
            }
            (shaded(&drawn))
            @for width in WIDTHS { (chart(width)) }
        } }
    }
}

fn recovered_line<'a>(summary: &Summary<'_>, curve: &'a Curves) -> Line<'a> {
    let took = units::show_seconds(curve.seconds);
    let stopped = if figures(summary, &curve.variant).is_some() { "" } else { "stopped at " };
    Line {
        label: format!("{}, {stopped}{took}", curve.variant),
        class: class(limit_of(summary, &curve.variant)),
        points: &curve.recovered,
    }
}

fn describe(summary: &Summary<'_>, curves: &[&Curves]) -> String {
    let one = |curve: &&Curves| {
        let bytes = curve.recovered.last().map_or(0.0, |point| point.value) as u64;
        let held = limit_of(summary, &curve.variant)
            .map_or_else(String::new, |limit| format!(", held by {}", words::holder(limit)));
        let took = units::show_seconds(curve.seconds);
        format!("{}: {} in {took}{held}", curve.variant, units::show_bytes(bytes))
    };
    curves.iter().map(one).collect::<Vec<String>>().join("; ")
}

/// What was wrong meanwhile, or set otherwise, and so is shaded in the charts: a line for each variant, in its colour.
pub(crate) fn shaded(curves: &[&Curves]) -> Markup {
    let shaded = shades_of(curves);
    let in_words = |shades: &[Shade]| shades.iter().map(shade_words).collect::<Vec<_>>().join("; ");
    html! {
        @for of in &shaded {
            @let (first, more) = of.shades.split_at(of.shades.len().min(MOST_SHADES));
            p.hint {
                span class=(format!("chip shaded {}", of.class)) aria-hidden="true" {}
                @if curves.len() > 1 { (of.variant) ": " }
                (words::unbroken(&in_words(first))) "."
            }
            @if !more.is_empty() { details {
                summary { (more.len()) " more shaded times" }
                p.hint { (words::unbroken(&in_words(more))) "." }
            } }
        }
        @if shaded.len() > 1 { p.hint { "Each of these variants has a lane of its own, in this order from the top." } }
    }
}

/// The shades of the variants that have any, each in a colour of its own.
pub(crate) fn shades_of<'a>(curves: &[&'a Curves]) -> Vec<Shaded<'a>> {
    let shaded = curves.iter().filter(|curve| !curve.shades.is_empty());
    let of = |(at, curve): (usize, &&'a Curves)| Shaded {
        variant: &curve.variant,
        class: SHADES[at % SHADES.len()],
        shades: &curve.shades,
    };
    shaded.enumerate().map(of).collect()
}

/// The shades of one of the variants, in the colour that it has beside the others.
pub(crate) fn shades_among<'a>(curves: &[&'a Curves], variant: &str) -> Vec<Shaded<'a>> {
    shades_of(curves).into_iter().filter(|of| of.variant == variant).collect()
}

/// The highest value.
pub(super) fn peak(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).fold(0.0, f64::max)
}

/// One of the measures that lie below each other on one axis of time.
pub(crate) struct Panel {
    /// Begins the ids of its charts.
    pub id: &'static str,
    pub title: &'static str,
    pub points: fn(&Curves) -> &[Point],
    /// The same of the leader, where `points` are a follower's: dashed, with a mark where both first meet.
    pub leader: Option<fn(&Curves) -> &[Point]>,
    /// Factor and unit in which values up to the largest read well.
    pub unit: fn(f64) -> (f64, &'static str),
    /// Values to mark, each with its words.
    pub levels: &'static [(f64, &'static str)],
}

impl Panel {
    /// A measure of which nothing else is drawn.
    pub(crate) const fn of(
        id: &'static str,
        title: &'static str,
        points: fn(&Curves) -> &[Point],
        unit: fn(f64) -> (f64, &'static str),
    ) -> Panel {
        Panel { id, title, points, leader: None, unit, levels: &[] }
    }

    fn peak(&self, curves: &[&Curves]) -> f64 {
        let all = [Some(self.points), self.leader].into_iter().flatten();
        all.flat_map(|of| curves.iter().map(move |curve| peak(of(curve)))).fold(0.0, f64::max)
    }

    /// What its axis has to reach.
    fn most(&self, curves: &[&Curves]) -> f64 {
        self.levels.iter().map(|(value, _)| *value).fold(self.peak(curves).max(1.0), f64::max)
    }
}

pub(crate) const INDEXED: Panel =
    Panel::of("indexed", "Documents indexed a second", |curve| &curve.indexed, count_unit);

pub(crate) const INDEX_LATENCY: Panel = Panel::of(
    "index-latency",
    "Mean latency of requests to index",
    |curve| &curve.index_latency,
    ms_unit,
);

pub(crate) const RECOVERED: Panel =
    Panel::of("beside", "Recovered bytes", |curve| &curve.recovered, byte_unit);

pub(crate) const LAG: Panel =
    Panel::of("lag", "Operations that the follower lacked", |curve| &curve.lag, count_unit);

/// What a rate of indexing is.
pub(crate) const INDEXED_HINT: &str =
    "Documents a second are averages: over four samples, or from one request to the next.";

/// Whether variants are several, and few and alike enough to be told apart where they lie over each other.
pub(crate) fn can_overlay(curves: &[&Curves]) -> bool {
    let seconds = || curves.iter().map(|curve| curve.seconds);
    let longest = seconds().fold(0.0, f64::max);
    let shortest = seconds().fold(f64::INFINITY, f64::min);
    (2..=SERIES.len()).contains(&curves.len()) && longest <= shortest * OVERLAY_UP_TO
}

/// Factor and unit of milliseconds.
pub(crate) fn ms_unit(most: f64) -> (f64, &'static str) {
    if most >= 2e3 { (1e3, "s") } else { (1.0, "ms") }
}

/// Factor and unit of counts.
pub(crate) fn count_unit(most: f64) -> (f64, &'static str) {
    match most {
        most if most >= 1e6 => (1e6, "million"),
        most if most >= 1e4 => (1e3, "thousand"),
        _ => (1.0, ""),
    }
}

/// The rate of indexing, and its latency where the record says it.
pub(super) fn indexing(curves: &[&Curves]) -> impl Iterator<Item = Panel> {
    let has_latency = curves.iter().any(|curve| curve.index_latency.len() > 1);
    [INDEXED].into_iter().chain(has_latency.then_some(INDEX_LATENCY))
}

/// Indexing and recovery on one axis of time, the variants over each other; none where nobody wrote beside.
pub(crate) fn indexing_and_recovery(curves: &[Curves]) -> Option<Markup> {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| curve.indexed.len() > 1).collect();
    (!drawn.is_empty()).then(|| {
        let measures = indexing(&drawn).chain([RECOVERED]);
        html! {
            section {
                h2 { "Indexing and recovery over time" }
                p.hint { "Time since each variant's start. " (INDEXED_HINT) }
                (panels("", &drawn, &measures.collect::<Vec<Panel>>()))
            }
        }
    })
}

/// Measures below each other on one axis of time, the variants over each other.
pub(crate) fn panels(id: &str, curves: &[&Curves], panels: &[Panel]) -> Markup {
    let until_s = curves.iter().map(|curve| curve.seconds).fold(0.0, f64::max);
    let class = |at: usize| SERIES[at % SERIES.len()];
    let chart = |panel: &Panel, (class_name, width): (&str, f64)| {
        let max = panel.most(curves) * 1.02;
        let (factor, unit) = (panel.unit)(max);
        let lines = curves.iter().enumerate().map(|(at, curve)| Line {
            label: curve.variant.clone(),
            class: class(at),
            points: (panel.points)(curve),
        });
        let peak = |curve: &&Curves| {
            let most = panel.peak(&[curve]);
            format!("{}: at most {} {unit}", curve.variant, words::three_digits(most / factor))
        };
        let levels = panel.levels.iter().map(|(_, words)| (*words).to_owned());
        let has_leader = panel.leader.is_some();
        let numbered = || curves.iter().enumerate().filter(move |_| has_leader);
        let leader = numbered().filter_map(|(at, curve)| {
            let of = panel.leader?;
            let label = format!("{}: the leader", curve.variant);
            Some(Line { label, class: class(at), points: of(curve) })
        });
        let met = numbered().filter_map(|(at, curve)| {
            let met = curve.met?;
            let after = units::show_seconds(met.t_s);
            Some((class(at), met, format!("{}: level after {after}", curve.variant)))
        });
        LineChart {
            id: format!("{}{id}-{class_name}", panel.id),
            title: format!("{} over time", panel.title),
            desc: curves.iter().map(peak).chain(levels).collect::<Vec<_>>().join("; "),
            width,
            plot_height: if width > 500.0 { 200.0 } else { 150.0 },
            lines: lines.collect(),
            dashed: leader.collect(),
            dots: met.collect(),
            time_s: (0.0, until_s),
            max,
            factor,
            unit,
            levels: panel.levels.iter().map(|(at, words)| (*at, (*words).to_owned())).collect(),
            marks_s: curves.iter().flat_map(|curve| curve.caught_up_s.iter().copied()).collect(),
            area: curves.len() == 1,
            // Words at the ends tell apart those who see no colours, and more lines than there are colours.
            labels: curves.len() > 1,
            shades: shades_of(curves),
            ..LineChart::default()
        }
    };
    html! {
        @if curves.len() > 1 {
            (key(curves.iter().enumerate().map(|(at, curve)| (class(at), &curve.variant))))
        }
        (shaded(curves))
        @for width in WIDTHS {
            div class=(width.0) {
                @let charts: Vec<LineChart<'_>> = panels.iter().map(|panel| chart(panel, width)).collect();
                @let left = charts.iter().map(LineChart::own_left).fold(0.0, f64::max);
                @for (panel, chart) in panels.iter().zip(charts) {
                    h3 { (panel.title) }
                    (LineChart { left, ..chart }.render())
                }
            }
        }
    }
}

/// What the time of each variant was charged to.
pub(crate) fn accounting(summary: &Summary<'_>) -> Markup {
    let charged: Vec<(&str, &Finished)> = summary
        .finished()
        .filter(|(_, figures)| !figures.limits.is_empty())
        .map(|(variant, figures)| (variant.name.as_str(), figures))
        .collect();
    let limits: Vec<Option<Limit>> = Limit::ALL
        .into_iter()
        .filter(|limit| {
            let shares = charged.iter().flat_map(|(_, figures)| &figures.limits);
            shares.filter(|share| share.limit == *limit).any(|share| share.share >= 0.0005)
        })
        .map(Some)
        .collect();
    let chart = |(class_name, width): (&str, f64)| {
        let chart = BarChart {
            id: format!("accounting-{class_name}"),
            title: "Share of the time charged to each limit, by variant".to_owned(),
            desc: charged.iter().map(|(name, f)| bar_words(name, f)).collect::<Vec<_>>().join("; "),
            width,
            bars: charged.iter().map(|(name, figures)| bar(name, figures)).collect(),
        };
        html! { div class=(class_name) { (chart.render()) } }
    };
    html! {
        @if !charged.is_empty() { section {
            h2 { "Where the time went" }
            p.hint {
                @if summary.manifest.target == "opensearch" {
                    "As it is seen from outside: by the link, the nodes' counters and the stages. A bar is the whole time of a "
                    "variant; what is missing of it is unexplained."
                } @else {
                    "Every moment of every chunk is charged to one limit; a bar is the whole time of a variant."
                }
            }
            (legend(&limits))
            @for width in WIDTHS { (chart(width)) }
        } }
    }
}

fn bar(name: &str, figures: &Finished) -> Bar {
    let part = |share: &record::LimitShare| Part {
        class: class(Some(share.limit)),
        name: share.limit.label(),
        share: share.share,
        text: words::percent(share.share),
    };
    // The same order in every bar, so that one limit is seen to shrink and the next to grow.
    let in_order = Limit::ALL
        .into_iter()
        .filter_map(|limit| figures.limits.iter().find(|share| share.limit == limit));
    Bar {
        label: name.to_owned(),
        note: units::show_seconds(figures.seconds),
        parts: in_order.map(part).collect(),
    }
}

fn bar_words(name: &str, figures: &Finished) -> String {
    let part = |share: &record::LimitShare| {
        format!("{} {}", share.limit.label(), words::percent(share.share))
    };
    format!("{name}: {}", figures.limits.iter().map(part).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents indexed a second, up to most of a million.
    fn indexed(caught_up_s: Vec<f64>) -> String {
        let points = [0.0, 990_000.0].map(|value| Point { t_s: value / 1e5, value });
        let curves = Curves {
            variant: "a".to_owned(),
            lap: 1,
            seconds: 9.9,
            indexed: points.to_vec(),
            caught_up_s,
            ..Curves::default()
        };
        panels("", &[&curves], &[INDEXED]).into_string()
    }

    #[test]
    fn a_million_is_not_written_as_a_thousand_thousand() {
        let drawn = indexed(Vec::new());
        assert!(drawn.contains(">1 million<") && !drawn.contains("1000 thousand"), "{drawn}");
    }

    #[test]
    fn a_line_marks_each_moment_at_which_a_follower_had_caught_up() {
        let marks = |caught_up_s| indexed(caught_up_s).matches("class=\"ceiling\"").count();
        assert_eq!((marks(vec![]), marks(vec![3.0, 7.0])), (0, 2 * WIDTHS.len()));
    }
}
