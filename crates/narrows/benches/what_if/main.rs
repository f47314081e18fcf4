//! What `narrows what-if` says of OpenSearch clusters, and what is so: predicted first, then done, then compared.
//!
//! `cargo bench -p narrows --bench what_if` starts clusters of three to six nodes, one after another, and tries random
//! cases on them: shards, sizes, rate limits, slots and delays are drawn from a seed. A node dies, restarts or is
//! drained, nodes restart one after another, or an index gets a replica: at once, after a setting was changed, or over
//! links with a round trip. `NARROWS_BENCH_CASES` (24) is how many, `NARROWS_BENCH_SEED` (1) draws others, and
//! `NARROWS_BENCH_ONLY` (none) names those of them that are tried, such as `3,17`: a case is the same whichever others
//! there are. Needs Java and, the first time, mvn.

mod case;
#[path = "../common/mod.rs"]
mod common;
mod score;

use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clusters::{Clusters, FaultKind, Faults, LinkControl, OpenSearchClusters, TopologySpec};
use lab::calibration::{TimeOfACopy, time_of_a_copy, time_of_first_copies};
use record::random::split_mix;
use serde_json::{Map, Value, json};
use testbed::bench::Table;
use world::{Env, LinkConfig};

use case::{Case, Deed};
use common::sized;
use score::Outcome;

const CLUSTER: &str = "twin";
const NODES: [usize; 4] = [3, 4, 5, 6];
/// Six nodes are to fit beside each other into little memory.
const HEAP: &str = "384m";
const INDEX: &str = "logs";
/// Bytes of a document, which do not compress.
const DOCUMENT_BYTES: u64 = 10_000;
const BULK_DOCUMENTS: u64 = 100;
const GREEN_PATIENCE: &str = "600s";
/// How often a node is started before the cases, and how long it is away before.
const STARTS: usize = 3;
const AWAY: Duration = Duration::from_secs(4);
/// Between two looks at leases, and for how long: they are renewed every 30 s.
const LEASE_LOOK: Duration = Duration::from_millis(500);
const LEASE_PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at whether a node is empty.
const LOOK: Duration = Duration::from_millis(50);

const TABLE: Table = Table {
    page: "what_if",
    name: "measured",
    columns: &[
        "case", "asked", "copied, MB", "predicted, s", "interval, s", "measured, s", "error",
        "in it",
    ],
};

const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";

fn main() {
    let (count, seed) = (sized("NARROWS_BENCH_CASES", 24), sized("NARROWS_BENCH_SEED", 1));
    let only = std::env::var("NARROWS_BENCH_ONLY").ok();
    let only: Option<Vec<u64>> =
        only.map(|list| list.split(',').map(|n| n.trim().parse().expect("a number")).collect());
    TABLE.begin();
    let began = Instant::now();
    let mut outcomes = Vec::new();
    world::real_world::run(0, async |env| {
        for (at, nodes) in (0..).zip(NODES) {
            let of = |at: u64| count * at / NODES.len() as u64;
            let cases: Vec<Case> = (of(at)..of(at + 1))
                .filter(|number| only.as_ref().is_none_or(|only| only.contains(number)))
                .map(|number| Case::drawn(seed, number, nodes))
                .collect();
            if !cases.is_empty() {
                outcomes.extend(on_cluster(&env, nodes, &cases).await);
            }
        }
    });
    eprintln!("{} cases in {:.0} s", outcomes.len(), began.elapsed().as_secs_f64());
    score::tell(&outcomes);
}

async fn on_cluster(env: &Env, nodes: usize, cases: &[Case]) -> Vec<Outcome> {
    let mut target = OpenSearchClusters::new(env).with_heap(HEAP).with_node_links(true);
    let topology = TopologySpec::alone(CLUSTER, nodes);
    target.start(&topology).await.expect("the nodes start");
    // What a node takes to start is no question to a twin: it is told, as it is here when one was away for a while.
    let first = followers(&target).await.pop().expect("there are others");
    let mut starts_s = [0.0; STARTS];
    for start_s in &mut starts_s {
        *start_s = restart(&mut target, &first, AWAY, nodes).await;
    }
    // Nor is what a copy takes there apart from its bytes. The first copies are slower: nothing is compiled yet.
    let mut copies = [time_of_a_copy(&target, CLUSTER).await.expect("copies are made"); 2];
    let mut first = [Duration::ZERO; 2];
    for (copy, first) in copies.iter_mut().zip(&mut first) {
        *first = time_of_first_copies(&mut target, CLUSTER).await.expect("copies come back");
        *copy = time_of_a_copy(&target, CLUSTER).await.expect("copies are made");
    }
    let measured = Measured { starts_s, copies, first };
    eprintln!("{nodes} nodes: {measured:.1?}");
    let mut outcomes = Vec::new();
    for case in cases {
        let began = Instant::now();
        prepare(&target, case).await;
        let mut followers = followers(&target).await;
        put_a_holder_last(&target, &mut followers).await;
        let predicted = predict(&target, case, &followers, &measured);
        let measured_s = carry_out(&mut target, case, &followers).await;
        outcomes.push(tell(case, &predicted, measured_s));
        let mb = copied_bytes(&target).await / 1e6;
        clear_away(&mut target, case, &followers).await;
        let took_s = began.elapsed().as_secs_f64();
        eprintln!("case {} took {took_s:.0} s; {mb:.0} MB of files were copied", case.name());
    }
    target.stop().await;
    outcomes
}

/// What is told to the twins of a cluster, as it was measured there before.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Seconds that a node took to start.
    starts_s: [f64; STARTS],
    /// What copies took one after another.
    copies: [TimeOfACopy; 2],
    /// What those took longer that came back at once to a node which had just started.
    first: [Duration; 2],
}

impl Measured {
    /// How long a node is away that is started again after so many seconds.
    fn down(&self, away_s: u64) -> String {
        let down = |start_s: f64| Duration::from_secs_f64(away_s as f64 + start_s);
        bounds(self.starts_s.map(down))
    }

    /// What a copy takes apart from its bytes.
    fn open_copy(&self) -> String {
        bounds(self.copies.map(|copy| copy.open))
    }

    /// What it takes besides where it begins without files.
    fn new_copy(&self) -> String {
        bounds(self.copies.map(|copy| copy.new))
    }

    /// What each of its files takes.
    fn each_file(&self) -> String {
        bounds(self.copies.map(|copy| copy.file))
    }
}

/// From the least to the most of what was measured, in whole microseconds, and above 0.
fn bounds<const N: usize>(measured: [Duration; N]) -> String {
    let micros = measured.map(|time| time.as_micros().max(1));
    let (least, most) = (micros.iter().min(), micros.iter().max());
    let (least, most) = least.zip(most).expect("there was one at least");
    format!("{least}micros..{most}micros")
}

/// Bytes of files that the copies got which there are: they began empty.
async fn copied_bytes(target: &OpenSearchClusters) -> f64 {
    let recoveries = ask(target, "GET", &format!("/{INDEX}/_recovery"), Value::Null).await;
    let copies = recoveries[INDEX]["shards"].as_array().into_iter().flatten();
    copies.filter_map(|copy| copy["index"]["size"]["recovered_in_bytes"].as_f64()).sum()
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
    start_again(target, node, nodes).await
}

/// Starts a node that was killed, and waits until it is there: seconds that this takes.
async fn start_again(target: &mut OpenSearchClusters, node: &str, nodes: usize) -> f64 {
    let began = Instant::now();
    target.end(node, FaultKind::Kill).await.expect("the node starts again");
    let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout={GREEN_PATIENCE}");
    let health = ask(target, "GET", &path, Value::Null).await;
    assert_eq!(health["timed_out"], false, "{health}");
    began.elapsed().as_secs_f64()
}

async fn put_cluster(target: &OpenSearchClusters, settings: &[(&str, Value)]) {
    let settings: Map<String, Value> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    ask(target, "PUT", "/_cluster/settings", json!({ "persistent": settings })).await;
}

async fn ask(target: &OpenSearchClusters, method: &str, path: &str, body: Value) -> Value {
    common::ask(target, CLUSTER, method, path, body).await
}

/// The settings of the case, and an index with all copies started and on disk. Then the links.
async fn prepare(target: &OpenSearchClusters, case: &Case) {
    let mut settings = case.settings().map(|(name, value)| (name, json!(value))).to_vec();
    // What is asked is not whether the cluster rebalances meanwhile.
    settings.push(("cluster.routing.rebalance.enable", json!("none")));
    put_cluster(target, &settings).await;
    let field = json!({ "type": "keyword", "index": false, "doc_values": false });
    let body = json!({
        "settings": {
            "number_of_shards": case.shards, "number_of_replicas": case.deed.replicas(),
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
    green(target, case.nodes).await;
    if case.deed.restarts() {
        leases_renewed(target).await;
    }
    set_links(target, case.rtt_ms);
}

/// Waits until no retention lease of a copy lags behind what was written, as a while after the last write: a copy whose
/// lease lags, and whose node is away when leases are renewed, comes back by files.
async fn leases_renewed(target: &OpenSearchClusters) {
    let path = format!("/{INDEX}/_stats/docs?level=shards");
    let give_up = Instant::now() + LEASE_PATIENCE;
    loop {
        let stats = ask(target, "GET", &path, Value::Null).await;
        let shards = stats["indices"][INDEX]["shards"].as_object().expect("the index has shards");
        let mut copies = shards.values().filter_map(Value::as_array).flatten();
        let is_renewed = |copy: &Value| {
            let max = copy["seq_no"]["max_seq_no"].as_i64().expect("a copy has operations");
            let leases = copy["retention_leases"]["leases"].as_array().expect("a copy has leases");
            leases.iter().all(|lease| lease["retaining_seq_no"].as_i64() > Some(max))
        };
        if copies.all(is_renewed) {
            return;
        }
        assert!(Instant::now() < give_up, "leases are not renewed: {stats}");
        std::thread::sleep(LEASE_LOOK);
    }
}

/// Waits until so many nodes are there and every copy is started.
async fn green(target: &OpenSearchClusters, nodes: usize) {
    let path = format!(
        "/_cluster/health?wait_for_status=green&wait_for_nodes={nodes}&timeout={GREEN_PATIENCE}"
    );
    let health = ask(target, "GET", &path, Value::Null).await;
    assert_eq!(health["timed_out"], false, "{health}");
}

/// The nodes that do not manage the cluster: what an election takes is not modelled.
async fn followers(target: &OpenSearchClusters) -> Vec<String> {
    let manager = ask(target, "GET", "/_cat/master?format=json", Value::Null).await;
    let manager = manager[0]["node"].as_str().expect("a node manages").to_owned();
    let nodes = target.nodes(CLUSTER);
    nodes.into_iter().map(|node| node.name).filter(|name| *name != manager).collect()
}

/// What happens to one node happens to the last. To one that holds no copy nothing does.
async fn put_a_holder_last(target: &OpenSearchClusters, followers: &mut [String]) {
    for _ in 0..followers.len() {
        if holds(target, followers.last().expect("there are others")).await {
            return;
        }
        followers.rotate_right(1);
    }
}

/// What narrows says before it is done; null without an answer.
fn predict(
    target: &OpenSearchClusters,
    case: &Case,
    followers: &[String],
    measured: &Measured,
) -> Value {
    let victim = followers.last().expect("there are others");
    let urls: Vec<String> =
        target.nodes(CLUSTER).iter().map(|node| format!("http://{}", node.http)).collect();
    let runs = tempfile::tempdir().expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["what-if", &urls.join(","), "--json", "--draws", "5", "--runs"]).arg(runs.path());
    // Not what is assumed where nobody says it: all nodes are on this machine, with one disk.
    command.args(["--link", "10gbit", "--disk-read", "400mb", "--disk-write", "200mb"]);
    command.args(["--open-copy", &measured.open_copy(), "--new-copy", &measured.new_copy()]);
    command.args(["--each-file", &measured.each_file(), "--first-copy", &bounds(measured.first)]);
    let down = measured.down(case.away_s);
    match case.deed {
        Deed::Lose => command.args(["--lose", victim]),
        Deed::Drain => command.args(["--drain", victim]),
        Deed::Restart => command.args(["--restart", victim, "--down", &down]),
        Deed::Rolling => {
            for node in followers {
                command.args(["--restart", node]);
            }
            command.args(["--down", &down])
        }
        Deed::Replicas => command.args(["--replicas", &format!("{INDEX}=1")]),
    };
    let changed = case.changed();
    if let Some((name, value)) = &changed {
        command.args(["--set", &format!("{name}={value}")]);
    }
    if case.rtt_ms > 0 {
        command.args(["--rtt", &format!("{}ms", case.rtt_ms)]);
    }
    let output = command.output().expect("narrows runs");
    if !output.status.success() {
        eprintln!("case {}: {}", case.name(), String::from_utf8_lossy(&output.stderr));
        return Value::Null;
    }
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    // With a setting that is changed the second answer is the one.
    found["answers"][usize::from(changed.is_some())].clone()
}

/// Does it; seconds until all is green, or the node is empty.
async fn carry_out(target: &mut OpenSearchClusters, case: &Case, followers: &[String]) -> f64 {
    let victim = followers.last().expect("there are others");
    if let Some((name, value)) = case.changed() {
        put_cluster(target, &[(name, json!(value))]).await;
    }
    let began = Instant::now();
    let away = Duration::from_secs(case.away_s);
    match case.deed {
        Deed::Lose => {
            target.begin(victim, FaultKind::Kill).await.expect("the node is killed");
            green(target, case.nodes - 1).await;
        }
        Deed::Drain => {
            put_cluster(target, &[(EXCLUDE, json!(victim))]).await;
            while holds(target, victim).await {
                std::thread::sleep(LOOK);
            }
        }
        Deed::Restart => {
            restart(target, victim, away, case.nodes).await;
            green(target, case.nodes).await;
        }
        Deed::Rolling => {
            for node in followers {
                restart(target, node, away, case.nodes).await;
                green(target, case.nodes).await;
            }
        }
        Deed::Replicas => {
            let body = json!({ "index.number_of_replicas": 1 });
            ask(target, "PUT", &format!("/{INDEX}/_settings"), body).await;
            green(target, case.nodes).await;
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

fn tell(case: &Case, predicted: &Value, measured_s: f64) -> Outcome {
    let number = |value: &Value| value.as_f64();
    let answer = number(&predicted["green_s"]);
    let (least, most) = (number(&predicted["between_s"][0]), number(&predicted["between_s"][1]));
    let interval = least.zip(most);
    let is_in_interval = interval.is_some_and(|(least, most)| (least..=most).contains(&measured_s));
    let error = answer.map(|predicted_s| (predicted_s - measured_s) / measured_s);
    let none = || "none".to_owned();
    TABLE.row(&[
        case.name(),
        case.words(),
        number(&predicted["bytes"]).map_or_else(none, |bytes| format!("{:.0}", bytes / 1e6)),
        answer.map_or_else(none, |seconds| format!("{seconds:.1}")),
        interval.map_or_else(none, |(least, most)| format!("{least:.1} to {most:.1}")),
        format!("{measured_s:.1}"),
        error.map_or_else(none, |error| format!("{:+.0} %", error * 100.0)),
        (if is_in_interval { "yes" } else { "no" }).to_owned(),
    ]);
    Outcome { kind: case.kind, error: error.unwrap_or(f64::INFINITY), is_in_interval }
}

/// The cluster as it was before the case.
async fn clear_away(target: &mut OpenSearchClusters, case: &Case, followers: &[String]) {
    set_links(target, 0);
    ask(target, "DELETE", &format!("/{INDEX}"), Value::Null).await;
    let everything = ["indices.recovery.*", "cluster.routing.*"].map(|name| (name, Value::Null));
    put_cluster(target, &everything).await;
    if case.deed == Deed::Lose {
        let victim = followers.last().expect("there are others");
        start_again(target, victim, case.nodes).await;
    }
    green(target, case.nodes).await;
    // A node that comes back may still have something to clear away.
    std::thread::sleep(Duration::from_secs(1));
}
