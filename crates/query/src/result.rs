//! What a shard answers, and the order of hits.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::hits::{SortKey, SortMissing, SortValue};
use super::{Literal, Text};

/// A hit, before its document is fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardHit {
    /// Number of the segment in the view.
    pub segment: u32,
    /// Number of the document in the segment.
    pub doc: u32,
    /// Score; none where nothing depends on it.
    pub score: Option<f32>,
    /// One value for each key of the order; none where hits are in the order of their scores alone.
    pub sort: Vec<SortValue>,
    /// What it shows of its columns, by field: of its values the texts, numbers and booleans that JSON has.
    pub fields: BTreeMap<String, Vec<Literal>>,
    /// The value of the field that hits are collapsed by.
    pub group: SortValue,
}

/// Why a shard did not look at everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// It did.
    #[default]
    No,
    /// Time ran out.
    OutOfTime,
    /// As many documents were found as it was to look at (`terminate_after`).
    EnoughFound,
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
    /// What the aggregations of the request found, for who merges it; empty where there are none.
    pub aggregations: Bytes,
    /// Why it did not look at everything, if so.
    pub stopped: Stopped,
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
    /// `_routing`; none where the document goes by its id.
    pub routing: Option<String>,
    /// Fragments of its texts, by field, of the fields that have any.
    pub highlight: BTreeMap<String, Vec<String>>,
}

impl FetchedHit {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let source = self.source.as_ref().map_or(0, Bytes::len);
        let routing = self.routing.as_ref().map_or(0, String::len);
        let fragments = self.highlight.values().flatten().map(String::len);
        self.id.len() + source + routing + fragments.sum::<usize>()
    }
}

/// A hit as an answer shows it.
#[derive(Clone, Copy, Debug)]
pub struct ShownHit<'a> {
    /// Its index.
    pub index: &'a str,
    /// Where it stands among the hits.
    pub found: &'a ShardHit,
    /// Its document.
    pub document: &'a FetchedHit,
    /// Whether it shows its version.
    pub version: bool,
    /// Term of the primary, where it shows its place in the history.
    pub primary_term: Option<u64>,
    /// Whether it shows the values that it is sorted by.
    pub sort: bool,
}

impl ShownHit<'_> {
    /// Writes it as a JSON object, with its source byte for byte.
    pub fn write(&self, to: &mut Text<'_>) {
        let ShownHit { found, document, .. } = *self;
        to.open(b'{');
        to.member("_index", self.index);
        to.member("_id", &document.id);
        if self.version {
            to.member("_version", &document.version);
        }
        if let Some(term) = self.primary_term {
            to.member("_seq_no", &document.seq_no);
            to.member("_primary_term", &term);
        }
        to.member("_score", &found.score.map(f64::from));
        if let Some(routing) = &document.routing {
            to.member("_routing", routing);
        }
        if let Some(source) = &document.source {
            to.name("_source");
            to.0.extend_from_slice(source);
        }
        if !found.fields.is_empty() {
            let values =
                |values: &Vec<Literal>| values.iter().map(Literal::json).collect::<Value>();
            let fields = found.fields.iter().map(|(name, of)| (name.clone(), values(of)));
            to.member("fields", &fields.collect::<Map<String, Value>>());
        }
        if !document.highlight.is_empty() {
            to.member("highlight", &document.highlight);
        }
        if self.sort {
            let json = |value: &SortValue| value.as_ref().map_or(Value::Null, Literal::json);
            to.member("sort", &found.sort.iter().map(json).collect::<Vec<Value>>());
        }
        to.close(b'}');
    }
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

/// Of hits in their order, leaves the first of each group.
pub fn keep_first_of_group<T>(hits: &mut Vec<T>, group: impl Fn(&T) -> SortValue) {
    let mut groups = BTreeSet::new();
    hits.retain(|hit| groups.insert(format!("{:?}", group(hit))));
}

/// Higher scores first.
fn compare_scores(a: Option<f32>, b: Option<f32>) -> Ordering {
    let score = |score: Option<f32>| score.unwrap_or(f32::NEG_INFINITY);
    score(b).total_cmp(&score(a))
}

fn compare_values(key: &SortKey, a: &SortValue, b: &SortValue) -> Ordering {
    match key.missing == SortMissing::First && (a.is_none() || b.is_none()) {
        true => a.is_some().cmp(&b.is_some()),
        false => Literal::order_of(a, b, key.descending),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_sort_by_their_bits_and_texts_as_they_are() {
        let hit = |value: Literal| ShardHit { sort: vec![Some(value)], ..ShardHit::default() };
        let address = |text: &str| Literal::Address(crate::value::ip(text).unwrap());
        let text = |text: &str| Literal::Text(text.to_owned());
        let in_order = [
            Literal::Integer(7),
            address("9.0.0.1"),
            address("10.0.0.1"),
            text("10.0.0.1"),
            text("5x"),
            text("9.0.0.1"),
        ];
        let mut hits: Vec<ShardHit> = in_order.iter().rev().cloned().map(hit).collect();
        hits.sort_by(|a, b| compare_hits(&[SortKey::of("a", None)], a, b));
        let sorted: Vec<Literal> = hits.into_iter().flat_map(|hit| hit.sort).flatten().collect();
        assert_eq!(sorted, in_order);
    }
}
