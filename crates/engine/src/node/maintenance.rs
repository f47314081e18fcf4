//! Looks after open copies in time: syncs, refreshes, commits, and ends leases that were not renewed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::failures::Component;
use store::Shard;
use world::{Task, Time};

use crate::core::{Core, QUIET_AFTER};
use crate::replication::{expire_leases, spread_durability};
use crate::search::IDLE_AFTER;
use crate::settings::{Durability, IndexSettings};
use crate::shard::{LocalShard, ShardKey};
use crate::state::ClusterState;
use crate::transport::{Class, Replicate, Request};

/// How often the maintenance of open copies looks at those that are in use.
const MAINTAIN_EVERY: Duration = Duration::from_secs(1);
/// How often it looks at copies with leases, unless one of these expires before. A clock that was changed is noticed
/// after this time at the latest.
const LEASES_EVERY: Duration = Duration::from_secs(300);
/// How often it looks at all copies: a node may have thousands of idle ones, where only a flush may be due that failed.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// About the memory that the copies of a node may take together for what is not searchable yet, also those that rest.
/// The field's `indices.memory.index_buffer_size` is a tenth of the heap, of which there is none here.
///
/// Two copies hold no more than this, as each writes a segment out at 64 MB (`store`'s writer). Nothing is written to a
/// copy while it is refreshed: with less room, two shards that take a bulk load would stand still again and again.
const INDEX_BUFFER_BYTES: u64 = 128 << 20;

/// Syncs copies with `index.translog.durability: async`, refreshes those that are searched, and commits those whose
/// log has grown. Rests while nobody writes or searches.
pub(super) async fn run(core: Rc<Core>) {
    let mut syncs = BTreeMap::new();
    // Copies that may hold what is not searchable yet: one that rests goes on holding it.
    let mut holding = BTreeSet::new();
    let (mut sweep_at, mut leases_at) = (core.env.now(), core.env.now());
    loop {
        let rests = core.activity.in_use.borrow().is_empty();
        if rests && core.env.now() - core.activity.used_at.get() > QUIET_AFTER {
            core.activity.used.notified().await;
        }
        core.env.sleep(MAINTAIN_EVERY).await;
        let now = core.env.now();
        let are_all_due = core.activity.all_are_due.take() || now >= sweep_at;
        let sweeps = are_all_due || now >= leases_at;
        let shards: Vec<Rc<LocalShard>> = if sweeps {
            leases_at = now + LEASES_EVERY;
            sweep_at = if are_all_due { now + SWEEP_EVERY } else { sweep_at };
            syncs.retain(|key, _| core.shards.borrow().contains_key(key));
            let in_use = core.activity.in_use.borrow();
            let is_due = |shard: &&Rc<LocalShard>| {
                are_all_due || shard.has_leases() || in_use.contains_key(shard.key())
            };
            core.shards.borrow().values().filter(is_due).cloned().collect()
        } else {
            core.activity.in_use.borrow().values().cloned().collect()
        };
        let state = core.state();
        for shard in &shards {
            let stays = core.is_here(shard) && {
                let maintained = maintain_one(&core, &state, shard, &mut syncs).await;
                leases_at = leases_at.min(now + maintained.leases_last.unwrap_or(LEASES_EVERY));
                maintained.is_in_use
            };
            let mut in_use = core.activity.in_use.borrow_mut();
            if stays && sweeps {
                in_use.insert(shard.key().clone(), shard.clone());
            } else if !stays && in_use.get(shard.key()).is_some_and(|s| Rc::ptr_eq(s, shard)) {
                in_use.remove(shard.key());
            }
        }
        let holds = |shard: &&Rc<LocalShard>| unrefreshed_bytes(shard) > 0;
        holding.extend(shards.iter().filter(holds).map(|shard| shard.key().clone()));
        bound_index_buffer(&core, &mut holding).await;
    }
}

fn unrefreshed_bytes(shard: &LocalShard) -> u64 {
    shard.store().map_or(0, |store| store.unrefreshed_bytes())
}

/// Refreshes copies that nobody searches, where all of these together hold too much of what is not searchable yet: the
/// one that holds most of it first.
async fn bound_index_buffer(core: &Rc<Core>, keys: &mut BTreeSet<ShardKey>) {
    let mut holding: Vec<(u64, Rc<LocalShard>)> = Vec::new();
    keys.retain(|key| {
        let Some(shard) = core.shards.borrow().get(key).cloned() else { return false };
        let bytes = unrefreshed_bytes(&shard);
        if bytes > 0 {
            holding.push((bytes, shard));
        }
        bytes > 0
    });
    let mut all_bytes: u64 = holding.iter().map(|(bytes, _)| bytes).sum();
    holding.sort_by_key(|(bytes, _)| Reverse(*bytes));
    for (bytes, shard) in holding {
        if all_bytes <= INDEX_BUFFER_BYTES {
            break;
        }
        all_bytes -= bytes;
        let Ok(store) = shard.store() else { continue };
        shard.last_refresh.set(Some(core.env.now()));
        done(core, &shard, store.refresh().await);
    }
}

/// A replica that did not answer its last write holds the global checkpoint back. After this time the primary asks it
/// what it has, as by the field's `index.global_checkpoint_sync.interval`: followers get nothing above the checkpoint.
const CHECKPOINT_SYNC_EVERY: Duration = Duration::from_secs(30);

/// A copy hears of the global checkpoint with the next write. Where none comes for so long it is told by itself: what a
/// copy knows says of another one, after a restart, whether that was put back as it was earlier.
const TELL_AFTER: Duration = Duration::from_secs(1);
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// When a copy was synced last.
struct Synced {
    at: Time,
    /// Has its replicas sync, too. A replica may take as long as a call may last, and no other copy must wait for that.
    replicas: Option<Task<()>>,
}

/// When a copy is to be looked at again.
#[derive(Default)]
struct Maintained {
    /// There may be something to do soon.
    is_in_use: bool,
    /// Until a lease ends that is not renewed.
    leases_last: Option<Duration>,
}

/// Does what is due to a copy.
async fn maintain_one(
    core: &Rc<Core>,
    state: &Arc<ClusterState>,
    shard: &Rc<LocalShard>,
    all: &mut BTreeMap<ShardKey, Synced>,
) -> Maintained {
    let Ok(store) = shard.store() else { return Maintained::default() };
    let Some(settings) = shard.settings_by(state) else { return Maintained::default() };
    let syncs = settings.translog_durability() == Durability::Async;
    let lags = || shard.is_primary() && store.global_checkpoint() < store.local_checkpoint();
    let every = if syncs { settings.translog_sync_interval() } else { CHECKPOINT_SYNC_EVERY };
    if syncs || lags() {
        let last = match all.get_mut(shard.key()) {
            Some(last) => last,
            None => all
                .entry(shard.key().clone())
                .or_insert(Synced { at: core.env.now(), replicas: None }),
        };
        if core.env.now() - last.at >= every {
            if syncs {
                done(core, shard, store.sync().await);
            }
            last.at = core.env.now();
            if lags() && last.replicas.as_ref().is_none_or(Task::is_finished) {
                let (core2, shard) = (core.clone(), shard.clone());
                last.replicas = Some(core.env.spawn("spreads durability", async move {
                    // A replica that does not answer is asked again at the next sync.
                    let _ = spread_durability(&core2, &shard).await;
                }));
            }
        }
    } else {
        all.remove(shard.key());
    }
    tell_global_checkpoint(core, state, shard, &store);
    refresh(core, shard, &store, &settings).await;
    let leases_last = expire_leases(core, shard, &settings).await;
    // Operations that leases retain stay in the log, however often it is committed.
    if store.uncommitted_bytes() >= settings.translog_flush_threshold_size() {
        done(core, shard, store.flush().await);
    }
    let now = core.env.now();
    let is_used = shard.used_at.get().is_some_and(|used_at| now - used_at <= QUIET_AFTER);
    // A copy that nobody writes to is not refreshed, which would do so.
    let remembers = store.forget_deletions();
    Maintained { is_in_use: syncs || is_used || lags() || remembers, leases_last }
}

/// Has the copies in sync note what all of them have, once after the last write.
fn tell_global_checkpoint(
    core: &Rc<Core>,
    state: &Arc<ClusterState>,
    shard: &Rc<LocalShard>,
    store: &Shard,
) {
    let (now, checkpoint) = (core.env.now(), store.global_checkpoint());
    let is_quiet = shard.used_at.get().is_some_and(|used_at| now - used_at >= TELL_AFTER);
    let is_new = checkpoint > shard.told_checkpoint.get();
    let counts = || shard.meta(state).is_some_and(|meta| meta.knows_its_checkpoints());
    if !is_quiet || !is_new || !shard.is_primary() || !counts() {
        return;
    }
    let Some(routing) = shard.routing(state) else { return };
    shard.told_checkpoint.set(checkpoint);
    let own = store.clone();
    core.keep("notes the global checkpoint", async move {
        // One that does not note it, here or elsewhere, does so with the next write.
        let _ = own.note_global_checkpoint().await;
    });
    for copy in routing.assigned().filter(|copy| copy.in_sync) {
        let node = copy.node.as_deref().filter(|_| copy.allocation_id != shard.allocation_id);
        let Some(address) = node.and_then(|node| core.address_of(node)) else { continue };
        let request = Request::Replicate(Replicate {
            index_uuid: shard.index_uuid.clone(),
            shard: shard.number,
            allocation_id: copy.allocation_id.clone(),
            primary_term: shard.term(),
            global_checkpoint: checkpoint,
            sync: true,
            ..Replicate::default()
        });
        let core2 = core.clone();
        core.keep("tells a copy the global checkpoint", async move {
            let _ = core2.call(&address, Class::Control, request, TELL_TIMEOUT).await;
        });
    }
}

/// Reports a copy that failed. What failed for another reason is due again the next time.
fn done<T>(core: &Rc<Core>, shard: &Rc<LocalShard>, result: store::Result<T>) {
    if let Err(error) = result {
        core.store_failed(Component::Maintenance, shard, &error);
    }
}

/// Makes what was written searchable every `index.refresh_interval`, as long as somebody searches: a copy
/// that nobody searches is refreshed by its next search.
async fn refresh(core: &Rc<Core>, shard: &Rc<LocalShard>, store: &Shard, settings: &IndexSettings) {
    done(core, shard, shard.apply_refresh_interval(store, settings).await);
    let Some(interval) = settings.refreshed_every() else { return };
    let now = core.env.now();
    let searched = shard.last_search.get().is_some_and(|last| now - last < IDLE_AFTER);
    let due = shard.last_refresh.get().is_none_or(|last| now - last >= interval);
    if searched && due && store.has_unrefreshed() {
        shard.last_refresh.set(Some(now));
        done(core, shard, store.refresh().await);
    }
}
