//! A session on the node that is read, as the node that recovers reaches it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use policy::failures::{Action, Component, action};
use policy::transfer::chunk_scheduler::SchedulerConfig;

use super::service::RecoveryService;
use crate::core::Throttle;
use crate::settings::Scheduler;
use crate::shard::{Progress, Stage};
use crate::transport::{CallError, Class, Failure, Request, Response};

/// Why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    /// The source did not answer, or refused.
    #[error("the source {0}")]
    Call(#[from] CallError),
    /// The target's own store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Failure> for TransferError {
    fn from(failure: Failure) -> Self {
        TransferError::Call(CallError::Failed(failure))
    }
}

impl TransferError {
    /// Whether the same recovery tries again.
    pub(crate) fn is_tried_again(&self) -> bool {
        let kind = match self {
            TransferError::Call(error) => error.error_kind(),
            TransferError::Store(error) => error.kind(),
        };
        action(Component::Recovery, kind) == Action::TryAgain
    }
}

/// A session, as the target reaches it.
#[derive(Clone)]
pub(crate) struct SourceSession {
    pub(crate) address: String,
    pub(crate) session: u64,
    /// Alias of the remote cluster, where the source is in one.
    pub(crate) remote: Option<String>,
    /// Shortest round trip seen, shared with the task that measures it.
    pub(crate) round_trip: Rc<Cell<Duration>>,
}

impl SourceSession {
    /// The limiter of this node that it is subject to.
    pub(crate) fn throttle(&self) -> Throttle {
        match self.remote {
            Some(_) => Throttle::Ccr,
            None => Throttle::Peer,
        }
    }

    pub(crate) async fn ask(
        &self,
        service: &Rc<RecoveryService>,
        class: Class,
        request: Request,
    ) -> Result<Response, CallError> {
        let settings = service.core.settings();
        let limit = match self.remote {
            Some(_) => settings.ccr_internal_action_timeout(),
            None => settings.recovery_internal_action_timeout(),
        };
        service.core.call(&self.address, class, request, limit).await
    }

    /// Connections that may carry the transfer. Only the adaptive scheduler opens more than are configured.
    pub(crate) fn connections_max(&self, service: &Rc<RecoveryService>) -> u32 {
        let settings = service.core.settings();
        match settings.recovery_scheduler() {
            Scheduler::Adaptive => settings.recovery_connections_max(),
            _ => settings.transport_recovery_connections(),
        }
    }

    /// How chunks are chosen, as the settings are now.
    pub(crate) fn scheduler(&self, service: &Rc<RecoveryService>) -> SchedulerConfig {
        let (settings, sharing) = (service.core.settings(), running(service));
        let (chunk_bytes, max_concurrent) = match self.remote {
            Some(_) => {
                (settings.ccr_chunk_size(), settings.ccr_max_concurrent_file_chunks() as usize)
            }
            None => (
                settings.recovery_chunk_size(),
                settings.recovery_max_concurrent_file_chunks() as usize,
            ),
        };
        match settings.recovery_scheduler() {
            Scheduler::Sequential => SchedulerConfig::FileWindow { chunk_bytes, max_concurrent: 1 },
            Scheduler::ParallelFiles => {
                SchedulerConfig::ParallelFiles { chunk_bytes, max_concurrent }
            }
            Scheduler::Field | Scheduler::FileWindow => {
                SchedulerConfig::FileWindow { chunk_bytes, max_concurrent }
            }
            Scheduler::Adaptive => {
                let memory_max_bytes = settings.recovery_memory_max() / sharing.max(1) as u64;
                SchedulerConfig::Adaptive { memory_max_bytes }
            }
        }
    }
}

/// Recoveries that copy to this node now; they share its memory.
fn running(service: &Rc<RecoveryService>) -> usize {
    let shards = service.core.shards.borrow();
    let copying = |p: &Rc<Progress>| p.stage() <= Stage::Index;
    shards.values().filter(|shard| shard.progress().as_ref().is_some_and(copying)).count()
}
