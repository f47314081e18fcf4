//! Figures of a stream of documents between two servers: CPU of its threads, and the consumer's memory.

use serde::{Deserialize, Serialize};

/// What one thread of a stream's path did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// What it is: `producer`, `manager's proxy`, `plain proxy`, `consumer`.
    pub name: String,
    /// Core seconds that it used while the stream went on.
    pub busy_s: f64,
    /// Seconds without work in which a window was full: it waited for an acknowledgement. None in records that do not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_control_s: Option<f64>,
    /// Seconds without work in which its disk wrote or read for it; may overlap with `flow_control_s`. None in records
    /// that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_s: Option<f64>,
}

/// How a consumer went with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsumerMemory {
    /// The bucket's quota.
    pub quota_bytes: u64,
    /// Most that was in use when it was looked at.
    pub used_bytes_max: u64,
    /// How often the consumer stopped because its memory was over the replication threshold.
    pub stops: u64,
    /// How long it was stopped, all together.
    pub stopped_s: f64,
    /// The longest time until it went on.
    pub longest_stop_s: f64,
    /// Most messages that were buffered when it was looked at.
    pub buffered_items_max: u64,
}

/// A stream of documents from one server to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamFigures {
    /// Threads of its path, from the source on.
    pub threads: Vec<ThreadUse>,
    /// Whether the consumer is a measuring device: it counts what comes and keeps nothing.
    pub measuring_device: bool,
    /// The consumer's memory; none where nothing is kept.
    pub memory: Option<ConsumerMemory>,
    /// Seconds from the beginning until all was on the destination's disk; none where nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persisted_s: Option<f64>,
    /// Seconds of the stream's time in which nothing was streamed, because the manager prepared moves. 0 in the real
    /// world, where they take the time that they take, and in records that do not say.
    #[serde(default)]
    pub overhead_s: f64,
    /// Streams that began again because their producer made them roll back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rollbacks: u64,
    /// Bytes of documents that were streamed again after that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
