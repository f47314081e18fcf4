//! From a query as plain data to one of the index library, by the mapping of the shard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tantivy::query::doc_predicate_query::{
    DocPredicateQuery, FunctionPredicate, SegmentDocPredicate,
};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery,
    EnableScoring, ExistsQuery, Occur, Query as Library, Scorer, TermQuery, TermSetQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Searcher, SegmentReader, Term};
use tantivy_fst::Regex;

use query::{
    BoolQuery, FieldQuery, FieldType, FieldsQuery, FirstQuery, FunctionScore, Mapping, Query,
    QueryKind, SearchError, SearchLimits, illegal, mapping, unfit,
};

use record::names::matches;

use super::failed::Result;
use super::findings::Findings;
use super::first::First;
use super::functions::{Function, FunctionScored, Functions, opens};
use super::indexed_field::IndexedField;
use super::statistics::any_word;
use crate::tantivy_storage::schema::{ID, WORDLESS, first_column};

/// Bytes that what is made of a search may take, so that no body stops a node: clauses are made once for each field
/// that they ask, and patterns and words for each clause.
const MAX_BYTES: usize = 256 << 20;
/// What one clause of one field takes, once it reads an index.
pub(super) const CLAUSE_BYTES: usize = 1 << 10;

/// A resolved query.
pub(super) type Resolved = Box<dyn Library>;

/// Resolves queries against one view of a shard.
pub(super) struct Resolver<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) mapping: &'a Mapping,
    pub(super) findings: &'a Arc<Findings>,
    pub(super) limits: &'a SearchLimits,
    /// Regular expressions so far, by their text and whether they are of any case: fields share them.
    pub(super) regexps: RefCell<BTreeMap<(String, bool), Arc<Regex>>>,
    /// Bytes of what was made so far.
    pub(super) spent: Cell<usize>,
    /// Why a document has no score.
    pub(super) failed: Arc<OnceLock<SearchError>>,
    /// Whether documents are not looked at as enough were found.
    pub(super) leaves_some: Cell<bool>,
}

pub(super) fn constant(query: Resolved, score: f32) -> Resolved {
    Box::new(ConstScoreQuery::new(query, score))
}

pub(super) fn nothing() -> Resolved {
    Box::new(EmptyQuery)
}

pub(super) fn predicate<S: SegmentDocPredicate>(
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

impl<'a> Resolver<'a> {
    /// Nothing was made yet.
    pub(super) fn new(
        (searcher, mapping): (&'a Searcher, &'a Mapping),
        findings: &'a Arc<Findings>,
        limits: &'a SearchLimits,
    ) -> Self {
        let (regexps, spent, failed, leaves_some) = Default::default();
        Resolver { searcher, mapping, findings, limits, regexps, spent, failed, leaves_some }
    }
}

impl Resolver<'_> {
    /// Counts what is about to be made. Fails where the search would take too much with it.
    pub(super) fn spend(&self, bytes: usize) -> Result<()> {
        self.spent.set(self.spent.get().saturating_add(bytes));
        if self.spent.get() <= MAX_BYTES {
            return Ok(());
        }
        let reason = "the search has too many words, fuzzy words and patterns, each counted in each of the fields that \
                      are asked; send fewer, or name fewer fields";
        Err(illegal(reason).into())
    }

    /// Resolves a query.
    pub(super) fn resolve(&self, query: &Query) -> Result<Resolved> {
        let boost = query.boost;
        let (found, scores) = match &query.kind {
            QueryKind::MatchAll if boost == 1.0 => return Ok(Box::new(AllQuery)),
            QueryKind::MatchAll => (Box::new(AllQuery) as Resolved, false),
            QueryKind::MatchNone => (nothing(), false),
            QueryKind::Bool(query) => (self.bool(query)?.unwrap_or_else(nothing), true),
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
            // What a query finds through the aliases by which this index is named.
            QueryKind::Aliased(of) => match of.filters.get(&self.limits.index) {
                Some(filter) => (self.resolve(&of.query.filtered(vec![filter.clone()]))?, true),
                None => (self.resolve(&of.query)?, true),
            },
            QueryKind::First(of) => (self.first(of)?, true),
            QueryKind::Field(path, query) => {
                let mapped = self.mapping.field(path);
                let kind = mapped.map(|mapped| mapped.kind);
                let scores = match query {
                    // What is found by a column scores 1, as in the field.
                    _ if mapped.is_some_and(|mapped| !mapped.indexed) => false,
                    FieldQuery::Match { .. }
                    | FieldQuery::MatchPhrase(_)
                    | FieldQuery::PhrasePrefix { .. }
                    | FieldQuery::Term(_)
                    | FieldQuery::Fuzzy(..) => true,
                    // They may come to one value, which scores as a term does.
                    FieldQuery::Terms(_) | FieldQuery::Range(_) => kind == Some(FieldType::Boolean),
                    _ => false,
                };
                (self.field(path, query)?, scores)
            }
        };
        Ok(if scores { boosted(found, boost) } else { constant(found, boost) })
    }

    /// The first documents that match, in place of all.
    fn first(&self, of: &FirstQuery) -> Result<Resolved> {
        let query = self.clause(&of.query, false)?.unwrap_or_else(nothing);
        let (first, leaves_some) =
            First::of(query.as_ref(), of.most, self.searcher, &self.limits.stop)?;
        self.leaves_some.set(leaves_some);
        let first = constant(Box::new(DocPredicateQuery::from(first)), 0.0);
        Ok(Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, first)])))
    }

    /// A clause of others; none where it is to be left out. Clauses of clauses are where those around them drop.
    fn clause(&self, query: &Query, drops: bool) -> Result<Option<Resolved>> {
        match &query.kind {
            // Among others the library leaves out what matches all, and its score with it.
            QueryKind::MatchAll => Ok(Some(constant(Box::new(AllQuery), query.boost))),
            QueryKind::Fields(asked) => {
                Ok(self.fields(asked)?.map(|found| boosted(found, query.boost)))
            }
            QueryKind::Bool(of) if drops => {
                Ok(self.bool(of)?.map(|found| boosted(found, query.boost)))
            }
            _ => self.resolve(query).map(Some),
        }
    }

    /// The same of each of several fields; none where it has no words to any of them, and is to be left out then.
    fn fields(&self, asked: &FieldsQuery) -> Result<Option<Resolved>> {
        if asked.fields.is_empty()
            && self.default_is_all()
            && matches!(&asked.query, FieldQuery::Wildcard { pattern, .. } if pattern == "*")
        {
            return Ok(Some(constant(Box::new(AllQuery), 1.0)));
        }
        let (boosts, lenient) = self.asked_fields(asked);
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
                Err(failed) if lenient && failed.is_unfit() => {}
                query => found.push(query?),
            }
        }
        Ok(Some(best_of(found, asked.tie_breaker)))
    }

    fn default_is_all(&self) -> bool {
        self.limits.default_fields.iter().any(|(pattern, _)| pattern == "*")
    }

    /// The fields that are asked, each with what its score is multiplied by; and whether what does not fit the type of
    /// one matches nothing in it.
    pub(super) fn asked_fields<'b>(
        &'b self,
        asked: &'b FieldsQuery,
    ) -> (BTreeMap<&'b str, f32>, bool) {
        let is_default = asked.fields.is_empty();
        let fields = if is_default { &self.limits.default_fields } else { &asked.fields };
        let mut boosts: BTreeMap<&str, f32> = BTreeMap::new();
        for (pattern, boost) in fields {
            let mut add = |path| *boosts.entry(path).or_insert(1.0) *= boost;
            if !pattern.contains('*') {
                add(pattern);
                continue;
            }
            let fields = self.mapping.fields().iter();
            let fields = fields
                .filter(|(_, field)| field.is_searched() && field.kind != FieldType::GeoPoint);
            fields.filter(|(path, _)| matches(pattern, path)).for_each(|(path, _)| add(path));
        }
        (boosts, asked.lenient.unwrap_or_else(|| self.default_is_all()))
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
        let of_points = match query {
            FieldQuery::GeoDistance { .. } => Some(("geo_distance", &false)),
            FieldQuery::GeoBoundingBox { ignore_unmapped, .. } => {
                Some(("geo_bounding_box", ignore_unmapped))
            }
            FieldQuery::GeoPolygons { ignore_unmapped, .. } => Some(("geo_shape", ignore_unmapped)),
            _ => None,
        };
        match (of_points, self.mapping.field(path).map(|mapped| mapped.kind)) {
            (None, _) | (_, Some(FieldType::GeoPoint)) => {}
            (Some((_, true)), None) => return Ok(nothing()),
            (Some(_), None) => {
                return Err(unfit(format!("failed to find geo field [{path}]")).into());
            }
            (Some((name, _)), Some(kind)) => {
                let kind = kind.name();
                let reason =
                    format!("Field [{path}] is of unsupported type [{kind}] for [{name}] query");
                return Err(unfit(reason).into());
            }
        }
        if self.mapping.field(path).is_none() && mapping::is_metadata(path) {
            let reason =
                format!("Field [{path}] cannot be searched here; [_id] can, with [ids] or [term]");
            // Who is lenient about values is told of a field that would match nothing. In the field [_id] does.
            return Err(if path == ID { unfit(reason) } else { illegal(reason) }.into());
        }
        if self.mapping.field(path).is_some_and(|mapped| !mapped.is_searched()) {
            let reason = format!("Cannot search on field [{path}] since it is not indexed.");
            return Err(unfit(reason).into());
        }
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        self.spend(CLAUSE_BYTES)?;
        match query {
            FieldQuery::Match { value, all, prefix, minimum, lenient, fuzziness } => {
                let words = (*all, *prefix, minimum.as_ref(), fuzziness.as_ref());
                match self.match_words(&indexed, value, words) {
                    Err(failed) if *lenient && failed.is_unfit() => Ok(nothing()),
                    found => found,
                }
            }
            FieldQuery::MatchPhrase(value) => self.match_phrase(&indexed, value),
            FieldQuery::PhrasePrefix { value, words_max } => {
                self.phrase_prefix(&indexed, value, *words_max)
            }
            FieldQuery::Term(value) => self.term(&indexed, value),
            FieldQuery::Terms(values) => self.terms(&indexed, values),
            FieldQuery::Fuzzy(value, fuzziness) => {
                self.only_texts(&indexed, "fuzzy")?;
                self.fuzzy(&indexed, value, fuzziness)
            }
            FieldQuery::Range(range) => self.range(&indexed, range),
            FieldQuery::Prefix(value) => self.prefix(&indexed, value),
            FieldQuery::Wildcard { pattern, analyzed, any_case } => {
                self.wildcard(&indexed, pattern, (*analyzed, *any_case))
            }
            FieldQuery::Regexp { pattern, any_case } => self.regexp(&indexed, pattern, *any_case),
            FieldQuery::GeoDistance { center, distance_m } => {
                Ok(self.within_distance(path, *center, *distance_m))
            }
            FieldQuery::GeoBoundingBox { sides, .. } => Ok(self.within_box(path, *sides)),
            FieldQuery::GeoPolygons { polygons, .. } => Ok(self.within_polygons(path, polygons)),
        }
    }

    /// The field of a path; none where the mapping or this copy has none.
    pub(super) fn indexed<'b>(&'b self, path: &'b str) -> Option<IndexedField<'b>> {
        let mapped = self.mapping.field(path)?;
        let name = first_column(path, mapped.kind);
        let field = self.searcher.schema().get_field(&name).ok()?;
        Some(IndexedField { field, path, mapped })
    }

    pub(super) fn exists(&self, path: &str) -> Result<Resolved> {
        if matches!(path, ID | mapping::INDEX) {
            return Ok(Box::new(AllQuery));
        }
        if mapping::is_metadata(path) {
            let reason = format!(
                "[exists] of the metadata field [{path}] is not supported by this engine; every document has [_id] \
                 and [_index]"
            );
            return Err(unfit(reason).into());
        }
        let below = format!("{path}.");
        let is_pattern = path.contains('*') && self.mapping.field(path).is_none();
        let within = |name: &str| {
            name == path || name.starts_with(&below) || (is_pattern && matches(path, name))
        };
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        // What is one of the `fields` of another does not make that one exist; a pattern may mean it.
        let fields = self.mapping.fields().iter();
        let fields =
            fields.filter(|(name, field)| is_pattern || *name == path || !field.is_multi_field());
        for name in fields.map(|(name, _)| name).filter(|name| within(name)) {
            let Some(indexed) = self.indexed(name) else { continue };
            self.spend(CLAUSE_BYTES)?;
            clauses.push((Occur::Should, self.with_value(&indexed)));
            if indexed.mapped.kind == FieldType::Text
                && let Ok(wordless) = self.searcher.schema().get_field(WORDLESS)
            {
                let term = Term::from_field_u64(wordless, indexed.field.field_id().into());
                let query = TermQuery::new(term, IndexRecordOption::Basic);
                clauses.push((Occur::Should, Box::new(query)));
            }
        }
        Ok(match clauses.len() {
            0 => nothing(),
            1 => clauses.remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        })
    }

    /// Documents with a value of a field; of a text, with a word.
    pub(super) fn with_value(&self, indexed: &IndexedField) -> Resolved {
        let IndexedField { field, path, mapped } = *indexed;
        // The lengths of texts are kept of those that were mapped from the beginning.
        let keeps_lengths = self.searcher.schema().get_field_entry(field).has_fieldnorms();
        match mapped.kind {
            FieldType::Text | FieldType::MatchOnlyText if !keeps_lengths => {
                Box::new(any_word(field))
            }
            FieldType::Text => predicate(move |segment| {
                let norms = segment.get_fieldnorms_reader(field)?;
                Ok(move |doc: DocId| norms.fieldnorm_id(doc) > 0)
            }),
            kind if kind.columns().is_some() => {
                Box::new(ExistsQuery::new(first_column(path, kind), false))
            }
            _ => Box::new(ExistsQuery::new(path.to_owned(), false)),
        }
    }

    fn function_score(&self, of: &FunctionScore) -> Result<Resolved> {
        let functions = of.functions.iter().map(|function| {
            let filter = function.filter.as_ref().map(|query| self.resolve(query)).transpose()?;
            Ok(Function {
                filter,
                weight: function.weight,
                opens: opens(&function.kind, self.mapping, self.limits.now_ms)?,
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
        let query = self.resolve(&of.query)?.into();
        Ok(Box::new(FunctionScored { query, by: Arc::new(by) }))
    }

    /// Clauses together; none where they are to be left out of those around them.
    fn bool(&self, query: &BoolQuery) -> Result<Option<Resolved>> {
        let left = |clauses: &[Query]| -> Result<Vec<Resolved>> {
            let clauses = clauses.iter().map(|clause| self.clause(clause, query.drops));
            clauses.filter_map(Result::transpose).collect()
        };
        let (must, should) = (left(&query.must)?, left(&query.should)?);
        let must_not = left(&query.must_not)?;
        let has_words = match query.must_not.is_empty() {
            true => !must.is_empty() || !should.is_empty(),
            false => !must_not.is_empty(),
        };
        if query.drops && !has_words {
            return Ok(None);
        }
        let asked = query.must.len() + query.should.len() + query.must_not.len();
        if asked > 0 && must.is_empty() && should.is_empty() && must_not.is_empty() {
            // Only texts have clauses that are left out, and one of which none is left matches nothing.
            return Ok(None);
        }
        let needed = query.needed(must.len(), should.len());
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        clauses.extend(must.into_iter().map(|clause| (Occur::Must, clause)));
        for clause in &query.filter {
            clauses.push((Occur::Must, constant(self.resolve(clause)?, 0.0)));
        }
        if clauses.is_empty() && needed == 0 {
            // Without any clause everything matches and scores; with those that only exclude or add it does not.
            let whole = query.should.is_empty() && query.must_not.is_empty();
            clauses
                .push((Occur::Must, constant(Box::new(AllQuery), if whole { 1.0 } else { 0.0 })));
        }
        clauses.extend(should.into_iter().map(|clause| (Occur::Should, clause)));
        for clause in must_not {
            let excluded = predicate(move |segment| {
                let weight =
                    clause.weight(EnableScoring::disabled_from_schema(segment.schema()))?;
                Ok(Excluded(weight.scorer(segment, 1.0)?))
            });
            clauses.push((Occur::MustNot, excluded));
        }
        Ok(Some(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed))))
    }
}

pub(super) fn boosted(query: Resolved, boost: f32) -> Resolved {
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

pub(super) fn set(terms: impl Iterator<Item = Term>) -> Resolved {
    let terms: Vec<Term> = terms.collect();
    if terms.is_empty() { nothing() } else { Box::new(TermSetQuery::new(terms)) }
}
