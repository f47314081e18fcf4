//! `_plugins/_replication`: followers through the API of OpenSearch's plugin for cross-cluster replication, for clients
//! that know that one. It is the same following as behind `_ccr`.

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::{Call, object, refuse_unknown_keys};
use super::ccr::{self, Followed, change, followed, patience, settings, text};
use super::error::bad_body;
use engine::following::{self, FollowRequest};
use engine::settings::FollowParameters;
use engine::state::FollowChange;
use engine::transport::{FollowStats, Result};

/// `PUT /_plugins/_replication/{index}/_start`.
pub(super) async fn start(call: Call) -> Result<Reply> {
    const KEYS: [&str; 3] = ["leader_alias", "leader_index", "settings"];
    let object = object(call.needed_json()?, &format!(": {}", KEYS.join(", ")))?;
    if object.contains_key("use_roles") {
        return Err(bad_body("there are no roles here; leave out [use_roles]"));
    }
    refuse_unknown_keys(&object, &KEYS, "for _start")?;
    let request = FollowRequest {
        follower: call.index().to_owned(),
        alias: text(&object, "leader_alias")?,
        leader_index: text(&object, "leader_index")?,
        settings: settings(&object)?,
        parameters: FollowParameters::default(),
    };
    following::follow(call.node.following(), request).await?;
    Ok(json!({ "acknowledged": true }).into())
}

/// `POST /_plugins/_replication/{index}/_pause`.
pub(super) async fn pause(call: Call) -> Result<Reply> {
    empty(&call)?;
    change(&call, &call.state(), FollowChange::Pause).await
}

/// `POST /_plugins/_replication/{index}/_resume`.
pub(super) async fn resume(call: Call) -> Result<Reply> {
    empty(&call)?;
    let parameters = FollowParameters::default();
    change(&call, &call.state(), FollowChange::Resume { parameters }).await
}

/// `POST /_plugins/_replication/{index}/_stop`: the follower becomes an ordinary index.
pub(super) async fn stop(call: Call) -> Result<Reply> {
    empty(&call)?;
    let state = call.state();
    let leader = state.indices.get(call.index()).and_then(|meta| meta.leader.as_ref());
    if leader.is_some_and(|leader| !leader.following.paused) {
        change(&call, &state, FollowChange::Pause).await?;
    }
    ccr::unfollow(call).await
}

fn empty(call: &Call) -> Result<()> {
    let object = object(call.json()?, ", an empty one, or none")?;
    refuse_unknown_keys(&object, &[], "for an empty body")
}

/// `GET /_plugins/_replication/{index}/_status`. An index that follows nobody is said to, as in the field.
pub(super) async fn status(call: Call) -> Result<Reply> {
    let state = call.state();
    let index = call.index().to_owned();
    let follows = state.indices.get(&index).is_some_and(|meta| meta.leader.is_some());
    let mut all = if follows { followed(&call, patience(&call)?).await? } else { Vec::new() };
    let Some(Followed { leader, shards, .. }) = all.pop() else {
        return Ok(json!({ "status": "REPLICATION NOT IN PROGRESS" }).into());
    };
    let is_whole = state.routing.get(&index).is_some_and(|all| all.len() == shards.len());
    let fatal = shards.iter().find_map(|(_, stats)| stats.fatal_exception.as_ref());
    let (status, reason) = match fatal {
        // As in the field a follower has failed that could not begin, and is paused where it cannot go on.
        Some(fatal) if fatal.kind == ccr::CANNOT_BEGIN => ("FAILED", fatal.reason.clone()),
        Some(fatal) => ("PAUSED", fatal.reason.clone()),
        None if leader.following.paused => ("PAUSED", "User initiated".to_owned()),
        None if is_whole => ("SYNCING", "User initiated".to_owned()),
        None => ("BOOTSTRAPPING", "User initiated".to_owned()),
    };
    let mut answer = json!({
        "status": status, "reason": reason, "leader_alias": leader.remote_cluster,
        "leader_index": leader.leader_index, "follower_index": index,
    });
    if status == "SYNCING" {
        let (leader, follower) = checkpoints(&shards);
        answer["syncing_details"] = json!({
            "leader_checkpoint": leader, "follower_checkpoint": follower, "seq_no": follower + 1,
        });
    }
    Ok(answer.into())
}

/// The sums over all shards, of which one without an operation counts for -1, as in the field.
fn checkpoints(shards: &[(u32, FollowStats)]) -> (i64, i64) {
    let sum = |of: fn(&FollowStats) -> Option<u64>| {
        shards.iter().map(|(_, stats)| of(stats).map_or(-1, |seq_no| seq_no as i64)).sum()
    };
    (sum(|stats| stats.leader_global_checkpoint), sum(|stats| stats.follower_global_checkpoint))
}

/// `GET /_plugins/_replication/follower_stats`.
pub(super) async fn follower_stats(call: Call) -> Result<Reply> {
    const COUNTERS: [&str; 5] = [
        "operations_written", "operations_read", "failed_read_requests", "failed_write_requests",
        "total_write_time_millis",
    ];
    let all = followed(&call, patience(&call)?).await?;
    let state = call.state();
    let (mut paused, mut failed, mut bootstrapping, mut syncing) = (0, 0, 0, 0);
    let (mut by_index, mut shard_tasks) = (Map::new(), 0);
    for Followed { index, leader, shards } in &all {
        let is_whole = state.routing.get(index).is_some_and(|all| all.len() == shards.len());
        let count = match () {
            () if shards.iter().any(|(_, stats)| stats.fatal_exception.is_some()) => &mut failed,
            () if leader.following.paused => &mut paused,
            () if !is_whole => &mut bootstrapping,
            () => &mut syncing,
        };
        *count += 1;
        shard_tasks += shards.len();
        let shown: Vec<Value> = shards.iter().map(|(_, stats)| stats.to_json()).collect();
        let sum = |name: &str| shown.iter().filter_map(|shard| shard[name].as_u64()).sum::<u64>();
        let (leader_checkpoint, follower_checkpoint) = checkpoints(shards);
        let mut entry = json!({
            "leader_checkpoint": leader_checkpoint, "follower_checkpoint": follower_checkpoint,
        });
        COUNTERS.iter().for_each(|name| entry[*name] = json!(sum(name)));
        by_index.insert(index.clone(), entry);
    }
    let mut answer = json!({
        "num_syncing_indices": syncing, "num_bootstrapping_indices": bootstrapping,
        "num_paused_indices": paused, "num_failed_indices": failed,
        "num_shard_tasks": shard_tasks, "num_index_tasks": syncing + bootstrapping,
    });
    for name in COUNTERS {
        let sum: u64 = by_index.values().filter_map(|entry| entry[name].as_u64()).sum();
        answer[name] = json!(sum);
    }
    answer["index_stats"] = Value::Object(by_index);
    Ok(answer.into())
}
