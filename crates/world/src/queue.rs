//! Queues with rates: the models of links, disks and cores. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::{Disk, DiskScheduler, at_rate};
use crate::{Time, Work};

/// One server that works first come, first served.
#[derive(Clone, Debug, Default)]
pub struct RateQueue {
    free_at: Time,
    busy: Duration,
}

impl RateQueue {
    /// Queues a job of the given length; answers when it will be done.
    pub fn reserve(&mut self, now: Time, service: Duration) -> Time {
        self.free_at = self.free_at.max(now) + service;
        self.busy += service;
        self.free_at
    }

    /// How long a job that arrives now would wait.
    pub fn backlog(&self, now: Time) -> Duration {
        self.free_at - now
    }

    /// Time spent serving until `now`, since the beginning.
    pub fn busy(&self, now: Time) -> Duration {
        self.busy.saturating_sub(self.backlog(now))
    }
}

/// How long at least one of several waited.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    waiting: usize,
    since: Time,
    total: Duration,
}

impl Waits {
    pub fn begin(&mut self, now: Time) {
        if self.waiting == 0 {
            self.since = now;
        }
        self.waiting += 1;
    }

    /// The end of a wait that began.
    pub fn end(&mut self, now: Time) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.total += now - self.since;
        }
    }

    #[cfg(test)]
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub fn so_far(&self, now: Time) -> Duration {
        let running = if self.waiting > 0 { now - self.since } else { Duration::ZERO };
        self.total + running
    }
}

/// How long anything of many went on that overlap: what goes on side by side counts once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupied {
    total: Duration,
    until: Time,
}

impl Occupied {
    /// Something begins now and goes on until then. Calls come in the order of their beginnings.
    pub fn add(&mut self, now: Time, until: Time) {
        self.total += until - self.until.max(now);
        self.until = self.until.max(until);
    }

    /// How long anything went on until `now`.
    pub fn so_far(&self, now: Time) -> Duration {
        self.total.saturating_sub(self.until - now)
    }
}

/// Several servers with one queue; the one that is free first takes the job.
#[derive(Clone, Debug)]
pub struct CoreQueue {
    cores: Vec<RateQueue>,
    /// Time served by cores that were removed.
    served_before: Duration,
}

impl CoreQueue {
    /// A queue of `cores` servers, at least one.
    pub fn new(cores: usize) -> Self {
        CoreQueue { cores: vec![RateQueue::default(); cores.max(1)], served_before: Duration::ZERO }
    }

    /// Changes the number of servers; a removed one still finishes its jobs.
    pub fn resize(&mut self, cores: usize) {
        let cores = cores.max(1);
        if cores < self.cores.len() {
            self.served_before += self.cores.drain(cores..).map(|core| core.busy).sum::<Duration>();
        }
        self.cores.resize_with(cores, RateQueue::default);
    }

    /// Queues a job of the given length; answers when it will be done.
    pub fn reserve(&mut self, now: Time, service: Duration) -> Time {
        let first = self.cores.iter_mut().min_by_key(|c| c.free_at).expect("at least one core");
        first.reserve(now, service)
    }

    /// When a job that arrives now would begin.
    pub fn start(&self, now: Time) -> Time {
        self.cores.iter().map(|c| c.free_at).min().unwrap_or_default().max(now)
    }

    /// Servers.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// Servers that are at work.
    pub fn occupied(&self, now: Time) -> usize {
        self.cores.iter().filter(|core| core.free_at > now).count()
    }

    /// Time of all jobs so far, over all cores, those that wait included.
    pub fn given(&self) -> Duration {
        self.served_before + self.cores.iter().map(|core| core.busy).sum::<Duration>()
    }

    /// Time spent serving until `now`, over all cores.
    pub fn busy(&self, now: Time) -> Duration {
        self.served_before + self.cores.iter().map(|c| c.busy(now)).sum::<Duration>()
    }
}

/// A disk: operations that seek side by side, up to its queue depth, and share its rate.
///
/// An operation is split into requests, one after the other. Each pays the seek and, under CFQ, the time that
/// the scheduler leaves the device idle after a read or a sync. CFQ gives the device to one process at a time, so
/// its depth is one. Writes are buffered and asynchronous: CFQ does not idle for them (`block/cfq-iosched.c`).
#[derive(Clone, Debug, Default)]
pub struct DiskQueue {
    heads: CoreQueue,
    line: RateQueue,
    /// Of all queued operations, also of bytes that pass the line later.
    counts: DiskCounts,
    /// When the bytes of each operation pass the line, in order. Operations that passed long ago are forgotten.
    passes: VecDeque<Pass>,
    busy: Occupied,
}

/// Bytes of an operation that pass the line of a disk.
#[derive(Clone, Copy, Debug)]
struct Pass {
    until: Time,
    takes: Duration,
    work: Work,
}

impl Pass {
    /// Its bytes that are still to pass.
    fn left(&self, now: Time, bytes: u64) -> u64 {
        let left = (self.until - now).min(self.takes);
        let share = u128::from(bytes) * left.as_nanos() / self.takes.as_nanos().max(1);
        share as u64
    }
}

/// What a disk did so far, as the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which at least one operation was under way.
    pub busy: Duration,
}

impl Default for CoreQueue {
    fn default() -> Self {
        CoreQueue::new(1)
    }
}

impl DiskQueue {
    /// Queues an operation; answers when it will be done. Work that is not a disk's is done at once.
    pub fn reserve(&mut self, now: Time, disk: &Disk, work: Work) -> Time {
        let done = self.queue(now, disk, work);
        match work {
            Work::DiskRead { bytes } => self.counts.read_bytes += bytes,
            Work::DiskWrite { bytes } => self.counts.written_bytes += bytes,
            _ => {}
        }
        self.busy.add(now, done);
        done
    }

    /// What it did until `now`. The kernel counts the bytes of a request when it is done; those of an operation, which
    /// is many requests, count here as they pass.
    pub fn counts(&self, now: Time) -> DiskCounts {
        let mut counts = DiskCounts { busy: self.busy.so_far(now), ..self.counts };
        for pass in &self.passes {
            match pass.work {
                Work::DiskRead { bytes } => counts.read_bytes -= pass.left(now, bytes),
                Work::DiskWrite { bytes } => counts.written_bytes -= pass.left(now, bytes),
                _ => {}
            }
        }
        counts
    }

    fn queue(&mut self, now: Time, disk: &Disk, work: Work) -> Time {
        let (bytes, rate, sync) = match work {
            Work::DiskRead { bytes } => (bytes, disk.read_bytes_per_s, true),
            Work::DiskWrite { bytes } => (bytes, disk.write_bytes_per_s, false),
            Work::DiskSync => return self.heads(disk).reserve(now, disk.sync + idle(disk, true)),
            _ => return now,
        };
        let requests = bytes.div_ceil(disk.request_bytes.max(1)).max(1);
        let each = disk.seek + idle(disk, sync);
        let seeks = each * u32::try_from(requests).unwrap_or(u32::MAX);
        let transfer = at_rate(bytes, rate);
        let alone = self.heads(disk).start(now) + seeks;
        // Its bytes pass once its head is in place and the line, which operations share, is free.
        let done = self.line.reserve(alone, transfer);
        while self.passes.front().is_some_and(|pass| pass.until <= now) {
            self.passes.pop_front();
        }
        self.passes.push_back(Pass { until: done, takes: transfer, work });
        self.heads.reserve(now, seeks + (done - alone));
        done
    }

    fn heads(&mut self, disk: &Disk) -> &mut CoreQueue {
        let depth = match disk.scheduler {
            DiskScheduler::Noop | DiskScheduler::Deadline => disk.queue_depth as usize,
            DiskScheduler::Cfq => 1,
        };
        if self.heads.len() != depth {
            self.heads.resize(depth);
        }
        &mut self.heads
    }
}

fn idle(disk: &Disk, sync: bool) -> Duration {
    match disk.scheduler {
        DiskScheduler::Cfq if sync => disk.slice_idle,
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn jobs_wait_for_each_other() {
        let mut queue = RateQueue::default();
        assert_eq!(queue.reserve(Time(0), 3 * MS), Time(3_000_000));
        assert_eq!(queue.reserve(Time(1_000_000), MS), Time(4_000_000));
        assert_eq!(queue.backlog(Time(1_000_000)), 3 * MS);
        assert_eq!(queue.busy(Time(2_000_000)), 2 * MS);
        assert_eq!(queue.reserve(Time(9_000_000), MS), Time(10_000_000));
        assert_eq!(queue.busy(Time(20_000_000)), 5 * MS);
    }

    #[test]
    fn cores_work_side_by_side() {
        let mut cores = CoreQueue::new(2);
        assert_eq!(cores.reserve(Time(0), 4 * MS), Time(4_000_000));
        assert_eq!(cores.reserve(Time(0), MS), Time(1_000_000));
        assert_eq!(cores.reserve(Time(0), MS), Time(2_000_000));
        assert_eq!(cores.busy(Time(10_000_000)), 6 * MS);
        cores.resize(1);
        assert_eq!(cores.busy(Time(10_000_000)), 6 * MS);
    }

    /// Reads `operations` of 512 KB one after the other; answers bytes a second.
    fn read_rate(disk: &Disk, operations: u64) -> f64 {
        let mut queue = DiskQueue::default();
        let work = Work::DiskRead { bytes: 512 << 10 };
        let mut now = Time(0);
        for _ in 0..operations {
            now = queue.reserve(now, disk, work);
        }
        (operations * (512 << 10)) as f64 / now.as_secs_f64()
    }

    #[test]
    fn cfq_gives_the_rate_of_the_slides_and_noop_the_device() {
        let mut disk = Disk {
            read_bytes_per_s: 2_000_000_000,
            request_bytes: 512 << 10,
            seek: Duration::ZERO,
            queue_depth: 32,
            scheduler: DiskScheduler::Cfq,
            ..Disk::default()
        };
        // 512 KB / (8 ms + 0.26 ms): the slides' 66 MB/s, to 4 %.
        let cfq = read_rate(&disk, 100);
        assert!((cfq - 63.46e6).abs() < 0.01e6, "{cfq}");
        // One large operation is split, and costs the same.
        let whole =
            DiskQueue::default().reserve(Time(0), &disk, Work::DiskRead { bytes: 32 << 20 });
        assert!(((32 << 20) as f64 / whole.as_secs_f64() - cfq).abs() < 1.0);
        for never_idle in [DiskScheduler::Noop, DiskScheduler::Deadline] {
            disk.scheduler = never_idle;
            assert!((read_rate(&disk, 100) - 2.0e9).abs() < 1e6, "{never_idle:?}");
        }
        // Buffered writes are not idled for.
        disk.scheduler = DiskScheduler::Cfq;
        let write = Work::DiskWrite { bytes: 512 << 10 };
        let took = DiskQueue::default().reserve(Time(0), &disk, write);
        assert_eq!(took, Time(262_144));
    }

    #[test]
    fn operations_seek_side_by_side_and_share_the_rate() {
        let disk = |queue_depth| Disk {
            read_bytes_per_s: 100_000_000,
            seek: 10 * MS,
            queue_depth,
            ..Disk::default()
        };
        let read = Work::DiskRead { bytes: 100_000 };
        let last = |depth| {
            let mut queue = DiskQueue::default();
            (0..100).map(|_| queue.reserve(Time(0), &disk(depth), read)).max().unwrap()
        };
        // Each seeks 10 ms and reads 1 ms: one at a time, four at a time, and as fast as the line.
        assert_eq!(last(1), Time(1_100_000_000));
        let four = last(4).as_secs_f64();
        assert!((0.275..=0.278).contains(&four), "{four}");
        assert_eq!(last(100), Time(110_000_000));
    }

    #[test]
    fn a_disk_is_busy_once_with_what_goes_on_side_by_side() {
        let disk =
            Disk { read_bytes_per_s: 1_000_000, seek: 2 * MS, queue_depth: 2, ..Disk::default() };
        let mut queue = DiskQueue::default();
        let read = Work::DiskRead { bytes: 1000 };
        // Both seek at once; their bytes pass one after the other.
        assert_eq!(queue.reserve(Time(0), &disk, read), Time(3_000_000));
        assert_eq!(queue.reserve(Time(0), &disk, read), Time(4_000_000));
        let seeking = DiskCounts { busy: MS, ..DiskCounts::default() };
        assert_eq!(queue.counts(Time(1_000_000)), seeking);
        // Bytes count as they pass: all of the first, and half of the second.
        assert_eq!(queue.counts(Time(3_500_000)).read_bytes, 1500);
        queue.reserve(Time(10_000_000), &disk, read);
        let counts = queue.counts(Time(20_000_000));
        assert_eq!(counts, DiskCounts { read_bytes: 3000, written_bytes: 0, busy: 7 * MS });
    }

    #[test]
    fn a_scheduler_changes_while_it_runs() {
        let mut queue = DiskQueue::default();
        let mut disk =
            Disk { scheduler: DiskScheduler::Cfq, seek: Duration::ZERO, ..Disk::default() };
        let read = Work::DiskRead { bytes: 0 };
        assert_eq!(queue.reserve(Time(0), &disk, read), Time(8_000_000));
        disk.scheduler = DiskScheduler::Noop;
        // What was under way is still waited for.
        assert_eq!(queue.reserve(Time(0), &disk, read), Time(8_000_000));
        assert_eq!(queue.reserve(Time(9_000_000), &disk, Work::DiskSync), Time(9_110_000));
    }
}
