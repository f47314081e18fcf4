//! Collects aggregations on one shard.
//!
//! As in Lucene, every bucket has a number, and what lies within a bucket keeps its state by that number: one pass
//! over the documents, whatever the nesting.
//!
//! The index library has aggregations, too. `cargo run --release -p store --example aggregations` measures both, on the
//! searches of `search_side_by_side`: here `hourly` is 14 to 31 times as fast, as blocks of documents that lie in one
//! bucket are counted by their bounds alone; `filter and stats` is as fast; `statuses` takes twice as long. A tree of
//! aggregations has to be collected by one of the two, and the library's answers are not those of the field for
//! intervals of a calendar (it has none), percentiles (another sketch), documents without the field in a histogram
//! (`missing`), and milliseconds (it counts dates as floating-point nanoseconds).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::DocId;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use query::aggregation::{
    Aggregation, AggregationKind, Bucket, BucketOrder, Buckets, Metric, MetricKind, OrderBy,
    Partial, ValueKind, nothing, sort, too_many,
};
use query::{FieldType, Literal, Mapping, SearchError, SearchErrorKind, unfit};

use super::bounds::{BLOCK, Bounds, SegmentContext};
use super::column::{Column, text_of};
use super::failed::{Failed, Result};
use super::gathered::{Gathered, Missing};
use super::matches::Batch;
use super::value::{self, check_sortable, format_of};

/// The whole shard, as a bucket.
const ROOT: u32 = 0;
const ROOTS: [u32; BLOCK as usize] = [ROOT; BLOCK as usize];

/// What is collected for one aggregation.
pub(super) struct Collector<'a> {
    of: &'a Aggregation,
    path: &'a str,
    /// Type of the field; none where it is not mapped.
    kind: Option<FieldType>,
    shown: ValueKind,
    missing: Option<Missing>,
    /// In the segment at hand.
    column: Column,
    bounds: Option<Arc<Bounds>>,
    state: State,
    subs: Vec<Collector<'a>>,
    /// Space for documents and their values.
    docs: Vec<DocId>,
    bits: Vec<u64>,
    numbers: Vec<f64>,
}

enum State {
    /// By the number of the bucket above.
    Metric(Vec<Partial>),
    Buckets(Box<Gathered>),
}

/// Whether an aggregation can read a field of this type.
fn check(of: &Aggregation, path: &str, kind: FieldType) -> Result<()> {
    check_sortable(path, kind)?;
    let is_number = !matches!(kind, FieldType::Keyword | FieldType::Ip);
    let (fits, what) = match &of.kind {
        AggregationKind::Terms(_) => (true, "terms"),
        AggregationKind::Histogram(_) => (is_number, "histogram"),
        AggregationKind::DateHistogram(_) => (kind == FieldType::Date, "date_histogram"),
        AggregationKind::Range(_) => (is_number, "range"),
        AggregationKind::Metric(metric) => {
            (is_number || metric.kind.takes_any_type(), of.name.as_str())
        }
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
        let (path, literal) = of.kind.field();
        let mapped = mapping.field(path);
        if let Some(mapped) = mapped {
            check(of, path, mapped.kind)?;
        }
        let kind = mapped.map(|mapped| mapped.kind);
        let shown = match kind {
            Some(FieldType::Date) => ValueKind::Date(mapped.map(format_of).unwrap_or_default()),
            Some(FieldType::Boolean) => ValueKind::Boolean,
            _ => ValueKind::Number,
        };
        let missing = match (literal, mapped) {
            (Some(literal), Some(mapped)) => Some(missing(path, mapped, &literal, now_ms)?),
            _ => None,
        };
        Ok(Collector {
            of,
            path,
            kind,
            shown,
            missing,
            column: Column::absent(FieldType::Keyword),
            bounds: None,
            state: match &of.kind {
                AggregationKind::Metric(_) => State::Metric(Vec::new()),
                _ => State::Buckets(Box::default()),
            },
            subs: Collector::all(&of.subs, mapping, now_ms)?,
            docs: Vec::new(),
            bits: Vec::new(),
            numbers: Vec::new(),
        })
    }

    /// Turns to the next segment.
    pub(super) fn enter(&mut self, context: SegmentContext<'_>) -> tantivy::Result<()> {
        if let Some(kind) = self.kind {
            self.column = Column::open(context.segment, self.path, kind)?;
        }
        if let State::Buckets(gathered) = &mut self.state {
            self.bounds = context.bounds(self.path, &self.column)?;
            gathered.enter(&self.column);
        }
        self.subs.iter_mut().try_for_each(|sub| sub.enter(context))
    }

    /// Counts documents of the whole shard, in their order.
    pub(super) fn collect(&mut self, batch: &Batch<'_>) {
        if let Batch::Block(block, docs) = batch
            && self.collect_whole(*block, docs.len() as u64)
        {
            return;
        }
        let mut list = std::mem::take(&mut self.docs);
        batch.list(&mut list, |_| true);
        if !self.collect_longs(&list) {
            for docs in list.chunks(ROOTS.len()) {
                self.collect_block(docs, &ROOTS[..docs.len()]);
            }
        }
        self.docs = list;
    }

    /// Counts a block's documents without a look at them, where its bounds say that all are in one bucket. False where
    /// they have to be looked at.
    fn collect_whole(&mut self, block: u32, documents: u64) -> bool {
        let (State::Buckets(gathered), Some(bounds), []) =
            (&mut self.state, &self.bounds, self.subs.as_slice())
        else {
            return false;
        };
        let key = gathered.key_of_all(&self.of.kind, &self.column, bounds.of_block(block));
        key.is_some_and(|key| {
            gathered.count(ROOT, key, documents);
            true
        })
    }

    /// Adds whole numbers of the whole shard to a metric, all at once. False where that is not all there is to it.
    fn collect_longs(&mut self, docs: &[DocId]) -> bool {
        let State::Metric(all) = &mut self.state else { return false };
        let partial = slot(all, ROOT, || nothing(self.of));
        let Partial::Stats(stats, _) = partial else { return false };
        self.column.is_single()
            && self.column.block_longs(docs, &mut self.bits)
            && stats.add_longs(self.bits.iter().map(|long| *long as i64))
    }

    /// Counts documents, each in its bucket.
    fn collect_block(&mut self, docs: &[DocId], buckets: &[u32]) {
        let (of, column) = (&self.of.kind, &self.column);
        match &mut self.state {
            _ if !column.is_single() => self.collect_each(docs, buckets),
            State::Metric(all) if self.kind.is_some_and(is_number) && is_of_stats(of) => {
                column.block_numbers(docs, &mut self.bits, &mut self.numbers);
                for (value, bucket) in self.numbers.iter().zip(buckets) {
                    if let Partial::Stats(stats, _) = slot(all, *bucket, || nothing(self.of)) {
                        stats.add(*value);
                    }
                }
            }
            State::Buckets(gathered) if !matches!(of, AggregationKind::Range(_)) => {
                column.block_bits(docs, &mut self.bits);
                gathered.keys_of_block(of, column, &self.bits);
                gathered.count_block(docs, buckets, !self.subs.is_empty());
                let (docs, numbers) = &gathered.within;
                self.subs.iter_mut().for_each(|sub| sub.collect_block(docs, numbers));
            }
            _ => self.collect_each(docs, buckets),
        }
    }

    fn collect_each(&mut self, docs: &[DocId], buckets: &[u32]) {
        for (doc, bucket) in docs.iter().zip(buckets) {
            match &mut self.state {
                State::Metric(_) => self.collect_values(*doc, *bucket),
                State::Buckets(_) => self.collect_keys(*doc, *bucket),
            }
        }
    }

    /// Adds the values of a document to the metric of its bucket.
    fn collect_values(&mut self, doc: DocId, bucket: u32) {
        let State::Metric(all) = &mut self.state else { return };
        let counts_any = matches!(
            self.of.kind,
            AggregationKind::Metric(Metric { kind: MetricKind::ValueCount, .. })
        );
        let mut found = false;
        match slot(all, bucket, || nothing(self.of)) {
            Partial::Stats(stats, _) if counts_any => {
                self.column.each_bits(doc, |_| (found, stats.count) = (true, stats.count + 1));
                stats.count += u64::from(!found && self.missing.is_some());
            }
            Partial::Stats(stats, _) => {
                let mut add = |value| stats.add(value);
                self.column.each_number(doc, |value| {
                    found = true;
                    add(value);
                });
                self.missing.iter().filter(|_| !found).for_each(|missing| add(missing.number));
            }
            Partial::Digest(digest) => {
                self.column.each_number(doc, |value| {
                    found = true;
                    digest.add(value);
                });
                let missing = self.missing.iter().filter(|_| !found);
                missing.for_each(|missing| digest.add(missing.number));
            }
            Partial::Distinct(distinct) => {
                let texts = self.column.texts();
                self.column.each_bits(doc, |bits| {
                    found = true;
                    distinct.add(match texts {
                        Some(texts) => hash_text(&text_of(texts, bits as u64)),
                        None => xxh3_64(&bits.to_le_bytes()),
                    });
                });
                if let Some(missing) = self.missing.as_ref().filter(|_| !found) {
                    distinct.add(match self.kind {
                        Some(FieldType::Keyword) => hash_text(&missing.text),
                        _ => xxh3_64(&missing.bits.to_le_bytes()),
                    });
                }
            }
            Partial::Buckets(_) => {}
        }
    }

    /// Counts a document in each bucket that its values lie in, once.
    fn collect_keys(&mut self, doc: DocId, parent: u32) {
        let State::Buckets(gathered) = &mut self.state else { return };
        let mut keys = std::mem::take(&mut gathered.keys);
        keys.clear();
        gathered.keys_of(&self.of.kind, &self.column, doc, &mut keys);
        if keys.is_empty()
            && let Some(missing) = &self.missing
        {
            gathered.missing_key(&self.of.kind, self.kind, missing, &mut keys);
        }
        keys.sort_unstable();
        keys.dedup();
        for key in &keys {
            let Some(number) = gathered.count(parent, *key, 1) else { continue };
            self.subs.iter_mut().for_each(|sub| sub.collect_each(&[doc], &[number]));
        }
        gathered.keys = keys;
    }

    /// What was found, of the whole shard. Fails if there are more buckets than `max_buckets`.
    pub(super) fn finish(&mut self, max_buckets: usize) -> Result<Partial> {
        let mut left = max_buckets;
        let found = self.partials(&[ROOT], &mut left).ok_or_else(|| too_many(max_buckets))?;
        Ok(found.into_iter().next().unwrap_or_else(|| nothing(self.of)))
    }

    /// One for each of `parents`, in their order; none where that takes more buckets than are `left`.
    fn partials(&mut self, parents: &[u32], left: &mut usize) -> Option<Vec<Partial>> {
        let gathered = match &mut self.state {
            State::Metric(all) => {
                let of = parents.iter().map(|parent| {
                    let found = all.get_mut(*parent as usize);
                    match found.map(|found| std::mem::replace(found, nothing(self.of))) {
                        Some(Partial::Stats(stats, _)) => Partial::Stats(stats, self.shown.clone()),
                        Some(found) => found,
                        None => nothing(self.of),
                    }
                });
                return Some(of.collect());
            }
            State::Buckets(gathered) => gathered,
        };
        if gathered.full {
            return None;
        }
        let mut children: FxHashMap<u32, Vec<u32>> =
            parents.iter().map(|parent| (*parent, Vec::new())).collect();
        for (number, (parent, _, _)) in (0..).zip(&gathered.buckets) {
            if let Some(children) = children.get_mut(parent) {
                children.push(number);
            }
        }
        let of = |parent| children.remove(parent).unwrap_or_default();
        let children: Vec<Vec<u32>> = parents.iter().map(of).collect();
        children.into_iter().map(|children| self.buckets(children, left)).collect()
    }

    fn buckets(&mut self, mut children: Vec<u32>, left: &mut usize) -> Option<Partial> {
        let State::Buckets(gathered) = &self.state else { return None };
        let documents = |number: &u32| gathered.buckets[*number as usize].2;
        let all: u64 = children.iter().map(documents).sum();
        let shard_size = match &self.of.kind {
            AggregationKind::Terms(terms) => terms.shard_size,
            _ => usize::MAX,
        };
        let cut = children.len() > shard_size;
        if cut && self.of.kind.is_by_count() {
            // The last that is sent has so many documents: those with fewer need not be made to be sorted.
            let mut counts: Vec<u64> = children.iter().map(documents).collect();
            let (_, least, _) = counts.select_nth_unstable_by(shard_size - 1, |a, b| b.cmp(a));
            children.retain(|number| documents(number) >= *least);
        }
        if !cut {
            *left = left.checked_sub(children.len())?;
        }
        let mut columns = Vec::with_capacity(self.subs.len());
        let mut unlimited = usize::MAX;
        for sub in &mut self.subs {
            let left = if cut { &mut unlimited } else { &mut *left };
            columns.push(sub.partials(&children, left)?.into_iter());
        }
        let State::Buckets(gathered) = &self.state else { return None };
        let mut buckets = Vec::with_capacity(children.len());
        for number in children {
            let (_, bits, doc_count) = gathered.buckets[number as usize];
            let key = gathered.key(&self.of.kind, self.kind, bits);
            let subs = columns.iter_mut().filter_map(Iterator::next).collect();
            buckets.push((key, Bucket { doc_count, subs }));
        }
        let mut error = Some(0);
        if let (AggregationKind::Terms(terms), true) = (&self.of.kind, cut) {
            sort(&mut buckets, &terms.order, &self.of.subs);
            buckets.truncate(shard_size);
            let sent = buckets.iter().map(|(_, bucket)| {
                1 + bucket.subs.iter().map(Partial::buckets).sum::<u64>() as usize
            });
            *left = left.checked_sub(sent.sum())?;
            error = match terms.order.as_slice() {
                // What was not sent has no more documents than the last that was.
                [BucketOrder { by: OrderBy::Count, descending: true }, ..] => {
                    buckets.last().map(|(_, bucket)| bucket.doc_count)
                }
                [BucketOrder { by: OrderBy::Key, .. }, ..] => Some(0),
                _ => None,
            };
        }
        let sent: u64 = buckets.iter().map(|(_, bucket)| bucket.doc_count).sum();
        Some(Partial::Buckets(Buckets {
            buckets: buckets.into_iter().collect(),
            other_doc_count: all - sent,
            error,
            shards: 1,
            values: self.shown.clone(),
        }))
    }
}

fn is_of_stats(kind: &AggregationKind) -> bool {
    matches!(kind, AggregationKind::Metric(metric) if metric.kind.is_of_stats())
}

fn is_number(kind: FieldType) -> bool {
    !matches!(kind, FieldType::Keyword | FieldType::Ip)
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

fn missing(path: &str, mapped: &query::Field, literal: &Literal, now_ms: i64) -> Result<Missing> {
    let text = literal.text();
    let Some((value, _)) = value::exact(path, mapped, literal, now_ms)? else {
        return Err(Failed::from(unfit(format!("[missing] [{text}] is no value of [{path}]"))));
    };
    Ok(Missing { number: value.number().unwrap_or(0.0), bits: value.bits(), text })
}
