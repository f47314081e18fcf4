//! What a follower takes over of its leader's index beside the documents: mappings, settings, aliases.

use crate::common::between::{Between, cluster_behind};
use crate::common::pair::pair;
use crate::common::{Cluster, eventually};
use engine::state::Event;
use engine::transport::{Failure, Request};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    mappings_and_settings_are_carried_over,
    settings_that_cannot_change_are_those_of_the_leader,
    aliases_are_carried_over_but_for_one_that_an_index_here_has;
    simulated: an_alias_that_the_manager_did_not_hear_of_comes_later,
    a_manager_that_cannot_store_a_change_is_no_end_of_following,
);

async fn mappings_and_settings_are_carried_over(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 50).await;
    pair.follow_with("b", 0, Value::Null).await;
    let mapping = json!({ "properties": { "colour": { "type": "keyword" } } });
    pair.leader.must("PUT", "/a/_mapping", mapping.clone()).await;
    let settings = json!({ "index.refresh_interval": "30s", "index.number_of_replicas": 1 });
    pair.leader.must("PUT", "/a/_settings", settings).await;
    pair.leader.must("PUT", "/a/_doc/x", json!({ "n": 1, "colour": "red" })).await;
    pair.same("b").await;
    eventually(&env, "the mapping is there", async || {
        let answer = pair.follower.get("/b/_mapping").await;
        answer["b"]["mappings"]["properties"]["colour"]["type"] == "keyword"
    })
    .await;
    if !env.is_virtual() {
        // The leader's refresh interval may be its own by now.
        pair.follower.post("/b/_refresh").await;
        let query = json!({ "query": { "term": { "colour": "red" } } });
        let found = pair.follower.must("POST", "/b/_search", query).await;
        assert_eq!(found["hits"]["total"]["value"], 1, "{found}");
    }
    eventually(&env, "the settings are there", async || {
        let answer = pair.follower.get("/b/_settings").await;
        let index = &answer["b"]["settings"]["index"];
        index["refresh_interval"] == "30s" && index["number_of_replicas"] == "0"
    })
    .await;
    pair.follower.answers(403, "PUT", "/b/_mapping", mapping).await;
}

async fn settings_that_cannot_change_are_those_of_the_leader(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 0).await;
    let settings = json!({
        "index.number_of_shards": 1, "index.number_of_replicas": 0,
        "index.codec": "best_compression", "index.soft_deletes.enabled": true,
    });
    pair.leader.must("PUT", "/x", json!({ "settings": settings })).await;
    pair.follower.follow("b", ("leader", "x"), 0, "1").await;
    assert_eq!(pair.leader.index("x", 0, 20).await, 20);
    eventually(&env, "it follows", async || pair.follower.counted("b").await["count"] == 20).await;
    let shown = pair.follower.get("/b/_settings").await;
    assert_eq!(shown["b"]["settings"]["index"]["codec"], "best_compression", "{shown}");
}

async fn aliases_are_carried_over_but_for_one_that_an_index_here_has(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 50).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.follower.create("taken", 1, 0).await;
    let add = |alias: &str| json!({ "add": { "index": "a", "alias": alias } });
    pair.leader.must("POST", "/_aliases", json!({ "actions": [add("taken"), add("free")] })).await;
    eventually(&env, "the other one is there", async || {
        let shown = pair.follower.get("/b/_alias").await;
        shown["b"]["aliases"] == json!({ "free": { "is_write_index": false } })
    })
    .await;
    pair.leader.index("a", 50, 80).await;
    pair.same("b").await;
}

/// A leader with an index `a`, and a follower `b` whose primary reaches its manager through somebody in between.
async fn follower_behind(env: &Env) -> (Cluster, Between, Cluster) {
    let leader = Cluster::with(env, "leader", 1, ("a", 1, 0)).await;
    let (manager, follower) = cluster_behind(env, "follower", 2, 0).await;
    follower.set(json!({ "cluster.remote.leader.seeds": leader.seeds() })).await;
    let body = json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": {
            "index.number_of_replicas": 0,
            "index.routing.allocation.require._name": "follower-1",
        },
    });
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=1", body).await;
    (leader, manager, follower)
}

async fn a_manager_that_cannot_store_a_change_is_no_end_of_following(env: Env) {
    let (leader, manager, follower) = follower_behind(&env).await;
    manager.change(|request, answer| match request {
        Request::Submit(event) if matches!(**event, Event::PutIndexSettings { .. }) => {
            Err(Failure::new(500, "process_cluster_event_exception", "its disk fails"))
        }
        _ => answer,
    });
    leader.must("PUT", "/a/_settings", json!({ "index.max_result_window": 20_000 })).await;
    assert_eq!(leader.index("a", 0, 10).await, 10);
    eventually(&env, "it follows", async || follower.counted("b").await["count"] == 10).await;
}

async fn an_alias_that_the_manager_did_not_hear_of_comes_later(env: Env) {
    let (leader, manager, follower) = follower_behind(&env).await;
    manager.hold(|request| {
        matches!(request, Request::Submit(event) if matches!(**event, Event::ChangeAliases { .. }))
    });
    let add = json!({ "add": { "index": "a", "alias": "x" } });
    leader.must("POST", "/_aliases", json!({ "actions": [add] })).await;
    eventually(&env, "the manager is told", async || manager.held() > 0).await;
    manager.lose_what_is_held();
    eventually(&env, "it is told again", async || {
        follower.ask("GET", "/_alias/x", Value::Null).await.0 == 200
    })
    .await;
}
