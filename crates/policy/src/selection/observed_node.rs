//! What a coordinator has seen of one node: how long searches take there, what others have there, and its failures. See
//! `narrows.rs` for how it is weighed.

use std::time::Duration;

use world::Time;

use super::feedback::NodeFeedback;

/// Weight of an answer in the averages of time and of its square.
const ALPHA: f64 = 0.03;
/// Weight of a new search in the long run of what others have there.
const OTHERS_ALPHA: f64 = 0.05;
/// A difference of so many standard errors counts as chance.
const CHANCE_ERRORS: f64 = 3.0;
/// What made a node look slow loses half its weight in this time, or in four times what it takes if that is longer.
const FORGET_HALF: Duration = Duration::from_secs(2);
/// A node is silent when it has answered nothing for so many times what it takes.
const SILENT_TIMES: f64 = 3.0;
/// Answers after which a node is no longer new. Until then it counts as no slower than the others, since its caches
/// are empty, and its window grows by one with every so many of them.
pub(super) const ANSWERS_KNOWN: u32 = 64;
const ANSWERS_A_STEP: u32 = 4;
/// Pauses after failures.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObservedNode {
    pub(super) answers: u32,
    pub(super) service_ns: f64,
    /// The average of the squares of service times, in square nanoseconds.
    square: f64,
    pub(super) threads: f64,
    /// Requests of others, by its last answer and in the long run.
    others_last: f64,
    others_mean: f64,
    /// When it answered last, or was asked while nothing was in flight.
    heard_at: Time,
    answered_at: Time,
    /// Failures in a row.
    failures: u32,
    failed_at: Time,
    /// When its last silence ended.
    silent_until: Time,
    /// Moving share of failures.
    pub(super) failing: f64,
}

impl ObservedNode {
    /// A request is sent; `outstanding` were in flight before it.
    pub(super) fn sent(&mut self, now: Time, outstanding: u64) {
        if outstanding == 0 {
            self.heard_at = now;
        }
    }

    /// It answered; `outstanding` are in flight still.
    pub(super) fn answered(&mut self, now: Time, feedback: &NodeFeedback, outstanding: u64) {
        let sample = feedback.took.as_nanos() as f64;
        let silent_ns = (now - self.heard_at).as_nanos() as f64;
        let ends_silence = self.answers > 0 && silent_ns > SILENT_TIMES * self.service_ns;
        self.answers = self.answers.saturating_add(1);
        if ends_silence || now - self.silent_until >= feedback.took {
            let weight = ALPHA.max(1.0 / f64::from(self.answers));
            self.service_ns += weight * (sample - self.service_ns);
            self.square += weight * (sample * sample - self.square);
        }
        if ends_silence {
            self.silent_until = now;
        }
        self.threads = feedback.threads.max(1) as f64;
        let others = feedback.in_flight.saturating_sub(outstanding) as f64;
        self.others_last = others;
        self.others_mean +=
            OTHERS_ALPHA.max(1.0 / f64::from(self.answers)) * (others - self.others_mean);
        (self.heard_at, self.answered_at) = (now, now);
        self.failures = 0;
        self.failing -= ALPHA * self.failing;
    }

    /// It failed.
    pub(super) fn failed(&mut self, now: Time) {
        self.heard_at = now;
        self.failures = self.failures.saturating_add(1);
        self.failed_at = now;
        self.failing += ALPHA * (1.0 - self.failing);
    }

    /// What others have there now: news lose their worth in the time that a search takes there.
    pub(super) fn others(&self, now: Time) -> f64 {
        let age = (now - self.answered_at).as_nanos() as f64 / self.service_ns.max(1.0);
        self.others_mean + (self.others_last - self.others_mean) * (-age).exp()
    }

    /// Square of the standard error of [`ObservedNode::service_ns`].
    fn error_square(&self) -> f64 {
        let weight = ALPHA.max(1.0 / f64::from(self.answers.max(1)));
        let variance = (self.square - self.service_ns * self.service_ns).max(0.0);
        // Of an exponential average; of a plain one while there are few.
        variance * (weight / (2.0 - weight)).max(1.0 / f64::from(self.answers.max(1)).min(1e3))
    }

    /// What a search takes there, beside nodes on which it takes `typical_ns`.
    pub(super) fn expected_service_ns(&self, now: Time, outstanding: u64, typical_ns: f64) -> f64 {
        if self.answers == 0 {
            return typical_ns;
        }
        let mut difference = self.service_ns - typical_ns;
        let chance = CHANCE_ERRORS * CHANCE_ERRORS * self.error_square();
        difference *= (1.0 - chance / (difference * difference).max(f64::MIN_POSITIVE)).max(0.0);
        if difference > 0.0 && self.answers < ANSWERS_KNOWN {
            difference = 0.0;
        } else if difference > 0.0 {
            let half_s = FORGET_HALF.as_secs_f64().max(4.0 * self.service_ns / 1e9);
            difference *= 0.5f64.powf((now - self.answered_at).as_secs_f64() / half_s);
        }
        let expected = typical_ns + difference;
        let silent_ns = (now - self.heard_at).as_nanos() as f64;
        if outstanding > 0 && silent_ns > SILENT_TIMES * expected { silent_ns } else { expected }
    }

    /// Whether it is left alone after a failure, unless nothing else is there.
    pub(super) fn pauses(&self, now: Time, outstanding: u64) -> bool {
        if self.failures == 0 {
            return false;
        }
        let pause = PAUSE_FIRST * 2u32.saturating_pow((self.failures - 1).min(10));
        outstanding > 0 || now < self.failed_at + pause.min(PAUSE_MAX)
    }

    pub(super) fn window(&self) -> u64 {
        match self.answers >= ANSWERS_KNOWN {
            true => u64::MAX,
            false => u64::from(self.answers / ANSWERS_A_STEP) + 1,
        }
    }
}
