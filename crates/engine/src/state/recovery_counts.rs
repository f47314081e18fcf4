//! What is on each node, and which node is to be filled first.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use policy::balancing::{Balance, Load};

use super::counted::{NodeNames, NodeRecoveryCounts, each_node};
use super::{ClusterState, IndexShardRoutingTable, RecoverySource};
use crate::settings::{AllocationWeights, Settings};

/// How many copies may come up on a node at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub initial_primaries: u32,
    /// Peer recoveries that it receives.
    pub incoming: u32,
    /// Peer recoveries that it sends.
    pub outgoing: u32,
}

/// A node's place among those that may be filled: fewest copies first, then those that need not wait, then
/// by name.
type FillRank = (u32, bool, usize);

/// The counts of each present node. Built once a batch of events, and kept up to date while copies are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecoveryCounts {
    names: Arc<NodeNames>,
    counts: Vec<NodeRecoveryCounts>,
    limits: Limits,
    /// For primaries that come up, and for replicas.
    orders: [BTreeSet<FillRank>; 2],
}

impl RecoveryCounts {
    /// Looks at every copy of the indices that have changed since they were counted last.
    pub fn of(state: &ClusterState, settings: &Settings) -> Self {
        let (names, counts) = state.counted.count(&state.present, &state.routing);
        let both = settings.node_concurrent_recoveries();
        let limits = Limits {
            initial_primaries: settings.node_initial_primaries_recoveries(),
            incoming: settings.node_concurrent_incoming_recoveries().unwrap_or(both),
            outgoing: settings.node_concurrent_outgoing_recoveries().unwrap_or(both),
        };
        let mut counts = RecoveryCounts { names, counts, limits, orders: Default::default() };
        for number in 0..counts.names.len() {
            counts.insert_rank(number);
        }
        counts
    }

    /// Counts a copy on a node, and its recovery where it is one.
    pub fn add(&mut self, node: &str, recovery: Option<&RecoverySource>) {
        self.change(node, recovery, |number, more| number + more);
    }

    /// Takes back what [`RecoveryCounts::add`] counted.
    pub fn remove(&mut self, node: &str, recovery: Option<&RecoverySource>) {
        self.change(node, recovery, |number, less| number - less);
    }

    fn change(&mut self, node: &str, recovery: Option<&RecoverySource>, step: fn(u32, u32) -> u32) {
        // A source's place does not depend on what it sends.
        let number = self.number(node);
        if let Some(number) = number {
            for primaries in [true, false] {
                let rank = self.rank(number, primaries);
                self.orders[usize::from(primaries)].remove(&rank);
            }
        }
        let names = self.names.clone();
        each_node(&names, Some(node), recovery, |on, by| self.counts[on].change(by, step));
        if let Some(number) = number {
            self.insert_rank(number);
        }
    }

    fn number(&self, node: &str) -> Option<usize> {
        self.names.place(node)
    }

    fn rank(&self, number: usize, primaries: bool) -> FillRank {
        let on_node = self.counts[number];
        let busy = match primaries {
            true => on_node.initial_primaries >= self.limits.initial_primaries,
            false => on_node.incoming >= self.limits.incoming,
        };
        (on_node.copies, busy, number)
    }

    fn insert_rank(&mut self, number: usize) {
        for primaries in [true, false] {
            let rank = self.rank(number, primaries);
            self.orders[usize::from(primaries)].insert(rank);
        }
    }

    pub fn get(&self, node: &str) -> NodeRecoveryCounts {
        self.number(node).map(|number| self.counts[number]).unwrap_or_default()
    }

    /// Whether any primary may come up anywhere; or whether any node may receive a peer recovery, and any may send one.
    pub(crate) fn have_room(&self, primaries: bool) -> bool {
        let Limits { initial_primaries, incoming, outgoing } = self.limits;
        let any = |has_room: fn(&NodeRecoveryCounts, u32) -> bool, most| {
            self.counts.iter().any(|on_node| has_room(on_node, most))
        };
        match primaries {
            true => any(|on_node, most| on_node.initial_primaries < most, initial_primaries),
            false => {
                any(|on_node, most| on_node.incoming < most, incoming)
                    && any(|on_node, most| on_node.outgoing < most, outgoing)
            }
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The name of a node by its place among them.
    pub fn name(&self, number: usize) -> &str {
        self.names.name(number)
    }

    /// Counts `number` nodes on from the first, around and around, and leaves out those that are `uncounted`; answers
    /// the place of that node among all.
    pub fn place_of(&self, number: usize, uncounted: &[String]) -> usize {
        let places: BTreeSet<usize> =
            uncounted.iter().filter_map(|name| self.number(name)).collect();
        let counted = self.nodes() - places.len();
        let first = number % counted.max(1);
        places.into_iter().fold(first, |place, other| place + usize::from(other <= place))
    }

    pub fn nodes(&self) -> usize {
        self.names.len()
    }

    /// Sorts nodes, each by its place among the names: the fewest copies first. Equals stay in their order.
    pub fn sort(&self, nodes: &mut [usize]) {
        nodes.sort_by_key(|number| self.counts[*number].copies);
    }

    /// The same, the lightest for an index first.
    pub fn sort_for(&self, nodes: &mut [usize], layout: &IndexLayout) {
        let weigh =
            |(number, on_node): (usize, &NodeRecoveryCounts)| layout.weight(number, on_node.copies);
        let weights: Vec<f64> = self.counts.iter().enumerate().map(weigh).collect();
        nodes.sort_by(|a, b| weights[*a].total_cmp(&weights[*b]));
    }

    /// The lightest node for a replica of this number of those that may hold it, by its place among the names; of
    /// equals the one whose turn it is.
    ///
    /// Looks at the nodes that hold copies of the index, and at the head of the order of the others.
    pub fn lightest(
        &self,
        layout: &IndexLayout,
        number: u32,
        may_hold: impl Fn(&str) -> bool,
    ) -> Option<usize> {
        let order = &self.orders[usize::from(false)];
        let fits = |node: &usize| may_hold(self.names.name(*node));
        // The others differ by this order alone: where a primary of the index is, it is held.
        let is_other = |node: &usize| !layout.held.contains_key(node);
        let other = order.iter().map(|(_, _, node)| *node).filter(is_other).find(fits);
        let weighed = |node: usize| {
            let (copies, busy, _) = self.rank(node, false);
            let weight = (layout.has_its_share(node), layout.weight(node, copies), busy);
            (weight, layout.highest.turn(node, number), node)
        };
        let mut nodes: Vec<_> =
            other.into_iter().chain(layout.held.keys().copied()).map(weighed).collect();
        nodes.sort_by(|a, b| compare(a.0, b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        nodes.into_iter().map(|(_, _, node)| node).find(fits)
    }

    /// The nodes that are to take a replica as soon as this one, each by its place among the names.
    pub fn equals(&self, node: &str) -> Vec<usize> {
        let Some(number) = self.number(node) else { return Vec::new() };
        let (copies, busy, _) = self.rank(number, false);
        let equals = (copies, busy, 0)..=(copies, busy, usize::MAX);
        self.orders[usize::from(false)].range(equals).map(|(_, _, number)| *number).collect()
    }

    /// The present nodes, the one to be filled next first. Equals follow by name from the node at `from` on, and
    /// then those before it.
    pub fn in_order(&self, primaries: bool, from: usize) -> impl Iterator<Item = &str> {
        let order = &self.orders[usize::from(primaries)];
        let from = from % self.names.len().max(1);
        let mut class = order.first().map(|(copies, busy, _)| (*copies, *busy));
        std::iter::from_fn(move || {
            let (copies, busy) = class?;
            let (first, split) = ((copies, busy, 0), (copies, busy, from));
            let after = (copies, busy, usize::MAX);
            class = order.range(after..).next().map(|(copies, busy, _)| (*copies, *busy));
            Some(order.range(split..after).chain(order.range(first..split)))
        })
        .flatten()
        .map(|(_, _, number)| self.names.name(*number))
    }
}

/// Whether a node has its share, its weight, and whether it has to be waited for.
fn compare(one: (bool, f64, bool), other: (bool, f64, bool)) -> Ordering {
    let by_weight = one.0.cmp(&other.0).then(one.1.total_cmp(&other.1));
    by_weight.then(one.2.cmp(&other.2))
}

/// How the copies of an index lie on the nodes, each of these by its place among the names.
#[derive(Debug)]
pub(super) struct IndexLayout {
    pub highest: HighestPrimaries,
    /// How many of them a node holds that holds some.
    held: BTreeMap<usize, u32>,
    /// As many as nodes hold on average, and a part of one more. None where no node comes last for its share
    /// (`ConstraintTypes.isIndexShardsPerNodeBreached` of OpenSearch).
    share: Option<u32>,
    balance: Balance,
}

impl IndexLayout {
    /// Whether replicas go by it.
    pub fn is_asked_for(settings: &Settings) -> bool {
        settings.allocates_replicas_in_a_ring()
            || settings.allocation_weights() != AllocationWeights::Copies
    }

    /// Looks at every shard of the index.
    pub fn of(
        counts: &RecoveryCounts,
        settings: &Settings,
        shards: &[IndexShardRoutingTable],
    ) -> Self {
        let is_there = |name: &&String| counts.number(name).is_some();
        let uncounted = settings.uncounted_nodes().iter().filter(is_there).count();
        let copies: usize = shards.iter().map(|shard| shard.copies.len()).sum();
        let share = copies.div_ceil((counts.nodes() - uncounted).max(1)) as u32;
        let has_share = settings.allocation_weights() == AllocationWeights::Opensearch;
        let mut layout = IndexLayout {
            highest: HighestPrimaries::of(counts, shards),
            held: BTreeMap::new(),
            share: has_share.then_some(share),
            balance: settings.balance(),
        };
        let assigned = shards.iter().flat_map(IndexShardRoutingTable::assigned);
        for copy in assigned.filter(|copy| !copy.is_relocating()) {
            layout.add(counts, copy.node.as_deref().unwrap_or_default());
        }
        layout
    }

    /// Counts a copy that is placed on a node, or waits for it.
    pub fn add(&mut self, counts: &RecoveryCounts, node: &str) {
        if let Some(number) = counts.number(node) {
            *self.held.entry(number).or_default() += 1;
        }
    }

    fn held(&self, number: usize) -> u32 {
        self.held.get(&number).copied().unwrap_or(0)
    }

    fn has_its_share(&self, number: usize) -> bool {
        self.share.is_some_and(|share| self.held(number) >= share)
    }

    /// The weight of a node with so many copies of all indices, beside that of an empty one.
    fn weight(&self, number: usize, copies: u32) -> f64 {
        let load = Load { copies: f64::from(copies), of_index: f64::from(self.held(number)) };
        self.balance.weight(load, Load::default())
    }
}

/// The highest number among the primaries of an index on each node, by the node's place among the names.
#[derive(Debug)]
pub(super) struct HighestPrimaries(Vec<Option<u32>>);

impl HighestPrimaries {
    /// Looks at every shard of the index.
    pub fn of(counts: &RecoveryCounts, shards: &[IndexShardRoutingTable]) -> Self {
        let mut highest = vec![None; counts.names.len()];
        for (number, shard) in (0..).zip(shards) {
            let primary = shard.primary();
            // One that is moved counts where it goes.
            let node = primary.target.as_deref().unwrap_or(primary).node.as_deref();
            if let Some(node) = node.and_then(|node| counts.number(node)) {
                highest[node] = Some(number);
            }
        }
        HighestPrimaries(highest)
    }

    /// Of these nodes, in the order in which they are to take a replica of a shard: those with a higher primary first,
    /// from its number on, then the others, from below. So replicas of shards whose primaries are on one node are on
    /// several (`LocalShardsBalancer.decideAllocateUnassigned` of OpenSearch, where it breaks ties).
    pub fn ring(&self, mut nodes: Vec<usize>, number: u32) -> Vec<usize> {
        nodes.sort_by_key(|node| self.turn(*node, number));
        nodes
    }

    fn turn(&self, node: usize, number: u32) -> (bool, Option<u32>) {
        (self.0[node] < Some(number), self.0[node])
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    #[test]
    fn the_emptiest_node_that_need_not_wait_comes_first() {
        let mut lab = Lab::new(3);
        lab.create("a", 3, 0);
        let mut counts = RecoveryCounts::of(&lab.state, &lab.state.settings());
        let order = |counts: &RecoveryCounts, primaries| -> Vec<String> {
            counts.in_order(primaries, 0).map(str::to_owned).collect()
        };
        assert_eq!(order(&counts, true), ["n1", "n2", "n3"]);
        let from = RecoverySource::Peer { from_node: "n2".to_owned() };
        counts.add("n1", Some(&from));
        assert_eq!(order(&counts, false), ["n2", "n3", "n1"]);
        assert_eq!((counts.get("n1").incoming, counts.get("n2").outgoing), (1, 1));
        counts.remove("n1", Some(&from));
        assert_eq!(order(&counts, false), ["n1", "n2", "n3"]);
        let from_n2: Vec<&str> = counts.in_order(false, 4).collect();
        assert_eq!(from_n2, ["n2", "n3", "n1"]);
        // Each of n1's places is taken, so that equals are preferred that have one.
        for _ in 0..3 {
            counts.add("n1", Some(&RecoverySource::EmptyStore));
            for node in ["n2", "n3"] {
                counts.add(node, None);
            }
        }
        assert_eq!(order(&counts, true), ["n2", "n3", "n1"]);
        assert_eq!(order(&counts, false), ["n1", "n2", "n3"]);
    }
}
