//! What a node tells who probes it: how many searches it has, and how long one that came at as many took.
//!
//! Source: B. Wydrowski, R. Kleinberg, S. M. Rumble, A. Archer, "Load is not what you should balance: Introducing
//! Prequal", NSDI 2024, section 4: the server keeps latencies by the requests in flight (RIF) at their arrival, and
//! answers with the median of recent ones near the RIF of now.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const SAMPLES_MAX: usize = 256;
/// The nearest by requests in flight that the median is taken of.
const NEAREST: usize = 15;

/// The answer to a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// Searches that run or wait.
    pub in_flight: u64,
    /// Median time from arrival to answer of those that came at about as many; none before the first.
    pub latency: Option<Duration>,
}

/// Latencies of a node's searches.
#[derive(Clone, Debug, Default)]
pub struct ServedLatency {
    /// Requests in flight at arrival, and nanoseconds to the answer.
    samples: VecDeque<(u64, u64)>,
}

impl ServedLatency {
    /// A search that came when `in_flight` others were there took so long.
    pub fn note(&mut self, in_flight: u64, took: Duration) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((in_flight, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)));
    }

    /// What a probe is told while `in_flight` searches are there.
    pub fn answer(&self, in_flight: u64) -> ProbeAnswer {
        let mut near: Vec<(u64, u64)> = Vec::with_capacity(self.samples.len());
        // The latest first, so that among equally near ones these count.
        near.extend(self.samples.iter().rev().map(|(rif, ns)| (rif.abs_diff(in_flight), *ns)));
        near.sort_by_key(|sample| sample.0);
        near.truncate(NEAREST);
        let mut latencies: Vec<u64> = near.into_iter().map(|sample| sample.1).collect();
        latencies.sort_unstable();
        let latency = latencies.get(latencies.len() / 2).map(|ns| Duration::from_nanos(*ns));
        ProbeAnswer { in_flight, latency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_that_of_searches_in_like_company() {
        let mut served = ServedLatency::default();
        assert_eq!(served.answer(3), ProbeAnswer { in_flight: 3, latency: None });
        for n in 0..100 {
            served.note(n % 20, Duration::from_millis(10 + n % 20));
        }
        let at = |rif| served.answer(rif).latency.unwrap().as_millis();
        assert!((11..=13).contains(&at(2)), "{}", at(2));
        assert!((27..=29).contains(&at(50)), "the nearest there are: {}", at(50));
        // What is old is forgotten.
        for _ in 0..SAMPLES_MAX {
            served.note(2, Duration::from_millis(500));
        }
        assert_eq!(served.answer(19).latency, Some(Duration::from_millis(500)));
    }
}
