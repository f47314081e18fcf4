//! Aggregations by brute force, over the JSON of the documents.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::model::{DAY, compare, date_ms, fits, number, values};

/// Aggregates some documents.
pub fn aggregate(aggs: &Value, documents: &[&Value]) -> Value {
    let one = |(name, agg): (&String, &Value)| {
        let subs = agg.get("aggs").cloned().unwrap_or_else(|| json!({}));
        let (kind, body) =
            agg.as_object().unwrap().iter().find(|(name, _)| *name != "aggs").unwrap();
        (name.clone(), aggregate_one(kind, body, &subs, documents))
    };
    Value::Object(aggs.as_object().unwrap().iter().map(one).collect())
}

pub fn with_subs(mut bucket: Value, subs: &Value, documents: &[&Value]) -> Value {
    bucket["doc_count"] = json!(documents.len());
    let found = aggregate(subs, documents);
    for (name, value) in found.as_object().unwrap() {
        bucket[name] = value.clone();
    }
    bucket
}

/// Documents by keys; each counts once for a key.
fn by_key<'d, K: Ord>(
    documents: &[&'d Value],
    keys: impl Fn(&Value) -> Vec<K>,
) -> BTreeMap<K, Vec<&'d Value>> {
    let mut buckets: BTreeMap<K, Vec<&Value>> = BTreeMap::new();
    for &document in documents {
        for key in keys(document).into_iter().collect::<BTreeSet<_>>() {
            buckets.entry(key).or_default().push(document);
        }
    }
    buckets
}

pub fn aggregate_one(kind: &str, body: &Value, subs: &Value, documents: &[&Value]) -> Value {
    if let "filter" | "filters" | "missing" | "multi_terms" | "composite" = kind {
        return of_documents(kind, body, subs, documents);
    }
    let path = body["field"].as_str().unwrap();
    let all: Vec<f64> = match kind {
        "terms" | "cardinality" | "value_count" => Vec::new(),
        _ => documents.iter().flat_map(|d| values(d, path)).map(|v| number(path, v)).collect(),
    };
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
            let counted = |d: &&Value| match path {
                // Columns of words and addresses hold each value of a document once.
                "key" | "from" => {
                    let once: BTreeSet<String> =
                        values(d, path).into_iter().map(Value::to_string).collect();
                    once.len()
                }
                _ => values(d, path).len(),
            };
            json!({"value": documents.iter().map(counted).sum::<usize>()})
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
            let mut rows: Vec<(Sortable, Vec<&Value>)> = buckets.into_iter().collect();
            rows.sort_by_key(|(_, there)| std::cmp::Reverse(there.len()));
            let size = body["size"].as_u64().unwrap() as usize;
            let other: usize = rows.iter().skip(size).map(|(_, there)| there.len()).sum();
            let bucket =
                |(key, there): &(Sortable, Vec<&Value>)| with_subs(key.json(), subs, there);
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
                let there = rows.get(&key).cloned().unwrap_or_default();
                with_subs(json!({"key": key as f64 * interval}), subs, &there)
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
                let there = rows.get(key).cloned().unwrap_or_default();
                with_subs(json!({"key": key}), subs, &there)
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

/// Buckets that are not of the values of one field.
fn of_documents(kind: &str, body: &Value, subs: &Value, documents: &[&Value]) -> Value {
    let filtered = |fits: &dyn Fn(&Value) -> bool| {
        let there: Vec<&Value> = documents.iter().filter(|d| fits(d)).copied().collect();
        with_subs(json!({}), subs, &there)
    };
    let size = body["size"].as_u64().unwrap_or(0) as usize;
    match kind {
        "filter" => filtered(&|d| fits(body, d)),
        "missing" => filtered(&|d| values(d, body["field"].as_str().unwrap()).is_empty()),
        "filters" => {
            let filters = body["filters"].as_object().unwrap();
            let mut buckets = json!({});
            for (name, query) in filters {
                buckets[name] = filtered(&|d| fits(query, d));
            }
            if body["other_bucket"] == true {
                buckets["_other_"] = filtered(&|d| !filters.values().any(|query| fits(query, d)));
            }
            json!({ "buckets": buckets })
        }
        _ => {
            let sources: Vec<(String, bool)> = match kind {
                "composite" => body["sources"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|source| {
                        let of = &source.as_object().unwrap().values().next().unwrap()["terms"];
                        (of["field"].as_str().unwrap().to_owned(), of["order"] == "desc")
                    })
                    .collect(),
                _ => body["terms"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|of| (of["field"].as_str().unwrap().to_owned(), false))
                    .collect(),
            };
            let tuples = |d: &Value| {
                let of = |at: usize| values(d, &sources[at].0).into_iter().cloned();
                let sortable = |at: usize, v| Sortable(sources[at].0.clone(), v);
                of(0)
                    .flat_map(|a| of(1).map(move |b| (a.clone(), b)))
                    .map(|(a, b)| (sortable(0, a), sortable(1, b)))
                    .collect::<Vec<_>>()
            };
            let mut rows: Vec<_> = by_key(documents, tuples).into_iter().collect();
            if kind == "multi_terms" {
                rows.sort_by_key(|(_, there)| std::cmp::Reverse(there.len()));
            } else if sources[0].1 {
                rows.sort_by(|((a, b), _), ((c, d), _)| c.cmp(a).then(b.cmp(d)));
            }
            let plain = |of: &Sortable| of.1.clone();
            let bucket = |((a, b), there): &((Sortable, Sortable), Vec<&Value>)| {
                let key = match kind {
                    "composite" => json!({"a": plain(a), "b": plain(b)}),
                    _ => json!([plain(a), plain(b)]),
                };
                with_subs(json!({ "key": key }), subs, there)
            };
            json!({"buckets": rows.iter().take(size).map(bucket).collect::<Vec<_>>()})
        }
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

/// Equal but for rounding, and for what only the one that is found shows besides.
pub fn same(found: &Value, expected: &Value) -> bool {
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
