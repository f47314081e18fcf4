//! Why a node could not start.

use std::path::PathBuf;

/// Why a node could not start.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("node {node} cannot {source}; choose another address, or stop what uses it")]
    Listen { node: String, source: std::io::Error },
    #[error(
        "node {node} cannot {what} {path}: {source}; check that the directory is writable and not full"
    )]
    Data { node: String, what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} is no cluster state of this narrows: {reason}")]
    State { path: PathBuf, reason: String },
    #[error("{path} is in use by another node; give each node a directory of its own")]
    InUse { path: PathBuf },
    #[error("node {node} could not join its cluster: {reason}")]
    Join { node: String, reason: String },
    #[error("these credentials cannot be used: {reason}")]
    Credentials {
        /// Why not; never what they are.
        reason: &'static str,
    },
    #[error(
        "node {node} will not listen on {address}: only loopback addresses are allowed, but for REST with credentials"
    )]
    NotLoopback { node: String, address: String },
}
