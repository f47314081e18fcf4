//! `_cluster/stats`: the whole cluster in numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use store::ShardStats;

use super::answer::Reply;
use super::call::{Call, PATIENCE};
use super::health::ask_manager;
use super::identity::{host, release};
use super::nodes::select;
use super::spread::{AskedCopy, nodes_json, on_nodes, on_shards, started, stats_of};
use engine::shard::stats_json;
use engine::state::{self, Status};
use engine::transport::{Request, Result, ShardAction};

/// `GET /_cluster/stats`, `GET /_cluster/stats/nodes/{node}`.
pub(super) async fn stats(call: Call) -> Result<Reply> {
    let env = &call.node.core().env;
    let give_up = env.now() + call.query.duration("timeout", PATIENCE)?;
    let is_current = ask_manager(&call, give_up - env.now()).await.is_ok();
    let state = call.state();
    let names = select(&call.node, &state, call.part("node"))?;
    let indices: Vec<String> = state.indices.keys().cloned().collect();
    let mut asked = started(&state, &indices);
    asked.retain(|copy| copy.node.as_ref().is_some_and(|node| names.contains(node)));
    let action = ShardAction::Stats { segments: false };
    let copies = on_shards(&call.node, asked, &action, give_up - env.now()).await;
    let copies: Vec<_> = stats_of(&copies).collect();
    // With the sums over its copies a node says how large its disk is.
    let asked = Request::NodeStats { copies: true };
    let nodes = on_nodes(&call.node, names, &asked, give_up - env.now()).await;
    let answered: Vec<&Value> = nodes.iter().filter_map(|(_, stats)| stats.as_ref().ok()).collect();
    let mut answer = json!({
        "_nodes": nodes_json(&nodes),
        "cluster_name": state.cluster_name,
        "cluster_uuid": state.cluster_uuid,
        "timestamp": env.epoch_ms(),
        "indices": indices_json(&copies),
        "nodes": together_json(&answered, release(&call.node).number),
    });
    // As in the field there is none where the manager is lost.
    if is_current {
        let hides_loss = call.node.core().state_hides_loss();
        let status = if hides_loss { Status::Red } else { state::health(&state).status };
        answer["status"] = json!(status.name());
    }
    Ok(answer.into())
}

/// Documents are counted once, by the primaries.
fn indices_json(copies: &[(&AskedCopy, &ShardStats)]) -> Value {
    let mut by_index: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (copy, _) in copies {
        let (shards, primaries) = by_index.entry(&copy.index).or_default();
        *shards += 1;
        *primaries += u32::from(copy.primary);
    }
    let (shards, primaries): (Vec<u32>, Vec<u32>) = by_index.values().copied().unzip();
    let all = stats_json(copies.iter().map(|(_, stats)| *stats));
    let primary = copies.iter().filter(|(copy, _)| copy.primary);
    let documents = stats_json(primary.map(|(_, stats)| *stats));
    json!({
        "count": by_index.len(),
        "shards": shard_counts_json(&shards, &primaries),
        "docs": documents["docs"],
        "store": all["store"],
        "segments": all["segments"],
    })
}

/// How many copies and primaries there are, and of each index; empty without indices, as in the field.
fn shard_counts_json(shards: &[u32], primaries: &[u32]) -> Value {
    if shards.is_empty() {
        return json!({});
    }
    let replication = |shards: u32, primaries: u32| match primaries {
        0 => 0.0,
        _ => f64::from(shards - primaries) / f64::from(primaries),
    };
    let of_each: Vec<f64> = shards
        .iter()
        .zip(primaries)
        .map(|(shards, primaries)| replication(*shards, *primaries))
        .collect();
    let (total, all_primaries): (u32, u32) = (shards.iter().sum(), primaries.iter().sum());
    json!({
        "total": total,
        "primaries": all_primaries,
        "replication": replication(total, all_primaries),
        "index": {
            "shards": extent(shards),
            "primaries": extent(primaries),
            "replication": extent(&of_each),
        },
    })
}

/// The least, the greatest and the mean of numbers, one at least.
fn extent<T: Copy + PartialOrd + Into<f64> + Into<Value>>(numbers: &[T]) -> Value {
    let (mut min, mut max, mut sum) = (numbers[0], numbers[0], 0.0);
    for number in numbers.iter().copied() {
        if number < min {
            min = number;
        }
        if number > max {
            max = number;
        }
        sum += Into::<f64>::into(number);
    }
    let mean = sum / numbers.len() as f64;
    json!({ "min": Into::<Value>::into(min), "max": Into::<Value>::into(max), "avg": mean })
}

/// What the nodes that answered are together.
fn together_json(nodes: &[&Value], version: &str) -> Value {
    let count = nodes.len();
    let uptime_ms =
        nodes.iter().filter_map(|stats| stats["jvm"]["uptime_in_millis"].as_u64()).max();
    let mut together = json!({
        "count": {
            "total": count,
            "coordinating_only": 0,
            "data": count,
            "ingest": 0,
            "master": count,
            "cluster_manager": count,
        },
        "versions": [version],
        "jvm": { "max_uptime_in_millis": uptime_ms.unwrap_or(0) },
        "plugins": [],
    });
    // As in the field nodes of one address share a disk.
    let mut hosts = BTreeSet::new();
    for stats in nodes {
        let address = stats["transport_address"].as_str().unwrap_or_default();
        let disk = &stats["fs"]["total"];
        if disk.is_object() && hosts.insert(host(address)) {
            for part in ["total_in_bytes", "free_in_bytes", "available_in_bytes"] {
                let sum = &mut together["fs"][part];
                *sum = json!(sum.as_u64().unwrap_or(0) + disk[part].as_u64().unwrap_or(0));
            }
        }
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_copies_of_each_index() {
        let copy = |index, primary| AskedCopy::new(index, 0, primary, Some("n"));
        let (a, replica, b) = (copy("a", true), copy("a", false), copy("b", true));
        let stats = ShardStats { documents: 3, store_bytes: 10, ..ShardStats::default() };
        let found = indices_json(&[(&a, &stats), (&replica, &stats), (&b, &stats)]);
        assert_eq!(
            found["shards"],
            json!({
                "total": 3, "primaries": 2, "replication": 0.5,
                "index": {
                    "shards": { "min": 1, "max": 2, "avg": 1.5 },
                    "primaries": { "min": 1, "max": 1, "avg": 1.0 },
                    "replication": { "min": 0.0, "max": 1.0, "avg": 0.5 },
                },
            })
        );
        assert_eq!((&found["docs"]["count"], &found["count"]), (&json!(6), &json!(2)));
        assert_eq!(found["store"]["size_in_bytes"], 30);
        // The replica alone is on the nodes that were asked.
        let found = indices_json(&[(&replica, &stats)]);
        assert_eq!(found["shards"]["replication"], 0.0);
        assert_eq!(found["docs"]["count"], 0);
        assert_eq!(indices_json(&[])["shards"], json!({}));
    }

    #[test]
    fn a_disk_counts_once() {
        let node = |address: &str, total: u64| {
            let disk =
                json!({ "total_in_bytes": total, "free_in_bytes": 1, "available_in_bytes": 1 });
            json!({
                "transport_address": address,
                "jvm": { "uptime_in_millis": total },
                "fs": { "total": disk },
            })
        };
        let nodes = [node("a:1", 5), node("a:2", 5), node("b:1", 7)];
        let found = together_json(&nodes.iter().collect::<Vec<_>>(), "1");
        let disks = json!({ "total_in_bytes": 12, "free_in_bytes": 2, "available_in_bytes": 2 });
        assert_eq!((&found["fs"], &found["count"]["data"]), (&disks, &json!(3)));
        assert_eq!(found["jvm"]["max_uptime_in_millis"], 7);
        let unknown = json!({ "transport_address": "a:1", "jvm": {} });
        assert_eq!(together_json(&[&unknown], "1").get("fs"), None);
    }
}
