//! One direction of a connection: messages become bytes in flight, and messages again.
//!
//! A core of the sender prepares a message, the message travels in pieces through the pipes of its path, and a core of
//! the receiver takes it in. Each of the two handles one message of a flow at a time, in order. No more bytes are in
//! flight than the window allows: the receiver's, and TCP's where it is modelled. Lost bytes are sent again once the
//! sender can know of the loss: a round trip later, or after a timeout if nothing else was in flight.
//!
//! Acknowledgements take the delay of the path and use no bandwidth. They are events only where a flow waits for them.
//!
//! | file | holds |
//! | --- | --- |
//! | `stream.rs` | the state of both sides, and the pieces between them |
//! | `mod.rs` | the flow, and the events of the network |
//! | `piece.rs` | a piece on its way, and where it is lost |
//! | `sending.rs` | the sender: windows, acknowledgements, what is sent again |
//! | `receiving.rs` | the receiver: the order of what arrived, until it is taken |

mod piece;
mod receiving;
mod sending;
mod stream;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::link::LinkState;
use super::pipe::Pipe;
use crate::Time;
use crate::simulation::events::EventQueue;
use crate::simulation::host::HostState;
use crate::simulation::trace::Kind;
use crate::simulation::waiters::Waiters;
use crate::tcp_window::TcpWindow;
pub(in crate::simulation) use stream::Piece;
use stream::{End, Incoming, Outgoing};

/// The window of a connection within a site: the usual bound of the kernel's buffers. Its slow start takes less
/// than a millisecond there, and is not modelled.
const SITE_WINDOW_BYTES: u64 = 4 << 20;

/// The addresses of a flow's ends: a port where there is one, else the host's name.
#[derive(Clone)]
pub(in crate::simulation) struct Ends {
    pub(in crate::simulation) from: Rc<str>,
    pub(in crate::simulation) to: Rc<str>,
}

/// One direction of a connection, in bytes and counts of messages.
pub(in crate::simulation) struct Flow {
    pub(in crate::simulation) from: Rc<HostState>,
    pub(in crate::simulation) to: Rc<HostState>,
    pub(in crate::simulation) ends: Ends,
    path: Vec<Rc<Pipe>>,
    /// When the last piece began to leave each pipe.
    left: Vec<Cell<Time>>,
    link: Option<Rc<LinkState>>,
    tcp: Option<RefCell<TcpWindow>>,
    outgoing: RefCell<Outgoing>,
    incoming: RefCell<Incoming>,
    broken: Cell<bool>,
    /// Whether it waits for what was lost, or for a window that a loss has reduced.
    held_by_loss: Cell<bool>,
    /// Tasks that wait for room to send.
    pub(in crate::simulation) writable: Waiters,
    /// Tasks that wait for a message.
    pub(in crate::simulation) readable: Waiters,
}

/// Something that is to happen in the network.
pub(in crate::simulation) enum NetworkEvent {
    /// The first byte of a piece arrives at the next pipe of its path. Boxed, as the queue moves an event several times
    /// on its way, and all events would be as large as a piece.
    Piece(Rc<Flow>, Box<Piece>),
    /// The last byte of a message, of so many in its last piece, arrives at its receiver.
    Delivered(Rc<Flow>, u64, MessageEnd),
    /// A core has prepared a message for sending.
    Prepared(Rc<Flow>),
    /// A core has received a message.
    Received(Rc<Flow>),
    /// A thread takes a message up.
    Dispatched(Rc<Flow>),
    /// Something is learnt that may open the window of a flow that waits for it.
    WindowCheck(Rc<Flow>),
}

/// [`End`], opaque outside of flows.
pub(in crate::simulation) struct MessageEnd(End);

/// The world's queue of events.
pub(in crate::simulation) type Events = EventQueue<NetworkEvent>;

impl NetworkEvent {
    #[inline]
    pub(in crate::simulation) fn happen(self, events: &Rc<Events>) {
        let now = events.now();
        match self {
            NetworkEvent::Piece(flow, piece) => {
                flow.to.trace.record(now, Kind::Piece, piece.range.bytes);
                flow.arrive(events, piece);
            }
            NetworkEvent::Delivered(flow, bytes, MessageEnd(end)) => {
                flow.to.trace.record(now, Kind::Delivered, bytes);
                flow.delivered(events, bytes, end);
            }
            NetworkEvent::Prepared(flow) => {
                flow.from.trace.record(now, Kind::Prepared, 0);
                flow.prepared(events);
            }
            NetworkEvent::Received(flow) => {
                flow.to.trace.record(now, Kind::Received, 0);
                flow.received(events);
            }
            NetworkEvent::Dispatched(flow) => {
                flow.to.trace.record(now, Kind::Dispatched, 0);
                flow.dispatched();
            }
            NetworkEvent::WindowCheck(flow) => {
                flow.from.trace.record(now, Kind::WindowCheck, 0);
                flow.check_window(events);
            }
        }
    }
}

impl Flow {
    pub(in crate::simulation) fn new(
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
            left: vec![Cell::default(); path.len()],
            path,
            link,
            tcp: tcp.map(|tcp| RefCell::new(TcpWindow::new(tcp))),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            broken: Cell::new(false),
            held_by_loss: Cell::new(false),
            writable: Waiters::default(),
            readable: Waiters::default(),
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

    pub(in crate::simulation) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// Whether a pipe of the path is cut.
    pub(in crate::simulation) fn is_cut(&self) -> bool {
        self.path.iter().any(|pipe| pipe.is_cut())
    }

    /// The connection breaks: what is in flight is lost, and both sides fail.
    pub(in crate::simulation) fn break_off(&self, now: Time) {
        self.broken.set(true);
        let mut out = self.outgoing.borrow_mut();
        out.unprepared.clear();
        out.unsent.clear();
        out.retransmit.clear();
        self.count_loss(now, &out);
        drop(out);
        self.writable.wake();
        self.readable.wake();
    }
}
