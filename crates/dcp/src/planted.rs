//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// The flusher says that versions are on disk, and nothing is durable.
pub const LOG_NOT_SYNCED: &str = "dcp: the log is not synced";
/// A version that comes while a vbucket is pending, in a takeover, is not kept.
pub const PENDING_VERSION_LOST: &str = "dcp: a version is lost in a takeover";
/// A replica that is rolled back keeps the documents that it had: it only says that it is where it was told to go.
pub const ROLLED_BACK_DOCUMENTS_STAY: &str = "dcp: documents outlive a rollback";
