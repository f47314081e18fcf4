//! A shard copy on this node, with its role.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use query::Mapping;
use record::ledger;
use store::{Segments, Shard};
use tokio::sync::Notify;
use world::{Task, Time};

use super::Node;
use crate::following::expire_leases;
use crate::recovery::Progress;
use crate::replication::{ApplyError, spread_durability, store_durability};
use crate::settings::{Durability, IndexSettings};
use crate::state::{ClusterState, Event, IndexMeta, ShardCopy};
use crate::transport::Failure;
use policy::retention::Leases;

/// UUID of the index, and shard number.
pub(crate) type ShardKey = (String, u32);

/// How often the maintenance of open copies looks at those that are in use.
const MAINTAIN_EVERY: Duration = Duration::from_secs(1);
/// And how seldom at all of them, where no lease ends before: a node may have thousands that rest. A clock that is set is
/// heard of no later.
const SWEEP_EVERY: Duration = Duration::from_secs(300);
/// Without a write or a search for this long there is nothing left to refresh or to commit. Longer than searches keep
/// a copy refreshed.
const QUIET_AFTER: Duration = Duration::from_secs(60);

/// A shard copy on this node.
pub struct LocalShard {
    /// Index.
    pub index: String,
    /// Its UUID.
    pub index_uuid: String,
    /// Shard number.
    pub number: u32,
    /// This life of the copy.
    pub allocation_id: String,
    primary: Cell<bool>,
    term: Cell<u64>,
    started: Cell<bool>,
    /// A replica that becomes the primary first settles what it may differ in from the others.
    promoting: Cell<bool>,
    /// It failed, and the manager is being told.
    failed: Cell<bool>,
    /// It failed, and the manager knows.
    given_up: Cell<bool>,
    store: RefCell<Option<Shard>>,
    /// Version of the cluster state whose mapping the store is known to have.
    mapped_at: Cell<u64>,
    progress: RefCell<Option<Rc<Progress>>>,
    recovery: RefCell<Option<Task<()>>>,
    /// When it was written or searched last.
    used_at: Cell<Option<Time>>,
    /// When it was searched last.
    pub(crate) last_search: Cell<Option<Time>>,
    /// When it was refreshed last by time.
    last_refresh: Cell<Option<Time>>,
    /// The index's settings that the open store goes by, and their version.
    settings: RefCell<Option<(u64, IndexSettings)>>,
    /// On a primary: copies that new writes go to though they are not in sync yet, and what every copy has.
    pub(crate) copies: RefCell<BTreeMap<String, Tracked>>,
    /// For whom operations are kept.
    pub(crate) leases: RefCell<Leases>,
    /// Who writes them to the disk: one at a time, or the older might come last.
    pub(crate) leases_on_disk: tokio::sync::Mutex<()>,
    /// The global checkpoint rose.
    pub(crate) advanced: Notify,
    /// Batches of a leader's operations that are being written, here and on its copies.
    pub(crate) followed_writes: Cell<usize>,
    /// Whether it was a copy of a follower in this life, and the end of that was not seen to yet.
    pub(crate) followed: Cell<bool>,
}

/// What a primary knows of another copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) local_checkpoint: Option<u64>,
    /// New writes go to it.
    pub(crate) tracked: bool,
    /// It is about to be in sync: the global checkpoint waits for it already.
    pub(crate) joins: bool,
}

impl LocalShard {
    pub(super) fn new(
        index: &str,
        index_uuid: &str,
        number: u32,
        copy: &ShardCopy,
        term: u64,
    ) -> Self {
        LocalShard {
            index: index.to_owned(),
            index_uuid: index_uuid.to_owned(),
            number,
            allocation_id: copy.allocation_id.clone(),
            primary: Cell::new(copy.primary),
            term: Cell::new(term),
            started: Cell::new(false),
            promoting: Cell::new(false),
            failed: Cell::new(false),
            given_up: Cell::new(false),
            store: RefCell::default(),
            mapped_at: Cell::new(0),
            progress: RefCell::default(),
            recovery: RefCell::default(),
            used_at: Cell::default(),
            last_search: Cell::default(),
            last_refresh: Cell::default(),
            settings: RefCell::default(),
            copies: RefCell::default(),
            leases: RefCell::default(),
            leases_on_disk: tokio::sync::Mutex::default(),
            advanced: Notify::new(),
            followed_writes: Cell::new(0),
            followed: Cell::new(false),
        }
    }

    /// Takes over the role that the state gives it; answers whether it was promoted just now.
    pub(super) fn set_role(&self, primary: bool, term: u64, started: bool) -> bool {
        let promoted = primary && !self.primary.get();
        if promoted {
            self.copies.borrow_mut().clear();
            self.promoting.set(true);
        }
        self.primary.set(primary);
        self.term.set(term);
        self.started.set(started);
        promoted
    }

    /// The settings of the index; none until the store is open, or where the index is gone.
    pub(super) fn settings_by(&self, state: &ClusterState) -> Option<IndexSettings> {
        self.take_settings(state.indices.get(&self.index)?);
        self.settings.borrow().as_ref().map(|(_, settings)| settings.clone())
    }

    /// Takes over the settings of the index, where they are others than before and the store is open.
    pub(super) fn take_settings(&self, meta: &IndexMeta) {
        let mut taken = self.settings.borrow_mut();
        if taken.as_ref().is_some_and(|(version, _)| *version == meta.settings_version) {
            return;
        }
        if let Some(store) = &*self.store.borrow() {
            let settings = meta.typed_settings();
            store.set_durability(store_durability(settings.translog_durability()));
            *taken = Some((meta.settings_version, settings));
        }
    }

    pub(crate) fn promotion_is_settled(&self) {
        self.promoting.set(false);
    }

    pub(super) fn set_recovery_task(&self, task: Task<()>) {
        *self.recovery.borrow_mut() = Some(task);
    }

    /// Tells the manager that it failed, once: of several writes that find the same the others would fail its next life,
    /// which may have the same id. Then it is brought up anew, where it is still to be here.
    pub(crate) async fn fail(&self, node: &Node, reason: String) {
        if self.failed.replace(true) {
            return;
        }
        let event = Event::ShardFailed {
            index: self.index.clone(),
            shard: self.number,
            allocation_id: self.allocation_id.clone(),
            reason,
        };
        node.report(event).await;
        self.given_up.set(true);
        node.reconcile_again();
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.given_up.get()
    }

    /// Notes that it is written or searched.
    pub(crate) fn note_use(self: &Rc<Self>, node: &Node) {
        let now = node.env.now();
        let before = self.used_at.replace(Some(now));
        // One that was in use a moment ago is looked at anyway.
        if before.is_none_or(|before| now - before > QUIET_AFTER / 2) {
            node.in_use.borrow_mut().insert(self.key(), self.clone());
        }
        node.note_use();
    }

    /// By what the node knows it.
    pub(crate) fn key(&self) -> ShardKey {
        (self.index_uuid.clone(), self.number)
    }

    /// Whether it is the primary.
    pub fn is_primary(&self) -> bool {
        self.primary.get()
    }

    /// Whether it is complete and in use.
    pub fn is_started(&self) -> bool {
        self.started.get()
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.get()
    }

    pub(crate) fn set_store(&self, store: Shard) {
        *self.store.borrow_mut() = Some(store);
        // They may have changed while it was opened with older ones.
        self.settings.take();
    }

    pub(crate) fn set_progress(&self, progress: Rc<Progress>) {
        *self.progress.borrow_mut() = Some(progress);
    }

    /// How its last recovery goes, or went.
    pub fn progress(&self) -> Option<Rc<Progress>> {
        self.progress.borrow().clone()
    }

    /// The store, once it is open.
    pub fn store(&self) -> Result<Shard, Failure> {
        let store = self.store.borrow().clone();
        store.ok_or_else(|| {
            Failure::unavailable(&self.index, self.number, "is still recovering; try again")
        })
    }

    /// Has the store index by the mapping that the state has now: before each write, so that a field that was
    /// mapped is indexed in every document that comes after the answer.
    pub(crate) async fn follow_mapping(
        &self,
        node: &Node,
        store: &Shard,
    ) -> Result<(), ApplyError> {
        let state = node.state();
        let Some(meta) = state.indices.get(&self.index) else { return Ok(()) };
        if self.mapped_at.get() == state.version {
            return Ok(());
        }
        let mapping = Mapping::parse(&meta.mappings).map_err(Failure::from)?;
        store.set_mapping(&mapping).await?;
        self.mapped_at.set(state.version);
        Ok(())
    }

    /// The store of the started primary.
    pub(crate) fn primary_store(&self) -> Result<Shard, Failure> {
        if !self.primary.get() || !self.started.get() || self.promoting.get() {
            let why = "this copy is not the started primary; try again";
            return Err(Failure::unavailable(&self.index, self.number, why));
        }
        self.store()
    }

    /// Ends its recovery, and closes the store.
    pub(crate) async fn close(&self) {
        let task = self.recovery.borrow_mut().take();
        drop(task);
        let store = self.store.borrow_mut().take();
        if let Some(store) = store {
            // What was acknowledged is durable already; a store that cannot close in order replays its log.
            let _ = store.close().await;
        }
    }
}

impl Node {
    /// What this node's primaries of an index keep for whom: lease and first operation that it keeps. None where it
    /// has no primary of it.
    pub fn retention_leases(&self, index: &str) -> Option<Vec<(String, u64)>> {
        let shards = self.shards.borrow();
        let mut of_index =
            shards.values().filter(|shard| shard.index == index && shard.is_primary()).peekable();
        of_index.peek()?;
        let leases = of_index.filter_map(|shard| Some(shard.store().ok()?.stats().leases));
        Some(leases.flatten().collect())
    }

    /// Reads this node's started copies of an index, document by document: for a checker.
    pub async fn copies(&self, index: &str) -> Result<Vec<ledger::Copy>, Failure> {
        let of_index: Vec<Rc<LocalShard>> = {
            let shards = self.shards.borrow();
            shards.values().filter(|s| s.index == index && s.is_started()).cloned().collect()
        };
        let mut copies = Vec::new();
        for shard in of_index {
            let store = shard.store()?;
            let held = |document: store::ListedDocument| ledger::Held {
                id: document.id.to_string(),
                seq_no: document.seq_no,
                version: document.version,
                content: document.hash,
            };
            let documents: Vec<ledger::Held> = store.list().await?.into_iter().map(held).collect();
            let runs = match self.env.is_virtual() {
                true => without(&store.digest().await?, &documents),
                false => ledger::RunSum::default(),
            };
            let role = if shard.is_primary() { "primary" } else { "replica" };
            copies.push(ledger::Copy {
                name: format!("{}, {role} [{index}][{}]", self.config.name, shard.number),
                shard: shard.number,
                documents,
                runs,
                max_seq_no: store.max_seq_no(),
                local_checkpoint: store.local_checkpoint(),
            });
        }
        Ok(copies)
    }

    /// Fills this node's copy of a shard with `documents` that exist only as a number and take `bytes` in the
    /// files of so many segments. In the virtual world alone.
    pub async fn synthesize(
        &self,
        index: &str,
        shard: u32,
        documents: u64,
        bytes: u64,
        segments: Segments,
    ) -> Result<(), Failure> {
        let store = self.local_shard(index, shard)?.store()?;
        Ok(store.synthesize_stored(documents, bytes, segments).await?)
    }

    /// A copy on this node.
    pub(crate) fn local_shard(&self, index: &str, number: u32) -> Result<Rc<LocalShard>, Failure> {
        let state = self.state();
        let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
        self.local_shard_of((index, &meta.uuid), number)
    }

    /// A copy on this node, of an index by its name and UUID.
    pub(crate) fn local_shard_of(
        &self,
        (index, uuid): (&str, &str),
        number: u32,
    ) -> Result<Rc<LocalShard>, Failure> {
        let shard = self.shards.borrow().get(&(uuid.to_owned(), number)).cloned();
        shard.ok_or_else(|| {
            Failure::unavailable(index, number, "has no copy on this node now; try again")
        })
    }
}

/// What is left of a sum without documents that are known one by one: those that exist only as a number.
fn without(sum: &store::Digest, documents: &[ledger::Held]) -> ledger::RunSum {
    let content = documents.iter().fold(sum.hash, |left, held| left.wrapping_sub(held.content));
    let documents = sum.documents.saturating_sub(documents.len() as u64);
    ledger::RunSum { documents, content }
}

/// Syncs copies with `index.translog.durability: async`, refreshes those that are searched, and commits those whose
/// log has grown. Rests while nobody writes or searches.
pub(super) async fn maintain(node: Node) {
    let mut synced_at = BTreeMap::new();
    let mut sweep_at = node.env.now();
    loop {
        let rests = node.in_use.borrow().is_empty();
        if rests && node.env.now() - node.used_at.get() > QUIET_AFTER {
            node.used.notified().await;
        }
        node.env.sleep(MAINTAIN_EVERY).await;
        let now = node.env.now();
        let sweeps = node.looks_after_all.take() || now >= sweep_at;
        let shards: Vec<Rc<LocalShard>> = if sweeps {
            sweep_at = now + SWEEP_EVERY;
            synced_at.retain(|key, _| node.shards.borrow().contains_key(key));
            node.shards.borrow().values().cloned().collect()
        } else {
            node.in_use.borrow().values().cloned().collect()
        };
        let state = node.state();
        for shard in shards {
            let is_here =
                node.shards.borrow().get(&shard.key()).is_some_and(|s| Rc::ptr_eq(s, &shard));
            let stays = is_here && {
                let kept = maintain_one(&node, &state, &shard, &mut synced_at).await;
                sweep_at = sweep_at.min(now + kept.leases_last.unwrap_or(SWEEP_EVERY));
                kept.is_in_use
            };
            let mut in_use = node.in_use.borrow_mut();
            if stays {
                in_use.insert(shard.key(), shard);
            } else if in_use.get(&shard.key()).is_some_and(|s| Rc::ptr_eq(s, &shard)) {
                in_use.remove(&shard.key());
            }
        }
    }
}

/// A copy that does not answer its last write leaves nobody knowing what it has. It is asked after so long, as by
/// `index.global_checkpoint_sync.interval` in the field: followers get nothing above.
const CHECKPOINT_SYNC_EVERY: Duration = Duration::from_secs(30);

/// What is to come of a copy that was looked after.
#[derive(Default)]
struct Kept {
    /// There may be something to do soon.
    is_in_use: bool,
    /// Until a lease ends that is not renewed.
    leases_last: Option<Duration>,
}

/// Does what is due to a copy.
async fn maintain_one(
    node: &Node,
    state: &ClusterState,
    shard: &Rc<LocalShard>,
    synced_at: &mut BTreeMap<ShardKey, Time>,
) -> Kept {
    let Ok(store) = shard.store() else { return Kept::default() };
    let Some(settings) = shard.settings_by(state) else { return Kept::default() };
    let syncs = settings.translog_durability() == Durability::Async;
    let lags = || shard.is_primary() && store.global_checkpoint() < store.local_checkpoint();
    let every = if syncs { settings.translog_sync_interval() } else { CHECKPOINT_SYNC_EVERY };
    if syncs || lags() {
        let last = synced_at.entry(shard.key()).or_insert(node.env.now());
        if node.env.now() - *last >= every {
            if syncs {
                // A copy that fails here is closed by the store, and says so at the next write.
                let _ = store.sync().await;
            }
            *last = node.env.now();
            if lags() {
                // A copy that cannot say is asked again at the next sync.
                let _ = spread_durability(node, shard).await;
            }
        }
    } else {
        synced_at.remove(&shard.key());
    }
    refresh(node, shard, &store, &settings).await;
    let leases_last = expire_leases(node, shard, &settings).await;
    // What leases keep in the log stays there, however often it is committed.
    if store.uncommitted_bytes() >= settings.translog_flush_threshold_size() {
        let _ = store.flush().await;
    }
    let now = node.env.now();
    let is_used = shard.used_at.get().is_some_and(|used_at| now - used_at <= QUIET_AFTER);
    Kept { is_in_use: syncs || is_used || lags(), leases_last }
}

/// Makes what was written searchable every `index.refresh_interval`, as long as somebody searches: a copy
/// that nobody searches is refreshed by its next search.
async fn refresh(node: &Node, shard: &LocalShard, store: &Shard, settings: &IndexSettings) {
    let Some(interval) = settings.refresh_interval().filter(|interval| !interval.is_zero()) else {
        return;
    };
    let now = node.env.now();
    let searched =
        shard.last_search.get().is_some_and(|last| now - last < crate::search::IDLE_AFTER);
    let due = shard.last_refresh.get().is_none_or(|last| now - last >= interval);
    if searched && due && store.has_unrefreshed() {
        shard.last_refresh.set(Some(now));
        // A copy that fails here is closed by the store, and says so at the next write.
        let _ = store.refresh().await;
    }
}
