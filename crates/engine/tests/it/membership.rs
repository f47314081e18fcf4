//! What members know of the cluster.

use std::path::PathBuf;
use std::time::Duration;

use engine::transport::{Request, Response};
use engine::{Node, NodeConfig};
use serde_json::{Value, json};
use world::Env;

use crate::common::between::cluster_behind;
use crate::common::{Cluster, ask, eventually, refuses};

testbed::both_worlds!(
    a_closed_connection_is_enough_where_that_is_asked_for,
    a_state_that_was_missed_is_asked_for,
    health_that_was_waited_for_is_so_on_every_node,
    every_node_says_what_the_manager_knows_of_health,
    nobody_waits_longer_for_the_manager_than_the_request_says,
    a_node_that_was_stopped_starts_no_task,
    replicas_follow_the_nodes_where_they_are_to,
    a_node_that_may_not_join_leaves_nothing_behind;
    simulated:
    a_node_that_has_started_again_stays,
);

/// Nobody would end it, and it would keep the whole node. A cluster that a test leaves is stopped behind it.
async fn a_node_that_was_stopped_starts_no_task(env: Env) {
    let cluster = Cluster::start(&env, "one", 1).await;
    let node = cluster.any().clone();
    drop(cluster);
    testbed::at_the_end(async move {
        let late = node.core().run_to_end("comes late", async { Ok(()) }).await.unwrap_err();
        assert!(late.reason.contains("is going down"), "{late}");
    });
}

/// What was acknowledged is there when the node is gone that had the primary, and on both once it is back.
async fn replicas_follow_the_nodes_where_they_are_to(env: Env) {
    let mut cluster = Cluster::start(&env, "one", 2).await;
    let expands = json!({ "settings": { "auto_expand_replicas": "0-1" } });
    cluster.make("a", expands).await;
    assert_eq!(cluster.index("a", 0, 20).await, 20);
    cluster.has(2, 20).await;
    cluster.kill_node(1).await;
    let copies = async |cluster: &Cluster| {
        let health = cluster.get("/_cluster/health/a").await;
        let green = health["status"] == "green";
        health["active_shards"].as_u64().filter(|_| green).unwrap_or(0)
    };
    eventually(&env, "one copy is all", async || copies(&cluster).await == 1).await;
    assert_eq!(cluster.index("a", 20, 30).await, 10);
    cluster.has(1, 30).await;
    cluster.start_node(1).await;
    eventually(&env, "there are two copies", async || copies(&cluster).await == 2).await;
    cluster.has(2, 30).await;
}

/// As often as it is started it says why, and not that its directory or its address is in use.
async fn a_node_that_may_not_join_leaves_nothing_behind(env: Env) {
    let cluster = Cluster::start(&env, "one", 1).await;
    let host = env.host("stranger");
    let dir = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
    let data = dir.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
    let mut config = NodeConfig {
        manager: Some(cluster.any().transport_address().to_owned()),
        ..cluster.config(0)
    };
    (config.name, config.data) = ("stranger".to_owned(), data);
    (config.transport, config.http) = (host.any_address(), host.any_address());
    for _ in 0..2 {
        let error = rest::start(&host, config.clone()).await.err().unwrap();
        assert!(matches!(error, engine::Error::Join { .. }), "{error}");
    }
}

/// A round of checks waits for a node that is silent, and finds one that is down: that one may be back by its end.
async fn a_node_that_has_started_again_stays(env: Env) {
    let mut cluster = Cluster::start(&env, "one", 3).await;
    cluster.node(2).cut_off(true);
    cluster.kill_node(1).await;
    // A round has begun.
    env.sleep(Duration::from_millis(1500)).await;
    cluster.start_node(1).await;
    for _ in 0..100 {
        assert!(cluster.node(0).state().present.contains("one-1"), "it has just come");
        env.sleep(Duration::from_millis(50)).await;
    }
    cluster.node(2).cut_off(false);
}

/// The manager's checks come, so that the node does not miss it; what it is asked it does not answer.
async fn nobody_waits_longer_for_the_manager_than_the_request_says(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 0).await;
    cluster.create("a", 1, 0).await;
    let nowhere = json!({ "settings": { "index.routing.allocation.require._name": "nowhere" } });
    cluster.must("PUT", "/red?wait_for_active_shards=0", nowhere).await;
    let other = cluster.node(1).clone();
    between.hold(|request| !matches!(request, Request::Heartbeat(_)));
    let within = async |method: &str, path: &str, body: Value| {
        let asking = ask(&other, method, path, body);
        env.timeout(Duration::from_secs(20), asking).await.expect(path)
    };
    let (status, health) = within("GET", "/_cluster/health?timeout=300ms", Value::Null).await;
    assert_eq!((status, &health["timed_out"]), (408, &json!(true)), "{health}");
    let late = within("PUT", "/b?timeout=300ms", Value::Null).await.1;
    assert_eq!(late["acknowledged"], false, "{late}");
    const SILENT: &str = "master_not_discovered_exception";
    const LATE: &str = "process_cluster_event_timeout_exception";
    let (document, update) = (json!({ "n": 1 }), json!({ "doc": { "n": 1 } }));
    for (method, path, body, kind) in [
        ("GET", "/_cluster/health?master_timeout=300ms", &Value::Null, SILENT),
        ("GET", "/_cat/health?cluster_manager_timeout=300ms", &Value::Null, SILENT),
        ("GET", "/_ccr/stats?timeout=300ms", &Value::Null, SILENT),
        ("PUT", "/c?master_timeout=300ms", &Value::Null, LATE),
        ("DELETE", "/a?cluster_manager_timeout=300ms&timeout=1m", &Value::Null, LATE),
        ("PUT", "/d/_doc/1?timeout=300ms", &document, LATE),
        ("PUT", "/red/_doc/1?timeout=300ms", &document, "unavailable_shards_exception"),
        ("POST", "/red/_update/1?timeout=300ms", &update, "unavailable_shards_exception"),
    ] {
        refuses(within(method, path, body.clone()).await, 503, kind);
    }
    between.be_honest();
}

/// Checks are an hour apart: only the connection that closes can say it earlier.
async fn a_closed_connection_is_enough_where_that_is_asked_for(env: Env) {
    let settings = [("cluster.fault_detection.follower_check.interval", "1h")];
    let mut cluster = Cluster::start_with(&env, "one", 3, &settings).await;
    cluster.set(json!({ "narrows.fault_detection.on_disconnect": true })).await;
    cluster.kill_node(2).await;
    eventually(&env, "the node is missed", async || cluster.node(0).state().present.len() == 2)
        .await;
}

/// A publication that is lost, and no other after it: the next check says that there was one.
async fn a_state_that_was_missed_is_asked_for(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    cluster.set(json!({ "indices.recovery.max_bytes_per_sec": "7mb" })).await;
    assert!(between.held() > 0);
    between.lose_what_is_held();
    let version = |number| cluster.node(number).state().version;
    eventually(&env, "both nodes have the same state", async || version(1) == version(0)).await;
}

/// The manager knows a state before the others do. Whoever waited for it asks another node next, and must find it
/// there.
async fn health_that_was_waited_for_is_so_on_every_node(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 3, 2).await;
    // One replica more than there are nodes for.
    cluster.must("PUT", "/a", json!({ "settings": { "number_of_replicas": 3 } })).await;
    cluster.get("/_cluster/health/a?wait_for_active_shards=3&timeout=300s").await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    let node = cluster.node(0).clone();
    let fewer = env.spawn("changes replicas", async move {
        ask(&node, "PUT", "/a/_settings", json!({ "number_of_replicas": 2 })).await
    });
    eventually(&env, "one node is behind", async || between.held() > 0).await;
    let (first, last) = (cluster.node(0).clone(), cluster.node(2).clone());
    assert_eq!(
        (status(&first, "").await, status(&last, "").await),
        ("green".into(), "yellow".into())
    );
    let waiting = env.spawn("waits for green, then asks another", async move {
        (status(&first, "wait_for_status=green&timeout=300s").await, status(&last, "").await)
    });
    env.sleep(Duration::from_millis(300)).await;
    between.be_honest();
    assert_eq!(waiting.await.unwrap(), ("green".into(), "green".into()));
    assert_eq!(fewer.await.unwrap().0, 200);
}

/// The manager's disk has no room for a state without what is lost. A node that neither manages nor found the loss has
/// to ask.
async fn every_node_says_what_the_manager_knows_of_health(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 0).await;
    cluster.create("a", 1, 1).await;
    let other = cluster.node(1).clone();
    assert_eq!(status(&other, "").await, "green");
    between.change(|_, answer| match answer {
        Ok(Response::Published { version, .. }) => {
            Ok(Response::Published { version, hides_loss: true })
        }
        answer => answer,
    });
    assert_eq!(status(&other, "local=true").await, "green", "the manager is not asked");
    assert_eq!(status(&other, "").await, "red");
    let green = "/_cluster/health/a?wait_for_status=green&timeout=100ms";
    assert_eq!(ask(&other, "GET", green, Value::Null).await.0, 408);
    let rows = ask(&other, "GET", "/_cat/health?format=json", Value::Null).await.1;
    assert_eq!(rows[0]["status"], "red");
    // It is over with the next state that could be stored.
    between.be_honest();
    cluster.must("PUT", "/a/_settings", json!({ "index.refresh_interval": "7s" })).await;
    eventually(&env, "it is green again", async || status(&other, "").await == "green").await;
}

async fn status(node: &Node, wait: &str) -> String {
    let path = format!("/_cluster/health/a?{wait}");
    ask(node, "GET", &path, Value::Null).await.1["status"].as_str().unwrap().to_owned()
}
