//! Which copies a new state may change: a node with thousands of copies looks at those of the indices that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::shard::ShardKey;
use crate::state::ClusterState;

/// The copies that a new state may change.
pub(crate) enum ChangedCopies {
    /// All copies here.
    All,
    /// Those of indices that were changed, created or deleted: the names of these indices, and their UUIDs.
    Of(BTreeSet<String>, BTreeSet<String>),
}

impl ChangedCopies {
    pub(crate) fn between(old: Option<&ClusterState>, new: &ClusterState) -> ChangedCopies {
        let same = |old: &&ClusterState| {
            (&old.persistent, &old.transient) == (&new.persistent, &new.transient)
        };
        let Some(old) = old.filter(same) else { return ChangedCopies::All };
        let names = new.changed_since(old);
        let uuids = |state: &ClusterState| -> Vec<String> {
            names.iter().filter_map(|name| Some(state.indices.get(name)?.uuid.clone())).collect()
        };
        let uuids = uuids(old).into_iter().chain(uuids(new)).chain(new.buried_since(old)).collect();
        ChangedCopies::Of(names, uuids)
    }

    /// Of the copies here those that are looked at.
    pub(crate) fn among<V: Clone>(&self, copies: &BTreeMap<ShardKey, V>) -> Vec<(ShardKey, V)> {
        let both = |(key, copy): (&ShardKey, &V)| (key.clone(), copy.clone());
        match self {
            ChangedCopies::All => copies.iter().map(both).collect(),
            ChangedCopies::Of(_, uuids) => {
                uuids.iter().flat_map(|uuid| copies.range(all_of(uuid))).map(both).collect()
            }
        }
    }
}

/// The keys of all copies of an index.
pub(crate) fn all_of(uuid: &str) -> RangeInclusive<ShardKey> {
    (uuid.to_owned(), 0)..=(uuid.to_owned(), u32::MAX)
}
