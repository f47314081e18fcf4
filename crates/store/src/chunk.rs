//! A chunk of a segment file as it is sent: bytes, or in the virtual world their number.

use bytes::Bytes;

use crate::virtual_files::SegmentList;

/// What [`crate::Snapshot::read_chunk`] returns and [`crate::Incoming::write_chunk`] takes.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// The bytes themselves.
    Bytes(Bytes),
    /// A piece of a file of the virtual world. Messages are moved there, not encoded.
    Synthetic(SyntheticChunk),
}

/// A range of a virtual file, with what the whole file holds.
#[derive(Clone, Debug)]
pub struct SyntheticChunk {
    /// The hash that reading all of the file would give.
    pub(crate) xxh3: u64,
    /// The list of segments, where the chunk is of the file that has it.
    pub(crate) segments: Option<SegmentList>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) damaged: bool,
}

impl Chunk {
    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a chunk is never empty but for an empty file")]
    pub fn len(&self) -> u64 {
        match self {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::Synthetic(chunk) => chunk.len,
        }
    }

    /// CRC-32C of the bytes. In the virtual world a number that differs where the bytes would.
    pub fn crc32c(&self) -> u32 {
        match self {
            Chunk::Bytes(bytes) => crc32c::crc32c(bytes),
            Chunk::Synthetic(chunk) => {
                let mut identity = [0; 25];
                identity[..8].copy_from_slice(&chunk.xxh3.to_le_bytes());
                identity[8..16].copy_from_slice(&chunk.offset.to_le_bytes());
                identity[16..24].copy_from_slice(&chunk.len.to_le_bytes());
                identity[24] = u8::from(chunk.damaged);
                crc32c::crc32c(&identity)
            }
        }
    }

    /// The bytes, where there are any.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Chunk::Bytes(bytes) => Some(bytes),
            Chunk::Synthetic(_) => None,
        }
    }

    /// The chunk as it would be with one bit flipped on the way; for faults in experiments.
    pub fn with_a_flipped_bit(self) -> Chunk {
        match self {
            Chunk::Bytes(bytes) => {
                let mut bytes = Vec::from(bytes);
                let middle = bytes.len() / 2;
                if let Some(byte) = bytes.get_mut(middle) {
                    *byte ^= 1;
                }
                Chunk::Bytes(Bytes::from(bytes))
            }
            Chunk::Synthetic(chunk) => {
                Chunk::Synthetic(SyntheticChunk { damaged: !chunk.damaged, ..chunk })
            }
        }
    }
}
