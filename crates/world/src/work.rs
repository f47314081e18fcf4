//! Work that occupies a disk or a core, by what it does.

/// A compression algorithm of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Codec {
    /// LZ4 block format.
    Lz4,
    /// Zstandard, level 1.
    Zstd,
}

/// A piece of work, with the quantities that its cost depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads bytes from the host's disk.
    DiskRead {
        /// How many.
        bytes: u64,
    },
    /// Writes bytes to the host's disk.
    DiskWrite {
        /// How many.
        bytes: u64,
    },
    /// Makes earlier writes durable.
    DiskSync,
    /// Computes a checksum.
    Hash {
        /// How many bytes.
        bytes: u64,
    },
    /// Copies memory.
    Copy {
        /// How many bytes.
        bytes: u64,
    },
    /// Compresses.
    Compress {
        /// Bytes before compression.
        bytes: u64,
        /// How.
        codec: Codec,
    },
    /// Decompresses.
    Decompress {
        /// Bytes after decompression.
        bytes: u64,
        /// How.
        codec: Codec,
    },
    /// Indexes documents.
    Index {
        /// How many documents.
        documents: u64,
        /// Bytes of their sources.
        bytes: u64,
    },
    /// Parses JSON.
    Parse {
        /// How many bytes.
        bytes: u64,
    },
    /// Searches documents.
    Search {
        /// How many documents are looked at.
        documents: u64,
        /// Bytes that are read for it.
        bytes: u64,
    },
    /// Takes packets of a stream in: reading the connection, decoding.
    ReceivePackets {
        /// How often the connection was read.
        reads: u64,
        /// How many packets came.
        packets: u64,
    },
    /// Takes versions of documents into a bucket.
    ApplyItems {
        /// How many.
        items: u64,
    },
    /// Makes packets of a stream and sends them.
    SendPackets {
        /// How many.
        packets: u64,
    },
    /// Decodes packets of a stream and passes each on by itself.
    RelayPackets {
        /// How many.
        packets: u64,
    },
}
