//! What `narrows what-if` says of OpenSearch clusters, and what is so: predicted first, then done, then compared.
//!
//! `cargo bench -p narrows --bench what_if` starts clusters of three and of four nodes and tries random cases on them:
//! shards, sizes, rate limits, slots and delays are drawn from a seed; a node dies, restarts or is drained, or indices
//! get a replica: at once, after a setting was changed, or over links with a round trip.
//! `NARROWS_BENCH_CASES` (12) is how many, `NARROWS_BENCH_SEED` (1) draws others. Needs Java and, the first time, mvn.

use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clusters::{
    ClusterSpec, Clusters, FaultKind, Faults, LinkControl, OpenSearchClusters, TopologySpec,
};
use record::random::split_mix;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::{Env, LinkConfig};

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
    Drain,
    Restart,
    Setting,
    Link,
}

const KINDS: [Kind; 6] =
    [Kind::Drain, Kind::Lose, Kind::Restart, Kind::Replicas, Kind::Setting, Kind::Link];
/// What the setting is set to that is changed.
const CHANGED: &str = "indices.recovery.max_bytes_per_sec";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";

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
    /// How long a node that restarts is away before it is started again.
    away_s: u64,
    rtt_ms: u64,
}

fn setting(name: &str, without: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}

impl Case {
    fn drawn(kind: Kind, random: &mut u64) -> Case {
        let mut of = |least: u64, most: u64| least + split_mix(random) % (most - least + 1);
        Case {
            kind,
            shards: of(2, 8),
            mb: of(5, 25),
            rate_mb: of(2, 12),
            slots: of(1, 4),
            // A node that restarts is waited for: else it is one that is lost.
            delay_s: if kind == Kind::Restart { 300 } else { of(0, 15) },
            away_s: of(2, 12),
            rtt_ms: of(5, 40),
        }
    }

    fn words(&self) -> String {
        let Case { shards, mb, rate_mb, slots, .. } = self;
        let what = match self.kind {
            Kind::Lose => format!("a node dies, delay {} s", self.delay_s),
            Kind::Replicas => "a replica more".to_owned(),
            Kind::Drain => "a node is drained".to_owned(),
            Kind::Restart => format!("a node restarts after {} s", self.away_s),
            Kind::Setting => format!("a replica more at {}mb instead", self.rate_mb * 3),
            Kind::Link => format!("a replica more, {} ms between nodes", self.rtt_ms),
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
    let mut target = OpenSearchClusters::new(env).with_node_links(true);
    let cluster = ClusterSpec {
        name: CLUSTER.to_owned(),
        nodes,
        settings: Default::default(),
        attributes: Vec::new(),
    };
    let topology = TopologySpec { clusters: vec![cluster], link: None, joined: false };
    target.start(&topology).await.expect("the nodes start");
    let mut errors = Vec::new();
    // What a node takes to start is no question to a twin: it is told, as it was when one was started here.
    let first = victim(&target).await;
    let mut start_s = restart(&mut target, &first, Duration::ZERO, nodes).await;
    for number in 0..cases {
        let kind = KINDS[(number as usize * 2 + nodes) % KINDS.len()];
        let case = Case::drawn(kind, random);
        set_links(&target, if kind == Kind::Link { case.rtt_ms } else { 0 });
        prepare(&target, &case).await;
        let victim = victim(&target).await;
        let predicted = predict(&target, &case, &victim, start_s);
        let measured_s = carry_out(&mut target, &case, &victim, nodes).await;
        errors.push(tell(&format!("{nodes}.{number}"), &case, &predicted, measured_s));
        if let Some(seconds) = clear_away(&mut target, &case, &victim, nodes).await {
            start_s = seconds;
        }
    }
    target.stop().await;
    errors
}

/// Round trips between all nodes.
fn set_links(target: &OpenSearchClusters, rtt_ms: u64) {
    for node in target.nodes(CLUSTER) {
        let config = LinkConfig { rtt: Duration::from_millis(rtt_ms), ..LinkConfig::default() };
        let link = target.node_link(&node.name).expect("each node has a link");
        link.configure(config).expect("the link takes a delay");
    }
}

/// Kills a node, starts it again after a while, and waits until it is there: seconds since it was started.
async fn restart(target: &mut OpenSearchClusters, node: &str, away: Duration, nodes: usize) -> f64 {
    target.begin(node, FaultKind::Kill).await.expect("the node is killed");
    std::thread::sleep(away);
    let began = Instant::now();
    target.end(node, FaultKind::Kill).await.expect("the node starts again");
    let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout={GREEN_PATIENCE}");
    ask(target, "GET", &path, Value::Null).await;
    began.elapsed().as_secs_f64()
}

async fn put_cluster(target: &OpenSearchClusters, name: &str, value: Value) {
    let body = json!({ "persistent": { name: value } });
    ask(target, "PUT", "/_cluster/settings", body).await;
}

async fn ask(target: &OpenSearchClusters, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let answer = target.request(CLUSTER, method, path, body).await;
    answer.and_then(|answer| answer.json()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An index of the case, all copies started and on disk; and the settings of the case.
async fn prepare(target: &OpenSearchClusters, case: &Case) {
    let replicas = u64::from(matches!(case.kind, Kind::Lose | Kind::Drain | Kind::Restart));
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
fn predict(target: &OpenSearchClusters, case: &Case, victim: &str, start_s: f64) -> Value {
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
        Kind::Drain => command.args(["--drain", victim]),
        Kind::Restart => {
            let down = format!("{}ms", ((case.away_s as f64 + start_s) * 1e3) as u64);
            command.args(["--restart", victim, "--down", &down])
        }
        Kind::Replicas | Kind::Setting | Kind::Link => {
            command.args(["--replicas", &format!("{INDEX}=1")])
        }
    };
    match case.kind {
        Kind::Setting => command.args(["--set", &format!("{CHANGED}={}mb", case.rate_mb * 3)]),
        Kind::Link => command.args(["--rtt", &format!("{}ms", case.rtt_ms)]),
        _ => &mut command,
    };
    let output = command.output().expect("narrows runs");
    let error = String::from_utf8_lossy(&output.stderr);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    // With a setting that is changed the second answer is the one.
    found["answers"][usize::from(case.kind == Kind::Setting)].clone()
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
        Kind::Drain => {
            put_cluster(target, EXCLUDE, json!(victim)).await;
            while holds(target, victim).await {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Kind::Restart => {
            restart(target, victim, Duration::from_secs(case.away_s), nodes).await;
            green(target, "").await;
        }
        Kind::Replicas | Kind::Setting | Kind::Link => {
            if case.kind == Kind::Setting {
                put_cluster(target, CHANGED, json!(format!("{}mb", case.rate_mb * 3))).await;
            }
            let body = json!({ "index.number_of_replicas": 1 });
            ask(target, "PUT", &format!("/{INDEX}/_settings"), body).await;
            green(target, "").await;
        }
    }
    began.elapsed().as_secs_f64()
}

async fn holds(target: &OpenSearchClusters, node: &str) -> bool {
    let path = format!("/_cat/shards/{INDEX}?format=json&h=node");
    let rows = ask(target, "GET", &path, Value::Null).await;
    let first = |row: &Value| row["node"].as_str().map(|at| at.split(' ').next() == Some(node));
    rows.as_array().into_iter().flatten().any(|row| first(row) == Some(true))
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

/// The cluster as it was before the case; what a node took to start, where one was started.
async fn clear_away(
    target: &mut OpenSearchClusters,
    case: &Case,
    victim: &str,
    nodes: usize,
) -> Option<f64> {
    ask(target, "DELETE", &format!("/{INDEX}"), Value::Null).await;
    let mut took_s = None;
    match case.kind {
        Kind::Lose => {
            let began = Instant::now();
            target.end(victim, FaultKind::Kill).await.expect("the node starts again");
            green(target, &format!("&wait_for_nodes={nodes}")).await;
            took_s = Some(began.elapsed().as_secs_f64());
        }
        Kind::Drain => put_cluster(target, EXCLUDE, Value::Null).await,
        _ => {}
    }
    green(target, &format!("&wait_for_nodes={nodes}")).await;
    // A node that comes back may still have something to clear away.
    std::thread::sleep(Duration::from_secs(1));
    took_s
}
