//! The embedded engine in virtual time: the same nodes, on simulated hosts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use engine::transport::Failure;
use engine::{Node, NodeConfig, Segments};
use futures_util::future::try_join_all;
use world::model::{CoreCosts, Disk, Host, split_mix};
use world::{Direction, Env, Link, LinkConfig, LinkStats};

use crate::clusters::{ClusterSpec, LinkControl, Load, NodeHandle, Target, TopologySpec};
use crate::nodes::{self, Members, Place};
use crate::{Answer, Asker, Error, RestClient};

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
    nodes: Members<Node>,
    link: Option<Link>,
    /// What the hosts of each cluster are like; the world's default where none is given.
    models: RefCell<BTreeMap<String, Host>>,
    /// What makes each host another one of its kind, by the node's name, and decides where its rotations of copies
    /// begin. A node that starts again has the host that it had.
    draws: RefCell<BTreeMap<String, u64>>,
}

impl VirtualTarget {
    /// A target on the world of `env`.
    pub fn new(env: &Env) -> Self {
        let client = RestClient::new(env).with_limit(PATIENCE);
        VirtualTarget {
            env: env.clone(),
            client,
            nodes: Members::default(),
            link: None,
            models: RefCell::default(),
            draws: RefCell::default(),
        }
    }

    /// Draws the host of a node anew.
    fn draw_host(&self, node: &str) {
        // Of the host's own chance, which that of others does not disturb.
        let draw = self.env.host(&format!("{node}, its kind")).random_u64();
        self.draws.borrow_mut().insert(node.to_owned(), draw);
    }

    /// The host of a node, of a kind.
    fn drawn(&self, node: &str, kind: &Host) -> Host {
        let mut random = self.draws.borrow().get(node).copied().unwrap_or_default();
        kind.drawn(|| split_mix(&mut random))
    }

    /// The host of a node as it is when nothing befalls it.
    fn own_host(&mut self, node: &str) -> Result<Host, Error> {
        let site = self.nodes.find(node)?.site().to_owned();
        let kind = self.models.borrow().get(&site).cloned().unwrap_or_default();
        Ok(self.drawn(node, &kind))
    }

    fn running(&mut self, node: &str) -> Result<&Node, Error> {
        let gone = || Error::Unknown { what: "running node", name: node.to_owned() };
        self.nodes.find(node)?.running.as_ref().ok_or_else(gone)
    }

    async fn start_all(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        self.link = topology.link.clone().map(|config| Link::open(&self.env, config));
        if topology.joined {
            return self.start_sites(&topology.clusters).await;
        }
        for cluster in &topology.clusters {
            self.start_cluster(cluster).await?;
        }
        Ok(())
    }

    async fn start_cluster(&mut self, cluster: &ClusterSpec) -> Result<(), Error> {
        let configs = nodes::configs(cluster, |_, name| {
            let any = self.env.host(name).any_address();
            Place { transport: any.clone(), http: any, data: DATA.into() }
        });
        let mut manager = None;
        for mut config in configs {
            config.manager = manager.clone();
            let node = self.start_host(&config).await?;
            manager.get_or_insert_with(|| node.transport_address().to_owned());
            let handle = NodeHandle {
                name: node.name().to_owned(),
                http: node.http_address().to_owned(),
                transport: node.transport_address().to_owned(),
            };
            let through_link = match &self.link {
                Some(link) => Some(link.route(&handle.transport).await.map_err(Error::Link)?),
                None => None,
            };
            self.nodes.add_started(&cluster.name, config, handle, through_link, node);
        }
        Ok(())
    }

    /// One cluster on several sites: every node tells the others the link's address of itself.
    async fn start_sites(&mut self, sites: &[ClusterSpec]) -> Result<(), Error> {
        let mut configs = Vec::new();
        for site in sites {
            configs.extend(nodes::configs(site, |_, name| Place {
                transport: format!("{name}:{SITE_PORT}"),
                http: self.env.host(name).any_address(),
                data: DATA.into(),
            }));
        }
        nodes::join_sites(&mut configs);
        let mut manager = None;
        for (mut config, site) in configs.into_iter().zip(sites) {
            if let Some(link) = &self.link {
                config.publish = Some(link.route(&config.transport).await.map_err(Error::Link)?);
            }
            config.manager = manager.clone();
            let node = self.start_host(&config).await?;
            manager.get_or_insert_with(|| node.transport_address().to_owned());
            let handle = NodeHandle {
                name: config.name.clone(),
                http: node.http_address().to_owned(),
                transport: config.transport.clone(),
            };
            let through_link = config.publish.clone();
            self.nodes.add_started(&site.name, config, handle, through_link, node);
        }
        Ok(())
    }

    fn give_hosts(&self, cluster: &str, host: &Host) {
        for node in self.nodes.of(cluster) {
            let name = &node.handle.name;
            self.env.host(name).set_host_model(self.drawn(name, host));
        }
    }

    /// Does something with every copy of an index at once.
    async fn on_copies<F: Future<Output = Result<(), Failure>>>(
        &self,
        cluster: &str,
        index: &str,
        act: impl Fn(CopyOnNode) -> F,
    ) -> Result<(), Error> {
        let mut acts = Vec::new();
        for node in self.nodes.of(cluster).filter_map(|member| member.running.as_ref()) {
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

    /// Starts a node on its host; one that does not come up leaves no task there.
    async fn start_host(&self, config: &NodeConfig) -> Result<Node, Error> {
        if !self.draws.borrow().contains_key(&config.name) {
            self.draw_host(&config.name);
        }
        // As the host, so where its rotations begin: variants meet the same.
        let rotation_seed = self.draws.borrow().get(&config.name).copied();
        let started = NodeConfig { rotation_seed, ..config.clone() };
        let started = Node::start(&self.env.host(&config.name), started).await;
        if started.is_err() {
            self.env.kill_host(&config.name);
        }
        Ok(started?)
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
        for node in self.nodes.iter_mut() {
            self.env.kill_host(&node.handle.name);
        }
    }
}

impl Target for VirtualTarget {
    fn name(&self) -> &'static str {
        "virtual"
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        topology.check()?;
        let started = self.start_all(topology).await;
        if started.is_err() {
            self.stop().await;
        }
        started
    }

    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Error> {
        self.nodes.ask(&self.client, cluster, (method, path, body)).await
    }

    fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker, Error> {
        self.nodes.asker(&self.client, cluster, limit)
    }

    fn nodes(&self, cluster: &str) -> Vec<NodeHandle> {
        self.nodes.running(cluster)
    }

    fn seeds_through_link(&self, cluster: &str) -> Vec<String> {
        self.nodes.seeds(cluster)
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        self.link.as_ref().map(|link| link as &dyn LinkControl)
    }

    async fn kill_node(&mut self, node: &str) -> Result<(), Error> {
        let gone = self.nodes.find(node)?.running.take();
        self.env.kill_host(node);
        drop(gone);
        Ok(())
    }

    async fn stop_node(&mut self, node: &str) -> Result<(), Error> {
        if let Some(running) = self.nodes.find(node)?.running.take() {
            running.stop().await;
        }
        // Its tasks are gone; what was durable stays.
        self.env.kill_host(node);
        Ok(())
    }

    async fn pause_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.find(node)?;
        self.env.pause_host(node, true);
        Ok(())
    }

    async fn resume_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.find(node)?;
        self.env.pause_host(node, false);
        Ok(())
    }

    async fn cut_node(&mut self, node: &str) -> Result<(), Error> {
        self.running(node)?.cut_off(true);
        Ok(())
    }

    async fn heal_node(&mut self, node: &str) -> Result<(), Error> {
        self.running(node)?.cut_off(false);
        Ok(())
    }

    async fn fail_searches(&mut self, node: &str, fails: bool) -> Result<(), Error> {
        self.running(node)?.fail_searches(fails);
        Ok(())
    }

    async fn slow_node(&mut self, node: &str, factor: f64) -> Result<(), Error> {
        let mut host = self.own_host(node)?;
        host.costs = host.costs.slowed(factor);
        self.env.host(node).set_host_model(host);
        Ok(())
    }

    async fn load_node(&mut self, node: &str, processes: u32, _factor: f64) -> Result<(), Error> {
        let mut host = self.own_host(node)?;
        host.competitors += processes;
        self.env.host(node).set_host_model(host);
        Ok(())
    }

    fn limit_disk(&mut self, node: &str, free_bytes: Option<u64>) -> Result<(), Error> {
        self.nodes.find(node)?;
        store::set_disk_free_bytes(&self.env.host(node), free_bytes);
        Ok(())
    }

    fn move_clock(&mut self, node: &str, by_ms: i64) -> Result<(), Error> {
        self.nodes.find(node)?;
        self.env.host(node).move_clock(by_ms);
        Ok(())
    }

    async fn start_node(&mut self, node: &str) -> Result<(), Error> {
        let member = self.nodes.find(node)?;
        if member.running.is_none() {
            let config = member.config.clone();
            let started = self.start_host(&config).await?;
            self.nodes.find(node)?.running = Some(started);
        }
        Ok(())
    }

    async fn wipe_node(&mut self, node: &str) -> Result<(), Error> {
        if self.nodes.find(node)?.running.is_some() {
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

    fn renew_hosts(&mut self) {
        let known: Vec<String> = self.draws.borrow().keys().cloned().collect();
        known.iter().for_each(|node| self.draw_host(node));
        for (cluster, host) in &*self.models.borrow() {
            self.give_hosts(cluster, host);
        }
    }

    fn set_hosts(&self, cluster: &str, host: &Host) -> Result<(), Error> {
        self.models.borrow_mut().insert(cluster.to_owned(), host.clone());
        self.give_hosts(cluster, host);
        Ok(())
    }

    async fn load(&self, cluster: &str, load: &Load) -> Result<(), Error> {
        let fill = |copy: CopyOnNode| {
            let (documents, bytes) = (copy.part(load.documents), copy.part(load.bytes));
            let count = (load.segments / copy.shards).max(1);
            let segments = Segments { count, ratio: load.segment_ratio };
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

    async fn stop(&mut self) {
        while let Some(member) = self.nodes.pop() {
            if let Some(node) = member.running {
                node.stop().await;
            }
            // Nothing of it is left for who starts a host of that name next.
            self.env.kill_host(&member.handle.name);
            if let Some(disk) = self.env.host(&member.handle.name).virtual_disk() {
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
