//! Why a shard copy could not be written, read, opened or received.

use std::path::{Path, PathBuf};

use policy::failures::ErrorKind;
use tantivy::TantivyError;
use tantivy::directory::error::OpenWriteError;

/// What every fallible call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong with a shard copy.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{what} {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    /// The disk has no room for what was being written: nothing of it is there, and what was written before still is.
    /// Once there is room, try again.
    #[error("{what} {path}: {NO_SPACE}; make room on the disk, then try again")]
    DiskFull { what: &'static str, path: PathBuf },
    /// An error of the index library.
    #[error("{what} in {path}: {reason}; look at the disk and its space, then open the copy again")]
    Index { what: &'static str, path: PathBuf, reason: String },
    /// A committed file does not have the content that its commit lists.
    #[error(
        "{path} is damaged: its xxh3 is {found:016x}, its commit says {expected:016x}; recover this copy from another"
    )]
    FileDamaged { path: PathBuf, expected: u64, found: u64 },
    /// A committed file has another length than its commit lists, or is gone (`found` is none).
    #[error("{path} should have {expected} bytes and {}; recover this copy from another", match .found { Some(n) => format!("has {n}"), None => "is missing".to_owned() })]
    FileLength { path: PathBuf, expected: u64, found: Option<u64> },
    #[error("{path} is no commit: {reason}; recover this copy from another")]
    CommitDamaged { path: PathBuf, reason: String },
    #[error("{path} has format {found}, this narrows reads up to {known}; use a newer one")]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// A record inside the operation log is damaged, and more records follow it.
    #[error(
        "{path} is damaged at byte {offset}: {reason}; operations behind it cannot be trusted, recover this copy from another"
    )]
    LogDamaged { path: PathBuf, offset: u64, reason: String },
    #[error("{dir} holds no shard copy; create one or recover one into it")]
    NoCommit { dir: PathBuf },
    #[error("{dir} already holds a shard copy; open it, or destroy it first")]
    AlreadyThere { dir: PathBuf },
    #[error("{dir} is open elsewhere; close that one first")]
    InUse { dir: PathBuf },
    /// A write, sync or refresh failed, so that log and index may differ: nothing more is accepted. Whether the
    /// operations of that write are there shows once the copy is open again.
    #[error("{dir} accepts nothing until it is opened again, since this failed: {}", .first.reason)]
    Failed { dir: PathBuf, first: FirstFailure },
    /// A snapshot's file is not what its commit lists; it must not be copied.
    #[error(
        "source file {file} is damaged: its xxh3 is {found:016x}, its commit says {expected:016x}; it is not copied"
    )]
    SourceDamaged { file: String, expected: u64, found: u64 },
    /// A received file is not what its commit lists; it was dropped and can be fetched again.
    #[error(
        "received file {file} is damaged: its xxh3 is {found:016x}, its commit says {expected:016x}; fetch it again"
    )]
    ReceivedDamaged { file: String, expected: u64, found: u64 },
    /// A file was said to be finished, or a copy to be installed, while bytes are missing.
    #[error("{file} has its first {have} of {len} bytes; write the rest first")]
    Incomplete { file: String, have: u64, len: u64 },
    /// A chunk lies outside its file, or the file's number outside the commit.
    #[error("bytes {offset} to {end} of file {file} of {dir}: the commit has no such range")]
    OutOfRange { dir: PathBuf, file: usize, offset: u64, end: u64 },
    /// A commit from elsewhere lists a file name that could lead out of the directory.
    #[error("\"{name}\" is not accepted as the name of a segment file; the sender is wrong")]
    UnsafeName { name: String },
    /// Operations were asked for that the log no longer holds.
    #[error("operations from {from} are gone, the log begins at {oldest}; copy the files instead")]
    OperationsGone {
        from: u64,
        /// First sequence number from which the log is complete.
        oldest: u64,
    },
    #[error(transparent)]
    Search(query::SearchError),
    /// A document of an operation that was already accepted elsewhere does not fit the mapping here.
    #[error("document \"{id}\": {reason}; bring the mapping up to date, then apply it again")]
    Document { id: String, reason: String },
}

/// Why a copy or a log accepts nothing more.
#[derive(Clone, Debug)]
pub struct FirstFailure {
    /// What failed first.
    pub reason: String,
    /// Whether a full disk was the reason.
    pub disk_full: bool,
}

impl FirstFailure {
    /// A failure that no full disk has caused.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        FirstFailure { reason: reason.into(), disk_full: false }
    }

    /// The error of every call from now on.
    pub(crate) fn error(&self, dir: &Path) -> Error {
        Error::Failed { dir: dir.to_owned(), first: self.clone() }
    }
}

impl From<&Error> for FirstFailure {
    fn from(error: &Error) -> Self {
        FirstFailure { reason: error.to_string(), disk_full: error.is_disk_full() }
    }
}

impl Error {
    /// Of a log, at this byte of one of its files.
    pub(crate) fn log_damaged(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Error::LogDamaged { path: path.to_owned(), offset, reason: reason.into() }
    }

    /// By which [`policy::failures`] says what is done.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::DiskFull { .. } => ErrorKind::DiskFull,
            Error::Failed { .. } => ErrorKind::CopyFailed,
            Error::FileDamaged { .. }
            | Error::FileLength { .. }
            | Error::CommitDamaged { .. }
            | Error::LogDamaged { .. }
            | Error::SourceDamaged { .. } => ErrorKind::Damaged,
            Error::ReceivedDamaged { .. } => ErrorKind::ReceivedDamaged,
            // Its last life ends soon.
            Error::InUse { .. } => ErrorKind::Unavailable,
            Error::OperationsGone { .. } => ErrorKind::Gone,
            Error::Document { .. } => ErrorKind::MappingBehind,
            Error::Search(_) => ErrorKind::BadRequest,
            Error::Io { .. }
            | Error::Index { .. }
            | Error::Newer { .. }
            | Error::NoCommit { .. }
            | Error::AlreadyThere { .. }
            | Error::Incomplete { .. }
            | Error::OutOfRange { .. }
            | Error::UnsafeName { .. } => ErrorKind::Other,
        }
    }

    /// Whether a full disk is what is wrong, also where it made a copy fail.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Error::DiskFull { .. } => true,
            Error::Failed { first, .. } => first.disk_full,
            _ => false,
        }
    }
}

/// For `map_err`: an I/O error with what was tried and where.
pub(crate) fn io<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| match means_full_disk(&source) {
        true => Error::DiskFull { what, path: path.to_owned() },
        false => Error::Io { what, path: path.to_owned(), source },
    }
}

/// For `map_err`: an error of the index library in the copy at `dir`.
pub(crate) fn index<'a>(
    what: &'static str,
    dir: &'a Path,
) -> impl FnOnce(TantivyError) -> Error + 'a {
    move |error| {
        let path = dir.to_owned();
        match &error {
            TantivyError::IoError(source)
            | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: source, .. })
                if means_full_disk(source) =>
            {
                Error::DiskFull { what, path }
            }
            // Some errors of its threads are handed on as text alone.
            error => match error.to_string() {
                reason if reason.contains(NO_SPACE) || reason.contains(NO_QUOTA) => {
                    Error::DiskFull { what, path }
                }
                reason => Error::Index { what, path, reason },
            },
        }
    }
}

/// As the system says it; a quota is the disk's in one C library, and just a quota in musl.
const NO_SPACE: &str = "No space left on device";
const NO_QUOTA: &str = "uota exceeded";

/// No room on the disk, or none that this user may take.
pub fn means_full_disk(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tantivy::directory::error::LockError;

    use super::*;

    #[test]
    fn a_full_disk_is_a_kind_of_its_own_wherever_it_shows() {
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        const EIO: i32 = 5;
        let path = Path::new("copy");
        for (number, full) in [(ENOSPC, true), (EDQUOT, true), (EIO, false)] {
            let source = || io::Error::from_raw_os_error(number);
            let all = [
                super::io("append to", path)(source()),
                index("refresh", path)(TantivyError::IoError(Arc::new(source()))),
                index("refresh", path)(
                    OpenWriteError::wrap_io_error(source(), path.to_owned()).into(),
                ),
                index("refresh", path)(TantivyError::InternalError(source().to_string())),
                index("commit", path)(LockError::wrap_io_error(source()).into()),
            ];
            for error in all {
                assert_eq!(matches!(error, Error::DiskFull { .. }), full, "{error}");
            }
        }
        let of_musl = TantivyError::InternalError("Quota exceeded (os error 122)".to_owned());
        assert!(matches!(index("refresh", path)(of_musl), Error::DiskFull { .. }));
    }
}
