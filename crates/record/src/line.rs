//! What happened, when: one line of `lines.jsonl` each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::row::{Limit, ShardDigest};

/// A step of the plan, in the words of the progress display: `start`, `index`, `recover`, `verify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What runs.
    pub name: String,
    /// Whether it begins (`true`) or has ended.
    pub begins: bool,
}

impl Phase {
    /// The name of a phase in which a node of a twin is away that comes back.
    pub const AWAY: &'static str = "away";
}

/// What copies are in that are in no stage of a recovery, among those of a [`RecoverySample`].
pub mod stage {
    /// No node has them.
    pub const UNASSIGNED: &str = "UNASSIGNED";
    /// Those of them that wait for their node.
    pub const DELAYED: &str = "DELAYED";
    /// They are to be moved, and their move has not begun.
    pub const WAITING: &str = "WAITING";
    /// They are there.
    pub const DONE: &str = "DONE";
}

/// All recoveries of one variant at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoverySample {
    /// Bytes recovered so far, over all shards.
    pub recovered_bytes: u64,
    /// Bytes to recover, over all shards; grows until every shard has listed its files.
    pub total_bytes: u64,
    /// Files recovered so far.
    pub recovered_files: u64,
    /// Files to recover.
    pub total_files: u64,
    /// Shards by recovery stage (`INDEX`, `DONE`, ...).
    pub stages: BTreeMap<String, u32>,
    /// Seconds charged to each limit so far, summed over shards.
    pub charged_s: BTreeMap<Limit, f64>,
    /// Chunk size now in use, where one is in use.
    pub chunk_bytes: Option<u64>,
    /// Bytes in flight over all shards.
    pub in_flight_bytes: Option<u64>,
    /// Documents that were acknowledged meanwhile; none where nobody writes beside the recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexed_documents: Option<u64>,
    /// Requests of those who write that were answered meanwhile; none in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_requests: Option<u64>,
    /// Milliseconds that these requests took, summed over them; none in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_ms: Option<f64>,
    /// Copies whose recovery has not begun; none in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
    /// Seconds that copies spent in each stage so far, as the cluster says it, summed over copies; `total` is all of
    /// their recoveries. Empty in records that do not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages_s: BTreeMap<String, f64>,
}

/// One node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSample {
    /// `leader` or `follower`, or the cluster's own name.
    pub cluster: String,
    /// Node name.
    pub node: String,
    /// Share of one core used since the sample before; 1 is one whole core.
    pub cpu_cores: f64,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Heap in use, where the node has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_used_bytes: Option<u64>,
    /// Time spent in garbage collections since start, where the node has a heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc_ms: Option<u64>,
    /// Bytes read from its disks since start; none where it does not say. A process of the embedded engine counts its
    /// own, other nodes all that their disks do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Bytes written to its disks since start, counted in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
    /// Time since start in which its disks were busy; none where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_busy_ms: Option<u64>,
    /// Open file handles, where the node says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Bytes received by transport since start.
    pub transport_rx_bytes: u64,
    /// Bytes sent by transport since start.
    pub transport_tx_bytes: u64,
    /// Time that recoveries on this node were throttled, since start.
    pub throttle_ms: u64,
    /// Use of all cores of its machine, by whatever runs there, 0 to 1; none where the node does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cpu: Option<f64>,
}

/// The link at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Bytes that left the link towards the follower, since start.
    pub to_follower_bytes: u64,
    /// Bytes that left the link towards the leader, since start.
    pub to_leader_bytes: u64,
    /// Share of the time since the sample before in which the link towards the follower was sending.
    pub busy_share: f64,
    /// Seconds since start in which anything was on the line in either direction; none where that is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrying_s: Option<f64>,
    /// Seconds since start in which a connection waited because its window was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_full_s: Option<f64>,
}

/// A follower beside its leader at one moment, over all indices that follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FollowSample {
    /// Operations that the leader acknowledged to the driver.
    pub leader_operations: u64,
    /// Operations that all copies of the follower have, as it last reported.
    pub follower_operations: u64,
    /// How many of the former the follower lacks.
    pub lag_operations: u64,
    /// Age of the oldest of those operations on the leader.
    pub lag_s: f64,
    /// Whether the follower answered; if not, its figures are those of its last answer.
    pub answered: bool,
    /// Reads that wait for the leader.
    pub outstanding_reads: u64,
    /// Writes that are under way on the follower.
    pub outstanding_writes: u64,
    /// Bytes that were read and are not written yet.
    pub buffer_bytes: u64,
    /// Whether it lacks so little that a wait of the plan for that is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caught_up: bool,
    /// Bytes of files that its shards copied from the leader so far; none in records that do not say, and before it
    /// was first asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_bytes: Option<u64>,
    /// Requests to index that the leader has answered to the driver; none in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_requests: Option<u64>,
    /// Milliseconds that these requests took, summed over them; none in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_ms: Option<f64>,
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// A phase begins or ends.
    Phase {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant, or none for phases before the first.
        variant: Option<String>,
        /// Lap, from 1.
        lap: u32,
        /// What begins or ends.
        phase: Phase,
    },
    /// Progress of the recoveries.
    Recovery {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant.
        variant: String,
        /// Lap, from 1.
        lap: u32,
        /// The sample.
        sample: RecoverySample,
    },
    /// How far a follower is.
    Following {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant.
        variant: String,
        /// Lap, from 1.
        lap: u32,
        /// The sample.
        sample: FollowSample,
    },
    /// A node.
    Node {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant, or none outside of one.
        variant: Option<String>,
        /// Lap, from 1.
        lap: u32,
        /// The sample.
        sample: NodeSample,
    },
    /// The link.
    Link {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant, or none outside of one.
        variant: Option<String>,
        /// Lap, from 1.
        lap: u32,
        /// The sample.
        sample: LinkSample,
    },
    /// A fault begins or ends, or a setting that is changed while it is measured.
    Fault {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant.
        variant: String,
        /// What is wrong, and where: `follower-0 is killed`; or what is set otherwise than at the beginning:
        /// `indices.recovery.max_bytes_per_sec = 500mb`. The same words when it begins and when it ends.
        what: String,
        /// Whether it begins; it ends otherwise.
        begins: bool,
    },
    /// What a checker found on one side.
    Digest {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant, or none for the leader before the first.
        variant: Option<String>,
        /// `leader` or `follower`.
        side: String,
        /// One entry a shard.
        shards: Vec<ShardDigest>,
    },
    /// A look at a live cluster.
    Observation {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// What it said.
        observation: Box<Observation>,
    },
    /// Something worth telling: a fault, a retry, a warning.
    Note {
        /// Milliseconds since the run began.
        t_ms: f64,
        /// Variant, or none outside of one.
        variant: Option<String>,
        /// The sentence.
        text: String,
    },
}

impl Line {
    /// Milliseconds since the run began.
    pub fn t_ms(&self) -> f64 {
        match self {
            Line::Phase { t_ms, .. }
            | Line::Recovery { t_ms, .. }
            | Line::Following { t_ms, .. }
            | Line::Node { t_ms, .. }
            | Line::Link { t_ms, .. }
            | Line::Fault { t_ms, .. }
            | Line::Digest { t_ms, .. }
            | Line::Observation { t_ms, .. }
            | Line::Note { t_ms, .. } => *t_ms,
        }
    }

    /// The lap that it is of, from 1; none of what is of no lap, or does not say.
    pub fn lap(&self) -> Option<u32> {
        match self {
            Line::Phase { lap, .. }
            | Line::Recovery { lap, .. }
            | Line::Following { lap, .. }
            | Line::Node { lap, .. }
            | Line::Link { lap, .. } => Some(*lap),
            Line::Fault { .. }
            | Line::Digest { .. }
            | Line::Observation { .. }
            | Line::Note { .. } => None,
        }
    }
}
