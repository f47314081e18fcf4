//! What a plan runs on.

use std::collections::BTreeMap;

use bytes::Bytes;
use world::{Direction, LinkConfig, LinkStats};

use crate::{Answer, Error};

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

/// Where a cluster keeps snapshots, and where another one reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The directory, for a repository of type `fs` on the cluster itself.
    pub location: String,
    /// The same through the link, for one of type `url` on the other cluster.
    pub url: String,
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
    /// Changes what it is like.
    fn configure(&self, config: LinkConfig);
}

/// Something that runs clusters. Runners know no more of it than this.
#[allow(async_fn_in_trait, reason = "targets live on one thread, as worlds do")]
pub trait Target {
    /// `embedded`, `virtual`, ...
    fn name(&self) -> &'static str;

    /// Starts the clusters; returns when every node has joined.
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

    /// Ends a node as `kill -9` does.
    async fn kill_node(&mut self, node: &str) -> Result<(), Error>;

    /// Starts a node again, on its data and its addresses.
    async fn start_node(&mut self, node: &str) -> Result<(), Error>;

    /// Stops everything, and takes away what was made for it.
    async fn stop(&mut self);
}
