//! The rate control of C3: what a coordinator may send to one node. See `c3.rs` for its source.

use std::time::Duration;

use world::Time;

const WINDOW: Duration = Duration::from_millis(20);
/// After a change the rate does not shrink for so long.
const HYSTERESIS: Duration = Duration::from_millis(40);
/// What a shrinking leaves of the rate; and in the cubic function, what lies below the old rate where it begins (the
/// paper's beta, in both places).
const BETA: f64 = 0.2;
/// The scale of the cubic function, for milliseconds (the paper's gamma).
const GAMMA: f64 = 4e-6;
/// Requests a window that one step may add.
const STEP_MAX: f64 = 10.0;
/// Requests a window: where a node begins, and the least.
const RATE_FIRST: f64 = 10.0;
const RATE_MIN: f64 = 0.2;
/// Weight of a new window in the average of what is received.
const RECEIVED_ALPHA: f64 = 0.9;

/// The rate of one coordinator towards one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControl {
    /// Requests a window.
    rate: f64,
    tokens: f64,
    filled_at: Time,
    /// The rate before the last shrinking.
    saturation: f64,
    shrunk_at: Time,
    changed_at: Time,
    window_began: Time,
    received_in_window: f64,
    received: Option<f64>,
}

impl Default for RateControl {
    fn default() -> Self {
        RateControl {
            rate: RATE_FIRST,
            tokens: RATE_FIRST,
            filled_at: Time(0),
            saturation: RATE_FIRST,
            shrunk_at: Time(0),
            changed_at: Time(0),
            window_began: Time(0),
            received_in_window: 0.0,
            received: None,
        }
    }
}

impl RateControl {
    fn fill(&mut self, now: Time) {
        let windows = (now - self.filled_at).as_secs_f64() / WINDOW.as_secs_f64();
        // One whole token fits whatever the rate, or a slow node could never be asked.
        self.tokens = (self.tokens + windows * self.rate).min(self.rate.max(1.0));
        self.filled_at = now;
    }

    /// When a request may be sent.
    pub(super) fn ready_at(&mut self, now: Time) -> Time {
        self.fill(now);
        // Rounding must not leave a wait for nothing.
        if self.tokens >= 1.0 - 1e-6 {
            return now;
        }
        let windows = (1.0 - self.tokens) / self.rate;
        now + WINDOW.mul_f64(windows).max(Duration::from_micros(1))
    }

    /// A request is sent, allowed or not.
    pub(super) fn sent(&mut self, now: Time) {
        self.fill(now);
        self.tokens = (self.tokens - 1.0).max(0.0);
    }

    /// An answer came.
    pub(super) fn received(&mut self, now: Time) {
        let windows = ((now - self.window_began).as_secs_f64() / WINDOW.as_secs_f64()).floor();
        if windows >= 1.0 {
            let sample = self.received_in_window / windows;
            let old = self.received.unwrap_or(sample);
            self.received = Some(old + RECEIVED_ALPHA * (sample - old));
            self.received_in_window = 0.0;
            self.window_began = now;
        }
        self.received_in_window += 1.0;
        let Some(received) = self.received else { return };
        if self.rate > received && now - self.changed_at > HYSTERESIS {
            self.saturation = self.rate;
            self.rate = (self.rate * BETA).max(RATE_MIN);
            self.shrunk_at = now;
            self.changed_at = now;
        } else if self.rate < received {
            let since_ms = (now - self.shrunk_at).as_secs_f64() * 1e3;
            let flat_ms = (BETA * self.saturation / GAMMA).cbrt();
            let wanted = GAMMA * (since_ms - flat_ms).powi(3) + self.saturation;
            self.rate = wanted.min(self.rate + STEP_MAX).max(self.rate).max(RATE_MIN);
            self.changed_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::at;

    #[test]
    fn the_rate_shrinks_where_less_comes_back_and_grows_again_to_what_it_was() {
        let mut control = RateControl::default();
        // One answer a window, while ten may be sent.
        for window in 1..6 {
            control.received(at(window * 20));
        }
        assert!(control.rate <= RATE_FIRST * BETA, "{}", control.rate);
        // Now a hundred a window come back: it grows to the rate it had, flat there, then beyond; and stays about what
        // comes back, a fifth below after each time that it was too much.
        let mut rates = Vec::new();
        for window in 6..100 {
            for _ in 0..100 {
                control.received(at(window * 20));
            }
            rates.push(control.rate);
        }
        assert!(rates[10] > RATE_FIRST && rates[5] < rates[10], "{rates:?}");
        assert!(rates[30..].iter().all(|rate| (75.0..=115.0).contains(rate)), "{rates:?}");
    }

    #[test]
    fn however_slow_a_node_is_its_turn_comes() {
        let mut control = RateControl::default();
        let mut now = at(0);
        for _ in 0..50 {
            now = control.ready_at(now);
            assert_eq!(control.ready_at(now), now);
            control.sent(now);
            now = now + Duration::from_millis(100);
            control.received(now);
        }
        assert!(control.rate >= RATE_MIN);
        assert!(control.ready_at(now) - now <= WINDOW.mul_f64(1.0 / RATE_MIN));
    }
}
