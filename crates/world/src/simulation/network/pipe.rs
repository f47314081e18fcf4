//! A queue with a rate and a delay behind it: a network card's direction, a link's direction, the loopback.
//!
//! Pieces of messages are cut through, as by a switch: the first byte leaves before the last has arrived. A piece
//! occupies the pipe for the time that its bytes take at the pipe's rate, even if it arrives more slowly than that.
//!
//! Bytes are lost here and nowhere else: what overflows the queue of a link, and what its line loses at random.
//! [`Pipe::pass`] says how many; the rest of a lost segment's way is told in `network/mod.rs`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Time;
use crate::faults::LinkFaults;
use crate::model::{LinkConfig, at_rate};
use crate::queue::{RateQueue, Waits};

/// Pieces up to this size go ahead of larger ones in a card, as sparse flows do in Linux's default queue (fq_codel).
const SMALL_BYTES: u64 = 16 << 10;

/// Random loss of segments on a line.
struct RandomLoss {
    segment_bytes: u64,
    /// A random number below this loses a segment.
    threshold: u64,
    random: Xoshiro256PlusPlus,
}

impl RandomLoss {
    /// Draws how many of these bytes are lost.
    fn draw(&mut self, bytes: u64) -> u64 {
        if self.threshold == 0 {
            return 0;
        }
        let segments = bytes.div_ceil(self.segment_bytes);
        let lost = (0..segments).filter(|_| self.random.next_u64() < self.threshold).count() as u64;
        (lost * self.segment_bytes).min(bytes)
    }
}

/// A piece at the far end of a pipe.
pub(in crate::simulation) struct Passed {
    /// When its first byte arrives there.
    pub(super) head: Time,
    /// How much later its last byte does.
    pub(super) spread: Duration,
    /// Bytes lost from its end.
    pub(super) lost_bytes: u64,
}

/// A piece whose last byte has not arrived.
struct Arriving {
    from: Time,
    until: Time,
    bytes: u64,
}

impl Arriving {
    /// Bytes that are still to arrive then.
    fn left(&self, at: Time) -> u64 {
        let (left, whole) = ((self.until - at).as_nanos(), (self.until - self.from).as_nanos());
        (u128::from(self.bytes) * left.min(whole) / whole.max(1)) as u64
    }
}

/// What continues when a cut heals.
type Continue = Box<dyn FnOnce()>;

#[derive(Default)]
pub(in crate::simulation) struct Pipe {
    rate_bytes_per_s: Cell<Option<u64>>,
    delay: Cell<Duration>,
    queue_bytes: Cell<Option<u64>>,
    random_loss: RefCell<Option<RandomLoss>>,
    queue: RefCell<RateQueue>,
    /// In a pipe that loses what its queue cannot hold: what is reserved there and does not wait yet.
    arriving: RefCell<Vec<Arriving>>,
    /// When the last small piece has passed, in a pipe where they go ahead.
    small_until: Option<Cell<Time>>,
    bytes: Cell<u64>,
    /// Flows that wait for what was lost.
    held_by_loss: RefCell<Waits>,
    /// Those of its link: a pipe of a host is never cut.
    faults: Option<LinkFaults>,
    stalled: RefCell<Vec<Continue>>,
}

impl Pipe {
    /// A pipe of a host: small pieces go ahead of large ones.
    pub(in crate::simulation) fn of_host(rate_bytes_per_s: u64, delay: Duration) -> Rc<Pipe> {
        let pipe = Pipe { small_until: Some(Cell::default()), ..Pipe::default() };
        pipe.set_rate(Some(rate_bytes_per_s), delay);
        Rc::new(pipe)
    }

    /// A direction of a link: first come, first served, as routers do.
    pub(in crate::simulation) fn of_link(
        config: &LinkConfig,
        faults: LinkFaults,
        random: Xoshiro256PlusPlus,
    ) -> Rc<Pipe> {
        let loss = RandomLoss { segment_bytes: 1448, threshold: 0, random };
        let (faults, random_loss) = (Some(faults), RefCell::new(Some(loss)));
        let pipe = Pipe { faults, random_loss, ..Pipe::default() };
        pipe.configure(config);
        Rc::new(pipe)
    }

    pub(in crate::simulation) fn set_rate(&self, rate_bytes_per_s: Option<u64>, delay: Duration) {
        self.rate_bytes_per_s.set(rate_bytes_per_s);
        self.delay.set(delay);
    }

    pub(in crate::simulation) fn configure(&self, config: &LinkConfig) {
        self.set_rate(config.rate_bytes_per_s, config.one_way());
        self.queue_bytes.set(config.queue_bytes);
        if let Some(random_loss) = &mut *self.random_loss.borrow_mut() {
            let (loss, segment) = match &config.tcp {
                Some(tcp) => (tcp.loss, u64::from(tcp.segment_bytes)),
                None => (0.0, random_loss.segment_bytes),
            };
            random_loss.threshold = (loss * u64::MAX as f64) as u64;
            random_loss.segment_bytes = segment.max(1);
        }
    }

    pub(in crate::simulation) fn delay(&self) -> Duration {
        self.delay.get()
    }

    pub(in crate::simulation) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    pub(in crate::simulation) fn busy(&self, now: Time) -> Duration {
        self.queue.borrow().busy(now)
    }

    /// How long at least one flow waited for what was lost.
    pub(in crate::simulation) fn held_by_loss(&self, now: Time) -> Duration {
        self.held_by_loss.borrow().so_far(now)
    }

    /// A flow begins to wait for what was lost, or ends.
    pub(in crate::simulation) fn holds_by_loss(&self, now: Time, begins: bool) {
        let mut waits = self.held_by_loss.borrow_mut();
        if begins { waits.begin(now) } else { waits.end(now) }
    }

    pub(in crate::simulation) fn is_cut(&self) -> bool {
        self.faults.as_ref().is_some_and(LinkFaults::is_cut)
    }

    /// Keeps what arrived at a pipe that is cut, until it heals.
    pub(in crate::simulation) fn stall(&self, until_healed: Continue) {
        self.stalled.borrow_mut().push(until_healed);
    }

    /// Passes a piece on whose first byte arrives now and whose last byte arrives `spread` later.
    pub(in crate::simulation) fn pass(&self, now: Time, spread: Duration, bytes: u64) -> Passed {
        let rate = self.rate_bytes_per_s.get();
        let delay = self.delay.get();
        let mut queue = self.queue.borrow_mut();
        let overflow_bytes = match (self.queue_bytes.get(), rate) {
            (Some(room), Some(rate)) => {
                // The queue must hold what still waits when the last byte has arrived.
                let waits = (queue.backlog(now) + at_rate(bytes, rate)).saturating_sub(spread);
                let reserved = (waits.as_nanos() * u128::from(rate) / 1_000_000_000) as u64;
                let waiting = reserved.saturating_sub(self.still_to_arrive(now, now + spread));
                waiting.saturating_sub(room).min(bytes)
            }
            _ => 0,
        };
        let sent_bytes = bytes - overflow_bytes;
        let lost_bytes =
            self.random_loss.borrow_mut().as_mut().map_or(0, |loss| loss.draw(sent_bytes));
        let service = rate.map_or(Duration::ZERO, |rate| at_rate(sent_bytes, rate));
        if self.queue_bytes.get().is_some() && !spread.is_zero() {
            let piece = Arriving { from: now, until: now + spread, bytes: sent_bytes };
            self.arriving.borrow_mut().push(piece);
        }
        self.bytes.set(self.bytes.get() + sent_bytes);
        let mut done = queue.reserve(now, service);
        if let Some(small_until) = self.small_until.as_ref().filter(|_| bytes <= SMALL_BYTES) {
            done = small_until.get().max(now) + service;
            small_until.set(done);
        }
        let begins = Time(done.0.saturating_sub(service.as_nanos() as u64));
        let spread = (done.max(now + spread)) - begins;
        Passed { head: begins + delay, spread, lost_bytes: overflow_bytes + lost_bytes }
    }

    /// Bytes of earlier pieces that arrive after `at`, which is not before `now`.
    fn still_to_arrive(&self, now: Time, at: Time) -> u64 {
        let mut arriving = self.arriving.borrow_mut();
        arriving.retain(|piece| piece.until > now);
        arriving.iter().filter(|piece| piece.until > at).map(|piece| piece.left(at)).sum()
    }

    /// Drops what stalled: it holds its flow, and that this pipe.
    pub(in crate::simulation) fn forget_stalled(&self) {
        drop(self.stalled.take());
    }

    /// The cut is healed: what stalled continues, in the order in which it arrived.
    pub(in crate::simulation) fn healed(&self) {
        for go_on in self.stalled.take() {
            go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn line(config: LinkConfig) -> Rc<Pipe> {
        Pipe::of_link(&config, LinkFaults::default(), Xoshiro256PlusPlus::seed_from_u64(1))
    }

    fn ten_ms_and_a_megabyte_a_second() -> LinkConfig {
        LinkConfig { rtt: 20 * MS, rate_bytes_per_s: Some(1_000_000), ..LinkConfig::default() }
    }

    #[test]
    fn a_piece_goes_on_before_it_has_come_whole() {
        let pipe = line(ten_ms_and_a_megabyte_a_second());
        let fast = pipe.pass(Time(0), Duration::ZERO, 50_000);
        assert_eq!((fast.head, fast.spread), (Time(10_000_000), 50 * MS));
        // A slow one takes as long as it comes, but leaves the rate to others.
        let slow = pipe.pass(Time(50_000_000), 500 * MS, 10_000);
        assert_eq!((slow.head, slow.spread), (Time(60_000_000), 500 * MS));
        let next = pipe.pass(Time(50_000_000), Duration::ZERO, 10_000);
        assert_eq!(next.head, Time(70_000_000));
    }

    #[test]
    fn a_full_queue_loses_what_comes_on_top() {
        let config = LinkConfig { queue_bytes: Some(30_000), ..ten_ms_and_a_megabyte_a_second() };
        let pipe = line(config);
        // Comes at once: 30 kB wait, the rest is lost.
        assert_eq!(pipe.pass(Time(0), Duration::ZERO, 50_000).lost_bytes, 20_000);
        assert_eq!(pipe.pass(Time(0), Duration::ZERO, 50_000).lost_bytes, 50_000);
        // Comes as fast as the line: nothing waits.
        assert_eq!(pipe.pass(Time(30_000_000), 50 * MS, 50_000).lost_bytes, 0);
        assert_eq!(pipe.bytes(), 80_000);
    }

    #[test]
    fn what_has_not_arrived_takes_no_room_in_a_queue() {
        let config = LinkConfig { queue_bytes: Some(30_000), ..ten_ms_and_a_megabyte_a_second() };
        let pipe = line(config);
        assert_eq!(pipe.pass(Time(0), 100 * MS, 100_000).lost_bytes, 0, "as fast as the line");
        assert_eq!(pipe.pass(Time(10_000_000), Duration::ZERO, 1000).lost_bytes, 0);
        // 1 kB waits already, and what arrives meanwhile leaves as it comes.
        assert_eq!(pipe.pass(Time(10_000_000), Duration::ZERO, 40_000).lost_bytes, 11_000);
    }

    #[test]
    fn small_pieces_go_ahead_of_bulk_in_a_card_only() {
        let card = Pipe::of_host(1_000_000, Duration::ZERO);
        card.pass(Time(0), Duration::ZERO, 1_000_000);
        let small = card.pass(Time(0), Duration::ZERO, 1000);
        assert_eq!((small.head, small.spread), (Time(0), MS));
        let bulk = card.pass(Time(0), Duration::ZERO, 100_000);
        assert_eq!(bulk.head, Time(1_001_000_000));
        let line = line(LinkConfig { rtt: Duration::ZERO, ..ten_ms_and_a_megabyte_a_second() });
        line.pass(Time(0), Duration::ZERO, 1_000_000);
        assert_eq!(line.pass(Time(0), Duration::ZERO, 1000).head, Time(1_000_000_000));
    }

    #[test]
    fn segments_are_lost_at_the_rate_that_is_said() {
        let tcp = crate::model::Tcp { loss: 0.01, ..Default::default() };
        let pipe = line(LinkConfig { tcp: Some(tcp), ..LinkConfig::default() });
        let lost: u64 =
            (0..1000).map(|_| pipe.pass(Time(0), Duration::ZERO, 144_800).lost_bytes).sum();
        let share = lost as f64 / 144_800_000.0;
        assert!((share - 0.01).abs() < 0.001, "{share}");
    }
}
