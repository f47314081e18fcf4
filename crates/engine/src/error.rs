//! Why a node could not start.

use std::path::PathBuf;

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address could not be listened on.
    #[error("node {node} cannot {source}; choose another address, or stop what uses it")]
    Listen {
        /// The node.
        node: String,
        /// What was tried, and what was found.
        source: std::io::Error,
    },
    /// The data directory cannot be used.
    #[error(
        "node {node} cannot {what} {path}: {source}; check that the directory is writable and not full"
    )]
    Data {
        /// The node.
        node: String,
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// What was found.
        source: std::io::Error,
    },
    /// The stored cluster state cannot be read.
    #[error("{path} is no cluster state of this narrows: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another process uses the data directory.
    #[error("{path} is in use by another node; give each node a directory of its own")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The manager refused the node or did not answer.
    #[error("node {node} could not join its cluster: {reason}")]
    Join {
        /// The node.
        node: String,
        /// What the manager said.
        reason: String,
    },
    /// Credentials that cannot be used.
    #[error("these credentials cannot be used: {reason}")]
    Credentials {
        /// Why not; never what they are.
        reason: &'static str,
    },
    /// Not loopback, and nobody is asked who he is.
    #[error(
        "node {node} will not listen on {address}: only loopback addresses are allowed, but for REST with credentials"
    )]
    NotLoopback {
        /// The node.
        node: String,
        /// The address.
        address: String,
    },
}
