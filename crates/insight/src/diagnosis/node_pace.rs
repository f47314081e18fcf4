//! What each node does now.

use record::observation::Node;
use serde::Serialize;

use super::node_span::NodeSpan;
use super::series::Series;

/// One node between the last two looks. A figure that the node does not report is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodePace {
    /// Its name.
    pub name: String,
    /// Whether it answered before and does not now.
    pub gone: bool,
    /// Recoveries that read from it.
    pub as_source: Option<u64>,
    /// Recoveries onto it.
    pub as_target: Option<u64>,
    /// CPU of its machine, or of its process where the machine is not reported: 1 is one whole core or, with
    /// `cpu_of_all`, all cores.
    pub cpu: Option<f64>,
    /// Whether `cpu` is a share of all cores.
    pub cpu_of_all: bool,
    /// Bytes a second that its disks read.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes a second that its disks write.
    pub write_bytes_per_s: Option<f64>,
    /// Share of the time that its disks are busy.
    pub disk_busy: Option<f64>,
    /// Room on its disks, 0 to 1.
    pub disk_free: Option<f64>,
    /// Bytes a second that transport receives.
    pub rx_bytes_per_s: Option<f64>,
    /// Bytes a second that transport sends.
    pub tx_bytes_per_s: Option<f64>,
    /// Pauses for the limiter over time, summed over threads: may exceed 1.
    pub paused: Option<f64>,
    /// Heap in use, 0 to 1.
    pub heap: Option<f64>,
}

/// Every node, by name; those that are gone too. Each figure is of the last two looks that have it.
pub fn node_paces(series: &Series<'_>) -> Vec<NodePace> {
    let Some(last) = series.last() else { return Vec::new() };
    let present = series.last_nodes().map_or(&[][..], |(_, nodes)| nodes);
    let there = present.iter().filter(|node| !last.gone.contains(&node.name));
    let mut rows: Vec<NodePace> = there.map(|node| one(node, series.node(&node.name))).collect();
    rows.extend(last.gone.iter().map(|name| NodePace {
        name: name.clone(),
        gone: true,
        ..NodePace::default()
    }));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn one(node: &Node, span: Option<&NodeSpan<'_>>) -> NodePace {
    let gauge = |gauge: fn(&Node) -> Option<u64>| match span {
        Some(span) => span.latest(gauge),
        None => gauge(node),
    };
    let lately = |counter: fn(&Node) -> Option<u64>| span?.lately(counter);
    let per_s = |counter, unit: f64| Some(lately(counter)?.per_s() * unit);
    let share = |counter| Some(lately(counter)?.share());
    let percent = |of| Some(gauge(of)? as f64 / 100.0);
    let os = percent(|node| node.os_cpu_percent);
    let free = gauge(|node| node.disk_available_bytes).zip(gauge(|node| node.disk_total_bytes));
    NodePace {
        name: node.name.clone(),
        gone: false,
        as_source: gauge(|node| node.as_source),
        as_target: gauge(|node| node.as_target),
        cpu: os.or_else(|| share(|node: &Node| node.process_cpu_ms)),
        cpu_of_all: os.is_some(),
        read_bytes_per_s: per_s(|node: &Node| node.read_kib, 1024.0),
        write_bytes_per_s: per_s(|node: &Node| node.write_kib, 1024.0),
        disk_busy: span.and_then(NodeSpan::disk_busy_lately),
        disk_free: free.filter(|(_, all)| *all > 0).map(|(free, all)| free as f64 / all as f64),
        rx_bytes_per_s: per_s(|node: &Node| node.transport_rx_bytes, 1.0),
        tx_bytes_per_s: per_s(|node: &Node| node.transport_tx_bytes, 1.0),
        paused: share(|node: &Node| node.throttle_ms),
        heap: percent(|node| node.heap_used_percent),
    }
}
