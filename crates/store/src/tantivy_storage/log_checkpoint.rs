//! `oplog.ckp`: how far the operation log was synced, after the field's `translog.ckp`.
//!
//! Without it nobody could tell a log that lost its end from one that never had more. It is written in place after each
//! sync of the log and before anyone is told of that, in two slots by turns. It is not synced each time itself: a kill
//! of the process takes nothing of it, and after a loss of power it may ask for less than there is, never for more. It
//! is synced wherever a log file begins or goes.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::files;
use crate::commit::StoredCommit;
use crate::error::{Error, Result, io};

const NAME: &str = "oplog.ckp";
const MAGIC: [u8; 8] = *b"nrwsckp\x02";
const FIELDS: usize = 8;
/// Version 1 had no global checkpoint.
const FIRST_MAGIC: [u8; 8] = *b"nrwsckp\x01";
const FIRST_FIELDS: usize = 7;
const SLOT_BYTES: usize = slot_bytes(FIELDS);
/// Slots lie in sectors of their own, so that one that was being written takes the other along nowhere.
const SLOT_EVERY: u64 = 512;

const fn slot_bytes(fields: usize) -> usize {
    MAGIC.len() + fields * 8 + 4
}

/// How far a log was synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Synced {
    /// The newest file of which something was synced, and how many bytes of it were. None yet: the file may not be
    /// there.
    pub(super) generation: u64,
    pub(super) len: u64,
    pub(super) oldest: u64,
    /// Files with nothing but operations below this may be gone.
    pub(super) floor: u64,
    /// One more than the highest sequence number that was synced.
    pub(super) next_seq_no: u64,
    pub(super) history: u64,
    /// Every copy in sync had everything up to here, as far as this one was told. It says of another copy that ends
    /// before it that it is not what it was.
    pub(super) global_checkpoint: Option<u64>,
}

impl Synced {
    /// Whether it is of the log that belongs to a commit: one that was received begins a log of its own.
    pub(super) fn is_of(&self, stored: &StoredCommit) -> bool {
        self.history == stored.log_history() && self.generation >= stored.log_generation
    }
}

/// What stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Synced(Synced),
    /// Somebody wrote [`ACCEPTED`] into it: the log counts as it is.
    Accepted,
}

/// What an operator writes into the file where it is gone or damaged and no other copy has the operations. The field
/// asks for the same word, and its `elasticsearch-shard remove-corrupted-data` for a confirmation.
pub(super) const ACCEPTED: &str = "accept_data_loss";

/// Why a copy is not opened whose file is gone or damaged, and what can be done.
pub(super) fn unknown_end(what: &str) -> String {
    format!(
        "{what}, and nobody else knows how far the log was synced; put it back, or write {ACCEPTED} into it to go on with \
         the operations that the log still holds; what follows the index is to be made anew then"
    )
}

pub(super) struct CheckpointFile {
    file: File,
    path: PathBuf,
    turn: u64,
}

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn slot(turn: u64, synced: &Synced) -> [u8; SLOT_BYTES] {
    let Synced { generation, len, oldest, floor, next_seq_no, history, .. } = *synced;
    let above_global =
        synced.global_checkpoint.map_or(0, |checkpoint| checkpoint.saturating_add(1));
    let mut bytes = [0; SLOT_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    let fields: [u64; FIELDS] =
        [turn, generation, len, oldest, floor, next_seq_no, history, above_global];
    for (at, field) in fields.into_iter().enumerate() {
        let at = MAGIC.len() + at * 8;
        bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes[..SLOT_BYTES - 4]);
    bytes[SLOT_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn read_slot(bytes: &[u8]) -> Option<(u64, Synced)> {
    let fields = match *bytes.first_chunk::<8>()? {
        MAGIC => FIELDS,
        FIRST_MAGIC => FIRST_FIELDS,
        _ => return None,
    };
    let bytes = bytes.get(..slot_bytes(fields))?;
    let (body, crc) = bytes.split_at(bytes.len() - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return None;
    }
    let field = |at: usize| {
        let at = MAGIC.len() + at * 8;
        u64::from_le_bytes(body[at..at + 8].try_into().expect("eight bytes"))
    };
    let synced = Synced {
        generation: field(1),
        len: field(2),
        oldest: field(3),
        floor: field(4),
        next_seq_no: field(5),
        history: field(6),
        global_checkpoint: if fields == FIELDS { field(7).checked_sub(1) } else { None },
    };
    Some((field(0), synced))
}

pub(super) fn read(dir: &Path) -> Result<Found> {
    let path = path(dir);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(io("read", &path)(error)),
    };
    if bytes.trim_ascii() == ACCEPTED.as_bytes() {
        return Ok(Found::Accepted);
    }
    let second = bytes.get(SLOT_EVERY as usize..).unwrap_or_default();
    let newest = [&bytes[..], second].into_iter().filter_map(read_slot).max_by_key(|slot| slot.0);
    match newest {
        Some((_, synced)) => Ok(Found::Synced(synced)),
        None => Err(Error::log_damaged(&path, 0, unknown_end("nothing in it has its checksum"))),
    }
}

impl CheckpointFile {
    /// Begins the file anew, durably.
    pub(super) fn create(dir: &Path, synced: &Synced) -> Result<Self> {
        let path = path(dir);
        let mut bytes = vec![0; 2 * SLOT_EVERY as usize];
        for turn in 0..2 {
            let at = (turn * SLOT_EVERY) as usize;
            bytes[at..at + SLOT_BYTES].copy_from_slice(&slot(turn, synced));
        }
        files::write_atomically(&path, &bytes)?;
        let file = OpenOptions::new().write(true).open(&path).map_err(io("open", &path))?;
        Ok(CheckpointFile { file, path, turn: 2 })
    }

    pub(super) fn write(&mut self, synced: &Synced) -> Result<()> {
        let at = self.turn % 2 * SLOT_EVERY;
        let written = self.file.write_all_at(&slot(self.turn, synced), at);
        self.turn += 1;
        written.map_err(io("write", &self.path))
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(io("sync", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_first_version_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut slot = FIRST_MAGIC.to_vec();
        for field in [4_u64, 3, 100, 2, 7, 50, 9] {
            slot.extend(field.to_le_bytes());
        }
        slot.extend(crc32c::crc32c(&slot).to_le_bytes());
        slot.resize(2 * SLOT_EVERY as usize, 0);
        fs::write(path(dir.path()), &slot).unwrap();
        let (generation, len, oldest, floor, next_seq_no, history) = (3, 100, 2, 7, 50, 9);
        let global_checkpoint = None;
        let expected =
            Synced { generation, len, oldest, floor, next_seq_no, history, global_checkpoint };
        assert_eq!(read(dir.path()).unwrap(), Found::Synced(expected));
    }

    #[test]
    fn the_newest_slot_counts_and_a_turned_byte_leaves_the_other() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), Found::Nothing);
        let at = |len| Synced {
            generation: 3,
            len,
            next_seq_no: len / 2,
            global_checkpoint: Some(len / 4),
            ..Synced::default()
        };
        let mut file = CheckpointFile::create(dir.path(), &at(10)).unwrap();
        for len in [20, 30, 40] {
            file.write(&at(len)).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Found::Synced(at(len)));
        }
        let path = path(dir.path());
        let sound = fs::read(&path).unwrap();
        for byte in 0..sound.len() {
            let mut turned = sound.clone();
            turned[byte] ^= 0x10;
            fs::write(&path, &turned).unwrap();
            let found = read(dir.path()).unwrap();
            let either = [at(40), at(30)].map(Found::Synced);
            assert!(either.contains(&found), "byte {byte}: {found:?}");
        }
        for len in [0, 1, SLOT_BYTES - 1] {
            fs::write(&path, &sound[..len]).unwrap();
            let said = read(dir.path()).unwrap_err().to_string();
            assert!(said.contains("oplog.ckp") && said.contains(ACCEPTED), "{said}");
        }
        fs::write(&path, format!("{ACCEPTED}\n")).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Found::Accepted);
    }
}
