//! What differs between a state and the one before: found once, and asked for by every node.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use super::ClusterState;
use super::cluster::{Places, ShardId};

/// The indices that differ between two states, are new or are gone.
#[derive(Debug)]
pub(crate) struct ChangedIndices {
    /// Their names.
    pub(crate) names: BTreeSet<String>,
    /// Their UUIDs in either state, and those of the indices that were deleted in between.
    pub(crate) uuids: BTreeSet<String>,
    /// Where their copies are in the new state.
    places: Places,
}

impl ChangedIndices {
    fn between(old: &ClusterState, new: &ClusterState) -> Self {
        let names = new.changed_since(old);
        let uuid =
            |state: &ClusterState, name: &String| Some(state.indices.get(name)?.uuid.clone());
        let uuids = [old, new].into_iter().flat_map(|state| {
            let uuids = names.iter().filter_map(move |name| uuid(state, name));
            uuids.collect::<Vec<_>>()
        });
        let uuids = uuids.chain(new.buried_since(old)).collect();
        let tables = names.iter().filter_map(|name| new.routing.get_key_value(name));
        let places = Places::of(tables);
        ChangedIndices { names, uuids, places }
    }

    /// Index and number of each of their shards that has a copy on a node in the new state, in order.
    pub(crate) fn on(&self, node: &str) -> &[ShardId] {
        self.places.on(node)
    }
}

/// What differs from the state before; known by its place in memory, which nothing else can take while this is here.
///
/// A clone begins without it, and whoever makes a state from another one forgets it, so that it never outlives a
/// change.
#[derive(Debug, Default)]
pub(super) struct SinceBefore(OnceLock<(Weak<ClusterState>, Arc<ChangedIndices>)>);

impl Clone for SinceBefore {
    fn clone(&self) -> Self {
        SinceBefore::default()
    }
}

impl PartialEq for SinceBefore {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ClusterState {
    /// What differs from an older state. Costs a look at each index, but for the second node that asks for the same
    /// two states.
    pub(crate) fn changed_indices(&self, old: &Arc<ClusterState>) -> Arc<ChangedIndices> {
        let between = || (Arc::downgrade(old), Arc::new(ChangedIndices::between(old, self)));
        let (before, changed) = self.since_before.0.get_or_init(between);
        match std::ptr::eq(before.as_ptr(), Arc::as_ptr(old)) {
            true => changed.clone(),
            false => between().1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::Lab;
    use super::*;

    #[test]
    fn two_other_states_are_compared_anew() {
        let mut lab = Lab::new(2);
        lab.create("a", 1, 1);
        let first = Arc::new(lab.state.clone());
        lab.create("b", 2, 1);
        let second = Arc::new(lab.state.clone());
        lab.create("c", 1, 0);
        let third = lab.state.clone();
        let names =
            |old: &Arc<ClusterState>| Vec::from_iter(third.changed_indices(old).names.clone());
        assert_eq!(names(&second), ["c"]);
        assert_eq!(names(&first), ["b", "c"]);
        assert_eq!(names(&second), ["c"]);
        let changed = second.changed_indices(&first);
        let on: Vec<(&str, u32)> = changed.on("n1").iter().map(|(i, n)| (&**i, *n)).collect();
        assert_eq!(on, [("b", 0), ("b", 1)], "the replica of neither is placed before its primary");
    }
}
