//! Searches against a brute-force evaluation of the same JSON over the same documents.

mod common;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use common::{Numbers, write};
use serde_json::{Map, Value, json};
use store::search::aggregation::{DEFAULT_MAX_BUCKETS, render};
use store::search::{SearchLimits, SearchRequest, ShardHits, SourceFilter, parse_search};
use store::{Mapping, Options, Shard, WriteRequest};
use world::Env;

const DAY: i64 = 86_400_000;
const WORDS: [&str; 6] = ["red", "green", "blue", "dark", "light", "sky"];

fn mapping() -> Mapping {
    Mapping::parse(&json!({"properties": {
        "key": {"type": "keyword"}, "text": {"type": "text"}, "n": {"type": "long"}, "x": {"type": "double"},
        "yes": {"type": "boolean"}, "at": {"type": "date"}, "from": {"type": "ip"}, "id": {"type": "long"},
        "place": {"type": "geo_point"}, "o": {"properties": {"tag": {"type": "keyword"}}},
    }}))
    .unwrap()
}

fn limits() -> SearchLimits {
    SearchLimits {
        now_ms: 0,
        max_buckets: DEFAULT_MAX_BUCKETS,
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn one<T: Copy>(numbers: &mut Numbers, of: &[T]) -> T {
    of[numbers.below(of.len() as u64) as usize]
}

fn date(day: i64) -> String {
    format!("2020-{:02}-{:02}T{:02}:00:00.000Z", day / 28 % 12 + 1, day % 28 + 1, day % 24)
}

fn date_ms(day: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335];
    let days = 18_262 + BEFORE[(day / 28 % 12) as usize] + day % 28;
    days * DAY + day % 24 * 3_600_000
}

/// One value, or an array of some, or nothing; always one where documents are `whole`.
fn some(
    numbers: &mut Numbers,
    whole: bool,
    mut make: impl FnMut(&mut Numbers) -> Value,
) -> Option<Value> {
    match numbers.below(6) {
        _ if whole => Some(make(numbers)),
        0 => None,
        1 => Some((0..numbers.below(4)).map(|_| make(numbers)).collect()),
        _ => Some(make(numbers)),
    }
}

fn document(numbers: &mut Numbers, id: u64, whole: bool) -> Value {
    let mut fields = Map::new();
    fields.insert("id".into(), json!(id));
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.into(), value);
        }
    };
    put("key", some(numbers, whole, |n| json!(format!("{}{}", one(n, &WORDS), n.below(3)))));
    put(
        "text",
        some(numbers, whole, |n| {
            let words: Vec<&str> = (0..n.below(7)).map(|_| one(n, &WORDS)).collect();
            json!(words.join(" "))
        }),
    );
    put("n", some(numbers, whole, |n| json!(n.below(20) as i64 - 10)));
    put("x", some(numbers, whole, |n| json!(n.below(4000) as f64 / 16.0 - 100.0)));
    put("yes", some(numbers, whole, |n| json!(n.below(2) == 1)));
    put("at", some(numbers, whole, |n| json!(date(n.below(300) as i64))));
    put("from", some(numbers, whole, |n| json!(format!("10.0.{}.{}", n.below(3), n.below(4)))));
    let place = (numbers.below(5) > 0).then(|| {
        json!({"lat": numbers.below(120) as f64 - 60.0, "lon": numbers.below(359) as f64 - 179.0})
    });
    put("place", place);
    put("o", some(numbers, whole, |n| json!(one(n, &WORDS))).map(|tag| json!({"tag": tag})));
    Value::Object(fields)
}

/// Makes a document one of a log: the times, numbers and keys of `of` documents rise or fall with `n`, nearly.
fn as_in_a_log(numbers: &mut Numbers, n: u64, of: u64, document: &mut Value) {
    let mut words = WORDS;
    words.sort_unstable();
    document["at"] = json!(date((n * 290 / of + numbers.below(8)) as i64));
    document["n"] = json!(10 - (n * 20 / of) as i64);
    document["x"] = json!(n as f64 - numbers.below(4) as f64);
    document["key"] = json!(format!("{}{}", words[(n * 6 / of) as usize], numbers.below(2)));
    document["yes"] = json!(n * 2 > of);
}

/// The values of a field of a document.
fn values<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut at = document;
    for part in path.split('.') {
        match at.get(part) {
            Some(next) => at = next,
            None => return Vec::new(),
        }
    }
    match at {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A value as a number: milliseconds of a date, 0 and 1.
fn number(path: &str, value: &Value) -> f64 {
    match (path, value) {
        ("at", Value::String(text)) => {
            (0..336).map(|d| (date(d), date_ms(d))).find(|(t, _)| t == text).unwrap().1 as f64
        }
        (_, Value::Bool(yes)) => f64::from(*yes),
        (_, value) => value.as_f64().unwrap(),
    }
}

fn compare(path: &str, a: &Value, b: &Value) -> Ordering {
    match path {
        "key" | "o.tag" => a.as_str().cmp(&b.as_str()),
        "from" => {
            let parts = |v: &Value| v.as_str().unwrap().parse::<std::net::Ipv4Addr>().unwrap();
            parts(a).cmp(&parts(b))
        }
        _ => number(path, a).total_cmp(&number(path, b)),
    }
}

fn distance_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    // The spherical law of cosines, so that not the same formula is tested against itself.
    let (lat1, lat2, delta) = (a.0.to_radians(), b.0.to_radians(), (b.1 - a.1).to_radians());
    let cosine = lat1.sin() * lat2.sin() + lat1.cos() * lat2.cos() * delta.cos();
    6_371_008.771_4 * cosine.clamp(-1.0, 1.0).acos()
}

fn fits(query: &Value, document: &Value) -> bool {
    let (kind, body) = query.as_object().unwrap().iter().next().unwrap();
    let first = || body.as_object().unwrap().iter().next().unwrap();
    let list = |name: &str| match body.get(name) {
        None => Vec::new(),
        Some(Value::Array(items)) => items.iter().collect(),
        Some(one) => vec![one],
    };
    match kind.as_str() {
        "match_all" => true,
        "term" => {
            let (path, value) = first();
            values(document, path).iter().any(|found| match path.as_str() {
                "text" => words(found.as_str().unwrap()).contains(&value.as_str().unwrap()),
                path => compare(path, found, value).is_eq(),
            })
        }
        "terms" => {
            let (path, wanted) = first();
            wanted
                .as_array()
                .unwrap()
                .iter()
                .any(|value| fits(&json!({"term": {path: value}}), document))
        }
        "match" => {
            let (path, options) = first();
            let all = options["operator"] == "and";
            let found: BTreeSet<&str> = values(document, path)
                .iter()
                .flat_map(|text| words(text.as_str().unwrap()))
                .collect();
            let wanted = words(options["query"].as_str().unwrap());
            let there = wanted.iter().filter(|word| found.contains(*word)).count();
            let needed =
                options["minimum_should_match"].as_u64().unwrap_or(1).min(wanted.len() as u64);
            if all { there == wanted.len() } else { there as u64 >= needed.max(1) && there > 0 }
        }
        "match_phrase" => {
            let (path, text) = first();
            let wanted = words(text.as_str().unwrap());
            values(document, path).iter().any(|text| {
                words(text.as_str().unwrap()).windows(wanted.len()).any(|found| found == wanted)
            })
        }
        "prefix" => {
            let (path, start) = first();
            values(document, path)
                .iter()
                .any(|found| found.as_str().unwrap().starts_with(start.as_str().unwrap()))
        }
        "range" => {
            let (path, ends) = first();
            values(document, path).iter().any(|found| {
                ends.as_object().unwrap().iter().all(|(end, value)| {
                    let ordering = compare(path, found, value);
                    match end.as_str() {
                        "gt" => ordering.is_gt(),
                        "gte" => ordering.is_ge(),
                        "lt" => ordering.is_lt(),
                        _ => ordering.is_le(),
                    }
                })
            })
        }
        "exists" => {
            let path = body["field"].as_str().unwrap();
            let path = if path == "o" { "o.tag" } else { path };
            // A text without words has nothing that could be found.
            values(document, path).iter().any(|value| value.as_str() != Some(""))
        }
        "ids" => list("values").iter().any(|id| id.as_str() == Some(&document["id"].to_string())),
        "geo_distance" => {
            let center =
                (body["place"]["lat"].as_f64().unwrap(), body["place"]["lon"].as_f64().unwrap());
            let limit =
                body["distance"].as_str().unwrap().trim_end_matches("km").parse::<f64>().unwrap();
            document.get("place").is_some_and(|place| {
                let place = (place["lat"].as_f64().unwrap(), place["lon"].as_f64().unwrap());
                distance_m(center, place) <= limit * 1000.0
            })
        }
        "geo_bounding_box" => document.get("place").is_some_and(|place| {
            let side = |name: &str| body["place"][name].as_f64().unwrap();
            let (lat, lon) = (place["lat"].as_f64().unwrap(), place["lon"].as_f64().unwrap());
            let (left, right) = (side("left"), side("right"));
            let between = if left <= right {
                lon >= left && lon <= right
            } else {
                lon >= left || lon <= right
            };
            between && lat <= side("top") && lat >= side("bottom")
        }),
        "bool" => {
            let should = list("should");
            let default = u64::from(
                list("must").is_empty() && list("filter").is_empty() && !should.is_empty(),
            );
            let needed =
                body["minimum_should_match"].as_u64().unwrap_or(default).min(should.len() as u64);
            list("must").iter().chain(&list("filter")).all(|query| fits(query, document))
                && !list("must_not").iter().any(|query| fits(query, document))
                && should.iter().filter(|query| fits(query, document)).count() as u64 >= needed
        }
        "constant_score" => fits(&body["filter"], document),
        other => panic!("{other}"),
    }
}

fn value_of(numbers: &mut Numbers, path: &str) -> Value {
    match path {
        "key" => json!(format!("{}{}", one(numbers, &WORDS), numbers.below(4))),
        "o.tag" | "text" => json!(one(numbers, &WORDS)),
        "n" => json!(numbers.below(22) as i64 - 11),
        "x" => json!(numbers.below(4000) as f64 / 16.0 - 100.0),
        "yes" => json!(numbers.below(2) == 1),
        "at" => json!(date(numbers.below(300) as i64)),
        _ => json!(format!("10.0.{}.{}", numbers.below(3), numbers.below(4))),
    }
}

const FIELDS: [&str; 7] = ["key", "n", "x", "yes", "at", "from", "o.tag"];

fn query(numbers: &mut Numbers, depth: u64) -> Value {
    let path = one(numbers, &FIELDS);
    match numbers.below(if depth == 0 { 12 } else { 16 }) {
        0 => json!({"match_all": {}}),
        1 => json!({"term": {path: value_of(numbers, path)}}),
        2 => json!({"term": {"text": one(numbers, &WORDS)}}),
        3 => {
            let wanted: Vec<Value> =
                (0..numbers.below(4)).map(|_| value_of(numbers, path)).collect();
            json!({"terms": {path: wanted}})
        }
        4 => {
            let text: Vec<&str> = (0..=numbers.below(3)).map(|_| one(numbers, &WORDS)).collect();
            let text = text.join(" ");
            match numbers.below(3) {
                0 => json!({"match": {"text": {"query": text}}}),
                1 => json!({"match": {"text": {"query": text, "operator": "and"}}}),
                _ => json!({"match": {"text": {"query": text, "minimum_should_match": 2}}}),
            }
        }
        5 => {
            json!({"match_phrase": {"text": format!("{} {}", one(numbers, &WORDS), one(numbers, &WORDS))}})
        }
        6 => json!({"prefix": {"key": one(numbers, &["r", "green", "blue1", "q", "d"])}}),
        7 => {
            let mut ends = Map::new();
            if numbers.below(3) > 0 {
                ends.insert(one(numbers, &["gt", "gte"]).into(), value_of(numbers, path));
            }
            if numbers.below(3) > 0 {
                ends.insert(one(numbers, &["lt", "lte"]).into(), value_of(numbers, path));
            }
            json!({"range": {path: ends}})
        }
        8 => {
            json!({"exists": {"field": one(numbers, &["key", "n", "text", "place", "o", "from", "yes", "at", "x"])}})
        }
        9 => {
            json!({"ids": {"values": [numbers.below(200).to_string(), numbers.below(200).to_string(), "none"]}})
        }
        10 => json!({"geo_distance": {
            "distance": format!("{}km", numbers.below(9000)),
            "place": {"lat": numbers.below(120) as f64 - 60.0, "lon": numbers.below(359) as f64 - 179.0},
        }}),
        11 => json!({"geo_bounding_box": {"place": {
            "top": numbers.below(60), "bottom": -(numbers.below(60) as i64),
            "left": numbers.below(359) as i64 - 179, "right": numbers.below(359) as i64 - 179,
        }}}),
        12 => json!({"constant_score": {"filter": query(numbers, depth - 1)}}),
        _ => {
            let mut body = Map::new();
            for (name, most) in [("must", 2), ("filter", 2), ("should", 4), ("must_not", 2)] {
                let clauses: Vec<Value> =
                    (0..numbers.below(most)).map(|_| query(numbers, depth - 1)).collect();
                if !clauses.is_empty() {
                    body.insert(name.into(), json!(clauses));
                }
            }
            if numbers.below(3) == 0 {
                body.insert("minimum_should_match".into(), json!(numbers.below(4)));
            }
            json!({"bool": body})
        }
    }
}

/// A copy with documents in several segments, some written twice, some deleted; and what it must hold.
async fn filled(env: &Env, dir: &Path, numbers: &mut Numbers) -> (Shard, BTreeMap<u64, Value>) {
    let shard = Shard::create(env, dir, &mapping(), Options::default()).await.unwrap();
    let mut there = BTreeMap::new();
    for _ in 0..=numbers.below(4) {
        let mut requests = Vec::new();
        // Segments in which each document has each field once are read in another way, a block at a time; and blocks are
        // passed over where values lie as in a log.
        let whole = numbers.below(3) > 0;
        let log = whole && numbers.below(2) == 0;
        let count = numbers.below(if whole { 180 } else { 60 });
        for n in 0..count {
            let id = numbers.below(200);
            let name: Arc<str> = id.to_string().into();
            if there.contains_key(&id) && numbers.below(3) == 0 {
                requests.push(WriteRequest::Delete { id: name });
                there.remove(&id);
            } else {
                let mut document = document(numbers, id, whole);
                if log {
                    as_in_a_log(numbers, n, count, &mut document);
                }
                let source = Bytes::from(document.to_string());
                requests.push(WriteRequest::Index {
                    id: name,
                    source,
                    auto_id: false,
                    create: false,
                });
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
    let found = shard.fetch(&view, places, &SourceFilter::default()).await.unwrap();
    let ids = found.iter().map(|hit| hit.id.parse().unwrap()).collect();
    (request, hits, ids)
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

/// The value that a document is sorted by.
fn sort_value<'a>(document: &'a Value, path: &str, descending: bool) -> Option<&'a Value> {
    let all = values(document, path);
    let ordered = |a: &&&Value, b: &&&Value| compare(path, a, b);
    if descending {
        all.iter().max_by(ordered).copied()
    } else {
        all.iter().min_by(ordered).copied()
    }
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
            expected.sort_by(|a, b| {
                let of = |id: &u64| sort_value(&there[id], path, descending);
                match (of(a), of(b)) {
                    (Some(a), Some(b)) if descending => compare(path, b, a),
                    (Some(a), Some(b)) => compare(path, a, b),
                    (None, None) => Ordering::Equal,
                    (None, _) => {
                        if first {
                            Ordering::Less
                        } else {
                            Ordering::Greater
                        }
                    }
                    (_, None) => {
                        if first {
                            Ordering::Greater
                        } else {
                            Ordering::Less
                        }
                    }
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
                after = last.sort.iter().map(sort_json).collect();
                pages.extend(ids);
            }
            assert_eq!(pages, expected, "{key}");
            let (from, size) = (numbers.below(20) as usize, numbers.below(20) as usize);
            let body = json!({"from": from, "size": size, "sort": [key, "id"]});
            let (_, _, ids) = search(&shard, &body).await;
            // A shard sends what may be wanted; who merges cuts the beginning off.
            let wanted: Vec<u64> = expected.iter().take(from + size).copied().collect();
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

fn sort_json(value: &store::search::SortValue) -> Value {
    use store::search::SortValue;
    match value {
        SortValue::Null => Value::Null,
        SortValue::Long(number) => json!(number),
        SortValue::Double(number) if number.is_infinite() => {
            json!(if *number > 0.0 { "Infinity" } else { "-Infinity" })
        }
        SortValue::Double(number) => json!(number),
        SortValue::Text(text) => json!(text),
    }
}

/// Aggregates some documents.
fn aggregate(aggs: &Value, documents: &[&Value]) -> Value {
    let one = |(name, agg): (&String, &Value)| {
        let subs = agg.get("aggs").cloned().unwrap_or_else(|| json!({}));
        let (kind, body) =
            agg.as_object().unwrap().iter().find(|(name, _)| *name != "aggs").unwrap();
        (name.clone(), aggregate_one(kind, body, &subs, documents))
    };
    Value::Object(aggs.as_object().unwrap().iter().map(one).collect())
}

fn with_subs(mut bucket: Value, subs: &Value, documents: &[&Value]) -> Value {
    bucket["doc_count"] = json!(documents.len());
    let found = aggregate(subs, documents);
    for (name, value) in found.as_object().unwrap() {
        bucket[name] = value.clone();
    }
    bucket
}

/// Documents by keys; each counts once for a key.
fn by_key<K: Ord>(
    documents: &[&Value],
    keys: impl Fn(&Value) -> Vec<K>,
) -> BTreeMap<K, Vec<usize>> {
    let mut buckets: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (at, document) in documents.iter().enumerate() {
        for key in keys(document).into_iter().collect::<BTreeSet<_>>() {
            buckets.entry(key).or_default().push(at);
        }
    }
    buckets
}

fn aggregate_one(kind: &str, body: &Value, subs: &Value, documents: &[&Value]) -> Value {
    let path = body["field"].as_str().unwrap();
    let all: Vec<f64> = match kind {
        "terms" | "cardinality" | "value_count" => Vec::new(),
        _ => documents.iter().flat_map(|d| values(d, path)).map(|v| number(path, v)).collect(),
    };
    let of = |places: &[usize]| places.iter().map(|at| documents[*at]).collect::<Vec<_>>();
    let sum: f64 = all.iter().sum();
    let opt = |value: f64| if all.is_empty() { Value::Null } else { json!(value) };
    let fold = |f: fn(f64, f64) -> f64, from: f64| all.iter().copied().fold(from, f);
    let (min, max) = (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY));
    match kind {
        "min" => json!({"value": opt(min)}),
        "max" => json!({"value": opt(max)}),
        "sum" => json!({"value": sum}),
        "avg" => json!({"value": opt(sum / all.len() as f64)}),
        "stats" => {
            json!({"count": all.len(), "min": opt(min), "max": opt(max), "sum": sum, "avg": opt(sum / all.len() as f64)})
        }
        "value_count" => {
            let distinct = |d: &&Value| match path {
                // Columns of texts hold each value of a document once for each time that it is there.
                "key" => values(d, path).len(),
                _ => values(d, path).len(),
            };
            json!({"value": documents.iter().map(distinct).sum::<usize>()})
        }
        "cardinality" => {
            let distinct: BTreeSet<String> =
                documents.iter().flat_map(|d| values(d, path)).map(Value::to_string).collect();
            json!({"value": distinct.len()})
        }
        "percentiles" => {
            let mut sorted = all.clone();
            sorted.sort_by(f64::total_cmp);
            let quantile = |percent: f64| {
                let index = percent / 100.0 * sorted.len() as f64 - 0.5;
                let at = |i: f64| sorted[(i.max(0.0) as usize).min(sorted.len() - 1)];
                let low = index.floor();
                at(low) + (at(low + 1.0) - at(low)) * (index - low) * f64::from(low >= 0.0)
            };
            let value = |p: f64| if sorted.is_empty() { Value::Null } else { json!(quantile(p)) };
            json!({"values": {"25.0": value(25.0), "50.0": value(50.0), "99.9": value(99.9)}})
        }
        "terms" => {
            let buckets = by_key(documents, |d| {
                values(d, path).into_iter().map(|v| Sortable(path.to_owned(), v.clone())).collect()
            });
            let mut rows: Vec<(Sortable, Vec<usize>)> = buckets.into_iter().collect();
            rows.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
            let size = body["size"].as_u64().unwrap() as usize;
            let other: usize = rows.iter().skip(size).map(|(_, places)| places.len()).sum();
            let bucket =
                |(key, places): &(Sortable, Vec<usize>)| with_subs(key.json(), subs, &of(places));
            let buckets: Vec<Value> = rows.iter().take(size).map(bucket).collect();
            json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": other, "buckets": buckets})
        }
        "histogram" => {
            let interval = body["interval"].as_f64().unwrap();
            let bucket_of = |d: &Value| {
                values(d, path)
                    .iter()
                    .map(|v| (number(path, v) / interval).floor() as i64)
                    .collect()
            };
            let rows = by_key(documents, bucket_of);
            let (first, last) = (rows.keys().next().copied(), rows.keys().last().copied());
            let keys = first.zip(last).map(|(a, b)| a..=b).into_iter().flatten();
            let bucket = |key: i64| {
                let places = rows.get(&key).map(|places| of(places)).unwrap_or_default();
                with_subs(json!({"key": key as f64 * interval}), subs, &places)
            };
            json!({"buckets": keys.map(bucket).collect::<Vec<_>>()})
        }
        "date_histogram" => {
            // Months of 2020, or fixed widths.
            let starts: Vec<i64> = match body.get("fixed_interval") {
                Some(_) => (0..60).map(|week| (18_262 / 7 + week) * 7 * DAY).collect(),
                None => (0..13)
                    .map(|m| {
                        if m == 12 { 18_628 * DAY } else { date_ms(m * 28) - date_ms(m * 28) % DAY }
                    })
                    .collect(),
            };
            let start =
                |v: &Value| *starts.iter().rfind(|s| **s <= number(path, v) as i64).unwrap();
            let rows = by_key(documents, |d| values(d, path).into_iter().map(start).collect());
            let (first, last) = (rows.keys().next().copied(), rows.keys().last().copied());
            let bucket = |key: &i64| {
                let places = rows.get(key).map(|places| of(places)).unwrap_or_default();
                with_subs(json!({"key": key}), subs, &places)
            };
            let between = |s: &&i64| {
                first.is_some_and(|first| **s >= first) && last.is_some_and(|last| **s <= last)
            };
            json!({"buckets": starts.iter().filter(between).map(bucket).collect::<Vec<_>>()})
        }
        "range" => {
            let bucket = |range: &Value| {
                let inside = |v: &&Value| {
                    let v = number(path, v);
                    range["from"].as_f64().is_none_or(|from| v >= from)
                        && range["to"].as_f64().is_none_or(|to| v < to)
                };
                let places: Vec<&Value> = documents
                    .iter()
                    .filter(|d| values(d, path).iter().any(&inside))
                    .copied()
                    .collect();
                with_subs(range.clone(), subs, &places)
            };
            json!({"buckets": body["ranges"].as_array().unwrap().iter().map(bucket).collect::<Vec<_>>()})
        }
        other => panic!("{other}"),
    }
}

/// A value of a field that sorts as the field does.
#[derive(Clone, PartialEq)]
struct Sortable(String, Value);

impl Sortable {
    fn json(&self) -> Value {
        match self.0.as_str() {
            "at" => json!({"key": number("at", &self.1) as i64}),
            "yes" => json!({"key": i64::from(self.1 == true)}),
            _ => json!({"key": self.1}),
        }
    }
}

impl Eq for Sortable {}
impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sortable {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &self.1, &other.1)
    }
}

fn metric(numbers: &mut Numbers) -> Value {
    let path = one(numbers, &["n", "x", "at", "yes"]);
    match numbers.below(8) {
        0 => json!({"min": {"field": path}}),
        1 => json!({"max": {"field": path}}),
        2 => json!({"sum": {"field": path}}),
        3 => json!({"avg": {"field": path}}),
        4 => json!({"stats": {"field": path}}),
        5 => json!({"value_count": {"field": one(numbers, &["key", "n", "from", "x"])}}),
        6 => json!({"cardinality": {"field": one(numbers, &FIELDS)}}),
        _ => json!({"percentiles": {"field": path, "percents": [25, 50, 99.9]}}),
    }
}

fn aggregation(numbers: &mut Numbers, depth: u64) -> Value {
    if depth == 0 || numbers.below(3) == 0 {
        return metric(numbers);
    }
    let mut agg = match numbers.below(5) {
        0 | 1 => json!({"terms": {"field": one(numbers, &FIELDS), "size": numbers.below(12) + 1}}),
        2 => {
            json!({"histogram": {"field": one(numbers, &["n", "x"]), "interval": one(numbers, &[0.5, 3.0, 25.0])}})
        }
        3 => match numbers.below(2) {
            0 => json!({"date_histogram": {"field": "at", "calendar_interval": "month"}}),
            _ => json!({"date_histogram": {"field": "at", "fixed_interval": "7d"}}),
        },
        _ => {
            json!({"range": {"field": "n", "ranges": [{"to": -3.0}, {"from": -5.0, "to": 4.0}, {"from": 2.0}]}})
        }
    };
    let subs: Map<String, Value> = (0..numbers.below(3))
        .map(|at| (format!("s{at}"), aggregation(numbers, depth - 1)))
        .collect();
    if !subs.is_empty() {
        agg["aggs"] = Value::Object(subs);
    }
    agg
}

/// Equal but for rounding, and for what only the one that is found shows besides.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            b.iter().all(|(name, b)| a.get(name).is_some_and(|a| same(a, b)))
        }
        (a, b) => a == b,
    }
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
            let found =
                render(&request.aggregations, hits.aggregations, DEFAULT_MAX_BUCKETS).unwrap();
            let documents: Vec<&Value> =
                there.values().filter(|document| fits(&query, document)).collect();
            let expected = aggregate(&aggs, &documents);
            assert!(same(&found, &expected), "{body}\nfound    {found}\nexpected {expected}");
        }
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
        let source = Bytes::from(r#"{"id": 999, "text": "red", "key": "red0"}"#);
        let index = WriteRequest::Index { id: "999".into(), source, auto_id: false, create: false };
        write(&shard, vec![index]).await;
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
            let source = Bytes::from(document.to_string());
            let name: Arc<str> = id.to_string().into();
            requests.push(WriteRequest::Index { id: name, source, auto_id: false, create: false });
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
            bm25(
                with_text,
                with_word,
                frequency,
                lossy_length(texts[id].len() as u32).into(),
                average,
            )
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
