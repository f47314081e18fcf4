//! A commit: the files of one moment and what of the history they hold.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The version of the commit file that this build writes.
pub(crate) const FORMAT: u32 = 2;
/// Commits up to this version may have a log without a checkpoint.
pub(crate) const FORMAT_WITHOUT_LOG_CHECKPOINT: u32 = 1;

/// One file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Name, without a directory.
    pub name: Arc<str>,
    /// Length in bytes.
    pub len: u64,
    /// XXH3 (64 bits) of the whole file.
    pub xxh3: u64,
}

/// What a copy's files hold at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Number of the commit, increasing within a copy.
    pub generation: u64,
    /// Every file, in the order of their names. Shared by all who hold the commit.
    pub files: Arc<[FileMeta]>,
    /// Highest sequence number in the files; none if there is none.
    pub max_seq_no: Option<u64>,
    /// Everything up to here is in the files; none if operation 0 is missing.
    pub local_checkpoint: Option<u64>,
    /// Sequence numbers above that whose operations are in the files: a synthetic batch cannot be looked up in them.
    #[serde(default)]
    pub above_checkpoint: Vec<Range<u64>>,
    /// Live documents.
    pub documents: u64,
    /// Identity of the history. Copies with another one share no operations.
    pub history_uuid: String,
}

impl Commit {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }
}

/// What stands in a commit file: the commit, and what belongs to this copy alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredCommit {
    pub(crate) format: u32,
    pub(crate) commit: Commit,
    /// Log files below this generation are of a copy that was replaced.
    pub(crate) log_generation: u64,
    /// The log holds every operation from here on.
    pub(crate) complete_from: u64,
    pub(crate) global_checkpoint: Option<u64>,
    /// Its files came from another copy, and the log that lies beside them may be of the copy before.
    #[serde(default)]
    pub(crate) is_received: bool,
    /// What the files of the log call their history, where that is not [`Commit::history_uuid`]: the copy began another
    /// one after they were written.
    #[serde(default)]
    pub(crate) log_history: Option<u64>,
}

impl StoredCommit {
    /// Of files that were made here; its log begins with it.
    pub(crate) fn new(commit: Commit, log_generation: u64) -> Self {
        StoredCommit {
            format: FORMAT,
            commit,
            log_generation,
            complete_from: 0,
            global_checkpoint: None,
            is_received: false,
            log_history: None,
        }
    }

    /// Of files that came from another copy.
    pub(crate) fn received(commit: Commit, log_generation: u64) -> Self {
        let complete_from = commit.local_checkpoint.map_or(0, |checkpoint| checkpoint + 1);
        let made = StoredCommit::new(commit, log_generation);
        StoredCommit { complete_from, is_received: true, ..made }
    }

    /// What the files of its log call their history.
    pub(crate) fn log_history(&self) -> u64 {
        self.log_history.unwrap_or_else(|| xxh3_64(self.commit.history_uuid.as_bytes()))
    }

    /// Gives the copy another history, and leaves its log as it is. False where it has that one.
    pub(crate) fn begin_history(&mut self, history_uuid: &str) -> bool {
        if self.commit.history_uuid == history_uuid {
            return false;
        }
        self.log_history = Some(self.log_history());
        history_uuid.clone_into(&mut self.commit.history_uuid);
        true
    }
}

/// How far a copy goes that nobody has open, and what it knows of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The history that its commit belongs to; empty where there is none.
    pub history_uuid: String,
    /// One more than the highest sequence number that is durable.
    pub next_seq_no: u64,
    /// Every copy in sync had everything up to here, as far as this one was told; none if it was told nothing.
    pub global_checkpoint: Option<u64>,
    /// Whether it is to be opened with whatever its log still holds: nobody knows how far that goes.
    pub is_loss_accepted: bool,
}

impl Extent {
    pub(crate) fn of_commit(stored: &StoredCommit) -> Self {
        Extent {
            history_uuid: stored.commit.history_uuid.clone(),
            next_seq_no: stored.commit.max_seq_no.map_or(0, |max| max + 1),
            global_checkpoint: stored.global_checkpoint,
            is_loss_accepted: false,
        }
    }
}

/// Whether a name that came from elsewhere can stand in our directory.
pub(crate) fn safe_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= 200
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
