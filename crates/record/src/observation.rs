//! What a live cluster reports about itself at one moment, in the units of its REST API.
//!
//! The one rule: what was not asked, or not answered, is none and never zero. A node counts from its own start, so
//! only differences of counters mean anything, and only as long as the node does not restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bucket::BucketNode;
use crate::row::Limit;

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
    /// Other clusters that this one knows.
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

/// One recovery, as `_recovery` tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recovery {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// `PEER`, `SNAPSHOT`, `EXISTING_STORE`, ...
    pub kind: String,
    /// `INIT`, `INDEX`, `VERIFY_INDEX`, `TRANSLOG`, `FINALIZE`, `DONE`.
    pub stage: String,
    /// Whether the primary recovers.
    pub primary: bool,
    /// Name of the node that is read.
    pub source: Option<String>,
    /// Repository of a restore; `_ccr_<alias>` for a recovery from remote.
    pub repository: Option<String>,
    /// Name of the node that recovers.
    pub target: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub start_ms: Option<u64>,
    /// How long it has taken.
    pub total_ms: Option<u64>,
    /// Bytes of its files.
    pub total_bytes: Option<u64>,
    /// Bytes that were there already.
    pub reused_bytes: Option<u64>,
    /// Bytes that came.
    pub recovered_bytes: Option<u64>,
    /// Those of them that came from a snapshot rather than from the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_snapshot_bytes: Option<u64>,
    /// Files to recover.
    pub total_files: Option<u64>,
    /// Files that came.
    pub recovered_files: Option<u64>,
    /// Time that the source paused for its limiter.
    pub source_throttle_ms: Option<u64>,
    /// Time that the target paused for its limiter.
    pub target_throttle_ms: Option<u64>,
    /// Operations to replay; none while that is not known.
    pub total_ops: Option<u64>,
    /// Operations replayed.
    pub recovered_ops: Option<u64>,
    /// Whether the recovery has ended: its figures are the last that were seen.
    pub ended: bool,
    /// What the embedded engine charged its time to; empty elsewhere.
    pub charged_ns: BTreeMap<Limit, u64>,
    /// Why it failed last, where the embedded engine tries again; none elsewhere.
    pub failure: Option<String>,
}

impl Recovery {
    /// Identifies the recovery, also among later recoveries of the same copy.
    pub fn key(&self) -> (&str, u32, Option<&str>, Option<u64>) {
        (&self.index, self.shard, self.target.as_deref(), self.start_ms)
    }

    /// `index[shard]`.
    pub fn shard_name(&self) -> String {
        format!("{}[{}]", self.index, self.shard)
    }

    /// Whether it copies files from another node or a repository, rather than opening what is on its own disk.
    pub fn copies_files(&self) -> bool {
        !matches!(self.kind.as_str(), "EMPTY_STORE" | "EXISTING_STORE")
    }

    /// Whether its files take the way of another one's: from the same node or repository to the same node.
    pub fn is_on_path_of(&self, other: &Recovery) -> bool {
        (self.sender(), &self.repository, &self.target)
            == (other.sender(), &other.repository, &other.target)
    }

    /// Whether most of its files come from a snapshot of the shard, though its source is a node: Elasticsearch since
    /// 7.15 looks for one (`indices.recovery.use_snapshots`).
    pub fn comes_from_snapshot(&self) -> bool {
        let of_snapshot = self.from_snapshot_bytes.unwrap_or(0);
        of_snapshot > 0 && of_snapshot >= self.recovered_bytes.unwrap_or(0) / 2
    }

    /// Whether neither a node sends its files nor a snapshot holds them: a shrunken, split or cloned index is made of
    /// shards of the same node, and OpenSearch's remote store is no repository of snapshots.
    pub fn has_files_of_its_own(&self) -> bool {
        matches!(self.kind.as_str(), "LOCAL_SHARDS" | "REMOTE_STORE")
    }

    /// Name of the node that sends its files; none where they come from a repository.
    pub fn sender(&self) -> Option<&str> {
        self.source.as_deref().filter(|_| !self.comes_from_snapshot())
    }

    /// The repository whose snapshot is restored; none of a recovery from remote, which has one in name alone.
    pub fn restored_from(&self) -> Option<&str> {
        self.repository.as_deref().filter(|_| !self.is_from_remote())
    }

    /// Whether files come from another cluster.
    pub fn is_from_remote(&self) -> bool {
        self.repository.as_deref().is_some_and(|name| {
            name.starts_with("_ccr_") || name.starts_with("replication-remote-repo")
        })
    }
}

/// One node, as `_nodes/stats` tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is there for: `master`, `data_hot`, ...; empty where that is not told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// When it counted, in milliseconds since 1970.
    pub timestamp_ms: Option<u64>,
    /// How long it has run.
    pub uptime_ms: Option<u64>,
    /// Recoveries that read from it.
    pub as_source: Option<u64>,
    /// Recoveries onto it.
    pub as_target: Option<u64>,
    /// Time that its recoveries paused for the limiter, summed over their threads.
    pub throttle_ms: Option<u64>,
    /// Cores that it may use.
    pub cores: Option<u64>,
    /// Memory of its machine, or what its control group lets it have of that.
    pub memory_bytes: Option<u64>,
    /// CPU of its machine, in percent of all cores.
    pub os_cpu_percent: Option<u64>,
    /// CPU time of its process.
    pub process_cpu_ms: Option<u64>,
    /// Time that its control group kept it from running.
    pub cgroup_throttled_ns: Option<u64>,
    /// What its disks read, in KiB.
    pub read_kib: Option<u64>,
    /// What its disks wrote, in KiB.
    pub write_kib: Option<u64>,
    /// Time that its disks were busy, summed over them.
    pub io_time_ms: Option<u64>,
    /// The same of each of them, where that is told.
    pub io_times_ms: Vec<u64>,
    /// Size of its disks.
    pub disk_total_bytes: Option<u64>,
    /// Room on its disks.
    pub disk_available_bytes: Option<u64>,
    /// Bytes received by transport.
    pub transport_rx_bytes: Option<u64>,
    /// Bytes sent by transport.
    pub transport_tx_bytes: Option<u64>,
    /// Heap in use, in percent.
    pub heap_used_percent: Option<u64>,
    /// Heap in use.
    pub heap_used_bytes: Option<u64>,
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// Time spent in garbage collections, over all collectors.
    pub gc_ms: Option<u64>,
    /// How often each breaker tripped.
    pub breakers_tripped: BTreeMap<String, u64>,
    /// Requests that indexing pressure refused.
    pub pressure_rejections: Option<u64>,
    /// Operations indexed.
    pub indexed_ops: Option<u64>,
    /// Whether merges hold indexing back now.
    pub indexing_throttled: Option<bool>,
    /// Searches.
    pub searches: Option<u64>,
    /// Time that merges were throttled.
    pub merge_throttled_ms: Option<u64>,
    /// How it sees the others when it chooses a copy to search, by node id.
    pub adaptive_selection: BTreeMap<String, Selection>,
}

/// What one node knows of another as a place to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Its rank; the lowest is chosen.
    pub rank: Option<f64>,
    /// Length of its queue.
    pub queue: Option<f64>,
    /// Time that it works on a search.
    pub service_ns: Option<u64>,
    /// Time until its answer is here.
    pub response_ns: Option<u64>,
}

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
    /// `max_snapshot_bytes_per_sec` of its repository, where it is set.
    pub limit: Option<String>,
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

/// A shard that follows another cluster's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Follower {
    /// The following index.
    pub index: String,
    /// Shard number; none where only the index is told.
    pub shard: Option<u32>,
    /// Alias of the leader's cluster.
    pub remote: Option<String>,
    /// `SYNCING`, `BOOTSTRAPPING`, `PAUSED`, `FAILED`, as far as it was asked; Elasticsearch says `PAUSED` alone.
    pub status: Option<String>,
    /// The leader's global checkpoint.
    pub leader_checkpoint: Option<i64>,
    /// The follower's global checkpoint.
    pub follower_checkpoint: Option<i64>,
    /// Reads under way.
    pub outstanding_reads: Option<u64>,
    /// Writes under way.
    pub outstanding_writes: Option<u64>,
    /// Operations read and not yet written.
    pub write_buffer_ops: Option<u64>,
    /// Bytes read and not yet written.
    pub write_buffer_bytes: Option<u64>,
    /// Time spent in reads, summed over them.
    pub read_ms: Option<u64>,
    /// The part of that time in which the leader worked.
    pub read_remote_ms: Option<u64>,
    /// Time spent in writes, summed over them.
    pub write_ms: Option<u64>,
    /// Operations read.
    pub ops_read: Option<u64>,
    /// Bytes read.
    pub bytes_read: Option<u64>,
    /// Operations written.
    pub ops_written: Option<u64>,
    /// Reads that succeeded.
    pub reads: Option<u64>,
    /// Reads that failed.
    pub failed_reads: Option<u64>,
    /// Reads that its leader refused because it was overloaded; OpenSearch alone says it.
    pub throttled_reads: Option<u64>,
    /// Writes that were refused on the follower because it was overloaded; OpenSearch alone says it.
    pub throttled_writes: Option<u64>,
    /// Why it stopped for good.
    pub fatal: Option<String>,
    /// Why it was paused or has failed, where OpenSearch says it; in Elasticsearch why its reads fail.
    pub reason: Option<String>,
}

impl Follower {
    /// Whether somebody paused it, or it has failed: then it neither reads nor writes.
    pub fn is_stopped(&self) -> bool {
        self.fatal.is_some()
            || self.status.as_deref().is_some_and(|it| ["PAUSED", "FAILED"].contains(&it))
    }

    /// Operations that the follower is behind.
    pub fn lag_ops(&self) -> Option<u64> {
        let behind = self.leader_checkpoint?.saturating_sub(self.follower_checkpoint?);
        Some(u64::try_from(behind).unwrap_or(0))
    }

    /// `index[shard]`, or the index alone.
    pub fn shard_name(&self) -> String {
        match self.shard {
            Some(shard) => format!("{}[{shard}]", self.index),
            None => self.index.clone(),
        }
    }
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
