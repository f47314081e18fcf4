//! One vbucket: its state, its documents, its history in memory and on disk.

use std::rc::{Rc, Weak};

use tokio::sync::Notify;

use super::checkpoint::{Bounds, CheckpointLimits, Checkpoints};
use super::item::{Item, ItemData};
use super::record::StateRecord;
use super::seqno_index::SeqnoIndex;
use super::table::Table;
use crate::codec::{Marker, SNAPSHOT_CHECKPOINT, SNAPSHOT_DISK, VbucketState};
use crate::policy::{FailoverTable, OutOfOrder, SnapshotCursor, StreamStart};

/// The time of a CAS, in nanoseconds since 1970, is below this until the year 2262.
const CAS_END: u64 = 1 << 63;

/// One vbucket.
#[derive(Debug)]
pub(super) struct Vbucket {
    pub state: VbucketState,
    pub failover: FailoverTable,
    pub table: Table,
    pub checkpoints: Checkpoints,
    pub index: SeqnoIndex,
    /// The position in its producer's stream; always whole in an active vbucket.
    pub snapshot: SnapshotCursor,
    /// The version that completed the last consistent snapshot, while the one that comes is not complete.
    pub complete_seqno: u64,
    pub high_seqno: u64,
    pub persisted_seqno: u64,
    pub max_cas: u64,
    /// Bounds of the snapshot of the version that was persisted last; equal if that snapshot is whole.
    pub written_snapshot: (u64, u64),
    /// Whether the state has changed since it was written to the log.
    pub state_dirty: bool,
    /// Whether writes are refused because a takeover cannot keep up.
    pub backed_up: bool,
    /// Whether a rollback is being written: until it is done, no stream begins and the vbucket does not become active.
    pub rolls_back: bool,
    /// Number of rollbacks: a stream that began before one of them ends.
    pub epoch: u64,
    /// Streams that wait for items.
    listeners: Vec<Weak<Notify>>,
}

impl Vbucket {
    pub fn new(state: VbucketState, uuid: u64, limits: CheckpointLimits) -> Vbucket {
        Vbucket {
            state,
            failover: FailoverTable::new(uuid),
            table: Table::default(),
            checkpoints: Checkpoints::new(0, limits),
            index: SeqnoIndex::default(),
            snapshot: SnapshotCursor::new(0, 0, 0),
            complete_seqno: 0,
            high_seqno: 0,
            persisted_seqno: 0,
            max_cas: 0,
            written_snapshot: (0, 0),
            state_dirty: true,
            backed_up: false,
            rolls_back: false,
            epoch: 0,
            listeners: Vec::new(),
        }
    }

    pub fn listen(&mut self, notify: &Rc<Notify>) {
        self.listeners.retain(|listener| listener.strong_count() > 0);
        let known = |listener: &Weak<Notify>| std::ptr::eq(listener.as_ptr(), Rc::as_ptr(notify));
        if !self.listeners.iter().any(known) {
            self.listeners.push(Rc::downgrade(notify));
        }
    }

    /// Wakes streams that wait for items or for a change of state.
    pub fn wake(&self) {
        for listener in self.listeners.iter().filter_map(Weak::upgrade) {
            listener.notify_one();
        }
    }

    /// Stores a version: the newest of its document and of the vbucket. The caller wakes streams.
    pub fn take(&mut self, item: Rc<Item>) {
        self.high_seqno = item.by_seqno;
        self.count_cas(item.cas);
        let replaced = self.table.put(item.clone());
        self.checkpoints.push(item, replaced);
    }

    /// A version has this CAS: later ones get higher ones. What a producer sent may be no time, and after the highest
    /// of all there would be none.
    pub fn count_cas(&mut self, cas: u64) {
        if cas < CAS_END {
            self.max_cas = self.max_cas.max(cas);
        }
    }

    /// The producer sent a snapshot marker.
    pub fn marker(&mut self, marker: Marker) -> Result<(), OutOfOrder> {
        let before = self.snapshot;
        self.snapshot.marker(marker)?;
        if before.is_whole() {
            self.complete_seqno = before.last();
        }
        let bounds = Bounds {
            start: marker.start,
            end: marker.end,
            disk: marker.flags & SNAPSHOT_DISK != 0,
        };
        // Snapshots from memory may share a checkpoint; a disk snapshot and one that begins a checkpoint may not.
        if marker.flags & (SNAPSHOT_CHECKPOINT | SNAPSHOT_DISK) != 0 {
            self.checkpoints.begin(Some(bounds));
        } else {
            self.checkpoints.begin_or_extend(bounds);
        }
        Ok(())
    }

    /// From where to ask a producer for more.
    pub fn resume(&self) -> StreamStart {
        self.snapshot.resume(self.failover.uuid())
    }

    /// The state, for the log.
    pub fn record(&self) -> StateRecord {
        let (snap_start, snap_end) = self.written_snapshot;
        StateRecord { state: self.state, snap_start, snap_end, failover: self.failover.entries() }
    }

    /// Sequence number and CAS of a client's next version.
    pub fn next(&mut self, now_cas: u64) -> (u64, u64) {
        (self.high_seqno + 1, now_cas.max(self.max_cas + 1))
    }

    /// Changes the state; a vbucket that becomes active begins a new history.
    pub fn set_state(&mut self, state: VbucketState, fresh_uuid: u64) {
        if state == self.state {
            return;
        }
        if state == VbucketState::Active {
            // A part of a snapshot lacks versions that others have and that the rest of it would have replaced. Whoever
            // has them must not go on from the middle of it.
            let is_whole = self.snapshot.is_whole();
            let begins_after = if is_whole { self.high_seqno } else { self.complete_seqno };
            self.failover.begin(fresh_uuid, begins_after);
            self.checkpoints.begin(None);
        }
        if self.state == VbucketState::Active {
            // From now on snapshots come from a producer; what the vbucket has is whole.
            self.snapshot = SnapshotCursor::new(self.high_seqno, self.high_seqno, self.high_seqno);
        }
        self.state = state;
        self.backed_up = false;
        self.state_dirty = true;
        self.wake();
    }

    /// Rolls back to `seqno`: `gone` are the versions after it, `back` those that are the newest of their document
    /// again.
    pub fn roll_back(&mut self, seqno: u64, gone: &[ItemData], back: Vec<(Rc<Item>, u64)>) {
        for item in gone {
            self.table.remove(&item.key);
        }
        for (item, on_disk) in back {
            self.table.restore(item, on_disk);
        }
        self.index.truncate(seqno);
        self.checkpoints.reset(seqno);
        self.failover.roll_back(seqno);
        self.high_seqno = seqno;
        self.persisted_seqno = seqno;
        self.written_snapshot = (seqno, seqno);
        self.snapshot = SnapshotCursor::new(seqno, seqno, seqno);
        self.state_dirty = true;
        self.rolls_back = false;
        self.epoch += 1;
        self.wake();
    }
}
