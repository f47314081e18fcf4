//! A follower's primary: it applies its leader's operations, and ends following.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use store::Operation;

use super::apply::{
    ApplyError, fill_gaps, fillers, follow_mapping, report_apply_failure, report_store_failure,
};
use super::in_sync::{
    Sent, advance_global_checkpoint, finish, mark_copy_stale, send_to_replicas, spread_durability,
};
use crate::core::Core;
use crate::planted;
use crate::shard::{FollowedCopies, LocalShard};
use crate::state::ClusterState;
use crate::transport::{Failure, Result};

/// Operations that copies may lack are sent to them so many at once, of about so many bytes.
const SENT_AGAIN_OPS: usize = 1000;
const SENT_AGAIN_BYTES: usize = 1 << 20;

pub(crate) fn follows(state: &ClusterState, index: &str) -> bool {
    state.indices.get(index).is_some_and(|meta| meta.leader.is_some())
}

/// On a follower's primary: applies operations that have the leader's sequence numbers, and replicates all of them,
/// also those that were here already: a replica may lack them.
///
/// The primary applies them first: a copy that is recovering either finds them in the primary's log, or is tracked by
/// the time they are sent.
pub(crate) async fn apply_followed(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    ops: Arc<Vec<Operation>>,
) -> Result<(), ApplyError> {
    let (store, _operation) = shard.begin_operation()?;
    shard.check_open(&core.state()).map_err(|closed| {
        let reason =
            format!("the follower [{0}] is closed; POST {0}/_open lets it go on", shard.index);
        Failure { reason, ..closed }
    })?;
    let primary_term = shard.term();
    follow_mapping(core, shard, &store)
        .await
        .map_err(|error| report_apply_failure(core, shard, error))?;
    core.note_use_of(shard);
    let before = store.max_seq_no();
    store.apply(ops.to_vec()).await.map_err(|error| report_store_failure(core, shard, error))?;
    let repeats = ops.first().map(|op| op.seq_no) < before;
    let is_kept = core.env.is_planted(planted::FOLLOWED_NOT_SENT)
        || repeats && core.env.is_planted(planted::FOLLOWED_REPEATS_NOT_SENT);
    let sent = match is_kept {
        true => Sent::to_none(primary_term),
        false => send_to_replicas(core, (shard, &store), primary_term, ops)?,
    };
    finish(core, shard, &store, sent).await
}

/// Before another cluster reads from a follower's primary that was opened anew or promoted. Such a primary takes what
/// it had for what every copy has, as its copies recover from it. But one in sync that is away may become the primary
/// with less: so all in sync say what they have first, and one that is away leaves the set.
pub(crate) async fn confirm_checkpoint(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<()> {
    if !shard.assumes_checkpoint.get() || core.env.is_planted(planted::CHECKPOINT_NOT_CONFIRMED) {
        return Ok(());
    }
    let refuse = |why: &str| Failure::unavailable(&shard.index, shard.number, why);
    // A failure here may pass, and is not the reader's fault: it is told to try again.
    let heard = spread_durability(core, shard).await;
    heard.map_err(|failure| {
        refuse(&format!("does not know yet what every copy in sync has: {}", failure.reason))
    })?;
    let (state, checkpoint) = (core.state(), shard.store()?.global_checkpoint());
    let routing = shard.routing(&state).ok_or_else(|| Failure::no_such_index(&shard.index))?;
    let copies = shard.copies.borrow();
    let has_it = |id: &String| {
        *id == shard.allocation_id
            || copies.get(id).is_some_and(|copy| copy.local_checkpoint >= checkpoint)
    };
    if !routing.in_sync.iter().all(has_it) {
        return Err(refuse("has a copy in sync that has not said yet what it has; try again"));
    }
    shard.assumes_checkpoint.set(false);
    Ok(())
}

/// On a primary whose following ended. No-ops fill the gaps in its history, since the missing operations will not
/// arrive any more. Then every replica is sent what it may lack: an earlier primary may have been lost before it had
/// sent everything to each of them.
pub(crate) async fn end_following(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
) -> Result<(), ApplyError> {
    let (store, _operation) = shard.begin_operation()?;
    let primary_term = shard.term();
    // What its leader gave it in this term is the leader's, too: only from here on it numbers operations itself.
    shard.began_with.set(store.max_seq_no());
    if core.env.is_planted(planted::UNFOLLOW_LEAVES_GAPS) {
        return Ok(());
    }
    if shard.followed_copies.get().may_differ(store.local_checkpoint()) {
        return replace_followed_copies(core, shard, &store).await;
    }
    let fill = fillers(&store);
    if !fill.is_empty() {
        store.apply(fill).await.map_err(|error| report_store_failure(core, shard, error))?;
    }
    advance_global_checkpoint(core, shard);
    let mut from = store.global_checkpoint().map_or(0, |checkpoint| checkpoint + 1);
    if from < store.log_complete_from() {
        // What a copy in sync may lack is in files that came from an earlier primary, and not in the log.
        return replace_followed_copies(core, shard, &store).await;
    }
    // New writes go to every replica anyway.
    let Some(max) = store.max_seq_no() else { return Ok(()) };
    while from <= max {
        let ops = store.ops_between(from..=max, SENT_AGAIN_OPS, SENT_AGAIN_BYTES).await;
        let ops = ops.map_err(|error| report_store_failure(core, shard, error))?;
        let Some(last) = ops.last() else { break };
        from = last.places().end;
        let sent = send_to_replicas(core, (shard, &store), primary_term, Arc::new(ops))?;
        finish(core, shard, &store, sent).await?;
    }
    Ok(())
}

/// On a primary whose following ended, where other copies may have operations of the leader that it lacks, or lack what
/// it cannot send them: they recover from it, file by file, because nobody else has those operations.
async fn replace_followed_copies(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &store::Shard,
) -> Result<(), ApplyError> {
    shard.followed_copies.set(FollowedCopies::Replaced);
    let primary_term = shard.term();
    fill_gaps(store).await.map_err(|error| report_store_failure(core, shard, error))?;
    let state = core.state();
    let Some(routing) = shard.routing(&state) else { return Ok(()) };
    let assigned = routing.assigned().map(|copy| &copy.allocation_id);
    // Also those that are being brought up: they may have begun with what they had.
    let others: BTreeSet<&String> =
        assigned.chain(&routing.in_sync).filter(|id| **id != shard.allocation_id).collect();
    for id in others {
        let why = "following ended before this copy was known to have the same as its primary: it recovers from that";
        mark_copy_stale(core, shard, primary_term, id, why).await?;
    }
    advance_global_checkpoint(core, shard);
    Ok(())
}
