//! A shard copy: segment files, operation log, commits and checksums; and a synthetic one with sizes and no
//! bytes, for the virtual world.
//!
//! | name | is |
//! | --- | --- |
//! | [`Shard`] | a copy that is open: written, read, synced, flushed |
//! | [`Operation`] | one entry of the shard's history |
//! | [`Commit`], [`FileMeta`] | the files of one moment |
//! | [`Snapshot`] | a commit held for a recovery that reads it |
//! | [`Incoming`] | files being received, until they become a copy |
//! | [`sent`] | operations on their way to another node |
//! | [`SearchView`] | what a search saw, for its fetches |
//!
//! The one rule: an operation that was applied and then synced survives a `kill -9` at any moment; a file
//! whose bytes are not those of its commit is named, and never read, copied or installed.
//!
//! A copy's directory:
//!
//! | path | holds |
//! | --- | --- |
//! | `commit-<n>.json` | the newest commit: names, lengths and hashes of its files |
//! | `commit-<n>/` | those files, as hard links |
//! | `oplog-<n>.log` | the operation log |
//! | `index/` | where the index library works; rebuilt from the commit at every open |
//! | `snapshots/<session>-<n>/` | hard links to commits that recoveries read; swept at open |
//! | `incoming/` | files being received |

mod arm;
mod checkpoint;
mod chunk;
mod commit;
mod digest;
mod error;
mod files;
mod frame;
mod group_commit;
mod incoming;
mod operation;
mod patience;
mod plan;
pub mod planted;
mod record_log;
mod retention;
mod segments;
pub mod sent;
mod shard;
mod snapshot;
mod synthetic;
mod tantivy_arm;
mod to_its_end;
mod versions;

pub use checkpoint::LocalCheckpointTracker;
pub use chunk::{Chunk, SyntheticChunk};
pub use commit::{Commit, FileMeta};
pub use digest::{Digest, ListedDocument, document_hash};
pub use error::{Error, Result};
pub use incoming::Incoming;
pub use operation::{OpKind, Operation, Run};
pub use record_log::{Location, Record, RecordLog};
pub use segments::Segments;
pub use shard::{
    Durability, GetResult, Opened, Options, Outcome, Rejection, Shard, ShardStats, WriteRequest,
    WriteResult, committed, damage_largest_file, destroy, holds_anything,
};
pub use snapshot::Snapshot;
pub use synthetic::set_disk_free_bytes;
pub use tantivy_arm::SearchView;
