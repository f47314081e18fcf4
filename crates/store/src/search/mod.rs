//! Searching: the request as plain data, and what shards answer.
//!
//! | file | holds |
//! | --- | --- |
//! | `json.rs` | JSON with the place of every value |
//! | `parse/` | the body of `_search` and `_count` as plain data |
//! | `request.rs`, `query.rs`, `aggregation/` | that data |
//! | `date.rs`, `geo.rs` | date math, formats, units of calendars; distances |
//! | `analyzer.rs` | texts into words |
//! | `source.rs` | `_source` filtering |
//! | `execute/` | execution on a shard copy |
//! | `result.rs` | what a shard answers, and the order of hits |
//! | `error.rs` | why a search is refused |
//!
//! The way of a search: JSON is parsed into [`SearchRequest`] once, by whoever receives it; each shard resolves
//! it against its own mapping and executes it; the parts are merged.

pub mod aggregation;
pub(crate) mod analyzer;
mod date;
mod error;
pub(crate) mod execute;
mod geo;
mod json;
mod parse;
mod query;
mod request;
mod result;
mod source;

pub use date::{CalendarUnit, DateFormat};
pub use error::{SearchError, SearchErrorKind};
pub use execute::SearchView;
pub use json::Spot;
pub use parse::{parse_count, parse_search, parse_sort, parse_track_total_hits};
pub use query::{BoolQuery, Literal, MinimumShouldMatch, Query, QueryKind, RangeEnd};
pub use request::{
    DEFAULT_MAX_RESULT_WINDOW, DEFAULT_TRACK_TOTAL_HITS, DeclaredCost, SearchLimits, SearchRequest,
    SortKey, SortMissing, SortMode, SortTarget, SortValue, TrackTotalHits,
};
pub use result::{FetchedHit, ShardHit, ShardHits, compare_hits};
pub use source::SourceFilter;
