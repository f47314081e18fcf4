//! The operation log: files `oplog-<generation>.log` of framed operations.
//!
//! A new file begins at every open, at every commit, and every 64 MiB; the one before is synced first, so only
//! the newest file can have a torn end. A file goes once none of its operations is needed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files;
use crate::Operation;
use crate::error::{Error, Result, io};
use crate::frame::{self, FILE_HEADER_BYTES as HEADER_BYTES, FileHeader, Frame};

const HEADER: FileHeader = FileHeader { magic: *b"nrwslog", version: 1 };
/// As `index.translog.generation_threshold_size`.
const GENERATION_BYTES: u64 = 64 << 20;
/// Operations are found again by blocks of about this size.
const BLOCK_BYTES: u64 = 64 << 10;

/// Neighbouring records and the range of their sequence numbers.
#[derive(Clone, Debug)]
struct Block {
    offset: u64,
    len: u64,
    min: u64,
    max: u64,
}

struct LogFile {
    generation: u64,
    path: PathBuf,
    file: Arc<File>,
    len: u64,
    ops: u64,
    max: Option<u64>,
    blocks: Vec<Block>,
}

/// All files of one copy's log.
pub(super) struct Log {
    dir: PathBuf,
    /// Oldest first; the last one is written.
    files: Vec<LogFile>,
}

/// A block to read, with the file that it is in.
pub(super) struct Piece {
    path: PathBuf,
    file: Arc<File>,
    block: Block,
}

impl LogFile {
    fn create(dir: &Path, generation: u64) -> Result<Self> {
        let path = path(dir, generation);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(io("create", &path))?;
        file.write_all_at(&HEADER.bytes(), 0).map_err(io("write", &path))?;
        file.sync_all().map_err(io("sync", &path))?;
        files::sync_dir(dir)?;
        Ok(LogFile {
            generation,
            path,
            file: Arc::new(file),
            len: HEADER_BYTES,
            ops: 0,
            max: None,
            blocks: Vec::new(),
        })
    }

    /// Takes one record into the directory of blocks.
    fn enter(&mut self, seq_no: u64, len: u64) {
        let offset = self.len;
        self.len += len;
        self.ops += 1;
        self.max = self.max.max(Some(seq_no));
        match self.blocks.last_mut() {
            Some(last) if last.len < BLOCK_BYTES => {
                last.len += len;
                last.min = last.min.min(seq_no);
                last.max = last.max.max(seq_no);
            }
            _ => self.blocks.push(Block { offset, len, min: seq_no, max: seq_no }),
        }
    }

    /// Opens a file that was written before. `newest` may have a torn end, which is cut; its length is
    /// returned.
    fn open(dir: &Path, generation: u64, newest: bool) -> Result<(Self, u64)> {
        let path = path(dir, generation);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = Arc::new(file.map_err(io("open", &path))?);
        let mut log = LogFile {
            generation,
            path,
            file,
            len: HEADER_BYTES,
            ops: 0,
            max: None,
            blocks: Vec::new(),
        };
        if !HEADER.check(&log.path, &bytes, newest)? {
            log.len = 0;
            return log.cut(bytes.len() as u64);
        }
        loop {
            let at = log.len as usize;
            let damaged = |reason: &str| Error::LogDamaged {
                path: log.path.clone(),
                offset: at as u64,
                reason: reason.to_owned(),
            };
            match frame::read(&bytes, at, Operation::plausible) {
                Frame::End => return Ok((log, 0)),
                Frame::Torn if newest => return log.cut(bytes.len() as u64),
                Frame::Torn => {
                    return Err(damaged("the file ends too early, and newer ones follow"));
                }
                Frame::Damaged(reason) => return Err(damaged(reason)),
                Frame::Whole { payload, next } => {
                    let op = Operation::decode(payload);
                    let op = op.ok_or_else(|| damaged("a whole record holds no operation"))?;
                    log.enter(op.seq_no, (next - at) as u64);
                }
            }
        }
    }

    fn cut(self, found: u64) -> Result<(Self, u64)> {
        let cut = self.file.set_len(self.len).and_then(|()| self.file.sync_all());
        cut.map_err(io("cut the torn end of", &self.path))?;
        let torn = found - self.len;
        Ok((self, torn))
    }
}

fn path(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("oplog-{generation}.log"))
}

impl Log {
    /// Opens the log from `oldest` on, drops what is older, and begins a new file. Returns how many bytes of
    /// a torn end were cut.
    pub(super) fn open(dir: &Path, oldest: u64) -> Result<(Self, u64)> {
        let generations = files::numbered(dir, "oplog-", ".log")?;
        let newest = generations.last().copied();
        let mut log = Log { dir: dir.to_owned(), files: Vec::new() };
        let mut torn = 0;
        for generation in generations {
            if generation < oldest {
                files::remove_file(&path(dir, generation))?;
                continue;
            }
            let (file, cut) = LogFile::open(dir, generation, Some(generation) == newest)?;
            torn += cut;
            if file.ops == 0 {
                files::remove_file(&file.path)?;
            } else {
                log.files.push(file);
            }
        }
        let next = newest.map_or(oldest, |newest| oldest.max(newest + 1));
        log.files.push(LogFile::create(dir, next)?);
        Ok((log, torn))
    }

    fn newest(&mut self) -> &mut LogFile {
        self.files.last_mut().expect("a log has a file from its opening on")
    }

    /// The file being written; what was appended before the call is in it or synced already.
    pub(super) fn current(&self) -> (Arc<File>, PathBuf) {
        let newest = self.files.last().expect("a log has a file from its opening on");
        (newest.file.clone(), newest.path.clone())
    }

    /// The oldest generation that is kept.
    pub(super) fn oldest(&self) -> u64 {
        self.files.first().map_or(0, |file| file.generation)
    }

    /// Appends operations with one write. Where it fails, the file is as before; where even that fails, the
    /// second value is false and the log must not be used any more.
    pub(super) fn append(
        &mut self,
        ops: &[Operation],
        bytes: u64,
    ) -> std::result::Result<(), (Error, bool)> {
        let mut buffer = Vec::with_capacity(bytes as usize);
        for op in ops {
            frame::append(&mut buffer, |payload| op.encode(payload));
        }
        if self.newest().len > GENERATION_BYTES {
            self.roll().map_err(|error| (error, false))?;
        }
        let newest = self.newest();
        if let Err(error) = newest.file.write_all_at(&buffer, newest.len) {
            let restored = newest.file.set_len(newest.len).is_ok();
            return Err((io("append to", &newest.path)(error), restored));
        }
        for op in ops {
            newest.enter(op.seq_no, op.encoded_bytes());
        }
        Ok(())
    }

    /// Syncs the file being written and begins another.
    pub(super) fn roll(&mut self) -> Result<()> {
        let newest = self.newest();
        if newest.ops == 0 {
            return Ok(());
        }
        newest.file.sync_data().map_err(io("sync", &newest.path))?;
        let generation = newest.generation + 1;
        let next = LogFile::create(&self.dir, generation)?;
        self.files.push(next);
        Ok(())
    }

    /// Removes the files of which no operation is at or above `floor`; never the one being written.
    pub(super) fn trim(&mut self, floor: u64) -> Result<()> {
        let last = self.files.len() - 1;
        let needed = |file: &LogFile| file.max.is_some_and(|max| max >= floor);
        let mut kept = Vec::new();
        for (at, file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            if at == last || needed(&file) {
                kept.push(file);
            } else {
                files::remove_file(&file.path)?;
            }
        }
        self.files = kept;
        Ok(())
    }

    /// Operations and bytes in the log.
    pub(super) fn size(&self) -> (u64, u64) {
        let sum = |of: fn(&LogFile) -> u64| self.files.iter().map(of).sum();
        (sum(|file| file.ops), sum(|file| file.len))
    }

    /// The blocks with operations of these sequence numbers, by their lowest one.
    pub(super) fn pieces(&self, seq_nos: &RangeInclusive<u64>) -> Vec<Piece> {
        let (from, to) = (*seq_nos.start(), *seq_nos.end());
        let mut pieces = Vec::new();
        for file in self.files.iter().filter(|file| file.max >= Some(from)) {
            for block in file.blocks.iter().filter(|block| block.max >= from && block.min <= to) {
                let (path, file) = (file.path.clone(), file.file.clone());
                pieces.push(Piece { path, file, block: block.clone() });
            }
        }
        pieces.sort_by_key(|piece| (piece.block.min, piece.block.max));
        pieces
    }
}

/// Reads operations of these sequence numbers out of `pieces`: ascending, each once, at most `max_ops` and about
/// `max_bytes`. Stops reading once no later block can hold one that comes earlier.
pub(super) fn read(
    pieces: &[Piece],
    seq_nos: &RangeInclusive<u64>,
    max_ops: usize,
    max_bytes: usize,
) -> Result<Vec<Operation>> {
    let mut found: BTreeMap<u64, Operation> = BTreeMap::new();
    for piece in pieces {
        if is_enough(&found, piece.block.min, max_ops, max_bytes) {
            break;
        }
        for op in piece.read()? {
            if seq_nos.contains(&op.seq_no) {
                found.entry(op.seq_no).or_insert(op);
            }
        }
    }
    let mut bytes = 0;
    let mut taken = Vec::new();
    for op in found.into_values() {
        bytes += op.encoded_bytes() as usize;
        if !taken.is_empty() && (taken.len() >= max_ops || bytes > max_bytes) {
            break;
        }
        taken.push(op);
    }
    Ok(taken)
}

fn is_enough(found: &BTreeMap<u64, Operation>, below: u64, ops: usize, bytes: usize) -> bool {
    if found.len() >= ops {
        let certain = found.range(..below).take(ops).count();
        if certain >= ops {
            return true;
        }
    }
    let mut sum = 0;
    found.range(..below).any(|(_, op)| {
        sum += op.encoded_bytes() as usize;
        sum > bytes
    })
}

impl Piece {
    fn read(&self) -> Result<Vec<Operation>> {
        let mut bytes = vec![0; self.block.len as usize];
        let read = self.file.read_exact_at(&mut bytes, self.block.offset);
        read.map_err(io("read", &self.path))?;
        let mut ops = Vec::new();
        let mut at = 0;
        while let Frame::Whole { payload, next } = frame::read(&bytes, at, |_| false) {
            ops.extend(Operation::decode(payload));
            at = next;
        }
        if at == bytes.len() {
            return Ok(ops);
        }
        Err(Error::LogDamaged {
            path: self.path.clone(),
            offset: self.block.offset + at as u64,
            reason: "a record no longer has its checksum".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::OpKind;

    fn op(seq_no: u64, bytes: usize) -> Operation {
        let source = Bytes::from(vec![b'x'; bytes]);
        let kind = OpKind::Index { source, auto_id: true };
        Operation { seq_no, version: 1, id: Arc::from(format!("id{seq_no}")), kind }
    }

    fn put(log: &mut Log, ops: &[Operation]) {
        let bytes = ops.iter().map(Operation::encoded_bytes).sum();
        log.append(ops, bytes).map_err(|(error, _)| error).unwrap();
    }

    #[test]
    fn gives_back_in_order_what_came_out_of_order_and_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, torn) = Log::open(dir.path(), 1).unwrap();
        assert_eq!(torn, 0);
        let ops: Vec<Operation> = (0..3000).map(|n| op((n * 7) % 3000, 200)).collect();
        for batch in ops.chunks(50) {
            put(&mut log, batch);
        }
        log.roll().unwrap();
        put(&mut log, &ops[..100]);
        for from in [0, 1, 1500, 2999, 3000] {
            let some =
                read(&log.pieces(&(from..=u64::MAX)), &(from..=u64::MAX), 100, usize::MAX).unwrap();
            let expected: Vec<u64> = (from..3000).take(100).collect();
            assert_eq!(some.iter().map(|op| op.seq_no).collect::<Vec<_>>(), expected);
        }
        let from_10 = 10..=u64::MAX;
        let few = read(&log.pieces(&from_10), &from_10, 1000, 1000).unwrap();
        assert_eq!(few.len(), (1000 / few[0].encoded_bytes()) as usize);
        assert_eq!(read(&log.pieces(&from_10), &from_10, 1000, 1).unwrap().len(), 1);
        drop(log);
        let (log, torn) = Log::open(dir.path(), 1).unwrap();
        assert_eq!((torn, log.size().0), (0, 3100));
        let all = 0..=u64::MAX;
        let all = read(&log.pieces(&all), &all, usize::MAX, usize::MAX).unwrap();
        let seq_nos: Vec<u64> = all.iter().map(|op| op.seq_no).collect();
        assert_eq!(seq_nos, (0..3000).collect::<Vec<_>>());
    }

    #[test]
    fn trims_whole_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), 1).unwrap();
        put(&mut log, &[op(0, 10), op(1, 10)]);
        log.roll().unwrap();
        put(&mut log, &[op(2, 10), op(3, 10)]);
        log.roll().unwrap();
        log.trim(2).unwrap();
        assert_eq!(log.size().0, 2);
        log.trim(3).unwrap();
        assert_eq!(log.size().0, 2);
        log.trim(4).unwrap();
        assert_eq!(log.size().0, 0);
        assert_eq!(files::names(dir.path()).unwrap(), ["oplog-3.log"]);
    }

    #[test]
    fn cuts_a_torn_end_and_names_other_damage() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), 1).unwrap();
        put(&mut log, &[op(0, 10), op(1, 10), op(2, 10)]);
        drop(log);
        let path = dir.path().join("oplog-1.log");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let (log, torn) = Log::open(dir.path(), 1).unwrap();
        assert_eq!((log.size().0, torn), (2, op(2, 10).encoded_bytes() - 3));
        drop(log);
        // The cut file is no longer the newest: it must now be whole.
        let mut flipped = whole.clone();
        flipped[20] ^= 1;
        fs::write(&path, &flipped).unwrap();
        let error = Log::open(dir.path(), 1).err().unwrap();
        assert!(matches!(&error, Error::LogDamaged { offset: 8, .. }), "{error}");
        assert!(error.to_string().contains("oplog-1.log"), "{error}");
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let error = Log::open(dir.path(), 1).err().unwrap();
        assert!(error.to_string().contains("newer ones follow"), "{error}");
    }
}
