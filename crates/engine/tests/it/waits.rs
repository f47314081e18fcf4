//! What waits for somebody else: for the manager, a primary, other copies. It is answered in time and by name, and a
//! later try succeeds.

use std::time::Duration;

use engine::transport::Request;
use serde_json::{Value, json};
use world::Env;

use crate::common::between::{cluster_behind, cluster_behind_each};
use crate::common::pair::pair_of;
use crate::common::{Cluster, ask, eventually, raw, refuses};

testbed::both_worlds!(
    a_write_waits_for_copies_no_longer_than_it_says,
    a_write_waits_for_a_primary_no_longer_than_it_says,
    a_write_waits_for_a_copy_that_is_being_promoted;
    simulated:
    a_change_says_that_its_copies_were_not_started_in_time,
    a_silent_manager_is_given_up,
    a_silent_primary_is_given_up,
    a_close_names_writes_that_do_not_end,
    a_node_gives_up_on_a_manager_that_is_not_there,
);

/// Longer than any of these waits on a machine that is busy, and shorter than none.
const PATIENCE: Duration = Duration::from_secs(30);

const UNAVAILABLE: &str = "unavailable_shards_exception";

/// An index whose only copy is on a node.
pub async fn create_on(cluster: &Cluster, index: &str, node: &str) {
    let settings = json!({
        "number_of_shards": 1, "number_of_replicas": 0,
        "index.routing.allocation.require._name": node,
    });
    let mappings = json!({ "properties": { "n": { "type": "long" } } });
    let body = json!({ "settings": settings, "mappings": mappings });
    cluster.make(index, body).await;
}

/// A second copy, on a node.
pub async fn add_replica_on(cluster: &Cluster, index: &str, nodes: &str) {
    let settings = json!({
        "index.number_of_replicas": 1, "index.routing.allocation.require._name": null,
        "index.routing.allocation.include._name": nodes,
    });
    cluster.must("PUT", &format!("/{index}/_settings"), settings).await;
    cluster.green(index).await;
}

/// Waits until `done` is true, in virtual time and no longer than so many seconds.
pub async fn within(env: &Env, limit_s: u64, what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            env.sleep(Duration::from_millis(50)).await;
        }
    };
    let met = env.timeout(Duration::from_secs(limit_s), waiting).await;
    assert!(met.is_ok(), "not within {limit_s} s: {what}");
}

async fn count(cluster: &Cluster, index: &str) -> Value {
    cluster.counted(index).await["count"].clone()
}

/// The second copy has no node.
async fn a_write_waits_for_copies_no_longer_than_it_says(env: Env) {
    let mut c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 1).await;
    c.kill_node(1).await;
    c.get("/_cluster/health?wait_for_nodes=1&timeout=300s").await;
    const WAITS: &str = "wait_for_active_shards=2&timeout=1s";
    let (document, update) = (json!({ "n": 7 }), json!({ "doc": { "n": 7 } }));
    for (method, path, body) in [
        ("PUT", "/a/_doc/7", &document),
        ("PUT", "/a/_create/7", &document),
        ("POST", "/a/_doc", &document),
        ("POST", "/a/_update/0", &update),
        ("DELETE", "/a/_doc/0", &Value::Null),
    ] {
        let path = format!("{path}?{WAITS}");
        let asking = c.ask(method, &path, body.clone());
        let (status, answer) = env.timeout(PATIENCE, asking).await.expect(&path);
        assert_eq!((status, &answer["error"]["type"]), (503, &json!(UNAVAILABLE)), "{path}");
        let reason = answer["error"]["reason"].as_str().unwrap();
        assert!(reason.contains("not enough active shard copies"), "{path}: {reason}");
    }
    let lines = "{\"index\":{\"_id\":\"7\"}}\n{\"n\":7}\n";
    let path = format!("/a/_bulk?{WAITS}");
    let bulk = raw(c.any(), "POST", &path, lines.into());
    let (_, answer) = env.timeout(PATIENCE, bulk).await.expect("a bulk");
    let item = &answer["items"][0]["index"];
    assert_eq!((&item["status"], &item["error"]["type"]), (&json!(503), &json!(UNAVAILABLE)));
    // The virtual world has no documents to find.
    if !env.is_virtual() {
        c.post("/a/_refresh").await;
        let path = format!("/a/_update_by_query?{WAITS}");
        let asking = c.ask("POST", &path, json!({}));
        refuses(env.timeout(PATIENCE, asking).await.expect("an update by query"), 503, UNAVAILABLE);
    }
    assert_eq!(count(&c, "a").await, 1, "nothing of it was written");

    c.start_node(1).await;
    c.green("a").await;
    let later = format!("/a/_doc/7?wait_for_active_shards=2&timeout={}s", PATIENCE.as_secs());
    assert_eq!(c.must("PUT", &later, document).await["_shards"]["successful"], 2);
}

/// They are done all the same, and say so.
async fn a_change_says_that_its_copies_were_not_started_in_time(env: Env) {
    let pair = pair_of(&env, (1, 1), (1, 1 << 30), (0, 10)).await;
    let (leader, follower) = (&pair.leader, &pair.follower);
    let waits = "wait_for_active_shards=2&timeout=1s";
    let settings = json!({ "number_of_shards": 1, "number_of_replicas": 1 });
    let made = json!({ "settings": settings, "aliases": { "logs": {} } });
    let follow = json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": { "index.number_of_replicas": 1 },
    });
    let rolled = json!({ "settings": settings });
    leader.must("PUT", "/logs-1?wait_for_active_shards=0", made).await;
    for (cluster, method, path, body, said) in [
        (leader, "PUT", "/b", json!({ "settings": settings }), "shards_acknowledged"),
        (leader, "POST", "/logs/_rollover", rolled, "shards_acknowledged"),
        (leader, "POST", "/b/_close", Value::Null, "shards_acknowledged"),
        (leader, "POST", "/b/_open", Value::Null, "shards_acknowledged"),
        (follower, "PUT", "/f/_ccr/follow", follow, "follow_index_shards_acked"),
    ] {
        let path = format!("{path}?{waits}");
        let asking = cluster.must(method, &path, body);
        let answer = env.timeout(PATIENCE, asking).await.expect(&path);
        assert_eq!(answer[said], false, "{path}: {answer}");
        let done =
            if said == "shards_acknowledged" { "acknowledged" } else { "follow_index_created" };
        assert_eq!(answer[done], true, "{path}: {answer}");
    }
    // One copy is there.
    let enough = "wait_for_active_shards=1&timeout=300s";
    leader.post("/b/_close").await;
    let opened = leader.post(&format!("/b/_open?{enough}")).await;
    assert_eq!(opened["shards_acknowledged"], true, "{opened}");
}

/// Its node is away.
async fn a_write_waits_for_a_primary_no_longer_than_it_says(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    create_on(&c, "a", "c-1").await;
    c.kill_node(1).await;
    c.get("/_cluster/health?wait_for_nodes=1&timeout=300s").await;
    let write = |limit: &str| {
        let (node, path) = (c.node(0).clone(), format!("/a/_doc/1?timeout={limit}"));
        async move { ask(&node, "PUT", &path, json!({ "n": 1 })).await }
    };
    let (status, answer) = env.timeout(PATIENCE, write("1s")).await.expect("an answer");
    let reason = "[a][0] has no started primary";
    assert_eq!((status, &answer["error"]["reason"]), (503, &json!(reason)), "{answer}");
    let patient = env.spawn("writes, and waits", write("10m"));
    c.start_node(1).await;
    assert_eq!(patient.await.unwrap().0, 201);
}

/// The manager has made a replica the primary, and its node has not heard of it.
async fn a_write_waits_for_a_copy_that_is_being_promoted(env: Env) {
    let (between, mut c) = cluster_behind(&env, "one", 3, 2).await;
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    c.kill_node(1).await;
    eventually(&env, "the replica is the primary", async || {
        let state = c.node(0).state();
        let primary = state.shard("a", 0).and_then(|shard| shard.started_primary());
        primary.is_some_and(|primary| primary.node.as_deref() == Some("one-2"))
    })
    .await;
    let write = |limit: &str| {
        let (node, path) = (c.node(0).clone(), format!("/a/_doc/1?timeout={limit}"));
        async move { ask(&node, "PUT", &path, json!({ "n": 1 })).await }
    };
    refuses(env.timeout(PATIENCE, write("500ms")).await.expect("an answer"), 503, UNAVAILABLE);
    let patient = env.spawn("writes, and waits", write("10m"));
    env.sleep(Duration::from_millis(200)).await;
    between.be_honest();
    assert_eq!(patient.await.unwrap().0, 201, "nothing was written before");
}

/// A node waits 30 s for its manager, whatever the request says or leaves out.
async fn a_silent_manager_is_given_up(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 0).await;
    create_on(&c, "a", "one-1").await;
    let other = c.node(1).clone();
    between.hold(|request| !matches!(request, Request::Heartbeat(_)));
    let brings_a_field = json!({ "fresh": 1 });
    for (method, path, body) in [
        ("PUT", "/b", &Value::Null),
        ("PUT", "/c/_doc/1", &json!({ "n": 1 })),
        ("DELETE", "/a", &Value::Null),
        ("PUT", "/_cluster/settings", &json!({ "persistent": { "transport.compress": true } })),
        ("PUT", "/b?timeout=1h&master_timeout=1h", &Value::Null),
        ("PUT", "/a/_doc/1", &brings_a_field),
    ] {
        let asking = ask(&other, method, path, body.clone());
        // A write tries for a minute, and the last try takes half of one.
        let limit = Duration::from_secs(100);
        let (status, answer) = env.timeout(limit, asking).await.expect(path);
        assert_eq!(status, 503, "{path}: {answer}");
        let reason = answer["error"]["reason"].as_str().unwrap();
        assert!(reason.contains("did not answer within 30s"), "{path}: {reason}");
    }
    // What it knows it takes all the same.
    assert_eq!(ask(&other, "PUT", "/a/_doc/2", json!({ "n": 2 })).await.0, 201);
    between.lose_what_is_held();
    eventually(&env, "it is heard again", async || {
        ask(&other, "PUT", "/a/_doc/1", brings_a_field.clone()).await.0 == 201
    })
    .await;
    assert_eq!(ask(&other, "PUT", "/d", Value::Null).await.0, 200);
}

/// Its connection stays, and what it was sent may be done: nobody sends it again.
async fn a_silent_primary_is_given_up(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 1).await;
    create_on(&c, "a", "one-1").await;
    between.hold(|request| matches!(request, Request::Write(_)));
    let writing = ask(c.node(0), "PUT", "/a/_doc/1", json!({ "n": 1 }));
    let (status, answer) = env.timeout(Duration::from_secs(70), writing).await.expect("an answer");
    let kind = "receive_timeout_transport_exception";
    assert_eq!((status, &answer["error"]["type"]), (503, &json!(kind)), "{answer}");
    assert_eq!(between.held(), 1, "it was sent once");
    between.lose_what_is_held();
    assert_eq!(ask(c.node(0), "PUT", "/a/_doc/1", json!({ "n": 2 })).await.0, 201);
}

/// A replica says nothing, and the manager cannot be told of it.
async fn a_close_names_writes_that_do_not_end(env: Env) {
    let (between, c) = cluster_behind_each(&env, "one", 3, &[0, 2]).await;
    let (manager, replica) = (&between[0], &between[1]);
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    replica.hold(|request| matches!(request, Request::Replicate(sent) if !sent.ops.is_empty()));
    let start = |method: &'static str, path: &'static str, body: Value| {
        let node = c.node(1).clone();
        env.spawn("asks the primary's node", async move { ask(&node, method, path, body).await })
    };
    let writing = start("PUT", "/a/_doc/1", json!({ "n": 1 }));
    eventually(&env, "the replica has still to answer", async || replica.held() > 0).await;
    let closing = start("POST", "/a/_close", Value::Null);
    let is_known = async || c.node(1).state().indices["a"].closed;
    eventually(&env, "the primary's node knows that it is closed", is_known).await;
    manager.hold(|request| matches!(request, Request::Submit(_)));
    let (status, answer) =
        env.timeout(Duration::from_secs(40), closing).await.expect("an answer").unwrap();
    let index = &answer["indices"]["a"];
    assert_eq!(status, 200);
    assert_eq!(answer["acknowledged"], false);
    assert_eq!(index["closed"], false);
    assert!(answer.to_string().contains("has writes that do not end; close it again"), "{answer}");
    manager.be_honest();
    replica.be_honest();
    assert_eq!(writing.await.unwrap().0, 201, "it was begun before");
    let again = c.post("/a/_close").await;
    assert_eq!(again["acknowledged"], true, "{again}");
}

async fn a_node_gives_up_on_a_manager_that_is_not_there(env: Env) {
    let mut c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    c.stop_node(1).await;
    c.stop_node(0).await;
    let host = env.host("c-1");
    let starting = rest::start(&host, c.config(1));
    let started = env.timeout(Duration::from_secs(40), starting).await.expect("it gives up");
    let said = started.err().expect("there is nobody").to_string();
    assert!(said.contains("c-1") && said.contains("join"), "{said}");
    env.kill_host("c-1");
    c.start_node(0).await;
    c.start_node(1).await;
    c.green("a").await;
}
