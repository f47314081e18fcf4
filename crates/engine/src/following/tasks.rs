//! Which shards of this node follow: those that are started primaries of followers that are not paused.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use world::Task;

use super::follower::{Follower, Pacing, run};
use super::service::FollowService;
use crate::core::{ChangedCopies, Core};
use crate::replication;
use crate::shard::{LocalShard, ShardKey};
use crate::state::{ClusterState, FollowOrigin};

/// The shards of a node that follow.
pub(crate) struct FollowTasks {
    service: Rc<FollowService>,
    by_shard: RefCell<BTreeMap<ShardKey, Rc<Running>>>,
}

/// How often it is looked whether what was being written is written.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// The pause before the end of following is tried again.
const END_AGAIN_AFTER: Duration = Duration::from_millis(500);

struct Running {
    pacing: Pacing,
    /// How often its index had been resumed when it began.
    resumed: u64,
    follower: Rc<Follower>,
    _task: Task<()>,
}

impl FollowTasks {
    pub(crate) fn new(service: Rc<FollowService>) -> Self {
        FollowTasks { service, by_shard: RefCell::default() }
    }

    /// Starts and ends what the state asks for of these copies.
    pub(crate) fn reconcile(&self, changed: &ChangedCopies) {
        let service = &self.service;
        let state = service.core.state();
        let mut running = self.by_shard.borrow_mut();
        let shards = service.core.shards.borrow();
        for (key, one) in changed.among(&running) {
            let is_same = |shard: &&Rc<LocalShard>| Rc::ptr_eq(shard, &one.follower.shard);
            let leader = shards.get(&key).filter(is_same).and_then(|shard| wanted(&state, shard));
            // One that was paused and resumed begins anew, also where no state in between came here: it may have
            // stopped.
            let goes_on = |leader: &FollowOrigin| {
                leader.following.resumed == one.resumed && Pacing::of(service, leader) == one.pacing
            };
            if leader.is_none_or(|leader| !goes_on(leader)) {
                running.remove(&key);
            }
        }
        for (key, shard) in changed.among(&shards) {
            match wanted(&state, &shard) {
                Some(leader) if !running.contains_key(&key) => {
                    shard.followed.set(true);
                    let pacing = Pacing::of(service, leader);
                    let follower = Follower::new(service, shard.clone(), leader, pacing);
                    let Some(follower) = follower.map(Rc::new) else { continue };
                    let task = run(follower.clone());
                    let task = service.core.env.spawn("follows", task);
                    let resumed = leader.following.resumed;
                    let one = Running { pacing, resumed, follower, _task: task };
                    running.insert(key, Rc::new(one));
                }
                Some(_) => {}
                None => end_following(&service.core, &state, shard),
            }
        }
        service.following.set(running.len());
    }

    /// How a shard follows; none if it does not.
    pub(crate) fn get(&self, key: &ShardKey) -> Option<Rc<Follower>> {
        self.by_shard.borrow().get(key).map(|running| running.follower.clone())
    }

    /// Bytes that all of them hold, or expect.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let shards = self.by_shard.borrow();
        shards.values().map(|running| running.follower.policy.borrow().memory_bytes()).sum()
    }

    /// Ends them all.
    pub(crate) fn stop(&self) {
        let all = std::mem::take(&mut *self.by_shard.borrow_mut());
        self.service.following.set(0);
        drop(all);
    }
}

/// The leader of a shard that is to follow now.
fn wanted<'a>(state: &'a ClusterState, shard: &LocalShard) -> Option<&'a FollowOrigin> {
    let leader = state.indices.get(&shard.index)?.leader.as_ref()?;
    let follows = shard.is_primary() && shard.is_started() && !leader.following.paused;
    follows.then_some(leader)
}

/// Ends following, once for each shard: from then on the primary takes writes as any other.
fn end_following(core: &Rc<Core>, state: &ClusterState, shard: Rc<LocalShard>) {
    match state.indices.get(&shard.index) {
        Some(meta) if meta.leader.is_some() => return shard.followed.set(true),
        Some(_) if shard.is_primary() && shard.followed.replace(false) => {}
        _ => return,
    }
    shard.ends_following.set(true);
    let core2 = core.clone();
    core.keep("ends following", async move {
        let is_there = || core2.is_here(&shard) && shard.is_primary();
        // Operations that are being written have sequence numbers, also where a replica does not have them yet.
        while shard.followed_writes.get() > 0 {
            core2.env.sleep(RETRY_AFTER).await;
        }
        // A full disk may have room again. Another primary does this by itself, and so does the next start.
        while is_there() && replication::end_following(&core2, &shard).await.is_err() {
            core2.env.sleep(END_AGAIN_AFTER).await;
        }
        shard.ends_following.set(false);
    });
}
