//! `_snapshot/_status` and `_snapshot`.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::Snapshot;
use serde_json::Value;

use super::{count_at, elements, entries, text_at};

/// Shards that are written now and kept by name, of each snapshot.
const WRITING_MAX: usize = 3;

/// The snapshots that are being taken, out of `GET _snapshot/_status`.
pub(crate) fn snapshots(answer: &Value) -> Vec<Snapshot> {
    elements(answer.get("snapshots")).filter_map(snapshot).collect()
}

fn snapshot(one: &Value) -> Option<Snapshot> {
    let mut writing = BTreeMap::new();
    for (index, told) in entries(one.get("indices")) {
        for (shard, told) in entries(told.get("shards")) {
            if told.get("stage") == Some(&"STARTED".into()) {
                let node = text_at(told, "/node");
                writing.extend(node.map(|node| (format!("{index}[{shard}]"), node)));
            }
        }
    }
    let nodes: BTreeSet<&String> = writing.values().collect();
    let bytes = count_at(one, "/stats/incremental/size_in_bytes");
    Some(Snapshot {
        name: text_at(one, "/snapshot")?,
        repository: text_at(one, "/repository")?,
        shards_done: count_at(one, "/shards_stats/done"),
        shards: count_at(one, "/shards_stats/total"),
        nodes: (!nodes.is_empty()).then_some(nodes.len() as u64),
        writing: writing.into_iter().take(WRITING_MAX).collect(),
        bytes,
        // `processed` is left out once all bytes are written.
        written_bytes: count_at(one, "/stats/processed/size_in_bytes").or(bytes),
        time_ms: count_at(one, "/stats/time_in_millis"),
        still_ms: None,
        limit: None,
    })
}

/// A setting of a repository, out of `GET _snapshot/{repository}`; none where it is not set.
pub(crate) fn repository_setting(repository: &str, name: &str, answer: &Value) -> Option<String> {
    text_at(answer.get(repository)?, &format!("/settings/{name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repository_says_its_limit_or_has_none() {
        let answer = json!({
            "slow": { "type": "fs", "settings": { "max_restore_bytes_per_sec": "10mb" } },
            "free": { "type": "fs", "settings": { "location": "/snapshots" } },
        });
        let limit = |name: &str| repository_setting(name, "max_restore_bytes_per_sec", &answer);
        assert_eq!(limit("slow").as_deref(), Some("10mb"));
        assert_eq!((limit("free"), limit("none")), (None, None));
    }

    /// Made after the documentation of both, and of the shape that OpenSearch 2.19.1 answers with: two nodes write, and
    /// one shard is done.
    #[test]
    fn a_snapshot_says_how_far_it_is_and_who_writes() {
        let answer = serde_json::from_str(include_str!("samples/snapshot_status.json")).unwrap();
        let found = snapshots(&answer);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.repository.as_str(), one.name.as_str()), ("backups", "nightly-1"));
        assert_eq!((one.shards_done, one.shards, one.nodes), (Some(1), Some(4), Some(2)));
        assert_eq!((one.bytes, one.written_bytes), (Some(4_000_000_000), Some(800_000_000)));
        assert_eq!(one.time_ms, Some(10_000));
        let writing = [("logs[0]", "node-a"), ("logs[1]", "node-b")];
        let writing = writing.map(|(shard, node)| (shard.to_owned(), node.to_owned()));
        assert_eq!(one.writing, writing.into());
        let all = json!({"snapshots": [{"snapshot": "s", "repository": "r",
                         "stats": {"incremental": {"size_in_bytes": 7}}}]});
        assert_eq!(snapshots(&all)[0].written_bytes, Some(7), "what was written is all");
    }
}
