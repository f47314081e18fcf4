//! One stream, as its consumer sees it.

use crate::bucket::{ItemData, ItemKind};
use crate::codec::{Body, Marker, Request, SNAPSHOT_ACK, Version};
use crate::policy::{OutOfOrder, SnapshotCursor, StreamStart};

/// A producer that demands more rollbacks than this in a row is broken.
const ROLLBACKS_MAX: u32 = 8;

/// A requested stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// The opaque of the request, and of every message of the stream.
    pub opaque: u32,
    pub flags: u32,
    /// The opaque of the ADD_STREAM that wanted it; none where the consumer began by itself.
    pub added_by: Option<u32>,
    /// Whether the producer has granted it.
    pub granted: bool,
    cursor: SnapshotCursor,
    /// Markers that asked for an answer and have none yet.
    owed: u32,
    /// Rollbacks that the producer demanded so far.
    pub rollbacks: u32,
}

impl Stream {
    /// One that is not requested yet, with the flags of its request.
    pub fn new(flags: u32, added_by: Option<u32>) -> Stream {
        let cursor = SnapshotCursor::new(0, 0, 0);
        Stream { opaque: 0, flags, added_by, granted: false, cursor, owed: 0, rollbacks: 0 }
    }

    /// Requested, from this position.
    pub fn begin(&mut self, opaque: u32, at: StreamStart) {
        self.opaque = opaque;
        self.cursor = SnapshotCursor::new(at.start, at.snap_start, at.snap_end);
    }

    /// The last sequence number that came, or after which it was requested.
    pub fn last(&self) -> u64 {
        self.cursor.last()
    }

    /// The producer demanded a rollback; answers whether to ask again.
    pub fn rolled_back(&mut self) -> bool {
        self.rollbacks += 1;
        self.rollbacks <= ROLLBACKS_MAX
    }

    /// A snapshot begins. Fails if it lies before items that arrived already.
    pub fn marker(&mut self, marker: Marker) -> Result<(), OutOfOrder> {
        self.cursor.marker(marker)?;
        self.owed += u32::from(marker.flags & SNAPSHOT_ACK != 0);
        Ok(())
    }

    /// An item arrived; answers whether it completes its snapshot. Fails if it is not of the snapshot.
    pub fn item(&mut self, seqno: u64) -> Result<bool, OutOfOrder> {
        self.cursor.item(seqno)?;
        Ok(self.cursor.is_whole())
    }

    /// How many answers to markers are due; they count as given. A producer counts its markers, also those that came
    /// before the snapshot in front of them was whole.
    pub(crate) fn owed_answers(&mut self) -> u32 {
        if self.cursor.is_whole() { std::mem::take(&mut self.owed) } else { 0 }
    }
}

/// The version in a stream's message. Anything else is a bug.
pub(super) fn item_of(request: Request) -> ItemData {
    let Request { cas, datatype, body, .. } = request;
    let (kind, version) = match body {
        Body::Mutation(version) => (ItemKind::Mutation, version),
        Body::Deletion(version) => (ItemKind::Deletion, version),
        Body::Expiration(version) => (ItemKind::Expiration, version),
        other => unreachable!("{:?} holds no version", other.opcode()),
    };
    let Version { key, value, by_seqno, rev_seqno, flags, time_s, .. } = version;
    ItemData { kind, key, value, by_seqno, rev_seqno, cas, flags, time_s, datatype }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_that_asked_is_answered() {
        let mut stream = Stream::new(0, None);
        stream.begin(7, StreamStart { start: 900, uuid: 1, snap_start: 1, snap_end: 1000 });
        let marker = |start, end| Marker { start, end, flags: SNAPSHOT_ACK };
        stream.marker(marker(1, 1000)).unwrap();
        assert!(!stream.item(950).unwrap());
        // The rest of the snapshot is a part of the next: nothing is whole before its end.
        stream.marker(marker(951, 1100)).unwrap();
        assert_eq!(stream.owed_answers(), 0);
        assert!(stream.item(1100).unwrap());
        assert_eq!((stream.owed_answers(), stream.owed_answers()), (2, 0));
    }
}
