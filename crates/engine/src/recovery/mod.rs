//! How a copy gets its documents: from nothing, from its own disk, from its primary, or from a leader.
//!
//! | file | holds |
//! | --- | --- |
//! | `progress` | how a recovery goes, as `_recovery` shows it |
//! | `opening` | the session, and the chunks that are asked for with it |
//! | `source` | sessions on the copy that is read |
//! | `target` | the copy that recovers: stages, retries |
//! | `transfer` | files: chunks chosen by a scheduler, throttled, verified, accounted |
//!
//! One way for both kinds: the target asks, the source answers. In Elasticsearch a peer recovery is pushed by
//! its source, and a recovery from remote pulled by its target; what is in flight, and so the speed, is the
//! same.

mod opening;
mod progress;
mod source;
mod target;
mod transfer;

pub use progress::{Progress, Stage};
pub(crate) use source::{
    Sessions, awaited_session, close_session, expire_sessions, finalize, open_session, read_chunk,
    read_opening, read_ops, start_tracking, verify_file,
};
pub(crate) use target::recover;

use serde_json::{Value, json};

use crate::node::Node;

/// Every recovery of this node's copies, running or done, as `_recovery` shows them.
pub(crate) fn recoveries(node: &Node) -> Value {
    let now = node.env.now();
    let shards = node.shards.borrow();
    let rows = shards.values().filter_map(|shard| Some(shard.progress()?.to_json(now)));
    json!(rows.collect::<Vec<_>>())
}
