//! How hits are sorted, and what they show.

use serde::{Deserialize, Serialize};

use super::{DateFormat, Literal, SourceFilter};

/// By what hits are sorted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SortTarget {
    /// `_score`
    Score,
    /// `_doc`: as they lie in the index.
    Doc,
    /// A field.
    Field(String),
    /// `_geo_distance`
    Distance(SortDistance),
}

/// How far a field of points is from others; endlessly far where a document has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortDistance {
    /// The field.
    pub field: String,
    /// Latitudes and longitudes; the nearest or the farthest of them counts.
    pub origins: Vec<(f64, f64)>,
    /// Metres of the unit in which hits show the distance.
    pub unit_m: f64,
    /// Whether an index may be without the field.
    pub ignore_unmapped: bool,
}

/// Where documents without the field stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SortMissing {
    /// `_last`
    Last,
    /// `_first`
    First,
    /// As if they had this value.
    Value(Literal),
}

/// One key of the order of hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortKey {
    /// By what.
    pub target: SortTarget,
    /// Largest first.
    pub descending: bool,
    /// Where documents without it stand.
    pub missing: SortMissing,
    /// `mode`: of several values of a document the greatest counts; else the least.
    pub takes_greatest: bool,
    /// `unmapped_type`: what an index without the field is sorted as if it had; none where that is an error.
    pub unmapped_type: Option<String>,
}

impl SortKey {
    /// The key of a name; `_score` alone begins with the greatest where nothing else is said.
    pub fn of(name: &str, descending: Option<bool>) -> Self {
        let target = match name {
            "_score" => SortTarget::Score,
            "_doc" => SortTarget::Doc,
            field => SortTarget::Field(field.to_owned()),
        };
        Self::by(target, descending)
    }

    /// The key of a target.
    pub(crate) fn by(target: SortTarget, descending: Option<bool>) -> Self {
        let descending = descending.unwrap_or(target == SortTarget::Score);
        let (missing, takes_greatest) = (SortMissing::Last, descending);
        SortKey { target, descending, missing, takes_greatest, unmapped_type: None }
    }
}

/// A value that a hit is sorted by. Booleans are 0 and 1, dates milliseconds; a number that is missing is the least or
/// greatest one, a text that is missing none: all as Elasticsearch has it.
pub type SortValue = Option<Literal>;

/// A field whose values hits show as they are kept beside `_source`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnField {
    /// Its path, or a pattern of paths.
    pub pattern: String,
    /// How dates are written; else as the mapping says.
    pub format: Option<DateFormat>,
}

/// `top_hits`: the best documents of each bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopHits {
    /// Hits that are passed over.
    pub from: usize,
    /// Hits that are shown.
    pub size: usize,
    /// Their order; by score where there is none.
    pub sort: Vec<SortKey>,
    /// What they show of their documents.
    pub source: SourceFilter,
    /// `docvalue_fields`: what they show of their columns.
    pub column_fields: Vec<ColumnField>,
}
