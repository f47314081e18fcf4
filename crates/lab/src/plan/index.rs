//! An index of a plan.

use std::collections::BTreeMap;
use std::ops::Range;

use super::by_world::ByWorld;
use super::rollover::RolloverRule;
use super::variant::Variant;

/// An index on the leader.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Primary shards.
    pub shards: u32,
    /// Replicas of each primary.
    pub replicas: u32,
    /// Which documents of the corpus it gets, counted from 0.
    pub documents: Range<u64>,
    /// Its size in the published run, scaled: what a virtual target loads.
    pub full: Option<Full>,
    /// Set where the name is an alias, which is rolled over to a new index once the write index is large or old enough.
    pub rollover: Option<ByWorld<RolloverRule>>,
    /// Its settings, but for the numbers of shards and replicas.
    pub settings: BTreeMap<String, String>,
    /// Its mappings; without them those of the corpus.
    pub mappings: Option<serde_json::Value>,
}

impl Index {
    /// The name of the first index on the leader: where the index rolls over, its own name is that of the alias.
    pub(crate) fn first_name(&self) -> String {
        match self.rollover {
            Some(_) => format!("{}-000001", self.name),
            None => self.name.clone(),
        }
    }

    /// Replicas of each primary under a variant.
    pub fn replicas_of(&self, variant: &Variant) -> u32 {
        variant.replicas.unwrap_or(self.replicas)
    }
}

/// An index by its size alone; without replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// Documents.
    pub documents: u64,
    /// Bytes of segment files.
    pub bytes: u64,
    /// Documents and bytes as the plan says them, without the scale.
    pub unscaled: (u64, u64),
    /// Segments over all shards.
    pub segments: u32,
    /// Size of each of a shard's segments as a share of the next larger one; 1 where all are equal.
    pub segment_ratio: f64,
}

impl Full {
    /// From which scale on its files have room for its documents, where they have not at this one: segments have bytes
    /// of their own, which no scale makes fewer.
    pub(super) fn least_scale(&self, shards: u32) -> Option<f64> {
        let segments = (self.segments / shards).max(1);
        let shards = u64::from(shards);
        let least =
            |documents: u64| store::least_stored_bytes(documents.div_ceil(shards), segments);
        let ((documents, bytes), of_segments) = (self.unscaled, least(0));
        let room = (bytes / shards + of_segments)
            .checked_sub(least(documents))
            .filter(|room| *room > 0)?;
        (least(self.documents) > self.bytes / shards).then(|| of_segments as f64 / room as f64)
    }
}
