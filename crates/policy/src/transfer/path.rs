//! What is known of a path: the base round trip (a minimum) and the delivery rate (a maximum).
//!
//! Neither can be seen at once: the minimum shows without a queue, the maximum with one. Both filters
//! forget, because paths change. Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14 (5), 2016.

use std::collections::VecDeque;
use std::time::Duration;

use world::Time;

/// Rounds that a rate is remembered for.
const RATE_ROUNDS: usize = 8;

/// The delivery rate of the last rounds, in bytes per second.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    rounds: VecDeque<f64>,
}

impl Rates {
    pub(crate) fn push(&mut self, rate_bytes_per_s: f64) {
        if self.rounds.len() == RATE_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(rate_bytes_per_s);
    }

    /// For a round that was held back on purpose: it may show more than was known, never less.
    pub(crate) fn raise(&mut self, rate_bytes_per_s: f64) {
        if self.max().is_none_or(|max| rate_bytes_per_s > max) {
            self.push(rate_bytes_per_s);
        }
    }

    pub(crate) fn max(&self) -> Option<f64> {
        self.rounds.iter().copied().reduce(f64::max)
    }

    /// The higher rate of the last two rounds.
    pub(crate) fn recent(&self) -> Option<f64> {
        self.rounds.iter().rev().take(2).copied().reduce(f64::max)
    }

    pub(crate) fn forget_all_but(&mut self, rate_bytes_per_s: f64) {
        self.rounds.clear();
        self.rounds.push_back(rate_bytes_per_s);
    }
}

/// One chunk's way there and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    /// When it ended.
    pub(crate) at: Time,
    /// From request to delivery, without throttling.
    pub(crate) took: Duration,
    /// Size, as charged.
    pub(crate) bytes: u64,
}

impl Trip {
    /// Seconds without the chunk's own time on the link, so that chunks of different sizes compare.
    /// `link_bytes_per_s` is the highest rate ever seen: a transfer's share of it says less, and would
    /// make of a large chunk of a small transfer a path of no length.
    pub(crate) fn base_s(&self, link_bytes_per_s: f64) -> f64 {
        (self.took.as_secs_f64() - self.bytes as f64 / link_bytes_per_s).max(0.0)
    }
}

/// One round trip of the whole window: it ends when a chunk requested after its begin is delivered.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) began: Time,
    pub(crate) bytes: u64,
    /// Shortest trip, without throttling.
    pub(crate) shortest: Option<Trip>,
    /// Shortest trip in seconds with throttling: what a chunk had to wait for, whatever the reason.
    pub(crate) shortest_throttled_s: f64,
}

impl Round {
    pub(crate) fn new(began: Time) -> Self {
        Round { began, bytes: 0, shortest: None, shortest_throttled_s: f64::INFINITY }
    }

    pub(crate) fn add(&mut self, trip: Trip, throttled: Duration, link_bytes_per_s: f64) {
        self.bytes += trip.bytes;
        let base_s = trip.base_s(link_bytes_per_s);
        self.shortest_throttled_s = self.shortest_throttled_s.min(base_s + throttled.as_secs_f64());
        if self.shortest.is_none_or(|s| base_s <= s.base_s(link_bytes_per_s)) {
            self.shortest = Some(trip);
        }
    }

    /// Bytes per second of the round, if any time has passed.
    pub(crate) fn rate(&self, now: Time) -> Option<f64> {
        let seconds = (now - self.began).as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

/// The chunks that were requested before the first one arrived. They leave the source together, so
/// the rate at which they arrive is the rate of the narrowest place (a packet train, as in Dovrolis,
/// Ramanathan, Moore, "Packet-Dispersion Techniques and a Capacity-Estimation Methodology", 2004).
#[derive(Debug)]
pub(crate) struct Train {
    pub(crate) first_at: Time,
    last_at: Time,
    chunks: u32,
    bytes: u64,
}

/// One chunk may come out of a buffer at any speed; this many together tell a rate.
const TRAIN_CHUNKS: u32 = 4;
const TRAIN_BYTES: u64 = 256 << 10;

impl Train {
    pub(crate) fn new(first_at: Time) -> Self {
        Train { first_at, last_at: first_at, chunks: 0, bytes: 0 }
    }

    pub(crate) fn add(&mut self, now: Time, bytes: u64) {
        self.last_at = now;
        self.chunks += 1;
        self.bytes += bytes;
    }

    /// Bytes per second over the whole train so far, once there is enough of it.
    pub(crate) fn rate(&self) -> Option<f64> {
        let seconds = (self.last_at - self.first_at).as_secs_f64();
        let enough = self.chunks >= TRAIN_CHUNKS && self.bytes >= TRAIN_BYTES && seconds > 0.0;
        enough.then(|| self.bytes as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_forgotten_after_its_rounds() {
        let mut rates = Rates::default();
        rates.push(9.0);
        (1..RATE_ROUNDS).for_each(|_| rates.push(4.0));
        assert_eq!((rates.max(), rates.recent()), (Some(9.0), Some(4.0)));
        rates.push(3.0);
        assert_eq!(rates.max(), Some(4.0));
        rates.raise(2.0);
        assert_eq!(rates.recent(), Some(4.0), "a round held back must not lower the rate");
        rates.forget_all_but(1.0);
        assert_eq!(rates.max(), Some(1.0));
    }

    #[test]
    fn one_chunk_is_no_train() {
        let mut train = Train::new(Time(0));
        train.add(Time(1), 1 << 20);
        assert_eq!(train.rate(), None);
        (2..=4).for_each(|n| train.add(Time(n * 250_000_000), 1 << 20));
        assert_eq!(train.rate(), Some((4 << 20) as f64));
    }

    #[test]
    fn a_trip_counts_without_its_own_time_on_the_link() {
        let took = Duration::from_millis(110);
        let trip = Trip { at: Time(0), took, bytes: 1_000_000 };
        assert!((trip.base_s(100e6) - 0.1).abs() < 1e-9);
        assert_eq!(trip.base_s(1e6), 0.0);
    }
}
