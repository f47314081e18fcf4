//! A log of records on real files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::record::{GENERATION_BYTES, Location, Record, gone, path};
use crate::error::{Error, FirstFailure, Result, io};
use crate::files;
use crate::frame::{self, Frame};
use crate::lock::lock;

/// How a file begins: what it is, and its format.
const HEADER: [u8; 8] = *b"nrwsrec\x01";
/// Neighbouring records are read together up to this.
const READ_BYTES: usize = 1 << 20;

/// A log while its records are read for the first time.
pub(super) struct Opening {
    dir: PathBuf,
    lock: Mutex<Option<File>>,
    newest: u32,
    files: Mutex<BTreeMap<u32, Arc<File>>>,
}

impl Opening {
    /// Takes the directory; answers its files, too.
    pub(super) fn begin(dir: &Path) -> Result<(Opening, Vec<u32>)> {
        files::make_dir(dir).map_err(io("create directory", dir))?;
        let lock = files::lock_dir(dir)?;
        let numbers = files::numbered(dir, "records-", ".log")?;
        let generations: Vec<u32> =
            numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        let newest = generations.last().copied().unwrap_or(0);
        let (dir, lock) = (dir.to_owned(), Mutex::new(Some(lock)));
        Ok((Opening { dir, lock, newest, files: Mutex::default() }, generations))
    }

    /// Reads a file whole. A torn end of the newest is cut; how much is answered, too.
    pub(super) fn read<R: Record>(&self, generation: u32) -> Result<(Vec<(Location, R)>, u64)> {
        let newest = generation == self.newest;
        let path = path(&self.dir, generation);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(io("open", &path))?;
        let mut records = Vec::new();
        let whole = has_header(&path, &bytes, newest)?;
        let mut at = if whole { HEADER.len() } else { 0 };
        let mut torn = 0;
        let damaged = |at: usize, reason: &str| Error::log_damaged(&path, at as u64, reason);
        loop {
            let next = if whole { frame::read(&bytes, at, R::plausible) } else { Frame::End };
            match next {
                Frame::End => break,
                Frame::Torn if newest => {
                    torn = (bytes.len() - at) as u64;
                    let cut = file.set_len(at as u64).and_then(|()| file.sync_all());
                    cut.map_err(io("cut the torn end of", &path))?;
                    break;
                }
                Frame::Torn => {
                    return Err(damaged(at, "the file ends too early, and newer ones follow"));
                }
                Frame::Damaged(reason) => return Err(damaged(at, reason)),
                Frame::Whole { payload, next } => {
                    let record = R::decode(payload)
                        .ok_or_else(|| damaged(at, "a whole record is of no kind that is known"))?;
                    records.push((locate(generation, at, next), record));
                    at = next;
                }
            }
        }
        if records.is_empty() {
            files::remove_file(&path)?;
        } else {
            if newest {
                // What a process that was killed had written may be in memory alone, and counts as durable from now on.
                // It is written again: the system takes for written what a sync left that failed.
                let written = file.write_all_at(&bytes[..at], 0).and_then(|()| file.sync_all());
                written.map_err(io("sync", &path))?;
            }
            lock(&self.files).insert(generation, Arc::new(file));
        }
        Ok((records, torn))
    }
}

/// Whether the header is there; a newest file may have been killed before it was.
fn has_header(path: &Path, file: &[u8], newest: bool) -> Result<bool> {
    let ([magic @ .., version], path) = (&HEADER, path.to_owned());
    match file.first_chunk::<{ HEADER.len() }>() {
        Some([begin @ .., found]) if begin == magic && found == version => Ok(true),
        Some([begin @ .., found]) if begin == magic && found > version => {
            Err(Error::Newer { path, found: (*found).into(), known: (*version).into() })
        }
        _ if newest && file.len() <= HEADER.len() => Ok(false),
        _ => Err(Error::log_damaged(&path, 0, "it does not begin as a log does")),
    }
}

fn locate(generation: u32, at: usize, next: usize) -> Location {
    Location { generation, offset: at as u32, bytes: (next - at) as u32 }
}

/// A log that is open.
pub(super) struct LogFiles {
    dir: PathBuf,
    _lock: Option<File>,
    /// The newest one is written.
    files: Mutex<BTreeMap<u32, Arc<File>>>,
    /// Held while the log is appended to or synced, also where whoever asked for that is gone and the next one asks.
    writer: Mutex<Writer>,
}

struct Writer {
    generation: u32,
    file: Arc<File>,
    len: u32,
    failed: Option<FirstFailure>,
}

impl Writer {
    fn begin(dir: &Path, generation: u32) -> Result<Writer> {
        let path = path(dir, generation);
        // A try that failed, as on a full disk, may have left it; it has no records: nobody else makes files here. Its
        // name may not be durable, and another sync would not say so.
        files::remove_file(&path)?;
        let file = Arc::new(files::begin_file(&path, &HEADER)?);
        Ok(Writer { generation, file, len: HEADER.len() as u32, failed: None })
    }

    fn sync(&mut self, dir: &Path) -> Result<()> {
        self.check(dir)?;
        let synced = self.file.sync_data().map_err(io("sync", &path(dir, self.generation)));
        // Buffered pages may be lost, and a second sync would not report that.
        synced.inspect_err(|error| self.failed = Some(FirstFailure::from(error)))
    }

    fn check(&self, dir: &Path) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(first) => Err(first.error(dir)),
        }
    }
}

impl LogFiles {
    /// Begins a new file after those that were read.
    pub(super) fn new(opening: Arc<Opening>) -> Result<LogFiles> {
        let writer = Writer::begin(&opening.dir, opening.newest + 1)?;
        let mut files = std::mem::take(&mut *lock(&opening.files));
        files.insert(writer.generation, writer.file.clone());
        let _lock = lock(&opening.lock).take();
        let (files, writer) = (Mutex::new(files), Mutex::new(writer));
        Ok(LogFiles { dir: opening.dir.clone(), _lock, files, writer })
    }

    pub(super) fn newest(&self) -> u32 {
        lock(&self.files).last_key_value().map_or(0, |(newest, _)| *newest)
    }

    pub(super) fn append<R: Record>(&self, records: &[R]) -> Result<Vec<Location>> {
        let mut writer = lock(&self.writer);
        if writer.len >= GENERATION_BYTES {
            writer.sync(&self.dir)?;
            *writer = Writer::begin(&self.dir, writer.generation + 1)?;
            lock(&self.files).insert(writer.generation, writer.file.clone());
        }
        writer.check(&self.dir)?;
        let (generation, start) = (writer.generation, writer.len as usize);
        let mut buffer = Vec::new();
        let mut locations = Vec::with_capacity(records.len());
        for record in records {
            let at = buffer.len();
            frame::append(&mut buffer, |payload| record.encode(payload));
            locations.push(locate(generation, start + at, start + buffer.len()));
        }
        let path = path(&self.dir, generation);
        if let Err(error) = writer.file.write_all_at(&buffer, start as u64) {
            let restored = writer.file.set_len(start as u64);
            let error = io("append to", &path)(error);
            if restored.is_err() {
                writer.failed = Some(FirstFailure::from(&error));
            }
            return Err(error);
        }
        writer.len += buffer.len() as u32;
        Ok(locations)
    }

    pub(super) fn sync(&self) -> Result<()> {
        lock(&self.writer).sync(&self.dir)
    }

    pub(super) fn read<R: Record>(&self, locations: &[Location]) -> Result<Vec<R>> {
        let mut records = Vec::with_capacity(locations.len());
        let mut rest = locations;
        while let Some(first) = rest.first() {
            let (mut end, mut taken) = (first.offset + first.bytes, 1);
            while let Some(next) = rest.get(taken)
                && next.generation == first.generation
                && next.offset == end
                && (end - first.offset) as usize <= READ_BYTES
            {
                end += next.bytes;
                taken += 1;
            }
            let file = lock(&self.files).get(&first.generation).cloned();
            let file = file.ok_or_else(|| gone(&self.dir, first.generation))?;
            let mut bytes = vec![0; (end - first.offset) as usize];
            let path = path(&self.dir, first.generation);
            let read = file.read_exact_at(&mut bytes, first.offset.into());
            read.map_err(io("read", &path))?;
            let mut at = 0;
            for _ in 0..taken {
                let offset = u64::from(first.offset) + at as u64;
                let reason = "a record no longer has its checksum";
                let damaged = || Error::log_damaged(&path, offset, reason);
                let Frame::Whole { payload, next } = frame::read(&bytes, at, |_| false) else {
                    return Err(damaged());
                };
                records.push(R::decode(payload).ok_or_else(damaged)?);
                at = next;
            }
            rest = &rest[taken..];
        }
        Ok(records)
    }

    pub(super) fn remove(&self, generation: u32) -> Result<()> {
        let known = generation != self.newest() && lock(&self.files).remove(&generation).is_some();
        if known { files::remove_file(&path(&self.dir, generation)) } else { Ok(()) }
    }
}
