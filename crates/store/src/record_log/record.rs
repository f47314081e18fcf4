//! What a log of records holds, and where.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::frame::framed_bytes;

/// As the operation log's: `index.translog.generation_threshold_size`.
pub(super) const GENERATION_BYTES: u32 = 64 << 20;

/// What a log holds.
pub trait Record: Clone + Send + 'static {
    /// Bytes of the encoding.
    fn payload_bytes(&self) -> usize;
    /// Appends the encoding; it is never empty.
    fn encode(&self, buffer: &mut Vec<u8>);
    /// Reads the encoding; none if `payload` is none.
    fn decode(payload: &[u8]) -> Option<Self>;
    /// Whether `payload` could be a record, judged by its first bytes: asked behind a damaged record.
    fn plausible(payload: &[u8]) -> bool;
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Its file.
    pub generation: u32,
    /// Its first byte there, or its number in the virtual world.
    pub(super) offset: u32,
    /// Bytes that it takes.
    pub bytes: u32,
}

/// Bytes that a record takes in the log.
pub(super) fn bytes_of<R: Record>(record: &R) -> u32 {
    u32::try_from(framed_bytes(record.payload_bytes())).unwrap_or(u32::MAX)
}

/// A record was asked for of a file that is not there.
pub(super) fn gone(dir: &Path, generation: u32) -> Error {
    let reason = "a record was asked for of a file that is not there";
    Error::log_damaged(&path(dir, generation), 0, reason)
}

pub(super) fn path(dir: &Path, generation: u32) -> PathBuf {
    dir.join(format!("records-{generation}.log"))
}
