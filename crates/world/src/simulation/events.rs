//! The queue of events: by time, and those of one moment in the order in which they were added.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
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

/// Bits of an alarm that are its slot; the others count events. They suffice for 67 million at a time, and for 274
/// billion in all.
const SLOT_BITS: u32 = 26;

/// The name of an event until it happens: how many were added before it, and its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Alarm(u64);

impl Alarm {
    fn new(number: u64, slot: usize) -> Alarm {
        assert!(slot < 1 << SLOT_BITS, "fewer than 2^26 events at a time");
        assert!(number < 1 << (u64::BITS - SLOT_BITS), "fewer than 2^38 events");
        Alarm((number << SLOT_BITS) | slot as u64)
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

/// An event in the order of time. A cancelled event leaves its entry behind. It is one number, the time before the
/// alarm: to compare and to move entries is most of what the queue does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    /// After all others.
    const LAST: Entry = Entry(u128::MAX);

    fn new(at: Time, alarm: Alarm) -> Entry {
        Entry((u128::from(at.0) << 64) | u128::from(alarm.0))
    }

    fn at(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    fn alarm(self) -> Alarm {
        Alarm(self.0 as u64)
    }
}

/// Rows of entries. With one for each pipe of a way, and one for what comes beside them, most find a row.
const ROWS: usize = 4;

/// Entries that are taken in their order. A pipe gives out its pieces one after another, so that most entries come in a
/// few rows that are in order already, and the next is the first of one of these. What fits into no row goes into a
/// heap, which moves an entry on each of its levels.
#[derive(Default)]
struct Sorted {
    /// Those that were known when the current bucket began, the last first.
    known: Vec<Entry>,
    rows: [VecDeque<Entry>; ROWS],
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Sorted {
    fn push(&mut self, entry: Entry) {
        let fits = |row: &&mut VecDeque<Entry>| row.back().is_none_or(|last| *last < entry);
        match self.rows.iter_mut().find(fits) {
            Some(row) => row.push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
    }

    /// Begins a bucket, after all entries before it were taken.
    fn begin(&mut self, mut known: Vec<Entry>) {
        known.sort_unstable_by(|a, b| b.cmp(a));
        self.known = known;
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let in_heap = self.heap.peek().map_or(Entry::LAST, |Reverse(entry)| *entry);
        let known = self.known.last().copied().unwrap_or(Entry::LAST);
        let (mut first, mut row_of_first) = (known.min(in_heap), None);
        for (number, row) in self.rows.iter().enumerate() {
            let front = row.front().copied().unwrap_or(Entry::LAST);
            if front < first {
                (first, row_of_first) = (front, Some(number));
            }
        }
        match row_of_first {
            Some(number) => self.rows[number].pop_front(),
            None if known < in_heap => self.known.pop(),
            None => self.heap.pop().map(|Reverse(entry)| entry),
        }
    }

    fn retain(&mut self, mut stays: impl FnMut(Entry) -> bool) {
        self.known.retain(|entry| stays(*entry));
        self.rows.iter_mut().for_each(|row| row.retain(|entry| stays(*entry)));
        self.heap.retain(|Reverse(entry)| stays(*entry));
    }
}

struct Slot<N> {
    alarm: Alarm,
    event: Option<Event<N>>,
}

/// Nanoseconds of a bucket of the queue, as a power of two: about a second.
const BUCKET_BITS: u32 = 30;

/// Events by time. Most are time limits of seconds, and are cancelled long before they pass. So only the events of the
/// current bucket of time are sorted; later ones wait unsorted in their buckets, and those that are cancelled meanwhile
/// never get sorted.
struct Queue<N> {
    /// Up to the end of the current bucket.
    sorted: Sorted,
    bucket: u64,
    later: BTreeMap<u64, Vec<Entry>>,
    slots: Vec<Slot<N>>,
    free_slots: Vec<usize>,
    /// Entries, and those of them whose event was cancelled.
    entries: usize,
    cancelled: usize,
    last_number: u64,
}

// Derived, it would ask the same of `N`.
impl<N> Default for Queue<N> {
    fn default() -> Self {
        Queue {
            sorted: Sorted::default(),
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
        let bucket = entry.at().0 >> BUCKET_BITS;
        self.entries += 1;
        if bucket <= self.bucket {
            self.sorted.push(entry);
        } else {
            self.later.entry(bucket).or_default().push(entry);
        }
    }

    /// The next event, with its time.
    #[inline]
    fn pop(&mut self) -> Option<(Time, Event<N>)> {
        loop {
            let Some(entry) = self.sorted.pop() else {
                let (bucket, mut entries) = self.later.pop_first()?;
                self.bucket = bucket;
                let all = entries.len();
                entries.retain(|entry| is_set(&self.slots, entry.alarm()));
                self.forget(all - entries.len());
                self.sorted.begin(entries);
                continue;
            };
            match self.take(entry.alarm()) {
                Some(event) => {
                    self.entries -= 1;
                    return Some((entry.at(), event));
                }
                None => self.forget(1),
            }
        }
    }

    /// The slot of an event that has neither happened nor been cancelled.
    fn slot(&mut self, alarm: Alarm) -> Option<&mut Slot<N>> {
        is_set(&self.slots, alarm).then(|| &mut self.slots[alarm.slot()])
    }

    fn take(&mut self, alarm: Alarm) -> Option<Event<N>> {
        let event = self.slot(alarm)?.event.take();
        self.free_slots.push(alarm.slot());
        event
    }

    /// Drops cancelled entries once they are the majority.
    fn drop_cancelled(&mut self) {
        if self.cancelled > 1024 && self.cancelled * 2 > self.entries {
            let slots = &self.slots;
            self.sorted.retain(|entry| is_set(slots, entry.alarm()));
            self.later.retain(|_, entries| {
                entries.retain(|entry| is_set(slots, entry.alarm()));
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
    let slot = slots.get(alarm.slot());
    slot.is_some_and(|slot| slot.alarm == alarm && slot.event.is_some())
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
    #[inline(always)]
    pub(super) fn add(&self, at: Time, make: impl FnOnce() -> N) {
        self.push(at, || Event::Network(make()));
    }

    /// Wakes a task at a time.
    pub(super) fn add_alarm(&self, at: Time, host: Rc<HostState>, waker: Waker) -> Alarm {
        self.push(at, || Event::Wake(host, waker))
    }

    /// Inlined, and the event is made last, so that it is written where it stays. One that is there before something
    /// that may panic is written elsewhere, and read at once, which waits for the write.
    #[inline(always)]
    fn push(&self, at: Time, make: impl FnOnce() -> Event<N>) -> Alarm {
        let queue = &mut *self.queue.borrow_mut();
        queue.last_number += 1;
        let place = queue.free_slots.pop().unwrap_or(queue.slots.len());
        let alarm = Alarm::new(queue.last_number, place);
        if place == queue.slots.len() {
            queue.slots.push(Slot { alarm, event: None });
        }
        queue.push(Entry::new(at.max(self.now.get()), alarm));
        let slot = &mut queue.slots[place];
        slot.alarm = alarm;
        slot.event = Some(make());
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn entries_come_out_in_order_however_they_come_in() {
        let mut state = 7_u64;
        let mut below = |bound: u64| record::random::split_mix(&mut state) % bound;
        let (mut sorted, mut expected, mut now) = (Sorted::default(), BTreeSet::new(), 0);
        for number in 0..20_000 {
            if expected.is_empty() {
                let later = (0..below(50)).map(|_| now + below(2000));
                let later =
                    later.zip(20_000..).map(|(at, n)| Entry::new(Time(at), Alarm::new(n, 0)));
                expected.extend(later);
                sorted.begin(expected.iter().copied().collect());
            } else if below(20) < 11 {
                // Of some pipes, each with a delay of its own, and of anything.
                let delay = [10, 1000, 1010, below(2000)][below(4) as usize];
                let entry = Entry::new(Time(now + delay), Alarm::new(number, 0));
                sorted.push(entry);
                expected.insert(entry);
            } else {
                let entry = sorted.pop();
                assert!(entry == expected.pop_first(), "{number}");
                now = entry.map_or(now, |entry| entry.at().0);
            }
            if number % 1000 == 0 {
                sorted.retain(|entry| entry.at().0 % 3 != 0);
                expected.retain(|entry| entry.at().0 % 3 != 0);
            }
        }
        while let Some(entry) = sorted.pop() {
            assert!(Some(entry) == expected.pop_first());
        }
        assert!(expected.is_empty());
    }
}
