//! Writes: from any node to the primary, from the primary to its replicas.
//!
//! A write is acknowledged when it is durable on the primary and on every copy that counts as in sync. A
//! copy that cannot be reached is first taken out of the in-sync set by the manager; if the manager
//! refuses, the write is not acknowledged.

mod leases;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::Mapping;
use store::{Operation, Rejection, SyntheticBatch, WriteRequest};
use tokio::sync::oneshot;
use world::Task;

use crate::core::Core;
use crate::failures::{Action, Component, ErrorKind, action};
use crate::planted;
use crate::shard::{FollowedCopies, LocalShard};
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
/// How long a primary waits for the manager to take a failed copy out of the in-sync set: less than a write waits.
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

/// Writes a synthetic batch: new documents that exist only as a number, an equal part to each shard. In the
/// virtual world alone. What became of each part: shard, documents, result. Without an `id` each part has one of
/// its own.
pub async fn write_synthetic_batch(
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
            let (id, batch) = (Arc::from(id), SyntheticBatch::new(documents, bytes));
            groups.insert(
                shard,
                (vec![parts.len()], vec![WriteRequest::SyntheticBatch { id, batch }]),
            );
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
                        // The conflict may be with this write itself, which was sent before.
                        let refused = results.iter_mut().filter_map(|result| result.as_mut().err());
                        let may_be =
                            was_sent && !core.env.is_planted(planted::CONFLICT_WITH_ITSELF);
                        let conflicts = refused.filter(|failure| may_be && failure.status == 409);
                        conflicts.for_each(|failure| *failure = not_known(failure.clone()));
                        return Ok(results);
                    }
                    Ok(_) => return Err(unexpected()),
                    // No other failure is tried again: the write may have been done, and must not get a second sequence
                    // number.
                    Err(CallError::Failed(failure)) if failure.kind == UNAVAILABLE => failure,
                    Err(broken @ CallError::Broken { .. }) => {
                        // A synthetic batch cannot be looked up by its id.
                        if write.requests.iter().any(WriteRequest::is_synthetic_batch) {
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
/// Once begun it runs to its end, even if the node that asked is lost meanwhile: an operation that has a sequence
/// number
/// must become durable here and reach every copy, or their histories would have holes for good.
pub(crate) async fn write(core: &Rc<Core>, write: Write) -> Result<Response, Failure> {
    let core2 = core.clone();
    let writing = async move { write_on_primary(&core2, write).await };
    if core.env.is_planted(planted::WRITE_STOPS_HALF_WAY) {
        return writing.await;
    }
    core.run_to_end("writes on a primary", writing).await
}

async fn write_on_primary(core: &Rc<Core>, write: Write) -> Result<Response, Failure> {
    let began = core.env.now();
    let shard = core.local_shard(&write.index, write.shard)?;
    let store = shard.primary_store()?;
    follow_mapping(core, &shard, &store)
        .await
        .map_err(|error| report_apply_failure(core, &shard, error))?;
    core.note_use_of(&shard);
    let outcomes =
        store.index(write.requests).await.map_err(|e| report_store_failure(core, &shard, e))?;
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
        let refuses = core.env.is_planted(planted::REFUSED_WHAT_MAY_BE_DONE);
        finished.map_err(|error| match refuses {
            true => Failure { status: 400, ..error.into() },
            false => not_known(error.into()),
        })?;
    }
    core.served_in(core.env.now() - began);
    Ok(Response::Written(results))
}

/// The failure of a write that was applied here: it may be on other copies, too, and must not look refused.
fn not_known(failure: Failure) -> Failure {
    let reason = format!("it may have been done or not: {}", failure.reason);
    let status = if failure.status < 500 { 503 } else { failure.status };
    Failure { status, reason, ..failure }
}

/// Has the store index by the mapping in the state. Called before each write, so that a field is indexed in every
/// document that is sent after its mapping was acknowledged.
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
    let is_planted = core.env.is_planted(planted::ACKNOWLEDGED_BEFORE_SYNC);
    let synced = match store.durability() {
        store::Durability::Request if !is_planted => store.sync().await,
        _ => Ok(()),
    };
    if core.env.is_planted(planted::ACKNOWLEDGED_BEFORE_REPLICAS) {
        replicas.into_iter().for_each(|(_, task)| task.detach());
        return synced.map_err(ApplyError::Store);
    }
    // Also where this disk failed: a dropped send leaves a copy without what the others got.
    let replicated = await_replicas(core, shard, replicas).await;
    synced.map_err(|error| report_store_failure(core, shard, error))?;
    replicated?;
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// Has a primary whose store accepts nothing more opened again.
fn report_store_failure(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    error: store::Error,
) -> store::Error {
    core.store_failed(Component::Primary, shard, &error);
    error
}

/// As [`report_store_failure`], where the store is what failed.
fn report_apply_failure(core: &Rc<Core>, shard: &Rc<LocalShard>, error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Store(error) => ApplyError::Store(report_store_failure(core, shard, error)),
        other => other,
    }
}

/// Why operations could not be applied.
pub(crate) enum ApplyError {
    /// The store of this node's copy failed.
    Store(store::Error),
    /// Anything else.
    Other(Failure),
}

impl ApplyError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            ApplyError::Store(error) => ErrorKind::of_store(error),
            ApplyError::Other(failure) => failure.error_kind(),
        }
    }
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

/// On a follower's primary: applies operations that have the leader's sequence numbers, and replicates all of them,
/// also
/// those that were here already: a replica may lack them.
///
/// The primary applies them first: a copy that is recovering either finds them in the primary's log, or is tracked by
/// the time they are sent.
pub(crate) async fn apply_followed(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    ops: Arc<Vec<Operation>>,
) -> Result<(), ApplyError> {
    let store = shard.primary_store()?;
    follow_mapping(core, shard, &store)
        .await
        .map_err(|error| report_apply_failure(core, shard, error))?;
    core.note_use_of(shard);
    let before = store.max_seq_no();
    store.apply(ops.to_vec()).await.map_err(|error| report_store_failure(core, shard, error))?;
    let repeats = ops.first().map(|op| op.seq_no) < before;
    let is_kept = core.env.is_planted(planted::FOLLOWED_NOT_SENT)
        || repeats && core.env.is_planted(planted::FOLLOWED_REPEATS_NOT_SENT);
    let replicas = if is_kept { Vec::new() } else { send_to_replicas(core, shard, ops) };
    finish(core, shard, &store, replicas).await
}

/// On a primary whose following ended. No-ops fill the gaps in its history, since the missing operations will not
/// arrive
/// any more. Then every replica is sent what it may lack: an earlier primary may have been lost before it had sent
/// everything to each of them.
pub(crate) async fn end_following(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
) -> Result<(), ApplyError> {
    let store = shard.primary_store()?;
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
    // The log has every operation that a copy in sync may lack.
    let known = store.global_checkpoint().map_or(0, |checkpoint| checkpoint + 1);
    let mut from = known.max(store.log_complete_from());
    // New writes go to every replica anyway.
    let Some(max) = store.max_seq_no() else { return Ok(()) };
    while from <= max {
        let ops = store.ops_between(from..=max, SENT_AGAIN_OPS, SENT_AGAIN_BYTES).await;
        let ops = ops.map_err(|error| report_store_failure(core, shard, error))?;
        let Some(last) = ops.last() else { break };
        from = last.places().end;
        let replicas = send_to_replicas(core, shard, Arc::new(ops));
        finish(core, shard, &store, replicas).await?;
    }
    Ok(())
}

/// On a primary whose following ended, and which was promoted or reopened without operations of the leader that other
/// copies may have: they recover from it, file by file, because nobody else has those operations.
async fn replace_followed_copies(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &store::Shard,
) -> Result<(), ApplyError> {
    shard.followed_copies.set(FollowedCopies::Replaced);
    fill_gaps(store).await.map_err(|error| report_store_failure(core, shard, error))?;
    let state = core.state();
    let Some(routing) = state.shard(&shard.index, shard.number) else { return Ok(()) };
    let assigned = routing.assigned().map(|copy| &copy.allocation_id);
    // Also those that are being brought up: they may have begun with what they had.
    let others: BTreeSet<&String> =
        assigned.chain(&routing.in_sync).filter(|id| **id != shard.allocation_id).collect();
    for id in others {
        let why = "following ended before its primary had what this copy may have: it recovers from the primary";
        mark_copy_stale(core, shard, id, why).await?;
    }
    advance_global_checkpoint(core, shard);
    Ok(())
}

/// Makes every copy sync and report its checkpoint: for indices whose writes do not wait for the disk, and after a
/// replica that did not answer.
pub(crate) async fn spread_durability(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
) -> Result<(), Failure> {
    let synced = shard.store()?.sync().await;
    synced.map_err(|error| report_store_failure(core, shard, error))?;
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

/// Starts sending operations to every replica that is in sync or tracked.
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
        let is_left_out = core.env.is_planted(planted::TRACKED_COPY_LEFT_OUT);
        if !copy.in_sync && (!tracked || is_left_out) {
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

/// Waits for all replicas, even after one has failed. Replicas that failed leave the in-sync set before the write is
/// acknowledged.
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
        if core.env.is_planted(planted::MISSING_COPY_STAYS_IN_SYNC) {
            continue;
        }
        mark_copy_stale(core, shard, &id, "its node left, and a write came").await?;
    }
    Ok(())
}

/// Has the manager take a copy out of the in-sync set. Fails if that takes long, because the write that waits for it
/// must
/// not be acknowledged. The manager is told later all the same: the copy lacks operations that nobody sends again.
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
    if target.primary_term < shard.term() && !core.env.is_planted(planted::OLD_TERM_ACCEPTED) {
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
    // A request without operations asks what is durable.
    let is_question = ops.is_empty();
    store.apply(ops).await?;
    let syncs = !core.env.is_planted(planted::REPLICA_NOT_SYNCED);
    if is_question || store.durability() == store::Durability::Request && syncs {
        store.sync().await?;
    }
    if let Some(checkpoint) = global_checkpoint {
        store.advance_global_checkpoint(checkpoint);
    }
    Ok(Response::Replicated { local_checkpoint: store.persisted_checkpoint() })
}

/// A replica has become the primary. Operations that the old primary sent and never acknowledged may be on some copies
/// and not on others. So the new primary fills the gaps in its history and has the other copies recover from it; only
/// then does it take writes.
pub(crate) async fn promoted(core: Rc<Core>, shard: Rc<LocalShard>) {
    while shard.is_primary() {
        if complete_promotion(&core, &shard).await.is_ok() {
            shard.promotion_is_complete();
            (core.upward().promoted)();
            return;
        }
        core.env.sleep(RETRY_AFTER).await;
    }
}

async fn complete_promotion(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<(), Failure> {
    let store = shard.store()?;
    let state = core.state();
    if follows(&state, &shard.index) {
        // Every copy has operations of the leader and no others; the missing ones are still to be read.
        shard.followed_copies.set(FollowedCopies::BeforeRead);
        advance_global_checkpoint(core, shard);
        return Ok(());
    }
    if !core.env.is_planted(planted::GAPS_STAY) {
        fill_gaps(&store).await.map_err(|error| report_store_failure(core, shard, error))?;
    }
    let routing = state.shard(&shard.index, shard.number);
    let routing = routing.ok_or_else(|| Failure::no_such_index(&shard.index))?;
    let others: Vec<String> =
        routing.in_sync.iter().filter(|id| **id != shard.allocation_id).cloned().collect();
    let is_planted = core.env.is_planted(planted::PROMOTION_LEAVES_COPIES);
    for id in others.into_iter().filter(|_| !is_planted) {
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

/// Fills the gaps in a history with no-ops: sequence numbers that an old primary gave out and whose operations never
/// arrived.
pub(crate) async fn fill_gaps(store: &store::Shard) -> Result<(), store::Error> {
    let fill = fillers(store);
    if !fill.is_empty() {
        store.apply(fill).await?;
    }
    // The last operations of the old primary may not be durable yet.
    store.sync().await
}
