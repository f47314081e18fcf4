//! Clusters to run plans on: the [`Target`] trait, and what implements it.
//!
//! | module | holds |
//! | --- | --- |
//! | `target` | [`Target`]: start, ask, kill, stop; the link between clusters |
//! | `embedded` | the embedded engine, one process a node, the link on a thread of its own |
//! | `virtual_target` | the same engine in virtual time |
//! | `opensearch` | OpenSearch, one JVM a node; its jars |
//! | `url_target` | a cluster that is already there, changed only with a journal |
//! | `journal` | what was changed there, written before it is changed; how it goes back |
//! | `settings_there` | settings of such a cluster: what they are, changing one for a while |
//! | `site_link` | the link between two sites of one cluster |
//! | `members` | the nodes of a target, and which is asked next |
//! | `fault` | a process that is paused or slowed, and is not for ever |
//! | `small_disk` | a node's disk that can be filled |
//! | `process`, `temporary` | a node as a child process; a directory that goes with the last of them |
//! | `link_thread` | the link on its own thread; its ceiling; `narrows link` |
//! | [`live`] | clusters that we did not start: asking and observing them |
//! | `credentials` | what a cluster is shown that asks who we are |
//! | `rest`, `http`, `kept` | asking a node, in either world; connections that are kept for it |
//! | `asker` | asking a cluster while its target is in other hands |
//! | [`wire`] | the same for loads, with as little work as there can be |
//!
//! The one rule: whatever a target starts, it stops: when it is told to, when it is dropped, and when the
//! process that holds it is killed.

mod asker;
mod changes;
mod clusters;
mod credentials;
mod error;
mod fault;
mod http;
mod link;
pub mod live;
mod nodes;
mod targets;
mod topology;

pub use asker::Asker;
pub use changes::{
    Borrowed, Change, ClusterIdentity, Head, Journal, LiveCluster, SettingValue, SettingsBack,
    check_follows, restore,
};
pub use clusters::{Clusters, Faults, LinkControl, SyntheticIndex, VirtualControls};
pub use credentials::Credentials;
pub use error::Error;
pub use fault::FaultKind;
pub use http::{Answer, RestClient, wire};
pub use link::{LinkThread, measure_ceiling, standalone_link};
pub use nodes::{
    ADDRESS_TAKEN, NodeReady, NodeStart, Order, STOP, TemporaryUse, end_process_on_panic,
};
pub use targets::{
    DEFAULT_HEAP, EmbeddedClusters, LiveClusters, OpenSearchClusters, Release, VirtualClusters,
};
pub use topology::{ClusterSpec, NodeHandle, Repository, TopologySpec, check_cluster_name};
