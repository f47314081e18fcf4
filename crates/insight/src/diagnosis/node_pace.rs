//! What each node does now.

use serde::Serialize;

use super::series::Series;

/// One node between the last two looks. What it does not tell is none.
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
    /// CPU of its machine, or of its process where the machine is not told: 1 is one whole core or, with
    /// `cpu_of_all`, all of them.
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

/// Every node, by name; those that are gone too.
pub fn node_paces(series: &Series<'_>) -> Vec<NodePace> {
    let Some(last) = series.last() else { return Vec::new() };
    let tail = series.tail(2);
    let mut rows: Vec<NodePace> = Vec::new();
    for node in &last.nodes {
        let span = tail.node(&node.name);
        let per_s = |counter: fn(&record::observation::Node) -> Option<u64>, unit: f64| {
            Some(span.as_ref()?.per_s(counter)? * unit)
        };
        let share =
            |counter: fn(&record::observation::Node) -> Option<u64>| span.as_ref()?.share(counter);
        let own = share(|node| node.process_cpu_ms);
        let free = node.disk_available_bytes.zip(node.disk_total_bytes);
        rows.push(NodePace {
            name: node.name.clone(),
            gone: false,
            as_source: node.as_source,
            as_target: node.as_target,
            cpu: node.os_cpu_percent.map(|percent| percent as f64 / 100.0).or(own),
            cpu_of_all: node.os_cpu_percent.is_some(),
            read_bytes_per_s: per_s(|node| node.read_kib, 1024.0),
            write_bytes_per_s: per_s(|node| node.write_kib, 1024.0),
            disk_busy: share(|node| node.io_time_ms),
            disk_free: free.filter(|(_, all)| *all > 0).map(|(free, all)| free as f64 / all as f64),
            rx_bytes_per_s: per_s(|node| node.transport_rx_bytes, 1.0),
            tx_bytes_per_s: per_s(|node| node.transport_tx_bytes, 1.0),
            paused: share(|node| node.throttle_ms),
            heap: node.heap_used_percent.map(|percent| percent as f64 / 100.0),
        });
    }
    rows.extend(last.gone.iter().map(|name| NodePace {
        name: name.clone(),
        gone: true,
        ..NodePace::default()
    }));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}
