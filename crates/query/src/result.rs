//! What a shard answers, and the order of hits.

use std::cmp::Ordering;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::aggregation::Partial;
use super::request::{SortKey, SortMissing, SortValue};

/// A hit, before its document is fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardHit {
    /// Number of the segment in the view.
    pub segment: u32,
    /// Number of the document in the segment.
    pub doc: u32,
    /// Score; none where nothing depends on it.
    pub score: Option<f32>,
    /// One value for each key of the order; none where hits are in the order of their scores alone.
    pub sort: Vec<SortValue>,
}

/// What a shard answers to a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardHits {
    /// Hits that were counted.
    pub total: u64,
    /// Whether there may be more than were counted.
    pub more: bool,
    /// The best score; none where nothing depends on scores, or nothing was found.
    pub max_score: Option<f32>,
    /// The best hits, in order.
    pub hits: Vec<ShardHit>,
    /// One for each aggregation of the request.
    pub aggregations: Vec<Partial>,
    /// Whether time ran out before everything was looked at.
    pub timed_out: bool,
}

/// A document of a hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedHit {
    /// `_id`
    pub id: String,
    /// Version, from 1.
    pub version: u64,
    /// Place in the history.
    pub seq_no: u64,
    /// `_source`, filtered; none where it is not asked for.
    pub source: Option<Bytes>,
}

/// The order of two hits of different shards; equal where nothing of the request tells them apart.
pub fn compare_hits(keys: &[SortKey], a: &ShardHit, b: &ShardHit) -> Ordering {
    if a.sort.is_empty() || b.sort.is_empty() {
        return compare_scores(a.score, b.score);
    }
    let pairs = keys.iter().zip(a.sort.iter().zip(&b.sort));
    pairs
        .map(|(key, (a, b))| compare_values(key, a, b))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Higher scores first.
fn compare_scores(a: Option<f32>, b: Option<f32>) -> Ordering {
    let score = |score: Option<f32>| score.unwrap_or(f32::NEG_INFINITY);
    score(b).total_cmp(&score(a))
}

fn compare_values(key: &SortKey, a: &SortValue, b: &SortValue) -> Ordering {
    let missing = |value: &SortValue| *value == SortValue::Null;
    let nulls_first = key.missing == SortMissing::First;
    match (missing(a), missing(b)) {
        (true, true) => return Ordering::Equal,
        (true, false) => return if nulls_first { Ordering::Less } else { Ordering::Greater },
        (false, true) => return if nulls_first { Ordering::Greater } else { Ordering::Less },
        (false, false) => {}
    }
    let ordering = match (a, b) {
        (SortValue::Long(a), SortValue::Long(b)) => a.cmp(b),
        (SortValue::Text(a), SortValue::Text(b)) => match (address(a), address(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.cmp(b),
        },
        (a, b) => number(a).total_cmp(&number(b)),
    };
    if key.descending { ordering.reverse() } else { ordering }
}

/// Addresses sort by their bits, not by their texts.
fn address(text: &str) -> Option<std::net::Ipv6Addr> {
    let looks_like_one = text.contains(['.', ':']) && text.len() <= 45;
    looks_like_one.then(|| crate::mapping::value::ip(text)).flatten()
}

fn number(value: &SortValue) -> f64 {
    match value {
        SortValue::Long(number) => *number as f64,
        SortValue::Double(number) => *number,
        SortValue::Text(_) | SortValue::Null => f64::NAN,
    }
}
