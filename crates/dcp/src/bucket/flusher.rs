//! Writing to disk, and compacting the files of the log.

use std::rc::{Rc, Weak};
use std::time::Duration;

use policy::failures::{Action, Component, ErrorKind, action};
use store::Location;
use tokio::sync::Notify;

use super::checkpoint::{PERSISTENCE, Take};
use super::item::Item;
use super::record::DiskRecord;
use super::{Bucket, Inner};
use crate::{Result, planted};

/// Bytes that one round writes, about.
const ROUND_BYTES: u64 = 8 << 20;
/// Pause after the disk refused a write, for example because it is full.
const RETRY: Duration = Duration::from_secs(1);
/// Files are compacted once less than this share of them is needed.
const NEEDED_SHARE: f64 = 0.5;
/// Smaller logs are not compacted.
const COMPACT_FROM_BYTES: u64 = 128 << 20;

/// What one round writes of a vbucket.
struct Portion {
    vb: u16,
    items: Vec<Rc<Item>>,
    /// Its persisted sequence number afterwards.
    end: u64,
}

/// Flushes until the bucket is dropped; this does not keep it open while it waits.
pub(super) async fn run(inner: Weak<Inner>, flush: Rc<Notify>) {
    loop {
        let Some(bucket) = inner.upgrade().map(Bucket) else { return };
        let written = bucket.flush_once().await;
        // What was written may be ejected.
        bucket.0.eject_from_bytes.set(0);
        bucket.free_memory_if_over();
        match written {
            Ok(true) => {
                // A failure comes back in the next round, which reports it.
                let _ = bucket.compact().await;
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
    /// Writes a round; answers whether there was something to write.
    pub(super) async fn flush_once(&self) -> Result<bool> {
        let _lock = self.0.log_lock.lock().await;
        self.flush_locked().await
    }

    async fn flush_locked(&self) -> Result<bool> {
        let (portions, records) = self.collect();
        if records.is_empty() {
            return Ok(false);
        }
        let locations = self.write_records(records).await?;
        self.written(portions, locations);
        Ok(true)
    }

    /// Writes everything that is in memory. The caller holds the lock of the log.
    pub(super) async fn flush_all_locked(&self) -> Result<()> {
        while self.flush_locked().await? {}
        Ok(())
    }

    /// Appends and syncs. A failed write is tried again with the same records, because the cursors have passed them.
    async fn write_records(&self, records: Vec<DiskRecord>) -> Result<Vec<Location>> {
        loop {
            let (kind, failed) = match self.0.log.append(records.clone()).await {
                Ok(locations) if self.0.env.is_planted(planted::LOG_NOT_SYNCED) => {
                    return Ok(locations);
                }
                Ok(locations) => match self.0.log.sync().await {
                    Ok(()) => return Ok(locations),
                    // Whatever the reason, nobody knows what is durable.
                    Err(error) => (ErrorKind::CopyFailed, error),
                },
                Err(error) => (error.kind(), error),
            };
            *self.0.failed.borrow_mut() = Some(failed.to_string());
            self.0.persisted.notify_waiters();
            if action(Component::Flusher, kind) != Action::TryAgain {
                return Err(failed.into());
            }
            self.0.env.sleep(RETRY).await;
            *self.0.failed.borrow_mut() = None;
        }
    }

    /// The records of the next round: whole checkpoints of each vbucket, and its state if that has changed.
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
                // The bounds of a snapshot reach the disk before a version from its middle does.
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

    /// Records that a round is on disk.
    fn written(&self, portions: Vec<Portion>, locations: Vec<Location>) {
        let items: usize = portions.iter().map(|portion| portion.items.len()).sum();
        // States come first; no index looks them up.
        let mut locations = locations.into_iter();
        let mut files = self.0.files.borrow_mut();
        let states = locations.len() - items;
        for location in locations.by_ref().take(states) {
            files.add(location);
        }
        for portion in portions {
            self.with(portion.vb, |vbucket| {
                for item in &portion.items {
                    let Some(location) = locations.next() else { return };
                    files.add_needed(location);
                    vbucket.index.put(item.by_seqno, location);
                    let before = vbucket.table.persisted(&item.key, item.by_seqno);
                    let free =
                        before.and_then(|seqno| vbucket.index.supersede(seqno, item.by_seqno));
                    free.into_iter().for_each(|location| files.release(location));
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

    /// Moves what is needed out of the oldest file and removes the file, if most of the log is no longer needed. The
    /// oldest first: the record of a rollback must not be removed before the versions that it made void.
    async fn compact(&self) -> Result<()> {
        let _lock = self.0.log_lock.lock().await;
        let oldest = {
            let files = self.0.files.borrow();
            let (total, needed) = files.bytes();
            let worth =
                total >= COMPACT_FROM_BYTES && (needed as f64) < total as f64 * NEEDED_SHARE;
            files.oldest().filter(|_| worth && self.0.backfills.get() == 0)
        };
        let Some(oldest) = oldest.filter(|oldest| *oldest != self.0.log.newest()) else {
            return Ok(());
        };
        let mut needed = Vec::new();
        let mut states = Vec::new();
        for vb in self.vbuckets() {
            self.with(vb, |vbucket| {
                let entries = vbucket.index.compact(oldest);
                needed.extend(entries.into_iter().map(|entry| (vb, entry)));
                states.push(DiskRecord::State(vb, vbucket.record()));
                states.push(DiskRecord::RollbackFloor(vb, vbucket.index.rollback_floor_seqno()));
            });
        }
        for part in needed.chunks(4096) {
            let places = part.iter().map(|(_, entry)| entry.location).collect();
            let records = self.0.log.read(places).await?;
            let locations = self.0.log.append(records).await?;
            self.0.log.sync().await?;
            let mut files = self.0.files.borrow_mut();
            for ((vb, entry), location) in part.iter().zip(locations) {
                files.add_needed(location);
                self.with(*vb, |vbucket| vbucket.index.put(entry.seqno, location));
            }
        }
        self.0.log.append(states).await?;
        self.0.log.sync().await?;
        self.0.files.borrow_mut().remove(oldest);
        Ok(self.0.log.remove(oldest).await?)
    }
}
