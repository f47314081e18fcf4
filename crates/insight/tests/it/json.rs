//! What `narrows explain --json` prints stands in `docs/diagnosis/json.md`, key by key.

use std::collections::BTreeSet;

use insight::diagnosis::{Changes, Class, Diagnosis, Pair};
use serde_json::Value;

use crate::model::Model;

/// The command itself adds these.
const ADDED: [&str; 2] = ["cluster", "format"];

/// Every key of a value, as `findings[].lift.to`.
fn keys(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                all.insert(path.clone());
                keys(value, &path, all);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), all)),
        _ => {}
    }
}

fn documented() -> (BTreeSet<String>, String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis/json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let cell = |line: &str| {
        let path = line.strip_prefix("| `")?.split_once("` |")?.0;
        Some(path.to_owned())
    };
    let of_explain = text.split("\n## ").next().unwrap_or_default();
    (of_explain.lines().filter_map(cell).collect(), text)
}

/// What the limiter holds, and what chunks in flight hold.
fn probed() -> [Diagnosis; 2] {
    let by_limit = Model::new("opensearch", |now| now.limit.min(9e7)).explain();
    let by_latency = Model::new("opensearch", |now| (now.chunks * 4.7e6).min(now.limit)).explain();
    [by_limit, by_latency]
}

#[test]
fn every_key_is_documented_and_every_documented_key_is_there() {
    let mut there: BTreeSet<String> = ADDED.map(str::to_owned).into();
    for diagnosis in probed() {
        keys(&serde_json::to_value(diagnosis).unwrap(), "", &mut there);
    }
    // With --diff; names of settings are keys of the cluster's.
    there.insert("since".to_owned());
    let changes = Changes { stayed: vec![Pair::default()], ..Changes::default() };
    keys(&serde_json::to_value(changes).unwrap(), "since", &mut there);
    assert_eq!(documented().0, there);
}

#[test]
fn every_word_of_the_field_class_is_documented() {
    let text = documented().1;
    for class in Class::ALL {
        let name = serde_json::to_value(class).unwrap();
        let name = name.as_str().unwrap();
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
}
