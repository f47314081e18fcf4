//! OpenSearch on this machine, one JVM a node.
//!
//! | file | holds |
//! | --- | --- |
//! | `installation` | the jars, fetched once with `mvn`, or an unpacked distribution |
//! | `file_server` | a snapshot repository over HTTP, which the other cluster reads through the link |
//! | `release` | the releases that can be started, and how they differ |
//! | `node` | a node's settings, its directory, its process |
//! | `OpenSearchNode.java`, `pom.xml` | the class that starts a node; what it needs |
//!
//! Two clusters connect through the link because one is given the other's seeds behind the link. One cluster on two
//! sites ([`TopologySpec::joined`]) is put on the link by `transport.publish_port`: every node publishes the port of
//! the link that leads to it. In the same way, a node that is to be cut off gets a link of its own
//! ([`OpenSearchClusters::with_node_links`]).
//!
//! A cluster with the setting [`ENCRYPTS`] has TLS between its nodes: they get the plugin `opensearch-security` and one
//! key, which is made for them and goes with their directories.

mod file_server;
mod installation;
mod node;
mod release;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use async_trait::async_trait;
use world::{Env, LinkConfig};

use super::remove_copies;
use super::started::{STARTS_MAX, StartedHere};
use crate::clusters::{Faults, LinkControl};
use crate::fault::{FaultKind, Strain};
use crate::http::RestClient;
use crate::link::{LinkThread, SiteLink};
use crate::nodes::{
    NodeProcess, Nodes, Order, SlowDisks, StartedNode, TemporaryDir, free_ports, is_free,
    start_where_it_was,
};
use crate::topology::{ClusterSpec, NodeHandle, Repository, TopologySpec};
use crate::{Error, Result};
use file_server::FileServer;
use installation::Installation;
use node::{NodeSpec, encrypts};

pub use node::ENCRYPTS;
pub use release::Release;

/// The heap of a node where none is asked for.
pub const DEFAULT_HEAP: &str = "512m";

/// OpenSearch nodes as processes: `--on opensearch`.
pub struct OpenSearchClusters {
    env: Env,
    heap: String,
    release: &'static Release,
    home: Option<PathBuf>,
    installation: Option<Installation>,
    /// Nodes that encrypt what they send each other, and their keys, once some are wanted.
    encrypting: Option<(Installation, Rc<[u8]>)>,
    nodes: Nodes<NodeProcess, NodeSpec>,
    link: Option<SiteLink>,
    /// The link that leads to each node, where nodes can be cut off; none where they cannot.
    node_links: Option<BTreeMap<String, LinkThread>>,
    /// The snapshot repository of each cluster, and its HTTP server for the other clusters.
    repositories: BTreeMap<String, (Repository, FileServer)>,
    /// Below `nodes`: dropped after the processes that write there have ended.
    disks: SlowDisks,
    /// Below `disks`, which are mounted there.
    root: Option<TemporaryDir>,
}

impl OpenSearchClusters {
    const NAME: &str = "opensearch";

    /// Clusters that start nodes with a heap of [`DEFAULT_HEAP`], from Maven Central.
    pub fn new(env: &Env) -> Self {
        OpenSearchClusters {
            env: env.clone(),
            heap: DEFAULT_HEAP.to_owned(),
            release: Release::standard(),
            home: None,
            installation: None,
            encrypting: None,
            nodes: Nodes::new(Self::NAME, RestClient::new(env)),
            link: None,
            node_links: None,
            repositories: BTreeMap::new(),
            disks: SlowDisks::default(),
            root: None,
        }
    }

    /// Another heap for every node, as Java writes it: `512m`, `1g`.
    pub fn with_heap(mut self, heap: &str) -> Self {
        self.heap = heap.to_owned();
        self
    }

    /// Another release from Maven Central.
    pub fn with_release(mut self, release: &'static Release) -> Self {
        self.release = release;
        self
    }

    /// An unpacked distribution instead of the release from Maven Central.
    pub fn with_home(mut self, home: &Path) -> Self {
        self.home = Some(home.to_owned());
        self
    }

    /// Whether nodes can be cut off: then the others reach each node through a link of its own, which costs a hop. What
    /// a node that is cut off sends still arrives; that the others do not reach it is enough for it to leave the
    /// cluster. Clients reach it regardless. Not possible together with a link between clusters.
    pub fn with_node_links(mut self, node_links: bool) -> Self {
        self.node_links = node_links.then(BTreeMap::new);
        self
    }

    /// Nodes with disks of their own, in memory, so that [`Strain::Disk`] works; `program disk` serves each. Needs
    /// [`machine::OWN_DISKS`]. What is on such a disk goes with its node.
    pub fn with_slow_disks(mut self, program: PathBuf, nodes: BTreeSet<String>) -> Self {
        self.disks = SlowDisks::of(program, nodes);
        self
    }

    /// Where a release has been fetched and built already; none where Maven has yet to do that.
    pub fn built(release: &Release) -> Option<PathBuf> {
        installation::built(release)
    }

    /// Where releases are kept; none where neither `NARROWS_CACHE` nor `XDG_CACHE_HOME` nor `HOME` says it.
    pub fn cache_dir() -> Option<PathBuf> {
        installation::cache_dir()
    }

    /// Downloads or finds OpenSearch. [`Clusters::start`](crate::Clusters::start) does it, too; here it can be awaited
    /// by itself, because the first time takes a while.
    pub async fn install(&mut self) -> Result<()> {
        if self.installation.is_none() {
            self.installation = Some(match &self.home {
                Some(home) => Installation::from_home(home).await?,
                None => Installation::from_maven(&self.env, self.release).await?,
            });
        }
        Ok(())
    }

    /// Serves each cluster's snapshots to the other clusters, through the link. Nodes get the addresses when they
    /// start.
    fn serve_repositories(&mut self, clusters: &[ClusterSpec]) -> Result<()> {
        for cluster in clusters {
            let dir = self.repository_dir(&format!("{}-0", cluster.name));
            let server = FileServer::start(&dir)?;
            let address = match &self.link {
                Some(link) => link.route(&cluster.name, &server.address())?,
                None => server.address(),
            };
            let location = dir.to_string_lossy().into_owned();
            let repository = Repository { location, url: format!("http://{address}/") };
            self.repositories.insert(cluster.name.clone(), (repository, server));
        }
        Ok(())
    }

    /// In the manager's own directory, so that it is removed with that.
    fn repository_dir(&self, manager: &str) -> PathBuf {
        self.root.as_ref().expect("it was made").path().join(manager).join("repository")
    }

    /// Starts a node; on other ports where the free ones have been taken meanwhile.
    async fn start_one(
        &mut self,
        cluster: &ClusterSpec,
        n: usize,
        manager: Option<&NodeSpec>,
        joined: bool,
    ) -> Result<NodeSpec> {
        let mut tries = 1;
        loop {
            let (spec, through_link) = self.spec(cluster, n, manager, joined)?;
            match self.start_process(&spec).await {
                Ok(process) => {
                    let address = |port: u16| format!("127.0.0.1:{port}");
                    let handle = NodeHandle {
                        name: spec.name.clone(),
                        http: address(spec.http_port),
                        transport: address(spec.transport_port),
                    };
                    let (site, running) = (cluster.name.clone(), Some(process));
                    let config = spec.clone();
                    self.nodes.add(StartedNode { site, handle, through_link, config, running });
                    return Ok(spec);
                }
                Err(Error::AddressTaken { .. }) if tries < STARTS_MAX => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn start_process(&mut self, spec: &NodeSpec) -> Result<NodeProcess> {
        // Its JVM would find that out after seconds, at each try.
        if ![spec.http_port, spec.transport_port].into_iter().all(is_free) {
            return Err(Error::AddressTaken { node: spec.name.clone(), stderr: Vec::new() });
        }
        let namespace = self.disks.namespace(Self::NAME, &spec.name, &spec.dir)?;
        let encrypting = self.encrypting.as_ref().filter(|_| spec.keys.is_some());
        let installation = encrypting.map(|(installation, _)| installation);
        let installation = installation.or(self.installation.as_ref()).expect("it is installed");
        spec.start(&self.env, installation, namespace.as_deref(), &self.nodes.ends).await
    }

    /// The link of a node. Fails if nodes were started without links of their own, or this one is not there.
    pub fn node_link(&self, node: &str) -> Result<&LinkThread> {
        let none = || {
            let why = "its nodes were started without links of their own".to_owned();
            Error::NoFault { target: Self::NAME, what: format!("cut off {node}"), why }
        };
        self.node_links.as_ref().and_then(|links| links.get(node)).ok_or_else(none)
    }

    /// What node `n` of a cluster is started with, and the address that leads to it through the link.
    fn spec(
        &mut self,
        cluster: &ClusterSpec,
        n: usize,
        manager: Option<&NodeSpec>,
        joined: bool,
    ) -> Result<(NodeSpec, Option<String>)> {
        let ports = free_ports(2)?;
        let name = format!("{}-{n}", cluster.name);
        let root = self.root.as_ref().expect("it was made").path();
        let transport = format!("127.0.0.1:{}", ports[1]);
        let through_link =
            self.link.as_ref().map(|link| link.route(&cluster.name, &transport)).transpose()?;
        let through_own = match &mut self.node_links {
            Some(links) if self.link.is_none() => {
                let own_link = LinkThread::open(LinkConfig::default())?;
                let address = own_link.route("127.0.0.1:0", &transport)?;
                links.insert(name.clone(), own_link);
                Some(address)
            }
            _ => None,
        };
        let through = through_own.as_ref().or(through_link.as_ref().filter(|_| joined));
        let published = through.unwrap_or(&transport);
        let publish_port = published.rsplit(':').next().and_then(|port| port.parse().ok());
        let allowed =
            self.repositories.values().map(|(repository, _)| repository.url.clone() + "*");
        let manager_name = manager.map_or(&name, |manager| &manager.name);
        let attributes = cluster.attributes.get(n).into_iter().flatten();
        let attributes =
            attributes.map(|(name, value)| (format!("node.attr.{name}"), value.clone()));
        let spec = NodeSpec {
            cluster: manager.map_or(&cluster.name, |manager| &manager.cluster).clone(),
            manager: manager_name.clone(),
            seed: manager.map_or(published, |manager| &manager.seed).clone(),
            http_port: ports[0],
            transport_port: ports[1],
            publish_port: publish_port.expect("a route is an address with a port"),
            dir: root.join(&name),
            repository: self.repository_dir(manager_name),
            allowed_urls: allowed.collect::<Vec<_>>().join(","),
            heap: self.heap.clone(),
            settings: cluster.settings.clone().into_iter().chain(attributes).collect(),
            keys: self
                .encrypting
                .as_ref()
                .filter(|_| encrypts(&cluster.settings))
                .map(|(_, keys)| keys.clone()),
            name,
        };
        Ok((spec, through_link))
    }
}

impl StartedHere for OpenSearchClusters {
    type Node = NodeProcess;
    type Config = NodeSpec;
    const HAS_ALLOCATION_FILTERS: bool = true;

    fn nodes(&self) -> &Nodes<NodeProcess, NodeSpec> {
        &self.nodes
    }

    fn nodes_mut(&mut self) -> &mut Nodes<NodeProcess, NodeSpec> {
        &mut self.nodes
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        self.link.as_ref().map(|link| link as &dyn LinkControl)
    }

    fn prepares(&self) -> Option<String> {
        let fetches = self.installation.is_none() && self.home.is_none();
        fetches.then(|| Installation::to_fetch(self.release)).flatten()
    }

    async fn start_all(&mut self, topology: &TopologySpec) -> Result<()> {
        self.install().await?;
        let root = self.root.insert(TemporaryDir::make()?);
        if topology.clusters.iter().any(|cluster| encrypts(&cluster.settings)) {
            let plain = self.installation.as_ref().expect("it is installed");
            let encrypting = plain.encrypting(self.release).await?;
            let keys = encrypting.keys(root.path()).await?;
            self.encrypting = Some((encrypting, keys.into()));
        }
        self.link = SiteLink::of(topology)?;
        if !topology.joined {
            self.serve_repositories(&topology.clusters)?;
        }
        let mut manager: Option<NodeSpec> = None;
        for cluster in &topology.clusters {
            if !topology.joined {
                manager = None;
            }
            for n in 0..cluster.nodes {
                let started = self.start_one(cluster, n, manager.as_ref(), topology.joined).await?;
                manager.get_or_insert(started);
            }
        }
        let joined_nodes = topology.clusters.iter().map(|cluster| cluster.nodes).sum();
        for cluster in &topology.clusters {
            let nodes = if topology.joined { joined_nodes } else { cluster.nodes };
            self.nodes.wait_until_joined(&self.env, &cluster.name, nodes).await?;
        }
        Ok(())
    }

    async fn start_again(&mut self, spec: &NodeSpec) -> Result<NodeProcess> {
        let env = self.env.clone();
        start_where_it_was(&env, async || self.start_process(spec).await).await
    }

    async fn strain(&self, node: &str, strain: Strain) -> Result<()> {
        let refused = |why: String| {
            let what = format!("slow the disk of {node}");
            Error::NoFault { target: Self::NAME, what, why }
        };
        let none = || self.nodes.not_strained(node, strain);
        let disk = || self.disks.find(node).ok_or_else(none);
        match strain {
            Strain::Collections(_) => self.nodes.order(node, Order::Strain(strain)).await,
            Strain::Disk(rates) => disk()?.set(rates).map_err(|why| refused(why.to_string())),
            Strain::Neighbours(count) => disk()?.write_beside(count).map_err(refused),
        }
    }

    fn clear_node(&mut self, node: &str) {
        self.disks.remove(node);
    }

    fn clear(&mut self) {
        self.repositories.clear();
        self.link = None;
        if let Some(links) = &mut self.node_links {
            links.clear();
        }
        self.disks.clear();
        self.encrypting = None;
        self.root = None;
    }

    fn repository(&self, cluster: &str) -> Option<Repository> {
        self.repositories.get(cluster).map(|(repository, _)| repository.clone())
    }
}

#[async_trait(?Send)]
impl Faults for OpenSearchClusters {
    async fn begin(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Cut => self.node_link(node).map(LinkControl::cut),
            _ => self.nodes.begin(node, fault).await,
        }
    }

    async fn end(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Stop | FaultKind::Kill => self.restart(node).await,
            FaultKind::Cut => self.node_link(node).map(LinkControl::heal),
            _ => self.nodes.end(node, fault),
        }
    }

    fn wipe(&mut self, node: &str) -> Result<()> {
        remove_copies(self.nodes.find_down(node)?.dir.join("data/nodes/0/indices"))
    }
}
