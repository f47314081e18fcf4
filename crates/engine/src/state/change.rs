//! What came of an event.

use super::{RecoverySource, UnassignedReason};

/// One thing that an event changed, in the order in which it was done.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    NodeJoined {
        node: String,
    },
    NodeLeft {
        node: String,
    },
    IndexCreated {
        index: String,
    },
    IndexDeleted {
        index: String,
        uuid: String,
    },
    /// The mappings of an index grew.
    MappingsChanged {
        index: String,
    },
    AliasesChanged {
        index: String,
    },
    IndexSettingsChanged {
        index: String,
        names: Vec<String>,
    },
    ClosedOrOpened {
        index: String,
    },
    FollowingChanged {
        index: String,
    },
    AutoFollowChanged {
        name: String,
    },
    TemplatesChanged {
        name: String,
    },
    ClusterSettingsChanged {
        names: Vec<String>,
    },
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
    Started {
        index: String,
        shard: u32,
        allocation_id: String,
    },
    /// A copy lost its node and is to be assigned again.
    Unassigned {
        index: String,
        shard: u32,
        allocation_id: String,
        reason: UnassignedReason,
    },
    /// A copy is no longer wanted: there are to be fewer replicas, it was moved, or it was the target of a move that
    /// was given up.
    Removed {
        index: String,
        shard: u32,
        allocation_id: String,
    },
    /// A replica became the primary.
    Promoted {
        index: String,
        shard: u32,
        allocation_id: String,
        primary_term: u64,
    },
    /// An id left the in-sync set.
    OutOfSync {
        index: String,
        shard: u32,
        allocation_id: String,
    },
    /// Disks, or the sizes of shards, are others than when they were looked at before.
    DisksSeen,
    /// Copies that failed too often are tried again.
    RetriesReset,
}
