//! What compressing costs in OpenSearch: the same copy between nodes that send bytes as they are, and between nodes
//! that compress them.
//!
//! Nodes start with `transport.compress`, so that there are two pairs, one after the other. A node tells the core time
//! of its process. What a copy takes more of that with compression is DEFLATE at the node that sends it, and its
//! reverse at the one that gets it. Twins that are told to compress do so in LZ4, so that this is what LZ4 costs there.

use std::time::Duration;

use clusters::Clusters;
use serde_json::{Value, json};
use world::Env;

use super::copies::{Asked, Content, Direction, WHOLE, peer, text_fields};
use super::measurement::{Figure, failed};
use crate::error::Result;

/// Bulks of the text that is copied: 60 000 documents.
const TEXT_BULKS: u64 = 600;
/// A node looks at its own process once a second at most (`monitor.process.refresh_interval`).
const LOOKS_AGAIN: Duration = Duration::from_millis(1100);
const PROCESSES: &str =
    "/_nodes/stats/process?filter_path=nodes.*.name,nodes.*.process.cpu.total_in_millis";
/// Less core time than this is what a node takes by itself: compiling, collecting garbage.
const LONGER_S_MIN: f64 = 0.05;
const NO_LONGER: &str = "copies that were compressed took no more core time than others";

/// Copies that came whole: their bytes, and seconds of core time that the node which sent them took meanwhile, and the
/// one that got them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) bytes: f64,
    pub(super) source_s: f64,
    pub(super) target_s: f64,
}

impl Spent {
    /// What the sender and the receiver took more than those of another copy would have for as many bytes, where that
    /// can be told.
    pub(super) fn longer_s(&self, other: &Spent) -> [Option<f64>; 2] {
        let as_many = self.bytes / other.bytes;
        let longer =
            [self.source_s - other.source_s * as_many, self.target_s - other.target_s * as_many];
        longer.map(|longer_s| Some(longer_s).filter(|longer_s| *longer_s >= LONGER_S_MIN))
    }
}

/// Copies an index of text so often, and once before, when nothing is compiled yet. A copy that came back to files of
/// the one before it is left out.
pub(super) async fn copies<C: Clusters>(
    env: &Env,
    asked: &Asked<'_, C>,
    laps: u32,
) -> Result<Vec<Spent>> {
    fill(asked, (TEXT_BULKS, WHOLE), text_fields()).await?;
    let mut copies = Vec::new();
    for lap in 0..=laps {
        copies.extend(copy(env, asked, 1).await?.filter(|_| lap > 0));
    }
    asked.clear_away().await?;
    Ok(copies)
}

/// Makes an index of one segment at the node that is to send copies of it.
pub(super) async fn fill<C: Clusters>(
    asked: &Asked<'_, C>,
    (bulks, content): (u64, Content),
    fields: Value,
) -> Result<()> {
    asked.keep_on_source(Direction::ToManager, 1).await?;
    let settings = json!({ "number_of_shards": 1, "number_of_replicas": 0 });
    asked.create(settings, fields).await?;
    asked.fill(bulks, content).await?;
    // Merges that go on would take core time of the node that sends.
    let merge = format!("/{}/_forcemerge?max_num_segments=1", asked.index);
    asked.ask("POST", &merge, Value::Null).await?;
    asked.flush().await
}

/// Makes a copy of that index so many times, and takes each away; none where some files were there already.
pub(super) async fn copy<C: Clusters>(
    env: &Env,
    asked: &Asked<'_, C>,
    times: u32,
) -> Result<Option<Spent>> {
    let before = core_times(env, asked).await?;
    let mut bytes = Some(0.0);
    for time in 0..times {
        if time > 0 {
            // Until the files of the copy before are gone.
            env.sleep(LOOKS_AGAIN).await;
        }
        asked.make_copies(Direction::ToManager).await?;
        let whole = whole_bytes(&asked.recoveries().await?, asked.index);
        bytes = bytes.zip(whole).map(|(before, more)| before + more);
        asked.set_index(json!({ "index.number_of_replicas": 0 })).await?;
    }
    let after = core_times(env, asked).await?;
    let [source_s, target_s] = [0, 1].map(|end| after[end] - before[end]);
    Ok(bytes.map(|bytes| Spent { bytes, source_s, target_s }))
}

/// Seconds of core time that nodes have taken since they started: the one that sends copies, and the one that gets
/// them, which is the manager.
async fn core_times<C: Clusters>(env: &Env, asked: &Asked<'_, C>) -> Result<[f64; 2]> {
    env.sleep(LOOKS_AGAIN).await;
    let stats = asked.ask("GET", PROCESSES, Value::Null).await?;
    let nodes = asked.target.nodes(asked.cluster);
    let of = |place: usize| nodes.get(place).and_then(|node| core_s(&stats, &node.name));
    let both = of(1).zip(of(0)).map(|(source_s, target_s)| [source_s, target_s]);
    both.ok_or_else(|| failed("ask nodes for their core time", &stats))
}

fn core_s(stats: &Value, name: &str) -> Option<f64> {
    let node = stats["nodes"].as_object()?.values().find(|node| node["name"] == name)?;
    Some(node["process"]["cpu"]["total_in_millis"].as_f64()? / 1e3)
}

/// Bytes of the copy that was made, where all its files came.
fn whole_bytes(recoveries: &Value, index: &str) -> Option<f64> {
    let size = &peer(recoveries, index)?["index"]["size"];
    let bytes = size["recovered_in_bytes"].as_f64()?;
    (bytes > 0.0 && size["reused_in_bytes"].as_u64() == Some(0)).then_some(bytes)
}

/// What compressing and its reverse cost, by copies without and with it.
pub(super) fn figures(plain: &[Spent], compressed: &[Spent]) -> [Figure; 2] {
    let mut rate = Figure::new(
        "cores.lz4_bytes_per_s",
        "60 000 documents of 1 kB in words, copied with transport.compress: what the node that sends them takes more \
         core time, which is for DEFLATE there",
    );
    let mut speedup = Figure::new(
        "cores.decompress_speedup",
        "the same copy: what the node that sends it takes more core time, over what the one that gets it does",
    );
    for (plain, compressed) in plain.iter().zip(compressed) {
        let [source_s, target_s] = compressed.longer_s(plain);
        let no_longer = || NO_LONGER.to_owned();
        rate.lap(source_s.map(|source_s| compressed.bytes / source_s).ok_or_else(no_longer));
        let ratio = source_s.zip(target_s).map(|(source_s, target_s)| source_s / target_s);
        speedup.lap(ratio.ok_or_else(no_longer));
    }
    [rate, speedup]
}

#[cfg(test)]
mod tests {
    use super::super::measurement::TargetCalibration;
    use super::*;

    #[test]
    fn compression_costs_what_copies_with_it_take_more() {
        let plain = Spent { bytes: 100e6, source_s: 0.2, target_s: 0.4 };
        let compressed = Spent { bytes: 50e6, source_s: 2.1, target_s: 0.4 };
        let found = |compressed: Spent| {
            let found = TargetCalibration::of(figures(&[plain], &[compressed]), []);
            let laps = found.measured.into_iter().map(|one| (one.parameter, one.laps[0]));
            let why = found.not_measured.into_iter().map(|one| (one.parameter, one.why));
            (laps.collect::<Vec<_>>(), why.collect::<Vec<_>>())
        };
        let (laps, why) = found(compressed);
        assert!(why.is_empty(), "{why:?}");
        let [("cores.lz4_bytes_per_s", rate), ("cores.decompress_speedup", speedup)] = laps[..]
        else {
            panic!("{laps:?}");
        };
        assert!((rate - 25e6).abs() < 1.0 && (speedup - 10.0).abs() < 1e-9, "{laps:?}");
        let (laps, why) = found(Spent { target_s: 0.21, ..compressed });
        assert_eq!(
            (laps.len(), &why[..]),
            (1, &[("cores.decompress_speedup", NO_LONGER.to_owned())][..])
        );
        assert_eq!(found(Spent { source_s: 0.1, ..compressed }).1.len(), 2, "no rate, no ratio");
    }

    #[test]
    fn core_time_is_that_of_a_process_and_counts_for_copies_that_came_whole() {
        let node = |name: &str, ms: u64| json!({ "name": name, "process": { "cpu": { "total_in_millis": ms } } });
        let stats = json!({ "nodes": { "x": node("c-0", 1500), "y": node("c-1", 20) } });
        assert_eq!(
            ["c-0", "c-1", "c-2"].map(|name| core_s(&stats, name)),
            [Some(1.5), Some(0.02), None]
        );
        let copy = |recovered: u64, reused: u64| {
            let size = json!({ "recovered_in_bytes": recovered, "reused_in_bytes": reused });
            let copy = json!({ "type": "PEER", "index": { "size": size } });
            whole_bytes(&json!({ "i": { "shards": [copy] } }), "i")
        };
        assert_eq!([copy(10, 0), copy(4, 6), copy(0, 10)], [Some(10.0), None, None]);
    }
}
