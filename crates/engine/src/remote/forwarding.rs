//! A node that another cluster reaches this one through passes on what is for other nodes (the field's proxy action).

use std::time::Duration;

use tokio::sync::Semaphore;

use crate::core::Core;
use crate::transport::{CallError, Class, Failure, Reply, Request, Result};

/// Requests that a node passes on at once. Each may hold a chunk until its answer is sent.
const FORWARDS_MAX: usize = 1000;
/// How long one is waited for, at most: a follower that hears nothing new asks for ten minutes at once.
const LIMIT_MAX: Duration = Duration::from_secs(15 * 60);

/// On a leader: what its node passes on.
pub(crate) struct Forwarding {
    free: Semaphore,
}

impl Forwarding {
    pub(super) fn new() -> Self {
        Forwarding { free: Semaphore::new(FORWARDS_MAX) }
    }

    /// Asks the node at `to`, which is one of this cluster.
    pub(crate) async fn forward(
        &self,
        core: &Core,
        (to, class): (String, Class),
        request: Request,
        limit: Duration,
    ) -> Result<Reply> {
        let name = core.name();
        if !is_for_others(&request) {
            let reason =
                format!("node [{name}] does not pass on this kind of request for another cluster");
            return Err(Failure::new(400, "illegal_argument_exception", reason));
        }
        if to == core.row.transport {
            return (core.upward().dispatch)(request).await;
        }
        let Ok(_running) = self.free.try_acquire() else {
            let reason = format!(
                "node [{name}] passes on {FORWARDS_MAX} requests for others already; try again"
            );
            return Err(Failure::new(429, "es_rejected_execution_exception", reason));
        };
        let state = core.state();
        let Some(node) = state.present_nodes().find(|node| node.transport_address == to) else {
            let reason = format!(
                "node [{name}] was to pass it on to [{to}], which is no node of its cluster now"
            );
            return Err(gone(reason));
        };
        let class = match class {
            Class::Recovery(number) => {
                Class::Recovery(number % core.settings().transport_recovery_connections().max(1))
            }
            Class::Proxied(_) => Class::Control,
            class => class,
        };
        match core.pool.call(&to, class, request, limit.min(LIMIT_MAX)).await {
            Ok(response) => Ok(response.into()),
            Err(CallError::Failed(failure)) => Err(failure),
            Err(error) => {
                Err(gone(format!("node [{name}] could not pass it on to [{}]: {error}", node.name)))
            }
        }
    }
}

fn gone(reason: String) -> Failure {
    Failure::new(503, "node_disconnected_exception", reason)
}

/// What a follower asks of its leader. Anything else would give another cluster a way to each node.
fn is_for_others(request: &Request) -> bool {
    matches!(
        request,
        Request::Ping
            | Request::Hello
            | Request::RemoteIndex(_)
            | Request::RemoteIndices { .. }
            | Request::OpenSession { .. }
            | Request::ReadOpening { .. }
            | Request::ReadChunk { .. }
            | Request::VerifyFile { .. }
            | Request::ReadOps { .. }
            | Request::CloseSession(_)
            | Request::ReadChanges(_)
            | Request::Lease(_)
    )
}
