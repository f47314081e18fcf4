//! On the leader: operations for followers, and the retention leases that keep them in the log.
//!
//! Operations are handed out up to the global checkpoint alone: what is above may be on one copy and, after that is lost,
//! never have been. Leases are the primary's; it writes them to its disk, and its copies get them, so that a restart or a
//! new primary goes on keeping what a follower has not fetched.

use std::rc::Rc;
use std::time::Duration;

use store::Shard;

use crate::node::{LocalShard, Node};
use crate::replication::advance_global_checkpoint;
use crate::settings::IndexSettings;
use crate::transport::{
    Changes, Class, Failure, LeaderShard, LeaseRequest, Operations, ReadChanges, Request, Response,
    Versions,
};
use policy::retention::Leases;

use super::REMOTE_TIMEOUT;

/// Who asks for the leases of followers, as the field says it.
const SOURCE: &str = "ccr";

/// Reads operations for a follower; waits for the first where there is none yet.
pub(crate) async fn read_changes(node: &Node, ask: ReadChanges) -> Result<Response, Failure> {
    let asked = node.env.now();
    let deadline = asked + ask.poll_timeout;
    let index_changed = || ask.known.is_some() && ask.known != versions(node, &ask.leader.index);
    let store = loop {
        let shard = local(node, &ask.leader)?;
        let (advanced, changed) = (shard.advanced.notified(), node.state_changed.notified());
        let store = primary(&shard, &ask.leader)?;
        let has_ops = || store.global_checkpoint() >= Some(ask.from);
        if !has_ops() {
            // Where writes do not wait for the disk it rises with nobody's doing.
            advance_global_checkpoint(node, &shard);
        }
        let has_news = has_ops() || index_changed();
        if has_news || node.env.now() >= deadline {
            break store;
        }
        tokio::select! {
            biased;
            () = advanced => {}
            () = changed => {}
            () = node.env.sleep_until(deadline) => {}
        }
    };
    let began = node.env.now();
    let global_checkpoint = store.global_checkpoint();
    let ops = match global_checkpoint {
        Some(last) if last >= ask.from => {
            let last = last.min(ask.from.saturating_add(ask.max_ops.max(1) - 1));
            let max_bytes = usize::try_from(ask.max_bytes).unwrap_or(usize::MAX);
            let max_ops = usize::try_from(ask.max_ops).unwrap_or(usize::MAX);
            let read = store.ops_between(ask.from..=last, max_ops, max_bytes).await;
            read.map_err(|error| gone(&store, error))?
        }
        _ => Vec::new(),
    };
    let ops = Operations::pack(&node.env, ops, ask.compress).await;
    let versions = versions(node, &ask.leader.index);
    let versions = versions.ok_or_else(|| Failure::no_such_index(&ask.leader.index))?;
    Ok(Response::Changes(Box::new(Changes {
        ops,
        global_checkpoint,
        max_seq_no: store.max_seq_no(),
        versions,
        served: node.env.now() - began,
        waited: began - asked,
        pressure: node.pressure(),
    })))
}

fn versions(node: &Node, index: &str) -> Option<Versions> {
    let state = node.state();
    state.indices.get(index).map(|meta| Versions {
        mappings: meta.mapping_version,
        settings: meta.settings_version,
        aliases: meta.aliases_version,
    })
}

/// Adds, renews or drops a follower's lease.
pub(crate) async fn lease(node: &Node, ask: LeaseRequest) -> Result<Response, Failure> {
    let shard = local(node, &ask.leader)?;
    let store = primary(&shard, &ask.leader)?;
    let Some(from) = ask.from else {
        remove_lease(node, &shard, &ask.id).await?;
        return Ok(Response::Done);
    };
    let oldest = store.log_complete_from();
    if from < oldest {
        return Err(gone(&store, store::Error::OperationsGone { from, oldest }));
    }
    add_lease(node, &shard, &store, &ask.id, from).await?;
    let state = node.state();
    let meta = state.indices.get(&shard.index);
    let period = meta.map_or(Duration::ZERO, |meta| meta.typed_settings().retention_lease_period());
    Ok(Response::Leased { period })
}

/// Adds or renews a lease, durably and on every copy.
pub(crate) async fn add_lease(
    node: &Node,
    shard: &Rc<LocalShard>,
    store: &Shard,
    id: &str,
    from: u64,
) -> Result<(), Failure> {
    if !shard.leases.borrow().contains(id) {
        node.look_after_all();
    }
    shard.leases.borrow_mut().renew(id, from, node.env.epoch_ms(), SOURCE);
    let all = shard.leases.borrow().clone();
    all.iter().for_each(|(id, lease)| store.retain_ops_from(id, Some(lease.retaining_seq_no)));
    keep_leases(node, shard).await
}

/// Drops a lease; nothing where there is none.
pub(crate) async fn remove_lease(
    node: &Node,
    shard: &Rc<LocalShard>,
    id: &str,
) -> Result<(), Failure> {
    if !shard.leases.borrow_mut().remove(id) {
        return Ok(());
    }
    shard.store()?.retain_ops_from(id, None);
    keep_leases(node, shard).await
}

/// Drops the leases that were not renewed in time; answers how long those that are left last at least. Nothing is lost by it
/// before the next flush.
pub(crate) async fn expire_leases(
    node: &Node,
    shard: &Rc<LocalShard>,
    settings: &IndexSettings,
) -> Option<Duration> {
    if shard.leases.borrow().is_empty() || !shard.is_primary() {
        return None;
    }
    let (period, now_ms) = (settings.retention_lease_period(), node.env.epoch_ms());
    let expired = shard.leases.borrow_mut().expire(now_ms, period);
    let store = shard.store().ok()?;
    for id in &expired {
        store.retain_ops_from(id, None);
    }
    if !expired.is_empty() {
        // What could not be written is found expired again after a restart.
        let _ = keep_leases(node, shard).await;
    }
    let left = shard.leases.borrow().expires_at_ms(period);
    left.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms)))
}

/// Takes over leases: those that were on disk, or those of the primary.
pub(crate) fn set_leases(shard: &LocalShard, store: &Shard, leases: Leases) {
    let before = shard.leases.replace(leases);
    let now = shard.leases.borrow();
    for (id, _) in before.iter().filter(|(id, _)| !now.contains(id)) {
        store.retain_ops_from(id, None);
    }
    for (id, lease) in now.iter() {
        store.retain_ops_from(id, Some(lease.retaining_seq_no));
    }
}

/// On a copy: takes over the leases of its primary.
pub(crate) async fn take_leases(
    node: &Node,
    key: (String, u32),
    leases: Leases,
) -> Result<Response, Failure> {
    let shard = node.shards.borrow().get(&key).cloned();
    let shard = shard.filter(|shard| !shard.is_primary()).ok_or_else(|| {
        Failure::new(404, "shard_not_found_exception", "there is no replica of it on this node")
    })?;
    set_leases(&shard, &shard.store()?, leases);
    write_leases(node, &shard).await?;
    Ok(Response::Done)
}

async fn keep_leases(node: &Node, shard: &Rc<LocalShard>) -> Result<(), Failure> {
    write_leases(node, shard).await?;
    let state = node.state();
    let Some(routing) = state.shard(&shard.index, shard.number) else { return Ok(()) };
    let others = routing.assigned().filter(|copy| copy.allocation_id != shard.allocation_id);
    for address in others.filter_map(|copy| node.address_of(copy.node.as_deref()?)) {
        let request = Request::Leases {
            index_uuid: shard.index_uuid.clone(),
            shard: shard.number,
            leases: shard.leases.borrow().clone(),
        };
        let node2 = node.clone();
        // A copy that does not get them now gets them with the next renewal.
        node.keep("spreads leases", async move {
            let _ = node2.call(&address, Class::Control, request, REMOTE_TIMEOUT).await;
        });
    }
    Ok(())
}

async fn write_leases(node: &Node, shard: &LocalShard) -> Result<(), Failure> {
    let _one = shard.leases_on_disk.lock().await;
    let leases = shard.leases.borrow().clone();
    let written = node.disk.write_leases(&shard.index_uuid, shard.number, &leases).await;
    written.map_err(|error| {
        let dir = node.disk.copy_dir(&shard.index_uuid, shard.number);
        let reason = format!("cannot write the retention leases of {dir:?}: {error}");
        // There may be room again: who asks may ask again.
        Failure::new(503, "engine_exception", reason)
    })
}

/// The copy that a follower means, of the index that it means.
fn local(node: &Node, of: &LeaderShard) -> Result<Rc<LocalShard>, Failure> {
    let state = node.joined_state(&of.index, of.shard)?;
    let meta = state.indices.get(&of.index).ok_or_else(|| Failure::no_such_index(&of.index))?;
    if meta.uuid != of.index_uuid {
        let reason = format!(
            "the index [{}] that was followed had the uuid [{}] and is gone, the one of that name now has [{}]; \
             follow it anew",
            of.index, of.index_uuid, meta.uuid
        );
        return Err(Failure::new(404, "index_not_found_exception", reason));
    }
    node.local_shard_of((&of.index, &meta.uuid), of.shard)
}

/// Its store, if it is the primary and has the history of which the follower has the beginning.
fn primary(shard: &LocalShard, of: &LeaderShard) -> Result<Shard, Failure> {
    let store = shard.primary_store()?;
    if store.history_uuid() == of.history_uuid {
        return Ok(store);
    }
    let reason = format!(
        "unexpected history uuid of [{}][{}]: the follower has [{}], the leader [{}], so their operations have \
         nothing in common; delete the follower and follow anew",
        of.index,
        of.shard,
        of.history_uuid,
        store.history_uuid()
    );
    Err(Failure::new(400, "illegal_state_exception", reason))
}

/// Operations are not there any more: says so as the field does, with the leases that there are.
fn gone(store: &Shard, error: store::Error) -> Failure {
    let store::Error::OperationsGone { from, oldest } = error else { return error.into() };
    let leases: Vec<String> = store.stats().leases.into_keys().collect();
    let reason = format!(
        "operations are no longer available for replicating: [{from}] was asked for, the log begins at [{oldest}]; \
         existing retention leases [{}]; maybe increase index.soft_deletes.retention_lease.period",
        leases.join(", ")
    );
    Failure::new(404, super::OPERATIONS_GONE, reason)
}
