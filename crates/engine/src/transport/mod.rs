//! How nodes talk: typed requests and answers over pooled connections.
//!
//! | file | holds |
//! | --- | --- |
//! | `message` | every request and every answer; documents, shards and the state |
//! | `recovery`, `following`, `searching` | what they say of those |
//! | `failure` | errors that cross the wire |
//! | `follow_stats` | how a shard follows, in the field's numbers |
//! | `operations`, `compress` | operations on their way, packed where that is asked for |
//! | `class`, `envelope`, `pool` | kinds of connections, frames, connections |
//! | `round` | a question that is asked of many at once |
//! | `network_partition` | what passes between a node and others while it is cut off |

mod class;
mod compress;
mod envelope;
mod failure;
mod follow_stats;
mod following;
mod message;
mod network_partition;
mod operations;
mod pool;
mod recovery;
mod round;
mod searching;

pub use class::Class;
pub use compress::{decompress, maybe_compress};
pub use envelope::{Envelope, WIRE_VERSION};
pub use failure::{Failure, Result, unexpected};
pub(crate) use failure::{INDEX_NOT_FOUND, UNAVAILABLE};
pub use follow_stats::FollowStats;
pub use following::{Changes, LeaderShard, LeaseRequest, ReadChanges, RemoteIndex, Versions};
pub use message::{
    CopyBytes, DiskLook, NodeRow, Publication, RefreshedCopy, Replicate, Request, Response,
    ShardAction, ShardAnswer, Write, Written,
};
pub use operations::Operations;
pub(crate) use operations::{OPERATION_BYTES_MAX, OPERATIONS_AT_ONCE_BYTES, bytes_at_once};
pub use pool::Reply;
pub use pool::{CallError, Pool};
pub(crate) use pool::{Handlers, Warn, serve};
pub(crate) use recovery::checksum;
pub use recovery::{
    PrimaryContext, RecoveredFiles, RecoveryState, SessionKind, SessionOpened, SourcePhases,
    WireChunk,
};
pub use searching::{
    HeldView, Hit, OpenPointInTime, ScrollPage, SearchOutcome, ShardFailure, ShardSearch,
    ShardSearched, ViewHolder,
};
