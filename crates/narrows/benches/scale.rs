//! One cluster on the virtual world, from 10 nodes to 1000: a rack fails, and its copies are recovered elsewhere.
//!
//! `cargo bench -p narrows --bench scale` runs the whole curve; `-- 100x1000` (nodes x shards) runs one size.
//! Each size runs in a process of its own, so that its peak of memory is its own. Wall time is that of one core.

mod common;

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};
use std::time::Instant;

use engine::{Node, NodeConfig, Segments};
use rest::RestRequest;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::{Env, Task, Time, virtual_world};

/// Nodes and shards; each shard has a replica.
const SIZES: [&str; 5] = ["10x100", "30x300", "100x1000", "300x3000", "1000x10000"];
/// One rack of 25 fails.
const RACKS: usize = 25;
const SHARDS_OF_AN_INDEX: usize = 100;
/// In MB, a copy; `SHARD_MB` sets another.
const SHARD_MB: u64 = 20_000;
const DOCUMENT_BYTES: u64 = 1000;
const SEED: u64 = 7;
/// At the field's 512 KB a full run would take millions of requests; 32 MB over a LAN takes as long. The throttle is
/// what an operator sets where cards carry 1250 MB/s.
const SETTINGS: [(&str, &str); 2] =
    [("indices.recovery.chunk_size", "32mb"), ("indices.recovery.max_bytes_per_sec", "250mb")];

const TABLE: Table = Table {
    page: "scale",
    name: "measured",
    columns: &["nodes x shards", "phase", "wall s", "core s", "virtual s", "peak memory, MB"],
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [child, size] = &args[..]
        && child == "only"
    {
        let (nodes, shards) = common::nodes_and_shards(size);
        let began = Instant::now();
        let ended = virtual_world::run_traced(SEED, move |env| run(env, nodes, shards));
        let (seconds, trace) = ended.unwrap_or_else(|deadlock| panic!("{deadlock}"));
        let (wall, events) = (began.elapsed().as_secs_f64(), trace.events);
        let (core_s, peak_mb) = used();
        let per_s = events as f64 / core_s;
        TABLE.row(&[
            size.clone(),
            format!("all, {events} events, {per_s:.0} a core second, trace {:016x}", trace.hash),
            format!("{wall:.1}"),
            format!("{core_s:.1}"),
            format!("{seconds:.1}"),
            peak_mb.to_string(),
        ]);
        return ExitCode::SUCCESS;
    }
    TABLE.begin();
    let sizes: Vec<String> = if args.is_empty() { SIZES.map(str::to_owned).to_vec() } else { args };
    let exe = std::env::current_exe().expect("a process knows its program");
    for size in sizes {
        // Each size in a process of its own, so that its memory can be told; it adds its rows to the table.
        let written = testbed::bench::is_written().then_some("--write");
        let status = Command::new(&exe).args(["only", &size]).args(written).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{size} did not end well");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Prints a row for what went on since the last.
struct Clock {
    env: Env,
    size: String,
    wall: Instant,
    core_s: f64,
    at: Time,
}

impl Clock {
    fn row(&mut self, phase: &str) {
        let (wall, (core_s, peak_mb), at) = (Instant::now(), used(), self.env.now());
        TABLE.row(&[
            self.size.clone(),
            phase.to_owned(),
            format!("{:.1}", (wall - self.wall).as_secs_f64()),
            format!("{:.1}", core_s - self.core_s),
            format!("{:.1}", (at - self.at).as_secs_f64()),
            peak_mb.to_string(),
        ]);
        (self.wall, self.core_s, self.at) = (wall, core_s, at);
    }
}

/// Seconds of a core that this process has used, which is what wall time would be on a machine with nothing else to
/// do, and its peak of memory in MB.
fn used() -> (f64, u64) {
    common::used(std::process::id()).unwrap_or_default()
}

/// `WATCH=1` shows on standard error how far it is, every ten virtual seconds.
fn watch(env: &Env, node: &Node) -> Option<Task<()>> {
    std::env::var_os("WATCH")?;
    let (env2, node) = (env.clone(), node.clone());
    Some(env.spawn("shows how far it is", async move {
        loop {
            env2.sleep(std::time::Duration::from_secs(10)).await;
            let h = engine::state::health(&node.state());
            let (now, version) = (env2.now().as_secs_f64(), node.state().version);
            eprintln!(
                "{now:.0} s, version {version}: {} started, {} recover, {} wait",
                h.active_shards, h.initializing_shards, h.unassigned_shards
            );
        }
    }))
}

async fn run(env: Env, nodes: usize, shards: usize) -> f64 {
    let size = format!("{nodes} x {shards}");
    let mut clock =
        Clock { env: env.clone(), size, wall: Instant::now(), core_s: used().0, at: env.now() };
    let mut cluster = start(&env, nodes).await;
    clock.row("start");
    let _watch = watch(&env, &cluster[0]);
    create(&cluster, shards).await;
    clock.row("create");
    load(&env, &cluster).await;
    clock.row("load");
    let rack = rack(&cluster, (nodes / RACKS).max(1) * replicas(nodes));
    let state = cluster[0].state();
    let lost: usize = rack.iter().map(|name| state.copies_on(name).count()).sum();
    for name in &rack {
        env.kill_host(name);
    }
    cluster.retain(|node| !rack.contains(node.name()));
    let gone = format!("/_cluster/health?wait_for_nodes={}&timeout=1h", cluster.len());
    ask(&cluster[0], "GET", &gone, Value::Null).await;
    clock.row(&format!("{} nodes fail, until that is known", rack.len()));
    green(&cluster[0]).await;
    clock.row(&format!("{lost} copies recover"));
    let state = cluster[0].state();
    let copies: usize = cluster.iter().map(|node| state.copies_on(node.name()).count()).sum();
    assert_eq!(copies, (1 + replicas(nodes)) * shards, "every copy is somewhere");
    for node in cluster {
        let name = node.name().to_owned();
        drop(node);
        env.kill_host(&name);
    }
    env.now().as_secs_f64()
}

async fn start(env: &Env, nodes: usize) -> Vec<Node> {
    let members: Vec<String> = (0..nodes).map(|n| format!("n{n:04}")).collect();
    let config = |name: &str, manager: Option<String>| NodeConfig {
        manager,
        transport: env.host(name).any_address(),
        http: env.host(name).any_address(),
        settings: SETTINGS.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..NodeConfig::new(name, "c", &members, "/data")
    };
    let first =
        rest::start(&env.host(&members[0]), config(&members[0], None)).await.expect("starts");
    let manager = first.transport_address().to_owned();
    let others: Vec<Task<_>> = members[1..]
        .iter()
        .map(|name| {
            let (host, config) = (env.host(name), config(name, Some(manager.clone())));
            env.spawn("starts a node", async move { rest::start(&host, config).await })
        })
        .collect();
    let mut cluster = vec![first];
    for other in others {
        cluster.push(other.await.expect("nobody ends it").expect("starts"));
    }
    cluster
}

/// One, where a second node can hold it.
fn replicas(nodes: usize) -> usize {
    1.min(nodes - 1)
}

async fn create(cluster: &[Node], shards: usize) {
    for (number, from) in (0..shards).step_by(SHARDS_OF_AN_INDEX).enumerate() {
        let shards = SHARDS_OF_AN_INDEX.min(shards - from);
        let replicas = replicas(cluster.len());
        let settings = json!({ "number_of_shards": shards, "number_of_replicas": replicas });
        let path = format!("/i{number:03}?wait_for_active_shards=0");
        ask(&cluster[0], "PUT", &path, json!({ "settings": settings })).await;
    }
    green(&cluster[0]).await;
}

/// Gives both copies of each shard the same documents, as numbers.
async fn load(env: &Env, cluster: &[Node]) {
    let bytes = std::env::var("SHARD_MB").ok().and_then(|mb| mb.parse().ok());
    let bytes = bytes.unwrap_or(SHARD_MB) * 1_000_000;
    let state = cluster[0].state();
    let loads: Vec<Task<()>> = cluster
        .iter()
        .map(|node| {
            let (node, state) = (node.clone(), state.clone());
            env.spawn("loads", async move {
                for (index, shard, _) in state.copies_on(node.name()) {
                    let documents = bytes / DOCUMENT_BYTES;
                    let loaded = node
                        .synthesize(index, shard, documents, bytes, Segments::halving(10))
                        .await;
                    loaded.expect("the copy is there");
                }
            })
        })
        .collect();
    for load in loads {
        load.await.expect("nobody ends it");
    }
}

/// So many nodes, not the manager, no two of which have copies of the same shard: as shard allocation awareness
/// would have seen to, which the engine does not know.
fn rack(cluster: &[Node], size: usize) -> BTreeSet<String> {
    let state = cluster[0].state();
    let (mut rack, mut shards) = (BTreeSet::new(), BTreeSet::new());
    for node in cluster[1..].iter().rev() {
        let own: BTreeSet<(&str, u32)> =
            state.copies_on(node.name()).map(|(index, shard, _)| (index, shard)).collect();
        if rack.len() < size && shards.is_disjoint(&own) {
            shards.extend(own);
            rack.insert(node.name().to_owned());
        }
    }
    assert_eq!(rack.len(), size, "so many nodes share no shard");
    rack
}

async fn green(node: &Node) {
    let path = "/_cluster/health?wait_for_status=green&timeout=24h";
    let health = ask(node, "GET", path, Value::Null).await;
    assert_eq!(
        (&health["status"], &health["timed_out"]),
        (&json!("green"), &json!(false)),
        "{health}"
    );
}

async fn ask(node: &Node, method: &str, path: &str, body: Value) -> Value {
    let body = rest::json_body(&body);
    let request = RestRequest { method: method.to_owned(), path: path.to_owned(), body };
    let response = rest::handle(node, request).await;
    let answer = serde_json::from_slice(&response.body).expect("answers are JSON");
    assert!(response.status < 300, "{method} {path}: {} {answer}", response.status);
    answer
}
