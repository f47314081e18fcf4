//! Clusters of the embedded engine on this machine: one process a node, the link on a thread of its own.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use engine::NodeConfig;
use rest::{BasicAuth, PresentedAs};
use world::Env;

use super::engine_start::{self, EngineClusters, Place};
use super::remove_copies;
use super::started::StartedHere;
use crate::clusters::{Faults, LinkControl};
use crate::fault::{FaultKind, Strain};
use crate::http::RestClient;
use crate::link::SiteLink;
use crate::nodes::{
    NodeProcess, NodeReady, NodeStart, Nodes, Order, SmallDisks, TemporaryDir, free_ports,
    start_where_it_was,
};
use crate::topology::{NodeHandle, TopologySpec};
use crate::{Credentials, Error, Result};

/// How far transport ports lie above the HTTP ports.
pub const TRANSPORT_ABOVE: u16 = 100;

/// Embedded clusters as processes: `--on embedded`.
pub struct EmbeddedClusters {
    env: Env,
    program: PathBuf,
    port: Option<u16>,
    http_ip: IpAddr,
    credentials: Option<BasicAuth>,
    allowed_hosts: Vec<String>,
    presented_as: PresentedAs,
    data: Option<PathBuf>,
    nodes: Nodes<NodeProcess, NodeConfig>,
    link: Option<SiteLink>,
    disks: SmallDisks,
    /// Below `nodes`: dropped after the processes that write there have ended.
    own_data: Option<TemporaryDir>,
}

impl EmbeddedClusters {
    const NAME: &str = "embedded";

    /// Starts `program node` for each node.
    pub fn new(env: &Env, program: PathBuf) -> Self {
        EmbeddedClusters {
            env: env.clone(),
            program,
            port: None,
            http_ip: Ipv4Addr::LOCALHOST.into(),
            credentials: None,
            allowed_hosts: Vec::new(),
            presented_as: PresentedAs::default(),
            data: None,
            nodes: Nodes::new(Self::NAME, RestClient::new(env)),
            link: None,
            disks: SmallDisks::default(),
            own_data: None,
        }
    }

    /// Nodes with disks of their own, in memory, so that [`FaultKind::FullDisk`] works. That needs the right to mount.
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

    /// Has the nodes ask for a user and a password. Fails if the credentials are of a kind that nodes do not ask for.
    pub fn with_credentials(mut self, credentials: &Credentials) -> Result<Self> {
        self.credentials = credentials.basic()?;
        self.nodes.client = RestClient::new(&self.env).with_credentials(credentials);
        Ok(self)
    }

    /// Has the nodes answer where they are asked by these names, too.
    pub fn with_allowed_hosts(mut self, names: &[String]) -> Self {
        self.allowed_hosts = names.to_vec();
        self
    }

    /// Has the nodes present themselves as another release than the default.
    pub fn with_presented_as(mut self, release: PresentedAs) -> Self {
        self.presented_as = release;
        self
    }

    /// The first node that has ended by itself, and the error that its end is; from then on it is down.
    pub async fn take_failed(&mut self) -> Option<(String, Error)> {
        self.nodes.take_failed().await
    }

    /// Starts a node that is down, on its data and at its addresses.
    pub async fn restart(&mut self, node: &str) -> Result<()> {
        StartedHere::restart(self, node).await
    }

    /// Keeps the nodes' data in `dir`. Without this it is in a temporary directory, which is removed at the end.
    pub fn with_data(mut self, dir: &Path) -> Self {
        self.data = Some(dir.to_owned());
        self
    }

    fn data_dir(&mut self) -> Result<PathBuf> {
        if let Some(dir) = &self.data {
            return Ok(dir.clone());
        }
        if self.own_data.is_none() {
            self.own_data = Some(TemporaryDir::make()?);
        }
        Ok(self.own_data.as_ref().expect("just made").path().to_owned())
    }

    async fn start_process(&self, config: &NodeConfig) -> Result<(NodeProcess, NodeReady)> {
        let temporary = self.own_data.as_ref().map(|dir| dir.path().to_owned());
        let (credentials, allowed_hosts) = (self.credentials.clone(), self.allowed_hosts.clone());
        let presented_as = self.presented_as;
        let config = NodeConfig { credentials, allowed_hosts, presented_as, ..config.clone() };
        let start = NodeStart { config, temporary };
        NodeProcess::start(&self.env, &self.program, &start, &self.nodes.ends).await
    }

    /// Has the engine slow itself where the system refused to `limit` the process; where it did not, the engine is no
    /// longer slow by itself.
    async fn or_slow_itself(&mut self, node: &str, factor: f64, limited: Result<()>) -> Result<()> {
        let factor = match limited {
            Ok(()) if factor > 1.0 => return Ok(()),
            Ok(()) => 1.0,
            Err(Error::NoFault { .. }) => factor,
            Err(error) => return Err(error),
        };
        self.nodes.order(node, Order::Slow(factor)).await
    }
}

/// How a node is reached; on loopback where it listens on all addresses.
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

impl StartedHere for EmbeddedClusters {
    type Node = NodeProcess;
    type Config = NodeConfig;

    fn nodes(&self) -> &Nodes<NodeProcess, NodeConfig> {
        &self.nodes
    }

    fn nodes_mut(&mut self) -> &mut Nodes<NodeProcess, NodeConfig> {
        &mut self.nodes
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        self.link.as_ref().map(|link| link as &dyn LinkControl)
    }

    async fn start_all(&mut self, topology: &TopologySpec) -> Result<()> {
        self.link = SiteLink::of(topology)?;
        engine_start::start_all(self, topology).await
    }

    async fn start_again(&mut self, config: &NodeConfig) -> Result<NodeProcess> {
        let start = async || self.start_process(config).await;
        start_where_it_was(&self.env, start).await.map(|(process, _)| process)
    }

    async fn strain(&self, node: &str, strain: Strain) -> Result<()> {
        match strain {
            Strain::Disk(_) => self.nodes.order(node, Order::Strain(strain)).await,
            Strain::Neighbours(_) | Strain::Collections(_) => {
                Err(self.nodes.not_strained(node, strain))
            }
        }
    }

    fn clear(&mut self) {
        self.link = None;
        self.disks.clear();
        self.own_data = None;
    }
}

impl EngineClusters for EmbeddedClusters {
    fn place(&mut self, number: usize, name: &str, is_fixed: bool) -> Result<Place> {
        let port = |above: u16| self.port.map(|port| port.saturating_add(above + number as u16));
        let transport = match port(TRANSPORT_ABOVE) {
            Some(port) => port,
            None if is_fixed => free_ports(1)?[0],
            None => 0,
        };
        Ok(Place {
            transport: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), transport).to_string(),
            http: SocketAddr::new(self.http_ip, port(0).unwrap_or(0)).to_string(),
            data: self.data_dir()?.join(name),
        })
    }

    async fn start_new(&mut self, config: &NodeConfig) -> Result<(NodeProcess, NodeHandle)> {
        self.disks.mount(Self::NAME, &config.name, &config.data.join("indices"))?;
        let (process, ready) = self.start_process(config).await?;
        Ok((process, handle(ready)))
    }

    async fn route(&self, site: &str, address: &str) -> Result<Option<String>> {
        self.link.as_ref().map(|link| link.route(site, address)).transpose()
    }

    async fn wait_for_nodes(&mut self, cluster: &str, nodes: usize) -> Result<()> {
        self.nodes.wait_until_joined(&self.env, cluster, nodes).await
    }
}

#[async_trait(?Send)]
impl Faults for EmbeddedClusters {
    async fn begin(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Cut => self.nodes.order(node, Order::CutOff(true)).await,
            FaultKind::Fail => self.nodes.order(node, Order::FailSearches(true)).await,
            FaultKind::FullDisk { free_bytes } => {
                self.disks.limit(Self::NAME, node, Some(free_bytes))
            }
            FaultKind::Slow { factor } | FaultKind::Load { factor, .. } => {
                let limited = self.nodes.begin(node, fault).await;
                self.or_slow_itself(node, factor, limited).await
            }
            _ => self.nodes.begin(node, fault).await,
        }
    }

    async fn end(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Stop | FaultKind::Kill => self.restart(node).await,
            FaultKind::Cut => self.nodes.order(node, Order::CutOff(false)).await,
            FaultKind::Fail => self.nodes.order(node, Order::FailSearches(false)).await,
            FaultKind::FullDisk { .. } => self.disks.limit(Self::NAME, node, None),
            FaultKind::Slow { .. } | FaultKind::Load { .. } => {
                let freed = self.nodes.end(node, fault);
                self.or_slow_itself(node, 1.0, freed).await
            }
            _ => self.nodes.end(node, fault),
        }
    }

    fn wipe(&mut self, node: &str) -> Result<()> {
        remove_copies(self.nodes.find_down(node)?.data.join("indices"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_port_is_taken_meanwhile_listens_on_another() {
        world::real_world::run(1, async |env| {
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_node.sh");
            let mut target = EmbeddedClusters::new(&env, program);
            let Place { transport, http, data } = target.place(0, "moves", true).unwrap();
            let taken = transport.clone();
            let config = NodeConfig::new("moves", "c", &["moves".to_owned()], data);
            let mut config = NodeConfig { transport, http, ..config };
            let started = engine_start::start_node(&mut target, "c", 0, &mut config, true).await;
            let (_process, handle) = started.unwrap();
            assert_ne!(handle.transport, taken);
            assert_eq!(handle.transport, config.transport);
        });
    }
}
