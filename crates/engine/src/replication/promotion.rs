//! A replica becomes the primary.

use std::rc::Rc;

use super::apply::{RETRY_AFTER, fill_gaps, report_store_failure};
use super::followed::follows;
use super::in_sync::{advance_global_checkpoint, mark_copy_stale};
use crate::core::Core;
use crate::planted;
use crate::shard::{FollowedCopies, LocalShard};
use crate::transport::{Failure, Result};

/// A replica has become the primary. Operations that the old primary sent and never acknowledged may be on some copies
/// and not on others. So the new primary fills the gaps in its history and has the other copies recover from it; only
/// then does it take writes.
pub(crate) async fn promoted(core: Rc<Core>, shard: Rc<LocalShard>) {
    while shard.is_primary() && core.is_here(&shard) {
        if complete_promotion(&core, &shard).await.is_ok() {
            shard.promotion_is_complete();
            (core.upward().promoted)();
            return;
        }
        core.env.sleep(RETRY_AFTER).await;
    }
}

async fn complete_promotion(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<()> {
    let store = shard.store()?;
    let primary_term = shard.term();
    let state = core.state();
    if follows(&state, &shard.index) {
        // Every copy has operations of the leader and no others; the missing ones are still to be read.
        shard.followed_copies.set(FollowedCopies::BeforeRead);
        shard.assumes_checkpoint.set(true);
        advance_global_checkpoint(core, shard);
        return Ok(());
    }
    if !core.env.is_planted(planted::GAPS_STAY) {
        fill_gaps(&store).await.map_err(|error| report_store_failure(core, shard, error))?;
    }
    let routing = shard.routing(&state).ok_or_else(|| Failure::no_such_index(&shard.index))?;
    let others: Vec<String> =
        routing.in_sync.iter().filter(|id| **id != shard.allocation_id).cloned().collect();
    let is_planted = core.env.is_planted(planted::PROMOTION_LEAVES_COPIES);
    for id in others.into_iter().filter(|_| !is_planted) {
        let why = "a new primary: the copy recovers from it";
        mark_copy_stale(core, shard, primary_term, &id, why).await?;
    }
    // Copies of this shard may lie about of which nobody knows any more which was the primary: the term says it.
    // A later start or recovery signs again where that fails now: writes must not wait for it.
    let _ = shard.write_metadata(&core.disk).await;
    advance_global_checkpoint(core, shard);
    Ok(())
}
