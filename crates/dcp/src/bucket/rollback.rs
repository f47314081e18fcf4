//! Rolling a replica back.

use tokio::sync::oneshot;
use world::LocalFuture;

use super::Bucket;
use super::item::{Item, ItemData};
use super::record::DiskRecord;
use super::seqno_index::{Entry, fitting};
use crate::codec::Status;
use crate::{Error, Result, planted};

/// Versions that are read at once.
const ITEMS_AT_ONCE: usize = 1024;
/// And about how many bytes: of large documents fewer are.
const BYTES_AT_ONCE: u64 = 16 << 20;

impl Bucket {
    /// Rolls a replica back to `seqno`, or to the last sequence number before it at which the disk has all of the
    /// vbucket as it was then; to 0 if there is none. Answers the sequence number that was reached. Fails if the
    /// vbucket takes no streams, also where that changes meanwhile, or the disk fails. All is as it was then.
    pub fn roll_back(&self, vb: u16, seqno: u64) -> LocalFuture<'_, Result<u64>> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let bucket = self.clone();
            // A task of its own: a caller that is dropped must not leave the log rolled back and the memory not.
            let rolling = async move {
                let reached = bucket.roll_back_to_its_end(vb, seqno, &tell).await;
                // Where this fails, nobody waits any more.
                let _ = tell.send(reached);
            };
            self.0.env.spawn("rolls a vbucket back", rolling).detach();
            told.await.unwrap_or_else(|_| Err(refused(vb)))
        })
    }

    async fn roll_back_to_its_end(
        &self,
        vb: u16,
        seqno: u64,
        caller: &oneshot::Sender<Result<u64>>,
    ) -> Result<u64> {
        let _lock = self.0.log_lock.lock().await;
        loop {
            // Whoever wanted it may have gone meanwhile, and the vbucket have another stream.
            if caller.is_closed() {
                return Err(refused(vb));
            }
            // Clients may write to one that has become active for as long as this goes on.
            self.with_stream(vb, |_| Ok(()))?;
            if !self.flush_vbucket_locked(vb).await? {
                break;
            }
        }
        let begun = self.with(vb, |vbucket| {
            vbucket.rolls_back = true;
            let to = vbucket.index.rollback_point(seqno);
            (to, vbucket.index.beyond(to))
        });
        let (to, (gone, back)) = begun.ok_or_else(|| refused(vb))?;
        // Nothing in memory changes before the disk has the record.
        let written = self.write_rollback(vb, to, &gone, &back).await;
        let (gone_items, back_items) = written.inspect_err(|_| {
            self.with(vb, |vbucket| vbucket.rolls_back = false);
        })?;
        {
            let mut files = self.0.files.borrow_mut();
            let needed = gone.iter().filter(|entry| entry.superseded_by == 0);
            needed.for_each(|entry| files.release(entry.location));
            back.iter().for_each(|entry| files.need(entry.location));
        }
        let back_items = back_items.into_iter().map(|item| {
            let seqno = item.by_seqno;
            (Item::new(item, &self.0.used), seqno)
        });
        let back_items: Vec<_> = back_items.collect();
        let stays = self.0.env.is_planted(planted::ROLLED_BACK_DOCUMENTS_STAY);
        self.with(vb, |vbucket| match stays {
            true => vbucket.roll_back(to, &[], Vec::new()),
            false => vbucket.roll_back(to, &gone_items, back_items),
        });
        self.count(|stats| {
            stats.rollbacks += 1;
            stats.rolled_back_items += gone.len() as u64;
        });
        self.mark_dirty(vb);
        Ok(to)
    }

    /// Writes that a vbucket is rolled back; answers the versions that go, and those that are the newest of their
    /// document again, all without their values.
    async fn write_rollback(
        &self,
        vb: u16,
        to: u64,
        gone: &[Entry],
        back: &[Entry],
    ) -> Result<(Vec<ItemData>, Vec<ItemData>)> {
        let items = (self.read_items(gone).await?, self.read_items(back).await?);
        self.0.log.append(vec![DiskRecord::Rollback(vb, to)]).await?;
        self.0.log.sync().await?;
        Ok(items)
    }

    /// Their values are not kept: a vbucket may have more than there is memory.
    async fn read_items(&self, mut entries: &[Entry]) -> Result<Vec<ItemData>> {
        let mut items = Vec::with_capacity(entries.len());
        while !entries.is_empty() {
            let at_once = &entries[..entries.len().min(ITEMS_AT_ONCE)];
            let (part, rest) = entries.split_at(fitting(at_once, BYTES_AT_ONCE));
            let places = part.iter().map(|entry| entry.location).collect();
            for record in self.0.log.read(places).await? {
                if let DiskRecord::Item { item, .. } = record {
                    items.push(item.without_value());
                }
            }
            entries = rest;
        }
        Ok(items)
    }
}

fn refused(vb: u16) -> Error {
    Error::Refused { vbucket: vb, status: Status::TemporaryFailure }
}
