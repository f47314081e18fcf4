//! `narrows load` through the binary: against a real OpenSearch behind TLS and credentials, and a queue that is full.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use clusters::{
    ClusterSpec, Clusters, EmbeddedClusters, FaultKind, OpenSearchClusters, TopologySpec,
};
use serde_json::Value;
use testbed::CannotRun;
use testbed::tls::Authority;

use crate::common::tls::guarded_end;
use crate::common::{BINARY, json, said};
use crate::opensearch::not_fetched;

const USER: &str = "operator";
const PASSWORD: &str = "not a secret";
/// The two, as HTTP basic writes them.
const AUTHORIZATION: &str = "Basic b3BlcmF0b3I6bm90IGEgc2VjcmV0";
/// Searches of the log, of which a node with one thread and room for one more refuses most.
const SEARCH: &str = r#"{"size":5,"query":{"match":{"request":"images gif"}},"sort":["size"]}"#;

/// One node, whose search pool is soon full.
fn topology() -> TopologySpec {
    let narrow = [("thread_pool.search.size", "1"), ("thread_pool.search.queue_size", "1")];
    let settings = narrow.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let cluster = ClusterSpec {
        name: "load".to_owned(),
        nodes: 1,
        settings: BTreeMap::from(settings),
        attributes: Vec::new(),
    };
    TopologySpec { clusters: vec![cluster], link: None, joined: false }
}

fn load(url: &str, ca: &str, password: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["load", url, "--ca", ca, "--json"]).args(arguments);
    command.env("NARROWS_USER", USER).env("NARROWS_PASSWORD", password).output().unwrap()
}

fn figures(output: &Output) -> Value {
    let mut all = json(output);
    let laps = all["laps"].as_array_mut().unwrap_or_else(|| panic!("no laps"));
    laps.remove(0)
}

/// Fills it, searches it within its means, and beyond.
async fn narrow_node(target: &mut impl Clusters) -> Result<(), CannotRun> {
    target.start(&topology()).await.map_err(not_fetched)?;
    let plain = target.nodes("load").remove(0).http;
    let (ours, others) = (Authority::new(), Authority::new());
    let (ca, other_ca) = (ours.file("ca.pem"), others.file("ca.pem"));
    let url = format!("https://{}", guarded_end(&plain, AUTHORIZATION, ours.config.clone()));
    let bulk = [
        "--operation", "bulk", "--index", "logs", "--documents", "20000", "--clients", "2",
        "--warm-up", "0",
    ];
    let mapping = lab::corpus::Corpus::HttpLogs.mapping();
    let index = serde_json::json!({"settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": mapping});
    target.request("load", "PUT", "/logs", index.to_string().into()).await.unwrap();
    let filled = load(&url, &ca, PASSWORD, &[&bulk[..], &["--allow-changes"]].concat());
    assert_eq!(figures(&filled)["documents"], 20_000);
    target.request("load", "POST", "/logs/_refresh", "".into()).await.unwrap();

    let search =
        ["--index", "logs", "--body", SEARCH, "--warm-up", "0", "--iterations", "600", "--clients"];
    let within = figures(&load(&url, &ca, PASSWORD, &[&search[..], &["1"]].concat()));
    assert_eq!((&within["requests"], &within["errors"]), (&600.into(), &serde_json::json!({})));
    // Many more than it has room for: those it refuses are counted apart, and no other error is among them.
    let beyond = figures(&load(&url, &ca, PASSWORD, &[&search[..], &["40"]].concat()));
    let errors = beyond["errors"].as_object().unwrap();
    let refused: u64 = errors.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(refused > 0 && refused < 600, "{beyond}");
    // Where every shard refuses, OpenSearch names what failed by that and not by why.
    let rejected = |name: &String| name.starts_with("429 ");
    assert!(errors.keys().all(rejected), "{errors:?}");
    assert!(errors.keys().any(|name| name.contains("rejected_execution")), "{errors:?}");

    let untrusted = load(&url, &other_ca, PASSWORD, &[&search[..], &["1"]].concat());
    assert_eq!(untrusted.status.code(), Some(2), "{}", said(&untrusted));
    let stranger = load(&url, &ca, "wrong", &[&search[..], &["1"]].concat());
    let words = said(&stranger);
    assert!(words.contains("401") || stranger.status.code() == Some(2), "{words}");
    assert!(!words.contains(PASSWORD), "{words}");

    // A node that is stopped in order has its documents when it is started again.
    let node = &target.nodes("load")[0].name;
    let faults = target.faults().unwrap();
    faults.begin(node, FaultKind::Stop).await.unwrap();
    faults.end(node, FaultKind::Stop).await.unwrap();
    let health = "/_cluster/health/logs?wait_for_status=green&timeout=60s";
    target.request("load", "GET", health, "".into()).await.unwrap();
    let count = target.request("load", "GET", "/logs/_count", "".into()).await.unwrap();
    assert_eq!(count.json().unwrap()["count"], 20_000);
    target.stop().await;
    Ok(())
}

pub fn the_embedded_engine_behind_tls() -> Result<(), CannotRun> {
    world::real_world::run(1, async |env| {
        narrow_node(&mut EmbeddedClusters::new(&env, BINARY.into())).await
    })
}

pub fn opensearch_behind_tls() -> Result<(), CannotRun> {
    world::real_world::run(1, async |env| narrow_node(&mut OpenSearchClusters::new(&env)).await)
}
