//! What a coordinating node and a copy say to each other about a search.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use query::{FetchedHit, SearchRequest, ShardHit, ShardHits};
use store::Aggregated;

use super::Failure;
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
    /// Whether hits come with their documents: the copy is the only one that is asked.
    pub fetch: bool,
    /// Whether the view is held afterwards.
    pub held: Option<HeldView>,
}

/// What a view is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewHolder {
    /// The pages of a scroll.
    Scroll,
    /// The searches of a point in time.
    PointInTime,
}

/// A view of a shard that is held for further searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// Its number; none where there is none yet, and what is there now is to be seen.
    pub context: Option<u64>,
    /// How long it is held for the next search; at least as long as was said before.
    pub keep_alive: Duration,
    /// For what.
    pub holder: ViewHolder,
}

/// A point in time that a node holds views for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenPointInTime {
    /// Its id.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// How long it is kept after each use.
    pub keep_alive: Duration,
}

/// A hit with its document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hit {
    /// Its index.
    pub index: String,
    /// Where it stands among the hits.
    pub found: ShardHit,
    /// What is shown of it.
    pub document: FetchedHit,
    /// Term of the primary that its shard has now.
    pub primary_term: u64,
}

/// Why the answer does not cover a shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShardFailure {
    /// Index.
    pub index: String,
    /// Number of the shard.
    pub shard: u32,
    /// The node that was asked last; none if no copy could be asked.
    pub node: Option<String>,
    /// Why.
    pub failure: Failure,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// How long the search took.
    pub took: Duration,
    /// Whether a shard ran out of the time that the request allows.
    pub timed_out: bool,
    /// Whether a shard looked at as many documents as the request allows, and left some. None where it allows all, as
    /// pages of a scroll do, which travel.
    #[serde(skip)]
    pub terminated_early: Option<bool>,
    /// Shards that belong to the search.
    pub shards: usize,
    /// Shards that have no part in the answer.
    pub failures: Vec<ShardFailure>,
    /// Documents that match, as far as they were counted.
    pub total: u64,
    /// Whether there may be more than `total`.
    pub more: bool,
    /// The best score; none where nothing is scored.
    pub max_score: Option<f32>,
    /// The best, in order.
    pub hits: Vec<Hit>,
    /// Merged. Pages of a scroll, which travel, have none but the first.
    #[serde(skip)]
    pub aggregations: Aggregated,
}

/// A further page of a scroll: what its first request asked for, and what was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScrollPage {
    /// The first request.
    pub request: Arc<SearchRequest>,
    /// Its hits, or why each shard failed.
    pub found: Result<SearchOutcome, Vec<ShardFailure>>,
}

pub(super) fn page_bytes(page: &ScrollPage) -> u64 {
    let hits = page.found.iter().flat_map(|found| &found.hits);
    hits.map(|hit| hit_bytes(&hit.document) + 16 + 12 * hit.found.sort.len() as u64).sum()
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
    24 + hit.bytes() as u64
}
