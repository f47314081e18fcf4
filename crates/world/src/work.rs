//! Work that occupies a disk or a core, by what it does; and what it costs in the virtual world.

use std::time::Duration;

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
        /// Over how many bytes.
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
}

impl Work {
    /// Whether a core does it; otherwise the disk does.
    pub fn on_core(self) -> bool {
        !matches!(self, Work::DiskRead { .. } | Work::DiskWrite { .. } | Work::DiskSync)
    }
}

/// What work costs in the virtual world.
///
/// The defaults are those of one core and the disk of the 2-core machine whose limits
/// `docs/benchmarks.md` gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Cores of a host.
    pub cores: usize,
    /// Sequential reads.
    pub disk_read_bytes_per_s: f64,
    /// Sequential writes.
    pub disk_write_bytes_per_s: f64,
    /// One operation of the disk.
    pub disk_seek: Duration,
    /// One sync.
    pub disk_sync: Duration,
    /// Checksums.
    pub hash_bytes_per_s: f64,
    /// Copies of memory.
    pub copy_bytes_per_s: f64,
    /// LZ4, compressing.
    pub lz4_bytes_per_s: f64,
    /// Zstandard, compressing.
    pub zstd_bytes_per_s: f64,
    /// Decompressing, as a multiple of compressing.
    pub decompress_speedup: f64,
    /// Indexing, for each document.
    pub index_document: Duration,
    /// Indexing, for the bytes of the sources.
    pub index_bytes_per_s: f64,
    /// Parsing JSON.
    pub parse_bytes_per_s: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            cores: 4,
            disk_read_bytes_per_s: 2.0e9,
            disk_write_bytes_per_s: 2.0e9,
            disk_seek: Duration::from_micros(20),
            disk_sync: Duration::from_micros(110),
            hash_bytes_per_s: 10.0e9,
            copy_bytes_per_s: 9.0e9,
            lz4_bytes_per_s: 1.1e9,
            zstd_bytes_per_s: 0.7e9,
            decompress_speedup: 3.0,
            index_document: Duration::from_micros(3),
            index_bytes_per_s: 100.0e6,
            parse_bytes_per_s: 400.0e6,
        }
    }
}

impl Costs {
    /// How long the disk or a core is occupied by `work`.
    pub fn of(&self, work: Work) -> Duration {
        let at = |bytes: u64, rate: f64| Duration::from_secs_f64(bytes as f64 / rate);
        let codec = |codec| match codec {
            Codec::Lz4 => self.lz4_bytes_per_s,
            Codec::Zstd => self.zstd_bytes_per_s,
        };
        match work {
            Work::DiskRead { bytes } => self.disk_seek + at(bytes, self.disk_read_bytes_per_s),
            Work::DiskWrite { bytes } => self.disk_seek + at(bytes, self.disk_write_bytes_per_s),
            Work::DiskSync => self.disk_sync,
            Work::Hash { bytes } => at(bytes, self.hash_bytes_per_s),
            Work::Copy { bytes } => at(bytes, self.copy_bytes_per_s),
            Work::Compress { bytes, codec: c } => at(bytes, codec(c)),
            Work::Decompress { bytes, codec: c } => at(bytes, codec(c) * self.decompress_speedup),
            Work::Index { documents, bytes } => {
                self.index_document * u32::try_from(documents).unwrap_or(u32::MAX)
                    + at(bytes, self.index_bytes_per_s)
            }
            Work::Parse { bytes } => at(bytes, self.parse_bytes_per_s),
        }
    }
}
