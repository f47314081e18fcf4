//! One direction of a connection: messages become bytes under way, and messages again.
//!
//! A message is prepared by a core of its sender, travels in pieces through the pipes of its path, and is taken in
//! by a core of its receiver. Of one flow, each of the two handles one message at a time, in order. No more than
//! the window is under way: the receiver's, and TCP's where it is modelled. What is lost is sent again when its
//! sender can know: a round trip later, or after a timeout if nothing else was under way.
//!
//! Acknowledgements take the way's delay back and no room on it. They are events only where a flow waits for them.
//!
//! | file | holds |
//! | --- | --- |
//! | `flow.rs` | the flow, and its pieces on their way |
//! | `sending.rs` | the sender's side: what is still to go, what is under way, what is lost |
//! | `receiving.rs` | the receiver's side: what came, in order, until it is taken |

mod receiving;
mod sending;

use std::cell::{Cell, RefCell};
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
use receiving::Incoming;
pub(super) use receiving::Message;
use sending::{Ack, News, Outgoing};

/// The window of a connection within a site: the usual bound of the kernel's buffers. Its slow start takes less
/// than a millisecond there, and is not modelled.
const SITE_WINDOW_BYTES: u64 = 4 << 20;

/// The end of a message, or of the connection.
#[derive(Clone, Copy)]
struct End {
    message_bytes: u64,
    fin: bool,
}

/// Bytes of the stream.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    bytes: u64,
    end: Option<End>,
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

    /// Whether a pipe of the path is cut.
    pub(super) fn is_cut(&self) -> bool {
        self.path.iter().any(|pipe| pipe.is_cut())
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
