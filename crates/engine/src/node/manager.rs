//! The cluster manager: the state, and the events that wait for their turn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};
use world::{Env, Time};

use crate::core::{NodeConfig, warn};
use crate::error::Error;
use crate::shard::{NodeDisk, StoredState};
use crate::state::{self, ClusterState, Event};
use crate::transport::{Failure, Result};

/// The answer to an event: the state after it.
pub(super) type Answer = Result<Arc<ClusterState>>;

/// The state, and the events that wait for their turn.
pub(crate) struct Manager {
    pub(super) state: RefCell<Arc<ClusterState>>,
    /// The last version that every node was sent, whether it got it or not.
    pub(super) published: Cell<u64>,
    pub(super) waiting: RefCell<Vec<(Event, oneshot::Sender<Answer>)>>,
    pub(super) came: Notify,
    /// When each member last asked to be counted in.
    joins: RefCell<BTreeMap<String, Time>>,
}

impl Manager {
    /// Reads the stored state, or begins a new one.
    pub(crate) async fn open(
        env: &Env,
        config: &NodeConfig,
        disk: &NodeDisk,
    ) -> Result<Manager, Error> {
        let StoredState { state: stored, damage } = disk.read_state(&config.name).await?;
        damage.iter().for_each(|words| warn(env, &config.name, words));
        let mut state = match stored {
            None => {
                let members = config.members.iter().map(|name| state::Node {
                    name: name.clone(),
                    transport_address: String::new(),
                    http_address: String::new(),
                    attributes: Default::default(),
                });
                // The ids of copies that are here already must not be given once more.
                let life = if disk.holds_copies(&config.name).await? { env.epoch_ms() } else { 0 };
                ClusterState::new(&config.cluster, members, || env.random_u64() ^ life)
            }
            Some(state) => Arc::unwrap_or_clone(state),
        };
        let refused = |error: state::StateError| Error::Join {
            node: config.name.clone(),
            reason: error.to_string(),
        };
        state::apply(&mut state, env.epoch_ms(), Event::ManagerRestarted).map_err(refused)?;
        let state = RefCell::new(Arc::new(state));
        let (published, waiting) = (Cell::default(), RefCell::default());
        let (came, joins) = (Notify::new(), RefCell::default());
        Ok(Manager { state, published, waiting, came, joins })
    }

    /// Handles an event: changes the state, stores it, and publishes it to every node that is there.
    pub(crate) async fn submit(&self, event: Event) -> Answer {
        self.put(event).await.unwrap_or_else(|_| {
            let reason = "the cluster manager stopped before it handled this; try again";
            Err(Failure::new(503, "node_closed_exception", reason))
        })
    }

    pub(super) fn put(&self, event: Event) -> oneshot::Receiver<Answer> {
        let (done, answered) = oneshot::channel();
        self.waiting.borrow_mut().push((event, done));
        self.came.notify_one();
        answered
    }

    pub(crate) fn state(&self) -> Arc<ClusterState> {
        self.state.borrow().clone()
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.state.borrow().present.contains(name)
    }

    /// Notes that a node asks to be counted in.
    pub(super) fn note_join(&self, now: Time, name: &str) {
        if self.state.borrow().members.contains_key(name) {
            self.joins.borrow_mut().insert(name.to_owned(), now);
        }
    }

    /// Whether a node has asked to be counted in since then.
    pub(super) fn has_joined_since(&self, then: Time, name: &str) -> bool {
        self.joins.borrow().get(name).is_some_and(|at| *at >= then)
    }
}

/// The version of the state that an event led to.
pub(super) fn version_of(answer: Answer) -> Result<u64> {
    Ok(answer?.version)
}
