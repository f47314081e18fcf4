//! A shard that follows another cluster's.

use serde::{Deserialize, Serialize};

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
    /// For how long it has asked its leader for nothing; Elasticsearch alone says it.
    pub since_read_ms: Option<u64>,
    /// Reads that failed.
    pub failed_reads: Option<u64>,
    /// Writes that failed and are tried again.
    pub failed_writes: Option<u64>,
    /// Reads that its leader refused because it was overloaded; OpenSearch alone says it.
    pub throttled_reads: Option<u64>,
    /// Writes that were refused on the follower because it was overloaded; OpenSearch alone says it.
    pub throttled_writes: Option<u64>,
    /// Why it stopped for good.
    pub fatal: Option<String>,
    /// Why it was paused or has failed, where OpenSearch says it; in Elasticsearch why its reads fail.
    pub reason: Option<String>,
    /// What bounds its reads and writes; none where that was not asked, as OpenSearch's plugin has no such parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<FollowLimits>,
}

/// An index of another cluster that auto-follow could not begin to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoFollowError {
    /// The pattern that it fits, and its name there: `daily:logs-2026.11.30`; the pattern alone where its cluster was
    /// not reached.
    pub leader: String,
    /// When that was tried last, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// Why it failed.
    pub reason: String,
}

/// What bounds the reads and writes of a following shard: follow parameters of its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FollowLimits {
    /// `max_outstanding_read_requests`.
    pub reads: Option<u64>,
    /// `max_read_request_operation_count`.
    pub read_ops: Option<u64>,
    /// `max_read_request_size`.
    pub read_bytes: Option<u64>,
    /// `max_write_buffer_size`.
    pub write_buffer_bytes: Option<u64>,
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
