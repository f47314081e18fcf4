//! Whether the peer is alive: NOOPs of the producer, and how long silence is tolerated.
//!
//! The producer sends a NOOP every interval and ends the connection when one has no answer at the next. The consumer
//! ends it when nothing came for two intervals (`kv_engine/docs/dcp/dead-connections.md`).

use std::time::Duration;

use world::Time;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Wait until this moment.
    Wait(Time),
    /// Send a NOOP.
    SendNoop,
    /// The peer is gone: end the connection.
    Gone,
}

/// The producer's side.
#[derive(Clone, Debug)]
pub struct ProducerLiveness {
    interval: Duration,
    last: Time,
    waiting: bool,
}

impl ProducerLiveness {
    /// NOOPs every `interval`.
    pub fn new(now: Time, interval: Duration) -> ProducerLiveness {
        ProducerLiveness { interval, last: now, waiting: false }
    }

    /// Changes the interval.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// The consumer answered a NOOP.
    pub fn answered(&mut self) {
        self.waiting = false;
    }

    /// What to do now; a NOOP that this asks for counts as sent.
    pub fn check(&mut self, now: Time) -> Liveness {
        let due = self.last + self.interval;
        if now < due {
            return Liveness::Wait(due);
        }
        if self.waiting {
            return Liveness::Gone;
        }
        self.last = now;
        self.waiting = true;
        Liveness::SendNoop
    }
}

/// The consumer's side.
#[derive(Clone, Debug)]
pub struct ConsumerLiveness {
    interval: Duration,
    last: Time,
}

impl ConsumerLiveness {
    /// With the interval that was agreed.
    pub fn new(now: Time, interval: Duration) -> ConsumerLiveness {
        ConsumerLiveness { interval, last: now }
    }

    /// Something arrived.
    pub fn heard(&mut self, now: Time) {
        self.last = now;
    }

    /// What to do now; never [`Liveness::SendNoop`].
    pub fn check(&self, now: Time) -> Liveness {
        let end = self.last + self.interval * 2;
        if now < end { Liveness::Wait(end) } else { Liveness::Gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(s: u64) -> Time {
        Time(s * 1_000_000_000)
    }

    #[test]
    fn a_noop_each_interval_while_it_is_answered() {
        let mut producer = ProducerLiveness::new(at(0), INTERVAL);
        assert_eq!(producer.check(at(9)), Liveness::Wait(at(10)));
        assert_eq!(producer.check(at(10)), Liveness::SendNoop);
        assert_eq!(producer.check(at(10)), Liveness::Wait(at(20)));
        producer.answered();
        assert_eq!(producer.check(at(25)), Liveness::SendNoop);
        assert_eq!(producer.check(at(34)), Liveness::Wait(at(35)));
        assert_eq!(producer.check(at(35)), Liveness::Gone);
    }

    #[test]
    fn the_consumer_waits_two_intervals() {
        let mut consumer = ConsumerLiveness::new(at(0), INTERVAL);
        assert_eq!(consumer.check(at(19)), Liveness::Wait(at(20)));
        consumer.heard(at(19));
        assert_eq!(consumer.check(at(38)), Liveness::Wait(at(39)));
        assert_eq!(consumer.check(at(39)), Liveness::Gone);
    }
}
