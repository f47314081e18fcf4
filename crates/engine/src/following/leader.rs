//! On the leader: operations for followers, and the leases that keep them in the log.
//!
//! Operations are handed out up to the global checkpoint alone: later operations may exist on one copy only and vanish
//! with it.

use std::rc::Rc;
use std::time::Duration;

use policy::failures::GONE;
use store::Shard;

use crate::core::Core;
use crate::planted;
use crate::replication::{
    add_lease, advance_global_checkpoint, confirm_checkpoint, follows, remove_lease,
};
use crate::shard::LocalShard;
use crate::transport::{
    Changes, Failure, LeaderShard, LeaseRequest, Operations, ReadChanges, Response, Result,
    Versions, bytes_at_once,
};

/// Reads operations for a follower; waits for the first where there is none yet.
pub(crate) async fn read_changes(core: &Rc<Core>, ask: Box<ReadChanges>) -> Result<Response> {
    let asked = core.env.now();
    let deadline = asked + ask.poll_timeout;
    let index_changed =
        |shard: &LocalShard| ask.known.is_some() && ask.known != versions(core, shard);
    let (primary_term, shard, store) = loop {
        let shard = local(core, &ask.leader)?;
        // Not so of its lease: what the follower lacks is kept until the index is opened.
        shard.check_open(&core.state()).map_err(|closed| {
            let reason = format!(
                "the leader [{0}] is closed; POST {0}/_open lets its followers go on",
                shard.index
            );
            Failure { reason, ..closed }
        })?;
        let (advanced, changed) = (shard.advanced.notified(), core.published.changed.notified());
        let store = primary(&shard, &ask.leader)?;
        check_extent(core, &shard, &ask)?;
        confirm_checkpoint(core, &shard).await?;
        let has_ops = || store.global_checkpoint() >= Some(ask.from);
        if !has_ops() {
            // With `index.translog.durability: async` the checkpoint advances between writes.
            advance_global_checkpoint(core, &shard);
        }
        let has_news = has_ops() || index_changed(&shard);
        if has_news || core.env.now() >= deadline {
            break (shard.term(), shard.clone(), store);
        }
        tokio::select! {
            biased;
            () = advanced => {}
            () = changed => {}
            () = core.env.sleep_until(deadline) => {}
        }
    };
    let began = core.env.now();
    let global_checkpoint = match core.env.is_planted(planted::CHANGES_BEYOND_CHECKPOINT) {
        true => store.max_seq_no(),
        false => store.global_checkpoint(),
    };
    let ops = match global_checkpoint {
        Some(last) if last >= ask.from => {
            let last = last.min(ask.from.saturating_add(ask.max_ops.max(1) - 1));
            let max_bytes = bytes_at_once(&core.env, ask.max_bytes);
            let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
            let max_ops = usize::try_from(ask.max_ops).unwrap_or(usize::MAX);
            let read = store.ops_between(ask.from..=last, max_ops, max_bytes).await;
            read.map_err(|error| gone(&store, error))?
        }
        _ => Vec::new(),
    };
    let ops = Operations::pack(&core.env, ops, ask.compress).await;
    let versions = versions(core, &shard);
    let versions = versions.ok_or_else(|| Failure::no_such_index(&ask.leader.index))?;
    Ok(Response::Changes(Box::new(Changes {
        ops,
        global_checkpoint,
        max_seq_no: store.max_seq_no(),
        primary_term,
        versions,
        served: core.env.now() - began,
        waited: began - asked,
        pressure: core.pressure(),
    })))
}

fn versions(core: &Core, shard: &LocalShard) -> Option<Versions> {
    shard.meta(&core.state()).map(|meta| Versions {
        mappings: meta.mapping_version,
        settings: meta.settings_version,
        aliases: meta.aliases_version,
    })
}

/// Adds, renews or drops a follower's lease.
pub(crate) async fn lease(core: &Rc<Core>, ask: LeaseRequest) -> Result<Response> {
    let shard = local(core, &ask.leader)?;
    let store = primary(&shard, &ask.leader)?;
    let _operation = shard.begin_operation()?;
    let Some(from) = ask.from else {
        remove_lease(core, &shard, &ask.id).await?;
        return Ok(Response::Done);
    };
    let oldest = store.log_complete_from();
    if from < oldest {
        return Err(gone(&store, store::Error::OperationsGone { from, oldest }));
    }
    add_lease(core, &shard, &store, (&ask.id, from), ask.at_least).await?;
    let settings = shard.settings_by(&core.state());
    let period = settings.map_or(Duration::ZERO, |settings| settings.retention_lease_period());
    Ok(Response::Leased { period })
}

/// The copy here of the leader's shard; fails if the index was deleted and created again.
fn local(core: &Rc<Core>, of: &LeaderShard) -> Result<Rc<LocalShard>> {
    let state = core.joined_state(&of.index, of.shard)?;
    let open = core.shards.borrow().get(&(of.index_uuid.clone(), of.shard)).cloned();
    // Nearly always it is here: a search of the state compares dozens of names where there are hundreds of indices.
    if let Some(shard) = open.filter(|open| open.index == of.index && open.meta(&state).is_some()) {
        return Ok(shard);
    }
    let meta = state.indices.get(&of.index).ok_or_else(|| Failure::no_such_index(&of.index))?;
    if meta.uuid != of.index_uuid {
        return Err(Failure::another_index(&of.index, &of.index_uuid, &meta.uuid));
    }
    core.local_shard_of((&of.index, &meta.uuid), of.shard)
}

/// The store, if the copy is the primary and has the history that the follower began with.
fn primary(shard: &LocalShard, of: &LeaderShard) -> Result<Shard> {
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

/// Fails where this primary began with less than an earlier one had told its follower: it was put back as it was
/// earlier, and gives the places of what it lacks to other operations. A primary that is in sync has what was told. One
/// that follows itself, or has just ended that, begins with what it gets from its leader until then.
fn check_extent(core: &Core, shard: &LocalShard, ask: &ReadChanges) -> Result<()> {
    let Some((term, checkpoint)) = ask.heard else { return Ok(()) };
    let began_with = shard.began_with.get();
    let has_it = term >= shard.term() || checkpoint <= began_with;
    let is_leaders = || shard.is_yet_to_end_following() || follows(&core.state(), &shard.index);
    if has_it || is_leaders() {
        return Ok(());
    }
    let shown = |seq_no: Option<u64>| seq_no.map_or("none".to_owned(), |seq_no| seq_no.to_string());
    let reason = format!(
        "[{}][{}] was put back as it was earlier: the primary has begun with the operations up to {}, and an earlier \
         one had told its follower of those up to {}; delete the follower and follow anew",
        shard.index,
        shard.number,
        shown(began_with),
        shown(checkpoint)
    );
    Err(Failure::new(400, "illegal_state_exception", reason))
}

/// The error of operations that the log no longer has: as the field's, with the leases that there are.
fn gone(store: &Shard, error: store::Error) -> Failure {
    let store::Error::OperationsGone { from, oldest } = error else { return error.into() };
    let leases: Vec<String> = store.stats().leases.into_keys().collect();
    let reason = format!(
        "operations are no longer available for replicating: [{from}] was asked for, the log begins at [{oldest}]; \
         existing retention leases [{}]; maybe increase index.soft_deletes.retention_lease.period",
        leases.join(", ")
    );
    Failure::new(404, GONE, reason)
}
