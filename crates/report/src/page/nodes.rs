//! What each node used, on the page: cores, heap, and bytes over the network and of disks.

use insight::{Curves, NodeCurve, Point, Summary, words};
use maud::{Markup, html};

use super::charts::{Panel, SMALL, can_overlay, panels, peak, shades_among};
use super::limits::key;
use crate::svg::Shaded;
use crate::svg::spark::{Spark, SparkChart};

/// Nodes of a small chart; of more, the busiest are shown.
const MOST_NODES: usize = 18;

/// A measure of nodes, as small charts side by side, one a variant.
struct Measure {
    /// Begins the ids of its charts.
    id: &'static str,
    title: &'static str,
    /// What its values are, and the unit that is written after one where `show` does not.
    what: &'static str,
    unit: &'static str,
    /// What `points` and `line` are, where there are both.
    legend: Option<[&'static str; 2]>,
    /// What orders nodes, and is written beside their rows.
    of: fn(&NodeCurve) -> f64,
    show: fn(f64) -> String,
    points: fn(&NodeCurve) -> &[Point],
    line: fn(&NodeCurve) -> &[Point],
}

/// The number of MB. The figure beside a row has little room.
fn megabytes(bytes: f64) -> String {
    words::two_decimals(bytes / 1e6)
}

const CPU: Measure = Measure {
    id: "cpu",
    title: "CPU of each node",
    what: "Cores in use",
    unit: " cores",
    legend: None,
    of: |node| node.mean_cores,
    show: words::cores,
    points: |node| &node.cores,
    line: |_| &[],
};

const HEAP: Measure = Measure {
    id: "heap",
    title: "Heap of each node",
    what: "MB in use",
    unit: " MB",
    legend: None,
    of: |node| peak(&node.heap),
    show: megabytes,
    points: |node| &node.heap,
    line: |_| &[],
};

const GC: Measure = Measure {
    id: "gc",
    title: "Garbage collections of each node",
    what: "Share of the time that was spent in them",
    unit: "",
    legend: None,
    of: |node| peak(&node.collecting),
    show: words::percent,
    points: |node| &node.collecting,
    line: |_| &[],
};

const NETWORK: Measure = Measure {
    id: "network",
    title: "Network of each node",
    what: "MB/s between nodes",
    unit: " MB/s",
    legend: Some(["sent", "received"]),
    of: |node| peak(&node.sent).max(peak(&node.received)),
    show: megabytes,
    points: |node| &node.sent,
    line: |node| &node.received,
};

const DISK: Measure = Measure {
    id: "disk",
    title: "Disk bytes of each node",
    what: "MB/s read and written by the node; where it does not tell them, by all that use its disk",
    unit: " MB/s",
    legend: Some(["read", "written"]),
    of: |node| peak(&node.disk_read).max(peak(&node.disk_written)),
    show: megabytes,
    points: |node| &node.disk_read,
    line: |node| &node.disk_written,
};

const DISK_BUSY: Measure = Measure {
    id: "disk-busy",
    title: "Busy share of each node's disk",
    what: "Share of the time in which the disk was busy, whatever used it",
    unit: "",
    legend: None,
    of: |node| peak(&node.disk_busy),
    show: words::percent,
    points: |node| &node.disk_busy,
    line: |_| &[],
};

const LEADERS: Panel = Panel::of(
    "leader-cores",
    "Cores that all nodes of the leader used",
    |curve| together(curve, "leader"),
    |_| (1.0, "cores"),
);

const FOLLOWERS: Panel = Panel {
    id: "follower-cores",
    title: "Cores that all nodes of the follower used",
    points: |curve| together(curve, "follower"),
    ..LEADERS
};

fn together<'a>(curve: &'a Curves, name: &str) -> &'a [Point] {
    let found = curve.cores.iter().find(|(cluster, _)| cluster == name);
    found.map_or(&[], |(_, points)| points.as_slice())
}

/// The curves of variants over each other, of each cluster that has any.
fn overlaid(drawn: &[&Curves]) -> Markup {
    let is_known = |panel: &Panel| drawn.iter().any(|curve| (panel.points)(curve).len() > 1);
    let mut known: Vec<Panel> = [LEADERS, FOLLOWERS].into_iter().filter(is_known).collect();
    // A cluster alone leads nobody.
    if drawn.iter().all(|curve| curve.cores.len() < 2) {
        known.iter_mut().for_each(|panel| panel.title = "Cores that all nodes used");
    }
    html! { @if can_overlay(drawn) && !known.is_empty() { (panels("-together", drawn, &known)) } }
}

/// Those that are there where any node has something of them, after the CPU.
const BELOW: [&Measure; 5] = [&HEAP, &GC, &NETWORK, &DISK, &DISK_BUSY];

/// All of them, where the record has them.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| !curve.nodes.is_empty()).collect();
    html! {
        @if drawn.iter().any(|curve| !CPU.nodes_of(curve).is_empty()) { section {
            @let most = CPU.most(&drawn).max(0.05);
            h2 { (CPU.title) }
            (overlaid(&drawn))
            p.hint {
                (CPU.what) ". At the right is the mean; every row reaches up to " ((CPU.show)(most)) (CPU.unit)
                @if let Some(there) = cores_there(summary) { "; " (there) }
                "."
            }
            (CPU.charts(&drawn, most, |curve| {
                let sum: f64 = curve.nodes.iter().map(|node| node.mean_cores).sum();
                format!("{} cores in all", words::cores(sum))
            }))
        } }
        @for measure in BELOW { (measure.section(&drawn)) }
    }
}

/// How many cores there are to use. Virtual nodes have cores of their own, and watched ones machines.
fn cores_there(summary: &Summary<'_>) -> Option<String> {
    let manifest = summary.manifest;
    let here = manifest.machine.cores;
    if manifest.target != "virtual" {
        return (summary.watched.is_none() && here > 0).then(|| format!("the machine has {here}"));
    }
    let models = manifest.variants.iter().flat_map(|variant| &variant.models);
    let mut counts = models.filter(|model| model.name == "cores.count").map(|model| &model.value);
    let count = counts.next()?;
    counts.all(|other| other == count).then(|| format!("a node has {count}"))
}

impl Measure {
    /// The nodes that say it. Of the others it is unknown, and not zero.
    fn nodes_of<'a>(&self, curve: &'a Curves) -> Vec<&'a NodeCurve> {
        let is_known =
            |node: &&NodeCurve| !(self.points)(node).is_empty() || !(self.line)(node).is_empty();
        curve.nodes.iter().filter(is_known).collect()
    }

    fn most(&self, drawn: &[&Curves]) -> f64 {
        let nodes = drawn.iter().flat_map(|curve| &curve.nodes);
        nodes.map(|node| peak((self.points)(node)).max(peak((self.line)(node)))).fold(0.0, f64::max)
    }

    fn section(&self, drawn: &[&Curves]) -> Markup {
        let most = self.most(drawn);
        html! {
            @if most > 0.0 { section {
                h2 { (self.title) }
                p.hint {
                    (self.what) ". At the right is the peak; every row reaches up to " ((self.show)(most)) (self.unit)
                    "."
                }
                @if let Some(names) = self.legend { (key(["neutral", "series-1"].into_iter().zip(names))) }
                (self.charts(drawn, most, |_| String::new()))
            } }
        }
    }

    fn charts(&self, drawn: &[&Curves], max: f64, note: fn(&Curves) -> String) -> Markup {
        let note = |curve: &Curves, nodes: usize| {
            let left_out = match nodes.saturating_sub(MOST_NODES) {
                0 => String::new(),
                count => words::counted(
                    count,
                    "node that did less is not shown",
                    "nodes that did less are not shown",
                ),
            };
            let parts = [note(curve), left_out].into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(", ")
        };
        let all =
            drawn.iter().enumerate().map(|(index, curve)| (index, *curve, self.nodes_of(curve)));
        html! {
            div.small {
                @for (index, curve, nodes) in all.filter(|(_, _, nodes)| !nodes.is_empty()) {
                    figure {
                        figcaption { b { (curve.variant) } " " (note(curve, nodes.len())) }
                        (self.chart(curve, nodes, (index, max), shades_among(drawn, &curve.variant)))
                    }
                }
            }
        }
    }

    fn chart(
        &self,
        curve: &Curves,
        mut nodes: Vec<&NodeCurve>,
        (index, max): (usize, f64),
        shades: Vec<Shaded<'_>>,
    ) -> Markup {
        nodes.sort_by(|a, b| (self.of)(b).total_cmp(&(self.of)(a)));
        nodes.truncate(MOST_NODES);
        // Leaders first, as the bytes flow; other clusters by name.
        nodes.sort_by(|a, b| {
            let key = |node: &NodeCurve| (node.cluster != "leader", node.cluster.clone());
            key(a).cmp(&key(b)).then_with(|| a.node.cmp(&b.node))
        });
        let shown = |node: &NodeCurve| (self.show)((self.of)(node));
        let all: Vec<String> =
            nodes.iter().map(|node| format!("{} {}", node.node, shown(node))).collect();
        SparkChart {
            id: format!("{}-{index}", self.id),
            title: format!("{} during {}", self.title, curve.variant),
            desc: all.join("; "),
            width: SMALL,
            rows: nodes
                .into_iter()
                .map(|node| Spark {
                    group: &node.cluster,
                    name: &node.node,
                    note: shown(node),
                    points: (self.points)(node),
                    line: (self.line)(node),
                })
                .collect(),
            until_s: curve.seconds,
            max,
            shades,
        }
        .render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::spark::NOTE;
    use crate::svg::text_width;

    /// A longer one touches the line at its left.
    #[test]
    fn the_figure_beside_a_row_is_short_whatever_it_is() {
        assert_eq!([77_800.0, 0.3e6, 118.4e6].map(NETWORK.show), ["0.08", "0.30", "118"]);
        for measure in BELOW.into_iter().chain([&CPU]) {
            let is_of_bytes = measure.unit.starts_with(" MB");
            for value in [0.0, 0.0001, 0.0778, 0.3, 1.0] {
                let shown = (measure.show)(if is_of_bytes { value * 1e6 } else { value });
                assert!(text_width(&shown) < NOTE, "{}: {shown}", measure.title);
            }
        }
    }
}
