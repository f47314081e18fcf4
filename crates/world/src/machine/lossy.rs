//! Loss on an emulated line, by its effect. The line is a proxy between two connections of the kernel, which lose
//! nothing on this machine; so the proxy keeps a congestion window for each direction of each connection, as TCP
//! would, and lets what was lost come later.
//!
//! A piece of which a segment is lost comes a round trip later, and what was sent after it waits for it, because TCP
//! delivers in order. Where too few segments are under way to tell of it, it comes after the retransmission timeout.
//! The window shrinks and grows as [`TcpWindow`] says. What was sent again is not lost again, and what waits at the
//! receiver stays in the window: that holds a connection back a little more than selective acknowledgements would.

use std::cell::RefCell;
use std::time::Duration;

use crate::Time;
use crate::model::{LinkConfig, Tcp};
use crate::tcp_window::TcpWindow;

/// A sender hears of a lost segment from so many that arrive after it.
const DUPLICATES: u64 = 3;

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Comes,
    /// It is sent again once those after it have told of it.
    IsLost,
    /// It is sent again after the retransmission timeout.
    TimesOut,
}

/// The congestion window of one direction of a connection, while its line loses segments.
#[derive(Debug, Default)]
pub(super) struct Congestion(RefCell<Option<TcpWindow>>);

impl Congestion {
    /// The window in bytes; without bound where nothing is lost: the kernel's own is there in any case.
    pub(super) fn window(&self, config: &LinkConfig, now: Time) -> u64 {
        let mut slot = self.0.borrow_mut();
        let Some(model) = lossy(config) else {
            *slot = None;
            return u64::MAX;
        };
        let window = slot.get_or_insert_with(|| TcpWindow::new(model.clone()));
        // Where the connection was idle, it begins with a smaller one.
        window.room(now);
        window.window()
    }

    /// Sends a piece while so many bytes are under way: what becomes of it, and how much later it comes for that. A
    /// random number of 0 to 1 decides.
    pub(super) fn send(
        &self,
        config: &LinkConfig,
        now: Time,
        bytes: u64,
        under_way: u64,
        random: f64,
    ) -> (Fate, Duration) {
        let mut slot = self.0.borrow_mut();
        let Some((window, model)) = slot.as_mut().zip(lossy(config)) else {
            return (Fate::Comes, Duration::ZERO);
        };
        window.on_send(now, bytes);
        let segment = window.segment_bytes().max(1);
        let all_come = (1.0 - model.loss).powf(bytes.div_ceil(segment) as f64);
        if random < all_come {
            (Fate::Comes, Duration::ZERO)
        } else if under_way + bytes > DUPLICATES * segment {
            (Fate::IsLost, config.rtt)
        } else {
            (Fate::TimesOut, window.rto())
        }
    }

    /// The acknowledgement of a piece has come.
    pub(super) fn acknowledged(&self, now: Time, bytes: u64, sent: Time, fate: Fate) {
        let mut slot = self.0.borrow_mut();
        let Some(window) = slot.as_mut() else { return };
        match fate {
            Fate::Comes => window.on_ack(now, bytes, sent),
            Fate::IsLost => window.on_loss(now, bytes, sent),
            Fate::TimesOut => window.on_timeout(now, bytes),
        }
    }
}

fn lossy(config: &LinkConfig) -> Option<&Tcp> {
    config.tcp.as_ref().filter(|tcp| tcp.loss > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1448;

    fn losing(loss: f64) -> LinkConfig {
        let tcp = (loss > 0.0).then(|| Tcp { loss, ..Tcp::default() });
        LinkConfig { rtt: Duration::from_millis(50), tcp, ..LinkConfig::default() }
    }

    #[test]
    fn a_line_that_loses_nothing_has_no_window() {
        let (congestion, config) = (Congestion::default(), losing(0.0));
        assert_eq!(congestion.window(&config, Time(1)), u64::MAX);
        let sent = congestion.send(&config, Time(1), SEGMENT, 0, 0.999);
        assert_eq!(sent, (Fate::Comes, Duration::ZERO));
        // It loses some for a while, and then no longer.
        assert_eq!(congestion.window(&losing(0.01), Time(1)), 10 * SEGMENT);
        assert_eq!(congestion.window(&config, Time(1)), u64::MAX);
    }

    #[test]
    fn what_is_lost_comes_later_and_the_window_shrinks_once_that_is_known() {
        let (congestion, config) = (Congestion::default(), losing(0.01));
        let whole = congestion.window(&config, Time(1));
        // Of ten segments, one is lost with a probability of 1 - 0.99^10.
        let (piece, sent) = (10 * SEGMENT, Time(1));
        assert_eq!(congestion.send(&config, sent, piece, 0, 0.90).0, Fate::Comes);
        let lost = congestion.send(&config, sent, piece, piece, 0.91);
        assert_eq!(lost, (Fate::IsLost, config.rtt));
        assert_eq!(congestion.window(&config, sent), whole);
        let known = sent + config.rtt * 2;
        congestion.acknowledged(known, piece, sent, Fate::IsLost);
        assert_eq!(congestion.window(&config, known), whole * 7 / 10);
        congestion.acknowledged(known, piece, sent, Fate::Comes);
        assert_eq!(congestion.window(&config, known), whole * 7 / 10, "sent before it shrank");
    }

    #[test]
    fn a_lone_segment_that_is_lost_comes_after_the_timeout() {
        let (congestion, config) = (Congestion::default(), losing(0.5));
        congestion.window(&config, Time(1));
        let (fate, later) = congestion.send(&config, Time(1), SEGMENT, 0, 0.9);
        assert_eq!((fate, later), (Fate::TimesOut, Duration::from_secs(1)));
        congestion.acknowledged(Time(2_000_000_000), SEGMENT, Time(1), fate);
        assert_eq!(congestion.window(&config, Time(2_000_000_001)), SEGMENT);
    }
}
