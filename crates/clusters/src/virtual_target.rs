//! The embedded engine in virtual time: the same nodes, on simulated hosts.

use std::cell::Cell;
use std::path::PathBuf;

use bytes::Bytes;
use engine::{Node, NodeConfig};
use world::{Direction, Env, Link, LinkConfig, LinkStats};

use crate::embedded::ask_in_turn;
use crate::target::{ClusterSpec, LinkControl, NodeHandle, Target, TopologySpec};
use crate::{Answer, Error, RestClient};

/// Where a node keeps its data on its host's disk.
const DATA: &str = "/data";
/// Where a node of one site listens for the others.
const SITE_PORT: u16 = 9300;

struct VirtualNode {
    cluster: String,
    config: NodeConfig,
    node: Option<Node>,
    handle: NodeHandle,
    through_link: Option<String>,
}

/// Embedded clusters on a virtual world.
pub struct VirtualTarget {
    env: Env,
    client: RestClient,
    nodes: Vec<VirtualNode>,
    link: Option<Link>,
    turn: Cell<usize>,
}

impl VirtualTarget {
    /// A target on the world of `env`.
    pub fn new(env: &Env) -> Self {
        let client = RestClient::new(env);
        VirtualTarget {
            env: env.clone(),
            client,
            nodes: Vec::new(),
            link: None,
            turn: Cell::new(0),
        }
    }

    async fn start_cluster(&mut self, cluster: &ClusterSpec) -> Result<(), Error> {
        let members: Vec<String> =
            (0..cluster.nodes).map(|n| format!("{}-{n}", cluster.name)).collect();
        let mut manager = None;
        for name in &members {
            let host = self.env.host(name);
            let config = NodeConfig {
                name: name.clone(),
                cluster: cluster.name.clone(),
                members: members.clone(),
                manager: manager.clone(),
                transport: host.any_address(),
                http: host.any_address(),
                data: PathBuf::from(DATA),
                settings: cluster.settings.clone(),
                publish: None,
            };
            let node = Node::start(&host, config.clone()).await?;
            manager.get_or_insert_with(|| node.transport_address().to_owned());
            self.add(&cluster.name, config, node).await?;
        }
        Ok(())
    }

    /// One cluster on several sites: every node tells the others the link's address of itself.
    async fn start_sites(&mut self, sites: &[ClusterSpec]) -> Result<(), Error> {
        if sites.iter().any(|site| site.nodes != 1) {
            return Err(Error::SitesOfOne);
        }
        let members: Vec<String> = sites.iter().map(|site| format!("{}-0", site.name)).collect();
        let mut manager = None;
        for (site, name) in sites.iter().zip(&members) {
            let host = self.env.host(name);
            let transport = format!("{name}:{SITE_PORT}");
            let published = match &self.link {
                Some(link) => Some(link.route(&transport).await.map_err(Error::Link)?),
                None => None,
            };
            let config = NodeConfig {
                name: name.clone(),
                cluster: sites[0].name.clone(),
                members: members.clone(),
                manager: manager.clone(),
                transport: transport.clone(),
                publish: published.clone(),
                http: host.any_address(),
                data: PathBuf::from(DATA),
                settings: site.settings.clone(),
            };
            let node = Node::start(&host, config.clone()).await?;
            manager.get_or_insert_with(|| node.transport_address().to_owned());
            let http = node.http_address().to_owned();
            let handle = NodeHandle { name: name.clone(), http: http.clone(), transport };
            let (cluster, node) = (site.name.clone(), Some(node));
            let config = NodeConfig { http, ..config };
            let through_link = published;
            self.nodes.push(VirtualNode { cluster, config, node, handle, through_link });
        }
        Ok(())
    }

    async fn add(
        &mut self,
        cluster: &str,
        mut config: NodeConfig,
        node: Node,
    ) -> Result<(), Error> {
        let handle = NodeHandle {
            name: node.name().to_owned(),
            http: node.http_address().to_owned(),
            transport: node.transport_address().to_owned(),
        };
        let through_link = match &self.link {
            Some(link) => Some(link.route(&handle.transport).await.map_err(Error::Link)?),
            None => None,
        };
        (config.transport, config.http) = (handle.transport.clone(), handle.http.clone());
        let cluster = cluster.to_owned();
        self.nodes.push(VirtualNode { cluster, config, node: Some(node), handle, through_link });
        Ok(())
    }

    fn find(&self, node: &str) -> Result<usize, Error> {
        let found = self.nodes.iter().position(|known| known.handle.name == node);
        found.ok_or_else(|| Error::Unknown { what: "node", name: node.to_owned() })
    }
}

impl Drop for VirtualTarget {
    fn drop(&mut self) {
        for node in &self.nodes {
            self.env.kill_host(&node.handle.name);
        }
    }
}

impl Target for VirtualTarget {
    fn name(&self) -> &'static str {
        "virtual"
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        self.link = topology.link.clone().map(|config| Link::open(&self.env, config));
        if topology.joined {
            return self.start_sites(&topology.clusters).await;
        }
        for cluster in &topology.clusters {
            self.start_cluster(cluster).await?;
        }
        Ok(())
    }

    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let nodes = self.nodes(cluster);
        ask_in_turn(&self.client, &nodes, &self.turn, cluster, (method, path, body)).await
    }

    fn nodes(&self, cluster: &str) -> Vec<NodeHandle> {
        let running = |node: &&VirtualNode| node.cluster == cluster && node.node.is_some();
        self.nodes.iter().filter(running).map(|node| node.handle.clone()).collect()
    }

    fn seeds_through_link(&self, cluster: &str) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|node| node.cluster == cluster);
        nodes
            .map(|node| node.through_link.as_ref().unwrap_or(&node.handle.transport).clone())
            .collect()
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        self.link.as_ref().map(|link| link as &dyn LinkControl)
    }

    async fn kill_node(&mut self, node: &str) -> Result<(), Error> {
        let place = self.find(node)?;
        let gone = self.nodes[place].node.take();
        self.env.kill_host(node);
        drop(gone);
        Ok(())
    }

    async fn start_node(&mut self, node: &str) -> Result<(), Error> {
        let place = self.find(node)?;
        if self.nodes[place].node.is_none() {
            let config = self.nodes[place].config.clone();
            self.nodes[place].node = Some(Node::start(&self.env.host(node), config).await?);
        }
        Ok(())
    }

    async fn stop(&mut self) {
        while let Some(mut node) = self.nodes.pop() {
            if let Some(node) = node.node.take() {
                node.stop().await;
            }
            // Nothing of it is left for who starts a host of that name next.
            self.env.kill_host(&node.handle.name);
            if let Some(disk) = self.env.host(&node.handle.name).virtual_disk() {
                disk.remove_under(DATA);
            }
        }
        self.link = None;
    }
}

impl LinkControl for Link {
    fn stats(&self, direction: Direction) -> LinkStats {
        Link::stats(self, direction)
    }

    fn cut(&self) {
        Link::cut(self);
    }

    fn heal(&self) {
        Link::heal(self);
    }

    fn damage_next(&self, chunks: u32) {
        Link::damage_next(self, chunks);
    }

    fn configure(&self, config: LinkConfig) {
        Link::configure(self, config);
    }
}
