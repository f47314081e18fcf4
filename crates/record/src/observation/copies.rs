//! Copies that wait for a place, come up or move.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A copy that is not started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingCopy {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Whether it is the primary.
    pub primary: bool,
    /// `UNASSIGNED` or `INITIALIZING`.
    pub state: String,
    /// How it came to be unassigned: `REPLICA_ADDED`, `NODE_LEFT`, ...
    pub reason: Option<String>,
    /// Node it comes up on.
    pub node: Option<String>,
    /// `no`, `throttled`, `yes`, `awaiting_info`, ...; none where nobody asked for an explanation.
    pub can_allocate: Option<String>,
    /// How long it waits for its node to come back before it is placed elsewhere.
    pub delay_ms: Option<u64>,
    /// What was left of that when it was asked for.
    pub delay_left_ms: Option<u64>,
    /// The id of the node that left with it, where the cluster says so.
    pub left: Option<String>,
    /// What it lacks if that node comes back; none where nobody asked.
    pub lacks: Option<Lack>,
    /// The cluster's own sentence.
    pub explanation: Option<String>,
    /// Every decider that answers no or throttle, with the node that it answers for.
    pub decisions: Vec<Decision>,
}

/// What a copy lacks once its node is back, by what its primary keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// So many operations: the primary holds a retention lease for it.
    Operations(u64),
    /// Every file that differs: there is no lease for it any more.
    Files,
}

/// What one decider says of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// The node.
    pub node: String,
    /// The decider: `throttling`, `disk_threshold`, `filter`, ...
    pub decider: String,
    /// `NO` or `THROTTLE`.
    pub decision: String,
    /// Why, in the cluster's words.
    pub explanation: String,
}

/// A copy that moves: it stays in use where it is until it is whole where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Move {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Whether it is the primary.
    pub primary: bool,
    /// Name of the node that it leaves.
    pub from: String,
    /// Name of the node that it goes to.
    pub to: String,
    /// Allocation filters of its index by their flat names, as far as they were asked for.
    pub filters: BTreeMap<String, String>,
}
