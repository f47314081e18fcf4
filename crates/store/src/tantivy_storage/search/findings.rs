//! What searches found out about the segments of a copy, for those that come later.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tantivy::columnar::StrColumn;
use tantivy::{Searcher, SegmentReader};

use super::bounds::Bounds;
use super::by_segment::BySegment;
use super::column::Column;
use super::ids;
use super::statistics::{Booleans, CountsCache};

/// All findings about the segments of a copy.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(super) counts: CountsCache,
    pub(super) booleans: Booleans,
    bounds: BySegment<String, Arc<Bounds>>,
    ids: BySegment<(), StrColumn>,
}

impl Findings {
    /// Forgets them: they are found again when they are needed.
    pub(crate) fn clear(&self) {
        self.counts.clear();
        self.booleans.0.clear();
        self.bounds.clear();
        self.ids.clear();
    }

    /// The ids of a segment, as a column; one of no document where it was stopped before all were found.
    pub(super) fn ids(
        &self,
        segment: &SegmentReader,
        stop: &AtomicBool,
    ) -> tantivy::Result<Column> {
        let key = (segment.segment_id(), ());
        let known = self.ids.get(&key);
        if known.is_some() {
            return Ok(Column::of_texts(known));
        }
        let found = ids::column(segment, stop)?;
        if let Some(ids) = &found {
            self.ids.remember(key, ids.clone());
        }
        Ok(Column::of_texts(found))
    }

    /// Forgets ids of segments that a search does not see: they take as much memory as all other findings.
    pub(super) fn keep_ids(&self, searcher: &Searcher) {
        let seen = searcher.segment_readers();
        self.ids.retain(|known| seen.iter().any(|segment| segment.segment_id() == known));
    }

    /// The bounds of a column; none where documents may have no value or several.
    pub(super) fn bounds(
        &self,
        segment: &SegmentReader,
        path: &str,
        column: &Column,
    ) -> tantivy::Result<Option<Arc<Bounds>>> {
        if !column.is_single() {
            return Ok(None);
        }
        let find = || Ok(Arc::new(Bounds::of(column, segment.max_doc())));
        self.bounds.get_or_find((segment.segment_id(), path.to_owned()), find).map(Some)
    }
}
