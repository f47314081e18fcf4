//! What happens, one thing after another, in a plan that follows.

use std::time::Duration;

use record::names::matches;

use super::background::Background;
use super::fault::Fault;

/// Something that is done, and waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Goes on indexing on the leader from here on, beside all that comes.
    IndexInBackground(Background),
    /// Indexes no more.
    StopIndexing,
    /// Has the follower follow every index; what it lacks it gets by a recovery from remote.
    Follow,
    /// Has the follower follow what the leader makes from here on.
    AutoFollow(Pattern),
    /// Restarts nodes of a cluster at random from here on, beside all that comes.
    RestartAtRandom(RandomRestarts),
    /// Restarts none any more; what is down starts.
    StopRestarts,
    /// Waits until so many documents were written in the background.
    WaitForDocuments(Written),
    /// Lets time pass.
    Wait(Lasts),
    /// Waits until the follower lacks no more than so many operations.
    WaitForLag {
        /// Over all indices.
        under: u64,
        /// If it takes longer, the run has failed.
        within: Lasts,
    },
    /// Has a fault begin, lets its time pass, and ends it. A jump of a clock without a time takes none and stays.
    Fault {
        /// What, and on which node.
        fault: Fault,
        /// How long.
        lasts: Option<Lasts>,
    },
}

impl Action {
    /// Names of the steps that only plans that follow have.
    pub const NAMES: [&str; 8] = [
        "auto_follow",
        "stop_indexing",
        "wait",
        "wait_for_documents",
        "wait_for_lag",
        "fault",
        "restart_at_random",
        "stop_restarts",
    ];

    /// Whether the follower begins to follow with it.
    pub fn follows(&self) -> bool {
        matches!(self, Action::Follow | Action::AutoFollow(_))
    }
}

/// A pattern of auto-follow: which indices of the leader are followed once they are made.
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

/// Restarts of a cluster's nodes, by `kill -9` or in order, each drawn from the plan's seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomRestarts {
    /// The cluster.
    pub cluster: String,
    /// Whether all of its nodes restart at once each time; otherwise one of them, or as likely as each all of them.
    pub all: bool,
    /// From when all are up until the next goes down: half of this to one and a half, each as likely.
    pub every: Lasts,
    /// How long it is down.
    pub pause: Lasts,
}

/// A number of documents; in the virtual world another one may be given. Scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// On real processes.
    pub real: u64,
    /// In virtual time.
    pub full: u64,
}

impl Written {
    /// The one for a world.
    pub fn of(self, is_virtual: bool) -> u64 {
        if is_virtual { self.full } else { self.real }
    }
}

/// A time; in the virtual world, where it costs nothing, another one may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasts {
    /// On real processes.
    pub real: Duration,
    /// In virtual time.
    pub full: Duration,
}

impl Lasts {
    /// The one for a world.
    pub fn of(self, is_virtual: bool) -> Duration {
        if is_virtual { self.full } else { self.real }
    }
}
