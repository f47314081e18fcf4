//! A primary that is moved hands over to its target, as Elasticsearch's `relocated` and `activateWithPrimaryContext`.
//!
//! The source takes no operation any more, waits for those that run, and gives the target what a primary knows. Here
//! the target takes none before the manager has published it as the started primary, and the source takes none unless
//! the manager has published that the move is given up. So at every moment one of them takes operations at most, and
//! both ways out are the manager's.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use store::Shard;

use super::followed::follows;
use super::leases::{set_leases, write_leases};
use crate::core::Core;
use crate::planted;
use crate::shard::{Blocked, FollowedCopies, LocalShard, ShardKey, Tracked};
use crate::state::{ClusterState, ShardCopy};
use crate::transport::{Failure, PrimaryContext, Response, Result};
use policy::retention::Leases;

/// How long a source waits for the operations that run: no operation is taken meanwhile.
const OPERATIONS_PATIENCE: Duration = Duration::from_secs(30);
/// How long a read waits until the manager has said who is the primary.
const DECISION_PATIENCE: Duration = Duration::from_secs(30);

/// On the source: hands over to the copy with this allocation id, once no operation runs. Asked again by the same copy,
/// it says the same again.
pub(crate) async fn hand_off(core: &Rc<Core>, key: ShardKey, target: &str) -> Result<Response> {
    let shard = core.shards.borrow().get(&key).cloned();
    let shard = shard.ok_or_else(|| {
        Failure::new(404, "shard_not_found_exception", "the primary is not on this node")
    })?;
    check_target(core, &shard, target)?;
    if !shard.operations.handed_to(target) {
        hand_over(core, &shard, target).await?;
    }
    Ok(Response::HandedOff(Box::new(context(core, &shard)?)))
}

async fn hand_over(core: &Rc<Core>, shard: &Rc<LocalShard>, target: &str) -> Result<()> {
    shard.primary_store()?;
    let refuse = |why: &str| Failure::unavailable(&shard.index, shard.number, why);
    let blocked = Blocked::begin(&shard.operations)
        .ok_or_else(|| refuse("is being handed over; try again"))?;
    if !core.env.is_planted(planted::HAND_OFF_WAITS_FOR_NOTHING) {
        let ended = core.env.timeout(OPERATIONS_PATIENCE, shard.operations.end()).await;
        ended.map_err(|_| refuse("has operations that do not end; try again"))?;
    }
    // Much may have changed meanwhile. From here to the hand-off nothing waits.
    check_target(core, shard, target)?;
    if !shard.is_primary() || !shard.is_started() {
        return Err(refuse("is not the started primary any more"));
    }
    if !shard.leaving.borrow().is_empty() {
        return Err(refuse(
            "has a copy that lacks a write, which the manager has still to be told; try again",
        ));
    }
    if !shard.copies.borrow().get(target).is_some_and(|copy| copy.pending_in_sync) {
        return Err(refuse("does not track the copy that takes over; try again"));
    }
    // One that follows may be moved: its target reads on.
    if shard.is_yet_to_end_following() && !follows(&core.state(), &shard.index) {
        return Err(refuse("has still to end following its leader; try again"));
    }
    if core.env.is_planted(planted::HANDED_OVER_AND_TAKEN) {
        return Ok(());
    }
    blocked.hand_over(target, core.state().version);
    Ok(())
}

/// For a read, which is of what was acknowledged last: where this copy has handed over, the target may have
/// acknowledged since what this copy lacks. Waits until the state says which of them is the primary. Answers with the
/// address of the other one; with none where it is this copy.
pub(crate) async fn next_primary(core: &Core, shard: &LocalShard) -> Result<Option<String>> {
    if !shard.operations.is_handed_over() {
        return Ok(None);
    }
    let is_decided = || {
        let target = named_target(shard, &core.state());
        target.is_none_or(|target| !shard.operations.handed_to(&target.allocation_id))
    };
    let refuse = |why: &str| Failure::unavailable(&shard.index, shard.number, why);
    if !core.wait_for_state(DECISION_PATIENCE, |_| is_decided()).await {
        return Err(refuse("is being handed over to another node; try again"));
    }
    let state = core.state();
    let routing = shard.routing(&state).ok_or_else(|| Failure::no_such_index(&shard.index))?;
    let primary = routing.primary();
    if primary.allocation_id == shard.allocation_id {
        return Ok(None);
    }
    let address = primary.node.as_deref().and_then(|node| core.address_of(node));
    address.map(Some).ok_or_else(|| refuse("has lost its primary; try again"))
}

/// The copy that the state has the primary here moved to.
fn named_target(shard: &LocalShard, state: &Arc<ClusterState>) -> Option<ShardCopy> {
    let routing = shard.routing(state)?;
    let own = Some(routing.primary()).filter(|own| own.allocation_id == shard.allocation_id)?;
    own.target.as_deref().cloned()
}

/// Whether the state has the copy that is the primary here moved to this one.
fn check_target(core: &Core, shard: &LocalShard, target: &str) -> Result<()> {
    let state = core.state();
    let named = named_target(shard, &state);
    match named.is_some_and(|named| named.allocation_id == target) {
        true => Ok(()),
        false => {
            let reason = format!(
                "[{}][{}] is not moved to this copy, or not any more",
                shard.index, shard.number
            );
            Err(Failure::new(409, "recovery_failed_exception", reason))
        }
    }
}

fn context(core: &Core, shard: &LocalShard) -> Result<PrimaryContext> {
    let store = shard.store()?;
    let state = core.state();
    let routing = shard.routing(&state);
    let copies = shard.copies.borrow();
    let in_sync = routing.iter().flat_map(|routing| &routing.in_sync);
    let known = |id: &String| {
        let copy = copies.get(id)?;
        Some((id.clone(), (copy.local_checkpoint, copy.needs_from)))
    };
    let leases = match core.env.is_planted(planted::HAND_OFF_WITHOUT_LEASES) {
        true => Leases::default(),
        false => shard.leases.borrow().clone(),
    };
    Ok(PrimaryContext {
        primary_term: shard.term(),
        began_with: shard.began_with.get(),
        max_seq_no: store.max_seq_no(),
        global_checkpoint: store.global_checkpoint(),
        copies: in_sync.filter_map(known).collect(),
        leases,
        replaces_copies: shard.followed_copies.get().may_differ(store.local_checkpoint()),
        peer_leases: shard.peer_leases.borrow().clone(),
    })
}

/// On the target: takes over what the source knew. It acts as the primary once the state says that it is.
pub(crate) async fn take_over(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &Shard,
    context: PrimaryContext,
) -> Result<()> {
    let follows = follows(&core.state(), &shard.index);
    // The primary of a follower may lack operations in between, which its leader has.
    if !follows && store.local_checkpoint() < context.max_seq_no {
        let reason = format!(
            "the copy has operations up to {:?}, the primary that hands over up to {:?}",
            store.local_checkpoint(),
            context.max_seq_no
        );
        return Err(Failure::new(409, "recovery_failed_exception", reason));
    }
    shard.began_with.set(context.began_with);
    shard.assumes_checkpoint.set(follows);
    match follows {
        true => shard.followed_copies.set(FollowedCopies::BeforeRead),
        false if context.replaces_copies => shard.followed_copies.set(FollowedCopies::Replaced),
        false => {}
    }
    set_leases(shard, store, context.leases);
    for (id, lease) in context.peer_leases.iter() {
        store.retain_ops_from(id, Some(lease.retaining_seq_no));
    }
    shard.peer_leases.replace(context.peer_leases);
    if let Some(checkpoint) = context.global_checkpoint {
        store.advance_global_checkpoint(checkpoint);
    }
    write_leases(core, shard).await?;
    let tracked = |(local_checkpoint, needs_from)| Tracked {
        local_checkpoint,
        needs_from,
        ..Tracked::default()
    };
    let copies = context.copies.into_iter().map(|(id, known)| (id, tracked(known)));
    shard.take_over(context.primary_term, copies.collect());
    Ok(())
}
