//! What befalls a node while a load is measured, through the binary: each fault is brought about and undone, and no
//! search is lost by it.

mod common;

use std::process::Command;

use common::BINARY;
use serde_json::Value;

/// The faults, whether a search that goes to the node is told so late that its answer takes the fault's time, and
/// whether OpenSearch can be given it.
const FAULTS: [(&str, bool, bool); 7] = [
    ("slow", false, true),
    ("load", false, true),
    ("pause", true, true),
    ("cut", true, true),
    ("fail", false, false),
    ("stop", false, true),
    ("kill", false, true),
];

/// Of a fault, in milliseconds.
const LASTS_MS: f64 = 1200.0;

fn plan(faults: &[&str]) -> String {
    let head = r#"
name = "faults"
about = "Each fault of a node, while it is searched."
steps = ["start", "index", "load"]
laps = 1
sample = "1s"
seed = 42

[leader]
nodes = 3

[corpus]
name = "http_logs"
documents = 3_000
bulk_documents = 500
clients = 2

[[index]]
name = "logs"
shards = 3
replicas = 2
full = { documents = 3_000, bytes = "1mb", segments = 9 }

[[operation]]
name = "search"
body = '{"size": 0, "query": {"term": {"status": 200}}, "aggs": {"s": {"stats": {"field": "size"}}}}'
cost = { documents = 200_000 }

[load]
operations = ["search"]
clients = 4
nodes = ["leader-0"]
warm_up = "500ms"
measured = "4s"
full = { warm_up = "500ms", measured = "4s" }

[settings]
"cluster.routing.use_adaptive_replica_selection" = false
"#;
    let variant = |kind: &&str| {
        let factor = match *kind {
            "slow" => "factor = 3.0\n",
            "load" => "factor = 3.0\nprocesses = 4\n",
            _ => "",
        };
        format!(
            "\n[[variant]]\nname = \"{kind}\"\n[[variant.fault]]\nnode = \"leader-2\"\nkind = \"{kind}\"\n{factor}\
             at = \"1s\"\nlasts = \"{LASTS_MS}ms\"\n"
        )
    };
    head.to_owned() + &faults.iter().map(variant).collect::<String>()
}

/// Runs the plan; answers its loads and its lines.
fn run(on: &str, faults: &[&str]) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let (file, runs) = (dir.path().join("faults.toml"), dir.path().join("runs"));
    std::fs::write(&file, plan(faults)).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("run").arg(&file).args(["--on", on, "--json", "--runs"]).arg(&runs);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let lines = std::fs::read_to_string(lines.join("lines.jsonl")).unwrap();
    (found["loads"].as_array().unwrap().clone(), lines)
}

fn judge(on: &str, faults: &[(&str, bool, bool)]) {
    let names: Vec<&str> = faults.iter().map(|fault| fault.0).collect();
    let (loads, lines) = run(on, &names);
    assert_eq!(loads.len(), faults.len(), "{loads:?}");
    for (load, (name, waits, _)) in loads.iter().zip(faults) {
        assert_eq!(load["variant"], *name);
        let load = &load["laps"][0];
        assert!(load["requests"].as_u64().unwrap() > 20, "{on}, {name}: {load}");
        assert_eq!(load["errors"], serde_json::json!({}), "{on}, {name}");
        let longest_ms = load["latency"]["p100_ms"].as_f64().unwrap();
        // Who was sent there when it began heard nothing until it ended.
        assert!(!waits || longest_ms > LASTS_MS / 2.0, "{on}, {name}: {longest_ms} ms");
    }
    let notes: Vec<&str> = lines.lines().filter(|line| line.contains("leader-2 is ")).collect();
    let ended = notes.iter().filter(|line| line.contains("is no longer")).count();
    assert_eq!((notes.len(), ended), (2 * faults.len(), faults.len()), "{notes:?}");
}

#[test]
fn the_embedded_engine_in_virtual_time() {
    judge("virtual", &FAULTS);
}

#[test]
fn the_embedded_engine_as_processes() {
    judge("embedded", &FAULTS);
}

#[test]
fn nodes_of_opensearch() {
    if !common::has_opensearch() {
        return;
    }
    let there: Vec<_> = FAULTS.into_iter().filter(|fault| fault.2).collect();
    judge("opensearch", &there);
}
