//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// A sync of the operation log says that it is done, and nothing is durable.
pub const LOG_NOT_SYNCED: &str = "store: the log is not synced";
/// A run of documents whose place is divisible by three is in the log and not in the index.
pub const RUN_NOT_INDEXED: &str = "store: a run is not indexed";
