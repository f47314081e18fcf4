//! `_cluster/allocation/explain`: why a copy is on no node, or may not stay on its own.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Call, object, refuse_unknown_keys, small_number, truth};
use super::cluster::state_name;
use super::error::bad_request;
use super::names::no_such_index;
use super::recovery;
use super::spread::PATIENCE;
use super::time_text::moment;
use engine::state::{self, ClusterState, Explanation, NodeExplanation, PlacedExplanation, Reason};
use engine::transport::{RecoveryState, Result};

/// Parameters. They ask for details that the answer does not have.
pub(super) const KNOWN: &[&str] = &["include_disk_info", "include_yes_decisions"];

/// `GET /_cluster/allocation/explain`: of the copy in the body, or of any that is unassigned.
pub(super) async fn explain(call: Call) -> Result<Reply> {
    for name in KNOWN {
        call.query.flag(name, false)?;
    }
    let state = call.state();
    let now_ms = call.node.core().env.epoch_ms();
    let Some(asked) = Asked::read(call.json()?)? else {
        // A primary first, as in the field: replicas wait for theirs.
        let first = state::explain(&state, now_ms).into_iter().min_by_key(|one| !one.primary);
        let explanation = first.ok_or_else(|| {
            bad_request(
                "unable to find any unassigned shards to explain \
                 [ClusterAllocationExplainRequest[useAnyUnassignedShard=true]",
            )
        })?;
        return Ok(explanation_json(&state, &explanation).into());
    };
    if !state.indices.contains_key(&asked.index) {
        return Err(no_such_index(&state, &asked.index));
    }
    let found = state::explain(&state, now_ms)
        .into_iter()
        .find(|e| (&e.index, e.shard, e.primary) == (&asked.index, asked.shard, asked.primary));
    match found {
        Some(explanation) => Ok(explanation_json(&state, &explanation).into()),
        None => {
            let mut json = assigned_json(&state, &asked)?;
            add_recovering(&call, &asked, &mut json).await;
            Ok(json.into())
        }
    }
}

/// A copy that is asked about.
struct Asked {
    index: String,
    shard: u32,
    primary: bool,
}

impl Asked {
    fn read(body: Value) -> Result<Option<Asked>> {
        let body = object(body, ": {\"index\", \"shard\", \"primary\"}")?;
        refuse_unknown_keys(&body, &["index", "shard", "primary"], "of a copy to explain")?;
        if body.is_empty() {
            return Ok(None);
        }
        let part = |name: &str| body.get(name).unwrap_or(&Value::Null);
        let (shard, primary) = (small_number(part("shard")), truth(part("primary")));
        match (part("index").as_str(), shard, primary) {
            (Some(index), Some(shard), Some(primary)) => {
                Ok(Some(Asked { index: index.to_owned(), shard, primary }))
            }
            _ => Err(bad_request("index, shard and primary must all be given, or none of them")),
        }
    }
}

fn explanation_json(state: &ClusterState, e: &Explanation) -> Value {
    let mut info = json!({
        "reason": e.unassigned_reason,
        "at": moment(e.unassigned_at_ms),
        "last_allocation_status": e.can_allocate,
    });
    if e.failed_allocation_attempts > 0 {
        info["failed_allocation_attempts"] = json!(e.failed_allocation_attempts);
        info["details"] = json!(e.last_failure);
    }
    let nodes: Vec<Value> = e.nodes.iter().map(|node| node_json(state, node)).collect();
    let mut json = json!({
        "index": e.index,
        "shard": e.shard,
        "primary": e.primary,
        "current_state": "unassigned",
        "unassigned_info": info,
        "can_allocate": e.can_allocate,
        "allocate_explanation": e.reason.as_ref().map(|reason| &reason.words),
        "node_allocation_decisions": nodes,
    });
    if let Some(delay) = &e.delay {
        json["configured_delay_in_millis"] = json!(delay.configured_ms);
        json["remaining_delay_in_millis"] = json!(delay.left_ms);
    }
    json
}

fn node_json(state: &ClusterState, node: &NodeExplanation) -> Value {
    let member = state.members.get(&node.node_name);
    let decision = |reason: &Reason| {
        let decision = if node.node_decision == "no" { "NO" } else { "THROTTLE" };
        json!({ "decider": reason.decider, "decision": decision, "explanation": reason.words })
    };
    json!({
        "node_id": node.node_name,
        "node_name": node.node_name,
        "transport_address": member.map(|member| &member.transport_address),
        "node_decision": node.node_decision,
        "deciders": node.reason.iter().map(decision).collect::<Vec<_>>(),
    })
}

/// What is said of a copy that is on a node.
fn assigned_json(state: &ClusterState, asked: &Asked) -> Result<Value> {
    let shard = state.shard(&asked.index, asked.shard);
    let mut copies = shard.into_iter().flat_map(|shard| &shard.copies);
    let copy = copies.find(|copy| copy.is_assigned() && copy.primary == asked.primary);
    let copy = copy.ok_or_else(|| {
        let kind = if asked.primary { "primary" } else { "replica" };
        let reason = format!("no {kind} of [{}][{}] to explain", asked.index, asked.shard);
        bad_request(reason)
    })?;
    let member = copy.node.as_ref().and_then(|name| state.members.get(name));
    let mut json = json!({
        "index": asked.index,
        "shard": asked.shard,
        "primary": asked.primary,
        "current_state": state_name(copy).to_ascii_lowercase(),
        "current_node": {
            "id": copy.node,
            "name": copy.node,
            "transport_address": member.map(|member| &member.transport_address),
        },
    });
    let placed = Some(copy).filter(|copy| copy.is_started() && !copy.is_relocating());
    let placed =
        placed.and_then(|copy| state::explain_placed(state, (&asked.index, asked.shard), copy));
    if let Some(placed) = placed {
        add_placed(state, &mut json, &placed);
    }
    Ok(json)
}

/// Why a copy that is being brought up is not there yet: the field's sentence, and what failed where it was tried in
/// vain.
async fn add_recovering(call: &Call, asked: &Asked, json: &mut Value) {
    let Some(node) = json["current_node"]["name"].as_str().map(str::to_owned) else { return };
    if json["current_state"] != "initializing" {
        return;
    }
    let mut words = format!(
        "the shard is in the process of initializing on node [{node}], wait until initialization has completed"
    );
    let failing = recovery::not_begun(call, BTreeSet::from([node]), PATIENCE).await;
    let failing = failing.into_iter().find(|one| {
        (&one.index, one.shard, one.primary) == (&asked.index, asked.shard, asked.primary)
    });
    if let Some(RecoveryState { retries, failure: Some(why), .. }) = failing {
        words += &format!("; it could not begin so far and was tried again {retries} times: {why}");
        json["recovery_failure"] = json!(why);
    }
    json["explanation"] = json!(words);
}

/// Whether a started copy may stay, and where else it may go.
fn add_placed(state: &ClusterState, json: &mut Value, placed: &PlacedExplanation) {
    let stays = placed.against_staying.is_none();
    json["can_remain_on_current_node"] = json!(if stays { "yes" } else { "no" });
    let words = placed.reason.as_ref().map(|reason| &reason.words);
    match &placed.against_staying {
        None => {
            let against = placed.against_rebalancing.as_ref();
            json["can_rebalance_cluster"] = json!(if against.is_none() { "yes" } else { "no" });
            // What evens nodes out is begun as soon as it may be.
            json["can_rebalance_to_other_node"] = json!("no");
            let words = against.map_or(
                "no node that may hold it is lighter by more than cluster.routing.allocation.balance.threshold",
                |reason| reason.words.as_str(),
            );
            json["rebalance_explanation"] = json!(words);
        }
        Some(reason) => {
            json["can_remain_decisions"] = json!([
                { "decider": reason.decider, "decision": "NO", "explanation": reason.words }
            ]);
            json["can_move_to_other_node"] = json!(placed.can_move);
            json["move_explanation"] = json!(words);
        }
    }
    let nodes: Vec<Value> = placed.nodes.iter().map(|node| node_json(state, node)).collect();
    json["node_allocation_decisions"] = json!(nodes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_three_or_none() {
        assert!(Asked::read(Value::Null).unwrap().is_none());
        assert!(Asked::read(json!({})).unwrap().is_none());
        for asked in [
            json!({"index": "a", "shard": 1, "primary": false}),
            json!({"index": "a", "shard": "1", "primary": "false"}),
        ] {
            let asked = Asked::read(asked).unwrap().unwrap();
            assert_eq!((asked.index.as_str(), asked.shard, asked.primary), ("a", 1, false));
        }
        for bad in [
            json!({"index": "a"}),
            json!({"index": "a", "shard": -1, "primary": true}),
            json!({"indx": "a"}),
            json!(["a"]),
        ] {
            assert_eq!(Asked::read(bad.clone()).err().unwrap().status, 400, "{bad}");
        }
    }
}
