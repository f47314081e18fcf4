//! Aggregations as plain data: what is asked for. The store collects, merges and writes them.

use serde::{Deserialize, Serialize};

use super::date::CalendarUnit;
use super::{DateFormat, Literal};

/// `search.max_buckets` where nothing else is said.
pub const DEFAULT_MAX_BUCKETS: usize = 65_536;

/// An aggregation and those within its buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregation {
    /// The name that the request gives it.
    pub name: String,
    /// What it does.
    pub kind: AggregationKind,
    /// Field.
    pub field: String,
    /// The value of documents without the field; they are left out otherwise.
    pub missing: Option<Literal>,
    /// Fewest documents of a bucket that is shown; 0 shows the empty ones in between, too.
    pub min_doc_count: u64,
    /// By what buckets are sorted; ties by their keys.
    pub order: Vec<BucketOrder>,
    /// Whether the answer is an object by keys.
    pub keyed: bool,
    /// What is asked of each bucket.
    pub subs: Vec<Aggregation>,
    /// `meta`, as JSON text; it comes back as it went.
    pub meta: Option<String>,
}

/// What an aggregation does.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AggregationKind {
    /// Buckets that are shown, and buckets that each shard sends.
    Terms {
        size: usize,
        shard_size: usize,
    },
    /// `histogram` and `date_histogram`
    Histogram(Histogram),
    /// In the order in which they are shown, by `from`, then by `to`.
    Range(Vec<RangeBucket>),
    Stats(Statistic),
    /// `precision_threshold`: exact up to so many values, and about so beyond.
    Cardinality {
        threshold: usize,
    },
    /// Which, 0 to 100.
    Percentiles(Vec<f64>),
}

impl AggregationKind {
    /// Whether it makes no buckets.
    pub fn is_metric(&self) -> bool {
        use AggregationKind::*;
        matches!(self, Stats(_) | Cardinality { .. } | Percentiles(_))
    }
}

/// Which statistics of a field are shown.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Statistic {
    Min,
    Max,
    Avg,
    Sum,
    ValueCount,
    Stats,
    /// `sigma`: how many standard deviations its bounds are from the mean.
    Extended {
        sigma: f64,
    },
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

/// Width of the buckets of a [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Interval {
    /// A number, or milliseconds.
    Fixed(f64),
    /// Units of the calendar.
    Calendar(CalendarUnit),
}

/// Buckets of one width. Dates are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Width of a bucket.
    pub interval: Interval,
    /// By how much buckets begin later.
    pub offset: f64,
    /// Offset of the time zone whose calendar it is, in milliseconds.
    pub zone_ms: i64,
    /// Whether it is a `date_histogram`.
    pub of_dates: bool,
    /// How dates are written; else as the mapping says.
    pub format: Option<DateFormat>,
    /// Values whose buckets are shown at least, where empty ones are.
    pub extended_bounds: Option<(f64, f64)>,
}

impl Histogram {
    fn shift(&self) -> f64 {
        self.zone_ms as f64 - self.offset
    }

    /// The start of the bucket of a value.
    pub fn start(&self, value: f64) -> f64 {
        let local = value + self.shift();
        let start = match self.interval {
            Interval::Fixed(width) => (local / width).floor() * width,
            Interval::Calendar(unit) => unit.floor(local as i64) as f64,
        };
        start - self.shift()
    }

    /// The start of the bucket after the one that begins at `start`.
    pub fn next(&self, start: f64) -> f64 {
        let local = start + self.shift();
        let next = match self.interval {
            Interval::Fixed(width) => ((local / width).round() + 1.0) * width,
            Interval::Calendar(unit) => unit.add(local as i64, 1) as f64,
        };
        next - self.shift()
    }
}

/// A bucket of `range`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
