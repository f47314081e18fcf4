//! From a query as plain data to one of the index library, by the mapping of the shard.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, ExistsQuery,
    InvertedIndexRangeQuery, Occur, PhraseQuery, Query as Library, RangeQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Searcher, SegmentReader, Term};

use query::{
    BoolQuery, FieldType, Literal, Mapping, MinimumShouldMatch, Query, QueryKind, geo, mapping,
    unfit,
};

use super::bounds::Findings;
use super::column::Column;
use super::excluded::Excluded;
use super::failed::{Failed, Result};
use super::matches::Interval;
use super::statistics::Scored;
use super::value::{Value, exact, range};
use crate::tantivy_storage::schema::ID;

/// A resolved query.
type Resolved = Box<dyn Library>;
type Bounds = (Bound<Value>, Bound<Value>);

/// Resolves queries against one view of a shard.
pub(super) struct Resolver<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) mapping: &'a Mapping,
    pub(super) findings: &'a Findings,
    pub(super) now_ms: i64,
}

/// A mapped field that this copy indexes.
struct IndexedField<'a> {
    field: Field,
    path: &'a str,
    mapped: &'a mapping::Field,
}

fn constant(query: Resolved, score: f32) -> Resolved {
    Box::new(ConstScoreQuery::new(query, score))
}

fn nothing() -> Resolved {
    Box::new(EmptyQuery)
}

fn predicate<S>(
    of_segment: impl Fn(&SegmentReader) -> tantivy::Result<S> + Send + Sync + 'static,
) -> Resolved
where
    S: Fn(DocId) -> bool + Send + Sync + 'static,
{
    Box::new(DocPredicateQuery::from(FunctionPredicate::from(of_segment)))
}

impl Resolver<'_> {
    /// Resolves a query.
    pub(super) fn resolve(&self, query: &Query) -> Result<Resolved> {
        let boost = query.boost;
        let scored = |found: Resolved| match boost {
            1.0 => found,
            boost => Box::new(BoostQuery::new(found, boost)),
        };
        let unscored = match &query.kind {
            QueryKind::MatchAll if boost == 1.0 => return Ok(Box::new(AllQuery)),
            QueryKind::Match { field, value, all, minimum, lenient } => {
                let found = self.match_words(field, value, *all, minimum.as_ref());
                return Ok(scored(match found {
                    Err(Failed::Search(_)) if *lenient => nothing(),
                    found => found?,
                }));
            }
            QueryKind::MatchPhrase { field, value } => {
                return Ok(scored(self.match_phrase(field, value)?));
            }
            QueryKind::Term { field, value } => return Ok(scored(self.term(field, value)?)),
            QueryKind::Bool(query) => return Ok(scored(self.bool(query)?)),
            QueryKind::MatchAll => Box::new(AllQuery),
            QueryKind::MatchNone => nothing(),
            QueryKind::Terms { field, values } => self.terms(field, values)?,
            QueryKind::Range { field, .. } => self.range(field, &query.kind)?,
            QueryKind::Prefix { field, value } => self.prefix(field, value)?,
            QueryKind::Exists { field } => self.exists(field)?,
            QueryKind::Ids { values } => {
                let id = self.searcher.schema().get_field(ID)?;
                set(values.iter().map(|value| Term::from_field_text(id, value)))
            }
            QueryKind::GeoDistance { field, center, distance_m } => {
                let (center, distance_m) = (*center, *distance_m);
                let (south, north) = geo::latitudes_within(center, distance_m);
                self.points(field, "geo_distance", move |lat, lon| {
                    (south..=north).contains(&lat)
                        && geo::haversine_m(center, (lat, lon)) <= distance_m
                })?
            }
            QueryKind::GeoBoundingBox { field, top, left, bottom, right } => {
                let (top, left, bottom, right) = (*top, *left, *bottom, *right);
                self.points(field, "geo_bounding_box", move |lat, lon| {
                    let between = match left <= right {
                        true => lon >= left && lon <= right,
                        false => lon >= left || lon <= right,
                    };
                    between && lat <= top && lat >= bottom
                })?
            }
            QueryKind::ConstantScore { filter } => self.resolve(filter)?,
        };
        Ok(constant(unscored, boost))
    }

    /// The field of a path; none where the mapping or this copy has none.
    fn indexed<'b>(&'b self, path: &'b str) -> Option<IndexedField<'b>> {
        let mapped = self.mapping.field(path)?;
        let name = match mapped.kind {
            FieldType::GeoPoint => format!("{path}.lat"),
            _ => path.to_owned(),
        };
        let field = self.searcher.schema().get_field(&name).ok()?;
        Some(IndexedField { field, path, mapped })
    }

    fn scored(&self, indexed: &IndexedField, query: Resolved) -> Result<Resolved> {
        let counts = self.findings.counts.of(
            self.searcher,
            indexed.field,
            indexed.path,
            indexed.mapped.kind,
        )?;
        Ok(Box::new(Scored { counts, query }))
    }

    /// The words of a text, each with its position.
    fn words(&self, indexed: &IndexedField, text: &str) -> Result<Vec<(usize, Term)>> {
        if indexed.mapped.kind == FieldType::Keyword {
            return Ok(vec![(0, Term::from_field_text(indexed.field, text))]);
        }
        let mut tokenizer = self.searcher.index().tokenizer_for_field(indexed.field)?;
        let mut stream = tokenizer.token_stream(text);
        let mut words = Vec::new();
        stream.process(&mut |token| {
            words.push((token.position, Term::from_field_text(indexed.field, &token.text)));
        });
        Ok(words)
    }

    fn match_words(
        &self,
        path: &str,
        value: &Literal,
        all: bool,
        minimum: Option<&MinimumShouldMatch>,
    ) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if !matches!(indexed.mapped.kind, FieldType::Text | FieldType::Keyword) {
            return self.term(path, value);
        }
        let words = self.words(&indexed, &value.text())?;
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        let occur = if all { Occur::Must } else { Occur::Should };
        for (_, word) in words {
            clauses.push((occur, self.word(&indexed, word)?));
        }
        if clauses.is_empty() {
            return Ok(nothing());
        }
        if clauses.len() == 1 {
            return Ok(clauses.remove(0).1);
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

    fn match_phrase(&self, path: &str, value: &Literal) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if indexed.mapped.kind != FieldType::Text {
            return self.match_words(path, value, true, None);
        }
        let mut words = self.words(&indexed, &value.text())?;
        match words.len() {
            0 => Ok(nothing()),
            1 => self.word(&indexed, words.remove(0).1),
            _ => self.scored(&indexed, Box::new(PhraseQuery::new_with_offset(words))),
        }
    }

    fn term(&self, path: &str, value: &Literal) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if matches!(indexed.mapped.kind, FieldType::Text | FieldType::Keyword) {
            return self.word(&indexed, Term::from_field_text(indexed.field, &value.text()));
        }
        let bounds = self.exactly(&indexed, value)?;
        Ok(bounds.map_or_else(nothing, |bounds| constant(between(&indexed, bounds), 1.0)))
    }

    fn terms(&self, path: &str, values: &[Literal]) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if matches!(indexed.mapped.kind, FieldType::Text | FieldType::Keyword) {
            let term = |value: &Literal| Term::from_field_text(indexed.field, &value.text());
            return Ok(set(values.iter().map(term)));
        }
        // Dates by a day are ranges, so that a set of values will not do for all of them.
        let mut points = BTreeSet::new();
        let mut ranges: Vec<(Occur, Resolved)> = Vec::new();
        for value in values {
            let Some((low, high)) =
                exact(indexed.path, indexed.mapped, value, (None, 0, self.now_ms))?
            else {
                continue;
            };
            if low == high {
                points.insert(low.bits());
            } else {
                let bounds = (Bound::Included(low), Bound::Included(high));
                ranges.push((Occur::Should, between(&indexed, bounds)));
            }
        }
        if !points.is_empty() {
            let one_of = any_value(&indexed, move |bits| points.contains(&bits));
            ranges.push((Occur::Should, one_of));
        }
        Ok(if ranges.is_empty() { nothing() } else { Box::new(BooleanQuery::new(ranges)) })
    }

    fn range(&self, path: &str, kind: &QueryKind) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if indexed.mapped.kind == FieldType::GeoPoint {
            return Err(unfit(format!(
                "Field [{path}] of type [geo_point] does not support range queries"
            ))
            .into());
        }
        match self.bounds(&indexed, kind)? {
            None => Ok(nothing()),
            Some((Bound::Unbounded, Bound::Unbounded)) => self.exists(path),
            Some(bounds) => Ok(between(&indexed, bounds)),
        }
    }

    /// The bounds of what equals a value; none if nothing can.
    fn exactly(&self, indexed: &IndexedField, value: &Literal) -> Result<Option<Bounds>> {
        let ends = exact(indexed.path, indexed.mapped, value, (None, 0, self.now_ms))?;
        Ok(ends.map(|(low, high)| (Bound::Included(low), Bound::Included(high))))
    }

    /// The bounds of a range; none if nothing can lie within.
    fn bounds(&self, indexed: &IndexedField, kind: &QueryKind) -> Result<Option<Bounds>> {
        let QueryKind::Range { lower, upper, format, zone_ms, .. } = kind else { return Ok(None) };
        let ends = (lower.as_ref(), upper.as_ref());
        Ok(range(indexed.path, indexed.mapped, ends, (format.as_ref(), *zone_ms, self.now_ms))?)
    }

    /// What a query asks, where that is no more than that one value lies between two.
    pub(super) fn interval(&self, query: &Query) -> Result<Option<Interval>> {
        let path = match &query.kind {
            QueryKind::ConstantScore { filter } => return self.interval(filter),
            QueryKind::Term { field, .. } | QueryKind::Range { field, .. } => field,
            _ => return Ok(None),
        };
        let Some(indexed) = self.indexed(path) else { return Ok(None) };
        let bounds = match &query.kind {
            QueryKind::Term { value, .. } => self.exactly(&indexed, value)?,
            kind => self.bounds(&indexed, kind)?,
        };
        let kind = indexed.mapped.kind;
        let ends = bounds.and_then(|bounds| ends_of(kind, &bounds));
        Ok(ends.map(|ends| Interval { path: path.clone(), kind, ends }))
    }

    fn prefix(&self, path: &str, value: &str) -> Result<Resolved> {
        let Some(indexed) = self.indexed(path) else { return Ok(nothing()) };
        if !matches!(indexed.mapped.kind, FieldType::Text | FieldType::Keyword) {
            return Err(unfit(format!(
                "Can only use prefix queries on keyword and text fields - not on [{path}] which is of type [{}]",
                indexed.mapped.kind.name()
            ))
            .into());
        }
        if value.is_empty() {
            return self.exists(path);
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
        let fields = self.mapping.fields();
        let within = |name: &str| name == path || name.starts_with(&below);
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        for (name, _) in fields.iter().filter(|(name, _)| within(name)) {
            let Some(indexed) = self.indexed(name) else { continue };
            let field = indexed.field;
            let query: Resolved = match indexed.mapped.kind {
                FieldType::Text if !self.keeps_lengths(field) => {
                    let first = Bound::Included(Term::from_field_text(field, ""));
                    Box::new(InvertedIndexRangeQuery::new(first, Bound::Unbounded))
                }
                FieldType::Text => predicate(move |segment| {
                    let norms = segment.get_fieldnorms_reader(field)?;
                    Ok(move |doc| norms.fieldnorm_id(doc) > 0)
                }),
                FieldType::GeoPoint => Box::new(ExistsQuery::new(format!("{name}.lat"), false)),
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

    /// Whether the lengths of texts are kept: of those that were mapped from the beginning.
    fn keeps_lengths(&self, field: Field) -> bool {
        self.searcher.schema().get_field_entry(field).has_fieldnorms()
    }

    fn points(
        &self,
        path: &str,
        query: &str,
        fits: impl Fn(f64, f64) -> bool + Clone + Send + Sync + 'static,
    ) -> Result<Resolved> {
        let Some(mapped) = self.mapping.field(path) else {
            return Err(unfit(format!("failed to find geo field [{path}]")).into());
        };
        if mapped.kind != FieldType::GeoPoint {
            return Err(unfit(format!(
                "Field [{path}] is of unsupported type [{}] for [{query}] query",
                mapped.kind.name()
            ))
            .into());
        }
        if self.indexed(path).is_none() {
            return Ok(nothing());
        }
        let names = (format!("{path}.lat"), format!("{path}.lon"));
        Ok(predicate(move |segment| {
            let columns = segment.fast_fields();
            let lats = columns.column_opt::<f64>(&names.0)?;
            let lons = columns.column_opt::<f64>(&names.1)?;
            let (columns, fits) = (lats.zip(lons), fits.clone());
            Ok(move |doc| {
                let Some((lats, lons)) = &columns else { return false };
                lats.values_for_doc(doc)
                    .zip(lons.values_for_doc(doc))
                    .any(|(lat, lon)| fits(lat, lon))
            })
        }))
    }

    fn bool(&self, query: &BoolQuery) -> Result<Resolved> {
        let needed = query.needed();
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        for clause in &query.must {
            clauses.push((Occur::Must, self.resolve(clause)?));
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
            clauses.push((Occur::Should, self.resolve(clause)?));
        }
        for clause in &query.must_not {
            clauses.push((Occur::MustNot, Box::new(Excluded(self.resolve(clause)?))));
        }
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed)))
    }
}

fn set(terms: impl Iterator<Item = Term>) -> Resolved {
    let terms: Vec<Term> = terms.collect();
    if terms.is_empty() { nothing() } else { Box::new(TermSetQuery::new(terms)) }
}

fn between(indexed: &IndexedField, bounds: Bounds) -> Resolved {
    // The library has no ranges of booleans.
    if indexed.mapped.kind == FieldType::Boolean {
        return match ends_of(FieldType::Boolean, &bounds) {
            Some((low, high)) => {
                any_value(indexed, move |bits| (low.into()..=high.into()).contains(&bits))
            }
            None => nothing(),
        };
    }
    let (low, high) = bounds;
    let field = indexed.field;
    let term = move |bound: Bound<Value>| match bound {
        Bound::Included(value) => Bound::Included(value.term(field)),
        Bound::Excluded(value) => Bound::Excluded(value.term(field)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let (low, high) = (term(low), term(high));
    if indexed.mapped.kind == FieldType::Text {
        return Box::new(InvertedIndexRangeQuery::new(low, high));
    }
    Box::new(RangeQuery::new(low, high))
}

/// Bounds as the least and the greatest value, in the bits of columns; none where these are no such numbers, or where
/// nothing lies between.
fn ends_of(kind: FieldType, (low, high): &Bounds) -> Option<(u64, u64)> {
    if matches!(kind, FieldType::Keyword | FieldType::Text | FieldType::Ip | FieldType::GeoPoint) {
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
        Ok(move |doc| {
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
