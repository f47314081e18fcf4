//! How nodes talk: typed requests and answers over pooled connections.
//!
//! | file | holds |
//! | --- | --- |
//! | `message` | every request and every answer; documents, shards and the state |
//! | `recovery`, `following`, `searching` | what they say of those |
//! | `failure` | errors that cross the wire |
//! | `operations`, `compress` | operations on their way, packed where that is asked for |
//! | `envelope`, `pool` | frames and connections |
//! | `way` | what passes between a node and others while it is cut off |

mod compress;
mod envelope;
mod failure;
mod following;
mod message;
mod operations;
mod pool;
mod recovery;
mod searching;
mod way;

pub use compress::{decompress, maybe_compress};
pub use envelope::Envelope;
pub use failure::Failure;
pub(crate) use failure::UNAVAILABLE;
pub use following::{Changes, LeaderShard, LeaseRequest, ReadChanges, RemoteIndex, Versions};
pub use message::{
    NodeRow, Publication, Request, Response, ShardAction, ShardAnswer, Write, Written,
};
pub use operations::Operations;
pub use pool::{CallError, Class, Pool};
pub(crate) use pool::{Reply, serve};
pub use recovery::{SessionKind, SessionOpened, SourcePhases, WireChunk};
pub use searching::{ShardSearch, ShardSearched};
