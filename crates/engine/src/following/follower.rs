//! One following shard: it reads from the leader and applies the operations, on and on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::failures::{Action, Component, ErrorKind, action};
use policy::following::{Answer, Limits, Order, ReadAsk, ReadWriteBudget, ShardFollower};
use policy::transfer::compression::Shipment;
use store::Operation;
use tokio::sync::mpsc;
use world::Task;

use super::metadata_sync::{MetadataSync, covers};
use super::service::{FollowService, REMOTE_TIMEOUT};
use super::source::{Needed, Source, keep_lease};
use crate::core::Core;
use crate::planted;
use crate::remote::claims;
use crate::replication::{self, advance_global_checkpoint, lease_of};
use crate::settings::FollowPace;
use crate::shard::LocalShard;
use crate::state::{Event, FollowChange, FollowOrigin};
use crate::transport::{
    CallError, Failure, LeaderShard, ReadChanges, Request, Response, Result, bytes_at_once,
    unexpected,
};

/// A shard that follows. Shared by the task that follows and by whoever asks for its statistics.
pub(crate) struct Follower {
    pub(crate) shard: Rc<LocalShard>,
    pub(crate) source: Rc<Source>,
    pub(crate) policy: RefCell<ShardFollower<Operation>>,
    pub(crate) metadata: MetadataSync,
    /// The latest term of a primary of the leader that has answered.
    leader_term: Cell<Option<u64>>,
    /// Why following stopped.
    pub(crate) fatal: RefCell<Option<Failure>>,
    /// The error of the last write that failed.
    pub(crate) last_write_failure: RefCell<Option<String>>,
    /// Whether it holds or wants operations.
    is_busy: Cell<bool>,
    service: Rc<FollowService>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.set_busy(false);
    }
}

/// A batch that is being written.
struct BeingWritten(Rc<LocalShard>);

impl BeingWritten {
    fn new(shard: &Rc<LocalShard>) -> Self {
        shard.followed_writes.update(|writes| writes + 1);
        BeingWritten(shard.clone())
    }
}

impl Drop for BeingWritten {
    fn drop(&mut self) {
        self.0.followed_writes.update(|writes| writes - 1);
    }
}

/// How much a follower does at once, by its index's parameters and the cluster's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    Field(Limits),
    Adaptive,
}

impl Pacing {
    pub(crate) fn of(service: &Rc<FollowService>, leader: &FollowOrigin) -> Pacing {
        let parameters = &leader.following.parameters;
        match service.core.settings().following_pace() {
            FollowPace::Adaptive if !parameters.any_given() => Pacing::Adaptive,
            _ => {
                let mut limits = parameters.limits();
                // A write travels to the replicas in one message.
                limits.max_write_request_size =
                    bytes_at_once(&service.core.env, limits.max_write_request_size);
                Pacing::Field(limits)
            }
        }
    }
}

/// The shortest sleep of a shard that has nothing to do now.
const WAKE_LEAST: Duration = Duration::from_micros(100);

/// Why a read or a write failed.
enum FailedRequest {
    /// It is tried again.
    Retryable(String),
    /// Following stops.
    Fatal(Failure),
}

enum FollowerEvent {
    Read(ReadAsk, Result<Answer<Operation>, FailedRequest>),
    Written(u64, Result<(), FailedRequest>),
}

impl Follower {
    /// The follower of a started primary; none while its store is not open.
    pub(crate) fn new(
        service: &Rc<FollowService>,
        shard: Rc<LocalShard>,
        leader: &FollowOrigin,
        pacing: Pacing,
    ) -> Option<Follower> {
        let store = shard.primary_store().ok()?;
        let budget = match pacing {
            Pacing::Field(limits) => ReadWriteBudget::Field(limits),
            Pacing::Adaptive => ReadWriteBudget::adaptive(u64::MAX),
        };
        let source = Source::new(
            &leader.remote_cluster,
            LeaderShard {
                index: leader.leader_index.clone(),
                index_uuid: leader.leader_uuid.clone(),
                shard: shard.number,
                history_uuid: store.history_uuid().to_owned(),
            },
            lease_of(&service.core.state(), &shard.index)?,
        );
        advance_global_checkpoint(&service.core, &shard);
        let goes_on_after = match service.core.env.is_planted(planted::CHECKPOINT_SKIPPED) {
            true => store.max_seq_no(),
            false => store.global_checkpoint(),
        };
        let policy =
            ShardFollower::new(service.core.env.now(), budget, goes_on_after, store.max_seq_no());
        Some(Follower {
            shard,
            source: Rc::new(source),
            policy: RefCell::new(policy),
            metadata: MetadataSync::default(),
            leader_term: Cell::default(),
            fatal: RefCell::default(),
            last_write_failure: RefCell::default(),
            is_busy: Cell::new(false),
            service: service.clone(),
        })
    }

    /// Says whether it is busy: busy followers get more of the memory.
    fn set_busy(&self, is_busy: bool) {
        match (self.is_busy.replace(is_busy), is_busy) {
            (false, true) => self.service.busy.update(|busy| busy + 1),
            (true, false) => self.service.busy.update(|busy| busy - 1),
            _ => {}
        }
    }

    /// What the leader must keep, for this copy or one that takes its place.
    fn needed(&self) -> Needed {
        self.note_checkpoint();
        let (core, state) = (&self.service.core, self.service.core.state());
        let from = match core.env.is_planted(planted::LEASE_LEAVES_READS) {
            true => {
                self.policy.borrow().follower_global_checkpoint().map_or(0, |seq_no| seq_no + 1)
            }
            false => {
                let needed = self.policy.borrow().needed_from();
                self.shard.replicas_need_from(&state).map_or(needed, |from| needed.min(from))
            }
        };
        Needed { from, at_least: self.shard.has_untold_replicas(&state) }
    }

    /// Tells the policy the global checkpoint. With `index.translog.durability: async` it also advances between writes.
    pub(crate) fn note_checkpoint(&self) {
        if let Ok(store) = self.shard.store() {
            let (checkpoint, max) = (store.global_checkpoint(), store.max_seq_no());
            self.policy.borrow_mut().note_follower(checkpoint, max);
        }
    }

    async fn read(&self, ask: ReadAsk) -> Result<Answer<Operation>, FailedRequest> {
        let (service, core) = (&self.service, &self.service.core);
        let asked = core.env.now();
        let poll_timeout = self.policy.borrow().poll_timeout(asked);
        let known = self.metadata.versions();
        let known_checkpoint = self.policy.borrow().leader_global_checkpoint();
        let question = ReadChanges {
            leader: self.source.shard.clone(),
            from: ask.from,
            max_ops: ask.max_ops,
            max_bytes: ask.max_bytes,
            poll_timeout,
            known: Some(known),
            heard: self.leader_term.get().map(|term| (term, known_checkpoint)),
            compress: core.compress(Some(self.source.alias())),
        };
        let limit = poll_timeout + REMOTE_TIMEOUT;
        let request = Request::ReadChanges(Box::new(question));
        let answer = self.source.ask(service, || self.needed(), request, limit).await;
        let Response::Changes(changes) = answer.map_err(of_call)? else {
            return Err(FailedRequest::Fatal(unexpected()));
        };
        let took = core.env.now() - asked;
        let checkpoint = changes.global_checkpoint;
        claims::checkpoints(checkpoint, changes.max_seq_no).map_err(refused)?;
        let is_news = !covers(&known, &changes.versions);
        // Operations may need mappings that the leader's index has by now. Boxed, as most reads find none that are new.
        if is_news {
            let needed = || self.needed();
            let versions = changes.versions;
            let caught_up =
                self.metadata.catch_up(service, &self.shard, &self.source, needed, versions);
            Box::pin(caught_up).await.map_err(of_failure)?;
        }
        let at_most = (ask.max_ops, ask.max_bytes);
        let mut ops = changes.ops.unpack(&core.env, at_most).await.map_err(refused)?;
        if core.env.is_planted(planted::CHANGE_SKIPPED) && ops.len() > 2 {
            ops.remove(1);
        } else {
            claims::operations(ask.from, checkpoint, at_most, &ops).map_err(refused)?;
        }
        if ops.is_empty() {
            let nothing = claims::nothing_new(ask.from..ask.until, (took, poll_timeout), is_news);
            nothing.map_err(refused)?;
        }
        self.leader_term.set(self.leader_term.get().max(Some(changes.primary_term)));
        let [waited, served] = claims::within(took, [changes.waited, changes.served]);
        Ok(Answer {
            ops,
            global_checkpoint: checkpoint,
            max_seq_no: changes.max_seq_no,
            served,
            waited,
            pressure: changes.pressure,
        })
    }

    async fn write(&self, ops: Arc<Vec<Operation>>) -> Result<(), FailedRequest> {
        let written = replication::apply_followed(&self.service.core, &self.shard, ops).await;
        written.map_err(|error| {
            let kind = error.kind();
            failed(Component::FollowerWrite, kind, error.into())
        })
    }
}

/// An answer that failed validation. It is shown in the statistics and tried again: another node of the leader may
/// answer correctly.
fn refused(failure: Failure) -> FailedRequest {
    FailedRequest::Retryable(failure.reason)
}

fn of_call(error: CallError) -> FailedRequest {
    failed(Component::FollowerRead, error.error_kind(), error.into())
}

fn of_failure(failure: Failure) -> FailedRequest {
    failed(Component::FollowerRead, failure.error_kind(), failure)
}

fn failed(component: Component, kind: ErrorKind, failure: Failure) -> FailedRequest {
    match action(component, kind) {
        Action::StopFollowing | Action::RecoverAgain => FailedRequest::Fatal(failure),
        _ => FailedRequest::Retryable(failure.reason),
    }
}

/// Follows until the task is ended, or until it cannot any more.
pub(super) async fn run(follower: Rc<Follower>) {
    let (service, needs) = (&follower.service, follower.clone());
    let renewing = keep_lease(service.clone(), follower.source.clone(), move || needs.needed());
    let renewing = service.core.env.spawn("renews a lease", renewing);
    let failure = keep_up(&follower).await;
    drop(renewing);
    let is_gone = action(Component::FollowerRead, failure.error_kind()) == Action::RecoverAgain;
    let reason = failure.reason.clone();
    *follower.fatal.borrow_mut() = Some(failure);
    if is_gone {
        fall_back(&service.core, &follower.shard, reason).await;
    }
}

async fn keep_up(follower: &Rc<Follower>) -> Failure {
    let (service, env) = (&follower.service, &follower.service.core.env);
    let (tell, mut events) = mpsc::unbounded_channel();
    let mut reads: BTreeMap<u64, Task<()>> = BTreeMap::new();
    loop {
        follower.set_busy(follower.policy.borrow().is_busy());
        let share = service.memory_share(follower.is_busy.get());
        follower.policy.borrow_mut().set_memory_max_bytes(share);
        loop {
            let order = follower.policy.borrow_mut().next(env.now());
            match order {
                None => break,
                Some(Order::Read(ask)) => {
                    reads.insert(ask.from, start_read(follower, ask, tell.clone()));
                }
                Some(Order::Write(number, ops)) => {
                    start_write(follower, (number, ops), tell.clone());
                }
            }
        }
        // A policy that says "now" again and again must not keep this loop spinning.
        let soonest = env.now() + WAKE_LEAST;
        let wake_at = follower.policy.borrow().wake_at().map(|at| at.max(soonest));
        tokio::select! {
            biased;
            first = events.recv() => {
                let mut next = first;
                while let Some(one) = next {
                    if let Err(fatal) = handle_event(follower, &mut reads, one) {
                        return fatal;
                    }
                    next = events.try_recv().ok();
                }
            }
            () = env.sleep_until_due(wake_at) => {}
        }
    }
}

fn start_read(
    follower: &Rc<Follower>,
    ask: ReadAsk,
    tell: mpsc::UnboundedSender<FollowerEvent>,
) -> Task<()> {
    let reader = follower.clone();
    follower.service.core.env.spawn_with("reads from a leader", move || async move {
        let answer = reader.read(ask).await;
        // The loop may have ended meanwhile.
        let _ = tell.send(FollowerEvent::Read(ask, answer));
    })
}

/// Runs to its end even if the index is paused meanwhile: operations on the primary must reach its replicas.
fn start_write(
    follower: &Rc<Follower>,
    (number, ops): (u64, Arc<Vec<Operation>>),
    tell: mpsc::UnboundedSender<FollowerEvent>,
) {
    let writer = follower.clone();
    let being_written = BeingWritten::new(&follower.shard);
    follower.service.core.keep("writes what was followed", async move {
        let written = writer.write(ops).await;
        drop(being_written);
        let _ = tell.send(FollowerEvent::Written(number, written));
    });
}

fn handle_event(
    follower: &Follower,
    reads: &mut BTreeMap<u64, Task<()>>,
    event: FollowerEvent,
) -> Result<()> {
    let core = &follower.service.core;
    let now = core.env.now();
    let mut policy = follower.policy.borrow_mut();
    match event {
        FollowerEvent::Read(ask, answer) => {
            reads.remove(&ask.from);
            match answer {
                Ok(answer) => {
                    let pressure = answer.pressure || core.pressure();
                    let brought = policy.read_done(now, ask, answer);
                    let gave_up_to = match core.env.is_planted(planted::LEADER_BOUND_BY_CHECKPOINT)
                    {
                        true => policy.leader_global_checkpoint(),
                        false => policy.leader_max_seq_no(),
                    };
                    let copies = &follower.shard.followed_copies;
                    copies.update(|copies| copies.after_read(gave_up_to));
                    let shipment = Shipment {
                        requested_at: brought.requested_at,
                        plain_bytes: brought.bytes,
                        is_full: brought.was_full,
                        pressure,
                    };
                    core.note_shipment(Some(follower.source.alias()), shipment);
                }
                Err(FailedRequest::Retryable(_))
                    if core.env.is_planted(planted::WINDOW_MISCOUNTED) => {}
                Err(FailedRequest::Retryable(why)) => {
                    policy.read_failed(now, ask, why, core.env.random_u64());
                }
                Err(FailedRequest::Fatal(failure)) => return Err(failure),
            }
        }
        FollowerEvent::Written(number, written) => match written {
            Ok(()) => {
                let store = follower.shard.store();
                let (checkpoint, max) = store
                    .map_or((None, None), |store| (store.global_checkpoint(), store.max_seq_no()));
                policy.written(now, number, checkpoint, max);
            }
            Err(FailedRequest::Retryable(why)) => {
                follower.last_write_failure.replace(Some(why));
                policy.write_failed(now, number, core.env.random_u64());
            }
            Err(FailedRequest::Fatal(failure)) => return Err(failure),
        },
    }
    Ok(())
}

/// Has the shard recover from remote again, if it has not done so before.
async fn fall_back(core: &Core, shard: &LocalShard, reason: String) {
    loop {
        let state = core.state();
        let leader = state.indices.get(&shard.index).and_then(|meta| meta.leader.as_ref());
        if leader.is_none_or(|leader| leader.following.fell_back.contains_key(&shard.number)) {
            return;
        }
        let change = FollowChange::FallBack {
            shard: shard.number,
            allocation_id: shard.allocation_id.clone(),
            reason: reason.clone(),
        };
        let event = Event::SetFollowing { index: shard.index_id(), change };
        match core.submit(event).await {
            Err(failure)
                if action(Component::ManagerEvent, failure.error_kind()) == Action::TryAgain =>
            {
                core.env.sleep(Duration::from_millis(200)).await;
            }
            _ => return,
        }
    }
}
