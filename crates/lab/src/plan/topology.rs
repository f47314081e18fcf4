//! The clusters of a plan, and the path between them.

use std::time::Duration;

/// Name of the cluster that holds the data.
pub const LEADER: &str = "leader";
/// Name of the cluster that recovers from it, or follows it.
pub const FOLLOWER: &str = "follower";

/// A cluster to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Nodes, at least one.
    pub nodes: u32,
}

/// The path between leader and follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Round-trip time.
    pub rtt: Duration,
    /// Rate in each direction.
    pub rate_bytes_per_s: u64,
    /// Window of one connection; none where it is not bounded.
    pub window_bytes: Option<u64>,
}
