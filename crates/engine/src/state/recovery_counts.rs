//! What is on each node, and which node is to be filled first.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::counted::{NodeNames, NodeRecoveryCounts, each_node};
use super::{ClusterState, IndexShardRoutingTable, RecoverySource};
use crate::settings::Settings;

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
        nodes.sort_by_key(|node| (self.0[*node] < Some(number), self.0[*node]));
        nodes
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
