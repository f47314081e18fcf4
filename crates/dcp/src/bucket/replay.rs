//! Reading the log when a bucket is opened.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use store::Location;

use super::files::LogFiles;
use super::item::{Item, ItemData};
use super::record::{DiskRecord, StateRecord};
use super::settings::{BucketSettings, MAX_VBUCKETS};
use super::vbucket::Vbucket;
use crate::codec::VbucketState;
use crate::policy::{FailoverTable, SnapshotCursor};
use crate::{Error, Result};

/// A version without its value.
struct Version {
    item: ItemData,
    completes_snapshot: bool,
    location: Location,
}

/// One vbucket as the log has it.
#[derive(Default)]
struct History {
    versions: BTreeMap<u64, Version>,
    state: Option<StateRecord>,
    /// Whether a state follows its last version.
    ends_with_state: bool,
    rollback_floor_seqno: u64,
}

/// Reads the log, record by record.
#[derive(Default)]
pub(super) struct Replay {
    histories: BTreeMap<u16, History>,
    files: LogFiles,
    anything: bool,
    /// Whether the last record says that the bucket was closed.
    closed: bool,
}

impl Replay {
    pub(super) fn record(&mut self, location: Location, record: DiskRecord) {
        self.anything = true;
        self.closed = matches!(record, DiskRecord::Closed);
        match record {
            DiskRecord::Item { vb, item, completes_snapshot } => {
                let history = self.histories.entry(vb).or_default();
                history.ends_with_state = false;
                self.files.add_needed(location);
                let seqno = item.by_seqno;
                let version = Version { item: item.without_value(), completes_snapshot, location };
                let before = history.versions.insert(seqno, version);
                // A version that is there twice was moved by a compaction.
                before.into_iter().for_each(|version| self.files.release(version.location));
                return;
            }
            DiskRecord::State(vb, state) => {
                let history = self.histories.entry(vb).or_default();
                (history.state, history.ends_with_state) = (Some(*state), true);
            }
            DiskRecord::Rollback(vb, seqno) => {
                let history = self.histories.entry(vb).or_default();
                let gone = history.versions.split_off(&(seqno + 1));
                for version in gone.into_values() {
                    self.files.release(version.location);
                }
                if seqno == 0 {
                    history.rollback_floor_seqno = 0;
                }
            }
            DiskRecord::RollbackFloor(vb, seqno) => {
                let history = self.histories.entry(vb).or_default();
                history.rollback_floor_seqno = history.rollback_floor_seqno.max(seqno);
            }
            DiskRecord::Closed => {}
        }
        self.files.add(location);
    }

    /// The vbuckets, and how much of each file is needed.
    pub(super) fn finish(
        mut self,
        settings: &BucketSettings,
        used: &Rc<Cell<u64>>,
        fresh: impl Fn() -> u64,
    ) -> Result<(Vec<Option<Vbucket>>, LogFiles)> {
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

/// The vbucket of a history. `fresh` is the id of a new history, if the bucket was not closed.
fn restore(
    history: History,
    settings: &BucketSettings,
    used: &Rc<Cell<u64>>,
    files: &mut LogFiles,
    fresh: Option<u64>,
) -> Vbucket {
    let state = history.state.as_ref().map_or(VbucketState::Dead, |state| state.state);
    let mut vbucket = Vbucket::new(state, fresh.unwrap_or(1), settings.checkpoints);
    for (seqno, Version { item, completes_snapshot, location }) in history.versions {
        vbucket.index.put(seqno, location);
        if completes_snapshot {
            vbucket.index.mark_complete(seqno);
        }
        vbucket.count_cas(item.cas);
        vbucket.high_seqno = seqno;
        let before = vbucket.table.get(&item.key).map(|slot| slot.on_disk);
        if let Some(location) = before.and_then(|before| vbucket.index.supersede(before, seqno)) {
            files.release(location);
        }
        vbucket.table.restore(Item::new(item, used), seqno);
    }
    let high = vbucket.high_seqno;
    // What follows is a part of a snapshot, or of a round that was torn.
    vbucket.complete_seqno = vbucket.index.last_complete(high);
    vbucket.persisted_seqno = high;
    vbucket.index.raise_rollback_floor(history.rollback_floor_seqno);
    vbucket.checkpoints.reset(high);
    vbucket.snapshot = SnapshotCursor::new(high, high, high);
    vbucket.written_snapshot = (high, high);
    if let Some(stored) = history.state {
        if let Some(table) = FailoverTable::adopt(stored.failover) {
            vbucket.failover = table;
        }
        let (complete, snap_end) = (vbucket.complete_seqno, stored.snap_end);
        if state != VbucketState::Active && complete < high && high < snap_end {
            // The bounds are on disk before the items: those of a torn round may be the bounds of a later snapshot.
            let begun = stored.snap_start < high;
            let snap_start = if begun { stored.snap_start } else { complete };
            vbucket.snapshot = SnapshotCursor::new(high, snap_start, snap_end);
            vbucket.written_snapshot = (snap_start, snap_end);
        }
    }
    // Versions that were acknowledged and not yet on disk are lost here, and others may have them: a new history
    // begins, after what is surely whole. Earlier builds did not mark that: where there is no mark and the bucket was
    // opened since, so that no round of the vbucket is torn, its history goes on to its end.
    if let Some(uuid) = fresh
        && state == VbucketState::Active
    {
        let unmarked = vbucket.complete_seqno == 0 && history.ends_with_state;
        vbucket.failover.begin(uuid, if unmarked { high } else { vbucket.complete_seqno });
    }
    vbucket.state_dirty = true;
    vbucket
}
