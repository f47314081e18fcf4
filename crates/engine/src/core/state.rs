//! How a node takes over a new cluster state, and waits for one.

use std::sync::Arc;
use std::time::Duration;

use policy::failures::ErrorKind;

use super::shared::Core;
use crate::settings::Settings;
use crate::state::{ClusterState, Event};
use crate::transport::{Failure, Publication, Result};

impl Core {
    /// The cluster state as this node knows it.
    pub fn state(&self) -> Arc<ClusterState> {
        self.published.state.borrow().clone()
    }

    /// As [`Core::state`], for a question about a shard from another cluster. A node that has not joined yet has no
    /// state, and must not answer that an index does not exist.
    pub(crate) fn joined_state(&self, index: &str, shard: u32) -> Result<Arc<ClusterState>> {
        let state = self.state();
        if !state.is_joined() {
            return Err(Failure::unavailable(index, shard, "is on a node that is starting"));
        }
        Ok(state)
    }

    /// The cluster's settings, with this node's own below them.
    pub fn settings(&self) -> Settings {
        self.published.settings.borrow().clone()
    }

    /// Whether the state still lists a copy or a node that this node knows to be lost: the manager's disk has no room
    /// for a newer state.
    pub fn state_hides_loss(&self) -> bool {
        self.published.hides_loss.get()
    }

    /// Notes why the manager did not store that something is lost.
    pub(crate) fn loss_not_stored(&self, failure: &Failure) {
        if failure.error_kind() == ErrorKind::DiskFull {
            self.published.hides_loss.set(true);
        }
    }

    /// Takes over a state, unless it is older than the one it has.
    pub(crate) fn accept_state(&self, state: Arc<ClusterState>) {
        let before = {
            let mut current = self.published.state.borrow_mut();
            let same = current.cluster_uuid == state.cluster_uuid;
            if same && state.version < current.version {
                return;
            }
            if !same || state.version > current.version {
                // The manager can store states again. A loss that this one still lacks is reported and noted once more.
                self.published.hides_loss.set(false);
            }
            std::mem::replace(&mut *current, state.clone())
        };
        if (&before.transient, &before.persistent) != (&state.transient, &state.persistent) {
            self.take_settings(&state);
        }
        self.published.reconcile.notify_one();
        self.published.changed.notify_waiters();
    }

    fn take_settings(&self, state: &ClusterState) {
        let own = &self.config.settings;
        let settings = Settings::resolve(&[&state.transient, &state.persistent, own]);
        if *self.published.settings.borrow() == settings {
            return;
        }
        self.throttles.follow(self.env.now(), &settings);
        let before = self.published.settings.replace(settings.clone());
        self.pace_changed.notify_waiters();
        if before.remotes() != settings.remotes() {
            (self.upward().remotes_changed)();
        }
    }

    /// Takes over what the manager publishes. Fails if a difference does not follow the state that this node has.
    pub(crate) fn accept(&self, publication: Publication) -> Result<()> {
        let (diff, state) = match publication {
            Publication::Whole(state) => {
                // Addresses are reused: the manager of another cluster may mean a node that had this one's before. The
                // own manager may have lost its state and made a new one, and its answer to the join may be lost: a
                // state that lists this node is therefore accepted.
                let own = self.state();
                let me = state.present_node(self.name());
                let is_counted_in = state.cluster_name == own.cluster_name
                    && me.is_some_and(|me| me.transport_address == self.row.transport);
                let is_other = own.cluster_uuid != state.cluster_uuid && !is_counted_in;
                if own.is_joined() && is_other {
                    let reason = format!(
                        "node [{}] is in the cluster [{}] with the uuid [{}], the state is of [{}] with the uuid [{}]",
                        self.config.name,
                        own.cluster_name,
                        own.cluster_uuid,
                        state.cluster_name,
                        state.cluster_uuid
                    );
                    let kind = "coordination_state_rejected_exception";
                    return Err(Failure::new(409, kind, reason));
                }
                self.accept_state(state);
                return Ok(());
            }
            Publication::Diff { diff, state } => (diff, state),
        };
        let own = self.state();
        diff.check_from(&own).map_err(|other| {
            let kind = "incompatible_cluster_state_version_exception";
            Failure::new(409, kind, other.to_string())
        })?;
        let state = match state {
            Some(state) => state,
            None => Arc::new(diff.apply(&own).expect("its version was checked")),
        };
        self.accept_state(state);
        Ok(())
    }

    /// Has every copy here compared with the state, although the state has not changed.
    pub(crate) fn reconcile_again(&self) {
        self.published.reconcile_all.set(true);
        self.published.reconcile.notify_one();
    }

    /// Waits until `done` says so of the state; `false` if that takes longer than `limit`.
    pub async fn wait_for_state(
        &self,
        limit: Duration,
        done: impl Fn(&ClusterState) -> bool,
    ) -> bool {
        let waiting = async {
            while !done(&self.state()) {
                self.published.changed.notified().await;
            }
        };
        self.env.timeout(limit, waiting).await.is_ok()
    }

    /// As [`Core::wait_for_state`], and until every node has been sent that state: whoever is answered may ask another
    /// node next. In Elasticsearch the master is asked, which applies a state only after all others have.
    pub async fn wait_for_published(
        &self,
        limit: Duration,
        done: impl Fn(&ClusterState) -> bool,
    ) -> bool {
        let give_up = self.env.now() + limit;
        if !self.wait_for_state(limit, done).await {
            return false;
        }
        let left = give_up - self.env.now();
        let published = self.env.timeout(left, self.submit(Event::Nothing)).await;
        published.is_ok_and(|answer| answer.is_ok())
    }

    /// Waits until a node is no longer in the cluster.
    pub async fn has_left(&self, name: &str) {
        while self.state().present.contains(name) {
            self.published.changed.notified().await;
        }
    }
}
