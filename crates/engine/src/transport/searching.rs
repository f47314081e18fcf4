//! What a coordinating node and a copy say to each other about a search.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use query::{FetchedHit, SearchRequest, ShardHits};

use policy::selection::NodeFeedback;

/// A search for a copy of a shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShardSearch {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// The whole request.
    pub request: Arc<SearchRequest>,
    /// The moment that `now` stands for, in milliseconds since 1970.
    pub now_ms: i64,
    /// `search.max_buckets`
    pub max_buckets: u32,
    /// Whether what was written is made searchable first.
    pub fresh: bool,
    /// Whether hits come with their documents: the copy is the only one that is asked.
    pub fetch: bool,
}

/// What a copy answers to a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShardSearched {
    /// What it found.
    pub hits: ShardHits,
    /// Number of the view that hits are fetched from; none if there is nothing to fetch.
    pub context: Option<u64>,
    /// Documents of the hits that are wanted, where they were asked for at once.
    pub fetched: Option<Vec<FetchedHit>>,
    /// What the node says of itself.
    pub feedback: NodeFeedback,
    /// Term of the copy's primary.
    pub primary_term: u64,
    /// Bytes that the answer counts for in the virtual world, beside its own.
    pub declared_bytes: u64,
}

pub(super) fn searched_bytes(searched: &ShardSearched) -> u64 {
    let hits = searched.hits.hits.iter().map(|hit| 16 + 12 * hit.sort.len() as u64);
    let aggregations = searched.hits.aggregations.len() as u64;
    let fetched = searched.fetched.iter().flatten().map(hit_bytes);
    hits.sum::<u64>() + fetched.sum::<u64>() + aggregations + searched.declared_bytes
}

pub(super) fn hit_bytes(hit: &FetchedHit) -> u64 {
    24 + hit.id.len() as u64 + hit.source.as_ref().map_or(0, |source| source.len() as u64)
}
