//! Plans of the tests' own, and runs of them.

use std::process::Output;

use super::narrows_in;

/// Runs a plan in a directory of its own, which has the runs in `runs`.
pub fn run(plan: &str, on: &str, more: &[&str]) -> (tempfile::TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan.toml");
    std::fs::write(&file, plan).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--on", on, "--json"];
    let output = narrows_in(dir.path(), &[&arguments[..], more].concat()).output().unwrap();
    (dir, output)
}

/// A plan that follows on two clusters of two nodes, with faults in between.
pub const FOLLOWING: &str = r#"
name = "following"
about = "Following."
steps = [
    "start",
    "index",
    { index_in_background = { documents_per_s = 300, updates = 0.2, deletes = 0.1 } },
    "follow",
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "cut", lasts = "2s" } },
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "kill", node = "follower", lasts = "1s" } },
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "stop", node = "leader-1", lasts = "1s" } },
    { fault = { kind = "pause", node = "follower-1", lasts = "1s" } },
    "stop_indexing",
    { wait_for_lag = { under = 1, within = "1m" } },
    "verify",
]
laps = 1
sample = "250ms"
seed = 42
[leader]
nodes = 2
[follower]
nodes = 2
[link]
rtt = "50ms"
rate = "100mbit"
[corpus]
name = "http_logs"
documents = 1000
bulk_documents = 50
clients = 2
[[index]]
name = "logs"
shards = 2
replicas = 1
[[variant]]
name = "adaptive"
"#;
