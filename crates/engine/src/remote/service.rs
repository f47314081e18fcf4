//! What a node keeps of remote clusters.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use world::Task;

use super::forwarding::Forwarding;
use super::sniffed::Sniffed;
use crate::core::Core;
use crate::state::IndexMeta;
use crate::transport::{CallError, RemoteIndex, Response, Result};

/// What a node knows of remote clusters, and what it told them of this one.
pub struct RemoteClusterService {
    pub(super) core: Rc<Core>,
    pub(super) by_alias: RefCell<BTreeMap<String, Known>>,
    /// Where the nodes of each are.
    pub(super) sniffed: RefCell<BTreeMap<String, Sniffed>>,
    /// By alias: a node of the cluster did not answer, so that the cluster is to be asked where its nodes are.
    pub(super) missed: RefCell<BTreeMap<String, Rc<Notify>>>,
    /// The address of each that answered last.
    pub(super) answered: RefCell<BTreeMap<String, String>>,
    pub(super) keeping: RefCell<Option<Task<()>>>,
    /// On a leader: its indices as they were described last, each with its description.
    pub(super) described: RefCell<Described>,
    /// On a leader: requests that it passes on.
    pub(crate) forwarding: Forwarding,
}

/// A remote cluster's indices, as they were at a version of its state.
pub(super) struct Known {
    pub(super) version: u64,
    pub(super) indices: BTreeMap<String, Arc<RemoteIndex>>,
}

pub(super) type Described = BTreeMap<String, (Arc<IndexMeta>, Arc<RemoteIndex>)>;

impl RemoteClusterService {
    pub(crate) fn new(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(RemoteClusterService {
            core: core.clone(),
            by_alias: RefCell::default(),
            sniffed: RefCell::default(),
            missed: RefCell::default(),
            answered: RefCell::default(),
            keeping: RefCell::default(),
            described: RefCell::default(),
            forwarding: Forwarding::new(),
        })
    }

    /// Stops asking.
    pub(crate) async fn stop(&self) {
        let task = self.keeping.borrow_mut().take();
        if let Some(task) = task {
            task.cancel().await;
        }
    }

    /// What an index was when the cluster was last asked.
    pub(crate) fn index(&self, alias: &str, name: &str) -> Option<Arc<RemoteIndex>> {
        self.by_alias.borrow().get(alias)?.indices.get(name).cloned()
    }

    /// A node of a remote cluster did not answer: the cluster is asked again soon where its nodes are. Where the seeds
    /// lead to every node, there is nothing to learn.
    pub(crate) fn sniff_again(&self, alias: &str) {
        if self.sniffed.borrow().get(alias).is_some_and(Sniffed::knows_more_than_seeds)
            && let Some(missed) = self.missed.borrow().get(alias)
        {
            missed.notify_one();
        }
    }

    /// Notes which node answered at a seed.
    pub(super) fn note_seed(&self, alias: &str, seed: &str, answer: &Result<Response, CallError>) {
        let node = match answer {
            Ok(Response::Hello(row)) => Some(row.transport.clone()),
            _ => None,
        };
        if let Some(known) = self.sniffed.borrow_mut().get_mut(alias) {
            known.note_seed(seed, node);
        }
    }

    pub(super) fn version(&self, alias: &str) -> Option<u64> {
        self.by_alias.borrow().get(alias).map(|known| known.version)
    }
}
