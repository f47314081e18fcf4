//! Which clusters are to be started, and where their nodes are once they run.

use std::collections::BTreeMap;

use world::LinkConfig;

use crate::{Error, Result};

/// A cluster to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Its name; nodes are called `<name>-0`, `<name>-1`, ...
    pub name: String,
    /// How many nodes.
    pub nodes: usize,
    /// Settings in the nodes' configuration; what is set through the API overrides them.
    pub settings: BTreeMap<String, String>,
    /// `node.attr.*` of each node, in their order; nodes behind the last one have none.
    pub attributes: Vec<BTreeMap<String, String>>,
}

impl ClusterSpec {
    /// So many nodes, without settings or attributes.
    pub fn new(name: &str, nodes: usize) -> ClusterSpec {
        let (settings, attributes) = (BTreeMap::new(), Vec::new());
        ClusterSpec { name: name.to_owned(), nodes, settings, attributes }
    }
}

/// Checks a cluster's name, which becomes part of its nodes' names and of their directories'.
pub fn check_cluster_name(name: &str) -> Result<()> {
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
    /// The link through which the clusters see each other; without one they connect directly.
    pub link: Option<LinkConfig>,
    /// Whether the clusters are sites of one cluster, which has the first site's name: its nodes see those of the other
    /// sites through the link. Requests still name the site whose nodes are to be asked.
    pub joined: bool,
}

impl TopologySpec {
    /// One cluster, of so many nodes, without settings or attributes.
    pub fn alone(name: &str, nodes: usize) -> TopologySpec {
        TopologySpec { clusters: vec![ClusterSpec::new(name, nodes)], link: None, joined: false }
    }

    /// Checks what must be right before anything is started, wherever that is.
    pub(crate) fn check(&self) -> Result<()> {
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

/// Where a cluster keeps snapshots, and where another cluster reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The directory, for a repository of type `fs` on the cluster itself.
    pub location: String,
    /// The same through the link, for a repository of type `url` on the other cluster.
    pub url: String,
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
