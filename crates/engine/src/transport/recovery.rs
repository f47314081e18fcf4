//! What a recovery's two sides say to each other: sessions and chunks.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::Commit;

use policy::retention::Leases;

/// Why files are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// A replica of the same cluster; throttled by `indices.recovery.*`.
    Peer {
        /// Allocation id of the copy that recovers.
        allocation_id: String,
        /// What the copy has already: its history, and the first operation that it lacks.
        has: Option<(String, u64)>,
    },
    /// A follower in another cluster; throttled by `ccr.indices.recovery.*`.
    Remote {
        /// The retention lease on the operations after the files, until the follower renews it.
        lease: String,
    },
}

/// A session on a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionOpened {
    /// Its number on that node.
    pub session: u64,
    /// The files; none where operations alone suffice.
    pub commit: Option<Commit>,
    /// First operation that the target needs after the files, or without them.
    pub from_seq_no: u64,
    /// Highest sequence number of the source now.
    pub max_seq_no: Option<u64>,
    /// The source's history.
    pub history_uuid: String,
    /// The shard's retention leases; a copy keeps what its primary keeps.
    pub leases: Leases,
}

/// What a primary that is moved knows, for the copy that takes its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrimaryContext {
    /// Its term, which goes on.
    pub primary_term: u64,
    /// The highest sequence number that it gave.
    pub max_seq_no: Option<u64>,
    /// What every copy in sync has.
    pub global_checkpoint: Option<u64>,
    /// Local checkpoints of the other copies in sync, by allocation id.
    pub checkpoints: BTreeMap<String, Option<u64>>,
    /// The shard's retention leases.
    pub leases: Leases,
    /// The leases of copies that left.
    pub peer_leases: Leases,
    /// Whether following ended while other copies might have had what the primary had not: they come back by files
    /// alone.
    pub replaces_copies: bool,
}

/// Time that a source spent on a chunk, by what it spent it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePhases {
    /// Held back by the source's throttle.
    pub throttle: Duration,
    /// Reading from disk.
    pub disk_read: Duration,
    /// Hashing and compressing.
    pub cpu: Duration,
    /// Waiting for memory.
    pub memory: Duration,
}

/// A chunk under way; its bytes travel in the frame's tail.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireChunk {
    /// The bytes, compressed where `plain_len` is set.
    #[serde(skip, default = "empty_chunk")]
    pub chunk: store::Chunk,
    /// CRC-32C of the plain bytes.
    pub crc32c: u32,
    /// Length before compression; none if not compressed.
    pub plain_len: Option<u64>,
    /// Bytes on the wire.
    pub wire_len: u64,
    /// Where the source's time went.
    pub phases: SourcePhases,
    /// Whether the source's clients suffer.
    pub pressure: bool,
}

fn empty_chunk() -> store::Chunk {
    store::Chunk::Bytes(Bytes::new())
}
