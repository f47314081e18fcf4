//! What a primary retains for copies of its own shard that have left the in-sync set, so that they come back by
//! operations and need no files.

use std::time::Duration;

use policy::retention::Lease;
use store::Shard;

use crate::core::Core;
use crate::shard::LocalShard;
use crate::state::{IndexShardRoutingTable, ShardCopy};

/// `source` of the leases of copies of the same shard, as in the field.
const PEER_SOURCE: &str = "peer recovery";
/// `index.recovery.file_based_threshold`: the part of a shard's documents that is replayed at most.
const FILE_BASED_THRESHOLD: f64 = 0.1;

/// Keeps the operations that a copy lacks which leaves the in-sync set: it has all up to the global checkpoint.
pub(super) fn retain_for_copy(core: &Core, shard: &LocalShard, allocation_id: &str) {
    let state = core.state();
    let routing = shard.routing(&state);
    let Ok(store) = shard.store() else { return };
    if !routing.is_some_and(|routing| routing.in_sync.contains(allocation_id)) {
        return;
    }
    let id = format!("{PEER_SOURCE}/{allocation_id}");
    let from = store.global_checkpoint().map_or(0, |checkpoint| checkpoint + 1);
    shard.peer_leases.borrow_mut().renew(&id, from, core.env.epoch_ms(), PEER_SOURCE);
    store.retain_ops_from(&id, Some(from));
}

/// Drops the leases of copies that left: all of them once every copy is there again, those that are older than
/// followers' may be, and those whose copies had to replay so much that they come back by files sooner.
pub(super) fn expire_peer_leases(core: &Core, shard: &LocalShard, store: &Shard, period: Duration) {
    let state = core.state();
    let mut leases = shard.peer_leases.borrow_mut();
    let is_whole =
        |routing: &IndexShardRoutingTable| routing.copies.iter().all(ShardCopy::is_started);
    let all_go = !shard.is_primary() || shard.routing(&state).as_deref().is_none_or(is_whole);
    let stats = store.stats();
    let committed = store.committed_checkpoint().map_or(0, |checkpoint| checkpoint + 1);
    let floor =
        committed.saturating_sub((stats.documents as f64 * FILE_BASED_THRESHOLD).ceil() as u64);
    let mut gone = leases.expire(core.env.epoch_ms(), period);
    let is_over = |lease: &Lease| all_go || lease.retaining_seq_no < floor;
    gone.extend(leases.iter().filter(|(_, lease)| is_over(lease)).map(|(id, _)| id.to_owned()));
    for id in &gone {
        leases.remove(id);
        store.retain_ops_from(id, None);
    }
}
