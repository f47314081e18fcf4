//! What is outstanding until green.

use record::RecoverySample;
use record::stage::{DONE, UNASSIGNED};
use serde::Serialize;

use super::phases::{begun_in_all, count, outstanding};

/// A curve has so many points at most.
const POINTS_MAX: usize = 60;

/// What is outstanding at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since it began.
    pub t_s: f64,
    /// Copies that are not started.
    pub copies: u32,
    /// Bytes that are to be copied until it is done; where nodes restart one after another, those of the copies that
    /// are not started.
    pub bytes: u64,
}

/// What is outstanding at each sample. One that was taken a while after the end shows the end.
pub(super) fn curve(
    samples: &[(f64, &RecoverySample)],
    green_s: f64,
    is_restarted: bool,
) -> Vec<Point> {
    // What is to be copied was estimated, and copies that are moved for balance add to it: in the end it is known, and
    // is what the answer says. Of nodes that restart each has its own copies, and the next ones are not lost yet.
    let known = samples.last().map_or(0, |(_, end)| end.recovered_bytes);
    let total = |sample: &RecoverySample| if is_restarted { sample.total_bytes } else { known };
    let in_all = begun_in_all(samples);
    let point = |(t_s, sample): &(f64, &RecoverySample)| {
        // Whatever is moved beside it goes on, and what has no place has none.
        if *t_s >= green_s {
            return Point { t_s: green_s, copies: count(sample, UNASSIGNED), bytes: 0 };
        }
        let copies = match outstanding(sample, in_all) {
            // The cluster has not noticed, or has not been looked at.
            0 if count(sample, DONE) == 0 => sample.waiting.unwrap_or(0),
            copies => copies,
        };
        let bytes = total(sample).saturating_sub(sample.recovered_bytes);
        Point { t_s: *t_s, copies, bytes }
    };
    let each = samples.len().div_ceil(POINTS_MAX).max(1);
    let last = samples.len().saturating_sub(1);
    let kept = samples.iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    kept.map(|(_, sample)| point(sample)).collect()
}
