//! The sender's side of a flow.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::{End, Flow, Piece, Range};
use crate::Time;
use crate::virtual_world::World;
use crate::virtual_world::events::Happening;

/// A piece of a message is a quarter of the window or less, so that windows are exact to that, but no smaller
/// than this where the window allows it: pieces cost time to simulate.
const PIECE_BYTES: u64 = 64 << 10;
/// Without a window, a message has no more pieces than this.
const PIECES_MAX: u64 = 16;
/// What a sender may hand over before it waits for its window.
const SEND_BUFFER_BYTES: u64 = 4 << 20;
/// What of a message is still to be sent.
pub(super) struct Unsent {
    pub(super) bytes: u64,
    pub(super) end: End,
}

/// What the sender learns of a piece.
pub(super) enum News {
    /// It has come. What ends a message holds room in the receiver's buffer until it is taken.
    Arrived {
        held: bool,
    },
    Lost {
        range: Range,
        timeout: bool,
    },
}

pub(super) struct Ack {
    pub(super) at: Time,
    /// How much later its last byte is acknowledged than its first.
    pub(super) spread: Duration,
    pub(super) bytes: u64,
    pub(super) sent_at: Time,
    pub(super) news: News,
}

#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) unprepared: VecDeque<Unsent>,
    pub(super) preparing: bool,
    pub(super) unsent: VecDeque<Unsent>,
    /// Of both.
    pub(super) unsent_bytes: u64,
    pub(super) again: VecDeque<Range>,
    pub(super) sent: u64,
    /// Not known to have come or to be lost.
    pub(super) in_flight_bytes: u64,
    /// Of the receiver's window: in flight, or in its buffer.
    pub(super) used_bytes: u64,
    pub(super) acks: VecDeque<Ack>,
    /// When the last byte is acknowledged of what is known to have come: what may be sent for it goes as slowly.
    pub(super) clock_until: Time,
    /// Of the acknowledgements, those that tell of a loss.
    pub(super) losses: usize,
    /// When room in the receiver's buffer becomes known, and how much.
    pub(super) taken: VecDeque<(Time, u64)>,
    /// The next look at the window, where one is needed.
    pub(super) pump_at: Option<Time>,
}

impl Flow {
    pub(in crate::virtual_world) fn has_room(&self) -> bool {
        self.outgoing.borrow().unsent_bytes < SEND_BUFFER_BYTES
    }

    /// Puts a message behind those that wait.
    pub(in crate::virtual_world) fn push(
        self: &Rc<Self>,
        world: &Rc<World>,
        bytes: u64,
        fin: bool,
    ) {
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
            self.prepare(world);
        }
    }

    /// Has a core prepare the next message, where that takes time.
    fn prepare(self: &Rc<Self>, world: &Rc<World>) {
        loop {
            let mut out = self.outgoing.borrow_mut();
            let Some(next) = out.unprepared.front() else { break };
            let now = world.events.now();
            let done = match next.end.fin {
                true => now,
                false => self.from.send_cost(now, next.bytes),
            };
            if done > now {
                out.preparing = true;
                world.events.add(done, Happening::Prepared(self.clone()));
                break;
            }
            let next = out.unprepared.pop_front();
            out.unsent.extend(next);
        }
        self.pump(world, false);
    }

    /// A message is prepared.
    pub(in crate::virtual_world) fn prepared(self: &Rc<Self>, world: &Rc<World>) {
        {
            let mut out = self.outgoing.borrow_mut();
            out.preparing = false;
            let next = out.unprepared.pop_front();
            out.unsent.extend(next);
        }
        self.prepare(world);
    }

    /// The look at the window that was set for now.
    pub(in crate::virtual_world) fn look(self: &Rc<Self>, world: &Rc<World>) {
        let now = world.events.now();
        let mut out = self.outgoing.borrow_mut();
        if out.pump_at == Some(now) {
            out.pump_at = None;
        }
        drop(out);
        self.pump(world, true);
    }

    /// Sends while the windows are open; as slowly as acknowledgements come, where they are what opens them.
    fn pump(self: &Rc<Self>, world: &Rc<World>, clocked: bool) {
        let now = world.events.now();
        let was_full = !self.has_room();
        self.hear(now);
        let clock_until = if clocked { self.outgoing.borrow().clock_until } else { now };
        while let Some((range, again)) = self.next_piece(now) {
            let piece = Piece {
                flow: self.clone(),
                range,
                again,
                hop: 0,
                spread: clock_until - now,
                sent_at: now,
            };
            piece.arrive(world);
        }
        let mut out = self.outgoing.borrow_mut();
        self.set_look(world, &mut out);
        drop(out);
        if was_full && self.has_room() {
            self.room.wake();
        }
    }

    /// Learns what is known by now of what was sent.
    fn hear(&self, now: Time) {
        let mut out = self.outgoing.borrow_mut();
        while out.acks.front().is_some_and(|ack| ack.at <= now) {
            let Some(ack) = out.acks.pop_front() else { break };
            out.in_flight_bytes -= ack.bytes;
            let mut tcp = self.tcp.as_ref().map(RefCell::borrow_mut);
            match ack.news {
                News::Arrived { held } => {
                    out.used_bytes -= if held { 0 } else { ack.bytes };
                    out.clock_until = out.clock_until.max(ack.at + ack.spread);
                    if let Some(tcp) = &mut tcp {
                        tcp.on_ack(ack.at, ack.bytes, ack.sent_at);
                    }
                }
                News::Lost { range, timeout } => {
                    match &mut tcp {
                        Some(tcp) if timeout => tcp.on_timeout(ack.at, ack.bytes),
                        Some(tcp) => tcp.on_loss(ack.at, ack.bytes, ack.sent_at),
                        None => {}
                    }
                    out.used_bytes -= ack.bytes;
                    out.losses -= 1;
                    out.again.push_back(range);
                }
            }
        }
        while out.taken.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, bytes)) = out.taken.pop_front() else { break };
            out.used_bytes -= bytes;
        }
    }

    /// The next bytes to be sent, and whether they are sent again.
    fn next_piece(&self, now: Time) -> Option<(Range, bool)> {
        let mut out = self.outgoing.borrow_mut();
        let again = out.again.front().map(|range| (range.bytes, range.bytes));
        let message = || out.unsent.front().map(|part| (part.bytes, part.end.message_bytes));
        let (left, whole_bytes) = again.or_else(message)?;
        let bytes = left.min(self.piece_bytes(&out, now, (left, whole_bytes))?);
        out.in_flight_bytes += bytes;
        out.used_bytes += bytes;
        if let Some(tcp) = &self.tcp {
            tcp.borrow_mut().on_send(now, bytes);
        }
        let whole = bytes == left;
        if let Some(range) = out.again.front_mut() {
            let end = range.end.filter(|_| whole);
            let piece = Range { from: range.from, bytes, end };
            (range.from, range.bytes) = (range.from + bytes, range.bytes - bytes);
            if whole {
                out.again.pop_front();
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

    /// How much of `left` may go now, of a message of so many bytes; none where the window is closed.
    fn piece_bytes(
        &self,
        out: &Outgoing,
        now: Time,
        (left, message_bytes): (u64, u64),
    ) -> Option<u64> {
        let receiver = self.window_bytes().map(|window| window.max(1));
        let (window, free) = match (&self.tcp, receiver) {
            (None, None) => return Some(PIECE_BYTES.max(message_bytes.div_ceil(PIECES_MAX))),
            (tcp, receiver) => {
                let receiver = receiver.unwrap_or(u64::MAX);
                let free = receiver.saturating_sub(out.used_bytes);
                match tcp {
                    None => (receiver, free),
                    Some(tcp) => {
                        let mut tcp = tcp.borrow_mut();
                        let room = tcp.room(now);
                        (receiver.min(tcp.window()), free.min(room))
                    }
                }
            }
        };
        let segment = self.tcp.as_ref().map_or(1448, |tcp| tcp.borrow().segment_bytes());
        let bytes = left.min(PIECE_BYTES.max(window / 4)).min(free);
        // No crumbs: they would be acknowledged as crumbs, and go on as such.
        let least = left.min(segment.max(window / 64)).min(window);
        (bytes > 0 && (bytes >= least || out.in_flight_bytes == 0)).then_some(bytes)
    }

    /// Sets a look at the window for when something is learnt that this flow waits for.
    pub(super) fn set_look(self: &Rc<Self>, world: &Rc<World>, out: &mut Outgoing) {
        let waits = !out.unsent.is_empty() || !out.again.is_empty();
        let next = if waits {
            let ack = out.acks.front().map(|ack| ack.at);
            let taken = out.taken.front().map(|(at, _)| *at);
            ack.into_iter().chain(taken).min()
        } else if out.losses > 0 {
            // What was lost must be sent again though nothing else is to be sent.
            let lost = |ack: &&Ack| matches!(ack.news, News::Lost { .. });
            out.acks.iter().find(lost).map(|ack| ack.at)
        } else {
            None
        };
        if let Some(at) = next.filter(|at| out.pump_at.is_none_or(|set| *at < set)) {
            out.pump_at = Some(at);
            world.events.add(at, Happening::Look(self.clone()));
        }
    }

    /// Lets the sender know at a time to come.
    pub(super) fn acknowledge(self: &Rc<Self>, world: &Rc<World>, ack: Ack) {
        let mut out = self.outgoing.borrow_mut();
        out.losses += usize::from(matches!(ack.news, News::Lost { .. }));
        // Losses are known here as soon as they happen, so what comes until they are told goes before them.
        let mut place = out.acks.len();
        while place > 0 && out.acks[place - 1].at > ack.at {
            let before = &mut out.acks[place - 1];
            if let News::Lost { timeout: waits @ true, .. } = &mut before.news
                && ack.sent_at >= before.sent_at
            {
                // What was sent later has come: that tells sooner than the time does.
                (before.at, *waits) = (ack.at, false);
                break;
            }
            place -= 1;
        }
        out.acks.insert(place, ack);
        self.set_look(world, &mut out);
    }
}
