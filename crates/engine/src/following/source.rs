//! The leader's shard as its follower reaches it: which node has the primary, and the lease there.

use super::service::{FollowService, REMOTE_TIMEOUT};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::remote;
use crate::transport::{
    CallError, Class, LeaderShard, LeaseRequest, Request, Response, unexpected,
};
use policy::retention::Renewal;

/// What the leader must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Operations from here on.
    pub(crate) from: u64,
    /// Whether older operations may be needed, too: an in-sync copy has not told yet what it needs. The lease is then
    /// moved back or left, never forward.
    pub(crate) at_least: bool,
}

/// A leader's shard.
pub(crate) struct Source {
    alias: String,
    pub(crate) shard: Arc<LeaderShard>,
    lease: String,
    address: RefCell<Option<String>>,
    /// Held by the request that looks for the primary; the others wait for it.
    locating: tokio::sync::Mutex<()>,
    next_connection: Cell<u32>,
    /// The leader's `retention_lease.period`, once the leader has said it.
    lease_period: Cell<Option<Duration>>,
}

impl Source {
    pub(crate) fn new(alias: &str, shard: LeaderShard, lease: String) -> Source {
        Source {
            alias: alias.to_owned(),
            shard: Arc::new(shard),
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

    /// Asks the primary. Where that is elsewhere now, the next call looks for it, with a lease on what is needed then.
    pub(crate) async fn ask(
        &self,
        service: &Rc<FollowService>,
        needed: impl Fn() -> Needed,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        let address = self.locate(service, needed).await?;
        let connections = service.core.settings().transport_recovery_connections().max(1);
        let connection = self.next_connection.get();
        self.next_connection.set(connection.wrapping_add(1));
        let class = Class::Recovery(connection % connections);
        let answer = service.core.call(&address, class, request, limit).await;
        if answer.as_ref().is_err_and(CallError::is_transient) {
            self.address.borrow_mut().take_if(|known| *known == address);
            service.remotes.sniff_again(&self.alias);
        }
        answer
    }

    async fn locate(
        &self,
        service: &Rc<FollowService>,
        needed: impl Fn() -> Needed,
    ) -> Result<String, CallError> {
        let known = || self.address.borrow().clone();
        if let Some(address) = known() {
            return Ok(address);
        }
        let _one = self.locating.lock().await;
        match known() {
            Some(address) => Ok(address),
            None => self.renew(service, Some(needed())).await,
        }
    }

    /// Renews the lease, which keeps what is needed, or drops it. Returns the primary's address: only the primary
    /// accepts a renewal.
    pub(crate) async fn renew(
        &self,
        service: &Rc<FollowService>,
        needed: Option<Needed>,
    ) -> Result<String, CallError> {
        let addresses =
            remote::addresses(&service.remotes, &self.alias).map_err(CallError::Failed)?;
        let ask = LeaseRequest {
            leader: LeaderShard::clone(&self.shard),
            id: self.lease.clone(),
            from: needed.map(|needed| needed.from),
            at_least: needed.is_some_and(|needed| needed.at_least),
        };
        let calls = addresses
            .into_iter()
            .map(|address| {
                let request = Request::Lease(Box::new(ask.clone()));
                let (service, asked) = (service.clone(), address.clone());
                let call = async move {
                    service.core.call(&asked, Class::Control, request, REMOTE_TIMEOUT).await
                };
                (address, call)
            })
            .collect();
        let answered = remote::first_of(&service.core, calls, String::as_str).await;
        let (address, response) =
            answered.inspect_err(|_| service.remotes.sniff_again(&self.alias))?;
        match (needed, response) {
            (Some(_), Response::Leased { period }) => self.lease_period.set(Some(period)),
            (None, Response::Done) => {}
            _ => return Err(CallError::Failed(unexpected())),
        }
        *self.address.borrow_mut() = Some(address.clone());
        Ok(address)
    }
}

/// Renews the lease every so often, until the task is ended.
pub(crate) async fn keep_lease(
    service: Rc<FollowService>,
    source: Rc<Source>,
    needed: impl Fn() -> Needed + 'static,
) {
    let mut renewal = Renewal::default();
    loop {
        service.core.env.sleep(renewal.wait()).await;
        let needed = needed();
        if renewal.is_due(service.core.env.now(), needed.from) {
            // If this fails for good, the next read fails, too, and says why.
            let renewed = source.renew(&service, Some(needed)).await;
            let period = renewed.ok().and(source.lease_period.get());
            renewal.done(service.core.env.now(), needed.from, period);
        }
    }
}
