//! The indices on this node's disk that the cluster state does not know.

use super::parts::Node;
use crate::core::{Core, all_of, warn};
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

impl Node {
    /// What this node has of a dangling index.
    pub(super) async fn dangling_index(&self, uuid: &str) -> DanglingIndex {
        let disk = &self.core().disk;
        let keys: Vec<_> = self.parts.closed_copies.borrow().range(all_of(uuid)).cloned().collect();
        let mut found = DanglingIndex::default();
        for (_, shard) in &keys {
            if let Some(copy) = disk.read_metadata(uuid, *shard).await {
                let dir = disk.copy_dir(uuid, *shard);
                // What cannot be read here is no better than nothing.
                let next_seq_no = store::next_seq_no(&self.core().env, &dir).await.unwrap_or(0);
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
