//! A bucket of vbuckets: documents in memory first, their history in checkpoints, and all of it on disk soon after.
//!
//! | file | holds |
//! | --- | --- |
//! | `item.rs`, `record.rs` | a version of a document, in memory and in the log |
//! | `table.rs`, `checkpoint.rs`, `seqno_index.rs` | the parts of a vbucket: documents by key, recent history, versions on disk |
//! | `vbucket.rs` | a vbucket |
//! | `settings.rs`, `files.rs` | what a bucket is like; how much of each log file is needed |
//! | `mod.rs` | [`Bucket`]: states, and what is known of vbuckets |
//! | `memory.rs` | keeping within memory |
//! | `documents.rs` | clients' reads and writes |
//! | `streams.rs`, `rollback.rs` | what producers and consumers of streams need |
//! | `round.rs`, `flusher.rs` | writing to disk, compacting log files |
//! | `replay.rs`, `open.rs` | reading the log when the bucket is opened; opening and closing |
//!
//! The one rule: a sequence number that was reported as persisted survives a `kill -9`.

mod checkpoint;
mod documents;
mod files;
mod flusher;
mod item;
mod memory;
mod open;
mod record;
mod replay;
mod rollback;
mod round;
mod seqno_index;
mod settings;
mod streams;
mod table;
mod vbucket;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use store::{Location, RecordLog};
use tokio::sync::Notify;
use world::{Env, Task, Time};

pub use checkpoint::{Bounds, CheckpointLimits, CursorId, Take, Taken};
pub use documents::{Condition, Document, Written};
pub use item::{Item, ItemData, ItemKind};
pub use settings::{BucketSettings, MAX_VBUCKETS};
pub use streams::{BackfillGuard, BackfillPart, StreamOpen};

use crate::auth::fresh_u64;
use crate::codec::{FailoverEntry, Status, VbucketState};
use crate::idle::{IdleTime, UnderWay};
use files::LogFiles;
use record::DiskRecord;
use round::Round;
use vbucket::Vbucket;

/// The largest value of a document.
pub const MAX_VALUE_BYTES: usize = 20 << 20;
/// The longest key.
pub const MAX_KEY_BYTES: usize = 250;

/// The vbucket of a key, as clients compute it: the upper half of the key's CRC-32, without its highest bit.
pub fn vbucket_of(key: &[u8], vbuckets: u16) -> u16 {
    let mut crc = flate2::Crc::new();
    crc.update(key);
    ((crc.sum() >> 16) as u16 & 0x7fff) % vbuckets.max(1)
}

fn fresh_uuid(env: &Env) -> u64 {
    // Servers use 48 bits, and some clients read the number from JSON.
    (fresh_u64(env) & 0xffff_ffff_ffff).max(1)
}

/// What a bucket did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketStats {
    /// Writes of clients refused with TMPFAIL.
    pub tmp_failures: u64,
    /// Writes of clients refused with ENOMEM.
    pub no_memory: u64,
    /// Bytes freed by expelling items from checkpoints.
    pub expelled_bytes: u64,
    /// Bytes freed by removing whole checkpoints.
    pub removed_bytes: u64,
    /// Cursors that were dropped.
    pub cursors_dropped: u64,
    /// Bytes freed by ejecting values.
    pub ejected_bytes: u64,
    /// Versions written to disk.
    pub flushed_items: u64,
    /// Rounds of the flusher.
    pub flushes: u64,
    /// Values read from disk for clients.
    pub fetched: u64,
    /// Times that a vbucket was rolled back.
    pub rollbacks: u64,
    /// Versions that rollbacks removed.
    pub rolled_back_items: u64,
}

/// An open bucket. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Bucket(Rc<Inner>);

struct Inner {
    env: Env,
    settings: BucketSettings,
    uuid: u64,
    log: RecordLog<DiskRecord>,
    vbuckets: RefCell<Vec<Option<Vbucket>>>,
    /// Bytes of memory used by items.
    used: Rc<Cell<u64>>,
    /// Bytes of all checkpoints.
    checkpoint_bytes: Cell<u64>,
    /// Vbuckets with something to write.
    dirty: RefCell<BTreeSet<u16>>,
    /// The round that is being written, or waits for the disk to take it.
    unwritten: RefCell<Option<Rc<Round>>>,
    /// Where those records of that round lie that are in the log already.
    appended: RefCell<Vec<Location>>,
    flush: Rc<Notify>,
    persisted: Notify,
    /// Held while the log is written.
    log_lock: tokio::sync::Mutex<()>,
    files: RefCell<LogFiles>,
    /// Each running backfill has a clone: files are not compacted meanwhile.
    backfills: Rc<()>,
    /// The vbucket at which freeing memory begins the next time.
    next_to_free: Cell<usize>,
    /// When checkpoints are removed next, in a bucket that does not expel items.
    remover_due: Cell<Time>,
    /// Memory use from which on the search for values to eject is worth it: below, none were found lately.
    eject_from_bytes: Cell<u64>,
    stats: Cell<BucketStats>,
    /// Why the disk did not take the last round.
    failed: RefCell<Option<String>>,
    /// Counts how long the thread waits for the disk, where anybody wants to know.
    disk_waits: RefCell<Option<IdleTime>>,
    flusher: RefCell<Option<Task<()>>>,
}

impl Bucket {
    /// What the bucket is like.
    pub fn settings(&self) -> &BucketSettings {
        &self.0.settings
    }

    /// The bucket's world.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// What it did.
    pub fn stats(&self) -> BucketStats {
        self.0.stats.get()
    }

    fn count(&self, change: impl FnOnce(&mut BucketStats)) {
        let mut stats = self.0.stats.get();
        change(&mut stats);
        self.0.stats.set(stats);
    }

    /// Bytes of memory in use.
    pub fn used_bytes(&self) -> u64 {
        self.0.used.get()
    }

    /// Bytes that checkpoints hold, shared with documents or not, and those of the places in them.
    pub fn checkpoint_bytes(&self) -> u64 {
        self.0.checkpoint_bytes.get()
    }

    /// Why nothing is written to disk any more; none while all is well.
    pub fn failure(&self) -> Option<String> {
        self.0.failed.borrow().clone()
    }

    /// Has `waits` count from now on how long the thread waits for the disk: while the flusher writes a round, or
    /// a backfill reads.
    pub fn count_disk_waits(&self, waits: IdleTime) {
        *self.0.disk_waits.borrow_mut() = Some(waits);
    }

    /// The disk is at work until the answer is dropped.
    fn begin_disk_work(&self) -> Option<UnderWay> {
        self.0.disk_waits.borrow().as_ref().map(IdleTime::begin)
    }

    /// Runs `look` on a vbucket; none if it is not here.
    fn with<T>(&self, vb: u16, look: impl FnOnce(&mut Vbucket) -> T) -> Option<T> {
        let mut vbuckets = self.0.vbuckets.borrow_mut();
        let vbucket = vbuckets.get_mut(usize::from(vb)).and_then(Option::as_mut)?;
        let before = vbucket.checkpoints.bytes();
        let looked = look(vbucket);
        let bytes = &self.0.checkpoint_bytes;
        bytes.set(bytes.get() + vbucket.checkpoints.bytes() - before);
        Some(looked)
    }

    /// A vbucket has something to write.
    fn mark_dirty(&self, vb: u16) {
        if self.0.dirty.borrow_mut().insert(vb) {
            self.0.flush.notify_one();
        }
    }

    /// Key and value to keep. In the real world they are slices of a larger receive buffer, and copying frees the rest
    /// of that buffer. Each is copied by itself: the key stays for longer than its value.
    fn detach(&self, key: Bytes, value: Bytes) -> (Bytes, Bytes) {
        match self.0.env.is_virtual() {
            true => (key, value),
            false => (Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value)),
        }
    }

    /// The state of a vbucket; none if it is not here.
    pub fn state(&self, vb: u16) -> Option<VbucketState> {
        self.with(vb, |vbucket| vbucket.state)
    }

    /// Changes the state of a vbucket; one that is not here is made. Fails with [`Status::Range`] if the bucket has no
    /// such vbucket, and with [`Status::TemporaryFailure`] if it is to become active while a rollback of it is written.
    pub fn set_state(&self, vb: u16, state: VbucketState) -> std::result::Result<(), Status> {
        let (uuid, limits) = (fresh_uuid(self.env()), self.0.settings.checkpoints);
        let mut vbuckets = self.0.vbuckets.borrow_mut();
        let slot = vbuckets.get_mut(usize::from(vb)).ok_or(Status::Range)?;
        match slot {
            Some(vbucket) if vbucket.rolls_back && state == VbucketState::Active => {
                return Err(Status::TemporaryFailure);
            }
            Some(vbucket) => vbucket.set_state(state, uuid),
            None => *slot = Some(Vbucket::new(state, uuid, limits)),
        }
        drop(vbuckets);
        self.mark_dirty(vb);
        Ok(())
    }

    /// The failover log, newest first; none if the vbucket is not here.
    pub fn failover_log(&self, vb: u16) -> Option<Vec<FailoverEntry>> {
        self.with(vb, |vbucket| vbucket.failover.entries())
    }

    /// The highest sequence numbers of the vbuckets that are here, of one state or of all that are alive.
    pub fn seqnos(&self, state: Option<VbucketState>) -> Vec<(u16, u64)> {
        let wanted = |vbucket: &Vbucket| match state {
            Some(state) => vbucket.state == state,
            None => vbucket.state != VbucketState::Dead,
        };
        let vbuckets = self.0.vbuckets.borrow();
        let here = vbuckets.iter().enumerate().filter_map(|(vb, v)| Some((vb as u16, v.as_ref()?)));
        here.filter(|(_, vbucket)| wanted(vbucket)).map(|(vb, v)| (vb, v.high_seqno)).collect()
    }

    /// Vbuckets that are here.
    pub fn vbuckets(&self) -> Vec<u16> {
        let vbuckets = self.0.vbuckets.borrow();
        let here = vbuckets.iter().enumerate().filter(|(_, v)| v.is_some());
        here.map(|(vb, _)| vb as u16).collect()
    }

    /// Waits until a sequence number is on disk. Fails with [`Status::NotMyVbucket`] if the vbucket is not here,
    /// [`Status::TemporaryFailure`] if it takes longer than `limit` or the disk failed.
    pub async fn wait_persisted(
        &self,
        vb: u16,
        seqno: u64,
        limit: Duration,
    ) -> std::result::Result<(), Status> {
        let waiting = async {
            loop {
                // Registered before the check, so that no wake-up is lost in between.
                let next = self.0.persisted.notified();
                match self.persisted_seqno(vb) {
                    None => return Err(Status::NotMyVbucket),
                    Some(persisted) if persisted >= seqno => return Ok(()),
                    Some(_) if self.failure().is_some() => return Err(Status::TemporaryFailure),
                    Some(_) => next.await,
                }
            }
        };
        let waited = self.0.env.timeout(limit, waiting).await;
        waited.unwrap_or(Err(Status::TemporaryFailure))
    }

    /// Waits until all that is here is on disk, for at most `limit` for each vbucket.
    pub async fn wait_all_persisted(&self, limit: Duration) -> crate::Result<()> {
        for (vbucket, seqno) in self.seqnos(None) {
            let persisted = self.wait_persisted(vbucket, seqno, limit).await;
            persisted.map_err(|status| crate::Error::NotPersisted { vbucket, status })?;
        }
        Ok(())
    }

    /// The highest sequence number that is on disk; none if the vbucket is not here.
    pub fn persisted_seqno(&self, vb: u16) -> Option<u64> {
        self.with(vb, |vbucket| vbucket.persisted_seqno)
    }

    /// Statistics of a vbucket by their names in `vbucket-details`; none if it is not here.
    pub(crate) fn vbucket_stats(&self, vb: u16) -> Option<BTreeMap<&'static str, String>> {
        self.with(vb, |v| {
            BTreeMap::from([
                ("", v.state.name().to_owned()),
                ("high_seqno", v.high_seqno.to_string()),
                ("max_cas", v.max_cas.to_string()),
                ("num_items", v.table.counts.documents.to_string()),
                ("num_resident", v.table.counts.resident.to_string()),
                ("persisted_seqno", v.persisted_seqno.to_string()),
                ("purge_seqno", "0".to_owned()),
                ("uuid", v.failover.uuid().to_string()),
                ("num_checkpoints", v.checkpoints.len().to_string()),
                ("num_checkpoint_items", v.checkpoints.items().to_string()),
                ("num_cursors", v.checkpoints.cursors().to_string()),
                ("mem_usage_checkpoints", v.checkpoints.bytes().to_string()),
            ])
        })
    }

    /// A random number that identifies the open bucket.
    pub fn uuid(&self) -> u64 {
        self.0.uuid
    }

    /// Documents of a vbucket, without deletions; none if it is not here.
    pub fn documents_of(&self, vb: u16) -> Option<u64> {
        self.with(vb, |vbucket| vbucket.table.counts.documents)
    }

    /// Documents in all vbuckets, without deletions.
    pub fn documents(&self) -> u64 {
        self.0.vbuckets.borrow().iter().flatten().map(|v| v.table.counts.documents).sum()
    }
}
