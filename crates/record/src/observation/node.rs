//! What a node counts, and what it knows of others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One node, as `_nodes/stats` tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is there for: `master`, `data_hot`, ...; empty where that is not told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// When it counted, in milliseconds since 1970.
    pub timestamp_ms: Option<u64>,
    /// How long it has run.
    pub uptime_ms: Option<u64>,
    /// Recoveries that read from it.
    pub as_source: Option<u64>,
    /// Recoveries onto it.
    pub as_target: Option<u64>,
    /// Time that its recoveries paused for the limiter, summed over their threads.
    pub throttle_ms: Option<u64>,
    /// Cores that it may use.
    pub cores: Option<u64>,
    /// Memory of its machine, or what its control group lets it have of that.
    pub memory_bytes: Option<u64>,
    /// CPU of its machine, in percent of all cores.
    pub os_cpu_percent: Option<u64>,
    /// CPU time of its process.
    pub process_cpu_ms: Option<u64>,
    /// Time that its control group kept it from running.
    pub cgroup_throttled_ns: Option<u64>,
    /// What its disks read, in KiB.
    pub read_kib: Option<u64>,
    /// What its disks wrote, in KiB.
    pub write_kib: Option<u64>,
    /// Time that its disks were busy, summed over them.
    pub io_time_ms: Option<u64>,
    /// The same of each of them, where that is told.
    pub io_times_ms: Vec<u64>,
    /// Size of its disks.
    pub disk_total_bytes: Option<u64>,
    /// Room on its disks.
    pub disk_available_bytes: Option<u64>,
    /// Bytes received by transport.
    pub transport_rx_bytes: Option<u64>,
    /// Bytes sent by transport.
    pub transport_tx_bytes: Option<u64>,
    /// Heap in use, in percent.
    pub heap_used_percent: Option<u64>,
    /// Heap in use.
    pub heap_used_bytes: Option<u64>,
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// Time spent in garbage collections, over all collectors.
    pub gc_ms: Option<u64>,
    /// How often each breaker tripped.
    pub breakers_tripped: BTreeMap<String, u64>,
    /// Requests that indexing pressure refused.
    pub pressure_rejections: Option<u64>,
    /// Operations indexed.
    pub indexed_ops: Option<u64>,
    /// Whether merges hold indexing back now.
    pub indexing_throttled: Option<bool>,
    /// Searches.
    pub searches: Option<u64>,
    /// Searches that its pool of threads refused, whose queue was full.
    pub searches_refused: Option<u64>,
    /// Searches that it cancelled to have room, where that is enforced, by what they used too much of: `cpu_usage`,
    /// `heap_usage`, `elapsed_time`. One search may count for several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub searches_cancelled: BTreeMap<String, u64>,
    /// Time that merges were throttled.
    pub merge_throttled_ms: Option<u64>,
    /// How it sees the others when it chooses a copy to search, by node id.
    pub adaptive_selection: BTreeMap<String, Selection>,
}

/// What one node knows of another as a place to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Its rank; the lowest is chosen.
    pub rank: Option<f64>,
    /// Length of its queue.
    pub queue: Option<f64>,
    /// Time that it works on a search.
    pub service_ns: Option<u64>,
    /// Time until its answer is here.
    pub response_ns: Option<u64>,
}
