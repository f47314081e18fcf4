//! What happens next, in the order of time; at the same moment, in the order in which it was made.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::task::Waker;

use super::World;
use super::flow::{Flow, Message, Piece};
use super::host::HostState;
use super::trace::Kind;
use crate::Time;

/// Something that is to happen.
pub(super) enum Happening {
    /// A task of this host has slept enough.
    Wake(Rc<HostState>, Waker),
    /// A piece of a message comes to the next pipe on its way.
    Piece(Piece),
    /// The last bytes of a message are at its receiver.
    Delivered(Rc<Flow>, u64, Message),
    /// A core has prepared a message for sending.
    Prepared(Rc<Flow>),
    /// A core has received a message.
    Received(Rc<Flow>),
    /// A thread takes a message up.
    Dispatched(Rc<Flow>),
    /// A flow waits for its window to open.
    Look(Rc<Flow>),
}

/// What a happening is known by until it happens.
#[derive(Clone, Copy)]
pub(super) struct Alarm {
    slot: u32,
    number: u64,
}

/// A place in the order of time. Taken-back happenings leave theirs behind.
struct Entry {
    at: Time,
    alarm: Alarm,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.alarm.number).cmp(&(other.at, other.alarm.number))
    }
}

struct Slot {
    number: u64,
    what: Option<Happening>,
}

/// Nanoseconds of a stretch of time, as a power of two: about a second.
const STRETCH_BITS: u32 = 30;

/// Most that is set is a limit of seconds, and is taken back long before. So only what happens in this stretch of time
/// is kept in order; the rest waits by its stretch, and what was taken back meanwhile never is put in order.
#[derive(Default)]
struct Queue {
    /// Up to the end of this stretch.
    order: BinaryHeap<Reverse<Entry>>,
    stretch: u64,
    later: BTreeMap<u64, Vec<Reverse<Entry>>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Entries, and those of them whose happening was taken back.
    entries: usize,
    dead: usize,
    last_number: u64,
}

impl Queue {
    fn push(&mut self, entry: Entry) {
        let stretch = entry.at.0 >> STRETCH_BITS;
        self.entries += 1;
        if stretch <= self.stretch {
            self.order.push(Reverse(entry));
        } else {
            self.later.entry(stretch).or_default().push(Reverse(entry));
        }
    }

    /// The next that happens, with its time.
    fn pop(&mut self) -> Option<(Time, Happening)> {
        loop {
            let Some(Reverse(entry)) = self.order.pop() else {
                let (stretch, mut entries) = self.later.pop_first()?;
                self.stretch = stretch;
                let all = entries.len();
                entries.retain(|Reverse(entry)| is_set(&self.slots, entry.alarm));
                self.forget(all - entries.len());
                self.order = entries.into();
                continue;
            };
            match self.take(entry.alarm) {
                Some(what) => {
                    self.entries -= 1;
                    return Some((entry.at, what));
                }
                None => self.forget(1),
            }
        }
    }

    /// What is set under an alarm, if it has neither happened nor been taken back.
    fn slot(&mut self, alarm: Alarm) -> Option<&mut Slot> {
        is_set(&self.slots, alarm).then(|| &mut self.slots[alarm.slot as usize])
    }

    fn take(&mut self, alarm: Alarm) -> Option<Happening> {
        let what = self.slot(alarm)?.what.take();
        self.free.push(alarm.slot);
        what
    }

    /// Drops entries without happenings once they are the most.
    fn tidy(&mut self) {
        if self.dead > 1024 && self.dead * 2 > self.entries {
            let slots = &self.slots;
            self.order.retain(|Reverse(entry)| is_set(slots, entry.alarm));
            self.later.retain(|_, entries| {
                entries.retain(|Reverse(entry)| is_set(slots, entry.alarm));
                !entries.is_empty()
            });
            self.forget(self.dead);
        }
    }

    /// Dead entries are out.
    fn forget(&mut self, dead: usize) {
        self.entries -= dead;
        self.dead -= dead;
    }
}

fn is_set(slots: &[Slot], alarm: Alarm) -> bool {
    let slot = slots.get(alarm.slot as usize);
    slot.is_some_and(|slot| slot.number == alarm.number && slot.what.is_some())
}

#[derive(Default)]
pub(super) struct Events {
    now: Cell<Time>,
    queue: RefCell<Queue>,
}

impl Events {
    pub(super) fn now(&self) -> Time {
        self.now.get()
    }

    /// Has something happen at a time, or now if that has passed.
    pub(super) fn add(&self, at: Time, what: Happening) -> Alarm {
        let mut queue = self.queue.borrow_mut();
        queue.last_number += 1;
        let number = queue.last_number;
        let slot = Slot { number, what: Some(what) };
        let place = match queue.free.pop() {
            Some(place) => {
                queue.slots[place as usize] = slot;
                place
            }
            None => {
                queue.slots.push(slot);
                u32::try_from(queue.slots.len() - 1).expect("fewer than 2^32 happenings at a time")
            }
        };
        let alarm = Alarm { slot: place, number };
        queue.push(Entry { at: at.max(self.now.get()), alarm });
        alarm
    }

    pub(super) fn change_alarm(&self, alarm: Alarm, waker: &Waker) {
        if let Some(Slot { what: Some(Happening::Wake(_, set)), .. }) =
            self.queue.borrow_mut().slot(alarm)
        {
            set.clone_from(waker);
        }
    }

    pub(super) fn cancel(&self, alarm: Alarm) {
        let taken = {
            let mut queue = self.queue.borrow_mut();
            let taken = queue.take(alarm);
            queue.dead += usize::from(taken.is_some());
            queue.tidy();
            taken
        };
        drop(taken);
    }

    /// Moves to the next event and lets it happen; answers whether there was one.
    pub(super) fn step(&self, world: &Rc<World>) -> bool {
        let Some((now, next)) = self.queue.borrow_mut().pop() else { return false };
        debug_assert!(now >= self.now(), "time never goes back");
        self.now.set(now);
        match next {
            Happening::Wake(host, waker) => {
                host.trace.note(now, Kind::Wake, 0);
                waker.wake();
            }
            Happening::Piece(piece) => {
                piece.to().trace.note(now, Kind::Piece, piece.bytes());
                piece.arrive(world);
            }
            Happening::Delivered(flow, bytes, message) => {
                flow.to.trace.note(now, Kind::Delivered, bytes);
                flow.delivered(world, bytes, message);
            }
            Happening::Prepared(flow) => {
                flow.from.trace.note(now, Kind::Prepared, 0);
                flow.prepared(world);
            }
            Happening::Received(flow) => {
                flow.to.trace.note(now, Kind::Received, 0);
                flow.received(world);
            }
            Happening::Dispatched(flow) => {
                flow.to.trace.note(now, Kind::Dispatched, 0);
                flow.dispatched();
            }
            Happening::Look(flow) => {
                flow.from.trace.note(now, Kind::Look, 0);
                flow.look(world);
            }
        }
        true
    }

    pub(super) fn clear(&self) {
        let queue = std::mem::take(&mut *self.queue.borrow_mut());
        drop(queue);
    }
}
