//! The copy that is read: sessions on a pinned commit.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use store::Snapshot;
use tokio::sync::Notify;
use world::{Time, Work};

use crate::following::add_lease;
use crate::node::{LocalShard, Node, Throttle, read_ahead_kib};
use crate::replication::advance_global_checkpoint;
use crate::transport::{
    Failure, Reply, Response, SessionKind, SessionOpened, SourcePhases, WireChunk, maybe_compress,
};
use policy::chunk_scheduler::ChunkRequest;
use policy::opening::opening_chunk;

/// How often idle sessions are looked for.
const EXPIRE_EVERY: Duration = Duration::from_secs(5);
/// How long a source waits for a session that a target says is on its way: it may have to flush first.
const OPENING_PATIENCE: Duration = Duration::from_secs(30);
/// How long a source waits for what it has numbered and not yet logged.
const OPS_PATIENCE: Duration = Duration::from_secs(10);

/// The sessions that are open on a node.
pub(crate) struct Sessions {
    next_id: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Session>>>,
    /// A session was opened.
    opened: Notify,
    /// Chunks that are asked for and not read yet.
    reading: Cell<usize>,
}

struct Session {
    shard: Rc<LocalShard>,
    snapshot: Option<Snapshot>,
    kind: SessionKind,
    /// Drawn by the target.
    key: u64,
    lease: String,
    used: Cell<Time>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Ok(store) = self.shard.store() {
            store.retain_ops_from(&self.lease, None);
        }
    }
}

impl Sessions {
    /// None yet; ids are counted from `first` on.
    pub(crate) fn new(first: u64) -> Self {
        Sessions {
            next_id: Cell::new(first),
            open: RefCell::default(),
            opened: Notify::new(),
            reading: Cell::new(0),
        }
    }

    pub(crate) fn clear(&self) {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        drop(open);
    }

    fn get(&self, node: &Node, id: u64) -> Result<Rc<Session>, Failure> {
        let session = self.open.borrow().get(&id).cloned().ok_or_else(|| {
            let reason =
                format!("there is no recovery session [{id}]; it was idle for too long, or closed");
            Failure::new(404, "resource_not_found_exception", reason)
        })?;
        session.used.set(node.env.now());
        Ok(session)
    }

    /// Waits for the session with a key.
    async fn keyed(&self, key: u64) -> u64 {
        loop {
            let opened = self.opened.notified();
            let found = {
                let open = self.open.borrow();
                open.iter().find(|(_, session)| session.key == key).map(|(id, _)| *id)
            };
            match found {
                Some(id) => return id,
                None => opened.await,
            }
        }
    }

    /// Whether no session reads more than a chunk at a time, taken together.
    pub(crate) fn reads_are_light(&self) -> bool {
        self.reading.get() <= self.count()
    }

    /// Notes that a chunk is being read.
    fn begin_read(&self, node: &Node) -> Reading {
        self.reading.set(self.reading.get() + 1);
        node.note_recovery_load();
        Reading { node: node.clone() }
    }

    /// Recoveries that read from this node now.
    pub(crate) fn count(&self) -> usize {
        self.open.borrow().len()
    }
}

struct Reading {
    node: Node,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let sessions = &self.node.sessions;
        sessions.reading.set(sessions.reading.get() - 1);
        self.node.note_recovery_load();
    }
}

impl Session {
    fn throttle(&self) -> Throttle {
        match self.kind {
            SessionKind::Peer { .. } => Throttle::Peer,
            SessionKind::Remote { .. } => Throttle::Ccr,
        }
    }
}

/// Opens a session on the primary of a shard: pins its files and keeps its operations, until the session is
/// closed or idle for `ccr.indices.recovery.recovery_activity_timeout`.
pub(crate) async fn open_session(
    node: &Node,
    index: &str,
    number: u32,
    kind: SessionKind,
    key: u64,
) -> Result<Response, Failure> {
    let shard = node.local_shard(index, number)?;
    let store = shard.primary_store()?;
    if let SessionKind::Peer { allocation_id, .. } = &kind {
        until_assigned(node, &shard, allocation_id).await?;
        // What an earlier try of this copy had come to no longer counts: nothing waits for it.
        shard.copies.borrow_mut().remove(allocation_id);
    }
    let id = node.sessions.next_id.get();
    node.sessions.next_id.set(id.wrapping_add(1));
    let lease = format!("recovery/{id}");
    let ops_from = match &kind {
        SessionKind::Peer { has: Some((history, from)), .. } => {
            let known = *history == store.history_uuid() && *from >= store.log_complete_from();
            let not_ahead = *from <= store.max_seq_no().map_or(0, |max| max + 1);
            (known && not_ahead).then_some(*from)
        }
        _ => None,
    };
    let (snapshot, from_seq_no) = match ops_from {
        Some(from) => {
            store.retain_ops_from(&lease, Some(from));
            (None, from)
        }
        None => {
            // Nothing may be trimmed between the commit and the lease on what follows it.
            store.retain_ops_from(&lease, Some(store.log_complete_from()));
            let snapshot = store.snapshot(&lease.replace('/', "-")).await.inspect_err(|_| {
                store.retain_ops_from(&lease, None);
            })?;
            let from = snapshot.commit().local_checkpoint.map_or(0, |checkpoint| checkpoint + 1);
            if let SessionKind::Remote { lease: id } = &kind {
                // Until the follower has begun to follow.
                add_lease(node, &shard, &store, id, from).await?;
                known_everywhere(node, &shard, snapshot.commit().max_seq_no).await?;
            }
            store.retain_ops_from(&lease, Some(from));
            (Some(snapshot), from)
        }
    };
    let opened = SessionOpened {
        session: id,
        commit: snapshot.as_ref().map(|snapshot| snapshot.commit().clone()),
        from_seq_no,
        max_seq_no: match kind {
            SessionKind::Peer { .. } => store.max_seq_no(),
            // What is above may never have been, once the primary is lost.
            SessionKind::Remote { .. } => store.global_checkpoint(),
        },
        history_uuid: store.history_uuid().to_owned(),
        leases: shard.leases.borrow().clone(),
    };
    let used = Cell::new(node.env.now());
    let session = Rc::new(Session { shard, snapshot, kind, key, lease, used });
    node.sessions.open.borrow_mut().insert(id, session);
    node.sessions.opened.notify_waiters();
    Ok(Response::Session(Box::new(opened)))
}

/// Waits until this node knows of the copy that asks: what is written goes to the copies that its state names.
async fn until_assigned(
    node: &Node,
    shard: &LocalShard,
    allocation_id: &str,
) -> Result<(), Failure> {
    let is_assigned = || {
        let state = node.state();
        let routing = state.shard(&shard.index, shard.number);
        routing.is_some_and(|shard| shard.assigned().any(|c| c.allocation_id == allocation_id))
    };
    let waiting = async {
        loop {
            let changed = node.state_changed.notified();
            if is_assigned() {
                return;
            }
            changed.await;
        }
    };
    let why = "is copied to a node that the primary's node does not know of yet; try again";
    let waited = node.env.timeout(OPENING_PATIENCE, waiting).await;
    waited.map_err(|_| Failure::unavailable(&shard.index, shard.number, why))
}

/// Waits until every copy in sync has everything up to `max`: a follower must not have what another primary may replace.
async fn known_everywhere(
    node: &Node,
    shard: &Rc<LocalShard>,
    max: Option<u64>,
) -> Result<(), Failure> {
    let waiting = async {
        loop {
            let advanced = shard.advanced.notified();
            advance_global_checkpoint(node, shard);
            match shard.store() {
                Ok(store) if store.global_checkpoint() < max => advanced.await,
                other => return other.map(|_| ()),
            }
        }
    };
    let why = "has operations that not every copy in sync has; try again";
    let waited = node.env.timeout(OPENING_PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| Err(Failure::unavailable(&shard.index, shard.number, why)))
}

/// The number of a session that its target asks for by key, because it is only being opened.
pub(crate) async fn awaited_session(
    node: &Node,
    index: &str,
    number: u32,
    key: u64,
) -> Result<u64, Failure> {
    // A target asks every seed, and all but one of them can say no at once.
    node.local_shard(index, number)?.primary_store()?;
    let session = node.env.timeout(OPENING_PATIENCE, node.sessions.keyed(key)).await;
    session.map_err(|_| Failure::unavailable(index, number, "no session was opened; try again"))
}

/// Reads a chunk by its number, for a target that does not know the files yet.
pub(crate) async fn read_opening(
    node: &Node,
    session: u64,
    (number, chunk_bytes): (u64, u32),
    compress: u8,
) -> Result<Reply, Failure> {
    let chunk = {
        let open = node.sessions.get(node, session)?;
        let files = open.snapshot.iter().flat_map(|snapshot| snapshot.commit().files.iter());
        opening_chunk(files.map(|file| file.len), chunk_bytes, number)
    };
    match chunk {
        None => Ok(Response::Done.into()),
        Some(ChunkRequest { file, offset, len }) => {
            read_chunk(node, session, (file, offset, len), compress).await
        }
    }
}

/// Reads a chunk: waits for memory, reads, hashes, compresses, and waits for the throttle.
pub(crate) async fn read_chunk(
    node: &Node,
    session: u64,
    (file, offset, len): (u32, u64, u32),
    compress: u8,
) -> Result<Reply, Failure> {
    let session = node.sessions.get(node, session)?;
    let _reading = node.sessions.begin_read(node);
    let env = &node.env;
    let mut phases = SourcePhases::default();
    let asked = env.now();
    // A chunk larger than all of the read-ahead goes alone.
    let kib = (len / 1024 + 1).min(read_ahead_kib(&node.settings()));
    let permit = node.read_ahead.clone().acquire_many_owned(kib).await;
    let hold = permit.expect("the semaphore is never closed");
    phases.memory = env.now() - asked;
    let snapshot = session.snapshot.as_ref().ok_or_else(|| {
        Failure::new(400, "illegal_argument_exception", "the session reads operations only")
    })?;
    let reading = env.now();
    let chunk = snapshot.read_chunk(file as usize, offset, u64::from(len)).await?;
    phases.disk_read = env.now() - reading;
    let hashing = env.now();
    let hashed = chunk.bytes().cloned();
    let crc32c = match hashed {
        Some(bytes) => {
            env.work(Work::Hash { bytes: chunk.len() }, move || crc32c::crc32c(&bytes)).await
        }
        None => {
            env.work(Work::Hash { bytes: chunk.len() }, || ()).await;
            chunk.crc32c()
        }
    };
    let (chunk, wire_len, plain_len) = maybe_compress(env, chunk, compress).await;
    phases.cpu = env.now() - hashing;
    phases.throttle = node.throttle(session.throttle(), u64::from(len)).await;
    session.used.set(env.now());
    let pressure = node.pressure();
    let chunk = WireChunk { chunk, crc32c, plain_len, wire_len, phases, pressure };
    Ok(Reply { response: Response::Chunk(Box::new(chunk)), hold: Some(hold) })
}

/// Hashes a whole file at the source: says whether the damage that the target found is here.
pub(crate) async fn verify_file(node: &Node, session: u64, file: u32) -> Result<Response, Failure> {
    let session = node.sessions.get(node, session)?;
    if let Some(snapshot) = &session.snapshot {
        snapshot.verify_file(file as usize).await?;
    }
    Ok(Response::Done)
}

/// Reads operations. Those that have a number and are not logged yet are waited for.
pub(crate) async fn read_ops(
    node: &Node,
    session: u64,
    from: u64,
    max_ops: usize,
    max_bytes: u64,
) -> Result<Response, Failure> {
    let session = node.sessions.get(node, session)?;
    let store = session.shard.store()?;
    // Another cluster gets what every copy in sync has: what is above may never have been, once the primary is lost.
    let last = || match session.kind {
        SessionKind::Peer { .. } => Some(u64::MAX),
        SessionKind::Remote { .. } => store.global_checkpoint(),
    };
    let give_up = node.env.now() + OPS_PATIENCE;
    loop {
        let ops = match last() {
            Some(last) if from <= last => {
                store.ops_between(from..=last, max_ops, max_bytes as usize).await?
            }
            _ => Vec::new(),
        };
        let expected = store.max_seq_no().is_some_and(|max| from <= max);
        if !ops.is_empty() || !expected || node.env.now() >= give_up {
            return Ok(Response::Ops(ops));
        }
        node.env.sleep(Duration::from_millis(5)).await;
    }
}

/// From now on every write goes to the target of this session, too.
pub(crate) fn start_tracking(node: &Node, session: u64) -> Result<Response, Failure> {
    let session = node.sessions.get(node, session)?;
    let store = session.shard.primary_store()?;
    if let SessionKind::Peer { allocation_id, .. } = &session.kind {
        let mut copies = session.shard.copies.borrow_mut();
        copies.entry(allocation_id.clone()).or_default().tracked = true;
    }
    Ok(Response::SeqNo(store.max_seq_no()))
}

/// The target says what it has, and is counted from now on like a copy in sync: the global checkpoint does not pass it
/// any more. Answers the global checkpoint. A target that has less asks again when the rest has come, which was sent to it
/// when it was tracked and is on its way.
pub(crate) fn finalize(
    node: &Node,
    session: u64,
    local_checkpoint: Option<u64>,
) -> Result<Response, Failure> {
    let session = node.sessions.get(node, session)?;
    let store = session.shard.primary_store()?;
    if let SessionKind::Peer { allocation_id, .. } = &session.kind {
        let mut copies = session.shard.copies.borrow_mut();
        let copy = copies.entry(allocation_id.clone()).or_default();
        copy.local_checkpoint = copy.local_checkpoint.max(local_checkpoint);
        copy.joins = true;
    }
    advance_global_checkpoint(node, &session.shard);
    Ok(Response::SeqNo(store.global_checkpoint()))
}

pub(crate) fn close_session(node: &Node, session: u64) {
    let closed = node.sessions.open.borrow_mut().remove(&session);
    drop(closed);
}

/// Closes sessions whose target has not asked for anything for a while.
pub(crate) async fn expire_sessions(node: Node) {
    loop {
        node.env.sleep(EXPIRE_EVERY).await;
        let limit = node.settings().ccr_recovery_activity_timeout();
        let now = node.env.now();
        let expired: Vec<u64> = {
            let open = node.sessions.open.borrow();
            let idle = |session: &Session| now - session.used.get() > limit;
            open.iter().filter(|(_, session)| idle(session)).map(|(id, _)| *id).collect()
        };
        for id in expired {
            close_session(&node, id);
        }
    }
}
