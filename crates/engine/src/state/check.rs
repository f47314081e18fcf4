//! What always holds of a cluster's state. Stands beside the manager, for tests and for debug runs.

use std::collections::BTreeSet;

use policy::routing::is_multiple;

use super::{
    Alias, ClusterState, IndexMeta, IndexShardRoutingTable, MAX_RETRIES, RecoverySource, ShardCopy,
};
use crate::settings::check as check_setting;

/// Checks every invariant; the error names the first that is broken, and where.
pub fn check(state: &ClusterState) -> Result<(), String> {
    if let Some(node) = state.present.iter().find(|node| !state.members.contains_key(*node)) {
        return Err(format!("{node} is present and no member"));
    }
    if !state.indices.keys().eq(state.routing.keys()) {
        return Err("indices and routing name different indices".to_owned());
    }
    for alias in state.indices.values().flat_map(|meta| meta.aliases.keys()) {
        ensure(!state.indices.contains_key(alias), "an alias is an index, too")?;
        let writes = |(_, of): &(&str, &Alias)| of.is_write_index == Some(true);
        let several = state.aliased(alias).filter(writes).count() > 1;
        ensure(!several, "an alias has several indices that take its writes")?;
    }
    let mut ids = BTreeSet::new();
    for (index, meta) in &state.indices {
        let shards = &state.routing[index];
        check_meta(meta, shards.len()).map_err(|what| format!("[{index}]: {what}"))?;
        for (number, shard) in (0..).zip(shards.iter()) {
            let place = |what: String| format!("[{index}][{number}]: {what}");
            check_shard(meta, shard).map_err(place)?;
            for copy in shard.assigned() {
                check_assigned(state, index, number, shard, copy).map_err(place)?;
                if !ids.insert(&copy.allocation_id) {
                    return Err(place(format!("id {} is assigned twice", copy.allocation_id)));
                }
            }
        }
    }
    for (name, value) in state.persistent.iter().chain(&state.transient) {
        if check_setting(name, value).as_ref() != Ok(value) {
            return Err(format!("setting {name} holds {value}, which is not canonical"));
        }
    }
    Ok(())
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn check_meta(meta: &IndexMeta, shards: usize) -> Result<(), String> {
    ensure(meta.shards as usize == shards && shards > 0, "wrong number of shards")?;
    let routing_shards = meta.routing_shards.unwrap_or(meta.shards);
    ensure(is_multiple(routing_shards, meta.shards), "wrong number of routing shards")?;
    let settings = meta.typed_settings();
    let numbers = (settings.number_of_shards(), settings.number_of_replicas());
    ensure(numbers == (meta.shards, meta.replicas), "settings tell other numbers of copies")?;
    ensure(meta.mappings.is_object(), "mappings are no object")
}

fn check_shard(meta: &IndexMeta, shard: &IndexShardRoutingTable) -> Result<(), String> {
    let copies = meta.replicas as usize + 1;
    ensure(shard.copies.len() == copies, "wrong number of copies")?;
    let primaries = shard.copies.iter().filter(|copy| copy.primary).count();
    ensure(primaries == 1, "not one primary")?;
    ensure(shard.primary_term >= 1, "no primary term")?;
    // A follower's shard that recovers from its leader again has no started copy, but a later term.
    let begins_anew = meta.leader.is_some();
    let has_term = shard.primary_term == 1 || shard.was_started() || begins_anew;
    ensure(has_term, "a term of a shard never started")?;
    if let Some(primary) = shard.started_primary() {
        ensure(shard.in_sync.contains(&primary.allocation_id), "a started primary out of sync")?;
        ensure(shard.in_sync.len() <= copies, "more ids in sync than copies")?;
    } else {
        let replicas = shard.replicas().filter(|copy| copy.is_assigned()).count();
        ensure(replicas == 0, "a replica is assigned without a started primary")?;
    }
    for copy in &shard.copies {
        let in_sync = shard.in_sync.contains(&copy.allocation_id);
        ensure(copy.in_sync == in_sync, "a copy's in_sync is not that of the set")?;
        ensure(!copy.is_started() || in_sync, "a started copy out of sync")?;
        ensure(copy.failures <= MAX_RETRIES, "a copy was tried too often")?;
        ensure(!copy.is_target(), "a target stands among the copies")?;
        if let Some(target) = &copy.target {
            check_target(shard, copy, target)?;
        }
        let unassigned = !copy.is_started() && copy.recovery().is_none();
        ensure(copy.is_assigned() != unassigned, "a copy's node and state disagree")?;
    }
    Ok(())
}

fn check_target(
    shard: &IndexShardRoutingTable,
    copy: &ShardCopy,
    target: &ShardCopy,
) -> Result<(), String> {
    ensure(copy.is_started(), "a copy is moved that is not started")?;
    ensure(
        target.relocating_from == copy.node,
        "a target comes from another node than its copy's",
    )?;
    ensure(target.primary == copy.primary, "a target has another role than its copy")?;
    ensure(target.recovery().is_some() && target.is_assigned(), "a target does not recover")?;
    ensure(target.target.is_none(), "a target is moved")?;
    let in_sync = target.in_sync || shard.in_sync.contains(&target.allocation_id);
    ensure(!in_sync, "a target counts as in sync")
}

fn check_assigned(
    state: &ClusterState,
    index: &str,
    number: u32,
    shard: &IndexShardRoutingTable,
    copy: &ShardCopy,
) -> Result<(), String> {
    let Some(node) = &copy.node else { return Err("assigned to no node".to_owned()) };
    ensure(state.present.contains(node), "assigned to a node that is not present")?;
    let here = shard.assigned().filter(|other| other.is_on(node)).count();
    ensure(here == 1, "two copies of a shard on one node")?;
    let on_disk = state.on_disk(node, index, number);
    ensure(on_disk == Some(&copy.allocation_id), "a copy is not what its node's disk holds")?;
    match copy.recovery() {
        None => Ok(()),
        Some(RecoverySource::EmptyStore | RecoverySource::Remote { .. }) => {
            ensure(copy.primary, "a replica made from nothing")?;
            ensure(!shard.was_started(), "a primary made from nothing where there was one")?;
            let remote = matches!(copy.recovery(), Some(RecoverySource::Remote { .. }));
            let follows = state.indices[index].leader.is_some();
            ensure(remote == follows, "followers, and they alone, recover from remote")
        }
        Some(RecoverySource::ExistingStore) => {
            ensure(copy.primary && copy.in_sync, "a primary from a disk that is out of sync")
        }
        Some(RecoverySource::Peer { from_node }) => {
            ensure(
                !copy.acts_as_primary() && !copy.in_sync,
                "a recovering replica counts as in sync",
            )?;
            let source = shard.started_primary().and_then(|primary| primary.node.as_ref());
            ensure(source == Some(from_node), "a replica recovers from another than the primary")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{CopyState, UnassignedReason};
    use super::*;

    /// A checker that never fails checks nothing: each break of the state is found.
    #[test]
    fn finds_what_is_broken() {
        let lab = Lab::started(2, (1, 1));
        check(&lab.state).unwrap();
        type Break = fn(&mut ClusterState);
        fn shard(state: &mut ClusterState) -> &mut IndexShardRoutingTable {
            state.shard_mut("a", 0).unwrap()
        }
        let breaks: [(&str, Break); 8] = [
            ("not one primary", |s| shard(s).copies.iter_mut().for_each(|c| c.primary = true)),
            ("out of sync", |s| shard(s).in_sync.clear()),
            ("is not that of the set", |s| shard(s).copies[1].in_sync = false),
            ("two copies of a shard on one node", |s| {
                let node = shard(s).copies[0].node.clone();
                shard(s).copies[1].node = node;
            }),
            ("node and state disagree", |s| shard(s).copies[1].node = None),
            ("not present", |s| assert!(std::sync::Arc::make_mut(&mut s.present).remove("n2"))),
            ("wrong number of copies", |s| drop(shard(s).copies.remove(1))),
            ("without a started primary", |s| {
                let reason = UnassignedReason::NodeLeft;
                let at = shard(s).copies.iter().position(|c| c.primary).unwrap();
                shard(s).copies[at].node = None;
                shard(s).copies[at].state = CopyState::Unassigned { reason, at_ms: 0 };
            }),
        ];
        for (what, break_it) in breaks {
            let mut state = lab.state.clone();
            break_it(&mut state);
            let said = check(&state).unwrap_err();
            assert!(said.contains(what), "{what}: {said}");
        }
    }
}
