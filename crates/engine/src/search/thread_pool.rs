//! The search thread pool: so many searches of a node run at once, so many wait, and more are refused.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::transport::{Failure, Result};

/// Weight of a new sample in the average of service times, as in the field's
/// `TaskExecutionTimeTrackingEsThreadPoolExecutor`.
const ALPHA: f64 = 0.3;

/// A pool. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct ThreadPool(Rc<Inner>);

struct Inner {
    /// Without the queue.
    counts: Cell<PoolStats>,
    /// Those who wait, by the numbers of their coming.
    waiting: RefCell<BTreeMap<u64, oneshot::Sender<Slot>>>,
    next_number: Cell<u64>,
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

    fn has_room(&self) -> bool {
        let PoolStats { active, size, .. } = self.counts.get();
        active < size
    }

    /// Gives the places that are free to those who wait, in the order of their coming.
    fn hand_on(self: &Rc<Self>) {
        while self.has_room() {
            let next = self.waiting.borrow_mut().pop_first();
            let Some((_, waiting)) = next else { return };
            // Who hangs up is not among those who wait.
            let _ = waiting.send(Slot::new(self));
        }
    }
}

/// A place among those that run; free again when dropped, also where it was given to somebody who hangs up.
pub(crate) struct Slot(Rc<Inner>);

impl Slot {
    fn new(pool: &Rc<Inner>) -> Self {
        pool.count(|counts| {
            counts.active += 1;
            counts.largest = counts.largest.max(counts.active);
        });
        Slot(pool.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.count(|counts| {
            (counts.completed, counts.active) = (counts.completed + 1, counts.active - 1)
        });
        self.0.hand_on();
    }
}

/// A search waits under this number until this is dropped, or until it has a place.
struct Waiting<'a>(&'a Inner, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.borrow_mut().remove(&self.1);
    }
}

impl ThreadPool {
    pub(crate) fn new(size: usize, queue_size: usize) -> Self {
        let counts = PoolStats { size: size.max(1), queue_size, ..PoolStats::default() };
        ThreadPool(Rc::new(Inner {
            counts: Cell::new(counts),
            waiting: RefCell::default(),
            next_number: Cell::new(0),
            service_ns: Cell::new(None),
        }))
    }

    /// Waits for a place. Fails with 429 if too many wait already.
    pub(crate) async fn enter(&self) -> Result<Slot> {
        let inner = &self.0;
        if inner.has_room() {
            return Ok(Slot::new(inner));
        }
        let PoolStats { queue_size, active, queue, .. } = self.stats();
        if queue >= queue_size {
            inner.count(|counts| counts.rejected += 1);
            let reason = format!(
                "rejected execution of a search: [{active}] run and [{queue}] wait, which is the capacity of its queue \
                 (thread_pool.search.queue_size)",
            );
            return Err(Failure::new(429, "es_rejected_execution_exception", reason));
        }
        let number = inner.next_number.replace(inner.next_number.get() + 1);
        let (place, given) = oneshot::channel();
        inner.waiting.borrow_mut().insert(number, place);
        let _waiting = Waiting(inner, number);
        Ok(given.await.expect("the other end goes with its place alone"))
    }

    /// Searches that run or wait.
    pub(crate) fn in_flight(&self) -> u64 {
        let PoolStats { active, queue, .. } = self.stats();
        (active + queue) as u64
    }

    /// So many may run from now on. Those that run beyond that give their places up at their end.
    pub(crate) fn resize(&self, size: usize) {
        self.0.count(|counts| counts.size = size.max(1));
        self.0.hand_on();
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
        PoolStats { queue: self.0.waiting.borrow().len(), ..self.0.counts.get() }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use world::Env;

    use super::*;

    testbed::virtual_world!(
        so_many_run_so_many_wait_and_more_are_refused,
        who_hangs_up_leaves_no_slot_behind,
        another_size_holds_for_those_that_wait_and_for_those_that_run,
        a_place_that_nobody_took_is_given_up_where_the_pool_is_smaller_by_then,
    );

    async fn so_many_run_so_many_wait_and_more_are_refused(env: Env) {
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
    }

    async fn who_hangs_up_leaves_no_slot_behind(env: Env) {
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
    }

    async fn another_size_holds_for_those_that_wait_and_for_those_that_run(env: Env) {
        let pool = ThreadPool::new(1, 10);
        let run = || {
            let (pool, env2) = (pool.clone(), env.clone());
            env.spawn("searches", async move {
                let _slot = pool.enter().await.unwrap();
                env2.sleep(Duration::from_millis(10)).await;
            })
        };
        let tasks: Vec<_> = (0..8).map(|_| run()).collect();
        let numbers = async || {
            env.sleep(Duration::from_millis(1)).await;
            (pool.stats().active, pool.stats().queue)
        };
        assert_eq!(numbers().await, (1, 7));
        pool.resize(4);
        assert_eq!(numbers().await, (4, 4), "who waits begins at once");
        pool.resize(2);
        assert_eq!(numbers().await, (4, 4));
        env.sleep(Duration::from_millis(10)).await;
        assert_eq!(numbers().await, (2, 2), "and as many as that run from now on");
        for task in tasks {
            task.await.unwrap();
        }
        let PoolStats { active, queue, completed, .. } = pool.stats();
        assert_eq!((active, queue, completed), (0, 0, 8));
    }

    async fn a_place_that_nobody_took_is_given_up_where_the_pool_is_smaller_by_then(_: Env) {
        async fn waits(mut entering: Pin<&mut impl Future>) -> bool {
            poll_fn(|cx| Poll::Ready(entering.as_mut().poll(cx).is_pending())).await
        }
        let pool = ThreadPool::new(2, 10);
        let (first, second) = (pool.enter().await.unwrap(), pool.enter().await.unwrap());
        let (mut hangs_up, mut next) = (Box::pin(pool.enter()), Box::pin(pool.enter()));
        assert!(waits(hangs_up.as_mut()).await && waits(next.as_mut()).await);
        drop(first);
        pool.resize(1);
        drop(hangs_up);
        assert!(waits(next.as_mut()).await, "another runs, which is all that may");
        assert_eq!((pool.stats().active, pool.stats().queue), (1, 1));
        drop(second);
        drop(next.await.unwrap());
        assert_eq!((pool.stats().active, pool.stats().queue), (0, 0));
    }
}
