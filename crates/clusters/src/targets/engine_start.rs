//! How clusters of the embedded engine are started, in either world.

use std::net::SocketAddr;
use std::path::PathBuf;

use engine::NodeConfig;

use super::started::{STARTS_MAX, StartedHere};
use crate::nodes::StartedNode;
use crate::topology::{ClusterSpec, NodeHandle, TopologySpec};
use crate::{Error, Result};

/// Where a node listens, and where it keeps its data.
pub(crate) struct Place {
    pub(crate) transport: String,
    pub(crate) http: String,
    pub(crate) data: PathBuf,
}

/// Clusters of the embedded engine, in some world.
pub(crate) trait EngineClusters: StartedHere<Config = NodeConfig> {
    /// Where the node of this number, counted over the whole topology, goes. `is_fixed` if its transport address must
    /// be known before it listens there.
    fn place(&mut self, number: usize, name: &str, is_fixed: bool) -> Result<Place>;

    /// Starts a node for the first time.
    async fn start_new(&mut self, config: &NodeConfig) -> Result<(Self::Node, NodeHandle)>;

    /// An address that leads to `address`, a node of `site`, through the link; none without a link.
    async fn route(&self, site: &str, address: &str) -> Result<Option<String>>;

    /// Waits until the nodes of a cluster have joined, where they may not have done so when they are started.
    async fn wait_for_nodes(&mut self, _cluster: &str, _nodes: usize) -> Result<()> {
        Ok(())
    }
}

/// Starts one cluster after another; sites that are joined are one cluster.
pub(crate) async fn start_all<T: EngineClusters>(
    target: &mut T,
    topology: &TopologySpec,
) -> Result<()> {
    let sites_of_a_cluster = if topology.joined { topology.clusters.len().max(1) } else { 1 };
    for sites in topology.clusters.chunks(sites_of_a_cluster) {
        start_cluster(target, sites, topology.joined).await?;
    }
    Ok(())
}

/// Starts the nodes of a cluster one after another, on one site or on several. Where sites are joined, every node tells
/// the others the link's address of itself.
async fn start_cluster<T: EngineClusters>(
    target: &mut T,
    sites: &[ClusterSpec],
    joined: bool,
) -> Result<()> {
    let configs = configs(target, sites, joined)?;
    let (first, nodes) = (target.nodes().len(), configs.len());
    let mut manager = None;
    for (n, (site, mut config)) in configs.into_iter().enumerate() {
        config.manager.clone_from(&manager);
        let (running, mut handle) =
            start_node(target, site, first + n, &mut config, joined).await?;
        manager.get_or_insert_with(|| handle.transport.clone());
        let through_link = if joined {
            handle.transport.clone_from(&config.transport);
            config.publish.clone()
        } else {
            target.route(site, &handle.transport).await?
        };
        config.transport = handle.transport.clone();
        config.http = listens_again(&config.http, &handle.http);
        let (site, running) = (site.to_owned(), Some(running));
        target.nodes_mut().add(StartedNode { site, handle, through_link, config, running });
    }
    target.wait_for_nodes(&sites[0].name, nodes).await
}

/// Starts the node of a number. Where sites are joined its address was chosen before, and another process may have
/// taken it meanwhile: then it starts elsewhere.
pub(super) async fn start_node<T: EngineClusters>(
    target: &mut T,
    site: &str,
    number: usize,
    config: &mut NodeConfig,
    joined: bool,
) -> Result<(T::Node, NodeHandle)> {
    let mut starts = 1;
    loop {
        if joined {
            config.publish = target.route(site, &config.transport).await?;
        }
        match target.start_new(config).await {
            Err(Error::AddressTaken { .. }) if joined && starts < STARTS_MAX => {
                config.transport = target.place(number, &config.name, joined)?.transport;
                starts += 1;
            }
            started => return started,
        }
    }
}

/// The address that a restarted node binds: the bind address of before (0.0.0.0 stays so), with the port that it got at
/// its first start.
fn listens_again(bound: &str, reached_at: &str) -> String {
    match (bound.parse::<SocketAddr>(), reached_at.parse::<SocketAddr>()) {
        (Ok(bound), Ok(reached_at)) => SocketAddr::new(bound.ip(), reached_at.port()).to_string(),
        _ => reached_at.to_owned(),
    }
}

/// What each node is started with, and its site. `manager` is filled in later, once the first node has started.
fn configs<'a, T: EngineClusters>(
    target: &mut T,
    sites: &'a [ClusterSpec],
    joined: bool,
) -> Result<Vec<(&'a str, NodeConfig)>> {
    let first = target.nodes().len();
    let name = |site: &ClusterSpec, n: usize| format!("{}-{n}", site.name);
    let nodes =
        sites.iter().flat_map(|site| (0..site.nodes).map(move |n| (site, n, name(site, n))));
    let members: Vec<String> = nodes.clone().map(|(.., name)| name).collect();
    let config = |(n, (site, of_site, name)): (usize, (&'a ClusterSpec, usize, String))| {
        let Place { transport, http, data } = target.place(first + n, &name, joined)?;
        let config = NodeConfig {
            transport,
            http,
            settings: site.settings.clone(),
            attributes: site.attributes.get(of_site).cloned().unwrap_or_default(),
            ..NodeConfig::new(&name, &sites[0].name, &members, data)
        };
        Ok((site.name.as_str(), config))
    };
    nodes.enumerate().map(config).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_listens_again_where_it_listened_before() {
        assert_eq!(listens_again("0.0.0.0:0", "127.0.0.1:9201"), "0.0.0.0:9201");
        assert_eq!(listens_again("127.0.0.1:0", "127.0.0.1:9201"), "127.0.0.1:9201");
        assert_eq!(listens_again("leader-0:9200", "leader-0:9200"), "leader-0:9200");
    }
}
