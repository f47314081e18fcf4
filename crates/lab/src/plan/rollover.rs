//! When an index gives its writes to a new one.

use std::time::Duration;

/// When an index is rolled over, as index lifecycle management does it. One of the conditions that are given suffices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollover {
    /// On real processes.
    pub real: RolloverRule,
    /// In virtual time.
    pub full: RolloverRule,
}

impl Rollover {
    /// The one for a world.
    pub fn of(&self, is_virtual: bool) -> &RolloverRule {
        if is_virtual { &self.full } else { &self.real }
    }
}

/// Conditions by the field's names, one at least, and how often they are looked at.
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
