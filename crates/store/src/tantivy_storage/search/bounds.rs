//! The least and the greatest value of each block of documents, of a column that every document has once. Where values
//! lie as they came, as the times of a log do, most blocks can be judged by these alone: Lucene's `DocValuesSkipper`
//! serves the same end.

use std::ops::Range;
use std::sync::Arc;

use tantivy::{DocId, Searcher, SegmentReader};

use super::by_segment::BySegment;
use super::column::Column;
use super::statistics::CountsCache;

/// Documents of a block.
pub(super) const BLOCK: u32 = 64;

/// The documents of a block in a segment of `max_doc` documents, deleted ones among them.
pub(super) fn docs_of(block: u32, max_doc: u32) -> Range<DocId> {
    block * BLOCK..max_doc.min((block + 1) * BLOCK)
}

/// The bounds of a column in one segment, in the bits of [`Column::block_bits`].
#[derive(Debug)]
pub(super) struct Bounds {
    ends: Vec<(u64, u64)>,
    max_doc: DocId,
}

/// All findings about the segments of a copy.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(super) counts: CountsCache,
    bounds: BySegment<String, Arc<Bounds>>,
}

/// A segment that is being searched, and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct SegmentContext<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) segment: &'a SegmentReader,
    pub(super) findings: &'a Findings,
}

impl SegmentContext<'_> {
    /// The bounds of a column; none where documents may have no value or several.
    pub(super) fn bounds(
        self,
        path: &str,
        column: &Column,
    ) -> tantivy::Result<Option<Arc<Bounds>>> {
        if !column.is_single() {
            return Ok(None);
        }
        let key = (self.segment.segment_id(), path.to_owned());
        let find = || Ok(Arc::new(Bounds::of(column, self.segment.max_doc())));
        self.findings.bounds.get_or_find(self.searcher, key, find).map(Some)
    }
}

impl Bounds {
    fn of(column: &Column, max_doc: DocId) -> Self {
        let (mut docs, mut bits) = (Vec::with_capacity(BLOCK as usize), Vec::new());
        let ends = (0..max_doc.div_ceil(BLOCK)).map(|block| {
            docs.clear();
            docs.extend(docs_of(block, max_doc));
            column.block_bits(&docs, &mut bits);
            bits.iter().fold((u64::MAX, 0), |ends, v| (ends.0.min(*v), ends.1.max(*v)))
        });
        Bounds { ends: ends.collect(), max_doc }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The documents of a block, deleted ones among them.
    pub(super) fn docs(&self, block: u32) -> Range<DocId> {
        docs_of(block, self.max_doc)
    }

    /// The least and the greatest value of a block.
    pub(super) fn of_block(&self, block: u32) -> (u64, u64) {
        self.ends[block as usize]
    }
}
