//! A log of records of any kind, each of which is read again by its location: a bucket of many small vbuckets writes
//! into one log, with one sync for all of them.
//!
//! Real world: files `records-<generation>.log`. A new one begins at every open and every 64 MiB; the one before is
//! synced first, so only the newest can have a torn end. Virtual world: the records themselves on the host's disk, not
//! encoded; records that were not synced are lost with the host.
//!
//! Appends and syncs come one after the other. Reading goes on beside them.
//!
//! There are two logs because they promise other things: the operation log (`tantivy_storage/log.rs`) finds operations
//! by their sequence numbers, lets its oldest files go, and its headers and checkpoint prove that nothing is missing
//! from one history; this one gives each record a place that its caller keeps, and lets any file go. What they have in
//! common they share: the frames of records, and how a file begins.

mod log_files;
mod record;
mod virtual_log;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use world::{Env, Work};

use crate::Result;
use log_files::LogFiles;
use record::{GENERATION_BYTES, bytes_of};
pub use record::{Location, Record};
use virtual_log::VirtualLog;

/// A log that is open.
pub struct RecordLog<R: Record> {
    env: Env,
    kind: Kind<R>,
}

enum Kind<R: Record> {
    Files(Arc<LogFiles>),
    Virtual(Rc<VirtualLog<R>>),
}

impl<R: Record> RecordLog<R> {
    /// Opens the log of a directory, which is made where it is missing, and shows every record in the order in which
    /// they were appended. Answers how many bytes of a torn end were cut, too.
    ///
    /// # Errors
    /// If the disk does not let us, another holds the log open, or a record before the end is damaged.
    pub async fn open(
        env: &Env,
        dir: &Path,
        mut visit: impl FnMut(Location, R),
    ) -> Result<(RecordLog<R>, u64)> {
        if let Some(disk) = env.virtual_disk() {
            let kind = VirtualLog::open(&disk, dir);
            let bytes = kind.visit(&mut visit);
            env.work(Work::DiskRead { bytes }, || ()).await;
            return Ok((RecordLog { env: env.clone(), kind: Kind::Virtual(Rc::new(kind)) }, 0));
        }
        let (dir, mut torn) = (dir.to_owned(), 0);
        let whole = u64::from(GENERATION_BYTES);
        let at = dir.clone();
        let (opening, generations) = env
            .work(Work::DiskRead { bytes: whole }, move || log_files::Opening::begin(&at))
            .await?;
        let opening = Arc::new(opening);
        for generation in generations {
            let opening = opening.clone();
            let read = move || opening.read::<R>(generation);
            let (records, cut) = env.work(Work::DiskRead { bytes: whole }, read).await?;
            torn += cut;
            records.into_iter().for_each(|(location, record)| visit(location, record));
        }
        let finish = move || LogFiles::new(opening);
        let kind = env.work(Work::DiskWrite { bytes: whole }, finish).await?;
        Ok((RecordLog { env: env.clone(), kind: Kind::Files(Arc::new(kind)) }, torn))
    }

    /// Appends records and answers where each lies. They are durable after the next [`RecordLog::sync`].
    ///
    /// # Errors
    /// If the disk does not let us. Nothing of them is in the log then.
    pub async fn append(&self, records: Vec<R>) -> Result<Vec<Location>> {
        let bytes = records.iter().map(|record| u64::from(bytes_of(record))).sum();
        match &self.kind {
            Kind::Files(kind) => {
                let kind = kind.clone();
                self.env.work(Work::DiskWrite { bytes }, move || kind.append(&records)).await
            }
            Kind::Virtual(kind) => {
                kind.take_space(&self.env, bytes)?;
                self.env.work(Work::DiskWrite { bytes }, || ()).await;
                Ok(kind.append(records))
            }
        }
    }

    /// Makes durable what was appended before.
    ///
    /// # Errors
    /// If the disk does not let us: nothing more is accepted until the log is opened again.
    pub async fn sync(&self) -> Result<()> {
        match &self.kind {
            Kind::Files(kind) => {
                let kind = kind.clone();
                self.env.work(Work::DiskSync, move || kind.sync()).await
            }
            Kind::Virtual(kind) => {
                let appended = kind.appended();
                self.env.work(Work::DiskSync, || ()).await;
                kind.synced(appended);
                Ok(())
            }
        }
    }

    /// Reads records, in the order of `locations`; neighbours are read at once.
    ///
    /// # Errors
    /// If one is damaged, or its file is gone.
    pub async fn read(&self, locations: Vec<Location>) -> Result<Vec<R>> {
        let bytes = locations.iter().map(|location| u64::from(location.bytes)).sum();
        match &self.kind {
            Kind::Files(kind) => {
                let kind = kind.clone();
                self.env.work(Work::DiskRead { bytes }, move || kind.read(&locations)).await
            }
            Kind::Virtual(kind) => {
                let records = kind.read(&locations)?;
                self.env.work(Work::DiskRead { bytes }, || ()).await;
                Ok(records)
            }
        }
    }

    /// The file that is written.
    pub fn newest(&self) -> u32 {
        match &self.kind {
            Kind::Files(kind) => kind.newest(),
            Kind::Virtual(kind) => kind.newest(),
        }
    }

    /// Removes files, never the one that is written: none of their records is needed any more.
    ///
    /// # Errors
    /// If the disk does not let us.
    pub async fn remove(&self, generation: u32) -> Result<()> {
        match &self.kind {
            Kind::Files(kind) => {
                let kind = kind.clone();
                self.env.work(Work::DiskWrite { bytes: 1 }, move || kind.remove(generation)).await
            }
            Kind::Virtual(kind) => {
                kind.remove(generation);
                Ok(())
            }
        }
    }
}
