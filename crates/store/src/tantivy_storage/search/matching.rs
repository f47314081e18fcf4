//! The documents that match, as they are looked at one by one or some at once.

use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

/// What a search matches.
#[derive(Clone, Copy)]
pub(super) struct Matching<'a> {
    pub(super) weight: &'a dyn Weight,
    /// Documents with a lower score are left out.
    pub(super) min_score: Option<f32>,
    /// Set when time has run out.
    pub(super) stop: &'a AtomicBool,
}

impl Matching<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Calls with each live document of a segment, until time runs out.
    pub(super) fn each(
        &self,
        segment: &SegmentReader,
        mut see: impl FnMut(DocId),
    ) -> tantivy::Result<()> {
        match self.min_score {
            None => self.each_batch(segment, &mut |docs| docs.iter().for_each(|doc| see(*doc))),
            Some(_) => self.each_scored(segment, &mut |doc, _| see(doc)),
        }
    }

    /// Calls with each and its score.
    pub(super) fn each_scored(
        &self,
        segment: &SegmentReader,
        see: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        self.weight.for_each(segment, &mut |doc, score| {
            let is_low = self.min_score.is_some_and(|least| score < least);
            if !segment.is_deleted(doc) && !is_low && !self.is_over() {
                see(doc, score);
            }
        })
    }

    /// Calls with all, some at once and in their order, whatever their scores.
    pub(super) fn each_batch(
        &self,
        segment: &SegmentReader,
        see: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        let (alive, mut living) = (segment.alive_bitset(), Vec::new());
        self.weight.for_each_no_score(segment, &mut |docs| {
            // The library does not let itself be stopped, but it can be left idle.
            if self.is_over() {
                return;
            }
            let Some(alive) = alive else { return see(docs) };
            living.clear();
            living.extend(docs.iter().copied().filter(|doc| alive.is_alive(*doc)));
            see(&living);
        })
    }
}
