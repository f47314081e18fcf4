//! What a state says of a copy's index.

use std::cell::{Ref, RefCell};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use crate::state::{ClusterState, IndexMeta, IndexShardRoutingTable};

/// The index of a copy in the state that was asked last. A write asks some twenty times, and each search of a state
/// compares dozens of names where there are hundreds of indices.
#[derive(Default)]
pub(super) struct InState(RefCell<Found>);

/// The state is known by its place in memory, which nothing else can take while this is here. Nor does it change there:
/// [`Arc::make_mut`] moves what is looked at from here.
#[derive(Default)]
struct Found {
    state: Weak<ClusterState>,
    index: Option<Arc<IndexMeta>>,
    shards: Option<Arc<Vec<IndexShardRoutingTable>>>,
}

pub(crate) struct ShardInState {
    shards: Arc<Vec<IndexShardRoutingTable>>,
    number: usize,
}

impl Deref for ShardInState {
    type Target = IndexShardRoutingTable;

    fn deref(&self) -> &IndexShardRoutingTable {
        &self.shards[self.number]
    }
}

impl InState {
    /// The index that has this name; always the same for one copy.
    pub(super) fn index(&self, state: &Arc<ClusterState>, name: &str) -> Option<Arc<IndexMeta>> {
        self.found(state, name).index.clone()
    }

    pub(super) fn shard(
        &self,
        state: &Arc<ClusterState>,
        name: &str,
        number: u32,
    ) -> Option<ShardInState> {
        let shards = self.found(state, name).shards.clone()?;
        let number = number as usize;
        (number < shards.len()).then_some(ShardInState { shards, number })
    }

    fn found(&self, state: &Arc<ClusterState>, name: &str) -> Ref<'_, Found> {
        if !std::ptr::eq(self.0.borrow().state.as_ptr(), Arc::as_ptr(state)) {
            self.0.replace(Found {
                state: Arc::downgrade(state),
                index: state.indices.get(name).cloned(),
                shards: state.routing.get(name).cloned(),
            });
        }
        self.0.borrow()
    }
}
