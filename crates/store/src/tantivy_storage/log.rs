//! The operation log: files `oplog-<generation>.log` of framed operations, and `oplog.ckp` ([`super::log_checkpoint`]).
//!
//! A new file begins at every open, at every commit, and every 64 MiB; the one before is synced first, so only
//! the newest file can have a torn end. A file goes once none of its operations is needed, the oldest first. A file's
//! header names the history and says where the file before ended, so that none can be missing or exchanged unnoticed.

use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files;
use super::log_checkpoint::{CheckpointFile, Synced};
use super::log_file::{LogFile, Piece};
use super::log_header::{HEADER_BYTES, Header};
use crate::Operation;
use crate::error::{Error, Result, io};
use crate::frame;

/// As `index.translog.generation_threshold_size`.
const GENERATION_BYTES: u64 = 64 << 20;

/// What a failure leaves of the log.
#[derive(Debug)]
pub(super) enum LogError {
    /// It is as before, and takes operations once there is room again.
    Refused(Error),
    /// Nobody knows what is in it: it must not be used any more.
    Broken(Error),
}

pub(super) struct Log {
    dir: PathBuf,
    /// Oldest first; the last one is written.
    files: Vec<LogFile>,
    /// The last one's.
    writer: Arc<File>,
    next_seq_no: u64,
    synced: Synced,
    checkpoint: CheckpointFile,
}

/// Where the log ended when its sync began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    generation: u64,
    len: u64,
    next_seq_no: u64,
}

impl Log {
    /// A log of these files, the last of which is written.
    pub(super) fn of(
        dir: &Path,
        files: Vec<LogFile>,
        writer: File,
        synced: Synced,
        checkpoint: CheckpointFile,
    ) -> Self {
        let (dir, writer) = (dir.to_owned(), Arc::new(writer));
        Log { dir, files, writer, next_seq_no: synced.next_seq_no, synced, checkpoint }
    }

    fn newest(&mut self) -> &mut LogFile {
        self.files.last_mut().expect("a log has a file from its opening on")
    }

    /// The file being written, and where it ends; what was appended before the call is in it or synced already.
    pub(super) fn current(&self) -> (Arc<File>, PathBuf, Position) {
        let newest = self.files.last().expect("a log has a file from its opening on");
        let (generation, len) = (newest.generation, newest.len);
        let position = Position { generation, len, next_seq_no: self.next_seq_no };
        (self.writer.clone(), newest.path.clone(), position)
    }

    /// Notes that the log was synced up to a position, and what every copy in sync has.
    pub(super) fn note_synced(
        &mut self,
        position: Position,
        global_checkpoint: Option<u64>,
    ) -> Result<()> {
        let Position { generation, len, next_seq_no } = position;
        // A file that began meanwhile noted itself.
        if (generation, len) <= (self.synced.generation, self.synced.len) {
            return self.note_global_checkpoint(global_checkpoint);
        }
        let global_checkpoint = self.synced.global_checkpoint.max(global_checkpoint);
        self.synced = Synced { generation, len, next_seq_no, global_checkpoint, ..self.synced };
        self.checkpoint.write(&self.synced)
    }

    /// Notes what every copy in sync has, as far as this one was told.
    pub(super) fn note_global_checkpoint(&mut self, checkpoint: Option<u64>) -> Result<()> {
        if checkpoint <= self.synced.global_checkpoint {
            return Ok(());
        }
        self.synced.global_checkpoint = checkpoint;
        self.checkpoint.write(&self.synced)
    }

    /// What its files call their history.
    pub(super) fn history(&self) -> u64 {
        self.synced.history
    }

    pub(super) fn oldest(&self) -> u64 {
        self.files.first().map_or(0, |file| file.generation)
    }

    /// Whether the next operations go to a new file.
    pub(super) fn is_full(&self) -> bool {
        self.files.last().is_some_and(|newest| newest.len > GENERATION_BYTES)
    }

    /// Appends operations with one write, to a new file where the newest has grown enough. What a failed write left is
    /// cut off again.
    pub(super) fn append(&mut self, ops: &[Operation]) -> std::result::Result<(), LogError> {
        let bytes: u64 = ops.iter().map(Operation::encoded_bytes).sum();
        let mut buffer = Vec::with_capacity(bytes as usize);
        for op in ops {
            frame::append(&mut buffer, |payload| op.encode(payload));
        }
        if self.is_full() {
            self.roll()?;
        }
        let writer = self.writer.clone();
        let newest = self.newest();
        if let Err(error) = writer.write_all_at(&buffer, newest.len) {
            let is_cut = writer.set_len(newest.len).is_ok();
            let error = io("append to", &newest.path)(error);
            return Err(if is_cut { LogError::Refused(error) } else { LogError::Broken(error) });
        }
        for op in ops {
            newest.enter(op.seq_no, op.encoded_bytes());
        }
        let next_seq_no = ops.iter().map(|op| op.places().end).max().unwrap_or(0);
        self.next_seq_no = self.next_seq_no.max(next_seq_no);
        Ok(())
    }

    /// Syncs the file being written and begins another. Where that cannot be made, as on a full disk, the one before
    /// goes on.
    pub(super) fn roll(&mut self) -> std::result::Result<(), LogError> {
        let writer = self.writer.clone();
        let newest = self.newest();
        if newest.ops == 0 {
            return Ok(());
        }
        let synced = writer.sync_data().map_err(io("sync", &newest.path));
        synced.map_err(LogError::Broken)?;
        let (before, generation) = ((newest.generation, newest.len), newest.generation + 1);
        let header = Header { history: self.synced.history, before };
        let created = LogFile::create(&self.dir, generation, header);
        let (next, writer) = created.map_err(LogError::Refused)?;
        self.files.push(next);
        self.writer = Arc::new(writer);
        let (len, next_seq_no) = (HEADER_BYTES, self.next_seq_no);
        self.synced = Synced { generation, len, next_seq_no, ..self.synced };
        let noted = self.checkpoint.write(&self.synced).and_then(|()| self.checkpoint.sync());
        noted.map_err(LogError::Broken)
    }

    /// Removes the oldest files, as long as none of their operations is at or above `floor`; never the one being
    /// written.
    pub(super) fn trim(&mut self, floor: u64) -> Result<()> {
        let last = self.files.len() - 1;
        let needed = |file: &LogFile| file.max.is_some_and(|max| max >= floor);
        let unneeded = self.files[..last].iter().take_while(|file| !needed(file)).count();
        if unneeded == 0 {
            return Ok(());
        }
        self.synced.oldest = self.files[unneeded].generation;
        self.synced.floor = self.synced.floor.max(floor);
        self.checkpoint.write(&self.synced)?;
        self.checkpoint.sync()?;
        for file in self.files.drain(..unneeded) {
            files::remove_file(&file.path)?;
        }
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
        let last = self.files.last().map(|file| file.generation);
        let mut pieces = Vec::new();
        for file in self.files.iter().filter(|file| file.max >= Some(from)) {
            let writer = (Some(file.generation) == last).then(|| self.writer.clone());
            for block in file.blocks.iter().filter(|block| block.max >= from && block.min <= to) {
                let (path, file) = (file.path.clone(), writer.clone());
                pieces.push(Piece { path, file, block: block.clone() });
            }
        }
        pieces.sort_by_key(|piece| (piece.block.min, piece.block.max));
        pieces
    }
}
