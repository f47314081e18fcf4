//! Errors that cross the wire, and how other errors become one. [`policy::failures`] says what is done about each.

use policy::failures::{CLOSED, DISK_FULL, ErrorKind, MAPPER_PARSING};
use query::{MappingError, SearchError};
use serde::{Deserialize, Serialize};
use world::Panicked;

use crate::settings::SettingError;
use crate::state::{Index, StateError};

/// What a node answers with, or why it does not.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

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
    /// The index that it is about, where the reason does not name it.
    pub index: Option<Box<Index>>,
}

impl Failure {
    /// A failure with the given type, reason and HTTP status.
    pub fn new(status: u16, kind: &str, reason: impl Into<String>) -> Self {
        Failure { kind: kind.to_owned(), reason: reason.into(), status, at: None, index: None }
    }

    /// The index does not exist.
    pub fn no_such_index(index: &str) -> Self {
        Failure::new(404, INDEX_NOT_FOUND, format!("no such index [{index}]"))
    }

    /// The node that was to be asked, or has not answered yet, is in the cluster no more.
    pub fn node_left(name: &str) -> Self {
        let reason = format!("node [{name}] has left the cluster");
        Failure::new(503, "node_not_connected_exception", reason)
    }

    /// The index is closed: its documents are neither read nor written.
    pub fn index_closed(index: &str, uuid: &str) -> Self {
        let index = Index { name: index.to_owned(), uuid: uuid.to_owned() };
        Failure { index: Some(Box::new(index)), ..Failure::new(400, CLOSED, "closed") }
    }

    /// The index wants that each document names its `_routing`, and this one does not.
    pub fn routing_missing(index: &str, id: &str) -> Self {
        let reason = format!("routing is required for [{index}]/[{id}]");
        Failure::new(400, "routing_missing_exception", reason)
    }

    /// The index that is followed was deleted, and created again. A status of 410: unlike one that has not heard of the
    /// index, this node knows.
    pub(crate) fn another_index(index: &str, followed: &str, now: &str) -> Self {
        let reason = format!(
            "the index [{index}] that was followed had the uuid [{followed}] and is gone, the one of that name now has \
             [{now}]; follow it anew"
        );
        Failure::new(410, INDEX_NOT_FOUND, reason)
    }

    /// A disk has no room. A status of 4xx says that nothing was done.
    fn disk_full(status: u16, reason: &str) -> Self {
        let reason = format!("disk usage exceeded flood-stage watermark: {reason}");
        Failure::new(status, DISK_FULL, reason)
    }

    /// A small file of the node could not be written, and the one before is still there. Status and kind are
    /// for an error that is not about room.
    pub(crate) fn not_stored(
        (status, kind): (u16, &str),
        reason: &str,
        error: &std::io::Error,
    ) -> Self {
        let reason = format!("{reason}: {error}");
        match store::means_full_disk(error) {
            true => Failure::disk_full(429, &reason),
            false => Failure::new(status, kind, reason),
        }
    }

    /// By which [`policy::failures`] says what is done.
    pub(crate) fn error_kind(&self) -> ErrorKind {
        ErrorKind::of_answer(self.status, &self.kind)
    }

    /// The shard has no copy that could do it now.
    pub fn unavailable(index: &str, shard: u32, why: &str) -> Self {
        let reason = format!("[{index}][{shard}] {why}");
        Failure::new(503, UNAVAILABLE, reason)
    }
}

/// The error of a shard that cannot serve now and has done nothing of what it was asked.
pub(crate) const UNAVAILABLE: &str = "unavailable_shards_exception";

/// The error of a node that does not know an index.
pub(crate) const INDEX_NOT_FOUND: &str = "index_not_found_exception";

/// A peer answered something else than was asked.
pub fn unexpected() -> Failure {
    Failure::new(500, "illegal_state_exception", "the node gave an answer of another kind")
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        if let store::Error::Search(error) = &error {
            return error.clone().into();
        }
        let (status, kind) = match &error {
            // The operations of the first failure may be in the log.
            store::Error::Failed { first, .. } if first.disk_full => (503, DISK_FULL),
            error => error.kind().answer(),
        };
        if kind == DISK_FULL {
            return Failure::disk_full(status, &error.to_string());
        }
        Failure::new(status, kind, error.to_string())
    }
}

/// Nobody knows how far it came.
impl From<Panicked> for Failure {
    fn from(panicked: Panicked) -> Self {
        Failure::new(503, "engine_exception", panicked.to_string())
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
