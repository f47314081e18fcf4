//! A question that is asked of many nodes at once.
//!
//! The manager asks every node every second whether it is there, and sends every new state to each. Where connections
//! are open, that takes no task, no channel and no time limit for each: of a thousand nodes in virtual time these were
//! a third of all work.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// Answers by the places of those who were asked.
pub(super) struct Round<A> {
    answers: RefCell<Vec<Option<A>>>,
    missing: Cell<usize>,
    complete: Notify,
}

impl<A> Round<A> {
    pub(super) fn of(asked: usize) -> Rc<Self> {
        let answers = RefCell::new((0..asked).map(|_| None).collect());
        Rc::new(Round { answers, missing: Cell::new(asked), complete: Notify::new() })
    }

    pub(super) fn answered(&self, at: usize, answer: A) {
        if self.answers.borrow_mut()[at].replace(answer).is_none() {
            self.missing.set(self.missing.get() - 1);
            if self.missing.get() == 0 {
                self.complete.notify_one();
            }
        }
    }

    pub(super) async fn completed(&self) {
        while self.missing.get() > 0 {
            self.complete.notified().await;
        }
    }

    /// What came, by place.
    pub(super) fn take(&self) -> Vec<Option<A>> {
        self.answers.take()
    }
}

/// What a future that need not wait has to say.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
