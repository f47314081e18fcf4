//! The recovery throttle of a node: `indices.recovery.max_bytes_per_sec`, and for CCR
//! `ccr.indices.recovery.max_bytes_per_sec`.
//!
//! It works as Lucene's `RateLimiter.SimpleRateLimiter` does under Elasticsearch's recoveries: bytes are
//! gathered until 5 ms worth of them have passed, then whoever brought the last of them sleeps until
//! `last + bytes / rate`. One limiter serves all recoveries of a node: pauses queue up
//! behind one another, so together they keep the rate, and the sum of the sleeps may exceed the time
//! that passed. Time that nobody used is not saved up for a burst, beyond one pause's worth.
//!
//! In two things it does better than the field's. A new rate holds for those that sleep already, too: five chunks of
//! 1 MB that queued up at 1 MB/s would otherwise keep to it for five seconds more. And a sleep that is broken off gives
//! back what it took: eight chunks of 16 MB of a cancelled recovery would otherwise keep the next one from moving a
//! byte for two minutes.

use std::time::Duration;

use world::Time;

/// Sleeping for less than this would cost more than it gives.
const PAUSE_CHECK: Duration = Duration::from_millis(5);

/// One node's throttle.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    bytes_per_s: Option<u64>,
    gathered_bytes: u64,
    /// Until when the bytes so far have used the rate up.
    last: Time,
}

impl RateLimiter {
    /// A throttle of `bytes_per_s`; none or zero is no throttle.
    pub fn new(bytes_per_s: Option<u64>) -> Self {
        let bytes_per_s = bytes_per_s.filter(|rate| *rate > 0);
        RateLimiter { bytes_per_s, gathered_bytes: 0, last: Time(0) }
    }

    /// Bytes per second, if throttled.
    pub fn rate(&self) -> Option<u64> {
        self.bytes_per_s
    }

    /// Changes the rate; answers whether it is another one. If so, whoever sleeps has to sleep for what
    /// [`RateLimiter::left`] makes of the rest.
    pub fn set_rate(&mut self, now: Time, bytes_per_s: Option<u64>) -> bool {
        let before = std::mem::replace(&mut self.bytes_per_s, bytes_per_s.filter(|rate| *rate > 0));
        if let Some(before) = before {
            self.last = now + self.left(self.last - now, before);
        }
        self.bytes_per_s != before
    }

    /// What becomes of the rest of a sleep, where the sleep was handed out at a rate of `before` bytes per second.
    pub fn left(&self, rest: Duration, before: u64) -> Duration {
        let Some(rate) = self.bytes_per_s else { return Duration::ZERO };
        let nanos = rest.as_nanos() * u128::from(before) / u128::from(rate);
        Duration::from_nanos(nanos.min(NANOS_MAX) as u64)
    }

    /// Gives back what a sleep has taken of the rate, where the sleep was broken off before its `bytes` moved: others
    /// do not queue up behind it then.
    pub fn give_back(&mut self, now: Time, bytes: u64) {
        let Some(rate) = self.bytes_per_s else { return };
        let worth = Duration::from_nanos(nanos(bytes, rate));
        self.last = now + (self.last - now).saturating_sub(worth);
    }

    /// How long to sleep before `bytes` are sent (at the source) or written (at the target).
    pub fn pause(&mut self, now: Time, bytes: u64) -> Duration {
        let Some(rate) = self.bytes_per_s else { return Duration::ZERO };
        self.gathered_bytes = self.gathered_bytes.saturating_add(bytes);
        let worth = Duration::from_nanos(nanos(self.gathered_bytes, rate));
        if worth <= PAUSE_CHECK {
            return Duration::ZERO;
        }
        self.gathered_bytes = 0;
        let target = self.last + worth;
        self.last = target.max(now);
        target - now
    }
}

/// A century: beyond it only sums would overflow.
const NANOS_MAX: u128 = 3_000_000_000_000_000_000;

fn nanos(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s)).min(NANOS_MAX) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MB: u64 = 1_000_000;

    #[test]
    fn gathers_five_milliseconds_worth_before_it_pauses() {
        let mut limiter = RateLimiter::new(Some(100 * MB));
        let now = Time(1_000_000_000);
        limiter.pause(now, 600_000); // after idling, the first pause's worth is free
        let pauses = [(); 6].map(|()| limiter.pause(now, 200_000).as_micros());
        assert_eq!(pauses, [0, 0, 6_000, 0, 0, 12_000]);
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut limiter = RateLimiter::new(Some(MB));
        assert_eq!(limiter.pause(Time(3_600_000_000_000), MB), Duration::ZERO);
        assert_eq!(limiter.pause(Time(3_600_000_000_000), MB), Duration::from_secs(1));
    }

    #[test]
    fn the_rate_can_change_and_end() {
        let mut limiter = RateLimiter::new(Some(MB));
        assert_eq!(limiter.pause(Time(0), MB), Duration::from_secs(1));
        assert!(limiter.set_rate(Time(1_000_000_000), Some(10 * MB)));
        assert_eq!(limiter.pause(Time(1_000_000_000), MB), Duration::from_millis(100));
        assert!(!limiter.set_rate(Time(1_000_000_000), Some(10 * MB)));
        assert!(limiter.set_rate(Time(1_000_000_000), None));
        assert_eq!(limiter.pause(Time(1_000_000_000), 1000 * MB), Duration::ZERO);
        assert_eq!((limiter.rate(), RateLimiter::new(Some(0)).rate()), (None, None));
    }

    #[test]
    fn a_new_rate_holds_for_those_that_sleep() {
        let mut limiter = RateLimiter::new(Some(MB));
        let pauses = [(); 2].map(|()| limiter.pause(Time(0), MB));
        assert_eq!(pauses, [1, 2].map(Duration::from_secs));
        // Half a second later a tenth of what is left of each is left, and the next queues up behind them.
        let now = Time(500_000_000);
        limiter.set_rate(now, Some(10 * MB));
        let left = pauses.map(|pause| limiter.left(pause - (now - Time(0)), MB));
        assert_eq!(left, [50, 150].map(Duration::from_millis));
        assert_eq!(limiter.pause(now, MB), Duration::from_millis(250));
        limiter.set_rate(now, None);
        assert_eq!(limiter.left(left[1], 10 * MB), Duration::ZERO);
    }

    #[test]
    fn sleeps_that_are_broken_off_hold_nobody_up() {
        let mut limiter = RateLimiter::new(Some(MB));
        for _ in 0..8 {
            limiter.pause(Time(0), 16 * MB);
        }
        let now = Time(2_000_000_000);
        assert_eq!(limiter.clone().pause(now, MB), Duration::from_secs(8 * 16 - 2 + 1));
        (0..7).for_each(|_| limiter.give_back(now, 16 * MB));
        assert_eq!(limiter.pause(now, MB), Duration::from_secs(16 - 2 + 1), "one still sleeps");
        // What passed meanwhile is not given back, nor is more than was taken.
        (0..2).for_each(|_| limiter.give_back(now, 16 * MB));
        assert_eq!(limiter.pause(now, MB), Duration::from_secs(1));
    }

    proptest! {
        /// Users take turns as their sleeps end; what they pass together keeps the rate.
        #[test]
        fn users_together_never_exceed_the_rate(
            rate in 1_000u64..1_000_000_000,
            sizes in prop::collection::vec(1u64..5_000_000, 1..8),
        ) {
            let mut limiter = RateLimiter::new(Some(rate));
            let start = Time(5_000_000_000);
            let mut wakes = vec![start; sizes.len()];
            let mut passes = Vec::new();
            for _ in 0..300 {
                let user = (0..wakes.len()).min_by_key(|&i| (wakes[i], i)).unwrap();
                let pause = limiter.pause(wakes[user], sizes[user]);
                wakes[user] = wakes[user] + pause;
                passes.push((wakes[user], sizes[user]));
            }
            passes.sort();
            // After idling one pause's worth is free. While a user sleeps, another may gather 5 ms
            // worth before it has to sleep behind it.
            let users = sizes.len() as u64;
            let free = 2 * sizes.iter().max().unwrap() + (users + 1) * (rate / 200 + 1);
            let mut passed = 0;
            for (at, size) in passes {
                passed += size;
                let elapsed_s = (at - start).as_secs_f64();
                prop_assert!(passed as f64 <= rate as f64 * elapsed_s * (1.0 + 1e-6) + free as f64);
            }
        }

        /// Steady demand is not held back further than needed.
        #[test]
        fn one_user_gets_nearly_the_rate(rate in 1_000_000u64..1_000_000_000, size in 1_000u64..4_000_000) {
            let mut limiter = RateLimiter::new(Some(rate));
            let (mut now, mut passed) = (Time(0), 0u64);
            while now < Time(20_000_000_000) && passed < 500 * size {
                now = now + limiter.pause(now, size);
                passed += size;
            }
            let seconds = (now - Time(0)).as_secs_f64();
            prop_assert!(seconds <= passed as f64 / rate as f64 + 1e-3);
            prop_assert!(seconds >= (passed - 2 * size) as f64 / rate as f64 - 0.011);
        }
    }
}
