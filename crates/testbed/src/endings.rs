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
