//! How many copies a node may hold: of all indices, and of one.
//!
//! The `ShardsLimitAllocationDecider` of Elasticsearch and OpenSearch. A copy that is being moved counts where it goes.
//! A primary that comes up from the disk is not asked: it is nowhere else, and the field forces it there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ClusterState, IndexMeta, IndexShardRoutingTable, ShardCopy};
use crate::settings::{IndexSettings, Settings};

const OF_ALL: &str = "cluster.routing.allocation.total_shards_per_node";
const OF_AN_INDEX: &str = "index.routing.allocation.total_shards_per_node";

/// A limit, and the copies that it counts on each node.
#[derive(Debug)]
struct Limit {
    most: u32,
    on_nodes: BTreeMap<String, u32>,
}

impl Limit {
    fn new(most: Option<u32>) -> Option<Self> {
        let most = most.filter(|most| *most > 0)?;
        Some(Limit { most, on_nodes: BTreeMap::new() })
    }
}

/// The limits that are set.
#[derive(Debug)]
pub(super) struct ShardsLimit {
    of_all: Option<Limit>,
    by_index: BTreeMap<String, Limit>,
}

impl ShardsLimit {
    pub fn of(state: &ClusterState, settings: &Settings) -> Self {
        let of_index = |(name, meta): (&String, &Arc<IndexMeta>)| {
            let most = IndexSettings::total_shards_per_node_of(&meta.settings);
            Some((name.clone(), Limit::new(most)?))
        };
        let mut limits = ShardsLimit {
            of_all: Limit::new(settings.total_shards_per_node()),
            by_index: state.indices.iter().filter_map(of_index).collect(),
        };
        for (index, shards) in &state.routing {
            if limits.of_all.is_none() && !limits.by_index.contains_key(index) {
                continue;
            }
            let assigned = shards.iter().flat_map(IndexShardRoutingTable::assigned);
            let counted = assigned.filter(|copy| !copy.is_relocating());
            for node in counted.filter_map(|copy| copy.node.as_deref()) {
                limits.change(index, node, |count| count + 1);
            }
        }
        limits
    }

    /// Whether a node may hold any number of copies.
    pub fn is_empty(&self) -> bool {
        self.of_all.is_none() && self.by_index.is_empty()
    }

    /// Whether every copy may stay where it is.
    pub fn all_may_stay(&self) -> bool {
        let keeps = |limit: &Limit| limit.on_nodes.values().all(|count| *count <= limit.most);
        self.of_all.iter().chain(self.by_index.values()).all(keeps)
    }

    /// A copy of an index is to be made on a node, or moved there from another.
    pub fn place(&mut self, index: &str, to: &str, from: Option<&str>) {
        self.change(index, to, |count| count + 1);
        if let Some(from) = from {
            self.change(index, from, |count| count.saturating_sub(1));
        }
    }

    fn change(&mut self, index: &str, node: &str, step: impl Fn(u32) -> u32) {
        for limit in self.of_all.iter_mut().chain(self.by_index.get_mut(index)) {
            let count = limit.on_nodes.entry(node.to_owned()).or_default();
            *count = step(*count);
        }
    }

    /// What keeps a copy of a shard from a node, whether it is there or would go there.
    pub fn against(
        &self,
        index: &str,
        shard: &IndexShardRoutingTable,
        copy: &ShardCopy,
        node: &str,
    ) -> Option<TooMany> {
        if copy.primary && !copy.is_started() && shard.was_started() {
            return None;
        }
        let too_many = |limit: &Limit, setting| {
            let count = limit.on_nodes.get(node).copied().unwrap_or(0);
            let with_it = if copy.is_on(node) { count } else { count + 1 };
            (with_it > limit.most).then_some(TooMany { setting, most: limit.most, count })
        };
        let of_all = self.of_all.as_ref().and_then(|limit| too_many(limit, OF_ALL));
        let of_index = || self.by_index.get(index).and_then(|limit| too_many(limit, OF_AN_INDEX));
        of_all.or_else(of_index)
    }
}

/// A node that holds more copies than it may, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    setting: &'static str,
    most: u32,
    count: u32,
}

impl TooMany {
    pub fn words(&self) -> String {
        let TooMany { setting, most, count } = self;
        let of = if *setting == OF_ALL { "all indices" } else { "the index" };
        format!("the node holds {count} of the copies of {of}, and {setting} is [{most}]")
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::manager::lab::Lab;
    use super::*;

    fn on(lab: &Lab) -> [usize; 3] {
        ["n1", "n2", "n3"].map(|node| lab.on(node))
    }

    #[test]
    fn a_node_takes_no_more_copies_of_an_index_than_it_may() {
        let mut lab = Lab::started(3, (3, 1));
        assert_eq!(on(&lab), [2, 2, 2]);
        lab.set_index("a", OF_AN_INDEX, "2");
        lab.leave("n3");
        assert_eq!(lab.initializing(), [], "both others hold as many as they may");
        let words = "the node holds 2 of the copies of the index, and \
                     index.routing.allocation.total_shards_per_node is [2]";
        let nodes = explain(&lab.state, lab.now_ms).remove(0).nodes;
        let said = nodes.into_iter().filter_map(|node| node.reason);
        let said: Vec<_> = said.filter(|reason| reason.decider == "shards_limit").collect();
        assert!(!said.is_empty() && said.iter().all(|reason| reason.words == words), "{said:?}");
        lab.create("b", 2, 0);
        lab.start_all();
        assert_eq!(on(&lab), [3, 3, 0], "another index is not counted");
        lab.set_index("a", OF_AN_INDEX, "3");
        lab.start_all();
        assert_eq!(on(&lab), [4, 4, 0]);
    }

    #[test]
    fn what_is_too_much_for_a_node_is_moved_and_no_more() {
        let mut lab = Lab::new(3);
        lab.leave("n3");
        lab.create("a", 4, 0);
        lab.create("b", 4, 0);
        lab.start_all();
        assert_eq!(on(&lab), [4, 4, 0]);
        lab.join("n3");
        lab.set(OF_ALL, "3");
        assert_eq!(lab.initializing().len(), 2, "one of each node");
        lab.start_all();
        assert_eq!(on(&lab), [3, 3, 2]);
        lab.set(OF_ALL, "2");
        lab.start_all();
        assert_eq!(on(&lab), [3, 3, 2], "n3 may hold no more, and the others stay where they are");
        for unlimited in ["0", "-1"] {
            lab.set(OF_ALL, unlimited);
            assert!(ShardsLimit::of(&lab.state, &lab.state.settings()).is_empty(), "{unlimited}");
        }
    }

    #[test]
    fn a_primary_comes_back_from_its_disk_whatever_the_limit() {
        let mut lab = Lab::started(2, (4, 0));
        lab.leave("n2");
        lab.set(OF_ALL, "1");
        lab.join("n2");
        lab.start_all();
        assert_eq!([lab.on("n1"), lab.on("n2")], [2, 2]);
    }
}
