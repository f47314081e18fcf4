//! The events about following.

use std::sync::Arc;

use super::applied::{Applied, find, find_meant};
use super::follow::FollowChange;
use super::{
    Change, ClusterState, Index, IndexShardRoutingTable, StateError, UnassignedReason, relocation,
};

pub(super) fn set_following(
    state: &mut ClusterState,
    now_ms: u64,
    index: Index,
    change: FollowChange,
) -> Applied {
    let meta = find_meant(state, &index)?;
    let index = index.name;
    let Some(leader) = &mut meta.leader else { return Err(StateError::NoFollower { index }) };
    let following = &mut leader.following;
    match change {
        FollowChange::Pause if following.paused => Err(StateError::NotFollowing { index }),
        FollowChange::Pause => {
            following.paused = true;
            Ok(vec![Change::Other])
        }
        FollowChange::Resume { .. } if !following.paused => Err(StateError::Following { index }),
        FollowChange::Resume { parameters } => {
            following.paused = false;
            following.parameters = parameters;
            following.fell_back.clear();
            following.resumed += 1;
            Ok(vec![Change::Other])
        }
        FollowChange::Unfollow if !following.paused => Err(StateError::NotPaused { index }),
        FollowChange::Unfollow => {
            let shards = state.routing.get(&index);
            let recovers = |shard: &IndexShardRoutingTable| !shard.was_started();
            if shards.is_some_and(|shards| shards.iter().any(recovers)) {
                return Err(StateError::NotRecovered { index });
            }
            let meta = find(state, &index)?;
            (meta.leader, meta.has_followed) = (None, true);
            Ok(vec![Change::Other])
        }
        // Whoever paused it may be about to go on without the leader, with what is here.
        FollowChange::FallBack { .. } if following.paused => Ok(Vec::new()),
        FollowChange::FallBack { shard, allocation_id, reason } => {
            let routing = state.shard(&index, shard);
            let primary = routing.and_then(|routing| routing.started_primary());
            if primary.is_none_or(|primary| primary.allocation_id != allocation_id) {
                return Ok(Vec::new());
            }
            Ok(fall_back(state, now_ms, index, shard, reason))
        }
    }
}

/// Unassigns every copy of a shard and empties its in-sync set: the primary recovers from the leader as in a new
/// follower, and the replicas recover from it.
fn fall_back(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    number: u32,
    why: String,
) -> Vec<Change> {
    let meta = state.indices.get_mut(&index).map(Arc::make_mut);
    if let Some(leader) = meta.and_then(|meta| meta.leader.as_mut()) {
        leader.following.fell_back.insert(number, why);
    }
    let mut changes = vec![Change::Other];
    let Some(shard) = state.shard_mut(&index, number) else { return changes };
    if !std::mem::take(&mut shard.in_sync).is_empty() {
        changes.push(Change::copy((&index, number)));
    }
    let reason = UnassignedReason::ExistingIndexRestored;
    for at in 0..shard.copies.len() {
        shard.copies[at].in_sync = false;
        changes.extend(relocation::cancel(shard, (&index, number), at));
        if shard.copies[at].is_assigned() {
            changes.push(relocation::unassign(shard, (&index, number), at, reason, now_ms));
        }
    }
    changes
}
