//! What a node says of itself with each answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a node says of itself with each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFeedback {
    /// Searches that wait there.
    pub queue: u64,
    /// Moving average of the time that a search takes there once it runs.
    pub service_time: Duration,
    /// Searches that run or wait there, without the one that is answered.
    pub in_flight: u64,
    /// Searches that may run there at once.
    pub threads: u64,
    /// What this search took once it ran.
    pub took: Duration,
}
