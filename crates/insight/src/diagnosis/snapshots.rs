//! Snapshots that are being taken: how far they are, and how fast.

use record::names::listed;
use record::observation::Snapshot;
use record::units::{parse_throttle, show_bytes, show_seconds};

use super::series::{MS_PER_S, Series};
use super::threshold::{Threshold, USED_ALONE, at};
use crate::words;

/// What bounds each node that writes, by default.
const LIMIT: &str = "40mb";

/// A file counts once it is whole: one of 5 GB, which is what merges make at most, takes two minutes at the default.
pub(super) const STILL_S: Threshold =
    at("seconds for which a snapshot has finished neither a file nor a shard", 300.0);

/// How fast a snapshot is written.
pub(crate) struct Written<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Since it began, over all nodes.
    pub(crate) bytes_per_s: f64,
    /// Nodes that write now.
    pub(crate) nodes: f64,
    /// The most that were seen to write at once. Those that are done wrote a part of the bytes, and no API names them.
    pub(crate) nodes_max: f64,
    /// `max_snapshot_bytes_per_sec` as it is set or by default, and in bytes a second.
    pub(crate) limit: (&'a str, f64),
}

/// The snapshots that are being taken and tell how fast.
pub(crate) fn written<'a>(series: &Series<'a>) -> Vec<Written<'a>> {
    let last = series.last().map(|look| &look.snapshots[..]).unwrap_or_default();
    let one = |snapshot: &'a Snapshot| {
        let is_same = |other: &&Snapshot| {
            (&other.repository, &other.name) == (&snapshot.repository, &snapshot.name)
        };
        let seen = series.looks().iter().flat_map(|(_, look)| &look.snapshots).filter(is_same);
        let took_s = snapshot.time_ms.filter(|ms| *ms > 0)? as f64 / MS_PER_S;
        let text = snapshot.limit.as_deref().unwrap_or(LIMIT);
        let limit = parse_throttle(text).ok().flatten().map_or(f64::INFINITY, |rate| rate as f64);
        Some(Written {
            snapshot,
            bytes_per_s: snapshot.written_bytes? as f64 / took_s,
            nodes: snapshot.nodes? as f64,
            nodes_max: seen.filter_map(|other| other.nodes).max()? as f64,
            limit: (text, limit),
        })
    };
    last.iter().filter_map(one).collect()
}

/// For how long a snapshot has stood still; none where that is not long.
fn still_s(snapshot: &Snapshot) -> Option<f64> {
    let still_s = snapshot.still_ms? as f64 / MS_PER_S;
    (still_s >= STILL_S.value).then_some(still_s)
}

/// `snapshot nightly-1 to backups`
fn name(snapshot: &Snapshot) -> String {
    format!("snapshot {} to {}", snapshot.name, snapshot.repository)
}

/// `each of 3 nodes`
pub(super) fn each_of(nodes: f64) -> String {
    if nodes == 1.0 { "one node".to_owned() } else { format!("each of {nodes} nodes") }
}

/// Snapshots that have stood still for minutes, a sentence each.
pub(crate) fn standing(series: &Series<'_>) -> Vec<String> {
    let (_, nodes) = series.last_nodes().unwrap_or_default();
    let name_of = |id: &String| {
        nodes.iter().find(|node| node.id == *id).map_or_else(|| id.clone(), |one| one.name.clone())
    };
    let all = series.last().into_iter().flat_map(|look| &look.snapshots);
    let stands = |one: &Snapshot| {
        let still = show_seconds(still_s(one)?.floor());
        let writing: Vec<String> =
            one.writing.iter().map(|(shard, id)| format!("{shard} on {}", name_of(id))).collect();
        let who = match writing.is_empty() {
            true => {
                "no shard is written: each waits for its primary to be started, or is about to be finished".to_owned()
            }
            false => format!(
                "it writes {}. A large file takes long, too; the log of the node, and GET _nodes/{}/hot_threads \
                 say what it waits for",
                listed(&writing),
                one.writing.values().map(name_of).collect::<Vec<_>>().join(",")
            ),
        };
        Some(format!(
            "{} has finished neither a file nor a shard for {still} (_snapshot/_status stats.processed): {who}; where \
             it hangs, DELETE _snapshot/{}/{} ends it",
            name(one),
            one.repository,
            one.name
        ))
    };
    all.filter_map(stands).collect()
}

impl Written<'_> {
    /// `snapshot nightly-1 to backups`
    pub(crate) fn name(&self) -> String {
        name(self.snapshot)
    }

    /// Whether it comes further, as far as is seen.
    pub(crate) fn goes_on(&self) -> bool {
        still_s(self.snapshot).is_none()
    }

    /// How far it is, and how long it takes at least, in a sentence. A file counts once it is whole.
    pub(crate) fn sentence(&self) -> String {
        let Snapshot { shards_done, shards, bytes, written_bytes, .. } = self.snapshot;
        let mut parts = vec![format!("{} goes on", self.name())];
        parts.extend(bytes.zip(*written_bytes).map(|(all, written)| {
            let (written, all) = (show_bytes(written), show_bytes(all));
            format!("{written} of {all} are in whole files there")
        }));
        parts.extend(
            shards_done.zip(*shards).map(|(done, all)| format!("{done} of {all} shards done")),
        );
        let is_told = self.limit.1.is_finite() && self.nodes > 0.0;
        let left = bytes.zip(*written_bytes).filter(|_| is_told);
        parts.extend(left.map(|(all, written)| {
            let bytes = all.saturating_sub(written) as f64;
            let takes = |bytes_per_s: f64| show_seconds((bytes / bytes_per_s).ceil());
            let (text, nodes, left) = (self.limit.0, self.nodes, takes(self.limit.1 * self.nodes));
            // One that is slow, or stuck, does not come nearer to its limit by itself.
            // Before the first shard is done, only small files are whole: their rate says nothing of the large ones.
            let is_slow = self.bytes_per_s < USED_ALONE.value * self.limit.1 * self.nodes_max
                && *shards_done != Some(0);
            let so_far = match is_slow && self.bytes_per_s > 0.0 {
                true => {
                    let rate = words::rate(self.bytes_per_s);
                    format!(", and {} at the {rate} of whole files so far", takes(self.bytes_per_s))
                }
                false => String::new(),
            };
            format!(
                "the rest takes {left} at max_snapshot_bytes_per_sec = {text} on {}{so_far}",
                each_of(nodes)
            )
        }));
        parts.join(", ")
    }
}
