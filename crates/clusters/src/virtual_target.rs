//! The embedded engine in virtual time: the same nodes, on simulated hosts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use engine::transport::Failure;
use engine::{Node, NodeConfig};
use futures_util::future::try_join_all;
use world::model::{CoreCosts, Disk, Host};
use world::{Direction, Env, Link, LinkConfig, LinkStats};

use crate::embedded::ask_in_turn;
use crate::target::{ClusterSpec, LinkControl, Load, NodeHandle, Target, TopologySpec};
use crate::{Answer, Error, RestClient};

/// Where a node keeps its data on its host's disk.
const DATA: &str = "/data";

/// How long an answer may take: reading terabytes to compare them takes days of virtual time.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);

struct VirtualNode {
    cluster: String,
    config: NodeConfig,
    node: Option<Node>,
    handle: NodeHandle,
    through_link: Option<String>,
}

/// A shard copy on a node.
struct CopyOnNode {
    node: Node,
    shard: u32,
    /// Shards of the index.
    shards: u32,
}

impl CopyOnNode {
    /// This shard's part of what all shards have together, in whole numbers.
    fn part(&self, whole: u64) -> u64 {
        let shards = u128::from(self.shards);
        let below = |shard: u32| (u128::from(whole) * u128::from(shard) / shards) as u64;
        below(self.shard + 1) - below(self.shard)
    }
}

/// Embedded clusters on a virtual world.
pub struct VirtualTarget {
    env: Env,
    client: RestClient,
    nodes: Vec<VirtualNode>,
    link: Option<Link>,
    /// What the hosts of each cluster are like; the world's default where none is given.
    models: RefCell<BTreeMap<String, Host>>,
    turn: Cell<usize>,
}

impl VirtualTarget {
    /// A target on the world of `env`.
    pub fn new(env: &Env) -> Self {
        let client = RestClient::new(env).with_limit(PATIENCE);
        VirtualTarget {
            env: env.clone(),
            client,
            nodes: Vec::new(),
            link: None,
            models: RefCell::default(),
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
            };
            let node = Node::start(&host, config.clone()).await?;
            manager.get_or_insert_with(|| node.transport_address().to_owned());
            self.add(&cluster.name, config, node).await?;
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

    fn give_hosts(&self, cluster: &str, host: &Host) {
        for node in self.nodes.iter().filter(|node| node.cluster == cluster) {
            self.env.host(&node.handle.name).set_host_model(host.clone());
        }
    }

    /// Does something with every copy of an index at once.
    async fn on_copies<F: Future<Output = Result<(), Failure>>>(
        &self,
        cluster: &str,
        index: &str,
        act: impl Fn(CopyOnNode) -> F,
    ) -> Result<(), Error> {
        let nodes = self.nodes.iter().filter(|node| node.cluster == cluster);
        let mut acts = Vec::new();
        for node in nodes.filter_map(|node| node.node.as_ref()) {
            let state = node.state();
            let shards = state.indices.get(index).map_or(0, |meta| meta.shards);
            for (_, shard, _) in state.copies_on(node.name()).filter(|copy| copy.0 == index) {
                let done = act(CopyOnNode { node: node.clone(), shard, shards });
                acts.push(async move {
                    let (node, index) = (node.name().to_owned(), index.to_owned());
                    done.await.map_err(|failure| Error::Load {
                        node,
                        index,
                        shard,
                        reason: failure.reason,
                    })
                });
            }
        }
        if acts.is_empty() {
            return Err(Error::Unknown { what: "index", name: index.to_owned() });
        }
        try_join_all(acts).await.map(|_| ())
    }

    fn find(&self, node: &str) -> Result<usize, Error> {
        let found = self.nodes.iter().position(|known| known.handle.name == node);
        found.ok_or_else(|| Error::Unknown { what: "node", name: node.to_owned() })
    }
}

/// A host on which work takes no time.
fn instant() -> Host {
    const AT_ONCE: u64 = u64::MAX;
    let disk = Disk {
        read_bytes_per_s: AT_ONCE,
        write_bytes_per_s: AT_ONCE,
        seek: Duration::ZERO,
        sync: Duration::ZERO,
        request_bytes: AT_ONCE,
        ..Disk::default()
    };
    let costs = CoreCosts { hash_bytes_per_s: AT_ONCE, ..CoreCosts::default() };
    Host { costs, disk, ..Host::default() }
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

    async fn wipe_node(&mut self, node: &str) -> Result<(), Error> {
        let place = self.find(node)?;
        if self.nodes[place].node.is_some() {
            return Err(Error::Unknown { what: "killed node", name: node.to_owned() });
        }
        if let Some(disk) = self.env.host(node).virtual_disk() {
            disk.remove_under(&format!("{DATA}/indices/"));
        }
        Ok(())
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn set_hosts(&self, cluster: &str, host: &Host) -> Result<(), Error> {
        self.models.borrow_mut().insert(cluster.to_owned(), host.clone());
        self.give_hosts(cluster, host);
        Ok(())
    }

    async fn load(&self, cluster: &str, load: &Load) -> Result<(), Error> {
        let fill = |copy: CopyOnNode| {
            let (documents, bytes) = (copy.part(load.documents), copy.part(load.bytes));
            let segments = (load.segments / copy.shards).max(1);
            async move {
                copy.node.synthesize(&load.index, copy.shard, documents, bytes, segments).await
            }
        };
        self.give_hosts(cluster, &instant());
        let loaded = self.on_copies(cluster, &load.index, fill).await;
        let model = self.models.borrow().get(cluster).cloned().unwrap_or_default();
        self.give_hosts(cluster, &model);
        loaded
    }

    async fn index_load(
        &self,
        cluster: &str,
        index: &str,
        documents: u64,
        source_bytes: u64,
    ) -> Result<(), Error> {
        let write = |copy: CopyOnNode| {
            let (documents, bytes) = (copy.part(documents), copy.part(source_bytes));
            async move { copy.node.index_synthetic(index, copy.shard, documents, bytes).await }
        };
        self.on_copies(cluster, index, write).await
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

    fn configure(&self, config: LinkConfig) -> std::io::Result<()> {
        Link::configure(self, config)
    }
}
