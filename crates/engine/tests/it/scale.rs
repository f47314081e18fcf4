//! Odd sizes and odd failures: many shards on a node, many nodes with a shard, a node that flaps, a cluster whose
//! manager is gone.

use std::time::Duration;

use crate::common::{Cluster, ask, eventually, refuses};
use serde_json::{Value, json};
use world::Env;

testbed::virtual_world!(
    a_node_with_hundreds_of_shards,
    two_hundred_nodes_with_one_shard,
    a_node_that_flaps_while_its_copies_are_recovered,
    without_its_manager_a_cluster_says_so,
    copies_that_are_searched_recover_from_a_new_primary,
);

async fn create(cluster: &Cluster, index: &str, shards: u32, replicas: u32) {
    let settings = json!({ "number_of_shards": shards, "number_of_replicas": replicas });
    let path = format!("/{index}?wait_for_active_shards=0");
    cluster.must("PUT", &path, json!({ "settings": settings })).await;
}

async fn health(cluster: &Cluster, query: &str) -> Value {
    cluster.get(&format!("/_cluster/health?timeout=300s&{query}")).await
}

async fn a_node_with_hundreds_of_shards(env: Env) {
    let cluster = Cluster::start(&env, "c", 1).await;
    create(&cluster, "a", 150, 0).await;
    create(&cluster, "b", 150, 0).await;
    let health = health(&cluster, "wait_for_status=green").await;
    assert_eq!((&health["status"], &health["active_shards"]), (&json!("green"), &json!(300)));
    assert_eq!(cluster.index("b", 0, 50).await, 50);
    let version = cluster.node(0).state().version;
    assert!(version < 250, "what happens together is published together: version {version}");
}

async fn two_hundred_nodes_with_one_shard(env: Env) {
    let cluster = Cluster::start(&env, "c", 200).await;
    create(&cluster, "a", 1, 1).await;
    let health = health(&cluster, "wait_for_status=green").await;
    assert_eq!((&health["status"], &health["number_of_nodes"]), (&json!("green"), &json!(200)));
    assert_eq!(cluster.index("a", 0, 50).await, 50);
    // A node without a copy passes it on, from a state that it was sent as a change.
    let (status, count) = ask(cluster.node(199), "GET", "/a/_count", Value::Null).await;
    assert_eq!((status, &count["_shards"]["failed"]), (200, &json!(0)), "{count}");
    let version = cluster.node(0).state().version;
    eventually(&env, "every node has the newest state", async || {
        (0..200).all(|n| cluster.node(n).state().version == version)
    })
    .await;
}

async fn a_node_that_flaps_while_its_copies_are_recovered(env: Env) {
    let mut cluster = Cluster::start(&env, "c", 8).await;
    create(&cluster, "a", 40, 1).await;
    health(&cluster, "wait_for_status=green").await;
    let mut acknowledged = 0;
    for round in 0..6u64 {
        cluster.kill_node(5).await;
        acknowledged += cluster.index("a", round * 40, round * 40 + 40).await;
        env.sleep(std::time::Duration::from_millis(130 * round)).await;
        cluster.start_node(5).await;
    }
    let health = health(&cluster, "wait_for_status=green").await;
    assert_eq!((&health["status"], &health["number_of_nodes"]), (&json!("green"), &json!(8)));
    assert_eq!(acknowledged, 240);
    cluster.post("/a/_refresh").await;
    assert_eq!(cluster.counted("a").await["count"], 240);
    for pair in cluster.digests("a").await.chunks(2) {
        assert_eq!(pair[0], pair[1], "two copies of a shard differ");
    }
}

/// Membership is static and one node manages: without it the others serve what they have, and say why they cannot
/// do more. Nothing waits for ever.
async fn without_its_manager_a_cluster_says_so(env: Env) {
    let mut cluster = Cluster::start(&env, "c", 4).await;
    create(&cluster, "a", 4, 1).await;
    health(&cluster, "wait_for_status=green").await;
    cluster.kill_node(0).await;
    let other = cluster.node(2).clone();
    let asked = env.now();
    let path = "/_cluster/health?wait_for_status=green&wait_for_nodes=3&timeout=300s";
    let (status, answer) = ask(&other, "GET", path, Value::Null).await;
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert_eq!(status, 503);
    assert_eq!(answer["error"]["type"], "master_not_discovered_exception");
    assert!(reason.contains("[c-0]") && reason.contains("start it again"), "{reason}");
    assert!((env.now() - asked).as_secs() < 10, "it does not wait for what cannot come");
    let answer = ask(&other, "PUT", "/b", Value::Null).await;
    refuses(answer, 503, "master_not_discovered_exception");
    // Once the node knows that, nobody knows what comes of a change: that is more than that it takes longer.
    env.sleep(std::time::Duration::from_secs(10)).await;
    let body = json!({"persistent": {"transport.compress": true}});
    let (status, _) = ask(&other, "PUT", "/_cluster/settings?timeout=0s", body).await;
    assert_eq!(status, 503);

    cluster.start_node(0).await;
    let health = health(&cluster, "wait_for_status=green&wait_for_nodes=4").await;
    assert_eq!((&health["status"], &health["timed_out"]), (&json!("green"), &json!(false)));
    let (status, _) = ask(&other, "PUT", "/b", Value::Null).await;
    assert_eq!(status, 200);
}

/// A new primary has the other copies recover from it; one that is still being searched is waited for, and not given
/// up.
async fn copies_that_are_searched_recover_from_a_new_primary(env: Env) {
    let mut cluster = Cluster::start(&env, "c", 3).await;
    create(&cluster, "a", 3, 2).await;
    health(&cluster, "wait_for_status=green").await;
    for number in 0..3 {
        let node = cluster.node(number);
        for shard in 0..3 {
            let segments = store::Segments::halving(3);
            node.synthesize("a", shard, 1000, 1 << 20, segments).await.unwrap();
        }
    }
    // Searches that take long keep what they read open.
    let until = env.now() + Duration::from_secs(4);
    let searching: Vec<_> = (0..4)
        .map(|_| {
            let (node, env2) = (cluster.node(0).clone(), env.clone());
            env.host("client").spawn("searches", async move {
                let cost = json!({ "narrows": { "cost": { "documents": 200_000 } } });
                let body = json!({ "size": 0, "ext": cost });
                while env2.now() < until {
                    ask(&node, "POST", "/a/_search", body.clone()).await;
                }
            })
        })
        .collect();
    env.sleep(Duration::from_secs(1)).await;
    cluster.stop_node(2).await;
    env.sleep(Duration::from_millis(1200)).await;
    cluster.start_node(2).await;
    for search in searching {
        search.await.unwrap();
    }
    let health = health(&cluster, "wait_for_status=green").await;
    assert_eq!((&health["status"], &health["active_shards"]), (&json!("green"), &json!(9)));
}
