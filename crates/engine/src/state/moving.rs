//! Copies that are moved: away from nodes where they may be no more, and by hand.
//!
//! After OpenSearch's `LocalShardsBalancer.moveShards`. Nodes take turns, and each gives its primaries first:
//! `RoutingNode` keeps them apart, and `nodeInterleavedShardIterator` goes through what it keeps. Before each move the
//! nodes that may take the copy are sorted anew, by insertion where there are no more than sixteen, so that those which
//! hold as many copies, or weigh as much, stay in the order of the last move.

use std::collections::BTreeMap;

use super::deciders::{Deciders, Slot, Verdict};
use super::filters::Filters;
use super::recovery_counts::{IndexLayout, RecoveryCounts};
use super::{Change, ClusterState, RecoverySource, relocation};
use crate::settings::{AllocationWeights, Settings};

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
    // A node that is drained, or a twin's manager, is empty for most of the time: no copy need be looked at.
    if filters.all_may_stay_on(state, |node| counts.get(node).copies == 0) {
        return;
    }
    let mut order: Vec<usize> = (0..counts.nodes()).collect();
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
        match settings.allocation_weights() {
            AllocationWeights::Copies => counts.sort(&mut order),
            _ => {
                let layout = IndexLayout::of(&counts, settings, &state.routing[&index]);
                counts.sort_for(&mut order, &layout);
            }
        }
        let nodes = order.iter().map(|number| counts.name(*number));
        let Some((node, Verdict::Yes)) = deciders.best_node_to_move_to(slot, nodes) else {
            continue;
        };
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

/// Index, number of the shard, and place among its copies.
type Place = (String, u32, usize);

/// The started copies that may not stay where they are, in the order in which they are moved.
fn unwelcome(state: &ClusterState, filters: &Filters) -> Vec<Place> {
    // Of each node its primaries, and its replicas.
    let mut by_node: BTreeMap<&str, [Vec<Place>; 2]> = BTreeMap::new();
    for (index, number, shard) in state.shards() {
        for (at, copy) in shard.copies.iter().enumerate() {
            let stays = !copy.is_started() || copy.is_relocating();
            let Some(node) = copy.node.as_deref().filter(|_| !stays) else { continue };
            if filters.against(state, (index, number), copy, node).is_some() {
                let of_node = by_node.entry(node).or_default();
                of_node[usize::from(!copy.primary)].push((index.to_owned(), number, at));
            }
        }
    }
    let mut turns: Vec<_> =
        by_node.into_values().map(|of_node| of_node.into_iter().flatten()).collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        found.extend(turns.iter_mut().filter_map(Iterator::next));
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;

    const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";

    #[test]
    fn a_node_is_drained_a_few_at_a_time_and_keeps_empty() {
        let mut lab = Lab::started(3, (6, 1));
        assert_eq!(lab.on("n1"), 4);
        lab.set(EXCLUDE, "n1");
        let moving = lab.initializing().len();
        assert!((1..=4).contains(&moving), "{moving} at once: two go into and two out of a node");
        lab.start_all();
        assert_eq!([lab.on("n1"), lab.on("n2"), lab.on("n3")], [0, 6, 6]);
        lab.set(EXCLUDE, "");
        assert_eq!(lab.on("n1"), 0, "nothing comes back by itself");
    }

    /// With the index `a`, whose shards have copies on these nodes, the primary's first.
    fn placed(nodes: u32, shards: &[&[&str]]) -> Lab {
        let mut lab = Lab::new(nodes);
        let names = |nodes: &&[&str]| nodes.iter().map(|node| (*node).to_owned()).collect();
        let nodes: Vec<Vec<String>> = shards.iter().map(names).collect();
        let replicas = nodes.iter().map(Vec::len).max().unwrap_or(1) as u32 - 1;
        lab.place("a", replicas, nodes).unwrap();
        lab
    }

    /// The shards that are on their way to this node.
    fn moving_to(lab: &Lab, node: &str) -> Vec<u32> {
        let copies = lab.state.copies_on(node).filter(|(_, _, copy)| copy.recovery().is_some());
        copies.map(|(_, number, _)| number).collect()
    }

    #[test]
    fn a_node_gives_its_primaries_first_and_nodes_take_turns() {
        let mut lab = placed(3, &[&["n2", "n1"], &["n2", "n1"], &["n1", "n2"]]);
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "1");
        lab.set(EXCLUDE, "n1");
        assert_eq!(moving_to(&lab, "n3"), [2], "n1 has the primary of this one alone");

        let mut lab = placed(3, &[&["n1"], &["n1"], &["n2"], &["n2"]]);
        lab.set(EXCLUDE, "n1,n2");
        assert_eq!(moving_to(&lab, "n3"), [0, 2], "n3 receives two, one from each");
    }

    /// As OpenSearch 2.19.1 did it, with ids of nodes whose hashes have the order of these names.
    #[test]
    fn copies_go_where_opensearch_moved_them() {
        let shards: [&[&str]; 5] =
            [&["n1", "n2"], &["n2", "n3"], &["n3", "n4"], &["n4", "n1"], &["n1", "n2"]];
        let mut lab = placed(4, &shards);
        lab.set(EXCLUDE, "n4");
        let moving = ["n1", "n2", "n3"].map(|node| moving_to(&lab, node));
        assert_eq!(moving, [vec![2], vec![], vec![3]]);
    }

    #[test]
    fn a_copy_goes_to_the_lightest_node_for_its_index_where_that_weighs() {
        let goes_to = |weights: &str| {
            let mut lab = placed(3, &[&["n1"], &["n1"], &["n3"]]);
            lab.place("b", 0, vec![vec!["n2".to_owned()]; 3]).unwrap();
            lab.set("narrows.allocation.weights", weights);
            lab.set(EXCLUDE, "n3");
            lab.shard("a", 2).primary().relocating_node().map(str::to_owned)
        };
        assert_eq!(goes_to("copies").as_deref(), Some("n1"));
        assert_eq!(goes_to("elasticsearch").as_deref(), Some("n2"));
    }

    #[test]
    fn nodes_that_hold_as_much_stay_in_the_order_of_the_last_move() {
        let mut lab = placed(4, &[&["n4"], &["n4"], &["n4"], &["n1"]]);
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "3");
        lab.set(EXCLUDE, "n4");
        let moving = ["n1", "n2", "n3"].map(|node| moving_to(&lab, node));
        assert_eq!(moving, [vec![], vec![0], vec![1, 2]], "n3 was the first when all held one");
    }

    #[test]
    fn what_no_node_may_hold_stays() {
        let mut lab = Lab::started(2, (1, 1));
        lab.set(EXCLUDE, "n1");
        assert!(lab.initializing().is_empty() && lab.on("n1") == 1);
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
        assert_eq!(lab.on("n1"), 0);
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
        assert_eq!((lab.on("n1"), lab.on("n2")), (1, 1), "the other index stays");
    }
}
