//! The documents that match, a block at a time.

use std::sync::Arc;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, DocSet, SegmentReader};

use super::bounds::{BLOCK, Bounds};
use super::by_segment::Here;
use super::singles::Singles;
use query::FieldType;

/// A query that asks of each document that one value lies between two.
pub(super) struct Interval {
    pub(super) path: String,
    pub(super) kind: FieldType,
    /// The least and the greatest, in the bits of [`Singles::bits`].
    pub(super) ends: (u64, u64),
}

impl Interval {
    /// In one segment; none where documents may have no value or several.
    pub(super) fn within(&self, here: Here<'_>) -> tantivy::Result<Option<Within>> {
        let opened = Bounds::open(here, &self.path, self.kind)?;
        Ok(opened.map(|(bounds, singles)| Within { bounds, singles, ends: self.ends }))
    }
}

/// An interval in one segment.
pub(super) struct Within {
    bounds: Arc<Bounds>,
    singles: Singles,
    ends: (u64, u64),
}

impl Within {
    pub(super) fn blocks(&self) -> u32 {
        self.bounds.blocks()
    }

    /// Live documents that match, counted until there are `limit` or some more.
    pub(super) fn count_up_to(&mut self, segment: &SegmentReader, limit: u64) -> u64 {
        let alive = segment.alive_bitset();
        let (mut count, mut docs) = (0, Vec::with_capacity(BLOCK as usize));
        for block in 0..self.blocks() {
            if count >= limit {
                break;
            }
            self.of_block(block, &mut docs);
            count += match alive {
                None => docs.len() as u64,
                Some(alive) => docs.iter().filter(|doc| alive.is_alive(**doc)).count() as u64,
            };
        }
        count
    }

    /// Puts the documents of a block that match into `docs`: all or none of them without a look at their values where the
    /// bounds say so.
    pub(super) fn of_block(&mut self, block: u32, docs: &mut Vec<DocId>) {
        let ((low, high), (least, greatest)) = (self.ends, self.bounds.of_block(block));
        docs.clear();
        if greatest < low || least > high {
            return;
        }
        let all = self.bounds.docs(block);
        let fits_all = low <= least && greatest <= high;
        if !fits_all && self.singles.find(all.clone(), self.ends, docs) {
            return;
        }
        docs.extend(all);
        if fits_all {
            return;
        }
        let values = self.singles.bits(docs);
        let mut kept = 0;
        for (at, value) in values.iter().enumerate() {
            // Without a branch: whether a value fits is what cannot be foretold here.
            docs[kept] = docs[at];
            kept += usize::from(low <= *value && *value <= high);
        }
        docs.truncate(kept);
    }
}

/// The documents that match in one segment.
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
