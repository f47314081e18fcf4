//! What is on each node: counted from an earlier state where one is at hand, so that indices which have not changed
//! since need not be looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::differing::differing;
use super::{IndexShardRoutingTable, RecoverySource};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeRecoveryCounts {
    /// Without those that are being moved away.
    pub copies: u32,
    /// Primaries that come up from disk, from nothing or from remote.
    pub initial_primaries: u32,
    /// Peer recoveries that it receives.
    pub incoming: u32,
    /// Peer recoveries that it sends.
    pub outgoing: u32,
}

impl NodeRecoveryCounts {
    pub fn change(&mut self, by: NodeRecoveryCounts, step: fn(u32, u32) -> u32) {
        self.copies = step(self.copies, by.copies);
        self.initial_primaries = step(self.initial_primaries, by.initial_primaries);
        self.incoming = step(self.incoming, by.incoming);
        self.outgoing = step(self.outgoing, by.outgoing);
    }
}

/// Copies by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyCounts {
    /// Primaries among them.
    pub started: u32,
    pub started_primaries: u32,
    /// Primaries that are not.
    pub other_primaries: u32,
    pub relocating: u32,
    /// On a node, and not started.
    pub initializing: u32,
    pub unassigned: u32,
}

impl CopyCounts {
    pub fn of<'a>(shards: impl IntoIterator<Item = &'a IndexShardRoutingTable>) -> Self {
        let mut counts = CopyCounts::default();
        for copy in shards.into_iter().flat_map(|shard| &shard.copies) {
            if copy.is_started() {
                counts.started += 1;
                counts.started_primaries += u32::from(copy.primary);
                counts.relocating += u32::from(copy.is_relocating());
                continue;
            }
            counts.initializing += u32::from(copy.is_assigned());
            counts.unassigned += u32::from(!copy.is_assigned());
            counts.other_primaries += u32::from(copy.primary);
        }
        counts
    }

    pub fn change(&mut self, by: CopyCounts, step: fn(u32, u32) -> u32) {
        self.started_primaries = step(self.started_primaries, by.started_primaries);
        self.other_primaries = step(self.other_primaries, by.other_primaries);
        self.started = step(self.started, by.started);
        self.relocating = step(self.relocating, by.relocating);
        self.initializing = step(self.initializing, by.initializing);
        self.unassigned = step(self.unassigned, by.unassigned);
    }
}

/// The names of the present nodes, each with its place among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NodeNames {
    /// Sorted.
    all: Vec<String>,
    /// Nothing iterates over it, so that it need not be ordered.
    places: HashMap<String, usize>,
}

impl NodeNames {
    fn of(present: &BTreeSet<String>) -> Self {
        let all: Vec<String> = present.iter().cloned().collect();
        NodeNames { places: all.iter().cloned().zip(0..).collect(), all }
    }

    pub fn place(&self, node: &str) -> Option<usize> {
        self.places.get(node).copied()
    }

    pub fn name(&self, place: usize) -> &str {
        &self.all[place]
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }
}

type Routing = BTreeMap<String, Arc<Vec<IndexShardRoutingTable>>>;

/// The counts of an earlier state, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted(Option<Arc<Earlier>>);

#[derive(Debug)]
struct Earlier {
    present: Arc<BTreeSet<String>>,
    names: Arc<NodeNames>,
    /// Held so that whoever changes a list of shards copies it first: what was counted stays comparable by its place.
    routing: Routing,
    counts: Vec<NodeRecoveryCounts>,
    copies: CopyCounts,
    lacking: BTreeSet<String>,
}

/// The counts follow from the state: they make no two states differ.
impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A new base is counted once one in so many indices differs from the old one. With fewer indices it gains nothing.
const CHANGED_ONE_IN: usize = 32;

impl Counted {
    /// Has later counts begin from this state, where it is far from the one that they begin from.
    pub fn follow(&mut self, present: &Arc<BTreeSet<String>>, routing: &Routing) {
        if routing.len() < CHANGED_ONE_IN {
            return;
        }
        let is_near = self.0.as_ref().is_some_and(|earlier| {
            let changed = differing(&earlier.routing, routing).count();
            Arc::ptr_eq(&earlier.present, present) && changed * CHANGED_ONE_IN <= routing.len()
        });
        if !is_near {
            let ((names, counts), lacking) = (self.count(present, routing), self.lacking(routing));
            let copies = self.copies(routing);
            let (present, routing) = (present.clone(), routing.clone());
            self.0 = Some(Arc::new(Earlier { present, names, routing, counts, copies, lacking }));
        }
    }

    /// The present nodes, and what is on each, in their order.
    pub fn count(
        &self,
        present: &Arc<BTreeSet<String>>,
        routing: &Routing,
    ) -> (Arc<NodeNames>, Vec<NodeRecoveryCounts>) {
        let nothing = Routing::new();
        let earlier = self.0.as_ref().filter(|earlier| Arc::ptr_eq(&earlier.present, present));
        let (names, mut counts, before) = match earlier {
            Some(earlier) => (earlier.names.clone(), earlier.counts.clone(), &earlier.routing),
            None => {
                let names = Arc::new(NodeNames::of(present));
                let counts = vec![NodeRecoveryCounts::default(); names.len()];
                (names, counts, &nothing)
            }
        };
        for (_, old, new) in differing(before, routing) {
            if let Some(shards) = new {
                each_copy(&names, shards, |node, more| counts[node].change(more, |a, b| a + b));
            }
            if let Some(shards) = old {
                each_copy(&names, shards, |node, less| counts[node].change(less, |a, b| a - b));
            }
        }
        (names, counts)
    }

    /// All copies.
    pub fn copies(&self, routing: &Routing) -> CopyCounts {
        let nothing = Routing::new();
        let (mut copies, before) = match &self.0 {
            Some(earlier) => (earlier.copies, &earlier.routing),
            None => (CopyCounts::default(), &nothing),
        };
        for (_, old, new) in differing(before, routing) {
            let count = |shards: Option<&Arc<Vec<_>>>| {
                CopyCounts::of(shards.into_iter().flat_map(|shards| shards.iter()))
            };
            copies.change(count(new), |all, more| all + more);
            copies.change(count(old), |all, less| all - less);
        }
        copies
    }

    /// The indices that have a copy on no node.
    pub fn lacking(&self, routing: &Routing) -> BTreeSet<String> {
        let nothing = Routing::new();
        let (mut lacking, before) = match &self.0 {
            Some(earlier) => (earlier.lacking.clone(), &earlier.routing),
            None => (BTreeSet::new(), &nothing),
        };
        for (index, _, new) in differing(before, routing) {
            lacking.remove(index);
            if new.is_some_and(|shards| lacks(shards)) {
                lacking.insert(index.clone());
            }
        }
        lacking
    }
}

fn lacks(shards: &[IndexShardRoutingTable]) -> bool {
    shards.iter().flat_map(|shard| &shard.copies).any(|copy| !copy.is_assigned())
}

/// Tells of each copy what [`each_node`] does.
fn each_copy(
    names: &NodeNames,
    shards: &[IndexShardRoutingTable],
    mut tell: impl FnMut(usize, NodeRecoveryCounts),
) {
    let assigned = shards.iter().flat_map(IndexShardRoutingTable::assigned);
    for copy in assigned.filter(|copy| !copy.is_relocating()) {
        each_node(names, copy.node.as_deref(), copy.recovery(), &mut tell);
    }
}

/// Tells what a copy on a node adds to those that are there: to this one, and to the one that it recovers from.
pub(super) fn each_node(
    names: &NodeNames,
    node: Option<&str>,
    recovery: Option<&RecoverySource>,
    mut tell: impl FnMut(usize, NodeRecoveryCounts),
) {
    let none = NodeRecoveryCounts::default();
    let place = |node: &str| names.place(node);
    if let Some(source) = recovery.and_then(RecoverySource::peer).and_then(place) {
        tell(source, NodeRecoveryCounts { outgoing: 1, ..none });
    }
    let Some(node) = node.and_then(place) else { return };
    let copies = NodeRecoveryCounts { copies: 1, ..none };
    tell(
        node,
        match recovery {
            None => copies,
            Some(RecoverySource::Peer { .. }) => NodeRecoveryCounts { incoming: 1, ..copies },
            Some(_) => NodeRecoveryCounts { initial_primaries: 1, ..copies },
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    #[test]
    fn what_is_counted_from_an_earlier_state_is_what_is_counted_anew() {
        let mut lab = Lab::new(4);
        for number in 0..2 * CHANGED_ONE_IN {
            lab.create(&format!("i{number:02}"), 2, 1);
        }
        lab.start_all();
        let counts = |lab: &Lab, from: &Counted| from.count(&lab.state.present, &lab.state.routing);
        let is_same = |lab: &Lab| {
            let (counted, anew) = (&lab.state.counted, &Counted::default());
            let routing = &lab.state.routing;
            counts(lab, counted) == counts(lab, anew)
                && counted.copies(routing) == anew.copies(routing)
                && counted.lacking(routing) == anew.lacking(routing)
        };
        // What the lost node held is made elsewhere, two copies of a node at a time, while others wait.
        lab.leave("n4");
        let earlier = lab.state.counted.clone();
        assert!(earlier.0.is_some() && is_same(&lab));
        for _ in 0..8 {
            let first = lab.initializing()[0].clone();
            lab.start(&first);
            assert!(is_same(&lab), "{first:?}");
        }
        let begins_from = lab.state.counted.0.as_ref().unwrap();
        let changed = differing(&begins_from.routing, &lab.state.routing).count();
        assert!(changed <= 8, "{changed} of 64 indices are counted again");
        lab.join("n4");
        assert!(is_same(&lab));
    }
}
