//! What differs between two answers to one request, a line for each place.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// How much of two answers is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Which keys there are, and of which kind their values are; of an array its first element.
    Shape,
    /// All of it; numbers to six digits, whole ones exactly: an hour is a small part of a moment.
    Values,
}

/// Keys whose values each names, counts or measures for itself: they are compared by their shape.
const OWN_VALUES: [&str; 10] = [
    "_primary_term", "_scroll_id", "_seq_no", "build_hash", "creation_date", "creation_time", "id",
    "pit_id", "took", "uuid",
];

/// What is compared of an error; its reason is in words of one's own.
const OF_AN_ERROR: [&str; 3] = ["index", "resource.id", "type"];

/// Of two numbers that are the same to six digits.
const PART_BETWEEN_MAX: f64 = 5e-6;
/// Scores below this are zero to whoever reads them.
const ZERO: f64 = 1e-30;

/// Characters of a value that are shown.
const SHOWN_MAX: usize = 60;

/// What differs between our answer and theirs.
pub fn differences(ours: &Value, theirs: &Value, depth: Depth) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &comparable(ours), &comparable(theirs), depth, &mut found);
    found
}

/// Whether a pattern stands for a text; each `*` in it stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Without the only node's own name, and without what errors say in words.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(comparable).collect(),
        Value::Object(values) => {
            let one = |(name, value): (&String, &Value)| {
                let value = match value {
                    Value::Object(error) if name == "error" => of_an_error(error, values),
                    Value::Object(nodes) if name == "nodes" && nodes.len() == 1 => {
                        json!({ "node": nodes.values().map(comparable).next() })
                    }
                    _ => comparable(value),
                };
                (name.clone(), value)
            };
            values.iter().map(one).collect()
        }
        _ => value.clone(),
    }
}

/// Of a bad request nothing: which mistake is found first, and what it is called, differs.
fn of_an_error(error: &Map<String, Value>, answer: &Map<String, Value>) -> Value {
    let is_bad_request = answer.get("status") == Some(&json!(400));
    let names = OF_AN_ERROR.iter().filter(|_| !is_bad_request);
    names.filter_map(|name| Some(((*name).to_owned(), error.get(*name)?.clone()))).collect()
}

fn compare(path: &str, ours: &Value, theirs: &Value, depth: Depth, found: &mut Vec<String>) {
    let place = if path.is_empty() { "all" } else { path };
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let statuses = (status(a), status(b));
            if let (Some(a), Some(b)) = statuses
                && a != b
            {
                // What else differs follows from it.
                return found.push(format!("{path}.status is {a}, there {b}"));
            }
            for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let dot = if path.is_empty() { "" } else { "." };
                let inner = format!("{path}{dot}{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => compare(&inner, a, b, depth_of(name, depth), found),
                    (None, _) => found.push(format!("{inner} is missing")),
                    (_, None) => found.push(format!("{inner} is here alone")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if depth == Depth::Shape => {
            if let (Some(a), Some(b)) = (a.first(), b.first()) {
                compare(&format!("{path}[]"), a, b, depth, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), a, b, depth, found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            found.push(format!("{place} has {}, there {}", a.len(), b.len()));
        }
        _ if depth == Depth::Shape && kind(ours) == kind(theirs) => {}
        _ if depth == Depth::Shape => {
            found.push(format!("{place} is {}, there {}", kind(ours), kind(theirs)));
        }
        _ if alike(ours, theirs) => {}
        _ => found.push(format!("{place} is {}, there {}", shown(ours), shown(theirs))),
    }
}

/// The status of a part of an answer, as of an item of a bulk.
fn status(of: &Map<String, Value>) -> Option<u64> {
    of.get("status")?.as_u64()
}

fn depth_of(name: &str, depth: Depth) -> Depth {
    // Settings may be flat: `index.uuid`.
    let last = name.rsplit('.').next().unwrap_or(name);
    if OWN_VALUES.contains(&last) { Depth::Shape } else { depth }
}

fn alike(ours: &Value, theirs: &Value) -> bool {
    let is_whole = |value: &Value| value.is_i64() || value.is_u64();
    match (ours.as_f64(), theirs.as_f64()) {
        _ if is_whole(ours) && is_whole(theirs) => ours == theirs,
        (Some(a), Some(b)) => (a - b).abs() <= (PART_BETWEEN_MAX * a.abs().max(b.abs())).max(ZERO),
        _ => ours == theirs,
    }
}

fn kind(of: &Value) -> &'static str {
    match of {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Needs no tools: each kind of difference is said by its place.
pub fn what_differs_is_said() {
    let ours = json!({
        "took": 3, "score": 1.000_001, "at": 1_711_843_200_000_u64, "n": 1, "list": [1, 2], "kind": 1, "mine": 0,
        "items": [{ "status": 201, "a": 1 }],
        "nodes": { "x": { "name": "narrows-0" } }, "error": { "type": "a", "reason": "b" }, "status": 404,
    });
    let theirs = json!({
        "took": 5, "score": 1.0, "at": 1_711_846_800_000_u64, "n": 2, "list": [1], "kind": "1", "their": 0,
        "items": [{ "status": 400, "b": 1 }],
        "nodes": { "y": { "name": "narrows-0" } }, "error": { "type": "c", "reason": "d" }, "status": 404,
    });
    let found = differences(&ours, &theirs, Depth::Values);
    assert_eq!(
        found,
        [
            "at is 1711843200000, there 1711846800000",
            r#"error.type is "a", there "c""#,
            "items[0].status is 201, there 400",
            r#"kind is 1, there "1""#,
            "list has 2, there 1",
            "mine is here alone",
            "n is 1, there 2",
            "their is missing",
        ]
    );
    let found = differences(&json!({ "l": [1, "a"] }), &json!({ "l": ["b"] }), Depth::Shape);
    assert_eq!(found, ["l[] is number, there text"]);
    assert!(differences(&ours, &ours, Depth::Values).is_empty());
    for (pattern, text, is_fitting) in [
        ("a*c", "abbc", true),
        ("*.b[*] is *", "a.b[3] is 7", true),
        ("a*a", "a", false),
        ("*b*", "ac", false),
        ("a", "ab", false),
        ("*", "", true),
    ] {
        assert_eq!(fits(pattern, text), is_fitting, "{pattern} {text}");
    }
}
