//! A search as plain data: what the body of `_search` says.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::aggregation::{Aggregation, DEFAULT_MAX_BUCKETS};
use super::error::{Result, illegal};
use super::highlight::Highlight;
use super::hits::{ColumnField, SortKey, SortTarget, SortValue};
use super::{Query, SourceFilter};

/// Hits that are counted exactly, where the request does not say.
pub const DEFAULT_TRACK_TOTAL_HITS: u64 = 10_000;

/// In `timeout_ms`: the request says that there is no limit (`-1`).
pub const NO_TIMEOUT_MS: u64 = u64::MAX;

/// How exactly hits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrackTotalHits {
    /// Not at all.
    No,
    /// Up to so many.
    UpTo(u64),
    /// All of them.
    All,
    /// As nothing is said of it: up to [`DEFAULT_TRACK_TOTAL_HITS`].
    Unset,
}

impl TrackTotalHits {
    /// What is said of `total` hits: how many, and whether there are more.
    pub fn of(self, total: u64) -> (u64, bool) {
        match self {
            TrackTotalHits::No => (0, true),
            TrackTotalHits::Unset => TrackTotalHits::UpTo(DEFAULT_TRACK_TOTAL_HITS).of(total),
            TrackTotalHits::UpTo(limit) if total > limit => (limit, true),
            _ => (total, false),
        }
    }
}

/// What a search may use, and what it goes by.
#[derive(Clone, Debug)]
pub struct SearchLimits {
    /// The index of the shard: its `_index`.
    pub index: String,
    /// The moment that `now` stands for, in milliseconds since 1970: one for all shards.
    pub now_ms: i64,
    /// `search.max_buckets`
    pub max_buckets: usize,
    /// `index.query.default_field`: the fields that queries ask which name none, with what scores are multiplied by.
    pub default_fields: Vec<(String, f32)>,
    /// Set from outside when time has run out.
    pub stop: Arc<AtomicBool>,
}

impl Default for SearchLimits {
    fn default() -> Self {
        SearchLimits {
            index: String::new(),
            now_ms: 0,
            max_buckets: DEFAULT_MAX_BUCKETS,
            default_fields: vec![("*".to_owned(), 1.0)],
            stop: Arc::default(),
        }
    }
}

/// What a search costs, where there are no documents to be searched: in the virtual world. Real shards cost what
/// they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredCost {
    /// Documents that are looked at on each shard.
    pub documents: u64,
    /// Bytes that are read on each shard.
    pub bytes: u64,
    /// Bytes of each shard's answer.
    pub response_bytes: u64,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRequest {
    /// Which documents.
    pub query: Query,
    /// `post_filter`: which of them are hits; what is aggregated are all of them.
    pub post_filter: Option<Query>,
    /// `collapse`: of the hits with the same value of this field the best alone.
    pub collapse: Option<String>,
    /// `docvalue_fields`: what hits show of their columns.
    pub column_fields: Vec<ColumnField>,
    /// Numbers about them.
    pub aggregations: Vec<Aggregation>,
    /// The order of hits; by score where there is none.
    pub sort: Vec<SortKey>,
    /// Only hits behind these values of `sort`.
    pub search_after: Option<Vec<SortValue>>,
    /// Hits that are passed over.
    pub from: usize,
    /// Hits that are wanted.
    pub size: usize,
    /// How exactly they are counted.
    pub track_total_hits: TrackTotalHits,
    /// Scores also where hits are sorted otherwise.
    pub track_scores: bool,
    /// Only hits with at least this score.
    pub min_score: Option<f32>,
    /// What hits show of their documents.
    pub source: SourceFilter,
    /// `highlight`: what hits show of their texts.
    pub highlight: Highlight,
    /// Whether hits show their version.
    pub version: bool,
    /// Whether hits show their place in the history.
    pub seq_no_primary_term: bool,
    /// How long a shard may take, in milliseconds; what it has by then counts. None where nothing is said of it.
    pub timeout_ms: Option<u64>,
    /// `terminate_after`: documents of each shard that are looked at, of those that match. Shards are told by the
    /// query: [`Query::first`].
    #[serde(skip)]
    pub terminate_after: Option<u64>,
    /// Whether shards keep the answer, for the same request of the same view: `request_cache`.
    pub cached: bool,
    /// `ext.narrows.cost`
    pub cost: Option<DeclaredCost>,
    /// `pit`: what is searched is what was there then. The copies that are asked know it by their views.
    #[serde(skip)]
    pub point_in_time: Option<AskedPointInTime>,
}

/// What is read of hits, once they are found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// What they show of their documents.
    pub source: SourceFilter,
    /// What they show of their texts; its query is there where a field has none of its own.
    pub highlight: Highlight,
}

/// A point in time, as a body names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedPointInTime {
    /// Its id.
    pub id: String,
    /// How long it is to be kept, at least.
    pub keep_alive: Option<String>,
}

impl Default for SearchRequest {
    fn default() -> Self {
        SearchRequest {
            query: Query::match_all(),
            post_filter: None,
            collapse: None,
            column_fields: Vec::new(),
            aggregations: Vec::new(),
            sort: Vec::new(),
            search_after: None,
            from: 0,
            size: 10,
            track_total_hits: TrackTotalHits::Unset,
            track_scores: false,
            min_score: None,
            source: SourceFilter::default(),
            highlight: Highlight::default(),
            version: false,
            seq_no_primary_term: false,
            timeout_ms: None,
            terminate_after: None,
            cached: false,
            cost: None,
            point_in_time: None,
        }
    }
}

impl SearchRequest {
    /// Whether hits are in the order of their scores, and of nothing else.
    pub fn is_by_score(&self) -> bool {
        match self.sort.as_slice() {
            [] => true,
            [key] => key.target == SortTarget::Score && key.descending,
            _ => false,
        }
    }

    /// Whether hits show their scores.
    pub fn shows_scores(&self) -> bool {
        let by_score = self.sort.iter().any(|key| key.target == SortTarget::Score);
        self.sort.is_empty() || by_score || self.track_scores
    }

    /// Whether anything of it depends on scores.
    pub fn needs_scores(&self) -> bool {
        self.min_score.is_some() || (self.size > 0 && self.shows_scores())
    }

    /// What is read of its hits.
    pub fn fetch(&self) -> FetchRequest {
        let Highlight { fields, query } = &self.highlight;
        let (source, fields) = (self.source.clone(), fields.clone());
        let goes_by_it = fields.iter().any(|field| field.query.is_none());
        let query = goes_by_it.then(|| query.as_ref().unwrap_or(&self.query).clone());
        FetchRequest { source, highlight: Highlight { fields, query } }
    }

    /// Fails where `terminate_after` would count documents that the field does not count, as they are no hits.
    pub fn check_terminate_after(&self) -> Result<()> {
        let leaves_out = self.post_filter.is_some() || self.min_score.is_some();
        match self.terminate_after {
            Some(_) if leaves_out => Err(illegal(
                "[terminate_after] with [post_filter] or [min_score] is not supported by this engine; put the filter \
                 into the query",
            )),
            _ => Ok(()),
        }
    }

    /// Whether it can be answered by sizes alone.
    pub fn needs_content(&self) -> bool {
        !self.query.is_match_all()
            || self.post_filter.is_some()
            || !self.aggregations.is_empty()
            || self.size > 0
            || self.min_score.is_some()
    }
}
