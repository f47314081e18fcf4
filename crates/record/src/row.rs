//! One finished variant: what it took, what limited it, and whether the copy is right.

use serde::{Deserialize, Serialize};

use crate::follow::FollowFigures;
use crate::load::LoadFigures;
use crate::stream::StreamFigures;

/// The cause that a piece of transfer time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Nothing but round trips held the chunks in flight: more bytes in flight would have cost nothing.
    Latency,
    /// Bytes were arriving, or waited for the link to carry them.
    LinkRate,
    /// A connection waited for what the line had lost, or for a window that a loss had reduced.
    Loss,
    /// A `max_bytes_per_sec` limiter held a chunk back, at the source or at the target.
    Throttle,
    /// The source read a chunk from disk.
    DiskRead,
    /// The target wrote a chunk to disk.
    DiskWrite,
    /// A core hashed, compressed, copied or indexed.
    Cpu,
    /// The shard waited for a recovery slot, or a node for its turn.
    Slots,
    /// A memory bound held a chunk back.
    Memory,
    /// A proxy between the clusters held a chunk back.
    Proxy,
    /// The nodes agreed on what precedes and follows the files: states were published, copies were opened.
    Coordination,
}

impl Limit {
    /// Every limit, in the order in which reports show them.
    pub const ALL: [Limit; 11] = [
        Limit::Latency,
        Limit::LinkRate,
        Limit::Loss,
        Limit::Throttle,
        Limit::DiskRead,
        Limit::DiskWrite,
        Limit::Cpu,
        Limit::Slots,
        Limit::Memory,
        Limit::Proxy,
        Limit::Coordination,
    ];

    /// The name for people: `link rate`.
    pub fn label(self) -> &'static str {
        match self {
            Limit::Latency => "latency",
            Limit::LinkRate => "link rate",
            Limit::Loss => "loss",
            Limit::Throttle => "throttle",
            Limit::DiskRead => "disk read",
            Limit::DiskWrite => "disk write",
            Limit::Cpu => "CPU",
            Limit::Slots => "slots",
            Limit::Memory => "memory",
            Limit::Proxy => "proxy",
            Limit::Coordination => "coordination",
        }
    }
}

/// The part of a transfer's time that one limit is charged with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitShare {
    /// The limit.
    pub limit: Limit,
    /// Share of the elapsed time, 0 to 1.
    pub share: f64,
}

/// The documents of one shard on one side, as a count and an order-independent hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardDigest {
    /// Index the shard belongs to.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Live documents.
    pub documents: u64,
    /// Wrapping sum of a hash of `_id` and `_source` of each live document, as 16 hex digits.
    pub content: String,
}

/// One finished variant and lap: a line of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the variant.
    pub variant: String,
    /// Lap, from 1.
    pub lap: u32,
    /// Time from the start of the recovery until the follower was complete.
    pub seconds: f64,
    /// Bytes of segment files and operations that were transferred.
    pub bytes: u64,
    /// `bytes / seconds`.
    pub bytes_per_s: f64,
    /// `bytes_per_s` as a share of the link's rate, 0 to 1; none without a link.
    pub link_share: Option<f64>,
    /// Share of the time in which the link carried bytes, in the direction in which it did for longer; less than
    /// `link_share` where they are compressed on it. None without a link, and in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_busy: Option<f64>,
    /// What the time was charged to, largest first; shares sum to 1.
    pub limits: Vec<LimitShare>,
    /// Whether both sides hold the same documents.
    pub verified: bool,
    /// Live documents on the recovered side.
    pub documents: u64,
    /// Chunks that arrived damaged and were fetched again.
    pub refetched_chunks: u64,
    /// Bytes a second of each receiving node while it received; none where nodes were not measured apart.
    #[serde(default)]
    pub node_bytes_per_s: Option<f64>,
    /// Seconds that the source documents publish for this variant.
    pub published_s: Option<f64>,
    /// Bytes that the published figure moved.
    pub published_bytes: Option<u64>,
    /// The loads that were sent, one for each operation. A plan that measures loads has nothing else in its rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadFigures>,
    /// The tasks of a track that went on when it stopped before its end; none of what came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<String>,
    /// How followers kept up. A plan that follows has nothing else in its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<FollowFigures>,
    /// What threads and memory did, where documents were streamed between two servers of buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamFigures>,
}

impl Row {
    /// A row with what every plan measures: `bytes` in `seconds`. A plan sets what else it measures by struct update.
    pub fn measured(variant: &str, lap: u32, seconds: f64, bytes: u64) -> Row {
        Row {
            variant: variant.to_owned(),
            lap,
            seconds,
            bytes,
            bytes_per_s: if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 },
            ..Row::default()
        }
    }

    /// Whether its time is more than zero; otherwise it has no rate.
    pub fn took_time(&self) -> bool {
        self.seconds.is_finite() && self.seconds > 0.0
    }

    /// The limit that held this row: the largest share.
    pub fn held_by(&self) -> Option<&LimitShare> {
        self.limits.first()
    }
}
