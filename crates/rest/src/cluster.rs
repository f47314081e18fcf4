//! `/` and `_cluster/state`.

use serde_json::{Map, Value, json};

use super::answer::{Reply, object_of};
use super::call::Call;
use super::error::bad_request;
use super::identity::{host, manager, release};
use super::names::{Closed, indices_with, matches_any};
use engine::settings::{flat, nested};
use engine::state::{ClusterState, CopyState, IndexShardRoutingTable, ShardCopy};
use engine::transport::Result;

/// `GET /`.
pub(super) async fn info(call: Call) -> Result<Reply> {
    let state = call.state();
    let (version, tagline) = release(&call.node).root();
    Ok(json!({
        "name": call.node.name(),
        "cluster_name": state.cluster_name,
        "cluster_uuid": state.cluster_uuid,
        "version": version,
        "tagline": tagline,
    })
    .into())
}

const METRICS: [&str; 7] = [
    "blocks", "cluster_manager_node", "master_node", "metadata", "nodes", "routing_table",
    "version",
];

/// `GET /_cluster/state`: what tests and people look at, not the whole of the field's.
pub(super) async fn state(call: Call) -> Result<Reply> {
    let state = call.state();
    let metrics = call.part("metric").unwrap_or("_all");
    let unknown = |name: &&str| *name != "_all" && !METRICS.contains(name);
    if let Some(name) = metrics.split(',').find(unknown) {
        let known = METRICS.join(", ");
        return Err(bad_request(format!("unknown metric [{name}]; there are _all, {known}")));
    }
    // The whole state has them in any case.
    let closed = if call.indices().is_some() { Closed::Named } else { Closed::Expanded };
    let names = indices_with(&state, call.indices(), &call.query, closed)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    let mut answer = Map::new();
    answer.insert("cluster_name".to_owned(), json!(state.cluster_name));
    answer.insert("cluster_uuid".to_owned(), json!(state.cluster_uuid));
    for metric in METRICS.iter().filter(|metric| matches_any(metrics, metric)) {
        let part = match *metric {
            "version" => json!(state.version),
            "master_node" | "cluster_manager_node" => json!(manager(&call.node)),
            "nodes" => nodes_json(&state),
            "metadata" => metadata_json(&state, &names, flat_settings),
            "routing_table" => routing_json(&state, &names),
            _ => json!({}),
        };
        answer.insert((*metric).to_owned(), part);
    }
    Ok(Value::Object(answer).into())
}

fn nodes_json(state: &ClusterState) -> Value {
    object_of(state.present_nodes().map(|node| {
        let object = json!({
            "name": node.name,
            "transport_address": node.transport_address,
            "host": host(&node.transport_address),
        });
        (node.name.clone(), object)
    }))
}

/// An object that has a member for each shard of an index, by its number.
pub(super) fn by_number(
    shards: &[IndexShardRoutingTable],
    member: &dyn Fn(u32, &IndexShardRoutingTable) -> Value,
) -> Value {
    object_of((0_u32..).zip(shards).map(|(n, shard)| (n.to_string(), member(n, shard))))
}

fn metadata_json(state: &ClusterState, names: &[String], flat_settings: bool) -> Value {
    let render = if flat_settings { flat } else { nested };
    let one = |name: &String| {
        let meta = state.indices.get(name)?;
        let shards = state.routing.get(name)?;
        let object = json!({
            "state": if meta.closed { "close" } else { "open" },
            "settings": render(&meta.settings),
            "mappings": meta.mappings,
            "aliases": meta.aliases.keys().collect::<Vec<_>>(),
            "aliases_version": meta.aliases_version,
            "mapping_version": meta.mapping_version,
            "settings_version": meta.settings_version,
            "routing_num_shards": meta.routing_shards.unwrap_or(meta.shards),
            "primary_terms": by_number(shards, &|_, shard| json!(shard.primary_term)),
            "in_sync_allocations": by_number(shards, &|_, shard| json!(shard.in_sync)),
            "leader": meta.leader,
        });
        Some((name.clone(), object))
    };
    let indices = object_of(names.iter().filter_map(one));
    json!({ "cluster_uuid": state.cluster_uuid, "indices": indices })
}

pub(super) fn routing_json(state: &ClusterState, names: &[String]) -> Value {
    let one = |name: &String| {
        let shards = state.routing.get(name)?;
        let shards = by_number(shards, &|number, shard| copies_json(name, number, shard));
        Some((name.clone(), json!({ "shards": shards })))
    };
    json!({ "indices": object_of(names.iter().filter_map(one)) })
}

fn copies_json(index: &str, number: u32, shard: &IndexShardRoutingTable) -> Value {
    shard
        .copies
        .iter()
        .map(|copy| {
            let mut object = json!({
                "index": index,
                "shard": number,
                "primary": copy.primary,
                "node": copy.node,
                "relocating_node": copy.relocating_node(),
                "state": state_name(copy),
            });
            if copy.is_assigned() {
                object["allocation_id"] = json!({ "id": copy.allocation_id });
                if let Some(target) = &copy.target {
                    object["allocation_id"]["relocation_id"] = json!(target.allocation_id);
                }
            }
            if let Some(from) = copy.recovery() {
                object["recovery_source"] = json!({ "type": from.kind() });
            }
            if let CopyState::Unassigned { reason, .. } = copy.state {
                object["unassigned_info"] = json!({ "reason": reason });
            }
            object
        })
        .collect()
}

/// The name that routing tables show.
pub(super) fn state_name(copy: &ShardCopy) -> &'static str {
    match copy.state {
        CopyState::Started if copy.is_relocating() => "RELOCATING",
        CopyState::Unassigned { .. } => "UNASSIGNED",
        CopyState::Initializing { .. } => "INITIALIZING",
        CopyState::Started => "STARTED",
    }
}
