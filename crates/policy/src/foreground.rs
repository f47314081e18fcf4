//! Whether the users of a node suffer, so that recoveries give way.
//!
//! A node's searches and writes report how long they took. The slow tenth of the last second is
//! compared with what it was while recoveries were idle or light. The signal has hysteresis: it comes
//! after two bad looks and goes after a quiet second, since whoever listens reacts to each change.
//!
//! Sources: the tail, not the mean, is what users see (Dean, Barroso, "The Tail at Scale", CACM 56
//! (2), 2013); a control loop for background work that compares foreground latency with its own
//! baseline, as in PARTIES (Chen, Delimitrou, Martinez, ASPLOS 2019) with a baseline in place of a target.
//!
//! The baseline is learned while recoveries are light. If users are slower for reasons of their own,
//! recoveries give way until they are light; then the baseline follows and lets them go on.

use std::collections::VecDeque;
use std::time::Duration;

use world::Time;

const WINDOW: Duration = Duration::from_secs(1);
const SAMPLES_MAX: usize = 256;
/// The least number of samples that shows a tail.
const SAMPLES_MIN: usize = 8;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Suffering begins at this many times the baseline, and a margin that noise on fast operations stays under.
const ENTER: (f64, f64) = (2.0, 0.001);
const ENTER_LOOKS: u32 = 2;
/// Suffering ends below this, if latencies stay there.
const LEAVE: (f64, f64) = (1.4, 0.000_5);
const LEAVE_AFTER: Duration = Duration::from_secs(1);
/// The baseline follows what is measured over this time.
const BASELINE_OVER: Duration = Duration::from_secs(30);

/// The detector of one node.
#[derive(Clone, Debug)]
pub struct ForegroundDetector {
    samples: VecDeque<(Time, Duration)>,
    /// When recoveries have been light for long enough to learn from; none while they are not light.
    learn_from: Option<Time>,
    /// The slow tenth while recoveries were light, in seconds.
    baseline_s: Option<f64>,
    /// The lowest slow tenth ever, in seconds, for a node whose recoveries never were light.
    lowest_s: Option<f64>,
    looked_at: Option<Time>,
    bad_looks: u32,
    quiet_since: Option<Time>,
    pressure: bool,
}

/// It knows nothing; recoveries count as light until told otherwise.
impl Default for ForegroundDetector {
    fn default() -> Self {
        ForegroundDetector {
            samples: VecDeque::new(),
            learn_from: Some(Time(0)),
            baseline_s: None,
            lowest_s: None,
            looked_at: None,
            bad_looks: 0,
            quiet_since: None,
            pressure: false,
        }
    }
}

impl ForegroundDetector {
    /// Says whether the node's recoveries are idle or light from `now` on: few bytes in flight, or all
    /// of them at the floor that they give way to.
    pub fn set_recoveries_light(&mut self, now: Time, light: bool) {
        if !light {
            self.learn_from = None;
        } else if self.learn_from.is_none() {
            // Until then the window holds what recoveries still made slow.
            self.learn_from = Some(now + WINDOW);
        }
    }

    /// An operation of a user ended after `latency`. One that is stuck may be told of before its end,
    /// again and again with its age.
    pub fn sample(&mut self, now: Time, latency: Duration) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((now, latency));
        self.look(now);
    }

    /// Whether users suffer. Without users there is nobody to suffer.
    pub fn pressure(&mut self, now: Time) -> bool {
        self.look(now);
        self.pressure
    }

    /// What latencies are compared with: the slow tenth without recoveries, or the best that was seen.
    fn reference_s(&self) -> Option<f64> {
        self.baseline_s.or(self.lowest_s)
    }

    fn look(&mut self, now: Time) {
        let since = self.looked_at.map(|at| now - at);
        if since.is_some_and(|since| since < LOOK_EVERY) {
            return;
        }
        self.looked_at = Some(now);
        while self.samples.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.samples.pop_front();
        }
        match self.slow_tenth_s() {
            Some(slow_s) => {
                self.learn(now, slow_s, since.unwrap_or_default());
                self.judge(now, slow_s);
            }
            // Nobody may have looked since the last of them: the quiet second that ends pressure has passed.
            None if self.samples.is_empty() => (self.pressure, self.bad_looks) = (false, 0),
            None => self.judge(now, 0.0),
        }
    }

    /// The 90th percentile of the window in seconds.
    fn slow_tenth_s(&self) -> Option<f64> {
        if self.samples.len() < SAMPLES_MIN {
            return None;
        }
        let mut latencies: Vec<Duration> = self.samples.iter().map(|(_, took)| *took).collect();
        let rank = latencies.len() * 9 / 10;
        Some(latencies.select_nth_unstable(rank).1.as_secs_f64())
    }

    fn learn(&mut self, now: Time, slow_s: f64, since: Duration) {
        self.lowest_s = Some(self.lowest_s.map_or(slow_s, |lowest| lowest.min(slow_s)));
        if self.learn_from.is_some_and(|from| now >= from) {
            let (step, over) = (since.as_secs_f64(), BASELINE_OVER.as_secs_f64());
            let weight = step / (over + step);
            let before = self.baseline_s.unwrap_or(slow_s);
            self.baseline_s = Some(before + weight * (slow_s - before));
        }
    }

    fn judge(&mut self, now: Time, slow_s: f64) {
        let Some(reference_s) = self.reference_s() else { return };
        let above = |(times, margin_s): (f64, f64)| slow_s > times * reference_s + margin_s;
        self.bad_looks = if above(ENTER) { self.bad_looks.saturating_add(1) } else { 0 };
        if above(LEAVE) {
            self.quiet_since = None;
        }
        if !self.pressure && self.bad_looks >= ENTER_LOOKS {
            self.pressure = true;
            self.quiet_since = None;
        } else if self.pressure && !above(LEAVE) {
            let quiet_since = *self.quiet_since.get_or_insert(now);
            self.pressure = now - quiet_since < LEAVE_AFTER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user every 5 ms, from and to in milliseconds; tells when pressure changed.
    fn users(
        detector: &mut ForegroundDetector,
        (from, to): (u64, u64),
        latency_ms: impl Fn(u64) -> f64,
    ) -> Vec<(u64, bool)> {
        let mut changes = Vec::new();
        let mut before = detector.pressure;
        for ms in (from..to).step_by(5) {
            let now = Time(ms * 1_000_000);
            detector.sample(now, Duration::from_secs_f64(latency_ms(ms) / 1000.0));
            let after = detector.pressure(now);
            if after != before {
                changes.push((ms, after));
                before = after;
            }
        }
        changes
    }

    /// Of users that were fast for five seconds, in which recoveries were light.
    fn beside_recoveries() -> ForegroundDetector {
        let mut detector = ForegroundDetector::default();
        users(&mut detector, (0, 5_000), |_| 10.0);
        detector.set_recoveries_light(Time(5_000_000_000), false);
        detector
    }

    /// Between 0.8 and 1.2, the same for the same moment.
    fn noise(ms: u64) -> f64 {
        0.8 + 0.4 * ((ms.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 1000) as f64 / 1000.0
    }

    #[test]
    fn suffering_is_seen_soon_and_ends_after_a_quiet_second() {
        let mut detector = ForegroundDetector::default();
        assert_eq!(users(&mut detector, (0, 10_000), |ms| 10.0 * noise(ms)), []);
        detector.set_recoveries_light(Time(10_000_000_000), false);
        let begin = users(&mut detector, (10_000, 15_000), |ms| 40.0 * noise(ms));
        assert_eq!(begin.len(), 1);
        assert!(begin[0].1 && begin[0].0 < 10_500, "seen at {begin:?}");
        let end = users(&mut detector, (15_000, 20_000), |ms| 10.0 * noise(ms));
        assert_eq!(end.len(), 1);
        assert!(!end[0].1 && (16_000..18_000).contains(&end[0].0), "ended at {end:?}");
    }

    #[test]
    fn noise_and_a_few_slow_operations_are_no_suffering() {
        let mut detector = ForegroundDetector::default();
        users(&mut detector, (0, 5_000), |ms| 10.0 * noise(ms));
        detector.set_recoveries_light(Time(5_000_000_000), false);
        let slow = |ms: u64| if ms.is_multiple_of(100) { 500.0 } else { 10.0 * noise(ms) };
        assert_eq!(users(&mut detector, (5_000, 30_000), slow), []);
    }

    #[test]
    fn between_the_bounds_nothing_changes() {
        let mut detector = beside_recoveries();
        assert_eq!(users(&mut detector, (5_000, 15_000), |_| 18.0), []);
        assert_eq!(users(&mut detector, (15_000, 18_000), |_| 30.0).len(), 1);
        assert_eq!(users(&mut detector, (18_000, 30_000), |_| 18.0), []);
        assert!(detector.pressure);
    }

    #[test]
    fn users_that_left_do_not_suffer() {
        let mut detector = beside_recoveries();
        users(&mut detector, (5_000, 8_000), |_| 100.0);
        assert!(detector.pressure(Time(8_100_000_000)));
        let mut ms = 8_100;
        while detector.pressure(Time(ms * 1_000_000)) {
            ms += 10;
            assert!(ms < 12_000);
        }
    }

    #[test]
    fn users_that_suffered_and_left_before_anyone_looked_do_not_suffer() {
        let mut detector = ForegroundDetector::default();
        users(&mut detector, (0, 5_000), |_| 10.0);
        users(&mut detector, (5_000, 8_000), |_| 100.0);
        assert!(detector.pressure);
        assert!(!detector.pressure(Time(9_200_000_000)), "a recovery that begins now is free");
    }

    #[test]
    fn without_a_light_moment_the_best_seen_is_the_baseline() {
        let mut detector = ForegroundDetector::default();
        detector.set_recoveries_light(Time(0), false);
        assert_eq!(users(&mut detector, (0, 3_000), |_| 10.0), []);
        assert_eq!(users(&mut detector, (3_000, 6_000), |_| 50.0).len(), 1);
    }

    #[test]
    fn recoveries_that_swing_do_not_hide_suffering_nor_become_the_baseline() {
        let mut detector = ForegroundDetector::default();
        users(&mut detector, (0, 5_000), |_| 10.0);
        let mut changes = Vec::new();
        for ms in (5_000..15_000).step_by(20) {
            detector.set_recoveries_light(Time(ms * 1_000_000), ms.is_multiple_of(40));
            changes.extend(users(&mut detector, (ms, ms + 20), |_| 40.0));
        }
        assert_eq!(changes.len(), 1);
        assert_eq!(detector.reference_s(), Some(0.01));
    }

    #[test]
    fn a_slower_workload_becomes_the_baseline_once_recoveries_are_light() {
        let mut detector = beside_recoveries();
        users(&mut detector, (5_000, 8_000), |_| 40.0);
        assert!(detector.pressure);
        detector.set_recoveries_light(Time(8_000_000_000), true);
        users(&mut detector, (8_000, 120_000), |_| 40.0);
        assert!(!detector.pressure);
        assert!(detector.reference_s().unwrap() > 0.03);
    }
}
