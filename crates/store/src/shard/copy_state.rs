//! What a copy knows about its history while it is open.

use std::rc::Rc;

use crate::checkpoint::LocalCheckpointTracker;
use crate::commit::{Commit, StoredCommit};
use crate::plan::Bounds;
use crate::retention::Retention;
use crate::versions::VersionMap;

#[derive(Default)]
pub(crate) struct CopyState {
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
    /// Bytes of the operations that were applied since the last refresh.
    pub(crate) unrefreshed_bytes: u64,
    /// Whether some of that is not in the version map either.
    pub(crate) untracked: bool,
    /// Whether plain appends go into the version map, too: since an update had to find one.
    pub(crate) track_appends: bool,
    /// Whether the index differs from the newest commit.
    pub(crate) uncommitted: bool,
    pub(crate) uncommitted_ops: u64,
    pub(crate) uncommitted_bytes: u64,
    pub(crate) commit: Commit,
    /// The generation that was begun last. One that failed may be on the disk all the same, and is not used again.
    pub(crate) begun: u64,
}

impl CopyState {
    pub(super) fn new(stored: StoredCommit) -> Self {
        let commit = stored.commit;
        CopyState {
            tracker: LocalCheckpointTracker::new(commit.local_checkpoint, commit.max_seq_no),
            bounds: Bounds {
                committed: commit.max_seq_no,
                committed_above: Rc::from(commit.above_checkpoint.as_slice()),
                updates: None,
            },
            documents: commit.documents,
            persisted_checkpoint: commit.local_checkpoint,
            global_checkpoint: stored.global_checkpoint,
            complete_from: stored.complete_from,
            begun: commit.generation,
            commit,
            ..CopyState::default()
        }
    }
}
