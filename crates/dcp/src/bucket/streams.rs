//! What producers and consumers of streams need of a bucket.

use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Bucket;
use super::checkpoint::{CursorId, Take};
use super::item::{Item, ItemData};
use super::record::DiskRecord;
use super::seqno_index::fitting;
use super::vbucket::Vbucket;
use crate::codec::{FailoverEntry, Marker, Status, VbucketState};
use crate::policy::{FailoverTable, StartDecision, StreamStart};
use crate::{Error, Result, planted};

/// Versions that a backfill looks up at once.
const BACKFILL_ITEMS: usize = 1024;
/// Bytes that it reads at once, about.
const BACKFILL_BYTES: u64 = 1 << 20;

/// Where a stream reads a vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOpen {
    /// Reads from memory.
    pub cursor: CursorId,
    /// Items up to this one have to come from disk first.
    pub from_disk: Option<u64>,
    /// Changes when the vbucket is rolled back.
    pub epoch: u64,
}

/// What a backfill read.
#[derive(Debug)]
pub struct BackfillPart {
    /// Versions, ascending.
    pub items: Vec<Arc<ItemData>>,
    /// The last sequence number that was covered.
    pub read_to: u64,
}

/// Keeps files from being compacted until it is dropped.
#[derive(Debug)]
pub struct BackfillGuard {
    _counted: Rc<()>,
}

impl Bucket {
    /// Whether a stream can begin; none if the vbucket is not here.
    pub fn decide_start(&self, vb: u16, at: StreamStart) -> Option<StartDecision> {
        self.with(vb, |v| v.failover.decide(at, v.high_seqno))
    }

    /// The highest sequence number; none if the vbucket is not here.
    pub fn high_seqno(&self, vb: u16) -> Option<u64> {
        self.with(vb, |vbucket| vbucket.high_seqno)
    }

    /// Opens a cursor that continues after `start`; `notify` is woken when there is more.
    pub fn open_stream(&self, vb: u16, start: u64, notify: &Rc<Notify>) -> Option<StreamOpen> {
        self.with(vb, |vbucket| {
            vbucket.listen(notify);
            let (cursor, floor) = vbucket.checkpoints.register(start);
            let from_disk = (start < floor).then(|| vbucket.persisted_seqno.max(floor));
            StreamOpen { cursor, from_disk, epoch: vbucket.epoch }
        })
    }

    /// Forgets a stream's cursor.
    pub fn close_stream(&self, vb: u16, cursor: CursorId) {
        self.with(vb, |vbucket| vbucket.checkpoints.remove(cursor));
    }

    /// A stream has got all up to `seqno`.
    pub fn advance(&self, vb: u16, cursor: CursorId, seqno: u64) {
        self.with(vb, |vbucket| vbucket.checkpoints.advance(cursor, seqno));
    }

    /// The next items in memory for a stream; none if the vbucket is not here.
    pub fn take(&self, vb: u16, cursor: CursorId) -> Option<Take> {
        self.with(vb, |vbucket| vbucket.checkpoints.take(cursor))
    }

    /// Refuses writes to a vbucket with TMPFAIL because its takeover cannot keep up, or accepts them again.
    pub(crate) fn hold_writes(&self, vb: u16, holds: bool) {
        self.with(vb, |vbucket| vbucket.backed_up = holds);
    }

    /// Counts rollbacks; none if the vbucket is not here.
    pub fn epoch(&self, vb: u16) -> Option<u64> {
        self.with(vb, |vbucket| vbucket.epoch)
    }

    /// Begins a backfill: files are not compacted until the answer is dropped, so that its view stays whole.
    pub fn begin_backfill(&self) -> BackfillGuard {
        BackfillGuard { _counted: self.0.backfills.clone() }
    }

    pub(super) fn is_backfilling(&self) -> bool {
        Rc::strong_count(&self.0.backfills) > 1
    }

    /// Up to where a backfill reads for a stream up to `end`, and where the snapshot ends that this is in: up to the
    /// first whole view from `end` on, or all that is on disk. None if the vbucket is not here.
    pub(crate) fn backfill_end(&self, vb: u16, end: u64) -> Option<(u64, u64)> {
        self.with(vb, |vbucket| {
            let persisted = vbucket.persisted_seqno;
            match vbucket.index.first_complete(end.min(persisted)) {
                Some(whole) => (whole, whole),
                None if vbucket.state == VbucketState::Active => (persisted, persisted),
                // The rest of its producer's snapshot has not come yet.
                None => (persisted, persisted.max(vbucket.written_snapshot.1)),
            }
        })
    }

    /// Reads from disk after `from`, from the view at `to`. Fails if the disk cannot be read.
    pub async fn backfill(&self, vb: u16, from: u64, to: u64) -> Result<BackfillPart> {
        let view = self.with(vb, |vbucket| vbucket.index.view(from, to, BACKFILL_ITEMS));
        let mut view = view.unwrap_or_default();
        let (count, all) = (fitting(&view, BACKFILL_BYTES), view.len());
        view.truncate(count);
        let whole = count == all && all < BACKFILL_ITEMS;
        let read_to = match view.last() {
            Some(last) if !whole => last.seqno,
            _ => to,
        };
        let places = view.iter().map(|entry| entry.location).collect();
        let at_work = self.begin_disk_work();
        let records = self.0.log.read(places).await?;
        drop(at_work);
        let items = records.into_iter().filter_map(|record| match record {
            DiskRecord::Item { item, .. } => Some(item),
            _ => None,
        });
        Ok(BackfillPart { items: items.collect(), read_to })
    }

    /// Where a replica is, to ask its producer for what follows; none if the vbucket is not here.
    pub fn resume(&self, vb: u16) -> Option<StreamStart> {
        self.with(vb, |vbucket| vbucket.resume())
    }

    /// A producer's snapshot begins. Fails if it does not fit, or the vbucket is not here or takes no streams.
    pub fn begin_snapshot(&self, vb: u16, marker: Marker) -> Result<()> {
        self.with_stream(vb, |vbucket| {
            vbucket.marker(marker).map_err(|source| Error::Stream { vbucket: vb, source })
        })
    }

    /// Applies versions from the producer in their order, and checks the memory once. Fails as
    /// [`Bucket::begin_snapshot`]; versions before the one that does not fit are applied.
    pub fn apply_all(&self, vb: u16, versions: impl IntoIterator<Item = ItemData>) -> Result<()> {
        let used = &self.0.used;
        self.with_stream(vb, |vbucket| {
            let mut took = Ok(());
            for mut data in versions {
                let fits = vbucket.snapshot.item(data.by_seqno);
                took = fits.map_err(|source| Error::Stream { vbucket: vb, source });
                if took.is_err() {
                    break;
                }
                if vbucket.state == VbucketState::Pending
                    && self.0.env.is_planted(planted::PENDING_VERSION_LOST)
                {
                    continue;
                }
                (data.key, data.value) = self.detach(data.key, data.value);
                vbucket.take(Item::new(data, used));
            }
            vbucket.wake();
            took
        })?;
        self.mark_dirty(vb);
        self.free_memory_if_over();
        Ok(())
    }

    /// Adopts the failover log of the producer of a stream that was requested from `start` on; false if malformed.
    /// Fails if the vbucket is not here or takes no streams: one that became active meanwhile has a history of its own.
    /// Also if it is elsewhere meanwhile: the stream would leave a gap.
    pub fn adopt_failover(&self, vb: u16, start: u64, entries: Vec<FailoverEntry>) -> Result<bool> {
        let Some(table) = FailoverTable::adopt(entries) else { return Ok(false) };
        self.with_stream(vb, |vbucket| {
            if vbucket.snapshot.last() != start {
                return Err(Error::Refused { vbucket: vb, status: Status::Range });
            }
            vbucket.failover = table;
            vbucket.state_dirty = true;
            Ok(())
        })?;
        self.mark_dirty(vb);
        Ok(true)
    }

    /// Runs `change` on a vbucket that a stream may change. Fails if it is not here or takes no streams.
    pub(super) fn with_stream(
        &self,
        vb: u16,
        change: impl FnOnce(&mut Vbucket) -> Result<()>,
    ) -> Result<()> {
        let refused = |status| Err(Error::Refused { vbucket: vb, status });
        let done = self.with(vb, |vbucket| match vbucket.state {
            VbucketState::Active | VbucketState::Dead => refused(Status::NotMyVbucket),
            _ if vbucket.rolls_back => refused(Status::TemporaryFailure),
            VbucketState::Replica | VbucketState::Pending => change(vbucket),
        });
        done.unwrap_or_else(|| refused(Status::NotMyVbucket))
    }

    /// Whether streams have to wait because memory is short.
    pub fn throttles_replication(&self) -> bool {
        self.0.settings.memory.throttles_replication(self.used_bytes())
    }
}
