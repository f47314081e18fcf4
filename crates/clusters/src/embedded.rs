//! The embedded engine on this machine: one process a node, the link on a thread of its own.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use engine::NodeConfig;
use world::Env;

use crate::kept::is_idempotent;
use crate::opensearch::free_ports;
use crate::process::{NodeProcess, Ready};
use crate::site_link::SiteLink;
use crate::target::{ClusterSpec, LinkControl, NodeHandle, Target, TopologySpec};
use crate::{Answer, Error, RestClient};

/// Transport ports lie so far above the HTTP ports.
const TRANSPORT_ABOVE: u16 = 100;
/// How often it is looked whether a node has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

struct RunningNode {
    cluster: String,
    config: NodeConfig,
    process: Option<NodeProcess>,
    handle: NodeHandle,
    /// The address that leads to its transport through the link.
    through_link: Option<String>,
}

/// Embedded clusters as processes.
pub struct EmbeddedTarget {
    env: Env,
    program: PathBuf,
    port: Option<u16>,
    data: Option<PathBuf>,
    client: RestClient,
    nodes: Vec<RunningNode>,
    link: Option<SiteLink>,
    /// Below `nodes`: dropped after the processes that write there have ended.
    own_data: Option<tempfile::TempDir>,
    turn: Cell<usize>,
}

impl EmbeddedTarget {
    /// A target that starts `program node` for each node.
    pub fn new(env: &Env, program: PathBuf) -> Self {
        EmbeddedTarget {
            env: env.clone(),
            program,
            port: None,
            data: None,
            own_data: None,
            client: RestClient::new(env),
            nodes: Vec::new(),
            link: None,
            turn: Cell::new(0),
        }
    }

    /// Fixed ports: HTTP from `port` on, transport 100 above. Any free ones otherwise.
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
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
            let made = tempfile::Builder::new().prefix("narrows-").tempdir();
            let path = std::env::temp_dir();
            let made =
                made.map_err(|source| Error::Io { what: "make a directory in", path, source })?;
            self.own_data = Some(made);
        }
        Ok(self.own_data.as_ref().expect("just made").path().to_owned())
    }

    fn configs(&mut self, cluster: &ClusterSpec) -> Result<Vec<NodeConfig>, Error> {
        let data = self.data_dir()?;
        let first = self.nodes.len();
        let members: Vec<String> =
            (0..cluster.nodes).map(|n| format!("{}-{n}", cluster.name)).collect();
        let address = |above: u16, n: usize| match self.port {
            Some(port) => format!("127.0.0.1:{}", port.saturating_add(above + (first + n) as u16)),
            None => "127.0.0.1:0".to_owned(),
        };
        let config = |(n, name): (usize, &String)| NodeConfig {
            name: name.clone(),
            cluster: cluster.name.clone(),
            members: members.clone(),
            manager: None,
            transport: address(TRANSPORT_ABOVE, n),
            http: address(0, n),
            data: data.join(name),
            settings: cluster.settings.clone(),
            publish: None,
        };
        Ok(members.iter().enumerate().map(config).collect())
    }

    async fn start_cluster(&mut self, cluster: &ClusterSpec) -> Result<(), Error> {
        let mut manager = None;
        for mut config in self.configs(cluster)? {
            config.manager = manager.clone();
            let (process, ready) = NodeProcess::start(&self.env, &self.program, &config).await?;
            manager.get_or_insert_with(|| ready.transport.clone());
            self.add(&cluster.name, config, process, ready)?;
        }
        self.wait_for_nodes(&cluster.name, cluster.nodes).await
    }

    /// Starts one cluster on several sites: every node tells the others the link's address of itself.
    async fn start_sites(&mut self, sites: &[ClusterSpec]) -> Result<(), Error> {
        if sites.iter().any(|site| site.nodes != 1) {
            return Err(Error::SitesOfOne);
        }
        let Some(first) = sites.first() else { return Ok(()) };
        let members: Vec<String> = sites.iter().map(|site| format!("{}-0", site.name)).collect();
        let mut manager = None;
        for site in sites {
            let mut config = self.configs(site)?.remove(0);
            config.cluster = first.name.clone();
            config.members = members.clone();
            if self.port.is_none() {
                config.transport = format!("127.0.0.1:{}", free_ports(1)?[0]);
            }
            let link = self.link.as_ref();
            let published =
                link.map(|link| link.route(&site.name, &config.transport)).transpose()?;
            config.manager = manager.clone();
            config.publish = published.clone();
            let (process, ready) = NodeProcess::start(&self.env, &self.program, &config).await?;
            manager.get_or_insert(ready.transport);
            let handle = NodeHandle {
                name: ready.name,
                http: ready.http.clone(),
                transport: config.transport.clone(),
            };
            config.http = ready.http;
            let (cluster, process) = (site.name.clone(), Some(process));
            let through_link = published;
            self.nodes.push(RunningNode { cluster, config, process, handle, through_link });
        }
        self.wait_for_nodes(&first.name, sites.len()).await
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

    fn add(
        &mut self,
        cluster: &str,
        mut config: NodeConfig,
        process: NodeProcess,
        ready: Ready,
    ) -> Result<(), Error> {
        let link = self.link.as_ref();
        let through_link = link.map(|link| link.route(cluster, &ready.transport)).transpose()?;
        // A restart takes the same addresses, which others know by now.
        (config.transport, config.http) = (ready.transport.clone(), ready.http.clone());
        let handle = NodeHandle { name: ready.name, http: ready.http, transport: ready.transport };
        let process = Some(process);
        let cluster = cluster.to_owned();
        self.nodes.push(RunningNode { cluster, config, process, handle, through_link });
        Ok(())
    }

    fn find(&self, node: &str) -> Result<usize, Error> {
        let found = self.nodes.iter().position(|running| running.handle.name == node);
        found.ok_or_else(|| Error::Unknown { what: "node", name: node.to_owned() })
    }

    /// Waits until a node ends by itself; what it said.
    pub async fn wait_for_exit(&mut self) -> Error {
        loop {
            for node in &mut self.nodes {
                if let Some(process) = &mut node.process
                    && let Some(error) = process.ended().await
                {
                    return error;
                }
            }
            self.env.sleep(LOOK_EVERY).await;
        }
    }
}

impl Target for EmbeddedTarget {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<(), Error> {
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
        let running = |node: &&RunningNode| node.cluster == cluster && node.process.is_some();
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
        if let Some(process) = self.nodes[place].process.take() {
            process.kill().await;
        }
        Ok(())
    }

    async fn start_node(&mut self, node: &str) -> Result<(), Error> {
        let place = self.find(node)?;
        if self.nodes[place].process.is_none() {
            let config = &self.nodes[place].config;
            let (process, _) = NodeProcess::start(&self.env, &self.program, config).await?;
            self.nodes[place].process = Some(process);
        }
        Ok(())
    }

    async fn stop(&mut self) {
        // The manager, which comes first, goes last.
        while let Some(mut node) = self.nodes.pop() {
            if let Some(process) = node.process.take() {
                process.stop().await;
            }
        }
        self.link = None;
        self.own_data = None;
    }
}

/// Asks the next node in turn; the others where it does not answer.
pub(crate) async fn ask_in_turn(
    client: &RestClient,
    nodes: &[NodeHandle],
    turn: &Cell<usize>,
    cluster: &str,
    (method, path, body): (&str, &str, Bytes),
) -> Result<Answer, Error> {
    let first = turn.get();
    turn.set(first.wrapping_add(1));
    let mut failure = Error::NoNode { cluster: cluster.to_owned() };
    for n in 0..nodes.len() {
        let node = &nodes[first.wrapping_add(n) % nodes.len()];
        match client.send(&node.http, method, path, body.clone()).await {
            Err(error @ Error::Connection { .. }) => failure = error,
            // Another node may be asked the same only if doing it twice does no harm: a bulk request would
            // index its documents twice.
            Err(error @ Error::Broken { .. }) if is_idempotent(method) => failure = error,
            other => return other,
        }
    }
    Err(failure)
}
