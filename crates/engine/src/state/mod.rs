//! The cluster's state, and the one manager that changes it.
//!
//! | file | holds |
//! | --- | --- |
//! | `cluster` | [`ClusterState`]: members, indices, routing, settings |
//! | `alias` | further names of indices |
//! | `made` | what an index is made with, also by a rollover |
//! | `index` | [`IndexMeta`]: what an index is |
//! | `shard` | [`IndexShardRoutingTable`]: where the copies of a shard are, and which of them are in sync |
//! | `event`, `change` | what may happen; what came of it |
//! | `manager` | [`apply`], [`apply_all`]: events in, changes out; members and copies |
//! | `applied`, `check_aliases` | what every change shares; which aliases are refused |
//! | `change_aliases`, `change_following`, `change_auto_follow` | the events about these |
//! | `follow` | what makes an index a follower |
//! | `auto_follow` | which indices become followers by themselves |
//! | `indices` | the events about indices |
//! | `placed` | an index that is put in place with its copies |
//! | `dangling`, `tombstones` | indices that are on disks alone, and those that were deleted |
//! | `allocation` | where copies go |
//! | `counted` | what is on each node, counted from an earlier state |
//! | `recovery_counts` | which node is to be filled first, and which may receive or send a recovery |
//! | `relocation` | a copy that is moved, from the beginning to the end |
//! | `commands` | what an operator does with copies by hand |
//! | `moving`, `filters` | which copies are moved, and which nodes they may be on |
//! | `cluster_info`, `disk_threshold` | how full disks are, and which copies that keeps from them |
//! | `awareness` | copies that are spread over zones, or over other attributes of nodes |
//! | `shards_limit` | how many copies a node may hold, of all indices and of one |
//! | `rebalancing` | copies that are moved so that nodes hold as many as each other |
//! | `template`, `templates` | what new indices are given whose names fit |
//! | `auto_expand` | replicas that follow the number of nodes |
//! | `touched` | the shards that are left to look at after a batch |
//! | `on_disk_copies` | what the disks of the nodes hold |
//! | `reported_extents` | [`FoundCopy`]: how far those go, and which of them were put back as they were earlier |
//! | `diff` | [`StateDiff`]: from one state to the next |
//! | `changed_indices` | which indices differ from those of the state before, and where their copies are |
//! | `differing` | where two maps differ that share what is the same |
//! | `delayed`, `returning` | which copies wait for their node to come back, and which are given up when it does |
//! | `deciders` | why a copy may go to a node, must wait, or must not |
//! | `explain` | the same in words, for `_cluster/allocation/explain` |
//! | `health` | green, yellow, red |
//! | `mapping` | merging of mappings |
//! | `check` | what always holds |
//!
//! As in Elasticsearch, less the consensus: membership is static and one node manages. Allocation
//! ids, in-sync sets and primary terms are those of its data replication model: an acknowledged write
//! is on every in-sync copy, so the primary has the manager take a copy out of sync
//! ([`Event::CopyOutOfSync`]) before it acknowledges a write that the copy has not got.
//!
//! The one rule: everything here is pure. Time comes in as `now_ms`, milliseconds since the epoch of
//! the caller's choice.

mod alias;
mod allocation;
mod applied;
mod auto_expand;
mod auto_follow;
mod awareness;
mod change;
mod change_aliases;
mod change_auto_follow;
mod change_following;
mod changed_indices;
mod check;
mod check_aliases;
mod cluster;
mod cluster_info;
mod commands;
mod counted;
mod dangling;
mod deciders;
mod delayed;
mod diff;
mod differing;
mod disk_threshold;
mod error;
mod event;
mod explain;
mod filters;
mod follow;
mod health;
mod index;
mod indices;
mod json_text;
mod made;
mod manager;
mod mapping;
#[cfg(test)]
mod model_test;
mod moving;
mod on_disk_copies;
mod placed;
mod rebalancing;
mod recovery_counts;
mod relocation;
mod reported_extents;
mod returning;
mod shard;
mod shards_limit;
mod template;
mod templates;
mod tombstones;
mod touched;

pub use crate::ids::Index;
pub use alias::{Alias, AliasAction, Aliases};
pub use auto_follow::{AutoFollow, AutoFollowChange};
pub use change::Change;
pub(crate) use changed_indices::ChangedIndices;
pub use check::check;
pub use cluster::{ClusterState, FORMAT, Node};
pub use cluster_info::{ClusterInfo, DiskUsage};
pub use dangling::{DanglingCopy, DanglingIndex, StoredIndex};
pub use deciders::{Reason, Verdict};
pub use delayed::{delay_ends_ms, delayed_copies};
pub use diff::{OtherVersion, StateDiff};
pub use error::StateError;
pub use event::{Event, RerouteAction, RerouteCommand};
pub use explain::{
    Delay, Explanation, NodeExplanation, PlacedExplanation, explain, explain_placed,
};
pub use follow::{FollowChange, FollowOrigin, Following};
pub use health::{Health, Status, health, health_of, health_of_some};
pub use index::IndexMeta;
pub use indices::check_index_name;
pub use made::{Made, RollOver};
pub use manager::{Batch, apply, apply_all};
pub use mapping::merge as merge_mappings;
pub use placed::PlacedIndex;
pub use reported_extents::FoundCopy;
pub use shard::{
    CopyState, IndexShardRoutingTable, MAX_RETRIES, RecoverySource, ShardCopy, UnassignedReason,
};
pub use template::{Template, TemplateChange, TemplateKind, Templates};
