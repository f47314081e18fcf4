//! Kinds of connections.

use serde::{Deserialize, Serialize};

/// What a connection is for, so that bulk does not delay what is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// State, sessions, pings.
    Control,
    /// Writes and their replication.
    Bulk,
    /// Searches and fetches.
    Search,
    /// Chunks and operations of recoveries; the number chooses among several connections.
    Recovery(u32),
    /// Anything for a remote cluster that is reached by proxy; the number chooses among the sockets to it.
    Proxied(u32),
}
