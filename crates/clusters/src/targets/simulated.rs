//! Clusters of the embedded engine in virtual time: the same nodes, on simulated hosts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use engine::transport::Failure;
use engine::{DiskSize, Node, NodeConfig, Placement, Segments};
use futures_util::future::try_join_all;
use record::random::split_mix;
use world::model::{CoreCosts, Disk, Host};
use world::{Direction, Env, Link, LinkConfig, LinkStats, LinkTimes};

use super::engine_start::{self, EngineClusters, Place};
use super::started::StartedHere;
use crate::clusters::{Clusters, Faults, LinkControl, SyntheticIndex, VirtualControls};
use crate::fault::FaultKind;
use crate::http::RestClient;
use crate::nodes::{Nodes, RunningNode};
use crate::topology::{NodeHandle, TopologySpec};
use crate::{Error, Result};

/// Where a node keeps its data on its host's disk.
const DATA: &str = "/data";
/// Where a node of one site listens for the others.
const SITE_PORT: u16 = 9300;

/// How long an answer may take: reading terabytes to compare them takes days of virtual time.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);

/// A shard copy on a node.
struct CopyOnNode {
    node: Node,
    shard: u32,
    /// Shards of the index.
    shards: u32,
}

impl CopyOnNode {
    /// This shard's share of a figure of the whole index, in whole numbers that add up to it.
    fn part(&self, whole: u64) -> u64 {
        let shards = u128::from(self.shards);
        let below = |shard: u32| (u128::from(whole) * u128::from(shard) / shards) as u64;
        below(self.shard + 1) - below(self.shard)
    }
}

/// Embedded clusters in the virtual world: `--on virtual`.
pub struct VirtualClusters {
    env: Env,
    nodes: Nodes<Node, NodeConfig>,
    link: Option<Link>,
    /// What the hosts of each cluster are like; the world's default where none is given.
    models: RefCell<BTreeMap<String, Host>>,
    /// A random number for each node, by its name: its host is drawn from the cluster's model with it, and the node's
    /// rotations of copies begin where it says. A node that starts again has the host that it had.
    draws: RefCell<BTreeMap<String, u64>>,
}

impl VirtualClusters {
    /// Clusters in the world of `env`.
    pub fn new(env: &Env) -> Self {
        let client = RestClient::new(env).with_limit(PATIENCE);
        VirtualClusters {
            env: env.clone(),
            nodes: Nodes::new("virtual", client),
            link: None,
            models: RefCell::default(),
            draws: RefCell::default(),
        }
    }

    /// The same, made here, so that the whole engine is compiled into this crate and not once more where they are used.
    pub fn boxed(env: &Env) -> Box<dyn Clusters> {
        Box::new(VirtualClusters::new(env))
    }

    /// Draws another host for a node.
    fn draw_host(&self, node: &str) {
        // From random numbers of the host's own, so that other hosts do not change what is drawn for this one.
        let draw = self.env.host(&format!("{node}, its kind")).random_u64();
        self.draws.borrow_mut().insert(node.to_owned(), draw);
    }

    /// The host that is drawn for a node from a model.
    fn drawn(&self, node: &str, model: &Host) -> Host {
        let mut random = self.draws.borrow().get(node).copied().unwrap_or_default();
        model.drawn(|| split_mix(&mut random))
    }

    /// What the host of a node is like without a fault.
    fn healthy_host(&mut self, node: &str) -> Result<Host> {
        let site = &self.nodes.find(node)?.site;
        let model = self.models.borrow().get(site).cloned().unwrap_or_default();
        Ok(self.drawn(node, &model))
    }

    /// The world of a node's host.
    fn env_of(&mut self, node: &str) -> Result<Env> {
        self.nodes.find(node)?;
        Ok(self.env.host(node))
    }

    /// Puts each node of a cluster on a host that is drawn from a model.
    fn give_hosts(&self, cluster: &str, host: &Host) {
        for node in self.nodes.of(cluster) {
            let name = &node.handle.name;
            self.env.host(name).set_host_model(self.drawn(name, host));
        }
    }

    /// Does something with all copies of an index concurrently.
    async fn on_copies<F: Future<Output = Result<(), Failure>>>(
        &self,
        cluster: &str,
        index: &str,
        act: impl Fn(CopyOnNode) -> F,
    ) -> Result<()> {
        let mut acts = Vec::new();
        for node in self.nodes.of(cluster).filter_map(|node| node.running.as_ref()) {
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

    /// Starts a node on its host; where that fails, no task is left there.
    async fn start_host(&self, config: &NodeConfig) -> Result<Node> {
        if !self.draws.borrow().contains_key(&config.name) {
            self.draw_host(&config.name);
        }
        // As the host is the same for all variants, so is where rotations of copies begin.
        let rotation_seed = self.draws.borrow().get(&config.name).copied();
        let started = NodeConfig { rotation_seed, ..config.clone() };
        let started = rest::start(&self.env.host(&config.name), started).await;
        if started.is_err() {
            self.env.kill_host(&config.name);
        }
        Ok(started?)
    }
}

/// A host on which work takes no time, and whose copies have as many files.
fn instant(model: &Host) -> Host {
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
    Host { costs, disk, compound_files: model.compound_files, ..Host::default() }
}

impl Drop for VirtualClusters {
    fn drop(&mut self) {
        for node in self.nodes.iter() {
            self.env.kill_host(&node.handle.name);
        }
    }
}

impl StartedHere for VirtualClusters {
    type Node = Node;
    type Config = NodeConfig;

    fn nodes(&self) -> &Nodes<Node, NodeConfig> {
        &self.nodes
    }

    fn nodes_mut(&mut self) -> &mut Nodes<Node, NodeConfig> {
        &mut self.nodes
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        self.link.as_ref().map(|link| link as &dyn LinkControl)
    }

    async fn start_all(&mut self, topology: &TopologySpec) -> Result<()> {
        self.link = topology.link.clone().map(|config| Link::open(&self.env, config));
        engine_start::start_all(self, topology).await
    }

    async fn start_again(&mut self, config: &NodeConfig) -> Result<Node> {
        self.start_host(config).await
    }

    /// Nothing of it is left for whoever starts a host of that name next.
    fn clear_node(&mut self, node: &str) {
        self.env.kill_host(node);
        if let Some(disk) = self.env.host(node).virtual_disk() {
            disk.remove_under(DATA);
        }
    }

    fn clear(&mut self) {
        self.link = None;
    }

    fn virtual_controls(&self) -> Option<&dyn VirtualControls> {
        Some(self)
    }
}

impl EngineClusters for VirtualClusters {
    fn place(&mut self, _number: usize, name: &str, is_fixed: bool) -> Result<Place> {
        let any = self.env.host(name).any_address();
        let transport = if is_fixed { format!("{name}:{SITE_PORT}") } else { any.clone() };
        Ok(Place { transport, http: any, data: DATA.into() })
    }

    async fn start_new(&mut self, config: &NodeConfig) -> Result<(Node, NodeHandle)> {
        let node = self.start_host(config).await?;
        let handle = NodeHandle {
            name: node.name().to_owned(),
            http: node.http_address().to_owned(),
            transport: node.transport_address().to_owned(),
        };
        Ok((node, handle))
    }

    async fn route(&self, _site: &str, address: &str) -> Result<Option<String>> {
        match &self.link {
            Some(link) => link.route(address).await.map(Some).map_err(Error::Link),
            None => Ok(None),
        }
    }
}

impl RunningNode for Node {
    async fn stop(self) {
        Node::stop(self).await;
    }
}

#[async_trait(?Send)]
impl Faults for VirtualClusters {
    async fn begin(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Slow { factor } => {
                let mut host = self.healthy_host(node)?;
                host.costs = host.costs.slowed(factor);
                self.env.host(node).set_host_model(host);
            }
            FaultKind::Load { processes, .. } => {
                let mut host = self.healthy_host(node)?;
                host.competitors += processes;
                self.env.host(node).set_host_model(host);
            }
            FaultKind::Pause => self.env_of(node)?.pause_host(node, true),
            FaultKind::Cut => self.nodes.find_running(node)?.cut_off(true),
            FaultKind::Fail => self.nodes.find_running(node)?.fail_searches(true),
            FaultKind::Stop => {
                self.nodes.stop(node).await?;
                // Its tasks are gone; what was durable stays.
                self.env.kill_host(node);
            }
            FaultKind::Kill => {
                let gone = self.nodes.find(node)?.running.take();
                self.env.kill_host(node);
                drop(gone);
            }
            FaultKind::FullDisk { free_bytes } => {
                store::set_disk_free_bytes(&self.env_of(node)?, Some(free_bytes));
            }
            FaultKind::Clock { by_ms } => {
                self.env_of(node)?.move_clock(by_ms);
            }
        }
        Ok(())
    }

    async fn end(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Slow { .. } | FaultKind::Load { .. } => {
                let host = self.healthy_host(node)?;
                self.env.host(node).set_host_model(host);
            }
            FaultKind::Pause => self.env_of(node)?.pause_host(node, false),
            FaultKind::Cut => self.nodes.find_running(node)?.cut_off(false),
            FaultKind::Fail => self.nodes.find_running(node)?.fail_searches(false),
            FaultKind::Stop | FaultKind::Kill => self.restart(node).await?,
            FaultKind::FullDisk { .. } => {
                store::set_disk_free_bytes(&self.env_of(node)?, None);
            }
            FaultKind::Clock { by_ms } => {
                self.env_of(node)?.move_clock(-by_ms);
            }
        }
        Ok(())
    }

    fn wipe(&mut self, node: &str) -> Result<()> {
        self.nodes.find_down(node)?;
        if let Some(disk) = self.env.host(node).virtual_disk() {
            disk.remove_under(&format!("{DATA}/indices/"));
        }
        Ok(())
    }
}

#[async_trait(?Send)]
impl VirtualControls for VirtualClusters {
    fn renew_hosts(&self) {
        let known: Vec<String> = self.draws.borrow().keys().cloned().collect();
        known.iter().for_each(|node| self.draw_host(node));
        for (cluster, host) in &*self.models.borrow() {
            self.give_hosts(cluster, host);
        }
    }

    fn set_hosts(&self, cluster: &str, host: &Host) {
        self.models.borrow_mut().insert(cluster.to_owned(), host.clone());
        self.give_hosts(cluster, host);
    }

    fn change_host(&self, node: &str, change: &dyn Fn(Host) -> Host) -> Result<()> {
        if !self.nodes.iter().any(|known| known.handle.name == node) {
            return Err(Error::Unknown { what: "node", name: node.to_owned() });
        }
        let env = self.env.host(node);
        let host = env.virtual_host_model().unwrap_or_default();
        env.set_host_model(change(host));
        Ok(())
    }

    async fn load_index(&self, cluster: &str, index: &SyntheticIndex) -> Result<()> {
        let fill = |copy: CopyOnNode| {
            let (documents, bytes) = (copy.part(index.documents), copy.part(index.bytes));
            let count = (index.segments / copy.shards).max(1);
            let segments = Segments { count, ratio: index.segment_ratio };
            async move {
                copy.node.synthesize(&index.name, copy.shard, documents, bytes, segments).await
            }
        };
        let model = self.models.borrow().get(cluster).cloned().unwrap_or_default();
        self.give_hosts(cluster, &instant(&model));
        let loaded = self.on_copies(cluster, &index.name, fill).await;
        self.give_hosts(cluster, &model);
        loaded
    }

    /// Network cards take no time here either. In a large cluster, publishing the state with every copy to each node
    /// would take longer than the manager waits, and nodes that missed it would ask for it while the run is measured.
    async fn place(&self, cluster: &str, indices: &[Placement], disks: &[DiskSize]) -> Result<()> {
        let model = self.models.borrow().get(cluster).cloned().unwrap_or_default();
        self.give_hosts(cluster, &Host { card_bytes_per_s: u64::MAX, ..instant(&model) });
        let nodes: Vec<Node> =
            self.nodes.of(cluster).filter_map(|node| node.running.clone()).collect();
        let placed = engine::place(&nodes, indices, disks).await;
        self.give_hosts(cluster, &model);
        placed.map_err(|failure| Error::Place { reason: failure.reason })
    }
}

impl LinkControl for Link {
    fn stats(&self, direction: Direction) -> LinkStats {
        Link::stats(self, direction)
    }

    fn times(&self) -> Option<LinkTimes> {
        Link::times(self)
    }

    fn cut(&self) {
        Link::cut(self);
    }

    fn heal(&self) {
        Link::heal(self);
    }

    fn configure(&self, config: LinkConfig) -> std::io::Result<()> {
        Link::configure(self, config)
    }
}
