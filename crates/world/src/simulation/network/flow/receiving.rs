//! The receiver of a flow: it puts messages in order, has a core take them in, and keeps them until they are taken.

use std::rc::Rc;

use super::stream::{Ack, End, Fate, Incoming, Range};
use super::{Events, Flow, MessageEnd, NetworkEvent, Piece};
use crate::Time;

impl Flow {
    pub(in crate::simulation) fn has_ended(&self) -> bool {
        self.incoming.borrow().ended
    }

    /// A piece arrives at its receiver: its first byte at `head`, its last after its spread.
    pub(super) fn reach(self: &Rc<Self>, events: &Rc<Events>, piece: &Piece, head: Time) {
        let tail = {
            let mut incoming = self.incoming.borrow_mut();
            // Later pieces do not overtake earlier ones, even if the delay of the path became shorter.
            let tail = (head + piece.spread).max(incoming.last_arrival);
            incoming.last_arrival = tail;
            tail
        };
        let ack = Ack {
            at: head + self.delay(),
            spread: piece.spread,
            bytes: piece.range.bytes,
            sent_at: piece.sent_at,
            fate: Fate::Arrived { held: piece.range.end.is_some_and(|end| !end.fin) },
        };
        self.acknowledge(events, ack);
        let mut incoming = self.incoming.borrow_mut();
        let Range { from, bytes, end } = piece.range;
        if piece.retransmit {
            incoming.fill_gap(from, from + bytes);
        }
        if let Some(end) = end {
            if incoming.gaps.is_empty() && incoming.behind_gap.is_empty() {
                events.add(tail, || NetworkEvent::Delivered(self.clone(), bytes, MessageEnd(end)));
                return;
            }
            incoming.behind_gap.insert(from + bytes, (end, bytes));
        }
        while let Some((end, bytes)) = incoming.next_whole() {
            events.add(tail, || NetworkEvent::Delivered(self.clone(), bytes, MessageEnd(end)));
        }
    }

    /// The last byte of a message has arrived: a core takes it in.
    pub(super) fn delivered(self: &Rc<Self>, events: &Rc<Events>, bytes: u64, end: End) {
        if self.broken.get() {
            return;
        }
        let mut incoming = self.incoming.borrow_mut();
        incoming.receiving.push_back((end, bytes));
        if !incoming.busy {
            drop(incoming);
            self.receive(events);
        }
    }

    fn receive(self: &Rc<Self>, events: &Rc<Events>) {
        loop {
            let mut incoming = self.incoming.borrow_mut();
            let Some((end, _)) = incoming.receiving.front() else { return };
            let now = events.now();
            let done = if end.fin { now } else { self.to.received_at(now, end.message_bytes) };
            if done > now {
                incoming.busy = true;
                events.add(done, || NetworkEvent::Received(self.clone()));
                return;
            }
            self.dispatch(events, &mut incoming);
        }
    }

    /// A core has taken a message in.
    pub(in crate::simulation) fn received(self: &Rc<Self>, events: &Rc<Events>) {
        {
            let mut incoming = self.incoming.borrow_mut();
            incoming.busy = false;
            self.dispatch(events, &mut incoming);
        }
        self.receive(events);
    }

    /// Has a message wait for a thread of its host; the core that received it goes on meanwhile.
    fn dispatch(self: &Rc<Self>, events: &Rc<Events>, incoming: &mut Incoming) {
        let Some((end, bytes)) = incoming.receiving.pop_front() else { return };
        let dispatch = self.to.dispatch();
        if dispatch.is_zero() && incoming.dispatching.is_empty() {
            self.hand_over(incoming, end, bytes);
        } else {
            incoming.dispatching.push_back((end, bytes));
            events.add(events.now() + dispatch, || NetworkEvent::Dispatched(self.clone()));
        }
    }

    /// The message that waited longest for a thread has it.
    pub(in crate::simulation) fn dispatched(&self) {
        let mut incoming = self.incoming.borrow_mut();
        if let Some((end, bytes)) = incoming.dispatching.pop_front() {
            self.hand_over(&mut incoming, end, bytes);
        }
    }

    fn hand_over(&self, incoming: &mut Incoming, end: End, bytes: u64) {
        if end.fin {
            incoming.ended = true;
        } else {
            incoming.arrived.push_back(bytes);
        }
        self.readable.wake();
    }

    /// Takes one message that has arrived; answers whether there was one. Messages that nobody takes keep the window
    /// closed, as a full receive buffer does.
    pub(in crate::simulation) fn take(self: &Rc<Self>, events: &Rc<Events>) -> bool {
        let Some(bytes) = self.incoming.borrow_mut().arrived.pop_front() else { return false };
        let mut out = self.outgoing.borrow_mut();
        let at = events.now() + self.delay();
        let at = out.taken.back().map_or(at, |(last, _)| at.max(*last));
        out.taken.push_back((at, bytes));
        self.schedule_window_check(events, &mut out);
        true
    }
}
