//! Documents that are indexed while nodes restart empty, on processes: every copy holds them.

use crate::common::plans::run;
use crate::common::{json, said};

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
    let (_dir, output) = run(PLAN, "embedded", &[]);
    let row = &json(&output)["rows"][0];
    assert_eq!(row["verified"], true, "{row}");
    let beside = row["documents"].as_u64().unwrap() - 20_000;
    let announced = format!("indexed {beside} documents beside");
    assert!(beside > 0 && said(&output).contains(&announced), "{}", said(&output));
}
