//! Giving up on answers that take too long. A timer for each request would cost more than the request; here one look
//! now and then is enough for all of them.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use world::Time;

#[derive(Default)]
struct Slot {
    until: Cell<Option<Time>>,
    waiter: RefCell<Option<Waker>>,
}

pub(super) struct Deadlines {
    slots: Vec<Slot>,
    now: Cell<Time>,
}

impl Deadlines {
    pub(super) fn new(clients: usize) -> Self {
        let slots = (0..clients).map(|_| Slot::default()).collect();
        Deadlines { slots, now: Cell::new(Time(0)) }
    }

    /// Waits for `future`, until the first look after `until`, unless that is renewed meanwhile; none if that comes
    /// first.
    pub(super) async fn within<T>(
        &self,
        client: usize,
        until: Time,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let slot = &self.slots[client];
        slot.until.set(Some(until));
        let mut future = pin!(future);
        let ended = poll_fn(|context| {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            if slot.until.get().is_some_and(|until| self.now.get() > until) {
                return Poll::Ready(None);
            }
            let mut waiter = slot.waiter.borrow_mut();
            if !waiter.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waiter = Some(context.waker().clone());
            }
            Poll::Pending
        });
        let ended = ended.await;
        slot.until.set(None);
        ended
    }

    /// Lets a client that waits go on waiting until `until`.
    pub(super) fn renew(&self, client: usize, until: Time) {
        self.slots[client].until.set(Some(until));
    }

    /// Checks all deadlines, and wakes those who have waited too long.
    pub(super) fn look(&self, now: Time) {
        self.now.set(now);
        for slot in &self.slots {
            if slot.until.get().is_some_and(|until| now > until)
                && let Some(waker) = slot.waiter.take()
            {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_comes_in_time_is_taken_and_what_does_not_is_given_up() {
        world::virtual_world::run(1, async |env| {
            let deadlines = Rc::new(Deadlines::new(2));
            let (looks, clock) = (deadlines.clone(), env.clone());
            let _looks = env.spawn("looks", async move {
                loop {
                    clock.sleep(Duration::from_millis(10)).await;
                    looks.look(clock.now());
                }
            });
            let until = env.now() + Duration::from_millis(100);
            let soon = deadlines.within(0, until, async {
                env.sleep(Duration::from_millis(99)).await;
                "soon"
            });
            let late = deadlines.within(1, until, env.sleep(Duration::from_secs(9)));
            let (soon, late) = futures_util::future::join(soon, late).await;
            assert_eq!((soon, late), (Some("soon"), None));
            assert_eq!(env.now(), Time(110_000_000));
        });
    }
}
