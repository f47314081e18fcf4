//! What happens, one thing after another, in a plan that follows.

use std::time::Duration;

use super::fault::Fault;
use super::resolved::Background;

/// Something that is done, and waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Goes on indexing on the leader from here on, beside all that comes.
    IndexInBackground(Background),
    /// Indexes no more.
    StopIndexing,
    /// Has the follower follow every index; what it lacks it gets by a recovery from remote.
    Follow,
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
    pub const NAMES: [&str; 4] = ["stop_indexing", "wait", "wait_for_lag", "fault"];
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
