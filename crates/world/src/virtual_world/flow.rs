//! One direction of a connection: messages become bytes under way, and messages again.
//!
//! A message is prepared by a core of its sender, travels in pieces through the pipes of its path, and is taken in
//! by a core of its receiver. Of one flow, each of the two handles one message at a time, in order. No more than
//! the window is under way: the receiver's, and TCP's where it is modelled. What is lost is sent again when its
//! sender can know: a round trip later, or after a timeout if nothing else was under way.
//!
//! Acknowledgements take the way's delay back and no room on it. They are events only where a flow waits for them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::World;
use super::events::Happening;
use super::host::HostState;
use super::link::LinkState;
use super::pipe::Pipe;
use super::tcp::TcpWindow;
use super::waiters::Waiters;
use crate::Time;

/// A piece of a message is a quarter of the window or less, so that windows are exact to that, but no smaller
/// than this where the window allows it: pieces cost time to simulate.
const PIECE_BYTES: u64 = 64 << 10;
/// Without a window, a message has no more pieces than this.
const PIECES_MAX: u64 = 16;
/// What a sender may hand over before it waits for its window.
const SEND_BUFFER_BYTES: u64 = 4 << 20;
/// The window of a connection within a site: the usual bound of the kernel's buffers. Its slow start takes less
/// than a millisecond there, and is not modelled.
const SITE_WINDOW_BYTES: u64 = 4 << 20;

/// The end of a message, or of the connection.
#[derive(Clone, Copy)]
struct End {
    message_bytes: u64,
    fin: bool,
}

/// What of a message is still to be sent.
struct Unsent {
    bytes: u64,
    end: End,
}

/// Bytes of the stream.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    bytes: u64,
    end: Option<End>,
}

/// What the sender learns of a piece.
enum News {
    /// It has come. What ends a message holds room in the receiver's buffer until it is taken.
    Arrived {
        held: bool,
    },
    Lost {
        range: Range,
        timeout: bool,
    },
}

struct Ack {
    at: Time,
    /// How much later its last byte is acknowledged than its first.
    spread: Duration,
    bytes: u64,
    sent_at: Time,
    news: News,
}

#[derive(Default)]
struct Outgoing {
    unprepared: VecDeque<Unsent>,
    preparing: bool,
    unsent: VecDeque<Unsent>,
    /// Of both.
    unsent_bytes: u64,
    again: VecDeque<Range>,
    sent: u64,
    /// Not known to have come or to be lost.
    in_flight_bytes: u64,
    /// Of the receiver's window: in flight, or in its buffer.
    used_bytes: u64,
    acks: VecDeque<Ack>,
    /// When the last byte is acknowledged of what is known to have come: what may be sent for it goes as slowly.
    clock_until: Time,
    /// Of the acknowledgements, those that tell of a loss.
    losses: usize,
    /// When room in the receiver's buffer becomes known, and how much.
    taken: VecDeque<(Time, u64)>,
    /// The next look at the window, where one is needed.
    pump_at: Option<Time>,
}

#[derive(Default)]
struct Incoming {
    last_arrival: Time,
    /// Ranges that were lost and have not come again, in order.
    gaps: Vec<(u64, u64)>,
    /// Ends of messages behind a gap, by where they are.
    behind: BTreeMap<u64, (End, u64)>,
    /// Messages whose last byte has come, with the bytes that they hold of the window.
    receiving: VecDeque<(End, u64)>,
    busy: bool,
    /// Bytes that whole messages hold of the window until they are taken.
    arrived: VecDeque<u64>,
    ended: bool,
}

/// The addresses of a flow's ends: a port where there is one, else the host's name.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) from: Rc<str>,
    pub(super) to: Rc<str>,
}

/// One direction of a connection, in bytes and counts of messages.
pub(super) struct Flow {
    pub(super) from: Rc<HostState>,
    pub(super) to: Rc<HostState>,
    pub(super) ends: Ends,
    path: Vec<Rc<Pipe>>,
    link: Option<Rc<LinkState>>,
    tcp: Option<RefCell<TcpWindow>>,
    outgoing: RefCell<Outgoing>,
    incoming: RefCell<Incoming>,
    broken: Cell<bool>,
    pub(super) room: Waiters,
    pub(super) came: Waiters,
}

/// A part of a message under way.
pub(super) struct Piece {
    flow: Rc<Flow>,
    range: Range,
    again: bool,
    /// The next pipe of its path.
    hop: usize,
    /// How much later than its first byte its last is.
    spread: Duration,
    sent_at: Time,
}

impl Piece {
    pub(super) fn bytes(&self) -> u64 {
        self.range.bytes
    }

    pub(super) fn to(&self) -> &HostState {
        &self.flow.to
    }

    /// The piece reaches the next pipe on its way.
    pub(super) fn arrive(mut self, world: &Rc<World>) {
        let flow = self.flow.clone();
        if flow.broken.get() {
            return;
        }
        let pipe = &flow.path[self.hop];
        if pipe.is_cut() {
            pipe.stall(self);
            return;
        }
        let passed = pipe.pass(world.events.now(), self.spread, self.range.bytes);
        self.hop += 1;
        self.spread = passed.spread;
        if passed.lost_bytes > 0 && !self.lose(world, passed.lost_bytes, passed.head) {
            return;
        }
        if self.hop < flow.path.len() {
            world.events.add(passed.head, Happening::Piece(self));
        } else {
            flow.reach(world, &self, passed.head);
        }
    }

    /// Takes what is lost off the piece's end; answers whether anything is left. `at` is when the rest is behind the
    /// pipe that lost it.
    fn lose(&mut self, world: &Rc<World>, lost_bytes: u64, at: Time) -> bool {
        let flow = self.flow.clone();
        self.range.bytes -= lost_bytes;
        let range = Range {
            from: self.range.from + self.range.bytes,
            bytes: lost_bytes,
            end: self.range.end.take(),
        };
        if !self.again {
            flow.incoming.borrow_mut().gaps.push((range.from, range.from + range.bytes));
        }
        let alone = flow.outgoing.borrow().in_flight_bytes == lost_bytes;
        let rto = flow.tcp.as_ref().filter(|_| alone).map(|tcp| tcp.borrow().rto());
        let rest: Duration = flow.path[self.hop..].iter().map(|pipe| pipe.delay()).sum();
        let known = rto.map_or(at + rest + flow.delay(), |rto| self.sent_at + rto);
        let news = News::Lost { range, timeout: rto.is_some() };
        let (at, sent_at) = (known, self.sent_at);
        let ack = Ack { at, spread: Duration::ZERO, bytes: lost_bytes, sent_at, news };
        flow.acknowledge(world, ack);
        self.range.bytes > 0
    }
}

impl Flow {
    pub(super) fn new(
        from: &Rc<HostState>,
        to: &Rc<HostState>,
        ends: Ends,
        path: Vec<Rc<Pipe>>,
        link: Option<Rc<LinkState>>,
    ) -> Rc<Flow> {
        let tcp = link.as_ref().and_then(|link| link.config.borrow().tcp.clone());
        Rc::new(Flow {
            from: from.clone(),
            to: to.clone(),
            ends,
            path,
            link,
            tcp: tcp.map(|tcp| RefCell::new(TcpWindow::new(tcp))),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            broken: Cell::new(false),
            room: Waiters::default(),
            came: Waiters::default(),
        })
    }

    fn delay(&self) -> Duration {
        self.path.iter().map(|pipe| pipe.delay()).sum()
    }

    /// The receiver's window; none is without bound.
    fn window_bytes(&self) -> Option<u64> {
        match &self.link {
            Some(link) => link.config.borrow().window_bytes,
            None => Some(SITE_WINDOW_BYTES),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.incoming.borrow().ended
    }

    /// Whether a pipe of the path is cut.
    pub(super) fn is_cut(&self) -> bool {
        self.path.iter().any(|pipe| pipe.is_cut())
    }

    pub(super) fn has_room(&self) -> bool {
        self.outgoing.borrow().unsent_bytes < SEND_BUFFER_BYTES
    }

    /// Puts a message behind those that wait.
    pub(super) fn push(self: &Rc<Self>, world: &Rc<World>, bytes: u64, fin: bool) {
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
    pub(super) fn prepared(self: &Rc<Self>, world: &Rc<World>) {
        {
            let mut out = self.outgoing.borrow_mut();
            out.preparing = false;
            let next = out.unprepared.pop_front();
            out.unsent.extend(next);
        }
        self.prepare(world);
    }

    /// The look at the window that was set for now.
    pub(super) fn look(self: &Rc<Self>, world: &Rc<World>) {
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
        let again = out.again.front().map(|range| range.bytes);
        let left = again.or_else(|| out.unsent.front().map(|message| message.bytes))?;
        let bytes = left.min(self.piece_bytes(&out, now, left)?);
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

    /// How much of `left` may go now; none where the window is closed.
    fn piece_bytes(&self, out: &Outgoing, now: Time, left: u64) -> Option<u64> {
        let receiver = self.window_bytes().map(|window| window.max(1));
        let (window, free) = match (&self.tcp, receiver) {
            (None, None) => return Some(PIECE_BYTES.max(left.div_ceil(PIECES_MAX))),
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
    fn set_look(self: &Rc<Self>, world: &Rc<World>, out: &mut Outgoing) {
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

    /// A piece is at its receiver: its first byte at `head`, its last when its spread has passed.
    fn reach(self: &Rc<Self>, world: &Rc<World>, piece: &Piece, head: Time) {
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

    /// Lets the sender know at a time to come.
    fn acknowledge(self: &Rc<Self>, world: &Rc<World>, ack: Ack) {
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

    /// The last byte of a message is there: a core takes it in.
    pub(super) fn delivered(self: &Rc<Self>, world: &Rc<World>, bytes: u64, message: Message) {
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
            self.hand_over(&mut incoming);
        }
    }

    /// A core has taken a message in.
    pub(super) fn received(self: &Rc<Self>, world: &Rc<World>) {
        {
            let mut incoming = self.incoming.borrow_mut();
            incoming.busy = false;
            self.hand_over(&mut incoming);
        }
        self.receive(world);
    }

    fn hand_over(&self, incoming: &mut Incoming) {
        match incoming.receiving.pop_front() {
            Some((end, _)) if end.fin => incoming.ended = true,
            Some((_, bytes)) => incoming.arrived.push_back(bytes),
            None => return,
        }
        self.came.wake();
    }

    /// Takes one message that has arrived; answers whether there was one. What is not taken holds the
    /// window closed, as a full receive buffer does.
    pub(super) fn take(self: &Rc<Self>, world: &Rc<World>) -> bool {
        let Some(bytes) = self.incoming.borrow_mut().arrived.pop_front() else { return false };
        let mut out = self.outgoing.borrow_mut();
        let at = world.events.now() + self.delay();
        let at = out.taken.back().map_or(at, |(last, _)| at.max(*last));
        out.taken.push_back((at, bytes));
        self.set_look(world, &mut out);
        true
    }

    /// The connection breaks: what is under way is lost, and both sides are told.
    pub(super) fn break_off(&self) {
        self.broken.set(true);
        let mut out = self.outgoing.borrow_mut();
        out.unprepared.clear();
        out.unsent.clear();
        out.again.clear();
        drop(out);
        self.room.wake();
        self.came.wake();
    }
}

/// What a delivery hands on.
#[derive(Clone, Copy)]
pub(super) struct Message(End);

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
