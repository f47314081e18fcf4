//! The copy that takes the place of a primary that is moved: it has what the primary keeps for others, and has the
//! primary hand over.

use std::time::Duration;

use policy::failures::{Action, Component, GONE, action};
use policy::retention::Leases;
use store::{Operation, Shard};

use super::operations::read_ops;
use super::source_session::{SourceSession, TransferError};
use super::target::Recovery;
use crate::planted;
use crate::replication::{set_leases, take_over};
use crate::transport::{
    CallError, Class, Failure, PrimaryContext, Request, Response, Result, unexpected,
};

/// How long a target waits until the primary has handed over: longer than that waits for its operations.
const HAND_OFF_TIMEOUT: Duration = Duration::from_secs(60);
/// The error that ends a recovery, and with it the move.
const FAILED: &str = "recovery_failed_exception";

impl Recovery {
    /// A copy that becomes the primary without a loss has for followers what the primary kept for them, also where its
    /// files hold it already: as soft deletes in the field. What is not there any more is not waited for.
    pub(super) async fn keep_history(
        &self,
        source: &SourceSession,
        store: &Shard,
        leases: &Leases,
    ) -> Result<(), TransferError> {
        let lowest = leases.iter().map(|(_, lease)| lease.retaining_seq_no).min();
        let end = store.log_complete_from();
        let Some(begin) = lowest.filter(|lowest| *lowest < end) else { return Ok(()) };
        let mut from = begin;
        while from < end {
            let request = read_ops(source, from);
            let mut ops = match source.ask(&self.service, Class::Recovery(0), request).await {
                Ok(Response::Ops { ops, .. }) => ops,
                Err(CallError::Failed(failure)) if failure.kind == GONE => return Ok(()),
                Ok(_) => return Err(unexpected().into()),
                Err(error) => return Err(error.into()),
            };
            let Some(last) = ops.last().map(Operation::last_seq_no) else { return Ok(()) };
            ops.retain(|op| op.seq_no < end);
            from = last + 1;
            store.keep_history(ops, (from >= end).then_some(begin)).await?;
        }
        store.flush().await?;
        Ok(())
    }

    /// Has the primary hand over. Where its answer is lost, or something fails after it, the whole move is given up at
    /// once, as the primary takes no writes until the manager has decided.
    pub(super) async fn take_over(&self, source: &SourceSession, store: &Shard) -> Result<()> {
        let core = &self.service.core;
        if core.env.is_planted(planted::STARTED_BEFORE_HAND_OFF) {
            self.shard.take_over(self.shard.term(), Default::default());
            return Ok(());
        }
        let request = Request::HandOff {
            index_uuid: self.shard.index_uuid.clone(),
            shard: self.shard.number,
            allocation_id: self.shard.allocation_id.clone(),
        };
        match core.call(&source.address, Class::Control, request, HAND_OFF_TIMEOUT).await {
            Ok(Response::HandedOff(context)) => {
                self.take_what_it_had(source, store, *context).await.map_err(ending_the_move)
            }
            Ok(_) => Err(unexpected()),
            Err(CallError::Failed(failure)) => Err(failure),
            Err(lost) => {
                let reason = format!("nobody knows whether the primary has handed over: {lost}");
                Err(Failure::new(409, FAILED, reason))
            }
        }
    }

    /// Takes over what the primary had, which has handed over.
    async fn take_what_it_had(
        &self,
        source: &SourceSession,
        store: &Shard,
        context: PrimaryContext,
    ) -> Result<()> {
        // Those of followers that began meanwhile are among its leases. It retains what they need, and takes no writes.
        // Here they come first, or the next flush lets go what is kept for them.
        // From now on those that the source sent earlier, and that come late, are refused.
        self.shard.take_over(context.primary_term, Default::default());
        set_leases(&self.shard, store, context.leases.clone());
        let kept = self.keep_history(source, store, &context.leases).await;
        kept.map_err(|error| {
            let reason = format!("what leases retain could not be read: {error}");
            Failure::new(409, FAILED, reason)
        })?;
        take_over(&self.service.core, &self.shard, store, context).await
    }
}

/// Nothing is tried again after a hand-off: the primary takes no writes until the manager has given the move up.
fn ending_the_move(failure: Failure) -> Failure {
    match action(Component::Recovery, failure.error_kind()) {
        Action::TryAgain => Failure::new(409, FAILED, failure.reason),
        _ => failure,
    }
}
