//! What can go wrong with a target.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a target could not be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or it was closed before the question was read.
    #[error("{address}: {source}")]
    Connection {
        /// The node's address.
        address: String,
        /// What was found.
        source: io::Error,
    },
    /// The connection broke after the question was sent.
    #[error(
        "{address}: the connection broke during {method} {path}, which may have been done: {source}"
    )]
    Broken {
        /// The node's address.
        address: String,
        /// What was asked.
        method: String,
        /// Of what.
        path: String,
        /// What was found.
        source: io::Error,
    },
    /// An answer that is too large to hold.
    #[error(
        "{address} answered {method} {path} with more than {limit_bytes} bytes; ask for less at once"
    )]
    TooLarge {
        /// The node's address.
        address: String,
        /// What was asked.
        method: String,
        /// Of what.
        path: String,
        /// The limit.
        limit_bytes: usize,
    },
    /// No answer in time.
    #[error("{address} did not answer {method} {path} within {limit:?}")]
    Timeout {
        /// The node's address.
        address: String,
        /// What was asked.
        method: String,
        /// Of what.
        path: String,
        /// The limit.
        limit: Duration,
    },
    /// The node said no.
    #[error("{method} {path}: {status} {kind}: {reason}")]
    Refused {
        /// What was asked.
        method: String,
        /// Of what.
        path: String,
        /// HTTP status.
        status: u16,
        /// `error.type`.
        kind: String,
        /// `error.reason`.
        reason: String,
    },
    /// An answer that is no JSON.
    #[error("{path} was answered with something that is no JSON: {reason}")]
    NotJson {
        /// What was asked.
        path: String,
        /// What the parser said.
        reason: String,
    },
    /// There is no such cluster or node in the topology.
    #[error("there is no {what} called \"{name}\" in this topology")]
    Unknown {
        /// `cluster` or `node`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No node of the cluster is running.
    #[error("no node of the {cluster} cluster is running")]
    NoNode {
        /// The cluster.
        cluster: String,
    },
    /// A node's process did not start, or ended by itself.
    #[error("node {node} {what}{}", said(.stderr))]
    Node {
        /// The node.
        node: String,
        /// What happened.
        what: String,
        /// The last lines that it wrote to standard error.
        stderr: Vec<String>,
    },
    /// A node of the virtual world did not start.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The nodes did not find each other.
    #[error("{joined} of {nodes} nodes of the {cluster} cluster have joined after 30 s")]
    NotJoined {
        /// The cluster.
        cluster: String,
        /// Nodes that are there.
        joined: u64,
        /// Nodes that should be there.
        nodes: usize,
    },
    /// A program that is needed is not there, or too old.
    #[error("OpenSearch needs {what} {oldest} or later: {found}; `{install}` installs it on Debian")]
    Missing {
        /// Its name.
        what: &'static str,
        /// What was found instead.
        found: String,
        /// The command that installs it.
        install: &'static str,
        /// The oldest release that does.
        oldest: String,
    },
    /// There is nowhere to keep what was fetched.
    #[error(
        "neither NARROWS_CACHE nor XDG_CACHE_HOME nor HOME is set; set NARROWS_CACHE to a directory \
         where OpenSearch's jars may be kept (80 MB)"
    )]
    NoCache,
    /// The jars could not be fetched, or the class that starts a node not compiled.
    #[error(
        "mvn could not fetch OpenSearch from Maven Central; is the network there, or a mirror in \
         ~/.m2/settings.xml? --opensearch-home does without{}", said(.lines)
    )]
    Build {
        /// The first lines that it wrote.
        lines: Vec<String>,
    },
    /// The directory holds no OpenSearch.
    #[error(
        "{home} holds no OpenSearch: there is no lib and modules in it; give the directory of an \
         unpacked distribution"
    )]
    NoDistribution {
        /// The directory.
        home: PathBuf,
    },
    /// A site with several nodes.
    #[error(
        "a node tells every other one address, so on this target a site of a cluster that spans a \
         link has one node; set nodes = 1 for both"
    )]
    SitesOfOne,
    /// The file system said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What was found.
        source: io::Error,
    },
    /// The link could not be opened.
    #[error("the link cannot {0}")]
    Link(io::Error),
    /// An address that others could reach.
    #[error(
        "{address} is not a loopback address; say --allow-remote if others may reach what is behind"
    )]
    NotLoopback {
        /// The address.
        address: String,
    },
}

impl Error {
    /// Whether what was asked for cannot be done as it was asked: nothing was started or changed.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Missing { .. }
                | Error::NoCache
                | Error::NoDistribution { .. }
                | Error::SitesOfOne
        )
    }
}

fn said(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; it said:\n  {}", lines.join("\n  ")) }
}
