//! When an alias is rolled over to a new write index.

use std::time::Duration;

/// When an index is rolled over, as index lifecycle management does it: conditions by the field's names, of which one
/// at least is given, and how often they are checked. One that holds is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloverRule {
    /// `max_docs`.
    pub max_docs: Option<u64>,
    /// `max_size`: bytes of the primaries.
    pub max_bytes: Option<u64>,
    /// `max_age`.
    pub max_age: Option<Duration>,
    /// `indices.lifecycle.poll_interval`.
    pub poll_interval: Duration,
}
