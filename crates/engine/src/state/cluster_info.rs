//! What is known of disks and of the sizes of shards, as looked at last.
//!
//! As the `ClusterInfo` of Elasticsearch and OpenSearch, which their manager renews every
//! `cluster.info.update.interval`. Of the disk of a node that is not in it nothing is known, and nothing is decided by
//! it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What is known of the disk of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUsage {
    /// How large it is.
    pub total_bytes: u64,
    /// What can still be written, without what copies that are being made there still need.
    pub free_bytes: u64,
    /// Those copies, by index and shard.
    pub reserved: BTreeSet<(String, u32)>,
}

/// What is known of disks and of the sizes of shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInfo {
    /// By node.
    pub disks: BTreeMap<String, DiskUsage>,
    /// Bytes of a copy, by index and number of the shard: of the largest copy that is complete; 0 where none is known.
    pub shard_bytes: BTreeMap<String, Vec<u64>>,
}

impl ClusterInfo {
    /// Bytes of a copy of a shard.
    pub fn bytes_of(&self, index: &str, shard: u32) -> u64 {
        self.shard_bytes.get(index).and_then(|all| all.get(shard as usize)).copied().unwrap_or(0)
    }

    /// Bytes on the wire, about.
    pub(super) fn wire_bytes(&self) -> u64 {
        let reserved = self.disks.values().map(|disk| disk.reserved.len() as u64).sum::<u64>();
        let shards = self.shard_bytes.values().map(|shards| 16 + 8 * shards.len() as u64);
        32 * (self.disks.len() as u64 + reserved) + shards.sum::<u64>()
    }
}
