//! The embedded engine on this machine: one process a node, the link on a thread of its own.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use engine::NodeConfig;
use engine::rest::BasicAuth;
use tokio::sync::Notify;
use world::Env;

use crate::clusters::{ClusterSpec, LinkControl, NodeHandle, Target, TopologySpec, remove_copies};
use crate::link::SiteLink;
use crate::nodes::{
    self, Members, NodeProcess, NodeReady, NodeStart, Order, Place, SmallDisks, TemporaryDir,
    first_ended, free_ports,
};
use crate::{Answer, Asker, Credentials, Error, RestClient};

/// Transport ports lie so far above the HTTP ports.
const TRANSPORT_ABOVE: u16 = 100;
/// Pauses before a restarted node tries again to listen where it listened before: other processes are given
/// such ports for a connection, often a short one.
const TAKEN_PAUSES_MS: [u64; 6] = [50, 100, 200, 500, 1000, 2000];

/// Embedded clusters as processes.
pub struct EmbeddedTarget {
    env: Env,
    program: PathBuf,
    port: Option<u16>,
    http_ip: IpAddr,
    credentials: Option<BasicAuth>,
    data: Option<PathBuf>,
    client: RestClient,
    nodes: Members<NodeProcess>,
    /// Told when a node ends by itself.
    ends: Rc<Notify>,
    link: Option<SiteLink>,
    disks: SmallDisks,
    /// Below `nodes`: dropped after the processes that write there have ended.
    own_data: Option<TemporaryDir>,
}

impl EmbeddedTarget {
    const NAME: &str = "embedded";

    /// A target that starts `program node` for each node.
    pub fn new(env: &Env, program: PathBuf) -> Self {
        EmbeddedTarget {
            env: env.clone(),
            program,
            port: None,
            http_ip: Ipv4Addr::LOCALHOST.into(),
            credentials: None,
            data: None,
            client: RestClient::new(env),
            nodes: Members::default(),
            ends: Rc::default(),
            link: None,
            disks: SmallDisks::default(),
            own_data: None,
        }
    }

    /// Nodes with disks of their own, in memory, so that [`Target::limit_disk`] works. That needs the right to mount.
    pub fn with_small_disks(mut self, nodes: BTreeSet<String>) -> Self {
        self.disks = SmallDisks::of(nodes);
        self
    }

    /// Fixed ports: HTTP from `port` on, transport 100 above. Any free ones otherwise.
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Serves REST on another address than 127.0.0.1; transport stays there. Nodes refuse what is no loopback
    /// address, unless they have credentials to ask for.
    pub fn with_http_ip(mut self, ip: IpAddr) -> Self {
        self.http_ip = ip;
        self
    }

    /// Has the nodes ask for a user and his password.
    ///
    /// # Errors
    /// If the credentials are of a kind that nodes do not ask for.
    pub fn with_credentials(mut self, credentials: &Credentials) -> Result<Self, Error> {
        self.credentials = credentials.basic()?;
        self.client = RestClient::new(&self.env).with_credentials(credentials);
        Ok(self)
    }

    /// Keeps data there. In a directory that goes with the target otherwise.
    pub fn with_data(mut self, dir: &Path) -> Self {
        self.data = Some(dir.to_owned());
        self
    }

    fn data_dir(&mut self) -> Result<PathBuf, Error> {
        if let Some(dir) = &self.data {
            return Ok(dir.clone());
        }
        if self.own_data.is_none() {
            self.own_data = Some(TemporaryDir::make()?);
        }
        Ok(self.own_data.as_ref().expect("just made").path().to_owned())
    }

    fn configs(&mut self, cluster: &ClusterSpec) -> Result<Vec<NodeConfig>, Error> {
        let data = self.data_dir()?;
        let (first, port) = (self.nodes.len(), self.port);
        let address = |ip: IpAddr, above: u16, n: usize| {
            let port = port.map_or(0, |port| port.saturating_add(above + (first + n) as u16));
            SocketAddr::new(ip, port).to_string()
        };
        let mut configs = nodes::configs(cluster, |n, name| Place {
            transport: address(Ipv4Addr::LOCALHOST.into(), TRANSPORT_ABOVE, n),
            http: address(self.http_ip, 0, n),
            data: data.join(name),
        });
        for config in &mut configs {
            config.credentials.clone_from(&self.credentials);
        }
        Ok(configs)
    }

    /// As [`EmbeddedTarget::configs`], for one cluster on several sites: every node tells the others the link's address
    /// of itself.
    fn site_configs(&mut self, sites: &[ClusterSpec]) -> Result<Vec<NodeConfig>, Error> {
        let mut configs = Vec::new();
        for (n, site) in sites.iter().enumerate() {
            let mut of_site = self.configs(site)?;
            for config in &mut of_site {
                // The link is told where it leads before the node listens there.
                let port = match self.port {
                    Some(port) => port.saturating_add(TRANSPORT_ABOVE + n as u16),
                    None => free_ports(1)?[0],
                };
                config.transport = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port).to_string();
                if let Some(port) = self.port {
                    let port = port.saturating_add(n as u16);
                    config.http = SocketAddr::new(self.http_ip, port).to_string();
                }
                let link = self.link.as_ref();
                config.publish =
                    link.map(|link| link.route(&site.name, &config.transport)).transpose()?;
            }
            configs.append(&mut of_site);
        }
        nodes::join_sites(&mut configs);
        Ok(configs)
    }

    async fn start_process(&self, config: &NodeConfig) -> Result<(NodeProcess, NodeReady), Error> {
        let temporary = self.own_data.as_ref().map(|dir| dir.path().to_owned());
        let start = NodeStart { config: config.clone(), temporary };
        NodeProcess::start(&self.env, &self.program, &start, &self.ends).await
    }

    /// Starts a node where it was before; tries again for some seconds where another process listens there.
    async fn start_again(&self, config: &NodeConfig) -> Result<NodeProcess, Error> {
        let mut pauses = TAKEN_PAUSES_MS.iter();
        loop {
            match (self.start_process(config).await, pauses.next()) {
                (Err(Error::AddressTaken { .. }), Some(pause)) => {
                    self.env.sleep(Duration::from_millis(*pause)).await;
                }
                (started, _) => return started.map(|(process, _)| process),
            }
        }
    }

    async fn start_all(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        if let Some(config) = &topology.link {
            let near = topology.clusters.first().map_or("", |cluster| &cluster.name);
            self.link = Some(SiteLink::open(config.clone(), near, topology.joined)?);
        }
        if topology.joined {
            return self.start_sites(&topology.clusters).await;
        }
        for cluster in &topology.clusters {
            self.start_cluster(cluster).await?;
        }
        Ok(())
    }

    async fn start_cluster(&mut self, cluster: &ClusterSpec) -> Result<(), Error> {
        let mut manager = None;
        for mut config in self.configs(cluster)? {
            config.manager = manager.clone();
            self.disks.mount(Self::NAME, &config.name, &config.data.join("indices"))?;
            let (process, ready) = self.start_process(&config).await?;
            manager.get_or_insert_with(|| ready.transport.clone());
            let link = self.link.as_ref();
            let through_link =
                link.map(|link| link.route(&cluster.name, &ready.transport)).transpose()?;
            self.nodes.add_started(&cluster.name, config, handle(ready), through_link, process);
        }
        self.wait_for_nodes(&cluster.name, cluster.nodes).await
    }

    async fn start_sites(&mut self, sites: &[ClusterSpec]) -> Result<(), Error> {
        let mut manager = None;
        for (mut config, site) in self.site_configs(sites)?.into_iter().zip(sites) {
            config.manager = manager.clone();
            let (process, ready) = self.start_process(&config).await?;
            manager.get_or_insert_with(|| ready.transport.clone());
            let handle = NodeHandle { transport: config.transport.clone(), ..handle(ready) };
            let through_link = config.publish.clone();
            self.nodes.add_started(&site.name, config, handle, through_link, process);
        }
        match sites.first() {
            Some(first) => self.wait_for_nodes(&first.name, sites.len()).await,
            None => Ok(()),
        }
    }

    /// Where the system does not hold a process back, the engine does it itself. What was held is free either way.
    async fn or_drag(
        &mut self,
        node: &str,
        factor: f64,
        held: Result<(), Error>,
    ) -> Result<(), Error> {
        let factor = match held {
            Ok(()) if factor > 1.0 => return Ok(()),
            Ok(()) => 1.0,
            Err(Error::NoFault { .. }) => factor,
            Err(error) => return Err(error),
        };
        self.nodes.order(self.name(), node, Order::Slow(factor)).await
    }

    async fn wait_for_nodes(&self, cluster: &str, nodes: usize) -> Result<(), Error> {
        let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout=30s");
        let health = self.request(cluster, "GET", &path, Bytes::new()).await?.json()?;
        if health["timed_out"] == true {
            let joined = health["number_of_nodes"].as_u64().unwrap_or(0);
            return Err(Error::NotJoined { cluster: cluster.to_owned(), joined, nodes });
        }
        Ok(())
    }
}

/// How a node is reached: one that listens everywhere, on loopback.
fn handle(ready: NodeReady) -> NodeHandle {
    let http = match ready.http.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => {
            let ip = match address.ip() {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            };
            SocketAddr::new(ip, address.port()).to_string()
        }
        _ => ready.http,
    };
    NodeHandle { name: ready.name, http, transport: ready.transport }
}

impl Target for EmbeddedTarget {
    fn name(&self) -> &'static str {
        Self::NAME
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

    fn process_of(&self, node: &str) -> Option<u32> {
        self.nodes.process(node)?.id()
    }

    async fn kill_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.kill(node).await
    }

    async fn stop_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.stop(node).await
    }

    async fn pause_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.pause(self.name(), node, true)
    }

    async fn resume_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.pause(self.name(), node, false)
    }

    async fn cut_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.order(self.name(), node, Order::CutOff(true)).await
    }

    async fn heal_node(&mut self, node: &str) -> Result<(), Error> {
        self.nodes.order(self.name(), node, Order::CutOff(false)).await
    }

    async fn fail_searches(&mut self, node: &str, fails: bool) -> Result<(), Error> {
        self.nodes.order(self.name(), node, Order::FailSearches(fails)).await
    }

    async fn slow_node(&mut self, node: &str, factor: f64) -> Result<(), Error> {
        let held = self.nodes.slow(self.name(), node, factor);
        self.or_drag(node, factor, held).await
    }

    async fn load_node(&mut self, node: &str, _processes: u32, factor: f64) -> Result<(), Error> {
        let held = self.nodes.load(self.name(), node, factor);
        self.or_drag(node, factor, held).await
    }

    async fn start_node(&mut self, node: &str) -> Result<(), Error> {
        let member = self.nodes.find(node)?;
        if member.running.is_none() {
            let config = member.config.clone();
            let process = self.start_again(&config).await?;
            self.nodes.find(node)?.running = Some(process);
        }
        Ok(())
    }

    async fn wipe_node(&mut self, node: &str) -> Result<(), Error> {
        let member = self.nodes.find(node)?;
        if member.running.is_some() {
            return Err(Error::Unknown { what: "killed node", name: node.to_owned() });
        }
        remove_copies(member.config.data.join("indices"))
    }

    fn node_ended(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        let ends = self.ends.clone();
        Box::pin(async move { ends.notified().await })
    }

    fn limit_disk(&mut self, node: &str, free_bytes: Option<u64>) -> Result<(), Error> {
        self.disks.limit(self.name(), node, free_bytes)
    }

    async fn first_ended(&mut self) -> Option<Error> {
        first_ended(&mut self.nodes).await
    }

    async fn stop(&mut self) {
        while let Some(node) = self.nodes.pop() {
            if let Some(process) = node.running {
                process.stop().await;
            }
        }
        self.link = None;
        self.disks.clear();
        self.own_data = None;
    }
}
