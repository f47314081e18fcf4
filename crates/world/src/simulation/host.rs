//! A host's state: its model, queues, disk, random numbers and counters.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::disk::VirtualDisk;
use super::network::{Piece, Pipe};
use super::trace::HostTrace;
use crate::counters::NetCounters;
use crate::queue::{CoreQueue, DiskQueue};
use crate::{Time, model};

/// A message that takes a core no longer than this does not wait for long work, which the kernel would preempt.
const SLICE: Duration = Duration::from_millis(1);
/// The loopback device, between tasks of one host.
const LOOPBACK_BYTES_PER_S: u64 = 2_600_000_000;
const LOOPBACK_DELAY: Duration = Duration::from_micros(10);

/// Random numbers that depend on the world's seed and on a name, and on nothing else.
pub(super) fn seeded_random(seed: u64, name: &str) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed))
}

pub(super) struct HostState {
    pub(super) name: Rc<str>,
    pub(super) card_out: Rc<Pipe>,
    pub(super) card_in: Rc<Pipe>,
    pub(super) loopback: Rc<Pipe>,
    pub(super) model: RefCell<model::Host>,
    /// All work of the cores.
    pub(super) cores: RefCell<CoreQueue>,
    /// Short work, which the kernel lets go ahead of long work.
    pub(super) short: RefCell<CoreQueue>,
    /// Running searches, which share the cores.
    pub(super) searches: Cell<u32>,
    /// Core time that searches took so far.
    pub(super) search_cpu: Cell<Duration>,
    /// Core time that other processes than its own were given.
    pub(super) others_cpu: Cell<Duration>,
    /// Until when the cores have some of it to do.
    pub(super) others_until: Cell<Time>,
    /// When the use of all cores was last reckoned, what they had done by then, and the percentage.
    pub(super) cpu_told: Cell<Option<(Time, Duration, Option<u64>)>>,
    pub(super) disk_queue: RefCell<DiskQueue>,
    pub(super) disk: VirtualDisk,
    pub(super) random: RefCell<Xoshiro256PlusPlus>,
    /// How far its clock is ahead of the world's.
    pub(super) clock_off_ms: Cell<i64>,
    pub(super) counters: Rc<NetCounters>,
    pub(super) trace: HostTrace,
    /// Boxes of pieces that have arrived, for the next ones: what was used last is still in a core's cache.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    pub(super) spare_pieces: RefCell<Vec<Box<Piece>>>,
    next_port: Cell<u32>,
}

impl HostState {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let model = model::Host::default();
        let card = || Pipe::of_host(model.card_bytes_per_s, model.card_delay);
        let (card_out, card_in) = (card(), card());
        HostState {
            name: Rc::from(name),
            card_out,
            card_in,
            loopback: Pipe::of_host(LOOPBACK_BYTES_PER_S, LOOPBACK_DELAY),
            cores: RefCell::new(CoreQueue::new(model.cores as usize)),
            short: RefCell::new(CoreQueue::new(model.cores as usize)),
            model: RefCell::new(model),
            searches: Cell::default(),
            search_cpu: Cell::default(),
            others_cpu: Cell::default(),
            others_until: Cell::default(),
            cpu_told: Cell::default(),
            disk_queue: RefCell::default(),
            disk: VirtualDisk::default(),
            random: RefCell::new(seeded_random(seed, name)),
            clock_off_ms: Cell::default(),
            counters: Rc::default(),
            trace: HostTrace::default(),
            spare_pieces: RefCell::default(),
            next_port: Cell::new(40_000),
        }
    }

    /// When a core that begins now has prepared a message for sending.
    pub(super) fn prepared_at(&self, now: Time, bytes: u64) -> Time {
        let cost = self.model.borrow().costs.send(bytes);
        self.message_work(now, cost)
    }

    /// When a core that begins now has received a message.
    pub(super) fn received_at(&self, now: Time, bytes: u64) -> Time {
        let cost = self.model.borrow().costs.receive(bytes);
        self.message_work(now, cost)
    }

    /// How long a received message waits for a thread.
    pub(super) fn dispatch(&self) -> Duration {
        self.model.borrow().costs.dispatch
    }

    fn message_work(&self, now: Time, cost: Duration) -> Time {
        if cost.is_zero() {
            return now;
        }
        let queued = self.cores.borrow_mut().reserve(now, cost);
        match cost > SLICE || now < self.others_until.get() {
            true => queued,
            false => self.short.borrow_mut().reserve(now, cost),
        }
    }

    /// A piece in a box that another one has left, if there is any.
    pub(super) fn boxed(&self, piece: Piece) -> Box<Piece> {
        match self.spare_pieces.borrow_mut().pop() {
            Some(mut spare) => {
                *spare = piece;
                spare
            }
            None => Box::new(piece),
        }
    }

    pub(super) fn free_port(&self) -> u32 {
        self.next_port.set(self.next_port.get() + 1);
        self.next_port.get()
    }
}
