//! Collects aggregations on one shard.
//!
//! As in Lucene, every bucket has a number, and what lies within a bucket keeps its state by that number: one pass
//! over the documents, whatever the nesting.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use query::{FieldType, Literal, Mapping, SearchError, SearchErrorKind, unfit};

use super::bounds::Bounds;
use super::by_segment::Here;
use super::gathered::{Gathered, Missing};
use super::resolve::Failed;
use super::singles::Singles;
use super::top::check_sortable;
use super::value::{self, format_of};
use super::values::{Values, text_of};
use query::aggregation::{
    Aggregation, AggregationKind, Bucket, BucketOrder, Buckets, Digest, Distinct, Metric,
    MetricKind, OrderBy, Partial, Stats, ValueKind, order_metric, stats_number, too_many,
};

type Result<T> = std::result::Result<T, Failed>;

/// The whole shard, as a bucket.
const ROOT: u32 = 0;

/// What is collected for one aggregation.
pub(super) struct Collector<'a> {
    of: &'a Aggregation,
    /// Type of the field; none where it is not mapped.
    kind: Option<FieldType>,
    shown: ValueKind,
    missing: Option<Missing>,
    /// In the segment at hand.
    values: Values,
    /// The same, where every document has one.
    singles: Option<Singles>,
    bounds: Option<Arc<Bounds>>,
    state: State,
    subs: Vec<Collector<'a>>,
}

enum State {
    Stats(Vec<Stats>),
    Distinct(Vec<Distinct>, u64),
    Digest(Vec<Digest>),
    Buckets(Box<Gathered>),
}

/// The field that an aggregation reads.
fn field_of(kind: &AggregationKind) -> &str {
    match kind {
        AggregationKind::Terms(terms) => &terms.field,
        AggregationKind::Histogram(histogram) => &histogram.field,
        AggregationKind::DateHistogram(histogram) => &histogram.field,
        AggregationKind::Range(ranges) => &ranges.field,
        AggregationKind::Metric(metric) => &metric.field,
    }
}

/// Whether an aggregation can read a field of this type.
fn check(name: &str, of: &AggregationKind, path: &str, kind: FieldType) -> Result<()> {
    check_sortable(path, kind)?;
    let is_number = !matches!(kind, FieldType::Keyword | FieldType::Ip);
    let (fits, what) = match of {
        AggregationKind::Terms(_) => (true, "terms"),
        AggregationKind::Histogram(_) => (is_number, "histogram"),
        AggregationKind::DateHistogram(_) => (kind == FieldType::Date, "date_histogram"),
        AggregationKind::Range(_) => (is_number, "range"),
        AggregationKind::Metric(metric) => (is_number || metric.kind.takes_any_type(), name),
    };
    if fits {
        return Ok(());
    }
    let reason = format!(
        "Field [{path}] of type [{}] is not supported for aggregation [{what}]",
        kind.name()
    );
    Err(SearchError { kind: SearchErrorKind::IllegalArgument, reason, at: None }.into())
}

impl<'a> Collector<'a> {
    /// Collectors for aggregations and all within them.
    pub(super) fn all(of: &'a [Aggregation], mapping: &Mapping, now_ms: i64) -> Result<Vec<Self>> {
        of.iter().map(|of| Collector::new(of, mapping, now_ms)).collect()
    }

    fn new(of: &'a Aggregation, mapping: &Mapping, now_ms: i64) -> Result<Self> {
        let path = field_of(&of.kind);
        let mapped = mapping.field(path);
        if let Some(mapped) = mapped {
            check(&of.name, &of.kind, path, mapped.kind)?;
        }
        let shown = match mapped.map(|mapped| mapped.kind) {
            Some(FieldType::Date) => ValueKind::Date(mapped.map(format_of).unwrap_or_default()),
            Some(FieldType::Boolean) => ValueKind::Boolean,
            _ => ValueKind::Number,
        };
        let literal = match &of.kind {
            AggregationKind::Terms(terms) => terms.missing.clone(),
            AggregationKind::Histogram(histogram) => histogram.missing.map(Literal::Float),
            AggregationKind::DateHistogram(histogram) => histogram.missing.clone(),
            AggregationKind::Metric(metric) => metric.missing.clone(),
            AggregationKind::Range(_) => None,
        };
        let missing = match (literal, mapped) {
            (Some(literal), Some(mapped)) => Some(missing(path, mapped, &literal, now_ms)?),
            _ => None,
        };
        let state = match &of.kind {
            AggregationKind::Metric(Metric {
                kind: MetricKind::Cardinality { threshold }, ..
            }) => State::Distinct(Vec::new(), *threshold as u64),
            AggregationKind::Metric(Metric { kind: MetricKind::Percentiles { .. }, .. }) => {
                State::Digest(Vec::new())
            }
            AggregationKind::Metric(_) => State::Stats(Vec::new()),
            _ => State::Buckets(Box::default()),
        };
        let subs = Collector::all(&of.subs, mapping, now_ms)?;
        let kind = mapped.map(|mapped| mapped.kind);
        let (values, singles, bounds) = (Values::Absent, None, None);
        Ok(Collector { of, kind, shown, missing, values, singles, bounds, state, subs })
    }

    /// Turns to the next segment.
    pub(super) fn enter(&mut self, here: Here<'_>) -> tantivy::Result<()> {
        if let Some(kind) = self.kind {
            let path = field_of(&self.of.kind);
            self.values = Values::open(here.segment, path, kind)?;
            (self.bounds, self.singles) = match &self.state {
                State::Buckets(_) => Bounds::open(here, path, kind)?.unzip(),
                _ => (None, Singles::open(here.segment, path, kind)?),
            };
        }
        if let State::Buckets(gathered) = &mut self.state {
            gathered.enter(&self.values);
        }
        self.subs.iter_mut().try_for_each(|sub| sub.enter(here))
    }

    /// Counts documents of the whole shard, in their order.
    pub(super) fn collect(&mut self, docs: &[DocId]) {
        const ROOTS: [u32; COLLECT_BLOCK_BUFFER_LEN] = [ROOT; COLLECT_BLOCK_BUFFER_LEN];
        for docs in docs.chunks(ROOTS.len()) {
            self.collect_block(docs, &ROOTS[..docs.len()]);
        }
    }

    /// Counts documents, each in its bucket.
    fn collect_block(&mut self, docs: &[DocId], buckets: &[u32]) {
        let Some(mut singles) = self.singles.take() else {
            return self.collect_each(docs, buckets);
        };
        match &mut self.state {
            State::Stats(all) if !self.kind.is_some_and(is_no_number) => {
                for (value, bucket) in singles.numbers(docs).iter().zip(buckets) {
                    slot(all, *bucket, Stats::default).add(*value);
                }
            }
            State::Buckets(gathered) if !matches!(self.of.kind, AggregationKind::Range(_)) => {
                let (of, keeps) = (&self.of.kind, !self.subs.is_empty());
                let ends = self.bounds.as_ref().and_then(|bounds| bounds.of_docs(docs));
                let same = ends.and_then(|ends| gathered.key_of_all(of, &self.values, ends));
                match (same, same_parent(buckets)) {
                    (Some(key), Some(parent)) => gathered.count_all(docs, parent, key, keeps),
                    _ => {
                        gathered.keys_of_block(of, &self.values, singles.bits(docs));
                        gathered.count_block(docs, buckets, keeps);
                    }
                }
                let (docs, numbers) = &gathered.within;
                self.subs.iter_mut().for_each(|sub| sub.collect_block(docs, numbers));
            }
            _ => self.collect_each(docs, buckets),
        }
        self.singles = Some(singles);
    }

    fn collect_each(&mut self, docs: &[DocId], buckets: &[u32]) {
        for (doc, bucket) in docs.iter().zip(buckets) {
            self.collect_in(*doc, *bucket);
        }
    }

    fn collect_in(&mut self, doc: DocId, bucket: u32) {
        match &mut self.state {
            State::Stats(all) => {
                let AggregationKind::Metric(metric) = &self.of.kind else { return };
                let stats = slot(all, bucket, Stats::default);
                if metric.kind == MetricKind::ValueCount && self.kind.is_some_and(is_no_number) {
                    let mut values = 0;
                    self.values.each_bits(doc, |_| values += 1);
                    let values =
                        if values == 0 { u64::from(self.missing.is_some()) } else { values };
                    stats.count += values;
                    return;
                }
                let mut found = false;
                self.values.each_number(doc, |value| {
                    found = true;
                    stats.add(value);
                });
                if let Some(missing) = self.missing.as_ref().filter(|_| !found) {
                    stats.add(missing.number);
                }
            }
            State::Digest(all) => {
                let digest = slot(all, bucket, Digest::default);
                let mut found = false;
                self.values.each_number(doc, |value| {
                    found = true;
                    digest.add(value);
                });
                if let Some(missing) = self.missing.as_ref().filter(|_| !found) {
                    digest.add(missing.number);
                }
            }
            State::Distinct(all, threshold) => {
                let distinct = slot(all, bucket, || Distinct::new(*threshold as usize));
                let mut found = false;
                match &self.values {
                    Values::Text(texts, ords) => ords.values_for_doc(doc).for_each(|ord| {
                        found = true;
                        distinct.add(hash_text(&text_of(texts, ord)));
                    }),
                    values => values.each_bits(doc, |bits| {
                        found = true;
                        distinct.add(xxh3_64(&bits.to_le_bytes()));
                    }),
                }
                if let Some(missing) = self.missing.as_ref().filter(|_| !found) {
                    distinct.add(match self.kind {
                        Some(FieldType::Keyword) => hash_text(&missing.text),
                        _ => xxh3_64(&missing.bits.to_le_bytes()),
                    });
                }
            }
            State::Buckets(_) => self.collect_keys(doc, bucket),
        }
    }

    fn collect_keys(&mut self, doc: DocId, parent: u32) {
        let State::Buckets(gathered) = &mut self.state else { return };
        let mut keys = std::mem::take(&mut gathered.keys);
        keys.clear();
        gathered.keys_of(&self.of.kind, &self.values, doc, &mut keys);
        if keys.is_empty()
            && let Some(missing) = &self.missing
        {
            gathered.missing_key(&self.of.kind, self.kind, missing, &mut keys);
        }
        // A document counts once in a bucket, however many of its values lie in it.
        if keys.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        for key in &keys {
            let Some(number) = gathered.number(parent, *key) else { continue };
            gathered.buckets[number as usize].2 += 1;
            for sub in &mut self.subs {
                sub.collect_in(doc, number);
            }
        }
        gathered.keys = keys;
    }

    /// What was found, of the whole shard. Fails if there are more buckets than `max_buckets`.
    pub(super) fn finish(&mut self, max_buckets: usize) -> Result<Partial> {
        let mut left = max_buckets;
        let mut found = self.partials(&[ROOT], &mut left, max_buckets)?;
        Ok(found.remove(0))
    }

    /// One for each of `buckets`, in their order.
    fn partials(
        &mut self,
        buckets: &[u32],
        left: &mut usize,
        max_buckets: usize,
    ) -> Result<Vec<Partial>> {
        let take = |bucket: &u32| *bucket as usize;
        let shown = &self.shown;
        Ok(match &mut self.state {
            State::Stats(all) => {
                let stats = buckets.iter().map(|b| all.get(take(b)).copied().unwrap_or_default());
                stats.map(|stats| Partial::Stats(stats, shown.clone())).collect()
            }
            State::Digest(all) => {
                let digests = buckets.iter().map(|b| all.get_mut(take(b)).map(std::mem::take));
                digests.map(|digest| Partial::Digest(digest.unwrap_or_default())).collect()
            }
            State::Distinct(all, threshold) => {
                let none = || Distinct::new(*threshold as usize);
                let all = buckets.iter().map(|b| all.get(take(b)).cloned().unwrap_or_else(none));
                all.map(Partial::Distinct).collect()
            }
            State::Buckets(gathered) if gathered.full => return Err(too_many(max_buckets).into()),
            State::Buckets(_) => {
                let mut found = Vec::with_capacity(buckets.len());
                let mut children = self.children(buckets);
                for bucket in buckets {
                    let children = children.remove(bucket).unwrap_or_default();
                    found.push(self.buckets(children, left, max_buckets)?);
                }
                found
            }
        })
    }

    /// The buckets that lie in each of `parents`.
    fn children(&self, parents: &[u32]) -> FxHashMap<u32, Vec<u32>> {
        let State::Buckets(gathered) = &self.state else { return FxHashMap::default() };
        let mut children: FxHashMap<u32, Vec<u32>> =
            parents.iter().map(|parent| (*parent, Vec::new())).collect();
        for (number, (parent, _, _)) in (0..).zip(&gathered.buckets) {
            if let Some(children) = children.get_mut(parent) {
                children.push(number);
            }
        }
        children
    }

    fn buckets(
        &mut self,
        mut children: Vec<u32>,
        left: &mut usize,
        max_buckets: usize,
    ) -> Result<Partial> {
        let mut other_doc_count = 0;
        let mut error = Some(0);
        if let AggregationKind::Terms(terms) = &self.of.kind
            && children.len() > terms.shard_size
        {
            self.sort(&mut children, &terms.order);
            let hidden = children.split_off(terms.shard_size);
            let State::Buckets(gathered) = &self.state else {
                return Err(too_many(max_buckets).into());
            };
            let documents = |number: &u32| gathered.buckets[*number as usize].2;
            other_doc_count = hidden.iter().map(documents).sum();
            error = match terms.order.as_slice() {
                // What was not sent has no more documents than the last that was.
                [BucketOrder { by: OrderBy::Count, descending: true }, ..] => {
                    children.last().map(documents)
                }
                [BucketOrder { by: OrderBy::Key, .. }, ..] => Some(0),
                _ => None,
            };
        }
        *left = left.checked_sub(children.len()).ok_or_else(|| too_many(max_buckets))?;
        let mut columns = Vec::with_capacity(self.subs.len());
        for sub in &mut self.subs {
            columns.push(sub.partials(&children, left, max_buckets)?.into_iter());
        }
        let mut buckets = BTreeMap::new();
        for number in children {
            let State::Buckets(gathered) = &self.state else { continue };
            let (_, bits, doc_count) = gathered.buckets[number as usize];
            let key = gathered.key(&self.of.kind, self.kind, bits);
            let subs = columns.iter_mut().filter_map(Iterator::next).collect();
            buckets.insert(key, Bucket { doc_count, subs });
        }
        let values = self.shown.clone();
        Ok(Partial::Buckets(Buckets { buckets, other_doc_count, error, shards: 1, values }))
    }

    /// Sorts buckets as the order says, ties by their keys.
    fn sort(&self, children: &mut [u32], order: &[BucketOrder]) {
        let State::Buckets(gathered) = &self.state else { return };
        let key = |number: u32| {
            let (_, bits, documents) = gathered.buckets[number as usize];
            (gathered.sort_key(self.kind, bits), documents)
        };
        let metric = |number: u32, name: &str, part: Option<&str>| {
            let sub = self.subs.iter().find(|sub| sub.of.name == name);
            sub.map_or(f64::NAN, |sub| sub.number(number, part))
        };
        children.sort_by(|a, b| {
            let ((key_a, documents_a), (key_b, documents_b)) = (key(*a), key(*b));
            for order in order {
                let ordering = match &order.by {
                    OrderBy::Count if order.descending => documents_b.cmp(&documents_a),
                    OrderBy::Count => documents_a.cmp(&documents_b),
                    OrderBy::Key if order.descending => key_b.cmp(&key_a),
                    OrderBy::Key => key_a.cmp(&key_b),
                    OrderBy::Metric(name, part) => {
                        let of = |number| metric(number, name, part.as_deref());
                        order_metric(of(*a), of(*b), order.descending)
                    }
                };
                if ordering.is_ne() {
                    return ordering;
                }
            }
            key_a.cmp(&key_b)
        });
    }

    /// The number of a metric in a bucket.
    fn number(&self, bucket: u32, part: Option<&str>) -> f64 {
        let AggregationKind::Metric(metric) = &self.of.kind else { return f64::NAN };
        let at = bucket as usize;
        match &self.state {
            State::Stats(all) => {
                let stats = all.get(at).copied().unwrap_or_default();
                stats_number(&metric.kind, &stats, part)
            }
            State::Distinct(all, _) => all.get(at).map_or(0.0, |distinct| distinct.count() as f64),
            State::Digest(all) => {
                let digest = all.get(at).cloned().unwrap_or_default();
                Partial::Digest(digest).number(&metric.kind, part)
            }
            State::Buckets(_) => f64::NAN,
        }
    }
}

/// The bucket of the level above that documents are in, where that is one.
fn same_parent(buckets: &[u32]) -> Option<u32> {
    buckets.first().copied().filter(|first| buckets.iter().all(|bucket| bucket == first))
}

fn is_no_number(kind: FieldType) -> bool {
    matches!(kind, FieldType::Keyword | FieldType::Ip)
}

fn hash_text(text: &str) -> u64 {
    xxh3_64_with_seed(text.as_bytes(), 1)
}

fn slot<T>(all: &mut Vec<T>, at: u32, none: impl FnMut() -> T) -> &mut T {
    let at = at as usize;
    if all.len() <= at {
        all.resize_with(at + 1, none);
    }
    &mut all[at]
}

fn missing(
    path: &str,
    mapped: &query::mapping::Field,
    literal: &Literal,
    now_ms: i64,
) -> Result<Missing> {
    let text = literal.text();
    let value = match value::exact(path, mapped, literal, now_ms)? {
        Some((value, _)) => value,
        None => return Err(unfit(format!("[missing] [{text}] is no value of [{path}]")).into()),
    };
    Ok(Missing { number: value.number().unwrap_or(0.0), bits: value.bits(), text })
}
