//! Requests to a shard copy, their results, and its statistics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::operation::{Operation, SyntheticBatch};

/// `index.translog.durability`: when a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Once its operations are synced.
    #[default]
    Request,
    /// Once they are applied; a sync follows every `index.translog.sync_interval`.
    Async,
}

/// How a copy is opened or created.
#[derive(Clone, Debug)]
pub struct Options {
    /// `index.translog.durability`.
    pub durability: Durability,
    /// `index.shard.check_on_startup`: whether opening reads every committed file and compares it with its hash.
    /// Lengths are compared always.
    pub check_on_startup: bool,
    /// Identity of the history of a copy that is created; drawn at random where none is given. An existing copy keeps
    /// its own where none is given, and else begins this one: durably, with all that it has, before it is open.
    pub history_uuid: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options { durability: Durability::default(), check_on_startup: true, history_uuid: None }
    }
}

/// What opening a copy found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of committed files whose hashes were checked.
    pub verified_bytes: u64,
    /// Bytes cut from the end of the log: a record that was being written when the node died.
    pub torn_bytes: u64,
    /// Operations replayed from the log.
    pub replayed_ops: u64,
}

/// A write, before the primary gave it a place in the history: `_id`, `_source` and `_routing` of a document, which
/// is deleted where there is no source, and goes by its id where there is no routing.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteRequest {
    /// Creates or replaces a document.
    Index {
        id: Arc<str>,
        source: Bytes,
        /// Whether the id was generated for this request.
        auto_id: bool,
        /// Whether an existing document is a conflict (`op_type=create`).
        create: bool,
        routing: Option<Arc<str>>,
    },
    /// Deletes a document.
    Delete { id: Arc<str>, routing: Option<Arc<str>> },
    /// Replaces or deletes a document that no other write has touched since it was read.
    IfUnchanged {
        id: Arc<str>,
        /// Place in the history of the operation that wrote what was read (`if_seq_no`).
        seq_no: u64,
        /// Term in which it was read (`if_primary_term`); the primary compares it with its own.
        primary_term: u64,
        source: Option<Bytes>,
        routing: Option<Arc<str>>,
    },
    /// Replaces or deletes a document whose versions its client counts (`version_type=external`): refused unless the
    /// version is higher than that of the last write, also of a deletion that is not long ago.
    Versioned {
        id: Arc<str>,
        /// Version that the document is to have.
        version: u64,
        /// Whether it may have that version already (`external_gte`).
        or_equal: bool,
        source: Option<Bytes>,
        routing: Option<Arc<str>>,
    },
    /// Creates documents that exist only as a number. Refused but in the virtual world.
    SyntheticBatch {
        /// Names the batch; no other has the same.
        id: Arc<str>,
        batch: SyntheticBatch,
    },
}

impl WriteRequest {
    /// Creates or replaces a document, which goes by its id.
    pub fn index(id: Arc<str>, source: Bytes) -> WriteRequest {
        WriteRequest::Index { id, source, auto_id: false, create: false, routing: None }
    }

    /// Creates a document whose id was generated for it.
    pub fn append(id: Arc<str>, source: Bytes) -> WriteRequest {
        WriteRequest::Index { id, source, auto_id: true, create: false, routing: None }
    }

    /// The document's id.
    pub fn id(&self) -> &Arc<str> {
        match self {
            WriteRequest::Index { id, .. }
            | WriteRequest::Delete { id, .. }
            | WriteRequest::IfUnchanged { id, .. }
            | WriteRequest::Versioned { id, .. }
            | WriteRequest::SyntheticBatch { id, .. } => id,
        }
    }

    /// `_routing`; none where the document goes by its id.
    pub fn routing(&self) -> Option<&Arc<str>> {
        match self {
            WriteRequest::Index { routing, .. }
            | WriteRequest::Delete { routing, .. }
            | WriteRequest::IfUnchanged { routing, .. }
            | WriteRequest::Versioned { routing, .. } => routing.as_ref(),
            WriteRequest::SyntheticBatch { .. } => None,
        }
    }

    /// `_source` of the document that is to be; none where there is none, or only a number of documents.
    pub fn source(&self) -> Option<&Bytes> {
        match self {
            WriteRequest::Index { source, .. } => Some(source),
            WriteRequest::IfUnchanged { source, .. } | WriteRequest::Versioned { source, .. } => {
                source.as_ref()
            }
            WriteRequest::Delete { .. } | WriteRequest::SyntheticBatch { .. } => None,
        }
    }

    /// Whether it is of documents that exist only as a number.
    pub fn is_synthetic_batch(&self) -> bool {
        matches!(self, WriteRequest::SyntheticBatch { .. })
    }
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteOutcome {
    /// A new document.
    Created,
    /// Replaced one.
    Updated,
    /// Deleted one.
    Deleted,
    /// There was none to delete. The operation still takes a place in the history.
    NotFound,
    /// An update that changes nothing: there is no operation. The store itself never says so.
    Noop,
}

/// Why one write of a batch was refused; the others of the batch go on.
#[expect(missing_docs, reason = "each message says what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Rejection {
    /// `op_type=create` for a document that exists.
    #[error("[{id}]: version conflict, document already exists (current version [{version}])")]
    VersionConflict { id: Arc<str>, version: u64 },
    /// The document is not as it was when it was read.
    #[error("[{id}]: version conflict, required seqNo [{required}], but {}", now(.found))]
    Changed { id: Arc<str>, required: u64, found: Option<u64> },
    /// The version that the client gives is not high enough.
    #[error(
        "[{id}]: version conflict, current version [{version}] is {} the one provided [{given}]",
        higher(.or_equal)
    )]
    Version { id: Arc<str>, version: u64, given: u64, or_equal: bool },
    /// The document does not fit the mapping, is no JSON object, or brings fields that are refused.
    #[error("[{id}]: {refusal}")]
    Document { id: Arc<str>, refusal: query::Refusal },
}

fn higher(or_equal: &bool) -> &'static str {
    if *or_equal { "higher than" } else { "higher or equal to" }
}

fn now(found: &Option<u64>) -> String {
    match found {
        Some(seq_no) => format!("the document has seqNo [{seq_no}]"),
        None => "no document was found".to_owned(),
    }
}

/// What became of one write: its operation, to be sent to the other copies, and its outcome.
pub type WriteResult = std::result::Result<(Operation, WriteOutcome), Rejection>;

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResult {
    /// Version: from 1, or as clients count.
    pub version: u64,
    /// Place in the history of the operation that wrote it.
    pub seq_no: u64,
    /// `_source`. None in the virtual world once the operation left the log: only sizes stay there.
    pub source: Option<Bytes>,
    /// `_routing`; none where the document goes by its id.
    pub routing: Option<Arc<str>>,
}

/// How often something was done, and how long that took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// How often.
    pub count: u64,
    /// How long together.
    pub time: Duration,
}

impl std::ops::AddAssign for Timed {
    fn add_assign(&mut self, other: Timed) {
        self.count += other.count;
        self.time += other.time;
    }
}

/// What a copy did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardWork {
    /// Documents that were indexed, those of the copy's own log aside. What came together shares its time.
    pub indexing: Timed,
    /// Documents that were deleted.
    pub deletes: Timed,
    /// Documents that were asked for by their ids, and found.
    pub found: Timed,
    /// Documents that were asked for by their ids, and not found.
    pub missing: Timed,
    /// Searches.
    pub queries: Timed,
    /// Reads of the documents of hits.
    pub fetches: Timed,
    /// Refreshes that had something to show.
    pub refreshes: Timed,
    /// Commits that had something to keep.
    pub flushes: Timed,
}

/// A segment of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentStats {
    /// The name that its files begin with.
    pub name: String,
    /// Live documents, and deleted ones that it still holds, as of the last refresh; none where searches do not see it,
    /// as it was merged since it was committed.
    pub documents: Option<(u64, u64)>,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether the newest commit has it.
    pub committed: bool,
}

/// A copy in numbers.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardStats {
    /// Live documents, searchable or not yet.
    pub documents: u64,
    /// Replaced and deleted documents that segments still hold, as of the last refresh.
    pub deleted: u64,
    /// Bytes of segment files as of the last refresh.
    pub store_bytes: u64,
    /// Segments as of the last refresh.
    pub segments: u64,
    pub merging: u64,
    pub log_ops: u64,
    pub log_bytes: u64,
    /// The log holds every operation from here on.
    pub log_complete_from: u64,
    pub log_syncs: u64,
    pub uncommitted_ops: u64,
    /// Bytes of operations since the last commit; `index.translog.flush_threshold_size` bounds it.
    pub uncommitted_bytes: u64,
    pub max_seq_no: Option<u64>,
    /// Everything up to here is applied.
    pub local_checkpoint: Option<u64>,
    /// Every in-sync copy has applied everything up to here, as far as is known.
    pub global_checkpoint: Option<u64>,
    /// Searches answered from the request cache, since the copy was opened.
    pub request_cache_hits: u64,
    /// Searches that looked for an answer in the request cache and found none.
    pub request_cache_misses: u64,
    pub work: ShardWork,
    pub commit_generation: u64,
    /// Retention leases: id to first sequence number kept.
    pub leases: BTreeMap<String, u64>,
    /// Every segment; empty unless that was asked for.
    pub segment_list: Vec<SegmentStats>,
}
