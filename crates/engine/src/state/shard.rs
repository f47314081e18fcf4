//! Where the copies of a shard are, and which of them are in sync.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A copy that failed this often in a row is not placed again (`index.allocation.max_retries`).
pub const MAX_RETRIES: u32 = 5;

/// Where a copy gets its documents from.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoverySource {
    /// Nowhere: a new primary.
    EmptyStore,
    /// An in-sync copy on the node's own disk.
    ExistingStore,
    /// The primary.
    Peer { from_node: String },
    /// A shard of another cluster: a new primary of a follower.
    Remote { cluster: String, index: String, shard: u32 },
}

impl RecoverySource {
    /// The node that it recovers from; none unless that is a peer.
    pub(super) fn peer(&self) -> Option<&str> {
        match self {
            RecoverySource::Peer { from_node } => Some(from_node),
            _ => None,
        }
    }

    /// The `type` that `_recovery` shows. From remote it is `SNAPSHOT`, as in Elasticsearch.
    pub fn kind(&self) -> &'static str {
        match self {
            RecoverySource::EmptyStore => "EMPTY_STORE",
            RecoverySource::ExistingStore => "EXISTING_STORE",
            RecoverySource::Peer { .. } => "PEER",
            RecoverySource::Remote { .. } => "SNAPSHOT",
        }
    }
}

/// Why a copy is on no node.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnassignedReason {
    IndexCreated,
    ReplicaAdded,
    NodeLeft,
    ClusterRecovered,
    /// It failed: see [`ShardCopy::last_failure`].
    AllocationFailed,
    /// The primary that it recovered from was lost.
    PrimaryFailed,
    /// The primary took it out of sync, as it missed a write.
    OutOfSync,
    /// It was a dangling index, which was imported.
    DanglingIndexImported,
    /// A follower's shard recovers from its leader again.
    ExistingIndexRestored,
    /// It recovered from a primary that was moved meanwhile: it begins anew.
    Reinitialized,
    /// `POST _cluster/reroute` with `cancel`.
    RerouteCancelled,
    /// A node came that has it without copying files.
    ReallocatedReplica,
}

/// What a copy is doing.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyState {
    /// On no node, why and since when.
    Unassigned { reason: UnassignedReason, at_ms: u64 },
    /// On its node, recovering.
    Initializing { recovery: RecoverySource },
    /// On its node, complete; with a [`ShardCopy::target`] it is being moved, and in use until that is started.
    Started,
}

/// A copy of a shard.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCopy {
    /// Names one life of this copy: a fresh one each time that it is placed, except that a primary
    /// from a disk keeps the id found there. While unassigned: the id it had last.
    pub allocation_id: String,
    pub node: Option<String>,
    pub primary: bool,
    pub state: CopyState,
    /// Whether the copy with this id has every acknowledged write: as in [`IndexShardRoutingTable::in_sync`].
    pub in_sync: bool,
    /// How often it failed since it was started last.
    pub failures: u32,
    pub last_failure: Option<String>,
    /// Whether that was a disk without room.
    #[serde(default)]
    pub disk_was_full: bool,
    /// Where it is being moved to: a copy that recovers, and takes its place once it is started.
    #[serde(default)]
    pub target: Option<Box<ShardCopy>>,
    /// On a target: the node that it comes from.
    #[serde(default)]
    pub relocating_from: Option<String>,
    /// How often a move of it failed in a row.
    #[serde(default)]
    pub failed_relocations: u32,
}

impl ShardCopy {
    /// On no node.
    pub(super) fn new(id: String, primary: bool, reason: UnassignedReason, at_ms: u64) -> Self {
        ShardCopy::of(id, primary, CopyState::Unassigned { reason, at_ms })
    }

    /// In a state, on no node yet, and nothing has happened to it.
    pub(super) fn of(allocation_id: String, primary: bool, state: CopyState) -> Self {
        ShardCopy {
            allocation_id,
            node: None,
            primary,
            state,
            in_sync: false,
            failures: 0,
            last_failure: None,
            disk_was_full: false,
            target: None,
            relocating_from: None,
            failed_relocations: 0,
        }
    }

    fn target(&self) -> Option<&ShardCopy> {
        self.target.as_deref()
    }

    /// Whether it is being moved: `RELOCATING`.
    pub fn is_relocating(&self) -> bool {
        self.target.is_some()
    }

    /// Whether it is where another copy is being moved to.
    pub fn is_target(&self) -> bool {
        self.relocating_from.is_some()
    }

    /// The node that it is moved to, or as a target comes from.
    pub fn relocating_node(&self) -> Option<&str> {
        let to = self.target.as_ref().and_then(|target| target.node.as_deref());
        to.or(self.relocating_from.as_deref())
    }

    /// Whether it takes writes as the primary once it is started. The target of a primary does not before it has its
    /// place.
    pub(crate) fn acts_as_primary(&self) -> bool {
        self.primary && !self.is_target()
    }

    /// Whether it was given up for want of room on a disk. The manager looks for room from time to time.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.disk_was_full && self.failures >= MAX_RETRIES
    }

    /// Why it was given up; none where it is tried again by itself, as one is that waits for room.
    pub fn given_up(&self) -> Option<&str> {
        let is_given_up = self.failures >= MAX_RETRIES && !self.disk_was_full;
        self.last_failure.as_deref().filter(|_| is_given_up)
    }

    /// Whether it is on a node.
    pub fn is_assigned(&self) -> bool {
        self.node.is_some()
    }

    /// Whether it is complete and in use.
    pub fn is_started(&self) -> bool {
        matches!(self.state, CopyState::Started)
    }

    /// Where it recovers from; none unless it is initializing.
    pub fn recovery(&self) -> Option<&RecoverySource> {
        match &self.state {
            CopyState::Initializing { recovery } => Some(recovery),
            _ => None,
        }
    }

    /// Whether it is on this node.
    pub fn is_on(&self, node: &str) -> bool {
        self.node.as_deref() == Some(node)
    }
}

/// A shard: its copies, one of them the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexShardRoutingTable {
    /// Grows by one whenever a primary is lost that was started, or that opened what one had left: what an older one
    /// says is refused.
    pub primary_term: u64,
    /// Ids of the copies that have every acknowledged write, also of those on nodes that left. Empty
    /// until the first primary is started, never again after.
    pub in_sync: BTreeSet<String>,
    /// One primary and the replicas, in no order that means anything. Where one is being moved to stands with it.
    pub copies: Vec<ShardCopy>,
}

impl IndexShardRoutingTable {
    /// The primary, assigned or not.
    ///
    /// # Panics
    /// If there is none, which the manager never lets happen.
    pub fn primary(&self) -> &ShardCopy {
        self.copies.iter().find(|copy| copy.primary).expect("a shard has one primary")
    }

    /// The primary, if it is started.
    pub fn started_primary(&self) -> Option<&ShardCopy> {
        Some(self.primary()).filter(|primary| primary.is_started())
    }

    /// Every replica, assigned or not.
    pub fn replicas(&self) -> impl Iterator<Item = &ShardCopy> {
        self.copies.iter().filter(|copy| !copy.primary)
    }

    /// The copies on a node, whatever they are doing, and the targets of those that are moved. A primary sends writes
    /// to these.
    pub fn assigned(&self) -> impl Iterator<Item = &ShardCopy> {
        let with_target = |copy| std::iter::once(copy).chain(ShardCopy::target(copy));
        self.copies.iter().flat_map(with_target).filter(|copy| copy.is_assigned())
    }

    /// The copy on a node, also where it is a target.
    pub fn on_node(&self, node: &str) -> Option<&ShardCopy> {
        self.assigned().find(|copy| copy.is_on(node))
    }

    /// In-sync ids whose copy is on no node. A primary has each taken out of sync before it
    /// acknowledges its next write.
    pub(crate) fn missing_in_sync(&self) -> impl Iterator<Item = &str> {
        let assigned = |id: &str| self.assigned().any(|copy| copy.allocation_id == id);
        self.in_sync.iter().map(String::as_str).filter(move |id| !assigned(id))
    }

    pub(crate) fn was_started(&self) -> bool {
        !self.in_sync.is_empty()
    }

    /// Where the assigned copy with this id stands in [`IndexShardRoutingTable::copies`].
    pub(super) fn position(&self, allocation_id: &str) -> Option<usize> {
        self.copies.iter().position(|c| c.is_assigned() && c.allocation_id == allocation_id)
    }

    /// Where the copy stands whose target has this id.
    pub(super) fn position_of_target(&self, allocation_id: &str) -> Option<usize> {
        let has =
            |copy: &ShardCopy| copy.target().is_some_and(|t| t.allocation_id == allocation_id);
        self.copies.iter().position(has)
    }
}
