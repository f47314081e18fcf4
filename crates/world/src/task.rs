//! A spawned task: a handle that ends it when dropped.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The task was aborted, or its host was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task was cancelled")]
pub struct Cancelled;

/// Ends a task from outside.
pub(crate) trait Abort {
    fn abort(&self);
}

pub(crate) struct Joint<T> {
    result: Option<Result<T, Cancelled>>,
    waiter: Option<Waker>,
}

/// Set by the task when it ends, or by its destruction when it is cancelled.
pub(crate) struct Finisher<T>(Rc<RefCell<Joint<T>>>);

impl<T> Finisher<T> {
    pub(crate) fn finish(self, value: T) {
        self.set(Ok(value));
    }

    fn set(&self, result: Result<T, Cancelled>) {
        let waiter = {
            let mut joint = self.0.borrow_mut();
            if joint.result.is_none() {
                joint.result = Some(result);
            }
            joint.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> Drop for Finisher<T> {
    fn drop(&mut self) {
        self.set(Err(Cancelled));
    }
}

/// A running task. Dropping the handle ends the task; [`Task::detach`] lets it run on.
/// Awaiting it gives its output.
pub struct Task<T> {
    joint: Rc<RefCell<Joint<T>>>,
    abort: Option<Box<dyn Abort>>,
}

impl<T: 'static> Task<T> {
    pub(crate) fn joint() -> (Rc<RefCell<Joint<T>>>, Finisher<T>) {
        let joint = Rc::new(RefCell::new(Joint { result: None, waiter: None }));
        (joint.clone(), Finisher(joint))
    }

    pub(crate) fn new(joint: Rc<RefCell<Joint<T>>>, abort: Box<dyn Abort>) -> Self {
        Task { joint, abort: Some(abort) }
    }

    /// Lets the task run on by itself, until its end or its host's.
    pub fn detach(mut self) {
        self.abort = None;
    }

    /// Ends the task now, wherever it waits.
    pub fn abort(&mut self) {
        if let Some(abort) = self.abort.take() {
            abort.abort();
        }
    }

    /// Ends the task and waits until it is gone, with all that it held. Not for a task to call on itself.
    pub async fn cancel(mut self) {
        self.abort();
        // Its output, or that it was cancelled: it has ended either way.
        let _ = (&mut self).await;
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.joint.borrow().result.is_some()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(abort) = self.abort.take() {
            abort.abort();
        }
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut joint = self.joint.borrow_mut();
        match joint.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                joint.waiter = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
