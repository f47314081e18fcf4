//! The least and the greatest value of each block of documents, of a column that every document has once. Where values
//! lie as they came, as the times of a log do, most blocks can be judged by these alone: Lucene's `DocValuesSkipper`
//! serves the same end.

use std::ops::Range;
use std::sync::Arc;

use tantivy::DocId;

use super::by_segment::{BySegment, Here};
use super::singles::Singles;
use query::FieldType;

/// Documents of a block.
pub(super) const BLOCK: u32 = 64;
/// Where documents lie in more blocks than this, their bounds are not worth asking for.
const BLOCKS_AT_ONCE: u32 = 4;

/// The bounds of a column in one segment, in the bits of [`Singles::bits`].
#[derive(Debug)]
pub(super) struct Bounds {
    ends: Vec<(u64, u64)>,
    max_doc: DocId,
}

/// Bounds of columns by segment.
pub(super) type BoundsCache = BySegment<String, Arc<Bounds>>;

impl Bounds {
    /// The bounds of a column, and its values; none where documents may have no value or several.
    pub(super) fn open(
        here: Here<'_>,
        path: &str,
        kind: FieldType,
    ) -> tantivy::Result<Option<(Arc<Bounds>, Singles)>> {
        let Here { searcher, segment, findings } = here;
        let Some(mut singles) = Singles::open(segment, path, kind)? else { return Ok(None) };
        let key = (segment.segment_id(), path.to_owned());
        let find = || Ok(Arc::new(Bounds::of(&mut singles, segment.max_doc())));
        let bounds = findings.bounds.get_or_find(searcher, key, find)?;
        Ok(Some((bounds, singles)))
    }

    fn of(singles: &mut Singles, max_doc: DocId) -> Self {
        let mut bounds = Bounds { ends: Vec::new(), max_doc };
        let mut docs = Vec::with_capacity(BLOCK as usize);
        for block in 0..max_doc.div_ceil(BLOCK) {
            docs.clear();
            docs.extend(bounds.docs(block));
            let values = singles.bits(&docs);
            let ends = |ends: (u64, u64), v: &u64| (ends.0.min(*v), ends.1.max(*v));
            bounds.ends.push(values.iter().fold((u64::MAX, 0), ends));
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

    /// What the values of documents, which are in order, lie between; none where they are too far apart.
    pub(super) fn of_docs(&self, docs: &[DocId]) -> Option<(u64, u64)> {
        let (first, last) = (docs.first()? / BLOCK, docs.last()? / BLOCK);
        if last - first >= BLOCKS_AT_ONCE {
            return None;
        }
        let ends = &self.ends[first as usize..=last as usize];
        ends.iter().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}
