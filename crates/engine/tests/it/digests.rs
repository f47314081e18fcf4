//! `_narrows/digest`: the number by which checkers compare copies.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use engine::transport::{Failure, Request, ShardAction};
use policy::routing::shard_of;
use serde_json::{Value, json};
use world::Env;

use crate::common::between::{cluster_behind, cluster_behind_each};
use crate::common::{Cluster, ask, eventually, raw};
use crate::waits::create_on;

testbed::both_worlds!(
    each_acknowledged_write_is_told_once_in_its_last_version,
    copies_that_differ_have_digests_that_differ,
    a_digest_waits_for_what_the_manager_has_published,
    each_copy_is_asked_once,
    what_cannot_be_read_is_refused_by_name,
);

const SHARDS: u32 = 2;

/// The digests of two copies of each shard that have these documents.
fn digests_of(documents: &BTreeMap<String, Value>) -> Vec<(u64, u64, String)> {
    let of_shard = |shard: u32| {
        let documents = documents.iter().filter(|(id, _)| shard_of(id, SHARDS) == shard);
        let hash = |(id, source): (&String, &Value)| {
            store::document_hash(id, source.to_string().as_bytes())
        };
        let hashes: Vec<u64> = documents.map(hash).collect();
        let sum = hashes.iter().fold(0_u64, |sum, hash| sum.wrapping_add(*hash));
        (u64::from(shard), hashes.len() as u64, format!("{sum:016x}"))
    };
    (0..2 * SHARDS).map(|copy| of_shard(copy / 2)).collect()
}

async fn each_acknowledged_write_is_told_once_in_its_last_version(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", SHARDS, 1)).await;
    let mut held: BTreeMap<String, Value> = BTreeMap::new();
    let numbers = (0..30).chain(0..10).chain(10..12);
    for (nth, n) in numbers.enumerate() {
        let (id, document) = (format!("id{n}"), json!({ "n": nth }));
        c.must("PUT", &format!("/a/_doc/{id}"), document.clone()).await;
        held.insert(id, document);
        // Some of what is written anew or deleted is in files, and some is not even searchable.
        if nth == 20 {
            c.post("/a/_flush").await;
        }
    }
    for n in [3, 11, 15, 25] {
        let id = format!("id{n}");
        c.delete(&format!("/a/_doc/{id}")).await;
        held.remove(&id);
    }
    let again = json!({ "n": 1000 });
    c.must("PUT", "/a/_create/id3", again.clone()).await;
    held.insert("id3".to_owned(), again);
    assert_eq!(c.ask("PUT", "/a/_create/id4", json!({ "n": 1001 })).await.0, 409);
    let twice =
        "{\"index\":{\"_id\":\"id5\"}}\n{\"n\":1}\n{\"index\":{\"_id\":\"id5\"}}\n{\"n\":2}\n";
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk", twice.into()).await;
    assert_eq!(answer["errors"], false, "{answer}");
    held.insert("id5".to_owned(), json!({ "n": 2 }));

    assert_eq!(c.digests("a").await, digests_of(&held));
    c.post("/a/_forcemerge?max_num_segments=1").await;
    assert_eq!(c.digests("a").await, digests_of(&held), "merged, they are the same");
}

async fn copies_that_differ_have_digests_that_differ(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let digests = async |index: &str, documents: &[(&str, u64)]| {
        c.create(index, 1, 0).await;
        for (id, n) in documents {
            c.must("PUT", &format!("/{index}/_doc/{id}"), json!({ "n": n })).await;
        }
        c.digests(index).await
    };
    let whole = digests("whole", &[("1", 10), ("2", 20)]).await;
    assert_eq!(digests("later", &[("2", 20), ("1", 99), ("1", 10)]).await, whole);
    let others: [(&str, &[(&str, u64)]); 6] = [
        ("lacks", &[("1", 10)]),
        ("empty", &[]),
        ("more", &[("1", 10), ("2", 20), ("3", 30)]),
        ("older", &[("1", 10), ("2", 19)]),
        ("exchanged", &[("1", 20), ("2", 10)]),
        ("another", &[("1", 10), ("3", 20)]),
    ];
    for (index, documents) in others {
        assert_ne!(digests(index, documents).await, whole, "{index}");
    }
}

/// An index whose primary is on `one-0`.
async fn on_the_first(cluster: &Cluster) {
    create_on(cluster, "a", "one-0").await;
    cluster.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
}

async fn add_replica(cluster: &Cluster) {
    let anywhere =
        json!({ "index.routing.allocation.require._name": null, "index.number_of_replicas": 1 });
    cluster.must("PUT", "/a/_settings", anywhere).await;
}

fn rows((status, answer): &(u16, Value)) -> usize {
    assert_eq!(*status, 200, "{answer}");
    answer["shards"].as_array().unwrap().len()
}

/// Whoever asks has heard of the replica from the manager, and asks a node that has not.
async fn a_digest_waits_for_what_the_manager_has_published(env: Env) {
    let (between, cluster) = cluster_behind_each(&env, "one", 2, &[0, 1]).await;
    on_the_first(&cluster).await;
    between[0].hold(|request| matches!(request, Request::Finalize { .. }));
    add_replica(&cluster).await;
    eventually(&env, "the replica is about to join", async || between[0].held() > 0).await;
    between[1].hold(|request| matches!(request, Request::Publish(_)));
    between[0].be_honest();
    let are_started = |number: usize| {
        let state = cluster.node(number).state();
        state.shard("a", 0).unwrap().copies.iter().all(|copy| copy.is_started())
    };
    eventually(&env, "the manager has both copies started", async || are_started(0)).await;
    assert!(!are_started(1), "its node has not heard of it");
    let node = cluster.node(1).clone();
    let asking = env.spawn("asks for digests", async move {
        ask(&node, "GET", "/a/_narrows/digest?replicas=true", Value::Null).await
    });
    env.sleep(Duration::from_millis(300)).await;
    between[1].be_honest();
    assert_eq!(rows(&asking.await.unwrap()), 2, "of both copies");
}

async fn each_copy_is_asked_once(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    on_the_first(&cluster).await;
    add_replica(&cluster).await;
    cluster.green("a").await;
    let (asked, refuses): (Rc<Cell<u32>>, Rc<Cell<bool>>) = Default::default();
    let (counts, is_refused) = (asked.clone(), refuses.clone());
    between.change(move |request, answer| match request {
        Request::Shard(_, _, ShardAction::Digest) => {
            counts.set(counts.get() + 1);
            match is_refused.get() {
                true => Err(Failure::new(503, "unavailable_shards_exception", "it cannot read")),
                false => answer,
            }
        }
        _ => answer,
    });
    let node = cluster.node(0).clone();
    let digests = async |query: &str| {
        ask(&node, "GET", &format!("/a/_narrows/digest{query}"), Value::Null).await
    };
    assert_eq!((rows(&digests("").await), asked.get()), (1, 0), "of the primary alone");
    assert_eq!((rows(&digests("?replicas=true").await), asked.get()), (2, 1));
    refuses.set(true);
    let (status, answer) = digests("?replicas=true").await;
    assert_eq!((status, &answer["error"]["reason"]), (503, &json!("it cannot read")), "{answer}");
    assert_eq!(asked.get(), 2);
    refuses.set(false);
    assert_eq!(rows(&digests("?replicas=true").await), 2);
}

/// Never with the shards that can be read alone: what is not compared would count as equal.
async fn what_cannot_be_read_is_refused_by_name(env: Env) {
    let c = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    for path in ["gone/_narrows/digest", "a,gone/_narrows/digest", "gone/_narrows/copies"] {
        let (status, answer) = c.ask("GET", &format!("/{path}"), Value::Null).await;
        let error = &answer["error"];
        assert_eq!((status, &error["type"]), (404, &json!("index_not_found_exception")), "{path}");
        assert!(error["reason"].as_str().unwrap().contains("[gone]"), "{error}");
    }
    let nowhere = json!({ "settings": { "index.routing.allocation.require._name": "nowhere" } });
    c.must("PUT", "/red?wait_for_active_shards=0", nowhere).await;
    let asked = ["", "?replicas=true"].map(|query| {
        let node = c.any().clone();
        let asking = async move {
            ask(&node, "GET", &format!("/a,red/_narrows/digest{query}"), Value::Null).await
        };
        env.spawn("asks for digests", asking)
    });
    for asking in asked {
        // It waits for a primary, and not for ever.
        let answered = env.timeout(Duration::from_secs(60), asking).await;
        let (status, answer) = answered.expect("an answer").unwrap();
        assert_eq!(status, 503, "{answer}");
        let reason = answer["error"]["reason"].as_str().unwrap();
        assert!(reason.contains("[red][0] has no started primary"), "{reason}");
    }
}
