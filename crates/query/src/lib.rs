#![doc = include_str!("../README.md")]

pub mod aggregation;
pub mod date;
mod error;
#[cfg(test)]
mod fuzz_test;
pub mod geo;
pub mod grid;
mod highlight;
pub mod histogram;
mod hits;
pub mod json;
pub mod mapping;
mod nested;
mod parse;
pub mod pipeline;
mod query;
pub mod refused;
mod request;
mod result;
pub mod score;
mod source;
mod text;
pub mod value;
pub mod zone;

pub use date::{CalendarUnit, DateFormat};
pub use error::{MappingError, Refusal, SearchError, SearchErrorKind, Spot, illegal, unfit};
pub use highlight::{Highlight, HighlightField, Highlighter};
pub use hits::{ColumnField, SortDistance, SortKey, SortMissing, SortTarget, SortValue, TopHits};
pub use mapping::{Field, FieldType, Mapping};
pub use parse::{
    QueryString, add_columns_of_path, aggregations, highlight_options, parse_count, parse_search,
    parse_sort, parse_track_total_hits, queries,
};
pub use query::{
    AliasedQuery, BoolQuery, FieldQuery, FieldsQuery, FirstQuery, FunctionScore, Fuzziness,
    MinimumShouldMatch, Query, QueryKind, RangeEnd, RangeQuery, Relation, ScoreFunction,
};
pub use request::{
    AskedPointInTime, DEFAULT_TRACK_TOTAL_HITS, DeclaredCost, FetchRequest, NO_TIMEOUT_MS,
    SearchLimits, SearchRequest, TrackTotalHits,
};
pub use result::{
    FetchedHit, ShardHit, ShardHits, ShownHit, Stopped, compare_hits, keep_first_of_group,
};
pub use source::SourceFilter;
pub use text::Text;
pub use value::Literal;
pub use zone::Zone;
