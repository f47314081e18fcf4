//! Cross-cluster replication: a follower recovers from its leader, and keeps up with it.
//!
//! | file | holds |
//! | --- | --- |
//! | `service` | what every following shard of a node needs |
//! | `create` | a follower is made |
//! | `tasks` | which shards of a node follow |
//! | `follower` | one shard: reads, writes, falls back |
//! | `source` | the leader's shard as the follower reaches it, and the lease there |
//! | `metadata_sync` | mappings, settings and aliases |
//! | `auto_follow` | new indices of remote clusters are followed |
//! | `leader` | the other side: operations and leases |
//! | `stats` | the numbers of `_ccr/stats` |
//!
//! Decisions are in [`policy::following`](policy::following) and [`policy::retention`](policy::retention).

mod auto_follow;
mod create;
mod follower;
mod leader;
mod metadata_sync;
mod service;
mod source;
mod stats;
mod tasks;

pub(crate) use auto_follow::{AutoFollowing, run as auto_follow};
pub use create::{FollowRequest, drop_leases, follow};
pub(crate) use leader::{lease, read_changes};
pub use service::FollowService;
pub(crate) use stats::stats_of;
pub(crate) use tasks::FollowTasks;
