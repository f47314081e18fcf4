//! Recovery from remote and from peers, and what may go wrong with it.

use std::time::Duration;

use crate::common::between::{cluster_behind, starts_a_copy};
use crate::common::pair::pair;
use crate::common::{Cluster, eventually, fails_with, refuses};
use crate::waits::{add_replica_on, create_on};
use engine::planted;
use engine::transport::{Class, Failure, Pool, Request, Response, SessionKind};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    a_follower_recovers_with_every_scheduler,
    a_follow_ends_with_what_the_leader_has_now,
    the_first_chunks_come_with_the_session,
    damaged_chunks_are_fetched_again,
    a_damaged_source_file_is_named_and_not_copied,
    a_cut_link_is_survived,
    a_killed_leader_is_resumed,
    the_throttle_holds_and_can_be_changed_while_running,
    compression_changes_nothing_but_the_wire,
    a_replica_added_later_is_complete,
    a_cancelled_recovery_gives_back_its_place_at_the_limiter,
    a_try_that_comes_late_leaves_the_copy_to_the_later_one,
    a_refresh_reaches_a_copy_that_does_not_count_as_started_yet,
    what_a_recovery_brings_is_searchable_once_it_has_ended;
    simulated:
    a_copy_waits_once_to_be_listed_however_often_it_tries,
    a_copy_that_gets_operations_is_not_given_up,
    a_copy_that_its_last_life_holds_is_waited_for,
);

#[test]
fn planted_bugs_fail_the_tests_that_they_are_for() {
    let test = a_try_that_comes_late_leaves_the_copy_to_the_later_one;
    fails_with(planted::LATE_TRY_UNTRACKS, test, "unwrap_err");
}

/// An index that requests alone refresh, whose copy on the second node is joined by one on the third.
async fn begin_a_replica(c: &Cluster) {
    let settings = json!({
        "index.number_of_replicas": 1, "index.routing.allocation.require._name": null,
        "index.routing.allocation.include._name": "one-1,one-2", "index.refresh_interval": "-1",
    });
    c.must("PUT", "/a/_settings", settings).await;
}

/// Documents that searches find on a node.
async fn found_on(c: &Cluster, node: &str) -> Value {
    c.get(&format!("/a/_count?preference=_only_nodes:{node}")).await["count"].clone()
}

/// It is complete and is sent writes, and is searched as soon as the manager has heard of it.
async fn a_refresh_reaches_a_copy_that_does_not_count_as_started_yet(env: Env) {
    let (manager, c) = cluster_behind(&env, "one", 3, 0).await;
    create_on(&c, "a", "one-1").await;
    manager.hold(starts_a_copy);
    begin_a_replica(&c).await;
    eventually(&env, "the replica is complete", async || manager.held() > 0).await;
    c.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    let refreshed = c.post("/a/_refresh").await;
    assert_eq!(refreshed["_shards"], json!({ "total": 2, "successful": 1, "failed": 0 }));
    c.must("PUT", "/a/_doc/2?refresh=true", json!({ "n": 2 })).await;
    manager.be_honest();
    c.green("a").await;
    for node in ["one-1", "one-2"] {
        assert_eq!(found_on(&c, node).await, 2, "{node}");
    }
}

/// A write comes to the copy before what was written earlier does, and the maintenance looks at it in between.
async fn what_a_recovery_brings_is_searchable_once_it_has_ended(env: Env) {
    let (primary, c) = cluster_behind(&env, "one", 3, 1).await;
    create_on(&c, "a", "one-1").await;
    c.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    primary.hold(|request| matches!(request, Request::StartTracking(_)));
    begin_a_replica(&c).await;
    eventually(&env, "the replica has the files", async || primary.held() > 0).await;
    c.must("PUT", "/a/_doc/2?refresh=true", json!({ "n": 2 })).await;
    primary.hold(|request| matches!(request, Request::ReadOps { .. }));
    // What was held goes on first.
    env.sleep(Duration::from_millis(500)).await;
    eventually(&env, "it asks for the operations", async || primary.held() > 0).await;
    c.must("PUT", "/a/_doc/3?refresh=true", json!({ "n": 3 })).await;
    env.sleep(Duration::from_secs(3)).await;
    primary.be_honest();
    c.green("a").await;
    for node in ["one-1", "one-2"] {
        assert_eq!(found_on(&c, node).await, 3, "{node}");
    }
}

/// Files began to come, and the copy that they were to replace was needed after all.
#[test]
fn what_had_come_of_files_goes_once_the_copy_is_complete_without_them() {
    world::real_world::run(7, |env| async move {
        let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 10).await;
        let uuid = c.any().state().indices["a"].uuid.clone();
        let incoming = c.any().copy_dir(&uuid, 0).join("incoming");
        c.stop_node(0).await;
        std::fs::create_dir(&incoming).unwrap();
        std::fs::write(incoming.join("f"), "the beginning of a file").unwrap();
        c.start_node(0).await;
        c.green("a").await;
        eventually(&env, "it takes no room any more", async || !incoming.exists()).await;
        assert_eq!(c.counted("a").await["count"], 10);
        c.stop().await;
    });
}

/// It gets one with each try, and keeps it.
async fn a_copy_that_gets_operations_is_not_given_up(env: Env) {
    let (primary, mut c) = cluster_behind(&env, "one", 2, 0).await;
    create_on(&c, "a", "one-0").await;
    assert_eq!(c.index("a", 0, 100).await, 100);
    add_replica_on(&c, "a", "one-0,one-1").await;
    c.stop_node(1).await;
    for n in 100..105 {
        assert_eq!(c.index("a", n, n + 1).await, 1);
    }
    c.set(json!({ "indices.recovery.retry_delay_state_sync": "50s" })).await;
    let mut reads = 0;
    primary.change(move |request, mut answer| {
        if !matches!(request, Request::ReadOps { .. }) {
            return answer;
        }
        reads += 1;
        if let Ok(Response::Ops { ops, .. }) = &mut answer {
            ops.truncate(1);
        }
        match reads % 2 {
            0 => Err(Failure::new(503, "unavailable_shards_exception", "not yet")),
            _ => answer,
        }
    });
    c.start_node(1).await;
    env.sleep(Duration::from_secs(400)).await;
    c.green("a").await;
    let rows = c.get("/a/_recovery").await["a"]["shards"].clone();
    let replica = rows.as_array().unwrap().iter().find(|row| row["primary"] == false).unwrap();
    assert_eq!(replica["narrows"]["retries"], 4, "it is one recovery: {replica}");
    c.has(2, 105).await;
}

/// A source that hears of the copy late has heard of it by the second try.
async fn a_copy_waits_once_to_be_listed_however_often_it_tries(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 0).await;
    create_on(&c, "a", "one-0").await;
    c.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    c.set(json!({ "narrows.recovery.hears_last._name": "one-0" })).await;
    let host = env.host("one-1");
    let mut model = host.virtual_host_model().unwrap();
    model.costs.unlisted_copy = Duration::from_secs(5);
    host.set_host_model(model);
    let mut tries = 0;
    between.change(move |request, answer| {
        tries += u32::from(matches!(request, Request::OpenSession { .. }));
        let is_chunk = matches!(request, Request::ReadOpening { .. } | Request::ReadChunk { .. });
        match is_chunk && tries < 3 {
            true => Err(Failure::new(503, "unavailable_shards_exception", "not yet")),
            false => answer,
        }
    });
    let began = env.now();
    add_replica_on(&c, "a", "one-0,one-1").await;
    let took_s = (env.now() - began).as_secs();
    assert!((5..10).contains(&took_s), "{took_s} s");
    let rows = c.get("/a/_recovery").await["a"]["shards"].clone();
    let tried_again = |row: &Value| row["narrows"]["retries"].as_u64() >= Some(2);
    assert!(rows.as_array().unwrap().iter().any(tried_again), "{rows}");
}

/// The copy has asked a second time, and writes go to it. Then its first request comes.
async fn a_try_that_comes_late_leaves_the_copy_to_the_later_one(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 0).await;
    create_on(&cluster, "a", "one-0").await;
    between.hold(|request| {
        matches!(request, Request::OpenSession { kind: SessionKind::Peer { retries: 0, .. }, .. })
    });
    let anywhere =
        json!({ "index.routing.allocation.require._name": null, "index.number_of_replicas": 1 });
    cluster.must("PUT", "/a/_settings", anywhere).await;
    eventually(&env, "the copy asks", async || between.held() > 0).await;
    let state = cluster.node(0).state();
    let copy = state.shard("a", 0).unwrap().replicas().next().unwrap();
    let pool = Pool::new(env.host("asks"));
    let ask = async |request| {
        pool.call(&between.address, Class::Control, request, Duration::from_secs(30)).await
    };
    let open = async |retries: u64| {
        let (index, index_uuid) = ("a".to_owned(), state.indices["a"].uuid.clone());
        let allocation_id = copy.allocation_id.clone();
        let kind = SessionKind::Peer { index_uuid, allocation_id, has: None, retries };
        ask(Request::OpenSession { index, shard: 0, kind, key: retries }).await
    };
    let Ok(Response::Session(opened)) = open(2).await else { panic!("the primary is there") };
    let tracked = ask(Request::StartTracking(opened.session)).await;
    assert!(matches!(tracked, Ok(Response::Tracked { max_seq_no: None, .. })), "{tracked:?}");
    let late = open(1).await.map(drop).unwrap_err();
    assert!(late.is_transient() && late.to_string().contains("a later try"), "{late}");
    pool.close();
    between.be_honest();
    cluster.green("a").await;
}

/// What a follower knows of its leader may be old: it begins with it, and ends with what is so.
async fn a_follow_ends_with_what_the_leader_has_now(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 1000).await;
    // Long enough to be told of the indices, too short to be told again.
    env.sleep(Duration::from_millis(300)).await;
    pair.leader.delete("/a").await;
    let body = json!({ "remote_cluster": "leader", "leader_index": "a" });
    let answer = pair.follower.ask("PUT", "/gone/_ccr/follow", body.clone()).await;
    refuses(answer, 404, "index_not_found_exception");
    let (status, _) = pair.follower.ask("GET", "/gone", Value::Null).await;
    assert_eq!(status, 404, "the follower is taken back");
    pair.leader.create("a", 3, 0).await;
    assert_eq!(pair.leader.index("a", 0, 500).await, 500);
    pair.follower.must("PUT", "/b/_ccr/follow", body).await;
    let meta = pair.follower.any().state().indices["b"].clone();
    let leader = pair.leader.any().state().indices["a"].clone();
    assert_eq!((meta.shards, &meta.leader.as_ref().unwrap().leader_uuid), (3, &leader.uuid));
    eventually(&env, "the new index is here", async || {
        let (_, count) = pair.follower.ask("GET", "/b/_count", Value::Null).await;
        count["count"] == 500
    })
    .await;
}

async fn a_follower_recovers_with_every_scheduler(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 3000).await;
    for scheduler in ["sequential", "parallel_files", "file_window", "adaptive"] {
        pair.set(json!({
            "ccr.indices.recovery.chunk_size": "16kb",
            "narrows.recovery.scheduler": scheduler,
        }))
        .await;
        pair.follow("b").await;
        pair.complete(&env, "b").await;
        let rows = pair.recoveries("b").await;
        let is_known = |row: &Value| row["type"] == "SNAPSHOT" || row["type"] == "PEER";
        assert!(!rows.is_empty() && rows.iter().all(is_known), "{scheduler}: {rows:?}");
        pair.follower.delete("/b").await;
    }
    assert_eq!(pair.follower.ask("GET", "/b/_ccr/stats", Value::Null).await.0, 404);
}

/// A session and its first chunks take one round trip together, so a shard whose files all fit the opening takes little
/// more. Each has seven: with a window of five, two wait for the second round trip.
async fn the_first_chunks_come_with_the_session(env: Env) {
    let rtt_ms = 100;
    let pair = pair(&env, rtt_ms, 12_500_000, 3000).await;
    pair.leader.post("/a/_flush").await;
    // Until connections are warm.
    env.sleep(Duration::from_secs(1)).await;
    for (name, scheduler, trips) in [("b", "adaptive", 1), ("c", "file_window", 2)] {
        pair.set(json!({ "narrows.recovery.scheduler": scheduler })).await;
        pair.follow(name).await;
        pair.complete(&env, name).await;
        let rows = pair.recoveries(name).await;
        for row in rows.iter().filter(|row| row["primary"] == true) {
            assert_eq!(row["narrows"]["refetched_chunks"], 0, "{row}");
            if env.is_virtual() {
                let took_ms = row["total_time_in_millis"].as_u64().unwrap();
                let least_ms = trips * rtt_ms;
                assert!((least_ms..least_ms + rtt_ms / 2).contains(&took_ms), "{scheduler}: {row}");
            }
        }
    }
}

async fn damaged_chunks_are_fetched_again(env: Env) {
    let pair = pair(&env, 4, 20_000_000, 4000).await;
    pair.set(json!({ "ccr.indices.recovery.chunk_size": "64kb" })).await;
    // So many that the session is opened anew. In the real world each may cost a connection.
    pair.link.damage_next(if env.is_virtual() { 200 } else { 2 });
    pair.follow("b").await;
    pair.complete(&env, "b").await;
    let rows = pair.recoveries("b").await;
    let sum =
        |name: &str| -> u64 { rows.iter().map(|r| r["narrows"][name].as_u64().unwrap()).sum() };
    assert!(
        !env.is_virtual() || (sum("refetched_chunks") >= 100 && sum("retries") >= 1),
        "{rows:?}"
    );
    // In the real world damage may hit a frame's head: then the connection is made anew.
    assert!(sum("refetched_chunks") + sum("retries") >= 1, "{rows:?}");
}

async fn a_damaged_source_file_is_named_and_not_copied(env: Env) {
    let pair = pair(&env, 2, 100_000_000, 2000).await;
    pair.leader.post("/a/_flush").await;
    let node = pair.leader.node(0);
    let state = node.state();
    let uuid = &state.indices["a"].uuid;
    let (_, shard, _) = state.copies_on("leader-0").next().unwrap();
    let dir = node.copy_dir(uuid, shard);
    let file = store::damage_largest_file(&env.host("leader-0"), &dir).await.unwrap();
    pair.follow("b").await;
    eventually(&env, "the damage is named", async || {
        let rows = pair.recoveries("b").await;
        let explained = pair.follower.ask("GET", "/_cluster/allocation/explain", Value::Null).await;
        let told = |text: &str| text.contains(&file) && text.contains("damaged");
        told(&explained.1.to_string()) || rows.iter().any(|row| told(&row.to_string()))
    })
    .await;
    let health = pair.follower.get("/_cluster/health/b").await;
    assert!(health["active_primary_shards"].as_u64().unwrap() < 2, "{health}");
}

async fn a_cut_link_is_survived(env: Env) {
    let pair = pair(&env, 10, 1_000_000, 6000).await;
    pair.follow("b").await;
    env.sleep(Duration::from_millis(150)).await;
    pair.link.cut();
    env.sleep(Duration::from_millis(300)).await;
    pair.link.heal();
    pair.complete(&env, "b").await;
}

async fn a_killed_leader_is_resumed(env: Env) {
    let mut pair = pair(&env, 10, 60_000, 6000).await;
    pair.set(json!({ "ccr.indices.recovery.chunk_size": "4kb" })).await;
    if !env.is_virtual() {
        // The machine may stand still for a moment: all is not to have come by then.
        pair.set(json!({ "ccr.indices.recovery.max_bytes_per_sec": "10kb" })).await;
    }
    pair.follow("b").await;
    eventually(&env, "some files are there", async || {
        let rows = pair.recoveries("b").await;
        rows.iter().any(|row| row["index"]["size"]["recovered_in_bytes"].as_u64().unwrap() > 30_000)
    })
    .await;
    pair.leader.kill_node(1).await;
    env.sleep(Duration::from_millis(200)).await;
    pair.leader.start_node(1).await;
    if !env.is_virtual() {
        pair.set(json!({ "ccr.indices.recovery.max_bytes_per_sec": "-1" })).await;
    }
    pair.complete(&env, "b").await;
    let rows = pair.recoveries("b").await;
    assert!(rows.iter().any(|row| row["narrows"]["retries"].as_u64().unwrap() > 0), "{rows:?}");
}

async fn the_throttle_holds_and_can_be_changed_while_running(env: Env) {
    let pair = pair(&env, 2, 125_000_000, 6000).await;
    pair.set(json!({
        "ccr.indices.recovery.max_bytes_per_sec": "20kb",
        "ccr.indices.recovery.chunk_size": "4kb",
    }))
    .await;
    let began = env.now();
    pair.follow("b").await;
    env.sleep(Duration::from_millis(1500)).await;
    eventually(&env, "the throttle holds both shards", async || {
        let rows = pair.recoveries("b").await;
        // What was asked for at once, and what came at the rate since.
        let most = 60_000 + ((env.now() - began).as_secs_f64() * 20.0 * 1024.0) as u64;
        for row in &rows {
            assert!(row["index"]["size"]["recovered_in_bytes"].as_u64().unwrap() < most, "{row}");
        }
        let is_held = |row: &Value| row["narrows"]["charged_ns"]["throttle"].as_u64() > Some(0);
        rows.len() >= 2 && rows.iter().all(is_held)
    })
    .await;
    // A chunk takes an hour now, which none that waits for it does once the throttle is gone.
    pair.set(json!({ "ccr.indices.recovery.max_bytes_per_sec": "1b" })).await;
    env.sleep(Duration::from_millis(500)).await;
    pair.set(json!({ "ccr.indices.recovery.max_bytes_per_sec": "-1" })).await;
    pair.complete(&env, "b").await;
}

async fn compression_changes_nothing_but_the_wire(env: Env) {
    let pair = pair(&env, 2, 125_000_000, 4000).await;
    for scheme in ["lz4", "zstd"] {
        pair.set(json!({
            "transport.compress": "true",
            "transport.compression_scheme": scheme,
        }))
        .await;
        pair.follow("b").await;
        pair.complete(&env, "b").await;
        pair.follower.delete("/b").await;
    }
}

async fn a_replica_added_later_is_complete(env: Env) {
    let cluster = Cluster::holding(&env, "c", 2, ("a", 1, 0), 1000).await;
    cluster.must("PUT", "/a/_settings", json!({ "index.number_of_replicas": 1 })).await;
    // Writes go on while the replica recovers.
    cluster.index("a", 1000, 1500).await;
    cluster.green("a").await;
    cluster.has(2, 1500).await;
}

/// What waits for the copy that is taken back takes 100 s at this rate, and the copy that comes next takes one.
async fn a_cancelled_recovery_gives_back_its_place_at_the_limiter(env: Env) {
    let cluster = Cluster::start(&env, "c", 2).await;
    cluster.set(json!({ "indices.recovery.max_bytes_per_sec": "4kb" })).await;
    for (index, documents) in [("large", 12_000), ("small", 1)] {
        let one_node = json!({ "settings": {
            "number_of_shards": 1, "number_of_replicas": 0,
            "index.routing.allocation.include._name": "c-1",
        } });
        cluster.must("PUT", &format!("/{index}"), one_node).await;
        assert_eq!(cluster.index(index, 0, documents).await, documents);
        cluster.post(&format!("/{index}/_flush")).await;
    }
    let replicas = async |index: &str, replicas: u32| {
        let body = json!({
            "index.number_of_replicas": replicas, "index.routing.allocation.include._name": "c-0,c-1",
        });
        cluster.must("PUT", &format!("/{index}/_settings"), body).await;
    };
    replicas("large", 1).await;
    eventually(&env, "the source's limiter holds the large copy", async || {
        let answer = cluster.get("/large/_recovery?active_only=true").await;
        answer["large"]["shards"][0]["narrows"]["charged_ns"]["throttle"].as_u64() > Some(0)
    })
    .await;
    replicas("large", 0).await;
    replicas("small", 1).await;
    cluster.green_within("small", if env.is_virtual() { 30 } else { 60 }).await;
}

/// Work of its life before, as a long merge, may hold a copy for minutes. It is waited for, and that is said.
async fn a_copy_that_its_last_life_holds_is_waited_for(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 1, ("a", 1, 0), 100).await;
    let uuid = cluster.any().state().indices["a"].uuid.clone();
    let dir = cluster.any().copy_dir(&uuid, 0);
    cluster.kill_node(0).await;
    let (host, mapping) = (env.host("c-0"), query::Mapping::default());
    let held = store::Shard::open(&host, &dir, &mapping, store::Options::default()).await;
    let held = held.unwrap();
    cluster.start_node(0).await;
    // Longer than all tries together of a copy that fails.
    env.sleep(Duration::from_secs(120)).await;
    let recovery = cluster.get("/a/_recovery").await;
    let why = &recovery["a"]["shards"][0]["narrows"]["failure"];
    assert!(why.to_string().contains("is open elsewhere"), "{recovery}");
    drop(held);
    cluster.green("a").await;
    assert_eq!(cluster.digests("a").await[0].1, 100);
}
