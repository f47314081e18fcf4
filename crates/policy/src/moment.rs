//! Moments, as tests write them.

use world::Time;

/// So many milliseconds after the world began.
pub(crate) fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}
