//! The nodes of a target: where they are, which of them run, and which is asked next. A node belongs to a site: its
//! cluster, or a part of a cluster that spans a link.

mod ports;
mod process;
mod process_fault;
mod small_disk;
mod temporary;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use engine::NodeConfig;

use crate::clusters::{ClusterSpec, NodeHandle};
use crate::http::is_idempotent;
use crate::{Answer, Asker, Error, RestClient};
use process_fault::Fault;

pub(crate) use ports::free_ports;
pub(crate) use process::{NodeProcess, first_ended};
pub(crate) use small_disk::SmallDisks;
pub(crate) use temporary::TemporaryDir;

pub use process::{ADDRESS_TAKEN, NodeReady, NodeStart, Order, STOP, end_process_on_panic};
pub use temporary::TemporaryUse;

/// Where a node is to listen and to keep its data.
pub(crate) struct Place {
    pub(crate) transport: String,
    pub(crate) http: String,
    pub(crate) data: PathBuf,
}

/// What each node of a cluster is started with; `place` says where the n-th goes. Who the manager is comes
/// later: it is known when the first has started.
pub(crate) fn configs(
    cluster: &ClusterSpec,
    mut place: impl FnMut(usize, &str) -> Place,
) -> Vec<NodeConfig> {
    let members: Vec<String> =
        (0..cluster.nodes).map(|n| format!("{}-{n}", cluster.name)).collect();
    let config = |(n, name): (usize, &String)| {
        let Place { transport, http, data } = place(n, name);
        NodeConfig {
            name: name.clone(),
            cluster: cluster.name.clone(),
            members: members.clone(),
            manager: None,
            transport,
            http,
            credentials: None,
            publish: None,
            data,
            settings: cluster.settings.clone(),
            rotation_seed: None,
        }
    };
    members.iter().enumerate().map(config).collect()
}

/// Makes nodes of several sites one cluster, called as the first's.
pub(crate) fn join_sites(configs: &mut [NodeConfig]) {
    let members: Vec<String> = configs.iter().map(|config| config.name.clone()).collect();
    let cluster = configs.first().map(|config| config.cluster.clone()).unwrap_or_default();
    for config in configs {
        config.cluster.clone_from(&cluster);
        config.members.clone_from(&members);
    }
}

/// A node. `P` is what runs it, `C` what it is started with.
pub(crate) struct Member<P, C = NodeConfig> {
    /// The name that it is asked under: of its cluster, or of its site.
    site: String,
    /// What it is started with again: its addresses are those that others know by now.
    pub(crate) config: C,
    /// None while it is down.
    pub(crate) running: Option<P>,
    pub(crate) handle: NodeHandle,
    /// The address that leads to its transport through the link.
    through_link: Option<String>,
}

impl<P, C> Member<P, C> {
    /// The name that it is asked under.
    pub(crate) fn site(&self) -> &str {
        &self.site
    }
}

/// The nodes of a target, in the order in which they were started.
pub(crate) struct Members<P, C = NodeConfig> {
    list: Vec<Member<P, C>>,
    turn: Cell<usize>,
}

impl<P, C> Default for Members<P, C> {
    fn default() -> Self {
        Members { list: Vec::new(), turn: Cell::new(0) }
    }
}

impl<P> Members<P> {
    /// Adds a node of the embedded engine that has started.
    pub(crate) fn add_started(
        &mut self,
        site: &str,
        mut config: NodeConfig,
        handle: NodeHandle,
        through_link: Option<String>,
        running: P,
    ) {
        (config.transport, config.http) = (handle.transport.clone(), handle.http.clone());
        self.add(site, config, handle, through_link, running);
    }
}

impl<C> Members<NodeProcess, C> {
    fn running_process(&mut self, node: &str) -> Result<&mut NodeProcess, Error> {
        let gone = || Error::Unknown { what: "running node", name: node.to_owned() };
        self.find(node)?.running.as_mut().ok_or_else(gone)
    }

    /// Ends a node's process as `kill -9` does; nothing where it is down.
    pub(crate) async fn kill(&mut self, node: &str) -> Result<(), Error> {
        if let Some(process) = self.find(node)?.running.take() {
            process.kill().await;
        }
        Ok(())
    }

    /// Ends a node's process in order; nothing where it is down.
    pub(crate) async fn stop(&mut self, node: &str) -> Result<(), Error> {
        if let Some(process) = self.find(node)?.running.take() {
            process.stop().await;
        }
        Ok(())
    }

    /// Pauses a node's process, or has it go on. `target` is for messages.
    pub(crate) fn pause(
        &mut self,
        target: &'static str,
        node: &str,
        pauses: bool,
    ) -> Result<(), Error> {
        let what = format!("pause {node}");
        let paused = self.running_process(node)?.pause(pauses);
        paused.map_err(|why| Error::NoFault { target, what, why })
    }

    /// Holds a node's process to a part of what it would have if all nodes were busy.
    pub(crate) fn slow(
        &mut self,
        target: &'static str,
        node: &str,
        factor: f64,
    ) -> Result<(), Error> {
        let held = (self.cores_of_a_node() / factor, 0);
        self.hold(target, node, (factor > 1.0).then_some(held))
    }

    /// Has processes of `stress-ng` share what a node would have if all nodes were busy: so many that a thread of it gets
    /// one part in `factor`. Where there is no `stress-ng` it is slowed by that.
    pub(crate) fn load(
        &mut self,
        target: &'static str,
        node: &str,
        factor: f64,
    ) -> Result<(), Error> {
        let company = (factor - 1.0).round() as u32;
        if company == 0 || !Fault::has_stress() {
            return self.slow(target, node, factor);
        }
        let held = (self.cores_of_a_node(), company);
        self.hold(target, node, Some(held))
    }

    fn cores_of_a_node(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        cores / self.len() as f64
    }

    fn hold(
        &mut self,
        target: &'static str,
        node: &str,
        held: Option<(f64, u32)>,
    ) -> Result<(), Error> {
        let what = format!("slow {node} by a control group of the system");
        let slowed = self.running_process(node)?.slow(held);
        slowed.map_err(|why| Error::NoFault { target, what, why })
    }

    /// Tells a node of the embedded engine something.
    pub(crate) async fn order(
        &mut self,
        target: &'static str,
        node: &str,
        order: Order,
    ) -> Result<(), Error> {
        let told = self.running_process(node)?.order(order).await;
        told.map_err(|why| Error::NoFault { target, what: format!("{order} {node}"), why })
    }
}

impl<P, C> Members<P, C> {
    /// Adds a node that has started.
    pub(crate) fn add(
        &mut self,
        site: &str,
        config: C,
        handle: NodeHandle,
        through_link: Option<String>,
        running: P,
    ) {
        let (site, running) = (site.to_owned(), Some(running));
        self.list.push(Member { site, config, running, handle, through_link });
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member<P, C>> {
        self.list.iter_mut()
    }

    /// What runs a node; none where it is down.
    pub(crate) fn process(&self, name: &str) -> Option<&P> {
        self.list.iter().find(|member| member.handle.name == name)?.running.as_ref()
    }

    /// Takes the one that was started last. So managers, which come first, go last.
    pub(crate) fn pop(&mut self) -> Option<Member<P, C>> {
        self.list.pop()
    }

    pub(crate) fn find(&mut self, node: &str) -> Result<&mut Member<P, C>, Error> {
        let found = self.list.iter_mut().find(|member| member.handle.name == node);
        found.ok_or_else(|| Error::Unknown { what: "node", name: node.to_owned() })
    }

    /// The nodes of a cluster, or of a site.
    pub(crate) fn of<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Member<P, C>> {
        self.list.iter().filter(move |member| member.site == cluster)
    }

    /// The nodes of a cluster that run.
    pub(crate) fn running(&self, cluster: &str) -> Vec<NodeHandle> {
        let running = self.of(cluster).filter(|member| member.running.is_some());
        running.map(|member| member.handle.clone()).collect()
    }

    /// Transport addresses of a cluster's nodes as the other side of the link sees them.
    pub(crate) fn seeds(&self, cluster: &str) -> Vec<String> {
        let seed = |member: &Member<P, C>| {
            member.through_link.as_ref().unwrap_or(&member.handle.transport).clone()
        };
        self.of(cluster).map(seed).collect()
    }

    /// Who asks the nodes that run now, of which there must be one.
    pub(crate) fn asker(
        &self,
        client: &RestClient,
        cluster: &str,
        limit: Duration,
    ) -> Result<Asker, Error> {
        let addresses: Vec<String> =
            self.running(cluster).into_iter().map(|node| node.http).collect();
        match addresses.is_empty() {
            true => Err(Error::NoNode { cluster: cluster.to_owned() }),
            false => Ok(Asker::of_nodes(client.another().with_limit(limit), addresses)),
        }
    }

    /// Asks the next node in turn; the others where it does not answer.
    pub(crate) async fn ask(
        &self,
        client: &RestClient,
        cluster: &str,
        (method, path, body): (&str, &str, Bytes),
    ) -> Result<Answer, Error> {
        let nodes = self.running(cluster);
        let first = self.turn.get();
        self.turn.set(first.wrapping_add(1));
        let mut failure = Error::NoNode { cluster: cluster.to_owned() };
        for n in 0..nodes.len() {
            let node = &nodes[first.wrapping_add(n) % nodes.len()];
            match client.send(&node.http, method, path, body.clone()).await {
                Err(error @ Error::Connection { .. }) => failure = error,
                // Another node may be asked the same only if doing it twice does no harm: a bulk request
                // would index its documents twice.
                Err(error @ Error::Broken { .. }) if is_idempotent(method) => failure = error,
                other => return other,
            }
        }
        Err(failure)
    }
}
