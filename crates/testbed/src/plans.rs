//! Plans of tests, as text: the same ones run in virtual time (`lab`) and on processes (`narrows`).

/// Two clusters of so many nodes, of which one follows the other; `steps` stand after `follow`.
pub fn following(nodes: u32, steps: &str) -> String {
    FOLLOWING.replace("NODES", &nodes.to_string()).replace("STEPS", steps)
}

const FOLLOWING: &str = r#"
name = "following"
about = "Following."
steps = [
    "start",
    "index",
    { index_in_background = { documents_per_s = 400, updates = 0.2, deletes = 0.1 } },
    "follow",
    { wait_for_lag = { under = 200, within = "1m" } },
    STEPS
    "stop_indexing",
    { wait_for_lag = { under = 1, within = "5m" } },
    "verify",
]
laps = 1
sample = "250ms"
seed = 42
[leader]
nodes = NODES
[follower]
nodes = NODES
[link]
rtt = "100ms"
rate = "10mbit"
[corpus]
name = "http_logs"
documents = 2000
bulk_documents = 50
clients = 2
[[index]]
name = "logs"
shards = 2
replicas = 1
share = 0.8
[[index]]
name = "other"
shards = 1
replicas = 0
share = 0.2
[[variant]]
name = "adaptive"
"#;

/// One cluster of three nodes, where `steps` follow while documents are indexed; `more` stands behind the index.
pub fn background_indexing(steps: &str, replicas: u32, more: &str) -> String {
    BACKGROUND_INDEXING
        .replace("STEPS", steps)
        .replace("REPLICAS", &replicas.to_string())
        .replace("MORE", more)
}

const BACKGROUND_INDEXING: &str = r#"
name = "background"
about = "Something is measured while documents are indexed."
steps = ["start", "index", { index_in_background = { documents_per_s = 2_000 } }, STEPS]
laps = 1
sample = "100ms"
seed = 42
[leader]
nodes = 3
[corpus]
name = "http_logs"
documents = 20_000
bulk_documents = 50
clients = 4
[[index]]
name = "logs"
shards = 2
replicas = REPLICAS
MORE
"#;

/// A load on three nodes, each with a copy of most shards. What is asked for, and by whom, a test puts behind it.
pub const LOAD: &str = r#"
name = "load"
about = "A load."
steps = ["start", "index", "load"]
laps = 2
sample = "1s"
seed = 42
[leader]
nodes = 3
[corpus]
name = "http_logs"
documents = 3000
bulk_documents = 100
clients = 2
[[index]]
name = "logs"
shards = 3
replicas = 1
"#;
