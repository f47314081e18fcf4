//! A primary and the copies in sync with it: it sends them operations, has those that fail taken out of the in-sync
//! set, and advances the global checkpoint.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::failures::{Action, Component, action};
use store::{Durability, Operation, Shard};
use tokio::sync::oneshot;
use world::Task;

use super::apply::{ApplyError, RETRY_AFTER, mapping_version, report_store_failure};
use super::peer_leases::retain_for_copy;
use crate::core::Core;
use crate::planted;
use crate::shard::LocalShard;
use crate::state::Event;
use crate::transport::{
    CallError, Class, Failure, Replicate, Request, Response, Result, unexpected,
};

const REPLICA_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a primary waits for the manager to take a failed copy out of the in-sync set: less than a write waits.
const STALE_COPY_PATIENCE: Duration = Duration::from_secs(45);

/// Operations, or leases, that were sent to the other copies, and what was known of those at that moment. It is what
/// decides on the write: a state that comes while the copies answer may have another primary, whose copies lack these
/// operations.
pub(super) struct Sent {
    primary_term: u64,
    replicas: Vec<Replica>,
    /// Copies in sync that were on no node.
    missing: Vec<String>,
}

impl Sent {
    pub(super) fn to_none(primary_term: u64) -> Sent {
        Sent { primary_term, replicas: Vec::new(), missing: Vec::new() }
    }

    /// Waits for every answer, whatever it is.
    pub(super) async fn answered(self) {
        for replica in self.replicas {
            let _ = replica.task.await;
        }
    }
}

/// A copy that was sent operations or leases.
struct Replica {
    id: String,
    /// The operation that it would read from if it became the primary of a follower: that after the global checkpoint
    /// that it is told. None where it is sent leases.
    needs_from: Option<u64>,
    task: Task<Result<Option<u64>, CallError>>,
}

/// Starts sending operations, which this copy gave their places in `primary_term`, to every replica that is in sync or
/// tracked. Fails where the shard is in the state no more: nobody could say who has them.
pub(super) fn send_to_replicas(
    core: &Rc<Core>,
    (shard, store): (&Rc<LocalShard>, &Shard),
    primary_term: u64,
    ops: Arc<Vec<Operation>>,
) -> Result<Sent> {
    let global_checkpoint = store.global_checkpoint();
    let sync = store.durability() == Durability::Request;
    let needs_from = Some(global_checkpoint.map_or(0, |checkpoint| checkpoint + 1));
    let to_copy = |id: &str| Replicate {
        index_uuid: shard.index_uuid.clone(),
        shard: shard.number,
        allocation_id: id.to_owned(),
        primary_term,
        ops: ops.clone(),
        global_checkpoint,
        mapping_version: mapping_version(core, shard),
        sync,
    };
    let request = |id: &str| Request::Replicate(to_copy(id));
    send_to_each(core, shard, primary_term, (Class::Bulk, needs_from), request)
}

/// Starts sending the leases to the same copies, so that each retains the same if it becomes the primary. Whoever has
/// changed them waits for nothing before this: if the primary hands over meanwhile, the next one gives the same number
/// to another list.
pub(super) fn send_leases(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<Sent> {
    let (primary_term, leases) = (shard.term(), shard.next_leases());
    send_to_each(core, shard, primary_term, (Class::Control, None), |_| Request::Leases {
        index_uuid: shard.index_uuid.clone(),
        shard: shard.number,
        primary_term,
        leases: leases.clone(),
    })
}

fn send_to_each(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    primary_term: u64,
    (class, needs_from): (Class, Option<u64>),
    request: impl Fn(&str) -> Request,
) -> Result<Sent> {
    let state = core.state();
    let mut sent = Sent::to_none(primary_term);
    let Some(routing) = shard.routing(&state) else {
        return match core.env.is_planted(planted::ACKNOWLEDGED_WITHOUT_SHARD) {
            true => Ok(sent),
            false => Err(Failure::no_such_index(&shard.index)),
        };
    };
    sent.missing = routing.missing_in_sync().map(str::to_owned).collect();
    let others = routing.assigned().filter(|copy| copy.allocation_id != shard.allocation_id);
    for copy in others {
        let id = &copy.allocation_id;
        let tracked = shard.copies.borrow().get(id).is_some_and(|copy| copy.tracked);
        let is_left_out = core.env.is_planted(planted::TRACKED_COPY_LEFT_OUT);
        if !copy.in_sync && (!tracked || is_left_out) {
            continue;
        }
        let request = request(id);
        let named = copy.node.clone().and_then(|name| Some((core.address_of(&name)?, name)));
        let core2 = core.clone();
        let task = core.env.spawn_with("replicates", move || async move {
            let left = || CallError::Broken {
                address: "its node".to_owned(),
                reason: "it has left the cluster".to_owned(),
            };
            let (address, name) = named.ok_or_else(left)?;
            let answer = tokio::select! {
                biased;
                answer = core2.call(&address, class, request, REPLICA_TIMEOUT) => answer?,
                // A node that is silent may keep its connections.
                () = core2.has_left(&name) => return Err(left()),
            };
            match (answer, needs_from) {
                (Response::Replicated { local_checkpoint }, Some(_)) => Ok(local_checkpoint),
                (Response::Done, None) => Ok(None),
                _ => Err(CallError::Failed(unexpected())),
            }
        });
        sent.replicas.push(Replica { id: id.clone(), needs_from, task });
    }
    Ok(sent)
}

/// Waits for all replicas, even after one has failed. Replicas that failed, and copies in sync that were on no node,
/// leave the in-sync set before the write is acknowledged: the manager refuses a primary whose term is over.
pub(super) async fn await_replicas(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    sent: Sent,
) -> Result<()> {
    let Sent { primary_term, replicas, mut missing } = sent;
    let mut failed = Vec::new();
    for Replica { id, needs_from, task } in replicas {
        let answer = task.await.unwrap_or_else(|_| Err(CallError::Failed(unexpected())));
        match answer {
            Ok(checkpoint) => {
                let mut copies = shard.copies.borrow_mut();
                let copy = copies.entry(id).or_default();
                copy.local_checkpoint = copy.local_checkpoint.max(checkpoint);
                copy.needs_from = copy.needs_from.max(needs_from);
            }
            Err(_) if core.env.is_planted(planted::FAILED_REPLICA_IGNORED) => {}
            Err(error) => {
                failed.push(mark_copy_stale(core, shard, primary_term, &id, &error.to_string()));
            }
        }
    }
    for marked in failed {
        marked.await?;
    }
    if core.env.is_planted(planted::MISSING_COPIES_OF_LATER) {
        let state = core.state();
        let routing = shard.routing(&state);
        missing = routing.iter().flat_map(|r| r.missing_in_sync()).map(str::to_owned).collect();
    }
    for id in missing {
        if core.env.is_planted(planted::MISSING_COPY_STAYS_IN_SYNC) {
            continue;
        }
        let why = "its node left, and a write came";
        mark_copy_stale(core, shard, primary_term, &id, why).await?;
    }
    Ok(())
}

/// Makes what was applied durable, here and on the replicas.
pub(super) async fn finish(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &Shard,
    sent: Sent,
) -> Result<(), ApplyError> {
    let is_planted = core.env.is_planted(planted::ACKNOWLEDGED_BEFORE_SYNC);
    let synced = match store.durability() {
        Durability::Request if !is_planted => store.sync().await,
        _ => Ok(()),
    };
    if core.env.is_planted(planted::ACKNOWLEDGED_BEFORE_REPLICAS) {
        sent.replicas.into_iter().for_each(|replica| replica.task.detach());
        return synced.map_err(ApplyError::Store);
    }
    // Also where this disk failed: a dropped send leaves a copy without what the others got.
    let replicated = await_replicas(core, shard, sent).await;
    synced.map_err(|error| report_store_failure(core, shard, error))?;
    replicated?;
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// Makes every copy sync and report its checkpoint: for indices whose writes do not wait for the disk, and after a
/// replica that did not answer.
pub(crate) async fn spread_durability(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<()> {
    let store = shard.store()?;
    store.sync().await.map_err(|error| report_store_failure(core, shard, error))?;
    let asked = send_to_replicas(core, (shard, &store), shard.term(), Arc::default())?;
    // It holds the copy's directory.
    drop(store);
    await_replicas(core, shard, asked).await?;
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// Has the manager take a copy out of the in-sync set, which it does for the primary of its term alone. Fails if that
/// takes long, because the write that waits for it must not be acknowledged. The manager is told later all the same:
/// the copy lacks operations that nobody sends again.
///
/// Until the manager has answered, writes go to the copy and the global checkpoint waits for it. The manager may count
/// it as in sync, although this node does not know that yet: a copy whose recovery has ended reports it by itself.
pub(super) fn mark_copy_stale(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    primary_term: u64,
    id: &str,
    reason: &str,
) -> impl Future<Output = Result<()>> + use<> {
    if core.env.is_planted(planted::FAILED_COPY_UNTRACKED) {
        shard.copies.borrow_mut().remove(id);
    }
    retain_for_copy(core, shard, id);
    let event = Event::CopyOutOfSync {
        index: shard.index_id(),
        shard: shard.number,
        allocation_id: id.to_owned(),
        primary_term,
        reason: reason.to_owned(),
    };
    let may_pass = |failure: &Failure| {
        action(Component::ManagerEvent, failure.error_kind()) == Action::TryAgain
    };
    let give_up = core.env.now() + STALE_COPY_PATIENCE;
    let (answer, answered) = oneshot::channel();
    let (core2, shard, id) = (core.clone(), shard.clone(), id.to_owned());
    core.keep("takes a copy out of sync", async move {
        let mut waiter = Some(answer);
        let outcome = loop {
            match core2.submit(event.clone()).await {
                // The manager is not there, or its disk has no room for the state.
                Err(failure) if may_pass(&failure) && shard.is_primary() => {
                    if core2.env.now() >= give_up
                        && let Some(waiter) = waiter.take()
                    {
                        let _ = waiter.send(Err(failure));
                        if core2.env.is_planted(planted::STALE_COPY_FORGOTTEN) {
                            return;
                        }
                        if !shard.leaving.borrow_mut().insert(id.clone()) {
                            return;
                        }
                    }
                    core2.env.sleep(RETRY_AFTER).await;
                }
                outcome => break outcome,
            }
        };
        if outcome.is_ok() {
            shard.copies.borrow_mut().remove(&id);
        }
        match waiter {
            Some(waiter) => drop(waiter.send(outcome)),
            None => drop(shard.leaving.borrow_mut().remove(&id)),
        }
    });
    async move {
        let marked = answered.await.unwrap_or_else(|_| Err(unexpected()));
        // A refusal is about this primary, whose term may be over, and not about what it was asked: whoever asked tries
        // again, elsewhere.
        marked.map_err(|failure| Failure { status: 503, ..failure })
    }
}

/// The global checkpoint is the lowest local checkpoint of the copies in sync, and of those that are about to be.
pub(crate) fn advance_global_checkpoint(core: &Rc<Core>, shard: &Rc<LocalShard>) {
    let state = core.state();
    let Some(routing) = shard.routing(&state) else { return };
    let Ok(store) = shard.store() else { return };
    let mut copies = shard.copies.borrow_mut();
    let is_own = core.env.is_planted(planted::CHECKPOINT_OF_ONE_COPY);
    let others = routing.in_sync.iter().filter(|id| !is_own && **id != shard.allocation_id);
    // Only operations that are durable count.
    let mut lowest = store.persisted_checkpoint();
    for id in others {
        lowest = lowest.min(copies.get(id).and_then(|copy| copy.local_checkpoint));
    }
    for (id, copy) in copies.iter_mut().filter(|(_, copy)| copy.pending_in_sync) {
        // It counts until it is in sync, or is assigned no more.
        copy.pending_in_sync = !routing.in_sync.contains(id)
            && routing.assigned().any(|assigned| assigned.allocation_id == *id);
        if copy.pending_in_sync && !core.env.is_planted(planted::JOINING_COPY_NOT_COUNTED) {
            lowest = lowest.min(copy.local_checkpoint);
        }
    }
    if let Some(checkpoint) = lowest
        && store.global_checkpoint() < lowest
    {
        store.advance_global_checkpoint(checkpoint);
        shard.advanced.notify_waiters();
    }
}
