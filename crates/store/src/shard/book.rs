//! What a copy knows about its history while it is open.

use crate::checkpoint::LocalCheckpointTracker;
use crate::commit::Commit;
use crate::plan::Bounds;
use crate::retention::Retention;
use crate::versions::VersionMap;

use super::Shard;

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) tracker: LocalCheckpointTracker,
    pub(crate) versions: VersionMap,
    pub(crate) bounds: Bounds,
    pub(crate) retention: Retention,
    pub(crate) global_checkpoint: Option<u64>,
    /// Everything up to here is applied and durable.
    pub(crate) persisted_checkpoint: Option<u64>,
    /// The log holds every operation from here on.
    pub(crate) complete_from: u64,
    /// Live documents.
    pub(crate) documents: u64,
    /// Whether something was applied that the index does not show yet.
    pub(crate) unrefreshed: bool,
    /// Whether some of that is not in the version map either.
    pub(crate) untracked: bool,
    /// Whether plain appends go into the version map, too: an update lately needed to find one.
    pub(crate) track_appends: bool,
    /// Whether the index differs from the newest commit.
    pub(crate) uncommitted: bool,
    pub(crate) uncommitted_ops: u64,
    pub(crate) uncommitted_bytes: u64,
    pub(crate) commit: Commit,
}

impl Shard {
    /// Highest sequence number seen; none before the first operation.
    pub fn max_seq_no(&self) -> Option<u64> {
        self.inner.book.borrow().tracker.max_seq_no()
    }

    /// Everything up to here is applied; none while operation 0 is missing.
    pub fn local_checkpoint(&self) -> Option<u64> {
        self.inner.book.borrow().tracker.checkpoint()
    }

    /// Everything up to here is applied and survives a `kill -9`; none while operation 0 does not. Global
    /// checkpoints are made of these: what a copy may still forget must not count as known everywhere.
    pub fn persisted_checkpoint(&self) -> Option<u64> {
        self.inner.book.borrow().persisted_checkpoint
    }

    /// What is missing below [`Shard::max_seq_no`]; a new primary fills it with [`crate::OpKind::NoOp`].
    pub fn gaps(&self) -> Vec<std::ops::Range<u64>> {
        self.inner.book.borrow().tracker.gaps()
    }

    /// Every in-sync copy has applied everything up to here, as far as this copy was told.
    pub fn global_checkpoint(&self) -> Option<u64> {
        self.inner.book.borrow().global_checkpoint
    }

    /// Raises the global checkpoint; a lower one than before is ignored.
    pub fn advance_global_checkpoint(&self, checkpoint: u64) {
        let mut book = self.inner.book.borrow_mut();
        book.global_checkpoint = book.global_checkpoint.max(Some(checkpoint));
    }

    /// Sets a retention lease: flushes keep the operations from `seq_no` on. None releases it.
    pub fn retain_ops_from(&self, lease_id: &str, seq_no: Option<u64>) {
        self.inner.book.borrow_mut().retention.set(lease_id, seq_no);
    }

    /// Bytes of operations since the last commit.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.inner.book.borrow().uncommitted_bytes
    }

    /// The log holds every operation from this sequence number on.
    pub fn log_complete_from(&self) -> u64 {
        self.inner.book.borrow().complete_from
    }
}
