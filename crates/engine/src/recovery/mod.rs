//! How a copy gets its documents: from nothing, from its own disk, from its primary, or from a leader.
//!
//! | file | holds |
//! | --- | --- |
//! | `service` | what a node keeps of its recoveries |
//! | `sessions`, `source_session` | sessions, on the node that is read and as the other reaches them |
//! | `session_opening` | the session, and the chunks that are asked for with it |
//! | `source` | the copy that is read |
//! | `left_copy` | the copy that is here already, where the primary lacks what that one knows of |
//! | `target` | the copy that recovers: what all kinds of recovery share |
//! | `store_recovery`, `peer_recovery`, `remote_recovery` | from nothing or its own disk, from its primary, from a leader |
//! | `retries` | when a recovery that failed is tried again |
//! | `operations` | the operations that it takes after the files |
//! | `taking_over` | the copy that takes the place of a primary that is moved |
//! | `transfer` | files: chunks chosen by a scheduler, throttled, verified, accounted |
//!
//! The same mechanism serves both kinds: the target asks, the source answers. In Elasticsearch the source pushes a peer
//! recovery and the target pulls a recovery from remote; the bytes in flight, and so the speed, are the same.

mod left_copy;
mod operations;
mod peer_recovery;
mod remote_recovery;
mod retries;
mod service;
mod session_opening;
mod sessions;
mod source;
mod source_session;
mod store_recovery;
mod taking_over;
mod target;
mod transfer;

use crate::shard::Stage;
use crate::transport::RecoveryState;

pub(crate) use service::RecoveryService;
pub(crate) use source::{
    awaited_session, close_session, expire_sessions, finalize, open_session, read_chunk,
    read_opening, read_ops, start_tracking, verify_file,
};
pub(crate) use target::{recover, report_started};

/// Every recovery of this node's copies, running or done.
pub(crate) fn recoveries(
    service: &RecoveryService,
    active_only: bool,
    detailed: bool,
) -> Vec<RecoveryState> {
    if !service.has_begun() {
        return Vec::new();
    }
    let now = service.core.env.now();
    let shards = service.core.shards.borrow();
    let all = shards.values().filter_map(|shard| shard.progress());
    let wanted = all.filter(|progress| !active_only || progress.stage() != Stage::Done);
    wanted.map(|progress| progress.state(now, detailed)).collect()
}
