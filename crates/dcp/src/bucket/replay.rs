//! Reading the log when a bucket is opened.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use store::Location;

use super::flusher::{FileUse, enter, release};
use super::item::{Item, ItemData};
use super::record::{DiskRecord, StateRecord};
use super::vbucket::Vbucket;
use super::{BucketSettings, MAX_VBUCKETS};
use crate::codec::VbucketState;
use crate::policy::{FailoverTable, SnapshotCursor};
use crate::{Error, Result};

/// What is needed of each file.
type Files = BTreeMap<u32, FileUse>;

/// What the log says of one vbucket.
#[derive(Default)]
struct History {
    versions: BTreeMap<u64, (ItemData, Location)>,
    state: Option<StateRecord>,
    cleaned_to: u64,
}

/// Takes in the log, record by record.
#[derive(Default)]
pub(super) struct Replay {
    histories: BTreeMap<u16, History>,
    files: Files,
    anything: bool,
    /// The last record says that the bucket was closed in order.
    closed: bool,
}

impl Replay {
    pub(super) fn record(&mut self, location: Location, record: DiskRecord) {
        self.anything = true;
        self.closed = matches!(record, DiskRecord::Closed);
        match record {
            DiskRecord::Item(vb, item) => {
                let history = self.histories.entry(vb).or_default();
                enter(&mut self.files, location);
                let seqno = item.by_seqno;
                let before = history.versions.insert(seqno, (item.without_value(), location));
                // It was moved.
                before.into_iter().for_each(|(_, location)| release(&mut self.files, location));
                return;
            }
            DiskRecord::State(vb, state) => {
                self.histories.entry(vb).or_default().state = Some(state);
            }
            DiskRecord::Rollback(vb, seqno) => {
                let history = self.histories.entry(vb).or_default();
                let gone = history.versions.split_off(&(seqno + 1));
                for (_, location) in gone.into_values() {
                    release(&mut self.files, location);
                }
                if seqno == 0 {
                    history.cleaned_to = 0;
                }
            }
            DiskRecord::Cleaned(vb, seqno) => {
                let history = self.histories.entry(vb).or_default();
                history.cleaned_to = history.cleaned_to.max(seqno);
            }
            DiskRecord::Closed => {}
        }
        self.files.entry(location.generation).or_default().total_bytes += u64::from(location.bytes);
    }

    /// The vbuckets, and what is needed of each file.
    pub(super) fn finish(
        mut self,
        settings: &BucketSettings,
        used: &Rc<Cell<u64>>,
        fresh: impl Fn() -> u64,
    ) -> Result<(Vec<Option<Vbucket>>, Files)> {
        let fresh = || (fresh() & 0xffff_ffff_ffff).max(1);
        let highest = self.histories.keys().next_back().copied().unwrap_or(0);
        if highest >= settings.vbuckets.min(MAX_VBUCKETS) {
            return Err(Error::Settings(format!(
                "the bucket's directory has a vbucket {highest}, but the bucket is to have {}; open it with as many as \
                 it was made with",
                settings.vbuckets
            )));
        }
        let mut vbuckets: Vec<Option<Vbucket>> = Vec::new();
        for vb in 0..settings.vbuckets {
            let vbucket = match self.histories.remove(&vb) {
                None if self.anything => None,
                None => Some(Vbucket::new(VbucketState::Active, fresh(), settings.checkpoints)),
                Some(history) => {
                    let fresh = (!self.closed).then(&fresh);
                    let files = &mut self.files;
                    Some(restore(history, settings, used, files, fresh))
                }
            };
            vbuckets.push(vbucket);
        }
        Ok((vbuckets, self.files))
    }
}

/// A vbucket as its history has it. `fresh` begins another one, where the last did not end in order.
fn restore(
    history: History,
    settings: &BucketSettings,
    used: &Rc<Cell<u64>>,
    files: &mut Files,
    fresh: Option<u64>,
) -> Vbucket {
    let state = history.state.as_ref().map_or(VbucketState::Dead, |state| state.state);
    let mut vbucket = Vbucket::new(state, fresh.unwrap_or(1), settings.checkpoints);
    for (seqno, (data, location)) in history.versions {
        vbucket.index.put(seqno, location);
        vbucket.max_cas = vbucket.max_cas.max(data.cas);
        vbucket.high_seqno = seqno;
        let before = vbucket.table.get(&data.key).map(|slot| slot.on_disk);
        if let Some(location) = before.and_then(|before| vbucket.index.replace(before, seqno)) {
            release(files, location);
        }
        vbucket.table.restore(Item::new(data, used), seqno);
    }
    let high = vbucket.high_seqno;
    vbucket.persisted_seqno = high;
    vbucket.index.set_cleaned_to(history.cleaned_to);
    vbucket.checkpoints.reset(high);
    vbucket.snapshot = SnapshotCursor::new(high, high, high);
    vbucket.written_snapshot = (high, high);
    if let Some(stored) = history.state {
        if let Some(table) = FailoverTable::adopt(stored.failover) {
            vbucket.failover = table;
        }
        if (stored.snap_start..stored.snap_end).contains(&high) {
            vbucket.snapshot = SnapshotCursor::new(high, stored.snap_start, stored.snap_end);
            vbucket.written_snapshot = (stored.snap_start, stored.snap_end);
        }
    }
    // What was acknowledged and not yet on disk is lost: others may have it.
    if let Some(uuid) = fresh
        && state == VbucketState::Active
    {
        vbucket.failover.begin(uuid, high);
    }
    vbucket.state_dirty = true;
    vbucket
}
