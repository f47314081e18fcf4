//! When requests start, and when it is over. Pure: the time comes from whoever asks.
//!
//! Open loops have one queue of starts for all clients, first come, first served: a client that is free takes the next
//! one, so that a start is late only when every client is busy.

use std::time::Duration;

use world::Time;

use super::{Arrival, Extent, Load};
use crate::corpus::Random;

/// How much longer than asked for an open loop goes on to send starts that are late, as a part of the time and at most.
const LATE_PART: u32 = 10;
const LATE_MAX: Duration = Duration::from_secs(1);
/// The family of random numbers that gaps are drawn from.
const GAPS: u64 = 0x6761_7073;

/// What a free client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send a request at this moment, at once where it has passed.
    Start {
        /// The intended start.
        at: Time,
        /// Whether it is measured; otherwise it belongs to the warm-up.
        measured: bool,
    },
    /// There is nothing more to send.
    End,
}

/// The starts of a load, handed out one after another.
#[derive(Debug)]
pub struct Starts {
    arrival: Arrival,
    random: Random,
    warm_up: Extent,
    measured: Extent,
    began: Time,
    /// The next intended start of an open loop, in seconds since it began: sums of gaps stay exact enough for years.
    due_s: f64,
    /// Starts that were handed out in the warm-up, and measured.
    handed_out: [u64; 2],
    /// When the first measured one was to start.
    begin: Option<Time>,
    stopped: bool,
    interrupted: Option<Time>,
}

impl Starts {
    /// The starts of `load`, from `now` on.
    pub fn new(load: &Load, now: Time) -> Self {
        let mut starts = Starts {
            arrival: load.arrival,
            random: Random::new(load.seed, GAPS, load.gaps),
            warm_up: load.warm_up,
            measured: load.measured,
            began: now,
            due_s: 0.0,
            handed_out: [0; 2],
            begin: None,
            stopped: false,
            interrupted: None,
        };
        // The first arrival of a Poisson process is a gap away, too.
        starts.due_s = match load.arrival {
            Arrival::Poisson { .. } => starts.gap_s(),
            Arrival::Deterministic { .. } => load.offset.as_secs_f64(),
            Arrival::Closed => 0.0,
        };
        starts
    }

    /// When the measured part began, if it has.
    pub fn begin(&self) -> Option<Time> {
        self.begin
    }

    /// When it is to end, where that is known: never of a number of requests.
    pub fn end(&self) -> Option<Time> {
        match (self.begin, self.measured) {
            (Some(begin), Extent::Time(time)) => Some(begin + time),
            _ => None,
        }
    }

    /// From now on there is nothing more to send.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The same, where somebody ends it at `now`: what was due before, and had no client, counts as not sent.
    pub fn interrupt(&mut self, now: Time) {
        if !self.stopped {
            self.stopped = true;
            self.interrupted = Some(now);
        }
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Since when a client that first asks at `now` has been free. In an open loop no client is busy before the first
    /// start: what the clients themselves need to begin is no wait for the cluster.
    pub(crate) fn first_free(&self, now: Time) -> Time {
        if self.arrival == Arrival::Closed { now } else { self.began }
    }

    /// What a client that is free at `now` does next.
    pub fn next(&mut self, now: Time) -> Next {
        if self.stopped {
            return Next::End;
        }
        let at = match self.arrival {
            Arrival::Closed => now,
            _ => self.began + Duration::from_secs_f64(self.due_s),
        };
        let measured = self.begin.is_some() || self.is_warm(at);
        let over = match (measured, self.measured) {
            (false, _) => false,
            (true, Extent::Requests(requests)) => self.handed_out[1] >= requests,
            (true, Extent::Time(time)) => {
                let end = self.begin.unwrap_or(at) + time;
                at >= end || now >= end + (time / LATE_PART).min(LATE_MAX)
            }
        };
        if over {
            return Next::End;
        }
        if measured {
            self.begin.get_or_insert(at);
        }
        self.handed_out[usize::from(measured)] += 1;
        if self.arrival != Arrival::Closed {
            self.due_s += self.gap_s();
        }
        Next::Start { at, measured }
    }

    /// The next measured start that was due within the time, or before somebody ended it, and came too late to be sent;
    /// none where all were sent, or where there was nothing more to send.
    pub(crate) fn next_unsent(&mut self) -> Option<Time> {
        self.begin.filter(|_| self.arrival != Arrival::Closed)?;
        let until = match self.interrupted {
            Some(at) => self.end().map_or(at, |end| end.min(at)),
            None => self.end().filter(|_| !self.stopped)?,
        };
        let at = self.began + Duration::from_secs_f64(self.due_s);
        let all = matches!(self.measured, Extent::Requests(all) if self.handed_out[1] >= all);
        if at >= until || all {
            return None;
        }
        self.handed_out[1] += 1;
        self.due_s += self.gap_s();
        Some(at)
    }

    fn is_warm(&self, at: Time) -> bool {
        match self.warm_up {
            Extent::Time(time) => at >= self.began + time,
            Extent::Requests(requests) => self.handed_out[0] >= requests,
        }
    }

    fn gap_s(&mut self) -> f64 {
        match self.arrival {
            Arrival::Closed => 0.0,
            Arrival::Deterministic { rate_per_s } => 1.0 / rate_per_s,
            // The inverse of the exponential distribution's function.
            Arrival::Poisson { rate_per_s } => -(1.0 - self.random.unit()).ln() / rate_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arrival: Arrival, warm_up: Extent, measured: Extent) -> Load {
        Load { arrival, warm_up, ..Load::closed(vec!["a:9200".to_owned()], 4, measured, 7) }
    }

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Every start until the end, for a client that is always free.
    fn all(load: &Load) -> Vec<(Time, bool)> {
        let mut starts = Starts::new(load, at(0));
        let mut found = Vec::new();
        while let Next::Start { at, measured } = starts.next(at(0)) {
            found.push((at, measured));
        }
        found
    }

    #[test]
    fn a_closed_loop_starts_when_a_client_is_free() {
        let load = load(Arrival::Closed, Extent::NONE, Extent::Time(Duration::from_millis(100)));
        let mut starts = Starts::new(&load, at(5));
        assert_eq!(starts.next(at(5)), Next::Start { at: at(5), measured: true });
        assert_eq!(starts.next(at(104)), Next::Start { at: at(104), measured: true });
        assert_eq!(starts.next(at(105)), Next::End);
        assert_eq!((starts.begin(), starts.end()), (Some(at(5)), Some(at(105))));
    }

    #[test]
    fn an_open_loop_does_not_wait_for_anybody() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let load = load(arrival, Extent::NONE, Extent::Requests(3));
        let mut starts = Starts::new(&load, at(0));
        // Each client comes late; the starts stay where they were.
        let found: Vec<Next> = (0..4).map(|n| starts.next(at(1000 + n))).collect();
        let start = |ms| Next::Start { at: at(ms), measured: true };
        assert_eq!(found, [start(0), start(10), start(20), Next::End]);
    }

    #[test]
    fn no_client_is_busy_before_the_first_start_of_an_open_loop() {
        let starts =
            |arrival| Starts::new(&load(arrival, Extent::NONE, Extent::Requests(3)), at(5));
        assert_eq!(starts(Arrival::Deterministic { rate_per_s: 100.0 }).first_free(at(6)), at(5));
        assert_eq!(starts(Arrival::Closed).first_free(at(6)), at(6), "it waits for nobody");
    }

    #[test]
    fn what_is_too_late_for_the_time_is_not_sent_and_told() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let load = load(arrival, Extent::NONE, Extent::Time(Duration::from_millis(100)));
        let mut starts = Starts::new(&load, at(0));
        assert_eq!(starts.next(at(0)), Next::Start { at: at(0), measured: true });
        assert_eq!(starts.next(at(105)), Next::Start { at: at(10), measured: true });
        assert_eq!(starts.next(at(110)), Next::End);
        let unsent: Vec<Time> = std::iter::from_fn(|| starts.next_unsent()).collect();
        assert_eq!(unsent, (2..10).map(|n| at(n * 10)).collect::<Vec<_>>());
        // A client that was free in time missed no start.
        let mut starts = Starts::new(&load, at(0));
        while starts.next(at(0)) != Next::End {}
        assert_eq!(starts.next_unsent(), None);
    }

    #[test]
    fn what_was_due_before_somebody_ended_it_is_told() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let unsent = |measured: Extent, end: fn(&mut Starts)| {
            let mut starts = Starts::new(&load(arrival, Extent::NONE, measured), at(0));
            assert_ne!(starts.next(at(0)), Next::End);
            end(&mut starts);
            // It is told again and again, and counts once.
            starts.interrupt(at(90));
            std::iter::from_fn(move || starts.next_unsent()).collect::<Vec<_>>()
        };
        let due = |from: u64, to: u64| (from..to).map(|n| at(n * 10)).collect::<Vec<_>>();
        let hour = Extent::Time(Duration::from_secs(3600));
        assert_eq!(unsent(hour, |starts| starts.interrupt(at(45))), due(1, 5));
        let soon = Extent::Time(Duration::from_millis(30));
        assert_eq!(unsent(soon, |starts| starts.interrupt(at(45))), due(1, 3), "no longer than it");
        assert_eq!(unsent(Extent::Requests(3), |starts| starts.interrupt(at(45))), due(1, 3));
        assert_eq!(unsent(hour, Starts::stop), [], "there was nothing more to send");
    }

    #[test]
    fn warm_up_comes_before_by_time_or_by_number() {
        let arrival = Arrival::Deterministic { rate_per_s: 10.0 };
        let by_time = load(
            arrival,
            Extent::Time(Duration::from_millis(250)),
            Extent::Time(Duration::from_millis(300)),
        );
        let measured: Vec<bool> = all(&by_time).iter().map(|start| start.1).collect();
        // 0, 100, 200 ms; then the measured 300 ms begin with the start at 300.
        assert_eq!(measured, [false, false, false, true, true, true]);
        let by_number = load(arrival, Extent::Requests(2), Extent::Requests(3));
        let measured: Vec<bool> = all(&by_number).iter().map(|start| start.1).collect();
        assert_eq!(measured, [false, false, true, true, true]);
    }

    #[test]
    fn gaps_of_a_poisson_process_have_their_mean_and_their_deviation() {
        let arrival = Arrival::Poisson { rate_per_s: 1000.0 };
        let starts = all(&load(arrival, Extent::NONE, Extent::Requests(100_000)));
        let gaps: Vec<f64> =
            starts.windows(2).map(|two| (two[1].0 - two[0].0).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
        let again = all(&load(arrival, Extent::NONE, Extent::Requests(100_000)));
        assert!(starts == again, "the same seed, the same starts");
        let lap = load(arrival, Extent::NONE, Extent::Requests(100_000));
        assert!(starts != all(&Load { gaps: 1, ..lap }), "another lap, other gaps");
    }

    #[test]
    fn what_is_stopped_has_ended() {
        let mut starts =
            Starts::new(&load(Arrival::Closed, Extent::NONE, Extent::Requests(9)), at(0));
        assert_ne!(starts.next(at(0)), Next::End);
        starts.stop();
        assert_eq!(starts.next(at(1)), Next::End);
    }
}
