//! A member's side: joins, and joins again when the manager forgot it.

use std::time::Duration;

use world::Time;

use super::{MANAGER_TIMEOUT, Node, unexpected};
use crate::error::Error;
use crate::state::{self, Event};
use crate::transport::{CallError, Class, Failure, Request, Response};

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
    let keys = found.iter().map(|copy| (copy.index_uuid.clone(), copy.shard));
    node.kept.replace(keys.collect());
    let state = match (&node.manager, &node.config.manager) {
        (Some(manager), _) => {
            let me = state::Node {
                name: node.row.name.clone(),
                transport_address: node.row.transport.clone(),
                http_address: node.row.http.clone(),
            };
            manager.submit(Event::NodeJoined { node: me, found }).await?
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
    node.heard_manager();
    Ok(())
}

/// What a node knows of its manager.
#[derive(Clone, Copy, Debug)]
pub(super) enum ManagerSeen {
    /// It was there at that moment.
    At(Time),
    /// It has not answered since.
    LostSince(Time),
}

impl Node {
    /// Notes that the manager is there and counts this node in.
    pub(super) fn heard_manager(&self) {
        self.manager_seen.set(ManagerSeen::At(self.env.now()));
    }

    fn lost_manager(&self) {
        if let ManagerSeen::At(_) = self.manager_seen.get() {
            self.manager_seen.set(ManagerSeen::LostSince(self.env.now()));
            // Whoever waits for a state waits in vain.
            self.state_changed.notify_waiters();
        }
    }

    /// Why nothing can be changed and the state may be old: the manager does not answer. None while it does.
    pub(crate) fn manager_missing(&self) -> Option<Failure> {
        match self.manager_seen.get() {
            ManagerSeen::At(_) => None,
            ManagerSeen::LostSince(since) => {
                let seconds = (self.env.now() - since).as_secs();
                Some(self.no_manager(&format!("has not answered for {seconds} s")))
            }
        }
    }

    pub(super) fn no_manager(&self, what: &str) -> Failure {
        let name = self.config.members.first().map_or("", String::as_str);
        let address = self.config.manager.as_deref().unwrap_or_default();
        let reason = format!(
            "the cluster manager [{name}] at {address} {what}; \
             membership is static and no other node takes over: start it again"
        );
        Failure::new(503, "master_not_discovered_exception", reason)
    }
}

/// Asks the manager whether this node still counts in, unless the manager has shown that by itself.
pub(super) async fn stay(node: Node) {
    let Some(address) = node.config.manager.clone() else { return };
    loop {
        let settings = node.settings();
        node.env.sleep(settings.leader_check_interval()).await;
        // A node that the manager has checked lately need not ask whether it is known. Longer than from one check
        // to the next.
        let known_for = settings.follower_check_interval() * 3 / 2;
        if let ManagerSeen::At(at) = node.manager_seen.get()
            && node.env.now() - at < known_for
        {
            continue;
        }
        let request = Request::Heartbeat(node.config.name.clone());
        let beat = node.pool.call(&address, Class::Control, request, HEARTBEAT_TIMEOUT).await;
        match beat {
            Ok(_) => node.heard_manager(),
            Err(CallError::Broken { .. } | CallError::Timeout { .. }) => node.lost_manager(),
            Err(CallError::Failed(_)) => {
                // What ran under the old membership is brought up anew from what is on disk.
                node.inner.reconciles_all.set(true);
                let shards = std::mem::take(&mut *node.shards.borrow_mut());
                for shard in shards.into_values() {
                    shard.close().await;
                }
                let _ = try_join(&node).await;
            }
        }
    }
}
