//! The way of a piece through the pipes of its path, and what happens where bytes of it are lost.

use std::rc::Rc;
use std::time::Duration;

use super::stream::{Ack, Fate, Range};
use super::{Events, Flow, NetworkEvent, Piece};
use crate::Time;

impl Flow {
    /// The first byte of a piece arrives at the next pipe of its path.
    pub(super) fn arrive(self: &Rc<Self>, events: &Rc<Events>, mut piece: Box<Piece>) {
        if self.broken.get() {
            return;
        }
        let pipe = &self.path[piece.hop];
        if pipe.is_cut() {
            let (flow, events) = (self.clone(), events.clone());
            pipe.stall(Box::new(move || flow.arrive(&events, piece)));
            return;
        }
        let passed = pipe.pass(events.now(), piece.spread, piece.range.bytes);
        // A small piece goes ahead of what others send, not of what its own connection sent before.
        let head = passed.head.max(self.left[piece.hop].get());
        self.left[piece.hop].set(head);
        piece.hop += 1;
        piece.spread = passed.spread;
        let goes_on =
            passed.lost_bytes == 0 || self.lose(events, &mut piece, passed.lost_bytes, head);
        if goes_on && piece.hop < self.path.len() {
            events.add(head, || NetworkEvent::Piece(self.clone(), piece));
            return;
        }
        if goes_on {
            self.reach(events, &piece, head);
        }
        self.from.spare_pieces.borrow_mut().push(piece);
    }

    /// Cuts lost bytes off a piece's end; answers whether anything is left. `at` is when the rest has passed the pipe
    /// that lost them.
    fn lose(
        self: &Rc<Self>,
        events: &Rc<Events>,
        piece: &mut Piece,
        lost_bytes: u64,
        at: Time,
    ) -> bool {
        piece.range.bytes -= lost_bytes;
        let range = Range {
            from: piece.range.from + piece.range.bytes,
            bytes: lost_bytes,
            end: piece.range.end.take(),
        };
        if !piece.retransmit {
            self.incoming.borrow_mut().gaps.push((range.from, range.from + range.bytes));
        }
        let alone = self.outgoing.borrow().in_flight_bytes == lost_bytes;
        let rto = self.tcp.as_ref().filter(|_| alone).map(|tcp| tcp.borrow().rto());
        let rest: Duration = self.path[piece.hop..].iter().map(|pipe| pipe.delay()).sum();
        let at = match rto {
            // A piece may have waited for longer, at a link that was cut: nobody knows of a loss before it happens.
            Some(rto) => (piece.sent_at + rto).max(events.now()),
            None => at + rest + self.delay(),
        };
        let fate = Fate::Lost { range, timeout: rto.is_some() };
        let sent_at = piece.sent_at;
        let ack = Ack { at, spread: Duration::ZERO, bytes: lost_bytes, sent_at, fate };
        self.acknowledge(events, ack);
        piece.range.bytes > 0
    }
}
