//! Writes: from any node to the primary, from the primary to its replicas.
//!
//! A write is acknowledged when it is durable on the primary and on every copy that counts as in sync. A
//! copy that cannot be reached is first taken out of the in-sync set by the manager; if the manager
//! refuses, the write is not acknowledged.

mod leases;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::Mapping;
use store::{Operation, Rejection, SyntheticBatch, WriteRequest};
use tokio::sync::oneshot;
use world::Task;

use crate::core::Core;
use crate::planted;
use crate::shard::LocalShard;
use crate::state::{ClusterState, Event};
use crate::transport::{
    CallError, Class, Failure, Request, Response, UNAVAILABLE, Write, Written, unexpected,
};

pub(crate) use leases::{add_lease, expire_leases, remove_lease, set_leases, take_leases};
pub use leases::{lease_id, lease_of};
use policy::routing;

/// How long a write waits for its primary, and a primary for a replica.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
const REPLICA_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a primary waits for a manager that takes a failed copy out of sync: less than a write waits for it.
const STALE_COPY_PATIENCE: Duration = Duration::from_secs(45);
/// Operations that copies may lack are sent to them so many at once, of about so many bytes.
const SENT_AGAIN_OPS: usize = 1000;
const SENT_AGAIN_BYTES: usize = 1 << 20;
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Writes documents to an index from any node: each to its shard's primary. One result for each request, in
/// order.
pub async fn write_documents(
    core: &Rc<Core>,
    index: &str,
    requests: Vec<WriteRequest>,
) -> Result<Vec<Result<Written, Failure>>, Failure> {
    let shards = number_of_shards(core, index)?;
    let mut groups = Groups::new();
    let total = requests.len();
    for (place, request) in requests.into_iter().enumerate() {
        let (places, group) = groups.entry(routing::shard_of(request.id(), shards)).or_default();
        places.push(place);
        group.push(request);
    }
    Ok(write_groups(core, index, groups, total).await)
}

/// Writes a run of new documents that exist only as a number, an equal part to each shard. In the virtual world alone. What
/// became of each part: shard, documents, result. Without an `id` each part has one of its own.
pub async fn write_run(
    core: &Rc<Core>,
    index: &str,
    documents: u64,
    source_bytes: u64,
    id: Option<&str>,
) -> Result<Vec<(u32, u64, Result<Written, Failure>)>, Failure> {
    let shards = number_of_shards(core, index)?;
    let share = |whole: u64, shard: u32| SyntheticBatch::share(whole, shard, shards);
    let mut groups = Groups::new();
    let mut parts = Vec::new();
    for shard in 0..shards {
        let (documents, bytes) = (share(documents, shard), share(source_bytes, shard));
        if documents > 0 {
            let id = id.map_or_else(|| core.next_id(), |id| SyntheticBatch::id_of_shard(id, shard));
            let (id, run) = (Arc::from(id), SyntheticBatch::new(documents, bytes));
            groups.insert(shard, (vec![parts.len()], vec![WriteRequest::Run { id, run }]));
            parts.push((shard, documents));
        }
    }
    let results = write_groups(core, index, groups, parts.len()).await;
    Ok(parts
        .into_iter()
        .zip(results)
        .map(|((shard, some), result)| (shard, some, result))
        .collect())
}

fn number_of_shards(core: &Rc<Core>, index: &str) -> Result<u32, Failure> {
    let state = core.state();
    state.indices.get(index).map(|meta| meta.shards).ok_or_else(|| Failure::no_such_index(index))
}

/// Writes by shard, with the place of each in the request.
type Groups = BTreeMap<u32, (Vec<usize>, Vec<WriteRequest>)>;

async fn write_groups(
    core: &Rc<Core>,
    index: &str,
    groups: Groups,
    total: usize,
) -> Vec<Result<Written, Failure>> {
    let tasks: Vec<(Vec<usize>, Task<_>)> = groups
        .into_iter()
        .map(|(shard, (places, requests))| {
            let write = Write { index: index.to_owned(), shard, requests };
            let core2 = core.clone();
            (places, core.env.spawn("writes", async move { to_primary(&core2, write).await }))
        })
        .collect();
    let mut results: Vec<Option<Result<Written, Failure>>> = vec![None; total];
    for (places, task) in tasks {
        let answers = task.await.unwrap_or_else(|_| Err(unexpected()));
        match answers {
            Ok(answers) => {
                for (place, answer) in places.into_iter().zip(answers) {
                    results[place] = Some(answer);
                }
            }
            Err(failure) => {
                places.into_iter().for_each(|p| results[p] = Some(Err(failure.clone())))
            }
        }
    }
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(unexpected()))).collect()
}

/// Sends a write to the primary, and waits for one where there is none yet. A write whose connection broke is
/// sent again, as Elasticsearch does: it may have been done, so that from then on no id counts as fresh.
async fn to_primary(
    core: &Rc<Core>,
    mut write: Write,
) -> Result<Vec<Result<Written, Failure>>, Failure> {
    let give_up = core.env.now() + WRITE_TIMEOUT;
    let mut was_sent = false;
    loop {
        let state = core.state();
        let primary = state.shard(&write.index, write.shard).and_then(|s| s.started_primary());
        let address =
            primary.and_then(|p| p.node.as_deref()).and_then(|name| core.address_of(name));
        let failure = match address {
            None => Failure::unavailable(&write.index, write.shard, "has no started primary"),
            Some(address) => {
                let request = Request::Write(write.clone());
                match core.call(&address, Class::Bulk, request, WRITE_TIMEOUT).await {
                    Ok(Response::Written(mut results)) => {
                        // What it conflicts with may be itself.
                        let refused = results.iter_mut().filter_map(|result| result.as_mut().err());
                        let conflicts = refused.filter(|failure| was_sent && failure.status == 409);
                        conflicts.for_each(|failure| *failure = not_known(failure.clone()));
                        return Ok(results);
                    }
                    Ok(_) => return Err(unexpected()),
                    // Nothing else: what was done must not be done again under another number.
                    Err(CallError::Failed(failure)) if failure.kind == UNAVAILABLE => failure,
                    Err(broken @ CallError::Broken { .. }) => {
                        // It has no id by which it would be found to be there.
                        if write.requests.iter().any(WriteRequest::is_run) {
                            return Err(not_known(broken.into()));
                        }
                        was_sent = true;
                        write.requests.iter_mut().for_each(may_exist);
                        broken.into()
                    }
                    Err(error) if was_sent => return Err(not_known(error.into())),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if core.env.now() >= give_up || !core.state().indices.contains_key(&write.index) {
            return Err(failure);
        }
        core.env.sleep(RETRY_AFTER).await;
    }
}

fn may_exist(request: &mut WriteRequest) {
    if let WriteRequest::Index { auto_id, .. } = request {
        *auto_id = false;
    }
}

/// On the primary: indexes, makes durable, and replicates.
///
/// Once begun it runs to its end, also where the node that asked is lost meanwhile: an operation that has its place in the
/// primary's history has to be durable here and to come to every copy, or those have holes for good.
pub(crate) async fn write(core: &Rc<Core>, write: Write) -> Result<Response, Failure> {
    let core2 = core.clone();
    let writing = async move { write_on_primary(&core2, write).await };
    core.run_to_end("writes on a primary", writing).await
}

async fn write_on_primary(core: &Rc<Core>, write: Write) -> Result<Response, Failure> {
    let began = core.env.now();
    let shard = core.local_shard(&write.index, write.shard)?;
    let store = shard.primary_store()?;
    follow_mapping(core, &shard, &store).await.map_err(|error| noted(core, &shard, error))?;
    core.note_use_of(&shard);
    let outcomes = store.index(write.requests).await.map_err(|e| note(core, &shard, e))?;
    let primary_term = shard.term();
    let mut ops = Vec::with_capacity(outcomes.len());
    let mut results = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        results.push(match outcome {
            Ok((op, outcome)) => {
                let (seq_no, version) = (op.seq_no, op.version);
                ops.push(op);
                Ok(Written { seq_no, version, primary_term, outcome })
            }
            Err(rejection) => Err(rejected(&rejection)),
        });
    }
    if !ops.is_empty() {
        let replicas = send_to_replicas(core, &shard, Arc::new(ops));
        let finished = finish(core, &shard, &store, replicas).await;
        finished.map_err(|error| not_known(error.into()))?;
    }
    core.served_in(core.env.now() - began);
    Ok(Response::Written(results))
}

/// What was applied here may be on other copies, too, and stay: whoever asked must not take it for refused.
fn not_known(failure: Failure) -> Failure {
    let reason = format!("it may have been done or not: {}", failure.reason);
    let status = if failure.status < 500 { 503 } else { failure.status };
    Failure { status, reason, ..failure }
}

/// Has the store index by the mapping that the state has now: before each write, so that a field that was
/// mapped is indexed in every document that comes after the answer.
pub(crate) async fn follow_mapping(
    core: &Core,
    shard: &LocalShard,
    store: &store::Shard,
) -> Result<(), ApplyError> {
    let state = core.state();
    let Some(meta) = state.indices.get(&shard.index) else { return Ok(()) };
    if shard.mapped_at.get() == state.version {
        return Ok(());
    }
    let mapping = Mapping::parse(&meta.mappings).map_err(Failure::from)?;
    store.set_mapping(&mapping).await?;
    shard.mapped_at.set(state.version);
    Ok(())
}

/// Makes what was applied durable, here and on the replicas.
async fn finish(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &store::Shard,
    replicas: Vec<Replica>,
) -> Result<(), ApplyError> {
    if store.durability() == store::Durability::Request {
        store.sync().await.map_err(|error| note(core, shard, error))?;
    }
    await_replicas(core, shard, replicas).await?;
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// A primary whose store accepts nothing more is to be opened anew, or to be where there is room.
fn note(core: &Rc<Core>, shard: &Rc<LocalShard>, error: store::Error) -> store::Error {
    if let store::Error::Failed { .. } = error {
        let (core2, shard, reason) = (core.clone(), shard.clone(), error.to_string());
        // Not part of the write: who waits for it may be gone before the manager knows.
        core.keep("reports a failed copy", async move { core2.fail_copy(&shard, reason).await });
    }
    error
}

/// As [`note`], of whatever it was.
fn noted(core: &Rc<Core>, shard: &Rc<LocalShard>, error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Store(error) => ApplyError::Store(note(core, shard, error)),
        other => other,
    }
}

/// Why operations could not be applied.
pub(crate) enum ApplyError {
    /// This node's disk refused.
    Store(store::Error),
    /// Anything else.
    Other(Failure),
}

impl From<store::Error> for ApplyError {
    fn from(error: store::Error) -> Self {
        ApplyError::Store(error)
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Store(error) => error.into(),
            ApplyError::Other(failure) => failure,
        }
    }
}

impl From<Failure> for ApplyError {
    fn from(failure: Failure) -> Self {
        ApplyError::Other(failure)
    }
}

/// On a follower's primary: applies operations that have their places in the history already, and replicates all of
/// them, also those that were here: a copy may lack what another has.
///
/// Here first: a copy that is being brought up either finds them in the log, or is tracked when they are sent.
pub(crate) async fn apply_followed(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    ops: Arc<Vec<Operation>>,
) -> Result<(), ApplyError> {
    let store = shard.primary_store()?;
    follow_mapping(core, shard, &store).await.map_err(|error| noted(core, shard, error))?;
    core.note_use_of(shard);
    store.apply(ops.to_vec()).await.map_err(|error| note(core, shard, error))?;
    let replicas = send_to_replicas(core, shard, ops);
    finish(core, shard, &store, replicas).await
}

/// On a primary that follows no more. No-ops take the places of what never came and does not come any more. Then every copy
/// gets what it may lack: an earlier primary that was lost may not have sent all that it had to each of them.
pub(crate) async fn end_following(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
) -> Result<(), ApplyError> {
    let store = shard.primary_store()?;
    let fill = fillers(&store);
    if !fill.is_empty() {
        store.apply(fill).await.map_err(|error| note(core, shard, error))?;
    }
    advance_global_checkpoint(core, shard);
    // The log reaches back as far as any copy in sync may lack something.
    let known = store.global_checkpoint().map_or(0, |checkpoint| checkpoint + 1);
    let mut from = known.max(store.log_complete_from());
    // What is written from now on goes to all of them anyway.
    let Some(max) = store.max_seq_no() else { return Ok(()) };
    while from <= max {
        let ops = store.ops_between(from..=max, SENT_AGAIN_OPS, SENT_AGAIN_BYTES).await;
        let ops = ops.map_err(|error| note(core, shard, error))?;
        let Some(last) = ops.last() else { break };
        from = last.places().end;
        let replicas = send_to_replicas(core, shard, Arc::new(ops));
        finish(core, shard, &store, replicas).await?;
    }
    Ok(())
}

/// Makes what was applied durable on every copy, this one included, and finds out what that is: where writes do not wait
/// for it, or one did not say.
pub(crate) async fn spread_durability(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
) -> Result<(), Failure> {
    shard.store()?.sync().await?;
    let replicas = send_to_replicas(core, shard, Arc::default());
    await_replicas(core, shard, replicas).await?;
    advance_global_checkpoint(core, shard);
    Ok(())
}

fn rejected(rejection: &Rejection) -> Failure {
    match rejection {
        Rejection::VersionConflict { .. } => {
            Failure::new(409, "version_conflict_engine_exception", rejection.to_string())
        }
        Rejection::Document { .. } => {
            Failure::new(400, "mapper_parsing_exception", rejection.to_string())
        }
    }
}

type Replica = (String, Task<Result<Option<u64>, CallError>>);

/// Starts sending operations to every copy that must or may have them.
fn send_to_replicas(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    ops: Arc<Vec<Operation>>,
) -> Vec<Replica> {
    let state = core.state();
    let Some(routing) = state.shard(&shard.index, shard.number) else { return Vec::new() };
    let global_checkpoint = shard.store().ok().and_then(|store| store.global_checkpoint());
    let others = routing.assigned().filter(|copy| copy.allocation_id != shard.allocation_id);
    let mut replicas = Vec::new();
    for copy in others {
        let id = &copy.allocation_id;
        let tracked = shard.copies.borrow().get(id).is_some_and(|copy| copy.tracked);
        if !copy.in_sync && !tracked {
            continue;
        }
        let request = Request::Replicate {
            index_uuid: shard.index_uuid.clone(),
            shard: shard.number,
            allocation_id: id.clone(),
            primary_term: shard.term(),
            ops: ops.clone(),
            global_checkpoint,
        };
        let address = copy.node.as_deref().and_then(|name| core.address_of(name));
        let core2 = core.clone();
        let task = core.env.spawn("replicates", async move {
            let address = address.ok_or_else(|| CallError::Broken {
                address: "its node".to_owned(),
                reason: "it has left the cluster".to_owned(),
            })?;
            match core2.call(&address, Class::Bulk, request, REPLICA_TIMEOUT).await? {
                Response::Replicated { local_checkpoint } => Ok(local_checkpoint),
                _ => Err(CallError::Failed(unexpected())),
            }
        });
        replicas.push((id.clone(), task));
    }
    replicas
}

/// Waits for all replicas, whatever becomes of one of them: none may be left without what was sent to the others. Those
/// that failed leave the in-sync set before the write is acknowledged.
async fn await_replicas(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    replicas: Vec<Replica>,
) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (id, task) in replicas {
        let answer = task.await.unwrap_or_else(|_| Err(CallError::Failed(unexpected())));
        match answer {
            Ok(checkpoint) => {
                let mut copies = shard.copies.borrow_mut();
                let copy = copies.entry(id).or_default();
                copy.local_checkpoint = copy.local_checkpoint.max(checkpoint);
            }
            Err(_) if core.env.is_planted(planted::FAILED_REPLICA_IGNORED) => {}
            Err(error) => failed.push(mark_copy_stale(core, shard, &id, &error.to_string())),
        }
    }
    for marked in failed {
        marked.await?;
    }
    let state = core.state();
    let routing = state.shard(&shard.index, shard.number);
    let missing: Vec<String> =
        routing.iter().flat_map(|r| r.missing_in_sync()).map(str::to_owned).collect();
    for id in missing {
        mark_copy_stale(core, shard, &id, "its node left, and a write came").await?;
    }
    Ok(())
}

/// Has the manager take a copy out of the in-sync set. Fails where that takes long, as what waits for it must not be
/// acknowledged; the manager is told nevertheless, once it can be: the copy lacks what the others have, and nobody sends it
/// again.
fn mark_copy_stale(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    id: &str,
    reason: &str,
) -> impl Future<Output = Result<(), Failure>> + use<> {
    shard.copies.borrow_mut().remove(id);
    let event = Event::CopyOutOfSync {
        index: shard.index.clone(),
        shard: shard.number,
        allocation_id: id.to_owned(),
        primary_term: shard.term(),
        reason: reason.to_owned(),
    };
    let give_up = core.env.now() + STALE_COPY_PATIENCE;
    let (answer, answered) = oneshot::channel();
    let (core2, shard, id) = (core.clone(), shard.clone(), id.to_owned());
    core.keep("takes a copy out of sync", async move {
        let mut waiter = Some(answer);
        let outcome = loop {
            match core2.submit(event.clone()).await {
                // The manager is not there, or has no room for the state: that may pass.
                Err(failure) if failure.status >= 500 && shard.is_primary() => {
                    if core2.env.now() >= give_up
                        && let Some(waiter) = waiter.take()
                    {
                        let _ = waiter.send(Err(failure));
                        if !shard.leaving.borrow_mut().insert(id.clone()) {
                            return;
                        }
                    }
                    core2.env.sleep(RETRY_AFTER).await;
                }
                outcome => break outcome,
            }
        };
        match waiter {
            Some(waiter) => drop(waiter.send(outcome)),
            None => drop(shard.leaving.borrow_mut().remove(&id)),
        }
    });
    async move { answered.await.unwrap_or_else(|_| Err(unexpected())) }
}

/// The global checkpoint is the lowest local checkpoint of the copies in sync, and of those that are about to be.
pub(crate) fn advance_global_checkpoint(core: &Rc<Core>, shard: &Rc<LocalShard>) {
    let state = core.state();
    let Some(routing) = state.shard(&shard.index, shard.number) else { return };
    let Ok(store) = shard.store() else { return };
    let mut copies = shard.copies.borrow_mut();
    let others = routing.in_sync.iter().filter(|id| **id != shard.allocation_id);
    // What a copy may still forget is not known everywhere.
    let mut lowest = store.persisted_checkpoint();
    for id in others {
        lowest = lowest.min(copies.get(id).and_then(|copy| copy.local_checkpoint));
    }
    for (id, copy) in copies.iter_mut().filter(|(_, copy)| copy.joins) {
        // Until it is in sync, or given up.
        copy.joins = !routing.in_sync.contains(id)
            && routing.assigned().any(|assigned| assigned.allocation_id == *id);
        if copy.joins {
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

/// Which copy a primary means.
pub(crate) struct Target {
    pub(crate) index_uuid: String,
    pub(crate) shard: u32,
    pub(crate) allocation_id: String,
    pub(crate) primary_term: u64,
}

/// On a replica: applies operations and makes them durable.
pub(crate) async fn replicate(
    core: &Rc<Core>,
    target: Target,
    ops: Arc<Vec<Operation>>,
    global_checkpoint: Option<u64>,
) -> Result<Response, Failure> {
    let key = (target.index_uuid, target.shard);
    let shard = core.shards.borrow().get(&key).cloned();
    let shard = shard.filter(|shard| shard.allocation_id == target.allocation_id);
    let shard = shard.ok_or_else(|| {
        Failure::new(404, "shard_not_found_exception", "this copy is not on this node")
    })?;
    if target.primary_term < shard.term() {
        let reason = format!(
            "the primary's term {} is over, the term is {}; it must not acknowledge",
            target.primary_term,
            shard.term()
        );
        return Err(Failure::new(409, "no_longer_primary_shard_exception", reason));
    }
    let store = shard.store()?;
    follow_mapping(core, &shard, &store).await?;
    let ops = Arc::try_unwrap(ops).unwrap_or_else(|shared| Vec::clone(&shared));
    core.note_use_of(&shard);
    // Without operations it is asked what is durable.
    let is_question = ops.is_empty();
    store.apply(ops).await?;
    if is_question || store.durability() == store::Durability::Request {
        store.sync().await?;
    }
    if let Some(checkpoint) = global_checkpoint {
        store.advance_global_checkpoint(checkpoint);
    }
    Ok(Response::Replicated { local_checkpoint: store.persisted_checkpoint() })
}

/// A replica has become the primary. Writes that the old primary sent and nobody acknowledged may be on some
/// copies and not on others. So it fills the gaps in its own history, and has the other copies recover from
/// it; only then does it take writes.
pub(crate) async fn promoted(core: Rc<Core>, shard: Rc<LocalShard>) {
    while shard.is_primary() {
        if settle_promotion(&core, &shard).await.is_ok() {
            shard.promotion_is_settled();
            (core.upward().promoted)();
            return;
        }
        core.env.sleep(RETRY_AFTER).await;
    }
}

async fn settle_promotion(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<(), Failure> {
    let store = shard.store()?;
    let state = core.state();
    if follows(&state, &shard.index) {
        // What is missing is still to come from the leader, and what is here is the leader's: no copy has anything else.
        advance_global_checkpoint(core, shard);
        return Ok(());
    }
    fill_gaps(&store).await?;
    let routing = state.shard(&shard.index, shard.number);
    let routing = routing.ok_or_else(|| Failure::no_such_index(&shard.index))?;
    let others: Vec<String> =
        routing.in_sync.iter().filter(|id| **id != shard.allocation_id).cloned().collect();
    for id in others {
        mark_copy_stale(core, shard, &id, "a new primary: the copy recovers from it").await?;
    }
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// Whether an index follows a leader.
pub(crate) fn follows(state: &ClusterState, index: &str) -> bool {
    state.indices.get(index).is_some_and(|meta| meta.leader.is_some())
}

fn fillers(store: &store::Shard) -> Vec<Operation> {
    store.gaps().into_iter().flatten().map(Operation::no_op).collect()
}

/// Puts operations that do nothing where an old primary gave out numbers that never arrived.
pub(crate) async fn fill_gaps(store: &store::Shard) -> Result<(), store::Error> {
    let fill = fillers(store);
    if !fill.is_empty() {
        store.apply(fill).await?;
    }
    // Also what the old primary sent last: nobody may have waited for it to be durable.
    store.sync().await
}
