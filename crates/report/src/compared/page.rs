//! The page of runs beside each other: the table, and the curves of each variant laid over each other.

use insight::compare::Runs;
use insight::words::each_once;
use insight::{Curves, LoadCurves, Point, curves};
use maud::{Markup, html};

use super::{Line, lines, tell_of_chance, what_it_is};
use crate::page::charts::{
    INDEX_LATENCY, INDEXED, LAG, Panel, RECOVERED, count_unit, ms_unit, panels,
};
use crate::page::{STANDS_ALONE, whole};

const THROUGHPUT: Panel = Panel::of(
    "throughput",
    "Answers a second",
    |curve| curve.loads.first().map_or(&[], |load| load.per_s.as_slice()),
    count_unit,
);

const LATENCY: Panel = Panel::of(
    "latency",
    "Mean latency",
    |curve| curve.loads.first().map_or(&[], |load| load.latency.as_slice()),
    ms_unit,
);

/// The whole page. Everything that comes from a record is escaped.
pub fn html(runs: &Runs<'_>) -> String {
    let said = runs.headline();
    let body = html! {
        header {
            p.kicker { b { "narrows" } " compare" }
            h1 { (said.text) "." }
            @for sentence in &said.details { p.detail { (sentence) } }
            ul.legend { @for (at, contender) in runs.contenders.iter().enumerate() {
                li {
                    b { (contender.label) } " " (what_it_is(runs, at))
                }
            } }
        }
        main {
            @if !runs.remarks.is_empty() {
                section.gaps aria-label="What to know" { ul { @for remark in &runs.remarks { li { (remark) } } } }
            }
            @for at in 1..runs.contenders.len() { (table(runs, at)) }
            (overlaid(runs))
        }
        footer { (STANDS_ALONE) }
    };
    whole(&said.text, "", &body)
}

fn table(runs: &Runs<'_>, at: usize) -> Markup {
    let (base, other) = (&runs.contenders[0].label, &runs.contenders[at].label);
    let judged = |line: &Line<'_>| {
        line.is_better()
            .map(|better| if better { ("link-rate", "better") } else { ("cpu", "worse") })
    };
    let lines = lines(runs, at);
    let has_chance = tell_of_chance(&lines);
    html! {
        section {
            h2 { (other) " compared with " (base) }
            @if has_chance { p.hint {
                "Medians over laps. The interval is that of the change, from three laps on. p is the probability that "
                "chance alone makes such a difference: below 5 % the change is called better or worse."
            } }
            div.scroll tabindex="0" role="region" aria-label="Table of figures" { table {
                thead { tr {
                    th scope="col" { "variant" }
                    th scope="col" { "figure" }
                    th.n scope="col" { (base) }
                    th.n scope="col" { (other) }
                    th.n scope="col" { "change %" }
                    @if has_chance {
                        th.n scope="col" { "95 % interval" }
                        th.n scope="col" { "p" }
                    }
                } }
                tbody { @for line in lines { tr {
                    th scope="row" title=(line.figure.of()) { (line.figure.of()) }
                    td { (line.name()) }
                    td.n { (line.base) }
                    td.n { (line.other) }
                    td.n {
                        @if let Some((class, word)) = judged(&line) {
                            span class=(format!("chip {class}")) aria-hidden="true" {}
                            b { (line.change()) (line.mark()) } small { (word) }
                        } @else { (line.change()) }
                    }
                    @if has_chance {
                        td.n { (line.interval()) }
                        td.n { (line.p()) }
                    }
                } } }
            } }
        }
    }
}

/// The curves of every variant that two runs have.
fn overlaid(runs: &Runs<'_>) -> Markup {
    let of_runs: Vec<Vec<Curves>> = (runs.contenders.iter())
        .map(|contender| {
            let mut curves = curves(contender.run, &contender.summary);
            // What is shaded in one run is not in the others.
            curves.iter_mut().for_each(|curve| curve.shades.clear());
            curves
        })
        .collect();
    let variants = each_once(of_runs.iter().flatten().map(|curve| curve.variant.as_str()));
    let charts = variants.iter().enumerate().flat_map(|(at, variant)| {
        let of =
            |curves: &Vec<Curves>| curves.iter().find(|curve| curve.variant == *variant).cloned();
        charts(runs, variant, &format!("-{at}"), of_runs.iter().map(of).collect())
    });
    let charts: Vec<Markup> = charts.collect();
    html! {
        @if !charts.is_empty() { section {
            h2 { "Over time" }
            p.hint { "The lap nearest the median of each run, from its start." }
            @for chart in charts { (chart) }
        } }
    }
}

/// The charts of one variant: `curves` has one for each run that has the variant.
fn charts(runs: &Runs<'_>, variant: &str, id: &str, curves: Vec<Option<Curves>>) -> Vec<Markup> {
    let named: Vec<Curves> = (runs.contenders.iter().zip(curves))
        .filter_map(|(contender, curve)| {
            Some(Curves { variant: contender.label.clone(), ..curve? })
        })
        .collect();
    let mut found = Vec::new();
    let mut last = String::new();
    let mut add = |title: String, id: &str, curves: &[Curves], panel: Panel| {
        let drawn: Vec<&Curves> = curves.iter().filter(|c| (panel.points)(c).len() > 1).collect();
        if drawn.len() > 1 {
            let is_new = title != last;
            let chart = html! { @if is_new { h3.of { (title) } } (panels(id, &drawn, &[panel])) };
            found.push(chart);
            last = title;
        }
    };
    for panel in [RECOVERED, INDEXED, INDEX_LATENCY, LAG] {
        add(variant.to_owned(), id, &named, panel);
    }
    let loads = named.iter().flat_map(|curve| &curve.loads);
    let operations = each_once(loads.map(|load| load.operation.as_str()));
    for (at, operation) in operations.iter().enumerate() {
        let of_operation: Vec<Curves> = named.iter().map(|curve| only(curve, operation)).collect();
        let title = if *operation == variant {
            variant.to_owned()
        } else {
            format!("{variant}, {operation}")
        };
        for panel in [THROUGHPUT, LATENCY] {
            add(title.clone(), &format!("{id}-{at}"), &of_operation, panel);
        }
    }
    found
}

/// A curve with one operation of its load alone, counted from its first window: where it begins depends on what came
/// before it.
fn only(curve: &Curves, operation: &str) -> Curves {
    let found = curve.loads.iter().find(|load| load.operation == operation);
    let load = found.cloned().unwrap_or_default();
    let ends = |of: fn(&[Point]) -> Option<&Point>| {
        let points = [&load.per_s, &load.latency].into_iter().filter_map(move |points| of(points));
        points.map(|point| point.t_s)
    };
    let begins_s = ends(<[Point]>::first).reduce(f64::min).unwrap_or(0.0);
    let seconds = ends(<[Point]>::last).fold(begins_s, f64::max) - begins_s;
    let since = |points: &[Point]| -> Vec<Point> {
        points.iter().map(|point| Point { t_s: point.t_s - begins_s, ..*point }).collect()
    };
    let (per_s, latency) = (since(&load.per_s), since(&load.latency));
    Curves { loads: vec![LoadCurves { per_s, latency, ..load }], seconds, ..curve.clone() }
}
