//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// A sync of the operation log says that it is done, and nothing is durable.
pub const LOG_NOT_SYNCED: &str = "store: the log is not synced";
/// A synthetic batch whose place is divisible by three is in the log and not in the index.
pub const BATCH_NOT_INDEXED: &str = "store: a synthetic batch is not indexed";
/// What was applied counts as durable.
pub const APPLIED_COUNTS_AS_DURABLE: &str = "store: what was applied counts as durable";
/// A commit says that it holds everything up to its highest operation.
pub const COMMIT_CLAIMS_HOLES: &str = "store: a commit claims what lies in holes below it";
/// A flush cuts the log to the commit, whoever needs what is below.
pub const LOG_CUT_TO_COMMIT: &str = "store: a flush heeds neither leases nor the global checkpoint";
/// An open copy does not apply the last operation of its log.
pub const REPLAY_ENDS_EARLY: &str = "store: a replay leaves the last operation out";
/// Deletes in the log do nothing when it is replayed.
pub const DELETES_NOT_REPLAYED: &str = "store: a replay leaves deletes out";
/// A refresh says that it is done, and shows nothing new.
pub const REFRESH_SHOWS_NOTHING: &str = "store: a refresh shows nothing new";
/// Operations beyond the first of a batch are in the index and not in the log.
pub const LOG_TAKES_THE_FIRST: &str = "store: the log takes the first operation of a batch alone";

/// All that random runs with faults must find, or a history of their own where these hardly ever meet them (synthetic
/// batches are not written by these).
pub const ALL: &[&str] = &[
    LOG_NOT_SYNCED, APPLIED_COUNTS_AS_DURABLE, COMMIT_CLAIMS_HOLES, LOG_CUT_TO_COMMIT,
    REPLAY_ENDS_EARLY, DELETES_NOT_REPLAYED, REFRESH_SHOWS_NOTHING, LOG_TAKES_THE_FIRST,
];
