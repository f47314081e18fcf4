//! What happens next: timers and pieces of messages on their way, in the order of time.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::task::Waker;

use super::World;
use super::flow::Piece;
use crate::Time;

/// A piece of a message that reaches the next place on its way.
struct Arrival {
    at: Time,
    seq: u64,
    piece: Piece,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Arrival {}
impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Arrival {
    /// The earliest is the greatest, as the heap gives out its greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

#[derive(Default)]
pub(super) struct Events {
    now: Cell<Time>,
    next_seq: Cell<u64>,
    trace: Cell<u64>,
    timers: RefCell<BTreeMap<(Time, u64), Waker>>,
    arrivals: RefCell<BinaryHeap<Arrival>>,
}

impl Events {
    pub(super) fn now(&self) -> Time {
        self.now.get()
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.get()
    }

    fn seq(&self) -> u64 {
        self.next_seq.set(self.next_seq.get() + 1);
        self.next_seq.get()
    }

    /// Sets an alarm; the number takes it back.
    pub(super) fn alarm(&self, at: Time, waker: Waker) -> u64 {
        let seq = self.seq();
        self.timers.borrow_mut().insert((at, seq), waker);
        seq
    }

    pub(super) fn change_alarm(&self, at: Time, seq: u64, waker: &Waker) {
        if let Some(set) = self.timers.borrow_mut().get_mut(&(at, seq)) {
            set.clone_from(waker);
        }
    }

    pub(super) fn cancel_alarm(&self, at: Time, seq: u64) {
        let taken = self.timers.borrow_mut().remove(&(at, seq));
        drop(taken);
    }

    pub(super) fn arrive(&self, at: Time, piece: Piece) {
        let seq = self.seq();
        self.arrivals.borrow_mut().push(Arrival { at: at.max(self.now()), seq, piece });
    }

    /// Moves to the next event and lets it happen; answers whether there was one.
    pub(super) fn step(&self, world: &Rc<World>) -> bool {
        let timer = self.timers.borrow().first_key_value().map(|(key, _)| *key);
        let arrival = self.arrivals.borrow().peek().map(|a| (a.at, a.seq));
        let next = match (timer, arrival) {
            (Some(timer), Some(arrival)) => timer.min(arrival),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return false,
        };
        debug_assert!(next.0 >= self.now(), "time never goes back");
        self.now.set(next.0);
        self.note(next.0.0 ^ next.1.rotate_left(40));
        if Some(next) == timer {
            let waker = self.timers.borrow_mut().remove(&next).expect("it was the first");
            waker.wake();
        } else {
            let arrival = self.arrivals.borrow_mut().pop().expect("it was the first");
            self.note(arrival.piece.bytes());
            arrival.piece.arrive(world);
        }
        true
    }

    fn note(&self, value: u64) {
        let mixed = (self.trace.get() ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.trace.set(mixed ^ (mixed >> 29));
    }

    pub(super) fn clear(&self) {
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        let arrivals = std::mem::take(&mut *self.arrivals.borrow_mut());
        drop((timers, arrivals));
    }
}
