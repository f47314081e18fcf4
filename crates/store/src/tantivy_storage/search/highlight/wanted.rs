//! The words that a query looks for, in texts and keywords.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use tantivy::Term;
use tantivy::query::FuzzyTermQuery;

use query::{FieldQuery, Fuzziness, Literal, Query, QueryKind, RangeEnd, RangeQuery};

use crate::tantivy_storage::search::failed::Result;
use crate::tantivy_storage::search::indexed_field::IndexedField;
use crate::tantivy_storage::search::resolve::Resolver;
use crate::tantivy_storage::search::resolve_words::{end_in_its_letters, in_its_letters};
use crate::tantivy_storage::search::wildcard::{Fits, accepts, fits};

/// What is looked for.
pub(super) enum Wanted {
    /// A word, wherever it stands.
    Word(String),
    /// Words that follow each other, with their places.
    Phrase(Vec<(usize, String)>),
    /// Any word that fits.
    Fitting(Fits),
}

/// A clause of a query, of one field.
pub(super) struct Clause {
    pub(super) path: String,
    /// What its score is multiplied by.
    pub(super) boost: f32,
    pub(super) wanted: Wanted,
}

fn begins(start: String) -> Wanted {
    Wanted::Fitting(Box::new(move |word: &str| word.starts_with(&start)))
}

impl Resolver<'_> {
    /// What a query looks for, apart from what it excludes.
    pub(super) fn clauses(&self, query: &Query) -> Result<Vec<Clause>> {
        let mut clauses = Vec::new();
        self.add_clauses(query, 1.0, &mut clauses)?;
        Ok(clauses)
    }

    fn add_clauses(&self, query: &Query, boost: f32, to: &mut Vec<Clause>) -> Result<()> {
        let boost = boost * query.boost;
        match &query.kind {
            QueryKind::MatchAll
            | QueryKind::MatchNone
            | QueryKind::Exists(_)
            | QueryKind::Ids(_) => Ok(()),
            QueryKind::Bool(of) => {
                let mut clauses = of.must.iter().chain(&of.should).chain(&of.filter);
                clauses.try_for_each(|query| self.add_clauses(query, boost, to))
            }
            QueryKind::ConstantScore(of) => self.add_clauses(of, boost, to),
            QueryKind::DisMax(queries, _) => {
                queries.iter().try_for_each(|query| self.add_clauses(query, boost, to))
            }
            QueryKind::FunctionScore(of) => self.add_clauses(&of.query, boost, to),
            QueryKind::Aliased(of) => self.add_clauses(&of.query, boost, to),
            QueryKind::First(of) => self.add_clauses(&of.query, boost, to),
            QueryKind::Field(path, asked) => self.add_of_field(path, asked, boost, to),
            QueryKind::Fields(asked) => {
                let (fields, lenient) = self.asked_fields(asked);
                for (path, of_field) in fields {
                    match self.add_of_field(path, &asked.query, boost * of_field, to) {
                        Err(failed) if lenient && failed.is_unfit() => {}
                        added => added?,
                    }
                }
                Ok(())
            }
        }
    }

    fn add_of_field(
        &self,
        path: &str,
        asked: &FieldQuery,
        boost: f32,
        to: &mut Vec<Clause>,
    ) -> Result<()> {
        let Some(indexed) = self.indexed(path).filter(|indexed| indexed.is_text()) else {
            return Ok(());
        };
        let add = |wanted| to.push(Clause { path: path.to_owned(), boost, wanted });
        self.of_words(&indexed, asked)?.into_iter().for_each(add);
        Ok(())
    }

    /// What is looked for among the words of a field.
    fn of_words(&self, indexed: &IndexedField, asked: &FieldQuery) -> Result<Vec<Wanted>> {
        let one = match asked {
            FieldQuery::Match { value, prefix, fuzziness, .. } => {
                let words = self.texts(indexed, value)?;
                let last = words.len().saturating_sub(1);
                let words = words.into_iter().enumerate();
                let wanted = words.map(|(at, (_, word))| match fuzziness {
                    _ if *prefix && at == last => Ok(begins(word)),
                    Some(fuzziness) => self.near(indexed, word, fuzziness),
                    None => Ok(Wanted::Word(word)),
                });
                return wanted.collect();
            }
            FieldQuery::MatchPhrase(value) => {
                let mut words = self.texts(indexed, value)?;
                if words.len() < 2 {
                    let word = words.pop().map(|(_, word)| Wanted::Word(word));
                    return Ok(word.into_iter().collect());
                }
                Wanted::Phrase(words)
            }
            FieldQuery::PhrasePrefix { value, words_max } => {
                let Some((words, (place, _), ends)) = self.begun(indexed, value, *words_max)?
                else {
                    return Ok(Vec::new());
                };
                let phrase = |end: String| match words.is_empty() {
                    true => Wanted::Word(end),
                    false => Wanted::Phrase(words.iter().cloned().chain([(place, end)]).collect()),
                };
                return Ok(ends.into_iter().map(phrase).collect());
            }
            FieldQuery::Fuzzy(word, fuzziness) => self.near(indexed, word.clone(), fuzziness)?,
            FieldQuery::Term(value) => Wanted::Word(value.text()),
            FieldQuery::Terms(values) => {
                let words: BTreeSet<String> = values.iter().map(Literal::text).collect();
                Wanted::Fitting(Box::new(move |word: &str| words.contains(word)))
            }
            FieldQuery::Prefix(start) => begins(start.clone()),
            // That is every document with the field.
            FieldQuery::Wildcard { pattern, analyzed: true, .. } if pattern == "*" => {
                return Ok(Vec::new());
            }
            FieldQuery::Wildcard { pattern, analyzed, any_case } => {
                Wanted::Fitting(fits(&in_its_letters(indexed, pattern, *analyzed), *any_case)?)
            }
            FieldQuery::Regexp { pattern, any_case } => {
                let regex = self.compiled(pattern, *any_case)?;
                Wanted::Fitting(Box::new(move |word: &str| accepts(&*regex, word)))
            }
            FieldQuery::Range(RangeQuery { lower: None, upper: None, .. })
            | FieldQuery::GeoDistance { .. }
            | FieldQuery::GeoBoundingBox { .. }
            | FieldQuery::GeoPolygons { .. } => return Ok(Vec::new()),
            FieldQuery::Range(RangeQuery { lower, upper, analyzed, .. }) => {
                let of =
                    |end: &Option<RangeEnd>| end_in_its_letters(indexed, end.as_ref(), *analyzed);
                let end = |end: &Option<RangeEnd>| match of(end) {
                    None => Bound::Unbounded,
                    Some(RangeEnd { value, included: true }) => Bound::Included(value.text()),
                    Some(RangeEnd { value, .. }) => Bound::Excluded(value.text()),
                };
                let (lower, upper) = (end(lower), end(upper));
                Wanted::Fitting(Box::new(move |word: &str| {
                    let within =
                        (lower.as_ref().map(String::as_str), upper.as_ref().map(String::as_str));
                    RangeBounds::<str>::contains(&within, word)
                }))
            }
        };
        Ok(vec![one])
    }

    /// The words of a text, with their places.
    fn texts(&self, indexed: &IndexedField, value: &Literal) -> Result<Vec<(usize, String)>> {
        let words = self.words(indexed, &value.text())?.into_iter();
        let text = |(place, word): (usize, Term)| {
            let text = word.value().as_str().map(str::to_owned);
            text.map(|text| (place, text))
        };
        Ok(words.filter_map(text).collect())
    }

    /// The words near one. All of them count: not only the nearest, of which the query takes some.
    fn near(&self, indexed: &IndexedField, word: String, of: &Fuzziness) -> Result<Wanted> {
        self.spend_fuzzy(&word)?;
        let edits = of.edits(&word);
        if edits == 0 {
            return Ok(Wanted::Word(word));
        }
        let start: String = word.chars().take(of.prefix_chars).collect();
        let term = Term::from_field_text(indexed.field, &word);
        let near = FuzzyTermQuery::new(term, edits, of.transpositions).automaton()?;
        let fits = move |word: &str| word.starts_with(&start) && accepts(&near, word);
        Ok(Wanted::Fitting(Box::new(fits)))
    }
}
