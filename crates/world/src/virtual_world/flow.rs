//! Bytes on their way: pipes with a rate and a delay, and flows of messages through them.
//!
//! A message travels in pieces. Each piece waits its turn at every pipe of its path, so that flows share a
//! pipe's rate; a flow has no more than its window of unacknowledged bytes under way.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use super::World;
use crate::Time;
use crate::cut::Cut;
use crate::queue::RateQueue;

/// Messages travel in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;
/// What a sender may hand over before it waits for its window.
const SEND_BUFFER_BYTES: u64 = 4 << 20;

/// A queue with a rate, and a delay behind it.
pub(super) struct Pipe {
    rate_bytes_per_s: Cell<Option<u64>>,
    delay: Cell<Duration>,
    queue: RefCell<RateQueue>,
    bytes: Cell<u64>,
    cut: Cut,
    stalled: RefCell<VecDeque<Piece>>,
}

impl Pipe {
    pub(super) fn new(rate_bytes_per_s: Option<u64>, delay: Duration) -> Rc<Pipe> {
        Pipe::with_cut(rate_bytes_per_s, delay, Cut::default())
    }

    pub(super) fn with_cut(rate: Option<u64>, delay: Duration, cut: Cut) -> Rc<Pipe> {
        Rc::new(Pipe {
            rate_bytes_per_s: Cell::new(rate),
            delay: Cell::new(delay),
            queue: RefCell::default(),
            bytes: Cell::new(0),
            cut,
            stalled: RefCell::default(),
        })
    }

    pub(super) fn configure(&self, rate_bytes_per_s: Option<u64>, delay: Duration) {
        self.rate_bytes_per_s.set(rate_bytes_per_s);
        self.delay.set(delay);
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay.get()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    pub(super) fn busy(&self, now: Time) -> Duration {
        self.queue.borrow().busy(now)
    }

    /// When a piece that is here now will be at the other end.
    fn pass(&self, now: Time, bytes: u64) -> Time {
        let nanos = match self.rate_bytes_per_s.get() {
            Some(rate) => u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1)),
            None => 0,
        };
        let service = Duration::from_nanos(nanos as u64);
        self.bytes.set(self.bytes.get() + bytes);
        self.queue.borrow_mut().reserve(now, service) + self.delay.get()
    }

    /// Lets go what waited for the cut to heal.
    pub(super) fn healed(&self, world: &Rc<World>) {
        let stalled = std::mem::take(&mut *self.stalled.borrow_mut());
        for piece in stalled {
            piece.arrive(world);
        }
    }
}

/// What of a message is still to be sent.
struct Unsent {
    bytes: u64,
    fin: bool,
}

/// One direction of a connection, in bytes and counts of messages.
pub(super) struct Flow {
    path: Vec<Rc<Pipe>>,
    window_bytes: u64,
    unsent: RefCell<VecDeque<Unsent>>,
    unsent_bytes: Cell<u64>,
    unacked_bytes: Cell<u64>,
    last_arrival: Cell<Time>,
    /// Whole messages that have arrived and were not taken.
    arrived: Cell<u64>,
    /// Bytes of their last pieces: acknowledged when they are taken.
    arrived_bytes: RefCell<VecDeque<u64>>,
    ended: Cell<bool>,
    broken: Cell<bool>,
    pub(super) room: Notify,
    pub(super) came: Notify,
}

/// Where a piece goes.
enum Way {
    /// To the pipe of this number on its path; past the last it is there.
    Hop(usize),
    /// Back, as an acknowledgement.
    Ack,
}

/// A part of a message under way.
pub(super) struct Piece {
    flow: Rc<Flow>,
    bytes: u64,
    last: bool,
    fin: bool,
    way: Way,
}

impl Piece {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece reaches the next place on its way.
    pub(super) fn arrive(mut self, world: &Rc<World>) {
        if self.flow.broken.get() {
            return;
        }
        let hop = match self.way {
            Way::Ack => return self.flow.clone().acked(world, self.bytes),
            Way::Hop(hop) => hop,
        };
        let flow = self.flow.clone();
        let Some(pipe) = flow.path.get(hop) else { return flow.deliver(world, &self) };
        if pipe.cut.is_cut() {
            pipe.stalled.borrow_mut().push_back(self);
            return;
        }
        let mut at = pipe.pass(world.events.now(), self.bytes);
        if hop + 1 == flow.path.len() {
            // A path that becomes shorter does not let later pieces overtake earlier ones.
            at = at.max(flow.last_arrival.get());
            flow.last_arrival.set(at);
        }
        self.way = Way::Hop(hop + 1);
        world.events.arrive(at, self);
    }
}

impl Flow {
    pub(super) fn new(path: Vec<Rc<Pipe>>, window_bytes: u64) -> Rc<Flow> {
        Rc::new(Flow {
            path,
            window_bytes: window_bytes.max(1),
            unsent: RefCell::default(),
            unsent_bytes: Cell::new(0),
            unacked_bytes: Cell::new(0),
            last_arrival: Cell::new(Time(0)),
            arrived: Cell::new(0),
            arrived_bytes: RefCell::default(),
            ended: Cell::new(false),
            broken: Cell::new(false),
            room: Notify::new(),
            came: Notify::new(),
        })
    }

    fn delay(&self) -> Duration {
        self.path.iter().map(|pipe| pipe.delay()).sum()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    pub(super) fn has_room(&self) -> bool {
        self.unsent_bytes.get() < SEND_BUFFER_BYTES
    }

    /// Puts a message behind those that wait.
    pub(super) fn push(self: &Rc<Self>, world: &Rc<World>, bytes: u64, fin: bool) {
        let bytes = bytes.max(1);
        self.unsent.borrow_mut().push_back(Unsent { bytes, fin });
        self.unsent_bytes.set(self.unsent_bytes.get() + bytes);
        self.pump(world);
    }

    /// Sends while the window is open.
    fn pump(self: &Rc<Self>, world: &Rc<World>) {
        loop {
            let free = self.window_bytes.saturating_sub(self.unacked_bytes.get());
            let piece = {
                let mut unsent = self.unsent.borrow_mut();
                let Some(message) = unsent.front_mut() else { return };
                let bytes = message.bytes.min(PIECE_BYTES);
                if free == 0 || (bytes > free && self.unacked_bytes.get() > 0) {
                    return;
                }
                message.bytes -= bytes;
                let (last, fin) = (message.bytes == 0, message.fin);
                if last {
                    unsent.pop_front();
                }
                Piece { flow: self.clone(), bytes, last, fin, way: Way::Hop(0) }
            };
            self.unsent_bytes.set(self.unsent_bytes.get() - piece.bytes);
            self.unacked_bytes.set(self.unacked_bytes.get() + piece.bytes);
            self.room.notify_waiters();
            piece.arrive(world);
        }
    }

    fn deliver(self: &Rc<Self>, world: &Rc<World>, piece: &Piece) {
        if piece.fin {
            self.ended.set(true);
            self.came.notify_waiters();
        } else if piece.last {
            self.arrived.set(self.arrived.get() + 1);
            self.arrived_bytes.borrow_mut().push_back(piece.bytes);
            self.came.notify_waiters();
        } else {
            self.acknowledge(world, piece.bytes);
        }
    }

    /// Takes one message that has arrived; answers whether there was one. What is not taken holds the
    /// window closed, as a full receive buffer does.
    pub(super) fn take(self: &Rc<Self>, world: &Rc<World>) -> bool {
        let Some(bytes) = self.arrived_bytes.borrow_mut().pop_front() else { return false };
        self.arrived.set(self.arrived.get() - 1);
        self.acknowledge(world, bytes);
        true
    }

    fn acknowledge(self: &Rc<Self>, world: &Rc<World>, bytes: u64) {
        let at = world.events.now() + self.delay();
        let piece = Piece { flow: self.clone(), bytes, last: false, fin: false, way: Way::Ack };
        world.events.arrive(at, piece);
    }

    fn acked(self: Rc<Self>, world: &Rc<World>, bytes: u64) {
        self.unacked_bytes.set(self.unacked_bytes.get() - bytes);
        self.pump(world);
    }

    /// The connection breaks: what is under way is lost, and both sides are told.
    pub(super) fn break_off(&self) {
        self.broken.set(true);
        self.unsent.borrow_mut().clear();
        self.room.notify_waiters();
        self.came.notify_waiters();
    }
}
