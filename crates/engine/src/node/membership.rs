//! A member's side: joins, and joins again when the manager forgot it.

use std::time::Duration;

use policy::failures::{Action, Component, action};
use world::LocalFuture;

use super::parts::{ManagerSeen, Node};
use crate::core::{MANAGER_TIMEOUT, warn};
use crate::error::Error;
use crate::shard::FoundOnDisk;
use crate::state::{self, Event};
use crate::transport::{CallError, Class, Failure, Request, Response, Result, unexpected};

const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a starting node waits for a manager that is not there yet.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
const JOIN_RETRY: Duration = Duration::from_millis(100);

/// Joins the cluster.
pub(super) async fn join(node: &Node) -> Result<(), Error> {
    let core = node.core();
    let give_up = core.env.now() + JOIN_PATIENCE;
    loop {
        match try_join(node).await {
            Ok(()) => return Ok(()),
            Err(failure) if may_pass(&failure) && core.env.now() < give_up => {
                core.env.sleep(JOIN_RETRY).await;
            }
            Err(failure) => {
                let node = core.config.name.clone();
                return Err(Error::Join { node, reason: failure.reason });
            }
        }
    }
}

fn may_pass(failure: &Failure) -> bool {
    action(Component::Join, failure.error_kind()) == Action::TryAgain
}

async fn try_join(node: &Node) -> Result<()> {
    let core = node.core();
    let found = core.disk.found_copies(core.name()).await;
    let FoundOnDisk { copies: found, unsigned, unreadable } =
        found.map_err(|error| Failure::new(500, "illegal_state_exception", error.to_string()))?;
    unreadable.iter().for_each(|words| warn(&core.env, core.name(), words));
    let keys = found.iter().map(|copy| (copy.index_uuid.clone(), copy.shard));
    // Those without metadata are deleted as any copy that nobody needs: once their shard is complete elsewhere.
    node.parts.closed_copies.replace(keys.chain(unsigned).collect());
    // A state that was heard before was compared without these copies: where their index was deleted in it, no later
    // change names that. Copies that were open under an old membership are opened anew from the disk.
    core.published.reconcile_all.set(true);
    let state = match (&node.parts.manager, &core.config.manager) {
        (Some(manager), _) => {
            let me = state::Node {
                name: core.row.name.clone(),
                transport_address: core.row.transport.clone(),
                http_address: core.row.http.clone(),
                attributes: core.row.attributes.clone(),
            };
            manager.submit(Event::NodeJoined { node: me, found }).await?
        }
        (None, Some(address)) => {
            let request = Request::Join(Box::new(core.row.clone()), found);
            let answer = core.pool.call(address, Class::Control, request, MANAGER_TIMEOUT).await;
            match answer? {
                Response::State(state) => state,
                _ => return Err(unexpected()),
            }
        }
        (None, None) => unreachable!("a node without a manager's address is the manager"),
    };
    core.accept_state(state);
    node.heard_manager();
    Ok(())
}

impl Node {
    /// Notes that the manager is there and counts this node in.
    pub(super) fn heard_manager(&self) {
        self.parts.manager_seen.set(ManagerSeen::At(self.core().env.now()));
    }

    /// Makes sure that this node knows what the manager published last: for questions that the field's nodes pass on to
    /// their master. Fails as soon as this node knows that the manager does not answer, at the latest after `limit`.
    pub fn catch_up(&self, limit: Duration) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let core = self.core();
            let limit = limit.min(MANAGER_TIMEOUT);
            let lost = core.wait_for_state(limit, |_| self.manager_missing().is_some());
            tokio::select! {
                biased;
                done = core.catch_up() => done,
                _ = lost => Err(self.manager_missing().unwrap_or_else(|| core.no_manager("does not answer"))),
            }
        })
    }

    fn lost_manager(&self) {
        if let ManagerSeen::At(_) = self.parts.manager_seen.get() {
            self.parts.manager_seen.set(ManagerSeen::LostSince(self.core().env.now()));
            // Requests that wait for a new state must not wait any longer.
            self.core().published.changed.notify_waiters();
        }
    }
}

/// Asks the manager whether this node is still a member, unless the manager has checked it lately.
pub(super) async fn stay(node: Node) {
    let core = node.core();
    let Some(address) = core.config.manager.clone() else { return };
    let mut said = None;
    loop {
        let settings = core.settings();
        core.env.sleep(settings.leader_check_interval()).await;
        // Longer than from one check by the manager to the next.
        let known_for = settings.follower_check_interval() * 3 / 2;
        if let ManagerSeen::At(at) = node.parts.manager_seen.get()
            && core.env.now() - at < known_for
        {
            continue;
        }
        let request = Request::Heartbeat(core.config.name.clone());
        let beat = core.pool.call(&address, Class::Control, request, HEARTBEAT_TIMEOUT).await;
        match beat {
            Ok(_) => node.heard_manager(),
            Err(CallError::Broken { .. } | CallError::Timeout { .. }) => node.lost_manager(),
            Err(CallError::Failed(_)) => {
                let shards = std::mem::take(&mut *core.shards.borrow_mut());
                for shard in shards.into_values() {
                    shard.close().await;
                }
                // It is tried again with the next check.
                if let Err(failure) = try_join(&node).await
                    && !may_pass(&failure)
                    && said.as_ref() != Some(&failure)
                {
                    let words = format!("cannot join the cluster again: {failure}");
                    warn(&core.env, core.name(), &words);
                    said = Some(failure);
                }
            }
        }
    }
}
