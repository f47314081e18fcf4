//! Brings up the copies that belong on this node, and takes down those that do not.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::backoff::Backoff;
use world::Time;

use super::parts::Node;
use crate::core::{ChangedCopies, Core, all_of};
use crate::planted;
use crate::recovery;
use crate::replication;
use crate::search;
use crate::shard::{LocalShard, ShardKey};
use crate::state::{ClusterState, CopyState, Event, IndexMeta, ShardCopy};

/// How long copies wait that could not be removed: a disk that is full or fails is hardly better within a second.
const AGAIN: Backoff = Backoff::Follower { max_retry_delay: Duration::from_secs(30) };
const AGAIN_MIN: Duration = Duration::from_secs(1);

/// Copies that could not be removed.
#[derive(Default)]
struct Unremoved {
    tries: u32,
    /// When all of them are tried again; none where there are none.
    again: Option<Time>,
}

impl Unremoved {
    /// Waits until the state changes, or until it is time to try again: whether it is that.
    async fn is_due(&self, core: &Core) -> bool {
        let changed = core.published.reconcile.notified();
        let Some(again) = self.again else {
            changed.await;
            return false;
        };
        let now = core.env.now();
        // However often the state changes.
        now >= again || core.env.timeout(again - now, changed).await.is_err()
    }

    /// Takes note of a try that failed, unless the next one is awaited already.
    fn note_failure(&mut self, core: &Core) {
        if self.again.is_some() {
            return;
        }
        self.tries = self.tries.saturating_add(1);
        let wait = AGAIN.delay(self.tries, core.env.random_u64()).max(AGAIN_MIN);
        self.again = Some(core.env.now() + wait);
    }
}

/// Runs whenever the state changes. It looks at the indices that changed; after the failure of a copy, at every copy of
/// this node. In between it tries again to remove what could not be removed.
pub(super) async fn run(node: Node) {
    let core = node.core();
    let mut before: Option<Arc<ClusterState>> = None;
    let mut unremoved = Unremoved::default();
    loop {
        let is_due = unremoved.is_due(core).await;
        if node.parts.stopping.get() {
            return;
        }
        if is_due {
            unremoved.again = None;
            match remove_obsolete(&node, &ChangedCopies::All).await {
                true => unremoved = Unremoved::default(),
                false => unremoved.note_failure(core),
            }
            continue;
        }
        if core.published.reconcile_all.take() {
            before = None;
        }
        let state = core.state();
        let changed = ChangedCopies::between(before.as_ref(), &state);
        take_down(&node, &state, &changed).await;
        // Nobody would close what a node opens that was stopped meanwhile.
        if node.parts.stopping.get() {
            return;
        }
        bring_up(&node, &state, &changed);
        node.parts.follow_tasks.reconcile(&changed);
        node.parts.stored_indices.note(core.name(), &state, &changed);
        maintain_changed(core, &changed);
        if !remove_obsolete(&node, &changed).await {
            unremoved.note_failure(core);
        }
        before = Some(state);
    }
}

async fn take_down(node: &Node, state: &Arc<ClusterState>, changed: &ChangedCopies) {
    let core = node.core();
    let is_wanted = |shard: &LocalShard| {
        let routing = shard.routing(state);
        let copy = routing.as_deref().and_then(|routing| routing.on_node(core.name()));
        // A primary that could not be opened keeps its id when it is assigned to this node again, and this node may
        // have missed the state in between.
        copy.is_some_and(|copy| copy.allocation_id == shard.allocation_id)
            && !shard.failure_reported.get()
    };
    let mut unwanted = changed.among(&core.shards.borrow());
    unwanted.retain(|(_, shard)| !is_wanted(shard));
    for (key, _) in &unwanted {
        core.shards.borrow_mut().remove(key);
        node.parts.closed_copies.borrow_mut().insert(key.clone());
    }
    for (key, shard) in unwanted {
        search::keep_for_fetches(node.search(), &key, &shard);
        shard.close().await;
    }
}

fn bring_up(node: &Node, state: &ClusterState, changed: &ChangedCopies) {
    let core = node.core();
    let here = core.name();
    let up = |index: &str, number: u32, copy: &ShardCopy| {
        if let Some(meta) = state.indices.get(index) {
            bring_up_copy(node, state, (index, meta), number, copy);
        }
    };
    match changed {
        ChangedCopies::All => {
            state.copies_on(here).for_each(|(index, number, copy)| up(index, number, copy))
        }
        ChangedCopies::Of(indices) => {
            for (index, number) in indices.on(here) {
                let shard = state.shard(index, *number);
                if let Some(copy) = shard.and_then(|shard| shard.on_node(here)) {
                    up(index, *number, copy);
                }
            }
        }
    }
}

/// Has the maintenance look at copies whose settings may have changed, or which are new.
fn maintain_changed(core: &Core, changed: &ChangedCopies) {
    match changed {
        ChangedCopies::All => core.maintain_all(),
        ChangedCopies::Of(..) => {
            let shards = changed.among(&core.shards.borrow());
            if !shards.is_empty() {
                core.activity.in_use.borrow_mut().extend(shards);
                core.note_use();
            }
        }
    }
}

fn bring_up_copy(
    node: &Node,
    state: &ClusterState,
    (index, meta): (&str, &IndexMeta),
    number: u32,
    copy: &ShardCopy,
) {
    let core = node.core();
    let term = state.shard(index, number).map_or(0, |shard| shard.primary_term);
    let key = (meta.uuid.clone(), number);
    let known = core.shards.borrow().get(&key).cloned();
    match (known, &copy.state) {
        (Some(shard), copy_state) => {
            shard.take_settings(meta);
            let target = copy.target.as_ref().map(|target| target.allocation_id.as_str());
            shard.operations.follow_state(target, state.version);
            let follows = meta.leader.is_some();
            if shard.set_role(copy.acts_as_primary(), term, copy.is_started(), follows) {
                core.keep(
                    "settles a promotion",
                    replication::promoted(core.clone(), shard.clone()),
                );
            }
            // The manager heard late of an earlier life of it or of its node, and has it opened once more.
            let is_opened_again = matches!(copy_state, CopyState::Initializing { .. });
            if is_opened_again && shard.is_well() && !core.env.is_planted(planted::STARTED_ONCE) {
                shard.reported.set(false);
                let core2 = core.clone();
                core.keep("reports a copy that is open", async move {
                    recovery::report_started(&core2, &shard).await;
                });
            }
        }
        (None, CopyState::Initializing { recovery }) => {
            let shard = Rc::new(LocalShard::new(index, &meta.uuid, number, copy, term));
            node.parts.closed_copies.borrow_mut().remove(&key);
            core.shards.borrow_mut().insert(key, shard.clone());
            let task =
                recovery::recover(node.parts.recovery.clone(), shard.clone(), recovery.clone());
            *shard.recovery.borrow_mut() = Some(core.env.spawn("recovers", task));
        }
        // The node restarted, or closed the copy.
        (None, CopyState::Started) => {
            let event = Event::ShardFailed {
                index: index.to_owned(),
                shard: number,
                allocation_id: copy.allocation_id.clone(),
                reason: "the copy is not open on its node".to_owned(),
                disk_full: false,
            };
            let core2 = core.clone();
            core.keep("reports a lost copy", async move { core2.report(event).await });
        }
        (None, CopyState::Unassigned { .. }) => {}
    }
}

/// Deletes what no copy needs any more; whether all of it could be deleted.
async fn remove_obsolete(node: &Node, changed: &ChangedCopies) -> bool {
    let core = node.core();
    let state = core.state();
    let here = core.name();
    let obsolete = {
        let closed = node.parts.closed_copies.borrow();
        let of = |keys: &mut dyn Iterator<Item = &ShardKey>| keys.cloned().collect::<Vec<_>>();
        match changed {
            ChangedCopies::All => {
                state.obsolete(here, state.indices.keys(), &of(&mut closed.iter()))
            }
            ChangedCopies::Of(indices) => {
                let mut keys = indices.uuids.iter().flat_map(|uuid| closed.range(all_of(uuid)));
                state.obsolete(here, &indices.names, &of(&mut keys))
            }
        }
    };
    let mut is_all = true;
    for key in obsolete {
        if core.disk.remove_copy(&key.0, key.1).await.is_err() {
            is_all = false;
            continue;
        }
        node.parts.closed_copies.borrow_mut().remove(&key);
        remove_empty_index(node, &key.0).await;
    }
    is_all
}

/// An index goes with its last copy here.
async fn remove_empty_index(node: &Node, uuid: &str) {
    let core = node.core();
    let is_open = core.shards.borrow().range(all_of(uuid)).next().is_some();
    let is_closed = node.parts.closed_copies.borrow().range(all_of(uuid)).next().is_some();
    if !is_open && !is_closed {
        node.parts.stored_indices.forget(uuid);
        core.disk.remove_empty_index(uuid).await;
    }
}
