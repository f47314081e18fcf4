//! The queue of events: by time, and those of one moment in the order in which they were added.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::task::Waker;

use super::host::HostState;
use crate::Time;

/// Something that is to happen. `N` is what can happen in the network: the queue moves it and looks at its time alone.
pub(super) enum Event<N> {
    /// A task of this host has slept enough.
    Wake(Rc<HostState>, Waker),
    Network(N),
}

/// The name of an event until it happens.
#[derive(Clone, Copy)]
pub(super) struct Alarm {
    slot: u32,
    number: u64,
}

/// An event in the order of time. A cancelled event leaves its entry behind.
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

struct Slot<N> {
    number: u64,
    event: Option<Event<N>>,
}

/// Nanoseconds of a bucket of the queue, as a power of two: about a second.
const BUCKET_BITS: u32 = 30;

/// Events by time. Most are time limits of seconds, and are cancelled long before they pass. So only the events of the
/// current bucket of time are sorted; later ones wait unsorted in their buckets, and those that are cancelled meanwhile
/// never get sorted.
struct Queue<N> {
    /// Up to the end of the current bucket.
    sorted: BinaryHeap<Reverse<Entry>>,
    bucket: u64,
    later: BTreeMap<u64, Vec<Reverse<Entry>>>,
    slots: Vec<Slot<N>>,
    free_slots: Vec<u32>,
    /// Entries, and those of them whose event was cancelled.
    entries: usize,
    cancelled: usize,
    last_number: u64,
}

// Derived, it would ask the same of `N`.
impl<N> Default for Queue<N> {
    fn default() -> Self {
        Queue {
            sorted: BinaryHeap::new(),
            bucket: 0,
            later: BTreeMap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            entries: 0,
            cancelled: 0,
            last_number: 0,
        }
    }
}

impl<N> Queue<N> {
    fn push(&mut self, entry: Entry) {
        let bucket = entry.at.0 >> BUCKET_BITS;
        self.entries += 1;
        if bucket <= self.bucket {
            self.sorted.push(Reverse(entry));
        } else {
            self.later.entry(bucket).or_default().push(Reverse(entry));
        }
    }

    /// The next event, with its time.
    #[inline]
    fn pop(&mut self) -> Option<(Time, Event<N>)> {
        loop {
            let Some(Reverse(entry)) = self.sorted.pop() else {
                let (bucket, mut entries) = self.later.pop_first()?;
                self.bucket = bucket;
                let all = entries.len();
                entries.retain(|Reverse(entry)| is_set(&self.slots, entry.alarm));
                self.forget(all - entries.len());
                self.sorted = entries.into();
                continue;
            };
            match self.take(entry.alarm) {
                Some(event) => {
                    self.entries -= 1;
                    return Some((entry.at, event));
                }
                None => self.forget(1),
            }
        }
    }

    /// The slot of an event that has neither happened nor been cancelled.
    fn slot(&mut self, alarm: Alarm) -> Option<&mut Slot<N>> {
        is_set(&self.slots, alarm).then(|| &mut self.slots[alarm.slot as usize])
    }

    fn take(&mut self, alarm: Alarm) -> Option<Event<N>> {
        let event = self.slot(alarm)?.event.take();
        self.free_slots.push(alarm.slot);
        event
    }

    /// Drops cancelled entries once they are the majority.
    fn drop_cancelled(&mut self) {
        if self.cancelled > 1024 && self.cancelled * 2 > self.entries {
            let slots = &self.slots;
            self.sorted.retain(|Reverse(entry)| is_set(slots, entry.alarm));
            self.later.retain(|_, entries| {
                entries.retain(|Reverse(entry)| is_set(slots, entry.alarm));
                !entries.is_empty()
            });
            self.forget(self.cancelled);
        }
    }

    /// So many cancelled entries are no longer in the queue.
    fn forget(&mut self, cancelled: usize) {
        self.entries -= cancelled;
        self.cancelled -= cancelled;
    }
}

fn is_set<N>(slots: &[Slot<N>], alarm: Alarm) -> bool {
    let slot = slots.get(alarm.slot as usize);
    slot.is_some_and(|slot| slot.number == alarm.number && slot.event.is_some())
}

/// The events of a world, and its time: that of the event that happens now.
pub(super) struct EventQueue<N> {
    now: Cell<Time>,
    queue: RefCell<Queue<N>>,
}

impl<N> Default for EventQueue<N> {
    fn default() -> Self {
        EventQueue { now: Cell::default(), queue: RefCell::default() }
    }
}

impl<N> EventQueue<N> {
    pub(super) fn now(&self) -> Time {
        self.now.get()
    }

    /// Has something happen in the network at a time, or now if that has passed.
    pub(super) fn add(&self, at: Time, event: N) {
        self.push(at, Event::Network(event));
    }

    /// Wakes a task at a time.
    pub(super) fn add_alarm(&self, at: Time, host: Rc<HostState>, waker: Waker) -> Alarm {
        self.push(at, Event::Wake(host, waker))
    }

    fn push(&self, at: Time, event: Event<N>) -> Alarm {
        let mut queue = self.queue.borrow_mut();
        queue.last_number += 1;
        let number = queue.last_number;
        let slot = Slot { number, event: Some(event) };
        let place = match queue.free_slots.pop() {
            Some(place) => {
                queue.slots[place as usize] = slot;
                place
            }
            None => {
                queue.slots.push(slot);
                u32::try_from(queue.slots.len() - 1).expect("fewer than 2^32 events at a time")
            }
        };
        let alarm = Alarm { slot: place, number };
        queue.push(Entry { at: at.max(self.now.get()), alarm });
        alarm
    }

    pub(super) fn change_alarm(&self, alarm: Alarm, waker: &Waker) {
        if let Some(Slot { event: Some(Event::Wake(_, set)), .. }) =
            self.queue.borrow_mut().slot(alarm)
        {
            set.clone_from(waker);
        }
    }

    pub(super) fn cancel(&self, alarm: Alarm) {
        let taken = {
            let mut queue = self.queue.borrow_mut();
            let taken = queue.take(alarm);
            queue.cancelled += usize::from(taken.is_some());
            queue.drop_cancelled();
            taken
        };
        drop(taken);
    }

    /// Moves time to the next event and gives it out; none is left where nothing is to happen any more.
    #[inline]
    pub(super) fn next(&self) -> Option<Event<N>> {
        let (at, event) = self.queue.borrow_mut().pop()?;
        debug_assert!(at >= self.now(), "time never goes back");
        self.now.set(at);
        Some(event)
    }

    pub(super) fn clear(&self) {
        let queue = std::mem::take(&mut *self.queue.borrow_mut());
        drop(queue);
    }
}
