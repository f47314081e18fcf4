//! Bugs that tests plant in the virtual world, to see whether the checkers find them ([`world::Env::plant`]).

/// The flusher reports versions as persisted before they are.
pub const LOG_NOT_SYNCED: &str = "dcp: the log is not synced";
/// A version that arrives while a vbucket is pending, in a takeover, is dropped.
pub const PENDING_VERSION_LOST: &str = "dcp: a version is lost in a takeover";
/// A replica that is rolled back keeps its documents and only reports the new sequence number.
pub const ROLLED_BACK_DOCUMENTS_STAY: &str = "dcp: documents outlive a rollback";
