//! A plan of a twin as people read and change it: a shard and a node on a line of its own.

use std::fmt::Write;

use toml::{Table, Value};

use super::TwinPlan;

/// Keys of the head, in the order in which plans have them.
const HEAD: [&str; 7] = ["name", "about", "steps", "laps", "sample", "seed", "test_bed"];

/// The text of a plan.
pub fn text(plan: &TwinPlan) -> String {
    let mut text = String::new();
    for key in HEAD {
        if let Some(value) = plan.get(key) {
            line(&mut text, key, value);
        }
    }
    let tables = ["leader", "virtual", "settings", "node_settings"];
    for name in tables {
        if let Some(Value::Table(table)) = plan.get(name).filter(|table| !is_empty(table)) {
            let _ = writeln!(text, "\n[{name}]");
            table.iter().for_each(|(key, value)| line(&mut text, key, value));
        }
    }
    if let Some(Value::Table(twin)) = plan.get("twin") {
        write_twin(&mut text, twin);
    }
    let variants = plan.get("variant").and_then(Value::as_array).into_iter().flatten();
    for variant in variants.filter_map(Value::as_table) {
        let _ = writeln!(text, "\n[[variant]]");
        variant.iter().for_each(|(key, value)| line(&mut text, key, value));
    }
    text
}

fn write_twin(text: &mut String, twin: &Table) {
    let _ = writeln!(text, "\n[twin]");
    for (key, value) in twin.iter().filter(|(key, _)| *key != "index") {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_table) => rows_of(text, key, rows),
            value if is_empty(value) => {}
            value => line(text, key, value),
        }
    }
    let indices = twin.get("index").and_then(Value::as_array).into_iter().flatten();
    for index in indices.filter_map(Value::as_table) {
        let _ = writeln!(text, "\n[[twin.index]]");
        for (key, value) in index.iter().filter(|(key, value)| *key != "shard" && !is_empty(value))
        {
            line(text, key, value);
        }
        if let Some(Value::Array(shards)) = index.get("shard") {
            rows_of(text, "shard", shards);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Table(table) => table.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn line(text: &mut String, key: &str, value: &Value) {
    let _ = writeln!(text, "{} = {}", quoted(key), inline(value));
}

fn rows_of(text: &mut String, key: &str, rows: &[Value]) {
    let _ = writeln!(text, "{} = [", quoted(key));
    for row in rows {
        let _ = writeln!(text, "  {},", inline(row));
    }
    let _ = writeln!(text, "]");
}

/// A key, in quotes where it has a dot or another character that a bare key has not.
fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !key.is_empty() && key.chars().all(bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let pairs =
                table.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
