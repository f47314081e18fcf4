//! The operation log: files `oplog-<generation>.log` of framed operations, and `oplog.ckp` ([`super::log_checkpoint`]).
//!
//! A new file begins at every open, at every commit, and every 64 MiB; the one before is synced first, so only
//! the newest file can have a torn end. A file goes once none of its operations is needed, the oldest first. A file's
//! header names the history and says where the file before ended, so that none can be missing or exchanged unnoticed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::files;
use super::log_checkpoint::{self, CheckpointFile, Synced};
use super::log_header::{HEADER_BYTES, Header};
use crate::commit::{FORMAT_WITHOUT_LOG_CHECKPOINT, StoredCommit};
use crate::error::{Error, Result, io};
use crate::frame::{self, Frame};
use crate::{LocalCheckpointTracker, Operation};

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
    /// None in a file of an earlier build.
    header: Option<Header>,
    len: u64,
    ops: u64,
    max: Option<u64>,
    blocks: Vec<Block>,
}

/// All files of one copy's log.
pub(super) struct Log {
    dir: PathBuf,
    history: u64,
    /// Oldest first; the last one is written.
    files: Vec<LogFile>,
    next_seq_no: u64,
    synced: Synced,
    checkpoint: CheckpointFile,
}

/// What a log must hold that is opened.
pub(super) struct Expected {
    /// Log files below this generation belong to another past of the directory.
    generation: u64,
    history: u64,
    /// An earlier build may have written no checkpoint.
    needs_checkpoint: bool,
    /// The operations that are in the commit, and then those that are in the log.
    held: LocalCheckpointTracker,
}

impl Expected {
    pub(super) fn by(stored: &StoredCommit) -> Self {
        let commit = &stored.commit;
        let mut held = LocalCheckpointTracker::new(commit.local_checkpoint, None);
        commit.above_checkpoint.iter().for_each(|range| held.mark_range(range.clone()));
        Expected {
            generation: stored.log_generation,
            history: xxh3_64(commit.history_uuid.as_bytes()),
            needs_checkpoint: stored.format > FORMAT_WITHOUT_LOG_CHECKPOINT,
            held,
        }
    }

    /// What was synced and is nowhere, in words; none if there is nothing.
    fn lost(&self, next_seq_no: u64) -> Option<String> {
        let missing = self.held.missing(0..next_seq_no);
        let words = missing.iter().map(|range| match range.end - range.start {
            1 => range.start.to_string(),
            _ => format!("{} to {}", range.start, range.end - 1),
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("operations {} are missing", words.join(", ")))
    }
}

/// What opening a log found.
pub(super) struct OpenedLog {
    pub(super) log: Log,
    /// How many bytes of a torn end were cut.
    pub(super) torn_bytes: u64,
    /// Set where the log is damaged, but all that it held is in the commit: it holds nothing below.
    pub(super) begins_at: Option<u64>,
}

/// Where the log ended when its sync began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    generation: u64,
    len: u64,
    next_seq_no: u64,
}

/// A block to read, with the file that it is in.
pub(super) struct Piece {
    path: PathBuf,
    file: Arc<File>,
    block: Block,
}

impl LogFile {
    fn new(generation: u64, path: PathBuf, file: File, header: Option<Header>, len: u64) -> Self {
        let file = Arc::new(file);
        LogFile { generation, path, file, header, len, ops: 0, max: None, blocks: Vec::new() }
    }

    fn create(dir: &Path, generation: u64, header: Header) -> Result<Self> {
        let path = path(dir, generation);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(io("create", &path))?;
        file.write_all_at(&header.bytes(), 0).map_err(io("write", &path))?;
        file.sync_all().map_err(io("sync", &path))?;
        files::sync_dir(dir)?;
        Ok(LogFile::new(generation, path, file, Some(header), HEADER_BYTES))
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

    fn damaged(&self, reason: String) -> Error {
        Error::LogDamaged { path: self.path.clone(), offset: self.len, reason }
    }

    /// Reads a file that was written before, up to `synced` bytes at least. The `newest` may have a torn end behind them;
    /// how long the file is with that is returned.
    fn open(
        dir: &Path,
        generation: u64,
        newest: bool,
        synced: u64,
        held: &mut LocalCheckpointTracker,
    ) -> Result<(Self, u64)> {
        let path = path(dir, generation);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(io("open", &path))?;
        let found = bytes.len() as u64;
        // It may have been killed before its header was there.
        if newest && synced == 0 && found <= HEADER_BYTES && Header::read(&path, &bytes).is_err() {
            return Ok((LogFile::new(generation, path, file, None, 0), found));
        }
        let (header, len) = Header::read(&path, &bytes)?;
        let mut log = LogFile::new(generation, path, file, header, len);
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
                    let reason = "the file ends too early, and newer ones follow";
                    return Err(log.damaged(reason.to_owned()));
                }
                Frame::Damaged(reason) => return Err(log.damaged(reason.to_owned())),
                Frame::Whole { payload, next } => {
                    let op = Operation::decode(payload).ok_or_else(|| {
                        log.damaged("a whole record holds no operation".to_owned())
                    })?;
                    held.mark_range(op.places());
                    log.enter(op.seq_no, (next - at) as u64);
                }
            }
        }
    }

    /// Cuts the torn end, if there is one.
    fn cut(&self, found: u64) -> Result<u64> {
        if found > self.len {
            let cut = self.file.set_len(self.len).and_then(|()| self.file.sync_all());
            cut.map_err(io("cut the torn end of", &self.path))?;
        }
        Ok(found - self.len)
    }
}

fn path(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("oplog-{generation}.log"))
}

/// Notes for a copy that is about to begin that its log does: without the note, a log that is gone would be one that has not
/// begun.
pub(super) fn begin(dir: &Path, stored: &StoredCommit) -> Result<()> {
    let generation = stored.log_generation;
    let history = Expected::by(stored).history;
    let synced = Synced { generation, oldest: generation, history, ..Synced::default() };
    CheckpointFile::create(dir, &synced).map(|_| ())
}

/// The files of a log that is opened, and the first damage that was found in them.
struct Reading {
    files: Vec<LogFile>,
    newest: Option<u64>,
    torn: Option<u64>,
    damage: Option<Error>,
}

impl Reading {
    fn note(&mut self, damage: Error) {
        self.damage.get_or_insert(damage);
    }

    fn all(dir: &Path, expected: &mut Expected, synced: Option<&Synced>) -> Result<Reading> {
        let mut generations = files::numbered(dir, "oplog-", ".log")?;
        generations.retain(|generation| *generation >= expected.generation);
        let newest = generations.last().copied();
        let mut reading = Reading { files: Vec::new(), newest, torn: None, damage: None };
        for generation in generations {
            let is_newest = Some(generation) == newest;
            let needed = synced.filter(|synced| synced.generation == generation);
            let needed = needed.map_or(0, |synced| synced.len);
            match LogFile::open(dir, generation, is_newest, needed, &mut expected.held) {
                Ok((file, found)) => {
                    if is_newest {
                        reading.torn = Some(found);
                    }
                    reading.files.push(file);
                }
                Err(error @ Error::LogDamaged { .. }) => reading.note(error),
                Err(error) => return Err(error),
            }
        }
        if let Some(synced) = synced {
            reading.compare(dir, synced, expected);
        }
        Ok(reading)
    }

    /// Whether all files are there that were, and belong here.
    fn compare(&mut self, dir: &Path, synced: &Synced, expected: &Expected) {
        let gone = |generation: u64, len: u64| Error::LogDamaged {
            path: path(dir, generation),
            offset: 0,
            reason: format!("it is gone, or ends before byte {len}, up to which it was written"),
        };
        let oldest = synced.oldest.max(expected.generation);
        let mut needed = vec![(synced.generation, synced.len)];
        needed.extend(self.files.iter().filter_map(|file| Some(file.header?.before)));
        for (generation, len) in needed {
            let is_there = |file: &LogFile| file.generation == generation && file.len >= len;
            if generation >= oldest && len > 0 && !self.files.iter().any(is_there) {
                self.note(gone(generation, len));
            }
        }
        let foreign =
            |file: &&LogFile| file.header.is_some_and(|header| header.history != expected.history);
        if let Some(file) = self.files.iter().find(foreign) {
            let reason = "it belongs to another shard's history".to_owned();
            self.damage = Some(Error::LogDamaged { path: file.path.clone(), offset: 0, reason });
        }
    }
}

impl Log {
    /// Opens the log, drops what is older than what is expected, and begins a new file.
    ///
    /// Fails where operations are gone that were synced, and names them.
    pub(super) fn open(dir: &Path, mut expected: Expected) -> Result<OpenedLog> {
        let before = log_checkpoint::read(dir)?;
        let refused = |reason: &str| {
            let reason = reason.to_owned();
            Error::LogDamaged { path: log_checkpoint::path(dir), offset: 0, reason }
        };
        match &before {
            None if expected.needs_checkpoint => {
                return Err(refused(
                    "it is gone, and nobody else knows how far the log was synced",
                ));
            }
            Some(synced) if synced.history != expected.history => {
                return Err(refused("it belongs to another shard's history"));
            }
            _ => {}
        }
        // A copy whose files came from elsewhere begins a log of its own.
        let before = before.filter(|synced| synced.generation >= expected.generation);
        let committed = expected.held.clone();
        let mut reading = Reading::all(dir, &mut expected, before.as_ref())?;
        if let Some(synced) = &before
            && reading.damage.is_none()
            && committed.checkpoint().map_or(0, |held| held + 1) < synced.floor
        {
            reading.note(refused("the commit is older than the log, which begins behind it"));
        }
        let mut begins_at = None;
        if let Some(damage) = reading.damage.take() {
            let synced = before.map(|synced| synced.next_seq_no.max(synced.floor));
            if synced.is_none_or(|up_to| !committed.missing(0..up_to).is_empty()) {
                let lost = synced.and_then(|up_to| expected.lost(up_to));
                return Err(with_words(damage, lost));
            }
            // All that the log held is in the commit. What is damaged stays where it is until the next one.
            begins_at = Some(committed.max_seq_no().map_or(0, |max| max + 1));
            expected.held = committed;
            reading.files.clear();
        }
        let torn = reading.torn.filter(|_| begins_at.is_none());
        let torn_bytes = match reading.files.last().zip(torn) {
            Some((newest, found)) => newest.cut(found)?,
            None => 0,
        };
        let (kept, empty): (Vec<LogFile>, Vec<LogFile>) =
            reading.files.into_iter().partition(|file| file.ops > 0);
        let begun = before.filter(|synced| synced.len > 0).map(|synced| synced.generation);
        let next = reading.newest.max(begun);
        let generation = next.map_or(expected.generation, |n| expected.generation.max(n + 1));
        let history = expected.history;
        let last = kept.last().map_or((0, 0), |file| (file.generation, file.len));
        let file = LogFile::create(dir, generation, Header { history, before: last })?;
        let oldest = kept.first().map_or(generation, |file| file.generation);
        let next_seq_no = expected.held.max_seq_no().map_or(0, |max| max + 1);
        let floor = before.map_or(0, |synced| synced.floor);
        let synced = Synced { generation, len: HEADER_BYTES, oldest, floor, next_seq_no, history };
        let checkpoint = CheckpointFile::create(dir, &synced)?;
        for older in files::numbered(dir, "oplog-", ".log")? {
            if older < expected.generation || empty.iter().any(|file| file.generation == older) {
                files::remove_file(&path(dir, older))?;
            }
        }
        let files = kept.into_iter().chain([file]).collect();
        let log = Log { dir: dir.to_owned(), history, files, next_seq_no, synced, checkpoint };
        Ok(OpenedLog { log, torn_bytes, begins_at })
    }

    fn newest(&mut self) -> &mut LogFile {
        self.files.last_mut().expect("a log has a file from its opening on")
    }

    /// The file being written, and where it ends; what was appended before the call is in it or synced already.
    pub(super) fn current(&self) -> (Arc<File>, PathBuf, Position) {
        let newest = self.files.last().expect("a log has a file from its opening on");
        let (generation, len) = (newest.generation, newest.len);
        let position = Position { generation, len, next_seq_no: self.next_seq_no };
        (newest.file.clone(), newest.path.clone(), position)
    }

    /// Notes that the log was synced up to a position.
    pub(super) fn note_synced(&mut self, position: Position) -> Result<()> {
        let Position { generation, len, next_seq_no } = position;
        // A file that began meanwhile noted itself.
        if (generation, len) <= (self.synced.generation, self.synced.len) {
            return Ok(());
        }
        self.synced = Synced { generation, len, next_seq_no, ..self.synced };
        self.checkpoint.write(&self.synced)
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
        let next_seq_no = ops.iter().map(|op| op.places().end).max().unwrap_or(0);
        self.next_seq_no = self.next_seq_no.max(next_seq_no);
        Ok(())
    }

    /// Syncs the file being written and begins another.
    pub(super) fn roll(&mut self) -> Result<()> {
        let newest = self.newest();
        if newest.ops == 0 {
            return Ok(());
        }
        newest.file.sync_data().map_err(io("sync", &newest.path))?;
        let (before, generation) = ((newest.generation, newest.len), newest.generation + 1);
        let header = Header { history: self.history, before };
        let next = LogFile::create(&self.dir, generation, header)?;
        self.files.push(next);
        let (len, next_seq_no) = (HEADER_BYTES, self.next_seq_no);
        self.synced = Synced { generation, len, next_seq_no, ..self.synced };
        self.checkpoint.write(&self.synced)?;
        self.checkpoint.sync()
    }

    /// Removes the oldest files, as long as none of their operations is at or above `floor`; never the one being written.
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

/// The same damage, with what it took.
fn with_words(damage: Error, lost: Option<String>) -> Error {
    match (damage, lost) {
        (Error::LogDamaged { path, offset, reason }, Some(lost)) => {
            Error::LogDamaged { path, offset, reason: format!("{reason}; {lost}") }
        }
        (damage, _) => damage,
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

    const HISTORY: &str = "history";

    /// Opens the log of a copy whose commit holds nothing.
    fn open(dir: &Path) -> Result<OpenedLog> {
        open_by(dir, HISTORY, None)
    }

    fn open_by(dir: &Path, history: &str, committed: Option<u64>) -> Result<OpenedLog> {
        let commit = crate::Commit {
            local_checkpoint: committed,
            history_uuid: history.to_owned(),
            ..crate::Commit::default()
        };
        let stored = StoredCommit {
            format: crate::commit::FORMAT,
            commit,
            log_generation: 1,
            complete_from: 0,
            global_checkpoint: None,
        };
        if files::names(dir).unwrap().is_empty() {
            begin(dir, &stored)?;
        }
        Log::open(dir, Expected::by(&stored))
    }

    fn said(opened: Result<OpenedLog>) -> String {
        opened.err().unwrap().to_string()
    }

    fn sync(log: &mut Log) {
        let (file, _, position) = log.current();
        file.sync_data().unwrap();
        log.note_synced(position).unwrap();
    }

    fn put(log: &mut Log, ops: &[Operation]) {
        let bytes = ops.iter().map(Operation::encoded_bytes).sum();
        log.append(ops, bytes).map_err(|(error, _)| error).unwrap();
    }

    #[test]
    fn gives_back_in_order_what_came_out_of_order_and_twice() {
        let dir = tempfile::tempdir().unwrap();
        let OpenedLog { mut log, torn_bytes, .. } = open(dir.path()).unwrap();
        assert_eq!(torn_bytes, 0);
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
        let OpenedLog { log, torn_bytes, .. } = open(dir.path()).unwrap();
        assert_eq!((torn_bytes, log.size().0), (0, 3100));
        let all = 0..=u64::MAX;
        let all = read(&log.pieces(&all), &all, usize::MAX, usize::MAX).unwrap();
        let seq_nos: Vec<u64> = all.iter().map(|op| op.seq_no).collect();
        assert_eq!(seq_nos, (0..3000).collect::<Vec<_>>());
    }

    #[test]
    fn trims_whole_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path()).unwrap().log;
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
        assert_eq!(files::names(dir.path()).unwrap(), ["oplog-3.log", "oplog.ckp"]);
    }

    #[test]
    fn cuts_a_torn_end_and_names_other_damage() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path()).unwrap().log;
        put(&mut log, &[op(0, 10), op(1, 10), op(2, 10)]);
        drop(log);
        let path = dir.path().join("oplog-1.log");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let OpenedLog { log, torn_bytes, .. } = open(dir.path()).unwrap();
        assert_eq!((log.size().0, torn_bytes), (2, op(2, 10).encoded_bytes() - 3));
        drop(log);
        // The cut file is no longer the newest: it must now be whole.
        let mut flipped = whole.clone();
        flipped[HEADER_BYTES as usize + 12] ^= 1;
        fs::write(&path, &flipped).unwrap();
        let error = open(dir.path()).err().unwrap();
        assert!(matches!(&error, Error::LogDamaged { offset: HEADER_BYTES, .. }), "{error}");
        assert!(error.to_string().contains("oplog-1.log"), "{error}");
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let error = said(open(dir.path()));
        assert!(error.contains("newer ones follow"), "{error}");
    }

    /// A log of three files: operations 0 to 9, 10 to 19, and 20 to 29, of which the last five were not synced.
    fn three_files(dir: &Path) {
        let mut log = open(dir).unwrap().log;
        for from in [0, 10, 20] {
            put(&mut log, &(from..from + 5).map(|n| op(n, 10)).collect::<Vec<_>>());
            sync(&mut log);
            put(&mut log, &(from + 5..from + 10).map(|n| op(n, 10)).collect::<Vec<_>>());
            if from < 20 {
                log.roll().unwrap();
            }
        }
    }

    #[test]
    fn what_was_synced_and_is_gone_is_named() {
        let record = op(20, 10).encoded_bytes();
        let part = |records: u64| Some(HEADER_BYTES + records * record + 3);
        for (file, keep, words) in [
            ("oplog-1.log", None, Some("operations 0 to 9 are missing")),
            ("oplog-2.log", None, Some("operations 10 to 19 are missing")),
            ("oplog-3.log", None, Some("operations 20 to 24 are missing")),
            ("oplog-1.log", Some(0), Some("operations 0 to 9 are missing")),
            ("oplog-3.log", Some(0), Some("operations 20 to 24 are missing")),
            ("oplog-3.log", Some(20), Some("operations 20 to 24 are missing")),
            ("oplog-3.log", Some(HEADER_BYTES), Some("operations 20 to 24 are missing")),
            ("oplog-3.log", part(2), Some("operations 22 to 24 are missing")),
            ("oplog-3.log", part(7), None),
            ("oplog-2.log", part(7), Some("operations 17 to 19 are missing")),
            ("oplog.ckp", None, Some("nobody else knows how far")),
            ("oplog.ckp", Some(0), Some("nobody else knows how far")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            three_files(dir.path());
            let path = dir.path().join(file);
            match keep {
                None => fs::remove_file(&path).unwrap(),
                Some(len) => {
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    file.set_len(len).unwrap();
                }
            }
            for _ in 0..2 {
                match (open(dir.path()), words) {
                    (Ok(opened), None) => assert!(opened.log.size().0 >= 25, "{file} {keep:?}"),
                    (Err(error), Some(words)) => {
                        let error = error.to_string();
                        let by_name = error.contains(file) && error.contains(words);
                        assert!(by_name, "{file} {keep:?}: {error}");
                    }
                    (opened, _) => panic!("{file} {keep:?}: {:?}", opened.map(|o| o.log.size())),
                }
            }
        }
    }

    #[test]
    fn all_files_gone_is_no_log_that_has_not_begun() {
        let dir = tempfile::tempdir().unwrap();
        three_files(dir.path());
        for name in ["oplog-1.log", "oplog-2.log", "oplog-3.log"] {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
        let error = said(open(dir.path()));
        assert!(error.contains("operations 0 to 24 are missing"), "{error}");
        // What is in the commit is not lost with the log.
        let opened = open_by(dir.path(), HISTORY, Some(24)).unwrap();
        assert_eq!((opened.begins_at, opened.log.size().0), (Some(25), 0));
        drop(opened);
        let opened = open_by(dir.path(), HISTORY, Some(24)).unwrap();
        assert_eq!(opened.begins_at, None, "the log has begun anew");
    }

    #[test]
    fn an_exchanged_log_and_an_older_commit_are_refused() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        three_files(dir.path());
        let mut log = open_by(other.path(), "another", None).unwrap().log;
        put(&mut log, &(0..100).map(|n| op(n, 10)).collect::<Vec<_>>());
        sync(&mut log);
        drop(log);
        let exchanged = |name: &str| {
            fs::copy(other.path().join(name), dir.path().join(name)).unwrap();
            let error = said(open(dir.path()));
            assert!(error.contains(name) && error.contains("another shard"), "{error}");
        };
        exchanged("oplog-1.log");
        exchanged("oplog.ckp");
        let dir = tempfile::tempdir().unwrap();
        three_files(dir.path());
        let mut log = open_by(dir.path(), HISTORY, Some(24)).unwrap().log;
        log.roll().unwrap();
        log.trim(20).unwrap();
        drop(log);
        assert!(open_by(dir.path(), HISTORY, Some(24)).is_ok());
        let error = said(open_by(dir.path(), HISTORY, Some(9)));
        assert!(error.contains("older than the log"), "{error}");
        assert!(error.contains("operations 10 to 19 are missing"), "{error}");
    }
}
