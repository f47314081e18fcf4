//! Which copies a new state may change: a node with thousands of copies looks at those of the indices that changed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::shard::ShardKey;
use crate::state::{ChangedIndices, ClusterState};

/// The copies that a new state may change.
pub(crate) enum ChangedCopies {
    /// All copies here.
    All,
    /// Those of indices that were changed, created or deleted.
    Of(Arc<ChangedIndices>),
}

impl ChangedCopies {
    pub(crate) fn between(old: Option<&Arc<ClusterState>>, new: &ClusterState) -> ChangedCopies {
        let same = |old: &&Arc<ClusterState>| {
            (&old.persistent, &old.transient) == (&new.persistent, &new.transient)
        };
        match old.filter(same) {
            Some(old) => ChangedCopies::Of(new.changed_indices(old)),
            None => ChangedCopies::All,
        }
    }

    /// Of the copies here those that are looked at.
    pub(crate) fn among<V: Clone>(&self, copies: &BTreeMap<ShardKey, V>) -> Vec<(ShardKey, V)> {
        let both = |(key, copy): (&ShardKey, &V)| (key.clone(), copy.clone());
        match self {
            ChangedCopies::All => copies.iter().map(both).collect(),
            ChangedCopies::Of(indices) => {
                let uuids = indices.uuids.iter();
                uuids.flat_map(|uuid| copies.range(all_of(uuid))).map(both).collect()
            }
        }
    }
}

/// The keys of all copies of an index.
pub(crate) fn all_of(uuid: &str) -> RangeInclusive<ShardKey> {
    (uuid.to_owned(), 0)..=(uuid.to_owned(), u32::MAX)
}
