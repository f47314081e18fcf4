//! A copy that gets its documents from the primary: by files and operations, or by operations alone.

use std::time::Duration;

use store::Shard;

use super::left_copy::LeftCopy;
use super::retries::Retries;
use super::session_opening::{PrefetchedChunks, Wanted};
use super::source_session::{SourceSession, TransferError};
use super::target::Recovery;
use super::transfer::WAITS_FOR_ANSWER;
use crate::core::warn;
use crate::planted;
use crate::replication::{set_leases, take_newer_leases};
use crate::shard::Stage;
use crate::transport::{
    CallError, Class, Failure, Request, Response, SessionKind, SessionOpened, unexpected,
};

/// How long a copy waits for operations that are on their way to it, and how often it looks.
const OPS_PATIENCE: Duration = Duration::from_secs(10);
const OPS_LOOK: Duration = Duration::from_millis(5);

impl Recovery {
    pub(super) async fn recover_from_peer(&self, from_node: &str) -> Result<(), Failure> {
        self.progress.shown.borrow_mut().source = Some(from_node.to_owned());
        let left = LeftCopy::find(&self.service.core, &self.shard).await?;
        let mut store = self.own_store().await?;
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
    /// that its commit knows, up to which every copy in sync has the same, whoever is the primary since. An index that
    /// has followed does not know that: its primaries may have numbered anew what this copy has of the leader.
    async fn own_store(&self) -> Result<Option<Shard>, Failure> {
        let Some(metadata) = self.metadata().await? else { return Ok(None) };
        let is_planted = self.service.core.env.is_planted(planted::OWN_COPY_TRUSTED);
        let is_of_term = metadata.primary_term == self.shard.term() || self.follows() || is_planted;
        let Ok((mapping, options)) = self.options() else { return Ok(None) };
        let store = match self.open_here(&mapping, &options).await {
            Ok(store) => store,
            Err(error) => {
                let core = &self.service.core;
                let words = format!("{error}; the primary is asked for the files of this copy");
                warn(&core.env, core.name(), &words);
                return Ok(None);
            }
        };
        let meta = self.shard.meta(&self.service.core.state());
        let is_known = meta.is_some_and(|meta| meta.knows_its_checkpoints())
            && store.max_seq_no() <= store.global_checkpoint();
        let is_in_history = is_of_term || is_known;
        Ok((is_in_history && metadata.is_of(store.history_uuid())).then_some(store))
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
        self.progress.shown.borrow_mut().source_address = Some(address.clone());
        let has = own.as_ref().map(|store| {
            (store.history_uuid().to_owned(), store.local_checkpoint().map_or(0, |seq| seq + 1))
        });
        let allocation_id = self.shard.allocation_id.clone();
        let index_uuid = self.shard.index_uuid.clone();
        let retries = self.progress.shown.borrow().retries;
        let kind = SessionKind::Peer { index_uuid, allocation_id, has, retries };
        let wanted = Wanted { index: self.shard.index.clone(), shard: self.shard.number, kind };
        let source = self.source(address, None);
        let _pings = self.ping(&source);
        let (source, opened, prefetched) = self.open(vec![source], wanted).await?;
        let result = match left.and_then(|left| left.refuses(&opened)) {
            Some(failure) => Err(failure.into()),
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
    /// (`PeerRecoverySourceService.recover`). So do some primaries that move between other nodes.
    async fn wait_to_be_listed(&self, from_node: &str) {
        let settings = self.service.core.settings();
        let hears_last = |node: &str| settings.hearing_last().iter().any(|name| name == node);
        let asks_again = settings.recovery_retry_delay_state_sync();
        let moves = self.shard.takes_over();
        if hears_last(from_node) {
            let most = if moves { asks_again } else { Duration::MAX };
            self.spend(|costs| costs.unlisted_copy.min(most)).await;
        } else if moves && !hears_last(&self.service.core.config.name) && self.asks_too_early() {
            self.spend(|_| asks_again).await;
        }
    }

    /// Whether the source of a primary that moves has not applied the state yet when it is asked. Nodes are sent a
    /// state at the same time, so that this is a race in the field, and drawn in virtual time.
    fn asks_too_early(&self) -> bool {
        let env = &self.service.core.env;
        let share = env.virtual_host_model().map_or(0.0, |model| model.costs.unmarked_share);
        // What is drawn in vain would change all that is drawn after it.
        share > 0.0 && ((env.random_u64() >> 11) as f64 / (1u64 << 53) as f64) < share
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
                // The list of files.
                self.further_steps(source, 1).await?;
                self.copy_files(source, commit, prefetched).await?
            }
            // A source offers operations alone only to a target that has a store.
            None => own.clone().ok_or_else(unexpected)?,
        };
        *own = Some(store.clone());
        if opened.commit.is_some() {
            self.progress.accounting.borrow_mut().set_idle(self.now(), WAITS_FOR_ANSWER);
            // A retention lease, of which other copies hear, and the end of the files.
            self.further_steps(source, 1 + u32::from(self.has_another_in_sync())).await?;
        }
        set_leases(&self.shard, &store, opened.leases.clone());
        if self.shard.takes_over() {
            self.keep_history(source, &store, &opened.leases).await?;
        }
        self.shard.set_store(store.clone());
        self.progress.enter(self.now(), Stage::Translog, WAITS_FOR_ANSWER);
        let request = Request::StartTracking(source.session);
        let (max, leases) = match source.ask(&self.service, Class::Control, request).await? {
            Response::Tracked { max_seq_no, leases } => (max_seq_no, leases),
            _ => return Err(unexpected().into()),
        };
        if !opened.leases.is_empty() || !leases.is_empty() {
            take_newer_leases(&self.service.core, &self.shard, &store, leases).await?;
        }
        self.copy_ops(source, (&store, opened.commit.is_none()), max).await?;
        // The field sends one batch at least.
        let had_none = self.progress.shown.borrow().ops_total == 0;
        self.further_steps(source, u32::from(had_none)).await?;
        self.progress.enter(self.now(), Stage::Finalize, WAITS_FOR_ANSWER);
        self.join(source, &store).await?;
        self.shard.write_metadata(&self.service.core.disk).await?;
        if self.shard.takes_over() {
            self.take_over(source, &store).await?;
        }
        Ok(())
    }

    /// Makes steps that are none of this engine's, where each is asked for as in the field
    /// (`RecoverySourceHandler.recoverToTarget`): a round trip each.
    async fn further_steps(&self, source: &SourceSession, count: u32) -> Result<(), TransferError> {
        let count = if self.is_step_by_step(source) { count } else { 0 };
        for _ in 0..count {
            source.ask(&self.service, Class::Control, Request::Ping).await?;
        }
        Ok(())
    }

    /// Whether a copy is in sync besides the primary.
    fn has_another_in_sync(&self) -> bool {
        let routing = self.shard.routing(&self.service.core.state());
        routing.is_some_and(|routing| routing.assigned().filter(|copy| copy.in_sync).count() > 1)
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
                _ => return Err(unexpected().into()),
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
                    return Err(Failure::new(409, "recovery_failed_exception", reason).into());
                }
                self.service.core.env.sleep(OPS_LOOK).await;
            }
        }
    }
}
