//! What a plan runs on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use world::model::Host;
use world::{Direction, LinkConfig, LinkStats};

use crate::{Answer, Asker, Error};

/// A cluster to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Its name; nodes are called `<name>-0`, `<name>-1`, ...
    pub name: String,
    /// How many nodes.
    pub nodes: usize,
    /// Cluster settings of lowest rank.
    pub settings: BTreeMap<String, String>,
}

/// Checks a cluster's name, which becomes part of its nodes' names and of their directories'.
pub fn check_cluster_name(name: &str) -> Result<(), Error> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if first && name.len() <= 64 && name.chars().all(allowed) {
        return Ok(());
    }
    Err(Error::ClusterName { name: name.to_owned() })
}

/// Clusters, and the link between them.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologySpec {
    /// The clusters.
    pub clusters: Vec<ClusterSpec>,
    /// The link that they see each other through; directly without one.
    pub link: Option<LinkConfig>,
    /// Whether the clusters are sites of one cluster, called as the first: its nodes see those of the others
    /// through the link. Each is asked under its own name all the same.
    pub joined: bool,
}

impl TopologySpec {
    /// Checks what every target needs to be right before it starts anything.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.clusters.iter().try_for_each(|cluster| check_cluster_name(&cluster.name))?;
        match self.joined && self.clusters.iter().any(|site| site.nodes != 1) {
            true => Err(Error::SitesOfOne),
            false => Ok(()),
        }
    }
}

/// A running node and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHandle {
    /// Its name.
    pub name: String,
    /// REST address, `host:port`.
    pub http: String,
    /// Transport address, `host:port`.
    pub transport: String,
}

/// Removes the shard copies of a node that is down.
pub(crate) fn remove_copies(path: PathBuf) -> Result<(), Error> {
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { what: "remove", path, source })
        }
        _ => Ok(()),
    }
}

/// Where a cluster keeps snapshots, and where another one reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The directory, for a repository of type `fs` on the cluster itself.
    pub location: String,
    /// The same through the link, for one of type `url` on the other cluster.
    pub url: String,
}

/// Documents that exist only as a number, for a corpus too large to index: what a virtual target takes in place
/// of bulk requests. Each figure is that of the whole index, without replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The index, which is there already.
    pub index: String,
    /// Documents.
    pub documents: u64,
    /// Bytes of segment files.
    pub bytes: u64,
    /// Segments over all shards.
    pub segments: u32,
    /// How large each of a shard's segments is beside the one before; 1 where all are equal.
    pub segment_ratio: f64,
}

/// The link while it runs.
pub trait LinkControl {
    /// What it carried; [`Direction::Out`] is towards the cluster whose addresses are routed.
    fn stats(&self, direction: Direction) -> LinkStats;
    /// Nothing passes from now on.
    fn cut(&self);
    /// It passes again.
    fn heal(&self);
    /// Damages each of the next large pieces on the way back.
    fn damage_next(&self, chunks: u32);
    /// Changes what it is like; refuses by name what this target's world does not have.
    fn configure(&self, config: LinkConfig) -> std::io::Result<()>;
}

/// Something that runs clusters. Runners know no more of it than this.
#[allow(async_fn_in_trait, reason = "targets live on one thread, as worlds do")]
pub trait Target {
    /// `embedded`, `virtual`, ...
    fn name(&self) -> &'static str;

    /// Starts the clusters; returns when every node has joined. Where that fails, nothing is left running.
    async fn start(&mut self, topology: &TopologySpec) -> Result<(), Error>;

    /// Asks any node of a cluster: the next in turn, or another where that one does not answer. An answer
    /// other than 2xx is [`Error::Refused`].
    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Error>;

    /// Who asks a cluster without borrowing the target: of nodes, those that run now, and for an answer no longer than
    /// `limit`. A cluster that is already there has limits of its own.
    fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker, Error>;

    /// The running nodes of a cluster.
    fn nodes(&self, cluster: &str) -> Vec<NodeHandle>;

    /// Transport addresses of a cluster's nodes, as the other cluster sees them.
    fn seeds_through_link(&self, cluster: &str) -> Vec<String>;

    /// The link, where there is one.
    fn link(&self) -> Option<&dyn LinkControl>;

    /// Where the cluster keeps snapshots; none where the target has no snapshots.
    fn repository(&self, _cluster: &str) -> Option<Repository> {
        None
    }

    /// Whether `index.routing.allocation.include._name` says where an index is placed. Where it does not, a
    /// single shard is placed on the first node.
    fn places_by_setting(&self) -> bool {
        false
    }

    /// The process of a running node, by its id; none where nodes are no processes of ours.
    fn process_of(&self, _node: &str) -> Option<u32> {
        None
    }

    /// Ends a node as `kill -9` does.
    async fn kill_node(&mut self, node: &str) -> Result<(), Error>;

    /// Ends a node in order.
    async fn stop_node(&mut self, node: &str) -> Result<(), Error>;

    /// Has a node stand still: its connections stay, and nothing answers. It goes on by [`Target::resume_node`], and
    /// when this process ends.
    async fn pause_node(&mut self, node: &str) -> Result<(), Error> {
        Err(self.no_fault(format!("pause {node}")))
    }

    /// Has a paused node go on.
    async fn resume_node(&mut self, node: &str) -> Result<(), Error> {
        Err(self.no_fault(format!("resume {node}")))
    }

    /// Cuts a node off: nothing that others send it arrives until [`Target::heal_node`], connections stay, and nobody is
    /// told.
    async fn cut_node(&mut self, node: &str) -> Result<(), Error> {
        Err(self.no_fault(format!("cut off {node}")))
    }

    /// Has a node that is cut off be reached again.
    async fn heal_node(&mut self, node: &str) -> Result<(), Error> {
        Err(self.no_fault(format!("heal {node}")))
    }

    /// Has every search of a copy on a node fail at once, or no longer. Only the embedded engine does that.
    async fn fail_searches(&mut self, node: &str, _fails: bool) -> Result<(), Error> {
        Err(self.no_fault(format!("have the searches of {node} fail")))
    }

    /// Has all that a node computes take so many times as long from now on; 1 is as it was. On real machines it may
    /// use that part of what each node would have if all were busy; where the system does not allow that, the embedded
    /// engine waits so long after all that it computes.
    async fn slow_node(&mut self, node: &str, _factor: f64) -> Result<(), Error> {
        Err(self.no_fault(format!("slow {node}")))
    }

    /// Has processes of others, each always ready to run, keep a node's cores busy from now on, until it is slowed by 1.
    /// On real machines these are as many of `stress-ng` as make a thread of the node `factor` times as slow, beside the
    /// node on what it would have if all were busy; without `stress-ng` all takes `factor` times as long.
    async fn load_node(&mut self, node: &str, _processes: u32, factor: f64) -> Result<(), Error> {
        self.slow_node(node, factor).await
    }

    /// Leaves so many bytes of room on a node's disk from now on, or no limit. On real machines that takes a disk of the
    /// node's own.
    fn limit_disk(&mut self, _node: &str, _free_bytes: Option<u64>) -> Result<(), Error> {
        Err(self.virtual_only("fill a disk"))
    }

    /// Sets a node's clock so much later, or earlier. Targets on real machines refuse.
    fn move_clock(&mut self, _node: &str, _by_ms: i64) -> Result<(), Error> {
        Err(self.virtual_only("move a node's clock"))
    }

    /// The refusal of a fault that is not to be had here.
    fn no_fault(&self, what: String) -> Error {
        Error::NoFault { target: self.name(), what, why: String::new() }
    }

    /// Starts a node again, on its data and its addresses.
    async fn start_node(&mut self, node: &str) -> Result<(), Error>;

    /// Takes away the shard copies on the disk of a node that was killed.
    async fn wipe_node(&mut self, node: &str) -> Result<(), Error>;

    /// Whether [`Target::load`] works here.
    fn is_virtual(&self) -> bool {
        false
    }

    /// Puts every node on another host of its kind. What starts again meanwhile stays on the host that it has, so that
    /// what is compared is compared on the same hosts. Real machines are what they are.
    fn renew_hosts(&mut self) {}

    /// What the hosts of a cluster are like from now on. Targets with real machines refuse.
    fn set_hosts(&self, _cluster: &str, _host: &Host) -> Result<(), Error> {
        Err(self.virtual_only("change what its machines are like"))
    }

    /// Fills every copy of an index with documents that exist only as a number. It takes no time:
    /// what is loaded was indexed before the experiment began. Targets with real disks refuse.
    async fn load(&self, _cluster: &str, _load: &Load) -> Result<(), Error> {
        Err(self.virtual_only("load documents that exist only as a number"))
    }

    /// The refusal of what only the virtual world has.
    fn virtual_only(&self, what: &'static str) -> Error {
        Error::VirtualOnly { target: self.name(), what }
    }

    /// Ends when a node has ended by itself; [`Target::first_ended`] says which. Borrows nothing, so that it can be
    /// waited for beside anything that uses the target. Never where the nodes are no processes of ours.
    fn node_ended(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::pending())
    }

    /// The first node that has ended by itself, and what it said last.
    async fn first_ended(&mut self) -> Option<Error> {
        None
    }

    /// Stops everything, and takes away what was made for it.
    async fn stop(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["leader", "a", "Logs-2_b.c", "9"] {
            check_cluster_name(name).unwrap();
        }
        let long = "x".repeat(65);
        for name in ["", "..", ".", "../x", "a/b", "a b", "-a", ".a", "a:b", "a,b", "\u{e4}", &long]
        {
            let refused = check_cluster_name(name).unwrap_err().to_string();
            assert!(refused.contains("letters, digits"), "{refused}");
        }
    }
}
