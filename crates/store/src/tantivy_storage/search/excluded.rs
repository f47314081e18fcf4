//! A clause that excludes documents.
//!
//! The library asks such a clause about documents that it may have passed already (`Exclude` calls `seek_danger`
//! with targets below the clause's own document), which a phrase answers with a failed assertion. This wrapper lets
//! no clause be asked so.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

#[derive(Debug)]
pub(super) struct Excluded(pub(super) Box<dyn Query>);

impl Clone for Excluded {
    fn clone(&self) -> Self {
        Excluded(self.0.box_clone())
    }
}

impl Query for Excluded {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        // What is excluded is never scored.
        let scoring = match scoring.searcher() {
            Some(searcher) => EnableScoring::disabled_from_searcher(searcher),
            None => EnableScoring::disabled_from_schema(scoring.schema()),
        };
        Ok(Box::new(ExcludedWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ExcludedWeight(Box<dyn Weight>);

impl Weight for ExcludedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let scorer = self.0.scorer(reader, boost)?;
        Ok(Box::new(ExcludedScorer(scorer)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }
}

/// Without `seek_danger` of its own: the default asks `doc` first, and seeks forward alone.
struct ExcludedScorer(Box<dyn Scorer>);

impl DocSet for ExcludedScorer {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }

    fn cost(&self) -> u64 {
        self.0.cost()
    }
}

impl Scorer for ExcludedScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
