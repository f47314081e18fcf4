//! Flow control: how much a producer may send ahead of what its consumer has processed.
//!
//! Every message that the server sends counts with its header, but NOOP does not. The producer sends while less than
//! the window is outstanding, so one message may overshoot it (`kv_engine/docs/dcp/flow-control.md`). The consumer
//! acknowledges once a fifth of the window is processed, or after five seconds.

use std::time::Duration;

use world::Time;

use crate::codec::{HEADER_BYTES, MAX_BODY_BYTES};

/// The consumer acknowledges once this share of its window was processed: one part in five.
const ACK_PARTS: u32 = 5;
/// After this time it acknowledges less, too.
const ACK_AFTER: Duration = Duration::from_secs(5);
/// The consumers of a bucket share this part of its quota: one in twenty.
const QUOTA_PARTS: u64 = 20;

/// A consumer acknowledged more than was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{acknowledged} bytes were acknowledged while {outstanding} were outstanding; the consumer counts wrongly"
)]
pub struct OverAcknowledged {
    /// Bytes acknowledged.
    pub acknowledged: u32,
    /// Bytes that were outstanding.
    pub outstanding: u64,
}

/// The producer's side; without a limit by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Bytes; 0 is without a limit.
    size_bytes: u32,
    outstanding_bytes: u64,
}

impl Window {
    /// Changes the size; outstanding bytes stay outstanding. Without a window none were counted.
    pub fn resize(&mut self, size_bytes: u32) {
        self.size_bytes = size_bytes;
        if size_bytes == 0 {
            self.outstanding_bytes = 0;
        }
    }

    /// Whether another message may be sent.
    pub fn is_open(&self) -> bool {
        self.size_bytes == 0 || self.outstanding_bytes < u64::from(self.size_bytes)
    }

    /// A message of so many bytes was sent, header included.
    pub fn sent(&mut self, bytes: usize) {
        if self.size_bytes != 0 {
            self.outstanding_bytes += bytes as u64;
        }
    }

    /// The consumer acknowledged bytes. Without a window acknowledgements have no effect. Fails if it acknowledges more
    /// than is outstanding: the connection ends.
    pub fn acknowledged(&mut self, bytes: u32) -> Result<(), OverAcknowledged> {
        if self.size_bytes == 0 {
            return Ok(());
        }
        let outstanding = self.outstanding_bytes;
        let left = outstanding.checked_sub(u64::from(bytes));
        self.outstanding_bytes =
            left.ok_or(OverAcknowledged { acknowledged: bytes, outstanding })?;
        Ok(())
    }

    /// Bytes sent and not acknowledged.
    pub(crate) fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }

    /// Bytes that may be outstanding; 0 is without a limit.
    pub(crate) fn size_bytes(&self) -> u32 {
        self.size_bytes
    }
}

/// The consumer's side: when to acknowledge what it processed.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    window_bytes: u32,
    pending_bytes: u64,
    last: Time,
}

impl AckPolicy {
    /// For a window of so many bytes; 0 never acknowledges.
    pub fn new(now: Time, window_bytes: u32) -> AckPolicy {
        AckPolicy { window_bytes, pending_bytes: 0, last: now }
    }

    /// Bytes were processed, header included.
    pub fn processed(&mut self, bytes: usize) {
        self.pending_bytes += bytes as u64;
    }

    /// The bytes to acknowledge now; none if it is not yet time.
    pub fn due(&mut self, now: Time) -> Option<u32> {
        if self.window_bytes == 0 || self.pending_bytes == 0 {
            return None;
        }
        let enough = self.pending_bytes >= u64::from(self.step_bytes());
        if !enough && now - self.last < ACK_AFTER {
            return None;
        }
        let bytes = u32::try_from(self.pending_bytes).unwrap_or(u32::MAX);
        self.pending_bytes -= u64::from(bytes);
        self.last = now;
        Some(bytes)
    }

    /// Whether so many bytes that were not acknowledged are more than a producer sends that keeps to the window. The
    /// last message may go beyond it.
    pub(crate) fn is_overrun(&self, unacknowledged_bytes: usize) -> bool {
        let most = self.window_bytes as usize + HEADER_BYTES + MAX_BODY_BYTES;
        self.window_bytes > 0 && unacknowledged_bytes > most
    }

    /// When to call [`AckPolicy::due`] even if nothing more was processed; none while there is nothing to acknowledge.
    pub fn due_at(&self) -> Option<Time> {
        (self.window_bytes > 0 && self.pending_bytes > 0).then(|| self.last + ACK_AFTER)
    }

    /// So many processed bytes are acknowledged at once.
    pub(crate) fn step_bytes(&self) -> u32 {
        (self.window_bytes / ACK_PARTS).max(1)
    }
}

/// A rate that a consumer keeps to by acknowledging late. What comes too early is bounded by its window.
#[derive(Clone, Copy, Debug)]
pub struct RateCap {
    rate_bytes_per_s: f64,
    /// When the bytes received so far would have come at the rate.
    due: Time,
}

impl RateCap {
    /// A rate that is kept from now on.
    pub fn new(now: Time, rate_bytes_per_s: f64) -> RateCap {
        RateCap { rate_bytes_per_s, due: now }
    }

    /// Bytes came, header included. Idle time gives no credit.
    pub fn received(&mut self, now: Time, bytes: usize) {
        self.due = self.due.max(now) + self.takes(bytes as f64);
    }

    /// How long so many bytes take at the rate.
    pub fn takes(&self, bytes: f64) -> Duration {
        Duration::from_secs_f64(bytes / self.rate_bytes_per_s)
    }

    /// Bytes that came too early: they are not acknowledged yet.
    pub(crate) fn early_bytes(&self, now: Time) -> usize {
        ((self.due - now).as_secs_f64() * self.rate_bytes_per_s).ceil() as usize
    }

    /// When the bytes received so far would have come at the rate.
    pub fn due(&self) -> Time {
        self.due
    }
}

/// The window of each of a bucket's consumers.
pub fn consumer_window_bytes(quota_bytes: u64, consumers: usize) -> u32 {
    let share = quota_bytes / QUOTA_PARTS / consumers.max(1) as u64;
    u32::try_from(share.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time(s * 1_000_000_000)
    }

    #[test]
    fn one_message_may_overshoot_and_then_none_is_sent() {
        let mut window = Window { size_bytes: 100, ..Window::default() };
        window.sent(99);
        assert!(window.is_open());
        window.sent(1000);
        assert!(!window.is_open());
        window.acknowledged(999).unwrap();
        assert!(!window.is_open());
        window.acknowledged(1).unwrap();
        assert!(window.is_open());
        assert_eq!(window.outstanding_bytes(), 99);
    }

    #[test]
    fn a_window_of_zero_is_none() {
        let mut window = Window::default();
        window.sent(usize::MAX);
        assert!(window.is_open());
        window.acknowledged(u32::MAX).unwrap();
        window.resize(10);
        window.sent(10);
        assert!(!window.is_open());
        window.resize(0);
        assert!(window.is_open());
        assert_eq!(AckPolicy::new(at(0), 0).due(at(100)), None);
    }

    #[test]
    fn acknowledges_at_a_fifth_or_after_five_seconds() {
        let mut acks = AckPolicy::new(at(0), 1000);
        acks.processed(199);
        assert_eq!(acks.due(at(4)), None);
        acks.processed(1);
        assert_eq!(acks.due(at(4)), Some(200));
        acks.processed(10);
        assert_eq!(acks.due(at(8)), None);
        assert_eq!(acks.due_at(), Some(at(9)));
        assert_eq!(acks.due(at(9)), Some(10));
        assert_eq!(acks.due(at(100)), None);
    }

    #[test]
    fn who_has_nothing_to_acknowledge_waits_for_nothing() {
        let mut acks = AckPolicy::new(at(0), 1000);
        assert_eq!(acks.due_at(), None);
        acks.processed(1);
        assert_eq!(acks.due_at(), Some(at(5)));
        let mut without_window = AckPolicy::new(at(0), 0);
        without_window.processed(1);
        assert_eq!(without_window.due_at(), None);
    }

    #[test]
    fn what_comes_above_the_rate_is_early() {
        let mut cap = RateCap::new(at(0), 100.0);
        cap.received(at(0), 300);
        assert_eq!((cap.early_bytes(at(0)), cap.early_bytes(at(2))), (300, 100));
        cap.received(at(2), 100);
        assert_eq!((cap.due(), cap.early_bytes(at(3)), cap.early_bytes(at(9))), (at(4), 100, 0));
        // After a pause it begins anew.
        cap.received(at(9), 100);
        assert_eq!(cap.due(), at(10));
    }

    /// Whatever the sizes, a producer and a consumer that follow the rules never stop each other for good, and
    /// never more than the window and one message is outstanding.
    #[test]
    fn producer_and_consumer_keep_each_other_going() {
        for window_bytes in [1, 24, 100, 1000, 20_000] {
            for message in [24, 25, 99, 1000, 70_000] {
                let mut window = Window { size_bytes: window_bytes, ..Window::default() };
                let mut acks = AckPolicy::new(at(0), window_bytes);
                let (mut sent, mut now) = (0, 0);
                while sent < 500 {
                    if window.is_open() {
                        window.sent(message);
                        sent += 1;
                        acks.processed(message);
                    } else {
                        now += 5;
                    }
                    assert!(window.outstanding_bytes() < u64::from(window_bytes) + message as u64);
                    if let Some(bytes) = acks.due(at(now)) {
                        window.acknowledged(bytes).unwrap();
                    }
                    assert!(now < 3000, "window {window_bytes}, messages of {message}: stuck");
                }
            }
        }
    }

    #[test]
    fn consumers_share_a_twentieth_of_the_quota() {
        assert_eq!(consumer_window_bytes(100 << 20, 1), 5 << 20);
        assert_eq!(consumer_window_bytes(100 << 20, 5), 1 << 20);
        assert_eq!(consumer_window_bytes(1 << 50, 0), u32::MAX);
    }
}
