//! What following a leader was like, and whether the follower has what it must.

use serde::{Deserialize, Serialize};

/// A follower that was behind and was waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CatchUp {
    /// What had happened before: `the link was cut off for 5:00`.
    pub after: String,
    /// Operations that it lacked when the wait began.
    pub lag_operations: u64,
    /// For how long the leader had had the oldest of those.
    pub lag_s: f64,
    /// How long it took until the lag was as small as was asked for.
    pub seconds: f64,
    /// Operations that the follower got meanwhile, without what came as files.
    pub operations: u64,
    /// Operations that were indexed on the leader in that time.
    pub indexed: u64,
}

impl CatchUp {
    /// Seconds of the leader's history that the follower went through in a second; none while nobody indexed.
    pub fn speed(&self) -> Option<f64> {
        (self.indexed > 0).then(|| self.operations as f64 / self.indexed as f64)
    }
}

/// A variant of a plan that follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FollowFigures {
    /// Writes that were acknowledged by the leader.
    pub acknowledged: u64,
    /// Writes that it refused.
    pub rejected: u64,
    /// Writes that got no answer: they may be done or not.
    pub unanswered: u64,
    /// Operations that all copies of the follower have at the end.
    pub operations: u64,
    /// The most operations that it lacked at once.
    pub lag_operations_max: u64,
    /// The longest that an operation waited that it lacked.
    pub lag_s_max: f64,
    /// Each wait for a lag, in order.
    pub catch_ups: Vec<CatchUp>,
    /// Indices that were written to.
    #[serde(default)]
    pub indices: u64,
    /// How many of them took over from another.
    #[serde(default)]
    pub rollovers: u64,
    /// Restarts at random that there were.
    #[serde(default)]
    pub restarts_ended: u64,
    /// Those after which the follower caught up before the next.
    #[serde(default)]
    pub restarts: Vec<CatchUp>,
    /// Copies of leader and follower that were read and compared with what was answered; 0 where the plan does not verify.
    pub copies: u64,
    /// Rules that are broken.
    pub violations: u64,
    /// The first of them in words.
    pub violations_shown: Vec<String>,
}
