//! The operation log is opened: what its commit expects of it, what is there, and what a crash or damage took.

use std::cmp::Ordering;
use std::path::Path;

use super::files;
use super::log::Log;
use super::log_checkpoint::{self, CheckpointFile, Found, Synced};
use super::log_file::{LogFile, path};
use super::log_header::{HEADER_BYTES, Header};
use crate::checkpoint::LocalCheckpointTracker;
use crate::commit::{FORMAT_WITHOUT_LOG_CHECKPOINT, StoredCommit};
use crate::error::{Error, Result};

/// What a log must hold that is opened.
pub(super) struct Expected {
    /// Log files below this generation belong to another past of the directory.
    generation: u64,
    history: u64,
    /// An earlier build may have written no checkpoint.
    needs_checkpoint: bool,
    /// A log of its own begins with the files that it received.
    is_received: bool,
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
            history: stored.log_history(),
            needs_checkpoint: stored.format > FORMAT_WITHOUT_LOG_CHECKPOINT,
            is_received: stored.is_received,
            held,
        }
    }

    /// The log as its files are, where nobody knows its end: all that is required is that they follow on each other.
    fn whatever_is_there(&self, dir: &Path) -> Result<Synced> {
        let generations = files::numbered(dir, "oplog-", ".log")?;
        let oldest = generations.into_iter().find(|generation| *generation >= self.generation);
        let oldest = oldest.unwrap_or(self.generation);
        let (generation, history) = (self.generation, self.history);
        Ok(Synced { generation, oldest, history, ..Synced::default() })
    }

    /// The last operation of a commit that a checkpoint does not reach: a flush notes how far the log goes before it
    /// makes the commit.
    fn beyond(&self, synced: &Synced) -> Option<u64> {
        self.held.max_seq_no().filter(|max| !self.is_received && synced.next_seq_no <= *max)
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

pub(super) struct OpenedLog {
    pub(super) log: Log,
    /// How many bytes of a torn end were cut.
    pub(super) torn_bytes: u64,
    /// Set where the log is damaged, but all that it held is in the commit: it holds nothing below.
    pub(super) begins_at: Option<u64>,
}

/// Notes for a copy that is about to begin that its log does: without the note, a log that is gone would be one that
/// has not begun.
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
        // What an earlier open found damaged, and needed no more, lies below the oldest.
        let oldest = synced.map_or(0, |synced| synced.oldest).max(expected.generation);
        generations.retain(|generation| *generation >= oldest);
        let newest = generations.last().copied();
        let mut reading = Reading { files: Vec::new(), newest, torn: None, damage: None };
        for generation in generations {
            let is_newest = Some(generation) == newest;
            let needed = synced.filter(|synced| synced.generation == generation);
            let needed = needed.map_or(0, |synced| synced.len);
            let is_beyond = synced.is_some_and(|synced| generation > synced.generation);
            let place = (is_newest, is_beyond);
            match LogFile::open(dir, generation, place, needed, &mut expected.held) {
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

    /// A file that began after a checkpoint was written, and has operations: the next checkpoint is written before the
    /// first of them.
    fn newer_than(&self, synced: &Synced) -> Option<&Path> {
        let is_newer = |file: &&LogFile| file.generation > synced.generation && file.ops > 0;
        self.files.iter().find(is_newer).map(|file| file.path.as_path())
    }

    /// Whether all files are there that were, and belong here.
    fn compare(&mut self, dir: &Path, synced: &Synced, expected: &Expected) {
        let oldest = synced.oldest.max(expected.generation);
        let mut needed = vec![(synced.generation, synced.len)];
        needed.extend(self.files.iter().filter_map(|file| Some(file.header?.before)));
        for (generation, len) in needed {
            let is_there = |file: &LogFile| file.generation == generation && file.len >= len;
            if generation >= oldest && len > 0 && !self.files.iter().any(is_there) {
                let reason =
                    format!("it is gone, or ends before byte {len}, up to which it was written");
                self.note(Error::log_damaged(&path(dir, generation), 0, reason));
            }
        }
        let foreign =
            |file: &&LogFile| file.header.is_some_and(|header| header.history != expected.history);
        if let Some(file) = self.files.iter().find(foreign) {
            let reason = "it belongs to another shard's history";
            self.damage = Some(Error::log_damaged(&file.path, 0, reason));
        }
    }
}

/// Opens the log, drops what is older than what is expected, and begins a new file.
///
/// Fails where operations are gone that were synced, and names them.
pub(super) fn open(dir: &Path, mut expected: Expected) -> Result<OpenedLog> {
    let refused = |reason: &str| Error::log_damaged(&log_checkpoint::path(dir), 0, reason);
    let noted = log_checkpoint::read(dir)?;
    let before = match noted {
        Found::Nothing if expected.needs_checkpoint => {
            return Err(refused(&log_checkpoint::unknown_end("it is gone")));
        }
        Found::Synced(synced) if synced.history != expected.history => {
            return Err(refused("it belongs to another shard's history"));
        }
        Found::Synced(synced) => match expected.beyond(&synced) {
            Some(last) => {
                let older = format!("it is older than the commit, which has operation {last}");
                return Err(refused(&log_checkpoint::unknown_end(&older)));
            }
            None => Some(synced),
        },
        Found::Nothing => None,
        Found::Accepted => Some(expected.whatever_is_there(dir)?),
    };
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
        let is_unknown = noted == Found::Accepted;
        if !is_unknown && let Some(newer) = before.and_then(|synced| reading.newer_than(&synced)) {
            let older = format!("it is older than {}", newer.display());
            return Err(refused(&log_checkpoint::unknown_end(&older)));
        }
        // Whole records are never thrown away that the commit does not have.
        let holds_more = expected.held != committed;
        let is_in_commit = synced.is_some_and(|up_to| committed.missing(0..up_to).is_empty());
        if is_unknown || holds_more || !is_in_commit {
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
    // Those without a header, before the checkpoint goes beyond them: from then on they would be damaged.
    for file in empty.iter().filter(|file| file.len == 0) {
        files::remove_file(&file.path)?;
    }
    if let Some(newest) = kept.last() {
        let noted = before.map_or((0, 0), |synced| (synced.generation, synced.len));
        let synced = match noted.0.cmp(&newest.generation) {
            Ordering::Less => 0,
            Ordering::Equal => noted.1,
            // The next one began once it was synced.
            Ordering::Greater => newest.len,
        };
        newest.make_durable(synced)?;
    }
    let begun = before.filter(|synced| synced.len > 0).map(|synced| synced.generation);
    let next = reading.newest.max(begun);
    let generation = next.map_or(expected.generation, |n| expected.generation.max(n + 1));
    let history = expected.history;
    let last = kept.last().map_or((0, 0), |file| (file.generation, file.len));
    let (file, writer) = LogFile::create(dir, generation, Header { history, before: last })?;
    let oldest = kept.first().map_or(generation, |file| file.generation);
    let next_seq_no = expected.held.max_seq_no().map_or(0, |max| max + 1);
    let (len, floor) = (HEADER_BYTES, before.map_or(0, |synced| synced.floor));
    let global_checkpoint = before.and_then(|synced| synced.global_checkpoint);
    let synced = Synced { generation, len, oldest, floor, next_seq_no, history, global_checkpoint };
    let checkpoint = CheckpointFile::create(dir, &synced)?;
    for older in files::numbered(dir, "oplog-", ".log")? {
        if older < expected.generation || empty.iter().any(|file| file.generation == older) {
            files::remove_file(&path(dir, older))?;
        }
    }
    let files = kept.into_iter().chain([file]).collect();
    let log = Log::of(dir, files, writer, synced, checkpoint);
    Ok(OpenedLog { log, torn_bytes, begins_at })
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

#[cfg(test)]
mod tests;
