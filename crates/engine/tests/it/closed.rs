//! A closed index: no document of it is read or written, and its copies are kept as those of any other.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::common::between::cluster_behind;
use crate::common::{Cluster, ask, eventually};
use crate::waits::{add_replica_on, create_on};
use engine::transport::Request;
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    no_write_is_done_after_a_close,
    a_close_waits_for_the_writes_that_run,
    a_closed_index_is_kept,
);

fn is_closed((status, answer): &(u16, Value)) -> bool {
    *status == 400 && answer["error"]["type"] == "index_closed_exception"
}

/// Two nodes are written to while a third is asked to close.
async fn no_write_is_done_after_a_close(env: Env) {
    let cluster = Cluster::with(&env, "c", 3, ("a", 2, 1)).await;
    let written: Rc<Cell<u64>> = Rc::default();
    let writing = [1, 2].map(|number| {
        let (node, written) = (cluster.node(number).clone(), written.clone());
        env.spawn("writes until it is refused", async move {
            let mut n = 0;
            loop {
                let path = format!("/a/_doc/{number}-{n}");
                let answer = ask(&node, "PUT", &path, json!({ "n": n })).await;
                if answer.0 != 201 {
                    return answer;
                }
                n += 1;
                written.update(|written| written + 1);
            }
        })
    });
    eventually(&env, "some are written", async || written.get() > 20).await;
    let answer = cluster.post("/a/_close").await;
    let at_once = cluster.digests("a").await;
    let indices = json!({ "a": { "closed": true } });
    let expected = json!({ "acknowledged": true, "shards_acknowledged": true, "indices": indices });
    assert_eq!(answer, expected);
    for one in writing {
        let refused = one.await.unwrap();
        assert!(is_closed(&refused), "{refused:?}");
    }
    assert_eq!(cluster.digests("a").await, at_once);
    let documents: u64 = at_once.iter().map(|(_, documents, _)| documents).sum();
    assert_eq!(
        documents,
        2 * written.get(),
        "what was acknowledged is on both copies, and no more"
    );
}

/// A replica takes its time with a write that was begun before.
async fn a_close_waits_for_the_writes_that_run(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    create_on(&cluster, "a", "one-0").await;
    add_replica_on(&cluster, "a", "one-0,one-1").await;
    between.hold(|request| matches!(request, Request::Replicate(sent) if !sent.ops.is_empty()));
    let ended: Rc<Cell<u32>> = Rc::default();
    let start = |method: &'static str, path: &'static str, body: Value| {
        let (node, ended) = (cluster.node(0).clone(), ended.clone());
        env.spawn("asks, and says when it is answered", async move {
            let answer = ask(&node, method, path, body).await;
            ended.update(|ended| ended + 1);
            answer
        })
    };
    let writing = start("PUT", "/a/_doc/1", json!({ "n": 1 }));
    eventually(&env, "the replica has still to answer", async || between.held() > 0).await;
    let closing = start("POST", "/a/_close", Value::Null);
    let is_known = async || cluster.node(0).state().indices["a"].closed;
    eventually(&env, "the primary's node knows that it is closed", is_known).await;
    assert!(is_closed(&cluster.ask("PUT", "/a/_doc/2", json!({ "n": 2 })).await));
    env.sleep(Duration::from_millis(300)).await;
    assert_eq!(ended.get(), 0, "neither is answered while the write runs");
    between.be_honest();
    assert_eq!(writing.await.unwrap().0, 201);
    let (status, answer) = closing.await.unwrap();
    assert_eq!((status, &answer["acknowledged"]), (200, &json!(true)), "{answer}");
    let digests = cluster.digests("a").await;
    assert!(digests.len() == 2 && digests.iter().all(|(_, documents, _)| *documents == 1));
}

/// What is done with documents is refused, and what is done with an index goes on.
async fn nothing_is_read_or_written(cluster: &Cluster) {
    for (method, path, body) in [
        ("GET", "/a/_doc/1", Value::Null),
        ("GET", "/a/_count", Value::Null),
        ("POST", "/a/_search", json!({ "size": 0 })),
        ("POST", "/named/_search", json!({ "size": 0 })),
        ("PUT", "/a/_doc/1", json!({ "n": 1 })),
        ("DELETE", "/named/_doc/1", Value::Null),
        ("POST", "/a/_update/1", json!({ "doc": { "n": 2 } })),
        ("POST", "/a/_refresh", Value::Null),
        ("GET", "/a/_stats", Value::Null),
    ] {
        let answer = cluster.ask(method, path, body).await;
        assert!(is_closed(&answer), "{method} {path}: {answer:?}");
        let error = &answer.1["error"];
        assert_eq!((&error["reason"], &error["index"]), (&json!("closed"), &json!("a")), "{path}");
    }
    assert_eq!(cluster.index("a", 0, 5).await, 0);
    for path in [
        "/_search?size=0",
        "/a/_search?size=0&ignore_unavailable=true",
        "/a/_mapping",
        "/a/_settings",
        "/a/_recovery",
        "/a/_stats?forbid_closed_indices=false",
        "/_cat/shards/a",
    ] {
        cluster.get(path).await;
    }
    let rows = cluster.get("/_cat/indices?format=json&h=index,status").await;
    let [a, b] = [("a", "close"), ("b", "open")].map(|(i, s)| json!({ "index": i, "status": s }));
    assert_eq!(rows, json!([a, b]));
}

/// A replica is added, a node comes back, and the whole cluster restarts.
async fn a_closed_index_is_kept(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 2, 1), 200).await;
    cluster.create("b", 1, 0).await;
    cluster.must("PUT", "/a/_alias/named", Value::Null).await;
    let mut shards = cluster.digests("a").await;
    shards.dedup();
    cluster.post("/a/_close").await;
    nothing_is_read_or_written(&cluster).await;
    cluster.must("PUT", "/a/_settings", json!({ "index.number_of_replicas": 2 })).await;
    cluster.green("a").await;
    let copies = cluster.digests("a").await;
    let mut found = copies.clone();
    found.dedup();
    assert_eq!((copies.len(), found), (6, shards));
    cluster.kill_node(2).await;
    let has_left = async || cluster.any().state().present.len() == 2;
    eventually(&env, "the node has left", has_left).await;
    cluster.start_node(2).await;
    cluster.green("a").await;
    assert_eq!(cluster.digests("a").await, copies);
    cluster.kill_all().await;
    cluster.start_all().await;
    cluster.green("a").await;
    nothing_is_read_or_written(&cluster).await;
    let answer = cluster.post("/a/_open?wait_for_active_shards=all").await;
    assert_eq!(answer, json!({ "acknowledged": true, "shards_acknowledged": true }));
    assert_eq!(cluster.digests("a").await, copies);
    assert_eq!(cluster.index("a", 200, 210).await, 10);
    let count = cluster.counted("a").await;
    assert_eq!(count["count"], 210, "{count}");
}
