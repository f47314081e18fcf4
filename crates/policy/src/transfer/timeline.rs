//! Where one chunk was between its request and its being written, as far as the target knows.

use std::time::Duration;

use record::Limit;
use serde::{Deserialize, Serialize};
use world::Time;

/// What the source tells of its own work on a chunk, in the order in which it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SourcePhases {
    /// Held back by a rate limiter.
    pub throttle: Duration,
    /// Read from disk, its queue included.
    pub disk_read: Duration,
    /// Hashed, compressed or encrypted, the queue for a core included.
    pub cpu: Duration,
    /// Waited for memory.
    pub memory: Duration,
}

/// What the target did with a chunk after it had arrived, in the order in which it happens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TargetPhases {
    /// Held back by a rate limiter.
    pub throttle: Duration,
    /// Decompressed and verified, the queue for a core included.
    pub cpu: Duration,
    /// Written to disk, its queue included.
    pub disk_write: Duration,
}

/// The times of one chunk. They come from several clocks' differences, so they need not fit; see
/// [`Timeline::phases`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timeline {
    /// When the request left the target.
    pub requested_at: Time,
    /// When the last byte arrived.
    pub arrived_at: Time,
    /// Shortest round trip of a ping on the same path.
    pub base_round_trip: Duration,
    /// The source's phases.
    pub source: SourcePhases,
    /// The target's phases.
    pub target: TargetPhases,
}

/// A limit that served a chunk, or none while it travelled, and for how long.
pub(super) type PhaseSpan = (Option<Limit>, Duration);

impl Timeline {
    /// Lays the phases on the time from `issued` to `finished`, end to end, without a gap:
    ///
    /// 1. half a base round trip of travel,
    /// 2. the source's phases,
    /// 3. the other half,
    /// 4. what remains until arrival: the link's rate, as bytes arrive or wait for the link,
    /// 5. the wait for the target's turn, charged to what took most of the target's time,
    /// 6. the target's phases.
    ///
    /// What is too long for its place is scaled down: travel first, since a ping may have found a slower
    /// moment than the chunk did; then the phases, all alike.
    pub(super) fn phases(&self, issued: Time, finished: Time) -> Vec<PhaseSpan> {
        let requested = self.requested_at.clamp(issued, finished);
        let arrived = self.arrived_at.clamp(requested, finished);
        let elapsed_ns = ns(arrived - requested);
        let s = &self.source;
        let mut source = [
            (Limit::Memory, ns(s.memory)),
            (Limit::DiskRead, ns(s.disk_read)),
            (Limit::Cpu, ns(s.cpu)),
            (Limit::Throttle, ns(s.throttle)),
        ];
        let source_ns = fit(&mut source, elapsed_ns);
        let travel_ns = ns(self.base_round_trip).min(elapsed_ns - source_ns);
        let there_ns = travel_ns / 2;
        let mut phases = vec![(None, ns(requested - issued) + there_ns)];
        phases.extend(source.map(|(limit, ns)| (Some(limit), ns)));
        phases.push((None, travel_ns - there_ns));
        phases.push((Some(Limit::LinkRate), elapsed_ns - source_ns - travel_ns));
        self.add_target(ns(finished - arrived), &mut phases);
        phases.into_iter().map(|(limit, ns)| (limit, Duration::from_nanos(ns))).collect()
    }

    fn add_target(&self, available_ns: u64, phases: &mut Vec<(Option<Limit>, u64)>) {
        let t = &self.target;
        let mut target = [
            (Limit::Throttle, ns(t.throttle)),
            (Limit::Cpu, ns(t.cpu)),
            (Limit::DiskWrite, ns(t.disk_write)),
        ];
        let target_ns = fit(&mut target, available_ns);
        let busiest = target.iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0);
        let waits_for = busiest.map_or(Limit::Cpu, |(limit, _)| *limit);
        phases.push((Some(waits_for), available_ns - target_ns));
        phases.extend(target.map(|(limit, ns)| (Some(limit), ns)));
    }
}

fn ns(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// Scales `parts` down together if they exceed `available_ns`; gives their sum.
fn fit(parts: &mut [(Limit, u64)], available_ns: u64) -> u64 {
    let total: u128 = parts.iter().map(|(_, ns)| u128::from(*ns)).sum();
    if total <= u128::from(available_ns) {
        return total as u64;
    }
    // Differences of rounded sums: they add up to what is available.
    let up_to = |sum: u128| sum * u128::from(available_ns) / total;
    let mut sum = 0;
    for (_, ns) in parts {
        let next = sum + u128::from(*ns);
        *ns = (up_to(next) - up_to(sum)) as u64;
        sum = next;
    }
    available_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(elapsed: u64, base: u64) -> Timeline {
        Timeline {
            requested_at: Time(1000),
            arrived_at: Time(1000 + elapsed),
            base_round_trip: Duration::from_nanos(base),
            ..Timeline::default()
        }
    }

    fn laid(line: Timeline, finished: u64) -> Vec<(Option<Limit>, u64)> {
        let phases = line.phases(Time(1000), Time(finished));
        let total: Duration = phases.iter().map(|(_, d)| *d).sum();
        assert_eq!(total.as_nanos(), u128::from(finished - 1000));
        phases.into_iter().map(|(l, d)| (l, ns(d))).filter(|(_, ns)| *ns > 0).collect()
    }

    #[test]
    fn phases_stand_in_their_order() {
        let mut line = line(200, 100);
        line.source.disk_read = Duration::from_nanos(30);
        line.target.disk_write = Duration::from_nanos(40);
        let expected = [
            (None, 50),
            (Some(Limit::DiskRead), 30),
            (None, 50),
            (Some(Limit::LinkRate), 70),
            (Some(Limit::DiskWrite), 10),
            (Some(Limit::DiskWrite), 40),
        ];
        assert_eq!(laid(line, 1250), expected);
    }

    #[test]
    fn travel_gives_way_before_what_the_source_says() {
        let mut line = line(100, 80);
        line.source.throttle = Duration::from_nanos(60);
        let expected = [(None, 20), (Some(Limit::Throttle), 60), (None, 20)];
        assert_eq!(laid(line, 1100), expected);
    }

    #[test]
    fn phases_that_exceed_the_time_shrink_alike() {
        let mut line = line(100, 80);
        line.source.throttle = Duration::from_nanos(300);
        line.source.cpu = Duration::from_nanos(100);
        line.target.cpu = Duration::MAX;
        let expected = [(Some(Limit::Cpu), 25), (Some(Limit::Throttle), 75), (Some(Limit::Cpu), 7)];
        assert_eq!(laid(line, 1107), expected);
    }

    #[test]
    fn clocks_out_of_order_are_put_into_it() {
        let mut line = line(0, 10);
        line.requested_at = Time(5);
        line.arrived_at = Time(9999);
        assert_eq!(laid(line, 1040), [(None, 5), (None, 5), (Some(Limit::LinkRate), 30)]);
    }
}
