//! The search language as plain data: mappings, requests, and what shards answer.
//!
//! | file | holds |
//! | --- | --- |
//! | `json.rs` | JSON with the place of every value |
//! | `mapping/` | which fields of a document are indexed, and how |
//! | `parse/` | the body of `_search` and `_count` as plain data |
//! | `request.rs`, `query.rs`, `aggregation/` | that data |
//! | `date.rs`, `geo.rs` | date math, formats, units of calendars; distances |
//! | `source.rs` | `_source` filtering |
//! | `result.rs` | what a shard answers, and the order of hits |
//! | `error.rs` | why a search or a mapping is refused |
//!
//! The one rule: nothing here reads an index, a clock or a file. Whoever receives a request parses it into a
//! [`SearchRequest`] once; each shard resolves it against its own mapping and executes it; the parts are merged here.

pub mod aggregation;
pub mod date;
mod error;
pub mod geo;
mod json;
pub mod mapping;
mod parse;
mod query;
mod request;
mod result;
mod source;

pub use date::{CalendarUnit, DateFormat};
pub use error::{MappingError, SearchError, SearchErrorKind, Spot, illegal, unfit};
pub use mapping::{Field, FieldType, Mapping};
pub use parse::{parse_count, parse_search, parse_sort, parse_track_total_hits};
pub use query::{BoolQuery, Literal, MinimumShouldMatch, Query, QueryKind, RangeEnd};
pub use request::{
    DEFAULT_MAX_RESULT_WINDOW, DEFAULT_TRACK_TOTAL_HITS, DeclaredCost, SearchLimits, SearchRequest,
    SortKey, SortMissing, SortMode, SortTarget, SortValue, TrackTotalHits,
};
pub use result::{FetchedHit, ShardHit, ShardHits, compare_hits};
pub use source::SourceFilter;
