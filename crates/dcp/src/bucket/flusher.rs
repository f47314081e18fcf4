//! Writing to disk, cleaning up files, and keeping within memory.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use store::Location;

use tokio::sync::Notify;

use super::checkpoint::{PERSISTENCE, Take};
use super::item::Item;
use super::record::DiskRecord;
use super::vbucket::Vbucket;
use super::{Bucket, Inner};
use crate::{Result, planted};

/// Bytes that one round writes, about.
const ROUND_BYTES: u64 = 8 << 20;
/// Pause after the disk refused a write, for example because it is full.
const RETRY: Duration = Duration::from_secs(1);
/// Files are cleaned up once less than this share of them is needed.
const NEEDED_SHARE: f64 = 0.5;
/// Smaller logs are left alone.
const CLEAN_FROM_BYTES: u64 = 128 << 20;

/// How much of a file is needed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileUse {
    pub total_bytes: u64,
    pub needed_bytes: u64,
}

/// After a vain look for values to eject, the next comes with this part of the quota more in use, or after a flush.
const LOOKS_IN_QUOTA: u64 = 1000;

/// What one round writes of a vbucket.
struct Portion {
    vb: u16,
    items: Vec<Rc<Item>>,
    /// Where its history is on disk afterwards.
    end: u64,
}

/// Flushes until the bucket is gone; it is not held while it waits.
pub(super) async fn run(inner: Weak<Inner>, flush: Rc<Notify>) {
    loop {
        let Some(bucket) = inner.upgrade().map(Bucket) else { return };
        let written = bucket.flush_once().await;
        // What was written may be ejected.
        bucket.0.eject_from_bytes.set(0);
        bucket.relieve_if_over();
        match written {
            Ok(true) => {
                // What fails here fails in the next round, and is said there.
                let _ = bucket.clean_up().await;
            }
            Ok(false) => {
                drop(bucket);
                flush.notified().await;
            }
            Err(_) => return,
        }
    }
}

impl Bucket {
    /// Writes a round; says whether there was something.
    pub(super) async fn flush_once(&self) -> Result<bool> {
        let _turn = self.0.turn.lock().await;
        self.flush_in_turn().await
    }

    async fn flush_in_turn(&self) -> Result<bool> {
        let (portions, records) = self.collect();
        if records.is_empty() {
            return Ok(false);
        }
        let locations = self.write_records(records).await?;
        self.written(portions, locations);
        Ok(true)
    }

    /// Writes everything that is in memory. Only for who has the turn.
    pub(super) async fn flush_all_in_turn(&self) -> Result<()> {
        while self.flush_in_turn().await? {}
        Ok(())
    }

    /// Appends and syncs. A write that failed is tried again as it was, because the cursors have passed it.
    async fn write_records(&self, records: Vec<DiskRecord>) -> Result<Vec<Location>> {
        loop {
            let failed = match self.0.log.append(records.clone()).await {
                Ok(locations) if self.0.env.is_planted(planted::LOG_NOT_SYNCED) => {
                    return Ok(locations);
                }
                Ok(locations) => match self.0.log.sync().await {
                    Ok(()) => return Ok(locations),
                    Err(error) => error,
                },
                Err(error @ (store::Error::Io { .. } | store::Error::DiskFull { .. })) => {
                    *self.0.failed.borrow_mut() = Some(error.to_string());
                    self.0.persisted.notify_waiters();
                    self.0.env.sleep(RETRY).await;
                    *self.0.failed.borrow_mut() = None;
                    continue;
                }
                Err(error) => error,
            };
            *self.0.failed.borrow_mut() = Some(failed.to_string());
            self.0.persisted.notify_waiters();
            return Err(failed.into());
        }
    }

    /// What the next round writes: of each vbucket whole checkpoints, and its state where that has changed.
    fn collect(&self) -> (Vec<Portion>, Vec<DiskRecord>) {
        let (mut portions, mut records, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut dirty = self.0.dirty.borrow_mut();
        while bytes < ROUND_BYTES
            && let Some(vb) = dirty.pop_first()
        {
            let portion = self.with(vb, |vbucket| {
                let Take::Some(taken) = vbucket.checkpoints.take(PERSISTENCE) else {
                    return (Vec::new(), 0, vbucket.state_dirty);
                };
                let end = taken.items.last().map_or(taken.end, |item| item.by_seqno);
                vbucket.written_snapshot =
                    taken.bounds.map_or((end, end), |bounds| (bounds.start, bounds.end));
                // A snapshot's bounds are on disk before a version that is in its middle.
                let state = vbucket.state_dirty || taken.bounds.is_some();
                (taken.items, end, state)
            });
            let Some((items, end, state)) = portion else { continue };
            if state {
                let record = self.with(vb, |vbucket| {
                    vbucket.state_dirty = false;
                    DiskRecord::State(vb, vbucket.record())
                });
                records.extend(record);
            }
            if self.with(vb, |vbucket| vbucket.checkpoints.has_more(PERSISTENCE)) == Some(true) {
                dirty.insert(vb);
            }
            bytes += items.iter().map(|item| item.bytes()).sum::<u64>();
            if !items.is_empty() {
                portions.push(Portion { vb, items, end });
            }
        }
        for portion in &portions {
            let each = |item: &Rc<Item>| DiskRecord::Item(portion.vb, (**item).clone());
            records.extend(portion.items.iter().map(each));
        }
        (portions, records)
    }

    /// The round is on disk.
    fn written(&self, portions: Vec<Portion>, locations: Vec<Location>) {
        let items: usize = portions.iter().map(|portion| portion.items.len()).sum();
        // States come first and are found by nobody.
        let mut locations = locations.into_iter();
        let mut files = self.0.files.borrow_mut();
        let states = locations.len() - items;
        for location in locations.by_ref().take(states) {
            files.entry(location.generation).or_default().total_bytes += u64::from(location.bytes);
        }
        for portion in portions {
            self.with(portion.vb, |vbucket| {
                for item in &portion.items {
                    let Some(location) = locations.next() else { return };
                    enter(&mut files, location);
                    vbucket.index.put(item.by_seqno, location);
                    let before = vbucket.table.persisted(&item.key, item.by_seqno);
                    let free = before.and_then(|seqno| vbucket.index.replace(seqno, item.by_seqno));
                    free.into_iter().for_each(|location| release(&mut files, location));
                }
                vbucket.persisted_seqno = vbucket.persisted_seqno.max(portion.end);
                vbucket.wake();
            });
        }
        drop(files);
        self.count(|stats| {
            stats.flushes += 1;
            stats.flushed_items += items as u64;
        });
        self.0.persisted.notify_waiters();
    }

    /// Moves what is needed out of the oldest file and removes it, if most of the log is not needed any more. The oldest
    /// first: a rollback's record must not go before what it made void.
    async fn clean_up(&self) -> Result<()> {
        let _turn = self.0.turn.lock().await;
        let oldest = {
            let files = self.0.files.borrow();
            let sum = |of: fn(&FileUse) -> u64| files.values().map(of).sum::<u64>();
            let (total, needed) = (sum(|file| file.total_bytes), sum(|file| file.needed_bytes));
            let worth = total >= CLEAN_FROM_BYTES && (needed as f64) < total as f64 * NEEDED_SHARE;
            files.keys().next().copied().filter(|_| worth && self.0.backfills.get() == 0)
        };
        let Some(oldest) = oldest.filter(|oldest| *oldest != self.0.log.newest()) else {
            return Ok(());
        };
        let mut needed = Vec::new();
        let mut states = Vec::new();
        for vb in self.vbuckets() {
            self.with(vb, |vbucket| {
                let entries = vbucket.index.clean(oldest);
                needed.extend(entries.into_iter().map(|entry| (vb, entry)));
                states.push(DiskRecord::State(vb, vbucket.record()));
                states.push(DiskRecord::Cleaned(vb, vbucket.index.cleaned_to()));
            });
        }
        for part in needed.chunks(4096) {
            let places = part.iter().map(|(_, entry)| entry.location).collect();
            let records = self.0.log.read(places).await?;
            let locations = self.0.log.append(records).await?;
            self.0.log.sync().await?;
            let mut files = self.0.files.borrow_mut();
            for ((vb, entry), location) in part.iter().zip(locations) {
                enter(&mut files, location);
                self.with(*vb, |vbucket| vbucket.index.put(entry.seqno, location));
            }
        }
        self.0.log.append(states).await?;
        self.0.log.sync().await?;
        self.0.files.borrow_mut().remove(&oldest);
        Ok(self.0.log.remove(oldest).await?)
    }

    /// Frees memory where a threshold is passed.
    pub(super) fn relieve_if_over(&self) {
        let memory = &self.0.settings.memory;
        if memory.to_eject(self.used_bytes()).is_some()
            || memory.to_recover(self.used_bytes()).is_some()
                && memory.to_recover(self.checkpoint_bytes()).is_some()
        {
            self.relieve();
        }
    }

    /// Frees memory: lets go of what all cursors have read, drops cursors that hold much, ejects values.
    pub(super) fn relieve(&self) {
        let memory = self.0.settings.memory;
        let looks = memory.item_expel || self.remover_is_due();
        if looks && let Some(want) = memory.to_recover(self.checkpoint_bytes()) {
            let freed = self.let_go(want);
            if freed < want {
                self.drop_cursors(want - freed);
            }
        }
        if let Some(want) = memory.to_eject(self.used_bytes()) {
            let before = self.used_bytes();
            let ejects = before >= self.0.eject_from_bytes.get();
            if ejects {
                self.eject(want);
            }
            let left = want.saturating_sub(before.saturating_sub(self.used_bytes()));
            if left > 0 && looks {
                // Values that checkpoints hold are not free before those let go of them.
                self.let_go(left);
            }
            // A look goes through every document: where it found too little, it is not worth one for each message.
            if ejects && memory.to_eject(self.used_bytes()).is_some() {
                let more = memory.quota_bytes / LOOKS_IN_QUOTA;
                self.0.eject_from_bytes.set(self.used_bytes() + more.max(1));
            }
        }
    }

    /// Whether it is time to remove checkpoints; it counts as done then.
    fn remover_is_due(&self) -> bool {
        let now = self.0.env.now();
        let due = now >= self.0.remover_due.get();
        if due {
            self.0.remover_due.set(now + self.0.settings.memory.chk_remover_stime);
        }
        due
    }

    /// Vbuckets, beginning with another one each time.
    fn in_turn(&self) -> Vec<u16> {
        let mut all = self.vbuckets();
        if !all.is_empty() {
            let at = self.0.relief_at.get() % all.len();
            all.rotate_left(at);
            self.0.relief_at.set(at + 1);
        }
        all
    }

    fn let_go(&self, want: u64) -> u64 {
        let mut freed = 0;
        for vb in self.in_turn() {
            if freed >= want {
                break;
            }
            freed += self.with(vb, |vbucket| self.let_go_in(vbucket, want - freed)).unwrap_or(0);
        }
        freed
    }

    fn let_go_in(&self, vbucket: &mut Vbucket, want: u64) -> u64 {
        if self.0.settings.memory.item_expel {
            let freed = vbucket.checkpoints.expel(want);
            self.count(|stats| stats.expelled_bytes += freed);
            freed
        } else {
            let freed = vbucket.checkpoints.remove_read(want);
            self.count(|stats| stats.removed_bytes += freed);
            freed
        }
    }

    fn drop_cursors(&self, want: u64) {
        let mut freed = 0;
        for vb in self.in_turn() {
            if freed >= want {
                break;
            }
            let dropped = self.with(vb, |vbucket| {
                let dropped = vbucket.checkpoints.drop_slowest().is_some();
                if dropped {
                    freed += self.let_go_in(vbucket, want - freed);
                    vbucket.wake();
                }
                dropped
            });
            if dropped == Some(true) {
                self.count(|stats| stats.cursors_dropped += 1);
            }
        }
    }

    fn eject(&self, want: u64) {
        let mut freed = 0;
        for vb in self.in_turn() {
            if freed >= want {
                break;
            }
            let bare = |item: &Item| Item::new(item.without_value(), &self.0.used);
            freed += self.with(vb, |v| v.table.eject(want - freed, bare)).unwrap_or(0);
        }
        self.count(|stats| stats.ejected_bytes += freed);
    }
}

/// A record that is needed lies in a file.
pub(super) fn enter(files: &mut BTreeMap<u32, FileUse>, location: Location) {
    let file = files.entry(location.generation).or_default();
    file.total_bytes += u64::from(location.bytes);
    file.needed_bytes += u64::from(location.bytes);
}

/// A record is not needed any more.
pub(super) fn release(files: &mut BTreeMap<u32, FileUse>, location: Location) {
    if let Some(file) = files.get_mut(&location.generation) {
        file.needed_bytes = file.needed_bytes.saturating_sub(location.bytes.into());
    }
}
