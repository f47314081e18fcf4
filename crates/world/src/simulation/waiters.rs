//! Tasks that wait for something in the world.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Waiting tasks, in the order in which they came.
#[derive(Default)]
pub(super) struct Waiters(RefCell<Vec<Waker>>);

impl Waiters {
    /// Waits until `ready` has a value; it is asked again whenever the waiters are woken.
    pub(super) async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match ready() {
            Some(value) => Poll::Ready(value),
            None => {
                self.add(context.waker());
                Poll::Pending
            }
        })
        .await
    }

    fn add(&self, waker: &Waker) {
        let mut waiting = self.0.borrow_mut();
        if !waiting.iter().any(|one| one.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    pub(super) fn wake(&self) {
        if self.0.borrow().is_empty() {
            return;
        }
        // Woken tasks run later, so none is added during the loop.
        let mut waiting = self.0.borrow_mut();
        for waker in waiting.drain(..) {
            waker.wake();
        }
    }

    pub(super) fn each(&self, mut show: impl FnMut(&Waker)) {
        self.0.borrow().iter().for_each(&mut show);
    }
}
