//! Moving a copy from one node to another.
//!
//! As Elasticsearch does it: the copy stays in use on its node, and its target recovers from the primary, which for the
//! primary's own target is the copy itself. Once the target is started it takes the place of its source, with the role
//! that this has then. The term stays: the source of a primary has handed over before the target is reported as
//! started.

use super::{
    Change, ClusterState, CopyState, IndexShardRoutingTable, RecoverySource, ShardCopy,
    UnassignedReason,
};

pub(super) type Place<'a> = (&'a str, u32);

/// Begins to move the started copy at `at` to a node.
pub(super) fn begin(
    state: &mut ClusterState,
    (index, number): Place<'_>,
    at: usize,
    node: &str,
) -> Change {
    let allocation_id = state.ids.next_id();
    let uuid = state.indices[index].uuid.clone();
    state.disks.insert(&uuid, number, node, allocation_id.clone());
    let shard = state.shard_mut(index, number).expect("it was looked at");
    let from_node = shard.primary().node.clone().expect("what is started has a started primary");
    let recovery = RecoverySource::Peer { from_node };
    let source = &mut shard.copies[at];
    let primary = source.primary;
    let state = CopyState::Initializing { recovery: recovery.clone() };
    source.target = Some(Box::new(ShardCopy {
        node: Some(node.to_owned()),
        relocating_from: source.node.clone(),
        ..ShardCopy::of(allocation_id.clone(), primary, state)
    }));
    let (index, node) = (index.to_owned(), node.to_owned());
    Change::Assigned { index, shard: number, allocation_id, node, recovery }
}

/// The target of the copy at `at` is started, and takes its place. What recovered from a primary that was moved begins
/// anew: its source is another node now.
pub(super) fn complete(
    shard: &mut IndexShardRoutingTable,
    (index, number): Place<'_>,
    at: usize,
    at_ms: u64,
) -> Vec<Change> {
    let place = &mut shard.copies[at];
    let target = place.target.take().expect("it was found by its target");
    let started = ShardCopy { state: CopyState::Started, relocating_from: None, ..*target };
    let source = std::mem::replace(place, started);
    shard.in_sync.insert(shard.copies[at].allocation_id.clone());
    shard.in_sync.remove(&source.allocation_id);
    let mut changes = vec![Change::Started { index: index.to_owned(), shard: number }];
    if source.primary {
        let reason = UnassignedReason::Reinitialized;
        changes.extend(stop_orphans(shard, (index, number), reason, at_ms));
    }
    changes
}

/// Gives up the move of the copy at `at`, which stays where it is.
pub(super) fn cancel(
    shard: &mut IndexShardRoutingTable,
    place: Place<'_>,
    at: usize,
) -> Option<Change> {
    shard.copies[at].target.take().map(|_| Change::copy(place))
}

/// The copy with this id failed: where it is a target the move ends, any other copy is taken from its node.
pub(super) fn fail(
    shard: &mut IndexShardRoutingTable,
    place: Place<'_>,
    allocation_id: &str,
    (why, disk_full): (String, bool),
    (reason, at_ms): (UnassignedReason, u64),
) -> Option<Change> {
    let moved = shard.position_of_target(allocation_id);
    let at = moved.or_else(|| shard.position(allocation_id))?;
    let copy = &mut shard.copies[at];
    (copy.last_failure, copy.disk_was_full) = (Some(why), disk_full);
    if moved.is_some() {
        copy.failed_relocations += 1;
        return cancel(shard, place, at);
    }
    copy.failures += 1;
    Some(unassign(shard, place, at, reason, at_ms))
}

/// Takes the copy at `at` from its node. The target of a replica goes on in its place; that of a primary goes with it,
/// as it was to have everything from it. Losing a primary ends its term, also where it was not started yet: one from a
/// disk signs its copy with the term before the manager hears that it is open, and a copy of the term would be trusted
/// by the next primary of it.
pub(super) fn unassign(
    shard: &mut IndexShardRoutingTable,
    place: Place<'_>,
    at: usize,
    reason: UnassignedReason,
    at_ms: u64,
) -> Change {
    let copy = &mut shard.copies[at];
    let target = copy.target.take();
    if let Some(target) = target.filter(|_| !copy.primary) {
        *copy = ShardCopy { relocating_from: None, ..*target };
        return Change::copy(place);
    }
    if copy.primary && (copy.is_started() || !shard.in_sync.is_empty()) {
        shard.primary_term += 1;
    }
    copy.node = None;
    copy.state = CopyState::Unassigned { reason, at_ms };
    Change::copy(place)
}

/// Takes what is on a node from it: a copy, or the target of one.
pub(super) fn leave_node(
    shard: &mut IndexShardRoutingTable,
    place: Place<'_>,
    node: &str,
    reason: UnassignedReason,
    at_ms: u64,
) -> Option<Change> {
    if let Some(at) = shard.copies.iter().position(|copy| copy.is_on(node)) {
        return Some(unassign(shard, place, at, reason, at_ms));
    }
    let is_here = |copy: &ShardCopy| copy.target.as_ref().is_some_and(|target| target.is_on(node));
    let at = shard.copies.iter().position(is_here)?;
    cancel(shard, place, at)
}

/// Whether a copy recovers from a node that has the started primary no more.
pub(super) fn has_orphans(shard: &IndexShardRoutingTable) -> bool {
    let source = shard.started_primary().and_then(|primary| primary.node.as_deref());
    shard.assigned().any(|copy| is_orphan(copy, source))
}

fn is_orphan(copy: &ShardCopy, source: Option<&str>) -> bool {
    let peer = copy.recovery().and_then(RecoverySource::peer);
    peer.is_some() && peer != source
}

/// Stops recoveries from a node that has the started primary no more.
pub(super) fn stop_orphans(
    shard: &mut IndexShardRoutingTable,
    place: Place<'_>,
    reason: UnassignedReason,
    at_ms: u64,
) -> Vec<Change> {
    let source = shard.started_primary().and_then(|primary| primary.node.clone());
    let mut changes = Vec::new();
    for at in 0..shard.copies.len() {
        let target = shard.copies[at].target.as_deref();
        if target.is_some_and(|target| is_orphan(target, source.as_deref())) {
            changes.extend(cancel(shard, place, at));
        }
        if is_orphan(&shard.copies[at], source.as_deref()) {
            changes.push(unassign(shard, place, at, reason, at_ms));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{RerouteAction, Status, health};
    use super::*;

    /// A shard with a primary and a replica on `n1` and `n2` of so many nodes.
    fn started(nodes: u32) -> (Lab, String, String) {
        let mut lab = Lab::new(nodes);
        lab.set("cluster.routing.allocation.include._name", "n1,n2");
        lab.create("a", 1, 1);
        lab.start_all();
        lab.set("cluster.routing.allocation.include._name", "");
        let node = |copy: &ShardCopy| copy.node.clone().unwrap();
        let shard = lab.shard("a", 0);
        let (primary, replica) = (node(shard.primary()), node(shard.replicas().next().unwrap()));
        (lab, primary, replica)
    }

    fn target(id: &str) -> (String, u32, String) {
        ("a".to_owned(), 0, id.to_owned())
    }

    #[test]
    fn a_primary_keeps_its_term_and_its_source_leaves_the_set_in_sync() {
        let (mut lab, primary, _) = started(3);
        let id = lab.move_copy(("a", 0), &primary, "n3");
        let shard = lab.shard("a", 0);
        let source = shard.primary().clone();
        assert!(source.is_started() && source.relocating_node() == Some("n3"));
        let moved = source.target.as_ref().unwrap();
        assert_eq!(moved.recovery().and_then(RecoverySource::peer), Some(&*primary));
        assert!(moved.primary && !moved.acts_as_primary() && !shard.in_sync.contains(&id));
        let h = health(&lab.state);
        let counts = (h.status, h.active_shards, h.relocating_shards, h.initializing_shards);
        assert_eq!(counts, (Status::Green, 2, 1, 0));

        lab.start(&target(&id));
        let shard = lab.shard("a", 0);
        assert_eq!((shard.primary_term, shard.primary().allocation_id.as_str()), (1, &*id));
        assert!(shard.in_sync.contains(&id) && !shard.in_sync.contains(&source.allocation_id));
        assert!(shard.on_node(&primary).is_none() && !shard.primary().is_target());
    }

    #[test]
    fn what_recovers_from_a_primary_begins_anew_once_that_has_moved() {
        let (mut lab, primary, replica) = started(4);
        let of_replica = lab.move_copy(("a", 0), &replica, "n3");
        let of_primary = lab.move_copy(("a", 0), &primary, "n4");
        lab.replicas("a", 2);
        lab.start(&target(&of_primary));
        let shard = lab.shard("a", 0);
        assert!(shard.position_of_target(&of_replica).is_none(), "its source is another now");
        assert!(shard.on_node(&replica).unwrap().is_started(), "and the replica stays");
        let peers = shard.assigned().filter_map(|copy| copy.recovery()?.peer());
        assert_eq!(peers.collect::<Vec<_>>(), ["n4"], "the third copy");
    }

    #[test]
    fn a_lost_source_takes_its_target_with_it_where_it_is_the_primary() {
        let (mut lab, primary, replica) = started(3);
        let id = lab.move_copy(("a", 0), &primary, "n3");
        lab.leave(&primary);
        let shard = lab.shard("a", 0);
        assert_eq!((shard.primary_term, shard.primary().node.as_ref()), (2, Some(&replica)));
        assert!(shard.assigned().all(|copy| copy.allocation_id != id));
        assert!(lab.start(&target(&id)).is_empty(), "it comes too late");

        let (mut lab, _, replica) = started(3);
        let id = lab.move_copy(("a", 0), &replica, "n3");
        lab.leave(&replica);
        let on_n3 = lab.shard("a", 0).on_node("n3").unwrap();
        assert!(on_n3.allocation_id == id && !on_n3.is_target(), "a replica's goes on");
        lab.start(&target(&id));
        assert_eq!(health(&lab.state).status, Status::Green);
    }

    #[test]
    fn a_lost_target_leaves_the_source_as_it_was() {
        let (mut lab, primary, _) = started(3);
        let before = lab.shard("a", 0).clone();
        let id = lab.move_copy(("a", 0), &primary, "n3");
        lab.leave("n3");
        assert_eq!(*lab.shard("a", 0), before);
        lab.join("n3");
        lab.move_copy(("a", 0), &primary, "n3");
        lab.reroute(RerouteAction::Cancel { allow_primary: false }, ("a", 0), "n3").unwrap();
        assert_eq!(*lab.shard("a", 0), before);
        let third = lab.move_copy(("a", 0), &primary, "n3");
        lab.out_of_sync("a", 0, &third).unwrap();
        let shard = lab.shard("a", 0);
        assert_eq!((shard.primary().failed_relocations, shard.primary_term), (1, 1));
        assert!(shard.primary().is_started() && shard.position_of_target(&id).is_none());
    }

    #[test]
    fn a_primary_that_was_never_started_leaves_its_term_to_no_other() {
        let (mut lab, primary, replica) = started(2);
        let other = lab.shard("a", 0).on_node(&replica).unwrap().allocation_id.clone();
        lab.leave(&replica);
        lab.leave(&primary);
        lab.join(&primary);
        let shard = lab.shard("a", 0);
        assert_eq!(shard.primary().recovery(), Some(&RecoverySource::ExistingStore));
        assert_eq!(shard.primary_term, 2);
        lab.leave(&primary);
        lab.join(&replica);
        let shard = lab.shard("a", 0);
        assert_eq!((shard.primary_term, &shard.primary().allocation_id), (3, &other));
    }

    #[test]
    fn a_move_that_fails_too_often_waits_for_an_operator() {
        let (mut lab, primary, _) = started(3);
        lab.set("cluster.routing.allocation.exclude._name", &primary);
        for _ in 0..super::super::MAX_RETRIES {
            let moved = lab.shard("a", 0).primary().target.as_ref().expect("it is tried again");
            let moved = target(&moved.allocation_id);
            lab.fail(&moved, "disk");
        }
        assert!(!lab.shard("a", 0).primary().is_relocating());
        lab.apply(super::super::Event::RetryFailed).unwrap();
        assert!(lab.shard("a", 0).primary().is_relocating());
        lab.start_all();
        assert_eq!(lab.shard("a", 0).primary().failed_relocations, 0);
    }
}
