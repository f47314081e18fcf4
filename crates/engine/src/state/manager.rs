//! The manager: an event in, changes out.

use std::collections::BTreeMap;

use super::{
    Change, ClusterState, CopyState, Event, FoundCopy, MAX_RETRIES, Node, ShardRouting, StateError,
    UnassignedReason, indices, reroute,
};
use crate::settings::{self, Scope, Update, When, check_update};

pub(super) type Applied = Result<Vec<Change>, StateError>;

/// Applies an event and places what can be placed after it.
///
/// The state's version grows by one if anything changed. If the event is refused, the state is as it
/// was.
pub fn apply(state: &mut ClusterState, now_ms: u64, event: Event) -> Applied {
    let mut changes = match event {
        Event::NodeJoined { node, found } => node_joined(state, now_ms, node, found),
        Event::NodeLeft { node } => Ok(node_left(state, now_ms, &node, UnassignedReason::NodeLeft)),
        Event::ManagerRestarted => Ok(manager_restarted(state, now_ms)),
        Event::CreateIndex { index, settings, mappings } => {
            indices::create_index(state, now_ms, index, None, &settings, &mappings)
        }
        Event::CreateFollower { index, leader, shards, settings, mappings } => {
            indices::create_follower(state, now_ms, index, leader, shards, settings, &mappings)
        }
        Event::DeleteIndex { index } => indices::delete_index(state, index),
        Event::PutMapping { index, mappings } => indices::put_mapping(state, index, &mappings),
        Event::PutIndexSettings { index, settings } => {
            indices::put_index_settings(state, now_ms, index, &settings)
        }
        Event::PutClusterSettings { persistent, transient } => {
            put_cluster_settings(state, &persistent, &transient)
        }
        Event::ShardStarted { index, shard, allocation_id } => {
            Ok(shard_started(state, index, shard, allocation_id))
        }
        Event::ShardFailed { index, shard, allocation_id, reason } => {
            Ok(shard_failed(state, now_ms, index, shard, &allocation_id, reason))
        }
        Event::CopyOutOfSync { index, shard, allocation_id, primary_term, reason } => {
            let place = (index, shard, allocation_id);
            copy_out_of_sync(state, now_ms, place, primary_term, reason)
        }
        Event::RetryFailed => Ok(retry_failed(state)),
    }?;
    changes.extend(reroute(state, now_ms));
    if !changes.is_empty() {
        state.version += 1;
    }
    Ok(changes)
}

fn node_joined(
    state: &mut ClusterState,
    now_ms: u64,
    node: Node,
    found: Vec<FoundCopy>,
) -> Applied {
    let Some(member) = state.members.get_mut(&node.name) else {
        let members = state.members.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(StateError::NotAMember { node: node.name, members });
    };
    let name = node.name.clone();
    *member = node;
    // It may have started again before anyone noticed that it had gone.
    let mut changes = node_left(state, now_ms, &name, UnassignedReason::NodeLeft);
    let known = |copy: &FoundCopy| state.indices.values().any(|meta| meta.uuid == copy.index_uuid);
    let mut disk: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
    for copy in found.into_iter().filter(known) {
        disk.entry(copy.index_uuid).or_default().insert(copy.shard, copy.allocation_id);
    }
    state.disks.insert(name.clone(), disk);
    state.present.insert(name.clone());
    changes.push(Change::NodeJoined { node: name });
    Ok(changes)
}

fn node_left(
    state: &mut ClusterState,
    now_ms: u64,
    node: &str,
    reason: UnassignedReason,
) -> Vec<Change> {
    if !state.present.remove(node) {
        return Vec::new();
    }
    state.disks.remove(node);
    let mut changes = vec![Change::NodeLeft { node: node.to_owned() }];
    for (index, shards) in &mut state.routing {
        for (number, shard) in (0..).zip(shards) {
            let Some(at) = shard.copies.iter().position(|copy| copy.is_on(node)) else { continue };
            let allocation_id = shard.unassign(at, reason, now_ms);
            let index = index.clone();
            changes.push(Change::Unassigned { index, shard: number, allocation_id, reason });
        }
    }
    changes
}

fn manager_restarted(state: &mut ClusterState, now_ms: u64) -> Vec<Change> {
    let reason = UnassignedReason::ClusterRecovered;
    let nodes: Vec<String> = state.present.iter().cloned().collect();
    nodes.iter().flat_map(|node| node_left(state, now_ms, node, reason)).collect()
}

fn put_cluster_settings(
    state: &mut ClusterState,
    persistent: &Update,
    transient: &Update,
) -> Applied {
    let persistent = check_update(Scope::Cluster, When::Running, persistent)?;
    let transient = check_update(Scope::Cluster, When::Running, transient)?;
    let mut names = settings::apply(&mut state.persistent, &persistent);
    names.extend(settings::apply(&mut state.transient, &transient));
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Change::ClusterSettingsChanged { names }])
}

fn shard_mut<'a>(
    state: &'a mut ClusterState,
    index: &str,
    shard: u32,
) -> Option<&'a mut ShardRouting> {
    state.routing.get_mut(index)?.get_mut(shard as usize)
}

fn shard_started(
    state: &mut ClusterState,
    index: String,
    number: u32,
    allocation_id: String,
) -> Vec<Change> {
    let Some(shard) = shard_mut(state, &index, number) else { return Vec::new() };
    let Some(at) = shard.position(&allocation_id) else { return Vec::new() };
    let copy = &mut shard.copies[at];
    if copy.is_started() {
        return Vec::new();
    }
    copy.state = CopyState::Started;
    copy.failures = 0;
    copy.last_failure = None;
    shard.in_sync.insert(allocation_id.clone());
    vec![Change::Started { index, shard: number, allocation_id }]
}

fn shard_failed(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    number: u32,
    allocation_id: &str,
    why: String,
) -> Vec<Change> {
    let Some(shard) = shard_mut(state, &index, number) else { return Vec::new() };
    let Some(at) = shard.position(allocation_id) else { return Vec::new() };
    let reason = UnassignedReason::AllocationFailed;
    shard.copies[at].failures += 1;
    shard.copies[at].last_failure = Some(why);
    let allocation_id = shard.unassign(at, reason, now_ms);
    vec![Change::Unassigned { index, shard: number, allocation_id, reason }]
}

fn copy_out_of_sync(
    state: &mut ClusterState,
    now_ms: u64,
    (index, number, allocation_id): (String, u32, String),
    primary_term: u64,
    why: String,
) -> Applied {
    let shards = indices::find(state, &index)?.shards;
    let Some(shard) = shard_mut(state, &index, number) else {
        return Err(StateError::NoSuchShard { index, shard: number, shards });
    };
    if shard.primary_term != primary_term {
        let (found, current) = (primary_term, shard.primary_term);
        return Err(StateError::StaleTerm { index, shard: number, found, current });
    }
    let Some(primary) = shard.started_primary() else {
        return Err(StateError::NoPrimary { index, shard: number });
    };
    if primary.allocation_id == allocation_id {
        return Err(StateError::PrimaryInSync { index, shard: number, allocation_id });
    }
    let mut changes = Vec::new();
    if shard.in_sync.remove(&allocation_id) {
        let (index, allocation_id) = (index.clone(), allocation_id.clone());
        changes.push(Change::OutOfSync { index, shard: number, allocation_id });
    }
    if let Some(at) = shard.position(&allocation_id) {
        let reason = UnassignedReason::OutOfSync;
        shard.copies[at].failures += 1;
        shard.copies[at].last_failure = Some(why);
        shard.unassign(at, reason, now_ms);
        changes.push(Change::Unassigned { index, shard: number, allocation_id, reason });
    }
    Ok(changes)
}

fn retry_failed(state: &mut ClusterState) -> Vec<Change> {
    let copies = state.routing.values_mut().flatten().flat_map(|shard| &mut shard.copies);
    let mut changes = Vec::new();
    for copy in copies.filter(|copy| copy.failures >= MAX_RETRIES) {
        copy.failures = 0;
        changes = vec![Change::RetriesReset];
    }
    changes
}

#[cfg(test)]
#[path = "manager_test.rs"]
pub(super) mod tests;
