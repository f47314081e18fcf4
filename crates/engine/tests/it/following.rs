//! A follower keeps up with its leader, whatever happens to either.

use std::cell::Cell;
use std::time::Duration;

use crate::common::between::{Between, cluster_behind, cluster_behind_each};
use crate::common::pair::{Pair, pair, pair_of};
use crate::common::{Cluster, eventually, refuses, same};
use crate::waits::create_on;
use engine::following::FollowRequest;
use engine::settings::{FollowParameters, Update};
use engine::transport::{Failure, RemoteIndex, Request, Response};
use serde_json::{Value, json};
use store::{OpKind, Operation};
use world::Env;

testbed::both_worlds!(
    writes_updates_and_deletes_arrive,
    the_fields_parameters_hold,
    a_cut_link_is_caught_up_after,
    a_lost_primary_of_the_follower_is_replaced,
    a_lost_primary_of_the_leader_is_replaced,
    a_killed_follower_goes_on_where_it_was,
    paused_resumed_and_let_go,
    a_lease_that_stays_is_told_where_a_shard_does_not_answer,
    one_that_is_let_go_beside_writes_has_the_same_on_every_copy,
    a_copy_with_more_of_the_leader_than_it_was_let_go_with_is_replaced,
    a_copy_that_lacks_what_its_primary_got_in_files_is_replaced_once_it_is_let_go,
    a_replica_that_comes_up_beside_writes_lacks_none,
    writes_that_do_not_wait_for_the_disk_are_known_in_the_end,
    one_whose_client_goes_away_follows_what_its_leader_says,
    one_that_is_closed_or_whose_leader_is_goes_on_once_it_is_open,
    a_node_of_the_leader_that_does_not_know_the_index_is_no_end_of_following;
    simulated: a_leader_that_was_put_back_and_written_is_followed_no_more,
);

impl Pair {
    /// Follows with parameters, and one replica.
    pub async fn follow_with(&self, index: &str, replicas: u32, parameters: Value) {
        let mut body = json!({
            "remote_cluster": "leader", "leader_index": "a",
            "settings": { "index.number_of_replicas": replicas },
        });
        let object = body.as_object_mut().unwrap();
        object.extend(parameters.as_object().cloned().unwrap_or_default());
        let path = format!("/{index}/_ccr/follow?wait_for_active_shards=1");
        let answer = self.follower.must("PUT", &path, body).await;
        assert_eq!(answer["index_following_started"], true, "{answer}");
    }

    async fn sum(&self, index: &str, name: &str) -> u64 {
        self.stats(index).await.iter().map(|shard| shard[name].as_u64().unwrap()).sum()
    }

    async fn lag(&self, index: &str) -> u64 {
        let answer = self.follower.get(&format!("/{index}/_ccr/stats")).await;
        answer["indices"][0]["total_global_checkpoint_lag"].as_u64().unwrap()
    }
}

async fn one_that_is_closed_or_whose_leader_is_goes_on_once_it_is_open(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 100).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.same("b").await;
    pair.leader.post("/a/_close").await;
    pair.both_shards("b", "its statistics say why it waits", |shard| {
        let said = shard["read_exceptions"][0]["exception"]["reason"].as_str();
        said.is_some_and(|said| said.contains("the leader [a] is closed"))
    })
    .await;
    let body = json!({ "remote_cluster": "leader", "leader_index": "a" });
    refuses(pair.follower.ask("PUT", "/c/_ccr/follow", body).await, 400, "index_closed_exception");
    pair.leader.post("/a/_open").await;
    pair.follower.post("/b/_close").await;
    let before = pair.follower.digests("b").await;
    assert_eq!(pair.leader.index("a", 100, 200).await, 100);
    env.sleep(Duration::from_secs(2)).await;
    assert_eq!(pair.follower.digests("b").await, before, "it is closed");
    pair.follower.post("/b/_open").await;
    pair.same("b").await;
}

/// It has no replica that could take its place. What it lacks has other operations in its places by then.
async fn a_leader_that_was_put_back_and_written_is_followed_no_more(env: Env) {
    let mut pair = pair_of(&env, (1, 1), (10, 50_000_000), (0, 100)).await;
    pair.leader.post("/a/_flush").await;
    pair.follow_with("b", 0, Value::Null).await;
    assert_eq!(pair.leader.index("a", 100, 200).await, 100);
    pair.same("b").await;
    let uuid = pair.leader.any().state().indices["a"].uuid.clone();
    pair.leader.kill_node(0).await;
    let host = env.host(&pair.leader.config(0).name);
    for shard in 0..2 {
        let dir = pair.leader.copy_dir(0, &uuid, shard);
        let commit = store::committed(&host, &dir).await.unwrap().unwrap();
        let next = commit.max_seq_no.map_or(0, |max| max + 1);
        assert!(store::put_log_back(&host, &dir, next));
    }
    pair.leader.start_node(0).await;
    pair.leader.green("a").await;
    assert_eq!(pair.leader.index("a", 200, 500).await, 300);
    pair.both_shards("b", "its statistics say why it has stopped", |shard| {
        let said = shard["fatal_exception"]["reason"].as_str();
        said.is_some_and(|said| said.contains("was put back as it was earlier"))
    })
    .await;
}

/// It has not heard of the index yet. It could be asked what the mappings are, and is asked where the primary is while
/// the node of that is busy.
async fn a_node_of_the_leader_that_does_not_know_the_index_is_no_end_of_following(env: Env) {
    let (between, leader) = cluster_behind_each(&env, "leader", 2, &[0, 1]).await;
    create_on(&leader, "a", "leader-1").await;
    let follower = Cluster::start(&env, "follower", 1).await;
    let seeds = [&between[0].address, &between[1].address];
    follower.set(json!({ "cluster.remote.leader.seeds": seeds })).await;
    follower.follow("b", ("leader", "a"), 0, "1").await;
    between[0].change(|request, answer| match request {
        Request::RemoteIndex(_) | Request::Lease(_) => {
            Err(Failure::new(404, "index_not_found_exception", "no such index [a]"))
        }
        _ => answer,
    });
    let mapping = json!({ "properties": { "word": { "type": "keyword" } } });
    leader.must("PUT", "/a/_mapping", mapping).await;
    assert_eq!(leader.index("a", 0, 10).await, 10);
    let follows = async |documents: u64| follower.counted("b").await["count"] == documents;
    eventually(&env, "it has the mappings of the primary's node", async || follows(10).await).await;
    let mut refusals = 5;
    between[1].change(move |request, answer| match request {
        Request::ReadChanges(_) | Request::Lease(_) if refusals > 0 => {
            refusals -= 1;
            Err(Failure::new(503, "unavailable_shards_exception", "it is being moved; try again"))
        }
        _ => answer,
    });
    assert_eq!(leader.index("a", 10, 20).await, 10);
    eventually(&env, "it finds the primary again", async || follows(20).await).await;
}

async fn writes_updates_and_deletes_arrive(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 500).await;
    pair.follow_with("b", 1, Value::Null).await;
    assert_eq!(pair.leader.index("a", 500, 1500).await, 1000);
    for n in (0..600).step_by(50) {
        pair.leader.must("PUT", &format!("/a/_doc/{n}"), json!({ "n": n + 7 })).await;
        pair.leader.delete(&format!("/a/_doc/{}", n + 1)).await;
    }
    pair.same("b").await;
    assert_eq!(pair.follower.counted("b").await["count"], 1488);
    // A write counts once it is on the disk of every copy, and is seen before.
    eventually(&env, "every write is counted", async || {
        pair.lag("b").await == 0
            && pair.sum("b", "operations_read").await == pair.sum("b", "operations_written").await
    })
    .await;
    let written = pair.sum("b", "operations_written").await;
    assert!(written >= 1024, "what was not in the files came as operations: {written}");
    assert_eq!(pair.sum("b", "operations_read").await, written);
    for shard in pair.stats("b").await {
        assert_eq!(shard["leader_global_checkpoint"], shard["follower_global_checkpoint"]);
        assert_eq!(shard["leader_max_seq_no"], shard["follower_max_seq_no"]);
        assert_eq!(shard["failed_write_requests"], 0);
        assert!(shard.get("fatal_exception").is_none(), "{shard}");
    }
    // Its documents are the leader's.
    pair.follower.answers(403, "PUT", "/b/_doc/1", json!({ "n": 1 })).await;
}

async fn the_fields_parameters_hold(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 100).await;
    let parameters = json!({
        "max_read_request_operation_count": 16,
        "max_outstanding_read_requests": 3,
        "max_write_request_operation_count": 8,
        "max_outstanding_write_requests": 2,
        "max_read_request_size": "1kb",
        "read_poll_timeout": "1s",
    });
    pair.follow_with("b", 0, parameters).await;
    assert_eq!(pair.leader.index("a", 100, 700).await, 600);
    pair.same("b").await;
    eventually(&env, "every write is counted", async || pair.lag("b").await == 0).await;
    let (reads, writes) = (
        pair.sum("b", "successful_read_requests").await,
        pair.sum("b", "successful_write_requests").await,
    );
    assert!(reads >= 600 / 16, "{reads}");
    assert!(writes >= 600 / 8, "{writes}");
    let info = pair.follower.get("/b/_ccr/info").await;
    let info = &info["follower_indices"][0];
    assert_eq!(info["status"], "active");
    assert_eq!(info["parameters"]["max_read_request_operation_count"], 16);
    assert_eq!(info["parameters"]["max_write_buffer_size"], "512mb");
}

async fn a_cut_link_is_caught_up_after(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 100).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.leader.index("a", 100, 300).await;
    pair.same("b").await;
    pair.link.cut();
    pair.leader.index("a", 300, 2300).await;
    env.sleep(Duration::from_millis(500)).await;
    assert_eq!(pair.follower.counted("b").await["count"], 300, "nothing passes");
    pair.link.heal();
    pair.same("b").await;
}

async fn a_lost_primary_of_the_follower_is_replaced(env: Env) {
    let mut pair = pair_of(&env, (2, 3), (10, 50_000_000), (0, 300)).await;
    pair.follow_with("b", 1, Value::Null).await;
    pair.follower.green("b").await;
    pair.leader.index("a", 300, 600).await;
    pair.same("b").await;
    let primary = pair.follower.primary_of("b");
    let victim = primary["follower-".len()..].parse::<usize>().unwrap().max(1);
    pair.leader.index("a", 600, 700).await;
    pair.follower.kill_node(victim).await;
    pair.leader.index("a", 700, 900).await;
    pair.same("b").await;
    pair.follower.start_node(victim).await;
    pair.leader.index("a", 900, 1000).await;
    pair.follower.green("b").await;
    pair.same("b").await;
}

async fn a_lost_primary_of_the_leader_is_replaced(env: Env) {
    let mut pair = pair_of(&env, (3, 2), (10, 50_000_000), (1, 300)).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.leader.index("a", 300, 600).await;
    // Node 0 manages.
    pair.leader.kill_node(1).await;
    assert_eq!(pair.leader.index("a", 600, 900).await, 300);
    pair.same("b").await;
    pair.leader.start_node(1).await;
    pair.leader.green("a").await;
    assert_eq!(pair.leader.index("a", 900, 1000).await, 100);
    pair.same("b").await;
}

async fn a_killed_follower_goes_on_where_it_was(env: Env) {
    let mut pair = pair(&env, 10, 50_000_000, 300).await;
    pair.follow_with("b", 1, Value::Null).await;
    pair.follower.green("b").await;
    pair.leader.index("a", 300, 600).await;
    pair.follower.kill_all().await;
    pair.leader.index("a", 600, 900).await;
    pair.leader.delete("/a/_doc/5").await;
    pair.leader.post("/a/_flush").await;
    pair.follower.start_all().await;
    pair.same("b").await;
    let rows = pair.recoveries("b").await;
    // No files came again.
    assert!(!rows.is_empty() && rows.iter().all(|row| row["type"] != "SNAPSHOT"), "{rows:?}");
    // Nor did the replica's from the primary, whose term is another now.
    pair.follower.green("b").await;
    let rows = pair.recoveries("b").await;
    assert!(rows.iter().any(|row| row["type"] == "PEER"), "{rows:?}");
    let copied = |row: &Value| row["index"]["size"]["recovered_in_bytes"] != 0;
    assert!(!rows.iter().any(copied), "operations alone: {rows:?}");
}

async fn paused_resumed_and_let_go(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 100).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.leader.index("a", 100, 200).await;
    pair.same("b").await;
    let post = async |path: &str, body: Value| pair.follower.ask("POST", path, body).await;

    let answer = post("/b/_ccr/resume_follow", Value::Null).await;
    refuses(answer, 400, "resource_already_exists_exception");
    let (status, refused) = post("/b/_ccr/unfollow", Value::Null).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["error"]["reason"].as_str().unwrap().contains("not been paused"), "{refused}");
    let (status, missing) = post("/c/_ccr/pause_follow", Value::Null).await;
    assert_eq!((status, &missing["error"]["type"]), (404, &json!("index_not_found_exception")));

    assert_eq!(post("/b/_ccr/pause_follow", Value::Null).await.0, 200);
    assert_eq!(post("/b/_ccr/pause_follow", Value::Null).await.0, 400);
    assert_eq!(pair.follower.get("/b/_ccr/info").await["follower_indices"][0]["status"], "paused");
    pair.leader.index("a", 200, 300).await;
    env.sleep(Duration::from_millis(500)).await;
    assert_eq!(pair.follower.counted("b").await["count"], 200, "a paused follower stands still");

    let parameters = json!({ "max_outstanding_read_requests": 1 });
    assert_eq!(post("/b/_ccr/resume_follow", parameters).await.0, 200);
    pair.same("b").await;

    assert_eq!(post("/b/_ccr/pause_follow", Value::Null).await.0, 200);
    assert_eq!(leases(&pair).await, 2);
    let (status, answer) = post("/b/_ccr/unfollow", Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(leases(&pair).await, 0, "the leader need not keep anything for it");
    pair.follower.must("PUT", "/b/_doc/own", json!({ "n": 1 })).await;
    assert_eq!(pair.follower.counted("b").await["count"], 301);
    pair.follower.answers(404, "GET", "/b/_ccr/stats", Value::Null).await;
}

async fn a_lease_that_stays_is_told_where_a_shard_does_not_answer(env: Env) {
    let mut pair = pair(&env, 4, 50_000_000, 100).await;
    pair.follow_with("b", 0, Value::Null).await;
    pair.follower.kill_node(1).await;
    eventually(&env, "one shard has no copy", async || {
        pair.follower.get("/_cluster/health/b").await["status"] == "red"
    })
    .await;
    pair.follower.post("/b/_ccr/pause_follow").await;
    let (status, answer) = pair.follower.ask("POST", "/b/_ccr/unfollow", Value::Null).await;
    let reason = answer["error"]["reason"].as_str().unwrap_or_default();
    let is_told = reason.contains("follows no more, but its retention leases on [leader]");
    assert!(status == 503 && is_told, "{status} {answer}");
    assert_eq!(leases(&pair).await, 1);
}

/// What the primary applied when it was paused comes to its replicas, too: nobody would send it again.
async fn one_that_is_let_go_beside_writes_has_the_same_on_every_copy(env: Env) {
    let pair = pair(&env, 2, 50_000_000, 50).await;
    for round in 1..=10 {
        let index = format!("b{round}");
        let parameters = json!({ "max_read_request_operation_count": 20 });
        pair.follow_with(&index, 1, parameters).await;
        pair.follower.green(&index).await;
        let writing = async {
            for from in (round * 100_000..).step_by(40) {
                pair.leader.index("a", from, from + 40).await;
            }
        };
        let letting_go = async {
            env.sleep(Duration::from_micros(9_700 * round)).await;
            for what in ["pause_follow", "unfollow"] {
                pair.follower.post(&format!("/{index}/_ccr/{what}")).await;
            }
        };
        tokio::select! {
            () = writing => {}
            () = letting_go => {}
        }
        eventually(&env, "every copy has what the primary has", async || {
            let copies = pair.follower.digests(&index).await;
            let different: std::collections::BTreeSet<_> = copies.iter().cloned().collect();
            copies.len() == 4 && different.len() == 2
        })
        .await;
    }
}

/// A primary that was opened anew before took all of it for known everywhere, and told the copy so. Another one, which
/// had less, has given the places to writes of its own.
async fn a_copy_with_more_of_the_leader_than_it_was_let_go_with_is_replaced(env: Env) {
    let leader = Cluster::holding(&env, "leader", 1, ("a", 1, 0), 100).await;
    let mut follower = Cluster::start(&env, "follower", 2).await;
    follower.set(json!({ "cluster.remote.leader.seeds": leader.seeds() })).await;
    follower.follow("b", ("leader", "a"), 1, "2").await;
    same((&leader, "a"), (&follower, "b")).await;
    for what in ["pause_follow", "unfollow"] {
        follower.post(&format!("/b/_ccr/{what}")).await;
    }
    let uuid = follower.any().state().indices["b"].uuid.clone();
    follower.stop_node(1).await;
    let (host, dir) = (env.host("follower-1"), follower.copy_dir(1, &uuid, 0));
    let (mapping, options) = (query::Mapping::default(), store::Options::default());
    let copy = store::Shard::open(&host, &dir, &mapping, options).await.unwrap();
    let of_leader = |seq_no: u64| Operation {
        seq_no,
        version: 1,
        id: format!("of the leader {seq_no}").into(),
        kind: OpKind::Index { source: "{}".into(), auto_id: false, routing: None },
    };
    let from = copy.max_seq_no().map_or(0, |max| max + 1);
    copy.apply((from..from + 50).map(of_leader).collect()).await.unwrap();
    copy.advance_global_checkpoint(from + 49);
    copy.flush().await.unwrap();
    copy.close().await.unwrap();
    assert_eq!(follower.index("b", 1000, 1200).await, 200);
    // Its next life has another term, and does not know that other copies may differ.
    follower.stop_node(0).await;
    follower.start_node(0).await;
    follower.start_node(1).await;
    follower.green("b").await;
    let digests = follower.digests("b").await;
    assert_eq!((digests.len(), digests[0].1), (2, 300), "{digests:?}");
    assert_eq!(digests[0], digests[1]);
}

/// A copy came by files while another one stood still, and became the primary: what it has not sent that one again when
/// following ends is in no log.
async fn a_copy_that_lacks_what_its_primary_got_in_files_is_replaced_once_it_is_let_go(env: Env) {
    let leader = Cluster::holding(&env, "leader", 1, ("a", 1, 0), 100).await;
    let (between, mut follower) = cluster_behind(&env, "follower", 3, 2).await;
    follower.set(json!({ "cluster.remote.leader.seeds": leader.seeds() })).await;
    let settings = |replicas: u32, nodes: Value| {
        let (count, include) =
            ("index.number_of_replicas", "index.routing.allocation.include._name");
        json!({ count: replicas, include: nodes })
    };
    let body = json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": settings(0, json!("follower-1")),
    });
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=1", body).await;
    let second = settings(1, json!("follower-1,follower-2"));
    follower.must("PUT", "/b/_settings", second).await;
    follower.green("b").await;
    same((&leader, "a"), (&follower, "b")).await;

    between.hold(|request| matches!(request, Request::Replicate(sent) if !sent.ops.is_empty()));
    assert_eq!(leader.index("a", 100, 150).await, 50);
    eventually(&env, "the primary has what the second copy lacks", async || {
        let copies = follower.node(1).copies("b").await.unwrap();
        copies[0].local_checkpoint == Some(149)
    })
    .await;
    follower.must("PUT", "/b/_settings", settings(2, Value::Null)).await;
    follower.green("b").await;
    follower.post("/b/_ccr/pause_follow").await;
    follower.kill_node(1).await;
    eventually(&env, "the third copy is the primary", async || {
        let state = follower.any().state();
        let primary = state.shard("b", 0).unwrap().started_primary();
        primary.is_some_and(|primary| primary.is_on("follower-0"))
    })
    .await;

    let lost = between.held();
    let parameters =
        json!({ "max_outstanding_write_requests": 1, "max_write_request_operation_count": 10 });
    follower.must("POST", "/b/_ccr/resume_follow", parameters).await;
    eventually(&env, "a part of it is on its way", async || between.held() > lost).await;
    for what in ["pause_follow", "unfollow"] {
        follower.post(&format!("/b/_ccr/{what}")).await;
    }
    between.be_honest();
    eventually(&env, "both copies have all of it", async || {
        follower.answered_digests("b").await.is_ok_and(|digests| {
            digests.len() == 2 && digests[0] == digests[1] && digests[0].1 == 150
        })
    })
    .await;
}

/// A batch that the primary applies while a copy begins to be tracked is either sent to it or found in the log, and it
/// waits for what is on its way to it, even if all others have it before.
async fn a_replica_that_comes_up_beside_writes_lacks_none(env: Env) {
    let pair = pair(&env, 2, 50_000_000, 50).await;
    let parameters =
        json!({ "max_read_request_operation_count": 20, "max_outstanding_write_requests": 4 });
    pair.follow_with("b", 0, parameters).await;
    let set = async |replicas: u32| {
        let body = json!({ "index.number_of_replicas": replicas });
        pair.follower.must("PUT", "/b/_settings", body).await;
    };
    for round in 1..=8 {
        let is_up = Cell::new(false);
        let writing = async {
            let mut from = round * 100_000;
            while !is_up.get() {
                pair.leader.index("a", from, from + 40).await;
                from += 40;
            }
        };
        let adding = async {
            env.sleep(Duration::from_millis(3 * round)).await;
            set(1).await;
            pair.follower.green("b").await;
            is_up.set(true);
        };
        let failed = async {
            // The manager counts how often a copy failed until it is started.
            while most_failures(&pair.follower, "b") == 0 {
                env.sleep(Duration::from_micros(500)).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(writing, adding) } => {}
            () = failed => panic!("its recovery failed beside the writes"),
        }
        pair.same("b").await;
        eventually(&env, "every copy is known to have all", async || pair.lag("b").await == 0)
            .await;
        set(0).await;
    }
}

/// How often a copy of an index failed that failed most.
fn most_failures(cluster: &Cluster, index: &str) -> u32 {
    let state = cluster.any().state();
    let copies =
        state.shards().filter(|(name, ..)| *name == index).flat_map(|(_, _, shard)| &shard.copies);
    copies.map(|copy| copy.failures).max().unwrap_or(0)
}

async fn writes_that_do_not_wait_for_the_disk_are_known_in_the_end(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 50).await;
    let body = json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": {
            "index.number_of_replicas": 1,
            "index.translog.durability": "async", "index.translog.sync_interval": "100ms",
        },
    });
    pair.follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=1", body).await;
    pair.leader.index("a", 50, 250).await;
    pair.same("b").await;
    eventually(&env, "the checkpoint follows", async || pair.lag("b").await == 0).await;
}

/// The leader's index is another by now than its description of a moment ago says, and the client goes away at once.
async fn one_whose_client_goes_away_follows_what_its_leader_says(env: Env) {
    let leader = Cluster::with(&env, "leader", 1, ("a", 1, 0)).await;
    let between = Between::before(&env, leader.any().transport_address()).await;
    between.change(|_, answer| match answer {
        Ok(Response::RemoteIndex(index)) => {
            let uuid = "another".to_owned();
            Ok(Response::RemoteIndex(Box::new(RemoteIndex { uuid, ..*index })))
        }
        answer => answer,
    });
    let follower = Cluster::start(&env, "follower", 1).await;
    follower.set(json!({ "cluster.remote.leader.seeds": [between.address] })).await;
    // It asks what the leader's indices are.
    env.sleep(Duration::from_secs(1)).await;
    let request = FollowRequest {
        follower: "b".to_owned(),
        alias: "leader".to_owned(),
        leader_index: "a".to_owned(),
        settings: Update::new(),
        parameters: FollowParameters::default(),
    };
    let following = engine::following::follow(follower.any().following(), request);
    assert!(env.timeout(Duration::ZERO, following).await.is_err());
    eventually(&env, "it follows what is there now", async || {
        let state = follower.any().state();
        let leader = state.indices.get("b").and_then(|meta| meta.leader.as_ref());
        leader.is_some_and(|leader| leader.leader_uuid == "another")
    })
    .await;
}

/// Retention leases on the leader's primaries, but those of recoveries.
async fn leases(pair: &Pair) -> usize {
    let mut found = 0;
    for node in pair.leader.nodes.values() {
        let stats = node.retention_leases("a").unwrap_or_default();
        found += stats.iter().filter(|(id, _)| id.contains("-following-")).count();
    }
    found
}
