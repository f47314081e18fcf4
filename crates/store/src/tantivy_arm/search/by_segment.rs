//! What was once found out about a segment. A segment never changes, so that nothing of it is found out twice.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tantivy::index::SegmentId;
use tantivy::{Searcher, SegmentReader};

use super::bounds::BoundsCache;
use super::statistics::CountsCache;

/// Findings by segment and by what they are about.
#[derive(Debug)]
pub(crate) struct BySegment<K, V>(Mutex<BTreeMap<(SegmentId, K), V>>);

/// All findings about the segments of a copy.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(super) counts: CountsCache,
    pub(super) bounds: BoundsCache,
}

/// A segment at hand, and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) segment: &'a SegmentReader,
    pub(super) findings: &'a Findings,
}

/// Findings that are kept; beyond, those of segments that are gone are dropped.
const ENTRIES_MAX: usize = 4096;

impl<K: Ord, V> Default for BySegment<K, V> {
    fn default() -> Self {
        BySegment(Mutex::default())
    }
}

impl<K: Ord, V: Clone> BySegment<K, V> {
    /// What is known, or else what `find` finds. Several may look for the same at once.
    pub(super) fn get_or_find(
        &self,
        searcher: &Searcher,
        key: (SegmentId, K),
        find: impl FnOnce() -> tantivy::Result<V>,
    ) -> tantivy::Result<V> {
        if let Some(known) = self.lock().get(&key).cloned() {
            return Ok(known);
        }
        let found = find()?;
        let mut kept = self.lock();
        if kept.len() >= ENTRIES_MAX {
            let live =
                |id: &SegmentId| searcher.segment_readers().iter().any(|s| s.segment_id() == *id);
            kept.retain(|(id, _), _| live(id));
        }
        kept.insert(key, found.clone());
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(SegmentId, K), V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
