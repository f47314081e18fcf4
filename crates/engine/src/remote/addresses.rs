//! The addresses of a remote cluster's nodes.

use super::service::RemoteClusterService;
use super::sniffed::Sniffed;
use crate::core::address_via;
use crate::settings::Remote;
use crate::transport::{Failure, Result};

/// Where the nodes of a remote cluster are reached: at the settings' seeds, and then where the cluster says. With a
/// proxy: each through it, and before they are known, whichever is there.
pub(crate) fn addresses(service: &RemoteClusterService, alias: &str) -> Result<Vec<String>> {
    let remote = remote_of(service, alias)?;
    let sniffed = service.sniffed.borrow();
    let known = sniffed.get(alias).filter(|known| known.is_of(&remote.seeds));
    if let (Some(proxy), Some(known)) = (&remote.proxy, known)
        && !known.nodes().is_empty()
    {
        return Ok(known.nodes().iter().map(|node| address_via(node, &proxy.address)).collect());
    }
    Ok(known.map_or_else(|| remote.seeds.clone(), Sniffed::addresses))
}

/// Where any node of a remote cluster answers.
pub(super) fn addresses_of_any(service: &RemoteClusterService, alias: &str) -> Result<Vec<String>> {
    let remote = remote_of(service, alias)?;
    if remote.proxy.is_some() { Ok(remote.seeds) } else { addresses(service, alias) }
}

pub(super) fn remote_of(service: &RemoteClusterService, alias: &str) -> Result<Remote> {
    let settings = service.core.settings();
    settings.remotes().get(alias).cloned().ok_or_else(|| {
        let known: Vec<&str> = settings.remotes().keys().map(String::as_str).collect();
        let reason = format!(
            "no such remote cluster [{alias}]; set cluster.remote.{alias}.seeds{}",
            record::names::did_you_mean(alias, known)
        );
        Failure::new(404, "no_such_remote_cluster_exception", reason)
    })
}
