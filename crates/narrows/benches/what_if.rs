//! What `narrows what-if` says of OpenSearch clusters, and what is so: predicted first, then done, then compared.
//!
//! `cargo bench -p narrows --bench what_if` starts clusters of three and of four nodes and tries random cases on them:
//! shards, sizes, rate limits, slots and delays are drawn from a seed; a node dies, or indices get a replica.
//! `NARROWS_BENCH_CASES` (12) is how many, `NARROWS_BENCH_SEED` (1) draws others. Needs Java and, the first time, mvn.

use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, FaultKind, Faults, OpenSearchClusters, TopologySpec};
use record::random::split_mix;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::Env;

const CLUSTER: &str = "twin";
const NODES: [usize; 2] = [3, 4];
const INDEX: &str = "logs";
/// Bytes of a document, which do not compress.
const DOCUMENT_BYTES: u64 = 10_000;
const BULK_DOCUMENTS: u64 = 100;
const GREEN_PATIENCE: &str = "600s";

const TABLE: Table = Table {
    page: "what_if",
    name: "measured",
    columns: &[
        "case",
        "asked",
        "copied, MB",
        "predicted, s",
        "interval, s",
        "measured, s",
        "error",
        "in it",
    ],
};

/// What happens in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lose,
    Replicas,
}

/// A case, drawn from a seed.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    shards: u64,
    /// Of each shard.
    mb: u64,
    rate_mb: u64,
    slots: u64,
    delay_s: u64,
}

fn setting(name: &str, without: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}

impl Case {
    fn drawn(random: &mut u64) -> Case {
        let mut of = |least: u64, most: u64| least + split_mix(random) % (most - least + 1);
        Case {
            kind: if of(0, 2) == 0 { Kind::Replicas } else { Kind::Lose },
            shards: of(2, 8),
            mb: of(5, 25),
            rate_mb: of(2, 12),
            slots: of(1, 4),
            delay_s: of(0, 15),
        }
    }

    fn words(&self) -> String {
        let Case { shards, mb, rate_mb, slots, .. } = self;
        let what = match self.kind {
            Kind::Lose => format!("a node dies, delay {} s", self.delay_s),
            Kind::Replicas => "a replica more".to_owned(),
        };
        format!("{what}; {shards} shards of {mb} MB, {rate_mb}mb, {slots} slots")
    }
}

fn main() {
    let (cases, seed) = (setting("NARROWS_BENCH_CASES", 12), setting("NARROWS_BENCH_SEED", 1));
    TABLE.begin();
    let mut errors = Vec::new();
    world::real_world::run(0, async |env| {
        for (at, nodes) in NODES.into_iter().enumerate() {
            let share = (cases + at as u64) / NODES.len() as u64;
            let mut random = seed.wrapping_mul(1000).wrapping_add(at as u64);
            errors.extend(on_cluster(&env, nodes, share, &mut random).await);
        }
    });
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize] * 100.0;
    eprintln!("median error {:.0} %, nine of ten within {:.0} %", at(0.5), at(0.9));
}

async fn on_cluster(env: &Env, nodes: usize, cases: u64, random: &mut u64) -> Vec<f64> {
    let mut target = OpenSearchClusters::new(env);
    let cluster = ClusterSpec { name: CLUSTER.to_owned(), nodes, settings: Default::default() };
    let topology = TopologySpec { clusters: vec![cluster], link: None, joined: false };
    target.start(&topology).await.expect("the nodes start");
    let mut errors = Vec::new();
    for number in 0..cases {
        let case = Case::drawn(random);
        prepare(&target, &case).await;
        let victim = victim(&target).await;
        let predicted = predict(&target, &case, &victim);
        let measured_s = carry_out(&mut target, &case, &victim, nodes).await;
        errors.push(tell(&format!("{nodes}.{number}"), &case, &predicted, measured_s));
        clear_away(&mut target, &case, &victim, nodes).await;
    }
    target.stop().await;
    errors
}

async fn ask(target: &OpenSearchClusters, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let answer = target.request(CLUSTER, method, path, body).await;
    answer.and_then(|answer| answer.json()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An index of the case, all copies started and on disk; and the settings of the case.
async fn prepare(target: &OpenSearchClusters, case: &Case) {
    let replicas = u64::from(case.kind == Kind::Lose);
    let field = json!({ "type": "keyword", "index": false, "doc_values": false });
    let body = json!({
        "settings": {
            "number_of_shards": case.shards, "number_of_replicas": replicas,
            "index.unassigned.node_left.delayed_timeout": format!("{}s", case.delay_s),
        },
        "mappings": { "properties": { "t": field } },
    });
    ask(target, "PUT", &format!("/{INDEX}"), body).await;
    let documents = case.shards * case.mb * 1_000_000 / DOCUMENT_BYTES;
    let mut letters = 88_172_645_463_325_252_u64;
    for _ in 0..documents.div_ceil(BULK_DOCUMENTS) {
        let mut lines = String::new();
        for _ in 0..BULK_DOCUMENTS {
            let text: String = (0..DOCUMENT_BYTES / 16)
                .map(|_| format!("{:016x}", split_mix(&mut letters)))
                .collect();
            lines.push_str(&format!("{{\"index\":{{}}}}\n{{\"t\":\"{text}\"}}\n"));
        }
        let path = format!("/{INDEX}/_bulk?filter_path=errors");
        let answer = target.request(CLUSTER, "POST", &path, Bytes::from(lines)).await;
        let answer = answer.and_then(|answer| answer.json()).expect("the bulk is answered");
        assert_eq!(answer["errors"], false, "{answer}");
    }
    ask(target, "POST", &format!("/{INDEX}/_flush"), Value::Null).await;
    green(target, "").await;
    let settings = json!({
        "indices.recovery.max_bytes_per_sec": format!("{}mb", case.rate_mb),
        "cluster.routing.allocation.node_concurrent_recoveries": case.slots,
        // What is asked is not whether the cluster rebalances meanwhile.
        "cluster.routing.rebalance.enable": "none",
    });
    ask(target, "PUT", "/_cluster/settings", json!({ "persistent": settings })).await;
}

async fn green(target: &OpenSearchClusters, more: &str) {
    let path = format!("/_cluster/health?wait_for_status=green&timeout={GREEN_PATIENCE}{more}");
    let health = ask(target, "GET", &path, Value::Null).await;
    assert_eq!(health["timed_out"], false, "{health}");
}

/// A node that does not manage the cluster: what an election takes is not modelled.
async fn victim(target: &OpenSearchClusters) -> String {
    let manager = ask(target, "GET", "/_cat/master?format=json", Value::Null).await;
    let manager = manager[0]["node"].as_str().expect("a node manages").to_owned();
    let nodes = target.nodes(CLUSTER);
    nodes.iter().rfind(|node| node.name != manager).expect("there are others").name.clone()
}

/// What narrows says before it is done.
fn predict(target: &OpenSearchClusters, case: &Case, victim: &str) -> Value {
    let nodes = target.nodes(CLUSTER);
    let urls: Vec<String> = nodes
        .iter()
        .filter(|node| node.name != victim)
        .map(|node| format!("http://{}", node.http))
        .collect();
    let runs = tempfile::tempdir().expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["what-if", &urls.join(","), "--json", "--draws", "5", "--runs"]).arg(runs.path());
    // Not what is assumed where nobody says it: all nodes are on this machine, with one disk.
    command.args(["--link", "10gbit", "--disk-read", "400mb", "--disk-write", "200mb"]);
    match case.kind {
        Kind::Lose => command.args(["--lose", victim]),
        Kind::Replicas => command.args(["--replicas", &format!("{INDEX}=1")]),
    };
    let output = command.output().expect("narrows runs");
    let error = String::from_utf8_lossy(&output.stderr);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    found["answers"][0].clone()
}

/// Does it; seconds until all is green.
async fn carry_out(
    target: &mut OpenSearchClusters,
    case: &Case,
    victim: &str,
    nodes: usize,
) -> f64 {
    let began = Instant::now();
    match case.kind {
        Kind::Lose => {
            target.begin(victim, FaultKind::Kill).await.expect("the node is killed");
            green(target, &format!("&wait_for_nodes={}", nodes - 1)).await;
        }
        Kind::Replicas => {
            let body = json!({ "index.number_of_replicas": 1 });
            ask(target, "PUT", &format!("/{INDEX}/_settings"), body).await;
            green(target, "").await;
        }
    }
    began.elapsed().as_secs_f64()
}

fn tell(name: &str, case: &Case, predicted: &Value, measured_s: f64) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let predicted_s = number(&predicted["green_s"]);
    let (least, most) = (number(&predicted["between_s"][0]), number(&predicted["between_s"][1]));
    let error = (predicted_s - measured_s) / measured_s;
    TABLE.row(&[
        name.to_owned(),
        case.words(),
        format!("{:.0}", number(&predicted["bytes"]) / 1e6),
        format!("{predicted_s:.1}"),
        format!("{least:.1} to {most:.1}"),
        format!("{measured_s:.1}"),
        format!("{:+.0} %", error * 100.0),
        (if (least..=most).contains(&measured_s) { "yes" } else { "no" }).to_owned(),
    ]);
    error.abs()
}

/// The cluster as it was before the case.
async fn clear_away(target: &mut OpenSearchClusters, case: &Case, victim: &str, nodes: usize) {
    ask(target, "DELETE", &format!("/{INDEX}"), Value::Null).await;
    if case.kind == Kind::Lose {
        target.end(victim, FaultKind::Kill).await.expect("the node starts again");
    }
    green(target, &format!("&wait_for_nodes={nodes}")).await;
    // A node that comes back may still have something to clear away.
    std::thread::sleep(Duration::from_secs(1));
}
