//! What a node did for searches.

use std::cell::Cell;
use std::time::Duration;

/// What a node did for searches since it started.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Queries of shards.
    pub(crate) queries: Cell<u64>,
    /// Time that they took once they ran.
    pub(crate) query_time: Cell<Duration>,
    /// Fetches that followed a query.
    pub(crate) fetches: Cell<u64>,
}
