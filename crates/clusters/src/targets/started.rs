//! What all clusters share whose nodes are started here.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

use crate::clusters::{Clusters, Faults, LinkControl, VirtualControls};
use crate::fault::Strain;
use crate::http::Answer;
use crate::nodes::{Nodes, RunningNode};
use crate::topology::{NodeHandle, Repository, TopologySpec};
use crate::{Asker, Error, Result};

/// How often a node is started at most, where its ports are taken in the meantime.
pub(super) const STARTS_MAX: u32 = 3;

/// Clusters whose nodes are started here. Each is one of [`Clusters`].
pub(crate) trait StartedHere: Faults {
    /// What runs a node.
    type Node: RunningNode;
    /// What a node is started with.
    type Config: Clone;
    /// As [`Clusters::has_allocation_filters`].
    const HAS_ALLOCATION_FILTERS: bool = false;

    fn nodes(&self) -> &Nodes<Self::Node, Self::Config>;
    fn nodes_mut(&mut self) -> &mut Nodes<Self::Node, Self::Config>;
    fn link(&self) -> Option<&dyn LinkControl>;

    /// As [`Clusters::prepares`].
    fn prepares(&self) -> Option<String> {
        None
    }

    /// Starts the clusters of a topology that has been checked. What was started before a failure is stopped by the
    /// caller.
    async fn start_all(&mut self, topology: &TopologySpec) -> Result<()>;

    /// Starts a node that is down, on its data and its addresses.
    async fn start_again(&mut self, config: &Self::Config) -> Result<Self::Node>;

    /// Removes what is left of a node that has ended.
    fn clear_node(&mut self, _node: &str) {}

    /// Removes what was made for all nodes, which have ended.
    fn clear(&mut self);

    fn repository(&self, _cluster: &str) -> Option<Repository> {
        None
    }

    fn virtual_controls(&self) -> Option<&dyn VirtualControls> {
        None
    }

    /// As [`Clusters::strain`].
    async fn strain(&self, node: &str, strain: Strain) -> Result<()> {
        Err(StartedHere::nodes(self).not_strained(node, strain))
    }

    /// Starts a node again; nothing where it runs.
    async fn restart(&mut self, name: &str) -> Result<()> {
        let node = self.nodes_mut().find(name)?;
        if node.running.is_none() {
            let config = node.config.clone();
            let started = self.start_again(&config).await?;
            self.nodes_mut().find(name)?.running = Some(started);
        }
        Ok(())
    }
}

#[async_trait(?Send)]
impl<T: StartedHere> Clusters for T {
    fn name(&self) -> &'static str {
        StartedHere::nodes(self).target
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<()> {
        topology.check()?;
        let started = self.start_all(topology).await;
        if started.is_err() {
            self.stop().await;
        }
        started
    }

    async fn stop(&mut self) {
        while let Some(node) = self.nodes_mut().pop() {
            if let Some(running) = node.running {
                running.stop().await;
            }
            self.clear_node(&node.handle.name);
        }
        self.clear();
    }

    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        StartedHere::nodes(self).ask(cluster, method, path, body).await
    }

    fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker> {
        StartedHere::nodes(self).asker(cluster, limit)
    }

    fn nodes(&self, cluster: &str) -> Vec<NodeHandle> {
        StartedHere::nodes(self).running(cluster)
    }

    fn seeds_through_link(&self, cluster: &str) -> Vec<String> {
        StartedHere::nodes(self).seeds(cluster)
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        StartedHere::link(self)
    }

    fn repository(&self, cluster: &str) -> Option<Repository> {
        StartedHere::repository(self, cluster)
    }

    fn prepares(&self) -> Option<String> {
        StartedHere::prepares(self)
    }

    fn has_allocation_filters(&self) -> bool {
        T::HAS_ALLOCATION_FILTERS
    }

    fn process_id(&self, node: &str) -> Option<u32> {
        StartedHere::nodes(self).process_id(node)
    }

    async fn strain(&self, node: &str, strain: Strain) -> Result<()> {
        StartedHere::strain(self, node, strain).await
    }

    fn node_ended(&self) -> LocalBoxFuture<'static, ()> {
        let ends = StartedHere::nodes(self).ends.clone();
        Box::pin(async move { ends.notified().await })
    }

    async fn failed_node(&mut self) -> Option<Error> {
        self.nodes_mut().failed().await
    }

    fn faults(&mut self) -> Result<&mut dyn Faults> {
        Ok(self)
    }

    fn virtual_controls(&self) -> Option<&dyn VirtualControls> {
        StartedHere::virtual_controls(self)
    }
}
