//! What came of an event.

use super::{RecoverySource, UnassignedReason};

/// One thing that an event changed, in the order in which it was done.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member is there.
    NodeJoined { node: String },
    /// A member is gone.
    NodeLeft { node: String },
    /// An index was created.
    IndexCreated { index: String },
    /// An index was deleted.
    IndexDeleted { index: String, uuid: String },
    /// The mappings of an index grew.
    MappingsChanged { index: String },
    /// The aliases of an index changed.
    AliasesChanged { index: String },
    /// Settings of an index changed.
    IndexSettingsChanged { index: String, names: Vec<String> },
    /// An index was closed or opened.
    ClosedOrOpened { index: String },
    /// How an index follows its leader changed.
    FollowingChanged { index: String },
    /// An auto-follow pattern changed.
    AutoFollowChanged { name: String },
    /// A template changed.
    TemplatesChanged { name: String },
    /// Settings of the cluster changed.
    ClusterSettingsChanged { names: Vec<String> },
    /// A copy was placed on a node and is to recover.
    Assigned {
        index: String,
        shard: u32,
        allocation_id: String,
        node: String,
        primary: bool,
        recovery: RecoverySource,
    },
    /// A copy is complete.
    Started { index: String, shard: u32, allocation_id: String },
    /// A copy lost its node and is to be assigned again.
    Unassigned { index: String, shard: u32, allocation_id: String, reason: UnassignedReason },
    /// A copy is no longer wanted: there are to be fewer replicas, it was moved, or it was the target of a move that
    /// was given up.
    Removed { index: String, shard: u32, allocation_id: String },
    /// A replica became the primary.
    Promoted { index: String, shard: u32, allocation_id: String, primary_term: u64 },
    /// An id left the in-sync set.
    OutOfSync { index: String, shard: u32, allocation_id: String },
    /// Disks, or the sizes of shards, are others than when they were looked at before.
    DisksSeen,
    /// Copies that failed too often are tried again.
    RetriesReset,
}
