//! From a query as plain data to one of the index library, by the mapping of the shard.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use tantivy::query::doc_predicate_query::{
    DocPredicateBoxable, DocPredicateQuery, FunctionPredicate, SegmentDocPredicate,
};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery,
    EnableScoring, ExistsQuery, InvertedIndexRangeQuery, Occur, PhraseQuery, Query as Library,
    RangeQuery as LibraryRange, RegexQuery, Scorer, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Searcher, SegmentReader, Term};
use tantivy_fst::Regex;

use query::{
    BoolQuery, FieldQuery, FieldType, FieldsQuery, FunctionScore, Fuzziness, Literal, Mapping,
    MinimumShouldMatch, Query, QueryKind, RangeQuery, Relation, SearchError, geo, mapping, unfit,
};

use record::names::matches;

use super::between::Between;
use super::bounds::Findings;
use super::column::Column;
use super::failed::{Failed, Result};
use super::functions::{Function, FunctionScored, Functions, Kind};
use super::fuzzy::near_words;
use super::pattern;
use super::statistics::{FieldCounts, Scored};
use super::value::{Value, exact, range};
use super::wildcard::{self, MAX_SIGNS};
use crate::tantivy_storage::analyzer::{NO_WORDS, each_word};
use crate::tantivy_storage::schema::{ID, first_column};

/// A resolved query.
type Resolved = Box<dyn Library>;
type Bounds = (Bound<Value>, Bound<Value>);

/// Regular expressions in a search: each is compiled to as many as 1000 states of some kilobytes.
const MAX_REGEXPS: usize = 16;
/// What finds words near a word takes room for each of its letters.
const FUZZY_BYTES_MAX: usize = 1024;

/// Resolves queries against one view of a shard.
pub(super) struct Resolver<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) mapping: &'a Mapping,
    pub(super) findings: &'a Arc<Findings>,
    pub(super) now_ms: i64,
    /// Regular expressions so far, by their text: fields share them.
    pub(super) regexps: RefCell<BTreeMap<String, Arc<Regex>>>,
    /// Why a document has no score.
    pub(super) failed: Arc<OnceLock<SearchError>>,
}

/// A mapped field that this copy indexes.
struct IndexedField<'a> {
    field: Field,
    path: &'a str,
    mapped: &'a mapping::Field,
}

impl IndexedField<'_> {
    fn is_text(&self) -> bool {
        self.mapped.kind == FieldType::Keyword || self.mapped.kind.has_words()
    }
}

fn constant(query: Resolved, score: f32) -> Resolved {
    Box::new(ConstScoreQuery::new(query, score))
}

fn nothing() -> Resolved {
    Box::new(EmptyQuery)
}

fn predicate<S: SegmentDocPredicate>(
    of_segment: impl Fn(&SegmentReader) -> tantivy::Result<S> + Send + Sync + 'static,
) -> Resolved {
    Box::new(DocPredicateQuery::from(FunctionPredicate::from(of_segment)))
}

/// Whether a clause that excludes has a document. The library asks such a clause (`Exclude` calls `seek_danger`) about
/// documents that it may have passed already, which a phrase answers with a failed assertion.
struct Excluded(Box<dyn Scorer>);

impl SegmentDocPredicate for Excluded {
    fn eval(&mut self, doc: DocId) -> bool {
        self.0.doc() == doc || (self.0.doc() < doc && self.0.seek(doc) == doc)
    }
}

impl Resolver<'_> {
    /// Resolves a query.
    pub(super) fn resolve(&self, query: &Query) -> Result<Resolved> {
        let boost = query.boost;
        let (found, scores) = match &query.kind {
            QueryKind::MatchAll if boost == 1.0 => return Ok(Box::new(AllQuery)),
            QueryKind::MatchAll => (Box::new(AllQuery) as Resolved, false),
            QueryKind::MatchNone => (nothing(), false),
            QueryKind::Bool(query) => (self.bool(query)?, true),
            QueryKind::ConstantScore(filter) => (self.resolve(filter)?, false),
            QueryKind::Exists(path) => (self.exists(path)?, false),
            QueryKind::Ids(values) => {
                let id = self.searcher.schema().get_field(ID)?;
                (set(values.iter().map(|value| Term::from_field_text(id, value))), false)
            }
            QueryKind::Fields(asked) => (self.fields(asked)?.unwrap_or_else(nothing), true),
            QueryKind::DisMax(queries, tie_breaker) => {
                let queries = queries.iter().map(|query| self.resolve(query));
                (best_of(queries.collect::<Result<_>>()?, *tie_breaker), true)
            }
            QueryKind::FunctionScore(of) => (self.function_score(of)?, true),
            QueryKind::Field(path, query) => {
                let scores = matches!(
                    query,
                    FieldQuery::Match { .. }
                        | FieldQuery::MatchPhrase(_)
                        | FieldQuery::Term(_)
                        | FieldQuery::Fuzzy(..)
                );
                (self.field(path, query)?, scores)
            }
        };
        Ok(match scores {
            false => constant(found, boost),
            true => boosted(found, boost),
        })
    }

    /// A clause of others; none where it is to be left out.
    fn clause(&self, query: &Query) -> Result<Option<Resolved>> {
        match &query.kind {
            // Among others the library leaves out what matches all, and its score with it.
            QueryKind::MatchAll => Ok(Some(constant(Box::new(AllQuery), query.boost))),
            QueryKind::Fields(asked) => {
                Ok(self.fields(asked)?.map(|found| boosted(found, query.boost)))
            }
            _ => self.resolve(query).map(Some),
        }
    }

    /// The same of each of several fields; none where it has no words to any of them, and is to be left out then.
    fn fields(&self, asked: &FieldsQuery) -> Result<Option<Resolved>> {
        let mut boosts: BTreeMap<&str, f32> = BTreeMap::new();
        for (pattern, boost) in &asked.fields {
            let mut add = |path| *boosts.entry(path).or_insert(1.0) *= boost;
            if !pattern.contains('*') {
                add(pattern);
                continue;
            }
            let fields = self.mapping.fields().iter();
            let fields =
                fields.filter(|(_, field)| field.indexed && field.kind != FieldType::GeoPoint);
            fields.filter(|(path, _)| matches(pattern, path)).for_each(|(path, _)| add(path));
        }
        if asked.drops
            && !boosts.is_empty()
            && boosts.keys().all(|path| self.has_no_word(path, asked))
        {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (path, boost) in boosts {
            let kind = QueryKind::Field(path.to_owned(), asked.query.clone());
            match self.resolve(&Query { kind, boost }) {
                Err(Failed::Search(_)) if asked.lenient => {}
                query => found.push(query?),
            }
        }
        Ok(Some(match asked.sums {
            true => {
                let clauses = found.into_iter().map(|query| (Occur::Should, query));
                Box::new(BooleanQuery::new(clauses.collect()))
            }
            false => best_of(found, asked.tie_breaker),
        }))
    }

    fn has_no_word(&self, path: &str, asked: &FieldsQuery) -> bool {
        let (FieldQuery::Match { value, .. } | FieldQuery::MatchPhrase(value)) = &asked.query
        else {
            return false;
        };
        let indexed = self.indexed(path).filter(|indexed| indexed.mapped.kind.has_words());
        let words = indexed.map(|indexed| self.words(&indexed, &value.text()));
        words.is_some_and(|words| words.is_ok_and(|words| words.is_empty()))
    }

    fn field(&self, path: &str, query: &FieldQuery) -> Result<Resolved> {
        let name = match query {
            FieldQuery::GeoDistance { .. } => Some("geo_distance"),
            FieldQuery::GeoBoundingBox { .. } => Some("geo_bounding_box"),
            _ => None,
        };
        match (name, self.mapping.field(path).map(|mapped| mapped.kind)) {
            (None, _) | (Some(_), Some(FieldType::GeoPoint)) => {}
            (Some(_), None) => {
                return Err(unfit(format!("failed to find geo field [{path}]")).into());
            }
            (Some(name), Some(kind)) => {
                let kind = kind.name();
                let reason =
                    format!("Field [{path}] is of unsupported type [{kind}] for [{name}] query");
                return Err(unfit(reason).into());
            }
        }
        if self.mapping.field(path).is_none() && mapping::is_metadata(path) {
            let reason =
                format!("Field [{path}] cannot be searched here; [_id] can, with [ids] or [term]");
            return Err(unfit(reason).into());
        }
        if self.mapping.field(path).is_some_and(|mapped| !mapped.indexed) {
            let reason = format!("Cannot search on field [{path}] since it is not indexed.");
            return Err(unfit(reason).into());
        }
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        match query {
            FieldQuery::Match { value, all, minimum, lenient, fuzziness } => {
                let words = (*all, minimum.as_ref(), fuzziness.as_ref());
                match self.match_words(&indexed, value, words) {
                    Err(Failed::Search(_)) if *lenient => Ok(nothing()),
                    found => found,
                }
            }
            FieldQuery::MatchPhrase(value) => self.match_phrase(&indexed, value),
            FieldQuery::Term(value) => self.term(&indexed, value),
            FieldQuery::Terms(values) => self.terms(&indexed, values),
            FieldQuery::Fuzzy(value, fuzziness) => {
                self.only_texts(&indexed, "fuzzy")?;
                self.fuzzy(&indexed, value, fuzziness)
            }
            FieldQuery::Range(range) => self.range(&indexed, range),
            FieldQuery::Prefix(value) => self.prefix(&indexed, value),
            FieldQuery::Wildcard { pattern, analyzed } => {
                self.wildcard(&indexed, pattern, *analyzed)
            }
            FieldQuery::Regexp(pattern) => self.regexp(&indexed, pattern),
            FieldQuery::GeoDistance { center, distance_m } => {
                let (center, distance_m) = (*center, *distance_m);
                let (south, north) = geo::latitudes_within(center, distance_m);
                Ok(points(path, move |lat, lon| {
                    (south..=north).contains(&lat)
                        && geo::haversine_m(center, (lat, lon)) <= distance_m
                }))
            }
            FieldQuery::GeoBoundingBox { top, left, bottom, right } => {
                let (top, left, bottom, right) = (*top, *left, *bottom, *right);
                Ok(points(path, move |lat, lon| {
                    let between = match left <= right {
                        true => lon >= left && lon <= right,
                        false => lon >= left || lon <= right,
                    };
                    between && lat <= top && lat >= bottom
                }))
            }
        }
    }

    /// The field of a path; none where the mapping or this copy has none.
    fn indexed<'b>(&'b self, path: &'b str) -> Option<IndexedField<'b>> {
        let mapped = self.mapping.field(path)?;
        let name = first_column(path, mapped.kind);
        let field = self.searcher.schema().get_field(&name).ok()?;
        Some(IndexedField { field, path, mapped })
    }

    fn scored(&self, indexed: &IndexedField, query: Resolved) -> Result<Resolved> {
        if indexed.mapped.kind == FieldType::MatchOnlyText {
            return Ok(constant(query, 1.0));
        }
        Ok(Box::new(Scored { counts: self.counts(indexed)?, query, found_in: None }))
    }

    fn counts(&self, indexed: &IndexedField) -> tantivy::Result<FieldCounts> {
        let IndexedField { field, path, mapped } = *indexed;
        self.findings.counts.of(self.searcher, field, path, mapped.kind)
    }

    /// The words of a text, each with its position.
    fn words(&self, indexed: &IndexedField, text: &str) -> Result<Vec<(usize, Term)>> {
        if indexed.mapped.kind == FieldType::Keyword {
            return Ok(vec![(0, Term::from_field_text(indexed.field, text))]);
        }
        let mut words = Vec::new();
        each_word(indexed.mapped.analyzers.1, text, |position, word| {
            words.push((position, Term::from_field_text(indexed.field, word)));
        });
        Ok(words)
    }

    fn match_words(
        &self,
        indexed: &IndexedField,
        value: &Literal,
        (all, minimum, fuzziness): (bool, Option<&MinimumShouldMatch>, Option<&Fuzziness>),
    ) -> Result<Resolved> {
        if !indexed.is_text() {
            if fuzziness.is_some() {
                self.only_texts(indexed, "fuzzy")?;
            }
            return self.term(indexed, value);
        }
        let words = self.words(indexed, &value.text())?;
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        let occur = if all { Occur::Must } else { Occur::Should };
        for (_, word) in words {
            let word = match (fuzziness, word.value().as_str()) {
                (Some(fuzziness), Some(text)) => self.fuzzy(indexed, text, fuzziness)?,
                _ => self.word(indexed, word)?,
            };
            clauses.push((occur, word));
        }
        if clauses.len() < 2 {
            return Ok(clauses.pop().map_or_else(nothing, |(_, word)| word));
        }
        let needed = match minimum {
            Some(minimum) if !all => minimum.of(clauses.len()).unwrap_or(1).max(1),
            _ => usize::from(!all),
        };
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed)))
    }

    fn word(&self, indexed: &IndexedField, word: Term) -> Result<Resolved> {
        let option = match indexed.mapped.kind {
            FieldType::Text => IndexRecordOption::WithFreqs,
            _ => IndexRecordOption::Basic,
        };
        self.scored(indexed, Box::new(TermQuery::new(word, option)))
    }

    /// The words that are near one, the nearest first: each scores as if it were as frequent as the most frequent of
    /// them, and less the farther it is, as Lucene's `FuzzyQuery` does.
    fn fuzzy(&self, indexed: &IndexedField, text: &str, of: &Fuzziness) -> Result<Resolved> {
        if text.len() > FUZZY_BYTES_MAX {
            let reason = format!("a fuzzy word has at most {FUZZY_BYTES_MAX} bytes; send [term]");
            return Err(unfit(reason).into());
        }
        let words = near_words(self.searcher, indexed.field, text, of)?.into_iter();
        let words: Vec<(usize, String, Term)> = words
            .map(|(edits, word)| {
                let term = Term::from_field_text(indexed.field, &word);
                (edits, word, term)
            })
            .collect();
        let found_in = words.iter().map(|(_, _, term)| self.searcher.doc_freq(term));
        let found_in = found_in.collect::<tantivy::Result<Vec<u64>>>()?.into_iter().max();
        let chars = |text: &str| text.chars().count();
        let clauses = words.into_iter().map(|(edits, word, term)| {
            let option = match indexed.mapped.kind {
                FieldType::Text => IndexRecordOption::WithFreqs,
                _ => IndexRecordOption::Basic,
            };
            let query: Resolved = Box::new(TermQuery::new(term, option));
            let query = match indexed.mapped.kind {
                FieldType::MatchOnlyText => constant(query, 1.0),
                _ => Box::new(Scored { counts: self.counts(indexed)?, query, found_in }),
            };
            let nearness = 1.0 - edits as f32 / chars(&word).min(chars(text)).max(1) as f32;
            Ok((Occur::Should, boosted(query, nearness)))
        });
        Ok(Box::new(BooleanQuery::new(clauses.collect::<Result<_>>()?)))
    }

    fn match_phrase(&self, indexed: &IndexedField, value: &Literal) -> Result<Resolved> {
        if !indexed.mapped.kind.has_words() {
            return self.match_words(indexed, value, (true, None, None));
        }
        let mut words = self.words(indexed, &value.text())?;
        match words.len() {
            0 => Ok(nothing()),
            1 => self.word(indexed, words.remove(0).1),
            _ => self.scored(indexed, Box::new(PhraseQuery::new_with_offset(words))),
        }
    }

    fn term(&self, indexed: &IndexedField, value: &Literal) -> Result<Resolved> {
        if indexed.is_text() {
            return self.word(indexed, Term::from_field_text(indexed.field, &value.text()));
        }
        let Some((low, high)) = self.ends(indexed, value)? else { return Ok(nothing()) };
        let score = match low {
            // Kept as words in the field, and scored as such.
            Value::Boolean(yes) => {
                let there = self.counts(indexed)?;
                self.findings.booleans.idf(self.searcher, indexed.path, yes, there)?
            }
            _ => 1.0,
        };
        Ok(constant(self.exactly(indexed, low, high), score))
    }

    fn terms(&self, indexed: &IndexedField, values: &[Literal]) -> Result<Resolved> {
        if indexed.is_text() {
            let term = |value: &Literal| Term::from_field_text(indexed.field, &value.text());
            return Ok(set(values.iter().map(term)));
        }
        // Dates by a day are ranges, so that a set of values will not do for all of them.
        let mut points = BTreeSet::new();
        let mut ranges: Vec<(Occur, Resolved)> = Vec::new();
        for value in values {
            match self.ends(indexed, value)? {
                None => {}
                Some((low, high)) if low == high => _ = points.insert(low.bits()),
                Some((low, high)) => {
                    ranges.push((Occur::Should, self.exactly(indexed, low, high)));
                }
            }
        }
        if !points.is_empty() {
            let one_of = any_value(indexed, move |bits| points.contains(&bits));
            ranges.push((Occur::Should, one_of));
        }
        Ok(if ranges.is_empty() { nothing() } else { Box::new(BooleanQuery::new(ranges)) })
    }

    /// The least and the greatest value that equal a literal; none if nothing can.
    fn ends(&self, indexed: &IndexedField, value: &Literal) -> Result<Option<(Value, Value)>> {
        Ok(exact(indexed.path, indexed.mapped, value, (None, None, self.now_ms))?)
    }

    fn exactly(&self, indexed: &IndexedField, low: Value, high: Value) -> Resolved {
        self.between(indexed, (Bound::Included(low), Bound::Included(high)))
    }

    fn range(&self, indexed: &IndexedField, asked: &RangeQuery) -> Result<Resolved> {
        let path = indexed.path;
        if indexed.mapped.kind == FieldType::GeoPoint {
            let reason =
                format!("Field [{path}] of type [geo_point] does not support range queries");
            return Err(unfit(reason).into());
        }
        let RangeQuery { lower, upper, format, zone, relation } = asked;
        let dates = (format.as_ref(), Some(zone), self.now_ms);
        match range(path, indexed.mapped, (lower.as_ref(), upper.as_ref()), dates)? {
            None => Ok(nothing()),
            Some(bounds) if indexed.mapped.kind == FieldType::DoubleRange => {
                Ok(ranges(path, bounds, *relation))
            }
            Some((Bound::Unbounded, Bound::Unbounded)) => self.exists(path),
            Some(bounds) => Ok(self.between(indexed, bounds)),
        }
    }

    fn between(&self, indexed: &IndexedField, bounds: Bounds) -> Resolved {
        let kind = indexed.mapped.kind;
        if kind == FieldType::DoubleRange {
            return ranges(indexed.path, bounds, Relation::Intersects);
        }
        let ends = ends_of(kind, &bounds);
        let (low, high) = bounds;
        let field = indexed.field;
        let term = move |bound: Bound<Value>| match bound {
            Bound::Included(value) => Bound::Included(value.term(field)),
            Bound::Excluded(value) => Bound::Excluded(value.term(field)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let library: Resolved = match kind {
            FieldType::Text | FieldType::MatchOnlyText => {
                let low = match term(low) {
                    // Before the first word stands the mark of texts without any.
                    Bound::Unbounded => Bound::Excluded(Term::from_field_text(field, NO_WORDS)),
                    low => low,
                };
                return Box::new(InvertedIndexRangeQuery::new(low, term(high)));
            }
            FieldType::Keyword | FieldType::Ip | FieldType::GeoPoint => {
                return Box::new(LibraryRange::new(term(low), term(high)));
            }
            // The library has no ranges of booleans.
            FieldType::Boolean => any_value(indexed, move |bits| {
                ends.is_some_and(|(low, high)| (low.into()..=high.into()).contains(&bits))
            }),
            _ => Box::new(LibraryRange::new(term(low), term(high))),
        };
        let Some(ends) = ends else { return nothing() };
        let (path, findings) = (indexed.path.to_owned(), self.findings.clone());
        let between: Arc<dyn DocPredicateBoxable> =
            Arc::new(Between { path, kind, ends, findings, library });
        Box::new(DocPredicateQuery::from(between))
    }

    fn only_texts(&self, indexed: &IndexedField, query: &str) -> Result<()> {
        if indexed.is_text() {
            return Ok(());
        }
        let (path, kind) = (indexed.path, indexed.mapped.kind.name());
        let reason = format!(
            "Can only use {query} queries on keyword and text fields - not on [{path}] which is of type [{kind}]"
        );
        Err(unfit(reason).into())
    }

    fn wildcard(&self, indexed: &IndexedField, pattern: &str, analyzed: bool) -> Result<Resolved> {
        self.only_texts(indexed, "wildcard")?;
        // The words of a text are in lower case.
        let lower = (analyzed && indexed.mapped.kind.has_words()).then(|| pattern.to_lowercase());
        let pattern = lower.as_deref().unwrap_or(pattern);
        match pattern.strip_suffix('*').filter(|start| !start.contains(['*', '?', '\\'])) {
            Some(start) => self.prefix(indexed, start),
            None => wildcard::of(pattern, indexed.field),
        }
    }

    fn regexp(&self, indexed: &IndexedField, pattern: &str) -> Result<Resolved> {
        self.only_texts(indexed, "regexp")?;
        if pattern.chars().count() > MAX_SIGNS {
            let reason = format!(
                "[regexp] has more than {MAX_SIGNS} signs (index.max_regex_length); send [wildcard] or [terms]"
            );
            return Err(unfit(reason).into());
        }
        let mut regexps = self.regexps.borrow_mut();
        let regex = match regexps.get(pattern) {
            Some(regex) => regex.clone(),
            None if regexps.len() == MAX_REGEXPS => {
                let reason = format!(
                    "the search has more than {MAX_REGEXPS} regular expressions; join them by [|], or send [wildcard] or [terms]"
                );
                return Err(unfit(reason).into());
            }
            None => {
                let regex = Regex::new(&pattern::of_regexp(pattern)?);
                let refused = |error| unfit(format!("[regexp] cannot be read: {error}"));
                let regex = Arc::new(regex.map_err(refused)?);
                regexps.insert(pattern.to_owned(), regex.clone());
                regex
            }
        };
        Ok(Box::new(RegexQuery::from_regex(regex, indexed.field)))
    }

    fn prefix(&self, indexed: &IndexedField, value: &str) -> Result<Resolved> {
        self.only_texts(indexed, "prefix")?;
        if value.is_empty() {
            return self.exists(indexed.path);
        }
        let term = |text: &str| Term::from_field_text(indexed.field, text);
        let upper = match successor(value) {
            Some(next) => Bound::Excluded(term(&next)),
            None => Bound::Unbounded,
        };
        Ok(Box::new(InvertedIndexRangeQuery::new(Bound::Included(term(value)), upper)))
    }

    fn exists(&self, path: &str) -> Result<Resolved> {
        let below = format!("{path}.");
        let within = |name: &str| name == path || name.starts_with(&below);
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        // What is one of the `fields` of another does not make that one exist.
        let fields = self.mapping.fields().iter();
        let fields = fields.filter(|(name, field)| *name == path || !field.is_multi_field());
        for name in fields.map(|(name, _)| name).filter(|name| within(name)) {
            let Some(indexed) = self.indexed(name) else { continue };
            let field = indexed.field;
            // The lengths of texts are kept of those that were mapped from the beginning.
            let keeps_lengths = self.searcher.schema().get_field_entry(field).has_fieldnorms();
            let query: Resolved = match indexed.mapped.kind {
                FieldType::Text | FieldType::MatchOnlyText if !keeps_lengths => {
                    let first = Bound::Included(Term::from_field_text(field, ""));
                    Box::new(InvertedIndexRangeQuery::new(first, Bound::Unbounded))
                }
                FieldType::Text => predicate(move |segment| {
                    let norms = segment.get_fieldnorms_reader(field)?;
                    Ok(move |doc: DocId| norms.fieldnorm_id(doc) > 0)
                }),
                kind if kind.columns().is_some() => {
                    Box::new(ExistsQuery::new(first_column(name, kind), false))
                }
                _ => Box::new(ExistsQuery::new(name.clone(), false)),
            };
            clauses.push((Occur::Should, query));
        }
        Ok(match clauses.len() {
            0 => nothing(),
            1 => clauses.remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        })
    }

    fn function_score(&self, of: &FunctionScore) -> Result<Resolved> {
        let functions = of.functions.iter().map(|function| {
            let filter = function.filter.as_ref().map(|query| self.resolve(query)).transpose()?;
            Ok(Function {
                filter,
                weight: function.weight,
                kind: Kind::of(&function.kind, self.mapping, self.now_ms)?,
            })
        });
        let by = Functions {
            functions: functions.collect::<Result<_>>()?,
            functions_by: of.functions_by,
            with_score_by: of.with_score_by,
            max_boost: of.max_boost,
            min_score: of.min_score,
            failed: self.failed.clone(),
        };
        Ok(Box::new(FunctionScored { query: self.resolve(&of.query)?, by: Arc::new(by) }))
    }

    fn bool(&self, query: &BoolQuery) -> Result<Resolved> {
        let needed = query.needed();
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        for clause in &query.must {
            clauses.extend(self.clause(clause)?.map(|clause| (Occur::Must, clause)));
        }
        for clause in &query.filter {
            clauses.push((Occur::Must, constant(self.resolve(clause)?, 0.0)));
        }
        if clauses.is_empty() && needed == 0 {
            // Without any clause everything matches and scores; with those that only exclude or add it does not.
            let whole = query.should.is_empty() && query.must_not.is_empty();
            clauses
                .push((Occur::Must, constant(Box::new(AllQuery), if whole { 1.0 } else { 0.0 })));
        }
        for clause in &query.should {
            clauses.extend(self.clause(clause)?.map(|clause| (Occur::Should, clause)));
        }
        for clause in &query.must_not {
            let Some(clause) = self.clause(clause)? else { continue };
            let excluded = predicate(move |segment| {
                let weight =
                    clause.weight(EnableScoring::disabled_from_schema(segment.schema()))?;
                Ok(Excluded(weight.scorer(segment, 1.0)?))
            });
            clauses.push((Occur::MustNot, excluded));
        }
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed)))
    }
}

/// Documents with a range that lies so to one of numbers.
fn ranges(path: &str, (low, high): Bounds, relation: Relation) -> Resolved {
    let number = |bound: Bound<Value>, open: f64, next: fn(f64) -> f64| match bound {
        Bound::Included(Value::Double(number)) => number,
        Bound::Excluded(Value::Double(number)) => next(number),
        _ => open,
    };
    let low = number(low, f64::NEG_INFINITY, f64::next_up);
    let high = number(high, f64::INFINITY, f64::next_down);
    pairs((format!("{path}.gte"), format!("{path}.lte")), move |least, greatest| match relation {
        Relation::Intersects => least <= high && greatest >= low,
        Relation::Contains => least <= low && greatest >= high,
        Relation::Within => least >= low && greatest <= high,
    })
}

fn boosted(query: Resolved, boost: f32) -> Resolved {
    if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) }
}

/// Scores by the best of some queries, and by a share of the others.
fn best_of(mut queries: Vec<Resolved>, tie_breaker: f32) -> Resolved {
    match queries.len() {
        0 => nothing(),
        1 => queries.remove(0),
        _ => Box::new(DisjunctionMaxQuery::with_tie_breaker(queries, tie_breaker)),
    }
}

fn set(terms: impl Iterator<Item = Term>) -> Resolved {
    let terms: Vec<Term> = terms.collect();
    if terms.is_empty() { nothing() } else { Box::new(TermSetQuery::new(terms)) }
}

/// Documents with a point that fits.
fn points(path: &str, fits: impl Fn(f64, f64) -> bool + Clone + Send + Sync + 'static) -> Resolved {
    pairs((format!("{path}.lat"), format!("{path}.lon")), fits)
}

/// Documents with a pair of numbers in two columns that fits.
fn pairs(
    names: (String, String),
    fits: impl Fn(f64, f64) -> bool + Clone + Send + Sync + 'static,
) -> Resolved {
    predicate(move |segment| {
        let columns = segment.fast_fields();
        let firsts = columns.column_opt::<f64>(&names.0)?;
        let seconds = columns.column_opt::<f64>(&names.1)?;
        let (columns, fits) = (firsts.zip(seconds), fits.clone());
        Ok(move |doc: DocId| {
            let Some((firsts, seconds)) = &columns else { return false };
            let mut pairs = firsts.values_for_doc(doc).zip(seconds.values_for_doc(doc));
            pairs.any(|(first, second)| fits(first, second))
        })
    })
}

/// Bounds as the least and the greatest value, in the bits of columns; none where these are no such numbers, or where
/// nothing lies between.
fn ends_of(kind: FieldType, (low, high): &Bounds) -> Option<(u64, u64)> {
    let has_bits = !matches!(kind, FieldType::Keyword | FieldType::Ip | FieldType::GeoPoint);
    if kind.has_words() || !has_bits {
        return None;
    }
    let bits = |value: &Value| u64::try_from(value.bits()).ok();
    let low = match low {
        Bound::Included(value) => bits(value)?,
        Bound::Excluded(value) => bits(value)?.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let high = match high {
        Bound::Included(value) => bits(value)?,
        Bound::Excluded(value) => bits(value)?.checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (low <= high).then_some((low, high))
}

/// Documents with a value whose bits fit.
fn any_value(
    indexed: &IndexedField,
    fits: impl Fn(u128) -> bool + Send + Sync + 'static,
) -> Resolved {
    let (path, kind, fits) = (indexed.path.to_owned(), indexed.mapped.kind, Arc::new(fits));
    predicate(move |segment| {
        let (column, fits) = (Column::open(segment, &path, kind)?, fits.clone());
        Ok(move |doc: DocId| {
            let mut found = false;
            column.each_bits(doc, |bits| found |= fits(bits));
            found
        })
    })
}

/// The least text that comes after all that begin with `prefix`; none if there is none.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // The surrogates between are no characters.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_prefix() {
        assert_eq!(successor("ab"), Some("ac".to_owned()));
        assert_eq!(successor("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(successor("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(successor("\u{10ffff}"), None);
    }
}
