//! The parts that a node is made of.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use world::{LocalFuture, Time};

use super::manager::Manager;
use super::stored_indices::StoredIndices;
use crate::core::Core;
use crate::following::{AutoFollowing, FollowService, FollowTasks};
use crate::recovery::RecoveryService;
use crate::remote::RemoteClusterService;
use crate::search::SearchService;
use crate::shard::ShardKey;
use crate::state::ClusterState;
use crate::transport::{Failure, Request, Response, Result, unexpected};

/// A running node. Clones share it.
#[derive(Clone)]
pub struct Node {
    pub(super) parts: Rc<Parts>,
}

/// What the clones of a [`Node`] share.
pub(super) struct Parts {
    pub(super) core: Rc<Core>,
    /// On the node that manages.
    pub(super) manager: Option<Manager>,
    pub(super) manager_seen: Cell<ManagerSeen>,
    pub(super) remotes: Rc<RemoteClusterService>,
    pub(super) search: Rc<SearchService>,
    pub(super) recovery: Rc<RecoveryService>,
    pub(super) following: Rc<FollowService>,
    pub(super) follow_tasks: FollowTasks,
    pub(super) auto_following: Rc<AutoFollowing>,
    /// Copies on the disk that are not open, also what was left of some: they may be deleted once nobody needs them.
    pub(super) closed_copies: RefCell<BTreeSet<ShardKey>>,
    pub(super) stored_indices: Rc<StoredIndices>,
    pub(super) stopping: Cell<bool>,
}

/// What a node knows of its manager.
#[derive(Clone, Copy, Debug)]
pub(super) enum ManagerSeen {
    /// When it last answered.
    At(Time),
    /// It has not answered since.
    LostSince(Time),
}

impl Node {
    /// What its features share: its world, its configuration, the cluster state, its connections.
    pub fn core(&self) -> &Rc<Core> {
        &self.parts.core
    }

    /// The cluster state as it knows it.
    pub fn state(&self) -> Arc<ClusterState> {
        self.core().state()
    }

    /// Its searches.
    pub fn search(&self) -> &Rc<SearchService> {
        &self.parts.search
    }

    /// Its remote clusters.
    pub fn remotes(&self) -> &Rc<RemoteClusterService> {
        &self.parts.remotes
    }

    /// What follows on it.
    pub fn following(&self) -> &Rc<FollowService> {
        &self.parts.following
    }

    /// Why nothing can be changed and the state may be old: the manager does not answer. None while it does.
    pub fn manager_missing(&self) -> Option<Failure> {
        match self.parts.manager_seen.get() {
            ManagerSeen::At(_) => None,
            ManagerSeen::LostSince(since) => {
                let seconds = (self.core().env.now() - since).as_secs();
                Some(self.core().no_manager(&format!("has not answered for {seconds} s")))
            }
        }
    }

    /// What came of auto-following, which the manager knows; it is not waited for longer than `limit`.
    pub fn auto_follow_stats(&self, limit: Duration) -> LocalFuture<'_, Result<serde_json::Value>> {
        Box::pin(async move {
            if self.parts.manager.is_some() {
                return Ok(self.parts.auto_following.to_json());
            }
            match self.core().ask_manager(Request::AutoFollowStats, limit).await? {
                Response::Json(text) => serde_json::from_str(&text).map_err(|_| unexpected()),
                _ => Err(unexpected()),
            }
        })
    }

    /// Cuts the node off from other nodes and clients, or heals that. Connections stay open without an error, and
    /// messages that were under way arrive once it is healed.
    pub fn cut_off(&self, cut: bool) {
        self.core().pool.partition().cut(cut);
    }

    /// Waits while the node is cut off: for whoever carries requests of clients.
    pub async fn passes(&self) {
        self.core().pool.partition().passes().await;
    }

    /// Slows the node's computations by a factor; 1 is the normal speed. Does nothing in the virtual world, where the
    /// host is slowed instead (`Env::set_host_model`).
    pub fn slow_down(&self, factor: f64) {
        self.core().env.slow_down(factor);
    }

    /// Has every search of a copy here fail at once, or no longer.
    pub fn fail_searches(&self, fails: bool) {
        self.parts.search.fails.set(fails);
    }

    /// Where other nodes reach it.
    pub fn transport_address(&self) -> &str {
        &self.core().row.transport
    }

    /// Where REST is served.
    pub fn http_address(&self) -> &str {
        &self.core().row.http
    }

    /// Where the files of a copy are, on this node.
    pub fn copy_dir(&self, index_uuid: &str, shard: u32) -> std::path::PathBuf {
        self.core().disk.copy_dir(index_uuid, shard)
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.core().name()
    }
}
