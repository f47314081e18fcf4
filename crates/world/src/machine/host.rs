//! A host of the real world: its clock, its random numbers, its counters.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::timer;
use super::work::{self, Lanes};
use crate::counters::NetCounters;
use crate::model::Disk;
use crate::queue::{DiskCounts, DiskQueue};
use crate::task::{Abort, Body};
use crate::{Time, Work};

/// A host of the real world: this process, or a part of it that has a name.
#[derive(Debug)]
pub(crate) struct Host {
    began: Instant,
    seed: u64,
    random: RefCell<Xoshiro256PlusPlus>,
    counters: Rc<NetCounters>,
    /// How many times as long work takes.
    slowness: Cell<f64>,
    /// A disk in place of the machine's own, and what waits for it.
    disk: RefCell<Option<(Disk, DiskQueue)>>,
    /// Wakes work that waits for an emulated disk that was replaced or taken away.
    disk_changed: Notify,
    lanes: Lanes,
}

impl Host {
    pub(crate) fn new(began: Instant, seed: u64, name: &str) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed));
        let (random, slowness) = (RefCell::new(random), Cell::new(1.0));
        let (counters, disk, lanes) = (Rc::default(), RefCell::default(), Lanes::default());
        let disk_changed = Notify::new();
        Host { began, seed, random, counters, slowness, disk, disk_changed, lanes }
    }

    pub(crate) fn sibling(&self, name: &str) -> Host {
        Host::new(self.began, self.seed, name)
    }

    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) async fn sleep_until(&self, when: Time) {
        timer::sleep_until(self.began + Duration::from_nanos(when.0)).await;
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            self.sleep_until(self.now() + duration).await;
        }
    }

    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: Work,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let began = self.now();
        let through = self.emulated(|disk, queue| queue.reserve(began, disk, work));
        // It listens from here on: the disk may change while the work is done.
        let changed = self.disk_changed.notified();
        let value = work::work(&self.lanes, work, f).await;
        self.lengthen(began).await;
        if let Some(through) = through.filter(|through| *through > began) {
            tokio::select! {
                () = self.sleep_until(through) => {}
                () = changed => {}
            }
        }
        value
    }

    /// From now on, work on a disk takes as long as on this one at least; without, as long as the machine's own takes.
    /// What waited for the disk before is through.
    pub(crate) fn emulate_disk(&self, disk: Option<Disk>) {
        self.disk.replace(disk.map(|disk| (disk, DiskQueue::default())));
        self.disk_changed.notify_waiters();
    }

    /// What the disk did that is emulated; the machine's own is not counted by host.
    pub(crate) fn disk_counts(&self) -> Option<DiskCounts> {
        self.emulated(|_, queue| queue.counts(self.now()))
    }

    fn emulated<T>(&self, of: impl FnOnce(&Disk, &mut DiskQueue) -> T) -> Option<T> {
        self.disk.borrow_mut().as_mut().map(|(disk, queue)| of(disk, queue))
    }

    pub(crate) fn slow_down(&self, factor: f64) {
        self.slowness.set(factor.max(1.0));
    }

    /// Waits for what slowness adds to work that began at that moment and has just ended.
    async fn lengthen(&self, began: Time) {
        let more = self.slowness.get() - 1.0;
        if more > 0.0 {
            let now = self.now();
            self.sleep_until(now + (now - began).mul_f64(more)).await;
        }
    }

    pub(crate) fn random_u64(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// From 0 to 1, and never 1.
    pub(crate) fn random_share(&self) -> f64 {
        (self.random_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn counters(&self) -> &Rc<NetCounters> {
        &self.counters
    }
}

struct AbortTask(tokio::task::AbortHandle);

impl Abort for AbortTask {
    fn abort(&self) {
        self.0.abort();
    }
}

pub(crate) fn spawn(body: Body) -> Box<dyn Abort> {
    Box::new(AbortTask(tokio::task::spawn_local(body).abort_handle()))
}

/// Core seconds that this process has used, in user and kernel mode, ended threads included. Zero where
/// the system has no `/proc`.
pub(crate) fn process_cpu_time() -> Duration {
    // utime and stime are fields 14 and 15, in hundredths of a second; the name in field 2 may hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 =
        after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_the_disk_that_is_emulated_and_its_counts_are_told() {
        crate::real_world::run(7, async |env| {
            let writes = async || {
                let one = || env.work(Work::DiskWrite { bytes: 10_000 }, || "written");
                assert_eq!(tokio::join!(one(), one()), ("written", "written"));
            };
            writes().await;
            assert_eq!(env.disk_counts(), None, "the machine's own is not counted");
            env.emulate_disk(Some(Disk { write_bytes_per_s: 1_000_000, ..Disk::default() }));
            writes().await;
            let counts = env.disk_counts().unwrap();
            assert_eq!((counts.read_bytes, counts.written_bytes), (0, 20_000));
            // One after the other, and both are through.
            assert!(counts.busy >= Duration::from_millis(20), "{counts:?}");
            env.emulate_disk(None);
            assert_eq!(env.disk_counts(), None);
        });
    }

    #[test]
    fn work_does_not_wait_for_a_disk_that_was_taken_away() {
        crate::real_world::run(7, async |env| {
            env.emulate_disk(Some(Disk { write_bytes_per_s: 1, ..Disk::default() }));
            let write = env.work(Work::DiskWrite { bytes: 1 << 20 }, || ());
            let lift = async {
                env.sleep(Duration::from_millis(5)).await;
                env.emulate_disk(None);
            };
            // On that disk it would take twelve days.
            tokio::join!(write, lift);
        });
    }
}
