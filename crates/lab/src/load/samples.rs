//! Some of the requests of a load, one by one, for metrics stores that have a document for each. Pure.

use std::time::Duration;

use record::RequestSample;
use world::Time;

/// The most that are kept. An even number, so that every second one can go.
const KEPT_MAX: usize = 500;

/// Requests, evenly spread over all that there were.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// Of so many requests one is kept: a power of two.
    every: u64,
    seen: u64,
    /// Those that are kept, with the times at which they were sent.
    kept: Vec<(Time, RequestSample)>,
}

impl Samples {
    pub(super) fn none() -> Self {
        Samples { every: 1, seen: 0, kept: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        started: Time,
        latency: Duration,
        service_time: Duration,
        timed_out: bool,
    ) {
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == KEPT_MAX {
                self.halve();
            }
            let (latency_ms, service_time_ms) = (ms(latency), ms(service_time));
            let sample = RequestSample { t_ms: 0.0, latency_ms, service_time_ms, timed_out };
            self.kept.push((started, sample));
        }
        self.seen += 1;
    }

    /// Adds those of another driver of the same load. Neither learns of any more.
    pub(super) fn merge(&mut self, other: &Samples) {
        let mut other = other.clone();
        while self.every < other.every {
            self.halve();
        }
        while other.every < self.every {
            other.halve();
        }
        self.kept.append(&mut other.kept);
        while self.kept.len() > KEPT_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let mut number = 0_usize;
        self.kept.retain(|_| {
            number += 1;
            !number.is_multiple_of(2)
        });
        self.every *= 2;
    }

    /// They in the order of time, which counts from `begin`.
    pub(super) fn since(&self, begin: Time) -> Vec<RequestSample> {
        let mut kept = self.kept.clone();
        kept.sort_by_key(|(started, _)| *started);
        let since = |(started, sample): &(Time, RequestSample)| RequestSample {
            t_ms: ms(*started - begin),
            ..*sample
        };
        kept.iter().map(since).collect()
    }
}

/// In whole microseconds.
fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(requests: impl Iterator<Item = u64>) -> Samples {
        let mut samples = Samples::none();
        for n in requests {
            let took = Duration::from_micros(n);
            samples.add(Time(n * 1_000_000), took * 2, took, false);
        }
        samples
    }

    #[test]
    fn few_are_kept_whole_and_many_evenly() {
        let few = of(0..3).since(Time(0));
        assert_eq!(few.len(), 3);
        let second = RequestSample {
            t_ms: 1.0,
            latency_ms: 0.002,
            service_time_ms: 0.001,
            timed_out: false,
        };
        assert_eq!(few[1], second);
        let many = of(0..10_000).since(Time(0));
        assert!((KEPT_MAX / 2..=KEPT_MAX).contains(&many.len()), "{}", many.len());
        let step_ms = many[1].t_ms - many[0].t_ms;
        let is_even = |pair: &[RequestSample]| pair[1].t_ms - pair[0].t_ms == step_ms;
        assert!(many.windows(2).all(is_even) && many[0].t_ms == 0.0);
        assert!(many.last().is_some_and(|last| last.t_ms >= 9_900.0), "up to the end");
    }

    #[test]
    fn those_of_two_drivers_are_as_dense_as_each_other_and_in_the_order_of_time() {
        let mut both = of(0..5000);
        both.merge(&of((0..100).map(|n| n * 50)));
        let all = both.since(Time(0));
        // One of 16: 313 of the 5000, and 7 of the 100.
        assert_eq!(all.len(), 320);
        assert!(all.is_sorted_by(|a, b| a.t_ms <= b.t_ms));
    }
}
