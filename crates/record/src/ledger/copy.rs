//! A copy of a shard as it was read.

use serde::{Deserialize, Serialize};

/// How many synthetic documents there are, and the sum of their hashes: of one run, or of all that a copy holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSum {
    /// Documents.
    pub documents: u64,
    /// Wrapping sum of the hashes of the documents.
    pub content: u64,
}

impl RunSum {
    /// The sum of both.
    pub fn plus(self, other: RunSum) -> RunSum {
        RunSum {
            documents: self.documents + other.documents,
            content: self.content.wrapping_add(other.content),
        }
    }
}

/// A document as a copy holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// `_id`.
    pub id: String,
    /// `_seq_no`.
    pub seq_no: u64,
    /// `_version`.
    pub version: u64,
    /// Hash of its content.
    pub content: u64,
}

/// A copy as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// Where it is, for people.
    pub name: String,
    /// Its shard.
    pub shard: u32,
    /// Every live document.
    pub documents: Vec<Held>,
    /// Synthetic documents, beside those.
    #[serde(default)]
    pub runs: RunSum,
    /// Highest sequence number of its history; none before the first.
    pub max_seq_no: Option<u64>,
    /// The copy has every operation up to this one; none while it lacks operation 0.
    pub local_checkpoint: Option<u64>,
}
