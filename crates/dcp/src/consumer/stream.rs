//! One stream, as its consumer sees it.

use crate::bucket::{ItemData, ItemKind};
use crate::codec::{Body, Marker, Request, SNAPSHOT_ACK};
use crate::policy::{OutOfOrder, SnapshotCursor, StreamStart};

/// A producer that demands more rollbacks than this in a row is broken.
const ROLLBACKS_MAX: u32 = 8;

/// A requested stream.
#[derive(Debug)]
pub(super) struct Stream {
    opaque: u32,
    flags: u32,
    asked: Option<u32>,
    at: SnapshotCursor,
    /// The marker asked for an answer.
    owes: bool,
    rollbacks: u32,
}

impl Stream {
    pub fn new(flags: u32, asked: Option<u32>) -> Stream {
        let at = SnapshotCursor::new(0, 0, 0);
        Stream { opaque: 0, flags, asked, at, owes: false, rollbacks: 0 }
    }

    /// Requested, from this position.
    pub fn begin(&mut self, opaque: u32, at: StreamStart) {
        self.opaque = opaque;
        self.at = SnapshotCursor::new(at.start, at.snap_start, at.snap_end);
    }

    pub fn opaque(&self) -> u32 {
        self.opaque
    }

    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The opaque of the ADD_STREAM that wanted it.
    pub fn asked(&self) -> Option<u32> {
        self.asked
    }

    pub fn rollbacks(&self) -> u32 {
        self.rollbacks
    }

    /// The producer demanded a rollback; answers whether to ask again.
    pub fn rolled_back(&mut self) -> bool {
        self.rollbacks += 1;
        self.rollbacks <= ROLLBACKS_MAX
    }

    pub fn marker(&mut self, marker: Marker) -> Result<(), OutOfOrder> {
        self.at.marker(marker)?;
        self.owes |= marker.flags & SNAPSHOT_ACK != 0;
        Ok(())
    }

    /// An item arrived; answers whether it completes its snapshot.
    pub fn item(&mut self, seqno: u64) -> Result<bool, OutOfOrder> {
        self.at.item(seqno)?;
        Ok(self.at.is_whole())
    }

    /// Whether an answer to a marker is due; it counts as given.
    pub fn owes_answer(&mut self) -> bool {
        self.at.is_whole() && std::mem::take(&mut self.owes)
    }
}

/// The version in a stream's message. Anything else is a bug.
pub(super) fn item_of(request: Request) -> ItemData {
    let Request { cas, datatype, body, .. } = request;
    let deleted = |kind, key, value, by_seqno, rev_seqno, time_s| ItemData {
        kind,
        key,
        value,
        by_seqno,
        rev_seqno,
        cas,
        flags: 0,
        time_s,
        datatype,
    };
    match body {
        Body::Mutation(m) => ItemData {
            kind: ItemKind::Mutation,
            key: m.key,
            value: m.value,
            by_seqno: m.by_seqno,
            rev_seqno: m.rev_seqno,
            cas,
            flags: m.flags,
            time_s: m.expiry,
            datatype,
        },
        Body::Deletion(d) => deleted(
            ItemKind::Deletion,
            d.key,
            d.value,
            d.by_seqno,
            d.rev_seqno,
            d.delete_time.unwrap_or(0),
        ),
        Body::Expiration(e) => {
            deleted(ItemKind::Expiration, e.key, e.value, e.by_seqno, e.rev_seqno, e.delete_time)
        }
        other => unreachable!("{:?} holds no version", other.opcode()),
    }
}
