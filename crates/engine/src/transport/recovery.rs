//! What a recovery's two sides say to each other: sessions and chunks.

use std::collections::BTreeMap;

use bytes::Bytes;
use record::Limit;
use serde::{Deserialize, Serialize};
use store::Commit;
use world::{Env, Work};

use policy::retention::Leases;
pub use policy::transfer::accounting::SourcePhases;

/// Why files are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// A replica of the same cluster; throttled by `indices.recovery.*`.
    Peer {
        /// UUID of the index: the source may know it later, and another of its name still.
        index_uuid: String,
        /// Allocation id of the copy that recovers.
        allocation_id: String,
        /// What the copy has already: its history, and the first operation that it lacks.
        has: Option<(String, u64)>,
        /// How many tries of the copy to recover came before this one.
        retries: u64,
    },
    /// A follower in another cluster; throttled by `ccr.indices.recovery.*`.
    Remote {
        /// The retention lease on the operations after the files, until the follower renews it.
        lease: String,
        /// UUID of the index that is followed, which another one of its name may have taken the place of.
        index_uuid: String,
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
    /// The highest sequence number that its term began with.
    pub began_with: Option<u64>,
    /// The highest sequence number that it gave.
    pub max_seq_no: Option<u64>,
    /// What every copy in sync has.
    pub global_checkpoint: Option<u64>,
    /// Of the other copies in sync, by allocation id: the local checkpoint, and the operation that it would read from
    /// if it became the primary of a follower.
    pub copies: BTreeMap<String, (Option<u64>, Option<u64>)>,
    /// The shard's retention leases.
    pub leases: Leases,
    /// The leases of copies that left.
    pub peer_leases: Leases,
    /// Whether other copies may have what the primary has not: where following has ended they come back by files alone.
    pub replaces_copies: bool,
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

/// The checksum of a chunk, on the cores of a node.
pub(crate) async fn checksum(env: &Env, chunk: &store::Chunk) -> u32 {
    let work = Work::Hash { bytes: chunk.len() };
    match chunk.bytes().cloned() {
        Some(bytes) => env.work(work, move || crc32c::crc32c(&bytes)).await,
        None => {
            env.work(work, || ()).await;
            chunk.crc32c()
        }
    }
}

fn empty_chunk() -> store::Chunk {
    store::Chunk::Bytes(Bytes::new())
}

/// How a copy comes, or came, to its node: what `_recovery` says of it, and what narrows adds.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecoveryState {
    pub index: String,
    pub shard: u32,
    /// `type`: `PEER`, `SNAPSHOT`, ...
    pub kind: String,
    /// Its stage, as the field names it.
    pub stage: String,
    /// Whether the primary recovers.
    pub primary: bool,
    /// When it began, in milliseconds since 1970.
    pub began_epoch_ms: u64,
    /// How long it has lasted, in milliseconds.
    pub total_ms: u64,
    pub ended: bool,
    /// The node that is read, or the remote cluster, and its transport address; none where nothing is read.
    pub source: Option<String>,
    pub source_address: Option<String>,
    pub target: String,
    pub target_address: String,
    pub files: RecoveredFiles,
    /// How long they were copied, in milliseconds.
    pub index_ms: u64,
    /// How long the source waited for its rate limit, in milliseconds.
    pub source_throttle_ms: u64,
    /// How long the target did.
    pub target_throttle_ms: u64,
    /// Operations that are to be replayed.
    pub ops_total: u64,
    /// Operations that were.
    pub ops_recovered: u64,
    pub ops_bytes: u64,
    /// How long they were replayed, in milliseconds.
    pub translog_ms: u64,
    /// How long files were verified, in milliseconds.
    pub verify_ms: u64,
    /// What its time was charged to, in nanoseconds; the sum is `elapsed_ns`.
    pub charged_ns: BTreeMap<Limit, u64>,
    /// How long it has lasted, in nanoseconds.
    pub elapsed_ns: u64,
    pub chunk_bytes: u64,
    pub in_flight_bytes: u64,
    /// The most that were.
    pub in_flight_bytes_max: u64,
    /// Connections that carry it now.
    pub connections: u32,
    /// The most that did.
    pub connections_max: u32,
    /// Chunks that came damaged and were fetched again.
    pub refetched_chunks: u64,
    pub retries: u64,
    /// Why it failed last.
    pub failure: Option<String>,
}

/// The segment files of a recovery: their number and their bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecoveredFiles {
    /// All.
    pub count: u64,
    /// Those that were on the node already.
    pub reused: u64,
    /// Those that have come.
    pub recovered: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Bytes that were on the node already.
    pub reused_bytes: u64,
    /// Bytes that have come.
    pub recovered_bytes: u64,
    /// Each: its name, its bytes, and those that are there. Empty unless they were asked for.
    pub details: Vec<(String, u64, u64)>,
}

impl RecoveryState {
    /// Bytes on the wire, about.
    pub(crate) fn wire_bytes(&self) -> u64 {
        let details: usize = self.files.details.iter().map(|(name, ..)| name.len() + 10).sum();
        150 + (self.index.len() + details) as u64
    }
}
