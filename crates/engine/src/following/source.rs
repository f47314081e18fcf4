//! The leader's shard as its follower reaches it: which node has the primary, and the lease there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::node::Node;
use crate::remote;
use crate::state::{ClusterState, FollowOrigin};
use crate::transport::{CallError, Class, LeaderShard, LeaseRequest, Request, Response};
use policy::retention::Renewal;

use super::REMOTE_TIMEOUT;

/// Id of the lease that a follower has on its leader, as in the field.
pub(crate) fn lease_id(
    cluster: &str,
    (follower_index, follower_uuid): (&str, &str),
    leader: &FollowOrigin,
) -> String {
    let FollowOrigin { remote_cluster, leader_index, leader_uuid, .. } = leader;
    format!(
        "{cluster}/{follower_index}/{follower_uuid}-following-{remote_cluster}/{leader_index}/{leader_uuid}"
    )
}

/// As [`lease_id`], of an index of this cluster; none if it follows nobody.
pub(crate) fn lease_of(state: &ClusterState, index: &str) -> Option<String> {
    let meta = state.indices.get(index)?;
    let leader = meta.leader.as_ref()?;
    Some(lease_id(&state.cluster_name, (index, &meta.uuid), leader))
}

/// A leader's shard.
pub(crate) struct Source {
    alias: String,
    pub(crate) shard: LeaderShard,
    lease: String,
    address: RefCell<Option<String>>,
    /// One finds out where it is, the others wait.
    locating: tokio::sync::Mutex<()>,
    next_connection: Cell<u32>,
    /// For how long a lease holds there, once that was said.
    lease_period: Cell<Option<Duration>>,
}

impl Source {
    pub(crate) fn new(alias: &str, shard: LeaderShard, lease: String) -> Source {
        Source {
            alias: alias.to_owned(),
            shard,
            lease,
            address: RefCell::default(),
            locating: tokio::sync::Mutex::default(),
            next_connection: Cell::new(0),
            lease_period: Cell::new(None),
        }
    }

    pub(crate) fn alias(&self) -> &str {
        &self.alias
    }

    /// Asks the primary. Where that is elsewhere now, the next call looks for it.
    pub(crate) async fn ask(
        &self,
        node: &Node,
        from: u64,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        let address = self.locate(node, from).await?;
        let connections = node.settings().transport_recovery_connections().max(1);
        let connection = self.next_connection.get();
        self.next_connection.set(connection.wrapping_add(1));
        let class = Class::Recovery(connection % connections);
        let answer = node.call(&address, class, request, limit).await;
        if answer.as_ref().is_err_and(CallError::is_transient) {
            self.address.borrow_mut().take_if(|known| *known == address);
        }
        answer
    }

    async fn locate(&self, node: &Node, from: u64) -> Result<String, CallError> {
        let known = || self.address.borrow().clone();
        if let Some(address) = known() {
            return Ok(address);
        }
        let _one = self.locating.lock().await;
        match known() {
            Some(address) => Ok(address),
            None => self.renew(node, Some(from)).await,
        }
    }

    /// Renews the lease, which keeps operations from `from` on, or drops it. Answers where the primary is: it is the
    /// only one that says yes.
    pub(crate) async fn renew(&self, node: &Node, from: Option<u64>) -> Result<String, CallError> {
        let seeds = remote::seeds(node, &self.alias).map_err(CallError::Failed)?;
        let ask = LeaseRequest { leader: self.shard.clone(), id: self.lease.clone(), from };
        let calls = seeds
            .into_iter()
            .map(|seed| {
                let request = Request::Lease(Box::new(ask.clone()));
                let (node, address) = (node.clone(), seed.clone());
                let call = async move {
                    node.call(&address, Class::Control, request, REMOTE_TIMEOUT).await
                };
                (seed, call)
            })
            .collect();
        let (address, response) = remote::first_of(&node.env, calls).await?;
        if let Response::Leased { period } = response {
            self.lease_period.set(Some(period));
        }
        *self.address.borrow_mut() = Some(address.clone());
        Ok(address)
    }
}

/// Renews the lease every so often, until the task is ended.
pub(crate) async fn keep_lease(node: Node, source: Rc<Source>, from: impl Fn() -> u64 + 'static) {
    let mut renewal = Renewal::default();
    loop {
        node.env.sleep(renewal.wait()).await;
        let from = from();
        if renewal.is_due(node.env.now(), from) {
            // Reads find out what is wrong, and say so.
            let renewed = source.renew(&node, Some(from)).await;
            renewal.done(node.env.now(), from, renewed.ok().and(source.lease_period.get()));
        }
    }
}
