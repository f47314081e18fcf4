//! Indices that were deleted: what a node finds of them on its disk is deleted there, too.
//!
//! As the field's `IndexGraveyard`. What has neither an index nor a tombstone is not understood, and never deleted.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// `cluster.indices.tombstones.size`: the oldest go first.
const MAX_TOMBSTONES: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tombstone {
    pub(super) index: String,
    pub(super) uuid: String,
    pub(super) deleted_ms: u64,
}

/// Those that were deleted last, oldest first. Shared between clones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tombstones(Arc<VecDeque<Tombstone>>);

impl Tombstones {
    pub(super) fn add(&mut self, tombstone: Tombstone) {
        let all = Arc::make_mut(&mut self.0);
        if all.len() == MAX_TOMBSTONES {
            all.pop_front();
        }
        all.push_back(tombstone);
    }

    pub(super) fn contains(&self, uuid: &str) -> bool {
        self.0.iter().any(|tombstone| tombstone.uuid == uuid)
    }

    /// Those that were added since an older state, in order.
    pub(super) fn since(&self, older: &Tombstones) -> Vec<Tombstone> {
        if Arc::ptr_eq(&self.0, &older.0) {
            return Vec::new();
        }
        let last = older.0.back().map(|tombstone| &tombstone.uuid);
        let known = last.and_then(|last| self.0.iter().rposition(|one| one.uuid == *last));
        self.0.iter().skip(known.map_or(0, |at| at + 1)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: usize) -> Tombstone {
        Tombstone { index: format!("i{n}"), uuid: format!("u{n}"), deleted_ms: n as u64 }
    }

    #[test]
    fn keeps_the_last_and_tells_what_came() {
        let mut tombstones = Tombstones::default();
        (0..MAX_TOMBSTONES).for_each(|n| tombstones.add(of(n)));
        let older = tombstones.clone();
        assert!(tombstones.since(&older).is_empty() && tombstones.contains("u0"));
        tombstones.add(of(MAX_TOMBSTONES));
        assert_eq!(tombstones.since(&older), [of(MAX_TOMBSTONES)]);
        assert!(!tombstones.contains("u0") && tombstones.contains("u1"));
        assert_eq!(tombstones.since(&Tombstones::default()).len(), MAX_TOMBSTONES);
    }
}
