//! What one shard found, and how two are merged.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::{Digest, Distinct};
use crate::DateFormat;

/// How numbers of a field are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum ValueKind {
    /// As they are. Also of a field that the shard does not have.
    #[default]
    Number,
    /// As dates, too.
    Date(DateFormat),
    /// As true and false, too.
    Boolean,
}

/// The key of a bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Key {
    /// A whole number; milliseconds since 1970, 0 and 1, or the place of a range.
    Long(i64),
    /// A number.
    Double(f64),
    /// An address; IPv4 is mapped.
    Ip(Ipv6Addr),
    /// A text.
    Text(String),
}

impl Key {
    fn rank(&self) -> u8 {
        match self {
            Key::Long(_) => 0,
            Key::Double(_) => 1,
            Key::Ip(_) => 2,
            Key::Text(_) => 3,
        }
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Long(a), Key::Long(b)) => a.cmp(b),
            (Key::Double(a), Key::Double(b)) => a.total_cmp(b),
            (Key::Ip(a), Key::Ip(b)) => a.cmp(b),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Count, sum, least and greatest of numbers. The sum is compensated (A. Neumaier, 1974), as in the field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// How many.
    pub count: u64,
    sum: f64,
    lost: f64,
    /// The least; infinite of none.
    pub min: f64,
    /// The greatest; minus infinite of none.
    pub max: f64,
}

impl Default for Stats {
    fn default() -> Self {
        Stats { count: 0, sum: 0.0, lost: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Stats {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.plus(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds whole numbers at once. False, with nothing added, where they are so large that their sum might not be exact.
    pub fn add_longs(&mut self, values: impl ExactSizeIterator<Item = i64>) -> bool {
        const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
        let count = values.len() as u64;
        let (mut sum, mut min, mut max) = (0i64, i64::MAX, i64::MIN);
        for value in values {
            (sum, min, max) = (sum.wrapping_add(value), min.min(value), max.max(value));
        }
        let most = min.unsigned_abs().max(max.unsigned_abs());
        if count == 0 || most.checked_mul(count).is_none_or(|most| most > EXACT) {
            return count == 0;
        }
        self.count += count;
        self.plus(sum as f64);
        self.min = self.min.min(min as f64);
        self.max = self.max.max(max as f64);
        true
    }

    fn plus(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    /// Adds what the other one has.
    pub fn merge(&mut self, other: &Stats) {
        self.count += other.count;
        self.plus(other.sum);
        self.lost += other.lost;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The sum.
    pub fn sum(&self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }

    /// The mean; none of nothing.
    pub fn avg(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum() / self.count as f64)
    }
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Documents in it.
    pub doc_count: u64,
    /// What its aggregations found, in the order of the request.
    pub subs: Vec<Partial>,
}

/// The buckets of an aggregation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Buckets {
    /// By key.
    pub buckets: BTreeMap<Key, Bucket>,
    /// Documents of buckets that the shard did not send.
    pub other_doc_count: u64,
    /// How many documents a bucket may have at most that the shard did not send; none if nobody can say.
    pub error: Option<u64>,
    /// Shards whose buckets these are; with one alone nothing is missing.
    pub shards: u32,
    /// How keys are shown.
    pub values: ValueKind,
}

/// What a shard found for one aggregation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Partial {
    /// Of `min`, `max`, `avg`, `sum`, `stats` and `value_count`.
    Stats(Stats, ValueKind),
    /// Of `cardinality`.
    Distinct(Distinct),
    /// Of `percentiles`.
    Digest(Digest),
    /// Of all that make buckets.
    Buckets(Buckets),
}

impl Partial {
    /// Buckets in it, and in those.
    pub fn buckets(&self) -> u64 {
        let Partial::Buckets(found) = self else { return 0 };
        let within = found.buckets.values().flat_map(|bucket| &bucket.subs);
        found.buckets.len() as u64 + within.map(Partial::buckets).sum::<u64>()
    }

    /// Adds what another shard found for the same aggregation.
    pub fn merge(&mut self, other: Partial) {
        match (self, other) {
            (Partial::Stats(mine, kind), Partial::Stats(other, other_kind)) => {
                mine.merge(&other);
                if *kind == ValueKind::Number {
                    *kind = other_kind;
                }
            }
            (Partial::Distinct(mine), Partial::Distinct(other)) => mine.merge(other),
            (Partial::Digest(mine), Partial::Digest(other)) => mine.merge(&other),
            (Partial::Buckets(mine), Partial::Buckets(other)) => mine.merge(other),
            // Shards answer the same request, so that this is a bug of the sender.
            (mine, other) => debug_assert!(false, "{mine:?} cannot be merged with {other:?}"),
        }
    }
}

impl Buckets {
    fn merge(&mut self, other: Buckets) {
        self.other_doc_count += other.other_doc_count;
        self.shards += other.shards;
        self.error = self.error.zip(other.error).map(|(mine, other)| mine + other);
        if self.values == ValueKind::Number {
            self.values = other.values;
        }
        for (key, bucket) in other.buckets {
            match self.buckets.get_mut(&key) {
                None => {
                    self.buckets.insert(key, bucket);
                }
                Some(mine) => {
                    mine.doc_count += bucket.doc_count;
                    for (mine, other) in mine.subs.iter_mut().zip(bucket.subs) {
                        mine.merge(other);
                    }
                }
            }
        }
    }
}

/// Adds what another shard found: one for each aggregation of the request, in its order.
pub fn merge_all(mine: &mut Vec<Partial>, other: Vec<Partial>) {
    if mine.is_empty() {
        *mine = other;
        return;
    }
    for (mine, other) in mine.iter_mut().zip(other) {
        mine.merge(other);
    }
}
