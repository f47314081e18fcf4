//! Our charts beside those of a document.

use std::collections::BTreeMap;

use insight::Curves;
use insight::words::counted;
use maud::{Markup, html};

use super::counterparts::{CHARTS, Chart, NodeSearches, Ours, remark};
use crate::page::charts::{Panel, SERIES, WIDTHS, panels};
use crate::svg::dots::{DotChart, DotGroup, DotRow, RowDot};
use crate::svg::scatter::Mark;

/// As many charts of a document are open; of more, the first of each part is, and the others are folded.
const OPEN: usize = 2;

/// What seed 1 of a plan left to draw, of the variants that have a chart: see [`super::charted`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstSeed {
    /// Plan.
    pub plan: String,
    /// Curves of its variants.
    pub curves: Vec<Curves>,
    /// Searches of shards that each node ran, by variant.
    pub searches: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The charts of a document that is repeated by these plans; nothing where seeds left nothing to draw.
pub(super) fn section(document: &str, plans: &[String], seeds: &[FirstSeed]) -> Markup {
    let of_document = |(_, chart): &(usize, &Chart)| plans.iter().any(|plan| plan == chart.plan);
    let charts: Vec<(usize, &Chart)> = CHARTS.iter().enumerate().filter(of_document).collect();
    let drawn: Vec<(&Chart, Markup)> =
        charts.iter().filter_map(|(at, chart)| Some((*chart, ours(*at, chart, seeds)?))).collect();
    let remark = remark(document).filter(|_| charts.is_empty() || !drawn.is_empty());
    html! {
        @if let Some(remark) = remark { p.hint.charts { b { "Charts. " } (remark) } }
        @for part in drawn.chunk_by(|(one, _), (next, _)| one.part == next.part) {
            @let open = if drawn.len() <= OPEN { part.len() } else { 1 };
            @let (open, folded) = part.split_at(open);
            h3 { (part[0].0.part) }
            @for one in open { (beside(one)) }
            @if !folded.is_empty() { details {
                summary { (counted(folded.len(), "more chart", "more charts")) }
                @for one in folded { (beside(one)) }
            } }
        }
    }
}

fn beside((chart, ours): &(&Chart, Markup)) -> Markup {
    html! { div.chart { p.hint { "Beside " (chart.theirs) "." } (ours) } }
}

fn ours(at: usize, chart: &Chart, seeds: &[FirstSeed]) -> Option<Markup> {
    let seed = seeds.iter().find(|seed| seed.plan == chart.plan)?;
    match chart.ours {
        Ours::OverTime(measures) => seed.over_time(&format!("-{at}"), chart, measures),
        Ours::Searches(nodes) => seed.spread(&format!("searches-{at}"), chart, nodes),
    }
}

impl FirstSeed {
    fn over_time(&self, id: &str, chart: &Chart, measures: &[Panel]) -> Option<Markup> {
        let of = |name: &&str| self.curves.iter().find(|curve| curve.variant == **name);
        let drawn: Vec<&Curves> = chart.variants.iter().filter_map(of).collect();
        let is_known =
            |measure: &Panel| drawn.iter().any(|curve| (measure.points)(curve).len() > 1);
        measures.iter().any(is_known).then(|| panels(id, &drawn, measures))
    }

    /// The searches that each node ran.
    pub(super) fn counts(&self, variant: &str) -> Option<&BTreeMap<String, f64>> {
        self.searches.get(variant).filter(|counts| !counts.is_empty())
    }

    /// The share of the searches that each node ran, beside the published one.
    fn spread(&self, id: &str, chart: &Chart, nodes: &[NodeSearches]) -> Option<Markup> {
        let published: f64 = nodes.iter().map(|node| node.count).sum();
        let group = |(at, variant): (usize, &&str)| -> Option<DotGroup> {
            let counts = self.counts(variant)?;
            let all: f64 = counts.values().sum();
            let row = |node: &NodeSearches| {
                let ran = counts.get(node.node).copied().unwrap_or(0.0);
                let theirs = (at == 0).then(|| dot(node.name, node.count / published, true));
                DotRow {
                    // One colour throughout, as the legend has it: a group's name says which variant it is.
                    class: SERIES[0],
                    label: node.name.to_owned(),
                    dots: [dot(node.name, ran / all, false)].into_iter().chain(theirs).collect(),
                }
            };
            Some(DotGroup { name: (*variant).to_owned(), rows: nodes.iter().map(row).collect() })
        };
        let groups = || chart.variants.iter().enumerate().filter_map(group).collect::<Vec<_>>();
        let drawn = |(class, width): (&str, f64)| {
            let groups = groups();
            let chart = DotChart {
                id: format!("{id}-{class}"),
                title: "Share of the searches that each node ran".to_owned(),
                desc: groups.iter().map(words).collect::<Vec<_>>().join("; "),
                width,
                groups,
                log: false,
                unit: "%",
            };
            html! { div class=(class) { (chart.render()) } }
        };
        (!groups().is_empty()).then(|| {
            html! {
                ul.legend {
                    @for (class, whose) in [("series-0", "ours"), ("theirs", "published")] {
                        li {
                            svg.sign viewBox="0 0 14 14" aria-hidden="true" {
                                g class=(class) { (Mark::Circle.render(7.0, 7.0, 5.0)) }
                            }
                            (whose)
                        }
                    }
                }
                @for width in WIDTHS { (drawn(width)) }
            }
        })
    }
}

fn dot(node: &str, share: f64, theirs: bool) -> RowDot {
    let whose = if theirs { ", published" } else { "" };
    let at = share * 100.0;
    RowDot { mark: Mark::Circle, at, title: format!("{node}: {at:.1} %{whose}"), theirs }
}

fn words(group: &DotGroup) -> String {
    let dots = group.rows.iter().flat_map(|row| &row.dots);
    let titles: Vec<&str> = dots.map(|dot| dot.title.as_str()).collect();
    format!("{}: {}", group.name, titles.join(", "))
}

#[cfg(test)]
mod tests {
    use insight::{LINK_POINTS, NODE_POINTS, NodeCurve, POINTS, Point};

    use super::super::counterparts::charted;
    use super::*;

    const BENCHMARK: &str = "benchmark-plan";

    /// As many points as there are at most.
    fn points(count: usize) -> Vec<Point> {
        (0..count)
            .map(|at| Point { t_s: at as f64 * 7.7, value: 5e7 + (at % 13) as f64 * 1e6 })
            .collect()
    }

    /// Everything that there is a chart for, in full.
    fn seeds() -> Vec<FirstSeed> {
        let node = |name: &str| NodeCurve {
            node: name.to_owned(),
            cores: points(NODE_POINTS),
            received: points(NODE_POINTS),
            sent: points(NODE_POINTS),
            disk_busy: points(NODE_POINTS),
            ..NodeCurve::default()
        };
        let curves = |variant: &str| Curves {
            variant: variant.to_owned(),
            lap: 1,
            seconds: POINTS as f64 * 7.7,
            recovered: points(POINTS),
            indexed: points(POINTS),
            link: points(LINK_POINTS),
            nodes: ["leader-0", "leader-7", "follower-0", "follower-2"].map(node).into(),
            ..Curves::default()
        };
        let counts = ["leader-1", "leader-2", "leader-3"].map(|node| (node.to_owned(), 100.0));
        let seed = |(plan, variant): (&str, &str)| FirstSeed {
            plan: plan.to_owned(),
            curves: vec![curves(variant)],
            searches: [(variant.to_owned(), BTreeMap::from(counts.clone()))].into(),
        };
        let mut seeds: Vec<FirstSeed> = Vec::new();
        for one in charted().map(seed) {
            match seeds.iter_mut().find(|seed| seed.plan == one.plan) {
                Some(seed) => {
                    seed.curves.extend(one.curves);
                    seed.searches.extend(one.searches);
                }
                None => seeds.push(one),
            }
        }
        seeds
    }

    fn shown(document: &str, plans: &[&str], seeds: &[FirstSeed]) -> String {
        let plans: Vec<String> = plans.iter().map(|plan| (*plan).to_owned()).collect();
        section(document, &plans, seeds).into_string()
    }

    #[test]
    fn every_chart_of_a_document_has_ours_beside_it_with_its_numbers() {
        let seeds = seeds();
        let plans: Vec<&str> = seeds.iter().map(|seed| seed.plan.as_str()).collect();
        let page = shown(BENCHMARK, &plans, &seeds);
        assert_eq!(page.matches("<p class=\"hint\">Beside ").count(), CHARTS.len());
        let parts: Vec<&str> = page.split("<h3>Experiment").collect();
        let part = |name: &str| *parts.iter().find(|part| part.contains(name)).expect("a part");
        let open = |part: &str| part.split("<details>").next().unwrap().matches("Beside ").count();
        assert!(!part(" 1, geopoint</h3>").contains("<details"), "one chart, and it is open");
        let logs = part(" 1, http_logs</h3>");
        assert!(logs.contains("<summary>4 more charts</summary>"), "{logs}");
        assert!(parts[1..].iter().all(|part| open(part) == 1), "one of each part is open");
        assert!(
            page.contains("published peak: 91.6 MB/s") && page.contains("the model has no heap")
        );
        // The page of all documents has to stay below 1.5 MB.
        assert!(page.len() < 1_000_000, "{} bytes", page.len());
    }

    #[test]
    fn searches_stand_beside_the_published_ones_as_shares() {
        let page = shown("replica-selection", &["replica-selection"], &seeds());
        assert!(!page.contains("<details"), "two charts are not folded");
        assert!(page.contains("es3: 33.3 %, es3: 11.2 %, published"), "{page}");
        // Only the variant with selection has published counts.
        assert!(page.contains("es3 loaded: none: es1: 33.3 %, es2: 33.3 %"), "{page}");
    }

    #[test]
    fn a_document_whose_plans_left_nothing_has_no_chart() {
        assert_eq!(shown(BENCHMARK, &["remote-recovery"], &[]), "");
        let nothing = [FirstSeed { plan: "remote-recovery".to_owned(), ..FirstSeed::default() }];
        assert_eq!(shown(BENCHMARK, &["remote-recovery"], &nothing), "");
        let none = shown("dcp-rebalance", &["dcp-rebalance"], &seeds());
        assert!(none.contains("tables and no charts") && !none.contains("<svg"), "{none}");
    }
}
