//! The copy that recovers, from whatever source: what all kinds of recovery share, and what is told of their end.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use query::Mapping;
use record::Limit;
use store::{Commit, Incoming, Options, Shard};
use world::Time;
use world::model::CoreCosts;

use super::service::RecoveryService;
use super::session_opening::{self, PrefetchedChunks, Wanted};
use super::source_session::{SourceSession, TransferError};
use super::transfer::{WAITS_FOR_ANSWER, fetch_files, measure_round_trip};
use crate::core::Core;
use crate::planted;
use crate::replication::follows;
use crate::settings::CheckOnStartup;
use crate::shard::{CopyMetadata, LocalShard, Progress, Stage, store_durability};
use crate::state::{Event, RecoverySource};
use crate::transport::{Class, Failure, RecoveryState, Request, SessionOpened};
use policy::failures::ErrorKind;

/// How long a copy waits for work that its last opening left behind, which holds its directory.
const IN_USE_PATIENCE: Duration = Duration::from_secs(600);

/// Recovers a copy from the source that the state names, and tells the manager how that ended.
pub(crate) async fn recover(
    service: Rc<RecoveryService>,
    shard: Rc<LocalShard>,
    from: RecoverySource,
) {
    let began = service.core.env.now();
    let shown = RecoveryState {
        kind: from.kind().to_owned(),
        index: shard.index.clone(),
        shard: shard.number,
        primary: shard.is_primary() || shard.takes_over(),
        began_epoch_ms: service.core.env.epoch_ms(),
        target: service.core.config.name.clone(),
        target_address: service.core.row.transport.clone(),
        ..RecoveryState::default()
    };
    let idle = match from {
        RecoverySource::EmptyStore | RecoverySource::ExistingStore => Limit::DiskRead,
        RecoverySource::Peer { .. } | RecoverySource::Remote { .. } => WAITS_FOR_ANSWER,
    };
    let progress = Rc::new(Progress::new(began, shown, idle));
    *shard.progress.borrow_mut() = Some(progress.clone());
    service.note_recovery(&progress);
    let recovery =
        Recovery { service: service.clone(), shard: shard.clone(), progress: progress.clone() };
    // Nobody would hear of one that has panicked, and the copy would be recovering for ever.
    let result = service.core.env.caught(pin!(recovery.run(&from))).await;
    match result.unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(()) => {
            progress.enter(service.core.env.now(), Stage::Done, Limit::Latency);
            report_started(&service.core, &shard).await;
            if let Ok(store) = shard.store() {
                // What stays of an earlier try takes room, and goes after the next recovery.
                let _ = store.forget_received().await;
            }
        }
        Err(failure) => {
            progress.shown.borrow_mut().failure = Some(failure.reason.clone());
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
    async fn run(&self, from: &RecoverySource) -> Result<(), Failure> {
        let service = &self.service;
        match from {
            RecoverySource::EmptyStore => self.recover_from_nothing().await?,
            RecoverySource::ExistingStore => {
                self.spend(|costs| costs.open_copy).await;
                self.recover_from_disk().await?;
            }
            RecoverySource::Peer { from_node } => {
                let is_first = !service.has_copied.get();
                let first =
                    |costs: &CoreCosts| if is_first { costs.first_copy } else { Duration::ZERO };
                self.spend(|costs| costs.open_copy + first(costs)).await;
                self.recover_from_peer(from_node).await?;
                service.has_copied.set(true);
            }
            RecoverySource::Remote { cluster, index, shard } => {
                self.recover_from_remote(cluster, index, *shard).await?;
            }
        }
        self.refresh_recovered().await
    }

    pub(super) fn now(&self) -> Time {
        self.service.core.env.now()
    }

    pub(super) fn options(&self) -> Result<(Mapping, Options), Failure> {
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
        // The maintenance may have done so beside a write that came earlier than the rest.
        self.shard.on_request.set(false);
        if let Some(settings) = self.shard.settings_by(&self.service.core.state()) {
            self.shard.apply_refresh_interval(&self.shard.store()?, &settings).await?;
        }
        Ok(())
    }

    /// Opens the copy that is here. Work that its last opening left behind, such as a long merge, may still hold its
    /// directory; giving up for that would mean to replace a copy that is whole.
    pub(super) async fn open_here(
        &self,
        mapping: &Mapping,
        options: &Options,
    ) -> store::Result<Shard> {
        let give_up = self.now() + IN_USE_PATIENCE;
        loop {
            let env = &self.service.core.env;
            match Shard::open(env, &self.dir(), mapping, options.clone()).await {
                // The store has waited a few seconds itself.
                Err(error @ store::Error::InUse { .. }) if self.now() < give_up => {
                    self.progress.shown.borrow_mut().failure = Some(error.to_string());
                }
                opened => {
                    self.progress.shown.borrow_mut().failure = None;
                    return opened;
                }
            }
        }
    }

    /// Where the copy's files are.
    pub(super) fn dir(&self) -> std::path::PathBuf {
        self.service.core.disk.copy_dir(&self.shard.index_uuid, self.shard.number)
    }

    pub(super) fn follows(&self) -> bool {
        follows(&self.service.core.state(), &self.shard.index)
    }

    /// Spends the time that a step takes which is not modelled by itself. The real world takes its own time.
    pub(super) async fn spend(&self, cost: impl Fn(&CoreCosts) -> Duration) {
        let model = self.service.core.env.virtual_host_model();
        let time = model.map(|model| cost(&model.costs)).filter(|time| !time.is_zero());
        if let Some(time) = time {
            self.service.core.env.sleep(time).await;
        }
    }

    /// What was written beside the files that are here.
    pub(super) async fn metadata(&self) -> Result<Option<CopyMetadata>, Failure> {
        self.shard.read_metadata(&self.service.core.disk).await
    }

    /// Whether each step is asked for by itself, as in the field.
    pub(super) fn is_step_by_step(&self, source: &SourceSession) -> bool {
        source.remote.is_none() && self.service.core.settings().recovers_step_by_step()
    }

    /// Opens a session. Where the directory is empty, the first chunks are asked for with it.
    pub(super) async fn open(
        &self,
        sources: Vec<SourceSession>,
        wanted: Wanted,
    ) -> Result<(SourceSession, SessionOpened, PrefetchedChunks), TransferError> {
        let service = &self.service;
        let config = match sources.first() {
            Some(source)
                if !self.is_step_by_step(source)
                    && !store::holds_anything(&service.core.env, &self.dir()).await? =>
            {
                Some(source.scheduler(service))
            }
            _ => None,
        };
        session_opening::open(service, sources, wanted, config).await
    }

    pub(super) fn source(&self, address: String, remote: Option<String>) -> SourceSession {
        let known = self.service.core.round_trip(&address);
        let round_trip = Rc::new(Cell::new(known.unwrap_or_default()));
        SourceSession { address, session: 0, remote, round_trip }
    }

    pub(super) fn ping(&self, source: &SourceSession) -> world::Task<()> {
        let task = measure_round_trip(self.service.clone(), source.clone());
        self.service.core.env.spawn("measures the round trip", task)
    }

    /// Closes the session at the source; if the message is lost, the source closes it after a while.
    pub(super) fn end_session(&self, source: &SourceSession) {
        let (service, source) = (self.service.clone(), source.clone());
        self.service.core.keep("closes a session", async move {
            let request = Request::CloseSession(source.session);
            let _ = source.ask(&service, Class::Control, request).await;
        });
    }

    /// Copies the files and opens them.
    pub(super) async fn copy_files(
        &self,
        source: &SourceSession,
        commit: &Commit,
        prefetched: PrefetchedChunks,
    ) -> Result<Shard, TransferError> {
        let env = &self.service.core.env;
        self.progress.enter(self.now(), Stage::Index, WAITS_FOR_ANSWER);
        let incoming = Rc::new(Incoming::begin(env, &self.dir(), commit.clone()).await?);
        let coming = (0..commit.files.len()).filter(|file| !incoming.is_finished(*file)).count();
        fetch_files(&self.service, source, &self.progress, (commit, &incoming), prefetched).await?;
        self.progress.enter(self.now(), Stage::VerifyIndex, Limit::DiskWrite);
        self.spend(|costs| costs.each_file * u32::try_from(coming).unwrap_or(u32::MAX)).await;
        let (mapping, options) = self.options()?;
        Ok(Rc::unwrap_or_clone(incoming).install(&mapping, options).await?)
    }
}
