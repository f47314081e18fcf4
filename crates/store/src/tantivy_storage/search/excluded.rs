//! A clause that excludes documents.
//!
//! The library asks such a clause about documents that it may have passed already (`Exclude` calls `seek_danger`
//! with targets below the clause's own document), which a phrase answers with a failed assertion. This wrapper lets
//! no clause be asked so.

use tantivy::query::doc_predicate_query::DocPredicateBoxable;
use tantivy::query::{EnableScoring, Query, Scorer};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader};

#[derive(Debug)]
pub(super) struct Excluded(pub(super) Box<dyn Query>);

impl DocPredicateBoxable for Excluded {
    fn scorer(&self, reader: &SegmentReader, boost: f32) -> tantivy::Result<Box<dyn Scorer>> {
        // What is excluded is never scored.
        let weight = self.0.weight(EnableScoring::disabled_from_schema(reader.schema()))?;
        Ok(Box::new(ExcludedScorer(weight.scorer(reader, boost)?)))
    }

    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: f32,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let mut scorer = self.scorer(reader, boost)?;
        Ok((scorer.seek_danger(target), scorer))
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
}

impl Scorer for ExcludedScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
