//! The counts of a consumer that keeps nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::policy::{SnapshotCursor, StreamStart};

/// What one vbucket sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Mutations.
    pub mutations: u64,
    /// Deletions and expirations.
    pub deletions: u64,
    /// Bytes of all messages, headers too.
    pub bytes: u64,
    /// Rollbacks that the producer demanded; what is streamed again is counted again.
    pub rollbacks: u64,
    /// The position of the stream.
    pub at: SnapshotCursor,
    /// The producer's newest history; 0 where it is not known.
    pub history: u64,
}

impl Count {
    /// Mutations, deletions and expirations.
    pub fn items(&self) -> u64 {
        self.mutations + self.deletions
    }

    /// How to ask for more.
    pub fn resume(&self) -> StreamStart {
        self.at.resume(self.history)
    }
}

/// Counts by vbucket. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Counts(Rc<RefCell<BTreeMap<u16, Count>>>);

impl Counts {
    /// The counts of a vbucket.
    pub fn of(&self, vb: u16) -> Count {
        self.0.borrow().get(&vb).cloned().unwrap_or_default()
    }

    /// The counts of all vbuckets.
    pub fn all(&self) -> BTreeMap<u16, Count> {
        self.0.borrow().clone()
    }

    /// Changes the counts of a vbucket.
    pub(crate) fn change<T>(&self, vb: u16, change: impl FnOnce(&mut Count) -> T) -> T {
        change(self.0.borrow_mut().entry(vb).or_default())
    }

    /// The producer's history is forgotten, as by a server that keeps none on disk. The next stream is asked for
    /// from a position in a history that no producer knows.
    pub(crate) fn forget_history(&self, vb: u16) {
        self.change(vb, |count| count.history = 0);
    }

    /// A vbucket is read from this position in a history on.
    pub(crate) fn begin_at(&self, vb: u16, seqno: u64, history: u64) {
        self.change(vb, |count| {
            count.at = SnapshotCursor::new(seqno, seqno, seqno);
            count.history = history;
        });
    }
}
