//! Over how many connections the chunks of an adaptive transfer travel.
//!
//! A connection whose path loses a share `p` of its segments has `sqrt(3 / 2p)` of them under way and no more (Mathis,
//! Semke, Mahdavi, Ott, CCR 27 (3), 1997), however much room the link has. More connections carry more then. On a link
//! that is full they carry nothing more, and take from others. So connections are opened where all of this holds:
//!
//! * Chunks are overtaken: others that were asked for three quarters of a round trip later come first. Each connection
//!   delivers in order, and a loss holds it up for a round trip. Or a chunk takes twenty round trips.
//! * No queue stands: pings take what the shortest did. Where another flow fills the link, they take longer (as in TCP
//!   Vegas, and in LEDBAT, RFC 6817).
//! * It helps: where there are eight times as many, the delivery rate is more than twice what it was.
//!
//! They double while that is so, and grow by a tenth after a queue. While a queue stands, a fifth of those beyond
//! the configured ones is closed after every look; half of them where nothing has been overtaken for a while. What was
//! opened in vain is closed, and the next try waits longer each time.
//!
//! What cannot be told apart: a queue too short to be seen in pings, a few hundredths of the round trip, that other
//! flows keep overflowing. Its losses look like those of the line.

use std::collections::VecDeque;
use std::time::Duration;

use world::Time;

/// The shortest round trip at which connections are added: on a nearer path a connection has recovered from a loss
/// before others have carried much.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(10);
/// Overtaken chunks within [`EVIDENCE_ROUND_TRIPS`] that say that a path loses segments.
const EVIDENCE_CHUNKS: usize = 3;
const EVIDENCE_ROUND_TRIPS: u32 = 20;
/// A chunk that takes so many round trips was held up, too: behind others that all wait for the same connections.
const HELD_UP_ROUND_TRIPS: u32 = 20;
/// The length of a look, in round trips.
const LOOK_ROUND_TRIPS: u32 = 3;
/// Round trips that new connections need to connect and to open their windows.
const SETTLE_ROUND_TRIPS: u32 = 3;
/// A queue stands where pings are longer than the shortest one by more than the first part, and none where by no more
/// than the second. In between, connections stay as they are.
const QUEUE_PART_MAX: f64 = 0.15;
const QUEUE_PART_MIN: f64 = 0.04;
/// Once there are so many times as many connections, the rate must have grown by this part of their growth; else they
/// were opened in vain.
const PROOF_GROWTH: f64 = 8.0;
const GAIN_PART_MIN: f64 = 0.2;
/// Factors by which connections grow: where no queue was seen for so many looks, and sooner after a queue.
const GROWTH_WITHOUT_QUEUE: f64 = 2.0;
const GROWTH_AFTER_QUEUE: f64 = 1.1;
const CALM_LOOKS: u32 = 3;
/// Pauses after a growth that was in vain; they double.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(16);
/// If no chunk was overtaken for longer than this, each look closes half of the additional connections.
const LOSSLESS_MAX: Duration = Duration::from_secs(20);
/// What a connection may have in flight, in round trips of its share of the rate; the rest is stuck in it.
const STUCK_ROUND_TRIPS: f64 = 3.0;
const STUCK_MIN_BYTES: f64 = 262_144.0;

/// How the bytes in flight are spread, for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Connections in use.
    pub connections: u32,
    /// Whether connections were opened just now, whose windows are to be filled.
    pub grows: bool,
    /// Bytes in flight that wait behind others in connections that cannot carry them soon.
    pub stuck_bytes: u64,
}

/// Chooses the connection of each chunk, and how many there are.
#[derive(Debug)]
pub struct Connections {
    configured: u32,
    most: u32,
    open: u32,
    taken: u32,
    /// By the number of the connection.
    in_flight: Vec<InFlight>,
    shortest: Option<Duration>,
    /// When the first chunk came. What was asked for before comes in no certain order: it fills the source's buffers.
    opened_at: Option<Time>,
    newest_requested_at: Time,
    overtaken: VecDeque<Time>,
    /// Rate and pings are measured, to decide whether connections are opened or closed; none while the configured
    /// connections are in use, and nothing says that more would help.
    look: Option<Look>,
    /// Bytes per second of the last look.
    rate: f64,
    /// Looks without a queue, one after another.
    calm: u32,
    /// Connections that were worth their number, and what they carried.
    proven: Option<(u32, f64)>,
    pause: Duration,
    next_try: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    bytes: u64,
    /// Whether it was used since it was last closed.
    used: bool,
}

#[derive(Debug)]
struct Look {
    from: Time,
    /// Whether connections were opened before it.
    grows: bool,
    bytes: u64,
    pings: Vec<Duration>,
}

impl Look {
    fn new(from: Time, grows: bool) -> Self {
        Look { from, grows, bytes: 0, pings: Vec::new() }
    }

    /// The median, so that one that was lost and sent again does not count.
    fn ping(&self) -> Option<Duration> {
        let mut pings = self.pings.clone();
        pings.sort_unstable();
        pings.get(pings.len() / 2).copied()
    }
}

impl Connections {
    /// `configured` connections, and up to `most` where they help.
    pub fn new(configured: u32, most: u32) -> Self {
        let configured = configured.max(1);
        Connections {
            configured,
            most: most.max(configured),
            open: configured,
            taken: 0,
            in_flight: Vec::new(),
            shortest: None,
            opened_at: None,
            newest_requested_at: Time(0),
            overtaken: VecDeque::new(),
            look: None,
            rate: 0.0,
            calm: CALM_LOOKS,
            proven: None,
            pause: PAUSE_MIN,
            next_try: Time(0),
        }
    }

    /// The bound has changed.
    pub fn set_most(&mut self, most: u32) {
        self.most = most.max(self.configured);
        if self.open > self.most {
            self.open = self.most;
            self.proven = None;
        }
    }

    /// Connections in use.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// How often the path is to be pinged; none while nothing depends on it.
    pub fn ping_every(&self) -> Option<Duration> {
        let every = self.shortest.unwrap_or(ROUND_TRIP_MIN).max(ROUND_TRIP_MIN) / 4;
        self.look.is_some().then_some(every)
    }

    /// What the scheduler is to know; none while chunks take turns over the configured connections.
    pub fn spread(&self) -> Option<Spread> {
        if self.open == self.configured {
            return None;
        }
        let open = f64::from(self.open);
        let round_trip_s = self.shortest.map_or(0.0, |it| it.as_secs_f64());
        let holds =
            (STUCK_ROUND_TRIPS * self.rate * round_trip_s / open).max(STUCK_MIN_BYTES) as u64;
        let stuck_bytes = self.in_flight.iter().map(|it| it.bytes.saturating_sub(holds)).sum();
        let grows = self.look.as_ref().is_some_and(|look| look.grows);
        Some(Spread { connections: self.open, grows, stuck_bytes })
    }

    /// The connection of the next chunk. The configured ones take turns; of more, the one with the least to carry.
    pub fn take(&mut self, bytes: u64) -> u32 {
        let which = if self.open == self.configured {
            self.taken % self.configured
        } else {
            self.in_flight_on(self.open - 1);
            let in_use = self.in_flight[..self.open as usize].iter().zip(0u32..);
            in_use.min_by_key(|(own, n)| (own.bytes, *n)).map_or(0, |(_, n)| n)
        };
        self.taken = self.taken.wrapping_add(1);
        let own = self.in_flight_on(which);
        own.bytes += bytes;
        own.used = true;
        which
    }

    fn in_flight_on(&mut self, which: u32) -> &mut InFlight {
        let needed = which as usize + 1;
        if self.in_flight.len() < needed {
            self.in_flight.resize(needed, InFlight::default());
        }
        &mut self.in_flight[which as usize]
    }

    /// A chunk of so many bytes is no longer in flight: it failed, or it came.
    pub fn release(&mut self, which: u32, bytes: u64) {
        let own = self.in_flight_on(which);
        own.bytes = own.bytes.saturating_sub(bytes);
    }

    /// A chunk that was asked for at `requested_at` has come.
    pub fn delivered(&mut self, now: Time, which: u32, bytes: u64, requested_at: Time) {
        self.release(which, bytes);
        if let Some(shortest) = self.shortest.filter(|it| *it >= ROUND_TRIP_MIN) {
            let held_up = requested_at + shortest * HELD_UP_ROUND_TRIPS < now;
            let overtaken = self.opened_at.is_some_and(|at| requested_at > at)
                && requested_at + shortest * 3 / 4 < self.newest_requested_at;
            if held_up || overtaken {
                self.overtaken.push_back(now);
            }
            let evidence = shortest * EVIDENCE_ROUND_TRIPS;
            while self.overtaken.len() > EVIDENCE_CHUNKS
                && self.overtaken.front().is_some_and(|at| *at + evidence < now)
            {
                self.overtaken.pop_front();
            }
        }
        self.newest_requested_at = self.newest_requested_at.max(requested_at);
        self.opened_at.get_or_insert(now);
        if let Some(look) = self.look.as_mut().filter(|look| now >= look.from) {
            look.bytes += bytes;
        }
        self.decide(now);
    }

    /// A ping took so long.
    pub fn round_trip(&mut self, now: Time, took: Duration) {
        if took.is_zero() {
            return;
        }
        self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
        if let Some(look) = self.look.as_mut().filter(|look| now >= look.from) {
            look.pings.push(took);
        }
    }

    /// The numbers of all connections beyond the configured ones that carried chunks and were not closed.
    pub fn additional(&self) -> Vec<u32> {
        let beyond = self.in_flight.iter().zip(0u32..).skip(self.configured as usize);
        beyond.filter(|(own, _)| own.used).map(|(_, n)| n).collect()
    }

    /// Connections beyond those in use that carry nothing any more. Each is named once.
    pub fn unused(&mut self) -> Vec<u32> {
        let (open, all) = (self.open as usize, self.in_flight.iter_mut().enumerate());
        let idle = all.skip(open).filter(|(_, own)| own.used && own.bytes == 0);
        idle.map(|(n, own)| (std::mem::take(&mut own.used), n as u32).1).collect()
    }

    fn loses(&self, now: Time) -> bool {
        let evidence = self.shortest.unwrap_or_default() * EVIDENCE_ROUND_TRIPS;
        let recent = self.overtaken.iter().filter(|at| **at + evidence >= now);
        recent.count() >= EVIDENCE_CHUNKS
    }

    fn decide(&mut self, now: Time) {
        let Some(shortest) = self.shortest.filter(|it| *it >= ROUND_TRIP_MIN) else { return };
        let Some(look) = &self.look else {
            if self.open < self.most && now >= self.next_try && self.loses(now) {
                (self.calm, self.proven) = (CALM_LOOKS, None);
                self.look = Some(Look::new(now, false));
            }
            return;
        };
        let Some(ping) = look.ping() else { return };
        if now < look.from + shortest * LOOK_ROUND_TRIPS {
            return;
        }
        self.rate = look.bytes as f64 / (now - look.from).as_secs_f64();
        let more = self.open - self.configured;
        let queue = ping.as_secs_f64() / shortest.as_secs_f64() - 1.0;
        if queue > QUEUE_PART_MAX {
            // New connections overshoot before they lose their first segment: the first look with a queue ends growth.
            self.open -= if self.calm == 0 { more.div_ceil(5) } else { 0 };
            self.proven = self.proven.filter(|(open, _)| *open < self.open);
            self.calm = 0;
            if more == 0 {
                self.next_try = now + PAUSE_MIN;
            }
            self.begin_look(now, false);
        } else if self.overtaken.back().is_none_or(|at| *at + LOSSLESS_MAX < now) {
            self.open -= more.div_ceil(2);
            self.begin_look(now, false);
        } else if queue > QUEUE_PART_MIN {
            self.begin_look(now, false);
        } else {
            self.calm = self.calm.saturating_add(1);
            self.grow(now);
        }
    }

    /// No queue stands: more connections, unless the last ones were opened in vain.
    fn grow(&mut self, now: Time) {
        let (open, rate) = *self.proven.get_or_insert((self.open, self.rate));
        let grown = f64::from(self.open) / f64::from(open);
        if grown >= PROOF_GROWTH || self.open == self.most {
            if self.rate < rate * (1.0 + GAIN_PART_MIN * (grown - 1.0)) {
                // As many as the gain is worth.
                let worth = (f64::from(open) * self.rate / rate.max(1.0)) as u32;
                self.open = worth.clamp(open, self.open);
                self.proven = None;
                self.put_off(now);
                self.begin_look(now, false);
                return;
            }
            self.pause = PAUSE_MIN;
            self.proven = Some((self.open, self.rate));
        }
        if self.open < self.most && now >= self.next_try && self.loses(now) {
            let factor =
                if self.calm >= CALM_LOOKS { GROWTH_WITHOUT_QUEUE } else { GROWTH_AFTER_QUEUE };
            let more = (f64::from(self.open) * factor) as u32;
            self.open = more.max(self.open + 1).min(self.most);
            self.begin_look(now, true);
        } else {
            self.begin_look(now, false);
        }
    }

    fn put_off(&mut self, now: Time) {
        self.next_try = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// The next look begins once new connections have opened their windows, or closed ones have drained.
    fn begin_look(&mut self, now: Time, grows: bool) {
        let settled = now + self.shortest.unwrap_or_default() * SETTLE_ROUND_TRIPS;
        let goes_on = self.open != self.configured || grows;
        self.look = goes_on.then(|| Look::new(settled, grows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const STEP: Duration = Duration::from_millis(10);
    const CHUNK_BYTES: u64 = 100_000;
    const FLYING: usize = 50;

    fn known(configured: u32, most: u32) -> Connections {
        let mut connections = Connections::new(configured, most);
        connections.round_trip(Time(0), RTT);
        connections
    }

    /// A path on which so many connections carry `rate(open)` chunks a step; of ten chunks one is late by `late`.
    fn play(
        connections: &mut Connections,
        (from_s, to_s): (u64, u64),
        late: Duration,
        rate: impl Fn(u32) -> f64,
        queue: impl Fn(u32) -> Duration,
    ) {
        let (mut now, end) = (Time(from_s * 1_000_000_000), Time(to_s * 1_000_000_000));
        let (mut due, mut number) = (0.0, 0);
        let mut flying = VecDeque::new();
        while now < end {
            now = now + STEP;
            due += rate(connections.open());
            while due >= 1.0 {
                (due, number) = (due - 1.0, number + 1);
                flying.push_back(connections.take(CHUNK_BYTES));
                if flying.len() < FLYING {
                    continue;
                }
                let which = flying.pop_front().expect("some fly");
                let trip = RTT + if number % 10 == 0 { late } else { Duration::ZERO };
                let requested_at = Time(now.0 - trip.as_nanos() as u64);
                connections.delivered(now, which, CHUNK_BYTES, requested_at);
            }
            if connections.ping_every().is_some() {
                connections.round_trip(now, RTT + queue(connections.open()));
            }
        }
        flying.into_iter().for_each(|which| connections.release(which, CHUNK_BYTES));
    }

    const NONE: Duration = Duration::ZERO;

    #[test]
    fn without_loss_the_configured_connections_take_turns() {
        let mut connections = known(2, 64);
        let taken: Vec<u32> = (0..5).map(|_| connections.take(1)).collect();
        assert_eq!(taken, [0, 1, 0, 1, 0]);
        play(&mut connections, (1, 60), NONE, |_| 5.0, |_| NONE);
        assert_eq!((connections.open(), connections.ping_every()), (2, None));
        assert_eq!(connections.spread(), None);
        assert_eq!(connections.additional(), [0u32; 0]);
    }

    #[test]
    fn where_each_carries_its_own_they_grow_until_a_queue_stands_and_are_closed_while_it_does() {
        let mut connections = known(2, 256);
        // Forty fill the link, and more queue.
        let rate = |open: u32| f64::from(open.min(40)) / 4.0;
        let queue = |open: u32| Duration::from_millis(u64::from(open.saturating_sub(40)));
        play(&mut connections, (1, 10), RTT, rate, queue);
        assert!((30..=90).contains(&connections.open()), "{}", connections.open());
        assert!(connections.spread().is_some());
        play(&mut connections, (10, 40), RTT, rate, queue);
        assert!((30..=60).contains(&connections.open()), "{}", connections.open());
        // Another flow fills the link.
        play(&mut connections, (40, 80), RTT, rate, |_| RTT / 2);
        assert_eq!(connections.open(), 2);
        assert!(!connections.additional().is_empty());
        let closed = connections.unused();
        assert!(closed.len() > 30 && closed.iter().all(|which| *which >= 2));
        assert!(connections.unused().is_empty(), "each is named once");
    }

    #[test]
    fn what_is_opened_in_vain_is_closed_and_seldom_tried_again() {
        let mut connections = known(2, 64);
        play(&mut connections, (1, 6), RTT, |_| 5.0, |_| NONE);
        let mut more = 0;
        for second in 6..106 {
            play(&mut connections, (second, second + 1), RTT, |_| 5.0, |_| NONE);
            more += u32::from(connections.open() > 2);
        }
        assert!(more < 40, "more than configured in {more} of 100 s");
    }

    #[test]
    fn a_path_without_loss_any_more_is_left_to_the_configured_ones() {
        let mut connections = known(2, 64);
        play(&mut connections, (1, 10), RTT, |open| f64::from(open) / 4.0, |_| NONE);
        assert_eq!(connections.open(), 64);
        play(&mut connections, (10, 60), NONE, |_| 5.0, |_| NONE);
        assert_eq!(connections.open(), 2);
    }

    #[test]
    fn a_chunk_goes_where_the_least_waits_and_what_is_stuck_is_not_counted() {
        let mut connections = known(2, 8);
        let stuck = connections.take(50_000_000);
        play(&mut connections, (1, 10), RTT, |open| f64::from(open) / 4.0, |_| NONE);
        assert_eq!(connections.open(), 8);
        assert!((0..50).all(|_| connections.take(CHUNK_BYTES) != stuck));
        let spread = connections.spread().expect("more than configured");
        assert!((48_000_000..50_000_000).contains(&spread.stuck_bytes), "{spread:?}");
        connections.set_most(4);
        assert_eq!(connections.open(), 4);
    }
}
