//! Loads on the page: figures of all variants beside each other and beside published ones, what changes between
//! variants, who was asked; and, folded, every figure of every lap.

use std::collections::{BTreeMap, BTreeSet};

use insight::load::{Case, METRICS, Metric, cases, changes, compared, figures, pairs, total};
use insight::words::{self, each_once, three_digits};
use insight::{Curves, LoadCurves, Point, Summary, VariantLoad};
use maud::{Markup, html};

use super::charts::{SERIES, SMALL, WIDTHS, ms_unit, peak, shaded, shades_of};
use super::limits::key;
use super::rows::amount;
use crate::grid::{dash, signed, signed_range};
use crate::load::{counts, remarks};
use crate::svg::dots::{DotChart, DotGroup, DotRow, RowDot};
use crate::svg::line::{Line, LineChart};
use crate::svg::scatter::Mark;

/// The forms of figures that share an axis, in their order.
const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Diamond, Mark::Triangle];

/// What the table of a track's tasks has of their figures.
const OF_TASKS: [&str; 7] = [
    "Median Throughput", "Documents", "50th percentile latency", "99th percentile latency",
    "100th percentile latency", "50th percentile service time", "error rate",
];

/// The colours of variants, by the part of their names that tells those of a case apart: one has the same colour in
/// every chart, whatever others a case has.
struct Colours<'a>(Vec<&'a str>);

impl<'a> Colours<'a> {
    /// A variant that is beside no other has the first colour: it would take one from those that need it.
    fn of(cases: &[Case<'a>]) -> Self {
        let several = cases.iter().filter(|case| case.loads.len() > 1);
        Colours(each_once(several.flat_map(|case| &case.loads).map(|(label, _)| *label)))
    }

    fn place(&self, label: &str) -> usize {
        self.0.iter().position(|known| *known == label).unwrap_or(0)
    }

    fn class(&self, label: &str) -> &'static str {
        SERIES[self.place(label) % SERIES.len()]
    }

    /// How often every colour was taken before: variants of one round have colours of their own.
    fn round(&self, label: &str) -> usize {
        self.place(label) / SERIES.len()
    }

    /// The names of these variants with their colours.
    fn legend(&self, labels: &[&str]) -> Markup {
        key(labels.iter().map(|label| (self.class(label), label)))
    }
}

/// A measure of a variant over time, by the part of its name that tells it from the others.
type Drawn<'a> = (&'a str, &'a Curves, &'a [Point]);

/// What is drawn of loads over time.
struct Measure {
    /// Begins the ids of its charts.
    id: &'static str,
    title: &'static str,
    /// What a value is.
    what: &'static str,
    unit: &'static str,
    of: fn(&LoadCurves) -> &[Point],
}

const OVER_TIME: [Measure; 2] = [
    Measure {
        id: "throughput",
        title: "Throughput over time",
        what: "Answers a second in each window",
        unit: "ops/s",
        of: |load| &load.per_s,
    },
    Measure {
        id: "latency",
        title: "Latency over time",
        what: "The mean of each window",
        unit: "ms",
        of: |load| &load.latency,
    },
];

/// Everything that was measured of loads.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    let cases = cases(&summary.loads);
    let colours = Colours::of(&cases);
    let operations = each_once(summary.loads.iter().map(|load| load.operation.as_str()));
    let several = operations.len() > 1;
    let of_track = summary.manifest.challenge.is_some();
    html! {
        // Of a track's many tasks a table says more than a chart of each.
        @if of_track { (tasks(&summary.loads)) }
        @for (index, operation) in operations.iter().enumerate().filter(|_| !of_track) {
            @let of: Vec<&Case<'_>> = cases.iter().filter(|case| case.loads[0].1.operation == *operation).collect();
            @let named = if several { format!(": {operation}") } else { String::new() };
            @for unit in ["ops/s", "ms"] { (chart(summary, &of, &colours, unit, (&named, index))) }
        }
        (compared_table(summary))
        (asked(&cases, &colours))
        @for measure in OVER_TIME { (over_time(&measure, &cases, curves, &colours)) }
        section {
            h2 { "Every figure" }
            @for load in &summary.loads { (laps(load, summary.loads.len() == 1)) }
        }
    }
}

/// The tasks of a track, a line for each; what none of them has is no column.
fn tasks(loads: &[VariantLoad]) -> Markup {
    let is_known = |metric: &&Metric| {
        OF_TASKS.contains(&metric.name)
            && loads.iter().any(|load| total(&load.laps, metric.name).is_some())
    };
    let columns: Vec<&Metric> = METRICS.iter().filter(is_known).collect();
    html! {
        section {
            h2 { "Tasks" }
            p.hint { "Latency counts from the moment at which a request was to start. Of several laps, those of all." }
            div.scroll tabindex="0" role="region" aria-label="Table of tasks" { table {
                thead { tr {
                    th scope="col" { "task" }
                    @for metric in &columns { th.n scope="col" { (metric.name) " (" (metric.unit) ")" } }
                } }
                tbody { @for load in loads { tr {
                    th scope="row" title=(load.operation) { (load.operation) }
                    @for metric in &columns {
                        td.n { (total(&load.laps, metric.name).map_or_else(dash, three_digits)) }
                    }
                } } }
            } }
        }
    }
}

/// The figures of one unit that variants are compared by, on one axis.
fn chart(
    summary: &Summary<'_>,
    cases: &[&Case<'_>],
    colours: &Colours<'_>,
    unit: &'static str,
    (named, index): (&str, usize),
) -> Markup {
    let metrics: Vec<&'static Metric> = compared().filter(|metric| metric.unit == unit).collect();
    let marks: Vec<(&Metric, Mark)> = metrics.into_iter().zip(MARKS).collect();
    let is_published = cases.iter().flat_map(|case| &case.loads).any(|(_, load)| {
        marks.iter().any(|(metric, _)| summary.published_load(&load.variant, metric).is_some())
    });
    let words = |(label, load): &(&str, &VariantLoad)| {
        let of =
            |(metric, _): &(&Metric, Mark)| Some((metric.name, total(&load.laps, metric.name)?));
        let shown =
            marks.iter().filter_map(of).map(|(name, at)| format!("{name} {}", three_digits(at)));
        format!("{label}: {}", shown.collect::<Vec<_>>().join(", "))
    };
    let desc =
        cases.iter().flat_map(|case| case.loads.iter().map(words)).collect::<Vec<_>>().join("; ");
    let (title, log) = match unit {
        "ms" => (format!("Latency{named}"), true),
        _ => (format!("Throughput{named}"), false),
    };
    let drawn = |(class, width): (&str, f64)| {
        let chart = DotChart {
            id: format!("load-{index}-{}-{class}", if log { "latency" } else { "throughput" }),
            title: format!("{title} of each variant"),
            desc: desc.clone(),
            width,
            groups: cases
                .iter()
                .map(|case| group(summary, (*case, named), colours, &marks))
                .collect(),
            log,
            unit,
        };
        html! { div class=(class) { (chart.render()) } }
    };
    html! {
        section {
            h2 { (title) }
            // Of several operations the first says it for all.
            @if index == 0 { p.hint {
                @if log { "From the intended start of a request to the end of its answer, on a logarithmic scale." }
                @else { "The median over the time of each lap, and of those the median over laps." }
            } }
            @if marks.len() > 1 || is_published { ul.legend {
                @if marks.len() > 1 { @for (metric, mark) in &marks { li { (sign(*mark, "series-0")) (metric.name) } } }
                @else { li { (sign(Mark::Circle, "series-0")) "ours" } }
                @if is_published { li { (sign(Mark::Circle, "theirs")) "published" } }
            } }
            @for width in WIDTHS { (drawn(width)) }
        }
    }
}

fn sign(mark: Mark, class: &str) -> Markup {
    html! {
        svg.sign viewBox="0 0 16 16" aria-hidden="true" { g class=(class) { (mark.render(8.0, 8.0, 5.0)) } }
    }
}

/// A case; its name is left out where the title has it, as `named`.
fn group(
    summary: &Summary<'_>,
    (case, named): (&Case<'_>, &str),
    colours: &Colours<'_>,
    marks: &[(&Metric, Mark)],
) -> DotGroup {
    let dots = |load: &VariantLoad| -> Vec<RowDot> {
        let one = |(metric, mark): &(&Metric, Mark)| {
            let dot = |at: f64, theirs: bool| RowDot {
                mark: *mark,
                at,
                title: format!(
                    "{}, {}: {} {}{}",
                    load.variant,
                    metric.name,
                    three_digits(at),
                    metric.unit,
                    if theirs { ", published" } else { "" }
                ),
                theirs,
            };
            let theirs = summary.published_load(&load.variant, metric).map(|at| dot(at, true));
            [total(&load.laps, metric.name).map(|at| dot(at, false)), theirs]
        };
        marks.iter().flat_map(one).flatten().collect()
    };
    let row = |(label, load): &(&str, &VariantLoad)| DotRow {
        class: colours.class(label),
        label: (*label).to_owned(),
        dots: dots(load),
    };
    let name = if named.strip_prefix(": ") == Some(case.name) { "" } else { case.name };
    DotGroup { name: name.to_owned(), rows: case.loads.iter().map(row).collect() }
}

/// What each variant changes, a line a pair.
fn compared_table(summary: &Summary<'_>) -> Markup {
    let pairs = pairs(&summary.loads);
    if pairs.is_empty() {
        return html! {};
    }
    let theirs = |base: &VariantLoad, other: &VariantLoad, metric: &Metric| {
        let of = |load: &VariantLoad| summary.published_load(&load.variant, metric);
        let both = of(base).zip(of(other)).filter(|(base, _)| *base > 0.0);
        both.map(|(base, other)| (other / base - 1.0) * 100.0)
    };
    html! {
        section {
            h2 { "What changes" }
            p.hint {
                "In per cent of the variant that it is compared with. Below it stand the 95 % interval over laps, from "
                "three laps on, and the published change. Asterisks mark changes that the laps support."
            }
            div.scroll tabindex="0" role="region" aria-label="Table of changes" { table {
                thead { tr {
                    th scope="col" { "variant" }
                    @for metric in compared() { th.n scope="col" { (metric.name) } }
                } }
                tbody { @for (base, other) in &pairs {
                    @let changes = changes(&base.laps, &other.laps, summary.manifest.seed);
                    tr {
                        th scope="row" title=(other.variant) { (other.variant) small { "beside " (base.variant) } }
                        @for metric in compared() {
                            @let change = changes.iter().find(|change| change.metric.name == metric.name);
                            td.n {
                                @match change {
                                    Some(change) => { (signed(change.percent)) (change.difference.mark()) }
                                    None => { "-" }
                                }
                                @if let Some(i) = change.and_then(|change| change.difference.percent_interval) {
                                    small { (signed_range(i)) }
                                }
                                @if let Some(percent) = theirs(base, other, metric) {
                                    small { "published " (signed(percent)) }
                                }
                            }
                        }
                    }
                } }
            } }
        }
    }
}

/// What tells a case from all others: what its variants have in common, and its operation where that is not enough.
fn title(case: &Case<'_>, all: &[Case<'_>]) -> String {
    let operation = &case.loads[0].1.operation;
    let is_shared = all.iter().filter(|other| other.name == case.name).count() > 1;
    match case.name {
        "" => operation.clone(),
        name if is_shared => format!("{name}, {operation}"),
        name => name.to_owned(),
    }
}

fn searches(load: &VariantLoad) -> BTreeMap<&str, u64> {
    counts(&load.laps, |lap| &lap.searches)
}

/// Searches of shards by node, where nodes were asked for them.
fn asked(all: &[Case<'_>], colours: &Colours<'_>) -> Markup {
    let known = |case: &&Case<'_>| case.loads.iter().any(|(_, load)| searches(load).len() > 1);
    let cases: Vec<&Case<'_>> = all.iter().filter(known).collect();
    if cases.is_empty() {
        return html! {};
    }
    let table = |case: &Case<'_>| {
        let counts: Vec<BTreeMap<&str, u64>> =
            case.loads.iter().map(|(_, load)| searches(load)).collect();
        let nodes: BTreeSet<&str> = counts.iter().flat_map(BTreeMap::keys).copied().collect();
        let most = counts.iter().flat_map(BTreeMap::values).copied().max().unwrap_or(1).max(1);
        html! {
            figure.amounts {
                @if !case.name.is_empty() || all.len() > 1 { figcaption { b { (title(case, all)) } } }
                table {
                    thead { tr {
                        th scope="col" { "node" }
                        @for (label, _) in &case.loads { th scope="col" { (label) } }
                    } }
                    tbody { @for node in nodes { tr {
                        th scope="row" { (node) }
                        @for ((label, _), counts) in case.loads.iter().zip(&counts) {
                            @let count = counts.get(node).copied().unwrap_or(0);
                            @let share = count as f64 / most as f64;
                            (amount(colours.class(label), share, &words::count(count)))
                        }
                    } } }
                }
            }
        }
    };
    html! {
        section {
            h2 { "Searches that each node ran" }
            p.hint { "Searches of shards, warm-up included." }
            @for case in cases { (table(case)) }
        }
    }
}

/// A measure of each case over time, its variants over each other, on the same scale: as many in a chart as there are
/// colours to tell them apart.
fn over_time(
    measure: &Measure,
    all: &[Case<'_>],
    curves: &[Curves],
    colours: &Colours<'_>,
) -> Markup {
    let of = |load: &VariantLoad| -> Option<(&Curves, &[Point])> {
        let curve = curves.iter().find(|curve| curve.variant == load.variant)?;
        let drawn = curve.loads.iter().find(|of| of.operation == load.operation)?;
        let points = (measure.of)(drawn);
        (points.len() > 1).then_some((curve, points))
    };
    let known = |case: &&Case<'_>| case.loads.iter().any(|(_, load)| of(load).is_some());
    let cases: Vec<&Case<'_>> = all.iter().filter(known).collect();
    let loads = cases.iter().flat_map(|case| &case.loads);
    let most =
        loads.filter_map(|(_, load)| of(load)).map(|(_, points)| peak(points)).fold(1.0, f64::max);
    let (factor, unit) = match measure.unit {
        "ms" => ms_unit(most),
        unit => (1.0, unit),
    };
    let mut charts: Vec<(&Case<'_>, Vec<Drawn<'_>>)> = Vec::new();
    for case in cases {
        let mut drawn: Vec<Drawn<'_>> = (case.loads.iter())
            .filter_map(|(label, load)| of(load).map(|(curve, points)| (*label, curve, points)))
            .collect();
        drawn.sort_by_key(|(label, ..)| colours.round(label));
        let rounds = drawn.chunk_by(|(a, ..), (b, ..)| colours.round(a) == colours.round(b));
        charts.extend(rounds.map(|round| (case, round.to_vec())));
    }
    let chart = |at: usize, case: &Case<'_>, drawn: &[Drawn<'_>]| {
        let labels: Vec<&str> = drawn.iter().map(|(label, ..)| *label).collect();
        let until_s = drawn.iter().map(|(_, curve, _)| curve.seconds).fold(0.0, f64::max);
        // The variants of a case mostly have the same faults at the same times: once is enough.
        let mut shown: Vec<&Curves> = Vec::new();
        for (_, curve, _) in drawn {
            let known: BTreeSet<&String> =
                shown.iter().flat_map(|other| &other.shades).map(|shade| &shade.what).collect();
            if curve.shades.iter().any(|shade| !known.contains(&shade.what)) {
                shown.push(curve);
            }
        }
        let words = |(label, _, points): &Drawn<'_>| {
            format!("{label}: at most {} {}", three_digits(peak(points)), measure.unit)
        };
        let chart = LineChart {
            id: format!("{}-over-time-{at}", measure.id),
            title: format!("{}: {}", measure.title, title(case, all)),
            desc: drawn.iter().map(words).collect::<Vec<_>>().join("; "),
            width: SMALL,
            plot_height: 110.0,
            lines: drawn
                .iter()
                .map(|(label, _, points)| Line {
                    label: (*label).to_owned(),
                    class: colours.class(label),
                    points,
                })
                .collect(),
            time_s: (0.0, until_s),
            max: most * 1.02,
            factor,
            unit,
            shades: shades_of(&shown),
            ..LineChart::default()
        };
        html! {
            figure {
                figcaption { b { (title(case, all)) } }
                @if case.loads.len() > 1 { (colours.legend(&labels)) }
                (shaded(&shown))
                (chart.render())
            }
        }
    };
    html! {
        @if !charts.is_empty() { section {
            h2 { (measure.title) }
            p.hint { (measure.what) ", on the same scale; time since the load began, warm-up included." }
            div.small { @for (at, (case, drawn)) in charts.iter().enumerate() { (chart(at, case, drawn)) } }
        } }
    }
}

fn laps(load: &VariantLoad, open: bool) -> Markup {
    let show = |value: Option<f64>| value.map_or_else(dash, three_digits);
    html! {
        details open[open] {
            summary { (load.variant) ", " (load.operation) }
            div.scroll tabindex="0" role="region" aria-label="Figures of each lap" { table {
                thead { tr {
                    th scope="col" { "metric" }
                    @for lap in 1..=load.laps.len() { th.n scope="col" { "lap " (lap) } }
                    th.n scope="col" { "total" }
                    th scope="col" { "unit" }
                } }
                tbody { @for figure in figures(&load.laps) { tr {
                    th scope="row" { (figure.metric.name) }
                    @for lap in &figure.laps { td.n { (show(*lap)) } }
                    td.n { (show(figure.total)) }
                    td { (figure.metric.unit) }
                } } }
            } }
            @for (_, text) in remarks(&load.laps) { p.remarks { (text) } }
        }
    }
}
