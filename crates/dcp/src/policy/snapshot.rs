//! The position of a consumer in a stream: its snapshot, and the last sequence number.
//!
//! Sequence numbers rise strictly within the bounds of their snapshot. The consumer's view is consistent only at a
//! snapshot's end; a stream that breaks off in the middle continues with the same bounds.

use crate::codec::Marker;
use crate::policy::StreamStart;

/// No vbucket gets so far by counting. One that took the highest number of all could give none to its next version.
const SEQNO_END: u64 = 1 << 63;

/// A message that does not fit the position of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OutOfOrder {
    #[error("sequence number {seqno} came after {last}; numbers of a stream rise")]
    NotRising { seqno: u64, last: u64 },
    #[error("sequence number {seqno} lies outside its snapshot, {start} to {end}")]
    Outside { seqno: u64, start: u64, end: u64 },
    #[error("sequence number {seqno} came before any snapshot marker")]
    NoSnapshot { seqno: u64 },
    #[error("a snapshot of {start} to {end} begins after {last}; snapshots do not go back")]
    Backwards { start: u64, end: u64, last: u64 },
    #[error("a snapshot ends at {end} before it begins at {start}")]
    Reversed { start: u64, end: u64 },
    #[error("a snapshot ends at {end}; sequence numbers stay below 2^63")]
    TooHigh { end: u64 },
}

/// A position in a stream; by default that at which nothing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotCursor {
    last: u64,
    snap_start: u64,
    snap_end: u64,
    marker: Option<Marker>,
}

impl SnapshotCursor {
    /// The position at which a stream was requested.
    pub fn new(start: u64, snap_start: u64, snap_end: u64) -> SnapshotCursor {
        SnapshotCursor { last: start, snap_start, snap_end, marker: None }
    }

    /// A snapshot marker arrived. Fails if the snapshot lies before items that arrived already. The cursor stays as it
    /// was.
    pub fn marker(&mut self, marker: Marker) -> Result<(), OutOfOrder> {
        let Marker { start, end, .. } = marker;
        if end < start {
            return Err(OutOfOrder::Reversed { start, end });
        }
        if end >= SEQNO_END {
            return Err(OutOfOrder::TooHigh { end });
        }
        // A snapshot may begin at the number after which the stream was requested, or before it if an earlier stream
        // sent a part of the snapshot.
        if end < self.last
            || self.marker.is_some_and(|before| end <= before.end && end <= self.last)
        {
            return Err(OutOfOrder::Backwards { start, end, last: self.last });
        }
        // What is left of a snapshot that is not whole is a part of the next.
        let begins = if self.is_whole() { start } else { start.min(self.snap_start) };
        (self.snap_start, self.snap_end) = (begins, end);
        self.marker = Some(marker);
        Ok(())
    }

    /// An item arrived. Fails if it does not fit. The cursor stays as it was.
    pub fn item(&mut self, seqno: u64) -> Result<(), OutOfOrder> {
        let Some(Marker { start, end, .. }) = self.marker else {
            return Err(OutOfOrder::NoSnapshot { seqno });
        };
        if seqno <= self.last {
            return Err(OutOfOrder::NotRising { seqno, last: self.last });
        }
        if !(start..=end).contains(&seqno) {
            return Err(OutOfOrder::Outside { seqno, start, end });
        }
        self.last = seqno;
        Ok(())
    }

    /// The last sequence number.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether the view is consistent: the snapshot is complete, or none has begun.
    pub fn is_whole(&self) -> bool {
        self.last == self.snap_end || self.marker.is_none() && self.last == self.snap_start
    }

    /// How to request the rest.
    pub fn resume(&self, uuid: u64) -> StreamStart {
        let last = self.last;
        // A snapshot that is complete, or of which nothing arrived, counts as one of a single number.
        let (snap_start, snap_end) = if last == self.snap_end || last < self.snap_start {
            (last, last)
        } else {
            (self.snap_start, self.snap_end)
        };
        StreamStart { start: last, uuid, snap_start, snap_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(start: u64, end: u64) -> Marker {
        Marker { start, end, flags: 1 }
    }

    #[test]
    fn numbers_rise_within_the_bounds() {
        let mut cursor = SnapshotCursor::new(0, 0, 0);
        assert!(cursor.is_whole());
        assert_eq!(cursor.item(1), Err(OutOfOrder::NoSnapshot { seqno: 1 }));
        cursor.marker(marker(0, 10)).unwrap();
        cursor.item(1).unwrap();
        cursor.item(7).unwrap();
        assert!(!cursor.is_whole());
        assert_eq!(cursor.item(7), Err(OutOfOrder::NotRising { seqno: 7, last: 7 }));
        assert_eq!(cursor.item(11), Err(OutOfOrder::Outside { seqno: 11, start: 0, end: 10 }));
        cursor.item(10).unwrap();
        assert!(cursor.is_whole());
        let error = cursor.marker(marker(5, 9)).unwrap_err();
        assert_eq!(error, OutOfOrder::Backwards { start: 5, end: 9, last: 10 });
        assert!(cursor.marker(marker(11, 9)).is_err());
        for end in [1 << 63, u64::MAX] {
            assert_eq!(cursor.marker(marker(11, end)), Err(OutOfOrder::TooHigh { end }));
        }
        cursor.marker(marker(11, 12)).unwrap();
        cursor.item(12).unwrap();
        assert_eq!(cursor.last(), 12);
    }

    #[test]
    fn a_part_of_a_snapshot_resumes_with_its_bounds() {
        let mut cursor = SnapshotCursor::new(0, 0, 0);
        cursor.marker(marker(0, 10)).unwrap();
        cursor.item(4).unwrap();
        let resume = cursor.resume(7);
        assert_eq!(resume, StreamStart { start: 4, uuid: 7, snap_start: 0, snap_end: 10 });
        let mut again = SnapshotCursor::new(resume.start, resume.snap_start, resume.snap_end);
        assert!(!again.is_whole());
        assert_eq!(again.resume(7), resume);
        again.marker(marker(0, 10)).unwrap();
        again.item(10).unwrap();
        let resume = again.resume(7);
        assert_eq!(resume, StreamStart { start: 10, uuid: 7, snap_start: 10, snap_end: 10 });
    }

    #[test]
    fn a_snapshot_that_follows_a_part_of_one_begins_with_it() {
        let mut cursor = SnapshotCursor::new(0, 0, 0);
        cursor.marker(marker(1, 1000)).unwrap();
        cursor.item(960).unwrap();
        cursor.marker(marker(961, 1100)).unwrap();
        let resume = StreamStart { start: 960, uuid: 7, snap_start: 1, snap_end: 1100 };
        assert_eq!(cursor.resume(7), resume);
        assert!(cursor.item(1101).is_err());
        cursor.item(1100).unwrap();
        cursor.marker(marker(1101, 1200)).unwrap();
        let resume = StreamStart { start: 1100, uuid: 7, snap_start: 1100, snap_end: 1100 };
        assert_eq!(cursor.resume(7), resume);
    }

    #[test]
    fn a_snapshot_of_which_nothing_came_is_asked_for_anew() {
        let mut cursor = SnapshotCursor::new(10, 10, 10);
        cursor.marker(marker(11, 20)).unwrap();
        let resume = cursor.resume(7);
        assert_eq!(resume, StreamStart { start: 10, uuid: 7, snap_start: 10, snap_end: 10 });
    }
}
