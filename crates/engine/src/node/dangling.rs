//! The indices on this node's disk that the cluster state does not know.

use std::collections::BTreeSet;

use super::parts::Node;
use crate::core::{Core, all_of, warn};
use crate::shard::ShardKey;
use crate::state::{DanglingCopy, DanglingIndex};

/// Says which indices on this node's disk are dangling.
pub(super) async fn say(core: &Core) {
    let state = core.state();
    let here = state.dangling().into_iter().filter(|(_, nodes)| nodes.contains(core.name()));
    for (uuid, _) in here.collect::<Vec<_>>() {
        let stored = core.disk.read_index(&uuid).await;
        let name =
            stored.map_or_else(|| "of unknown name".to_owned(), |s| format!("[{}]", s.index));
        let words = format!(
            "index {name} is dangling: its copies are here, and the cluster state does not know it. They are kept. \
             GET /_dangling lists it; POST /_dangling/{uuid}?accept_data_loss=true imports it, DELETE removes it"
        );
        warn(&core.env, core.name(), &words);
    }
}

/// Deletes directories without metadata of indices that nobody knows, where nothing that was acknowledged can be: of
/// copies whose files had only begun to come. Others are kept, and it is said that they are.
pub(super) async fn sweep(node: &Node) {
    let core = node.core();
    for key in nobody_knows(node) {
        let (uuid, shard) = (&key.0, key.1);
        // One that cannot be read now is not missing.
        if !matches!(core.disk.read_metadata(uuid, shard).await, Ok(None)) {
            continue;
        }
        let dir = core.disk.copy_dir(uuid, shard);
        let may_be_needed = store::holds_operations(&core.env, &dir).await.unwrap_or(true);
        if !node.parts.closed_copies.borrow().contains(&key) {
            // The index was imported meanwhile, and has a copy here.
            continue;
        }
        if !may_be_needed && core.disk.remove_copy(uuid, shard).await.is_ok() {
            node.parts.closed_copies.borrow_mut().remove(&key);
            core.disk.remove_empty_index(uuid).await;
            continue;
        }
        let words = format!(
            "{} has no metadata, so that nobody knows which copy it is, and the cluster state does not know its index. \
             It is kept and not used; delete it where it is not needed",
            dir.display()
        );
        warn(&core.env, core.name(), &words);
    }
}

/// What is here of indices that are neither in the cluster state nor were deleted.
fn nobody_knows(node: &Node) -> Vec<ShardKey> {
    let (core, state) = (node.core(), node.state());
    let known: BTreeSet<&String> = state.indices.values().map(|meta| &meta.uuid).collect();
    let mut here: Vec<ShardKey> = node.parts.closed_copies.borrow().iter().cloned().collect();
    here.retain(|(uuid, _)| !known.contains(uuid));
    let deleted = state.obsolete(core.name(), state.indices.keys(), &here);
    here.retain(|key| !deleted.contains(key));
    here
}

impl Node {
    /// What this node has of a dangling index.
    pub(super) async fn dangling_index(&self, uuid: &str) -> DanglingIndex {
        let disk = &self.core().disk;
        let keys: Vec<_> = self.parts.closed_copies.borrow().range(all_of(uuid)).cloned().collect();
        let mut found = DanglingIndex::default();
        for (_, shard) in &keys {
            if let Ok(Some(copy)) = disk.read_metadata(uuid, *shard).await {
                let dir = disk.copy_dir(uuid, *shard);
                let core = self.core();
                let extent = store::extent(&core.env, &dir).await.unwrap_or_else(|error| {
                    let words = format!("{error}; other copies are preferred to this dangling one");
                    warn(&core.env, core.name(), &words);
                    Default::default()
                });
                let next_seq_no = extent.next_seq_no;
                let (allocation_id, primary_term) = (copy.allocation_id, copy.primary_term);
                let shard = *shard;
                found.copies.push(DanglingCopy { shard, allocation_id, primary_term, next_seq_no });
            }
        }
        if !keys.is_empty() {
            found.stored = disk.read_index(uuid).await;
        }
        found
    }
}
