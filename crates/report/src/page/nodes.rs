//! What each node used, on the page: cores, heap, and bytes over the network.

use insight::{Curves, NodeCurve, Point, Summary, words};
use maud::{Markup, html};

use super::charts::SMALL;
use crate::svg::spark::{Spark, SparkChart};

/// Nodes of a small chart; of more, the busiest are shown.
const MOST_NODES: usize = 18;

/// A measure of nodes, as small charts side by side, one a variant.
struct Measure {
    /// Begins the ids of its charts.
    id: &'static str,
    title: &'static str,
    /// What orders nodes, and is written beside their rows.
    of: fn(&NodeCurve) -> f64,
    show: fn(f64) -> String,
    points: fn(&NodeCurve) -> &[Point],
    line: fn(&NodeCurve) -> &[Point],
}

fn peak(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).fold(0.0, f64::max)
}

const CPU: Measure = Measure {
    id: "cpu",
    title: "CPU of each node",
    of: |node| node.mean_cores,
    show: words::cores,
    points: |node| &node.cores,
    line: |_| &[],
};

const HEAP: Measure = Measure {
    id: "heap",
    title: "Heap of each node",
    of: |node| peak(&node.heap),
    show: |bytes| words::three_digits(bytes / 1e6),
    points: |node| &node.heap,
    line: |_| &[],
};

const NETWORK: Measure = Measure {
    id: "network",
    title: "Network of each node",
    of: |node| peak(&node.sent).max(peak(&node.received)),
    show: |bytes| words::three_digits(bytes / 1e6),
    points: |node| &node.sent,
    line: |node| &node.received,
};

/// All of them, where the record has them.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| !curve.nodes.is_empty()).collect();
    let nodes = || drawn.iter().flat_map(|curve| &curve.nodes);
    let highest = |of: fn(&NodeCurve) -> f64, least| nodes().map(of).fold(least, f64::max);
    let most_cores = highest(|node| peak(&node.cores), 0.05);
    let most_bytes = highest(NETWORK.of, 0.0);
    let machine_cores = summary.manifest.machine.cores;
    let most_heap = highest(HEAP.of, 0.0);
    html! {
        @if !drawn.is_empty() { section {
            h2 { (CPU.title) }
            p.hint {
                "Cores in use; the figure at the right is the mean. Every row is " (words::cores(most_cores))
                " cores high"
                // Virtual nodes have cores of their own, and watched ones machines.
                @if summary.watched.is_none() && summary.manifest.target != "virtual" && machine_cores > 0 {
                    "; the machine has " (machine_cores)
                }
                "."
            }
            (CPU.charts(&drawn, most_cores, |curve| {
                let sum: f64 = curve.nodes.iter().map(|node| node.mean_cores).sum();
                format!("{} cores in all", words::cores(sum))
            }))
        } }
        @if most_heap > 0.0 { section {
            h2 { (HEAP.title) }
            p.hint {
                "MB in use; the figure at the right is the peak. Every row is "
                (words::three_digits(most_heap / 1e6)) " MB high."
            }
            (HEAP.charts(&drawn, most_heap, |_| String::new()))
        } }
        @if most_bytes > 0.0 { section {
            h2 { (NETWORK.title) }
            p.hint {
                "MB/s between nodes; the figure at the right is the peak. Every row is "
                (words::three_digits(most_bytes / 1e6)) " MB/s high."
            }
            ul.legend {
                li { span.chip.neutral aria-hidden="true" {} "sent" }
                li { span.chip.series-1 aria-hidden="true" {} "received" }
            }
            (NETWORK.charts(&drawn, most_bytes, |_| String::new()))
        } }
    }
}

impl Measure {
    fn charts(&self, drawn: &[&Curves], max: f64, note: fn(&Curves) -> String) -> Markup {
        let note = |curve: &Curves| {
            let left_out = match curve.nodes.len().saturating_sub(MOST_NODES) {
                0 => String::new(),
                count => format!("{count} idler nodes not shown"),
            };
            let parts = [note(curve), left_out].into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(", ")
        };
        html! {
            div.small {
                @for (index, curve) in drawn.iter().enumerate() {
                    figure {
                        figcaption { b { (curve.variant) } " " (note(curve)) }
                        (self.chart(curve, index, max))
                    }
                }
            }
        }
    }

    fn chart(&self, curve: &Curves, index: usize, max: f64) -> Markup {
        let mut nodes: Vec<&NodeCurve> = curve.nodes.iter().collect();
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
            shades: curve.shades.iter().collect(),
        }
        .render()
    }
}
