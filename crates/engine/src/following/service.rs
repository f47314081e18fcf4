//! What every following shard of a node needs: the node, the remote clusters, and its share of the memory.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::core::Core;
use crate::remote::RemoteClusterService;

/// How long a leader may take to answer, beside what it was told to wait.
pub(super) const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);

/// What every following shard of a node needs.
pub struct FollowService {
    pub(super) core: Rc<Core>,
    pub(super) remotes: Rc<RemoteClusterService>,
    /// Shards here that follow.
    pub(super) following: Cell<usize>,
    /// How many of them hold or want operations.
    pub(super) busy: Cell<usize>,
}

impl FollowService {
    pub(crate) fn new(core: &Rc<Core>, remotes: &Rc<RemoteClusterService>) -> Rc<Self> {
        Rc::new(FollowService {
            core: core.clone(),
            remotes: remotes.clone(),
            following: Cell::new(0),
            busy: Cell::new(0),
        })
    }

    /// Bytes that a following shard may hold.
    pub(super) fn memory_share(&self, is_busy: bool) -> u64 {
        let shards = (self.following.get(), self.busy.get());
        share(self.core.settings().following_memory_max(), shards, is_busy)
    }
}

/// The share of one of `all` shards in `memory_max_bytes`. Half of the memory is divided among all shards, the other
/// half among the busy ones: an idle index takes next to nothing from one that is behind.
fn share(memory_max_bytes: u64, (all, busy): (usize, usize), is_busy: bool) -> u64 {
    let half = memory_max_bytes / 2;
    let more = if is_busy { half / busy.max(1) as u64 } else { 0 };
    half / all.max(1) as u64 + more
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn one_that_is_behind_among_many_that_rest_has_half_of_the_memory() {
        let most = 256 << 20;
        assert_eq!(share(most, (1, 1), true), most);
        let (busy, idle) = (share(most, (228, 2), true), share(most, (228, 2), false));
        assert!(busy > most / 4 && idle < 1 << 20, "{busy}, {idle}");
        assert!(2 * busy + 226 * idle <= most);
        assert!(228 * share(most, (228, 228), true) <= most);
    }
}
