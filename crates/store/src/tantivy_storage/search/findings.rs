//! What searches found out about the segments of a copy, for those that come later.

use std::sync::Arc;

use tantivy::SegmentReader;

use super::bounds::Bounds;
use super::by_segment::BySegment;
use super::column::Column;
use super::statistics::{Booleans, CountsCache};

/// All findings about the segments of a copy.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(super) counts: CountsCache,
    pub(super) booleans: Booleans,
    bounds: BySegment<String, Arc<Bounds>>,
}

impl Findings {
    /// Forgets them: they are found again when they are needed.
    pub(crate) fn clear(&self) {
        self.counts.clear();
        self.booleans.clear();
        self.bounds.clear();
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
