//! Documents that are indexed while nodes restart empty, on processes: every copy holds them.

mod common;

use common::{narrows, said};
use serde_json::Value;

const PLAN: &str = r#"
name = "beside"
about = "Nodes restart empty while documents are indexed."
steps = [
    "start",
    "index",
    { index_in_background = { documents_per_s = 1_000 } },
    { recover_peers = { restart = 2 } },
    "verify",
]
laps = 1
sample = "100ms"
seed = 42
[leader]
nodes = 3
[corpus]
name = "http_logs"
documents = 20_000
bulk_documents = 100
clients = 2
[[index]]
name = "logs"
shards = 3
replicas = 1
[settings]
"indices.recovery.max_bytes_per_sec" = "1mb"
[[variant]]
name = "throttled"
"#;

#[test]
fn nodes_restart_empty_and_hold_what_was_written_without_them() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, runs) = (dir.path().join("plan.toml"), dir.path().join("runs"));
    std::fs::write(&plan, PLAN).unwrap();
    let args = ["run", plan.to_str().unwrap(), "--on", "embedded", "--json", "--runs"];
    let output = narrows(&[&args[..], &[runs.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &json["rows"][0];
    assert_eq!(row["verified"], true, "{row}");
    let beside = row["documents"].as_u64().unwrap() - 20_000;
    let told = format!("indexed {beside} documents beside");
    assert!(beside > 0 && said(&output).contains(&told), "{}", said(&output));
}
