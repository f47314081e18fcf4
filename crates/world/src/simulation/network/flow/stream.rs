//! What both sides of a flow know of its bytes, and what is on its way between them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::Time;

/// The end of a message, or of the connection.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) message_bytes: u64,
    pub(super) fin: bool,
}

/// A range of the flow's bytes.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) end: Option<End>,
}

/// A part of a message in flight.
pub(in crate::simulation) struct Piece {
    pub(super) range: Range,
    /// Whether its bytes were sent before, and lost.
    pub(super) retransmit: bool,
    /// The next pipe of its path.
    pub(super) hop: usize,
    /// How much later its last byte arrives than its first.
    pub(super) spread: Duration,
    pub(super) sent_at: Time,
}

/// The part of a message that is still to be sent.
pub(super) struct Unsent {
    pub(super) bytes: u64,
    pub(super) end: End,
}

/// What became of bytes that were sent.
pub(super) enum Fate {
    /// They arrived. The last bytes of a message hold room in the receiver's buffer until the message is taken.
    Arrived { held: bool },
    /// They were lost, which the sender learns from later acknowledgements or from a timeout.
    Lost { range: Range, timeout: bool },
}

/// What the sender will learn of bytes that it sent, and when.
pub(super) struct Ack {
    pub(super) at: Time,
    /// How much later their last byte is acknowledged than their first.
    pub(super) spread: Duration,
    pub(super) bytes: u64,
    pub(super) sent_at: Time,
    pub(super) fate: Fate,
}

/// The sender's side.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) unprepared: VecDeque<Unsent>,
    pub(super) preparing: bool,
    pub(super) unsent: VecDeque<Unsent>,
    /// In both queues.
    pub(super) unsent_bytes: u64,
    /// Ranges that were lost and are to be sent again.
    pub(super) retransmit: VecDeque<Range>,
    pub(super) sent: u64,
    /// Sent, and neither acknowledged nor known to be lost.
    pub(super) in_flight_bytes: u64,
    /// Used of the receiver's window: in flight, or in its buffer.
    pub(super) used_bytes: u64,
    pub(super) acks: VecDeque<Ack>,
    /// End of the current acknowledgements; new data is paced until then (ACK clocking).
    pub(super) acks_end: Time,
    /// Acknowledgements that report a loss.
    pub(super) losses: usize,
    /// Room that the receiver made in its buffer: when the sender learns of it, and how much.
    pub(super) taken: VecDeque<(Time, u64)>,
    /// When the window is checked next, where something waits for it.
    pub(super) window_check_at: Option<Time>,
}

/// The receiver's side.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) last_arrival: Time,
    /// Ranges that were lost and have not arrived again, in order.
    pub(super) gaps: Vec<(u64, u64)>,
    /// Ends of messages behind a gap, by their position, with the bytes that they hold of the window.
    pub(super) behind_gap: BTreeMap<u64, (End, u64)>,
    /// Messages that have arrived whole, with the bytes that they hold of the window.
    pub(super) receiving: VecDeque<(End, u64)>,
    pub(super) busy: bool,
    /// Received, and waiting for a thread of their host, in order.
    pub(super) dispatching: VecDeque<(End, u64)>,
    /// Messages to be taken: the bytes that each holds of the window until then.
    pub(super) arrived: VecDeque<u64>,
    pub(super) ended: bool,
}

impl Incoming {
    /// A range has arrived again.
    pub(super) fn fill_gap(&mut self, from: u64, to: u64) {
        let gaps = std::mem::take(&mut self.gaps);
        for (gap_from, gap_to) in gaps {
            let left = (gap_from, gap_to.min(from));
            let right = (gap_from.max(to), gap_to);
            self.gaps.extend([left, right].into_iter().filter(|(from, to)| from < to));
        }
    }

    /// The next message behind a gap that has arrived whole, with all before it.
    pub(super) fn next_whole(&mut self) -> Option<(End, u64)> {
        let first = self.behind_gap.first_entry()?;
        let blocked = self.gaps.iter().any(|(from, _)| from < first.key());
        (!blocked).then(|| first.remove())
    }
}
