//! One recovery, and where its files come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::row::Limit;

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
