//! Chunks that are asked for before anybody has told which files there are.
//!
//! Opening a session costs a round trip in which nothing would travel. So the target numbers chunks of a
//! size that it chooses and asks for the first of them together with the session; the source cuts its files in order
//! into that size and sends what bears the number. How many are asked for is what the scheduler would have in flight
//! of one long file, so a prefetch is as bold as the transfer that it begins, and no bolder.

use std::time::Duration;

use world::Time;

use super::chunk::{ChunkRequest, FileSpan};
use super::chunk_scheduler::{ChunkScheduler, SchedulerConfig};

/// A file longer than any: what the transfer is taken for until the files are known.
const UNKNOWN_BYTES: u64 = 1 << 60;

/// Decides which numbers are asked for, and when.
#[derive(Debug)]
pub struct Prefetch {
    scheduler: ChunkScheduler,
    chunk_bytes: u32,
}

impl Prefetch {
    /// A prefetch that begins `now`.
    pub fn new(config: SchedulerConfig, now: Time) -> Self {
        let file = FileSpan { len: UNKNOWN_BYTES, have: 0 };
        let scheduler = ChunkScheduler::new(config, &[file], now);
        let chunk_bytes = scheduler.chunk_bytes().min(u32::MAX.into()) as u32;
        Prefetch { scheduler, chunk_bytes }
    }

    /// A round trip to the source that is known, as [`ChunkScheduler::round_trip`].
    pub fn round_trip(&mut self, now: Time, round_trip: Duration) {
        self.scheduler.round_trip(now, round_trip);
    }

    /// The size that files are cut to. It stays, whatever becomes of the settings meanwhile.
    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// The number to ask for now; none before [`Prefetch::wake_at`].
    pub fn next(&mut self, now: Time) -> Option<u64> {
        let request = self.scheduler.next(now)?;
        Some(request.offset / u64::from(self.chunk_bytes))
    }

    /// When to ask [`Prefetch::next`] again.
    pub fn wake_at(&self) -> Option<Time> {
        self.scheduler.wake_at()
    }
}

/// Which bytes number `number` means, where `file_lens` are cut to chunks of `chunk_bytes` in their order; none
/// past the end. Both sides compute it.
pub fn prefetched_chunk(
    file_lens: impl IntoIterator<Item = u64>,
    chunk_bytes: u32,
    number: u64,
) -> Option<ChunkRequest> {
    let size = u64::from(chunk_bytes.max(1));
    let mut left = number;
    for (file, len) in file_lens.into_iter().enumerate() {
        let chunks = len.div_ceil(size);
        if left < chunks {
            let offset = left * size;
            let len = size.min(len - offset) as u32;
            return Some(ChunkRequest { file: file as u32, offset, len });
        }
        left -= chunks;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What the prefetch asks for is what the transfer begins with: nothing is fetched twice.
        #[test]
        fn numbers_are_the_chunks_that_a_scheduler_cuts(
            lens in prop::collection::vec(0u64..5000, 0..8),
            chunk_bytes in 1u32..2000,
        ) {
            let config = SchedulerConfig::FileWindow {
                chunk_bytes: chunk_bytes.into(),
                max_concurrent: usize::MAX,
            };
            let spans: Vec<FileSpan> =
                lens.iter().map(|&len| FileSpan { len, have: 0 }).collect();
            let mut scheduler = ChunkScheduler::new(config, &spans, Time(0));
            let cut: Vec<_> = std::iter::from_fn(|| scheduler.next(Time(0))).collect();
            let numbered: Vec<_> = (0..)
                .map_while(|number| prefetched_chunk(lens.iter().copied(), chunk_bytes, number))
                .collect();
            prop_assert_eq!(cut, numbered);
        }
    }

    #[test]
    fn a_prefetch_is_as_bold_as_its_scheduler() {
        let config = SchedulerConfig::FileWindow { chunk_bytes: 1 << 20, max_concurrent: 5 };
        let mut prefetch = Prefetch::new(config, Time(0));
        let numbers: Vec<_> = std::iter::from_fn(|| prefetch.next(Time(0))).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert_eq!(prefetch.wake_at(), None);
    }

    #[test]
    fn an_adaptive_prefetch_goes_on_with_the_time_and_then_waits() {
        let config = SchedulerConfig::Adaptive { memory_max_bytes: 1 << 30 };
        let mut prefetch = Prefetch::new(config, Time(0));
        let mut asked = 0;
        let mut now = Time(0);
        loop {
            asked += std::iter::from_fn(|| prefetch.next(now)).count() as u64;
            match prefetch.wake_at() {
                Some(at) => now = at,
                None => break,
            }
        }
        assert!(now - Time(0) > Duration::from_millis(500), "{now:?}");
        assert!(now - Time(0) < Duration::from_secs(1), "it ends: {now:?}");
        let bytes = asked * u64::from(prefetch.chunk_bytes());
        assert!((64 << 20..100 << 20).contains(&bytes), "{bytes}");
    }
}
