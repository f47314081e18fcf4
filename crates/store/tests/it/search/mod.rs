//! Searches against a brute-force evaluation of the same JSON over the same documents.
//!
//! | file | holds |
//! | --- | --- |
//! | `random.rs` | documents, queries and aggregations drawn at random |
//! | `model.rs` | which documents a query finds, and how they sort |
//! | `buckets.rs` | what an aggregation answers |
//! | `known.rs` | queries whose hits are written down |
//! | `known_buckets.rs` | aggregations whose answers are written down |
//! | `known_places.rs` | the same of places |
//! | `known_values.rs` | values at the ends of what fields keep, and fields by patterns |

mod buckets;
mod known;
mod known_buckets;
mod known_places;
mod known_values;
mod model;
mod random;

use query::{Mapping, SearchLimits, SearchRequest, ShardHits, parse_search};

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use query::aggregation::DEFAULT_MAX_BUCKETS;
use serde_json::{Value, json};
use store::{Aggregated, Options, Shard, WriteRequest};
use world::Env;

use crate::common::{Numbers, write};
use buckets::{aggregate, same};
use model::{compare, fits, sort_value};
use random::{FIELDS, WORDS, aggregation, as_in_a_log, document, one, query};

fn mapping() -> Mapping {
    Mapping::parse(&json!({"properties": {
        "key": {"type": "keyword"}, "text": {"type": "text"}, "n": {"type": "long"}, "x": {"type": "double"},
        "yes": {"type": "boolean"}, "at": {"type": "date"}, "from": {"type": "ip"}, "id": {"type": "long"},
        "place": {"type": "geo_point"}, "o": {"properties": {"tag": {"type": "keyword"}}},
    }}))
    .unwrap()
}

fn limits() -> SearchLimits {
    SearchLimits { index: "a".to_owned(), ..SearchLimits::default() }
}

fn index(id: u64, document: &Value) -> WriteRequest {
    WriteRequest::index(id.to_string().into(), Bytes::from(document.to_string()))
}

/// A copy with documents in several segments, some written twice, some deleted; and what it must hold.
async fn filled(env: &Env, dir: &Path, numbers: &mut Numbers) -> (Shard, BTreeMap<u64, Value>) {
    let shard = Shard::create(env, dir, &mapping(), Options::default()).await.unwrap();
    let mut there = BTreeMap::new();
    for _ in 0..=numbers.below(4) {
        let mut requests = Vec::new();
        // Segments in which each document has each field once are read in another way, a block at a time; and blocks
        // are passed over where values lie as in a log.
        let whole = numbers.below(3) > 0;
        let log = whole && numbers.below(2) == 0;
        let count = numbers.below(if whole { 180 } else { 60 });
        for n in 0..count {
            let id = numbers.below(200);
            if there.contains_key(&id) && numbers.below(3) == 0 {
                let name = id.to_string().into();
                requests.push(WriteRequest::Delete { id: name, routing: None });
                there.remove(&id);
            } else {
                let mut document = document(numbers, id, whole);
                if log {
                    as_in_a_log(numbers, n, count, &mut document);
                }
                requests.push(index(id, &document));
                there.insert(id, document);
            }
        }
        write(&shard, requests).await;
        shard.refresh().await.unwrap();
    }
    (shard, there)
}

async fn search(shard: &Shard, body: &Value) -> (SearchRequest, ShardHits, Vec<u64>) {
    let request =
        parse_search(body.to_string().as_bytes()).unwrap_or_else(|e| panic!("{body}: {e}"));
    let shared = Arc::new(request.clone());
    let (hits, view) =
        shard.search(&shared, &limits()).await.unwrap_or_else(|e| panic!("{body}: {e}"));
    let places = hits.hits.iter().map(|hit| (hit.segment, hit.doc)).collect();
    let found = shard.fetch(&view, places, &Arc::default(), &limits()).await.unwrap();
    let ids = found.iter().map(|hit| hit.id.parse().unwrap()).collect();
    (request, hits, ids)
}

/// What the aggregations of these shards answer together.
fn merged(request: &SearchRequest, shards: &[&ShardHits]) -> Value {
    let (mut aggregated, mut text) = (Aggregated::default(), Vec::new());
    for hits in shards {
        aggregated.add(&request.aggregations, "a", &hits.aggregations).unwrap();
    }
    aggregated.write(&request.aggregations, DEFAULT_MAX_BUCKETS, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// An object with the keys of another in it.
fn with(mut object: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    object.as_object_mut().unwrap().extend(more);
    object
}

fn run(
    name: &str,
    cases: u64,
    body: impl AsyncFn(Env, std::path::PathBuf, Numbers) + Copy + 'static,
) {
    for seed in 0..cases {
        println!("{name}: seed {seed}");
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().to_owned();
        world::real_world::run(seed, move |env| async move { body(env, dir, Numbers(seed)).await });
    }
}

#[test]
fn finds_what_brute_force_finds() {
    run("queries", 8, async |env, dir, mut numbers| {
        let (shard, there) = filled(&env, &dir, &mut numbers).await;
        for _ in 0..150 {
            let query = query(&mut numbers, 3);
            let expected: Vec<u64> = there
                .iter()
                .filter(|(_, document)| fits(&query, document))
                .map(|(id, _)| *id)
                .collect();
            let body = json!({"query": query, "size": 1000, "track_total_hits": true});
            let (_, hits, in_order) = search(&shard, &body).await;
            let mut ids = in_order.clone();
            ids.sort_unstable();
            assert_eq!(ids, expected, "{body}");
            assert_eq!((hits.total, hits.more), (expected.len() as u64, false), "{body}");
            assert!(hits.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{body}");
            // The same without scores, by another way through the index.
            let sorted = json!({"query": query, "size": 1000, "sort": ["id"]});
            assert_eq!(search(&shard, &sorted).await.2, expected, "{sorted}");
            let counted = json!({"query": query, "size": 3, "track_total_hits": 5});
            let (_, hits, ids) = search(&shard, &counted).await;
            let all = expected.len() as u64;
            assert_eq!((hits.total, hits.more), (all.min(5), all > 5), "{counted}");
            assert_eq!(ids, in_order[..in_order.len().min(3)], "{counted}");
        }
    });
}

#[test]
fn sorts_and_goes_on_behind_a_hit() {
    run("sorts", 6, async |env, dir, mut numbers| {
        let (shard, there) = filled(&env, &dir, &mut numbers).await;
        for _ in 0..40 {
            let path = one(&mut numbers, &FIELDS);
            let (descending, first) = (numbers.below(2) == 1, numbers.below(2) == 1);
            let key = json!({path: {
                "order": if descending { "desc" } else { "asc" },
                "missing": if first { "_first" } else { "_last" },
            }});
            let mut expected: Vec<u64> = there.keys().copied().collect();
            let missing = if first { Ordering::Less } else { Ordering::Greater };
            expected.sort_by(|a, b| {
                let of = |id: &u64| sort_value(&there[id], path, descending);
                match (of(a), of(b)) {
                    (Some(a), Some(b)) if descending => compare(path, b, a),
                    (Some(a), Some(b)) => compare(path, a, b),
                    (None, None) => Ordering::Equal,
                    (None, _) => missing,
                    (_, None) => missing.reverse(),
                }
                .then(a.cmp(b))
            });
            // Page by page, each behind the last hit of the one before.
            let mut pages = Vec::new();
            let mut after = Value::Null;
            loop {
                let mut body = json!({"size": 7, "sort": [key, {"id": "asc"}]});
                if !after.is_null() {
                    body["search_after"] = after.clone();
                }
                let (_, hits, ids) = search(&shard, &body).await;
                let Some(last) = hits.hits.last() else { break };
                let json = |value: &query::SortValue| {
                    value.as_ref().map_or(Value::Null, query::Literal::json)
                };
                after = last.sort.iter().map(json).collect();
                pages.extend(ids);
            }
            assert_eq!(pages, expected, "{key}");
            let (from, size) = (numbers.below(20) as usize, numbers.below(20) as usize);
            let body = json!({"from": from, "size": size, "sort": [key, "id"]});
            let (_, _, ids) = search(&shard, &body).await;
            // A shard sends what may be wanted, if anything is; who merges cuts the beginning off.
            let most = if size == 0 { 0 } else { from + size };
            let wanted: Vec<u64> = expected.iter().take(most).copied().collect();
            assert_eq!(ids, wanted, "{body}");
            // Of some documents, by one key alone: whichever of those with equal values.
            let query = query(&mut numbers, 1);
            let body =
                json!({"size": size, "sort": [key], "query": query, "track_total_hits": true});
            let (_, hits, ids) = search(&shard, &body).await;
            let fitting = expected.iter().filter(|id| fits(&query, &there[*id]));
            let value = |id: &u64| sort_value(&there[id], path, descending);
            assert_eq!(hits.total, fitting.clone().count() as u64, "{body}");
            assert!(ids.iter().all(|id| fits(&query, &there[id])), "{body}");
            assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{body}");
            let values: Vec<Option<&Value>> = ids.iter().map(value).collect();
            assert_eq!(values, fitting.take(size).map(value).collect::<Vec<_>>(), "{body}");
        }
    });
}

#[test]
fn aggregates_as_brute_force_does() {
    run("aggregations", 8, async |env, dir, mut numbers| {
        let (shard, there) = filled(&env, &dir, &mut numbers).await;
        for _ in 0..60 {
            let query = query(&mut numbers, 1);
            let aggs =
                json!({"a": aggregation(&mut numbers, 3), "b": aggregation(&mut numbers, 1)});
            let body = json!({"query": query, "aggs": aggs, "size": 0});
            let (request, hits, _) = search(&shard, &body).await;
            let found = merged(&request, &[&hits]);
            let documents: Vec<&Value> =
                there.values().filter(|document| fits(&query, document)).collect();
            let expected = aggregate(&aggs, &documents);
            assert!(same(&found, &expected), "{body}\nfound    {found}\nexpected {expected}");
        }
    });
}

/// Lets shards send all of their buckets, so that nothing is missing from what is merged.
fn send_all(aggs: &mut Value) {
    for agg in aggs.as_object_mut().unwrap().values_mut() {
        if let Some(terms) = agg.get_mut("terms").filter(|terms| terms.get("field").is_some()) {
            terms["shard_size"] = json!(10_000);
        }
        if let Some(subs) = agg.get_mut("aggs") {
            send_all(subs);
        }
    }
}

#[test]
fn shards_together_answer_as_one() {
    run("shards", 4, async |env, dir, mut numbers| {
        let (a, in_a) = filled(&env, &dir.join("a"), &mut numbers).await;
        let (b, in_b) = filled(&env, &dir.join("b"), &mut numbers).await;
        for _ in 0..40 {
            let query = query(&mut numbers, 1);
            let mut aggs = json!({"a": aggregation(&mut numbers, 3)});
            send_all(&mut aggs);
            let body = json!({"query": query, "aggs": aggs, "size": 0});
            let (request, of_a, _) = search(&a, &body).await;
            let (_, of_b, _) = search(&b, &body).await;
            let found = merged(&request, &[&of_a, &of_b]);
            let all = in_a.values().chain(in_b.values());
            let documents: Vec<&Value> = all.filter(|document| fits(&query, document)).collect();
            let expected = aggregate(&aggs, &documents);
            assert!(same(&found, &expected), "{body}\nfound    {found}\nexpected {expected}");
        }
    });
}

#[test]
fn many_values_are_counted_and_sampled() {
    const MANY: u64 = 70_000;
    run("many values", 1, async |env, dir, _| {
        let shard = Shard::create(&env, &dir, &mapping(), Options::default()).await.unwrap();
        let index = |n: u64| {
            WriteRequest::append(
                n.to_string().into(),
                Bytes::from(json!({"n": n, "key": format!("k{n}")}).to_string()),
            )
        };
        for first in (0..MANY).step_by(5_000) {
            write(&shard, (first..first + 5_000).map(index).collect()).await;
        }
        shard.refresh().await.unwrap();
        shard.force_merge(1).await.unwrap();
        let body = json!({"size": 0, "aggs": {
            "distinct": {"cardinality": {"field": "n"}},
            "keys": {"cardinality": {"field": "key"}},
            "middle": {"percentiles": {"field": "n", "percents": [50]}},
            "spread": {"extended_stats": {"field": "n"}},
            "last": {"terms": {"field": "n", "size": 2, "order": {"_key": "desc"}}},
            "by_sum": {"terms": {"field": "n", "size": 1, "order": {"s": "desc"}},
                "aggs": {"s": {"sum": {"field": "n"}}}},
            // Pages have no more buckets than they show.
            "page": {"composite": {"size": 2, "sources": [{"n": {"terms": {"field": "n"}}}], "after": {"n": MANY - 4}},
                "aggs": {"s": {"sum": {"field": "n"}}}},
            "first": {"composite": {"size": 2, "sources": [
                {"key": {"terms": {"field": "key", "order": "desc"}}},
                {"n": {"histogram": {"field": "n", "interval": 10}}},
            ]}},
        }});
        let (request, hits, _) = search(&shard, &body).await;
        let found = merged(&request, &[&hits]);
        let near = |value: &Value, expected: f64, share: f64| {
            let value = value.as_f64().unwrap();
            assert!((value / expected - 1.0).abs() < share, "{value} {expected}: {found}");
        };
        near(&found["distinct"]["value"], MANY as f64, 0.03);
        near(&found["keys"]["value"], MANY as f64, 0.03);
        near(&found["middle"]["values"]["50.0"], MANY as f64 / 2.0, 1e-4);
        near(&found["spread"]["variance"], (MANY as f64).powi(2) / 12.0, 1e-4);
        assert_eq!(found["last"]["buckets"][1], json!({"key": MANY - 2, "doc_count": 1}));
        assert_eq!(found["last"]["sum_other_doc_count"], MANY - 2);
        assert_eq!(found["by_sum"]["buckets"][0]["key"], MANY - 1);
        let bucket = |n: u64| json!({"key": {"n": n}, "doc_count": 1, "s": {"value": n as f64}});
        let page =
            json!({"after_key": {"n": MANY - 2}, "buckets": [bucket(MANY - 3), bucket(MANY - 2)]});
        assert_eq!(found["page"], page);
        let bucket = |key: &str, n: f64| json!({"key": {"key": key, "n": n}, "doc_count": 1});
        let first = [bucket("k9999", 9990.0), bucket("k9998", 9990.0)];
        assert_eq!(found["first"]["buckets"], json!(first));
    });
}

#[test]
fn kept_answers_are_of_the_view_and_go_with_it() {
    run("kept answers", 2, async |env, dir, mut numbers| {
        let (shard, _) = filled(&env, &dir, &mut numbers).await;
        let asked = async |shard: &Shard, body: &Value| {
            let request = parse_search(body.to_string().as_bytes()).unwrap();
            let request = Arc::new(SearchRequest { cached: true, ..request });
            shard.search(&request, &limits()).await.unwrap().0
        };
        let body = json!({"size": 2, "query": {"match": {"text": "red"}}, "track_total_hits": true,
            "aggs": {"k": {"terms": {"field": "key"}}}});
        let first = asked(&shard, &body).await;
        for _ in 0..3 {
            assert_eq!(asked(&shard, &body).await, first);
        }
        let counts = |shard: &Shard| {
            let stats = shard.stats();
            (stats.request_cache_hits, stats.request_cache_misses)
        };
        assert_eq!(counts(&shard), (3, 1));
        // Who does not ask for it is not answered from it, and what counts from now is another search each time.
        assert_eq!(search(&shard, &body).await.1, first);
        let of_now = json!({"size": 0, "query": {"range": {"at": {"lt": "now"}}}});
        asked(&shard, &of_now).await;
        assert_eq!(counts(&shard), (3, 1));
        let another = json!({"id": 999, "text": "red", "key": "red0"});
        write(&shard, vec![index(999, &another)]).await;
        shard.refresh().await.unwrap();
        let later = asked(&shard, &body).await;
        assert_eq!((later.total, counts(&shard)), (first.total + 1, (3, 2)));
        // More than there is room for: the oldest go, and answers stay right.
        for n in 0..3_000 {
            let long = "x".repeat(2_000);
            asked(&shard, &json!({"size": 0, "query": {"term": {"key": format!("{n}{long}")}}}))
                .await;
        }
        assert_eq!(asked(&shard, &body).await, later);
        assert_eq!(counts(&shard), (3, 3_003));
    });
}

/// The length that Lucene keeps of a text (`SmallFloat.intToByte4` and back): exact up to 40, then four significant
/// bits.
fn lossy_length(length: u32) -> u32 {
    const FREE: u32 = 24;
    if length < FREE {
        return length;
    }
    let rest = length - FREE;
    let bits = 32 - rest.leading_zeros();
    let kept = if bits < 4 { rest } else { rest >> (bits - 4) << (bits - 4) };
    kept + FREE
}

/// BM25 as Lucene 8 and Elasticsearch's `LegacyBM25Similarity` have it: with the factor k1 + 1, which Lucene's own
/// similarity (and OpenSearch 3) left out.
fn bm25(documents: f64, with_word: f64, frequency: f64, length: f64, average: f64) -> f64 {
    let (k1, b) = (1.2, 0.75);
    let idf = (1.0 + (documents - with_word + 0.5) / (with_word + 0.5)).ln();
    idf * (k1 + 1.0) * frequency / (frequency + k1 * (1.0 - b + b * length / average))
}

#[test]
fn scores_are_those_of_lucene() {
    run("scores", 2, async |env, dir, mut numbers| {
        let shard = Shard::create(&env, &dir, &mapping(), Options::default()).await.unwrap();
        let mut texts: Vec<Vec<&str>> = Vec::new();
        let mut keys: Vec<Option<&str>> = Vec::new();
        let mut requests = Vec::new();
        for id in 0..120u64 {
            // Every fifth document has no text, and every third no key: averages are over those that have one.
            let length =
                if id % 5 == 0 { 0 } else { 1 + numbers.below(if id % 7 == 0 { 900 } else { 60 }) };
            let text: Vec<&str> = (0..length).map(|_| one(&mut numbers, &WORDS)).collect();
            let key = (id % 3 > 0).then(|| one(&mut numbers, &WORDS));
            let mut document = json!({"id": id});
            if length > 0 {
                document["text"] = json!(text.join(" "));
            }
            if let Some(key) = key {
                document["key"] = json!(key);
            }
            requests.push(index(id, &document));
            texts.push(text);
            keys.push(key);
        }
        // Two segments: statistics are those of the shard.
        let rest = requests.split_off(70);
        write(&shard, requests).await;
        shard.refresh().await.unwrap();
        write(&shard, rest).await;
        shard.refresh().await.unwrap();
        let with_text = texts.iter().filter(|text| !text.is_empty()).count() as f64;
        let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / with_text;
        let score = |word: &str, id: usize| {
            let frequency = texts[id].iter().filter(|other| **other == word).count() as f64;
            let with_word = texts.iter().filter(|text| text.contains(&word)).count() as f64;
            let length = lossy_length(texts[id].len() as u32).into();
            bm25(with_text, with_word, frequency, length, average)
        };
        let body = json!({"query": {"match": {"text": "red sky"}}, "size": 200});
        let (_, hits, ids) = search(&shard, &body).await;
        assert!(ids.len() > 50);
        for (hit, id) in hits.hits.iter().zip(&ids) {
            let (found, id) = (f64::from(hit.score.unwrap()), *id as usize);
            let expected = score("red", id) + score("sky", id);
            assert!(
                (found - expected).abs() < 2e-6 * expected.max(1.0),
                "{id}: {found} {expected}"
            );
        }
        let body = json!({"query": {"term": {"key": {"value": "blue", "boost": 3}}}, "size": 200});
        let (_, hits, _) = search(&shard, &body).await;
        let has_key = keys.iter().flatten().count() as f64;
        let with_word = keys.iter().filter(|key| **key == Some("blue")).count() as f64;
        let expected = 3.0 * bm25(has_key, with_word, 1.0, 1.0, 1.0);
        assert_eq!(hits.hits.len() as f64, with_word);
        assert!(
            hits.hits.iter().all(|hit| (f64::from(hit.score.unwrap()) - expected).abs() < 1e-5),
            "{expected}"
        );
        // What only filters does not score.
        let body = json!({"query": {"bool": {"filter": {"match": {"text": "red"}}}}, "size": 1});
        assert_eq!(search(&shard, &body).await.1.max_score, Some(0.0));
    });
}
