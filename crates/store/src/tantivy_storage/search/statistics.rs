//! What BM25 needs to know of a field: how many documents have it, and how long it is on average.
//!
//! Lucene counts the documents that have the field; the index library counts all of them. On fields that not every
//! document has the scores would differ, so that we count as Lucene does.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::query::{
    Bm25StatisticsProvider, EnableScoring, InvertedIndexRangeQuery, Query, Weight,
};
use tantivy::schema::Field;
use tantivy::{DocSet, Searcher, SegmentReader, Term};

use super::by_segment::BySegment;
use super::column::Column;
use super::indexed_field::IndexedField;
use query::FieldType;

/// Documents that have a field, and words of it in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldCounts {
    documents: u64,
    words: u64,
}

impl FieldCounts {
    /// How much a word says that so many documents have: of one that stands once in a field without lengths the score.
    pub(super) fn idf(self, found: u64) -> f32 {
        let (all, found) = (self.documents as f32, found.min(self.documents) as f32);
        (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
    }
}

/// Counts of fields by segment and number of the field.
pub(super) type CountsCache = BySegment<u32, FieldCounts>;

impl CountsCache {
    /// The counts of a field over all segments, deleted documents among them, as in Lucene.
    pub(super) fn of(
        &self,
        searcher: &Searcher,
        indexed: &IndexedField,
    ) -> tantivy::Result<FieldCounts> {
        let mut sum = FieldCounts::default();
        for segment in searcher.segment_readers() {
            let key = (segment.segment_id(), indexed.field.field_id());
            let counts = self.get_or_find(key, || count(segment, indexed))?;
            sum.documents += counts.documents;
            sum.words += counts.words;
        }
        Ok(sum)
    }
}

/// Documents with false and with true, by segment and path.
pub(super) type Booleans = BySegment<String, [u64; 2]>;

impl Booleans {
    /// What a boolean scores where `there` have the field: BM25 of a word that stands once in a field without lengths.
    /// To Lucene each such field has one word, also where documents with both values make the average greater.
    pub(super) fn score(
        &self,
        searcher: &Searcher,
        path: &str,
        yes: bool,
        there: FieldCounts,
    ) -> tantivy::Result<f32> {
        let (mut found, mut words) = (0, 0);
        for segment in searcher.segment_readers() {
            let count = || {
                let (column, mut counts) =
                    (Column::open(segment, path, FieldType::Boolean)?, [0; 2]);
                for doc in 0..segment.max_doc() {
                    let mut has = [false; 2];
                    column.each_number(doc, |value| has[usize::from(value == 1.0)] = true);
                    counts.iter_mut().zip(has).for_each(|(count, has)| *count += u64::from(has));
                }
                Ok(counts)
            };
            let counts = self.get_or_find((segment.segment_id(), path.to_owned()), count)?;
            found += counts[usize::from(yes)];
            words += counts[0] + counts[1];
        }
        let average = words.max(1) as f32 / there.documents.max(1) as f32;
        // By Lucene's k1 of 1.2 and b of 0.75.
        Ok(there.idf(found) * (2.2 / (1.0 + 1.2 * (0.25 + 0.75 / average))))
    }
}

fn count(segment: &SegmentReader, indexed: &IndexedField) -> tantivy::Result<FieldCounts> {
    let (field, kind) = (indexed.field, indexed.mapped.kind);
    if !kind.has_words() {
        let column = Column::open(segment, indexed.path, kind)?;
        let (documents, words) = column.counts(segment.max_doc());
        return Ok(FieldCounts { documents, words });
    }
    let words = segment.inverted_index(field)?.total_num_tokens();
    let documents = match segment.fieldnorms_readers().get_field(field)? {
        Some(norms) => (0..segment.max_doc()).filter(|doc| norms.fieldnorm_id(*doc) > 0).count(),
        None => {
            let scoring = EnableScoring::disabled_from_schema(segment.schema());
            let mut found = any_word(field).weight(scoring)?.scorer(segment, 1.0)?;
            found.count_including_deleted() as usize
        }
    };
    Ok(FieldCounts { documents: documents as u64, words })
}

/// What finds the documents with a word in a field that keeps no lengths: all of its words together.
pub(super) fn any_word(field: Field) -> InvertedIndexRangeQuery {
    let first = Bound::Included(Term::from_field_text(field, ""));
    InvertedIndexRangeQuery::new(first, Bound::Unbounded)
}

/// A query on one field, scored with that field's counts.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) counts: FieldCounts,
    pub(super) query: Arc<dyn Query>,
    /// Documents that its word counts as found in; else those that have it.
    pub(super) found_in: Option<u64>,
}

/// What is known of the field of a query, and who knows the words.
struct Provider<'a>(&'a Scored, &'a Searcher);

impl Bm25StatisticsProvider for Provider<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.0.counts.words)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.0.counts.documents.max(1))
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        // The library insists that no word is in more documents than there are.
        let found = self.0.found_in.map_or_else(|| self.1.doc_freq(term), Ok)?;
        Ok(found.min(self.0.counts.documents))
    }
}

impl Query for Scored {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        match scoring {
            EnableScoring::Enabled { searcher, .. } => {
                let provider = Provider(self, searcher);
                let scoring = EnableScoring::enabled_from_statistics_provider(&provider, searcher);
                self.query.weight(scoring)
            }
            disabled @ EnableScoring::Disabled { .. } => self.query.weight(disabled),
        }
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}
