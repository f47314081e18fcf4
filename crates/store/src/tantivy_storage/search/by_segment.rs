//! What was once found out about a segment. A segment never changes, so nothing about it has to be found out twice:
//! `match` is 2.1, `hourly` 3.5 and a `term` of a boolean 13 times as fast as if it were (2026-12-01,
//! docs/benchmarks/search_side_by_side.md).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tantivy::index::SegmentId;

/// Findings by segment and by what they are about.
#[derive(Debug)]
pub(super) struct BySegment<K, V>(Mutex<BTreeMap<(SegmentId, K), V>>);

/// Findings that are remembered; beyond, they are found anew.
const ENTRIES_MAX: usize = 4096;

impl<K: Ord, V> Default for BySegment<K, V> {
    fn default() -> Self {
        BySegment(Mutex::default())
    }
}

impl<K: Ord, V: Clone> BySegment<K, V> {
    /// What is known, or else what `find` finds. Several threads may look for the same at once.
    pub(super) fn get_or_find(
        &self,
        key: (SegmentId, K),
        find: impl FnOnce() -> tantivy::Result<V>,
    ) -> tantivy::Result<V> {
        let known = self.lock().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = find()?;
        let mut known = self.lock();
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(key, found.clone());
        Ok(found)
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(SegmentId, K), V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
