//! `terminate_after`: of a shard's documents that match the first, in the order in which they lie there, in place of
//! all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, TantivyError, Term};

/// By segment, before which document the first ones end. Segments behind these have none of them.
type Ends = Arc<BTreeMap<SegmentId, DocId>>;

/// The first documents that a query matches.
#[derive(Clone, Debug)]
pub(super) struct First {
    query: Arc<dyn Query>,
    ends: Ends,
}

impl First {
    /// Finds so many; and whether what lies behind them was not looked at. Once it is stopped it looks at no more.
    pub(super) fn of(
        query: Box<dyn Query>,
        most: u64,
        searcher: &Searcher,
        stop: &AtomicBool,
    ) -> tantivy::Result<(First, bool)> {
        let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
        let (mut ends, mut found) = (BTreeMap::new(), 0);
        let mut leaves_some = false;
        for segment in searcher.segment_readers() {
            // As in the field a further segment counts as left even if nothing in it matches.
            leaves_some |= found == most;
            if leaves_some {
                break;
            }
            let mut scorer = weight.scorer(segment, 1.0)?;
            let mut doc = scorer.doc();
            while doc != TERMINATED && !stop.load(Ordering::Relaxed) {
                if !segment.is_deleted(doc) {
                    if found == most {
                        leaves_some = true;
                        break;
                    }
                    found += 1;
                }
                doc = scorer.advance();
            }
            ends.insert(segment.segment_id(), doc);
        }
        Ok((First { query: query.into(), ends: Arc::new(ends) }, leaves_some))
    }
}

impl Query for First {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weight = self.query.weight(scoring)?;
        Ok(Box::new(OfFirst { weight, ends: self.ends.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct OfFirst {
    weight: Box<dyn Weight>,
    ends: Ends,
}

impl Weight for OfFirst {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let end = self.ends.get(&segment.segment_id()).copied().unwrap_or(0);
        Ok(Box::new(Ended { scorer: self.weight.scorer(segment, boost)?, end }))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument("scores are not explained".to_owned()))
    }
}

/// The documents of a scorer before one of them.
struct Ended {
    scorer: Box<dyn Scorer>,
    end: DocId,
}

impl DocSet for Ended {
    fn advance(&mut self) -> DocId {
        self.scorer.advance();
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.scorer.seek(target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        let doc = self.scorer.doc();
        if doc < self.end { doc } else { TERMINATED }
    }

    fn size_hint(&self) -> u32 {
        self.scorer.size_hint().min(self.end)
    }
}

impl Scorer for Ended {
    fn score(&mut self) -> Score {
        self.scorer.score()
    }
}
