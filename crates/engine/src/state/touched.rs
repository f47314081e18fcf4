//! The shards that a batch of events touched: all that is left to look at after it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, ClusterState};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched(BTreeMap<String, BTreeSet<u32>>);

impl Touched {
    pub fn add(&mut self, index: &str, shard: u32) {
        if let Some(shards) = self.0.get_mut(index) {
            shards.insert(shard);
        } else {
            self.0.insert(index.to_owned(), BTreeSet::from([shard]));
        }
    }

    fn add_index(&mut self, state: &ClusterState, index: &str) {
        if let Some(shards) = state.routing.get(index) {
            let numbers = 0..u32::try_from(shards.len()).expect("an index has few shards");
            self.0.entry(index.to_owned()).or_default().extend(numbers);
        }
    }

    pub(crate) fn add_changes(&mut self, state: &ClusterState, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Assigned { index, shard, .. }
                | Change::Started { index, shard }
                | Change::Copy { index, shard } => self.add(index, *shard),
                Change::Index { index } => self.add_index(state, index),
                Change::Cluster | Change::Other => {}
            }
        }
    }

    pub fn merge(&mut self, other: Touched) {
        for (index, shards) in other.0 {
            self.0.entry(index).or_default().extend(shards);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<u32>)> {
        self.0.iter().map(|(index, shards)| (index.as_str(), shards))
    }
}
