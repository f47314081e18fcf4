//! What the benchmarks share: a cluster of processes, documents in it, questions to it.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::time::{Duration, Instant};

use clusters::{ClusterSpec, Clusters, EmbeddedClusters, OpenSearchClusters, TopologySpec};
use futures_util::future::join_all;
use lab::corpus::{BulkBodies, Corpus, Source, portions};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

/// Starts clusters of so many nodes each.
pub async fn start(
    env: &Env,
    clusters: &[(&str, usize)],
    link: Option<LinkConfig>,
) -> EmbeddedClusters {
    let mut target = EmbeddedClusters::new(env, env!("CARGO_BIN_EXE_narrows").into());
    let clusters = clusters.iter().map(|(name, nodes)| ClusterSpec::new(name, *nodes));
    let topology = TopologySpec { clusters: clusters.collect(), link, joined: false };
    target.start(&topology).await.expect("the clusters start");
    target
}

/// Starts a node of the embedded engine, and one of OpenSearch with so much memory where the environment says nothing.
pub async fn start_both(
    env: &Env,
    cluster: &str,
    heap_mb: u64,
) -> (EmbeddedClusters, OpenSearchClusters) {
    let embedded = start(env, &[(cluster, 1)], None).await;
    let heap = format!("{}m", sized("NARROWS_BENCH_HEAP_MB", heap_mb));
    let mut opensearch = OpenSearchClusters::new(env).with_heap(&heap);
    if let Some(home) = std::env::var_os("NARROWS_OPENSEARCH_HOME") {
        opensearch = opensearch.with_home(home.as_ref());
    }
    let topology = TopologySpec::alone(cluster, 1);
    opensearch.start(&topology).await.expect("OpenSearch starts: java and mvn are there");
    (embedded, opensearch)
}

/// Asks, and expects it to go well.
pub async fn ask(
    target: &impl Clusters,
    cluster: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Value {
    let answer = target.request(cluster, method, path, rest::json_body(&body)).await;
    answer
        .and_then(|answer| answer.json())
        .unwrap_or_else(|error| panic!("{}: {method} {path}: {error}", target.name()))
}

/// Gives the follower these settings and the leader's address, and waits until it has reached it.
pub async fn connect(env: &Env, target: &EmbeddedClusters, mut settings: Value) {
    settings["cluster.remote.leader.seeds"] = json!(target.seeds_through_link("leader").join(","));
    let body = json!({ "persistent": settings });
    ask(target, "follower", "PUT", "/_cluster/settings", body).await;
    let leader = async || ask(target, "follower", "GET", "/_remote/info", Value::Null).await;
    while leader().await["leader"]["num_nodes_connected"] != 1 {
        env.sleep(Duration::from_millis(50)).await;
    }
}

/// Has the follower follow the leader's index, and waits until so many copies of each shard have begun to.
pub async fn follow(target: &EmbeddedClusters, copies: u32) {
    let body = json!({ "remote_cluster": "leader", "leader_index": "a" });
    let path = format!("/a/_ccr/follow?wait_for_active_shards={copies}");
    ask(target, "follower", "PUT", &path, body).await;
}

/// The most memory of a node of a cluster that is no file's: mapped segments are the page cache, which gives way.
pub async fn anonymous(target: &EmbeddedClusters, cluster: &str) -> u64 {
    let stats = ask(target, cluster, "GET", "/_nodes/stats/process", Value::Null).await;
    let nodes = stats["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    let of = |node: &Value| node["process"]["mem"]["anonymous_in_bytes"].as_u64();
    nodes.filter_map(of).max().unwrap_or(0)
}

/// Makes an index for a corpus and waits until it is there.
pub async fn create(target: &EmbeddedClusters, cluster: &str, corpus: Corpus, shards: u32) {
    let body = json!({
        "settings": { "number_of_shards": shards, "number_of_replicas": 0 },
        "mappings": corpus.mapping(),
    });
    ask(target, cluster, "PUT", "/a", body).await;
    ask(target, cluster, "GET", "/_cluster/health/a?wait_for_status=green", Value::Null).await;
}

/// Indexes documents; answers how long it took until the last was acknowledged.
pub async fn index(
    target: &EmbeddedClusters,
    cluster: &str,
    corpus: Corpus,
    documents: u64,
    clients: u32,
    bulk_documents: u64,
) -> Duration {
    let began = Instant::now();
    let source = Source::Generated(corpus);
    let parts = portions(documents, clients).into_iter().map(|part| {
        let bodies = BulkBodies::new(&source, 42, part, bulk_documents).expect("it is generated");
        async move {
            for body in bodies {
                let body = body.expect("it is generated").body;
                let path = "/a/_bulk?filter_path=errors,took";
                let answer = target.request(cluster, "POST", path, body).await;
                let answer = answer.and_then(|answer| answer.json()).expect("the bulk is accepted");
                assert_eq!(answer["errors"], false);
            }
        }
    });
    join_all(parts).await;
    began.elapsed()
}

/// Merges to a few segments, so that no merge runs beside what is measured, and commits what came of it.
pub async fn settle(target: &EmbeddedClusters, cluster: &str) {
    for path in ["/a/_forcemerge?max_num_segments=5", "/a/_flush"] {
        ask(target, cluster, "POST", path, Value::Null).await;
    }
}

/// A number that the environment may set, for smaller or larger runs.
pub fn sized(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Seconds of a core that this process has had: other programs do not count.
pub fn core_seconds() -> f64 {
    world::real_world::run(0, async |env| env.cpu_time()).as_secs_f64()
}

/// Seconds of a core and the most memory in MB that a process used so far.
pub fn used(id: u32) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let core_s = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0;
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((core_s, kib * 1024 / 1_000_000))
}

/// Of a size such as `100x1000`.
pub fn nodes_and_shards(size: &str) -> (usize, usize) {
    let parts = size.split_once('x').and_then(|(n, s)| Some((n.parse().ok()?, s.parse().ok()?)));
    parts.unwrap_or_else(|| panic!("\"{size}\" is no size; write nodes x shards, as 100x1000"))
}
