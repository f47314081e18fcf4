//! One file of the operation log: framed operations behind a header, and a directory of its blocks.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files;
use super::log_header::{HEADER_BYTES, Header};
use crate::Operation;
use crate::checkpoint::LocalCheckpointTracker;
use crate::error::{Error, Result, io};
use crate::frame::{self, Frame};

/// Operations are found again by blocks of about this size.
const BLOCK_BYTES: u64 = 64 << 10;

/// Neighbouring records and the range of their sequence numbers.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) min: u64,
    pub(super) max: u64,
}

/// One file of the log, and what is in it. It is not held open: a log that is retained for long has many.
pub(super) struct LogFile {
    pub(super) generation: u64,
    pub(super) path: PathBuf,
    /// None in a file of an earlier build.
    pub(super) header: Option<Header>,
    pub(super) len: u64,
    pub(super) ops: u64,
    pub(super) max: Option<u64>,
    pub(super) blocks: Vec<Block>,
}

impl LogFile {
    fn new(generation: u64, path: PathBuf, header: Option<Header>, len: u64) -> Self {
        LogFile { generation, path, header, len, ops: 0, max: None, blocks: Vec::new() }
    }

    /// A new file, and its handle.
    pub(super) fn create(dir: &Path, generation: u64, header: Header) -> Result<(Self, File)> {
        let path = path(dir, generation);
        // Should it stay where it has begun nowhere, the next opening knows it by its generation.
        let file = files::begin_file(&path, &header.bytes())?;
        Ok((LogFile::new(generation, path, Some(header), HEADER_BYTES), file))
    }

    /// Takes one record into the directory of blocks.
    pub(super) fn enter(&mut self, seq_no: u64, len: u64) {
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

    fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::log_damaged(&self.path, self.len, reason)
    }

    /// Reads a file that was written before, up to `synced` bytes at least. The `newest` may have a torn end behind
    /// them; how long the file is with that is returned. One that is `beyond` the checkpoint may have no header: the
    /// disk was full, or the process was killed.
    pub(super) fn open(
        dir: &Path,
        generation: u64,
        (newest, beyond): (bool, bool),
        synced: u64,
        held: &mut LocalCheckpointTracker,
    ) -> Result<(Self, u64)> {
        let path = path(dir, generation);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let found = bytes.len() as u64;
        let may_lack_header = (newest || beyond) && synced == 0 && found <= HEADER_BYTES;
        if may_lack_header && Header::read(&path, &bytes).is_err() {
            return Ok((LogFile::new(generation, path, None, 0), found));
        }
        let (header, len) = Header::read(&path, &bytes)?;
        let mut log = LogFile::new(generation, path, header, len);
        loop {
            let at = log.len as usize;
            match frame::read(&bytes, at, Operation::plausible) {
                Frame::End | Frame::Torn if log.len < synced => {
                    return Err(log.damaged(format!(
                        "the log ends here, though it was synced up to byte {synced}"
                    )));
                }
                Frame::End => return Ok((log, found)),
                Frame::Torn if newest => return Ok((log, found)),
                Frame::Torn => {
                    return Err(log.damaged("the file ends too early, and newer ones follow"));
                }
                Frame::Damaged(reason) => return Err(log.damaged(reason)),
                Frame::Whole { payload, next } => {
                    let op = Operation::decode(payload)
                        .ok_or_else(|| log.damaged("a whole record holds no operation"))?;
                    held.mark_range(op.places());
                    log.enter(op.seq_no, (next - at) as u64);
                }
            }
        }
    }

    /// What a process that was killed had written may be in memory alone, and counts as durable from now on. What lies
    /// behind the `synced` bytes is written again: the system takes for written what a sync left that failed.
    pub(super) fn make_durable(&self, synced: u64) -> Result<()> {
        let from = synced.min(self.len);
        let write_again = || {
            let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            let mut bytes = vec![0; (self.len - from) as usize];
            file.read_exact_at(&mut bytes, from)?;
            file.write_all_at(&bytes, from)?;
            file.sync_all()
        };
        write_again().map_err(io("sync", &self.path))
    }

    /// Cuts the torn end, if there is one.
    pub(super) fn cut(&self, found: u64) -> Result<u64> {
        if found > self.len {
            let file = OpenOptions::new().write(true).open(&self.path);
            let file = file.map_err(io("open", &self.path))?;
            let cut = file.set_len(self.len).and_then(|()| file.sync_all());
            cut.map_err(io("cut the torn end of", &self.path))?;
        }
        Ok(found - self.len)
    }
}

pub(super) fn path(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("oplog-{generation}.log"))
}

/// A block to read, with the file that it is in.
pub(super) struct Piece {
    pub(super) path: PathBuf,
    /// The open file, where it is the newest of the log; an older one is opened when it is read.
    pub(super) file: Option<Arc<File>>,
    pub(super) block: Block,
}

impl Piece {
    /// The file that it is in; none where that was trimmed meanwhile.
    fn open(&self) -> Result<Option<Arc<File>>> {
        match &self.file {
            Some(file) => Ok(Some(file.clone())),
            None => match File::open(&self.path) {
                Ok(file) => Ok(Some(Arc::new(file))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(io("open", &self.path)(error)),
            },
        }
    }

    fn read(&self, file: &File) -> Result<Vec<Operation>> {
        let mut bytes = vec![0; self.block.len as usize];
        let read = file.read_exact_at(&mut bytes, self.block.offset);
        read.map_err(io("read", &self.path))?;
        let mut ops = Vec::new();
        let mut at = 0;
        while let Frame::Whole { payload, next } = frame::read(&bytes, at, |_| false)
            && let Some(op) = Operation::decode(payload)
        {
            ops.push(op);
            at = next;
        }
        if at == bytes.len() {
            return Ok(ops);
        }
        let offset = self.block.offset + at as u64;
        Err(Error::log_damaged(&self.path, offset, "a record is not what was written there"))
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
    let mut open: Option<(&Path, Arc<File>)> = None;
    for piece in pieces {
        if is_enough(&found, piece.block.min, max_ops, max_bytes) {
            break;
        }
        let file = match &open {
            Some((path, file)) if *path == piece.path => file.clone(),
            _ => {
                let (from, oldest) = (*seq_nos.start(), piece.block.max + 1);
                piece.open()?.ok_or(Error::OperationsGone { from, oldest })?
            }
        };
        let ops = piece.read(&file)?;
        open = Some((&piece.path, file));
        for op in ops {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads on would take it for one that was never written.
    #[test]
    fn a_whole_record_that_holds_no_operation_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), 1);
        let mut bytes = Vec::new();
        frame::append(&mut bytes, |payload| payload.push(0xff));
        fs::write(&path, &bytes).unwrap();
        let block = Block { offset: 0, len: bytes.len() as u64, min: 0, max: 0 };
        let refused = read(&[Piece { path, file: None, block }], &(0..=0), 10, 1000).unwrap_err();
        assert!(matches!(refused, Error::LogDamaged { offset: 0, .. }), "{refused}");
    }
}
