//! The copy that is read: sessions on a pinned commit.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::service::{RecoveryService, read_ahead_kib};
use super::sessions::{KeptOps, Session};
use crate::planted;
use crate::replication::{
    add_lease, advance_global_checkpoint, confirm_checkpoint, mapping_version,
};
use crate::shard::{FollowedCopies, LocalShard};
use crate::transport::{
    Failure, Reply, Response, Result, SessionKind, SessionOpened, SourcePhases, WireChunk,
    bytes_at_once, checksum, maybe_compress,
};
use policy::failures::GONE;
use policy::transfer::chunk::ChunkRequest;
use policy::transfer::prefetch::prefetched_chunk;
use store::Shard;

/// How often idle sessions are looked for.
const EXPIRE_EVERY: Duration = Duration::from_secs(5);
/// How long a source waits for a session that a target says is on its way: it may have to flush first.
const OPENING_PATIENCE: Duration = Duration::from_secs(30);
/// How long a source waits for what it has numbered and not yet logged.
const OPS_PATIENCE: Duration = Duration::from_secs(10);

/// Opens a session on the primary of a shard: pins its files and keeps its operations, until the session is
/// closed or idle for `ccr.indices.recovery.recovery_activity_timeout`.
pub(crate) async fn open_session(
    service: &Rc<RecoveryService>,
    index: &str,
    number: u32,
    kind: SessionKind,
    key: u64,
) -> Result<Response> {
    let shard = match &kind {
        SessionKind::Peer { index_uuid, .. } => {
            service.core.local_shard_of((index, index_uuid), number)?
        }
        SessionKind::Remote { .. } => service.core.local_shard(index, number)?,
    };
    if let SessionKind::Remote { index_uuid, .. } = &kind
        && *index_uuid != shard.index_uuid
    {
        return Err(Failure::another_index(index, index_uuid, &shard.index_uuid));
    }
    let store = shard.primary_store()?;
    admit(service, &shard, &kind).await?;
    let id = service.sessions.next_id();
    let lease = format!("recovery/{id}");
    let kept = KeptOps::new(&shard, lease.clone());
    let (snapshot, from_seq_no) = match ops_from(&shard, &store, &kind) {
        Some(from) => {
            kept.from(&store, from);
            (None, from)
        }
        None => {
            // The log must not be trimmed between the commit and the lease on the operations after it: the snapshot
            // is of the last commit or of a newer one.
            kept.from(&store, store.committed_checkpoint().map_or(0, |checkpoint| checkpoint + 1));
            let snapshot = store.snapshot(&lease.replace('/', "-")).await?;
            let from = snapshot.commit().local_checkpoint.map_or(0, |checkpoint| checkpoint + 1);
            if let SessionKind::Remote { lease: id, .. } = &kind {
                // The lease is kept until the follower has begun to follow.
                let _operation = shard.begin_operation()?;
                add_lease(&service.core, &shard, &store, (id, from), true).await?;
                known_everywhere(service, &shard, snapshot.commit().max_seq_no).await?;
            }
            kept.from(&store, from);
            (Some(snapshot), from)
        }
    };
    let is_unbound = service.core.env.is_planted(planted::REMOTE_BEYOND_CHECKPOINT);
    let opened = SessionOpened {
        session: id,
        commit: snapshot.as_ref().map(|snapshot| snapshot.commit().clone()),
        from_seq_no,
        max_seq_no: match kind {
            SessionKind::Peer { .. } => store.max_seq_no(),
            // Later operations may vanish with this primary.
            SessionKind::Remote { .. } if is_unbound => store.max_seq_no(),
            SessionKind::Remote { .. } => store.global_checkpoint(),
        },
        history_uuid: store.history_uuid().to_owned(),
        leases: shard.leases.borrow().clone(),
    };
    let used = Cell::new(service.core.env.now());
    let session = Session { shard, snapshot, kind, key, _kept: kept, used };
    let session = Rc::new(session);
    service.sessions.open.borrow_mut().insert(id, session);
    service.sessions.opened.notify_waiters();
    Ok(Response::Session(Box::new(opened)))
}

/// Waits until the source may begin: until the copy is assigned, or the global checkpoint that a follower reads up to
/// is confirmed. A copy's earlier try to recover ends with that.
async fn admit(
    service: &Rc<RecoveryService>,
    shard: &Rc<LocalShard>,
    kind: &SessionKind,
) -> Result<()> {
    match kind {
        SessionKind::Peer { allocation_id, retries, .. } => {
            until_assigned(service, shard, allocation_id).await?;
            let is_planted = service.core.env.is_planted(planted::LATE_TRY_UNTRACKS);
            let mut copies = shard.copies.borrow_mut();
            let is_late = copies.get(allocation_id).is_some_and(|copy| copy.retries > *retries);
            if is_late && !is_planted {
                // Its request was long on its way. Writes go to the copy, and must not go past it.
                let why = "is sent to a later try of this copy already; try again";
                return Err(Failure::unavailable(&shard.index, shard.number, why));
            }
            // An earlier try of this copy is over: the global checkpoint must not wait for it.
            copies.remove(allocation_id);
        }
        SessionKind::Remote { .. } => confirm_checkpoint(&service.core, shard).await?,
    }
    Ok(())
}

/// The first operation that a copy lacks which has the same history, so that it needs no files; none for others.
fn ops_from(shard: &LocalShard, store: &Shard, kind: &SessionKind) -> Option<u64> {
    match kind {
        SessionKind::Peer { has: Some((history, from)), .. } => {
            let known = *history == store.history_uuid() && *from >= store.log_complete_from();
            let not_ahead = *from <= store.max_seq_no().map_or(0, |max| max + 1);
            let is_replaced = shard.followed_copies.get() == FollowedCopies::Replaced;
            (known && not_ahead && !is_replaced).then_some(*from)
        }
        _ => None,
    }
}

/// Waits until this node's state names the copy that asks: writes go to the copies that the state names.
async fn until_assigned(
    service: &Rc<RecoveryService>,
    shard: &LocalShard,
    allocation_id: &str,
) -> Result<()> {
    let waiting = until(service, || is_assigned(service, shard, allocation_id));
    let why = "is copied to a node that the primary's node does not know of yet; try again";
    let waited = service.core.env.timeout(OPENING_PATIENCE, waiting).await;
    waited.map_err(|_| Failure::unavailable(&shard.index, shard.number, why))
}

fn is_assigned(service: &RecoveryService, shard: &LocalShard, allocation_id: &str) -> bool {
    let state = service.core.state();
    shard
        .routing(&state)
        .is_some_and(|shard| shard.assigned().any(|c| c.allocation_id == allocation_id))
}

/// Waits until this node's state is such.
async fn until(service: &RecoveryService, is_such: impl Fn() -> bool) {
    loop {
        let changed = service.core.published.changed.notified();
        if is_such() {
            return;
        }
        changed.await;
    }
}

/// Waits until the copy that a session serves is to be no longer: nobody tells the source that it is not recovered any
/// more. Another cluster's copies are not in this node's state.
async fn until_unassigned(service: &RecoveryService, session: &Session) {
    match &session.kind {
        SessionKind::Peer { allocation_id, .. } => {
            until(service, || !is_assigned(service, &session.shard, allocation_id)).await;
        }
        SessionKind::Remote { .. } => std::future::pending().await,
    }
}

/// Waits until every copy in sync has everything up to `max`: a follower must not have operations that another primary
/// may replace.
async fn known_everywhere(
    service: &Rc<RecoveryService>,
    shard: &Rc<LocalShard>,
    max: Option<u64>,
) -> Result<()> {
    let waiting = async {
        loop {
            let advanced = shard.advanced.notified();
            advance_global_checkpoint(&service.core, shard);
            match shard.store() {
                Ok(store) if store.global_checkpoint() < max => advanced.await,
                other => return other.map(|_| ()),
            }
        }
    };
    let why = "has operations that not every copy in sync has; try again";
    let waited = service.core.env.timeout(OPENING_PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| Err(Failure::unavailable(&shard.index, shard.number, why)))
}

/// The number of a session that its target asks for by key, because it is only being opened.
pub(crate) async fn awaited_session(
    service: &Rc<RecoveryService>,
    index: &str,
    number: u32,
    key: u64,
) -> Result<u64> {
    // A target asks every seed: all but the primary's node refuse at once.
    service.core.local_shard(index, number)?.primary_store()?;
    let session = service.core.env.timeout(OPENING_PATIENCE, service.sessions.keyed(key)).await;
    session.map_err(|_| Failure::unavailable(index, number, "no session was opened; try again"))
}

/// Reads a chunk by its number, for a target that does not know the files yet.
pub(crate) async fn read_opening(
    service: &Rc<RecoveryService>,
    session: u64,
    (number, chunk_bytes): (u64, u32),
    compress: u8,
) -> Result<Reply> {
    let chunk = {
        let open = service.sessions.get(service.core.env.now(), session)?;
        let files = open.snapshot.iter().flat_map(|snapshot| snapshot.commit().files.iter());
        prefetched_chunk(files.map(|file| file.len), chunk_bytes, number)
    };
    match chunk {
        None => Ok(Response::Done.into()),
        Some(ChunkRequest { file, offset, len }) => {
            read_chunk(service, session, (file, offset, len), compress).await
        }
    }
}

/// Reads a chunk: waits for memory, reads, hashes, compresses, and waits for the throttle.
pub(crate) async fn read_chunk(
    service: &Rc<RecoveryService>,
    session: u64,
    (file, offset, len): (u32, u64, u32),
    compress: u8,
) -> Result<Reply> {
    let session = service.sessions.get(service.core.env.now(), session)?;
    let _reading = service.begin_read();
    let env = &service.core.env;
    let mut phases = SourcePhases::default();
    let asked = env.now();
    // A chunk larger than all of the read-ahead goes alone.
    let kib = taken_kib(len, read_ahead_kib(&service.core.settings()));
    let permit = service.read_ahead.clone().acquire_many_owned(kib).await;
    let hold = permit.expect("the semaphore is never closed");
    phases.memory = env.now() - asked;
    let snapshot = session.snapshot.as_ref().ok_or_else(|| {
        Failure::new(400, "illegal_argument_exception", "the session reads operations only")
    })?;
    let reading = env.now();
    let chunk = snapshot.read_chunk(file as usize, offset, u64::from(len)).await?;
    phases.disk_read = env.now() - reading;
    let hashing = env.now();
    let crc32c = checksum(env, &chunk).await;
    let (chunk, wire_len, plain_len) = maybe_compress(env, chunk, compress).await;
    phases.cpu = env.now() - hashing;
    phases.throttle = tokio::select! {
        biased;
        waited = service.core.throttle(session.throttle(), u64::from(len)) => waited,
        // Those that come next need the room, and the rate.
        () = until_unassigned(service, &session) => {
            return Err(Failure::new(404, GONE, "the copy is to be on that node no longer"));
        }
    };
    session.used.set(env.now());
    let pressure = service.core.pressure();
    let chunk = WireChunk { chunk, crc32c, plain_len, wire_len, phases, pressure };
    Ok(Reply { response: Response::Chunk(Box::new(chunk)), hold: Some(hold) })
}

/// What a chunk takes of the room for those that were read. Eight of 4 MB fit into 32 MB.
fn taken_kib(len: u32, room_kib: u32) -> u32 {
    len.div_ceil(1024).clamp(1, room_kib.max(1))
}

/// Hashes a whole file at the source, to find out whether the damage that the target found is here.
pub(crate) async fn verify_file(
    service: &Rc<RecoveryService>,
    session: u64,
    file: u32,
) -> Result<Response> {
    let session = service.sessions.get(service.core.env.now(), session)?;
    if let Some(snapshot) = &session.snapshot {
        snapshot.verify_file(file as usize).await?;
    }
    Ok(Response::Done)
}

/// Reads operations. Waits for operations that have a sequence number and are not in the log yet.
pub(crate) async fn read_ops(
    service: &Rc<RecoveryService>,
    session: u64,
    from: u64,
    max_ops: usize,
    max_bytes: u64,
) -> Result<Response> {
    let session = service.sessions.get(service.core.env.now(), session)?;
    let store = session.shard.store()?;
    let is_unbound = service.core.env.is_planted(planted::REMOTE_BEYOND_CHECKPOINT);
    // Another cluster gets operations that every copy in sync has: later ones may vanish with this copy.
    let last = || match session.kind {
        SessionKind::Peer { .. } => Some(u64::MAX),
        SessionKind::Remote { .. } if is_unbound => Some(u64::MAX),
        SessionKind::Remote { .. } => store.global_checkpoint(),
    };
    let give_up = service.core.env.now() + OPS_PATIENCE;
    let max_bytes = bytes_at_once(&service.core.env, max_bytes);
    loop {
        let ops = match last() {
            Some(last) if from <= last => {
                store.ops_between(from..=last, max_ops, max_bytes as usize).await?
            }
            _ => Vec::new(),
        };
        let expected = store.max_seq_no().is_some_and(|max| from <= max);
        if !ops.is_empty() || !expected || service.core.env.now() >= give_up {
            let mapping_version = mapping_version(&service.core, &session.shard);
            return Ok(Response::Ops { ops, mapping_version });
        }
        service.core.env.sleep(Duration::from_millis(5)).await;
    }
}

/// Has every write, and every list of leases, from now on sent to the target of this session, too. It gets the leases
/// with the answer: it has those from when the session was opened, and could take none while it copied files.
pub(crate) fn start_tracking(service: &Rc<RecoveryService>, session: u64) -> Result<Response> {
    let session = service.sessions.get(service.core.env.now(), session)?;
    let store = session.shard.primary_store()?;
    if let SessionKind::Peer { allocation_id, retries, .. } = &session.kind {
        let mut copies = session.shard.copies.borrow_mut();
        let copy = copies.entry(allocation_id.clone()).or_default();
        copy.tracked = true;
        copy.retries = copy.retries.max(*retries);
    }
    Ok(Response::Tracked { max_seq_no: store.max_seq_no(), leases: session.shard.next_leases() })
}

/// The target reports its local checkpoint, and from now on the global checkpoint waits for it as for a copy in sync.
/// Answers with the global checkpoint. A target that has less asks again once the missing operations have arrived: they
/// were sent when it began to be tracked.
pub(crate) fn finalize(
    service: &Rc<RecoveryService>,
    session: u64,
    local_checkpoint: Option<u64>,
) -> Result<Response> {
    let session = service.sessions.get(service.core.env.now(), session)?;
    let store = session.shard.primary_store()?;
    if let SessionKind::Peer { allocation_id, .. } = &session.kind {
        let mut copies = session.shard.copies.borrow_mut();
        let copy = copies.entry(allocation_id.clone()).or_default();
        copy.local_checkpoint = copy.local_checkpoint.max(local_checkpoint);
        copy.pending_in_sync = true;
    }
    advance_global_checkpoint(&service.core, &session.shard);
    let global_checkpoint = store.global_checkpoint();
    if let SessionKind::Peer { allocation_id, .. } = &session.kind
        && let Some(copy) = session.shard.copies.borrow_mut().get_mut(allocation_id)
    {
        let needs_from = global_checkpoint.map_or(0, |checkpoint| checkpoint + 1);
        copy.needs_from = copy.needs_from.max(Some(needs_from));
    }
    Ok(Response::SeqNo(global_checkpoint))
}

pub(crate) fn close_session(service: &Rc<RecoveryService>, session: u64) {
    let closed = service.sessions.open.borrow_mut().remove(&session);
    drop(closed);
}

/// Closes sessions whose target has not asked for anything for a while.
pub(crate) async fn expire_sessions(service: Rc<RecoveryService>) {
    loop {
        service.core.env.sleep(EXPIRE_EVERY).await;
        let limit = service.core.settings().ccr_recovery_activity_timeout();
        let now = service.core.env.now();
        let expired: Vec<u64> = {
            let open = service.sessions.open.borrow();
            // A read that waits for its rate limit, or hashes a large file, holds the session.
            let in_use = open.values().filter(|session| Rc::strong_count(session) > 1);
            in_use.for_each(|session| session.used.set(now));
            let idle = |session: &Session| now - session.used.get() > limit;
            open.iter().filter(|(_, session)| idle(session)).map(|(id, _)| *id).collect()
        };
        for id in expired {
            close_session(&service, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_take_their_size_of_the_room_and_no_more_than_all_of_it() {
        assert_eq!(8 * taken_kib(4 << 20, 32 << 10), 32 << 10);
        assert_eq!((taken_kib(1, 32 << 10), taken_kib(1025, 32 << 10)), (1, 2));
        assert_eq!((taken_kib(64 << 20, 32 << 10), taken_kib(0, 32 << 10)), (32 << 10, 1));
    }
}
