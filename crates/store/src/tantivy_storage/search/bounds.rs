//! The least and the greatest value of each block of documents, of a column that every document has once. Where values
//! lie as they came, as the times of a log do, most blocks can be judged by these alone: Lucene's `DocValuesSkipper`
//! serves the same end.

use std::ops::Range;

use tantivy::DocId;

use super::column::Column;

/// Documents of a block.
pub(super) const BLOCK: u32 = 64;

/// The bounds of a column in one segment, in the bits of [`Column::block_bits`].
#[derive(Debug)]
pub(super) struct Bounds {
    ends: Vec<(u64, u64)>,
    pub(super) max_doc: DocId,
}

impl Bounds {
    pub(super) fn of(column: &Column, max_doc: DocId) -> Self {
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
