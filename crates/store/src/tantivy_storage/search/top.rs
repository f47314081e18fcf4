//! The best hits of one segment, by whatever order.

use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::columnar::TermOrdHit;
use tantivy::{DocId, SegmentReader};

use query::{
    Field, FieldType, Literal, Mapping, SearchRequest, ShardHit, SortDistance, SortKey,
    SortMissing, SortTarget, SortValue, geo, illegal, mapping, unfit,
};

use super::bounds::Bounds;
use super::column::{Column, Pair, double_bits, double_of, long_bits, pair, text_of};
use super::failed::{Failed, Result};
use super::findings::Findings;
use super::value::{self, check_sortable};

/// Less is better. Above the 64 bits of a value stands whether there is one; an address fills all bits.
type Bits = u128;

const RANK_SHIFT: u32 = 64;
const FIRST: Bits = 0;
const THERE: Bits = 1 << RANK_SHIFT;
const LAST: Bits = Bits::MAX;

/// A key of the order in one segment.
struct Key<'a> {
    key: &'a SortKey,
    source: Source<'a>,
    /// Of documents without a value.
    missing: Bits,
}

enum Source<'a> {
    Score,
    /// The number of the first document of the segment among all of the view.
    Doc(u64),
    Field(Column),
    /// Points, where there are any, and what they are to be near.
    Distance(Option<Pair>, &'a SortDistance),
}

/// One of the best hits so far. The order is that of the heap: the worst is on top.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    first: Bits,
    /// Of the further keys, where there are any.
    rest: Vec<Bits>,
    doc: DocId,
    score_bits: u32,
}

/// Keeps the best hits of a segment.
pub(super) struct Top<'a> {
    limit: usize,
    keys: Vec<Key<'a>>,
    /// Of the first key, where many of its values can be read at once.
    bounds: Option<Arc<Bounds>>,
    /// Space for those.
    values: Vec<u64>,
    after: Option<Vec<Bits>>,
    best: BinaryHeap<Candidate>,
    /// By what hits are collapsed, and the best hit of each group.
    groups: Option<(Key<'a>, FxHashMap<Bits, Candidate>)>,
    /// Whether a document has several values of the field that hits are collapsed by.
    is_ambiguous: bool,
    shows_values: bool,
    shows_scores: bool,
}

impl<'a> Top<'a> {
    /// For a segment whose first document is number `base` of the view. The request's order is that of `keys`. Fails
    /// where an index cannot be sorted so: one without segments is asked as others are.
    pub(super) fn new(
        (request, keys, group): (&SearchRequest, &'a [SortKey], Option<&'a SortKey>),
        (mapping, now_ms): (&Mapping, i64),
        (segment, findings): (Option<&SegmentReader>, &Findings),
        base: u64,
    ) -> Result<Self> {
        let key = |of| key(of, mapping, segment, base, now_ms);
        let keys: Vec<Key<'a>> = keys.iter().map(key).collect::<Result<_>>()?;
        let after: Option<Result<Vec<Bits>>> = request.search_after.as_ref().map(|values| {
            let pairs = keys.iter().zip(values);
            pairs.map(|(key, value)| key.bits_after(value, mapping, now_ms)).collect()
        });
        let after = after.transpose()?;
        let group = group.map(key).transpose()?;
        let first = keys.first().filter(|_| group.is_none());
        let bounds = match (first.map(|first| (&first.key.target, &first.source)), segment) {
            (Some((SortTarget::Field(path), Source::Field(column))), Some(segment)) => {
                findings.bounds(segment, path, column)?
            }
            _ => None,
        };
        Ok(Top {
            limit: request.from.saturating_add(request.size),
            keys,
            bounds,
            values: Vec::new(),
            after,
            best: BinaryHeap::new(),
            groups: group.map(|key| (key, FxHashMap::default())),
            is_ambiguous: false,
            shows_values: !request.sort.is_empty(),
            shows_scores: request.shows_scores(),
        })
    }

    /// Looks at a document that matched.
    pub(super) fn collect(&mut self, doc: DocId, score: f32) {
        if let Some(first) = self.keys.first().map(|key| key.bits(doc, score))
            && self.may_be_best(first)
        {
            self.add(first, doc, score);
        }
    }

    /// Looks at documents that matched, in their order; scores do not count. Reading their values at once
    /// makes a sorted search with `terms` or `max` beside 1.6 to 1.9 times as fast (2026-12-01,
    /// docs/benchmarks/search_side_by_side.md).
    pub(super) fn collect_block(&mut self, docs: &[DocId]) {
        let (Some(Key { source: Source::Field(column), .. }), Some(_)) =
            (self.keys.first(), &self.bounds)
        else {
            return docs.iter().for_each(|doc| self.collect(*doc, 0.0));
        };
        let mut values = std::mem::take(&mut self.values);
        column.block_bits(docs, &mut values);
        // The last first: where values rise with the documents, as in a log, each would be better than those before.
        for (doc, value) in docs.iter().zip(&values).rev() {
            let first = self.keys[0].of_value(*value);
            if self.may_be_best(first) {
                self.add(first, *doc, 0.0);
            }
        }
        self.values = values;
    }

    /// The bounds of the first key, where it has any: then [`Top::promise`] and [`Top::may_hold`] may be asked.
    pub(super) fn bounds(&self) -> Option<Arc<Bounds>> {
        self.bounds.clone()
    }

    /// What no hit of a block comes before, and what none comes behind.
    fn of_block(&self, bounds: &Bounds, block: u32) -> (Bits, Bits) {
        let (least, greatest) = bounds.of_block(block);
        let ends = (self.keys[0].of_value(least), self.keys[0].of_value(greatest));
        (ends.0.min(ends.1), ends.0.max(ends.1))
    }

    /// Blocks of less are to be looked at before those of more: they may hold better hits.
    pub(super) fn promise(&self, bounds: &Bounds, block: u32) -> (u128, u32) {
        (self.of_block(bounds, block).0, block)
    }

    /// Whether a block may hold a hit that would be kept.
    pub(super) fn may_hold(&self, bounds: &Bounds, block: u32) -> bool {
        let (best, worst) = self.of_block(bounds, block);
        if self.after.as_ref().is_some_and(|after| worst < after[0]) {
            return false;
        }
        let Some(last) = self.best.peek().filter(|_| self.best.len() >= self.limit) else {
            return self.limit > 0;
        };
        // Of equal hits the first document is kept, unless there is another key.
        let before = self.keys.len() > 1 || bounds.docs(block).start < last.doc;
        best < last.first || (best == last.first && before)
    }

    fn may_be_best(&self, first: Bits) -> bool {
        self.groups.is_some()
            || self.best.len() < self.limit
            || self.best.peek().is_some_and(|worst| first <= worst.first)
    }

    fn add(&mut self, first: Bits, doc: DocId, score: f32) {
        let rest: Vec<Bits> = self.keys[1..].iter().map(|key| key.bits(doc, score)).collect();
        if let Some(after) = &self.after
            && (first, &rest[..]) <= (after[0], &after[1..])
        {
            return;
        }
        let hit = Candidate { first, rest, doc, score_bits: score.to_bits() };
        if let Some((key, groups)) = &mut self.groups {
            self.is_ambiguous |= key.has_several(doc);
            match groups.entry(key.bits(doc, 0.0)) {
                Entry::Vacant(free) => drop(free.insert(hit)),
                Entry::Occupied(mut best) if hit < *best.get() => drop(best.insert(hit)),
                Entry::Occupied(_) => {}
            }
        } else if self.best.len() < self.limit {
            self.best.push(hit);
        } else if let Some(mut worst) = self.best.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// The hits, best first. Fails where they cannot be collapsed.
    pub(super) fn hits(self, segment: u32) -> Result<Vec<ShardHit>> {
        if self.is_ambiguous {
            let reason = "failed to collapse: the collapse field must be single valued, and a document has several values; \
                          collapse by a field with one value, or send [terms] with [top_hits]";
            return Err(illegal(reason).into());
        }
        let Top { keys, best, groups, limit, shows_values, shows_scores, .. } = self;
        let hit = |found: Candidate| ShardHit {
            segment,
            doc: found.doc,
            score: shows_scores.then(|| f32::from_bits(found.score_bits)),
            sort: match shows_values {
                true => {
                    let bits = std::iter::once(&found.first).chain(&found.rest);
                    keys.iter().zip(bits).map(|(key, bits)| key.value(*bits)).collect()
                }
                false => Vec::new(),
            },
            ..ShardHit::default()
        };
        let Some((key, groups)) = groups else {
            return Ok(best.into_sorted_vec().into_iter().map(hit).collect());
        };
        let mut groups: Vec<(Bits, Candidate)> = groups.into_iter().collect();
        groups.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        groups.truncate(limit);
        let hit = |(bits, found)| ShardHit { group: key.value(bits), ..hit(found) };
        Ok(groups.into_iter().map(hit).collect())
    }
}

/// The field that an index without it is sorted as if it had. Nothing tells those apart that differ in how exact their
/// values are: there are none.
fn unmapped(name: &str) -> Result<Field> {
    let name = if name == "date_nanos" { "date" } else { name };
    Ok(Field::of_type(name).map_err(illegal)?)
}

/// In one segment, or in an index that has none.
fn key<'a>(
    key: &'a SortKey,
    mapping: &Mapping,
    segment: Option<&SegmentReader>,
    base: u64,
    now_ms: i64,
) -> Result<Key<'a>> {
    let at_end = match key.missing {
        SortMissing::First => FIRST,
        _ => LAST,
    };
    let path = match &key.target {
        SortTarget::Score => return Ok(Key { key, source: Source::Score, missing: LAST }),
        SortTarget::Doc => return Ok(Key { key, source: Source::Doc(base), missing: LAST }),
        SortTarget::Distance(asked) => return nearest(key, asked, mapping, segment),
        SortTarget::Field(path) => path,
    };
    let column = match mapping.field(path) {
        Some(mapped) => {
            check_sortable(path, mapped)?;
            match segment {
                Some(segment) => Column::open(segment, path, mapped.kind)?,
                None => Column::absent(mapped.kind),
            }
        }
        None if mapping::is_metadata(path) => {
            let reason = format!(
                "hits cannot be sorted by the metadata field [{path}]; sort by [_doc], or by a keyword field with the \
                 same value"
            );
            return Err(unfit(reason).into());
        }
        None => {
            let unknown = || unfit(format!("No mapping found for [{path}] in order to sort on"));
            let name = key.unmapped_type.as_deref().ok_or_else(unknown)?;
            let field = unmapped(name)?;
            check_sortable(path, &field)?;
            Column::absent(field.kind)
        }
    };
    let mut key = Key { key, source: Source::Field(column), missing: at_end };
    // As in the field, a number that is missing is as good as the one that stands for it: a hit does not say which of
    // the two it has, and the next search goes on behind both.
    match key.stands_for_missing() {
        Some(Literal::Integer(number)) => key.missing = key.directed(long_bits(number)),
        Some(Literal::Float(number)) => key.missing = key.directed(double_bits(number)),
        _ => {}
    }
    if let SortMissing::Value(literal) = &key.key.missing {
        key.missing = key.bits_of(literal, mapping, now_ms)?;
    }
    Ok(key)
}

/// By how far the points of documents are. One without is endlessly far, in either direction, as in the field.
fn nearest<'a>(
    key: &'a SortKey,
    asked: &'a SortDistance,
    mapping: &Mapping,
    segment: Option<&SegmentReader>,
) -> Result<Key<'a>> {
    let path = &asked.field;
    let points = match mapping.field(path) {
        Some(field) if field.kind == FieldType::GeoPoint && field.has_column => {
            segment.map_or(Ok(None), |segment| pair(segment, path, field.kind))?
        }
        Some(_) => {
            let reason =
                format!("[_geo_distance] sorts by columns of points, and [{path}] has none");
            return Err(illegal(reason).into());
        }
        None if asked.ignore_unmapped => None,
        None => {
            let reason = format!("failed to find mapper for [{path}] for geo distance based sort");
            return Err(illegal(reason).into());
        }
    };
    let mut key = Key { key, source: Source::Distance(points, asked), missing: LAST };
    key.missing = key.directed(double_bits(f64::INFINITY));
    Ok(key)
}

impl Key<'_> {
    fn directed(&self, value: u64) -> Bits {
        THERE | Bits::from(if self.key.descending { !value } else { value })
    }

    /// Of a document whose only value has these bits.
    fn of_value(&self, value: u64) -> Bits {
        match &self.source {
            // Between two ordinals there is room for a text that the segment does not have.
            Source::Field(column) if column.texts().is_some() => self.directed(2 * value + 1),
            _ => self.directed(value),
        }
    }

    fn bits(&self, doc: DocId, score: f32) -> Bits {
        let column = match &self.source {
            Source::Score => return self.directed(double_bits(f64::from(score))),
            Source::Doc(base) => return self.directed(base + u64::from(doc)),
            Source::Distance(points, asked) => {
                let points = points.iter().flat_map(|points| points.of(doc));
                let each = points.flat_map(|point| {
                    asked.origins.iter().map(move |origin| geo::haversine_m(*origin, point))
                });
                let greatest = self.key.takes_greatest;
                let found = each.reduce(if greatest { f64::max } else { f64::min });
                let bits = |m: f64| self.directed(double_bits(m / asked.unit_m));
                return found.map_or(self.missing, bits);
            }
            Source::Field(column) => column,
        };
        let mut found: Option<Bits> = None;
        column.each_bits(doc, |bits| {
            found = Some(match found {
                Some(other) if self.key.takes_greatest => other.max(bits),
                Some(other) => other.min(bits),
                None => bits,
            });
        });
        match found {
            None => self.missing,
            Some(bits) if column.kind() == FieldType::Ip => self.address(bits),
            Some(bits) => self.of_value(bits as u64),
        }
    }

    /// Whether a document has several values. As in the field a text is kept once however often a document has it, a
    /// number as often as it is there.
    fn has_several(&self, doc: DocId) -> bool {
        let Source::Field(column) = &self.source else { return false };
        let is_text = column.kind() == FieldType::Keyword;
        let (mut first, mut several) = (None::<u128>, false);
        column.each_bits(doc, |bits| {
            several |= first.is_some_and(|first| !is_text || first != bits);
            first = first.or(Some(bits));
        });
        several
    }

    /// The bits of an address, and the address of such bits.
    fn address(&self, bits: Bits) -> Bits {
        if self.key.descending { !bits } else { bits }
    }

    /// The bits of a value that was given in a request.
    fn bits_of(&self, literal: &Literal, mapping: &Mapping, now_ms: i64) -> Result<Bits> {
        let (SortTarget::Field(path), Source::Field(column)) = (&self.key.target, &self.source)
        else {
            return Ok(self.missing);
        };
        if column.kind() == FieldType::Keyword {
            return Ok(self.directed(text_bits(column, &literal.text())?));
        }
        let unmapped = self.key.unmapped_type.as_deref().and_then(|name| unmapped(name).ok());
        let Some(mapped) = mapping.field(path).or(unmapped.as_ref()) else {
            return Ok(self.missing);
        };
        let Some(value) = value::plain(path, mapped, literal, now_ms)? else {
            return Err(unfit(format!("[{}] is no value of [{path}]", literal.text())).into());
        };
        Ok(match value {
            Literal::Address(address) => self.address(address.to_bits()),
            value => self.directed(value::bits(&value) as u64),
        })
    }

    fn bits_after(&self, value: &SortValue, mapping: &Mapping, now_ms: i64) -> Result<Bits> {
        let Some(literal) = value else { return Ok(self.missing) };
        let number = match literal {
            Literal::Integer(number) => *number as f64,
            other => other.text().parse().unwrap_or(f64::NAN),
        };
        let kind = match &self.source {
            Source::Field(column) => column.kind(),
            _ if number.is_nan() => {
                let reason = format!("Failed to parse search_after value [{}]", literal.text());
                return Err(illegal(reason).into());
            }
            Source::Score | Source::Distance(..) => return Ok(self.directed(double_bits(number))),
            Source::Doc(_) => return Ok(self.directed(number.max(0.0) as u64)),
        };
        match literal {
            // What stands for a number that is missing comes back as it went.
            Literal::Integer(i64::MAX | i64::MIN) if self.stands_for_missing() == *value => {
                Ok(self.missing)
            }
            // A scroll goes on behind the number itself, a client behind what a hit shows of it.
            _ if kind.is_float() && number.is_infinite() => Ok(self.directed(double_bits(number))),
            // Dates and booleans come back as the numbers that hits show.
            Literal::Integer(number) if !kind.is_float() && !kind.is_set() => {
                Ok(self.directed(long_bits(*number)))
            }
            literal => self.bits_of(literal, mapping, now_ms),
        }
    }

    /// What a hit shows where it has no value.
    fn stands_for_missing(&self) -> SortValue {
        let greatest = (self.key.missing == SortMissing::First) == self.key.descending;
        let Source::Field(column) = &self.source else { return None };
        match column.kind() {
            FieldType::Keyword | FieldType::Ip => None,
            kind if kind.is_float() && greatest => Some(Literal::Float(f64::INFINITY)),
            kind if kind.is_float() => Some(Literal::Float(f64::NEG_INFINITY)),
            _ => Some(Literal::Integer(if greatest { i64::MAX } else { i64::MIN })),
        }
    }

    fn value(&self, bits: Bits) -> SortValue {
        let plain = if self.key.descending { !(bits as u64) } else { bits as u64 };
        let column = match &self.source {
            Source::Score | Source::Distance(..) => return Some(Literal::Float(double_of(plain))),
            Source::Doc(_) => return Some(Literal::Integer(plain as i64)),
            Source::Field(column) => column,
        };
        let given = match &self.key.missing {
            SortMissing::Value(literal) => Some(literal),
            _ if bits == self.missing => return self.stands_for_missing(),
            _ => None,
        };
        Some(match (column.kind(), column.texts(), given) {
            // An even place lies between ordinals: it is the text given for those that are missing.
            (FieldType::Keyword, Some(texts), given) => match given.filter(|_| plain % 2 == 0) {
                Some(literal) => Literal::Text(literal.text()),
                None => Literal::Text(text_of(texts, plain / 2)),
            },
            (FieldType::Keyword, None, given) => Literal::Text(given?.text()),
            (FieldType::Ip, ..) => column.literal(self.address(bits)),
            _ => column.literal(plain.into()),
        })
    }
}

/// Where a text stands among those of a segment: odd at its own ordinal, even between two.
fn text_bits(column: &Column, text: &str) -> Result<u64> {
    let Some(texts) = column.texts() else { return Ok(0) };
    let hit = texts.dictionary().term_ord_or_next(text.as_bytes());
    Ok(match hit.map_err(|error| Failed::Index(error.into()))? {
        TermOrdHit::Exact(ord) => 2 * ord + 1,
        TermOrdHit::Next(ord) => 2 * ord.min(texts.num_terms() as u64),
    })
}
