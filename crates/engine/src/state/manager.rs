//! The manager: an event in, changes out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::allocation::{promote, reroute};
use super::applied::{Applied, NewIndex, find_meant};
use super::touched::Touched;
use super::{
    Change, ClusterInfo, ClusterState, CopyState, Event, FoundCopy, Index, IndexShardRoutingTable,
    MAX_RETRIES, Node, ShardCopy, StateError, UnassignedReason, auto_expand, change_aliases,
    change_auto_follow, change_following, commands, dangling, indices, placed, relocation,
    returning, templates,
};
use crate::settings::{self, SettingScope, Settings, Update, When, check_together, check_update};

/// What came of a batch of events.
#[derive(Debug, Default)]
pub struct Batch {
    /// Of each event, in order, whether it was accepted.
    pub accepted: Vec<Result<(), StateError>>,
    /// What changed, in the order in which it was done; empty if nothing did.
    pub changes: Vec<Change>,
}

/// Applies an event and places what can be placed after it.
///
/// The state's version grows by one if anything changed. If the event is refused, the state is as it
/// was.
pub fn apply(state: &mut ClusterState, now_ms: u64, event: Event) -> Applied {
    let batch = apply_all(state, now_ms, vec![event]);
    batch.accepted.into_iter().collect::<Result<(), StateError>>()?;
    Ok(batch.changes)
}

/// Applies events one after another, and places what can be placed after the last: what failed together is
/// placed together, and none of it on a node that the next event takes away.
///
/// As [`apply`] otherwise: one version for all, and what is refused changes nothing. An event costs what it
/// touches; those about nodes also look at each copy, and so does the placing after them, once.
pub fn apply_all(state: &mut ClusterState, now_ms: u64, events: Vec<Event>) -> Batch {
    let mut batch = Batch::default();
    let mut touched = Touched::default();
    (state.by_node, state.since_before) = Default::default();
    for event in events {
        let mut by_event = Touched::default();
        let applied = apply_one(state, now_ms, event, &mut by_event).map(|changes| {
            by_event.add_changes(state, &changes);
            let promoted = promote(state, now_ms, &by_event);
            by_event.add_changes(state, &promoted);
            batch.changes.extend(changes.into_iter().chain(promoted));
            touched.merge(by_event);
        });
        batch.accepted.push(applied);
    }
    if batch.accepted.iter().any(Result::is_ok) {
        let expanded = auto_expand::expand(state, now_ms, &batch.changes);
        touched.add_changes(state, &expanded);
        batch.changes.extend(expanded);
        batch.changes.extend(reroute(state, now_ms, touched));
    }
    if !batch.changes.is_empty() {
        state.version += 1;
    }
    batch
}

fn apply_one(
    state: &mut ClusterState,
    now_ms: u64,
    event: Event,
    touched: &mut Touched,
) -> Applied {
    match event {
        Event::NodeJoined { node, found } => node_joined(state, now_ms, node, found, touched),
        Event::NodeLeft { node } => Ok(node_left(state, now_ms, &node, UnassignedReason::NodeLeft)),
        Event::ManagerRestarted => Ok(manager_restarted(state, now_ms)),
        Event::CreateIndex { index, made } => {
            let new = templates::new_index(state, index, made);
            indices::create_index(state, now_ms, new)
        }
        Event::ChangeAliases { actions } => change_aliases::change_aliases(state, now_ms, actions),
        Event::RollOver(roll_over) => change_aliases::roll_over(state, now_ms, *roll_over),
        Event::CreateFollower { index, leader, shards, routing_shards, made } => {
            let new = NewIndex { index, leader: None, made };
            indices::create_follower(state, now_ms, new, leader, (shards, routing_shards))
        }
        Event::SetFollowing { index, change } => {
            change_following::set_following(state, now_ms, index, change)
        }
        Event::ChangeAutoFollow { name, change } => change_auto_follow::change(state, name, change),
        Event::ChangeTemplate { kind, name, change } => {
            templates::change(state, kind, name, change)
        }
        Event::DeleteIndex { index } => indices::delete_index(state, now_ms, index),
        Event::ImportDangling { stored, copies } => {
            dangling::import(state, now_ms, *stored, &copies)
        }
        Event::DeleteDangling { index, uuid } => dangling::delete(state, now_ms, index, uuid),
        Event::PutMapping { index, mappings } => indices::put_mapping(state, index, &mappings),
        Event::PutIndexSettings { index, settings } => {
            indices::put_index_settings(state, now_ms, index, &settings)
        }
        Event::SetClosed { index, closed } => indices::set_closed(state, index, closed),
        Event::PutClusterSettings { persistent, transient } => {
            put_cluster_settings(state, &persistent, &transient)
        }
        Event::ShardStarted { index, shard, allocation_id } => {
            Ok(shard_started(state, now_ms, index, shard, allocation_id))
        }
        Event::ShardFailed { index, shard, allocation_id, reason, disk_full } => {
            let place = (index, shard, allocation_id);
            Ok(shard_failed(state, now_ms, place, reason, disk_full))
        }
        Event::CopyOutOfSync { index, shard, allocation_id, primary_term, reason } => {
            let place = (index, shard, allocation_id);
            copy_out_of_sync(state, now_ms, place, primary_term, reason)
        }
        Event::RetryFailed => Ok(retry_failed(state)),
        Event::Reroute { commands } => commands::run(state, now_ms, &commands),
        Event::DelayEnded | Event::Nothing => Ok(Vec::new()),
        Event::PlaceIndex(placed) => placed::place_index(state, now_ms, *placed),
        Event::DisksSeen(info) => Ok(disks_seen(state, *info)),
        Event::LookForRoom => Ok(retry(state, ShardCopy::waits_for_room, MAX_RETRIES - 1)),
    }
}

fn node_joined(
    state: &mut ClusterState,
    now_ms: u64,
    node: Node,
    found: Vec<FoundCopy>,
    touched: &mut Touched,
) -> Applied {
    let Some(member) = state.members.get(&node.name) else {
        let members = state.members.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(StateError::NotAMember { node: node.name, members });
    };
    let name = node.name.clone();
    if *member != node {
        Arc::make_mut(&mut state.members).insert(name.clone(), node);
    }
    // It may have started again before anyone noticed that it had gone.
    let mut changes = node_left(state, now_ms, &name, UnassignedReason::NodeLeft);
    let mut come = Vec::new();
    if !found.is_empty() {
        let index_of = |uuid: &str| state.indices.iter().find(|(_, meta)| meta.uuid == uuid);
        let uuids: BTreeSet<&str> = found.iter().map(|copy| copy.index_uuid.as_str()).collect();
        let known: Vec<(String, String)> = uuids
            .into_iter()
            .filter_map(|uuid| Some((index_of(uuid)?.0.clone(), uuid.to_owned())))
            .collect();
        for copy in found {
            let (uuid, shard) = (copy.index_uuid.clone(), copy.shard);
            let index = known.iter().find(|(_, known)| *known == uuid).map(|(index, _)| index);
            if index.is_none() && state.tombstones.contains(&uuid) {
                // The node deletes it, now that it knows.
                continue;
            }
            state.disks.insert(&uuid, shard, &name, copy.allocation_id.clone());
            let Some(index) = index else { continue };
            touched.add(index, shard);
            try_again(state, index, shard, &copy.allocation_id);
            come.push((index.clone(), shard));
            state.extents.insert(&name, copy);
            changes.extend(fail_short_primary(state, now_ms, index, shard));
        }
    }
    Arc::make_mut(&mut state.present).insert(name.clone());
    changes.extend(returning::give_up_for(state, now_ms, &name, come));
    changes.push(Change::Cluster);
    Ok(changes)
}

/// A copy in sync has come: a primary that began with less than that one knows of was put back as it was earlier, and
/// another becomes the primary.
fn fail_short_primary(
    state: &mut ClusterState,
    now_ms: u64,
    index: &str,
    number: u32,
) -> Vec<Change> {
    let Some(shard) = state.shard(index, number) else { return Vec::new() };
    let primary = shard.primary();
    let Some(node) = &primary.node else { return Vec::new() };
    let id = primary.allocation_id.clone();
    let Some(why) = state.falls_short((index, number), (node, &id)) else { return Vec::new() };
    shard_failed(state, now_ms, (index.to_owned(), number, id), why, false)
}

/// A copy in sync has come: a primary that failed elsewhere, and may be tried there a last time, may be tried with it.
fn try_again(state: &mut ClusterState, index: &str, number: u32, allocation_id: &str) {
    let has_failed = |shard: &IndexShardRoutingTable| {
        let primary = shard.primary();
        !primary.is_started() && primary.failures > 0 && shard.in_sync.contains(allocation_id)
    };
    if state.shard(index, number).is_some_and(has_failed)
        && let Some(shard) = state.shard_mut(index, number)
    {
        shard.copies.iter_mut().filter(|copy| copy.primary).for_each(|copy| copy.failures = 0);
    }
}

fn node_left(
    state: &mut ClusterState,
    now_ms: u64,
    node: &str,
    reason: UnassignedReason,
) -> Vec<Change> {
    if !state.present.contains(node) {
        return Vec::new();
    }
    Arc::make_mut(&mut state.present).remove(node);
    state.disks.remove_node(node);
    state.extents.remove_node(node);
    let mut changes = vec![Change::Cluster];
    for (index, shards) in &mut state.routing {
        if !shards.iter().any(|shard| shard.on_node(node).is_some()) {
            continue;
        }
        for (number, shard) in (0..).zip(Arc::make_mut(shards)) {
            changes.extend(relocation::leave_node(shard, (index, number), node, reason, now_ms));
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
    let persistent = check_update(SettingScope::Cluster, When::Running, persistent)?;
    let transient = check_update(SettingScope::Cluster, When::Running, transient)?;
    let (mut kept, mut passing) = (state.persistent.clone(), state.transient.clone());
    let mut names = settings::apply(&mut kept, &persistent);
    names.extend(settings::apply(&mut passing, &transient));
    check_together(&Settings::resolve(&[&passing, &kept]))?;
    (state.persistent, state.transient) = (kept, passing);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Change::Cluster])
}

fn disks_seen(state: &mut ClusterState, info: ClusterInfo) -> Vec<Change> {
    if *state.info == info {
        return Vec::new();
    }
    state.info = Arc::new(info);
    vec![Change::Other]
}

fn shard_started(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    number: u32,
    allocation_id: String,
) -> Vec<Change> {
    let Some(shard) = state.shard(&index, number) else { return Vec::new() };
    if let Some(at) = shard.position_of_target(&allocation_id) {
        let shard = state.shard_mut(&index, number).expect("it was looked at");
        return relocation::complete(shard, (&index, number), at, now_ms);
    }
    let Some(at) = shard.position(&allocation_id) else { return Vec::new() };
    if shard.copies[at].is_started() {
        return Vec::new();
    }
    let Some(shard) = state.shard_mut(&index, number) else { return Vec::new() };
    let copy = &mut shard.copies[at];
    copy.state = CopyState::Started;
    copy.failures = 0;
    (copy.last_failure, copy.disk_was_full) = (None, false);
    let is_primary = copy.primary;
    shard.in_sync.insert(allocation_id);
    if !is_primary && let Some(meta) = state.indices.get(&index) {
        // From now on writes are acknowledged that no report knows of.
        state.extents.remove_shard(&meta.uuid, number);
    }
    vec![Change::Started { index, shard: number }]
}

fn shard_failed(
    state: &mut ClusterState,
    now_ms: u64,
    (index, number, allocation_id): (String, u32, String),
    why: String,
    disk_full: bool,
) -> Vec<Change> {
    let Some(shard) = state.shard_mut(&index, number) else { return Vec::new() };
    let reason = (UnassignedReason::AllocationFailed, now_ms);
    let failed =
        relocation::fail(shard, (&index, number), &allocation_id, (why, disk_full), reason);
    failed.into_iter().collect()
}

fn copy_out_of_sync(
    state: &mut ClusterState,
    now_ms: u64,
    (meant, number, allocation_id): (Index, u32, String),
    primary_term: u64,
    why: String,
) -> Applied {
    let shards = find_meant(state, &meant)?.shards;
    let index = meant.name;
    let Some(shard) = state.shard_mut(&index, number) else {
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
        changes.push(Change::copy((&index, number)));
    }
    let reason = (UnassignedReason::OutOfSync, now_ms);
    changes.extend(relocation::fail(shard, (&index, number), &allocation_id, (why, false), reason));
    Ok(changes)
}

fn retry_failed(state: &mut ClusterState) -> Vec<Change> {
    let given_up =
        |copy: &ShardCopy| copy.failures >= MAX_RETRIES || copy.failed_relocations >= MAX_RETRIES;
    retry(state, given_up, 0)
}

/// Has copies that were given up tried again, as if they had failed so many times.
fn retry(
    state: &mut ClusterState,
    is_meant: impl Fn(&ShardCopy) -> bool,
    failures: u32,
) -> Vec<Change> {
    let concerned = |shard: &IndexShardRoutingTable| shard.copies.iter().any(&is_meant);
    let mut changes = Vec::new();
    for shards in state.routing.values_mut().filter(|shards| shards.iter().any(concerned)) {
        let copies = Arc::make_mut(shards).iter_mut().flat_map(|shard| &mut shard.copies);
        copies.filter(|copy| is_meant(copy)).for_each(|copy| {
            copy.failures = failures;
            copy.failed_relocations = 0;
        });
        changes = vec![Change::Other];
    }
    changes
}

#[cfg(test)]
#[path = "manager_lab.rs"]
pub(super) mod lab;
#[cfg(test)]
#[path = "manager_test.rs"]
mod tests;
