//! The sockets to the proxy of a remote cluster.

use std::rc::Rc;
use std::time::Duration;

use world::LocalFuture;

use super::addresses::remote_of;
use super::patience::SILENT_PATIENCE;
use super::service::RemoteClusterService;
use crate::settings::Proxy;
use crate::transport::{Class, Request};

/// Opens the sockets to a proxy that are not open, until one fails, and closes those beyond what the settings ask for.
pub(super) async fn reopen_sockets(service: &Rc<RemoteClusterService>, alias: &str) {
    let proxy = remote_of(service, alias).ok().and_then(|remote| remote.proxy);
    let Some(Proxy { address, sockets, .. }) = proxy else { return };
    let core = &service.core;
    let open = core.pool.open_sockets(&address);
    for number in open.range(sockets..) {
        core.pool.close_unused(&address, Class::Proxied(*number));
    }
    for class in (0..sockets).filter(|number| !open.contains(number)).map(Class::Proxied) {
        if core.call(&address, class, Request::Ping, SILENT_PATIENCE).await.is_err() {
            return;
        }
    }
}

/// How many sockets to the proxy of a remote cluster are open, of those that the settings ask for. Where there are any,
/// the proxy is asked as well, and waited for within `limit`, so that the time of the answer tells the round trip as it
/// does for nodes. That goes over a connection of its own: in the sockets it would wait for what they carry.
pub fn connected_sockets<'a>(
    service: &'a RemoteClusterService,
    proxy: &'a Proxy,
    limit: Duration,
) -> LocalFuture<'a, usize> {
    Box::pin(async move {
        let open = || service.core.pool.open_sockets(&proxy.address).range(..proxy.sockets).count();
        if open() > 0 {
            // A proxy that does not answer is told by its sockets, which end.
            let asked =
                service.core.pool.call(&proxy.address, Class::Control, Request::Hello, limit);
            let _ = asked.await;
        }
        open()
    })
}
