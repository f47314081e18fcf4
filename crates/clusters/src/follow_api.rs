//! How a cluster follows another one.

/// The REST API through which a cluster follows the indices of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowApi {
    /// `_ccr` of Elasticsearch, which the embedded engine has, too.
    #[default]
    Ccr,
    /// `_plugins/_replication` of OpenSearch's plugin for cross-cluster replication.
    Plugin,
}
