//! What recovery takes of the nodes.

use std::collections::BTreeMap;

use record::units::{parse_rate, parse_size};
use record::{Line, NodeSample, RunDir, VariantInfo};
use serde::Serialize;

/// What a node uses at most is looked for over times in which it moves so many chunks. A chunk counts when the whole of
/// it is sent or has come, so that between two samples a large one seems to go far faster than the bytes do.
const CHUNKS_OF_A_WINDOW: u64 = 64;

/// What recovery takes of the nodes. Each share is the most that any node used at any time; none where the record does
/// not say what a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecoveryUse {
    /// Share of a network card, in the busier direction.
    pub link_peak: Option<f64>,
    /// Share of a disk's rate: what is received is written, what is sent was read.
    pub disk_peak: Option<f64>,
    /// Share of a node's cores.
    pub cores_peak: Option<f64>,
    /// Nodes that sent or received more than a hundredth of what all copied.
    pub nodes: usize,
}

/// A model parameter of a variant as a number.
fn model(variant: &VariantInfo, name: &str) -> Option<f64> {
    let row = variant.models.iter().find(|row| row.name == name)?;
    let rate = || parse_rate(&row.value).or_else(|_| parse_size(&row.value)).ok();
    row.value.parse::<f64>().ok().or_else(|| rate().map(|rate| rate as f64))
}

/// What a variant's lap took of the nodes, in chunks of this size.
pub(super) fn recovery_use(
    run: &RunDir,
    variant: &VariantInfo,
    of_lap: u32,
    chunk_bytes: u64,
) -> RecoveryUse {
    // The first node manages the twin's cluster and holds nothing: it stands for none of the nodes that were seen.
    let manager = run.manifest.nodes.first().map(|node| &node.name);
    let mut by_node: BTreeMap<&str, Vec<(f64, &NodeSample)>> = BTreeMap::new();
    for line in &run.lines {
        if let Line::Node { t_ms, variant: Some(name), lap, sample } = line
            && *name == variant.name
            && *lap == of_lap
            && Some(&sample.node) != manager
        {
            by_node.entry(&sample.node).or_default().push((t_ms / 1e3, sample));
        }
    }
    let window_bytes = chunk_bytes.saturating_mul(CHUNKS_OF_A_WINDOW);
    let by_node: Vec<Vec<Used>> = by_node.values().map(|samples| used(samples)).collect();
    let moved = |used: &[Used]| used.last().map_or(0, |last| last.rx_bytes.max(last.tx_bytes));
    // What one node sends another one receives: it is copied once.
    let all: u64 = by_node.iter().filter_map(|used| Some(used.last()?.rx_bytes)).sum();
    let taking_part: Vec<&Vec<Used>> =
        by_node.iter().filter(|used| moved(used) * 100 > all).collect();
    let peaks = taking_part.iter().map(|used| peak(used, window_bytes));
    let (rx, tx, cores) = peaks.fold((0.0f64, 0.0f64, 0.0f64), |most, peak| {
        (most.0.max(peak.0), most.1.max(peak.1), most.2.max(peak.2))
    });
    let share = |of: f64, name: &str| model(variant, name).map(|whole| (of / whole).min(1.0));
    let disk = [share(rx, "disk.write_bytes_per_s"), share(tx, "disk.read_bytes_per_s")];
    RecoveryUse {
        link_peak: share(rx.max(tx), "card.bytes_per_s"),
        disk_peak: disk.into_iter().flatten().reduce(f64::max),
        cores_peak: share(cores, "cores.count"),
        nodes: taking_part.len(),
    }
}

/// What a node had used by the time of a sample, since its first one.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    t_s: f64,
    rx_bytes: u64,
    tx_bytes: u64,
    cores_s: f64,
}

impl Used {
    fn bytes(&self) -> u64 {
        self.rx_bytes + self.tx_bytes
    }
}

fn used<'s>(samples: &[(f64, &'s NodeSample)]) -> Vec<Used> {
    let (mut sum, mut before) = (Used::default(), None::<&'s NodeSample>);
    let so_far = |(t_s, sample): &(f64, &'s NodeSample)| {
        if let Some(before) = before.replace(*sample) {
            // A node that restarted counts from its own start.
            let more = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now);
            sum.rx_bytes += more(before.transport_rx_bytes, sample.transport_rx_bytes);
            sum.tx_bytes += more(before.transport_tx_bytes, sample.transport_tx_bytes);
            sum.cores_s += sample.cpu_cores.max(0.0) * (t_s - sum.t_s);
        }
        sum.t_s = *t_s;
        sum
    };
    samples.iter().map(so_far).collect()
}

/// The most that a node received, sent, and used of its cores in a second: of each sample the shortest time before it
/// in which so many bytes were moved counts, or all that the node moved where that is less.
fn peak(used: &[Used], bytes: u64) -> (f64, f64, f64) {
    let needed = used.last().map_or(0, Used::bytes).min(bytes).max(1);
    let (mut peak, mut from) = ((0.0f64, 0.0f64, 0.0f64), 0);
    for to in used {
        let moved_since = |from: &Used| to.bytes().saturating_sub(from.bytes());
        while used.get(from + 1).is_some_and(|next| moved_since(next) >= needed) {
            from += 1;
        }
        let from = &used[from];
        let seconds = to.t_s - from.t_s;
        if moved_since(from) < needed || seconds <= 0.0 {
            continue;
        }
        let of_bytes = |before: u64, now: u64| (now - before) as f64 / seconds;
        peak.0 = peak.0.max(of_bytes(from.rx_bytes, to.rx_bytes));
        peak.1 = peak.1.max(of_bytes(from.tx_bytes, to.tx_bytes));
        peak.2 = peak.2.max((to.cores_s - from.cores_s) / seconds);
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node receives 40 MB/s in chunks of 32 MB, of which two come at once, and looks ten times a second.
    #[test]
    fn large_chunks_make_no_larger_peak() {
        const CHUNK: u64 = 32_000_000;
        let sample = |tenth: u32| NodeSample {
            transport_rx_bytes: u64::from(tenth / 16) * 2 * CHUNK,
            cpu_cores: if tenth.is_multiple_of(16) { 3.2 } else { 0.0 },
            ..NodeSample::default()
        };
        let all: Vec<NodeSample> = (0..2000).map(sample).collect();
        let timed: Vec<(f64, &NodeSample)> =
            (0u32..).map(|tenth| f64::from(tenth) / 10.0).zip(&all).collect();
        let peak_with = |bytes: u64| peak(&used(&timed), bytes);
        assert!(peak_with(0).0 > 600e6, "between two samples two chunks came");
        let (rx, tx, cores) = peak_with(CHUNKS_OF_A_WINDOW * CHUNK);
        assert!((39e6..42e6).contains(&rx), "{rx}");
        assert!((0.19..0.22).contains(&cores), "{cores}");
        assert_eq!(tx, 0.0);
    }

    /// The second node gets 98.5 % of what the first sends, and the third the rest. The manager is no node of a twin.
    #[test]
    fn who_moves_more_than_a_hundredth_takes_part() {
        let moved =
            [("manager", 5000, 0), ("source", 0, 10_000), ("most", 9850, 0), ("least", 150, 0)];
        let mut manifest = record::Manifest::unknown("twin", record::FORMAT);
        let node = |(name, ..): (&str, u64, u64)| record::NodeInfo {
            cluster: "leader".to_owned(),
            name: name.to_owned(),
        };
        manifest.nodes = moved.map(node).into();
        let line = |s: u64, (name, rx, tx): (&str, u64, u64)| {
            let sample = NodeSample {
                node: name.to_owned(),
                transport_rx_bytes: s * rx,
                transport_tx_bytes: s * tx,
                ..NodeSample::default()
            };
            Line::Node { t_ms: s as f64 * 1e3, variant: Some(String::new()), lap: 1, sample }
        };
        let lines = (0..2).flat_map(|s| moved.map(|one| line(s, one))).collect();
        let run = RunDir { manifest, lines, rows: Vec::new(), damage: Vec::new() };
        assert_eq!(recovery_use(&run, &VariantInfo::default(), 1, 0).nodes, 3);
    }

    #[test]
    fn a_peak_is_no_mean_and_a_restart_loses_nothing() {
        let sample = |rx: u64| NodeSample { transport_rx_bytes: rx, ..NodeSample::default() };
        let all = [sample(1000), sample(1000), sample(2000), sample(300), sample(300)];
        let times = [0.0, 60.0, 61.0, 62.0, 100.0];
        let timed: Vec<(f64, &NodeSample)> = times.into_iter().zip(&all).collect();
        let used = used(&timed);
        assert_eq!(used.last().unwrap().rx_bytes, 1300);
        // All of it is less than 64 chunks of a kilobyte: it came within two seconds.
        assert_eq!(peak(&used, 64 << 10).0, 650.0);
        assert_eq!(peak(&used, 0).0, 1000.0);
    }
}
