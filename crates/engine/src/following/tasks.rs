//! Which shards of this node follow: those that are started primaries of followers that are not paused.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use world::Task;

use crate::node::{LocalShard, Node, Scope, ShardKey};
use crate::replication;
use crate::state::{ClusterState, FollowOrigin};

use super::follower::{Follower, Pacing, run};

/// The shards of a node that follow.
#[derive(Default)]
pub(crate) struct FollowTasks {
    by_shard: RefCell<BTreeMap<ShardKey, Rc<Running>>>,
    /// How many of them hold or want operations.
    busy: Rc<Cell<usize>>,
}

/// How often it is looked whether what was being written is written.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// Until the end of following is tried again.
const END_AGAIN_AFTER: Duration = Duration::from_millis(500);

struct Running {
    pacing: Pacing,
    follower: Rc<Follower>,
    _task: Task<()>,
}

impl FollowTasks {
    /// Starts and ends what the state asks for of these copies.
    pub(crate) fn reconcile(&self, node: &Node, scope: &Scope) {
        let state = node.state();
        let mut running = self.by_shard.borrow_mut();
        let shards = node.shards.borrow();
        for (key, one) in scope.among(&running) {
            let is_same = |shard: &&Rc<LocalShard>| Rc::ptr_eq(shard, &one.follower.shard);
            let leader = shards.get(&key).filter(is_same).and_then(|shard| wanted(&state, shard));
            if leader.is_none_or(|leader| Pacing::of(node, leader) != one.pacing) {
                running.remove(&key);
            }
        }
        for (key, shard) in scope.among(&shards) {
            match wanted(&state, &shard) {
                Some(leader) if !running.contains_key(&key) => {
                    shard.followed.set(true);
                    let pacing = Pacing::of(node, leader);
                    let follower =
                        Follower::new(node, shard.clone(), leader, pacing, self.busy.clone());
                    let Some(follower) = follower.map(Rc::new) else { continue };
                    let task = run(node.clone(), follower.clone());
                    let task = node.env.spawn("follows", task);
                    running.insert(key, Rc::new(Running { pacing, follower, _task: task }));
                }
                Some(_) => {}
                None => end_following(node, &state, shard),
            }
        }
    }

    /// How a shard follows; none if it does not.
    pub(crate) fn get(&self, key: &ShardKey) -> Option<Rc<Follower>> {
        self.by_shard.borrow().get(key).map(|running| running.follower.clone())
    }

    /// Bytes that a following shard may hold.
    pub(crate) fn memory_share(&self, node: &Node, is_busy: bool) -> u64 {
        let all = self.by_shard.borrow().len();
        share(node.settings().following_memory_max(), (all, self.busy.get()), is_busy)
    }

    /// Bytes that all of them hold, or expect.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let shards = self.by_shard.borrow();
        shards.values().map(|running| running.follower.policy.borrow().memory_bytes()).sum()
    }

    /// Ends them all.
    pub(crate) fn stop(&self) {
        let all = std::mem::take(&mut *self.by_shard.borrow_mut());
        drop(all);
    }
}

/// What one of `all` shards may hold of `memory_max_bytes`. Half of that is everyone's, the other half is for those that are
/// busy: an index that nobody writes to takes next to nothing from one that is behind.
fn share(memory_max_bytes: u64, (all, busy): (usize, usize), is_busy: bool) -> u64 {
    let half = memory_max_bytes / 2;
    let more = if is_busy { half / busy.max(1) as u64 } else { 0 };
    half / all.max(1) as u64 + more
}

/// The leader of a shard that is to follow now.
fn wanted<'a>(state: &'a ClusterState, shard: &LocalShard) -> Option<&'a FollowOrigin> {
    let leader = state.indices.get(&shard.index)?.leader.as_ref()?;
    let follows = shard.is_primary() && shard.is_started() && !leader.following.paused;
    follows.then_some(leader)
}

/// Sees to the end of following, once for each shard: it goes on as any other from there.
fn end_following(node: &Node, state: &ClusterState, shard: Rc<LocalShard>) {
    match state.indices.get(&shard.index) {
        Some(meta) if meta.leader.is_some() => return shard.followed.set(true),
        Some(_) if shard.is_primary() && shard.followed.replace(false) => {}
        _ => return,
    }
    let node2 = node.clone();
    node.keep("ends following", async move {
        let is_there = || {
            let shards = node2.shards.borrow();
            let is_same = |there: &Rc<LocalShard>| Rc::ptr_eq(there, &shard);
            shards.get(&shard.key()).is_some_and(is_same) && shard.is_primary()
        };
        // What is being written has its places, also on copies that do not have it yet.
        while shard.followed_writes.get() > 0 {
            node2.env.sleep(RETRY_AFTER).await;
        }
        // A disk that is full has room again some time. Another primary does this by itself, and so does the next start.
        while is_there() && replication::end_following(&node2, &shard).await.is_err() {
            node2.env.sleep(END_AGAIN_AFTER).await;
        }
    });
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
