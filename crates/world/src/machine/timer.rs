//! Sleeping to some 50 microseconds, which event loops with a tick of a millisecond cannot.
//!
//! One thread for each process waits on a condition variable until the next deadline and wakes its task.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

#[derive(Default)]
struct Alarms {
    next_id: u64,
    waiting: BTreeMap<(Instant, u64), Waker>,
}

#[derive(Default)]
struct Timer {
    alarms: Mutex<Alarms>,
    changed: Condvar,
}

impl Timer {
    fn get() -> &'static Timer {
        static TIMER: OnceLock<&'static Timer> = OnceLock::new();
        TIMER.get_or_init(|| {
            let timer: &'static Timer = Box::leak(Box::default());
            std::thread::Builder::new()
                .name("timer".to_owned())
                .spawn(move || timer.serve())
                .expect("the timer needs one thread; raise the limit of processes");
            timer
        })
    }

    fn lock(&self) -> MutexGuard<'_, Alarms> {
        // A waker that panics leaves the map whole.
        self.alarms.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut alarms = self.lock();
        loop {
            let now = Instant::now();
            let Some((&key, _)) = alarms.waiting.first_key_value() else {
                alarms = self.changed.wait(alarms).unwrap_or_else(|p| p.into_inner());
                continue;
            };
            if key.0 > now {
                let wait = key.0 - now;
                alarms =
                    self.changed.wait_timeout(alarms, wait).unwrap_or_else(|p| p.into_inner()).0;
                continue;
            }
            let waker = alarms.waiting.remove(&key).expect("the first key is there");
            drop(alarms);
            waker.wake();
            alarms = self.lock();
        }
    }
}

pub(super) fn sleep_until(when: Instant) -> Sleep {
    Sleep { when, id: None }
}

pub(super) struct Sleep {
    when: Instant,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.when {
            return Poll::Ready(());
        }
        let timer = Timer::get();
        let mut alarms = timer.lock();
        let id = *self.id.get_or_insert_with(|| {
            alarms.next_id += 1;
            alarms.next_id
        });
        let key = (self.when, id);
        let first = alarms.waiting.first_key_value().is_none_or(|(&earliest, _)| key < earliest);
        alarms.waiting.insert(key, cx.waker().clone());
        drop(alarms);
        if first {
            timer.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            Timer::get().lock().waiting.remove(&(self.when, id));
        }
    }
}
