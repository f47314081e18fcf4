//! The scheduler without knobs: chunk size and bytes in flight follow the measured path.
//!
//! It keeps as many bytes in flight as the path carries in a base round trip, and a little more:
//!
//! ```text
//! window = gain x rate x base round trip + slack
//! ```
//!
//! * Rate and base round trip come from a maximum and a minimum filter, as in BBR (Cardwell et al.,
//!   ACM Queue 14 (5), 2016); see `path`.
//! * `slack` is a few chunks that wait at the narrowest place, as in TCP Vegas (Brakmo, Peterson, IEEE
//!   JSAC 13 (8), 1995). It grows slower than the rate, so of several transfers on one link the smaller
//!   gains on the larger until they are equal, and their queue is bounded by the sum of their slacks.
//! * `gain` is 1, and 1.5 while no chunk had to wait: then the path is not full.
//! * Nothing is known before the first chunk arrives, and a recovery of a few round trips has no time
//!   for a slow start. So a burst goes out at once and more follows at a fixed pace. When the first
//!   chunk arrives, the pace stops; the rate at which the burst arrives is the first rate.
//! * A base round trip that has not been seen for a while is measured anew by a short drain below the
//!   product. All transfers of a process drain at the same moments, or each would only see the others' queue.
//! * If the round trip suddenly looks much longer, half of what is in flight is drained, then half of
//!   the rest. If trips stay as long, the path has become longer, and the rate estimate is kept. If they
//!   get shorter, there was a standing queue, and earlier rates are forgotten.
//! * Time in a rate limiter is no part of the base round trip but counts as waiting. So a throttle has
//!   a knee like a link: more chunks would only wait for it.
//! * On a path that loses segments, connections and not the window limit the rate; see `connections`. While there are
//!   more of them than configured, each has one chunk queued behind what it has in transit, so a queue on the path is
//!   read from pings and not from the times of chunks.
//! * Users go first: see `give_way`.
//!
//! Little's law is behind all of it: rate = bytes in flight / time in flight.

use std::time::Duration;

use world::Time;

use super::bandwidth_delay_product::{BandwidthDelayProduct, REQUEST_COST_BYTES};
use super::chunk::Delivery;
use super::connections::Spread;
use super::give_way::GiveWay;
use super::path::{Rates, Round, Train, Trip};

/// Bytes requested in the opening burst: a tenth of what 1 Gbit/s carries in 300 ms, so that even without the pace
/// below less than one round trip is lost.
const OPENING_BYTES: u64 = 4 << 20;
/// Rate of further requests until the first chunk arrives: a little more than 1 Gbit/s. Slower links lose nothing.
const OPENING_BYTES_PER_S: u64 = 128 << 20;
/// Size of the burst's chunks: small enough that a rate is known soon.
const OPENING_CHUNK_BYTES: u64 = 128 << 10;
/// The opening pace lasts at most this long: whatever keeps the first chunk away for longer is no link's round trip,
/// and more requests would only queue behind it.
const OPENING_MAX: Duration = Duration::from_millis(600);
/// Where the round trip is known, the pace ends after this many of it and at least so long: what has not come by then
/// waits for a connection's window, and what is asked for goes the same way.
const OPENING_ROUND_TRIPS: f64 = 1.25;
const OPENING_MIN: Duration = Duration::from_millis(100);
/// Opening in smaller steps than this is not worth waking for.
const OPENING_STEP_BYTES: u64 = 512 << 10;

const GAIN_NOT_FULL: f64 = 1.5;
/// Waiting for less than this part of a chunk is no queue.
const QUEUE_MIN_CHUNKS: f64 = 0.25;

/// Bases are measured anew when the clock passes a multiple of this, unless they are younger than half.
const BASE_EVERY: Duration = Duration::from_secs(10);
/// Such a drain keeps this part of what the path carries in flight: the rest is throughput lost.
const DRAIN_SHARE: f64 = 0.95;
/// A deep drain keeps this part. It is used as long as each drain finds a shorter base, and where other transfers share
/// the path: their queue may be in the base, and they use what is left to them.
const DEEP_DRAIN_SHARE: f64 = 0.5;
/// A transfer whose rate is below this part of its highest is not alone; that is slowly forgotten.
const ALONE_RATE_SHARE: f64 = 0.7;
const PEAK_DECAY: f64 = 0.8;
/// A drain for a crowded path keeps this part of what is in flight.
const CROWDED_DRAIN_SHARE: f64 = 0.5;
/// Trips that differ by less are the same: no queue was drained, and none built up.
const SAME_TRIP_TOLERANCE: f64 = 0.03;
/// A base that is found to be longer by less than this part is left as it is: the slack covers it.
const BASE_GROWTH_TOLERATED: f64 = 0.1;
/// A round trip that is this much longer than base and slack explain is crowded.
const CROWDED: f64 = 1.35;
const CROWDED_ROUNDS: u32 = 2;
/// Rounds between drains, and rounds after one in which its effects still show.
const ROUNDS_BETWEEN_DRAINS: u32 = 8;
const ROUNDS_TO_SETTLE: u32 = 2;

/// The state of one transfer's controller. Everything is counted in bytes plus
/// [`REQUEST_COST_BYTES`] a request.
#[derive(Debug)]
pub(crate) struct Adaptive {
    memory_max_bytes: u64,
    began: Time,
    phase: Phase,
    base: Option<Trip>,
    rates: Rates,
    round: Round,
    gain: f64,
    crowded_rounds: u32,
    settle_rounds: u32,
    rounds_since_drain: u32,
    /// The last drain found a shorter base: what was believed had others' queues in it.
    base_was_lower: bool,
    /// The highest rate of a round.
    highest: f64,
    /// The same, slowly forgotten.
    peak: f64,
    give_way: GiveWay,
    /// Set while there are more connections than configured.
    spread: Option<Spread>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing has arrived.
    Opening,
    /// The first burst arrives; `window_bytes` was in flight when it began to.
    Train { train: Train, window_bytes: u64 },
    /// Rounds are measured.
    Steady,
    /// Steady, below the knee for a round or two, to see what is behind the queue.
    Drain(Drain),
}

#[derive(Debug)]
struct Drain {
    began: Time,
    window_bytes: f64,
    rounds: u32,
    /// The shortest trip of the chunks requested in it.
    shortest: Option<Trip>,
    /// The base before.
    before_s: f64,
    /// Set if the drain is to tell whether the path is longer or a queue stands.
    crowd: Option<Crowd>,
}

/// What was measured on a path that looks crowded.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    rate_bytes_per_s: f64,
    trip_s: f64,
    /// Part of what was in flight that the drain keeps.
    share: f64,
}

impl Drain {
    /// The first round drains. In the second its chunks arrive, and show a path without a queue of
    /// their own; only if the path is crowded is it held back too.
    fn holds_back(&self) -> bool {
        self.rounds == 0 || self.crowd.is_some()
    }
}

impl Adaptive {
    pub(crate) fn new(memory_max_bytes: u64, now: Time) -> Self {
        Adaptive {
            memory_max_bytes: memory_max_bytes.max(1),
            began: now,
            phase: Phase::Opening,
            base: None,
            rates: Rates::default(),
            round: Round::new(now),
            gain: 1.0,
            crowded_rounds: 0,
            settle_rounds: 0,
            rounds_since_drain: ROUNDS_BETWEEN_DRAINS,
            base_was_lower: false,
            highest: 0.0,
            peak: 0.0,
            give_way: GiveWay::new(),
            spread: None,
        }
    }

    pub(crate) fn set_memory_max_bytes(&mut self, memory_max_bytes: u64) {
        self.memory_max_bytes = memory_max_bytes.max(1);
    }

    /// How the bytes in flight are spread over connections, where there are more than configured.
    pub(crate) fn set_spread(&mut self, spread: Option<Spread>) {
        if spread.is_some() && matches!(self.phase, Phase::Drain(_)) {
            self.phase = Phase::Steady;
        }
        if spread.is_none() && self.spread.is_some() {
            self.settle_rounds = ROUNDS_TO_SETTLE;
        }
        self.spread = spread;
    }

    /// Chunks are to be fetched again after a pause: the round in which the pause fell says nothing about the path.
    pub(crate) fn resume(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Opening) {
            self.round = Round::new(now);
        }
        if matches!(self.phase, Phase::Drain(_)) {
            self.phase = Phase::Steady;
            self.settle_rounds = ROUNDS_TO_SETTLE;
        }
    }

    /// The size to cut the next chunk to.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        let bytes = match (self.product(), self.spread) {
            (None, _) => OPENING_CHUNK_BYTES,
            (Some(product), None) => product.chunk_bytes(),
            (Some(product), Some(spread)) => product.spread_chunk_bytes(spread.connections),
        };
        bytes.min((self.memory_max_bytes / 4).max(1))
    }

    /// Whether a chunk of `len` bytes may be requested beside `chunks` others of `bytes` in all.
    pub(crate) fn may_start(&self, now: Time, len: u32, bytes: u64, chunks: usize) -> bool {
        let len = u64::from(len);
        let stuck_bytes = self.spread.map_or(0, |spread| spread.stuck_bytes);
        let cost =
            (bytes + len + (chunks as u64 + 1) * REQUEST_COST_BYTES) - stuck_bytes.min(bytes);
        chunks == 0
            || (bytes + len <= self.memory_max_bytes && cost as f64 <= self.window_bytes(now))
    }

    /// When the opening lets another step through; none once something has arrived.
    pub(crate) fn wake_at(&self, len: u32, bytes: u64, chunks: usize) -> Option<Time> {
        let fits = bytes + u64::from(len) <= self.memory_max_bytes;
        if !matches!(self.phase, Phase::Opening) || !fits || !self.give_way.is_free() {
            return None;
        }
        let step = OPENING_STEP_BYTES.max(u64::from(len) + REQUEST_COST_BYTES);
        let cost = bytes + chunks as u64 * REQUEST_COST_BYTES + step;
        let paced = cost.saturating_sub(OPENING_BYTES) as f64 / OPENING_BYTES_PER_S as f64;
        let paced = Duration::from_secs_f64(paced);
        if paced > self.opening_max() {
            return None;
        }
        // A nanosecond more, or rounding could wake it just too early to do anything.
        Some(self.began + paced + Duration::from_nanos(1))
    }

    /// Somebody else measured a round trip on the same path.
    pub(crate) fn round_trip(&mut self, now: Time, round_trip: Duration) {
        if !round_trip.is_zero() {
            self.learn_base(Trip { at: now, took: round_trip, bytes: 0 });
        }
    }

    fn learn_base(&mut self, trip: Trip) {
        let rate = self.link_rate();
        if self.base.is_none_or(|base| trip.base_s(rate) <= base.base_s(rate)) {
            self.base = Some(trip);
        }
    }

    /// A chunk was delivered; `flying_bytes` were in flight until then, it included.
    pub(crate) fn delivered(&mut self, trip: Trip, delivery: &Delivery, flying_bytes: u64) {
        let now = trip.at;
        self.give_way.delivered(now, now - delivery.requested_at, delivery.foreground_pressure);
        if delivery.requested_at < self.began {
            return; // requested under other settings: says nothing of the burst
        }
        let rate = self.link_rate();
        self.learn_base(trip);
        match &mut self.phase {
            Phase::Opening => {
                let train = Train::new(now);
                self.phase = Phase::Train { train, window_bytes: flying_bytes };
                self.round = Round::new(now);
                return;
            }
            Phase::Train { train, .. } if delivery.requested_at < train.first_at => {
                train.add(now, trip.bytes);
            }
            Phase::Drain(drain)
                if delivery.requested_at >= drain.began
                    && drain.shortest.is_none_or(|s| trip.base_s(rate) <= s.base_s(rate)) =>
            {
                drain.shortest = Some(trip);
            }
            _ => {}
        }
        self.round.add(trip, delivery.throttled, rate);
        if delivery.requested_at >= self.round.began && now > self.round.began {
            self.end_round(now);
        }
        self.refresh_base(now);
    }

    fn rate(&self) -> Option<f64> {
        match &self.phase {
            Phase::Opening => None,
            Phase::Train { train, .. } => train.rate(),
            Phase::Steady | Phase::Drain(_) => self.rates.max(),
        }
    }

    /// The highest rate ever seen: what the link carried at its best.
    fn link_rate(&self) -> f64 {
        self.rate().map_or(f64::INFINITY, |rate| rate.max(self.highest))
    }

    fn product(&self) -> Option<BandwidthDelayProduct> {
        let rate_bytes_per_s = self.rate()?;
        Some(BandwidthDelayProduct {
            rate_bytes_per_s,
            base_s: self.base?.base_s(self.link_rate()),
        })
    }

    fn opening_max(&self) -> Duration {
        let round_trips = self.base.map(|base| base.took.mul_f64(OPENING_ROUND_TRIPS));
        round_trips.map_or(OPENING_MAX, |it| it.clamp(OPENING_MIN, OPENING_MAX))
    }

    fn window_bytes(&self, now: Time) -> f64 {
        let window = match (&self.phase, self.product(), self.spread) {
            (Phase::Train { window_bytes, .. }, None, _) => *window_bytes as f64,
            (Phase::Drain(drain), ..) if drain.holds_back() => drain.window_bytes,
            (_, Some(product), Some(spread)) => {
                let gain = if spread.grows { GAIN_NOT_FULL } else { self.gain };
                gain * product.product_bytes() + product.spread_slack_bytes(spread.connections)
            }
            (_, Some(product), None) => self.gain * product.product_bytes() + product.slack_bytes(),
            (_, None, _) => {
                let open_s = (now - self.began).min(self.opening_max()).as_secs_f64();
                OPENING_BYTES as f64 + open_s * OPENING_BYTES_PER_S as f64
            }
        };
        window * self.give_way.share()
    }

    fn end_round(&mut self, now: Time) {
        let round = std::mem::replace(&mut self.round, Round::new(now));
        let Some(rate) = round.rate(now) else { return };
        self.rounds_since_drain = self.rounds_since_drain.saturating_add(1);
        match &self.phase {
            Phase::Train { train, .. } => {
                let first = train.rate().map_or(rate, |train| train.max(rate));
                self.rates.push(first);
                self.phase = Phase::Steady;
                self.settle_rounds = ROUNDS_TO_SETTLE;
            }
            _ if self.give_way.is_free() => self.rates.push(rate),
            _ => self.rates.raise(rate),
        }
        let max = self.rates.max().unwrap_or(0.0);
        self.highest = self.highest.max(max);
        self.peak = self.peak.max(max);
        self.gain = 1.0;
        if matches!(self.phase, Phase::Drain(_)) {
            self.end_drain_round(now);
        } else if !self.give_way.is_free() {
            // It has no queue of its own: each round shows the base.
            if self.base_is_old(now) {
                self.base = round.shortest.or(self.base);
            }
        } else if self.settle_rounds > 0 {
            self.settle_rounds -= 1;
        } else {
            self.judge(now, &round);
        }
    }

    /// Raises the gain if the path was not full; starts a drain if round trips are longer than base and slack explain.
    fn judge(&mut self, now: Time, round: &Round) {
        let (Some(product), Some(shortest)) = (self.product(), round.shortest) else { return };
        let waited_s = round.shortest_throttled_s - product.base_s;
        let chunk_s = product.chunk_bytes() as f64 / product.rate_bytes_per_s;
        if waited_s < QUEUE_MIN_CHUNKS * chunk_s {
            self.gain = GAIN_NOT_FULL;
        }
        let expected_s = product.base_s + product.slack_bytes() / product.rate_bytes_per_s;
        let trip_s = shortest.base_s(self.link_rate());
        self.crowded_rounds =
            if trip_s > CROWDED * expected_s { self.crowded_rounds + 1 } else { 0 };
        let may_drain = self.rounds_since_drain >= ROUNDS_BETWEEN_DRAINS && self.spread.is_none();
        if may_drain && self.crowded_rounds >= CROWDED_ROUNDS {
            self.suspect(now, trip_s);
        }
    }

    /// Trips of `trip_s` are too long: starts a drain that finds out whether the path is longer or a queue stands.
    fn suspect(&mut self, now: Time, trip_s: f64) {
        if let Some(rate_bytes_per_s) = self.rates.recent() {
            let crowd = Crowd { rate_bytes_per_s, trip_s, share: CROWDED_DRAIN_SHARE };
            self.start_crowd_drain(now, crowd);
        }
    }

    fn start_crowd_drain(&mut self, now: Time, crowd: Crowd) {
        let in_flight = crowd.rate_bytes_per_s * crowd.trip_s;
        self.start_drain(now, crowd.share * in_flight, Some(crowd));
    }

    /// Starts a drain that measures the base round trip again, if it is due. It goes by the clock and not by rounds, so
    /// that all transfers drain together.
    fn refresh_base(&mut self, now: Time) {
        let is_steady =
            matches!(self.phase, Phase::Steady) && self.give_way.is_free() && self.spread.is_none();
        let is_due = self.base_is_old(now) || (self.base_was_lower && self.settle_rounds == 0);
        if let (true, true, Some(product)) = (is_steady, is_due, self.product()) {
            let recent = self.rates.recent().unwrap_or(product.rate_bytes_per_s);
            let is_alone = recent > ALONE_RATE_SHARE * self.peak;
            self.peak = recent.max(PEAK_DECAY * self.peak);
            let is_deep = self.base_was_lower || !is_alone;
            let share = if is_deep { DEEP_DRAIN_SHARE } else { DRAIN_SHARE };
            self.start_drain(now, share * recent * product.base_s, None);
        }
    }

    fn base_is_old(&self, now: Time) -> bool {
        let period = |at: Time| (at - Time(0)).as_nanos() / BASE_EVERY.as_nanos();
        self.base
            .is_some_and(|base| period(base.at) < period(now) && now - base.at >= BASE_EVERY / 2)
    }

    fn start_drain(&mut self, now: Time, window_bytes: f64, crowd: Option<Crowd>) {
        self.gain = 1.0;
        self.crowded_rounds = 0;
        self.rounds_since_drain = 0;
        let before_s = self.product().map_or(0.0, |product| product.base_s);
        // The drain's first round begins with it.
        self.round = Round::new(now);
        self.phase = Phase::Drain(Drain {
            began: now,
            window_bytes,
            rounds: 0,
            shortest: None,
            before_s,
            crowd,
        });
    }

    fn end_drain_round(&mut self, now: Time) {
        let Phase::Drain(drain) = &mut self.phase else { return };
        drain.rounds += 1;
        let (Some(shortest), true) = (drain.shortest, drain.rounds >= 2) else { return };
        let (crowd, before_s) = (drain.crowd, drain.before_s);
        self.phase = Phase::Steady;
        self.settle_rounds = ROUNDS_TO_SETTLE;
        let shortest_s = shortest.base_s(self.link_rate());
        self.base_was_lower = shortest_s < (1.0 - SAME_TRIP_TOLERANCE) * before_s;
        match crowd {
            Some(crowd) if (shortest_s / crowd.trip_s - 1.0).abs() < SAME_TRIP_TOLERANCE => {
                if crowd.share < CROWDED_DRAIN_SHARE {
                    self.base = Some(shortest);
                } else {
                    // Again, and deeper: a small part of others' queue is easily missed.
                    self.start_crowd_drain(now, Crowd { share: crowd.share / 2.0, ..crowd });
                }
            }
            Some(crowd) => self.rates.forget_all_but(crowd.rate_bytes_per_s),
            None if before_s < (1.0 - BASE_GROWTH_TOLERATED) * shortest_s => {
                self.suspect(now, shortest_s);
            }
            None => {}
        }
        if let Some(base) = &mut self.base {
            base.at = now;
        }
    }
}
