//! What makes an index a follower, and the events about that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::settings::FollowParameters;

/// The leader of a follower index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowOrigin {
    /// Alias of the remote cluster.
    pub remote_cluster: String,
    /// Name of the index there.
    pub leader_index: String,
    /// Its uuid: an index of the same name created later is another one.
    pub leader_uuid: String,
    /// How it follows.
    #[serde(default)]
    pub following: Following,
}

/// How an index follows its leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    /// `_ccr/pause_follow` was the last word.
    pub paused: bool,
    /// The parameters that it was given.
    pub parameters: FollowParameters,
    /// Index settings that it was given with `_ccr/follow`: the leader's do not replace them.
    pub own_settings: BTreeSet<String>,
    /// Shards that were recovered from remote again, as their leader had no longer the operations that they
    /// lacked: why. Each falls back once until it is resumed.
    pub fell_back: BTreeMap<u32, String>,
    /// How often it was resumed: a node may not hear of the pause before that. Earlier builds did not count.
    #[serde(default)]
    pub resumed: u64,
}

/// What is to change about how an index follows.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FollowChange {
    /// `_ccr/pause_follow`.
    Pause,
    /// `_ccr/resume_follow`, with the parameters from now on.
    Resume { parameters: FollowParameters },
    /// `_ccr/unfollow`: an index like any other from now on.
    Unfollow,
    /// The leader has no longer the operations that a shard lacks: it recovers from remote again, unless it is paused.
    FallBack {
        shard: u32,
        /// The primary that says so. Ignored if that is no longer the started primary.
        allocation_id: String,
        /// What the leader said.
        reason: String,
    },
}
