//! A log of records of any kind, that are found again by where they lie: what a bucket of many small vbuckets writes
//! into, with one sync for all of them.
//!
//! Real world: files `records-<generation>.log`. A new one begins at every open and every 64 MiB; the one before is
//! synced first, so only the newest can have a torn end. Virtual world: the records themselves on the host's disk, not
//! encoded; what was not synced goes with the host.
//!
//! One task appends at a time. Reading goes on beside it.

mod files_arm;
mod virtual_arm;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use world::{Env, Work};

use crate::Result;
use crate::frame::framed_bytes;
use files_arm::FilesArm;
use virtual_arm::VirtualArm;

/// As the operation log's: `index.translog.generation_threshold_size`.
const GENERATION_BYTES: u32 = 64 << 20;

/// What a log holds.
pub trait Record: Clone + Send + 'static {
    /// Bytes of the encoding.
    fn payload_bytes(&self) -> usize;
    /// Appends the encoding; it is never empty.
    fn encode(&self, buffer: &mut Vec<u8>);
    /// Reads the encoding; none if `payload` is none.
    fn decode(payload: &[u8]) -> Option<Self>;
    /// Whether `payload` could be a record, judged by its first bytes: asked behind a damaged record.
    fn plausible(payload: &[u8]) -> bool;
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Its file.
    pub generation: u32,
    /// Its first byte there, or its number in the virtual world.
    offset: u32,
    /// Bytes that it takes.
    pub bytes: u32,
}

/// A log that is open.
pub struct RecordLog<R: Record> {
    env: Env,
    arm: Arm<R>,
}

enum Arm<R: Record> {
    Files(Arc<FilesArm>),
    Virtual(Rc<VirtualArm<R>>),
}

fn bytes_of<R: Record>(record: &R) -> u32 {
    u32::try_from(framed_bytes(record.payload_bytes())).unwrap_or(u32::MAX)
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
            let arm = VirtualArm::open(&disk, dir);
            let bytes = arm.visit(&mut visit);
            env.work(Work::DiskRead { bytes }, || ()).await;
            return Ok((RecordLog { env: env.clone(), arm: Arm::Virtual(Rc::new(arm)) }, 0));
        }
        let (dir, mut torn) = (dir.to_owned(), 0);
        let whole = u64::from(GENERATION_BYTES);
        let at = dir.clone();
        let (opening, generations) = env
            .work(Work::DiskRead { bytes: whole }, move || files_arm::Opening::begin(&at))
            .await?;
        let opening = Arc::new(opening);
        for generation in generations {
            let opening = opening.clone();
            let read = move || opening.read::<R>(generation);
            let (records, cut) = env.work(Work::DiskRead { bytes: whole }, read).await?;
            torn += cut;
            records.into_iter().for_each(|(location, record)| visit(location, record));
        }
        let finish = move || FilesArm::new(opening);
        let arm = env.work(Work::DiskWrite { bytes: whole }, finish).await?;
        Ok((RecordLog { env: env.clone(), arm: Arm::Files(Arc::new(arm)) }, torn))
    }

    /// Appends records and answers where each lies. They are durable after the next [`RecordLog::sync`].
    ///
    /// # Errors
    /// If the disk does not let us. Nothing of them is in the log then.
    pub async fn append(&self, records: Vec<R>) -> Result<Vec<Location>> {
        let bytes = records.iter().map(|record| u64::from(bytes_of(record))).sum();
        match &self.arm {
            Arm::Files(arm) => {
                let arm = arm.clone();
                self.env.work(Work::DiskWrite { bytes }, move || arm.append(&records)).await
            }
            Arm::Virtual(arm) => {
                arm.take_space(bytes)?;
                self.env.work(Work::DiskWrite { bytes }, || ()).await;
                Ok(arm.append(records))
            }
        }
    }

    /// Makes durable what was appended before.
    ///
    /// # Errors
    /// If the disk does not let us: nothing more is accepted until the log is opened again.
    pub async fn sync(&self) -> Result<()> {
        match &self.arm {
            Arm::Files(arm) => {
                let arm = arm.clone();
                self.env.work(Work::DiskSync, move || arm.sync()).await
            }
            Arm::Virtual(arm) => {
                let appended = arm.appended();
                self.env.work(Work::DiskSync, || ()).await;
                arm.synced(appended);
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
        match &self.arm {
            Arm::Files(arm) => {
                let arm = arm.clone();
                self.env.work(Work::DiskRead { bytes }, move || arm.read(&locations)).await
            }
            Arm::Virtual(arm) => {
                let records = arm.read(&locations)?;
                self.env.work(Work::DiskRead { bytes }, || ()).await;
                Ok(records)
            }
        }
    }

    /// The file that is written.
    pub fn newest(&self) -> u32 {
        match &self.arm {
            Arm::Files(arm) => arm.newest(),
            Arm::Virtual(arm) => arm.newest(),
        }
    }

    /// Removes files, never the one that is written: none of their records is needed any more.
    ///
    /// # Errors
    /// If the disk does not let us.
    pub async fn remove(&self, generation: u32) -> Result<()> {
        match &self.arm {
            Arm::Files(arm) => {
                let arm = arm.clone();
                self.env.work(Work::DiskWrite { bytes: 1 }, move || arm.remove(generation)).await
            }
            Arm::Virtual(arm) => {
                arm.remove(generation);
                Ok(())
            }
        }
    }
}

fn gone(dir: &Path, generation: u32) -> crate::Error {
    crate::Error::LogDamaged {
        path: path(dir, generation),
        offset: 0,
        reason: "a record was asked for of a file that is not there".to_owned(),
    }
}

fn path(dir: &Path, generation: u32) -> PathBuf {
    dir.join(format!("records-{generation}.log"))
}
