//! A spawned task: a handle that ends it when dropped.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The task was aborted, or its host was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task was cancelled")]
pub struct Cancelled;

/// The task panicked, and said this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked, which is a fault of this program: {0}")]
pub struct Panicked(pub String);

impl Panicked {
    pub(crate) fn with(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Panicked(text.unwrap_or("without a word").to_owned())
    }
}

/// Ends a task from outside.
pub(crate) trait Abort {
    fn abort(&self);
}

/// A future behind a pointer. An `async fn` is compiled anew in each crate that awaits it, with all that it awaits, and
/// as small or as fast as that crate is; a function that answers with this is compiled once, in its own crate.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A task's future, its output taken care of.
pub(crate) type Body = LocalFuture<'static, ()>;

/// What the task leaves for its handle.
struct Output<T> {
    result: Option<Result<T, Cancelled>>,
    waiter: Option<Waker>,
}

impl<T> Output<T> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<T, Cancelled>> {
        match self.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                self.waiter = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The task's end of its [`Output`]: dropped without a value, it says that the task was cancelled.
struct Finisher<T>(Rc<RefCell<Output<T>>>);

impl<T> Finisher<T> {
    fn finish(self, value: T) {
        self.set(Ok(value));
    }

    fn set(&self, result: Result<T, Cancelled>) {
        let waiter = {
            let mut output = self.0.borrow_mut();
            if output.result.is_none() {
                output.result = Some(result);
            }
            output.waiter.take()
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

pin_project_lite::pin_project! {
    /// Runs a future and leaves what it answers to its handle. An async block that awaits it would hold it twice, and
    /// copy it when it is first polled.
    struct Finishing<T, F> {
        #[pin]
        future: Option<F>,
        finisher: Option<Finisher<T>>,
    }
}

impl<T, F: Future<Output = T>> Future for Finishing<T, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(future) = this.future.as_mut().as_pin_mut() else { return Poll::Ready(()) };
        let Poll::Ready(value) = future.poll(cx) else { return Poll::Pending };
        // What it held is gone before anybody hears of its end.
        this.future.set(None);
        if let Some(finisher) = this.finisher.take() {
            finisher.finish(value);
        }
        Poll::Ready(())
    }
}

/// A running task. Dropping the handle ends the task; [`Task::detach`] lets it run on.
/// Awaiting it gives its output.
pub struct Task<T> {
    output: Rc<RefCell<Output<T>>>,
    abort: Option<Box<dyn Abort>>,
}

impl<T: 'static> Task<T> {
    /// Makes a task of the future that `make` answers with; `start` gives its body to an executor.
    pub(crate) fn start<F: Future<Output = T> + 'static>(
        make: impl FnOnce() -> F,
        start: impl FnOnce(Body) -> Box<dyn Abort>,
    ) -> Self {
        let output = Rc::new(RefCell::new(Output { result: None, waiter: None }));
        let finisher = Finisher(output.clone());
        // A future may have thousands of bytes, and each move copies them. So its memory is taken first, and it is made
        // there: one that is made before that is made elsewhere, as it must be dropped where taking memory fails.
        let room = Box::new_uninit();
        let finishing = Finishing { future: Some(make()), finisher: Some(finisher) };
        let body = Box::into_pin(Box::write(room, finishing));
        let abort = start(body);
        Task { output, abort: Some(abort) }
    }

    /// Lets the task run on by itself, until its end or its host's.
    pub fn detach(mut self) {
        self.abort = None;
    }

    /// Lets the task run on by itself, and waits for its output. That costs no channel beside it, and who stops
    /// waiting is not woken.
    pub fn into_waiter(mut self) -> TaskWaiter<T> {
        self.abort = None;
        TaskWaiter { output: self.output.clone() }
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
        // It has ended, whether with its output or by being cancelled.
        let _ = (&mut self).await;
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.output.borrow().result.is_some()
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
        self.output.borrow_mut().poll(cx)
    }
}

/// Waits for a task that runs to its end, whoever waits.
pub struct TaskWaiter<T> {
    output: Rc<RefCell<Output<T>>>,
}

impl<T> Drop for TaskWaiter<T> {
    fn drop(&mut self) {
        let waiter = self.output.borrow_mut().waiter.take();
        drop(waiter);
    }
}

impl<T> Future for TaskWaiter<T> {
    type Output = Result<T, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.output.borrow_mut().poll(cx)
    }
}
