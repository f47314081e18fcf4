//! What differs between a state and the one before, with the places of the copies.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::IndexShardRoutingTable;

pub(crate) type ShardId = (Arc<str>, u32);

/// The shards that have a copy on each node, in order.
#[derive(Debug)]
pub(super) struct Places(HashMap<String, Vec<ShardId>>);

impl Places {
    /// Of indices with their shards.
    pub fn of<'a>(
        tables: impl Iterator<Item = (&'a String, &'a Arc<Vec<IndexShardRoutingTable>>)>,
    ) -> Self {
        let mut places: HashMap<String, Vec<ShardId>> = HashMap::new();
        for (index, shards) in tables {
            let index: Arc<str> = Arc::from(index.as_str());
            for (number, shard) in (0..).zip(shards.iter()) {
                for node in shard.assigned().filter_map(|copy| copy.node.as_ref()) {
                    match places.get_mut(node) {
                        Some(places) => places.push((index.clone(), number)),
                        None => {
                            places.insert(node.clone(), vec![(index.clone(), number)]);
                        }
                    }
                }
            }
        }
        Places(places)
    }

    pub fn on(&self, node: &str) -> &[ShardId] {
        self.0.get(node).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The indices that differ between two states, are new or are gone.
#[derive(Debug)]
pub(crate) struct ChangedIndices {
    pub(crate) names: BTreeSet<String>,
    /// Their UUIDs in either state, and those of the indices that were deleted in between.
    pub(crate) uuids: BTreeSet<String>,
    /// Where their copies are in the new state.
    pub(super) places: Places,
}

impl ChangedIndices {
    /// Index and number of each of their shards that has a copy on a node in the new state, in order.
    pub(crate) fn on(&self, node: &str) -> &[ShardId] {
        self.places.on(node)
    }
}
