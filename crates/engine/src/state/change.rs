//! What came of an event.

use super::{RecoverySource, UnassignedReason};

/// One thing that an event changed, in the order in which it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member is there.
    NodeJoined {
        /// Its name.
        node: String,
    },
    /// A member is gone.
    NodeLeft {
        /// Its name.
        node: String,
    },
    /// An index was created.
    IndexCreated {
        /// Its name.
        index: String,
    },
    /// An index was deleted.
    IndexDeleted {
        /// Its name.
        index: String,
        /// Its uuid.
        uuid: String,
    },
    /// The mappings of an index grew.
    MappingsChanged {
        /// The index.
        index: String,
    },
    /// The aliases of an index changed.
    AliasesChanged {
        /// The index.
        index: String,
    },
    /// Settings of an index changed.
    IndexSettingsChanged {
        /// The index.
        index: String,
        /// Their full names.
        names: Vec<String>,
    },
    /// How an index follows its leader changed.
    FollowingChanged {
        /// The index.
        index: String,
    },
    /// An auto-follow pattern changed.
    AutoFollowChanged {
        /// Its name.
        name: String,
    },
    /// A template changed.
    TemplatesChanged {
        /// Its name.
        name: String,
    },
    /// Settings of the cluster changed.
    ClusterSettingsChanged {
        /// Their full names.
        names: Vec<String>,
    },
    /// A copy was placed on a node and is to recover.
    Assigned {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
        /// Its node.
        node: String,
        /// Whether it is the primary.
        primary: bool,
        /// Where it recovers from.
        recovery: RecoverySource,
    },
    /// A copy is complete.
    Started {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
    },
    /// A copy lost its node and is to be assigned again.
    Unassigned {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
        /// Why.
        reason: UnassignedReason,
    },
    /// A copy is no longer wanted: there are to be fewer replicas, it was moved, or it was the target of a move that
    /// was given up.
    Removed {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
    },
    /// A replica became the primary.
    Promoted {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
        /// The new term.
        primary_term: u64,
    },
    /// An id left the in-sync set.
    OutOfSync {
        /// The index.
        index: String,
        /// The shard.
        shard: u32,
        /// The copy.
        allocation_id: String,
    },
    /// Disks, or the sizes of shards, are others than when they were looked at before.
    DisksSeen,
    /// Copies that failed too often are tried again.
    RetriesReset,
}
