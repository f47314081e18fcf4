//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// A replica that fails a write is not taken out of the copies in sync, and the write is acknowledged all the same.
pub const FAILED_REPLICA_IGNORED: &str = "engine: a replica's failure is ignored";
/// A follower goes on after the highest operation that it has, and not after the last that every copy has.
pub const CHECKPOINT_SKIPPED: &str = "engine: a follower skips its checkpoint";
