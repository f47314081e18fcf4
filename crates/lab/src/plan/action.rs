//! What happens in a plan that follows: actions, one after another.

use std::time::Duration;

use clusters::FaultKind;
use record::names::matches;

use super::background::Background;
use super::by_world::ByWorld;
use super::fault::Fault;

/// One action. The next one begins when it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Begins to index on the leader; that goes on while later actions are done.
    IndexInBackground(Background),
    /// Stops indexing.
    StopIndexing,
    /// Has the follower follow every index, beginning with a recovery from remote.
    Follow,
    /// Has the follower follow indices that are created on the leader from here on.
    AutoFollow(Pattern),
    /// Begins to search the leader; that goes on until the last action is done.
    SearchInBackground(Searching),
    /// Begins to restart nodes of a cluster at random; that goes on while later actions are done.
    RestartAtRandom(RandomRestarts),
    /// Stops the restarts. Nodes that are down start.
    StopRestarts,
    /// Waits until so many documents, scaled, were written in the background.
    WaitForDocuments(ByWorld<u64>),
    /// Lets time pass.
    Wait(ByWorld<Duration>),
    /// Waits until the follower lacks fewer operations than `under`.
    WaitForLag {
        /// Operations, over all indices.
        under: u64,
        /// If it takes longer, the run has failed.
        within: ByWorld<Duration>,
    },
    /// Has a fault begin, waits as long as it lasts, and ends it. A jump of a clock that lasts for no time stays.
    Fault {
        /// What, and on which node.
        fault: Fault,
        /// How long.
        lasts: Option<ByWorld<Duration>>,
    },
}

impl Action {
    /// Whether the follower begins to follow by this action.
    pub fn follows(&self) -> bool {
        matches!(self, Action::Follow | Action::AutoFollow(_))
    }
}

/// A pattern of auto-follow: which indices of the leader are followed once they are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its name on the follower.
    pub name: String,
    /// `leader_index_patterns`.
    pub patterns: Vec<String>,
    /// `leader_index_exclusion_patterns`.
    pub exclude: Vec<String>,
}

impl Pattern {
    /// Whether it follows an index of that name.
    pub fn fits(&self, index: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, index));
        any(&self.patterns) && !any(&self.exclude)
    }
}

/// Searches beside the writes. Each answer is held against what was acknowledged and refreshed before it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searching {
    /// Clients that search, each one search after another.
    pub clients: u32,
    /// How long a client waits after an answer.
    pub pause: Duration,
}

/// Restarts of a cluster's nodes, drawn from the plan's seed.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomRestarts {
    /// The cluster.
    pub cluster: String,
    /// Whether all of its nodes restart at once each time. Otherwise one of them does, or all, each case as likely.
    pub all: bool,
    /// [`FaultKind::Kill`] or [`FaultKind::Stop`]; without it one of the two is drawn, each as likely.
    pub kind: Option<FaultKind>,
    /// Mean time from when all are up until the next goes down; drawn between half of it and one and a half.
    pub every: ByWorld<Duration>,
    /// How long nodes are down.
    pub pause: ByWorld<Duration>,
}
