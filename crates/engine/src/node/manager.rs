//! The manager's side: one node changes the state, stores it, and publishes it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use world::Env;

use super::{Node, NodeDisk};
use crate::config::NodeConfig;
use crate::error::Error;
use crate::state::{self, ClusterState, Event};
use crate::transport::{Class, Failure, Request, Response};

/// How often the manager looks for nodes that are gone.
const PING_EVERY: Duration = Duration::from_millis(500);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Pings without an answer in time after which a node counts as gone; a broken connection counts at once.
const PINGS_LOST: u32 = 3;

/// The state, and the order in which events are handled.
pub(crate) struct Manager {
    state: RefCell<Arc<ClusterState>>,
    turn: tokio::sync::Mutex<()>,
}

impl Manager {
    /// Reads the stored state, or begins a new one.
    pub(crate) async fn open(
        env: &Env,
        config: &NodeConfig,
        disk: &NodeDisk,
    ) -> Result<Manager, Error> {
        let path = disk.state_path();
        let stored = disk.read(path.clone()).await.map_err(|source| Error::Data {
            node: config.name.clone(),
            what: "read",
            path: path.clone(),
            source,
        })?;
        let mut state = match stored {
            None => {
                let members = config.members.iter().map(|name| state::Node {
                    name: name.clone(),
                    transport_address: String::new(),
                    http_address: String::new(),
                });
                ClusterState::new(&config.cluster, members, || env.random_u64())
            }
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| Error::State { path, reason: error.to_string() })?,
        };
        let refused = |error: state::StateError| Error::Join {
            node: config.name.clone(),
            reason: error.to_string(),
        };
        state::apply(&mut state, env.epoch_ms(), Event::ManagerRestarted).map_err(refused)?;
        Ok(Manager { state: RefCell::new(Arc::new(state)), turn: tokio::sync::Mutex::new(()) })
    }

    /// Handles an event: changes the state, stores it, and publishes it to every node that is there.
    pub(crate) async fn submit(
        &self,
        node: &Node,
        event: Event,
    ) -> Result<Arc<ClusterState>, Failure> {
        let _turn = self.turn.lock().await;
        let mut state = ClusterState::clone(&self.state.borrow());
        let changes = state::apply(&mut state, node.env.epoch_ms(), event).map_err(|error| {
            let (status, kind) = error.rest();
            Failure::new(status, kind, error.to_string())
        })?;
        if changes.is_empty() {
            return Ok(self.state.borrow().clone());
        }
        debug_assert_eq!(state::check(&state), Ok(()));
        let text = serde_json::to_string(&state).expect("a state is plain data");
        node.disk.write(node.disk.state_path(), text).await.map_err(|error| {
            let reason = format!("cannot store the cluster state: {error}; nothing was changed");
            Failure::new(500, "process_cluster_event_exception", reason)
        })?;
        let state = Arc::new(state);
        *self.state.borrow_mut() = state.clone();
        self.publish(node, &state).await;
        Ok(state)
    }

    /// A node that does not answer is found by [`watch_nodes`]; publishing does not wait for it for long.
    async fn publish(&self, node: &Node, state: &Arc<ClusterState>) {
        node.accept_state(state.clone());
        let others = state.present_nodes().filter(|other| other.name != node.config.name);
        let calls: Vec<_> = others
            .map(|other| {
                let (from, address) = (node.clone(), other.transport_address.clone());
                let request = Request::Publish(state.clone());
                node.env.spawn("publishes", async move {
                    from.pool.call(&address, Class::Control, request, PUBLISH_TIMEOUT).await
                })
            })
            .collect();
        for call in calls {
            let _ = call.await;
        }
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.state.borrow().present.contains(name)
    }
}

/// Takes nodes that no longer answer out of the cluster.
pub(super) async fn watch_nodes(node: Node) {
    let manager = node.manager.as_ref().expect("only the manager watches");
    let mut lost: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        node.env.sleep(PING_EVERY).await;
        let state = manager.state.borrow().clone();
        let others = state.present_nodes().filter(|other| other.name != node.config.name);
        let pings: Vec<_> = others
            .map(|other| {
                let (from, address) = (node.clone(), other.transport_address.clone());
                let ping = node.env.spawn("pings", async move {
                    from.pool.call(&address, Class::Control, Request::Ping, PING_TIMEOUT).await
                });
                (other.name.clone(), ping)
            })
            .collect();
        for (name, ping) in pings {
            let gone = match ping.await {
                Ok(Ok(Response::Done)) => {
                    lost.remove(&name);
                    false
                }
                Ok(Err(crate::transport::CallError::Broken { .. })) => true,
                _ => {
                    let count = lost.entry(name.clone()).or_default();
                    *count += 1;
                    *count >= PINGS_LOST
                }
            };
            if gone {
                lost.remove(&name);
                // It fails only where the state cannot be stored; the next round tries again.
                let _ = manager.submit(&node, Event::NodeLeft { node: name }).await;
            }
        }
    }
}
