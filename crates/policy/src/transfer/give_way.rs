//! How much of its window a transfer uses while the node's users suffer.
//!
//! Multiplicative decrease once a round trip, additive increase after: Chiu, Jain, "Analysis of the
//! increase and decrease algorithms for congestion avoidance in computer networks", 1989. The way
//! back is slow on purpose: users notice a swing more than a recovery notices a few seconds.

use std::time::Duration;

use world::Time;

/// Below this a share no longer matters: the window is at its floor of one chunk long before.
const SHARE_MIN: f64 = 1.0 / 64.0;
const STEP: f64 = 1.0 / 16.0;
const STEP_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct GiveWay {
    share: f64,
    /// No further decrease before: the last one must show its effect first.
    decrease_from: Time,
    /// No increase before.
    increase_from: Time,
}

impl GiveWay {
    pub(crate) fn new() -> Self {
        GiveWay { share: 1.0, decrease_from: Time(0), increase_from: Time(0) }
    }

    /// Share of the window in use, above 0, up to 1.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Whether the transfer runs freely.
    pub(crate) fn is_free(&self) -> bool {
        self.share >= 1.0
    }

    /// A chunk was delivered after `round_trip`, and said whether users suffer.
    pub(crate) fn delivered(&mut self, now: Time, round_trip: Duration, pressure: bool) {
        let step = round_trip.max(STEP_EVERY);
        if pressure {
            self.increase_from = now + step;
            if now >= self.decrease_from {
                self.share = (self.share / 2.0).max(SHARE_MIN);
                self.decrease_from = now + round_trip;
            }
        } else if !self.is_free() && now >= self.increase_from {
            self.share = (self.share + STEP).min(1.0);
            self.increase_from = now + step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::at;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn halves_once_a_round_trip_and_comes_back_slowly() {
        let mut way = GiveWay::new();
        (0..10).for_each(|n| way.delivered(at(1000 + n * 10), RTT, true));
        assert_eq!(way.share(), 0.5, "ten chunks of one round trip are one signal");
        (0..100).for_each(|n| way.delivered(at(1100 + n * 10), RTT, true));
        assert_eq!(way.share(), SHARE_MIN);
        let mut ms = 2100;
        while !way.is_free() {
            ms += 10;
            way.delivered(at(ms), RTT, false);
        }
        assert!((5_800..7_000).contains(&ms), "came back after {ms} ms");
    }
}
