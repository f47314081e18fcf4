//! The receiver's side of a flow.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::{Ack, End, Flow, News, Piece, Range};
use crate::Time;
use crate::virtual_world::World;
use crate::virtual_world::events::Happening;

#[derive(Default)]
pub(super) struct Incoming {
    pub(super) last_arrival: Time,
    /// Ranges that were lost and have not come again, in order.
    pub(super) gaps: Vec<(u64, u64)>,
    /// Ends of messages behind a gap, by where they are.
    pub(super) behind: BTreeMap<u64, (End, u64)>,
    /// Messages whose last byte has come, with the bytes that they hold of the window.
    pub(super) receiving: VecDeque<(End, u64)>,
    pub(super) busy: bool,
    /// Received, and waiting for a thread of their host, in order.
    pub(super) waiting: VecDeque<(End, u64)>,
    /// Bytes that whole messages hold of the window until they are taken.
    pub(super) arrived: VecDeque<u64>,
    pub(super) ended: bool,
}

impl Flow {
    pub(in crate::virtual_world) fn has_ended(&self) -> bool {
        self.incoming.borrow().ended
    }

    /// A piece is at its receiver: its first byte at `head`, its last when its spread has passed.
    pub(super) fn reach(self: &Rc<Self>, world: &Rc<World>, piece: &Piece, head: Time) {
        let tail = {
            let mut incoming = self.incoming.borrow_mut();
            // A path that becomes shorter does not let later pieces overtake earlier ones.
            let tail = (head + piece.spread).max(incoming.last_arrival);
            incoming.last_arrival = tail;
            tail
        };
        let ack = Ack {
            at: head + self.delay(),
            spread: piece.spread,
            bytes: piece.range.bytes,
            sent_at: piece.sent_at,
            news: News::Arrived { held: piece.range.end.is_some_and(|end| !end.fin) },
        };
        self.acknowledge(world, ack);
        let mut incoming = self.incoming.borrow_mut();
        let Range { from, bytes, end } = piece.range;
        if piece.again {
            incoming.fill(from, from + bytes);
        }
        if let Some(end) = end {
            if incoming.gaps.is_empty() && incoming.behind.is_empty() {
                world.events.add(tail, Happening::Delivered(self.clone(), bytes, Message(end)));
                return;
            }
            incoming.behind.insert(from + bytes, (end, bytes));
        }
        while let Some((end, bytes)) = incoming.whole() {
            world.events.add(tail, Happening::Delivered(self.clone(), bytes, Message(end)));
        }
    }

    /// The last byte of a message is there: a core takes it in.
    pub(in crate::virtual_world) fn delivered(
        self: &Rc<Self>,
        world: &Rc<World>,
        bytes: u64,
        message: Message,
    ) {
        if self.broken.get() {
            return;
        }
        let mut incoming = self.incoming.borrow_mut();
        incoming.receiving.push_back((message.0, bytes));
        if !incoming.busy {
            drop(incoming);
            self.receive(world);
        }
    }

    fn receive(self: &Rc<Self>, world: &Rc<World>) {
        loop {
            let mut incoming = self.incoming.borrow_mut();
            let Some((end, _)) = incoming.receiving.front() else { return };
            let now = world.events.now();
            let done = match end.fin {
                true => now,
                false => self.to.receive_cost(now, end.message_bytes),
            };
            if done > now {
                incoming.busy = true;
                world.events.add(done, Happening::Received(self.clone()));
                return;
            }
            self.pass_on(world, &mut incoming);
        }
    }

    /// A core has taken a message in.
    pub(in crate::virtual_world) fn received(self: &Rc<Self>, world: &Rc<World>) {
        {
            let mut incoming = self.incoming.borrow_mut();
            incoming.busy = false;
            self.pass_on(world, &mut incoming);
        }
        self.receive(world);
    }

    /// A message waits for a thread of its host, which handles others meanwhile.
    fn pass_on(self: &Rc<Self>, world: &Rc<World>, incoming: &mut Incoming) {
        let Some((end, bytes)) = incoming.receiving.pop_front() else { return };
        let dispatch = self.to.dispatch();
        if dispatch.is_zero() && incoming.waiting.is_empty() {
            self.hand_over(incoming, end, bytes);
        } else {
            incoming.waiting.push_back((end, bytes));
            world.events.add(world.events.now() + dispatch, Happening::Dispatched(self.clone()));
        }
    }

    /// The message that waited longest has its thread.
    pub(in crate::virtual_world) fn dispatched(&self) {
        let mut incoming = self.incoming.borrow_mut();
        if let Some((end, bytes)) = incoming.waiting.pop_front() {
            self.hand_over(&mut incoming, end, bytes);
        }
    }

    fn hand_over(&self, incoming: &mut Incoming, end: End, bytes: u64) {
        if end.fin {
            incoming.ended = true;
        } else {
            incoming.arrived.push_back(bytes);
        }
        self.came.wake();
    }

    /// Takes one message that has arrived; answers whether there was one. What is not taken holds the
    /// window closed, as a full receive buffer does.
    pub(in crate::virtual_world) fn take(self: &Rc<Self>, world: &Rc<World>) -> bool {
        let Some(bytes) = self.incoming.borrow_mut().arrived.pop_front() else { return false };
        let mut out = self.outgoing.borrow_mut();
        let at = world.events.now() + self.delay();
        let at = out.taken.back().map_or(at, |(last, _)| at.max(*last));
        out.taken.push_back((at, bytes));
        self.set_look(world, &mut out);
        true
    }
}

/// What a delivery hands on.
#[derive(Clone, Copy)]
pub(in crate::virtual_world) struct Message(End);

impl Incoming {
    /// A range has come again.
    fn fill(&mut self, from: u64, to: u64) {
        let gaps = std::mem::take(&mut self.gaps);
        for (gap_from, gap_to) in gaps {
            let left = (gap_from, gap_to.min(from));
            let right = (gap_from.max(to), gap_to);
            self.gaps.extend([left, right].into_iter().filter(|(from, to)| from < to));
        }
    }

    /// The next message that has come whole, with all before it.
    fn whole(&mut self) -> Option<(End, u64)> {
        let first = self.behind.first_entry()?;
        let blocked = self.gaps.iter().any(|(from, _)| from < first.key());
        (!blocked).then(|| first.remove())
    }
}
