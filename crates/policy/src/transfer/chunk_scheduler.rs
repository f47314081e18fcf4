//! Which chunk of which file is fetched next, and how many are in flight at once.
//!
//! The target of a recovery pulls chunks. It asks [`ChunkScheduler::next`] until that says none, and
//! again after each delivery or failure (and at [`ChunkScheduler::wake_at`]). Three ways to choose:
//!
//! | scheduler | source |
//! | --- | --- |
//! | [`SchedulerConfig::ParallelFiles`] | the second version of Elasticsearch's CCR file restore |
//! | [`SchedulerConfig::FileWindow`] | its third, elastic/elasticsearch pull request 38841; of one chunk, its first |
//! | [`SchedulerConfig::Adaptive`] | ours: chunk size and count follow the measured path |
//!
//! Settings behind the first two: `ccr.indices.recovery.chunk_size` and
//! `ccr.indices.recovery.max_concurrent_file_chunks`, or their `indices.recovery.*` counterparts.
//! Files are fetched in the order given, or the smallest first, as peer recoveries of Elasticsearch and OpenSearch send
//! them ([`ChunkScheduler::smallest_first`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use world::Time;

use super::adaptive::Adaptive;
use super::bandwidth_delay_product::REQUEST_COST_BYTES;
use super::chunk::{ChunkRequest, Delivery, FileSpan};
use super::connections::Spread;
use super::file_window::FileWindow;
use super::parallel_files::ParallelFiles;
use super::path::Trip;
use super::pending::Pending;

/// How to choose chunks. Sizes in bytes; zeros count as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerConfig {
    /// Several files at once, one chunk of each.
    ParallelFiles {
        /// Chunk size.
        chunk_bytes: u64,
        /// Files at once.
        max_concurrent: usize,
    },
    /// A window of chunks over the files in order.
    FileWindow {
        /// Chunk size.
        chunk_bytes: u64,
        /// Chunks from the oldest unacknowledged one on.
        max_concurrent: usize,
    },
    /// Chunk size and count follow the measured path.
    Adaptive {
        /// Most bytes in flight of this scheduler; a node divides its memory among its shards.
        memory_max_bytes: u64,
    },
}

/// The state of one shard copy's transfer. See the module for its rules.
#[derive(Debug)]
pub struct ChunkScheduler {
    pending: Pending,
    in_flight: BTreeMap<(u32, u64), u32>,
    in_flight_bytes: u64,
    policy: Policy,
}

#[derive(Debug)]
enum Policy {
    ParallelFiles { chunk_bytes: u64, max_concurrent: usize, files: ParallelFiles },
    FileWindow { chunk_bytes: u64, max_concurrent: usize, window: FileWindow },
    Adaptive(Box<Adaptive>),
}

impl ChunkScheduler {
    /// A transfer of what is missing of `files`, beginning `now`.
    pub fn new(config: SchedulerConfig, files: &[FileSpan], now: Time) -> Self {
        let pending = Pending::new(files);
        let window = FileWindow::new(std::iter::empty(), &pending);
        let policy = Policy::FileWindow { chunk_bytes: 1, max_concurrent: 1, window };
        let in_flight = BTreeMap::new();
        let mut scheduler = ChunkScheduler { pending, in_flight, in_flight_bytes: 0, policy };
        scheduler.reconfigure(now, config);
        scheduler
    }

    /// Has what is still to be requested taken by the lengths of files, the smallest first.
    pub fn smallest_first(&mut self) {
        self.pending.smallest_first();
    }

    /// Changes the settings of a running transfer. What is in flight stays; what the adaptive
    /// scheduler has learned survives a change of its memory.
    pub fn reconfigure(&mut self, now: Time, config: SchedulerConfig) {
        let in_flight = self.in_flight.iter().map(|(key, len)| request(key, len));
        let policy = match config {
            SchedulerConfig::ParallelFiles { chunk_bytes, max_concurrent } => {
                let files = ParallelFiles::new(in_flight);
                Policy::ParallelFiles { chunk_bytes, max_concurrent: max_concurrent.max(1), files }
            }
            SchedulerConfig::FileWindow { chunk_bytes, max_concurrent } => {
                let max_concurrent = max_concurrent.max(1);
                if let Policy::FileWindow { chunk_bytes: size, max_concurrent: most, .. } =
                    &mut self.policy
                {
                    (*size, *most) = (chunk_bytes, max_concurrent);
                    return;
                }
                let window = FileWindow::new(in_flight, &self.pending);
                Policy::FileWindow { chunk_bytes, max_concurrent, window }
            }
            SchedulerConfig::Adaptive { memory_max_bytes } => {
                if let Policy::Adaptive(adaptive) = &mut self.policy {
                    adaptive.set_memory_max_bytes(memory_max_bytes);
                    return;
                }
                Policy::Adaptive(Box::new(Adaptive::new(memory_max_bytes, now)))
            }
        };
        self.policy = policy;
    }

    /// The chunk to request now; none if nothing may start before something is delivered or fails,
    /// or before [`ChunkScheduler::wake_at`]. With nothing in flight and something left, never none.
    pub fn next(&mut self, now: Time) -> Option<ChunkRequest> {
        let pending = &mut self.pending;
        let request = match &mut self.policy {
            Policy::ParallelFiles { chunk_bytes, max_concurrent, files } => {
                let busy: BTreeSet<u32> = self.in_flight.keys().map(|(file, _)| *file).collect();
                files.next(pending, &busy, *chunk_bytes, *max_concurrent)
            }
            Policy::FileWindow { chunk_bytes, max_concurrent, window } => {
                window.next(pending, *chunk_bytes, *max_concurrent)
            }
            Policy::Adaptive(adaptive) => {
                let chunk_bytes = adaptive.chunk_bytes();
                let next = pending.peek(chunk_bytes)?;
                let fits =
                    adaptive.may_start(now, next.len, self.in_flight_bytes, self.in_flight.len());
                if fits { pending.take(chunk_bytes) } else { None }
            }
        }?;
        self.in_flight.insert((request.file, request.offset), request.len);
        self.in_flight_bytes += u64::from(request.len);
        Some(request)
    }

    /// When to ask [`ChunkScheduler::next`] again although nothing was delivered: while the adaptive
    /// scheduler knows nothing of its path yet, it opens with the time.
    pub fn wake_at(&self) -> Option<Time> {
        let Policy::Adaptive(adaptive) = &self.policy else { return None };
        let next = self.pending.peek(adaptive.chunk_bytes())?;
        adaptive.wake_at(next.len, self.in_flight_bytes, self.in_flight.len())
    }

    /// A chunk was verified and written. One that is not in flight (an answer that comes after
    /// [`ChunkScheduler::failed`]) is ignored: its range is fetched again.
    pub fn delivered(&mut self, now: Time, request: ChunkRequest, delivery: Delivery) {
        let flying_cost = self.in_flight_cost();
        if !self.land(request) {
            return;
        }
        match &mut self.policy {
            Policy::FileWindow { window, .. } => window.delivered(request),
            Policy::Adaptive(adaptive) => {
                let elapsed = now - delivery.requested_at;
                let trip = Trip {
                    at: now,
                    took: elapsed.saturating_sub(delivery.throttled),
                    bytes: u64::from(request.len) + REQUEST_COST_BYTES,
                };
                adaptive.delivered(trip, &delivery, flying_cost);
            }
            Policy::ParallelFiles { .. } => {}
        }
    }

    /// A round trip on the path to the source that was measured elsewhere: a ping, or the shortest that
    /// is known when the transfer begins. It is optional, but without it a transfer that begins beside
    /// others takes their queue for a part of the path, and may need a minute or two to find out.
    /// Give each measurement once: a path may become longer. Zero is no measurement.
    pub fn round_trip(&mut self, now: Time, round_trip: Duration) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.round_trip(now, round_trip);
        }
    }

    /// How the bytes in flight are spread over connections; none while those that are configured take turns.
    pub fn set_spread(&mut self, spread: Option<Spread>) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.set_spread(spread);
        }
    }

    /// A chunk came damaged or its connection was lost: its range is to be fetched again.
    pub fn failed(&mut self, request: ChunkRequest) {
        if self.land(request) {
            self.pending.put_back(request);
        }
    }

    /// Whether every byte of every file is there.
    pub fn is_complete(&self) -> bool {
        self.in_flight.is_empty() && self.pending.is_empty()
    }

    /// Chunks in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Bytes in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Size of the next chunk of a file that is long enough.
    pub fn chunk_bytes(&self) -> u64 {
        match &self.policy {
            Policy::ParallelFiles { chunk_bytes, .. } | Policy::FileWindow { chunk_bytes, .. } => {
                *chunk_bytes.max(&1)
            }
            Policy::Adaptive(adaptive) => adaptive.chunk_bytes(),
        }
    }

    fn in_flight_cost(&self) -> u64 {
        self.in_flight_bytes + self.in_flight.len() as u64 * REQUEST_COST_BYTES
    }

    /// Takes a chunk out of flight; false if it was not.
    fn land(&mut self, request: ChunkRequest) -> bool {
        let key = (request.file, request.offset);
        let flies = self.in_flight.get(&key) == Some(&request.len);
        if flies {
            self.in_flight.remove(&key);
            self.in_flight_bytes -= u64::from(request.len);
        }
        flies
    }
}

fn request(&(file, offset): &(u32, u64), &len: &u32) -> ChunkRequest {
    ChunkRequest { file, offset, len }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn files(lens: &[u64]) -> Vec<FileSpan> {
        lens.iter().map(|&len| FileSpan { len, have: 0 }).collect()
    }

    fn started(scheduler: &mut ChunkScheduler) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| scheduler.next(Time(0))).map(|r| (r.file, r.offset)).collect()
    }

    fn deliver(scheduler: &mut ChunkScheduler, file: u32, offset: u64, len: u32) {
        let request = ChunkRequest { file, offset, len };
        scheduler.delivered(Time(1), request, Delivery::default());
    }

    #[test]
    fn a_window_of_one_chunk_has_one_in_flight() {
        let config = SchedulerConfig::FileWindow { chunk_bytes: 10, max_concurrent: 1 };
        let mut scheduler = ChunkScheduler::new(config, &files(&[15, 5]), Time(0));
        assert_eq!(started(&mut scheduler), [(0, 0)]);
        deliver(&mut scheduler, 0, 0, 10);
        assert_eq!(started(&mut scheduler), [(0, 10)]);
        deliver(&mut scheduler, 0, 10, 5);
        assert_eq!(started(&mut scheduler), [(1, 0)]);
        assert!(!scheduler.is_complete());
        deliver(&mut scheduler, 1, 0, 5);
        assert!(scheduler.is_complete());
    }

    #[test]
    fn parallel_files_end_with_one_request_a_round_trip() {
        let config = SchedulerConfig::ParallelFiles { chunk_bytes: 10, max_concurrent: 2 };
        let mut scheduler = ChunkScheduler::new(config, &files(&[10, 10, 30]), Time(0));
        assert_eq!(started(&mut scheduler), [(0, 0), (1, 0)]);
        deliver(&mut scheduler, 1, 0, 10);
        assert_eq!(started(&mut scheduler), [(2, 0)]);
        deliver(&mut scheduler, 0, 0, 10);
        assert_eq!(started(&mut scheduler), [], "the largest file is alone now");
        deliver(&mut scheduler, 2, 0, 10);
        assert_eq!(started(&mut scheduler), [(2, 10)]);
    }

    #[test]
    fn file_window_is_measured_from_the_last_contiguous_acknowledgement() {
        let config = SchedulerConfig::FileWindow { chunk_bytes: 10, max_concurrent: 3 };
        let mut scheduler = ChunkScheduler::new(config, &files(&[20, 100]), Time(0));
        assert_eq!(started(&mut scheduler), [(0, 0), (0, 10), (1, 0)]);
        deliver(&mut scheduler, 0, 10, 10);
        deliver(&mut scheduler, 1, 0, 10);
        assert_eq!(started(&mut scheduler), [], "one is in flight, but it holds the window shut");
        deliver(&mut scheduler, 0, 0, 10);
        assert_eq!(started(&mut scheduler), [(1, 10), (1, 20), (1, 30)]);
    }

    #[test]
    fn a_failed_chunk_may_start_in_a_shut_window() {
        let config = SchedulerConfig::FileWindow { chunk_bytes: 10, max_concurrent: 2 };
        let mut scheduler = ChunkScheduler::new(config, &files(&[100]), Time(0));
        assert_eq!(started(&mut scheduler), [(0, 0), (0, 10)]);
        scheduler.failed(ChunkRequest { file: 0, offset: 0, len: 10 });
        deliver(&mut scheduler, 0, 10, 10);
        assert_eq!(started(&mut scheduler), [(0, 0)]);
    }

    #[test]
    fn a_late_answer_to_a_failed_request_is_ignored() {
        let config = SchedulerConfig::FileWindow { chunk_bytes: 10, max_concurrent: 1 };
        let mut scheduler = ChunkScheduler::new(config, &files(&[10]), Time(0));
        let request = scheduler.next(Time(0)).unwrap();
        scheduler.failed(request);
        scheduler.delivered(Time(2), request, Delivery::default());
        assert!(!scheduler.is_complete());
        assert_eq!(scheduler.next(Time(3)), Some(request));
    }

    #[test]
    fn nothing_missing_is_complete_at_once() {
        let all = [FileSpan { len: 10, have: 10 }, FileSpan { len: 0, have: 0 }];
        let config = SchedulerConfig::Adaptive { memory_max_bytes: 64 << 20 };
        let mut scheduler = ChunkScheduler::new(config, &all, Time(0));
        assert!(scheduler.is_complete());
        assert_eq!((scheduler.next(Time(0)), scheduler.wake_at()), (None, None));
    }

    #[test]
    fn a_wake_is_never_in_the_past() {
        let mut scheduler = ChunkScheduler::new(
            SchedulerConfig::FileWindow { chunk_bytes: 1000, max_concurrent: 1 },
            &files(&[1 << 30]),
            Time(0),
        );
        let old = scheduler.next(Time(0)).unwrap();
        let config = SchedulerConfig::Adaptive { memory_max_bytes: 64 << 20 };
        scheduler.reconfigure(Time(1), config);
        scheduler.round_trip(Time(1), Duration::ZERO);
        let mut now = Time(1);
        for step in 0..200 {
            while scheduler.next(now).is_some() {}
            if step == 50 {
                let pressed = Delivery { foreground_pressure: true, ..Delivery::default() };
                scheduler.delivered(now, old, pressed);
            }
            let Some(at) = scheduler.wake_at() else { break };
            assert!(at > now, "step {step}: {at:?} at {now:?}");
            now = at;
        }
        assert!(now > Time(1), "the opening goes on with the time");
    }

    fn any_config() -> impl Strategy<Value = SchedulerConfig> {
        let chunk = 0u64..5000;
        let many = 0usize..6;
        prop_oneof![
            (chunk.clone(), many.clone()).prop_map(|(chunk_bytes, max_concurrent)| {
                SchedulerConfig::ParallelFiles { chunk_bytes, max_concurrent }
            }),
            (chunk, many).prop_map(|(chunk_bytes, max_concurrent)| {
                SchedulerConfig::FileWindow { chunk_bytes, max_concurrent }
            }),
            (0u64..40_000)
                .prop_map(|memory_max_bytes| SchedulerConfig::Adaptive { memory_max_bytes }),
        ]
    }

    #[derive(Clone, Debug)]
    enum Event {
        Deliver { which: usize, throttled_us: u64, pressure: bool },
        Fail { which: usize },
        Reconfigure(SchedulerConfig),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            8 => (any::<usize>(), 0u64..500, any::<bool>()).prop_map(|(which, throttled_us, pressure)| {
                Event::Deliver { which, throttled_us, pressure }
            }),
            2 => any::<usize>().prop_map(|which| Event::Fail { which }),
            1 => any_config().prop_map(Event::Reconfigure),
        ]
    }

    /// What was requested when, and which bytes have been delivered.
    struct Checker {
        scheduler: ChunkScheduler,
        config: SchedulerConfig,
        /// Whether everything in flight was started under `config`.
        settled: bool,
        flying: Vec<(ChunkRequest, Time)>,
        have: Vec<Vec<bool>>,
        now: Time,
    }

    impl Checker {
        fn start_all(&mut self) {
            while let Some(request) = self.scheduler.next(self.now) {
                let range = request.offset as usize..request.offset as usize + request.len as usize;
                assert!(request.len > 0 && range.end <= self.have[request.file as usize].len());
                assert!(
                    !self.have[request.file as usize][range].iter().any(|b| *b),
                    "fetched twice"
                );
                let overlaps = self.flying.iter().any(|(r, _)| {
                    r.file == request.file
                        && r.offset < request.offset + u64::from(request.len)
                        && request.offset < r.offset + u64::from(r.len)
                });
                assert!(!overlaps, "{request:?} is in flight already");
                self.flying.push((request, self.now));
            }
            assert!(!self.flying.is_empty() || self.scheduler.is_complete(), "stuck");
            assert!(self.scheduler.wake_at().is_none_or(|at| at > self.now), "woken for ever");
            self.check_bounds();
        }

        fn check_bounds(&self) {
            assert_eq!(self.scheduler.in_flight(), self.flying.len());
            let bytes: u64 = self.flying.iter().map(|(r, _)| u64::from(r.len)).sum();
            assert_eq!(self.scheduler.in_flight_bytes(), bytes);
            if !self.settled {
                return;
            }
            let files: BTreeSet<u32> = self.flying.iter().map(|(r, _)| r.file).collect();
            match self.config {
                SchedulerConfig::ParallelFiles { max_concurrent, .. } => {
                    assert!(self.flying.len() <= max_concurrent.max(1));
                    assert_eq!(files.len(), self.flying.len(), "one chunk a file");
                }
                SchedulerConfig::FileWindow { max_concurrent, .. } => {
                    assert!(self.flying.len() <= max_concurrent.max(1));
                }
                SchedulerConfig::Adaptive { memory_max_bytes } => {
                    assert!(bytes <= memory_max_bytes.max(1), "{bytes} of {memory_max_bytes}");
                }
            }
        }

        fn apply(&mut self, event: Event) {
            self.now = self.now + Duration::from_micros(300);
            match event {
                Event::Deliver { which, throttled_us, pressure } if !self.flying.is_empty() => {
                    let (request, at) = self.flying.swap_remove(which % self.flying.len());
                    let from = request.offset as usize;
                    self.have[request.file as usize][from..from + request.len as usize].fill(true);
                    let delivery = Delivery {
                        requested_at: at,
                        throttled: Duration::from_micros(throttled_us),
                        foreground_pressure: pressure,
                    };
                    self.scheduler.delivered(self.now, request, delivery);
                }
                Event::Fail { which } if !self.flying.is_empty() => {
                    let (request, _) = self.flying.swap_remove(which % self.flying.len());
                    self.scheduler.failed(request);
                }
                Event::Reconfigure(config) => {
                    self.config = config;
                    self.settled = self.flying.is_empty();
                    self.scheduler.reconfigure(self.now, config);
                }
                _ => {}
            }
            self.settled |= self.flying.is_empty();
            self.start_all();
        }
    }

    proptest! {
        #[test]
        fn every_byte_is_fetched_exactly_once(
            config in any_config(),
            spans in prop::collection::vec((0u64..20_000, 0u64..20_000), 0..8),
            events in prop::collection::vec(any_event(), 0..200),
        ) {
            let files: Vec<_> = spans.iter().map(|&(len, have)| FileSpan { len, have }).collect();
            let have = files.iter().map(|f| {
                (0..f.len).map(|i| i < f.have).collect()
            }).collect();
            let scheduler = ChunkScheduler::new(config, &files, Time(0));
            let mut checker =
                Checker { scheduler, config, settled: true, flying: vec![], have, now: Time(0) };
            checker.start_all();
            events.into_iter().for_each(|event| checker.apply(event));
            checker.apply(Event::Reconfigure(SchedulerConfig::FileWindow {
                chunk_bytes: 3000,
                max_concurrent: 3,
            }));
            let mut which = 0;
            while !checker.flying.is_empty() {
                which += 7;
                checker.apply(Event::Deliver { which, throttled_us: 0, pressure: false });
            }
            prop_assert!(checker.scheduler.is_complete());
            prop_assert!(checker.have.iter().flatten().all(|b| *b), "a gap");
        }
    }
}
