//! The recovery throttle of a node: `indices.recovery.max_bytes_per_sec`, and for CCR
//! `ccr.indices.recovery.max_bytes_per_sec`.
//!
//! It works as Lucene's `RateLimiter.SimpleRateLimiter` does under Elasticsearch's recoveries: bytes are
//! gathered until 5 ms worth of them have passed, then whoever brought the last of them sleeps until
//! `last + bytes / rate`. One limiter serves all recoveries of a node: pauses queue up
//! behind one another, so together they keep the rate, and the sum of the sleeps may exceed the time
//! that passed. Time that nobody used is not saved up for a burst, beyond one pause's worth.

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
    throttled: Duration,
}

impl RateLimiter {
    /// A throttle of `bytes_per_s`; none or zero is no throttle.
    pub fn new(bytes_per_s: Option<u64>) -> Self {
        let bytes_per_s = bytes_per_s.filter(|rate| *rate > 0);
        RateLimiter { bytes_per_s, gathered_bytes: 0, last: Time(0), throttled: Duration::ZERO }
    }

    /// Bytes per second, if throttled.
    pub fn rate(&self) -> Option<u64> {
        self.bytes_per_s
    }

    /// Changes the rate. Sleeps that were handed out stay as they are.
    pub fn set_rate(&mut self, bytes_per_s: Option<u64>) {
        self.bytes_per_s = bytes_per_s.filter(|rate| *rate > 0);
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
        let pause = target - now;
        self.throttled += pause;
        pause
    }

    /// All sleeps handed out so far, summed over users: `throttle_time` of the node's statistics.
    pub fn throttled_total(&self) -> Duration {
        self.throttled
    }
}

fn nanos(bytes: u64, bytes_per_s: u64) -> u64 {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s);
    // A century: beyond it only sums would overflow.
    nanos.min(3_000_000_000_000_000_000) as u64
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
        let mut pauses = Vec::new();
        for _ in 0..6 {
            pauses.push(limiter.pause(now, 200_000).as_micros());
        }
        assert_eq!(pauses, [0, 0, 6_000, 0, 0, 12_000]);
        assert_eq!(limiter.throttled_total(), Duration::from_millis(18));
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
        limiter.set_rate(Some(10 * MB));
        assert_eq!(limiter.pause(Time(1_000_000_000), MB), Duration::from_millis(100));
        limiter.set_rate(None);
        assert_eq!(limiter.pause(Time(1_000_000_000), 1000 * MB), Duration::ZERO);
        assert_eq!((limiter.rate(), RateLimiter::new(Some(0)).rate()), (None, None));
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
            let (mut passes, mut slept) = (Vec::new(), Duration::ZERO);
            for _ in 0..300 {
                let user = (0..wakes.len()).min_by_key(|&i| (wakes[i], i)).unwrap();
                let pause = limiter.pause(wakes[user], sizes[user]);
                slept += pause;
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
            prop_assert_eq!(slept, limiter.throttled_total());
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
