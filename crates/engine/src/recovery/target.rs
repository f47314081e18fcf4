//! The copy that recovers: its stages, and what happens when one fails.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use query::Mapping;
use record::Limit;
use store::{Commit, Incoming, Options, Shard};
use world::Time;
use world::model::CoreCosts;

use super::left_copy::LeftCopy;
use super::service::RecoveryService;
use super::session_opening::{self, PrefetchedChunks, Wanted};
use super::source_session::{SourceSession, TransferError};
use super::transfer::{WAITS_FOR_ANSWER, as_failure, fetch_files, measure_round_trip};
use crate::core::{Core, node_address};
use crate::planted;
use crate::remote;
use crate::replication::{fill_gaps, follows, lease_of, set_leases};
use crate::settings::CheckOnStartup;
use crate::shard::{
    CopyMetadata, Ends, FollowedCopies, LocalShard, Progress, Stage, store_durability,
};
use crate::state::{Event, RecoverySource};
use crate::transport::{
    CallError, Class, Failure, Request, Response, SessionKind, SessionOpened, unexpected,
};
use policy::backoff::Backoff;
use policy::failures::ErrorKind;

/// How long a copy waits for operations that are on their way to it, and how often it looks.
const OPS_PATIENCE: Duration = Duration::from_secs(10);
const OPS_LOOK: Duration = Duration::from_millis(5);
/// How long a copy waits for work that its last opening left behind, which holds its directory.
const IN_USE_PATIENCE: Duration = Duration::from_secs(600);
/// A recovery is given up when it has received nothing for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Recovers a copy from the source that the state names, and tells the manager how that ended.
pub(crate) async fn recover(
    service: Rc<RecoveryService>,
    shard: Rc<LocalShard>,
    from: RecoverySource,
) {
    let began = service.core.env.now();
    let ends = Ends {
        kind: from.kind(),
        index: shard.index.clone(),
        shard: shard.number,
        primary: shard.is_primary() || shard.takes_over(),
        source: None,
        source_address: None,
        target: service.core.config.name.clone(),
        target_address: service.core.row.transport.clone(),
    };
    let idle = match from {
        RecoverySource::EmptyStore | RecoverySource::ExistingStore => Limit::DiskRead,
        RecoverySource::Peer { .. } | RecoverySource::Remote { .. } => WAITS_FOR_ANSWER,
    };
    let progress = Rc::new(Progress::new(began, service.core.env.epoch_ms(), ends, idle));
    shard.set_progress(progress.clone());
    service.note_recovery(&progress);
    let recovery =
        Recovery { service: service.clone(), shard: shard.clone(), progress: progress.clone() };
    let result = match &from {
        RecoverySource::EmptyStore => recovery.recover_from_nothing().await,
        RecoverySource::ExistingStore => {
            recovery.spend(|costs| costs.open_copy).await;
            recovery.recover_from_disk().await
        }
        RecoverySource::Peer { from_node } => {
            let is_first = !service.has_copied.get();
            let first =
                |costs: &CoreCosts| if is_first { costs.first_copy } else { Duration::ZERO };
            recovery.spend(|costs| costs.open_copy + first(costs)).await;
            let result = recovery.recover_from_peer(from_node).await;
            service.has_copied.set(service.has_copied.get() || result.is_ok());
            result
        }
        RecoverySource::Remote { cluster, index, shard } => {
            recovery.recover_from_remote(cluster, index, *shard).await
        }
    };
    let result = match result {
        Ok(()) => recovery.refresh_recovered().await,
        failed => failed,
    };
    match result {
        Ok(()) => {
            progress.enter(service.core.env.now(), Stage::Done, Limit::Latency);
            report_started(&service.core, &shard).await;
            if let Ok(store) = shard.store() {
                // What stays of an earlier try takes room, and goes after the next recovery.
                let _ = store.forget_received().await;
            }
        }
        Err(failure) => {
            *progress.failure.borrow_mut() = Some(failure.reason.clone());
            let disk_full = failure.error_kind() == ErrorKind::DiskFull;
            service.core.fail_copy(&shard, failure.reason, disk_full).await;
        }
    }
}

/// How soon a copy that is open is reported again.
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Tells the manager that a copy is open, until it counts as started or is to be here no more. In the same moment the
/// manager may hear late of an earlier life of the copy or of its node, and have the copy opened again.
pub(crate) async fn report_started(core: &Rc<Core>, shard: &Rc<LocalShard>) {
    loop {
        let (index, allocation_id) = (shard.index.clone(), shard.allocation_id.clone());
        core.report(Event::ShardStarted { index, shard: shard.number, allocation_id }).await;
        shard.reported.set(true);
        // Another life of the copy reports itself.
        let is_wanted = core.is_here(shard) && shard.is_to_be_opened(&core.state());
        if !is_wanted || core.env.is_planted(planted::STARTED_ONCE) {
            return;
        }
        core.env.sleep(REPORT_AGAIN_AFTER).await;
    }
}

pub(super) struct Recovery {
    pub(super) service: Rc<RecoveryService>,
    pub(super) shard: Rc<LocalShard>,
    pub(super) progress: Rc<Progress>,
}

impl Recovery {
    pub(super) fn now(&self) -> Time {
        self.service.core.env.now()
    }

    fn options(&self) -> Result<(Mapping, Options), Failure> {
        let state = self.service.core.state();
        let meta = state.indices.get(&self.shard.index);
        let meta = meta.ok_or_else(|| Failure::no_such_index(&self.shard.index))?;
        let mapping = Mapping::stored(&meta.mappings)?;
        let settings = meta.typed_settings();
        let durability = store_durability(settings.translog_durability());
        let check_on_startup = settings.check_on_startup() == CheckOnStartup::Checksum;
        Ok((mapping, Options { durability, check_on_startup, history_uuid: None }))
    }

    /// Refreshes a copy once that only requests refresh (`index.refresh_interval` of -1): no search would make visible
    /// what the recovery brought.
    async fn refresh_recovered(&self) -> Result<(), Failure> {
        if let Some(settings) = self.shard.settings_by(&self.service.core.state()) {
            self.shard.apply_refresh_interval(&self.shard.store()?, &settings).await?;
        }
        Ok(())
    }

    /// Opens the copy that is here. Work that its last opening left behind, such as a long merge, may still hold its
    /// directory; giving up for that would mean to replace a copy that is whole.
    async fn open_here(&self, mapping: &Mapping, options: &Options) -> store::Result<Shard> {
        let give_up = self.now() + IN_USE_PATIENCE;
        loop {
            let env = &self.service.core.env;
            match Shard::open(env, &self.dir(), mapping, options.clone()).await {
                // The store has waited a few seconds itself.
                Err(error @ store::Error::InUse { .. }) if self.now() < give_up => {
                    *self.progress.failure.borrow_mut() = Some(error.to_string());
                }
                opened => {
                    self.progress.failure.take();
                    return opened;
                }
            }
        }
    }

    /// Where the copy's files are.
    fn dir(&self) -> std::path::PathBuf {
        self.service.core.disk.copy_dir(&self.shard.index_uuid, self.shard.number)
    }

    async fn recover_from_nothing(&self) -> Result<(), Failure> {
        let (mapping, options) = self.options()?;
        let (uuid, number) = (&self.shard.index_uuid, self.shard.number);
        // Files of an earlier try without metadata are no copy.
        let _ = self.service.core.disk.remove_copy(uuid, number).await;
        let store = Shard::create(&self.service.core.env, &self.dir(), &mapping, options).await?;
        self.shard.set_store(store);
        self.shard.write_metadata(&self.service.core.disk).await
    }

    /// A primary that is opened although operations of it may be lost begins another history, as the field's does
    /// (`bootstrapNewHistory`): it numbers anew what followers and other copies may have, and these must hear of it.
    /// A follower keeps its leader's history, and fetches from it what is lost.
    ///
    /// The metadata says so first, so that the copy is known as this one whatever moment its node dies in.
    async fn history_to_begin(&self) -> Result<Option<String>, Failure> {
        let core = &self.service.core;
        let extent = store::extent(&core.env, &self.dir()).await.unwrap_or_default();
        if !extent.is_loss_accepted || self.follows() {
            return Ok(None);
        }
        let metadata = self.metadata().await;
        // Files of another shard are refused below.
        let Some(metadata) = metadata.filter(|found| found.is_of(&extent.history_uuid)) else {
            return Ok(None);
        };
        let begins = Some(core.next_id());
        let history_uuid = Some(extent.history_uuid);
        let metadata = CopyMetadata { history_uuid, begins: begins.clone(), ..metadata };
        self.shard.put_metadata(&core.disk, &metadata).await?;
        Ok(begins)
    }

    async fn recover_from_disk(&self) -> Result<(), Failure> {
        self.progress.enter(self.now(), Stage::Index, Limit::DiskRead);
        let (mapping, options) = self.options()?;
        let options = Options { history_uuid: self.history_to_begin().await?, ..options };
        let store = self.open_here(&mapping, &options).await?;
        let metadata = self.metadata().await;
        if metadata.is_some_and(|metadata| !metadata.is_of(store.history_uuid())) {
            let dir = self.dir();
            let reason = format!("{} holds the files of another shard", dir.display());
            return Err(Failure::new(500, "corrupt_index_exception", reason));
        }
        let opened = store.opened();
        self.progress.ops_total.set(opened.replayed_ops);
        self.progress.ops_recovered.set(opened.replayed_ops);
        if !self.follows() {
            fill_gaps(&store).await?;
        } else if let Some(checkpoint) = store.local_checkpoint() {
            // The other copies recover from this one; following continues after the operations that are here.
            store.advance_global_checkpoint(checkpoint);
        }
        if self.follows() {
            self.shard.assumes_checkpoint.set(true);
            self.shard.followed_copies.set(FollowedCopies::BeforeRead);
        }
        let leases =
            self.service.core.disk.read_leases(&self.shard.index_uuid, self.shard.number).await;
        if !self.service.core.env.is_planted(planted::LEASES_FORGOTTEN) {
            set_leases(&self.shard, &store, leases);
        }
        self.shard.set_store(store);
        self.shard.write_metadata(&self.service.core.disk).await
    }

    pub(super) fn follows(&self) -> bool {
        follows(&self.service.core.state(), &self.shard.index)
    }

    /// Spends the time that a step takes which is not modelled by itself. The real world takes its own time.
    async fn spend(&self, cost: impl Fn(&CoreCosts) -> Duration) {
        let model = self.service.core.env.virtual_host_model();
        let time = model.map(|model| cost(&model.costs)).filter(|time| !time.is_zero());
        if let Some(time) = time {
            self.service.core.env.sleep(time).await;
        }
    }

    async fn recover_from_peer(&self, from_node: &str) -> Result<(), Failure> {
        self.progress.ends.borrow_mut().source = Some(from_node.to_owned());
        let left = LeftCopy::find(&self.service.core, &self.shard).await;
        let mut store = self.own_store().await;
        let (mut retries, mut is_listed) = (Retries::new(self), false);
        loop {
            let tried = self.try_peer(from_node, left.as_ref(), &mut store, &mut is_listed).await;
            match tried {
                Ok(()) => return Ok(()),
                Err(error) => retries.after(self, error).await?,
            }
        }
    }

    /// The store that an earlier life left here, if operations alone can bring it up to date. All its operations must
    /// be in the primary's history: the copy was in sync with the primary of the same term; or it belongs to a
    /// follower, whose copies have the leader's operations and no others; or it has none above the global checkpoint
    /// that its commit knows, up to which every copy in sync has the same, whoever is the primary since.
    async fn own_store(&self) -> Option<Shard> {
        let metadata = self.metadata().await?;
        let is_planted = self.service.core.env.is_planted(planted::OWN_COPY_TRUSTED);
        let is_of_term = metadata.primary_term == self.shard.term() || self.follows() || is_planted;
        let (mapping, options) = self.options().ok()?;
        let store = self.open_here(&mapping, &options).await.ok()?;
        let is_in_history = is_of_term || store.max_seq_no() <= store.global_checkpoint();
        (is_in_history && metadata.is_of(store.history_uuid())).then_some(store)
    }

    /// What was written beside the files that are here.
    async fn metadata(&self) -> Option<CopyMetadata> {
        let (uuid, number) = (&self.shard.index_uuid, self.shard.number);
        self.service.core.disk.read_metadata(uuid, number).await
    }

    async fn try_peer(
        &self,
        from_node: &str,
        left: Option<&LeftCopy>,
        own: &mut Option<Shard>,
        is_listed: &mut bool,
    ) -> Result<(), TransferError> {
        let address = self.service.core.address_of(from_node).ok_or_else(|| CallError::Broken {
            address: from_node.to_owned(),
            reason: "the node has left the cluster".to_owned(),
        })?;
        self.progress.ends.borrow_mut().source_address = Some(address.clone());
        let has = own.as_ref().map(|store| {
            (store.history_uuid().to_owned(), store.local_checkpoint().map_or(0, |seq| seq + 1))
        });
        let allocation_id = self.shard.allocation_id.clone();
        let index_uuid = self.shard.index_uuid.clone();
        let retries = self.progress.retries.get();
        let kind = SessionKind::Peer { index_uuid, allocation_id, has, retries };
        let wanted = Wanted { index: self.shard.index.clone(), shard: self.shard.number, kind };
        let source = self.source(address, None);
        let _pings = self.ping(&source);
        let (source, opened, prefetched) = self.open(vec![source], wanted).await?;
        let result = match left.and_then(|left| left.refuses(&opened)) {
            Some(failure) => Err(CallError::Failed(failure).into()),
            None => {
                // A source that has heard of the copy at one try knows it at the next.
                if opened.commit.is_some() && !*is_listed {
                    self.wait_to_be_listed(from_node).await;
                    *is_listed = true;
                }
                self.copy_and_follow(&source, &opened, prefetched, own).await
            }
        };
        self.end_session(&source);
        result
    }

    /// A manager of the field applies a state once all others have (`Coordinator.handleApplyCommit`). A copy that has
    /// no files to open first asks it before that: OpenSearch 2 lets a replica wait
    /// (`RecoverySourceHandler.waitForAssignmentPropagate`), and a primary that moves asks again
    /// (`PeerRecoverySourceService.recover`).
    async fn wait_to_be_listed(&self, from_node: &str) {
        let settings = self.service.core.settings();
        if !settings.hearing_last().iter().any(|name| name == from_node) {
            return;
        }
        let asks_again = settings.recovery_retry_delay_state_sync();
        let most = if self.shard.takes_over() { asks_again } else { Duration::MAX };
        self.spend(|costs| costs.unlisted_copy.min(most)).await;
    }

    async fn copy_and_follow(
        &self,
        source: &SourceSession,
        opened: &SessionOpened,
        prefetched: PrefetchedChunks,
        own: &mut Option<Shard>,
    ) -> Result<(), TransferError> {
        let store = match &opened.commit {
            Some(commit) => {
                self.shard.drop_store();
                if let Some(store) = own.take() {
                    store.close().await?;
                }
                self.spend(|costs| costs.new_copy).await;
                self.copy_files(source, commit, prefetched).await?
            }
            // A source offers operations alone only to a target that has a store.
            None => own.clone().ok_or_else(|| CallError::Failed(unexpected()))?,
        };
        *own = Some(store.clone());
        set_leases(&self.shard, &store, opened.leases.clone());
        if self.shard.takes_over() {
            self.keep_history(source, &store, &opened.leases).await?;
        }
        self.shard.set_store(store.clone());
        self.progress.enter(self.now(), Stage::Translog, WAITS_FOR_ANSWER);
        let request = Request::StartTracking(source.session);
        let max = match source.ask(&self.service, Class::Control, request).await? {
            Response::SeqNo(max) => max,
            _ => return Err(CallError::Failed(unexpected()).into()),
        };
        self.copy_ops(source, &store, max).await?;
        self.progress.enter(self.now(), Stage::Finalize, WAITS_FOR_ANSWER);
        self.join(source, &store).await?;
        self.shard.write_metadata(&self.service.core.disk).await.map_err(CallError::Failed)?;
        match self.shard.takes_over() {
            true => self.take_over(source, &store).await.map_err(|f| CallError::Failed(f).into()),
            false => Ok(()),
        }
    }

    /// Joins the in-sync set once this copy has what the others have. Operations that were being written when it began
    /// to be tracked may reach the others first.
    async fn join(&self, source: &SourceSession, store: &Shard) -> Result<(), TransferError> {
        let give_up = self.now() + OPS_PATIENCE;
        loop {
            // From now on the global checkpoint counts what this copy has, so that must be durable.
            store.sync().await?;
            let local_checkpoint = store.persisted_checkpoint();
            let request = Request::Finalize { session: source.session, local_checkpoint };
            let everywhere = match source.ask(&self.service, Class::Control, request).await? {
                Response::SeqNo(everywhere) => everywhere,
                _ => return Err(CallError::Failed(unexpected()).into()),
            };
            if local_checkpoint >= everywhere {
                everywhere.into_iter().for_each(|up_to| store.advance_global_checkpoint(up_to));
                return Ok(());
            }
            while store.local_checkpoint() < everywhere {
                if self.now() >= give_up {
                    let reason = format!(
                        "the copy has operations up to {local_checkpoint:?}, all others up to {everywhere:?}"
                    );
                    let failure = Failure::new(409, "recovery_failed_exception", reason);
                    return Err(CallError::Failed(failure).into());
                }
                self.service.core.env.sleep(OPS_LOOK).await;
            }
        }
    }

    async fn recover_from_remote(
        &self,
        cluster: &str,
        index: &str,
        number: u32,
    ) -> Result<(), Failure> {
        self.progress.ends.borrow_mut().source = Some(cluster.to_owned());
        let mut retries = Retries::new(self);
        loop {
            match self.try_remote(cluster, index, number).await {
                Ok(()) => return Ok(()),
                Err(error) => retries.after(self, error).await?,
            }
        }
    }

    async fn try_remote(
        &self,
        cluster: &str,
        index: &str,
        number: u32,
    ) -> Result<(), TransferError> {
        let remotes = &self.service.remotes;
        let addresses = remote::addresses(remotes, cluster).map_err(CallError::Failed)?;
        let source = |address| self.source(address, Some(cluster.to_owned()));
        let sources = addresses.into_iter().map(source).collect();
        let state = self.service.core.state();
        let leader = state.indices.get(&self.shard.index).and_then(|meta| meta.leader.as_ref());
        let (Some(lease), Some(leader)) = (lease_of(&state, &self.shard.index), leader) else {
            return Err(CallError::Failed(Failure::no_such_index(&self.shard.index)).into());
        };
        let kind = SessionKind::Remote { lease, index_uuid: leader.leader_uuid.clone() };
        let wanted = Wanted { index: index.to_owned(), shard: number, kind };
        let opened = self.open(sources, wanted).await;
        let (source, opened, prefetched) = opened.inspect_err(|_| remotes.sniff_again(cluster))?;
        let address = node_address(&source.address).to_owned();
        self.progress.ends.borrow_mut().source_address = Some(address);
        let _pings = self.ping(&source);
        let result = self.copy_remote(&source, &opened, prefetched).await;
        self.end_session(&source);
        result
    }

    async fn copy_remote(
        &self,
        source: &SourceSession,
        opened: &SessionOpened,
        prefetched: PrefetchedChunks,
    ) -> Result<(), TransferError> {
        // An earlier try may have opened it.
        self.shard.drop_store();
        let commit = opened.commit.as_ref();
        let commit = commit.ok_or_else(|| CallError::Failed(unexpected()))?;
        let store = self.copy_files(source, commit, prefetched).await?;
        self.progress.enter(self.now(), Stage::Translog, WAITS_FOR_ANSWER);
        self.copy_ops(source, &store, opened.max_seq_no).await?;
        self.progress.enter(self.now(), Stage::Finalize, Limit::DiskWrite);
        self.shard.set_store(store);
        self.shard
            .write_metadata(&self.service.core.disk)
            .await
            .map_err(|f| CallError::Failed(f).into())
    }

    /// Opens a session. Where the directory is empty, the first chunks are asked for with it.
    async fn open(
        &self,
        sources: Vec<SourceSession>,
        wanted: Wanted,
    ) -> Result<(SourceSession, SessionOpened, PrefetchedChunks), TransferError> {
        let service = &self.service;
        let config = match sources.first() {
            Some(source) if !store::holds_anything(&service.core.env, &self.dir()).await? => {
                Some(source.scheduler(service))
            }
            _ => None,
        };
        session_opening::open(service, sources, wanted, config).await
    }

    fn source(&self, address: String, remote: Option<String>) -> SourceSession {
        let known = self.service.core.round_trip(&address);
        let round_trip = Rc::new(Cell::new(known.unwrap_or_default()));
        SourceSession { address, session: 0, remote, round_trip }
    }

    fn ping(&self, source: &SourceSession) -> world::Task<()> {
        let task = measure_round_trip(self.service.clone(), source.clone());
        self.service.core.env.spawn("measures the round trip", task)
    }

    /// Closes the session at the source; if the message is lost, the source closes it after a while.
    fn end_session(&self, source: &SourceSession) {
        let (service, source) = (self.service.clone(), source.clone());
        self.service.core.keep("closes a session", async move {
            let request = Request::CloseSession(source.session);
            let _ = source.ask(&service, Class::Control, request).await;
        });
    }

    /// Copies the files and opens them.
    async fn copy_files(
        &self,
        source: &SourceSession,
        commit: &Commit,
        prefetched: PrefetchedChunks,
    ) -> Result<Shard, TransferError> {
        let env = &self.service.core.env;
        self.progress.enter(self.now(), Stage::Index, WAITS_FOR_ANSWER);
        let incoming = Rc::new(Incoming::begin(env, &self.dir(), commit.clone()).await?);
        fetch_files(&self.service, source, &self.progress, (commit, &incoming), prefetched).await?;
        self.progress.enter(self.now(), Stage::VerifyIndex, Limit::DiskWrite);
        let failed = |failure| TransferError::Call(CallError::Failed(failure));
        let (mapping, options) = self.options().map_err(failed)?;
        Ok(Rc::unwrap_or_clone(incoming).install(&mapping, options).await?)
    }
}

/// When to try again, and when to give up.
struct Retries {
    count: u32,
    since_progress: Time,
    recovered_bytes: u64,
}

impl Retries {
    fn new(recovery: &Recovery) -> Self {
        Retries { count: 0, since_progress: recovery.now(), recovered_bytes: 0 }
    }

    /// Waits before the next try; fails where there is to be none.
    async fn after(&mut self, recovery: &Recovery, error: TransferError) -> Result<(), Failure> {
        let failure = as_failure(&error);
        let now = recovery.now();
        let (_, recovered) = recovery.progress.bytes();
        if recovered > self.recovered_bytes {
            (self.recovered_bytes, self.count, self.since_progress) = (recovered, 0, now);
        }
        if !error.is_tried_again() || now - self.since_progress > PATIENCE {
            let (files, came) = recovery.progress.bytes();
            let reason = format!("{} (after {came} of {files} bytes)", failure.reason);
            return Err(Failure { reason, ..failure });
        }
        self.count += 1;
        let progress = &recovery.progress;
        progress.retries.set(progress.retries.get() + 1);
        *progress.failure.borrow_mut() = Some(failure.reason);
        progress.accounting.borrow_mut().set_idle(now, Limit::Latency);
        let service = &recovery.service;
        let settings = service.core.settings();
        // A refusal passes soon: the primary may not know yet that it is started, for example.
        let not_ready = matches!(error, TransferError::Call(CallError::Failed(_)));
        let delay = match recovery.progress.ends.borrow().kind {
            "PEER" if not_ready => settings.recovery_retry_delay_state_sync(),
            "PEER" => settings.recovery_retry_delay_network(),
            _ => Duration::ZERO,
        };
        let delay = if delay.is_zero() { Backoff::FOLLOWER } else { Backoff::Fixed { delay } };
        let wait = delay.delay(self.count, service.core.env.random_u64());
        service.core.env.sleep(wait.max(Duration::from_millis(20))).await;
        Ok(())
    }
}
