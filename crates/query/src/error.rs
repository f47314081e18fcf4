//! Why a search or a mapping is refused.

/// Where something stands in a request's body; both count from 1. While a body is read line 0 has its names and values
/// by number (see `json`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

/// Why a search was refused, in the field's terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SearchError {
    /// What kind of error.
    pub kind: SearchErrorKind,
    /// What was found, and what is accepted.
    pub reason: String,
    /// Where it stands in the request's body, if that is what is wrong.
    pub at: Option<Spot>,
}

/// Why one document of a request is refused; the others go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{reason}")]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The `type` of the error in REST.
    pub kind: String,
    /// What was found, and what is accepted.
    pub reason: String,
}

impl Refusal {
    /// The document cannot be read by its mapping.
    pub(crate) fn parsing(reason: impl std::fmt::Display) -> Self {
        let reason = format!("failed to parse: {reason}");
        Refusal { status: 400, kind: "mapper_parsing_exception".to_owned(), reason }
    }

    /// The document has a field that a strict mapping lacks.
    pub(crate) fn strict(name: &str, within: &str) -> Self {
        let within = if within.is_empty() { "_doc" } else { within };
        let reason = format!(
            "mapping set to strict, dynamic introduction of [{name}] within [{within}] is not allowed"
        );
        Refusal { status: 400, kind: "strict_dynamic_mapping_exception".to_owned(), reason }
    }
}

/// Kinds of errors, named as the field names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchErrorKind {
    /// The body cannot be read as a search.
    Parsing,
    /// A parameter is out of its bounds.
    IllegalArgument,
    /// The query does not fit the mapping of the shard.
    QueryShard,
    /// More buckets than `search.max_buckets`.
    TooManyBuckets,
}

impl SearchErrorKind {
    /// The `type` of the error in REST.
    pub fn name(self) -> &'static str {
        match self {
            SearchErrorKind::Parsing => "parsing_exception",
            SearchErrorKind::IllegalArgument => "illegal_argument_exception",
            SearchErrorKind::QueryShard => "query_shard_exception",
            SearchErrorKind::TooManyBuckets => "too_many_buckets_exception",
        }
    }
}

/// What everything that reads a search returns.
pub(crate) type Result<T, E = SearchError> = std::result::Result<T, E>;

pub fn parsing(at: Spot, reason: impl Into<String>) -> SearchError {
    SearchError { kind: SearchErrorKind::Parsing, reason: reason.into(), at: Some(at) }
}

/// Refuses what stands there unless this holds.
pub(crate) fn ensure(holds: bool, at: Spot, reason: impl std::fmt::Display) -> Result<()> {
    if holds { Ok(()) } else { Err(parsing(at, reason.to_string())) }
}

/// A parameter is out of its bounds.
pub fn illegal(reason: impl Into<String>) -> SearchError {
    SearchError { kind: SearchErrorKind::IllegalArgument, reason: reason.into(), at: None }
}

/// A query does not fit the mapping of the shard.
pub fn unfit(reason: impl Into<String>) -> SearchError {
    SearchError { kind: SearchErrorKind::QueryShard, reason: reason.into(), at: None }
}

/// Why a mapping is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mapping of \"{field}\": {reason}")]
pub struct MappingError {
    /// Dotted path of the field; empty for the whole mapping.
    pub field: String,
    /// What is wrong, and what is known instead.
    pub reason: String,
}
