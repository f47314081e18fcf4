//! How a bucket keeps within its memory: which writes it accepts, and when it frees what.
//!
//! The thresholds are those of `kv_engine`: `configuration.json` and `docs/memory-management`.

use std::time::Duration;

/// `mem_low_wat`: ejecting values stops at this share of the quota.
pub(crate) const MEM_LOW_WAT: f64 = 0.75;
/// `mem_high_wat`: ejecting values begins at this share.
pub(crate) const MEM_HIGH_WAT: f64 = 0.85;
/// `mutation_mem_ratio`: clients are told to try again above this share.
const MUTATION_MEM_RATIO: f64 = 0.93;
/// `checkpoint_memory_recovery_upper_mark`, of what checkpoints may use: recovery begins.
const CHECKPOINT_UPPER_MARK: f64 = 0.9;
/// `checkpoint_memory_recovery_lower_mark`: recovery ends.
const CHECKPOINT_LOWER_MARK: f64 = 0.6;

/// What happens to a stream's message while the bucket is over its replication threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationPressure {
    /// It is buffered, not acknowledged, and applied in the background: servers before 7.6.
    Buffer,
    /// It is applied at once, and its acknowledgement is withheld: servers since 7.6.
    WithholdAck,
}

/// Thresholds that are not the same everywhere, as shares of the quota.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemorySettings {
    /// `ram_quota`: bytes that the bucket may use.
    pub quota_bytes: u64,
    /// `replication_throttle_threshold`: streams wait above it. 0.99 in 2020, 0.93 since 2022.
    pub replication_throttle_threshold: f64,
    /// What happens to a stream's messages above it.
    pub replication_pressure: ReplicationPressure,
    /// `checkpoint_memory_ratio`: what checkpoints may use.
    pub checkpoint_memory_ratio: f64,
    /// Whether items that all cursors have passed are expelled from checkpoints at once. Without it, whole checkpoints
    /// that all have read are removed, every `chk_remover_stime`.
    pub item_expel: bool,
    /// `chk_remover_stime`: how often checkpoints are removed where items are not expelled.
    pub chk_remover_stime: Duration,
}

/// The defaults of today's servers.
pub fn memory_of_today(quota_bytes: u64) -> MemorySettings {
    MemorySettings {
        quota_bytes,
        replication_throttle_threshold: 0.93,
        replication_pressure: ReplicationPressure::WithholdAck,
        checkpoint_memory_ratio: 0.2,
        item_expel: true,
        chk_remover_stime: Duration::from_secs(5),
    }
}

/// The defaults of 2020, when the published rebalance throughput was measured.
pub fn memory_of_2020(quota_bytes: u64) -> MemorySettings {
    MemorySettings {
        replication_throttle_threshold: 0.99,
        replication_pressure: ReplicationPressure::Buffer,
        ..memory_of_today(quota_bytes)
    }
}

/// Whether a client's write is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientWrite {
    /// It is accepted.
    Take,
    /// Not now: TMPFAIL.
    TryAgain,
    /// It does not fit into the quota: ENOMEM.
    NoMemory,
}

impl MemorySettings {
    fn share(&self, of: f64) -> u64 {
        (self.quota_bytes as f64 * of) as u64
    }

    /// Decides about a client's write that would add so many bytes.
    pub(crate) fn client_write(&self, used_bytes: u64, adds_bytes: u64) -> ClientWrite {
        if used_bytes + adds_bytes > self.quota_bytes {
            ClientWrite::NoMemory
        } else if used_bytes > self.share(MUTATION_MEM_RATIO) {
            ClientWrite::TryAgain
        } else {
            ClientWrite::Take
        }
    }

    /// Whether streams have to wait.
    pub fn throttles_replication(&self, used_bytes: u64) -> bool {
        used_bytes > self.share(self.replication_throttle_threshold)
    }

    /// Bytes to eject; none below the high water mark.
    pub(crate) fn to_eject(self, used_bytes: u64) -> Option<u64> {
        let over = used_bytes > self.share(MEM_HIGH_WAT);
        over.then(|| used_bytes.saturating_sub(self.share(MEM_LOW_WAT)))
    }

    /// Bytes that checkpoints have to free; none below their upper mark.
    pub(crate) fn to_recover(self, checkpoint_bytes: u64) -> Option<u64> {
        let quota = self.quota_bytes as f64 * self.checkpoint_memory_ratio;
        let upper = (quota * CHECKPOINT_UPPER_MARK) as u64;
        let lower = (quota * CHECKPOINT_LOWER_MARK) as u64;
        (checkpoint_bytes > upper).then(|| checkpoint_bytes - lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_are_where_servers_have_them() {
        let memory = memory_of_today(1000);
        assert_eq!(memory.client_write(930, 10), ClientWrite::Take);
        assert_eq!(memory.client_write(931, 10), ClientWrite::TryAgain);
        assert_eq!(memory.client_write(931, 70), ClientWrite::NoMemory);
        assert!(!memory.throttles_replication(930) && memory.throttles_replication(931));
        let before = memory_of_2020(1000);
        assert!(!before.throttles_replication(990) && before.throttles_replication(991));
        assert_eq!((memory.to_eject(850), memory.to_eject(851)), (None, Some(101)));
        assert_eq!((memory.to_recover(180), memory.to_recover(181)), (None, Some(61)));
    }
}
