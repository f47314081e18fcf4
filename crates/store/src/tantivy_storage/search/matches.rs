//! The documents that match, a block at a time or some at once.

use std::ops::Range;
use std::sync::Arc;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, DocSet, SegmentReader};

use super::bounds::{Bounds, SegmentContext};
use super::column::Column;
use query::FieldType;

/// Blocks whose values have to be read are read so many at once.
const READ_BLOCKS: u32 = 16;

/// Documents that match.
pub(super) enum Batch<'a> {
    /// All documents of this block.
    Block(u32, Range<DocId>),
    /// These, in their order.
    Docs(&'a [DocId]),
}

impl Batch<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Batch::Block(_, docs) => docs.len() as u64,
            Batch::Docs(docs) => docs.len() as u64,
        }
    }

    /// Puts those that are `wanted` into `list`.
    pub(super) fn list(&self, list: &mut Vec<DocId>, wanted: impl Fn(DocId) -> bool) {
        list.clear();
        match self {
            Batch::Block(_, docs) => list.extend(docs.clone().filter(|doc| wanted(*doc))),
            Batch::Docs(docs) => list.extend(docs.iter().copied().filter(|doc| wanted(*doc))),
        }
    }
}

/// A query that asks of each document that one value lies between two.
pub(super) struct Interval {
    pub(super) path: String,
    pub(super) kind: FieldType,
    /// The least and the greatest, in the bits of [`Column::block_bits`].
    pub(super) ends: (u64, u64),
}

impl Interval {
    /// In one segment; none where documents may have no value or several.
    pub(super) fn within(&self, context: SegmentContext<'_>) -> tantivy::Result<Option<Within>> {
        let column = Column::open(context.segment, &self.path, self.kind)?;
        let bounds = context.bounds(&self.path, &column)?;
        Ok(bounds.map(|bounds| Within { bounds, column, ends: self.ends }))
    }
}

/// An interval in one segment.
pub(super) struct Within {
    bounds: Arc<Bounds>,
    column: Column,
    ends: (u64, u64),
}

/// How many documents of a block match, as far as its bounds tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    None,
    Some,
    All,
}

impl Within {
    fn fit(&self, block: u32) -> Fit {
        let ((low, high), (least, greatest)) = (self.ends, self.bounds.of_block(block));
        match () {
            () if greatest < low || least > high => Fit::None,
            () if low <= least && greatest <= high => Fit::All,
            () => Fit::Some,
        }
    }

    /// Calls with all documents that match, deleted ones among them, in their order, until it answers false.
    pub(super) fn each(&self, see: &mut dyn FnMut(Batch<'_>) -> bool) {
        let (mut found, mut block) = (Vec::new(), 0);
        while block < self.bounds.blocks() {
            let goes_on = match self.fit(block) {
                Fit::None => true,
                Fit::All => see(Batch::Block(block, self.bounds.docs(block))),
                Fit::Some => {
                    let most = self.bounds.blocks().min(block + READ_BLOCKS);
                    let read = (block + 1..most).take_while(|next| self.fit(*next) == Fit::Some);
                    let (first, last) = (block, read.last().unwrap_or(block));
                    let docs = self.bounds.docs(first).start..self.bounds.docs(last).end;
                    self.column.find(docs, self.ends, &mut found);
                    block = last;
                    found.is_empty() || see(Batch::Docs(&found))
                }
            };
            if !goes_on {
                return;
            }
            block += 1;
        }
    }

    /// Live documents that match, counted until there are `limit` or some more.
    pub(super) fn count_up_to(&self, segment: &SegmentReader, limit: u64) -> u64 {
        let alive = segment.alive_bitset();
        let (mut count, mut living) = (0, Vec::new());
        self.each(&mut |batch| {
            count += match alive {
                None => batch.len(),
                Some(alive) => {
                    batch.list(&mut living, |doc| alive.is_alive(doc));
                    living.len() as u64
                }
            };
            count < limit
        });
        count
    }

    /// Puts the documents of a block that match into `docs`.
    fn of_block(&self, block: u32, docs: &mut Vec<DocId>) {
        docs.clear();
        match self.fit(block) {
            Fit::None => {}
            Fit::Some => self.column.find(self.bounds.docs(block), self.ends, docs),
            Fit::All => docs.extend(self.bounds.docs(block)),
        }
    }
}

/// The documents that match in one segment, where only some blocks are asked for.
pub(super) enum Matches {
    Within(Within),
    /// Blocks can only be asked for in their order.
    Scorer(Box<dyn Scorer>),
}

impl Matches {
    pub(super) fn open(
        within: Option<Within>,
        weight: &dyn Weight,
        segment: &SegmentReader,
    ) -> tantivy::Result<Self> {
        Ok(match within {
            Some(within) => Matches::Within(within),
            None => Matches::Scorer(weight.scorer(segment, 1.0)?),
        })
    }

    /// Puts those of a block into `docs`, deleted ones among them.
    pub(super) fn of_block(&mut self, bounds: &Bounds, block: u32, docs: &mut Vec<DocId>) {
        let scorer = match self {
            Matches::Within(within) => return within.of_block(block, docs),
            Matches::Scorer(scorer) => scorer,
        };
        docs.clear();
        let within = bounds.docs(block);
        let mut doc = scorer.doc();
        if doc < within.start {
            doc = scorer.seek(within.start);
        }
        while doc < within.end {
            docs.push(doc);
            doc = scorer.advance();
        }
    }
}
