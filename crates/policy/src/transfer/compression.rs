//! `transport.compress: auto`: compression is on while it makes a path carry more.
//!
//! Whether the link is the limit and a core is free is not guessed at but tried. While transfers fill the path, the
//! other state is tried for a second or so, and the plain bytes that arrive in it are compared with those of the second
//! before. On a link that is the limit compressed bytes bring more; where a core, a disk or the receiver is the limit
//! they bring the same or less, and the trial ends. Each trial that confirms what is there doubles the time to the
//! next. It is a hill climb of two steps, after Jain, "A delay-based approach for congestion avoidance in
//! interconnected heterogeneous computer networks", 1989: judge by the throughput, not by a model.
//!
//! While users of a node suffer, no core of it is free.

use std::time::Duration;

use world::Time;

/// Rates are of windows at least this long, with at least so many deliveries.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_DELIVERIES: u32 = 8;
/// A path that brought nothing for so long was idle: its window begins anew.
const IDLE: Duration = Duration::from_secs(1);
/// Trips after a change until the transfers have settled: windows grow with the rate.
const SETTLE_TRIPS: u32 = 3;
/// Compression must carry more than plain bytes by this factor.
const GAIN: f64 = 1.1;
/// A sender that is not held back needs no compression below this part of what the path carried without.
const ENOUGH: f64 = 0.8;
const FIRST_WAIT: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Bytes that came.
#[derive(Clone, Copy, Debug)]
pub struct Shipment {
    /// When they were asked for.
    pub requested_at: Time,
    /// Their number when they are not compressed.
    pub plain_bytes: u64,
    /// Whether more would have been asked for, had the path let it.
    pub is_full: bool,
    /// Whether the users of one of the two nodes suffer.
    pub pressure: bool,
}

/// The state of one path: between a node and one cluster that it fetches from.
#[derive(Debug)]
pub struct AutoCompression {
    is_on: bool,
    /// The rate of the state that a trial is compared with; none outside of trials.
    tried_against: Option<f64>,
    /// Plain bytes a second that the path carried uncompressed when it was last full.
    carried_plain: Option<f64>,
    changed_at: Time,
    settled_at: Option<Time>,
    window: Option<Window>,
    next_trial: Time,
    wait: Duration,
}

#[derive(Debug)]
struct Window {
    began: Time,
    last: Time,
    bytes: u64,
    deliveries: u32,
    is_full: bool,
}

impl Default for AutoCompression {
    fn default() -> Self {
        AutoCompression {
            is_on: false,
            tried_against: None,
            carried_plain: None,
            changed_at: Time(0),
            settled_at: None,
            window: None,
            next_trial: Time(0),
            wait: FIRST_WAIT,
        }
    }
}

impl AutoCompression {
    /// Whether to ask for compressed bytes now.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Bytes arrived.
    pub fn arrived(&mut self, now: Time, shipment: Shipment) {
        if shipment.pressure {
            if self.is_on {
                self.change(now, false);
            }
            self.tried_against = None;
            self.window = None;
            self.next_trial = now + self.wait;
            return;
        }
        if shipment.requested_at < self.changed_at {
            return; // asked for in the other state
        }
        let settled_at = *self.settled_at.get_or_insert_with(|| {
            // The first of this state shows how long a trip is.
            now + (now - shipment.requested_at) * (SETTLE_TRIPS - 1)
        });
        if now < settled_at {
            return;
        }
        let window = self.window.take().filter(|window| now - window.last <= IDLE);
        let Some(mut window) = window else {
            let is_full = shipment.is_full;
            self.window = Some(Window { began: now, last: now, bytes: 0, deliveries: 0, is_full });
            return;
        };
        window.last = now;
        window.bytes += shipment.plain_bytes;
        window.deliveries += 1;
        window.is_full &= shipment.is_full;
        if now - window.began < WINDOW || window.deliveries < WINDOW_DELIVERIES {
            self.window = Some(window);
            return;
        }
        let rate_bytes_per_s = window.bytes as f64 / (now - window.began).as_secs_f64();
        self.judge(now, rate_bytes_per_s, window.is_full);
    }

    fn judge(&mut self, now: Time, rate: f64, is_full: bool) {
        if is_full && !self.is_on {
            self.carried_plain = Some(rate);
        }
        match self.tried_against.take() {
            // Plain bytes are enough for all that there is.
            Some(_) if !is_full && !self.is_on => self.next_trial = now + self.wait,
            Some(before) => {
                let (on, off) = if self.is_on { (rate, before) } else { (before, rate) };
                let pays = on > off * GAIN;
                self.next_trial = now + self.wait;
                if pays == self.is_on {
                    self.wait = FIRST_WAIT;
                } else {
                    self.wait = (self.wait * 2).min(WAIT_MAX);
                    self.change(now, pays);
                }
            }
            None if is_full && now >= self.next_trial => {
                self.tried_against = Some(rate);
                self.change(now, !self.is_on);
            }
            None if self.is_on && !is_full && self.plain_would_do(rate) => {
                self.change(now, false);
                self.next_trial = now;
            }
            None => {}
        }
    }

    fn plain_would_do(&self, rate: f64) -> bool {
        self.carried_plain.is_none_or(|carried| rate < carried * ENOUGH)
    }

    fn change(&mut self, now: Time, on: bool) {
        self.is_on = on;
        self.changed_at = now;
        self.settled_at = None;
        self.window = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPMENT: u64 = 256 << 10;
    const TRIP: Duration = Duration::from_millis(100);

    /// Bytes a second that a path carries, a core compresses, and users wait for.
    #[derive(Clone, Copy)]
    struct Path {
        link: f64,
        compressor: f64,
        wanted: f64,
        pressure: bool,
    }

    const FREE: Path = Path { link: 12.5e6, compressor: 400e6, wanted: 1e12, pressure: false };

    /// Carries shipments that compress to 0.4 from `from` for `lasts`; answers the share of the time in which
    /// compression was on, and plain bytes a second.
    fn carry(auto: &mut AutoCompression, path: Path, from: Time, lasts: Duration) -> (f64, f64) {
        let (mut now, mut on_s, mut bytes) = (from, 0.0, 0);
        while now - from < lasts {
            let carries = match auto.is_on() {
                true => (path.link / 0.4).min(path.compressor),
                false => path.link,
            };
            let took_s = SHIPMENT as f64 / carries.min(path.wanted);
            now = now + Duration::from_secs_f64(took_s);
            on_s += if auto.is_on() { took_s } else { 0.0 };
            bytes += SHIPMENT;
            auto.arrived(
                now,
                Shipment {
                    requested_at: Time(now.0.saturating_sub(TRIP.as_nanos() as u64)),
                    plain_bytes: SHIPMENT,
                    is_full: path.wanted >= carries,
                    pressure: path.pressure,
                },
            );
        }
        let seconds = (now - from).as_secs_f64();
        (on_s / seconds, bytes as f64 / seconds)
    }

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn it_is_on_where_the_link_is_the_limit() {
        let mut auto = AutoCompression::default();
        let (_, rate) = carry(&mut auto, FREE, at(0), Duration::from_secs(600));
        assert!(auto.is_on());
        assert!(rate > 0.95 * FREE.link / 0.4, "{rate}");
    }

    #[test]
    fn it_is_off_where_a_core_is() {
        let mut auto = AutoCompression::default();
        let path = Path { link: 1e9, ..FREE };
        let (on, rate) = carry(&mut auto, path, at(0), Duration::from_secs(600));
        assert!(on < 0.05 && rate > 0.95 * path.link, "on for {on}, {rate}");
        // It finds out that the link got slower, and after that that it is as before.
        let slower = Path { link: 20e6, ..FREE };
        carry(&mut auto, slower, at(601), Duration::from_secs(600));
        assert!(auto.is_on());
        carry(&mut auto, path, at(1202), Duration::from_secs(600));
        assert!(!auto.is_on());
    }

    #[test]
    fn it_is_off_while_users_suffer() {
        let mut auto = AutoCompression::default();
        let path = Path { pressure: true, ..FREE };
        assert_eq!(carry(&mut auto, path, at(0), Duration::from_secs(60)).0, 0.0);
        carry(&mut auto, FREE, at(61), Duration::from_secs(60));
        assert!(auto.is_on());
        let (on, _) = carry(&mut auto, path, at(122), Duration::from_secs(60));
        assert!(on < 0.02, "on for {on}");
    }

    #[test]
    fn it_ends_once_the_link_would_do_without() {
        let mut auto = AutoCompression::default();
        carry(&mut auto, FREE, at(0), Duration::from_secs(60));
        // More than the link carries plain, less than it carries compressed: it stays.
        let needed = Path { wanted: 20e6, ..FREE };
        let (on, _) = carry(&mut auto, needed, at(61), Duration::from_secs(120));
        assert!(on > 0.95, "on for {on}");
        let light = Path { wanted: 5e6, ..FREE };
        let (on, _) = carry(&mut auto, light, at(182), Duration::from_secs(120));
        assert!(on < 0.05, "on for {on}");
    }

    #[test]
    fn a_path_that_rests_says_nothing() {
        let mut auto = AutoCompression::default();
        for second in 0..1000 {
            let shipment = Shipment {
                requested_at: at(2 * second),
                plain_bytes: 100,
                is_full: true,
                pressure: false,
            };
            auto.arrived(at(2 * second + 1), shipment);
            assert!(!auto.is_on());
        }
    }
}
