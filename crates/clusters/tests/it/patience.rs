//! A cluster that was there already and takes its time: how long whoever asks it waits, what is noted of indices that
//! others make there, and which of its nodes stand for sites.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{Address, LiveClient, LiveOptions};
use clusters::{
    ClusterIdentity, ClusterSpec, Clusters, Error, FollowApi, Head, Journal, LiveCluster,
    LiveClusters, TopologySpec,
};
use world::{Env, Task};

use crate::looks::host;

/// How long the cluster's own client waits.
const QUICK: Duration = Duration::from_millis(100);
/// How long a merge takes.
const MERGE: Duration = Duration::from_millis(500);
const MERGING: &str = "/narrows-1/_forcemerge";
/// What is answered to everything.
const ANSWER: &str = r#"{"cluster_uuid":"uuid","cluster_name":"c",
    "version":{"distribution":"opensearch","number":"2.19.1"},"nodes":{"a":{"name":"a"}}}"#;

async fn started(env: &Env, journal: &Path) -> (LiveClusters, Task<()>) {
    let (mut clusters, node) = there(env, journal, ANSWER).await;
    clusters.start(&TopologySpec::alone("leader", 1)).await.unwrap();
    (clusters, node)
}

async fn there(env: &Env, journal: &Path, answer: &'static str) -> (LiveClusters, Task<()>) {
    let latency = |path: &str| if path == MERGING { MERGE } else { Duration::ZERO };
    let (address, node) = host(env, "a", latency, move |_| Some((200, answer))).await;
    let options = LiveOptions::anonymous(Address::parse_all([address.as_str()]).unwrap(), QUICK);
    let client = || LiveClient::new(env, &options).unwrap();
    let identity = ClusterIdentity::ask(&client()).await.unwrap();
    let journal = Journal::create(journal, Head::new("uuid".to_owned(), vec![address])).unwrap();
    let cluster = LiveCluster::new(client(), client(), identity, journal);
    (LiveClusters::new(vec![cluster], FollowApi::Ccr), node)
}

#[test]
fn an_answer_is_waited_for_as_long_as_whoever_asks_wants() {
    world::virtual_world::run(1, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let (clusters, _node) = started(&env, &dir.path().join("changes.jsonl")).await;
        let patient = clusters.asker("leader", 2 * MERGE).unwrap();
        assert_eq!(patient.ask("POST", MERGING, Bytes::new()).await.unwrap().status, 200);
        let hasty = clusters.asker("leader", QUICK / 2).unwrap();
        for asked in [
            hasty.ask("POST", MERGING, Bytes::new()).await,
            clusters.request("leader", "POST", MERGING, Bytes::new()).await,
        ] {
            assert!(matches!(asked, Err(Error::Timeout { .. })), "{asked:?}");
        }
    });
}

/// One after another is asked. Without a bound eight of them would take eight times as long as one.
#[test]
fn all_hosts_that_hang_take_three_times_as_long_as_one_answer_may() {
    world::virtual_world::run(1, async |env| {
        let (mut hosts, mut nodes) = (Vec::new(), Vec::new());
        for number in 0..8 {
            let answer = move |_: &str| (number == 7).then_some((200, ANSWER));
            let (address, node) =
                host(&env, &format!("n{number}"), |_| Duration::ZERO, answer).await;
            hosts.push(address);
            nodes.push(node);
        }
        let addresses = Address::parse_all(hosts.iter().map(String::as_str)).unwrap();
        let patience = 100 * QUICK;
        let client = LiveClient::new(&env, &LiveOptions::anonymous(addresses, patience)).unwrap();
        let began = env.now();
        assert_eq!(client.get("/").await.unwrap()["cluster_name"], "c", "the last one answers");
        let took = env.now() - began;
        assert!(took > 2 * patience && took <= 3 * patience, "{took:?}");
    });
}

#[test]
fn an_index_that_others_make_is_in_the_journal() {
    world::virtual_world::run(1, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("changes.jsonl");
        let (clusters, _node) = started(&env, &journal).await;
        clusters.will_make("leader", "narrows-1").unwrap();
        let written = std::fs::read_to_string(&journal).unwrap();
        assert!(written.contains("\"narrows-1\""), "{written}");
    });
}

/// Of a cluster with tiers a new index is in that of contents: kept on a node of another one it would be nowhere.
#[test]
fn sites_of_one_cluster_are_nodes_that_hold_new_indices() {
    const TIERS: &str = r#"{"cluster_uuid":"uuid","cluster_name":"c","version":{"number":"8.15.0"},"nodes":{
        "1":{"name":"cold-1","roles":["data_cold"]},"2":{"name":"frozen-1","roles":["data_frozen"]},
        "3":{"name":"hot-1","roles":["data_content","data_hot"]},"4":{"name":"hot-2","roles":["data"]},
        "5":{"name":"manager-1","roles":["master"]}}}"#;
    world::virtual_world::run(1, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let (mut clusters, _node) = there(&env, &dir.path().join("changes.jsonl"), TIERS).await;
        let sites = |names: &[&str]| {
            let clusters = names.iter().map(|name| ClusterSpec::new(name, 1)).collect();
            TopologySpec { clusters, link: None, joined: true }
        };
        clusters.start(&sites(&["near", "far"])).await.unwrap();
        let nodes = ["near", "far"].map(|site| clusters.nodes(site)[0].name.clone());
        assert_eq!(nodes, ["hot-1", "hot-2"]);
        // So are all the nodes that may take a copy from another one.
        let whole = TopologySpec { joined: false, ..sites(&["leader"]) };
        clusters.start(&whole).await.unwrap();
        let nodes: Vec<String> =
            clusters.nodes("leader").into_iter().map(|node| node.name).collect();
        assert_eq!(nodes, ["hot-1", "hot-2"]);
        let refused = clusters.start(&sites(&["near", "far", "farther"])).await.unwrap_err();
        assert!(matches!(refused, Error::TooFewNodes { data: 2, needed: 3 }), "{refused}");
    });
}
