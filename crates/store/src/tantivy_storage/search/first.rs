//! `terminate_after`: of a shard's documents that match the first, in the order in which they lie there, in place of
//! all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::index::SegmentId;
use tantivy::query::doc_predicate_query::{ConstOrVariableSegmentPredicate, DocPredicate};
use tantivy::query::{AllScorer, EnableScoring, Query};
use tantivy::{DocId, Searcher, SegmentReader, TERMINATED};

/// All documents up to the last of the first that a query matches: by segment, before which one they end. Segments
/// behind these have none of them.
#[derive(Debug)]
pub(super) struct First(BTreeMap<SegmentId, DocId>);

impl First {
    /// Finds so many; and whether what lies behind them was not looked at. Once it is stopped it looks at no more.
    pub(super) fn of(
        query: &dyn Query,
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
            ends.insert(segment.segment_id(), doc.min(segment.max_doc()));
        }
        Ok((First(ends), leaves_some))
    }
}

impl DocPredicate for First {
    type SegmentDocPredicate = fn(DocId) -> bool;

    fn doc_predicate(
        &self,
        segment: &SegmentReader,
    ) -> tantivy::Result<ConstOrVariableSegmentPredicate<Self::SegmentDocPredicate>> {
        let end = self.0.get(&segment.segment_id()).copied().unwrap_or(0);
        let predicate: Self::SegmentDocPredicate = |_| true;
        let necessary_condition = Box::new(AllScorer::new(end));
        Ok(ConstOrVariableSegmentPredicate::Variable { predicate, necessary_condition })
    }
}
