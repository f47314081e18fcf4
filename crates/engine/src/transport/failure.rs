//! Errors that cross the wire, and what becomes them.

use query::{MappingError, SearchError};
use serde::{Deserialize, Serialize};

use crate::settings::SettingError;
use crate::state::StateError;

/// An error that crosses the wire: the field's type, its reason and its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// For example `index_not_found_exception`.
    pub kind: String,
    /// What was tried, what was found, what to do.
    pub reason: String,
    /// HTTP status.
    pub status: u16,
    /// Line and column of a request's body, if that is what is wrong.
    pub at: Option<(u32, u32)>,
}

impl Failure {
    /// A failure with the given type, reason and HTTP status.
    pub fn new(status: u16, kind: &str, reason: impl Into<String>) -> Self {
        Failure { kind: kind.to_owned(), reason: reason.into(), status, at: None }
    }

    /// The index does not exist.
    pub fn no_such_index(index: &str) -> Self {
        Failure::new(404, "index_not_found_exception", format!("no such index [{index}]"))
    }

    /// The shard has no copy that could do it now.
    pub fn unavailable(index: &str, shard: u32, why: &str) -> Self {
        let reason = format!("[{index}][{shard}] {why}");
        Failure::new(503, UNAVAILABLE, reason)
    }
}

/// The error of a shard that cannot serve now and has done nothing of what it was asked.
pub(crate) const UNAVAILABLE: &str = "unavailable_shards_exception";

/// A neighbour answered something else than was asked.
pub fn unexpected() -> Failure {
    Failure::new(500, "illegal_state_exception", "the node gave an answer of another kind")
}

/// A mapping that is refused, or a document that does not fit its mapping.
const MAPPER_PARSING: &str = "mapper_parsing_exception";

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        if let store::Error::Search(error) = &error {
            return error.clone().into();
        }
        let (status, kind) = match &error {
            store::Error::Document { .. } => (400, MAPPER_PARSING),
            store::Error::OperationsGone { .. } => (404, "resource_not_found_exception"),
            store::Error::SourceDamaged { .. }
            | store::Error::FileDamaged { .. }
            | store::Error::FileLength { .. }
            | store::Error::LogDamaged { .. } => (500, "corrupt_index_exception"),
            _ => (500, "engine_exception"),
        };
        Failure::new(status, kind, error.to_string())
    }
}

impl From<MappingError> for Failure {
    fn from(error: MappingError) -> Self {
        Failure::new(400, MAPPER_PARSING, error.to_string())
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let at = error.at.map(|at| (at.line, at.column));
        Failure { at, ..Failure::new(400, error.kind.name(), error.reason) }
    }
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        Failure::new(400, "illegal_argument_exception", error.to_string())
    }
}

impl From<&StateError> for Failure {
    fn from(error: &StateError) -> Self {
        let (status, kind) = error.rest();
        Failure::new(status, kind, error.to_string())
    }
}
