#![doc = include_str!("../README.md")]

mod asker;
mod changes;
mod clusters;
mod credentials;
mod error;
mod fault;
mod follow_api;
mod http;
mod link;
pub mod live;
mod nodes;
mod reading;
mod targets;
mod topology;

pub use asker::Asker;
pub use changes::{
    BorrowedSettings, Change, ClusterIdentity, Head, Journal, Kept, LEASE_EXPIRES, LEASE_RENEWED,
    Lease, Leased, LiveCluster, PUT_BACK_PATIENCE, PutBack, SettingValue, Unsettled,
    check_nobody_steers, follow_api, index_of_run, late_wait_sentence, lease_holder,
    lease_wait_sentence, restore, restore_command,
};
pub use clusters::{Clusters, Faults, LinkControl, SyntheticIndex, VirtualControls};
pub use credentials::Credentials;
pub use error::{Error, Result};
pub use fault::{DiskRates, FaultKind, Strain};
pub use follow_api::FollowApi;
pub use http::{Answer, RestClient, trusted_authorities, wire};
pub use link::{LinkThread, measure_ceiling};
pub use nodes::{
    ADDRESS_TAKEN, NodeReady, NodeStart, Order, ProcessFault, STOP, SlowDisk, TemporaryDir,
    TemporaryUse, end_process_on_panic, serve_disk,
};
pub use reading::{READING, READING_ALONE, reads};
pub use targets::{
    DEFAULT_HEAP, ENCRYPTS, EmbeddedClusters, LiveClusters, OpenSearchClusters, Release,
    SENT_TWICE, TRANSPORT_ABOVE, VirtualClusters,
};
pub use topology::{ClusterSpec, NodeHandle, Repository, TopologySpec, check_cluster_name};
