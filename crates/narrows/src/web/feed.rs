//! What is sent to pages as it comes: server-sent events. A page that does not take them is let go; it connects again
//! by itself, and begins with all that is kept.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame};

/// Events that wait for a page at most.
const WAITING_MAX: usize = 16;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Bytes>,
    waker: Option<Waker>,
    is_over: bool,
}

/// The body of an answer that goes on.
pub(crate) struct Feed(Rc<RefCell<Queue>>);

/// Whether a page has been let go.
#[derive(Clone)]
pub(crate) struct Standing(Weak<RefCell<Queue>>);

impl Standing {
    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.0.upgrade().is_none_or(|queue| queue.borrow().is_over)
    }
}

impl Feed {
    /// Whether it goes on, for whoever holds the connection.
    pub(crate) fn standing(&self) -> Standing {
        Standing(Rc::downgrade(&self.0))
    }
}

impl Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut queue = self.0.borrow_mut();
        match queue.waiting.pop_front() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(event)))),
            None if queue.is_over => Poll::Ready(None),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// All pages that are open.
#[derive(Default)]
pub(crate) struct Hub(RefCell<Vec<Weak<RefCell<Queue>>>>);

impl Hub {
    /// A page that begins with these events.
    pub(crate) fn open(&self, begins: impl IntoIterator<Item = Bytes>) -> Feed {
        let queue = Queue { waiting: begins.into_iter().collect(), ..Queue::default() };
        let queue = Rc::new(RefCell::new(queue));
        let mut all = self.0.borrow_mut();
        // Without a page nothing is sent, so that pages which were closed meanwhile are forgotten here.
        all.retain(|queue| queue.strong_count() > 0);
        all.push(Rc::downgrade(&queue));
        Feed(queue)
    }

    /// Whether any page is open.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.borrow().iter().any(|queue| queue.strong_count() > 0)
    }

    /// Sends an event to every page.
    pub(crate) fn send(&self, event: &Bytes) {
        self.0.borrow_mut().retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            let mut queue = queue.borrow_mut();
            if queue.waiting.len() >= WAITING_MAX {
                queue.is_over = true;
                queue.waiting.clear();
            } else {
                queue.waiting.push_back(event.clone());
            }
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
            !queue.is_over
        });
    }
}

/// An event as it is written. JSON on one line has no line break of its own.
pub(crate) fn event(name: &str, json: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {json}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_nothing_is_let_go_and_the_others_go_on() {
        let hub = Hub::default();
        let (slow, gone) = (hub.open([]), hub.open([]));
        let standing = (slow.standing(), gone.standing());
        drop(gone);
        assert!(standing.1.is_over() && !standing.0.is_over());
        for _ in 0..=WAITING_MAX {
            hub.send(&event("look", "{}"));
        }
        assert!(standing.0.is_over() && slow.0.borrow().waiting.is_empty());
        let quick = hub.open([event("all", "[]")]);
        hub.send(&event("look", "{}"));
        let waiting = quick.0.borrow().waiting.clone();
        assert_eq!(waiting, ["event: all\ndata: []\n\n", "event: look\ndata: {}\n\n"]);
        assert_eq!(hub.0.borrow().len(), 1);
    }

    #[test]
    fn pages_that_come_and_go_between_two_looks_leave_nothing() {
        let hub = Hub::default();
        for _ in 0..9 {
            drop(hub.open([]));
        }
        assert!(!hub.is_heard() && hub.0.borrow().len() == 1);
    }
}
