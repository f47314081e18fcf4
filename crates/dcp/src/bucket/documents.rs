//! Reads and writes of clients.

use std::time::Duration;

use bytes::Bytes;
use store::Location;

use super::item::{Item, ItemData, ItemKind};
use super::record::DiskRecord;
use super::{Bucket, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::codec::{DATATYPE_JSON, Status, VbucketState, Write};
use crate::policy::ClientWrite;

/// Expiry times up to this are from now on, as memcached has it.
const RELATIVE_EXPIRY_S: u32 = 30 * 24 * 3600;

/// Between two tries of a write for which there is no memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(1);

/// When a write is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always: SET.
    Always,
    /// If the document does not exist: ADD.
    Absent,
    /// If it exists: REPLACE.
    Present,
}

/// A document as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Value.
    pub value: Bytes,
    /// The client's own flags.
    pub flags: u32,
    /// Version.
    pub cas: u64,
    /// How the value is encoded.
    pub datatype: u8,
}

/// An accepted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Version.
    pub cas: u64,
    /// Its sequence number.
    pub seqno: u64,
    /// The vbucket's history.
    pub uuid: u64,
}

/// The newest version of a document, as a write needs to know it.
#[derive(Clone, Copy, Debug)]
struct Before {
    cas: u64,
    rev_seqno: u64,
    deleted: bool,
}

impl Bucket {
    fn now_s(&self) -> u32 {
        u32::try_from(self.0.env.epoch_ms() / 1000).unwrap_or(u32::MAX)
    }

    /// Reads a document. Fails with [`Status::NotMyVbucket`], [`Status::NotFound`], or [`Status::TemporaryFailure`] if
    /// the disk cannot be read.
    pub async fn get(&self, vb: u16, key: &[u8]) -> Result<Document, Status> {
        let mut failed_at = None;
        let records = loop {
            let location = match self.look_up(vb, key)? {
                Ok(document) => return Ok(document),
                Err(location) => location,
            };
            match self.0.log.read(vec![location]).await {
                Ok(records) => break records,
                // A compaction may have moved it meanwhile, and removed the file.
                Err(_) if failed_at != Some(location) => failed_at = Some(location),
                Err(_) => return Err(Status::TemporaryFailure),
            }
        };
        let Some(DiskRecord::Item { item, .. }) = records.into_iter().next() else {
            return Err(Status::Internal);
        };
        self.count(|stats| stats.fetched += 1);
        let item = Item::new(item, &self.0.used);
        self.with(vb, |vbucket| vbucket.table.fetched(item.clone()));
        Ok(document(&item))
    }

    /// A document, or where it is on disk if its value is not in memory.
    fn look_up(&self, vb: u16, key: &[u8]) -> Result<Result<Document, Location>, Status> {
        let found = self.active(vb, |vbucket| {
            let slot = vbucket.table.get(key).filter(|slot| !slot.item.is_deleted());
            let slot = slot.ok_or(Status::NotFound)?;
            if is_expired(&slot.item, self.now_s()) {
                return Ok(None);
            }
            if slot.resident {
                return Ok(Some(Ok(document(&slot.item))));
            }
            let entry = vbucket.index.get(slot.on_disk).ok_or(Status::Internal)?;
            Ok(Some(Err(entry.location)))
        })?;
        if found.is_none() {
            // It has expired, also where that cannot be written now.
            let _ = self.expire(vb, key);
        }
        found.ok_or(Status::NotFound)
    }

    /// Runs `look` on a vbucket that clients may use.
    fn active<T>(
        &self,
        vb: u16,
        look: impl FnOnce(&mut super::Vbucket) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let found = self.with(vb, |vbucket| match vbucket.state {
            VbucketState::Active => look(vbucket),
            _ => Err(Status::NotMyVbucket),
        });
        found.unwrap_or(Err(Status::NotMyVbucket))
    }

    /// Writes a document. `cas` is the version that it must have, 0 for any. Fails with the status for the client:
    /// [`Status::Exists`] where the version is another, [`Status::TemporaryFailure`] and [`Status::NoMemory`] if memory
    /// is short.
    pub fn write(
        &self,
        vb: u16,
        write: Write,
        cas: u64,
        datatype: u8,
        condition: Condition,
    ) -> Result<Written, Status> {
        if write.key.len() > MAX_KEY_BYTES {
            return Err(Status::Invalid);
        }
        if write.value.len() > MAX_VALUE_BYTES {
            return Err(Status::TooBig);
        }
        let before = self.before(vb, &write.key)?;
        let live = before.filter(|before| !before.deleted);
        match (condition, live) {
            (Condition::Absent, Some(_)) => return Err(Status::Exists),
            (Condition::Present, None) => return Err(Status::NotFound),
            _ => {}
        }
        check_cas(cas, live)?;
        self.check_memory(ItemData::memory_bytes(write.key.len(), write.value.len()))?;
        let time_s = match write.expiry {
            0 => 0,
            relative if relative <= RELATIVE_EXPIRY_S => self.now_s().saturating_add(relative),
            absolute => absolute,
        };
        let (key, value) = self.detach(write.key, write.value);
        let data = ItemData {
            key,
            value,
            rev_seqno: before.map_or(1, |before| before.rev_seqno.saturating_add(1)),
            flags: write.flags,
            time_s,
            // Values are not parsed, so none is known to be JSON.
            datatype: datatype & !DATATYPE_JSON,
            ..ItemData::default()
        };
        self.append(vb, data)
    }

    /// Writes a document over any version as [`Bucket::write`] does, and waits for memory for at most `limit`.
    pub async fn write_within(
        &self,
        vb: u16,
        write: Write,
        limit: Duration,
    ) -> Result<Written, Status> {
        let env = &self.0.env;
        let gives_up = env.now() + limit;
        loop {
            match self.write(vb, write.clone(), 0, 0, Condition::Always) {
                Err(Status::TemporaryFailure | Status::NoMemory) if env.now() < gives_up => {
                    env.sleep(MEMORY_PAUSE).await;
                }
                written => return written,
            }
        }
    }

    /// Deletes a document. Fails as [`Bucket::write`], and with [`Status::NotFound`].
    pub fn delete(&self, vb: u16, key: &[u8], cas: u64) -> Result<Written, Status> {
        let before = self.before(vb, key)?;
        let live = before.filter(|before| !before.deleted).ok_or(Status::NotFound)?;
        check_cas(cas, Some(live))?;
        let rev_seqno = live.rev_seqno.saturating_add(1);
        self.append(vb, self.tombstone(key, ItemKind::Deletion, rev_seqno))
    }

    fn tombstone(&self, key: &[u8], kind: ItemKind, rev_seqno: u64) -> ItemData {
        let (key, time_s) = (Bytes::copy_from_slice(key), self.now_s());
        ItemData { kind, key, rev_seqno, time_s, ..ItemData::default() }
    }

    /// The newest version; an expired document is deleted first.
    fn before(&self, vb: u16, key: &[u8]) -> Result<Option<Before>, Status> {
        let now_s = self.now_s();
        let look = || {
            self.active(vb, |vbucket| {
                let item = vbucket.table.get(key).map(|slot| slot.item.clone());
                Ok(item.map(|item| {
                    let deleted = item.is_deleted();
                    let before = Before { cas: item.cas, rev_seqno: item.rev_seqno, deleted };
                    (before, is_expired(&item, now_s))
                }))
            })
        };
        match look()? {
            Some((_, true)) => {
                self.expire(vb, key)?;
                Ok(look()?.map(|(before, _)| before))
            }
            found => Ok(found.map(|(before, _)| before)),
        }
    }

    fn expire(&self, vb: u16, key: &[u8]) -> Result<(), Status> {
        let rev_seqno = self.active(vb, |vbucket| {
            Ok(vbucket.table.get(key).map_or(0, |slot| slot.item.rev_seqno))
        })?;
        let rev_seqno = rev_seqno.saturating_add(1);
        self.append(vb, self.tombstone(key, ItemKind::Expiration, rev_seqno)).map(|_| ())
    }

    fn check_memory(&self, adds_bytes: u64) -> Result<(), Status> {
        match self.0.settings.memory.client_write(self.used_bytes(), adds_bytes) {
            ClientWrite::Take => return Ok(()),
            ClientWrite::TryAgain => self.count(|stats| stats.tmp_failures += 1),
            ClientWrite::NoMemory => {
                self.count(|stats| stats.no_memory += 1);
                self.free_memory();
                return Err(Status::NoMemory);
            }
        }
        self.free_memory();
        Err(Status::TemporaryFailure)
    }

    /// Gives a version its sequence number and its CAS, and stores it.
    fn append(&self, vb: u16, mut data: ItemData) -> Result<Written, Status> {
        // It might never be on disk.
        if self.failure().is_some() {
            return Err(Status::TemporaryFailure);
        }
        // A CAS is a time in nanoseconds whose lowest 16 bits count what happens at the same time.
        let now_cas = (self.0.env.epoch_ms() * 1_000_000) & !0xffff;
        let used = self.0.used.clone();
        let written = self.active(vb, |vbucket| {
            if vbucket.backed_up {
                return Err(Status::TemporaryFailure);
            }
            (data.by_seqno, data.cas) = vbucket.next(now_cas);
            let uuid = vbucket.failover.uuid();
            let written = Written { cas: data.cas, seqno: data.by_seqno, uuid };
            vbucket.take(Item::new(data, &used));
            vbucket.wake();
            Ok(written)
        })?;
        self.mark_dirty(vb);
        self.free_memory_if_over();
        Ok(written)
    }
}

fn document(item: &ItemData) -> Document {
    Document {
        value: item.value.clone(),
        flags: item.flags,
        cas: item.cas,
        datatype: item.datatype,
    }
}

fn is_expired(item: &ItemData, now_s: u32) -> bool {
    !item.is_deleted() && item.time_s != 0 && item.time_s <= now_s
}

fn check_cas(cas: u64, live: Option<Before>) -> Result<(), Status> {
    match (cas, live) {
        (0, _) => Ok(()),
        (_, None) => Err(Status::NotFound),
        (cas, Some(before)) if before.cas == cas => Ok(()),
        _ => Err(Status::Exists),
    }
}
