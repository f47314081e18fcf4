//! The documents that match, as aggregations look at them before they are collected.

use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::query::Weight;
use tantivy::{DocId, SegmentReader};

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
    /// Calls with each live document of a segment, until time runs out.
    pub(super) fn each(
        &self,
        segment: &SegmentReader,
        mut see: impl FnMut(DocId),
    ) -> tantivy::Result<()> {
        let alive = segment.alive_bitset();
        let mut see = |doc: DocId| {
            if alive.is_none_or(|alive| alive.is_alive(doc)) && !self.stop.load(Ordering::Relaxed) {
                see(doc);
            }
        };
        match self.min_score {
            None => self.weight.for_each_no_score(segment, &mut |docs| {
                docs.iter().for_each(|doc| see(*doc));
            }),
            Some(least) => self.weight.for_each(segment, &mut |doc, score| {
                if score >= least {
                    see(doc);
                }
            }),
        }
    }
}
