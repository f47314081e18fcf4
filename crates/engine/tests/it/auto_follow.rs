//! Indices of a remote cluster are followed as they are made.

use std::collections::BTreeMap;

use crate::common::between::Between;
use crate::common::pair::{Pair, pair};
use crate::common::{Cluster, eventually};
use engine::transport::{Request, Response};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    new_indices_are_followed,
    a_rolled_over_leader_is_picked_up,
    what_cannot_be_followed_is_listed,
    one_that_could_not_be_followed_is_by_the_pattern_that_is_put_in_place,
    paused_resumed_and_forgotten,
    listings_that_are_older_than_one_before_count_for_nothing,
);

impl Pair {
    async fn pattern(&self, name: &str, more: Value) {
        let mut body = json!({
            "remote_cluster": "leader",
            "leader_index_patterns": ["logs-*"],
            "settings": { "index.number_of_replicas": 0 },
        });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.follower.must("PUT", &format!("/_ccr/auto_follow/{name}"), body).await;
    }

    async fn leads(&self, index: &str, documents: u64) {
        self.leader.create(index, 1, 0).await;
        assert_eq!(self.leader.index(index, 0, documents).await, documents);
    }

    async fn has(&self, env: &Env, index: &str, documents: u64) {
        eventually(env, &format!("[{index}] has what its leader has"), async || {
            let (_, count) =
                self.follower.ask("GET", &format!("/{index}/_count"), Value::Null).await;
            count["count"] == documents
        })
        .await;
    }

    async fn lacks(&self, index: &str) -> bool {
        self.follower.ask("HEAD", &format!("/{index}"), Value::Null).await.0 == 404
    }

    async fn told(&self) -> Value {
        // Asked of a node that does not manage.
        let node = self.follower.nodes.values().next_back().unwrap();
        let (status, stats) = crate::common::ask(node, "GET", "/_ccr/stats", Value::Null).await;
        assert_eq!(status, 200, "{stats}");
        stats["auto_follow_stats"].clone()
    }
}

async fn new_indices_are_followed(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 0).await;
    pair.leads("logs-before", 5).await;
    pair.pattern(
        "p",
        json!({
            "leader_index_exclusion_patterns": ["logs-test*"],
            "follow_index_pattern": "{{leader_index}}-copy",
            "read_poll_timeout": "2s",
        }),
    )
    .await;
    pair.leads("logs-1", 20).await;
    pair.leads("logs-test-1", 5).await;
    pair.leads("other", 5).await;
    pair.leads("logs-2", 30).await;
    pair.has(&env, "logs-1-copy", 20).await;
    pair.has(&env, "logs-2-copy", 30).await;
    for index in ["logs-before-copy", "logs-test-1-copy", "other-copy"] {
        assert!(pair.lacks(index).await, "{index}");
    }
    let info = pair.follower.get("/logs-1-copy/_ccr/info").await;
    let info = &info["follower_indices"][0];
    assert_eq!(info["leader_index"], "logs-1");
    assert_eq!(info["parameters"]["read_poll_timeout"], "2s");
    // It goes on following what comes.
    assert_eq!(pair.leader.index("logs-1", 20, 50).await, 30);
    pair.has(&env, "logs-1-copy", 50).await;
    let mut told = Value::Null;
    eventually(&env, "both are counted", async || {
        told = pair.told().await;
        told["number_of_successful_follow_indices"] == 2
    })
    .await;
    assert_eq!(told["recent_auto_follow_errors"], json!([]));
    assert_eq!(told["auto_followed_clusters"][0]["cluster_name"], "leader");
    // Whose follower was deleted gets none again.
    pair.follower.delete("/logs-1-copy").await;
    pair.leads("logs-3", 7).await;
    pair.has(&env, "logs-3-copy", 7).await;
    assert!(pair.lacks("logs-1-copy").await);
}

async fn a_rolled_over_leader_is_picked_up(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 0).await;
    pair.pattern("p", json!({"read_poll_timeout": "1s"})).await;
    let write = json!({"aliases": {"logs": {"is_write_index": true}}});
    pair.leader.must("PUT", "/logs-000001", write).await;
    let mut documents = 0;
    for round in 1..=3 {
        assert_eq!(pair.leader.index("logs", documents, documents + 100).await, 100);
        documents += 100;
        let when = json!({"conditions": {"max_docs": 100}});
        let answer = pair.leader.must("POST", "/logs/_rollover", when).await;
        assert_eq!(answer["rolled_over"], true, "{answer}");
        assert_eq!(answer["new_index"], format!("logs-00000{}", round + 1));
    }
    pair.has(&env, "logs-000004", 0).await;
    // The alias comes along, for reading alone.
    pair.has(&env, "logs", documents).await;
    eventually(&env, "every follower has the alias", async || {
        let (_, shown) = pair.follower.ask("GET", "/_alias/logs", Value::Null).await;
        let shown = shown.as_object().unwrap();
        shown.len() == 4
            && shown.values().all(|index| index["aliases"]["logs"]["is_write_index"] == false)
    })
    .await;
    pair.follower.answers(400, "PUT", "/logs/_doc/1", json!({"n": 1})).await;
    // And goes, where it goes.
    pair.leader.delete("/logs-000001/_alias/logs").await;
    assert_eq!(pair.leader.index("logs", documents, documents + 1).await, 1);
    eventually(&env, "the alias is gone from the follower, too", async || {
        let (_, shown) = pair.follower.ask("GET", "/logs-000001/_alias", Value::Null).await;
        shown["logs-000001"]["aliases"] == json!({})
    })
    .await;
}

async fn what_cannot_be_followed_is_listed(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 0).await;
    let body = json!({"remote_cluster": "ledaer", "leader_index_patterns": ["*"]});
    let refused = pair.follower.answers(404, "PUT", "/_ccr/auto_follow/p", body).await;
    assert!(refused["error"]["reason"].as_str().unwrap().contains("\"leader\""), "{refused}");
    pair.pattern("p", Value::Null).await;
    pair.pattern("q", json!({"leader_index_patterns": ["*-both"]})).await;
    pair.follower.create("logs-1", 1, 0).await;
    pair.leads("logs-1", 5).await;
    pair.leads("logs-both", 5).await;
    pair.leads("logs-2", 5).await;
    pair.has(&env, "logs-2", 5).await;
    let mut errors = Value::Null;
    eventually(&env, "three errors are listed", async || {
        errors = pair.told().await["recent_auto_follow_errors"].clone();
        errors.as_array().unwrap().len() == 3
    })
    .await;
    let reason = |about: &str| {
        let found = errors.as_array().unwrap().iter().find(|error| error["leader_index"] == about);
        let found = found.unwrap_or_else(|| panic!("{about}: {errors:#}"));
        found["auto_follow_exception"]["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("p:logs-1").contains("already exists"));
    assert!(reason("p:logs-both").contains("matches with other patterns [q]"));
    assert!(reason("q:logs-both").contains("matches with other patterns [p]"));
    // What stood in the way goes, and with it the errors.
    pair.follower.delete("/logs-1").await;
    pair.follower.delete("/_ccr/auto_follow/q").await;
    pair.has(&env, "logs-1", 5).await;
    pair.has(&env, "logs-both", 5).await;
    eventually(&env, "its errors are gone", async || {
        let told = pair.told().await;
        let errors = told["recent_auto_follow_errors"].as_array().unwrap();
        errors.iter().all(|error| error["leader_index"] == "q:logs-both")
    })
    .await;
}

async fn one_that_could_not_be_followed_is_by_the_pattern_that_is_put_in_place(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 0).await;
    pair.pattern("p", Value::Null).await;
    pair.follower.create("logs-1", 1, 0).await;
    pair.leads("logs-1", 5).await;
    pair.leads("other", 5).await;
    eventually(&env, "its error is listed", async || {
        pair.told().await["recent_auto_follow_errors"][0]["leader_index"] == "p:logs-1"
    })
    .await;
    let mended = json!({
        "leader_index_patterns": ["logs-*", "other"],
        "follow_index_pattern": "{{leader_index}}-copy",
    });
    pair.pattern("p", mended).await;
    pair.has(&env, "logs-1-copy", 5).await;
    assert!(pair.lacks("other-copy").await, "it is older than what it fits");
}

async fn paused_resumed_and_forgotten(env: Env) {
    let mut pair = pair(&env, 10, 50_000_000, 0).await;
    pair.pattern("p", Value::Null).await;
    pair.follower.post("/_ccr/auto_follow/p/pause").await;
    let shown = pair.follower.get("/_ccr/auto_follow/p").await;
    let pattern = &shown["patterns"][0]["pattern"];
    assert_eq!((&pattern["active"], &pattern["remote_cluster"]), (&json!(false), &json!("leader")));
    pair.leads("logs-1", 5).await;
    env.sleep(std::time::Duration::from_secs(2)).await;
    assert!(pair.lacks("logs-1").await);
    // It is kept over a restart of the manager, and what was made meanwhile is followed.
    pair.follower.stop_node(0).await;
    pair.follower.start_node(0).await;
    pair.follower.post("/_ccr/auto_follow/p/resume").await;
    pair.has(&env, "logs-1", 5).await;
    pair.follower.delete("/_ccr/auto_follow/p").await;
    pair.follower.answers(404, "GET", "/_ccr/auto_follow/p", Value::Null).await;
    pair.follower.answers(404, "POST", "/_ccr/auto_follow/p/pause", Value::Null).await;
}

/// A node of the leader has missed a state. It would say that the newest index is gone, and the next node that it is
/// new: its follower, which was deleted, would be made again. It says so twice.
async fn listings_that_are_older_than_one_before_count_for_nothing(env: Env) {
    let leader = Cluster::start(&env, "leader", 1).await;
    let between = Between::before(&env, leader.any().transport_address()).await;
    let follower = Cluster::start(&env, "follower", 1).await;
    follower.set(json!({ "cluster.remote.leader.seeds": [between.address] })).await;
    let body = json!({
        "remote_cluster": "leader", "leader_index_patterns": ["logs-*"],
        "settings": { "index.number_of_replicas": 0 },
    });
    follower.must("PUT", "/_ccr/auto_follow/p", body).await;
    let have_followed = async |number: u64| {
        eventually(&env, &format!("{number} were followed"), async || {
            let told = follower.get("/_ccr/stats").await;
            told["auto_follow_stats"]["number_of_successful_follow_indices"] == number
        })
        .await;
    };
    leader.create("logs-1", 1, 0).await;
    have_followed(1).await;
    follower.delete("/logs-1").await;
    let mut old = 2;
    between.change(move |request, answer| match (request, answer) {
        (
            Request::RemoteIndices { wait, .. },
            Ok(Response::RemoteIndices { cluster, nodes, .. }),
        ) if old > 0 && !wait.is_zero() => {
            old -= 1;
            let (indices, others) = (BTreeMap::new(), BTreeMap::new());
            Ok(Response::RemoteIndices { version: 1, cluster, nodes, indices, others })
        }
        (_, answer) => answer,
    });
    leader.create("logs-2", 1, 0).await;
    have_followed(2).await;
    for (index, status) in [("/logs-1", 404), ("/logs-2", 200)] {
        assert_eq!(follower.ask("HEAD", index, Value::Null).await.0, status, "{index}");
    }
}
