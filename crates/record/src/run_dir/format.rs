//! The files of a run: their names, the version of their format, and how one is opened.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of the format that this build writes. Older ones still open. 2 added observations of live clusters, 3
/// what following is like, 4 a first line with the version to `lines.jsonl` and `rows.jsonl`, 5 faults, and what was
/// indexed beside a recovery.
pub const FORMAT: u32 = 5;

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const LINES: &str = "lines.jsonl";
pub(super) const ROWS: &str = "rows.jsonl";

/// Why a run's directory could not be written or read.
#[expect(missing_docs, reason = "each message says what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("{what} {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    /// Written by a newer narrows.
    #[error("{path} has format {found}, this narrows reads up to {FORMAT}; use a newer one")]
    Newer { path: PathBuf, found: u32 },
}

pub(super) fn io<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// What a file says of itself: a field of the manifest, and the first line of the others.
#[derive(Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) format: u32,
}

impl Version {
    /// Refuses the file if it is newer than this build.
    pub(super) fn check(&self, path: &Path) -> Result<(), Error> {
        if self.format <= FORMAT {
            return Ok(());
        }
        Err(Error::Newer { path: path.to_owned(), found: self.format })
    }
}

/// Opens an ordinary file, of so many bytes at most: another may never answer, or have no end.
pub(super) fn open(path: &Path, bytes_max: u64) -> std::io::Result<File> {
    let file = fs::metadata(path)?;
    let why = match file.len() {
        _ if !file.is_file() => "it is no ordinary file".to_owned(),
        bytes if bytes > bytes_max => format!("it has {bytes} bytes, more than {bytes_max}"),
        _ => return File::open(path),
    };
    Err(std::io::Error::new(ErrorKind::InvalidInput, why))
}
