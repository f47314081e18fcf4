//! The buckets that a collector meets: each has a number, by the bucket that it lies in and its key. Numbers and texts
//! that several segments share get one bucket.

use rustc_hash::FxHashMap;
use tantivy::DocId;
use tantivy::columnar::StrColumn;

use super::column::{Column, double_bits, double_of, long_bits, long_of, text_of};
use query::FieldType;
use query::aggregation::{AggregationKind, DateHistogram, Interval, Key};

/// Buckets that a shard may gather before the best of them are chosen: a bound on its memory.
const MAX_GATHERED: usize = 4_000_000;

/// What documents without the field count as.
pub(super) struct Missing {
    pub(super) number: f64,
    pub(super) bits: u128,
    pub(super) text: String,
}

/// Buckets that were met.
#[derive(Default)]
pub(super) struct Gathered {
    numbers: FxHashMap<(u32, u128), u32>,
    /// By number: the bucket that it lies in, its key, its documents.
    pub(super) buckets: Vec<(u32, u128, u64)>,
    /// Texts of all segments; keys are numbers in it.
    texts: Vec<String>,
    of_text: FxHashMap<String, u32>,
    /// Of the segment at hand: number of the text by ordinal, or [`UNKNOWN`].
    of_ord: Vec<u32>,
    /// Keys of the document at hand.
    pub(super) keys: Vec<u128>,
    /// Buckets that were met lately, by the last bits of parent and key: to look there costs less than to hash.
    recent: Vec<((u32, u128), u32)>,
    /// Buckets of a histogram of dates that were met, in the order of time.
    spans: Spans,
    /// Of a block at hand: documents that are in a bucket, and that.
    pub(super) within: (Vec<DocId>, Vec<u32>),
    pub(super) full: bool,
}

const UNKNOWN: u32 = u32::MAX;
/// Buckets that are found without hashing; a power of two.
const RECENT: usize = 64;

impl Gathered {
    /// Turns to the next segment.
    pub(super) fn enter(&mut self, column: &Column) {
        self.of_ord.clear();
        if let Some(texts) = column.texts() {
            self.of_ord.resize(texts.num_terms(), UNKNOWN);
        }
    }

    /// Counts documents in a bucket; answers its number, or none once there are too many.
    pub(super) fn count(&mut self, parent: u32, key: u128, documents: u64) -> Option<u32> {
        let number = self.number(parent, key)?;
        self.buckets[number as usize].2 += documents;
        Some(number)
    }

    fn number(&mut self, parent: u32, key: u128) -> Option<u32> {
        let slot = (key as usize ^ (key >> 7) as usize ^ parent as usize) % RECENT;
        match self.recent.get(slot) {
            Some((met, number)) if *met == (parent, key) => return Some(*number),
            Some(_) => {}
            None => self.recent = vec![((UNKNOWN, 0), UNKNOWN); RECENT],
        }
        if let Some(number) = self.numbers.get(&(parent, key)) {
            self.recent[slot] = ((parent, key), *number);
            return Some(*number);
        }
        if self.buckets.len() >= MAX_GATHERED {
            self.full = true;
            return None;
        }
        let number = self.buckets.len() as u32;
        self.buckets.push((parent, key, 0));
        self.numbers.insert((parent, key), number);
        Some(number)
    }

    /// The one key of each document of a block, from the bits of its one value.
    pub(super) fn keys_of_block(&mut self, of: &AggregationKind, column: &Column, bits: &[u64]) {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let is_double = matches!(column.kind(), FieldType::Double | FieldType::Float);
        match (of, column.texts()) {
            (AggregationKind::Terms(_), Some(texts)) => {
                keys.extend(bits.iter().map(|ord| u128::from(self.number_of_ord(texts, *ord))));
            }
            (AggregationKind::DateHistogram(histogram), _) => {
                let start = |bits: &u64| self.spans.start(histogram, long_of(*bits));
                keys.extend(bits.iter().map(start).map(|start| u128::from(long_bits(start))));
            }
            (AggregationKind::Histogram(_), _) => bits.iter().for_each(|bits| {
                let number = if is_double { double_of(*bits) } else { long_of(*bits) as f64 };
                number_keys(of, number, &mut keys);
            }),
            _ => keys.extend(bits.iter().map(|bits| u128::from(*bits))),
        }
        self.keys = keys;
    }

    /// The key of all documents whose values lie between `ends`, where that is one: keys rise with values.
    pub(super) fn key_of_all(
        &mut self,
        of: &AggregationKind,
        column: &Column,
        ends: (u64, u64),
    ) -> Option<u128> {
        match of {
            AggregationKind::Terms(_) if ends.0 != ends.1 => return None,
            // Ranges may overlap.
            AggregationKind::Range(_) => return None,
            _ => {}
        }
        self.keys_of_block(of, column, &[ends.0, ends.1]);
        (self.keys[0] == self.keys[1]).then_some(self.keys[0])
    }

    /// Counts a block's documents by their keys; `keeps` says whether to keep the bucket of each.
    pub(super) fn count_block(&mut self, docs: &[DocId], parents: &[u32], keeps: bool) {
        self.within.0.clear();
        self.within.1.clear();
        for (at, doc) in docs.iter().enumerate() {
            let Some(number) = self.count(parents[at], self.keys[at], 1) else { continue };
            if keeps {
                self.within.0.push(*doc);
                self.within.1.push(number);
            }
        }
    }

    /// The number of a text by its ordinal in the segment at hand.
    fn number_of_ord(&mut self, texts: &StrColumn, ord: u64) -> u32 {
        let known = self.of_ord.get(ord as usize).copied().unwrap_or(UNKNOWN);
        if known != UNKNOWN {
            return known;
        }
        let number = self.text_number(text_of(texts, ord));
        if let Some(known) = self.of_ord.get_mut(ord as usize) {
            *known = number;
        }
        number
    }

    fn text_number(&mut self, text: String) -> u32 {
        if let Some(number) = self.of_text.get(&text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.of_text.insert(text, number);
        number
    }

    /// The keys of the buckets that a document belongs to.
    pub(super) fn keys_of(
        &mut self,
        of: &AggregationKind,
        column: &Column,
        doc: DocId,
        keys: &mut Vec<u128>,
    ) {
        match (of, column.texts()) {
            (AggregationKind::Terms(_), Some(texts)) => column.each_bits(doc, |ord| {
                keys.push(self.number_of_ord(texts, ord as u64).into());
            }),
            (AggregationKind::Terms(_), None) => column.each_bits(doc, |bits| keys.push(bits)),
            (of, _) => column.each_number(doc, |value| number_keys(of, value, keys)),
        }
    }

    pub(super) fn missing_key(
        &mut self,
        of: &AggregationKind,
        kind: Option<FieldType>,
        missing: &Missing,
        keys: &mut Vec<u128>,
    ) {
        match of {
            AggregationKind::Terms(_) if kind == Some(FieldType::Keyword) => {
                keys.push(self.text_number(missing.text.clone()).into());
            }
            AggregationKind::Terms(_) => keys.push(missing.bits),
            of => number_keys(of, missing.number, keys),
        }
    }

    pub(super) fn key(&self, of: &AggregationKind, kind: Option<FieldType>, bits: u128) -> Key {
        match (of, kind) {
            (AggregationKind::Terms(_), Some(FieldType::Keyword)) => {
                Key::Text(self.texts[bits as usize].clone())
            }
            (AggregationKind::Terms(_), Some(FieldType::Ip)) => {
                Key::Ip(std::net::Ipv6Addr::from_bits(bits))
            }
            (AggregationKind::Terms(_), Some(FieldType::Double | FieldType::Float))
            | (AggregationKind::Histogram(_), _) => Key::Double(double_of(bits as u64)),
            _ => Key::Long(long_of(bits as u64)),
        }
    }
}

/// Buckets of a histogram of dates: to look one up costs less than to ask the calendar.
#[derive(Default)]
struct Spans {
    /// Beginnings and ends, in their order.
    known: Vec<(i64, i64)>,
    /// The one that was met last.
    last: (i64, i64),
}

/// Beyond so many the calendar is asked.
const MAX_SPANS: usize = 4096;

impl Spans {
    /// The beginning of the bucket of a moment.
    fn start(&mut self, histogram: &DateHistogram, ms: i64) -> i64 {
        let holds = |(start, end): (i64, i64)| start <= ms && ms < end;
        if holds(self.last) {
            return self.last.0;
        }
        if let Interval::Fixed(_) = histogram.interval {
            let start = histogram.floor(ms);
            self.last = (start, histogram.next(start));
            return start;
        }
        let after = self.known.partition_point(|(start, _)| *start <= ms);
        if let Some(span) = after.checked_sub(1).map(|at| self.known[at])
            && holds(span)
        {
            self.last = span;
            return span.0;
        }
        let start = histogram.floor(ms);
        self.last = (start, histogram.next(start));
        if self.known.len() < MAX_SPANS {
            self.known.insert(after, self.last);
        }
        start
    }
}

/// The keys of the buckets that a number lies in.
fn number_keys(of: &AggregationKind, value: f64, keys: &mut Vec<u128>) {
    match of {
        AggregationKind::Histogram(histogram) => {
            keys.push(double_bits(histogram.number(value)).into());
        }
        AggregationKind::DateHistogram(histogram) => {
            keys.push(long_bits(histogram.floor(value as i64)).into());
        }
        AggregationKind::Range(ranges) => {
            let within = ranges.ranges.iter().enumerate().filter(|(_, range)| range.holds(value));
            keys.extend(within.map(|(at, _)| u128::from(long_bits(at as i64))));
        }
        AggregationKind::Terms(_) | AggregationKind::Metric(_) => {}
    }
}
