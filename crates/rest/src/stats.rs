//! `_stats`: what indices and their copies hold and did.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use store::ShardStats;

use super::answer::{Reply, object_of};
use super::call::{Call, PATIENCE};
use super::cluster::state_name;
use super::error::bad_request;
use super::names::{Closed, indices_with, matches};
use super::nodes::{INDEX_METRICS, in_path, unrecognized};
use super::spread::{AskedCopy, copies, on_shards, shards_json, started, stats_of};
use engine::shard::stats_json;
use engine::state::{ClusterState, IndexMeta};
use engine::transport::{Result, ShardAction};

/// Parameters of `_stats`. By fields and groups nothing is counted.
pub(super) const KNOWN: &[&str] = &[
    "completion_fields fielddata_fields fields forbid_closed_indices groups include_segment_file_sizes \
     include_unloaded_segments level types",
];

/// How much an answer tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Cluster,
    Indices,
    Shards,
}

fn level(text: Option<&str>) -> Result<Level> {
    match text {
        Some("cluster") => Ok(Level::Cluster),
        None | Some("indices") => Ok(Level::Indices),
        Some("shards") => Ok(Level::Shards),
        Some(other) => Err(bad_request(format!(
            "level parameter must be one of [cluster] or [indices] or [shards] but was [{other}]"
        ))),
    }
}

/// The metrics that a path names, also by patterns; none for all.
fn metrics(asked: Option<&str>) -> Result<Option<Vec<&str>>> {
    let Some(asked) = asked else { return Ok(None) };
    let asked: Vec<&str> = asked.split(',').collect();
    if asked.contains(&"_all") {
        return match asked.len() {
            1 => Ok(None),
            _ => Err(bad_request("_stats: [_all] stands alone, or leave it out")),
        };
    }
    match asked.iter().find(|name| !INDEX_METRICS.iter().any(|known| matches(name, known))) {
        None => Ok(Some(asked)),
        Some(name) => Err(unrecognized("_stats", name, &INDEX_METRICS)),
    }
}

/// The sums over copies, of them the metrics that are wanted.
fn sums<'a>(
    copies: impl IntoIterator<Item = &'a ShardStats>,
    wanted: Option<&[&str]>,
) -> Map<String, Value> {
    let mut sums = stats_json(copies);
    if let Some(wanted) = wanted {
        sums.retain(|name, _| wanted.iter().any(|pattern| matches(pattern, in_path(name))));
    }
    sums
}

/// `GET /_stats`, `GET /{index}/_stats`.
pub(super) async fn stats(call: Call) -> Result<Reply> {
    let level = level(call.query.get("level"))?;
    // Every copy is loaded.
    call.query.flag("include_unloaded_segments", false)?;
    let closed = match call.query.flag("forbid_closed_indices", true)? {
        true => Closed::Refused,
        false => Closed::Named,
    };
    let wanted = metrics(call.part("metric"))?;
    let wanted = wanted.as_deref();
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, closed)?;
    let asked = started(&state, &names);
    let action = ShardAction::Stats { segments: false };
    let answers = on_shards(&call.node, asked, &action, PATIENCE).await;
    let shards = shards_json(copies(&state, &names), &answers);
    let mut by_index: BTreeMap<&str, Vec<(&AskedCopy, &ShardStats)>> = BTreeMap::new();
    for (copy, stats) in stats_of(&answers) {
        by_index.entry(&copy.index).or_default().push((copy, stats));
    }
    let all = || by_index.values().flatten();
    let primaries = all().filter(|(copy, _)| copy.primary);
    let mut answer = json!({
        "_shards": shards,
        "_all": {
            "primaries": sums(primaries.map(|(_, stats)| *stats), wanted),
            "total": sums(all().map(|(_, stats)| *stats), wanted),
        },
    });
    if level >= Level::Indices {
        let one = |name: &String| {
            let meta = state.indices.get(name)?;
            let copies = by_index.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            Some((name.clone(), index_json(&state, meta, copies, level, wanted)))
        };
        answer["indices"] = object_of(names.iter().filter_map(one));
    }
    Ok(answer.into())
}

fn index_json(
    state: &ClusterState,
    meta: &IndexMeta,
    copies: &[(&AskedCopy, &ShardStats)],
    level: Level,
    wanted: Option<&[&str]>,
) -> Value {
    let primaries = copies.iter().filter(|(copy, _)| copy.primary);
    let mut object = json!({
        "uuid": meta.uuid,
        "primaries": sums(primaries.map(|(_, stats)| *stats), wanted),
        "total": sums(copies.iter().map(|(_, stats)| *stats), wanted),
    });
    if level == Level::Shards {
        let mut shards: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
        for &(copy, stats) in copies {
            let json = copy_json(state, copy, stats, wanted);
            shards.entry(copy.shard).or_default().push(json);
        }
        let one = |(shard, copies): (u32, Vec<Value>)| (shard.to_string(), json!(copies));
        object["shards"] = object_of(shards.into_iter().map(one));
    }
    object
}

/// Where a copy is, and whether it moves.
pub(super) fn copy_routing_json(state: &ClusterState, copy: &AskedCopy) -> Value {
    let on_node = |routing: &&engine::state::ShardCopy| routing.node == copy.node;
    let routing = state.shard(&copy.index, copy.shard);
    let found = routing.and_then(|routing| routing.copies.iter().find(on_node));
    json!({
        "state": found.map(state_name),
        "primary": copy.primary,
        "node": copy.node,
        "relocating_node": found.and_then(|copy| copy.relocating_node()),
    })
}

fn copy_json(
    state: &ClusterState,
    copy: &AskedCopy,
    stats: &ShardStats,
    wanted: Option<&[&str]>,
) -> Value {
    let mut json = sums([stats], wanted);
    json.insert("routing".to_owned(), copy_routing_json(state, copy));
    json.insert("commit".to_owned(), json!({ "generation": stats.commit_generation }));
    json.insert(
        "seq_no".to_owned(),
        json!({
            "max_seq_no": stats.max_seq_no.map_or(-1, signed),
            "local_checkpoint": stats.local_checkpoint.map_or(-1, signed),
            "global_checkpoint": stats.global_checkpoint.map_or(-1, signed),
        }),
    );
    Value::Object(json)
}

/// The field writes -1 where there is none.
fn signed(seq_no: u64) -> i64 {
    i64::try_from(seq_no).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_named_and_unknown_ones_refused() {
        assert_eq!(metrics(None), Ok(None));
        assert_eq!(metrics(Some("_all")), Ok(None));
        assert_eq!(metrics(Some("docs,re*")), Ok(Some(vec!["docs", "re*"])));
        let said = metrics(Some("doc")).unwrap_err().reason;
        assert!(said.contains("unrecognized metric: [doc]; did you mean \"docs\"?"), "{said}");
        assert!(metrics(Some("docs,_all")).is_err());
        let stats = ShardStats { documents: 3, ..ShardStats::default() };
        let some = sums([&stats, &stats], Some(&["docs", "re*"]));
        assert_eq!(some["docs"], json!({ "count": 6, "deleted": 0 }));
        assert_eq!(some.keys().collect::<Vec<_>>(), ["docs", "refresh", "request_cache"]);
        let merges = sums([&ShardStats { merging: 2, ..ShardStats::default() }], Some(&["merge"]));
        assert_eq!(Value::Object(merges), json!({ "merges": { "current": 2 } }));
        assert!(level(Some("shard")).is_err());
    }
}
