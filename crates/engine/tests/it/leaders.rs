//! Which leader a follower follows: the index and the history that it began with, and no other that has its name.

use std::time::Duration;

use crate::common::pair::{pair, pair_of};
use crate::common::{Cluster, eventually, same};
use crate::leases::{follow, open, opening};
use engine::transport::{LeaderShard, ReadChanges, Request, Response};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    a_session_is_of_the_index_that_is_followed,
    another_history_is_refused,
    a_leader_that_has_followed_was_not_put_back,
    a_leader_whose_loss_was_accepted_is_followed_no_more,
    a_primary_that_is_moved_goes_on_saying_what_its_term_began_with,
    a_leader_made_anew_is_named,
    a_follower_that_cannot_begin_says_why,
    what_cannot_be_followed_is_named,
    a_chain_two_followers_and_oneself,
);

/// Some shards of a follower may have begun before its leader was deleted and made anew, and others begin after that.
async fn a_session_is_of_the_index_that_is_followed(env: Env) {
    let cluster = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    let request = opening(&cluster, 0);
    cluster.delete("/a").await;
    let body = json!({ "settings": { "number_of_shards": 1, "number_of_replicas": 0 } });
    cluster.must("PUT", "/a", body).await;
    let refused = cluster.ask_node("c-0", request).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("follow it anew"), "{refused}");
}

/// Reads what the first shard of an index has after all that was heard of.
async fn read_changes(
    (cluster, index): (&Cluster, &str),
    history_uuid: &str,
    heard: Option<(u64, Option<u64>)>,
) -> Result<Response, String> {
    let leader = LeaderShard {
        index: index.to_owned(),
        index_uuid: cluster.any().state().indices[index].uuid.clone(),
        shard: 0,
        history_uuid: history_uuid.to_owned(),
    };
    let ask = ReadChanges {
        leader: leader.into(),
        from: heard.and_then(|(_, last)| last).map_or(0, |last| last + 1),
        max_ops: 1,
        max_bytes: 1000,
        poll_timeout: Duration::ZERO,
        known: None,
        heard,
        compress: 0,
    };
    let answer = cluster.ask_primary(index, Request::ReadChanges(Box::new(ask))).await;
    answer.map_err(|error| error.to_string())
}

async fn another_history_is_refused(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 10).await;
    let said = read_changes((&pair.leader, "a"), "of another past", None).await.unwrap_err();
    assert!(said.contains("unexpected history uuid") && said.contains("of another past"), "{said}");
}

/// Its primary was opened with less than an earlier one had told its own follower, and got the rest from its leader.
async fn a_leader_that_has_followed_was_not_put_back(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 10).await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.same("b").await;
    pair.leader.index("a", 10, 100).await;
    pair.same("b").await;
    for what in ["pause_follow", "unfollow"] {
        pair.follower.post(&format!("/b/_ccr/{what}")).await;
    }
    let opened = open(&pair.leader).await;
    let read = async |last| {
        let heard = Some((0, Some(last)));
        read_changes((&pair.follower, "b"), &opened.history_uuid, heard).await
    };
    let last = opened.max_seq_no.unwrap();
    let answer = read(last).await;
    assert!(matches!(answer, Ok(Response::Changes(_))), "{answer:?}");
    eventually(&env, "it has ended following, and lacks what it did not get", async || {
        read(last + 1).await.is_err_and(|said| said.contains("was put back as it was earlier"))
    })
    .await;
}

/// It numbers anew what its follower may have: that must not differ and say nothing.
async fn a_leader_whose_loss_was_accepted_is_followed_no_more(env: Env) {
    let mut pair = pair_of(&env, (1, 1), (4, 50_000_000), (0, 100)).await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.same("b").await;
    let uuid = pair.leader.any().state().indices["a"].uuid.clone();
    pair.leader.kill_node(0).await;
    (0..2).for_each(|shard| pair.leader.accept_data_loss(0, &uuid, shard));
    pair.leader.start_node(0).await;
    pair.leader.green("a").await;
    assert_eq!(pair.leader.index("a", 100, 150).await, 50);
    pair.both_shards("b", "both shards say that they cannot go on", |shard| {
        let why = shard["fatal_exception"]["reason"].as_str().unwrap_or_default();
        why.contains("unexpected history uuid") && why.contains("follow anew")
    })
    .await;
    assert_eq!(pair.follower.counted("b").await["count"], 100);
    pair.follower.delete("/b").await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.same("b").await;
    pair.leader.index("a", 150, 200).await;
    pair.same("b").await;
}

/// Its term goes on: what was written in it is not what it began with, wherever the primary is by then.
async fn a_primary_that_is_moved_goes_on_saying_what_its_term_began_with(env: Env) {
    let cluster = Cluster::with(&env, "c", 2, ("a", 1, 0)).await;
    cluster.index("a", 0, 10).await;
    let opened = open(&cluster).await;
    let node = || cluster.primary_of("a");
    let is_refused = async || {
        let heard = Some((0, Some(5)));
        let answer = read_changes((&cluster, "a"), &opened.history_uuid, heard).await;
        answer.is_err_and(|said| said.contains("was put back as it was earlier"))
    };
    assert!(is_refused().await);
    let before = node();
    let settings = json!({ "index.routing.allocation.exclude._name": before.clone() });
    cluster.must("PUT", "/a/_settings", settings).await;
    eventually(&env, "it has moved, and refuses", async || node() != before && is_refused().await)
        .await;
}

async fn a_leader_made_anew_is_named(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 100).await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.same("b").await;
    pair.leader.delete("/a").await;
    pair.leader.create("a", 2, 0).await;
    pair.leader.index("a", 0, 50).await;
    pair.both_shards("b", "every shard says that its leader is gone", |shard| {
        shard["fatal_exception"]["type"] == "index_not_found_exception"
    })
    .await;
    assert_eq!(pair.follower.counted("b").await["count"], 100, "what it had stays");
}

/// The leader's index is made anew before the follower's copies are placed: they have nothing to recover from.
async fn a_follower_that_cannot_begin_says_why(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 10).await;
    let allocation = async |enable: Value| {
        pair.follower.set(json!({ "cluster.routing.allocation.enable": enable })).await;
    };
    allocation(json!("none")).await;
    pair.follow("b").await;
    assert_eq!(pair.stats("b").await, Vec::<Value>::new(), "they wait, and nothing is wrong yet");
    pair.leader.delete("/a").await;
    pair.leader.create("a", 2, 0).await;
    allocation(Value::Null).await;
    // Until then a shard that was tried once shows what failed as one that is tried again.
    let is_given_up = |shard: &Value| shard["fatal_exception"].is_object();
    pair.both_shards("b", "both primaries are given up", is_given_up).await;
    for (number, shard) in pair.stats("b").await.iter().enumerate() {
        assert_eq!((&shard["shard_id"], &shard["leader_index"]), (&json!(number), &json!("a")));
        assert_eq!(shard["fatal_exception"]["type"], "recovery_failed_exception");
        let why = shard["fatal_exception"]["reason"].as_str().unwrap();
        assert!(why.contains("follow it anew"), "{why}");
    }
    let plugin =
        async |path: &str| pair.follower.get(&format!("/_plugins/_replication/{path}")).await;
    let status = plugin("b/_status").await;
    assert_eq!(status["status"], "FAILED");
    assert!(status["reason"].as_str().unwrap().contains("follow it anew"), "{status}");
    assert_eq!(plugin("follower_stats").await["num_failed_indices"], 1);
}

async fn what_cannot_be_followed_is_named(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 10).await;
    follow(&pair.follower, "b", "leader", "a").await;
    let refused = async |path: &str, body: Value| {
        let (status, answer) = pair.follower.ask("PUT", path, body).await;
        (status, answer["error"]["type"].as_str().unwrap_or_default().to_owned())
    };
    let of = |alias: &str, index: &str| json!({ "remote_cluster": alias, "leader_index": index });
    let exists = refused("/b/_ccr/follow", of("leader", "a")).await;
    assert_eq!(exists, (400, "resource_already_exists_exception".to_owned()));
    let missing = refused("/c/_ccr/follow", of("leader", "zzz")).await;
    assert_eq!(missing, (404, "index_not_found_exception".to_owned()));
    let stranger = refused("/c/_ccr/follow", of("nobody", "a")).await;
    assert_eq!(stranger, (404, "no_such_remote_cluster_exception".to_owned()));
    let mut shards = of("leader", "a");
    shards["settings"] = json!({ "index.number_of_shards": 3 });
    let shards = refused("/c/_ccr/follow", shards).await;
    assert_eq!(shards, (400, "illegal_argument_exception".to_owned()));
    // It is a parameter of another API, and is not said to be near.
    let (path, body) = ("/_plugins/_replication/c/_start", json!({ "read_poll_timeout": "1m" }));
    let words = "unknown key [read_poll_timeout] for _start\"";
    pair.follower.refuses(400, words, "PUT", path, body).await;
    // Nobody listens there.
    let seeds = if env.is_virtual() { "nowhere:9300" } else { "127.0.0.1:1" };
    pair.follower.set(json!({ "cluster.remote.gone.seeds": [seeds] })).await;
    let gone = refused("/c/_ccr/follow", of("gone", "a")).await;
    assert_eq!(gone, (503, "node_disconnected_exception".to_owned()));
    assert_eq!(pair.follower.ask("GET", "/c", Value::Null).await.0, 404, "nothing is left behind");
}

async fn a_chain_two_followers_and_oneself(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 100).await;
    let third = Cluster::start(&env, "third", 1).await;
    let settings = json!({
        "cluster.remote.leader.seeds": pair.leader.seeds(),
        "cluster.remote.follower.seeds": pair.follower.seeds(),
    });
    third.set(settings).await;
    pair.leader.set(json!({ "cluster.remote.me.seeds": pair.leader.seeds() })).await;
    follow(&pair.follower, "b", "leader", "a").await;
    follow(&third, "c", "follower", "b").await;
    follow(&third, "d", "leader", "a").await;
    follow(&pair.leader, "copy", "me", "a").await;
    pair.leader.index("a", 100, 400).await;
    pair.leader.delete("/a/_doc/7").await;
    for to in [(&pair.follower, "b"), (&third, "c"), (&third, "d"), (&pair.leader, "copy")] {
        same((&pair.leader, "a"), to).await;
    }
}
