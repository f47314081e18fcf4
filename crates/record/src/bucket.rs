//! What a data node of Couchbase says of a bucket and of its DCP connections, in the units of STAT.
//!
//! What a server does not say is none and never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A bucket on one data node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BucketNode {
    /// The node, `host:port`.
    pub node: String,
    /// When it had answered, in milliseconds since the first look.
    pub answered_ms: f64,
    /// `mem_used`: memory that the bucket uses.
    pub mem_used_bytes: Option<u64>,
    /// `ep_max_size`: memory that it may use.
    pub quota_bytes: Option<u64>,
    /// `ep_cursors_dropped`: streams that memory left no room for, so that they read from disk again.
    pub cursors_dropped: Option<u64>,
    /// `ep_diskqueue_items`: items that wait to be written to its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_queue_items: Option<u64>,
    /// Its DCP connections, in the order of their names.
    pub connections: Vec<DcpConnection>,
}

/// A DCP connection, as the node at one of its ends tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DcpConnection {
    /// Its name, the same at both ends: `replication:ns_1@a->ns_1@b:travel`.
    pub name: String,
    /// `producer`, `consumer` or `notifier`: what the node is in it.
    pub kind: String,
    /// Items that the producer sent.
    pub items_sent: Option<u64>,
    /// Items that it still has to send.
    pub items_remaining: Option<u64>,
    /// Bytes that it sent.
    pub bytes_sent: Option<u64>,
    /// Bytes that the consumer acknowledged.
    pub acked_bytes: Option<u64>,
    /// Bytes that were sent and not acknowledged.
    pub unacked_bytes: Option<u64>,
    /// The most that may be so; none without flow control.
    pub max_buffer_bytes: Option<u64>,
    /// Whether the consumer uses flow control.
    pub flow_control: Option<bool>,
    /// Whether it waits now.
    pub paused: Option<bool>,
    /// What it waits for now: `BufferLogFull`, `ReadyListEmpty`, `OutOfMemory`.
    pub paused_for: Option<String>,
    /// How long it has waited for each of them, the present wait included, in milliseconds.
    pub paused_ms: BTreeMap<String, u64>,
    /// Streams that say their state.
    pub streams: u64,
    /// Those of them that read from disk.
    pub backfilling: u64,
    /// Backfills that run, sleep or wait for their turn; none where that is not told.
    pub backfills: Option<u64>,
    /// Whether what backfills have read fills its buffer: then sending holds them, not the disk.
    pub backfill_full: Option<bool>,
    /// Times that the consumer left messages for later.
    pub backoffs: Option<u64>,
    /// Whether the consumer has messages that it left for later.
    pub has_more_to_process: Option<bool>,
}
