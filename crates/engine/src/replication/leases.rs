//! Retention leases of a primary: which operations it retains for whom. It writes them to its disk and sends them to
//! the replicas, so that after a restart or a promotion the operations that a follower has not fetched are still
//! retained.

use std::rc::Rc;
use std::time::Duration;

use policy::retention::Leases;
use store::Shard;

use super::apply::check_term;
use super::in_sync::{await_replicas, send_leases};
use super::peer_leases::expire_peer_leases;
use crate::core::Core;
use crate::planted;
use crate::settings::IndexSettings;
use crate::shard::LocalShard;
use crate::state::{ClusterState, FollowOrigin};
use crate::transport::{Failure, Response, Result};

/// `source` of the leases of followers, as in the field.
const SOURCE: &str = "ccr";

/// Adds or renews a lease on the operations from one on, durably. One that is added is on every copy in sync once this
/// ends, as a write is. With `at_least` one that keeps earlier operations stays, and whoever calls this retains those.
pub(crate) async fn add_lease(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    store: &Shard,
    (id, from): (&str, u64),
    at_least: bool,
) -> Result<()> {
    let before = shard.leases.borrow().retained_from(id);
    if before.is_none() {
        core.maintain_all();
    }
    let change = if at_least { Leases::begin } else { Leases::renew };
    change(&mut shard.leases.borrow_mut(), id, from, core.env.epoch_ms(), SOURCE);
    let all = shard.leases.borrow().clone();
    if !core.env.is_planted(planted::LEASE_KEEPS_NOTHING) {
        all.iter().for_each(|(id, lease)| store.retain_ops_from(id, Some(lease.retaining_seq_no)));
    }
    // Where it is renewed, the other copies keep as much for it already, or more. Not so where whoever asked for it
    // first still waits for them, or was told that this failed.
    let from = all.retained_from(id).expect("it was added or renewed");
    let begins = before.is_none_or(|before| from < before);
    if !begins && !shard.beginning_leases.borrow().contains_key(id) {
        return keep_leases(core, shard).await;
    }
    shard.beginning_leases.borrow_mut().insert(id.to_owned(), from);
    let sent = send_leases(core, shard)?;
    let (core2, shard, id) = (core.clone(), shard.clone(), id.to_owned());
    // To its end, as a write.
    core.run_to_end("adds a lease", async move {
        write_leases(&core2, &shard).await?;
        await_replicas(&core2, &shard, sent).await?;
        let mut beginning = shard.beginning_leases.borrow_mut();
        // Whoever has moved it back meanwhile still waits.
        if beginning.get(&id) == Some(&from) {
            beginning.remove(&id);
        }
        Ok(())
    })
    .await
}

/// Drops a lease; nothing where there is none.
pub(crate) async fn remove_lease(core: &Rc<Core>, shard: &Rc<LocalShard>, id: &str) -> Result<()> {
    if !shard.leases.borrow_mut().remove(id) {
        return Ok(());
    }
    shard.store()?.retain_ops_from(id, None);
    keep_leases(core, shard).await
}

/// Drops the leases that were not renewed in time; answers after what time the next one expires. Operations go at the
/// next flush.
pub(crate) async fn expire_leases(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    settings: &IndexSettings,
) -> Option<Duration> {
    let (period, now_ms) = (settings.retention_lease_period(), core.env.epoch_ms());
    if !shard.peer_leases.borrow().is_empty() {
        expire_peer_leases(core, shard, &shard.store().ok()?, period);
    }
    // Where it has handed over, they are the next primary's, which may have others by now.
    let are_own = shard.is_primary() && !shard.operations.is_handed_over();
    if shard.leases.borrow().is_empty() || !are_own {
        return None;
    }
    let expired = shard.leases.borrow_mut().expire(now_ms, period);
    let store = shard.store().ok()?;
    for id in &expired {
        store.retain_ops_from(id, None);
    }
    if !expired.is_empty() {
        // If this could not be written, the leases are found expired again after a restart.
        let _ = keep_leases(core, shard).await;
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

/// On a copy: its primary has sent it the leases.
pub(crate) async fn take_leases(
    core: &Rc<Core>,
    key: (String, u32),
    primary_term: u64,
    leases: Leases,
) -> Result<Response> {
    let shard = core.shards.borrow().get(&key).cloned();
    let shard = shard.filter(|shard| !shard.is_primary()).ok_or_else(|| {
        Failure::new(404, "shard_not_found_exception", "there is no replica of it on this node")
    })?;
    check_term(core, &shard, primary_term)?;
    take_newer_leases(core, &shard, &shard.store()?, leases).await?;
    Ok(Response::Done)
}

/// On a copy: takes over this list of its primary's leases, unless it has that or a later one. What it has then is on
/// its disk.
pub(crate) async fn take_newer_leases(
    core: &Rc<Core>,
    shard: &LocalShard,
    store: &Shard,
    leases: Leases,
) -> Result<()> {
    let is_newer = leases.supersedes(&shard.leases.borrow());
    if is_newer || core.env.is_planted(planted::OLD_LEASES_TAKEN) {
        set_leases(shard, store, leases);
    }
    write_leases(core, shard).await
}

/// Sends the leases to the other copies, and waits for none of these: one that does not get them now gets them with the
/// next renewal. Writes them.
async fn keep_leases(core: &Rc<Core>, shard: &Rc<LocalShard>) -> Result<()> {
    if let Ok(sent) = send_leases(core, shard) {
        core.keep("spreads leases", sent.answered());
    }
    write_leases(core, shard).await
}

pub(super) async fn write_leases(core: &Rc<Core>, shard: &LocalShard) -> Result<()> {
    let _one = shard.leases_on_disk.lock().await;
    let leases = shard.leases.borrow().clone();
    let written = core.disk.write_leases(&shard.index_uuid, shard.number, &leases).await;
    written.map_err(|error| {
        let dir = core.disk.copy_dir(&shard.index_uuid, shard.number);
        let reason = format!("cannot write the retention leases of {dir:?}");
        Failure::not_stored((503, "engine_exception"), &reason, &error)
    })
}

/// Id of the lease that a follower has on its leader, as in the field.
pub fn lease_id(
    cluster: &str,
    (follower_index, follower_uuid): (&str, &str),
    leader: &FollowOrigin,
) -> String {
    let FollowOrigin { remote_cluster, leader_index, leader_uuid, .. } = leader;
    format!(
        "{cluster}/{follower_index}/{follower_uuid}-following-{remote_cluster}/{leader_index}/{leader_uuid}"
    )
}

/// As [`lease_id`], of an index of this cluster; none if it follows nobody.
pub fn lease_of(state: &ClusterState, index: &str) -> Option<String> {
    let meta = state.indices.get(index)?;
    let leader = meta.leader.as_ref()?;
    Some(lease_id(&state.cluster_name, (index, &meta.uuid), leader))
}
