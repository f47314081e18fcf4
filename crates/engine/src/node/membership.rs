//! A member's side: joins, and joins again when the manager forgot it.

use std::time::Duration;

use super::{MANAGER_TIMEOUT, Node, unexpected};
use crate::error::Error;
use crate::state::{self, Event};
use crate::transport::{Class, Failure, Request, Response};

const HEARTBEAT_EVERY: Duration = Duration::from_millis(500);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a starting node waits for a manager that is not there yet.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
const JOIN_RETRY: Duration = Duration::from_millis(100);

/// Joins the cluster.
pub(super) async fn join(node: &Node) -> Result<(), Error> {
    let give_up = node.env.now() + JOIN_PATIENCE;
    loop {
        match try_join(node).await {
            Ok(()) => return Ok(()),
            Err(failure) if failure.status == 503 && node.env.now() < give_up => {
                node.env.sleep(JOIN_RETRY).await;
            }
            Err(failure) => {
                let node = node.config.name.clone();
                return Err(Error::Join { node, reason: failure.reason });
            }
        }
    }
}

async fn try_join(node: &Node) -> Result<(), Failure> {
    let found = node.disk.found_copies().await;
    let state = match (&node.manager, &node.config.manager) {
        (Some(manager), _) => {
            let me = state::Node {
                name: node.row.name.clone(),
                transport_address: node.row.transport.clone(),
                http_address: node.row.http.clone(),
            };
            manager.submit(node, Event::NodeJoined { node: me, found }).await?
        }
        (None, Some(address)) => {
            let request = Request::Join(node.row.clone(), found);
            let answer = node.pool.call(address, Class::Control, request, MANAGER_TIMEOUT).await;
            match answer? {
                Response::State(state) => state,
                _ => return Err(unexpected()),
            }
        }
        (None, None) => unreachable!("a node without a manager's address is the manager"),
    };
    node.accept_state(state);
    Ok(())
}

/// Tells the manager again and again that this node is there.
pub(super) async fn stay(node: Node) {
    let Some(address) = node.config.manager.clone() else { return };
    loop {
        node.env.sleep(HEARTBEAT_EVERY).await;
        let request = Request::Heartbeat(node.config.name.clone());
        let beat = node.pool.call(&address, Class::Control, request, HEARTBEAT_TIMEOUT).await;
        if let Err(crate::transport::CallError::Failed(_)) = beat {
            // What ran under the old membership is brought up anew from what is on disk.
            let shards = std::mem::take(&mut *node.shards.borrow_mut());
            for shard in shards.into_values() {
                shard.close().await;
            }
            let _ = try_join(&node).await;
        }
    }
}
