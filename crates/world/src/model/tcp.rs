//! How a connection's TCP behaves.

use std::time::Duration;

/// How a window grows again after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 9438; what Linux has used unless told otherwise since 2.6.19.
    #[default]
    Cubic,
    /// RFC 5681: one segment a round trip, half after a loss.
    Reno,
}

/// TCP of each connection over a link.
///
/// The receiver's window is not here: it is [`crate::LinkConfig::window_bytes`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Payload of a segment.
    pub segment_bytes: u32,
    /// Segments that a new connection may send before the first acknowledgement.
    pub initial_window_segments: u32,
    /// Whether a connection that was idle for a retransmission timeout begins with a small window again.
    pub slow_start_after_idle: bool,
    /// The part of the retransmission timeout that does not shrink with the round trip.
    pub min_rto: Duration,
    /// How the window shrinks after a loss and grows again.
    pub congestion_control: CongestionControl,
    /// Share of the segments that the line loses, besides what overflows its queue.
    pub loss: f64,
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp {
            segment_bytes: 1448,
            initial_window_segments: 10,
            slow_start_after_idle: true,
            min_rto: Duration::from_millis(200),
            congestion_control: CongestionControl::Cubic,
            loss: 0.0,
        }
    }
}
