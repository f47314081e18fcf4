//! What is outstanding until green.

use record::RecoverySample;
use serde::Serialize;

use super::phases::{UNASSIGNED, WAITING, active, count, outstanding};

/// A curve has so many points at most.
const POINTS_MAX: usize = 60;

/// What is outstanding at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since it began.
    pub t_s: f64,
    /// Copies that are not started.
    pub copies: u32,
    /// Bytes that are to be copied.
    pub bytes: u64,
}

/// What is outstanding at each sample. One that was taken a while after the end shows the end.
pub(super) fn curve(samples: &[(f64, &RecoverySample)], green_s: f64) -> Vec<Point> {
    // Where copies wait to be moved, what is to be moved is an estimate, and in the end it is known: of those that
    // still seem to wait then, nothing is moved any more.
    let end = samples.last().map(|(_, sample)| *sample);
    let is_over = end.is_some_and(|end| active(end) + count(end, UNASSIGNED) == 0);
    let known = end.map_or(0, |end| if is_over { end.recovered_bytes } else { end.total_bytes });
    let total = |sample: &RecoverySample| match sample.stages.contains_key(WAITING) {
        true => sample.total_bytes.min(known),
        false => sample.total_bytes,
    };
    let point = |(t_s, sample): &(f64, &RecoverySample)| Point {
        t_s: t_s.min(green_s),
        copies: if is_over && *t_s >= green_s { 0 } else { outstanding(sample) },
        bytes: total(sample).saturating_sub(sample.recovered_bytes),
    };
    let each = samples.len().div_ceil(POINTS_MAX).max(1);
    let last = samples.len().saturating_sub(1);
    let kept = samples.iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    kept.map(|(_, sample)| point(sample)).collect()
}
