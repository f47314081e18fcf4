//! Queries about the values of a field: equal to one, or within a range.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::query::doc_predicate_query::{DocPredicateBoxable, DocPredicateQuery};
use tantivy::query::{BooleanQuery, InvertedIndexRangeQuery, Occur, RangeQuery as LibraryRange};
use tantivy::{DocId, Term};

use query::geo::{self, Polygon};
use query::{FieldType, Literal, RangeQuery, Relation, unfit};

use super::between::Between;
use super::column::{Column, long_bits, pair};
use super::failed::Result;
use super::indexed_field::IndexedField;
use super::resolve::{Resolved, Resolver, constant, nothing, predicate, set};
use super::resolve_words::end_in_its_letters;
use super::value::{self, Bounds, check_room, exact, range};
use crate::tantivy_storage::analyzer::NO_WORDS;

impl Resolver<'_> {
    pub(super) fn term(&self, indexed: &IndexedField, value: &Literal) -> Result<Resolved> {
        if indexed.is_text() {
            let word = Term::from_field_text(indexed.field, &value.text());
            return self.word(indexed, word, None);
        }
        let ends = self.ends(indexed, value)?;
        ends.map_or(Ok(nothing()), |(low, high)| self.exactly(indexed, low, high))
    }

    pub(super) fn terms(&self, indexed: &IndexedField, values: &[Literal]) -> Result<Resolved> {
        if indexed.is_text() {
            let term = |value: &Literal| Term::from_field_text(indexed.field, &value.text());
            return Ok(set(values.iter().map(term)));
        }
        if let [first, rest @ ..] = values
            && indexed.mapped.kind == FieldType::Boolean
            && rest.iter().all(|value| value.text() == first.text())
        {
            return self.term(indexed, first);
        }
        // Dates by a day are ranges, and ranges have no values, so that a set will not do for all of them.
        let has_values = indexed.mapped.kind != FieldType::DoubleRange;
        let mut points = BTreeSet::new();
        let mut ranges: Vec<(Occur, Resolved)> = Vec::new();
        for value in values {
            match self.ends(indexed, value)? {
                None => {}
                Some((low, high)) if low == high && has_values => {
                    _ = points.insert(value::bits(&low))
                }
                Some((low, high)) => {
                    ranges.push((Occur::Should, self.exactly(indexed, low, high)?));
                }
            }
        }
        if !points.is_empty() {
            let one_of = any_value(indexed, Arc::new(move |bits: u128| points.contains(&bits)));
            ranges.push((Occur::Should, one_of));
        }
        let of_all = |ranges| constant(Box::new(BooleanQuery::new(ranges)), 1.0);
        Ok(if ranges.is_empty() { nothing() } else { of_all(ranges) })
    }

    /// The least and the greatest value that equal a literal; none if nothing can.
    fn ends(&self, indexed: &IndexedField, value: &Literal) -> Result<Option<(Literal, Literal)>> {
        check_room(indexed.path, indexed.mapped, value)?;
        Ok(exact(indexed.path, indexed.mapped, value, (None, None, self.limits.now_ms))?)
    }

    fn exactly(&self, indexed: &IndexedField, low: Literal, high: Literal) -> Result<Resolved> {
        self.between(indexed, (Bound::Included(low), Bound::Included(high)))
    }

    pub(super) fn range(&self, indexed: &IndexedField, asked: &RangeQuery) -> Result<Resolved> {
        let path = indexed.path;
        if indexed.mapped.kind == FieldType::GeoPoint {
            let reason =
                format!("Field [{path}] of type [geo_point] does not support range queries");
            return Err(unfit(reason).into());
        }
        let RangeQuery { lower, upper, format, zone, relation, analyzed } = asked;
        let dates = (format.as_ref(), Some(zone), self.limits.now_ms);
        let lower = end_in_its_letters(indexed, lower.as_ref(), *analyzed);
        let upper = end_in_its_letters(indexed, upper.as_ref(), *analyzed);
        match range(path, indexed.mapped, (lower.as_ref(), upper.as_ref()), dates)? {
            bounds if indexed.mapped.kind == FieldType::DoubleRange => {
                Ok(ranges(path, bounds, *relation))
            }
            (Bound::Unbounded, Bound::Unbounded) => Ok(constant(self.exists(path)?, 1.0)),
            bounds => self.between(indexed, bounds),
        }
    }

    fn between(&self, indexed: &IndexedField, bounds: Bounds) -> Result<Resolved> {
        let kind = indexed.mapped.kind;
        if kind == FieldType::DoubleRange {
            return Ok(constant(ranges(indexed.path, bounds, Relation::Intersects), 1.0));
        }
        let (ends, mut score) = (ends_of(kind, &bounds), 1.0);
        let (low, high) = bounds;
        let (field, schema) = (indexed.field, self.searcher.schema());
        let term = |bound: Bound<Literal>| bound.map(|value| value::term(&value, field, schema));
        let library: Resolved = match kind {
            FieldType::Text | FieldType::MatchOnlyText => {
                let low = match term(low) {
                    // Before the first word stands the mark of texts without any.
                    Bound::Unbounded => Bound::Excluded(Term::from_field_text(field, NO_WORDS)),
                    low => low,
                };
                return Ok(Box::new(InvertedIndexRangeQuery::new(low, term(high))));
            }
            FieldType::Keyword | FieldType::Ip | FieldType::GeoPoint => {
                return Ok(constant(Box::new(LibraryRange::new(term(low), term(high))), 1.0));
            }
            // The library has no ranges of booleans.
            FieldType::Boolean => {
                let fits = move |bits: u128| {
                    ends.is_some_and(|(low, high)| (low.into()..=high.into()).contains(&bits))
                };
                let [no, yes] = [0, 1].map(|value| fits(long_bits(value).into()));
                // One value alone is kept as a word in the field, and scored as such.
                if no != yes {
                    let (there, path) = (self.counts(indexed)?, indexed.path);
                    score = self.findings.booleans.score(self.searcher, path, yes, there)?;
                }
                any_value(indexed, Arc::new(fits))
            }
            _ => {
                // -0.0 equals 0.0, and lies before it.
                let is_zero = |of: &Literal| matches!(of, Literal::Float(number) if *number == 0.0);
                let minus_zero = Term::from_field_f64(field, -0.0);
                let low = match low {
                    Bound::Included(of) if is_zero(&of) => Bound::Included(minus_zero.clone()),
                    low => term(low),
                };
                let high = match high {
                    Bound::Excluded(of) if is_zero(&of) => Bound::Excluded(minus_zero),
                    high => term(high),
                };
                Box::new(LibraryRange::new(low, high))
            }
        };
        let Some(ends) = ends else { return Ok(nothing()) };
        let (path, findings) = (indexed.path.to_owned(), self.findings.clone());
        let between: Arc<dyn DocPredicateBoxable> =
            Arc::new(Between { path, kind, ends, findings, library });
        Ok(constant(Box::new(DocPredicateQuery::from(between)), score))
    }

    /// Documents with a point at most so far from another.
    pub(super) fn within_distance(
        &self,
        path: &str,
        center: (f64, f64),
        distance_m: f64,
    ) -> Resolved {
        let (south, north) = geo::latitudes_within(center, distance_m);
        let fits = move |lat: f64, lon: f64| {
            (south..=north).contains(&lat) && geo::haversine_m(center, (lat, lon)) <= distance_m
        };
        pairs(path, FieldType::GeoPoint, Arc::new(fits))
    }

    /// Documents with a point in a box: its top, left, bottom and right.
    pub(super) fn within_box(&self, path: &str, [top, left, bottom, right]: [f64; 4]) -> Resolved {
        // As in the field points are kept in steps, rounded down, so that a point on the bottom or on the left may be
        // outside. A side above is rounded likewise.
        let (crosses, (top, right)) = (left > right, geo::quantized((top, right)));
        let fits = move |lat: f64, lon: f64| {
            let (lat, lon) = geo::quantized((lat, lon));
            let between = match crosses {
                false => lon >= left && lon <= right,
                true => lon >= left || lon <= right,
            };
            between && lat <= top && lat >= bottom
        };
        pairs(path, FieldType::GeoPoint, Arc::new(fits))
    }

    /// Documents with a point in one of these.
    pub(super) fn within_polygons(&self, path: &str, polygons: &[Polygon]) -> Resolved {
        let polygons = polygons.to_vec();
        let fits = move |lat: f64, lon: f64| {
            let point = geo::quantized((lat, lon));
            polygons.iter().any(|polygon| polygon.holds(point))
        };
        pairs(path, FieldType::GeoPoint, Arc::new(fits))
    }
}

/// Documents with a range that lies so to one of numbers.
fn ranges(path: &str, (low, high): Bounds, relation: Relation) -> Resolved {
    let number = |bound: Bound<Literal>, open: f64, next: fn(f64) -> f64| match bound {
        Bound::Included(Literal::Float(number)) => number,
        Bound::Excluded(Literal::Float(number)) => next(number),
        _ => open,
    };
    let low = number(low, f64::NEG_INFINITY, f64::next_up);
    let high = number(high, f64::INFINITY, f64::next_down);
    if low > high {
        return nothing();
    }
    let fits = move |least: f64, greatest: f64| match relation {
        Relation::Intersects => least <= high && greatest >= low,
        Relation::Contains => least <= low && greatest >= high,
        Relation::Within => least >= low && greatest <= high,
    };
    pairs(path, FieldType::DoubleRange, Arc::new(fits))
}

/// Documents with a pair of numbers in the two columns of a field that fits. Each kind of closure would be a scorer of
/// its own.
fn pairs(
    path: &str,
    kind: FieldType,
    fits: Arc<dyn Fn(f64, f64) -> bool + Send + Sync>,
) -> Resolved {
    let path = path.to_owned();
    predicate(move |segment| {
        let (columns, fits) = (pair(segment, &path, kind)?, fits.clone());
        Ok(move |doc: DocId| {
            let mut pairs = columns.iter().flat_map(|columns| columns.of(doc));
            pairs.any(|(first, second)| fits(first, second))
        })
    })
}

/// Bounds as the least and the greatest value, in the bits of columns; none where these are no such numbers, or where
/// nothing lies between.
fn ends_of(kind: FieldType, (low, high): &Bounds) -> Option<(u64, u64)> {
    if kind.is_of_texts() || matches!(kind, FieldType::Ip | FieldType::GeoPoint) {
        return None;
    }
    let bits = |value: &Literal| u64::try_from(value::bits(value)).ok();
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
fn any_value(indexed: &IndexedField, fits: Arc<dyn Fn(u128) -> bool + Send + Sync>) -> Resolved {
    let (path, kind) = (indexed.path.to_owned(), indexed.mapped.kind);
    predicate(move |segment| {
        let (column, fits) = (Column::open(segment, &path, kind)?, fits.clone());
        Ok(move |doc: DocId| {
            let mut found = false;
            column.each_bits(doc, |bits| found |= fits(bits));
            found
        })
    })
}
