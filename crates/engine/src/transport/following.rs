//! What a follower and its leader say to each other.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Operations;
use crate::settings::SettingsMap;
use crate::state::Aliases;

/// Which shard of a leader index a follower means, and of which history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderShard {
    /// The leader index.
    pub index: String,
    /// Its uuid: an index of the same name that was made later is another one.
    pub index_uuid: String,
    /// Shard number.
    pub shard: u32,
    /// Identity of the history that the follower has the beginning of.
    pub history_uuid: String,
}

/// Versions of what an index is beside its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Of its mappings.
    pub mappings: u64,
    /// Of its settings.
    pub settings: u64,
    /// Of its aliases.
    pub aliases: u64,
}

/// A follower's question for operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadChanges {
    /// Of which shard. Shared, as each question names it.
    pub leader: Arc<LeaderShard>,
    /// The first operation.
    pub from: u64,
    /// At most so many operations.
    pub max_ops: u64,
    /// At most so many bytes; one operation is sent whatever its size.
    pub max_bytes: u64,
    /// How long to wait for operations where there are none yet.
    pub poll_timeout: Duration,
    /// Versions of the mappings, settings and aliases that the follower has. If the leader has others, it answers at
    /// once.
    pub known: Option<Versions>,
    /// The latest term of a primary that has answered, and the highest global checkpoint of those answers.
    pub heard: Option<(u64, Option<u64>)>,
    /// 0 plain, 1 lz4, 2 zstd.
    pub compress: u8,
}

/// What a leader answers to [`ReadChanges`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Changes {
    /// Ascending, from the one that was asked for, without holes; none above the global checkpoint.
    pub ops: Operations,
    /// Every in-sync copy has everything up to here.
    pub global_checkpoint: Option<u64>,
    /// Highest sequence number of the primary.
    pub max_seq_no: Option<u64>,
    /// Term of the primary.
    pub primary_term: u64,
    /// Versions of the index's other properties.
    pub versions: Versions,
    /// How long it took, without the wait.
    pub served: Duration,
    /// How long it waited for operations to come.
    pub waited: Duration,
    /// Whether the users of the leader's node suffer.
    pub pressure: bool,
}

/// A follower's retention lease on a shard of its leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// Of which shard.
    pub leader: LeaderShard,
    /// Its id.
    pub id: String,
    /// Operations from here on are to be kept; none lets them go.
    pub from: Option<u64>,
    /// Whether a copy of the follower may need earlier ones: a lease that keeps them stays where it is.
    pub at_least: bool,
}

/// What a follower must know of a leader's index before it can follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteIndex {
    /// UUID.
    pub uuid: String,
    /// Number of shards.
    pub shards: u32,
    /// Its routing shards; none of an index of an earlier build, which has as many as shards.
    pub routing_shards: Option<u32>,
    /// Mappings, as JSON text.
    pub mappings: String,
    /// Counts the changes of the mappings.
    pub mapping_version: u64,
    /// The settings that were given.
    pub settings: SettingsMap,
    /// Counts the changes of the settings.
    pub settings_version: u64,
    /// Its further names.
    pub aliases: Aliases,
    /// Counts the changes of the aliases.
    pub aliases_version: u64,
}

impl RemoteIndex {
    /// Whether both are the same index with the same shards. A follower takes over other differences while it follows.
    pub(crate) fn is_same(&self, other: &RemoteIndex) -> bool {
        (&self.uuid, self.shards, &self.mappings) == (&other.uuid, other.shards, &other.mappings)
    }

    /// Bytes on the wire, about.
    pub(crate) fn wire_bytes(&self) -> u64 {
        48 + (self.uuid.len() + self.mappings.len()) as u64 + 32 * self.settings.len() as u64
    }
}
