//! The sender of a flow: its windows, its acknowledgements, and what it sends again.

use std::cell::RefCell;
use std::rc::Rc;

use super::stream::{Ack, End, Fate, Outgoing, Range, Unsent};
use super::{Events, Flow, NetworkEvent, Piece};
use crate::Time;

/// A piece of a message is at most this part of the window, which makes windows exact to that, and at least
/// [`PIECE_BYTES`] where the window allows it: pieces cost time to simulate.
const PIECE_OF_WINDOW: u64 = 4;
/// The same within a site, whose window binds nothing.
const PIECE_OF_SITE_WINDOW: u64 = 2;
const PIECE_BYTES: u64 = 64 << 10;
/// Without a window, a message has at most this many pieces.
const PIECES_MAX: u64 = 16;
/// Bytes that may be handed to a flow before its sender waits for the window.
const SEND_BUFFER_BYTES: u64 = 4 << 20;

impl Flow {
    pub(in crate::simulation) fn has_room(&self) -> bool {
        self.outgoing.borrow().unsent_bytes < SEND_BUFFER_BYTES
    }

    /// Queues a message.
    pub(in crate::simulation) fn push(self: &Rc<Self>, events: &Rc<Events>, bytes: u64, fin: bool) {
        if self.broken.get() {
            return;
        }
        let bytes = bytes.max(1);
        let end = End { message_bytes: bytes, fin };
        let mut out = self.outgoing.borrow_mut();
        out.unsent_bytes += bytes;
        out.unprepared.push_back(Unsent { bytes, end });
        if !out.preparing {
            drop(out);
            self.prepare(events);
        }
    }

    /// Has a core prepare the next messages, until one takes time.
    fn prepare(self: &Rc<Self>, events: &Rc<Events>) {
        loop {
            let mut out = self.outgoing.borrow_mut();
            let Some(next) = out.unprepared.front() else { break };
            let now = events.now();
            let done = if next.end.fin { now } else { self.from.prepared_at(now, next.bytes) };
            if done > now {
                out.preparing = true;
                events.add(done, || NetworkEvent::Prepared(self.clone()));
                break;
            }
            let next = out.unprepared.pop_front();
            out.unsent.extend(next);
        }
        self.send(events, false);
    }

    /// A core has prepared a message.
    pub(in crate::simulation) fn prepared(self: &Rc<Self>, events: &Rc<Events>) {
        {
            let mut out = self.outgoing.borrow_mut();
            out.preparing = false;
            let next = out.unprepared.pop_front();
            out.unsent.extend(next);
        }
        self.prepare(events);
    }

    /// The window is checked, as was scheduled.
    pub(in crate::simulation) fn check_window(self: &Rc<Self>, events: &Rc<Events>) {
        let now = events.now();
        let mut out = self.outgoing.borrow_mut();
        if out.window_check_at == Some(now) {
            out.window_check_at = None;
        }
        drop(out);
        self.send(events, true);
    }

    /// Sends while the windows are open; paced by acknowledgements (`ack_clocked`) if those opened them.
    fn send(self: &Rc<Self>, events: &Rc<Events>, ack_clocked: bool) {
        let now = events.now();
        let was_full = !self.has_room();
        self.process_acks(now);
        let acks_end = if ack_clocked { self.outgoing.borrow().acks_end } else { now };
        while let Some((range, retransmit)) = self.next_piece(now) {
            let spread = acks_end - now;
            let piece = Piece { range, retransmit, hop: 0, spread, sent_at: now };
            self.arrive(events, self.from.boxed(piece));
        }
        let mut out = self.outgoing.borrow_mut();
        self.schedule_window_check(events, &mut out);
        self.count_loss(now, &out);
        drop(out);
        if was_full && self.has_room() {
            self.writable.wake();
        }
    }

    /// Has the pipes count the time in which this waits for what was lost, or for a window that a loss has reduced.
    pub(super) fn count_loss(&self, now: Time, out: &Outgoing) {
        let waits = || {
            let Some(tcp) = self.tcp.as_ref().map(RefCell::borrow) else { return false };
            let receiver = self.window_bytes().unwrap_or(u64::MAX);
            !out.unsent.is_empty() && tcp.has_lost() && tcp.window() < receiver
        };
        let resends = out.losses > 0 || !out.retransmit.is_empty();
        let held = !self.broken.get() && (resends || waits());
        if held != self.held_by_loss.replace(held) {
            self.path.iter().for_each(|pipe| pipe.holds_by_loss(now, held));
        }
    }

    /// Processes what the sender knows by now of the bytes that it sent.
    fn process_acks(&self, now: Time) {
        let mut out = self.outgoing.borrow_mut();
        while out.acks.front().is_some_and(|ack| ack.at <= now) {
            let Some(ack) = out.acks.pop_front() else { break };
            out.in_flight_bytes -= ack.bytes;
            let mut tcp = self.tcp.as_ref().map(RefCell::borrow_mut);
            match ack.fate {
                Fate::Arrived { held } => {
                    out.used_bytes -= if held { 0 } else { ack.bytes };
                    out.acks_end = out.acks_end.max(ack.at + ack.spread);
                    if let Some(tcp) = &mut tcp {
                        tcp.on_ack(ack.at, ack.bytes, ack.sent_at);
                    }
                }
                Fate::Lost { range, timeout } => {
                    match &mut tcp {
                        Some(tcp) if timeout => tcp.on_timeout(ack.at, ack.bytes),
                        Some(tcp) => tcp.on_loss(ack.at, ack.bytes, ack.sent_at),
                        None => {}
                    }
                    out.used_bytes -= ack.bytes;
                    out.losses -= 1;
                    out.retransmit.push_back(range);
                }
            }
        }
        while out.taken.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, bytes)) = out.taken.pop_front() else { break };
            out.used_bytes -= bytes;
        }
    }

    /// The next bytes to send, and whether they are a retransmission.
    fn next_piece(&self, now: Time) -> Option<(Range, bool)> {
        let mut out = self.outgoing.borrow_mut();
        let lost = out.retransmit.front().map(|range| (range.bytes, range.bytes));
        let message = || out.unsent.front().map(|part| (part.bytes, part.end.message_bytes));
        let (left, message_bytes) = lost.or_else(message)?;
        let bytes = left.min(self.piece_bytes(&out, now, (left, message_bytes))?);
        out.in_flight_bytes += bytes;
        out.used_bytes += bytes;
        if let Some(tcp) = &self.tcp {
            tcp.borrow_mut().on_send(now, bytes);
        }
        let whole = bytes == left;
        if let Some(range) = out.retransmit.front_mut() {
            let end = range.end.filter(|_| whole);
            let piece = Range { from: range.from, bytes, end };
            (range.from, range.bytes) = (range.from + bytes, range.bytes - bytes);
            if whole {
                out.retransmit.pop_front();
            }
            return Some((piece, true));
        }
        let from = out.sent;
        let message = out.unsent.front_mut()?;
        message.bytes -= bytes;
        let end = whole.then_some(message.end);
        if whole {
            out.unsent.pop_front();
        }
        out.sent += bytes;
        out.unsent_bytes -= bytes;
        Some((Range { from, bytes, end }, false))
    }

    /// How many bytes of `left` may be sent now, of a message of so many bytes; none where the window is closed.
    fn piece_bytes(
        &self,
        out: &Outgoing,
        now: Time,
        (left, message_bytes): (u64, u64),
    ) -> Option<u64> {
        let receiver = self.window_bytes().map(|window| window.max(1));
        if self.tcp.is_none() && receiver.is_none() {
            return Some(PIECE_BYTES.max(message_bytes.div_ceil(PIECES_MAX)));
        }
        let mut window = receiver.unwrap_or(u64::MAX);
        let (mut free, mut segment) = (window.saturating_sub(out.used_bytes), 1448);
        if let Some(tcp) = &self.tcp {
            let mut tcp = tcp.borrow_mut();
            free = free.min(tcp.room(now));
            (window, segment) = (window.min(tcp.window()), tcp.segment_bytes());
        }
        let part = if self.link.is_none() { PIECE_OF_SITE_WINDOW } else { PIECE_OF_WINDOW };
        let bytes = left.min(PIECE_BYTES.max(window / part)).min(free);
        // No tiny pieces (silly window syndrome): their acknowledgements would open the window for tiny pieces only.
        let least = left.min(segment.max(window / 64)).min(window);
        (bytes > 0 && (bytes >= least || out.in_flight_bytes == 0)).then_some(bytes)
    }

    /// Schedules a check of the window for when the sender learns something that may open it.
    pub(super) fn schedule_window_check(self: &Rc<Self>, events: &Rc<Events>, out: &mut Outgoing) {
        let waits = !out.unsent.is_empty() || !out.retransmit.is_empty();
        let next = if waits {
            let ack = out.acks.front().map(|ack| ack.at);
            let taken = out.taken.front().map(|(at, _)| *at);
            ack.into_iter().chain(taken).min()
        } else if out.losses > 0 {
            // Nothing new is to be sent, but lost bytes are.
            let lost = |ack: &&Ack| matches!(ack.fate, Fate::Lost { .. });
            out.acks.iter().find(lost).map(|ack| ack.at)
        } else {
            None
        };
        if let Some(at) = next.filter(|at| out.window_check_at.is_none_or(|set| *at < set)) {
            out.window_check_at = Some(at);
            events.add(at, || NetworkEvent::WindowCheck(self.clone()));
        }
    }

    /// Has the sender learn of bytes that it sent, when the acknowledgement arrives.
    pub(super) fn acknowledge(self: &Rc<Self>, events: &Rc<Events>, ack: Ack) {
        let mut out = self.outgoing.borrow_mut();
        out.losses += usize::from(matches!(ack.fate, Fate::Lost { .. }));
        // A loss is entered when it happens, so acknowledgements that arrive before the sender learns of it go before
        // it.
        let mut place = out.acks.len();
        while place > 0 && out.acks[place - 1].at > ack.at {
            let before = &mut out.acks[place - 1];
            if let Fate::Lost { timeout: timeout @ true, .. } = &mut before.fate
                && ack.sent_at >= before.sent_at
            {
                // Bytes that were sent later have arrived, which reveals the loss before the timeout does.
                (before.at, *timeout) = (ack.at, false);
                break;
            }
            place -= 1;
        }
        out.acks.insert(place, ack);
        self.schedule_window_check(events, &mut out);
        self.count_loss(events.now(), &out);
    }
}
