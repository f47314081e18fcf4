//! The way of a piece through the pipes of its path, and what happens where bytes of it are lost.

use std::rc::Rc;
use std::time::Duration;

use super::stream::{Ack, Fate, Range};
use super::{Events, NetworkEvent, Piece};
use crate::Time;

impl Piece {
    /// The first byte of the piece arrives at the next pipe of its path.
    pub(super) fn arrive(mut self: Box<Self>, events: &Rc<Events>) {
        let flow = self.flow.clone();
        if flow.broken.get() {
            return;
        }
        let pipe = &flow.path[self.hop];
        if pipe.is_cut() {
            let events = events.clone();
            flow.path[self.hop].stall(Box::new(move || self.arrive(&events)));
            return;
        }
        let passed = pipe.pass(events.now(), self.spread, self.range.bytes);
        self.hop += 1;
        self.spread = passed.spread;
        if passed.lost_bytes > 0 && !self.lose(events, passed.lost_bytes, passed.head) {
            return;
        }
        if self.hop < flow.path.len() {
            events.add(passed.head, NetworkEvent::Piece(self));
        } else {
            flow.reach(events, &self, passed.head);
        }
    }

    /// Cuts lost bytes off the piece's end; answers whether anything is left. `at` is when the rest has passed the pipe
    /// that lost them.
    fn lose(&mut self, events: &Rc<Events>, lost_bytes: u64, at: Time) -> bool {
        let flow = self.flow.clone();
        self.range.bytes -= lost_bytes;
        let range = Range {
            from: self.range.from + self.range.bytes,
            bytes: lost_bytes,
            end: self.range.end.take(),
        };
        if !self.retransmit {
            flow.incoming.borrow_mut().gaps.push((range.from, range.from + range.bytes));
        }
        let alone = flow.outgoing.borrow().in_flight_bytes == lost_bytes;
        let rto = flow.tcp.as_ref().filter(|_| alone).map(|tcp| tcp.borrow().rto());
        let rest: Duration = flow.path[self.hop..].iter().map(|pipe| pipe.delay()).sum();
        let known = rto.map_or(at + rest + flow.delay(), |rto| self.sent_at + rto);
        let fate = Fate::Lost { range, timeout: rto.is_some() };
        let (at, sent_at) = (known, self.sent_at);
        let ack = Ack { at, spread: Duration::ZERO, bytes: lost_bytes, sent_at, fate };
        flow.acknowledge(events, ack);
        self.range.bytes > 0
    }
}
