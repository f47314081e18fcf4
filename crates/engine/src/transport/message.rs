//! What nodes ask of each other, and what they answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use query::{FetchRequest, FetchedHit};
use serde::{Deserialize, Serialize};
use store::{Operation, ShardStats, WriteOutcome, WriteRequest};

use super::class::Class;
use super::follow_stats::FollowStats;
use super::operations::ops_bytes;
use super::searching::{hit_bytes, page_bytes, searched_bytes};
use super::{
    Changes, LeaseRequest, OpenPointInTime, PrimaryContext, ReadChanges, RecoveryState,
    RemoteIndex, Result, ScrollPage, SessionKind, SessionOpened, ShardSearch, ShardSearched,
    WireChunk,
};
use crate::state::{ClusterState, Event, FoundCopy, StateDiff};
use policy::retention::Leases;
use policy::selection::ProbeAnswer;

/// A node, as it introduces itself.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    pub name: String,
    pub cluster: String,
    pub transport: String,
    pub http: String,
    /// `node.attr.*`.
    pub attributes: BTreeMap<String, String>,
}

/// What is to be done to a shard copy, by who has it.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShardAction {
    /// Reads one document.
    Get { id: String },
    /// Reads every live document and hashes it.
    Digest,
    /// Says how the copy follows its leader.
    Following,
    /// Says which history the copy has.
    History,
    /// Drops a retention lease.
    RemoveLease { id: String },
    /// Waits until the writes have ended that were begun before the index was closed.
    EndWrites,
    /// Makes what was written visible.
    Refresh,
    /// Commits.
    Flush,
    /// Merges segments down to so many.
    ForceMerge { max_num_segments: usize },
    /// Says what the copy holds, with each segment or without.
    Stats { segments: bool },
    /// Drops what is kept to answer searches sooner: answers to whole requests, and what has no name of its own in the
    /// field.
    ClearCaches { requests: bool, others: bool },
    /// Lists values of a keyword field, those that begin so, in their order.
    Terms { field: String, begin: String, most: usize },
}

/// The answer to a [`ShardAction`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ShardAnswer {
    /// To [`ShardAction::Get`]: version, sequence number, source, `_routing`; none if there is no such document.
    Get(Option<(u64, u64, Bytes, Option<Arc<str>>)>),
    /// To [`ShardAction::Digest`]: documents, and the wrapping sum of their hashes.
    Digest(u64, u64),
    /// To [`ShardAction::Following`]: none where it does not.
    Following(Option<Box<FollowStats>>),
    /// To [`ShardAction::History`].
    History(String),
    /// To [`ShardAction::Refresh`].
    Refreshed(RefreshedCopy),
    /// To the rest but stats.
    Done,
    /// To [`ShardAction::Stats`].
    Stats(Box<ShardStats>),
    /// To [`ShardAction::Terms`].
    Terms(Vec<String>),
}

/// A copy that was refreshed. Whoever asked may have an older state, and not know that the primary has given it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshedCopy {
    /// Which it is.
    pub allocation_id: String,
    /// The copies that have what this one acknowledges, itself among them; none where it is no primary.
    pub counted: Option<Vec<String>>,
}

/// Documents for the primary of a shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write {
    /// Index.
    pub index: String,
    /// Its UUID when the write was routed: an index of the same name that was made later is not meant.
    pub index_uuid: String,
    /// Shard number.
    pub shard: u32,
    /// What to write, in order.
    pub requests: Vec<WriteRequest>,
    /// Whether it was sent before, over a connection that broke: it may have been done, or that one may still come.
    pub resent: bool,
}

/// Operations for another copy.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replicate {
    pub index_uuid: String,
    pub shard: u32,
    pub allocation_id: String,
    pub primary_term: u64,
    #[serde(with = "store::sent")]
    pub ops: Arc<Vec<Operation>>,
    /// What every in-sync copy has.
    pub global_checkpoint: Option<u64>,
    /// Version of the mappings that the operations may need.
    pub mapping_version: u64,
    /// Whether the primary acknowledges what is durable alone: the copy may not know of that setting yet.
    pub sync: bool,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its place in the shard's history.
    pub seq_no: u64,
    /// Version of the document.
    pub version: u64,
    /// Term of the primary.
    pub primary_term: u64,
    /// Created, updated, deleted, not found.
    pub outcome: WriteOutcome,
}

/// How full a node's disk is, and what its copies take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLook {
    /// Bytes of the disk, and those of them that can still be written; none where that is not known.
    pub disk: Option<(u64, u64)>,
    /// The copies on it.
    pub copies: Vec<CopyBytes>,
}

/// What a copy takes on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyBytes {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Bytes of segment files that are there.
    pub here_bytes: u64,
    /// Those that a recovery still brings.
    pub missing_bytes: u64,
}

/// A state on its way from the manager to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Publication {
    /// The state.
    Whole(Arc<ClusterState>),
    /// What changed since the version before.
    Diff {
        /// The change.
        diff: Arc<StateDiff>,
        /// The new state, where messages are moved and not encoded: the nodes of the virtual world share one state
        /// instead of each computing it.
        #[serde(skip)]
        state: Option<Arc<ClusterState>>,
    },
}

impl Publication {
    /// The change to a state.
    pub fn diff(diff: Arc<StateDiff>, state: &Arc<ClusterState>) -> Self {
        Publication::Diff { diff, state: Some(state.clone()) }
    }

    fn wire_bytes(&self) -> u64 {
        match self {
            Publication::Whole(state) => state.wire_bytes(),
            Publication::Diff { diff, .. } => diff.wire_bytes(),
        }
    }
}

/// What a node asks of another.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Answers at once; measures the round trip.
    Ping,
    /// From the manager: how full is your disk?
    DiskLook,
    /// Who are you?
    Hello,
    /// To the manager: I am here, with these copies on my disk.
    Join(Box<NodeRow>, Vec<FoundCopy>),
    /// What have you of the dangling index with this UUID?
    Dangling(String),
    /// From the manager: this is the state now. Refused by a node that lacks the one that it follows.
    Publish(Publication),
    /// From the manager to a present member: are you there, and have you this version of the state or a later one? A
    /// member that missed it asks for the state before it answers.
    FollowerCheck(u64),
    /// To the manager: I am alive. Refused where the manager does not know it.
    Heartbeat(String),
    /// To the manager: this happened; answers with the version once that is published.
    Submit(Box<Event>),
    /// To the manager: what is the state now?
    State,
    /// To the manager: what did you publish last?
    Published,
    /// To the primary.
    Write(Write),
    /// To a replica, from its primary.
    Replicate(Replicate),
    /// To a node that has a copy.
    Shard(String, u32, ShardAction),
    /// The node's stats, as JSON, with the sums over its copies or without: a node may have thousands.
    NodeStats { copies: bool },
    /// The node's recoveries, all or those that go on, with each file or without: a copy may have hundreds.
    Recoveries { active_only: bool, detailed: bool },
    /// To the manager: what came of auto-following, as JSON.
    AutoFollowStats,
    /// To a remote cluster: what is this index?
    RemoteIndex(String),
    /// To a remote cluster: what are your indices? Answered with [`Response::Done`] where nothing has changed.
    RemoteIndices {
        /// Version of the state that the asker knows.
        known_version: Option<u64>,
        /// How long to wait for another.
        wait: Duration,
    },
    /// To a primary: a recovery begins.
    OpenSession {
        index: String,
        shard: u32,
        kind: SessionKind,
        /// Drawn by the target, so that it can ask for chunks before it knows the session's number.
        key: u64,
    },
    /// A chunk of a session that is being opened: number `number` of its files in order, cut to `chunk_bytes`.
    /// Answered with [`Response::Done`] where the files end before it.
    ReadOpening {
        index: String,
        shard: u32,
        /// As in the [`Request::OpenSession`] that is on its way.
        key: u64,
        number: u64,
        /// Size that the files are cut to.
        chunk_bytes: u32,
        /// 0 plain, 1 lz4, 2 zstd.
        compress: u8,
    },
    /// Bytes of a file of a session.
    ReadChunk {
        session: u64,
        /// Number of the file in the commit.
        file: u32,
        offset: u64,
        len: u32,
        /// 0 plain, 1 lz4, 2 zstd.
        compress: u8,
    },
    /// Is this file of the session's source whole? Asked when what arrived was not.
    VerifyFile { session: u64, file: u32 },
    /// Operations of a session's shard.
    ReadOps {
        session: u64,
        /// First sequence number.
        from: u64,
        /// At most so many.
        max_ops: u32,
        /// At most so many bytes, but one operation.
        max_bytes: u64,
    },
    /// To the primary of a leader shard: operations.
    ReadChanges(Box<ReadChanges>),
    /// To the primary of a leader shard: keep operations for a follower, or do so no more.
    Lease(Box<LeaseRequest>),
    /// To a copy, from its primary: the retention leases of the shard.
    Leases { index_uuid: String, shard: u32, primary_term: u64, leases: Leases },
    /// From now on new writes and leases go to the target, too.
    StartTracking(u64),
    /// The target has everything: it counts as in sync.
    Finalize { session: u64, local_checkpoint: Option<u64> },
    /// To the node of a primary that is moved, from the copy that is to take its place and has everything: hand over.
    HandOff { index_uuid: String, shard: u32, allocation_id: String },
    /// The session is over.
    CloseSession(u64),
    /// Searches a copy.
    Search(Box<ShardSearch>),
    /// Reads the documents of hits from a view, and lets it go.
    Fetch {
        context: u64,
        /// Segment and document of each.
        hits: Vec<(u32, u32)>,
        request: Arc<FetchRequest>,
    },
    /// Nothing more is fetched from this view; answers whether it was held.
    FreeContext(u64),
    /// To the node that was asked for a scroll: its next page; it is kept so long for the page after that.
    Scroll { number: u64, keep_alive: Duration },
    /// To the node that was asked for a scroll: it is over. None: all of that node are.
    ClearScroll(Option<u64>),
    /// From another cluster that reaches this one through one node alone: ask the node of your cluster at this address.
    Forward {
        /// Transport address of a node of the cluster.
        to: String,
        /// What the connection to it is for.
        class: Class,
        request: Box<Request>,
        /// How long whoever asks waits.
        limit: Duration,
    },
    /// How full is its search pool, and how long do searches take in such company?
    Probe,
    /// These views are held for a point in time of this name.
    NamePointInTime {
        contexts: Vec<u64>,
        id: String,
        /// When it was made, in milliseconds since 1970.
        created_ms: i64,
    },
    /// For which points in time are views held here?
    PointsInTime,
    /// What do you work on for clients? As JSON, as the rest of these.
    Tasks,
    /// What came of the task of this number, or how far is it?
    Task(u64),
    /// Have these of your tasks end.
    CancelTasks(Vec<u64>),
    /// Give these of your tasks another pace, in requests per second.
    RethrottleTasks(Vec<u64>, f64),
}

/// What a node answers.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Response {
    /// Done.
    Done,
    /// Who I am.
    Hello(Box<NodeRow>),
    /// To [`Request::DiskLook`].
    DiskLook(Box<DiskLook>),
    /// The state that holds now.
    State(Arc<ClusterState>),
    /// The version of the state that holds now.
    Version(u64),
    /// To [`Request::Published`].
    Published {
        /// The last version that every node was sent.
        version: u64,
        /// Whether something is lost since that the manager's disk has no room to store.
        hides_loss: bool,
    },
    /// One result for each request.
    Written(Vec<Result<Written>>),
    /// The replica has it.
    Replicated { local_checkpoint: Option<u64> },
    /// Of a shard action.
    Shard(ShardAnswer),
    /// JSON text.
    Json(String),
    /// The recoveries of a node's copies.
    Recoveries(Vec<RecoveryState>),
    /// What an index is.
    RemoteIndex(Box<RemoteIndex>),
    /// What the indices are, by name, at a version of the state; without those that would make it too long.
    RemoteIndices {
        /// Version of the state.
        version: u64,
        /// UUID of the cluster.
        cluster: String,
        /// Transport addresses of the nodes that are there.
        nodes: Vec<String>,
        /// By name.
        indices: BTreeMap<String, Arc<RemoteIndex>>,
        /// Of those that would make it too long: the uuids.
        others: BTreeMap<String, String>,
    },
    /// A lease was added or renewed, for so long.
    Leased { period: Duration },
    /// A session.
    Session(Box<SessionOpened>),
    /// The primary takes no operations any more; what it knew.
    HandedOff(Box<PrimaryContext>),
    /// A chunk.
    Chunk(Box<WireChunk>),
    /// Operations, sorted.
    Ops {
        /// Ascending.
        #[serde(with = "store::sent")]
        ops: Vec<Operation>,
        /// Version of the source's mappings: the operations may need it.
        mapping_version: u64,
    },
    /// Operations for a follower.
    Changes(Box<Changes>),
    /// A sequence number.
    SeqNo(Option<u64>),
    /// The target gets what is written from now on; the highest sequence number so far, and the leases.
    Tracked { max_seq_no: Option<u64>, leases: Leases },
    /// What a copy found.
    Searched(Box<ShardSearched>),
    /// Documents of hits.
    Fetched(Vec<FetchedHit>),
    /// A page of a scroll.
    Scrolled(Box<ScrollPage>),
    /// So many views were held, and are held no more.
    Freed(u64),
    /// To a probe.
    Probed(ProbeAnswer),
    /// Points in time that views are held for, one for each view.
    PointsInTime(Vec<OpenPointInTime>),
}

impl Request {
    /// Bytes on the wire, about.
    pub(crate) fn wire_bytes(&self) -> u64 {
        const SMALL: u64 = 96;
        match self {
            Request::Write(write) => SMALL + write.requests.iter().map(request_bytes).sum::<u64>(),
            Request::Replicate(sent) => SMALL + ops_bytes(&sent.ops),
            Request::Forward { request, .. } => SMALL + request.wire_bytes(),
            Request::Publish(publication) => SMALL + publication.wire_bytes(),
            Request::Join(_, found) => SMALL + 64 * found.len() as u64,
            _ => SMALL,
        }
    }
}

impl Response {
    /// Bytes on the wire, about.
    pub(crate) fn wire_bytes(&self) -> u64 {
        const SMALL: u64 = 96;
        match self {
            Response::Chunk(chunk) => SMALL + chunk.wire_len,
            Response::Ops { ops, .. } => SMALL + ops_bytes(ops),
            Response::Changes(changes) => SMALL + changes.ops.wire_bytes(),
            Response::Written(results) => SMALL + 32 * results.len() as u64,
            Response::DiskLook(look) => SMALL + 32 * look.copies.len() as u64,
            Response::Json(text) => SMALL + text.len() as u64,
            Response::Recoveries(all) => {
                SMALL + all.iter().map(RecoveryState::wire_bytes).sum::<u64>()
            }
            Response::State(state) => SMALL + state.wire_bytes(),
            Response::Searched(searched) => SMALL + searched_bytes(searched),
            Response::Scrolled(page) => SMALL + page_bytes(page),
            Response::Fetched(hits) => SMALL + hits.iter().map(hit_bytes).sum::<u64>(),
            Response::RemoteIndex(index) => SMALL + index.wire_bytes(),
            Response::RemoteIndices { indices, others, .. } => {
                let bytes = |(name, index): (&String, &Arc<RemoteIndex>)| {
                    name.len() as u64 + index.wire_bytes()
                };
                let others = others.iter().map(|(name, uuid)| (name.len() + uuid.len()) as u64);
                SMALL + indices.iter().map(bytes).sum::<u64>() + others.sum::<u64>()
            }
            Response::Session(session) => {
                SMALL + session.commit.as_ref().map_or(0, |commit| 64 * commit.files.len() as u64)
            }
            _ => SMALL,
        }
    }
}

fn request_bytes(request: &WriteRequest) -> u64 {
    let source = match request {
        // As many lines as it has documents.
        WriteRequest::SyntheticBatch { batch, .. } => batch.source_bytes() + 44 * batch.documents(),
        request => request.source().map_or(0, |source| source.len() as u64),
    };
    24 + (request.id().len() + request.routing().map_or(0, |routing| routing.len())) as u64 + source
}
