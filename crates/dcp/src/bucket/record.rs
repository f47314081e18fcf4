//! What a bucket writes to its log.
//!
//! One log serves all vbuckets of a bucket. With a file for each, as in Couchbase, every round of the flusher would
//! cost up to 1024 syncs; one log costs one. An index in memory finds the versions that are read back.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use store::Record;

use super::item::{ItemData, ItemKind};
use crate::codec::{FailoverEntry, VbucketState};

const MUTATION: u8 = 1;
const DELETION: u8 = 2;
const EXPIRATION: u8 = 3;
const STATE: u8 = 4;
const ROLLBACK: u8 = 5;
const CLOSED: u8 = 6;
const ROLLBACK_FLOOR: u8 = 7;
/// Flag in the kind of an item that completes a snapshot. Earlier builds did not know it.
const COMPLETES_SNAPSHOT: u8 = 0x10;
/// kind, vbucket, by_seqno, rev_seqno, cas, flags, time, datatype, length of the key.
const ITEM_BYTES: usize = 1 + 2 + 8 + 8 + 8 + 4 + 4 + 1 + 2;
/// kind, vbucket, state, snapshot's start and end, entries of the failover table.
const STATE_BYTES: usize = 1 + 2 + 1 + 8 + 8 + 1;

/// The state of a vbucket, the snapshot that it is in, and its failover table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateRecord {
    pub state: VbucketState,
    pub snap_start: u64,
    pub snap_end: u64,
    pub failover: Vec<FailoverEntry>,
}

/// One record of the log. It is small, because a virtual disk keeps millions of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiskRecord {
    /// A version of a document. One that a compaction moved is in the log twice.
    Item {
        vb: u16,
        item: Arc<ItemData>,
        /// Whether this item completes a consistent snapshot of the vbucket.
        completes_snapshot: bool,
    },
    /// The vbucket is in this state.
    State(u16, Box<StateRecord>),
    /// The vbucket was rolled back to this sequence number.
    Rollback(u16, u64),
    /// The lowest sequence number that a rollback can reach: compaction removed versions that were replaced at or
    /// before it.
    RollbackFloor(u16, u64),
    /// The bucket was closed: nothing was in memory that is not in the log.
    Closed,
}

impl Record for DiskRecord {
    fn payload_bytes(&self) -> usize {
        match self {
            DiskRecord::Item { item, .. } => ITEM_BYTES + item.key.len() + item.value.len(),
            DiskRecord::State(_, state) => STATE_BYTES + 16 * state.failover.len(),
            DiskRecord::Rollback(..) | DiskRecord::RollbackFloor(..) => 11,
            DiskRecord::Closed => 1,
        }
    }

    fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            DiskRecord::Item { vb, item, completes_snapshot } => {
                let kind = match item.kind {
                    ItemKind::Mutation => MUTATION,
                    ItemKind::Deletion => DELETION,
                    ItemKind::Expiration => EXPIRATION,
                };
                buffer.push(if *completes_snapshot { kind | COMPLETES_SNAPSHOT } else { kind });
                buffer.extend_from_slice(&vb.to_le_bytes());
                for number in [item.by_seqno, item.rev_seqno, item.cas] {
                    buffer.extend_from_slice(&number.to_le_bytes());
                }
                buffer.extend_from_slice(&item.flags.to_le_bytes());
                buffer.extend_from_slice(&item.time_s.to_le_bytes());
                buffer.push(item.datatype);
                buffer.extend_from_slice(&(item.key.len() as u16).to_le_bytes());
                buffer.extend_from_slice(&item.key);
                buffer.extend_from_slice(&item.value);
            }
            DiskRecord::State(vb, state) => {
                buffer.push(STATE);
                buffer.extend_from_slice(&vb.to_le_bytes());
                buffer.push(state.state.number());
                buffer.extend_from_slice(&state.snap_start.to_le_bytes());
                buffer.extend_from_slice(&state.snap_end.to_le_bytes());
                buffer.push(state.failover.len() as u8);
                for entry in &state.failover {
                    buffer.extend_from_slice(&entry.uuid.to_le_bytes());
                    buffer.extend_from_slice(&entry.seqno.to_le_bytes());
                }
            }
            DiskRecord::Rollback(vb, seqno) | DiskRecord::RollbackFloor(vb, seqno) => {
                let rollback = matches!(self, DiskRecord::Rollback(..));
                buffer.push(if rollback { ROLLBACK } else { ROLLBACK_FLOOR });
                buffer.extend_from_slice(&vb.to_le_bytes());
                buffer.extend_from_slice(&seqno.to_le_bytes());
            }
            DiskRecord::Closed => buffer.push(CLOSED),
        }
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let (kind, mut rest) = payload.split_first()?;
        match *kind {
            STATE => decode_state(rest),
            ROLLBACK | ROLLBACK_FLOOR => {
                let (vb, seqno) = (rest.try_get_u16_le().ok()?, rest.try_get_u64_le().ok()?);
                let record = match *kind {
                    ROLLBACK => DiskRecord::Rollback(vb, seqno),
                    _ => DiskRecord::RollbackFloor(vb, seqno),
                };
                rest.is_empty().then_some(record)
            }
            CLOSED => rest.is_empty().then_some(DiskRecord::Closed),
            kind => decode_item(kind, rest),
        }
    }

    fn plausible(payload: &[u8]) -> bool {
        let known = MUTATION..=ROLLBACK_FLOOR;
        payload.first().is_some_and(|kind| known.contains(&(*kind & !COMPLETES_SNAPSHOT)))
    }
}

fn decode_item(kind: u8, mut rest: &[u8]) -> Option<DiskRecord> {
    let completes_snapshot = kind & COMPLETES_SNAPSHOT != 0;
    let kind = match kind & !COMPLETES_SNAPSHOT {
        MUTATION => ItemKind::Mutation,
        DELETION => ItemKind::Deletion,
        EXPIRATION => ItemKind::Expiration,
        _ => return None,
    };
    let vb = rest.try_get_u16_le().ok()?;
    let mut number = || rest.try_get_u64_le().ok();
    let (by_seqno, rev_seqno, cas) = (number()?, number()?, number()?);
    let (flags, time_s) = (rest.try_get_u32_le().ok()?, rest.try_get_u32_le().ok()?);
    let datatype = rest.try_get_u8().ok()?;
    let key_bytes = usize::from(rest.try_get_u16_le().ok()?);
    // Each by itself: the key stays where the value is not kept in memory.
    let (key, value) = rest.split_at_checked(key_bytes)?;
    let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    let item = ItemData { kind, key, value, by_seqno, rev_seqno, cas, flags, time_s, datatype };
    Some(DiskRecord::Item { vb, item: item.into(), completes_snapshot })
}

fn decode_state(mut rest: &[u8]) -> Option<DiskRecord> {
    let (vb, state) = (rest.try_get_u16_le().ok()?, rest.try_get_u8().ok()?);
    let (snap_start, snap_end) = (rest.try_get_u64_le().ok()?, rest.try_get_u64_le().ok()?);
    let count = rest.try_get_u8().ok()?;
    let mut number = || rest.try_get_u64_le().ok();
    let entries = (0..count).map(|_| Some(FailoverEntry { uuid: number()?, seqno: number()? }));
    let failover = entries.collect::<Option<Vec<_>>>()?;
    let state = VbucketState::of(state)?;
    let state = StateRecord { state, snap_start, snap_end, failover };
    rest.is_empty().then(|| DiskRecord::State(vb, state.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_comes_back_and_no_shorter_one_does() {
        let item = Arc::new(ItemData {
            kind: ItemKind::Expiration,
            key: Bytes::from_static(b"key"),
            value: Bytes::from_static(b"value"),
            by_seqno: 1 << 40,
            rev_seqno: 2,
            cas: 3 << 50,
            flags: 4,
            time_s: 5,
            datatype: 1,
        });
        let state = StateRecord {
            state: VbucketState::Pending,
            snap_start: 7,
            snap_end: 9,
            failover: vec![
                FailoverEntry { uuid: 1, seqno: 2 },
                FailoverEntry { uuid: 3, seqno: 0 },
            ],
        };
        let records = [
            DiskRecord::Item { vb: 1023, item: item.clone(), completes_snapshot: false },
            DiskRecord::Item { vb: 1023, item, completes_snapshot: true },
            DiskRecord::State(5, state.into()),
            DiskRecord::Rollback(7, 99),
            DiskRecord::RollbackFloor(7, 99),
            DiskRecord::Closed,
        ];
        for record in records {
            let mut buffer = Vec::new();
            record.encode(&mut buffer);
            assert_eq!(buffer.len(), record.payload_bytes());
            assert!(DiskRecord::plausible(&buffer));
            for len in 0..buffer.len().min(ITEM_BYTES) {
                assert_eq!(DiskRecord::decode(&buffer[..len]), None, "{len} of {record:?}");
            }
            assert_eq!(DiskRecord::decode(&buffer), Some(record));
        }
        assert_eq!(DiskRecord::decode(&[STATE | COMPLETES_SNAPSHOT, 0, 0]), None);
    }

    #[test]
    fn a_key_that_is_read_does_not_hold_its_value_in_memory() {
        let mut payload = vec![MUTATION, 7, 0];
        [5u64, 1, 9].iter().for_each(|number| payload.extend(number.to_le_bytes()));
        payload.extend([0; 9]);
        payload.extend([3, 0]);
        payload.extend(b"keyvalue");
        let Some(DiskRecord::Item { vb, item, completes_snapshot: false }) =
            DiskRecord::decode(&payload)
        else {
            panic!("a mutation")
        };
        assert_eq!((vb, item.by_seqno, item.kind), (7, 5, ItemKind::Mutation));
        assert_eq!((&item.key[..], &item.value[..]), (&b"key"[..], &b"value"[..]));
        assert!(item.key.is_unique() && item.value.is_unique());
    }

    #[test]
    fn a_record_is_small() {
        assert_eq!(size_of::<DiskRecord>(), 16);
    }
}
