//! Which recoveries are given up because a node has come whose copy lacks nothing.
//!
//! As `ReplicaShardAllocator.processExistingRecoveries` of Elasticsearch and OpenSearch: a replica that copies files is
//! given up, however far it has come, where another node can have it without a file or an operation.

use super::deciders::{Deciders, Slot, Verdict};
use super::filters::Filters;
use super::recovery_counts::RecoveryCounts;
use super::relocation;
use super::{Change, ClusterState, RecoverySource, UnassignedReason};

/// Gives up the replicas that are being made of these shards, of which a node that has just come has a copy in sync.
pub(super) fn give_up_for(
    state: &mut ClusterState,
    now_ms: u64,
    node: &str,
    found: Vec<(String, u32)>,
) -> Vec<Change> {
    let settings = state.settings();
    if !settings.returns_to_files() {
        return Vec::new();
    }
    let made = |(index, number): (String, u32)| {
        let at = being_made(state, (&index, number), node)?;
        Some((index, number, at))
    };
    let mut given_up: Vec<(String, u32, usize)> = found.into_iter().filter_map(made).collect();
    if given_up.is_empty() {
        return Vec::new();
    }
    let (counts, filters) = (RecoveryCounts::of(state, &settings), Filters::of(state, &settings));
    let deciders = Deciders::of_moves(state, &counts, &settings, &filters);
    given_up.retain(|(index, number, at)| {
        let shard = state.shard(index, *number).expect("it was looked at");
        let slot = Slot { index, number: *number, shard, copy: &shard.copies[*at] };
        let verdicts = [deciders.copy_verdict(slot), deciders.node_verdict(slot, node)];
        !verdicts.iter().any(|verdict| matches!(verdict, Verdict::No(_)))
    });
    let mut changes = Vec::new();
    for (index, number, at) in given_up {
        let shard = state.shard_mut(&index, number).expect("it was looked at");
        let reason = UnassignedReason::ReallocatedReplica;
        changes.push(relocation::unassign(shard, (&index, number), at, reason, now_ms));
    }
    changes
}

/// The replica that copies elsewhere what a node has, whose copy is in sync: nothing was written since it left.
fn being_made(state: &ClusterState, (index, number): (&str, u32), node: &str) -> Option<usize> {
    let shard = state.shard(index, number)?;
    let found = state.on_disk(node, index, number)?;
    if !shard.in_sync.contains(found) || shard.on_node(node).is_some() {
        return None;
    }
    shard.copies.iter().position(|copy| {
        let copies_from = copy.recovery().and_then(RecoverySource::peer);
        !copy.primary && copies_from.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{CopyState, ShardCopy};
    use super::*;

    /// A shard whose replica's node left, so that another node makes a copy of it: the node that left, and the other.
    fn lab(returns: &str) -> (Lab, String, String) {
        let mut lab = Lab::started(3, (1, 1));
        lab.set("narrows.allocation.return_to_files", returns);
        let replica =
            |lab: &Lab| lab.shard("a", 0).replicas().next().unwrap().node.clone().unwrap();
        let left = replica(&lab);
        lab.leave(&left);
        let other = replica(&lab);
        assert_ne!(left, other);
        (lab, left, other)
    }

    fn on(lab: &Lab) -> Option<&str> {
        lab.shard("a", 0).replicas().next().unwrap().node.as_deref()
    }

    #[test]
    fn a_copy_that_is_being_made_gives_way_to_one_that_lacks_nothing() {
        let (mut lab, left, _) = lab("true");
        // Until a node may receive one it says what it waits for.
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "0");
        lab.join(&left);
        let replica = lab.shard("a", 0).replicas().next().unwrap();
        let reason = UnassignedReason::ReallocatedReplica;
        assert_eq!(replica.state, CopyState::Unassigned { reason, at_ms: lab.now_ms });
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "2");
        assert_eq!(on(&lab), Some(left.as_str()));
        lab.start_all();
        assert!(lab.shard("a", 0).copies.iter().all(ShardCopy::is_started));
    }

    #[test]
    fn it_goes_on_where_the_node_may_not_have_it_or_nothing_is_to_return() {
        let (mut lab, left, other) = self::lab("true");
        lab.set("cluster.routing.allocation.exclude._name", &left);
        lab.join(&left);
        assert_eq!(on(&lab), Some(other.as_str()));
        let (mut lab, left, other) = self::lab("false");
        lab.join(&left);
        assert_eq!(on(&lab), Some(other.as_str()));
    }
}
