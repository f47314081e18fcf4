//! Documents, queries and aggregations drawn at random.

use serde_json::{Map, Value, json};

use crate::common::Numbers;

pub const WORDS: [&str; 6] = ["red", "green", "blue", "dark", "light", "sky"];

pub const FIELDS: [&str; 7] = ["key", "n", "x", "yes", "at", "from", "o.tag"];

pub fn one<T: Copy>(numbers: &mut Numbers, of: &[T]) -> T {
    of[numbers.below(of.len() as u64) as usize]
}

pub fn date(day: i64) -> String {
    format!("2020-{:02}-{:02}T{:02}:00:00.000Z", day / 28 % 12 + 1, day % 28 + 1, day % 24)
}

/// One value, or an array of some, or nothing; always one where documents are `whole`.
pub fn some(
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

pub fn document(numbers: &mut Numbers, id: u64, whole: bool) -> Value {
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
pub fn as_in_a_log(numbers: &mut Numbers, n: u64, of: u64, document: &mut Value) {
    let mut words = WORDS;
    words.sort_unstable();
    document["at"] = json!(date((n * 290 / of + numbers.below(8)) as i64));
    document["n"] = json!(10 - (n * 20 / of) as i64);
    document["x"] = json!(n as f64 - numbers.below(4) as f64);
    document["key"] = json!(format!("{}{}", words[(n * 6 / of) as usize], numbers.below(2)));
    document["yes"] = json!(n * 2 > of);
}

pub fn value_of(numbers: &mut Numbers, path: &str) -> Value {
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

pub fn query(numbers: &mut Numbers, depth: u64) -> Value {
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

pub fn metric(numbers: &mut Numbers) -> Value {
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

/// Whether it is a `composite`, or holds one.
fn has_pages(agg: &Value) -> bool {
    let subs = agg.get("aggs").and_then(Value::as_object);
    agg.get("composite").is_some() || subs.is_some_and(|subs| subs.values().any(has_pages))
}

/// An aggregation that may stand within another: a `composite` stands within filters alone.
fn within(numbers: &mut Numbers, depth: u64, is_filter: bool) -> Value {
    loop {
        let agg = aggregation(numbers, depth);
        if is_filter || !has_pages(&agg) {
            return agg;
        }
    }
}

pub fn aggregation(numbers: &mut Numbers, depth: u64) -> Value {
    if depth == 0 || numbers.below(3) == 0 {
        return metric(numbers);
    }
    let mut agg = match numbers.below(10) {
        0 | 1 => json!({"terms": {"field": one(numbers, &FIELDS), "size": numbers.below(12) + 1}}),
        2 => {
            json!({"histogram": {"field": one(numbers, &["n", "x"]), "interval": one(numbers, &[0.5, 3.0, 25.0])}})
        }
        3 => match numbers.below(2) {
            0 => json!({"date_histogram": {"field": "at", "calendar_interval": "month"}}),
            _ => json!({"date_histogram": {"field": "at", "fixed_interval": "7d"}}),
        },
        4 => json!({"filter": query(numbers, 1)}),
        5 => {
            let filters = json!({"a": query(numbers, 1), "b": query(numbers, 1)});
            json!({"filters": {"filters": filters, "other_bucket": numbers.below(2) == 0}})
        }
        6 => json!({"missing": {"field": one(numbers, &FIELDS)}}),
        7 => {
            let (a, b) = (one(numbers, &["key", "n"]), one(numbers, &["o.tag", "yes"]));
            json!({"multi_terms": {"terms": [{"field": a}, {"field": b}], "size": numbers.below(9) + 1}})
        }
        8 => {
            let order = one(numbers, &["asc", "desc"]);
            json!({"composite": {"size": numbers.below(9) + 1, "sources": [
                {"a": {"terms": {"field": one(numbers, &["key", "n"]), "order": order}}},
                {"b": {"terms": {"field": "o.tag"}}},
            ]}})
        }
        _ => {
            json!({"range": {"field": "n", "ranges": [{"to": -3.0}, {"from": -5.0, "to": 4.0}, {"from": 2.0}]}})
        }
    };

    let is_filter = agg.get("filter").is_some();
    let subs: Map<String, Value> = (0..numbers.below(3))
        .map(|at| (format!("s{at}"), within(numbers, depth - 1, is_filter)))
        .collect();
    if !subs.is_empty() {
        agg["aggs"] = Value::Object(subs);
    }
    agg
}
