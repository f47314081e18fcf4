//! What an index is, beside its copies on this node: known also where the cluster state is lost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::core::{ChangedCopies, Core, warn};
use crate::state::{ClusterState, IndexMeta, StoredIndex};

/// What is written beside the copies here, and what is to be written.
#[derive(Default)]
pub(super) struct StoredIndices {
    written: RefCell<BTreeMap<String, Arc<IndexMeta>>>,
    due: RefCell<BTreeMap<String, Arc<StoredIndex>>>,
    came: Notify,
}

impl StoredIndices {
    /// Notes the indices that have copies here and changed.
    pub(super) fn note(&self, here: &str, state: &ClusterState, changed: &ChangedCopies) {
        match changed {
            ChangedCopies::All => {
                state.copies_on(here).for_each(|(index, ..)| self.note_index(index, state));
            }
            ChangedCopies::Of(indices) => {
                indices.on(here).iter().for_each(|(index, _)| self.note_index(index, state));
            }
        }
    }

    fn note_index(&self, index: &str, state: &ClusterState) {
        let Some(meta) = state.indices.get(index) else { return };
        let mut written = self.written.borrow_mut();
        if written.get(&meta.uuid).is_some_and(|before| Arc::ptr_eq(before, meta)) {
            return;
        }
        written.insert(meta.uuid.clone(), meta.clone());
        let stored = StoredIndex { index: index.to_owned(), meta: IndexMeta::clone(meta) };
        self.due.borrow_mut().insert(meta.uuid.clone(), Arc::new(stored));
        self.came.notify_one();
    }

    /// Forgets an index whose last copy here is gone.
    pub(super) fn forget(&self, uuid: &str) {
        self.written.borrow_mut().remove(uuid);
        self.due.borrow_mut().remove(uuid);
    }
}

/// Writes what is due, until the node ends.
pub(super) async fn write(core: Rc<Core>, indices: Rc<StoredIndices>) {
    loop {
        let next = indices.due.borrow_mut().pop_first();
        let Some((uuid, stored)) = next else {
            indices.came.notified().await;
            continue;
        };
        if let Err(error) = core.disk.write_index(&stored).await {
            // It is tried again when the index changes, or at the next start.
            indices.written.borrow_mut().remove(&uuid);
            let index = &stored.index;
            let words = format!("cannot write what index [{index}] is beside its copies: {error}");
            warn(&core.env, core.name(), &words);
        }
    }
}
