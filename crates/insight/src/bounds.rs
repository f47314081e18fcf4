//! The highest rates that the settings and the link allow.

use std::collections::BTreeMap;

use record::{Limit, Manifest, ModelInfo, Row, units};

use crate::trace::Trace;
use crate::words;

/// A rate may be above what lets it through by so many times, because both are measured.
pub(crate) const TOLERANCE: f64 = 1.05;

/// The most that one limit lets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The limit.
    pub limit: Limit,
    /// Bytes a second over all shards.
    pub rate_bytes_per_s: f64,
    /// The ceiling in a sentence: `the link at 125 MB/s`.
    pub text: String,
}

/// The bounds of one variant. A value that is not recorded is none and sets no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Chunk size, where it is fixed.
    pub chunk_bytes: Option<u64>,
    /// Chunks of a shard in flight, where it is fixed.
    pub chunks_in_flight: Option<u32>,
    /// Shards recovered side by side.
    pub shards: Option<u32>,
    /// Mean bytes in flight over all shards, as sampled.
    pub mean_in_flight_bytes: Option<f64>,
    /// Limiter of a node.
    pub throttle_bytes_per_s: Option<u64>,
    /// Nodes whose limiters work side by side.
    pub throttled_nodes: u32,
    /// Where copies are made within one cluster: the node that sends and receives most, and the share of all that is
    /// copied which passes its limiter.
    pub busiest_limiter: Option<(String, f64)>,
    /// Round-trip time of the link.
    pub rtt_ms: Option<f64>,
    /// Rate of the link.
    pub link_bytes_per_s: Option<f64>,
    /// Share of the time in which the link carried bytes, where that was measured.
    pub link_busy: Option<f64>,
    /// Window of one connection, where it is bounded.
    pub window_bytes: Option<u64>,
    /// Whether a connection that pauses has to open its congestion window again.
    pub slow_start_after_idle: bool,
    /// The node that used most CPU and its mean, in cores.
    pub busiest: Option<(String, f64)>,
}

/// Where recovery settings live: cross-cluster, peer, OpenSearch's replication plugin.
const PREFIXES: [&str; 3] =
    ["ccr.indices.recovery.", "indices.recovery.", "plugins.replication.follower.index.recovery."];

fn setting<'a>(settings: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    PREFIXES.iter().find_map(|prefix| settings.get(&format!("{prefix}{name}"))).map(String::as_str)
}

impl Bounds {
    /// Reads the bounds of a variant from its settings, the manifest and its samples. The row says whether nodes
    /// received side by side or one after another.
    pub(crate) fn read(
        manifest: &Manifest,
        row: &Row,
        settings: &BTreeMap<String, String>,
        trace: Option<&Trace<'_>>,
    ) -> Self {
        let scheduler = settings.get("narrows.recovery.scheduler").map(String::as_str);
        let adaptive = scheduler == Some("adaptive");
        let chunk = setting(settings, "chunk_size").and_then(|s| units::parse_size(s).ok());
        let chunks = match scheduler {
            Some("sequential") => Some(1),
            _ => setting(settings, "max_concurrent_file_chunks").and_then(|s| s.parse().ok()),
        };
        let throttle = setting(settings, "max_bytes_per_sec")
            .and_then(|text| units::parse_throttle(text).ok().flatten());
        let shards = trace.and_then(Trace::shards);
        let link = manifest.link.as_ref();
        let models = manifest.variants.iter().find(|variant| variant.name == row.variant);
        let models = models.map_or(&[][..], |variant| &variant.models);
        let windows = [
            link.and_then(|link| link.window_bytes),
            model(models, "link.max_window_bytes").and_then(|w| units::parse_size(w).ok()),
        ];
        let receiving = receiving(row);
        // Nodes that received one after another are told apart no more in what each sent and received in all.
        let is_within = receiving.is_none_or(|nodes| nodes > 1) && is_one_cluster(manifest);
        let within = trace.filter(|_| is_within);
        let busiest_limiter = within.and_then(|trace| trace.busiest_limiter(row.bytes));
        Bounds {
            chunk_bytes: chunk.filter(|_| !adaptive),
            chunks_in_flight: chunks.filter(|_| !adaptive),
            shards,
            mean_in_flight_bytes: trace.and_then(Trace::in_flight_bytes),
            throttle_bytes_per_s: throttle,
            throttled_nodes: receiving.unwrap_or_else(|| throttled_nodes(manifest, shards)),
            busiest_limiter: busiest_limiter.map(|(node, share)| (node.to_owned(), share)),
            rtt_ms: link.map(|link| link.rtt_ms).filter(|rtt| *rtt > 0.0),
            link_bytes_per_s: link.map(|l| l.rate_bytes_per_s as f64).filter(|rate| *rate > 0.0),
            link_busy: row.link_busy,
            window_bytes: windows.into_iter().flatten().min(),
            slow_start_after_idle: model(models, "link.slow_start_after_idle") == Some("on"),
            busiest: trace.and_then(Trace::busiest).map(|(node, cores)| (node.to_owned(), cores)),
        }
    }

    /// How many times the rate of one limiter goes through all of them: where the busiest one takes part in a share of
    /// all that is copied, the others wait for it.
    pub fn limiters(&self) -> f64 {
        let nodes = || f64::from(self.throttled_nodes.max(1));
        self.busiest_limiter.as_ref().map_or_else(nodes, |(_, share)| 1.0 / share)
    }

    /// Bytes a second of one shard by Little's law: bytes in flight over the round trip. If a chunk is larger than the
    /// connection's window, only a window of it is in flight.
    pub fn latency_bytes_per_s_a_shard(&self) -> Option<f64> {
        let chunk = self.chunk_bytes?.min(self.window_bytes.unwrap_or(u64::MAX));
        let in_flight = chunk as f64 * f64::from(self.chunks_in_flight?);
        Some(in_flight / (self.rtt_ms? / 1000.0))
    }

    /// The window of a connection, where it is smaller than a chunk.
    pub fn window_below_chunk(&self) -> Option<u64> {
        self.window_bytes.filter(|window| self.chunk_bytes.is_some_and(|chunk| *window < chunk))
    }

    /// The share of the link that was used: by what it carried where that is known, which is less than `link_share`
    /// says where files are compressed on it.
    pub fn link_used(&self, link_share: Option<f64>) -> Option<f64> {
        let busy = self.link_busy.unwrap_or(f64::INFINITY);
        link_share.map(|share| share.min(busy))
    }

    /// Bytes that the link holds when it is full: rate times round trip.
    pub fn link_holds_bytes(&self) -> Option<f64> {
        Some(self.link_bytes_per_s? * self.rtt_ms? / 1000.0)
    }

    /// The ceiling of `limit`, where settings and link say one.
    pub fn ceiling(&self, limit: Limit) -> Option<Ceiling> {
        let (rate_bytes_per_s, text) = match limit {
            Limit::LinkRate => {
                let rate = self.link_bytes_per_s?;
                (rate, format!("the link at {}", words::rate(rate)))
            }
            Limit::Throttle => {
                let rate = self.throttle_bytes_per_s? as f64 * self.limiters();
                (rate, format!("the throttle at {}", words::rate(rate)))
            }
            Limit::Latency => {
                let rate = self.latency_bytes_per_s_a_shard()? * f64::from(self.shards?);
                (rate, format!("latency at {} ({})", words::rate(rate), self.in_flight()?))
            }
            _ => return None,
        };
        Some(Ceiling { limit, rate_bytes_per_s, text })
    }

    /// Chunks in flight as settings say it: `64 KiB x 1`.
    pub fn in_flight(&self) -> Option<String> {
        Some(format!("{} x {}", words::chunk(self.chunk_bytes?), self.chunks_in_flight?))
    }

    /// Every known ceiling, lowest first.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        let mut known: Vec<Ceiling> =
            Limit::ALL.into_iter().filter_map(|limit| self.ceiling(limit)).collect();
        known.sort_by(|a, b| a.rate_bytes_per_s.total_cmp(&b.rate_bytes_per_s));
        known
    }
}

fn model<'a>(models: &'a [ModelInfo], name: &str) -> Option<&'a str> {
    models.iter().find(|model| model.name == name).map(|model| model.value.as_str())
}

/// Nodes that received side by side, where the row says.
fn receiving(row: &Row) -> Option<u32> {
    let of_a_node = row.node_bytes_per_s.filter(|rate| *rate > 0.0)?;
    Some((row.bytes_per_s / of_a_node).round().max(1.0) as u32)
}

/// Whether all nodes are of one cluster: what one of them sends then passes the limiter that it receives by, too.
fn is_one_cluster(manifest: &Manifest) -> bool {
    let mut clusters = manifest.nodes.iter().map(|node| &node.cluster);
    let first = clusters.next();
    first.is_some_and(|first| clusters.all(|other| other == first))
}

/// Limiters are one a node, on both sides, so the smaller side counts; a node without a shard does
/// not help.
fn throttled_nodes(manifest: &Manifest, shards: Option<u32>) -> u32 {
    let mut by_cluster: BTreeMap<&str, u32> = BTreeMap::new();
    for node in &manifest.nodes {
        *by_cluster.entry(&node.cluster).or_default() += 1;
    }
    let nodes = by_cluster.into_values().min().unwrap_or(1);
    shards.map_or(nodes, |shards| nodes.min(shards)).max(1)
}

/// Two chunks of 512 KiB over 100 ms: at most 10.5 MB/s. Throttle 41.9 MB/s, link 125 MB/s.
#[cfg(test)]
pub(crate) fn ocean() -> Bounds {
    Bounds {
        chunk_bytes: Some(512 << 10),
        chunks_in_flight: Some(2),
        shards: Some(1),
        throttle_bytes_per_s: Some(40 << 20),
        throttled_nodes: 1,
        rtt_ms: Some(100.0),
        link_bytes_per_s: Some(125e6),
        ..Bounds::default()
    }
}

#[cfg(test)]
mod tests {
    use record::{FORMAT, NodeInfo, NodeSample};

    use super::*;

    #[test]
    fn nodes_that_received_one_after_another_have_one_limiter() {
        let row = Row::measured("one", 1, 10.0, 210_000_000);
        assert_eq!(receiving(&row), None);
        let of_a_node = |rate: f64| Row { node_bytes_per_s: Some(rate), ..row.clone() };
        assert_eq!(receiving(&of_a_node(row.bytes_per_s)), Some(1));
        assert_eq!(receiving(&of_a_node(row.bytes_per_s / 3.0)), Some(3));
        assert_eq!(receiving(&of_a_node(0.0)), None);
    }

    #[test]
    fn what_leaves_a_node_passes_its_limiter_however_many_receive_it() {
        let node = |name: &str| NodeInfo { cluster: "c".to_owned(), name: name.to_owned() };
        let nodes = ["a", "b", "c"].map(node).to_vec();
        let manifest = Manifest { nodes, ..Manifest::unknown("r", FORMAT) };
        let limiter = "indices.recovery.max_bytes_per_sec".to_owned();
        let settings = BTreeMap::from([(limiter, "40mb".to_owned())]);
        let begin = NodeSample::default();
        let sends = NodeSample { transport_tx_bytes: 600, ..begin.clone() };
        let receives = NodeSample { transport_rx_bytes: 300, ..begin.clone() };
        let of = |name, end| (("c", name), vec![(0.0, &begin), (1.0, end)]);
        let mut trace = Trace::default();
        trace.nodes = [of("a", &sends), of("b", &receives), of("c", &receives)].into();
        let row = Row::measured("one", 1, 10.0, 600);
        let bounds = |of_a_node: f64| {
            let row = Row { node_bytes_per_s: Some(of_a_node), ..row.clone() };
            Bounds::read(&manifest, &row, &settings, Some(&trace))
        };
        let rate = |bounds: &Bounds| bounds.ceiling(Limit::Throttle).unwrap().rate_bytes_per_s;
        let drained = bounds(row.bytes_per_s / 2.0);
        assert_eq!(drained.busiest_limiter, Some(("a".to_owned(), 1.0)));
        assert_eq!(rate(&drained), f64::from(40 << 20));
        let in_turn = bounds(row.bytes_per_s);
        assert_eq!((in_turn.busiest_limiter, in_turn.throttled_nodes), (None, 1));
    }
}
