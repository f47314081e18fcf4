//! On which nodes unassigned copies are placed.
//!
//! As Elasticsearch's balanced allocation, with the number of copies as the only weight unless
//! `narrows.allocation.weights` says another: lost primaries are replaced by replicas first, then primaries are placed,
//! then replicas. A copy that waits for a node counts as if it were there, so that the next copies go elsewhere;
//! otherwise all copies of a lost rack would wait for the few emptiest nodes. [`reroute`] also begins the moves of
//! assigned copies, which `moving` and `rebalancing` choose.

use std::sync::Arc;

use super::deciders::{Deciders, Slot, Verdict};
use super::filters::Filters;
use super::recovery_counts::{IndexLayout, RecoveryCounts};
use super::touched::Touched;
use super::{
    Change, ClusterState, CopyState, IndexShardRoutingTable, RecoverySource, ShardCopy,
    UnassignedReason, moving, rebalancing, relocation,
};
use crate::settings::Settings;

/// Places every copy that may be placed now; [`super::explain()`] says why others are not.
///
/// Runs after each batch of events, and changes nothing when run again. `touched` are the shards that the
/// events changed. Looks at the indices that have changed since they were counted last, and at every copy on no node;
/// each of these costs a logarithm of the number of nodes.
pub(super) fn reroute(state: &mut ClusterState, now_ms: u64, mut touched: Touched) -> Vec<Change> {
    let mut changes = Vec::new();
    let settings = state.settings();
    let mut filters = Filters::of(state, &settings);
    let indices = by_priority(state);
    if !indices.is_empty() {
        state.counted.follow(&state.present, &state.routing);
    }
    let mut placed = (!indices.is_empty()).then(|| RecoveryCounts::of(state, &settings));
    // A copy that is placed later may change which node an earlier one waits for.
    while let Some(placed) = &mut placed {
        let (mut counts, before) = (placed.clone(), changes.len());
        for primaries in [true, false] {
            let round = Round { settings: &settings, now_ms, indices: &indices, primaries };
            place(state, round, (&mut counts, placed, &mut filters), &mut changes);
        }
        debug_assert_eq!(*placed, RecoveryCounts::of(state, &settings));
        let is_full = [true, false].iter().all(|primaries| !counts.have_room(*primaries));
        if changes.len() == before || is_full {
            break;
        }
    }
    moving::move_away(state, &settings, &mut filters, &mut changes);
    rebalancing::rebalance(state, (&settings, &mut filters), &mut changes);
    touched.add_changes(state, &changes);
    update_in_sync(state, &touched, &mut changes);
    changes
}

/// Promotes a started replica where the primary was lost, and stops recoveries from that primary. Runs after each
/// event, so that the next event finds the new primaries.
pub(super) fn promote(state: &mut ClusterState, now_ms: u64, touched: &Touched) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut found = None;
    for (index, numbers) in touched.iter() {
        for &number in numbers {
            let Some(shard) = state.shard(index, number) else { continue };
            if !shard.primary().is_assigned() && shard.copies.iter().any(ShardCopy::is_started) {
                let (settings, counts) = found.get_or_insert_with(|| {
                    let settings = state.settings();
                    let counts = RecoveryCounts::of(state, &settings);
                    (settings, counts)
                });
                let promotion_candidate =
                    promotion_candidate(shard, settings, counts).expect("a copy is started");
                promote_replica(state, index, number, promotion_candidate, &mut changes);
            }
            stop_orphans(state, now_ms, (index, number), &mut changes);
        }
    }
    changes
}

/// The started copy on the emptiest node; in the field's order, that on the first.
fn promotion_candidate(
    shard: &IndexShardRoutingTable,
    settings: &Settings,
    counts: &RecoveryCounts,
) -> Option<usize> {
    let started = shard.copies.iter().enumerate().filter(|(_, copy)| copy.is_started());
    let weigh = |(at, copy): (usize, &ShardCopy)| {
        let node = copy.node.clone()?;
        let copies = counts.get(&node).copies;
        Some((if settings.allocates_in_field_order() { 0 } else { copies }, node, at))
    };
    started.filter_map(weigh).min().map(|(_, _, promotion_candidate)| promotion_candidate)
}

fn promote_replica(
    state: &mut ClusterState,
    index: &str,
    number: u32,
    promotion_candidate: usize,
    changes: &mut Vec<Change>,
) {
    let shard = state.shard_mut(index, number).expect("it was looked at");
    shard.copies.iter_mut().for_each(|copy| copy.primary = false);
    // Its target was to have everything from the primary that was lost.
    changes.extend(relocation::cancel(shard, (index, number), promotion_candidate));
    shard.copies[promotion_candidate].primary = true;
    changes.push(Change::copy((index, number)));
}

/// Stops recoveries from a node that has the started primary no more.
fn stop_orphans(
    state: &mut ClusterState,
    now_ms: u64,
    (index, number): (&str, u32),
    changes: &mut Vec<Change>,
) {
    let Some(shard) = state.shard(index, number) else { return };
    if relocation::has_orphans(shard) {
        let shard = state.shard_mut(index, number).expect("it was looked at");
        let reason = UnassignedReason::PrimaryFailed;
        changes.extend(relocation::stop_orphans(shard, (index, number), reason, now_ms));
    }
}

/// The indices that have a copy on no node: the highest `index.priority` first, then the newest, then the last by name.
///
/// The order of Elasticsearch's `PriorityComparator`: writers and followers wait for the newest index.
fn by_priority(state: &ClusterState) -> Vec<String> {
    let lacking = state.counted.lacking(&state.routing).into_iter();
    let mut ranked: Vec<_> = lacking
        .map(|index| {
            let meta = &state.indices[&index];
            (meta.priority(), meta.created_ms, index)
        })
        .collect();
    ranked.sort_unstable_by(|one, other| other.cmp(one));
    ranked.into_iter().map(|(_, _, index)| index).collect()
}

/// The unassigned primaries, or the unassigned replicas, of these indices in this order.
#[derive(Clone, Copy)]
struct Round<'a> {
    settings: &'a Settings,
    now_ms: u64,
    indices: &'a [String],
    primaries: bool,
}

/// Places the copies of a round. `counts` also has copies that wait for their node, `placed` has placed ones alone.
fn place(
    state: &mut ClusterState,
    round: Round<'_>,
    (counts, placed, filters): (&mut RecoveryCounts, &mut RecoveryCounts, &mut Filters),
    changes: &mut Vec<Change>,
) {
    let Round { settings, now_ms, indices, primaries } = round;
    let goes_by_layout = !primaries && IndexLayout::is_asked_for(settings);
    for index in indices {
        // If no node has room, the other copies need not be looked at.
        if !counts.have_room(primaries) {
            return;
        }
        let mut layout = None;
        for (number, at) in unassigned(&state.routing[index], primaries) {
            let shard = &state.routing[index][number as usize];
            let slot = Slot { index, number, shard, copy: &shard.copies[at] };
            let deciders =
                Deciders { state, counts, settings, filters: &*filters, now_ms, with_words: false };
            if deciders.copy_verdict(slot) != Verdict::Yes || deciders.source_is_busy(slot) {
                continue;
            }
            if goes_by_layout {
                let shards = &state.routing[index];
                layout.get_or_insert_with(|| IndexLayout::of(counts, settings, shards));
            }
            let Some((node, verdict)) = deciders.best_node(slot, layout.as_ref()) else {
                continue;
            };
            let node = node.to_owned();
            if let Some(layout) = &mut layout {
                layout.add(counts, &node);
            }
            if verdict != Verdict::Yes {
                counts.add(&node, None);
                continue;
            }
            let recovery = recovery_of(state, slot);
            counts.add(&node, Some(&recovery));
            placed.add(&node, Some(&recovery));
            filters.place(state, (index, number), &node, None);
            changes.push(assign(state, index, number, at, node, recovery));
        }
    }
}

fn unassigned(shards: &[IndexShardRoutingTable], primaries: bool) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    for (number, shard) in (0..).zip(shards) {
        for (at, copy) in shard.copies.iter().enumerate() {
            if !copy.is_assigned() && copy.primary == primaries {
                found.push((number, at));
            }
        }
    }
    found
}

fn recovery_of(state: &ClusterState, slot: Slot<'_>) -> RecoverySource {
    if !slot.copy.primary {
        let from_node = slot.shard.primary().node.clone().expect("replicas wait for the primary");
        return RecoverySource::Peer { from_node };
    }
    if slot.shard.was_started() {
        return RecoverySource::ExistingStore;
    }
    match &state.indices[slot.index].leader {
        None => RecoverySource::EmptyStore,
        Some(leader) => RecoverySource::Remote {
            cluster: leader.remote_cluster.clone(),
            index: leader.leader_index.clone(),
            shard: slot.number,
        },
    }
}

/// Places a replica that is on no node, and whose primary is started.
pub(super) fn place_replica(
    state: &mut ClusterState,
    (index, number): (&str, u32),
    at: usize,
    node: &str,
) -> Change {
    let shard = state.shard(index, number).expect("it was looked at");
    let slot = Slot { index, number, shard, copy: &shard.copies[at] };
    let recovery = recovery_of(state, slot);
    assign(state, index, number, at, node.to_owned(), recovery)
}

fn assign(
    state: &mut ClusterState,
    index: &str,
    number: u32,
    at: usize,
    node: String,
    recovery: RecoverySource,
) -> Change {
    let allocation_id = match recovery {
        RecoverySource::ExistingStore => {
            state.on_disk(&node, index, number).expect("the disk was looked at").to_owned()
        }
        _ => state.ids.next_id(),
    };
    // From now on the node writes this id beside the files: what was there before is gone.
    let uuid = state.indices[index].uuid.clone();
    state.disks.insert(&uuid, number, &node, allocation_id.clone());

    let shard = state.shard_mut(index, number).expect("an index has a routing");
    let copy = &mut shard.copies[at];
    copy.allocation_id.clone_from(&allocation_id);
    copy.node = Some(node.clone());
    copy.state = CopyState::Initializing { recovery: recovery.clone() };
    Change::Assigned { index: index.to_owned(), shard: number, allocation_id, node, recovery }
}

/// Bounds the in-sync sets, updates the copies' flags, and forgets copies on disk that are needed no more.
fn update_in_sync(state: &mut ClusterState, touched: &Touched, changes: &mut Vec<Change>) {
    let ClusterState { indices, routing, disks, extents, .. } = state;
    for (index, numbers) in touched.iter() {
        let (Some(meta), Some(shards)) = (indices.get(index), routing.get_mut(index)) else {
            continue;
        };
        let shards = Arc::make_mut(shards);
        for &number in numbers {
            let Some(shard) = shards.get_mut(number as usize) else { continue };
            if bound_in_sync(shard, meta.replicas as usize + 1) {
                changes.push(Change::copy((index, number)));
            }
            for copy in &mut shard.copies {
                copy.in_sync = shard.in_sync.contains(&copy.allocation_id);
            }
            if shard.copies.iter().all(ShardCopy::is_started) {
                disks.retain(&meta.uuid, number, |node| shard.on_node(node).is_some());
                extents.remove_shard(&meta.uuid, number);
            }
        }
    }
}

/// Takes ids of missing copies out of a set that holds more than there are copies; whether there were any.
/// Without this bound, as in Elasticsearch, the set would grow with each node that comes and goes while nobody
/// writes. Without a primary any of them may be needed.
fn bound_in_sync(shard: &mut IndexShardRoutingTable, copies: usize) -> bool {
    if shard.started_primary().is_none() {
        return false;
    }
    let spare = shard.in_sync.len().saturating_sub(copies);
    let gone: Vec<String> = shard.missing_in_sync().take(spare).map(str::to_owned).collect();
    for allocation_id in &gone {
        shard.in_sync.remove(allocation_id);
    }
    !gone.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    #[test]
    fn primaries_and_replicas_are_spread() {
        let lab = Lab::started(3, (6, 1));
        assert_eq!(["n1", "n2", "n3"].map(|node| lab.on(node)), [4, 4, 4]);
        for (_, _, shard) in lab.state.shards() {
            let nodes: Vec<_> = shard.copies.iter().map(|copy| copy.node.clone()).collect();
            assert_ne!(nodes[0], nodes[1]);
        }
    }

    /// Two indices as OpenSearch 2.19.1 placed them, on nodes of which the hashes of the ids have the order of these
    /// names; and one that is otherwise placed from whichever name it begins.
    #[test]
    fn replicas_go_around_a_ring_where_that_is_set() {
        let seen = [(3, "1231231", "2323112"), (4, "12341", "23412"), (3, "321", "213")];
        let weights = ["copies", "opensearch"];
        let both = seen.into_iter().flat_map(|seen| weights.map(|weights| (seen, weights)));
        for ((nodes, primaries, replicas), weights) in both {
            let mut lab = Lab::new(nodes);
            lab.set("narrows.allocation.weights", weights);
            let named = |number: char| vec![format!("n{number}")];
            let nodes: Vec<Vec<String>> = primaries.chars().map(named).collect();
            lab.set("narrows.allocation.replica_ring", "true");
            lab.set("cluster.routing.allocation.node_concurrent_recoveries", "9");
            lab.place("a", 1, nodes).unwrap();
            let shards = lab.state.shards().map(|(_, _, shard)| &shard.copies[1]);
            let found: String =
                shards.filter_map(|copy| copy.node.as_ref()?.chars().last()).collect();
            assert_eq!(found, replicas, "primaries on {primaries}, {weights}");
        }
    }

    /// Where n4 is nearly empty, which by the number of its copies alone takes all of them.
    #[test]
    fn replicas_of_an_index_are_spread_where_its_copies_weigh() {
        let on_n4 = |weights: &str| {
            let mut lab = Lab::new(4);
            // Weights need no ring.
            lab.set("narrows.allocation.replica_ring", &(weights == "copies").to_string());
            lab.set("narrows.allocation.weights", weights);
            lab.set("cluster.routing.allocation.node_concurrent_recoveries", "9");
            let three = ["n1", "n2", "n3"].map(|node| vec![node.to_owned()]);
            lab.place("others", 0, [&three[..]; 3].concat()).unwrap();
            lab.place("a", 1, [&three[..]; 2].concat()).unwrap();
            lab.on("n4")
        };
        let found = ["copies", "elasticsearch", "opensearch"].map(on_n4);
        assert_eq!(found, [6, 4, 3], "of OpenSearch three, which is its share of twelve");
    }

    /// As the manager of a twin, which is the first by name.
    #[test]
    fn a_node_that_is_not_counted_does_not_change_where_replicas_go() {
        let replicas_of = |index: &str, others: u32| -> Vec<u32> {
            let mut lab = Lab::new(3 + others);
            let manager = if others > 0 { "n1" } else { "" };
            lab.set("cluster.routing.allocation.exclude._name", manager);
            lab.set("narrows.allocation.uncounted", manager);
            let nodes = (1..=3).map(|number| vec![format!("n{}", number + others)]).collect();
            lab.place(index, 1, nodes).unwrap();
            let number = |node: &String| node[1..].parse::<u32>().unwrap() - others;
            let shards = lab.state.shards();
            shards.filter_map(|(_, _, shard)| shard.copies[1].node.as_ref().map(number)).collect()
        };
        assert_eq!(replicas_of("logs", 0), [3, 1, 2], "as a cluster of three nodes placed them");
        for index in ["logs", "a", "b", "c", "d"] {
            assert_eq!(replicas_of(index, 1), replicas_of(index, 0), "{index}");
        }
    }

    #[test]
    fn new_primaries_are_limited_by_node() {
        let mut lab = Lab::new(2);
        lab.create("a", 20, 0);
        assert_eq!(lab.initializing().len(), 8);
        lab.set("cluster.routing.allocation.node_initial_primaries_recoveries", "5");
        assert_eq!(lab.initializing().len(), 10);
        let first = lab.initializing()[0].clone();
        lab.start(&first);
        assert_eq!(lab.initializing().len(), 10, "the next one follows");
    }

    #[test]
    fn peer_recoveries_are_limited_in_and_out() {
        let mut lab = Lab::new(2);
        lab.leave("n2");
        lab.create("a", 12, 1);
        lab.start_all();
        // All primaries are on n1: it may send two, n2 receive two.
        lab.join("n2");
        assert_eq!(lab.initializing().len(), 2);
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "5");
        assert_eq!(lab.initializing().len(), 5);
        // One of each direction counts in place of that of both.
        lab.set("cluster.routing.allocation.node_concurrent_incoming_recoveries", "7");
        assert_eq!(lab.initializing().len(), 5);
        lab.set("cluster.routing.allocation.node_concurrent_outgoing_recoveries", "6");
        assert_eq!(lab.initializing().len(), 6);

        let mut lab = Lab::new(4);
        for node in ["n2", "n3", "n4"] {
            lab.leave(node);
        }
        lab.create("a", 12, 1);
        lab.start_all();
        for node in ["n2", "n3", "n4"] {
            lab.join(node);
        }
        assert_eq!(lab.initializing().len(), 2, "three could receive, one may send two");
    }

    /// What many nodes lost is not left to wait for the one that is the emptiest.
    #[test]
    fn copies_behind_one_that_waits_go_elsewhere() {
        let mut lab = Lab::new(12);
        lab.leave("n11");
        lab.leave("n12");
        lab.create("a", 40, 1);
        lab.start_all();
        lab.join("n11");
        lab.leave("n1");
        lab.leave("n2");
        let lost = lab.state.shards().flat_map(|(_, _, shard)| &shard.copies);
        assert_eq!(lost.filter(|copy| !copy.is_started()).count(), 16);
        let to = |node: &str| {
            let copies = lab.state.copies_on(node);
            copies.filter(|(_, _, copy)| copy.recovery().is_some()).count()
        };
        assert_eq!(to("n11"), 2, "the empty node gets what it may receive");
        let others: usize = (3..=10).map(|n| to(&format!("n{n}"))).sum();
        assert!(others > 0, "the emptiest node is not waited for by all");
    }

    #[test]
    fn the_highest_priority_comes_back_first_then_the_newest_then_the_last_by_name() {
        let mut lab = Lab::new(1);
        for (index, at_ms) in [("old", 2000), ("b", 2001), ("a", 2002), ("d", 2003), ("c", 2003)] {
            lab.now_ms = at_ms;
            lab.create(index, 1, 0);
        }
        lab.set_index("old", "index.priority", "10");
        while !lab.initializing().is_empty() {
            lab.start_all();
        }
        lab.set("cluster.routing.allocation.node_initial_primaries_recoveries", "1");
        lab.leave("n1");
        lab.join("n1");
        let mut order = Vec::new();
        while let [next] = &lab.initializing()[..] {
            let next = next.clone();
            lab.start(&next);
            order.push(next.0);
        }
        assert_eq!(order, ["old", "d", "c", "a", "b"]);
    }

    #[test]
    fn nothing_is_placed_that_is_not_enabled() {
        const ENABLE: &str = "cluster.routing.allocation.enable";
        let mut lab = Lab::new(2);
        lab.set(ENABLE, "none");
        lab.create("a", 1, 1);
        assert_eq!(lab.initializing().len(), 0);
        lab.set(ENABLE, "new_primaries");
        lab.start_all();
        assert_eq!(lab.shard("a", 0).assigned().count(), 1);

        let node = lab.shard("a", 0).primary().node.clone().unwrap();
        lab.leave(&node);
        lab.join(&node);
        assert_eq!(lab.initializing().len(), 0, "this primary is not new");
        lab.set(ENABLE, "primaries");
        lab.start_all();
        assert_eq!(lab.shard("a", 0).assigned().count(), 1);
        lab.set(ENABLE, "all");
        lab.start_all();
        assert_eq!(lab.shard("a", 0).assigned().count(), 2);
    }

    #[test]
    fn nothing_is_placed_on_excluded_nodes() {
        const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
        let mut lab = Lab::new(4);
        lab.set(EXCLUDE, "n1,nobody-*");
        lab.create("a", 6, 2);
        for _ in 0..12 {
            lab.start_all();
        }
        for shard in 0..6 {
            let shard = lab.shard("a", shard);
            assert_eq!(shard.assigned().count(), 3);
            assert!(shard.on_node("n1").is_none());
        }
        // Of three nodes each holds a copy already; the fourth is free only once it is allowed.
        lab.create("b", 1, 3);
        for _ in 0..4 {
            lab.start_all();
        }
        assert_eq!(lab.shard("b", 0).assigned().count(), 3);
        lab.set(EXCLUDE, "");
        lab.start_all();
        assert_eq!(lab.shard("b", 0).assigned().count(), 4);
    }

    #[test]
    fn a_lost_primary_is_replaced_and_recoveries_from_it_begin_anew() {
        let mut lab = Lab::new(3);
        lab.create("a", 1, 2);
        let primary = lab.initializing()[0].clone();
        lab.start(&primary);
        let [first, second] = &lab.initializing()[..] else { panic!("two replicas recover") };
        let (first, second) = (first.clone(), second.clone());
        lab.start(&first);
        let lost = lab.shard("a", 0).primary().node.clone().unwrap();
        lab.leave(&lost);

        let shard = lab.shard("a", 0);
        assert_eq!(shard.primary_term, 2);
        assert_eq!(shard.primary().allocation_id, first.2);
        assert!(shard.primary().is_started());
        let from_node = shard.primary().node.clone().unwrap();
        let replica = shard.replicas().find(|copy| copy.is_assigned()).unwrap();
        assert_ne!(replica.allocation_id, second.2);
        assert_eq!(replica.recovery(), Some(&RecoverySource::Peer { from_node }));
        assert!(shard.in_sync.contains(&primary.2), "nobody wrote since, so it still has all");
    }

    #[test]
    fn the_replica_on_the_emptiest_node_becomes_primary_or_that_on_the_first() {
        let promoted_on = |in_field_order: &str| {
            let mut lab = Lab::new(4);
            lab.set("narrows.allocation.field_order", in_field_order);
            let on = |nodes: [&str; 3]| nodes.map(str::to_owned).to_vec();
            let nodes = vec![on(["n4", "n3", "n2"]), on(["n4", "n2", "n1"])];
            lab.place("a", 2, nodes).unwrap();
            lab.set("cluster.routing.allocation.enable", "none");
            lab.leave("n4");
            [0, 1].map(|number| lab.shard("a", number).primary().node.clone().unwrap())
        };
        assert_eq!(promoted_on("false"), ["n3", "n1"], "n2 holds two");
        assert_eq!(promoted_on("true"), ["n2", "n1"]);
    }

    #[test]
    fn a_primary_comes_back_only_from_an_in_sync_disk() {
        let mut lab = Lab::started(2, (1, 1));
        let primary = lab.shard("a", 0).primary().clone();
        let replica = lab.shard("a", 0).replicas().next().unwrap().clone();
        lab.out_of_sync("a", 0, &replica.allocation_id).unwrap();
        lab.leave(replica.node.as_ref().unwrap());
        lab.leave(primary.node.as_ref().unwrap());

        // The replica missed a write: it must not become the primary.
        lab.join(replica.node.as_ref().unwrap());
        assert!(!lab.shard("a", 0).primary().is_assigned());
        lab.join(primary.node.as_ref().unwrap());
        let back = lab.shard("a", 0).primary();
        assert_eq!(back.allocation_id, primary.allocation_id);
        assert_eq!(back.recovery(), Some(&RecoverySource::ExistingStore));
        assert_eq!(back.node, primary.node);
    }

    #[test]
    fn a_replica_returns_to_the_node_that_keeps_its_files() {
        let mut lab = Lab::started(4, (1, 1));
        lab.set("cluster.routing.allocation.enable", "none");
        let replica = lab.shard("a", 0).replicas().next().unwrap().node.clone().unwrap();
        lab.leave(&replica);
        lab.join(&replica);
        lab.set("cluster.routing.allocation.enable", "all");
        assert_eq!(lab.shard("a", 0).replicas().next().unwrap().node, Some(replica));
    }
}
