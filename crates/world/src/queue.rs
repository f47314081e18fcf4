//! Queues with rates: the models of links, disks and cores. Pure.

use std::time::Duration;

use crate::Time;

/// One server that works first come, first served.
#[derive(Clone, Debug, Default)]
pub struct RateQueue {
    free_at: Time,
    busy: Duration,
}

impl RateQueue {
    /// Takes a job of the given length; answers when it will be done.
    pub fn reserve(&mut self, now: Time, service: Duration) -> Time {
        self.free_at = self.free_at.max(now) + service;
        self.busy += service;
        self.free_at
    }

    /// How long a job that came now would wait.
    pub fn backlog(&self, now: Time) -> Duration {
        self.free_at - now
    }

    /// Time spent serving until `now`, since the beginning.
    pub fn busy(&self, now: Time) -> Duration {
        self.busy.saturating_sub(self.backlog(now))
    }
}

/// Several servers with one queue; the one that is free first takes the job.
#[derive(Clone, Debug)]
pub struct CoreQueue {
    cores: Vec<RateQueue>,
}

impl CoreQueue {
    /// A queue of `cores` servers, at least one.
    pub fn new(cores: usize) -> Self {
        CoreQueue { cores: vec![RateQueue::default(); cores.max(1)] }
    }

    /// Takes a job of the given length; answers when it will be done.
    pub fn reserve(&mut self, now: Time, service: Duration) -> Time {
        let first = self.cores.iter_mut().min_by_key(|c| c.free_at).expect("at least one core");
        first.reserve(now, service)
    }

    /// Time spent serving until `now`, over all cores.
    pub fn busy(&self, now: Time) -> Duration {
        self.cores.iter().map(|c| c.busy(now)).sum()
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
    }
}
