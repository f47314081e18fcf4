//! A shard copy on this node, with its role.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use policy::retention::Leases;
use store::Shard;
use tokio::sync::Notify;
use world::{Task, Time};

use super::disk::{CopyMetadata, NodeDisk};
use super::hand_off::{Operation, Operations};
use super::in_state::{InState, ShardInState};
use super::other_copies::{FollowedCopies, Tracked};
use super::progress::{Progress, Stage};
use super::role::Role;
use crate::settings::{Durability, IndexSettings};
use crate::state::{ClusterState, Index, IndexMeta, ShardCopy};
use crate::transport::{Failure, RefreshedCopy, Result};

/// UUID of the index, and shard number.
pub(crate) type ShardKey = (String, u32);

/// A shard copy on this node.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Default)]
pub struct LocalShard {
    pub index: String,
    pub index_uuid: String,
    pub number: u32,
    key: ShardKey,
    /// This life of the copy.
    pub allocation_id: String,
    role: Cell<Role>,
    term: Cell<u64>,
    /// The term whose history it has.
    history_term: Cell<u64>,
    started: Cell<bool>,
    /// It is to take the primary's place, which hands over to it.
    takes_over: bool,
    /// The term in which the primary has handed over to it.
    handed_over_in: Cell<Option<u64>>,
    /// The manager was told that it is open.
    pub(crate) reported: Cell<bool>,
    /// It failed, and the manager is told or knows.
    pub(crate) failed: Cell<bool>,
    /// It failed, and the manager knows.
    pub(crate) failure_reported: Cell<bool>,
    store: RefCell<Option<Shard>>,
    in_state: InState,
    /// Version of the mappings that the store is known to have; none from before its first write or search.
    pub(crate) mapping_version: Cell<u64>,
    pub(crate) progress: RefCell<Option<Rc<Progress>>>,
    pub(crate) recovery: RefCell<Option<Task<()>>>,
    /// When it was written or searched last.
    pub(crate) used_at: Cell<Option<Time>>,
    pub(crate) last_search: Cell<Option<Time>>,
    /// When it was refreshed last by time.
    pub(crate) last_refresh: Cell<Option<Time>>,
    /// Requests alone refresh it, and what it had when that began is searchable.
    pub(crate) on_request: Cell<bool>,
    /// The index's settings that the open store goes by, and their version.
    settings: RefCell<Option<(u64, IndexSettings)>>,
    /// On a primary: the other copies, their checkpoints, and whether new writes go to them.
    pub(crate) copies: RefCell<BTreeMap<String, Tracked>>,
    /// On a primary: copies that the manager has still to take out of the in-sync set, although the write that found
    /// them failing waits for that no more.
    pub(crate) leaving: RefCell<BTreeSet<String>>,
    /// On a primary: the operations that run.
    pub(crate) operations: Rc<Operations>,
    /// For whom operations are kept.
    pub(crate) leases: RefCell<Leases>,
    /// On a primary: leases that not every copy in sync is known to have yet, and the first operation that each keeps.
    pub(crate) beginning_leases: RefCell<BTreeMap<String, u64>>,
    /// On a primary: the operations that copies lack which left, so that they come back by operations. Another primary
    /// begins with none.
    pub(crate) peer_leases: RefCell<Leases>,
    /// Held while leases are written to the disk, so that older ones are not written last.
    pub(crate) leases_on_disk: tokio::sync::Mutex<()>,
    /// The global checkpoint rose.
    pub(crate) advanced: Notify,
    /// On a primary: the global checkpoint that the other copies were told last without a write.
    pub(crate) told_checkpoint: Cell<Option<u64>>,
    /// Batches of a leader's operations that are being written, here and on its copies.
    pub(crate) followed_writes: Cell<usize>,
    /// It was a follower's copy in this life, and its following has not ended in full.
    pub(crate) followed: Cell<bool>,
    /// On a primary: it ends following, and has not filled its gaps yet.
    pub(crate) ends_following: Cell<bool>,
    /// On a follower's primary: what the other copies may have.
    pub(crate) followed_copies: Cell<FollowedCopies>,
    /// On a follower's primary: its global checkpoint is assumed. It is all that it had when it was opened, or was told
    /// by a primary that assumed it; not every copy in sync has said since what it has.
    pub(crate) assumes_checkpoint: Cell<bool>,
    /// Its highest sequence number when its term began, it was opened, or it ended following. A primary that was handed
    /// its place has that of the one before, whose term goes on.
    pub(crate) began_with: Cell<Option<u64>>,
    /// On a primary: the ids of writes that were sent again, and when these came.
    pub(crate) resent: RefCell<BTreeMap<Arc<str>, Time>>,
}

impl LocalShard {
    pub(crate) fn new(
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
            key: (index_uuid.to_owned(), number),
            allocation_id: copy.allocation_id.clone(),
            role: Cell::new(Role::of_new(copy)),
            takes_over: copy.primary && copy.is_target(),
            term: Cell::new(term),
            history_term: Cell::new(term),
            ..LocalShard::default()
        }
    }

    /// Its index, as a change of the state names it.
    pub(crate) fn index_id(&self) -> Index {
        Index { name: self.index.clone(), uuid: self.index_uuid.clone() }
    }

    /// Takes over the role that the state gives it; answers whether it was promoted just now.
    ///
    /// A replica keeps the history of the term before until it recovers from the new primary, as another copy. That of
    /// a follower is its leader's in any term.
    pub(crate) fn set_role(&self, primary: bool, term: u64, started: bool, follows: bool) -> bool {
        let was_handed_over = self.handed_over_in.get() == Some(term);
        let before = self.role.get();
        let role = before.next(primary, was_handed_over);
        self.role.set(role);
        if self.term.replace(term) != term
            && let Some(store) = &*self.store.borrow()
        {
            self.began_with.set(store.max_seq_no());
        }
        if role.is_primary() || follows {
            self.history_term.set(term);
        }
        self.started.set(started);
        let promoted = before == Role::Replica && role == Role::Promoted;
        if promoted {
            self.copies.borrow_mut().clear();
        }
        promoted
    }

    /// The settings of the index; none until the store is open, or where the index is gone.
    pub(crate) fn settings_by(&self, state: &Arc<ClusterState>) -> Option<IndexSettings> {
        let meta = self.in_state.index(state, &self.index)?;
        self.take_settings(&meta);
        self.settings.borrow().as_ref().map(|(_, settings)| settings.clone())
    }

    /// Takes over the settings of the index, where they are others than before and the store is open.
    pub(crate) fn take_settings(&self, meta: &IndexMeta) {
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

    /// Takes over `index.refresh_interval`; answers whether requests alone refresh it now (an interval of -1). Where
    /// they begin to, it is refreshed once, as in the field: with a new interval, and where a copy opens
    /// (`POST_RECOVERY`).
    pub(crate) async fn apply_refresh_interval(
        &self,
        store: &Shard,
        settings: &IndexSettings,
    ) -> store::Result<bool> {
        let on_request = settings.refreshed_every().is_none();
        if on_request && !self.on_request.get() {
            store.refresh().await?;
        }
        self.on_request.set(on_request);
        Ok(on_request)
    }

    /// Takes over what the primary of this term knows of the other copies: once the state says so, it is the primary
    /// without a promotion.
    pub(crate) fn take_over(&self, term: u64, copies: BTreeMap<String, Tracked>) {
        self.copies.replace(copies);
        self.handed_over_in.set(Some(term));
    }

    /// Whether it is to take the primary's place, which hands over to it.
    pub(crate) fn takes_over(&self) -> bool {
        self.takes_over
    }

    pub(crate) fn promotion_is_complete(&self) {
        self.role.set(self.role.get().completed());
    }

    /// Its index in a state; none once that is gone, also where another has the name by now.
    pub(crate) fn meta(&self, state: &Arc<ClusterState>) -> Option<Arc<IndexMeta>> {
        let named = self.in_state.index(state, &self.index);
        named.filter(|meta| meta.uuid == self.index_uuid)
    }

    /// The shard in a state; none once its index is gone.
    pub(crate) fn routing(&self, state: &Arc<ClusterState>) -> Option<ShardInState> {
        self.meta(state).and_then(|_| self.in_state.shard(state, &self.index, self.number))
    }

    /// Fails where its index is closed in a state.
    pub(crate) fn check_open(&self, state: &Arc<ClusterState>) -> Result<()> {
        match self.meta(state).is_some_and(|meta| meta.closed) {
            true => Err(Failure::index_closed(&self.index, &self.index_uuid)),
            false => Ok(()),
        }
    }

    /// Which copy was refreshed here, and of a primary which others have what it acknowledges. One that hands over may
    /// not be the primary any more: the next one may have acknowledged what this copy does not have. Where `is_planted`
    /// it speaks all the same.
    pub(crate) fn refreshed(&self, state: &Arc<ClusterState>, is_planted: bool) -> RefreshedCopy {
        let is_primary = self.is_primary() && (self.operations.are_taken() || is_planted);
        let routing = self.routing(state).filter(|_| is_primary);
        let counts = |copy: &&ShardCopy| copy.is_started() && copy.in_sync;
        let counted = routing.map(|routing| {
            routing.assigned().filter(counts).map(|copy| copy.allocation_id.clone()).collect()
        });
        RefreshedCopy { allocation_id: self.allocation_id.clone(), counted }
    }

    /// By what the node knows it.
    pub(crate) fn key(&self) -> &ShardKey {
        &self.key
    }

    /// Whether it is the primary.
    pub fn is_primary(&self) -> bool {
        self.role.get().is_primary()
    }

    /// Whether it is complete and in use.
    pub fn is_started(&self) -> bool {
        self.started.get()
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.get()
    }

    /// The term that goes with the sequence numbers of its documents: a later primary may have given some of them to
    /// other operations.
    pub(crate) fn history_term(&self) -> u64 {
        self.history_term.get()
    }

    /// The lowest operation that one of its replicas would read from if it became the primary of a follower: a copy
    /// hears of the global checkpoint with the next operations only. What is known of copies that have left stays, and
    /// does not count.
    pub(crate) fn replicas_need_from(&self, state: &Arc<ClusterState>) -> Option<u64> {
        let routing = self.routing(state)?;
        let is_there = |id: &String| {
            let mut assigned = routing.assigned();
            routing.in_sync.contains(id) || assigned.any(|copy| copy.allocation_id == *id)
        };
        let copies = self.copies.borrow();
        let there = copies.iter().filter(|(id, _)| is_there(id));
        there.filter_map(|(_, copy)| copy.needs_from).min()
    }

    /// Whether it is unknown from where one of the copies in sync would read, also one that is on no node now: a
    /// primary that was promoted or opened anew has told them nothing yet, and from the one before each may have heard
    /// of another global checkpoint.
    pub(crate) fn has_untold_replicas(&self, state: &Arc<ClusterState>) -> bool {
        let Some(routing) = self.routing(state) else { return false };
        let copies = self.copies.borrow();
        let is_told = |id: &String| copies.get(id).is_some_and(|copy| copy.needs_from.is_some());
        let mut others = routing.in_sync.iter().filter(|id| **id != self.allocation_id);
        others.any(|id| !is_told(id))
    }

    /// Whether it has leases that it ends when they are not renewed.
    pub(crate) fn has_leases(&self) -> bool {
        self.is_primary() && !self.leases.borrow().is_empty()
            || !self.peer_leases.borrow().is_empty()
    }

    /// On a primary: its leases as another copy is given them, in a later list than all before.
    pub(crate) fn next_leases(&self) -> Leases {
        let mut leases = self.leases.borrow_mut();
        leases.next_version(self.term());
        leases.clone()
    }

    pub(crate) fn set_store(&self, store: Shard) {
        self.began_with.set(store.max_seq_no());
        *self.store.borrow_mut() = Some(store);
        // The settings may have changed while the store was being opened with older ones.
        self.settings.take();
    }

    /// Lets go of the store, where a recovery is to begin anew in its directory.
    pub(crate) fn drop_store(&self) {
        self.store.take();
    }

    /// Writes the copy's metadata to the disk. From now on a later start takes the directory for a copy, of this term.
    /// Fails where the copy is not open: its files may be gone, and nobody could say whose those are that come there.
    pub(crate) async fn write_metadata(&self, disk: &NodeDisk) -> Result<()> {
        let metadata = CopyMetadata {
            allocation_id: self.allocation_id.clone(),
            primary_term: self.term(),
            history_uuid: Some(self.store()?.history_uuid().to_owned()),
            begins: None,
        };
        self.put_metadata(disk, &metadata).await
    }

    /// Writes this beside the copy's files.
    pub(crate) async fn put_metadata(
        &self,
        disk: &NodeDisk,
        metadata: &CopyMetadata,
    ) -> Result<()> {
        let signed = disk.write_metadata(&self.index_uuid, self.number, metadata).await;
        signed.map_err(|error| {
            let dir = disk.copy_dir(&self.index_uuid, self.number);
            let reason = format!("cannot write the metadata of the copy in {dir:?}");
            Failure::not_stored((500, "recovery_failed_exception"), &reason, &error)
        })
    }

    /// What is written beside the copy's files; none where it is missing or damaged.
    pub(crate) async fn read_metadata(&self, disk: &NodeDisk) -> Result<Option<CopyMetadata>> {
        let read = disk.read_metadata(&self.index_uuid, self.number).await;
        read.map_err(|error| self.unread(disk, "metadata", &error))
    }

    /// The leases that are written there; none where they are missing or damaged.
    pub(crate) async fn read_leases(&self, disk: &NodeDisk) -> Result<Leases> {
        let read = disk.read_leases(&self.index_uuid, self.number).await;
        read.map_err(|error| self.unread(disk, "retention leases", &error))
    }

    fn unread(&self, disk: &NodeDisk, what: &str, error: &std::io::Error) -> Failure {
        let dir = disk.copy_dir(&self.index_uuid, self.number);
        let reason = format!("cannot read the {what} of the copy in {dir:?}: {error}");
        Failure::new(500, "recovery_failed_exception", reason)
    }

    /// The progress of its last recovery.
    pub fn progress(&self) -> Option<Rc<Progress>> {
        self.progress.borrow().clone()
    }

    /// The store, once it is open.
    pub fn store(&self) -> Result<Shard> {
        let store = self.store.borrow().clone();
        store.ok_or_else(|| self.recovers())
    }

    /// The store of a copy that has everything. Whoever reads may know of that sooner than this node, as the manager
    /// publishes to all at once: a copy is read from the end of its recovery on, as in Elasticsearch (`POST_RECOVERY`).
    pub(crate) fn complete_store(&self) -> Result<Shard> {
        if self.is_started() || self.is_recovered() { self.store() } else { Err(self.recovers()) }
    }

    fn is_recovered(&self) -> bool {
        self.progress().is_some_and(|progress| progress.stage() == Stage::Done)
    }

    /// Whether it is open and complete, the manager was told so, and nobody says that it failed.
    pub(crate) fn is_well(&self) -> bool {
        self.is_recovered() && self.reported.get() && !self.failed.get()
    }

    /// Whether the state has this copy opened, and nobody says that it failed.
    pub(crate) fn is_to_be_opened(&self, state: &Arc<ClusterState>) -> bool {
        let routing = self.routing(state);
        let mut copies = routing.iter().flat_map(|routing| routing.assigned());
        let own = copies.find(|copy| copy.allocation_id == self.allocation_id);
        own.is_some_and(|copy| !copy.is_started()) && !self.failed.get()
    }

    fn recovers(&self) -> Failure {
        Failure::unavailable(&self.index, self.number, "is still recovering; try again")
    }

    /// Whether it has still to end its following in full: others may have operations in the places that it would give.
    pub(crate) fn is_yet_to_end_following(&self) -> bool {
        self.followed.get() || self.ends_following.get()
    }

    /// The store of the started primary.
    pub(crate) fn primary_store(&self) -> Result<Shard> {
        if self.role.get() != Role::Primary || !self.started.get() {
            let why = "this copy is not the started primary; try again";
            return Err(Failure::unavailable(&self.index, self.number, why));
        }
        if !self.operations.are_taken() {
            let why = "is being handed over to another node; try again";
            return Err(Failure::unavailable(&self.index, self.number, why));
        }
        self.store()
    }

    /// As [`LocalShard::primary_store`], for an operation: the primary does not hand over while it runs.
    pub(crate) fn begin_operation(&self) -> Result<(Shard, Operation)> {
        Ok((self.primary_store()?, Operation::begin(&self.operations)))
    }

    pub(crate) async fn close(&self) {
        let task = self.recovery.borrow_mut().take();
        drop(task);
        let store = self.store.borrow_mut().take();
        if let Some(store) = store {
            // Acknowledged writes are durable already; a store that was not closed in order replays its log.
            let _ = store.close().await;
        }
    }
}

/// The store's form of `index.translog.durability`.
pub(crate) fn store_durability(durability: Durability) -> store::Durability {
    match durability {
        Durability::Request => store::Durability::Request,
        Durability::Async => store::Durability::Async,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Blocked;
    use crate::state::{Event, Made, Node, apply};

    /// A state of one node with one index, and its primary.
    fn one_index() -> (Arc<ClusterState>, LocalShard) {
        let node = Node {
            name: "n1".to_owned(),
            transport_address: "n1:1".to_owned(),
            http_address: "n1:2".to_owned(),
            attributes: BTreeMap::new(),
        };
        let mut state = ClusterState::new("c", [node.clone()], || 7);
        apply(&mut state, 0, Event::NodeJoined { node, found: Vec::new() }).unwrap();
        apply(&mut state, 0, create()).unwrap();
        let copy = state.shard("a", 0).unwrap().primary().clone();
        let shard = LocalShard::new("a", &state.indices["a"].uuid, 0, &copy, 1);
        (Arc::new(state), shard)
    }

    fn create() -> Event {
        Event::CreateIndex { index: "a".to_owned(), made: Made::default() }
    }

    #[test]
    fn an_index_that_was_made_anew_is_another() {
        let (mut state, shard) = one_index();
        assert!(shard.routing(&state).is_some());
        let changed = Arc::make_mut(&mut state);
        apply(changed, 0, Event::DeleteIndex { index: shard.index_id() }).unwrap();
        apply(changed, 0, create()).unwrap();
        assert!(state.shard("a", 0).is_some() && shard.routing(&state).is_none());
    }

    /// A promotion may be settled beside its copy's removal.
    #[test]
    fn a_copy_that_is_not_open_is_not_signed() {
        world::real_world::run(7, |env| async move {
            let (_, shard) = one_index();
            let dir = tempfile::tempdir().unwrap();
            let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
            shard.write_metadata(&disk).await.unwrap_err();
            assert_eq!(shard.read_metadata(&disk).await.unwrap(), None);
        });
    }

    #[test]
    fn a_primary_that_has_handed_over_says_of_no_copy_that_it_counts() {
        let (state, shard) = one_index();
        assert!(shard.refreshed(&state, false).counted.is_some());
        Blocked::begin(&shard.operations).unwrap().hand_over("another", state.version);
        assert!(shard.refreshed(&state, false).counted.is_none());
    }

    /// It may have what the new primary lacks, which gives the same places to other operations.
    #[test]
    fn what_a_replica_has_is_not_of_the_term_of_a_primary_that_it_has_not_recovered_from() {
        let (state, shard) = one_index();
        let mut copy = state.shard("a", 0).unwrap().primary().clone();
        copy.primary = false;
        let replica = LocalShard::new("a", &shard.index_uuid, 0, &copy, 1);
        assert!(!replica.set_role(false, 2, true, false));
        assert_eq!((replica.term(), replica.history_term()), (2, 1));
        assert!(replica.set_role(true, 3, true, false));
        assert_eq!((replica.term(), replica.history_term()), (3, 3));
        let followers = LocalShard::new("a", &shard.index_uuid, 0, &copy, 1);
        followers.set_role(false, 2, true, true);
        assert_eq!(followers.history_term(), 2);
    }

    /// A copy in sync whose node is away may become the primary as well.
    #[test]
    fn what_a_copy_that_is_away_would_read_is_unknown_until_it_is_told() {
        let (mut state, shard) = one_index();
        assert!(!shard.has_untold_replicas(&state));
        let routing = Arc::make_mut(&mut state).routing.get_mut("a").map(Arc::make_mut).unwrap();
        routing[0].in_sync.extend([shard.allocation_id.clone(), "away".to_owned()]);
        assert!(shard.has_untold_replicas(&state));
        let told = Tracked { needs_from: Some(3), ..Tracked::default() };
        shard.copies.borrow_mut().insert("away".to_owned(), told);
        assert!(!shard.has_untold_replicas(&state));
    }
}
