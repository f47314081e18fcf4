//! What came of an event, as far as somebody acts on it. What is so by then the state says.

use super::RecoverySource;

/// One thing that an event changed, in the order in which it was done.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node came or left, or settings of the cluster changed.
    Cluster,
    /// An index was created, or its settings changed.
    Index { index: String },
    /// A copy was placed on a node and is to recover.
    Assigned {
        index: String,
        shard: u32,
        allocation_id: String,
        node: String,
        recovery: RecoverySource,
    },
    /// A copy is complete.
    Started { index: String, shard: u32 },
    /// A copy lost its node or its place, a replica became the primary, or an id left the in-sync set.
    Copy { index: String, shard: u32 },
    /// Something else of the state.
    Other,
}

impl Change {
    pub(super) fn copy((index, shard): (&str, u32)) -> Self {
        Change::Copy { index: index.to_owned(), shard }
    }
}
