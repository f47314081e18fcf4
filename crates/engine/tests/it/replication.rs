//! Writes reach every copy, and survive what happens to nodes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::common::between::cluster_behind;
use crate::common::{Cluster, ask, eventually, fails_with, raw, refuses};
use crate::leases::opening;
use crate::waits::{add_replica_on, create_on};
use bytes::Bytes;
use engine::planted;
use engine::settings::Update;
use engine::state::Event;
use engine::transport::{Class, Pool, Request, Response, Write};
use serde_json::{Value, json};
use store::{OpKind, Operation, WriteRequest};
use world::Env;

testbed::both_worlds!(
    every_copy_holds_what_was_acknowledged,
    a_lost_replica_comes_back_complete,
    a_lost_primary_is_replaced,
    a_whole_cluster_restarts_with_its_data,
    updates_and_deletes_reach_every_copy,
    a_write_goes_on_where_the_node_that_sent_it_is_lost,
    the_log_is_cut_however_often_copies_recover_by_files,
    a_copy_that_left_comes_back_by_operations_after_a_commit,
    a_write_is_not_for_an_index_that_was_made_anew,
    a_delete_that_is_sent_again_is_not_for_an_index_that_was_made_anew,
    a_replica_that_stands_still_holds_up_no_other_index,
    of_two_who_ask_for_the_same_one_is_refused,
    a_write_is_durable_on_a_copy_that_has_not_heard_of_the_setting,
    a_write_that_comes_after_it_was_sent_again_is_no_second_document;
    simulated:
    a_promoted_copy_applies_what_it_has_got_before_others_recover_from_it,
);

/// The primary is lost while one of its replicas indexes what it sent, for seconds, and the other one has not got that.
/// The first one becomes the primary.
async fn a_promoted_copy_applies_what_it_has_got_before_others_recover_from_it(env: Env) {
    let (between, mut c) = cluster_behind(&env, "one", 4, 3).await;
    create_on(&c, "a", "one-1").await;
    let settings = json!({
        "index.number_of_replicas": 2, "index.routing.allocation.require._name": null,
        "index.routing.allocation.include._name": "one-1,one-2,one-3",
    });
    c.must("PUT", "/a/_settings", settings).await;
    c.green("a").await;
    c.index("a", 0, 10).await;
    // Every copy hears of the global checkpoint, and commits it: it can come back by operations.
    env.sleep(Duration::from_secs(3)).await;
    c.post("/a/_flush").await;
    between.hold(|request| matches!(request, Request::Replicate(sent) if !sent.ops.is_empty()));
    let (node, run) = (c.node(0).clone(), "documents=400000&source_bytes=400000000");
    let path = format!("/a/_narrows/run?{run}");
    let _writing = env.spawn("writes", async move {
        let _ = raw(&node, "POST", &path, Bytes::new()).await;
    });
    eventually(&env, "both are sent it", async || between.held() > 0).await;
    env.sleep(Duration::from_millis(200)).await;
    c.kill_node(1).await;
    between.lose_what_is_held();
    eventually(&env, "both have it", async || {
        let found = c.answered_digests("a").await.unwrap_or_default();
        found.len() == 2 && found[0] == found[1] && found[0].1 == 400_010
    })
    .await;
}

/// Its connection broke, and what was sent over that is read later. Other ids are not looked up for that.
async fn a_write_that_comes_after_it_was_sent_again_is_no_second_document(env: Env) {
    let cluster = Cluster::with(&env, "one", 1, ("a", 1, 0)).await;
    let index_uuid = cluster.any().state().indices["a"].uuid.clone();
    let (pool, address) = (Pool::new(env.clone()), cluster.any().transport_address());
    let limit = Duration::from_secs(30);
    // Its session keeps the operations.
    let opened = pool.call(address, Class::Control, opening(&cluster, 0), limit).await;
    let Ok(Response::Session(opened)) = opened else { panic!("{opened:?}") };
    for (id, resent, documents) in [("sent", true, 1), ("sent", false, 1), ("other", false, 2)] {
        let (index, index_uuid) = ("a".to_owned(), index_uuid.clone());
        let request = WriteRequest::append(id.into(), Bytes::from_static(b"{\"n\":1}"));
        let write = Write { index, index_uuid, shard: 0, requests: vec![request], resent };
        let written = pool.call(address, Class::Bulk, Request::Write(write), limit).await;
        assert!(matches!(written, Ok(Response::Written(_))), "{written:?}");
        assert_eq!(cluster.counted("a").await["count"], documents);
    }
    let (session, max_bytes) = (opened.session, 1 << 20);
    let request = Request::ReadOps { session, from: 0, max_ops: 10, max_bytes };
    let answer = pool.call(address, Class::Control, request, limit).await;
    let Ok(Response::Ops { ops, .. }) = answer else { panic!("{answer:?}") };
    let is_append = |op: &Operation| matches!(op.kind, OpKind::Index { auto_id: true, .. });
    let appends: Vec<bool> = ops.iter().map(is_append).collect();
    assert_eq!(appends, [false, false, true]);
    pool.close();
}

/// Two nodes are asked at once, and neither knows of what the other was asked: the manager decides.
async fn of_two_who_ask_for_the_same_one_is_refused(env: Env) {
    let cluster = Cluster::start(&env, "c", 3).await;
    for (method, refused) in [("PUT", 400), ("DELETE", 404)] {
        let asked = [1, 2].map(|number| {
            let node = cluster.node(number).clone();
            env.spawn(
                "asks for the same",
                async move { ask(&node, method, "/a", Value::Null).await.0 },
            )
        });
        let mut statuses = Vec::new();
        for one in asked {
            statuses.push(one.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, refused], "{method}");
    }
}

#[test]
fn planted_bugs_fail_the_tests_that_they_are_for() {
    let test = a_write_is_durable_on_a_copy_that_has_not_heard_of_the_setting;
    fails_with(planted::DURABILITY_UNHEARD, test, "the replica has not synced it");
}

/// From now on writes are acknowledged once they are durable. The node of a replica has missed that.
async fn a_write_is_durable_on_a_copy_that_has_not_heard_of_the_setting(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    create_on(&cluster, "a", "one-0").await;
    cluster.must("PUT", "/a/_settings", json!({ "index.translog.durability": "async" })).await;
    add_replica_on(&cluster, "a", "one-0,one-1").await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    let before = cluster.node(0).state().version;
    let manager = cluster.node(0).clone();
    let setting = env.spawn("sets the durability", async move {
        let settings = json!({ "index.translog.durability": "request" });
        ask(&manager, "PUT", "/a/_settings", settings).await.0
    });
    eventually(&env, "the replica's node has missed it", async || {
        between.held() > 0 && cluster.node(0).state().version > before
    })
    .await;
    env.sleep(Duration::from_millis(300)).await;
    let durable: Rc<Cell<Option<u64>>> = Rc::default();
    let seen = durable.clone();
    between.change(move |request, answer| {
        if let Request::Replicate(sent) = request
            && let Ok(Response::Replicated { local_checkpoint }) = &answer
            && !sent.ops.is_empty()
        {
            seen.set(*local_checkpoint);
        }
        answer
    });
    cluster.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    assert_eq!(durable.get(), Some(0), "the replica has not synced it");
    between.be_honest();
    assert_eq!(setting.await.unwrap(), 200);
}

/// The manager's answer is lost: who sends it again is told that the index is gone.
async fn a_delete_that_is_sent_again_is_not_for_an_index_that_was_made_anew(env: Env) {
    let cluster = Cluster::with(&env, "c", 2, ("a", 1, 0)).await;
    let sender = cluster.node(1).core().clone();
    let index = sender.state().index("a").unwrap();
    sender.submit(Event::DeleteIndex { index: index.clone() }).await.unwrap();
    cluster.create("a", 1, 0).await;
    let settings = Update::from([("index.priority".to_owned(), Some("7".to_owned()))]);
    let set = Event::PutIndexSettings { index: index.clone(), settings };
    for late in [Event::DeleteIndex { index }, set] {
        let said = sender.submit(late).await.unwrap_err();
        assert_eq!((said.status, said.kind.as_str()), (404, "index_not_found_exception"));
    }
    let meta = cluster.any().state().indices["a"].clone();
    assert_eq!((meta.settings_version, meta.priority()), (1, 1));
}

/// A replica takes nothing. What is due to another index is done meanwhile.
async fn a_replica_that_stands_still_holds_up_no_other_index(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    for index in ["a", "b"] {
        let settings = json!({
            "number_of_shards": 1, "number_of_replicas": 0, "index.translog.durability": "async",
            "index.routing.allocation.require._name": "one-0",
        });
        cluster.make(index, json!({ "settings": settings })).await;
    }
    let anywhere =
        json!({ "index.routing.allocation.require._name": null, "index.number_of_replicas": 1 });
    cluster.must("PUT", "/a/_settings", anywhere).await;
    cluster.green("a").await;
    cluster.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    between.hold(|request| matches!(request, Request::Replicate(_)));
    eventually(&env, "the replica is to sync", async || between.held() > 0).await;
    cluster.must("PUT", "/b/_doc/1", json!({ "n": 1 })).await;
    let path = "/_cat/shards/b?format=json&h=seq_no.global_checkpoint";
    eventually(&env, "the other index is synced", async || {
        let rows = cluster.get(path).await;
        rows[0]["seq_no.global_checkpoint"] == "0"
    })
    .await;
    // The primary has not even given up waiting for it.
    let state = cluster.any().state();
    assert_eq!(state.shard("a", 0).unwrap().in_sync.len(), 2);
    between.be_honest();
}

async fn replicas(cluster: &Cluster, replicas: u32) {
    cluster.must("PUT", "/a/_settings", json!({ "index.number_of_replicas": replicas })).await;
    cluster.green("a").await;
}

/// Operations in the log of the primary's node.
async fn logged(cluster: &Cluster) -> u64 {
    let primary = cluster.primary_of("a");
    let stats = cluster.get("/_nodes/stats").await;
    let mut nodes = stats["nodes"].as_object().unwrap().values();
    let node = nodes.find(|node| node["name"] == json!(primary)).unwrap();
    node["indices"]["translog"]["operations"].as_u64().unwrap()
}

/// Every recovery by files commits. What no copy lacks any more goes with the next one.
async fn the_log_is_cut_however_often_copies_recover_by_files(env: Env) {
    let cluster = Cluster::with(&env, "c", 2, ("a", 1, 0)).await;
    for round in 0..6 {
        cluster.index("a", round * 50, round * 50 + 50).await;
        replicas(&cluster, 1).await;
        replicas(&cluster, 0).await;
    }
    let kept = logged(&cluster).await;
    assert!(kept <= 100, "{kept} of 300 operations are kept");
}

async fn a_copy_that_left_comes_back_by_operations_after_a_commit(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 1, 2), 1000).await;
    cluster.post("/a/_flush").await;
    let primary = cluster.primary_of("a");
    let lost = (1..3).find(|number| cluster.node(*number).name() != primary).unwrap();
    let name = cluster.node(lost).name().to_owned();
    cluster.kill_node(lost).await;
    for round in 20..23 {
        cluster.index("a", round * 50, round * 50 + 20).await;
        cluster.post("/a/_flush").await;
    }
    cluster.start_node(lost).await;
    cluster.green("a").await;
    let answer = cluster.get("/a/_recovery").await;
    let rows = answer["a"]["shards"].as_array().unwrap();
    let row = rows.iter().find(|row| row["target"]["name"] == json!(name)).unwrap();
    assert_eq!(row["index"]["files"]["recovered"], 0, "it came back by files: {row:#}");
    assert_eq!(row["translog"]["recovered"], 60, "{row:#}");
    let digests = cluster.digests("a").await;
    assert!(digests.len() == 3 && digests.iter().all(|d| *d == digests[0]), "{digests:?}");
    eventually(&env, "nobody copies files any more, which keeps operations, too", async || {
        let leases = cluster.nodes.values().filter_map(|node| node.retention_leases("a"));
        leases.flatten().all(|(id, _)| !id.starts_with("recovery/"))
    })
    .await;
    // Nobody lacks anything now: the operations go with the next commit.
    cluster.index("a", 2000, 2010).await;
    cluster.post("/a/_flush").await;
    assert_eq!(logged(&cluster).await, 0);
}

/// The connection closes a little later with each write, so that some of them are half way then. No copy may lack what
/// another has.
async fn a_write_goes_on_where_the_node_that_sent_it_is_lost(env: Env) {
    let cluster = Cluster::with(&env, "c", 3, ("a", 1, 2)).await;
    let state = cluster.any().state();
    let address = cluster.nodes[&cluster.primary_of("a")].transport_address().to_owned();
    for number in 0..100 {
        let (id, source) = (format!("d{number}").into(), Bytes::from_static(b"{}"));
        let request = WriteRequest::index(id, source);
        let (index, index_uuid) = ("a".to_owned(), state.indices["a"].uuid.clone());
        let write = Write { index, index_uuid, shard: 0, requests: vec![request], resent: false };
        let pool = Pool::new(env.clone());
        let limit = Duration::from_micros(20 * number);
        let _ = pool.call(&address, Class::Bulk, Request::Write(write), limit).await;
        pool.close();
    }
    eventually(&env, "every copy has every write", async || {
        let mut copies = Vec::new();
        for node in cluster.nodes.values() {
            copies.extend(node.copies("a").await.unwrap());
        }
        let ends: Vec<_> =
            copies.iter().flat_map(|copy| [copy.local_checkpoint, copy.max_seq_no]).collect();
        ends.len() == 6 && ends[0].is_some() && ends.iter().all(|end| *end == ends[0])
    })
    .await;
}

async fn every_copy_holds_what_was_acknowledged(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 2, 1), 500).await;
    let digests = cluster.digests("a").await;
    assert_eq!(digests.len(), 4, "{digests:?}");
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[2], digests[3]);
    assert_eq!(digests[0].1 + digests[2].1, 500);
    assert_eq!(cluster.counted("a").await["count"], 500);
}

async fn a_lost_replica_comes_back_complete(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 1, 2), 200).await;
    cluster.kill_node(2).await;
    assert_eq!(cluster.index("a", 200, 400).await, 200);
    cluster.start_node(2).await;
    cluster.index("a", 400, 500).await;
    cluster.green("a").await;
    cluster.has(3, 500).await;
}

async fn a_lost_primary_is_replaced(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 3, 1), 300).await;
    // Node 1 has a primary; node 0 manages.
    cluster.kill_node(1).await;
    assert_eq!(cluster.index("a", 300, 600).await, 300);
    cluster.start_node(1).await;
    cluster.green("a").await;
    let digests = cluster.digests("a").await;
    assert_eq!(digests.len(), 6);
    for pair in digests.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    assert_eq!(digests.iter().map(|digest| digest.1).sum::<u64>(), 1200);
}

async fn a_whole_cluster_restarts_with_its_data(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 3, 1), 300).await;
    let before = cluster.digests("a").await;
    cluster.kill_all().await;
    cluster.start_all().await;
    cluster.green("a").await;
    assert_eq!(cluster.digests("a").await, before);
}

async fn updates_and_deletes_reach_every_copy(env: Env) {
    let cluster = Cluster::holding(&env, "c", 2, ("a", 1, 1), 20).await;
    let put = cluster.must("PUT", "/a/_doc/3", json!({ "n": 33 })).await;
    assert_eq!((&put["result"], &put["_version"]), (&json!("updated"), &json!(2)));
    assert_eq!(cluster.delete("/a/_doc/4").await["result"], "deleted");
    cluster.answers(404, "GET", "/a/_doc/4", Value::Null).await;
    cluster.answers(409, "PUT", "/a/_create/3", json!({ "n": 1 })).await;
    cluster.has(2, 19).await;
    eventually(&env, "the document is found", async || {
        let (_, found) = cluster.ask("GET", "/a/_doc/3", Value::Null).await;
        found["_source"]["n"] == 33
    })
    .await;
}

/// The index is deleted and made anew while a write is on its way to its primary.
async fn a_write_is_not_for_an_index_that_was_made_anew(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    create_on(&cluster, "a", "one-1").await;
    between.hold(|request| matches!(request, Request::Write(_)));
    let coordinator = cluster.node(0).clone();
    let writing = env.spawn("writes", async move {
        ask(&coordinator, "PUT", "/a/_doc/1", json!({ "n": 1 })).await
    });
    eventually(&env, "the write is on its way", async || between.held() > 0).await;
    cluster.delete("/a").await;
    create_on(&cluster, "a", "one-1").await;
    between.be_honest();
    refuses(writing.await.unwrap(), 404, "index_not_found_exception");
    assert_eq!(cluster.digests("a").await[0].1, 0, "a document came");
}
