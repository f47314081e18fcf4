//! Writing to disk, and compacting the files of the log.

use std::rc::{Rc, Weak};
use std::time::Duration;

use policy::failures::{Action, Component, action};
use store::{Location, Record};
use tokio::sync::Notify;

use super::checkpoint::{PERSISTENCE, Take, Taken};
use super::record::DiskRecord;
use super::round::{Portion, Round};
use super::{Bucket, Inner};
use crate::{Error, Result, planted};

/// Bytes that one round writes, about.
const ROUND_BYTES: u64 = 8 << 20;
/// A part of a round that is appended to one file of the log, about. A replica takes a snapshot as a whole, which may
/// be larger than the numbers of 32 bits that are places in a file.
const APPEND_BYTES: usize = 64 << 20;
/// Pause after the disk refused a write, for example because it is full.
const RETRY: Duration = Duration::from_secs(1);
/// Files are compacted once less than this share of them is needed.
const NEEDED_SHARE: f64 = 0.5;
/// Smaller logs are not compacted.
const COMPACT_FROM_BYTES: u64 = 128 << 20;

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
            Err(Error::Store(failed))
                if action(Component::Flusher, failed.kind()) == Action::TryAgain =>
            {
                let env = bucket.env().clone();
                drop(bucket);
                env.sleep(RETRY).await;
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
        let unwritten = self.0.unwritten.borrow().clone();
        let round = unwritten.unwrap_or_else(|| Rc::new(self.collect()));
        if round.is_empty() {
            return Ok(false);
        }
        // The cursors have passed it: a round that fails is the next one again.
        *self.0.unwritten.borrow_mut() = Some(round.clone());
        let written = self.append_synced(round.records()).await;
        *self.0.failed.borrow_mut() = written.as_ref().err().map(ToString::to_string);
        let locations = written.inspect_err(|_| self.0.persisted.notify_waiters())?;
        *self.0.unwritten.borrow_mut() = None;
        self.written(&round, locations);
        Ok(true)
    }

    /// Writes a round if something of a vbucket is in memory alone; answers whether there was. The caller holds the
    /// lock of the log.
    pub(super) async fn flush_vbucket_locked(&self, vb: u16) -> Result<bool> {
        let waits = self.0.unwritten.borrow().is_some();
        let left = self.with(vb, |vbucket| vbucket.persisted_seqno < vbucket.high_seqno);
        Ok((waits || left == Some(true)) && self.flush_locked().await?)
    }

    /// Appends and syncs. Where a sync fails, nobody knows what is durable: the log accepts nothing more. What an
    /// earlier try has appended is not appended again: nobody would know its first place, and remove it from there.
    async fn append_synced(&self, records: Vec<DiskRecord>) -> store::Result<Vec<Location>> {
        let _at_work = self.begin_disk_work();
        let already = self.0.appended.borrow().len();
        let (mut part, mut bytes) = (Vec::new(), 0);
        for record in records.into_iter().skip(already) {
            bytes += record.payload_bytes();
            part.push(record);
            if bytes >= APPEND_BYTES {
                self.append_part(std::mem::take(&mut part)).await?;
                bytes = 0;
            }
        }
        self.append_part(part).await?;
        if !self.0.env.is_planted(planted::LOG_NOT_SYNCED) {
            self.0.log.sync().await?;
        }
        Ok(self.0.appended.take())
    }

    async fn append_part(&self, part: Vec<DiskRecord>) -> store::Result<()> {
        let locations = self.0.log.append(part).await?;
        self.0.appended.borrow_mut().extend(locations);
        Ok(())
    }

    /// The next round: whole checkpoints of each vbucket, and its state if that has changed.
    fn collect(&self) -> Round {
        let (mut portions, mut states, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut dirty = self.0.dirty.borrow_mut();
        while bytes < ROUND_BYTES
            && let Some(vb) = dirty.pop_first()
        {
            let collected = self.with(vb, |vbucket| {
                let mut portion = None;
                if let Take::Some(taken) = vbucket.checkpoints.take(PERSISTENCE) {
                    let Taken { items, end, bounds, .. } = taken;
                    let end = items.last().map_or(end, |item| item.by_seqno);
                    vbucket.written_snapshot =
                        bounds.map_or((end, end), |bounds| (bounds.start, bounds.end));
                    vbucket.state_dirty |= bounds.is_some();
                    let completes_snapshot = bounds.is_none_or(|bounds| bounds.end == end);
                    portion = Some(Portion { vb, items, end, completes_snapshot });
                }
                let changed = std::mem::take(&mut vbucket.state_dirty);
                let state = changed.then(|| DiskRecord::State(vb, vbucket.record().into()));
                (portion, state, vbucket.checkpoints.has_more(PERSISTENCE))
            });
            let Some((portion, state, has_more)) = collected else { continue };
            states.extend(state);
            if has_more {
                dirty.insert(vb);
            }
            if let Some(portion) = portion.filter(|portion| !portion.items.is_empty()) {
                bytes += portion.items.iter().map(|item| item.bytes()).sum::<u64>();
                portions.push(portion);
            }
        }
        Round { states, portions }
    }

    /// Records that a round is on disk.
    fn written(&self, round: &Round, locations: Vec<Location>) {
        let items: usize = round.portions.iter().map(|portion| portion.items.len()).sum();
        // States come first; no index looks them up.
        let mut locations = locations.into_iter();
        let mut files = self.0.files.borrow_mut();
        for location in locations.by_ref().take(round.states.len()) {
            files.add(location);
        }
        for portion in &round.portions {
            self.with(portion.vb, |vbucket| {
                for item in &portion.items {
                    let Some(location) = locations.next() else { return };
                    files.add_needed(location);
                    vbucket.index.put(item.by_seqno, location);
                    let before = vbucket.table.persisted(item);
                    let free =
                        before.and_then(|seqno| vbucket.index.supersede(seqno, item.by_seqno));
                    free.into_iter().for_each(|location| files.release(location));
                }
                if portion.completes_snapshot {
                    vbucket.index.mark_complete(portion.end);
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
            files.oldest().filter(|_| worth && !self.is_backfilling())
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
                states.push(DiskRecord::State(vb, vbucket.record().into()));
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
                files.release(entry.location);
                self.with(*vb, |vbucket| vbucket.index.put(entry.seqno, location));
            }
        }
        self.0.log.append(states).await?;
        self.0.log.sync().await?;
        // A backfill that began meanwhile may still read at the places before: the file goes in a later round.
        if self.is_backfilling() {
            return Ok(());
        }
        self.0.files.borrow_mut().remove(oldest);
        Ok(self.0.log.remove(oldest).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytes::Bytes;

    use super::super::{BucketSettings, Condition};
    use super::*;
    use crate::codec::Write;

    #[test]
    fn a_file_stays_while_a_backfill_may_read_it() {
        world::virtual_world::run(7, async |env| {
            let settings = BucketSettings::new("example", 1, 512 << 20);
            let bucket = Bucket::open(&env, settings, Path::new("/data")).await.unwrap();
            let before = bucket.begin_backfill();
            let value = Bytes::from(vec![3; 1 << 20]);
            for n in 0..150 {
                let key = if n == 0 { "early".to_owned() } else { format!("key{}", n % 10) };
                let write = Write { flags: 0, expiry: 0, key: key.into(), value: value.clone() };
                let seqno = bucket.write(0, write, 0, 0, Condition::Always).unwrap().seqno;
                bucket.wait_persisted(0, seqno, Duration::from_secs(60)).await.unwrap();
            }
            drop(before);
            let mut model = env.virtual_host_model().unwrap();
            model.disk.sync = Duration::from_millis(20);
            env.set_host_model(model);
            let oldest = || bucket.0.files.borrow().oldest();
            let file = oldest();
            let cleaned = bucket.clone();
            let cleaning = env.spawn("compacts", async move { cleaned.compact().await });
            env.sleep(Duration::from_millis(5)).await;
            let meanwhile = bucket.begin_backfill();
            cleaning.await.unwrap().unwrap();
            assert_eq!(oldest(), file);
            drop(meanwhile);
            bucket.compact().await.unwrap();
            assert!(oldest() > file, "what it held has moved");
        });
    }
}
