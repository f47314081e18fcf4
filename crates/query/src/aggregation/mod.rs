//! Aggregations: what is asked for, what a shard finds, how that is merged and shown.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Aggregation`]: the request as plain data |
//! | `partial.rs` | [`Partial`]: what one shard found, and how two are merged |
//! | `render.rs` | from the merged result to the JSON of the field |
//! | `text.rs` | JSON as it is written |
//! | `distinct.rs` | counting distinct values |
//! | `digest.rs` | percentiles |
//!
//! The collection itself is in `execute/aggregate.rs`.

mod digest;
mod distinct;
mod partial;
mod render;
mod text;

use serde::{Deserialize, Serialize};

use super::date::CalendarUnit;
use super::{DateFormat, Literal};

pub use digest::Digest;
pub use distinct::Distinct;
pub use partial::{Bucket, Buckets, Key, Partial, Stats, ValueKind, merge_all};
pub use render::{nothing, render, show_ip, sort, too_many};

/// `search.max_buckets` where nothing else is said.
pub const DEFAULT_MAX_BUCKETS: usize = 65_536;

/// An aggregation and those within its buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregation {
    /// The name that the request gives it.
    pub name: String,
    /// What it does.
    pub kind: AggregationKind,
    /// What is asked of each bucket.
    pub subs: Vec<Aggregation>,
    /// `meta`, as JSON text; it comes back as it went.
    pub meta: Option<String>,
}

/// What an aggregation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AggregationKind {
    /// `terms`
    Terms(Terms),
    /// `histogram`
    Histogram(Histogram),
    /// `date_histogram`
    DateHistogram(DateHistogram),
    /// `range`
    Range(Ranges),
    /// `min`, `max`, `avg`, `sum`, `stats`, `value_count`, `cardinality`, `percentiles`
    Metric(Metric),
}

impl AggregationKind {
    /// The field that it reads, and the value of documents without the field.
    pub fn field(&self) -> (&str, Option<Literal>) {
        match self {
            AggregationKind::Terms(of) => (&of.field, of.missing.clone()),
            AggregationKind::Histogram(of) => (&of.field, of.missing.map(Literal::Float)),
            AggregationKind::DateHistogram(of) => (&of.field, of.missing.clone()),
            AggregationKind::Range(of) => (&of.field, None),
            AggregationKind::Metric(of) => (&of.field, of.missing.clone()),
        }
    }

    /// Whether buckets with the most documents come first, and nothing else counts but their keys.
    pub fn is_by_count(&self) -> bool {
        let AggregationKind::Terms(terms) = self else { return false };
        matches!(terms.order.as_slice(), [BucketOrder { by: OrderBy::Count, descending: true }])
    }
}

/// By what buckets are sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketOrder {
    /// The key.
    pub by: OrderBy,
    /// Largest first.
    pub descending: bool,
}

/// The key of a [`BucketOrder`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OrderBy {
    /// `_count`
    Count,
    /// `_key`
    Key,
    /// A metric of the bucket, and which of its numbers: `price`, `price.max`.
    Metric(String, Option<String>),
}

/// `terms`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Field.
    pub field: String,
    /// Buckets that are shown.
    pub size: usize,
    /// Buckets that each shard sends.
    pub shard_size: usize,
    /// Fewest documents of a bucket that is shown; at least 1.
    pub min_doc_count: u64,
    /// By what they are sorted; ties by their keys.
    pub order: Vec<BucketOrder>,
    /// The key of documents without the field; they are left out otherwise.
    pub missing: Option<Literal>,
}

/// `histogram`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Field.
    pub field: String,
    /// Width of a bucket.
    pub interval: f64,
    /// Where a bucket begins, modulo the width.
    pub offset: f64,
    /// Buckets with fewer documents are not shown; 0 shows the empty ones in between, too.
    pub min_doc_count: u64,
    /// By what they are sorted.
    pub order: BucketOrder,
    /// Buckets that are shown at least, where `min_doc_count` is 0.
    pub extended_bounds: Option<(f64, f64)>,
    /// Whether the answer is an object by keys.
    pub keyed: bool,
    /// The value of documents without the field; they are left out otherwise.
    pub missing: Option<f64>,
}

/// Width of the buckets of a [`DateHistogram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interval {
    /// Milliseconds.
    Fixed(i64),
    /// Units of the calendar.
    Calendar(CalendarUnit),
}

/// `date_histogram`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DateHistogram {
    /// Field.
    pub field: String,
    /// Width of a bucket.
    pub interval: Interval,
    /// Milliseconds by which buckets begin later.
    pub offset_ms: i64,
    /// Offset of the time zone whose calendar it is, in milliseconds.
    pub zone_ms: i64,
    /// How keys are written; else as the mapping says.
    pub format: Option<DateFormat>,
    /// As in [`Histogram`].
    pub min_doc_count: u64,
    /// By what they are sorted.
    pub order: BucketOrder,
    /// Milliseconds since 1970 that are shown at least, where `min_doc_count` is 0.
    pub extended_bounds: Option<(i64, i64)>,
    /// Whether the answer is an object by keys.
    pub keyed: bool,
    /// The value of documents without the field; they are left out otherwise.
    pub missing: Option<Literal>,
}

impl DateHistogram {
    /// The start of the bucket of a moment.
    pub fn floor(&self, ms: i64) -> i64 {
        let shift = self.zone_ms - self.offset_ms;
        let local = ms.saturating_add(shift);
        let start = match self.interval {
            Interval::Fixed(width) => local.div_euclid(width) * width,
            Interval::Calendar(unit) => unit.floor(local),
        };
        start.saturating_sub(shift)
    }

    /// The start of the bucket after the one that begins at `start`.
    pub fn next(&self, start: i64) -> i64 {
        let shift = self.zone_ms - self.offset_ms;
        match self.interval {
            Interval::Fixed(width) => start.saturating_add(width),
            Interval::Calendar(unit) => unit.add(start + shift, 1) - shift,
        }
    }
}

impl Histogram {
    /// The number of the bucket of a value.
    pub fn number(&self, value: f64) -> f64 {
        ((value - self.offset) / self.interval).floor()
    }

    /// The key of a bucket.
    pub fn key(&self, number: f64) -> f64 {
        number * self.interval + self.offset
    }
}

/// `range`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranges {
    /// Field.
    pub field: String,
    /// In the order in which they are shown: by `from`, then by `to`.
    pub ranges: Vec<RangeBucket>,
    /// Whether the answer is an object by keys.
    pub keyed: bool,
}

/// A bucket of [`Ranges`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeBucket {
    /// Its name; made of its ends otherwise.
    pub key: Option<String>,
    /// The smallest value in it.
    pub from: Option<f64>,
    /// The smallest value beyond it.
    pub to: Option<f64>,
}

impl RangeBucket {
    /// Whether a value is in it.
    pub fn holds(&self, value: f64) -> bool {
        self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value < to)
    }
}

/// A metric of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Field.
    pub field: String,
    /// Which.
    pub kind: MetricKind,
    /// The value of documents without the field; they are left out otherwise.
    pub missing: Option<Literal>,
}

/// Which metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricKind {
    /// `min`
    Min,
    /// `max`
    Max,
    /// `avg`
    Avg,
    /// `sum`
    Sum,
    /// `stats`
    Stats,
    /// `value_count`
    ValueCount,
    /// `cardinality`: exact up to so many values of a shard, and about so beyond.
    Cardinality {
        /// `precision_threshold`
        threshold: usize,
    },
    /// `percentiles`
    Percentiles {
        /// Which, 0 to 100.
        percents: Vec<f64>,
        /// Whether the answer is an object by percents.
        keyed: bool,
    },
}

impl MetricKind {
    /// Whether it counts values of any type, not only numbers.
    pub fn takes_any_type(&self) -> bool {
        matches!(self, MetricKind::ValueCount | MetricKind::Cardinality { .. })
    }

    /// Whether count, sum, least and greatest of numbers are all that it is made of.
    pub fn is_of_stats(&self) -> bool {
        !matches!(self, MetricKind::Cardinality { .. } | MetricKind::Percentiles { .. })
    }
}
