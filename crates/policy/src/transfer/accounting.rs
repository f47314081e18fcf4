//! Chunk-second accounting: every moment of a transfer is charged to one limit.
//!
//! At any moment look at the chunks in flight. A chunk either travels, or something serves it or
//! lets it wait: a disk, a core, a throttle, the link. If at least one chunk is served, the moment is
//! split evenly over the limits that serve. If all only travel, it is charged to latency: more bytes in
//! flight would have been free. With no chunk in flight, it is charged to the transfer's `idle` reason.
//! The sum is exactly the elapsed time, so a share of it is a share of the transfer.
//!
//! The currency is that of Oracle's ADDM (Dias, Ramacher, Shaft, Venkataramani, Wood, "Automatic
//! Performance Diagnosis and Tuning in Oracle", CIDR 2005): one unit, time, for every cause.
//!
//! What served a chunk is known once it is finished ([`Timeline`]). So moments are settled only up to
//! the issue of the oldest chunk in flight; what came after is kept as changes of counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use record::Limit;
use world::Time;

use super::chunk::ChunkRequest;
pub use super::timeline::{SourcePhases, TargetPhases, Timeline};

/// Names one chunk while it is in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChunkId {
    /// Index of the file.
    pub file: u32,
    /// Offset in the file.
    pub offset: u64,
}

impl From<ChunkRequest> for ChunkId {
    fn from(request: ChunkRequest) -> Self {
        ChunkId { file: request.file, offset: request.offset }
    }
}

const LIMITS: usize = Limit::ALL.len();
/// Chunks in each phase: served by each limit in the order of [`Limit::ALL`], then travelling.
type Counts = [i32; LIMITS + 1];
const TRAVELLING: usize = LIMITS;

/// What changes at one moment.
#[derive(Clone, Debug, Default)]
struct Change {
    counts: Counts,
    idle: Option<Limit>,
}

/// The account of one transfer.
#[derive(Clone, Debug)]
pub struct Accounting {
    start: Time,
    /// The latest moment of any event: an event that claims to be earlier counts as of this moment.
    latest: Time,
    /// Everything before is settled.
    settled: Time,
    settled_ns: [u64; LIMITS],
    /// State at `settled`.
    counts: Counts,
    idle: Limit,
    /// Changes from `settled` on, of finished chunks alone.
    changes: BTreeMap<Time, Change>,
    in_flight: BTreeMap<ChunkId, Time>,
    by_age: BTreeSet<(Time, ChunkId)>,
}

impl Accounting {
    /// An account that begins `now`, with nothing in flight for the reason `idle`.
    pub fn new(now: Time, idle: Limit) -> Self {
        Accounting {
            start: now,
            latest: now,
            settled: now,
            settled_ns: [0; LIMITS],
            counts: [0; LIMITS + 1],
            idle,
            changes: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// From now on, moments with nothing in flight are charged to `idle`.
    pub fn set_idle(&mut self, now: Time, idle: Limit) {
        let now = self.pass(now);
        self.changes.entry(now).or_default().idle = Some(idle);
        self.charge_landed();
    }

    /// A chunk was requested. One that is in flight already is issued anew: the time before travelled.
    pub fn issued(&mut self, now: Time, id: ChunkId) {
        self.failed(now, id);
        let now = self.pass(now);
        self.in_flight.insert(id, now);
        self.by_age.insert((now, id));
    }

    /// A chunk is verified and written. One that is not in flight is ignored.
    pub fn finished(&mut self, now: Time, id: ChunkId, timeline: Timeline) {
        let now = self.pass(now);
        let Some(issued) = self.land(id) else { return };
        let mut at = issued;
        for (limit, span) in timeline.phases(issued, now) {
            self.add(at, at + span, limit);
            at = at + span;
        }
        self.charge_landed();
    }

    /// A chunk failed: its time counts as travelling.
    pub fn failed(&mut self, now: Time, id: ChunkId) {
        let now = self.pass(now);
        let Some(issued) = self.land(id) else { return };
        self.add(issued, now, None);
        self.charge_landed();
    }

    /// The time charged to each limit so far; limits without any are left out. The sum is exactly
    /// `now` less the start. Chunks in flight count as travelling until their timeline is known.
    pub fn charged(&self, now: Time) -> BTreeMap<Limit, Duration> {
        let mut whole = self.clone();
        let now = whole.pass(now);
        for issued in self.in_flight.values() {
            whole.add(*issued, now, None);
        }
        whole.in_flight.clear();
        whole.by_age.clear();
        whole.charge_landed();
        Limit::ALL
            .into_iter()
            .zip(whole.settled_ns)
            .filter(|(_, ns)| *ns > 0)
            .map(|(limit, ns)| (limit, Duration::from_nanos(ns)))
            .collect()
    }

    /// When the account began.
    pub fn start(&self) -> Time {
        self.start
    }

    fn pass(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn land(&mut self, id: ChunkId) -> Option<Time> {
        let issued = self.in_flight.remove(&id)?;
        self.by_age.remove(&(issued, id));
        Some(issued)
    }

    /// A chunk was served by `limit`, or travelled, for a while.
    fn add(&mut self, from: Time, to: Time, limit: Option<Limit>) {
        if from < to {
            let phase = limit.map_or(TRAVELLING, index);
            self.changes.entry(from).or_default().counts[phase] += 1;
            self.changes.entry(to).or_default().counts[phase] -= 1;
        }
    }

    /// Charges the moments that no chunk in flight can change any more.
    fn charge_landed(&mut self) {
        let to = self.by_age.first().map_or(self.latest, |(issued, _)| *issued);
        while let Some(entry) = self.changes.first_entry().filter(|entry| *entry.key() <= to) {
            let (at, change) = entry.remove_entry();
            self.charge_until(at);
            self.counts.iter_mut().zip(change.counts).for_each(|(count, by)| *count += by);
            self.idle = change.idle.unwrap_or(self.idle);
        }
        self.charge_until(to);
    }

    /// Charges the time since `settled`, in which nothing changed.
    fn charge_until(&mut self, to: Time) {
        let span_ns = (to - self.settled).as_nanos() as u64;
        self.settled = to;
        let served: i32 = self.counts[..LIMITS].iter().sum();
        if served == 0 {
            let limit = if self.counts[TRAVELLING] > 0 { Limit::Latency } else { self.idle };
            self.settled_ns[index(limit)] += span_ns;
            return;
        }
        // Differences of rounded sums: they add up to the span to the nanosecond.
        let up_to = |count: i32| u128::from(span_ns) * count as u128 / served as u128;
        let mut sum = 0;
        for (charged, count) in self.settled_ns.iter_mut().zip(&self.counts[..LIMITS]) {
            *charged += (up_to(sum + count) - up_to(sum)) as u64;
            sum += count;
        }
    }
}

/// Place in [`Limit::ALL`], which is the order of declaration.
fn index(limit: Limit) -> usize {
    limit as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn id(n: u64) -> ChunkId {
        ChunkId { file: 0, offset: n }
    }

    fn timeline(requested_at: Time, arrived_at: Time, base_round_trip: Duration) -> Timeline {
        Timeline { requested_at, arrived_at, base_round_trip, ..Timeline::default() }
    }

    fn share(account: &Accounting, now: Time, limit: Limit) -> f64 {
        let charged = account.charged(now);
        let total: Duration = charged.values().sum();
        assert_eq!(total, now - account.start());
        charged.get(&limit).map_or(0.0, |d| d.as_secs_f64()) / total.as_secs_f64()
    }

    #[test]
    fn limits_are_numbered_in_their_order() {
        Limit::ALL.into_iter().enumerate().for_each(|(i, limit)| assert_eq!(index(limit), i));
    }

    #[test]
    fn small_chunks_one_at_a_time_over_a_long_path_are_latency() {
        let mut account = Accounting::new(Time(0), Limit::Latency);
        let took = ms(100) + Duration::from_secs_f64(65_536.0 / 125e6);
        let mut now = Time(0);
        for n in 0..100 {
            account.issued(now, id(n));
            let arrived = now + took;
            account.finished(arrived, id(n), timeline(now, arrived, ms(100)));
            now = arrived;
        }
        assert!(share(&account, now, Limit::Latency) > 0.99);
        assert!(share(&account, now, Limit::LinkRate) > 0.005);
    }

    #[test]
    fn large_chunks_in_numbers_fill_the_link() {
        let mut account = Accounting::new(Time(0), Limit::Latency);
        let each = Duration::from_secs_f64(5_242_880.0 / 125e6);
        let mut issued_at = vec![Time(0); 5];
        (0..5).for_each(|n| account.issued(Time(0), id(n)));
        let mut now = Time(0) + ms(100);
        for n in 0..500u64 {
            now = now + each;
            account.finished(now, id(n), timeline(issued_at[n as usize], now, ms(100)));
            account.issued(now, id(n + 5));
            issued_at.push(now);
        }
        assert!(share(&account, now, Limit::LinkRate) > 0.95);
    }

    #[test]
    fn a_throttle_is_charged_although_much_is_in_flight() {
        let mut account = Accounting::new(Time(0), Limit::Latency);
        (0..4).for_each(|n| account.issued(Time(0), id(n)));
        let mut now = Time(0) + ms(10);
        for n in 0..400u64 {
            now = now + ms(25);
            let issued = if n < 4 { Time(0) } else { Time(10 * MS + (n - 3) * 25 * MS) };
            let mut line = timeline(issued, now, ms(10));
            line.source.throttle = (now - issued) - ms(10);
            account.finished(now, id(n), line);
            account.issued(now, id(n + 4));
        }
        assert!(share(&account, now, Limit::Throttle) > 0.95);
    }

    #[test]
    fn what_is_served_is_split_and_what_travels_beside_it_is_free() {
        let mut account = Accounting::new(Time(0), Limit::Slots);
        for n in 0..3 {
            account.issued(Time(10 * MS), id(n));
        }
        let end = Time(30 * MS);
        let mut reads = timeline(Time(10 * MS), end, Duration::ZERO);
        reads.source.disk_read = ms(20);
        let mut waits = reads;
        waits.source = SourcePhases { throttle: ms(20), ..SourcePhases::default() };
        account.finished(end, id(0), reads);
        account.finished(end, id(1), waits);
        account.failed(end, id(2));
        let expected =
            [(Limit::Throttle, ms(10)), (Limit::DiskRead, ms(10)), (Limit::Slots, ms(15))];
        account.set_idle(Time(32 * MS), Limit::DiskWrite);
        let charged = account.charged(Time(36 * MS));
        assert_eq!(charged[&Limit::Throttle], expected[0].1);
        assert_eq!(charged[&Limit::DiskRead], expected[1].1);
        assert_eq!(charged[&Limit::Slots], ms(12));
        assert_eq!(charged[&Limit::DiskWrite], ms(4));
    }

    #[test]
    fn a_failed_chunk_travelled() {
        let mut account = Accounting::new(Time(0), Limit::Slots);
        account.issued(Time(0), id(1));
        account.failed(Time(5), id(1));
        let charged = account.charged(Time(7));
        let ns = |limit| charged.get(&limit).map_or(0, |d: &Duration| d.as_nanos());
        assert_eq!((ns(Limit::Latency), ns(Limit::Slots)), (5, 2));
    }

    #[test]
    fn memory_does_not_grow_with_the_transfer() {
        let mut account = Accounting::new(Time(0), Limit::Latency);
        let at = |n: u64| Time(n * MS);
        let mut most = 0;
        for n in 0..50_000u64 {
            account.issued(at(n), id(n));
            if n >= 10 {
                let mut line = timeline(at(n - 10), at(n), ms(2));
                line.source.disk_read = ms(3);
                account.finished(at(n), id(n - 10), line);
            }
            most = most.max(account.changes.len());
        }
        assert!(most < 100, "{most} changes kept");
        let total: Duration = account.charged(at(50_000)).values().sum();
        assert_eq!(total, at(50_000) - Time(0));
    }

    #[derive(Clone, Debug)]
    enum Event {
        Issue(u64),
        Finish { id: u64, arrived: f64, phases: [u16; 8] },
        Fail(u64),
        Idle(usize),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let id = 0u64..12;
        let finish = (id.clone(), 0.0..1.2f64, any::<[u16; 8]>());
        prop_oneof![
            4 => id.clone().prop_map(Event::Issue),
            4 => finish.prop_map(|(id, arrived, phases)| Event::Finish { id, arrived, phases }),
            1 => id.clone().prop_map(Event::Fail),
            1 => (0..LIMITS).prop_map(Event::Idle),
        ]
    }

    fn random_timeline(issued: Time, now: Time, arrived: f64, phases: [u16; 8]) -> Timeline {
        let d = |i: usize| Duration::from_nanos(phases[i].into());
        Timeline {
            requested_at: issued,
            arrived_at: issued + (now - issued).mul_f64(arrived),
            base_round_trip: d(0),
            source: SourcePhases { throttle: d(1), disk_read: d(2), cpu: d(3), memory: d(4) },
            target: TargetPhases { throttle: d(5), cpu: d(6), disk_write: d(7) },
        }
    }

    proptest! {
        #[test]
        fn sums_are_exact(
            start in 0u64..1000,
            events in prop::collection::vec((0u64..50_000, any_event()), 0..300),
        ) {
            let mut account = Accounting::new(Time(start), Limit::Latency);
            let mut issued = BTreeMap::new();
            let mut now = Time(start);
            for (wait, event) in events {
                now = now + Duration::from_nanos(wait);
                match event {
                    Event::Issue(n) => {
                        account.issued(now, id(n));
                        issued.insert(n, now);
                    }
                    Event::Finish { id: n, arrived, phases } => {
                        let at = issued.get(&n).copied().unwrap_or(now);
                        account.finished(now, id(n), random_timeline(at, now, arrived, phases));
                    }
                    Event::Fail(n) => account.failed(now, id(n)),
                    Event::Idle(limit) => account.set_idle(now, Limit::ALL[limit]),
                }
                let later = now + Duration::from_nanos(wait / 2);
                let total: Duration = account.charged(later).values().sum();
                prop_assert_eq!(total, later - Time(start));
            }
        }
    }
}
