//! Rates between moments, with their errors.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use world::Time;

use super::look::{Look, Role};

/// Looks that are kept.
const KEPT: usize = 600;
/// A measurement takes at least this long and has so many steps.
pub(super) const MEASURE: Duration = Duration::from_secs(5);
const STEPS: usize = 4;
/// The same of one that shows only what cannot be overlooked.
pub(super) const MEASURE_BRIEF: Duration = Duration::from_secs(3);
const STEPS_BRIEF: usize = 3;
/// Rates are comparable while the number of recoveries differs by no more than this factor.
const AS_MANY: f64 = 1.34;

/// One look's counters.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    bytes: u64,
    ops: u64,
    active: usize,
}

/// The counters of the last looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    marks: VecDeque<Mark>,
}

/// A rate over a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Bytes or operations a second.
    pub(super) per_s: f64,
    /// The standard error of that.
    pub(super) error: f64,
    /// Recoveries at once, on average.
    pub(super) active: f64,
    /// Steps between looks.
    pub(super) steps: usize,
    /// The time that they make up.
    pub(super) span: Duration,
}

impl Measured {
    /// Whether it took long enough.
    pub(super) fn is_whole(&self) -> bool {
        self.span >= MEASURE && self.steps >= STEPS
    }

    /// Whether it took long enough to show what cannot be overlooked.
    pub(super) fn is_brief(&self) -> bool {
        self.span >= MEASURE_BRIEF && self.steps >= STEPS_BRIEF
    }

    /// Whether two rates can be compared: about as many recoveries went on, unless their number is what was changed.
    pub(super) fn is_like(&self, other: &Measured, role: Role) -> bool {
        let ratio = self.active / other.active.max(f64::MIN_POSITIVE);
        role == Role::Slots || (1.0 / AS_MANY..=AS_MANY).contains(&ratio)
    }
}

impl Meter {
    pub(super) fn push(&mut self, look: &Look) {
        if self.marks.len() == KEPT {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark {
            at: look.at,
            bytes: look.moved_bytes,
            ops: look.replayed_ops,
            active: look.active.len(),
        });
    }

    /// The rate from a moment on, over the steps in which something recovered; none where there are fewer than two.
    pub(super) fn since(&self, from: Time, role: Role) -> Option<Measured> {
        let first = self.marks.iter().position(|mark| mark.at >= from)?;
        self.between(first..self.marks.len(), role)
    }

    /// The rates of the earlier and of the later half of the time from a moment on, and when the later one began.
    pub(super) fn halves(&self, from: Time, role: Role) -> Option<(Measured, Measured, Time)> {
        let first = self.marks.iter().position(|mark| mark.at >= from)?;
        let end = self.marks.len();
        let middle = first + (end - first) / 2;
        let (early, late) =
            (self.between(first..middle + 1, role)?, self.between(middle..end, role)?);
        Some((early, late, self.marks[middle].at))
    }

    fn between(&self, range: Range<usize>, role: Role) -> Option<Measured> {
        let marks: Vec<&Mark> = self.marks.range(range).collect();
        let counter = |mark: &Mark| if role == Role::Operations { mark.ops } else { mark.bytes };
        let step = |pair: &[&Mark]| {
            let (then, now) = (pair[0], pair[1]);
            let seconds = (now.at - then.at).as_secs_f64();
            let goes_on = then.active + now.active > 0 && seconds > 0.0;
            let count = counter(now).saturating_sub(counter(then)) as f64;
            let active = (then.active + now.active) as f64 / 2.0;
            goes_on.then_some((count, seconds, active))
        };
        let steps: Vec<(f64, f64, f64)> = marks.windows(2).filter_map(step).collect();
        let count = steps.len() as f64;
        if steps.len() < 2 {
            return None;
        }
        let seconds: f64 = steps.iter().map(|(_, seconds, _)| seconds).sum();
        let per_s = steps.iter().map(|(count, ..)| count).sum::<f64>() / seconds;
        let off = |(count, seconds, _): &(f64, f64, f64)| (count / seconds - per_s).powi(2);
        let variance = steps.iter().map(off).sum::<f64>() / (count - 1.0);
        Some(Measured {
            per_s,
            error: (variance / count).sqrt(),
            active: steps.iter().map(|(_, seconds, active)| seconds * active).sum::<f64>()
                / seconds,
            steps: steps.len(),
            span: Duration::from_secs_f64(seconds),
        })
    }
}
