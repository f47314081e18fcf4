//! Queries by brute force, over the JSON of the documents.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::random::date;

pub const DAY: i64 = 86_400_000;

pub fn date_ms(day: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335];
    let days = 18_262 + BEFORE[(day / 28 % 12) as usize] + day % 28;
    days * DAY + day % 24 * 3_600_000
}

/// The values of a field of a document.
pub fn values<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
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

pub fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A value as a number: milliseconds of a date, 0 and 1.
pub fn number(path: &str, value: &Value) -> f64 {
    match (path, value) {
        ("at", Value::String(text)) => {
            (0..336).map(|d| (date(d), date_ms(d))).find(|(t, _)| t == text).unwrap().1 as f64
        }
        (_, Value::Bool(yes)) => f64::from(*yes),
        (_, value) => value.as_f64().unwrap(),
    }
}

pub fn compare(path: &str, a: &Value, b: &Value) -> Ordering {
    match path {
        "key" | "o.tag" => a.as_str().cmp(&b.as_str()),
        "from" => {
            let parts = |v: &Value| v.as_str().unwrap().parse::<std::net::Ipv4Addr>().unwrap();
            parts(a).cmp(&parts(b))
        }
        _ => number(path, a).total_cmp(&number(path, b)),
    }
}

pub fn distance_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    // The spherical law of cosines, so that not the same formula is tested against itself.
    let (lat1, lat2, delta) = (a.0.to_radians(), b.0.to_radians(), (b.1 - a.1).to_radians());
    let cosine = lat1.sin() * lat2.sin() + lat1.cos() * lat2.cos() * delta.cos();
    6_371_008.771_4 * cosine.clamp(-1.0, 1.0).acos()
}

pub fn fits(query: &Value, document: &Value) -> bool {
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
            // A single word is no list of clauses, of which more could be needed.
            let given = options["minimum_should_match"].as_u64().filter(|_| wanted.len() > 1);
            if all { there == wanted.len() } else { there as u64 >= given.unwrap_or(1).max(1) }
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
            !values(document, path).is_empty()
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
            let place = (place["lat"].as_f64().unwrap(), place["lon"].as_f64().unwrap());
            // Points are kept in 32 bits, rounded down.
            let kept = |degrees: f64, step: f64| (degrees / step).floor() * step;
            let (lat, lon) =
                (kept(place.0, 180.0 / 2_f64.powi(32)), kept(place.1, 360.0 / 2_f64.powi(32)));
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
            let is_alone = list("must").is_empty() && list("filter").is_empty();
            let given = body["minimum_should_match"].as_u64().unwrap_or(0);
            let needed = match is_alone && should.is_empty() {
                true => 0,
                false => given.max(u64::from(is_alone)),
            };
            list("must").iter().chain(&list("filter")).all(|query| fits(query, document))
                && !list("must_not").iter().any(|query| fits(query, document))
                && should.iter().filter(|query| fits(query, document)).count() as u64 >= needed
        }
        "constant_score" => fits(&body["filter"], document),
        other => panic!("{other}"),
    }
}

/// The value that a document is sorted by.
pub fn sort_value<'a>(document: &'a Value, path: &str, descending: bool) -> Option<&'a Value> {
    let all = values(document, path);
    let ordered = |a: &&&Value, b: &&&Value| compare(path, a, b);
    if descending {
        all.iter().max_by(ordered).copied()
    } else {
        all.iter().min_by(ordered).copied()
    }
}
