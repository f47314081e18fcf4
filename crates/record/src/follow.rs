//! How a follower kept up with its leader, and whether it has every write that was acknowledged.

use serde::{Deserialize, Serialize};

/// A wait until a follower that was behind had caught up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CatchUp {
    /// What happened before the wait: `the link was cut off for 5:00`.
    pub after: String,
    /// Operations that the follower lacked when the wait began.
    pub lag_operations: u64,
    /// Age of the oldest of those operations on the leader when the wait began.
    pub lag_s: f64,
    /// How long it took until the lag was as small as the plan asks for.
    pub seconds: f64,
    /// How much of that time passed until every shard followed: before, files are copied. 0 in records that do not say.
    #[serde(default)]
    pub copying_s: f64,
    /// Operations that the follower indexed during the wait; what it recovered as files is not counted.
    pub operations: u64,
    /// Operations that the leader indexed meanwhile, since every shard followed.
    pub indexed: u64,
}

impl CatchUp {
    /// How many times as fast as the leader indexed the follower caught up, once it followed; none if nobody indexed
    /// meanwhile.
    pub fn speed(&self) -> Option<f64> {
        (self.indexed > 0).then(|| self.operations as f64 / self.indexed as f64)
    }
}

/// Searches beside the writes. Each answer is compared with what was acknowledged and refreshed before the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchFigures {
    /// Searches whose answers could be compared: every copy had refreshed before, and every shard answered.
    pub held: u64,
    /// Searches while copies or answers were missing, as they are while a node is down.
    pub incomplete: u64,
    /// Answers that lacked what was acknowledged, or had what nobody wrote.
    pub wrong: u64,
    /// Such answers from a node that the cluster had already removed: it shows its last state until it learns of that.
    #[serde(default)]
    pub given_up: u64,
}

/// What the busiest node used: medians over a part of the time, since a recovery has many files open for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUse {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// The part of it that holds no file, in bytes: mapped segments are resident, too, and grow with the index. 0 in
    /// records that do not say.
    #[serde(default)]
    pub anonymous_bytes: u64,
    /// Open file handles.
    pub open_files: u64,
}

/// What following was like in one variant: the writes, the lag, and whether the copies are right at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FollowFigures {
    /// Writes that were acknowledged by the leader.
    pub acknowledged: u64,
    /// Writes that it refused.
    pub rejected: u64,
    /// Writes that got no answer: the leader may have done them or not.
    pub unanswered: u64,
    /// Operations that all copies of the follower have at the end.
    pub operations: u64,
    /// The most operations that the follower lacked at one time.
    pub lag_operations_max: u64,
    /// The longest time for which the follower lacked an operation.
    pub lag_s_max: f64,
    /// Each wait for a lag, in order.
    pub catch_ups: Vec<CatchUp>,
    /// Indices that were written to.
    #[serde(default)]
    pub indices: u64,
    /// How many of those indices a rollover made.
    #[serde(default)]
    pub rollovers: u64,
    /// Operations that those indices acknowledged whose place another one has taken. 0 in records that do not say.
    #[serde(default)]
    pub rolled_operations: u64,
    /// Random restarts of nodes that ended before the run did.
    #[serde(default)]
    pub restarts_ended: u64,
    /// The waits after those restarts in which the follower caught up before the next restart.
    #[serde(default)]
    pub restarts: Vec<CatchUp>,
    /// Searches beside the writes, where the plan has any.
    #[serde(default)]
    pub searches: Option<SearchFigures>,
    /// What nodes used, in four parts of the time; empty where no node said it.
    #[serde(default)]
    pub used: Vec<NodeUse>,
    /// Copies of leader and follower that were read and compared with what was answered; 0 where the plan does not
    /// verify.
    pub copies: u64,
    /// How many rules the copies or the answers break (see [`crate::ledger::Rule`]).
    pub violations: u64,
    /// The first violations, in words.
    pub violations_shown: Vec<String>,
}
