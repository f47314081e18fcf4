#![doc = include_str!("../README.md")]

mod checkpoint;
mod chunk;
mod commit;
mod contents;
mod digest;
mod error;
mod files;
mod frame;
mod group_commit;
mod incoming;
mod lock;
mod operation;
mod patience;
mod plan;
pub mod planted;
pub mod received;
mod record_log;
mod requests;
mod retention;
pub mod sealed;
mod segments;
pub mod sent;
mod shard;
mod snapshot;
mod storage;
mod synthetic;
mod tantivy_storage;
mod to_its_end;
mod versions;
mod virtual_files;

pub use chunk::{Chunk, SyntheticChunk};
pub use commit::{Commit, Extent, FileMeta};
pub use contents::SearchView;
pub use digest::{Digest, ListedDocument, document_hash};
pub use error::{Error, FirstFailure, Result, means_full_disk};
pub use files::{lock_file, make_dir, until_free};
pub use incoming::Incoming;
pub use operation::{OpKind, Operation, SyntheticBatch};
pub use record_log::{Location, Record, RecordLog};
pub use requests::{
    Durability, GetResult, Opened, Options, Rejection, SegmentStats, ShardStats, ShardWork, Timed,
    WriteOutcome, WriteRequest, WriteResult,
};
pub use segments::Segments;
pub use shard::{ReadRequests, Shard};
pub use snapshot::Snapshot;
pub use storage::{committed, damage_largest_file, extent, holds_anything, holds_operations};
pub use synthetic::{
    accept_data_loss, damage_log, put_log_back, put_segments_back, set_disk_free_bytes,
};
pub use tantivy_storage::{Aggregated, AnalyzedWord, analyzed};
pub use virtual_files::least_stored_bytes;
