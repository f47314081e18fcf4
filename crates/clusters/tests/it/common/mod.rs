//! What the tests of embedded clusters in both worlds share: two clusters and a link, documents, questions.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use bytes::Bytes;
use clusters::{Answer, ClusterSpec, Clusters, Error, TopologySpec};
use world::LinkConfig;

/// A leader of so many nodes and a follower of one, behind a link of 50 ms and 10 MB/s.
pub fn topology(leader_nodes: usize) -> TopologySpec {
    let link = LinkConfig {
        rtt: Duration::from_millis(50),
        rate_bytes_per_s: Some(10_000_000),
        ..LinkConfig::default()
    };
    TopologySpec {
        clusters: vec![ClusterSpec::new("leader", leader_nodes), ClusterSpec::new("follower", 1)],
        link: Some(link),
        joined: false,
    }
}

/// Asks the leader.
pub async fn ask(
    target: &impl Clusters,
    method: &str,
    path: &str,
    body: &str,
) -> Result<Answer, Error> {
    target.request("leader", method, path, Bytes::from(body.to_owned())).await
}

/// Makes an index of two shards with a replica each, and indexes 200 documents.
pub async fn index_some(target: &impl Clusters) {
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    ask(target, "PUT", "/a", settings).await.unwrap();
    let green = "/_cluster/health/a?wait_for_status=green&timeout=60s";
    assert_eq!(ask(target, "GET", green, "").await.unwrap().status, 200);
    let bulk: String = (0..200).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{n}}}\n")).collect();
    let answer = ask(target, "POST", "/a/_bulk", &bulk).await.unwrap();
    assert_eq!(answer.json().unwrap()["errors"], false);
}

/// What a search counts after a refresh.
pub async fn count(target: &impl Clusters) -> u64 {
    ask(target, "POST", "/a/_refresh", "").await.unwrap();
    let answer = ask(target, "GET", "/a/_count", "").await.unwrap();
    answer.json().unwrap()["count"].as_u64().unwrap()
}

/// Tells the follower where the leader is on the other side of the link; answers whether it sees it.
pub async fn connect_follower(target: &impl Clusters) -> bool {
    let seeds = target.seeds_through_link("leader").join(",");
    let body = format!(r#"{{"persistent":{{"cluster.remote.leader.seeds":"{seeds}"}}}}"#);
    target.request("follower", "PUT", "/_cluster/settings", Bytes::from(body)).await.unwrap();
    follower_is_connected(target).await
}

/// Whether the follower sees the leader.
pub async fn follower_is_connected(target: &impl Clusters) -> bool {
    let info = target.request("follower", "GET", "/_remote/info", Bytes::new()).await.unwrap();
    info.json().unwrap()["leader"]["connected"] == true
}
