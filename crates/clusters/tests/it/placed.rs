//! Copies that are put in place in virtual time against the same copies made the usual way: what happens to them then
//! takes as long.

use std::collections::BTreeMap;
use std::time::Duration;

use clusters::{
    Clusters, FaultKind, Faults, SyntheticIndex, TopologySpec, VirtualClusters, VirtualControls,
};
use engine::state::PlacedIndex;
use engine::{Placement, ShardContents};
use serde_json::{Value, json};
use world::Env;

use crate::common::ask;

const SHARDS: u32 = 6;
const DOCUMENTS: u64 = 60_000;
const BYTES: u64 = 300_000_000;
const SEGMENTS: u32 = 8;
const DELAY: &str = "index.unassigned.node_left.delayed_timeout";

async fn started(env: &Env) -> VirtualClusters {
    let mut target = VirtualClusters::new(env);
    target.start(&TopologySpec::alone("leader", 4)).await.unwrap();
    let settings = json!({ "persistent": {
        "indices.recovery.max_bytes_per_sec": "20mb",
        "cluster.routing.allocation.exclude._name": "leader-0",
    } });
    ask(&target, "PUT", "/_cluster/settings", &settings.to_string()).await.unwrap();
    target
}

async fn green(target: &VirtualClusters, nodes: usize) {
    let path = format!("/_cluster/health?wait_for_status=green&wait_for_nodes={nodes}&timeout=1h");
    let health = ask(target, "GET", &path, "").await.unwrap().json().unwrap();
    assert_eq!(health["timed_out"], false, "{health}");
}

/// The nodes of each shard, that of the primary first.
async fn places(target: &VirtualClusters) -> Vec<Vec<String>> {
    let path = "/_cat/shards?format=json&h=shard,prirep,node";
    let rows = ask(target, "GET", path, "").await.unwrap().json().unwrap();
    let mut nodes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for primary in ["p", "r"] {
        for row in rows.as_array().unwrap().iter().filter(|row| row["prirep"] == primary) {
            let shard = row["shard"].to_string().trim_matches('"').parse().unwrap();
            nodes.entry(shard).or_default().push(row["node"].as_str().unwrap().to_owned());
        }
    }
    nodes.into_values().collect()
}

/// Seconds until green after a node died, and bytes that were copied.
async fn lose(env: &Env, target: &mut VirtualClusters, node: &str) -> (f64, u64) {
    let began = env.now();
    target.begin(node, FaultKind::Kill).await.unwrap();
    green(target, 3).await;
    let seconds = (env.now() - began).as_secs_f64();
    (seconds, copied(target).await)
}

async fn copied(target: &VirtualClusters) -> u64 {
    let answer = ask(target, "GET", "/a/_recovery", "").await.unwrap().json().unwrap();
    let rows = answer["a"]["shards"].as_array().unwrap();
    let bytes = |row: &Value| row["index"]["size"]["recovered_in_bytes"].as_u64().unwrap();
    rows.iter().filter(|row| row["type"] == "PEER").map(bytes).sum()
}

/// Places, and how it went.
async fn made(env: &Env) -> (Vec<Vec<String>>, (f64, u64)) {
    let mut target = started(env).await;
    let body = json!({ "settings": {
        "number_of_shards": SHARDS, "number_of_replicas": 1, DELAY: "10s",
    } });
    ask(&target, "PUT", "/a", &body.to_string()).await.unwrap();
    green(&target, 4).await;
    let index = SyntheticIndex {
        name: "a".to_owned(),
        documents: DOCUMENTS * u64::from(SHARDS),
        bytes: BYTES * u64::from(SHARDS),
        segments: SEGMENTS * SHARDS,
        segment_ratio: 0.5,
    };
    target.load_index("leader", &index).await.unwrap();
    let places = places(&target).await;
    let lost = lose(env, &mut target, "leader-3").await;
    target.stop().await;
    (places, lost)
}

async fn placed(env: &Env, nodes: &[Vec<String>]) -> VirtualClusters {
    let target = started(env).await;
    let placed = PlacedIndex {
        index: "a".to_owned(),
        replicas: 1,
        settings: [(DELAY.to_owned(), Some("10s".to_owned()))].into(),
        nodes: nodes.to_vec(),
    };
    let contents = ShardContents { documents: DOCUMENTS, bytes: BYTES, segments: SEGMENTS };
    let contents = vec![contents; SHARDS as usize];
    target.place("leader", &[Placement { placed, contents }], &[]).await.unwrap();
    green(&target, 4).await;
    assert_eq!(places(&target).await, nodes);
    target
}

#[test]
fn a_lost_node_takes_as_long_where_copies_were_put_in_place() {
    let (places, (made_s, made_bytes)) = world::virtual_world::run(5, async |env| made(&env).await);
    let (placed_s, placed_bytes) = world::virtual_world::run(5, async move |env| {
        let mut target = placed(&env, &places).await;
        let lost = lose(&env, &mut target, "leader-3").await;
        target.stop().await;
        lost
    });
    let differ = (made_s - placed_s).abs() / made_s;
    assert!(differ < 0.02, "{made_s} s where they were made, {placed_s} s where they were placed");
    let differ = made_bytes.abs_diff(placed_bytes) as f64 / made_bytes as f64;
    assert!(made_bytes > BYTES && differ < 0.02, "{made_bytes} and {placed_bytes} bytes");
}

/// Operations bring them up to date, of which there are none: also those that were primaries.
#[test]
fn a_node_that_comes_back_in_time_copies_nothing() {
    let places = world::virtual_world::run(5, async |env| made(&env).await).0;
    world::virtual_world::run(5, async move |env| {
        let mut target = placed(&env, &places).await;
        target.begin("leader-3", FaultKind::Stop).await.unwrap();
        env.sleep(Duration::from_secs(5)).await;
        let path = "/_cluster/health";
        let health = ask(&target, "GET", path, "").await.unwrap().json().unwrap();
        let waits = health["delayed_unassigned_shards"].as_u64().unwrap();
        assert!(waits > 0 && health["initializing_shards"] == 0, "{health}");
        target.end("leader-3", FaultKind::Stop).await.unwrap();
        green(&target, 4).await;
        assert_eq!(copied(&target).await, 0);
        target.stop().await;
    });
}
