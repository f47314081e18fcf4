//! Aggregations as plain data: what is asked for. The store collects, merges and writes them.

use serde::{Deserialize, Serialize};

use super::grid::Grid;
use super::histogram::{AutoHistogram, Histogram};
use super::hits::TopHits;
use super::pipeline::Pipeline;
use super::{DateFormat, Literal, Query, Zone, nested};

/// `search.max_buckets` where nothing else is said.
pub const DEFAULT_MAX_BUCKETS: usize = 65_536;

/// An aggregation and those within its buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregation {
    /// The name that the request gives it.
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "nested::deserialize")]
    pub kind: AggregationKind,
    /// Field.
    pub field: String,
    /// The value of documents without the field; they are left out otherwise. Null alone is one of sources of tuples.
    pub missing: Option<Literal>,
    /// Fewest documents of a bucket that is shown; 0 shows the empty ones in between, too.
    pub min_doc_count: u64,
    /// By what buckets are sorted; ties by their keys.
    pub order: Vec<BucketOrder>,
    /// Whether the answer is an object by keys.
    pub keyed: bool,
    /// What is asked of each bucket.
    #[serde(deserialize_with = "nested::deserialize")]
    pub subs: Vec<Aggregation>,
    /// `meta`, as JSON text; it comes back as it went.
    pub meta: Option<String>,
}

impl Aggregation {
    /// Whether it or one within its buckets is `composite`. A page is found before documents are collected, of all that
    /// match: it stands within filters alone.
    pub fn has_pages(&self) -> bool {
        self.kind.is_composite() || self.subs.iter().any(Aggregation::has_pages)
    }

    /// Whether it is computed of the others once these are merged: no shard is asked for it.
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, AggregationKind::Pipeline(_))
    }

    /// Whether the values of documents are gathered for it, as they are for all but pipelines and `top_hits`.
    pub fn is_collected(&self) -> bool {
        !self.is_pipeline() && !matches!(self.kind, AggregationKind::TopHits(_))
    }

    /// Whether it or one within its buckets is `top_hits`.
    pub fn has_top_hits(&self) -> bool {
        matches!(self.kind, AggregationKind::TopHits(_))
            || self.subs.iter().any(Aggregation::has_top_hits)
    }

    /// One of a kind, with nothing else said of it.
    pub fn of(kind: AggregationKind) -> Self {
        Aggregation {
            name: String::new(),
            kind,
            field: String::new(),
            missing: None,
            min_doc_count: 1,
            order: Vec::new(),
            keyed: false,
            subs: Vec::new(),
            meta: None,
        }
    }
}

/// What an aggregation does.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AggregationKind {
    /// Buckets that are shown, and buckets that each shard sends; the values that make some, and those that make none.
    Terms {
        size: usize,
        shard_size: usize,
        include: Option<Chosen>,
        exclude: Option<Chosen>,
    },
    /// `histogram` and `date_histogram`
    Histogram(Histogram),
    /// `auto_date_histogram`, which stands within no other.
    AutoHistogram(AutoHistogram),
    /// In the order in which they are shown, by `from`, then by `to`.
    Range(Vec<RangeBucket>),
    DateRange(DateRanges),
    /// `geo_distance`
    Distance(Distances),
    /// `geohash_grid` and `geotile_grid`
    Grid(Grid),
    /// `filter`, `filters` and `missing`
    Filters(Filters),
    /// `composite` and `multi_terms`
    Tuples(Tuples),
    Stats(Statistic),
    /// `precision_threshold`: exact up to so many values, and about so beyond.
    Cardinality {
        threshold: usize,
    },
    /// Which, 0 to 100.
    Percentiles(Vec<f64>),
    GeoCentroid,
    /// `wrap_longitude`: whether the box may cross the date line.
    GeoBounds {
        wraps: bool,
    },
    /// Of the buckets of others.
    Pipeline(Pipeline),
    TopHits(TopHits),
}

impl AggregationKind {
    /// Whether it is `composite`.
    pub(crate) fn is_composite(&self) -> bool {
        matches!(self, AggregationKind::Tuples(tuples) if tuples.paged.is_some())
    }

    /// Whether it makes no buckets.
    pub fn is_metric(&self) -> bool {
        use AggregationKind::*;
        matches!(
            self,
            Stats(_)
                | Cardinality { .. }
                | Percentiles(_)
                | GeoCentroid
                | GeoBounds { .. }
                | Pipeline(_)
                | TopHits(_)
        )
    }

    /// Whether its answer is a list of buckets, and not a single one.
    pub fn has_buckets(&self) -> bool {
        match self {
            AggregationKind::Filters(filters) => filters.shape != FiltersShape::One,
            kind => !kind.is_metric(),
        }
    }

    /// Whether it answers a number of this name; or one alone, where no name is given.
    pub fn has_number(&self, name: Option<&str>) -> bool {
        let is_percent = |name: &str| name.parse().is_ok_and(|p: f64| (0.0..=100.0).contains(&p));
        match (self, name) {
            (AggregationKind::Pipeline(of), name) => {
                of.kind.numbers().contains(&name.unwrap_or("value"))
            }
            (AggregationKind::Stats(Statistic::Stats | Statistic::Extended { .. }), name) => {
                matches!(name, Some("min" | "max" | "avg" | "sum" | "count"))
            }
            (AggregationKind::Percentiles(_), name) => name.is_some_and(is_percent),
            // As in the field none is sorted by where it lies.
            (
                AggregationKind::TopHits(_)
                | AggregationKind::GeoCentroid
                | AggregationKind::GeoBounds { .. },
                _,
            ) => false,
            (kind, None | Some("value")) => kind.is_metric(),
            _ => false,
        }
    }
}

/// Some of the values of a field.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Chosen {
    Regexp(String),
    Values(Vec<Literal>),
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

/// Ranges of dates, whose ends are read where the field's format is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DateRanges {
    /// As they are asked for.
    pub ranges: Vec<RangeBucket<Literal>>,
    /// How dates are read and written; else as the mapping says.
    pub format: Option<DateFormat>,
    /// Of ends that bring no zone.
    pub zone: Zone,
}

/// Ranges of distances from a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distances {
    /// Latitude and longitude.
    pub origin: (f64, f64),
    /// Metres of the unit of the ranges.
    pub unit_m: f64,
    /// As they are asked for.
    pub ranges: Vec<RangeBucket>,
}

/// Buckets of documents that match queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filters {
    /// By name; a single one has that of its kind, `filter` or `missing`.
    pub filters: Vec<(String, Query)>,
    /// `other_bucket_key`: the bucket of those that match none.
    pub other: Option<String>,
    /// How the answer is written.
    pub shape: FiltersShape,
}

/// How an answer with buckets of queries is written.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FiltersShape {
    /// The one bucket is the answer.
    One,
    List,
    ByName,
}

/// Buckets of documents that have the same values in several fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuples {
    /// `terms`, histograms and tiles, each with its order.
    pub sources: Vec<Aggregation>,
    /// Buckets that are shown.
    pub size: usize,
    /// Of `composite`: buckets are in the order of their values, and those behind these are shown.
    pub paged: Option<Option<Vec<Literal>>>,
}

/// A bucket of `range`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeBucket<End = f64> {
    /// Its name; made of its ends otherwise.
    pub key: Option<String>,
    /// The smallest value in it.
    pub from: Option<End>,
    /// The smallest value beyond it.
    pub to: Option<End>,
}

impl RangeBucket {
    /// The order in which ranges are shown: by their start, then by their end.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let from = |range: &RangeBucket| range.from.unwrap_or(f64::NEG_INFINITY);
        let to = |range: &RangeBucket| range.to.unwrap_or(f64::INFINITY);
        from(self).total_cmp(&from(other)).then(to(self).total_cmp(&to(other)))
    }

    /// Whether a value is in it.
    pub fn holds(&self, value: f64) -> bool {
        self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value < to)
    }
}
