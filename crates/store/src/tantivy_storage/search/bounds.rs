//! The least and the greatest value of each block of documents, of a column that every document has once. Where values
//! lie as they came, as the times of a log do, most blocks can be judged by these alone: Lucene's `DocValuesSkipper`
//! serves the same end.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tantivy::columnar::StrColumn;
use tantivy::{DocId, Searcher, SegmentReader};

use super::by_segment::BySegment;
use super::column::Column;
use super::ids;
use super::statistics::{Booleans, CountsCache};

/// Documents of a block.
pub(super) const BLOCK: u32 = 64;

/// The bounds of a column in one segment, in the bits of [`Column::block_bits`].
#[derive(Debug)]
pub(super) struct Bounds {
    ends: Vec<(u64, u64)>,
    pub(super) max_doc: DocId,
}

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
            self.ids.keep(key, ids.clone());
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

impl Bounds {
    fn of(column: &Column, max_doc: DocId) -> Self {
        let (mut bounds, mut bits) = (Bounds { ends: Vec::new(), max_doc }, Vec::new());
        for block in 0..max_doc.div_ceil(BLOCK) {
            let docs: Vec<DocId> = bounds.docs(block).collect();
            column.block_bits(&docs, &mut bits);
            let ends = (u64::MAX, 0);
            bounds.ends.push(bits.iter().fold(ends, |ends, v| (ends.0.min(*v), ends.1.max(*v))));
        }
        bounds
    }

    pub(super) fn blocks(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The documents of a block, deleted ones among them.
    pub(super) fn docs(&self, block: u32) -> Range<DocId> {
        block * BLOCK..self.max_doc.min((block + 1) * BLOCK)
    }

    /// The least and the greatest value of a block.
    pub(super) fn of_block(&self, block: u32) -> (u64, u64) {
        self.ends[block as usize]
    }
}
