//! What a plan runs on: [`Clusters`], and the parts that not every place has.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::{DiskSize, Placement};
use futures_util::future::LocalBoxFuture;
use world::model::Host;
use world::{Direction, LinkConfig, LinkStats, LinkTimes};

use crate::fault::{FaultKind, Strain};
use crate::follow_api::FollowApi;
use crate::http::Answer;
use crate::http::wire::WireHost;
use crate::topology::{NodeHandle, Repository, TopologySpec};
use crate::{Asker, Error, Result};

/// Clusters in some place: processes on this machine, virtual time, or clusters that are already there. Whoever runs a
/// plan knows no more of them than this.
#[async_trait(?Send)]
pub trait Clusters {
    /// The place, as `--on` names it: `embedded`, `virtual`, `opensearch`; `url` for clusters that are already there.
    fn name(&self) -> &'static str;

    /// Starts the clusters; returns when every node has joined. Where that fails, nothing is left running.
    async fn start(&mut self, topology: &TopologySpec) -> Result<()>;

    /// What [`start`](Clusters::start) does first and takes long for, in a sentence; none where it begins at once.
    fn prepares(&self) -> Option<String> {
        None
    }

    /// Stops everything, and removes what was made for it.
    async fn stop(&mut self);

    /// Sends a request to one node of a cluster: the next in turn, or another where that one does not answer. Any
    /// status but 2xx is [`Error::Refused`].
    async fn request(&self, cluster: &str, method: &str, path: &str, body: Bytes)
    -> Result<Answer>;

    /// Takes note of an index that others are about to make, past [`request`](Clusters::request). One of them may be
    /// made after [`stop`](Clusters::stop) began.
    fn will_make(&self, _cluster: &str, _index: &str) -> Result<()> {
        Ok(())
    }

    /// A client of a cluster that does not borrow `self`. It asks the nodes that run now, and waits for an answer no
    /// longer than `limit`.
    fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker>;

    /// The running nodes of a cluster.
    fn nodes(&self, cluster: &str) -> Vec<NodeHandle>;

    /// The REST addresses of a cluster's nodes as a load reaches them, with credentials where there are any. Of a node
    /// of the virtual world that is its address alone. Fails if TLS cannot be set up.
    fn wire_hosts(&self, cluster: &str) -> Result<Vec<WireHost>> {
        Ok(self.nodes(cluster).iter().map(|node| WireHost::plain(&node.http)).collect())
    }

    /// Transport addresses of a cluster's nodes, as the other cluster sees them.
    fn seeds_through_link(&self, cluster: &str) -> Vec<String>;

    /// The link, where there is one.
    fn link(&self) -> Option<&dyn LinkControl> {
        None
    }

    /// Where the cluster keeps snapshots; none where there are no snapshots.
    fn repository(&self, _cluster: &str) -> Option<Repository> {
        None
    }

    /// Whether an index is to be kept on the first site by a filter (`index.routing.allocation.include._name`).
    /// Elsewhere its only shard is placed there without.
    fn has_allocation_filters(&self) -> bool {
        false
    }

    /// How these clusters follow each other, as far as they do.
    fn follow_api(&self) -> FollowApi {
        FollowApi::Ccr
    }

    /// The process of a running node, by its id; none where nodes are no processes of ours.
    fn process_id(&self, _node: &str) -> Option<u32> {
        None
    }

    /// Has a node that runs strain itself, or no longer. Fails if nodes here cannot, or this one does not run.
    async fn strain(&self, node: &str, _strain: Strain) -> Result<()> {
        let (target, what) = (self.name(), format!("have {node} strain itself"));
        Err(Error::NoFault { target, what, why: String::new() })
    }

    /// Completes when a node has ended by itself, and never where nodes are no processes of ours.
    /// [`Clusters::failed_node`] says which. Does not borrow `self`, so that it can be awaited beside anything that
    /// does.
    fn node_ended(&self) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// The first node that has ended by itself, with the last lines that it wrote, as the error that it is.
    async fn failed_node(&mut self) -> Option<Error> {
        None
    }

    /// Faults of nodes. Fails if the nodes were not started here: then they are left alone.
    fn faults(&mut self) -> Result<&mut dyn Faults> {
        let (target, what) = (self.name(), "disturb nodes".to_owned());
        Err(Error::NoFault { target, what, why: "they were not started for this run".to_owned() })
    }

    /// What only simulated machines allow; none on real ones.
    fn virtual_controls(&self) -> Option<&dyn VirtualControls> {
        None
    }

    /// Whether the machines are simulated.
    fn is_virtual(&self) -> bool {
        self.virtual_controls().is_some()
    }
}

/// Faults of nodes that were started here. What a place cannot do is refused as [`Error::NoFault`], which names it.
#[async_trait(?Send)]
pub trait Faults {
    /// Has a fault of a node begin.
    async fn begin(&mut self, node: &str, fault: FaultKind) -> Result<()>;

    /// Ends a fault of a node. A node that was stopped or killed is started again, with its data and its addresses.
    async fn end(&mut self, node: &str, fault: FaultKind) -> Result<()>;

    /// Removes the shard copies from the disk of a node that is down.
    fn wipe(&mut self, node: &str) -> Result<()>;
}

/// What can be set while simulated machines run.
#[async_trait(?Send)]
pub trait VirtualControls {
    /// Draws every node's host anew from the same distribution. A node that is started again later stays on the host
    /// that was drawn here, so that variants are compared on the same hosts.
    fn renew_hosts(&self);

    /// Sets what the hosts of a cluster are like from now on.
    fn set_hosts(&self, cluster: &str, host: &Host);

    /// Changes what a node's host is like, until [`VirtualControls::set_hosts`] says it of its whole cluster. Fails if
    /// no node has this name.
    fn change_host(&self, node: &str, change: &dyn Fn(Host) -> Host) -> Result<()>;

    /// Fills every copy of an index with documents that exist only as a number. That takes no time: they were indexed
    /// before the experiment began.
    async fn load_index(&self, cluster: &str, index: &SyntheticIndex) -> Result<()>;

    /// Puts indices in place, each copy on the node that it is said to be on; and says of the disks that are named how
    /// large they are. That takes no time.
    async fn place(&self, cluster: &str, indices: &[Placement], disks: &[DiskSize]) -> Result<()>;
}

/// An index of documents that exist only as a number, for corpora that are too large to index. Each figure is that of
/// the whole index without replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticIndex {
    /// The index, which has been created already.
    pub name: String,
    /// Documents.
    pub documents: u64,
    /// Bytes of segment files.
    pub bytes: u64,
    /// Segments over all shards.
    pub segments: u32,
    /// The size of each of a shard's segments as a part of the one before; 1 where all are equal.
    pub segment_ratio: f64,
}

/// The link while it runs.
pub trait LinkControl {
    /// What it has carried; [`Direction::Out`] is towards the cluster whose addresses are routed.
    fn stats(&self, direction: Direction) -> LinkStats;
    /// When anything was on the line, and when windows were full, where that is measured.
    fn times(&self) -> Option<LinkTimes>;
    /// Lets nothing pass from now on.
    fn cut(&self);
    /// Lets everything pass again.
    fn heal(&self);
    /// Changes delay, rate and window; refuses by name what the link of this world does not have.
    fn configure(&self, config: LinkConfig) -> std::io::Result<()>;
}
