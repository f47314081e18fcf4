//! Requests to other nodes, to the manager, and to the node itself.

use std::time::Duration;

use policy::failures::{Action, Component, action};
use world::LocalFuture;

use super::proxied::connected_address;
use super::shared::Core;
use crate::state::Event;
use crate::transport::{CallError, Class, Failure, Request, Response, Result, unexpected};

/// How long a node waits for its manager, at most.
pub(crate) const MANAGER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node waits before it sends the manager an event again.
const REPORT_AGAIN_AFTER: Duration = Duration::from_millis(200);

impl Core {
    /// Asks another node; itself where the address is its own.
    pub async fn call(
        &self,
        address: &str,
        class: Class,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        if address == self.row.transport {
            return Ok((self.upward().dispatch)(request).await?.response);
        }
        if let Some(proxied) = self.proxied(address)? {
            return Box::pin(self.call_proxied(proxied, address, class, request, limit)).await;
        }
        self.pool.call(address, class, request, limit).await
    }

    /// The transport address of a node that is there.
    pub fn address_of(&self, name: &str) -> Option<String> {
        self.state().present_node(name).map(|node| node.transport_address.clone())
    }

    /// Notes a round trip to an address; answers the shortest so far.
    pub(crate) fn note_round_trip(&self, address: &str, took: Duration) -> Duration {
        let mut all = self.round_trips.borrow_mut();
        if !all.contains_key(address) {
            // Nodes come back at other addresses.
            all.retain(|known, _| self.pool.knows(connected_address(known)));
        }
        let best = all.entry(address.to_owned()).or_insert(took);
        *best = (*best).min(took);
        *best
    }

    /// The shortest round trip to an address so far.
    pub(crate) fn round_trip(&self, address: &str) -> Option<Duration> {
        self.round_trips.borrow().get(address).copied()
    }

    /// Tells the manager what happened, and waits until the new state is here.
    pub fn submit(&self, event: Event) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let version = match &self.upward().submit {
                Some(submit) => submit(event).await?,
                None => {
                    match self
                        .ask_manager(Request::Submit(Box::new(event)), MANAGER_TIMEOUT)
                        .await?
                    {
                        Response::Version(version) => version,
                        _ => return Err(unexpected()),
                    }
                }
            };
            // The manager publishes a state before it answers, but publishing to this node may have failed.
            if self.state().version < version {
                self.ask_for_state().await?;
            }
            Ok(())
        })
    }

    /// Takes over the manager's state of now.
    pub(crate) async fn ask_for_state(&self) -> Result<()> {
        if self.upward().submit.is_some() {
            return Ok(());
        }
        match self.ask_manager(Request::State, MANAGER_TIMEOUT).await? {
            Response::State(state) => self.accept_state(state),
            _ => return Err(unexpected()),
        }
        Ok(())
    }

    /// Asks the manager what it published last and whether that hides a loss, and takes over both. Does nothing on a
    /// node that has not joined: its state has no index yet, and its health says so.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        if self.upward().submit.is_some() || !self.state().is_joined() {
            return Ok(());
        }
        let answer = self.ask_manager(Request::Published, MANAGER_TIMEOUT).await?;
        let Response::Published { version, hides_loss } = answer else { return Err(unexpected()) };
        if self.state().version < version {
            self.ask_for_state().await?;
        }
        if hides_loss && self.state().version == version {
            self.published.hides_loss.set(true);
        }
        Ok(())
    }

    /// Sends the manager an event, and sends it again while the manager is not there or cannot store the state: its
    /// disk may be full.
    pub(crate) async fn report(&self, event: Event) {
        while let Err(failure) = self.submit(event.clone()).await {
            if action(Component::ManagerEvent, failure.error_kind()) == Action::GiveUp {
                return;
            }
            if event.is_loss() {
                self.loss_not_stored(&failure);
            }
            self.env.sleep(REPORT_AGAIN_AFTER).await;
        }
    }

    /// Asks the manager, from another node than it, and waits no longer than `limit` for the answer.
    pub(crate) async fn ask_manager(&self, request: Request, limit: Duration) -> Result<Response> {
        let address = self.config.manager.as_ref();
        let address = address.expect("a node without a manager's address is the manager");
        let answer = self.call(address, Class::Control, request, limit).await;
        answer.map_err(|error| match error {
            CallError::Failed(failure) => failure,
            CallError::Broken { reason, .. } => self.no_manager(&format!("is gone: {reason}")),
            CallError::Timeout { limit, .. } => {
                self.no_manager(&format!("did not answer within {limit:?}"))
            }
        })
    }

    /// Why nothing can be changed: the manager is not there.
    pub(crate) fn no_manager(&self, what: &str) -> Failure {
        let name = self.config.members.first().map_or("", String::as_str);
        let address = self.config.manager.as_deref().unwrap_or_default();
        let reason = format!(
            "the cluster manager [{name}] at {address} {what}; \
             membership is static and no other node takes over: start it again"
        );
        Failure::new(503, "master_not_discovered_exception", reason)
    }
}
