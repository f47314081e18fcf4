//! What is done behind the body of a test.

use std::cell::RefCell;
use std::pin::Pin;

type Ending = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// Of the body that runs on this thread; none where none does.
    static ENDINGS: RefCell<Option<Vec<Ending>>> = const { RefCell::new(None) };
}

/// A body that panics takes along what it asked for.
struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        drop(ENDINGS.take());
    }
}

/// Has this done once the body has ended of the test that runs on this thread. Elsewhere it is dropped.
pub fn at_the_end(ending: impl Future<Output = ()> + 'static) {
    ENDINGS.with_borrow_mut(|endings| {
        if let Some(endings) = endings {
            endings.push(Box::pin(ending));
        }
    });
}

/// The body of a test, and then what it asked for by [`at_the_end`].
pub async fn to_the_end(body: Pin<Box<dyn Future<Output = ()>>>) {
    let _cleared = Cleared;
    ENDINGS.set(Some(Vec::new()));
    body.await;
    for ending in ENDINGS.take().unwrap_or_default() {
        ending.await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn what_a_body_asks_for_is_done_behind_it_in_this_order() {
        let done = Rc::new(RefCell::new(Vec::new()));
        let note = |what: &'static str| {
            let done = done.clone();
            async move { done.borrow_mut().push(what) }
        };
        let (body, first, second) = (note("body"), note("first"), note("second"));
        let test = to_the_end(Box::pin(async move {
            at_the_end(first);
            at_the_end(second);
            body.await;
        }));
        at_the_end(note("outside"));
        assert_eq!(pin!(test).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
        at_the_end(note("afterwards"));
        assert_eq!(*done.borrow(), ["body", "first", "second"]);
    }
}
