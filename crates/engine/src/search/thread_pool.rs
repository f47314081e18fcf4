//! The search thread pool: so many searches of a node run at once, so many wait, and more are refused.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::transport::{Failure, Result};

/// Weight of a new sample in the average of service times, as in the field's
/// `TaskExecutionTimeTrackingEsThreadPoolExecutor`.
const ALPHA: f64 = 0.3;
/// Searches that went away while they waited stay in the line, until they are so many more than those that wait.
const GONE_MAX: usize = 64;

/// A pool. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct ThreadPool(Rc<Inner>);

struct Inner {
    counts: Cell<PoolStats>,
    /// Those whose receiver is gone are passed over, and not counted: how many wait is asked several times in each
    /// search, and the line may be long.
    waiting: RefCell<VecDeque<oneshot::Sender<Slot>>>,
    service_ns: Cell<Option<f64>>,
}

/// A pool in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolStats {
    pub(crate) size: usize,
    pub(crate) queue_size: usize,
    pub(crate) active: usize,
    pub(crate) queue: usize,
    pub(crate) largest: usize,
    pub(crate) completed: u64,
    pub(crate) rejected: u64,
}

impl Inner {
    fn count(&self, change: impl FnOnce(&mut PoolStats)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Puts a search at the end of the line, in which so many others wait.
    fn line_up(&self, search: oneshot::Sender<Slot>, others: usize) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() > 2 * others + GONE_MAX {
            waiting.retain(|sender| !sender.is_closed());
        }
        waiting.push_back(search);
    }
}

/// A place among those that run; free again when dropped.
pub(crate) struct Slot(Rc<Inner>);

impl Drop for Slot {
    fn drop(&mut self) {
        let inner = &self.0;
        inner.count(|counts| {
            (counts.completed, counts.active) = (counts.completed + 1, counts.active - 1)
        });
        loop {
            let Some(next) = inner.waiting.borrow_mut().pop_front() else { return };
            if next.is_closed() {
                continue;
            }
            inner.count(|counts| {
                (counts.active, counts.queue) = (counts.active + 1, counts.queue - 1);
            });
            // If the waiting search has just gone away, dropping its slot frees it again.
            if let Err(slot) = next.send(Slot(inner.clone())) {
                inner.count(|counts| counts.completed -= 1);
                drop(slot);
            }
            return;
        }
    }
}

/// A search that waits for a place. It is counted until it is given one, or goes away.
struct Waiting<'a> {
    pool: &'a Inner,
    place: oneshot::Receiver<Slot>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Who was given a place has left the line. A place that was not taken up is free again.
        if let Err(TryRecvError::Empty) = self.place.try_recv() {
            self.pool.count(|counts| counts.queue -= 1);
        }
    }
}

impl ThreadPool {
    pub(crate) fn new(size: usize, queue_size: usize) -> Self {
        let counts = PoolStats { size: size.max(1), queue_size, ..PoolStats::default() };
        let (counts, service_ns) = (Cell::new(counts), Cell::new(None));
        ThreadPool(Rc::new(Inner { counts, waiting: RefCell::default(), service_ns }))
    }

    /// Waits for a place. Fails with 429 if too many wait already.
    pub(crate) async fn enter(&self) -> Result<Slot> {
        let inner = &self.0;
        let PoolStats { size, queue_size, active, queue, .. } = self.stats();
        if active < size {
            inner.count(|counts| {
                counts.active += 1;
                counts.largest = counts.largest.max(counts.active);
            });
            return Ok(Slot(inner.clone()));
        }
        if queue >= queue_size {
            inner.count(|counts| counts.rejected += 1);
            let reason = format!(
                "rejected execution of a search: [{active}] run and [{queue}] wait, which is the capacity of its queue \
                 (thread_pool.search.queue_size)",
            );
            return Err(Failure::new(429, "es_rejected_execution_exception", reason));
        }
        let (sender, place) = oneshot::channel();
        let mut waiting = Waiting { pool: inner, place };
        inner.count(|counts| counts.queue += 1);
        inner.line_up(sender, queue);
        let gone = || Failure::new(500, "illegal_state_exception", "the search pool is gone");
        (&mut waiting.place).await.map_err(|_| gone())
    }

    /// Searches that run or wait.
    pub(crate) fn in_flight(&self) -> u64 {
        let PoolStats { active, queue, .. } = self.stats();
        (active + queue) as u64
    }

    /// So many may run from now on. Who waits already begins when one of those that run has ended.
    pub(crate) fn resize(&self, size: usize) {
        self.0.count(|counts| counts.size = size.max(1));
    }

    /// Notes how long a search took once it ran.
    pub(crate) fn served_in(&self, time: Duration) {
        let sample = time.as_nanos() as f64;
        let average = match self.0.service_ns.get() {
            None => sample,
            Some(average) => average + ALPHA * (sample - average),
        };
        self.0.service_ns.set(Some(average));
    }

    /// Moving average of service times.
    pub(crate) fn service_time(&self) -> Duration {
        Duration::from_nanos(self.0.service_ns.get().unwrap_or(0.0) as u64)
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.0.counts.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_run_so_many_wait_and_more_are_refused() {
        world::virtual_world::run(1, |env| async move {
            let pool = ThreadPool::new(2, 3);
            let run = |pool: &ThreadPool, ms: u64| {
                let (pool, env2) = (pool.clone(), env.clone());
                env.spawn("searches", async move {
                    let slot = pool.enter().await?;
                    env2.sleep(Duration::from_millis(ms)).await;
                    drop(slot);
                    Ok::<_, Failure>(env2.now())
                })
            };
            let began = env.now();
            let tasks: Vec<_> = (0..6).map(|_| run(&pool, 10)).collect();
            env.sleep(Duration::from_millis(1)).await;
            let stats = pool.stats();
            assert_eq!((stats.active, stats.queue, stats.largest, stats.rejected), (2, 3, 2, 1));
            let mut ends = Vec::new();
            for task in tasks {
                match task.await.unwrap() {
                    Ok(end) => ends.push((end - began).as_millis()),
                    Err(failure) => {
                        assert_eq!(
                            (failure.status, failure.kind.as_str()),
                            (429, "es_rejected_execution_exception")
                        );
                        assert!(failure.reason.contains("thread_pool.search.queue_size"));
                    }
                }
            }
            assert_eq!(ends, [10, 10, 20, 20, 30], "in the order of their coming");
            let stats = pool.stats();
            assert_eq!((stats.active, stats.queue, stats.completed), (0, 0, 5));
        });
    }

    #[test]
    fn who_hangs_up_leaves_no_slot_behind() {
        world::virtual_world::run(1, |env| async move {
            let pool = ThreadPool::new(1, 10);
            let first = pool.enter().await.unwrap();
            let mut waiting: Vec<_> = (0..4)
                .map(|_| {
                    let pool = pool.clone();
                    env.spawn("waits", async move { pool.enter().await.map(drop) })
                })
                .collect();
            env.sleep(Duration::from_millis(1)).await;
            assert_eq!(pool.stats().queue, 4);
            drop(waiting.remove(0));
            drop(waiting.remove(1));
            assert_eq!(pool.stats().queue, 2);
            drop(first);
            for task in waiting {
                task.await.unwrap().unwrap();
            }
            let stats = pool.stats();
            assert_eq!((stats.active, stats.queue), (0, 0));
        });
    }

    #[test]
    fn a_line_that_does_not_move_forgets_who_hung_up() {
        world::virtual_world::run(1, |env| async move {
            let pool = ThreadPool::new(1, 10);
            let first = pool.enter().await.unwrap();
            for _ in 0..1000 {
                let pool2 = pool.clone();
                let waits = env.spawn("waits", async move { pool2.enter().await.map(drop) });
                env.sleep(Duration::from_millis(1)).await;
                assert_eq!(pool.stats().queue, 1);
                drop(waits);
                assert_eq!(pool.stats().queue, 0);
            }
            assert!(pool.0.waiting.borrow().len() <= GONE_MAX + 1);
            drop(first);
            assert_eq!((pool.stats().active, pool.stats().queue), (0, 0));
        });
    }
}
