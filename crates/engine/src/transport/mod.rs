//! How nodes talk: typed requests and answers over pooled connections.

mod compress;
mod envelope;
mod message;
mod operations;
mod pool;
mod way;

pub use compress::{decompress, maybe_compress};
pub use envelope::Envelope;
pub(crate) use message::UNAVAILABLE;
pub use message::{
    Changes, Failure, LeaderShard, LeaseRequest, NodeRow, Publication, ReadChanges, RemoteIndex,
    Request, Response, SessionKind, SessionOpened, ShardAction, ShardAnswer, ShardSearch,
    ShardSearched, SourcePhases, Versions, WireChunk, Write, Written,
};
pub use operations::Operations;
pub use pool::{CallError, Class, Pool};
pub(crate) use pool::{Reply, serve};
