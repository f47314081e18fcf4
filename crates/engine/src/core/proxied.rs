//! Requests to a remote cluster that is reached through one address alone (`cluster.remote.*.mode: proxy`).
//!
//! All connections go there. A request for another node than the one that happens to answer is wrapped, and passed on.

use std::time::Duration;

use super::shared::Core;
use crate::transport::{CallError, Class, Request, Response, Result};

/// Stands between a node's address and that of the proxy through which it is reached.
const VIA: &str = " via ";

/// How the node at `node` is addressed where it is reached through `proxy`.
pub(crate) fn address_via(node: &str, proxy: &str) -> String {
    format!("{node}{VIA}{proxy}")
}

/// The address of the node that is meant, with or without a proxy before it.
pub(crate) fn node_address(address: &str) -> &str {
    address.split_once(VIA).map_or(address, |(node, _)| node)
}

/// The address that connections go to.
pub(super) fn connected_address(address: &str) -> &str {
    // Every request asks this, and a byte is found sooner than a word.
    address.rsplit_once(' ').map_or(address, |(_, proxy)| proxy)
}

/// How a request reaches a cluster behind a proxy.
pub(super) struct Proxied {
    sockets: u32,
    proxy: String,
    /// The node that is meant; none where any will do.
    node: Option<String>,
}

impl Core {
    /// How an address is reached, if by proxy. Fails where it was, and the settings say otherwise by now.
    pub(super) fn proxied(&self, address: &str) -> Result<Option<Proxied>, CallError> {
        let proxy = connected_address(address);
        let node = (proxy != address).then(|| node_address(address).to_owned());
        let settings = self.settings();
        let of = |set: &&crate::settings::Proxy| set.address == proxy;
        let sockets = settings
            .remotes()
            .values()
            .filter_map(|remote| remote.proxy.as_ref())
            .find(of)
            .map(|set| set.sockets);
        match sockets {
            Some(sockets) => Ok(Some(Proxied { sockets, proxy: proxy.to_owned(), node })),
            None if node.is_none() => Ok(None),
            None => Err(CallError::Broken {
                address: address.to_owned(),
                reason: "no remote cluster is reached through that proxy any more".to_owned(),
            }),
        }
    }

    /// Asks over one of the sockets, in turn. Errors name the node that was meant and the proxy.
    pub(super) async fn call_proxied(
        &self,
        proxied: Proxied,
        address: &str,
        class: Class,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        let Proxied { sockets, proxy, node } = proxied;
        let socket = match class {
            Class::Proxied(number) => number,
            _ => self.next_socket.replace(self.next_socket.get().wrapping_add(1)),
        };
        let is_passed_on = node.is_some();
        let request = match node {
            Some(to) => Request::Forward { to, class, request: Box::new(request), limit },
            None => request,
        };
        let class = Class::Proxied(socket % sockets.max(1));
        let answer = self.pool.call(&proxy, class, request, limit).await;
        answer.map_err(|error| match error {
            CallError::Failed(failure) if is_passed_on && failure.kind == NODE_GONE => {
                CallError::Broken { address: address.to_owned(), reason: failure.reason }
            }
            CallError::Failed(failure) => CallError::Failed(failure),
            CallError::Broken { reason, .. } => {
                CallError::Broken { address: address.to_owned(), reason }
            }
            CallError::Timeout { limit, .. } => {
                CallError::Timeout { address: address.to_owned(), limit }
            }
        })
    }
}

/// By which the node at the proxy says that the one which was meant is gone.
const NODE_GONE: &str = "node_disconnected_exception";
