//! The journal of a reception: how many bytes from the start of each file are there, and their hash.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::files;
use crate::Result;
use crate::commit::{Commit, FileMeta};
use crate::error::io;
use crate::frame::{self, Frame};

/// Its name, beside the files that are being received.
pub(super) const JOURNAL: &str = ".journal";
/// No line of the journal is longer: the name of a file that comes has 200 bytes at most, its numbers ten each.
const MAX_NOTE_BYTES: usize = 256;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) meta: FileMeta,
    /// Bytes from the start that are there.
    pub(super) prefix: u64,
    pub(super) prefix_xxh3: u64,
}

/// The newest note of each file that the commit still lists in the same form.
pub(super) fn read_journal(path: &Path, commit: &Commit) -> Result<BTreeMap<Arc<str>, Note>> {
    let mut notes = BTreeMap::new();
    if files::len_of(path)?.is_none() {
        return Ok(notes);
    }
    let bytes = fs::read(path).map_err(io("read", path))?;
    let mut at = 0;
    while at < bytes.len() {
        // One that could not be written, as on a full disk, leaves a hole before those that came after it. A loss of
        // power may leave a long one: at each of its bytes no more is looked at than a note.
        let end = bytes.len().min(at + MAX_NOTE_BYTES);
        let Frame::Whole { payload, next } = frame::read(&bytes[..end], at, |_| false) else {
            at += 1;
            continue;
        };
        if let Ok(note) = postcard::from_bytes::<Note>(payload)
            && commit.files.contains(&note.meta)
        {
            notes.insert(note.meta.name.clone(), note);
        }
        at = next;
    }
    Ok(notes)
}

pub(super) fn put_note(buffer: &mut Vec<u8>, note: &Note) {
    let bytes = postcard::to_stdvec(note).expect("a note is plain data");
    frame::append(buffer, |payload| payload.extend_from_slice(&bytes));
}

pub(super) fn begin_journal(path: &Path, notes: &[Note]) -> Result<(File, u64)> {
    let mut buffer = Vec::new();
    for note in notes.iter().filter(|note| note.prefix > 0) {
        put_note(&mut buffer, note);
    }
    // The journal is never trusted, so it need not be durable.
    let fresh = path.with_extension("new");
    fs::write(&fresh, &buffer).map_err(io("write", &fresh))?;
    fs::rename(&fresh, path).map_err(io("replace", path))?;
    let file = OpenOptions::new().write(true).open(path).map_err(io("open", path))?;
    Ok((file, buffer.len() as u64))
}
