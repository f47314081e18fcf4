//! `_segments` and `_cat/segments`: what the index of each copy consists of.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use store::SegmentStats;

use super::answer::{Reply, object_of};
use super::call::{Call, PATIENCE};
use super::identity::host;
use super::names::indices;
use super::spread::{Answers, AskedCopy, copies, on_shards, shards_json, started, stats_of};
use super::stats::copy_routing_json;
use super::table::{Cell, Column, Table, numbers, words};
use engine::state::ClusterState;
use engine::transport::{Result, ShardAction};

async fn ask(call: &Call, state: &ClusterState, names: &[String]) -> Answers {
    let action = ShardAction::Stats { segments: true };
    on_shards(&call.node, started(state, names), &action, PATIENCE).await
}

/// `GET /_segments`, `GET /{index}/_segments`.
pub(super) async fn segments(call: Call) -> Result<Reply> {
    // It adds the memory that segments take, which nobody counts.
    call.query.flag("verbose", false)?;
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let answers = ask(&call, &state, &names).await;
    let mut by_index: BTreeMap<&str, BTreeMap<u32, Vec<Value>>> = BTreeMap::new();
    for (copy, stats) in stats_of(&answers) {
        let shards = by_index.entry(&copy.index).or_default();
        shards.entry(copy.shard).or_default().push(copy_json(&state, copy, &stats.segment_list));
    }
    let index_json = |(index, shards): (&str, BTreeMap<u32, Vec<Value>>)| {
        let shards = shards.into_iter().map(|(shard, copies)| (shard.to_string(), json!(copies)));
        (index.to_owned(), json!({ "shards": object_of(shards) }))
    };
    let found = object_of(by_index.into_iter().map(index_json));
    let shards = shards_json(copies(&state, &names), &answers);
    Ok(json!({ "_shards": shards, "indices": found }).into())
}

fn copy_json(state: &ClusterState, copy: &AskedCopy, segments: &[SegmentStats]) -> Value {
    let mut routing = copy_routing_json(state, copy);
    // Unlike `_stats`, it names another node only where there is one.
    if let Some(shown) = routing.as_object_mut() {
        shown.retain(|_, value| !value.is_null());
    }
    json!({
        "routing": routing,
        "num_committed_segments": segments.iter().filter(|segment| segment.committed).count(),
        "num_search_segments": segments.iter().filter(|segment| segment.documents.is_some()).count(),
        "segments": object_of(segments.iter().map(segment_json)),
    })
}

fn segment_json(segment: &SegmentStats) -> (String, Value) {
    let mut json = json!({
        "size_in_bytes": segment.bytes,
        "committed": segment.committed,
        "search": segment.documents.is_some(),
        "compound": false,
    });
    if let Some((live, deleted)) = segment.documents {
        json["num_docs"] = json!(live);
        json["deleted_docs"] = json!(deleted);
    }
    (segment.name.clone(), json)
}

static SEGMENTS: [Column; 12] = [
    words("index", "i,idx", "index name"),
    numbers("shard", "s,sh", "shard number"),
    words("prirep", "p,pr,primaryOrReplica", "p primary, r replica"),
    words("ip", "", "host of its node"),
    words("id", "", "name of its node").on_demand(),
    words("segment", "seg", "segment name"),
    numbers("docs.count", "dc,docsCount", "documents"),
    numbers("docs.deleted", "dd,docsDeleted", "replaced and deleted documents that it still holds"),
    numbers("size", "si", "bytes of its files"),
    words("committed", "ic,isCommitted", "whether the newest commit has it"),
    words("searchable", "is,isSearchable", "whether searches see it"),
    words("compound", "ico,isCompound", "never: each part has a file of its own"),
];

/// `GET /_cat/segments`.
pub(super) async fn cat(call: Call) -> Result<Reply> {
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let answers = ask(&call, &state, &names).await;
    let mut table = Table::new(&SEGMENTS);
    for (copy, stats) in stats_of(&answers) {
        let node = copy.node.as_deref();
        let member = node.and_then(|name| state.members.get(name));
        let ip = member.map(|member| host(&member.transport_address));
        for segment in &stats.segment_list {
            let (live, deleted) = segment.documents.unzip();
            table.push(vec![
                copy.index.as_str().into(),
                Cell::Number(u64::from(copy.shard)),
                if copy.primary { "p" } else { "r" }.into(),
                ip.into(),
                node.into(),
                segment.name.as_str().into(),
                live.map(Cell::Number).into(),
                deleted.map(Cell::Number).into(),
                Cell::Size(segment.bytes),
                segment.committed.to_string().into(),
                segment.documents.is_some().to_string().into(),
                "false".into(),
            ]);
        }
    }
    table.answer(&call.query)
}
