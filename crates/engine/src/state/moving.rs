//! Copies that are moved: away from nodes where they may be no more, and by hand.

use super::deciders::{Deciders, Slot, Verdict};
use super::filters::Filters;
use super::recovery_counts::RecoveryCounts;
use super::{Change, ClusterState, RecoverySource, relocation};
use crate::settings::Settings;

/// Begins to move what a filter, awareness or a full disk keeps from its node, as far as nodes may send and receive
/// now.
pub(super) fn move_away(
    state: &mut ClusterState,
    settings: &Settings,
    filters: &mut Filters,
    changes: &mut Vec<Change>,
) {
    if filters.all_may_stay() {
        return;
    }
    let mut counts = RecoveryCounts::of(state, settings);
    for (index, number, at) in unwelcome(state, filters) {
        if !counts.have_room(false) {
            return;
        }
        let shard = state.shard(&index, number).expect("it was found");
        let copy = &shard.copies[at];
        let node = copy.node.as_deref().expect("it is started");
        // What began to leave a full disk before it may be enough.
        if filters.against(state, (&index, number), copy, node).is_none() {
            continue;
        }
        let slot = Slot { index: &index, number, shard, copy };
        let deciders = Deciders::of_moves(state, &counts, settings, filters);
        if deciders.copy_verdict(slot) != Verdict::Yes || deciders.source_is_busy(slot) {
            continue;
        }
        let Some((node, Verdict::Yes)) = deciders.best_node_to_move_to(slot) else { continue };
        let node = node.to_owned();
        begin(state, (&index, number, at), &node, (&mut counts, filters), changes);
    }
}

/// Begins a move, and counts it.
pub(super) fn begin(
    state: &mut ClusterState,
    (index, number, at): (&str, u32, usize),
    node: &str,
    (counts, filters): (&mut RecoveryCounts, &mut Filters),
    changes: &mut Vec<Change>,
) {
    let from = state.shard(index, number).and_then(|shard| shard.copies[at].node.clone());
    filters.place(state, (index, number), node, from.as_deref());
    let change = relocation::begin(state, (index, number), at, node);
    if let (Change::Assigned { recovery, .. }, Some(from)) = (&change, from) {
        let recovery: &RecoverySource = recovery;
        counts.remove(&from, None);
        counts.add(node, Some(recovery));
    }
    changes.push(change);
}

/// The started copies that may not stay where they are: index, number, place among the copies.
fn unwelcome(state: &ClusterState, filters: &Filters) -> Vec<(String, u32, usize)> {
    let mut found = Vec::new();
    for (index, number, shard) in state.shards() {
        for (at, copy) in shard.copies.iter().enumerate() {
            let stays = !copy.is_started() || copy.is_relocating();
            let node = copy.node.as_deref().filter(|_| !stays);
            if node
                .is_some_and(|node| filters.against(state, (index, number), copy, node).is_some())
            {
                found.push((index.to_owned(), number, at));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::Lab;

    const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";

    fn on(lab: &Lab, node: &str) -> usize {
        lab.state.copies_on(node).count()
    }

    #[test]
    fn a_node_is_drained_a_few_at_a_time_and_keeps_empty() {
        let mut lab = Lab::started(3, (6, 1));
        assert_eq!(on(&lab, "n1"), 4);
        lab.set(EXCLUDE, "n1");
        let moving = lab.initializing().len();
        assert!((1..=4).contains(&moving), "{moving} at once: two go into and two out of a node");
        lab.start_all();
        assert_eq!([on(&lab, "n1"), on(&lab, "n2"), on(&lab, "n3")], [0, 6, 6]);
        lab.set(EXCLUDE, "");
        assert_eq!(on(&lab, "n1"), 0, "nothing comes back by itself");
    }

    #[test]
    fn what_no_node_may_hold_stays() {
        let mut lab = Lab::started(2, (1, 1));
        lab.set(EXCLUDE, "n1");
        assert!(lab.initializing().is_empty() && on(&lab, "n1") == 1);
        lab.set(EXCLUDE, "*");
        assert!(lab.initializing().is_empty());
    }

    #[test]
    fn nothing_is_moved_that_is_not_enabled() {
        let mut lab = Lab::started(3, (4, 0));
        lab.set("cluster.routing.allocation.enable", "new_primaries");
        lab.set(EXCLUDE, "n1");
        assert!(lab.initializing().is_empty());
        lab.set("cluster.routing.allocation.enable", "primaries");
        lab.start_all();
        assert_eq!(on(&lab, "n1"), 0);
    }

    #[test]
    fn an_index_is_brought_to_the_nodes_that_it_names() {
        let mut lab = Lab::new(3);
        lab.create("a", 3, 0);
        lab.create("b", 3, 0);
        lab.start_all();
        lab.set_index("a", "index.routing.allocation.include._name", "n2,n3");
        lab.set_index("a", "index.routing.allocation.require._name", "n3");
        lab.start_all();
        let nodes = (0..3).map(|number| lab.shard("a", number).primary().node.clone().unwrap());
        assert!(nodes.into_iter().all(|node| node == "n3"));
        assert_eq!((on(&lab, "n1"), on(&lab, "n2")), (1, 1), "the other index stays");
    }
}
