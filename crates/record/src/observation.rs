//! What a live cluster reports about itself at one moment, in the units of its REST API.
//!
//! The one rule: what was not asked, or not answered, is none and never zero. A node counts from its own start, so
//! only differences of counters mean anything, and only as long as the node does not restart.

mod copies;
mod follower;
mod node;
mod recovery;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bucket::BucketNode;

pub use copies::{Decision, Lack, Move, WaitingCopy};
pub use follower::{AutoFollowError, FollowLimits, Follower};
pub use node::{Node, Selection};
pub use recovery::Recovery;

/// One look at a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// Who answered.
    pub cluster: Identity,
    /// Recoveries that are active, and those that were when last looked.
    pub recoveries: Vec<Recovery>,
    /// Bytes of recoveries that began and ended since the look before, unseen; none where none were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_bytes: Option<u64>,
    /// The nodes that answered, by name; empty where this look did not ask. Not every look asks for every part.
    pub nodes: Vec<Node>,
    /// Names of nodes that answered before and did not now.
    pub gone: Vec<String>,
    /// The cluster's health.
    pub health: Option<Health>,
    /// Cluster settings by their flat names, defaults included; none where this look did not ask.
    pub settings: Option<BTreeMap<String, Setting>>,
    /// `max_restore_bytes_per_sec` of the repositories that restores read, where it is set; only looks that asked.
    pub restore_limits: BTreeMap<String, String>,
    /// Copies that are on no node or coming up. Of a large cluster they are many, and one look after another has the
    /// same until they are asked for again.
    pub waiting: Arc<[WaitingCopy]>,
    /// How long before this look these were asked for; none where it is not known, or nothing waits or moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_age_ms: Option<u64>,
    /// Copies that move from one node to another; one look after another has the same until they are asked for again.
    pub moves: Arc<[Move]>,
    /// Snapshots that are being taken, as the last look that asked found them.
    pub snapshots: Vec<Snapshot>,
    /// Blocks of indices, as the last look that asked found them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub index_blocks: Vec<IndexBlock>,
    /// Shards that follow another cluster.
    pub followers: Vec<Follower>,
    /// The last indices of other clusters that auto-follow could not begin to follow; Elasticsearch alone says it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auto_follow_errors: Vec<AutoFollowError>,
    /// Other clusters that this one knows, as the last look that asked found them.
    pub remotes: Vec<Remote>,
    /// A bucket on its data nodes, and their DCP connections: of Couchbase, which has nothing of the above.
    pub buckets: Vec<BucketNode>,
    /// Round trips between nodes, and from a node to a remote cluster.
    pub round_trips: Vec<RoundTrip>,
    /// How long nodes took to answer a question about themselves alone; only those that were asked directly.
    pub answers: Vec<AnswerTime>,
    /// What threads were doing; only looks that ask for it have it.
    pub hot_threads: Vec<HotThreads>,
    /// What could not be asked, and what is lost without it.
    pub gaps: Vec<Gap>,
    /// What this look cost.
    pub cost: Cost,
}

impl Observation {
    /// The node of this name, if it answered. Nodes are in the order of their names where they were read from a
    /// cluster; whoever made them up may have another order.
    pub fn node(&self, name: &str) -> Option<&Node> {
        match self.nodes.binary_search_by(|node| node.name.as_str().cmp(name)) {
            Ok(at) => Some(&self.nodes[at]),
            Err(_) => self.nodes.iter().find(|node| node.name == name),
        }
    }

    /// How long one of the copies that wait still waits for its node, by this look.
    pub fn delay_left_ms(&self, copy: &WaitingCopy) -> Option<u64> {
        let age_ms = self.waiting_age_ms.unwrap_or(0);
        copy.delay_left_ms.map(|left_ms| left_ms.saturating_sub(age_ms))
    }
}

/// How long a node took to answer for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerTime {
    /// Its name.
    pub node: String,
    /// In milliseconds.
    pub ms: f64,
    /// The same of a second question, asked as soon as the first was answered. A node that had stood still for the
    /// first has just gone on.
    pub again_ms: f64,
}

/// Who answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// The cluster's name.
    pub name: String,
    /// `elasticsearch`, `opensearch`, `narrows`, or what it calls itself; `unknown` where nobody may ask.
    pub flavour: String,
    /// Its version, as it says it.
    pub version: String,
}

impl Identity {
    /// Its major and minor version; none where it does not say them.
    pub fn release(&self) -> Option<(u32, u32)> {
        let mut parts = self.version.split('.').map_while(|part| part.parse().ok());
        parts.next().zip(parts.next())
    }

    /// What it runs: `opensearch 2.19.1`.
    pub fn build(&self) -> String {
        match self.flavour.as_str() {
            // Its version is that of the release whose answers it gives.
            "narrows" => format!("the embedded engine (as {})", self.version),
            flavour => format!("{flavour} {}", self.version),
        }
    }
}

/// The flavour of a cluster that does not say what it is.
pub const UNKNOWN_FLAVOUR: &str = "unknown";

/// What some indices do not allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexBlock {
    /// The setting of the index: `index.blocks.write`, ...
    pub setting: String,
    /// How many indices have it.
    pub count: u64,
    /// The first of them.
    pub indices: Vec<String>,
}

/// The cluster's health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// `green`, `yellow`, `red`.
    pub status: String,
    /// Nodes.
    pub nodes: Option<u64>,
    /// Copies coming up.
    pub initializing: Option<u64>,
    /// Copies moving.
    pub relocating: Option<u64>,
    /// Copies on no node.
    pub unassigned: Option<u64>,
    /// Copies that wait for a node to come back.
    pub delayed: Option<u64>,
    /// Tasks that wait for the manager.
    pub pending_tasks: Option<u64>,
    /// How long the oldest of them has waited, in milliseconds.
    pub task_waited_ms: Option<u64>,
}

/// The rank at which a setting is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Nobody set it, or a node's file did.
    Default,
    /// For good.
    Persistent,
    /// Until the cluster restarts.
    Transient,
}

/// A setting as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its value, as the cluster writes it.
    pub value: String,
    /// Where it is set.
    pub scope: Scope,
}

/// A snapshot that is being taken, as `_snapshot/_status` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// The repository that it is written to.
    pub repository: String,
    /// Shards that are done.
    pub shards_done: Option<u64>,
    /// Shards of the snapshot.
    pub shards: Option<u64>,
    /// Nodes that write now.
    pub nodes: Option<u64>,
    /// Bytes of files that the repository does not have yet.
    pub bytes: Option<u64>,
    /// Those of them that were written.
    pub written_bytes: Option<u64>,
    /// How long it has taken.
    pub time_ms: Option<u64>,
    /// For how long neither its bytes nor its shards were seen to come further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_ms: Option<u64>,
    /// The first shards that are written now, with the ids of their nodes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub writing: BTreeMap<String, String>,
    /// `max_snapshot_bytes_per_sec` of its repository, where it is set.
    pub limit: Option<String>,
}

/// Another cluster that this one knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remote {
    /// Its alias.
    pub alias: String,
    /// Whether it is reached.
    pub connected: Option<bool>,
    /// `sniff` or `proxy`.
    pub mode: Option<String>,
    /// Sockets that are open to a proxy.
    pub proxy_sockets: Option<u64>,
    /// Sockets that should be.
    pub proxy_sockets_max: Option<u64>,
}

/// A round trip, measured as the difference between a small request to one node and the same one through another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundTrip {
    /// Node that was asked.
    pub from: String,
    /// Node or remote cluster that it had to ask.
    pub to: String,
    /// The shortest seen.
    pub rtt_ms: f64,
}

/// What the threads of a node were doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HotThreads {
    /// The node.
    pub node: String,
    /// Threads by what their stacks show: `rate_limiter`, `tls`, `compression`, `merge`, `search`, `indexing`.
    pub threads: BTreeMap<String, u32>,
    /// CPU of the busiest thread of each of these, in percent of a core; none where that is not told.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub busiest_percent: BTreeMap<String, u32>,
}

/// Something that could not be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// What was asked.
    pub path: String,
    /// What came instead.
    pub found: String,
    /// What cannot be told without it.
    pub lost: String,
}

/// What a look cost the cluster and the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Requests.
    pub requests: u32,
    /// Bytes of answers.
    pub bytes: u64,
    /// Time from first question to last answer.
    pub took_ms: f64,
}
