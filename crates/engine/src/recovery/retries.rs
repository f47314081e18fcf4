//! A recovery that failed is tried again, until it has received nothing for a while.

use std::time::Duration;

use policy::backoff::Backoff;
use record::Limit;
use world::Time;

use super::source_session::TransferError;
use super::target::Recovery;
use super::transfer::as_failure;
use crate::transport::{CallError, Failure};

/// A recovery is given up when it has received nothing for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// When to try again, and when to give up.
pub(super) struct Retries {
    count: u32,
    since_progress: Time,
    recovered_bytes: u64,
    kept_ops: u64,
}

impl Retries {
    pub(super) fn new(recovery: &Recovery) -> Self {
        Retries { count: 0, since_progress: recovery.now(), recovered_bytes: 0, kept_ops: 0 }
    }

    /// Waits before the next try; fails where there is to be none.
    pub(super) async fn after(
        &mut self,
        recovery: &Recovery,
        error: TransferError,
    ) -> Result<(), Failure> {
        let failure = as_failure(&error);
        let now = recovery.now();
        let (_, recovered) = recovery.progress.bytes();
        let kept = recovery.progress.kept_ops.get();
        if recovered > self.recovered_bytes || kept > self.kept_ops {
            (self.count, self.since_progress) = (0, now);
            (self.recovered_bytes, self.kept_ops) = (self.recovered_bytes.max(recovered), kept);
        }
        if !error.is_tried_again() || now - self.since_progress > PATIENCE {
            let (files, came) = recovery.progress.bytes();
            let reason = format!("{} (after {came} of {files} bytes)", failure.reason);
            return Err(Failure { reason, ..failure });
        }
        self.count += 1;
        let progress = &recovery.progress;
        progress.shown.borrow_mut().retries += 1;
        progress.shown.borrow_mut().failure = Some(failure.reason);
        progress.accounting.borrow_mut().set_idle(now, Limit::Latency);
        let service = &recovery.service;
        let settings = service.core.settings();
        // A refusal passes soon: the primary may not know yet that it is started, for example.
        let not_ready = matches!(error, TransferError::Call(CallError::Failed(_)));
        let delay = match recovery.progress.shown.borrow().kind.as_str() {
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
