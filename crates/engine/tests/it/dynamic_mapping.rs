//! Fields that documents bring: mapped before a document is numbered, and the same on every copy.

use std::time::Duration;

use crate::common::pair::pair;
use crate::common::{Cluster, ask, eventually, raw};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    fields_are_mapped_by_their_first_values,
    what_does_not_fit_is_refused,
    nodes_that_add_fields_at_once_lose_none,
    of_two_types_at_once_one_is_refused,
    a_primary_lost_after_its_mapping_loses_no_write,
    without_a_manager_only_what_is_mapped_is_written,
    a_replica_that_comes_back_indexes_what_came_meanwhile,
    a_restart_keeps_what_documents_brought,
    a_follower_has_the_fields_of_its_leader;
    simulated:
    searches_that_wait_for_a_mapping_are_in_nobodys_way,
);

async fn made(env: &Env, nodes: usize, body: Value) -> Cluster {
    let cluster = Cluster::start(env, "c", nodes).await;
    cluster.make("a", body).await;
    cluster
}

/// Every node has a copy of each shard.
fn copies(shards: u32, replicas: u32) -> Value {
    json!({"settings": {"number_of_shards": shards, "number_of_replicas": replicas}})
}

async fn properties(cluster: &Cluster, index: &str) -> Value {
    let mapping = cluster.get(&format!("/{index}/_mapping")).await;
    mapping[index]["mappings"]["properties"].clone()
}

/// On every node's own copies a query finds so many documents. Documents of the virtual world have no fields.
async fn found_everywhere(cluster: &Cluster, query: Value, expected: u64) {
    if cluster.env.is_virtual() {
        return;
    }
    cluster.post("/a/_refresh").await;
    for node in cluster.nodes.values() {
        let path = "/a/_search?preference=_local";
        let (_, answer) = ask(node, "POST", path, json!({ "query": query })).await;
        assert_eq!(answer["_shards"]["failed"], 0, "{answer}");
        assert_eq!(answer["hits"]["total"]["value"], expected, "{query}: {answer}");
    }
}

async fn fields_are_mapped_by_their_first_values(env: Env) {
    let c = made(&env, 3, copies(2, 2)).await;
    let document = json!({
        "text": "Two words", "long": 5, "float": 1.5, "yes": true, "day": "2024-05-06", "none": null,
        "slashed": "2024/05/06", "list": [[], [7]], "o": {"p": {"q": "deep"}}, "d.o.t": 1, "empty": [],
    });
    c.must("PUT", "/a/_doc/1", document).await;
    let text =
        json!({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}});
    let format = "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis";
    let long = json!({"type": "long"});
    assert_eq!(
        properties(&c, "a").await,
        json!({
            "text": text, "long": long, "float": {"type": "float"}, "yes": {"type": "boolean"},
            "day": {"type": "date"}, "slashed": {"type": "date", "format": format}, "list": long,
            "o": {"properties": {"p": {"properties": {"q": text}}}},
            "d": {"properties": {"o": {"properties": {"t": long}}}},
        })
    );
    let version = |c: &Cluster| c.any().state().indices["a"].mapping_version;
    let before = version(&c);
    for id in 2..20 {
        let document = json!({"text": "other", "long": id, "o.p.q": "x", "none": [null]});
        c.must("PUT", &format!("/a/_doc/{id}"), document).await;
    }
    assert_eq!(version(&c), before, "nothing new came");
    for query in [
        json!({"match": {"text": "words"}}),
        json!({"term": {"text.keyword": "Two words"}}),
        json!({"range": {"float": {"gt": 1.2}}}),
        json!({"term": {"yes": true}}),
        json!({"range": {"day": {"gte": "2024-05-06", "lt": "2024-05-07"}}}),
        json!({"term": {"slashed": "2024/05/06"}}),
        json!({"term": {"list": 7}}),
        json!({"match": {"o.p.q": "deep"}}),
        json!({"term": {"d.o.t": 1}}),
    ] {
        found_everywhere(&c, query, 1).await;
    }
    if !env.is_virtual() {
        // A shard that never had such a document knows the field all the same.
        let body = json!({"sort": [{"d.o.t": "asc"}], "size": 30});
        let sorted = c.must("POST", "/a/_search", body).await;
        assert_eq!(sorted["_shards"]["failed"], 0, "{sorted}");
        assert_eq!(sorted["hits"]["hits"][0]["_id"], "1", "{sorted}");
    }
}

async fn refused(c: &Cluster, index: &str, document: Value) -> (String, String) {
    let (status, answer) = c.ask("PUT", &format!("/{index}/_doc/x"), document).await;
    assert_eq!(status, 400, "{answer}");
    let error = &answer["error"];
    (error["type"].as_str().unwrap().to_owned(), error["reason"].as_str().unwrap().to_owned())
}

async fn what_does_not_fit_is_refused(env: Env) {
    let mut body = copies(1, 0);
    body["settings"]["index.mapping.total_fields.limit"] = json!(4);
    body["mappings"] = json!({"properties": {
        "strict": {"dynamic": "strict", "properties": {}}, "shut": {"dynamic": false, "properties": {}},
    }});
    let c = made(&env, 1, body).await;
    c.must("PUT", "/a/_doc/1", json!({"n": 1, "shut": {"any": "thing"}})).await;
    let (kind, reason) = refused(&c, "a", json!({"strict": {"x": 1}, "other": 1})).await;
    assert_eq!(kind, "strict_dynamic_mapping_exception");
    assert!(reason.contains("introduction of [x] within [strict] is not allowed"), "{reason}");
    let (kind, reason) = refused(&c, "a", json!({"n": {"x": 1}, "other": 1})).await;
    assert_eq!(kind, "mapper_parsing_exception");
    assert!(reason.contains("field [n] of type [long]"), "{reason}");
    let (kind, reason) = refused(&c, "a", json!({"new": "has a keyword, too"})).await;
    assert_eq!(kind, "illegal_argument_exception");
    assert!(reason.contains("Limit of total fields [4] has been exceeded"), "{reason}");
    // One of a bulk request does not keep the others out.
    let lines = "{\"index\":{\"_id\":\"b1\"}}\n{\"a\":1,\"b\":1}\n{\"index\":{\"_id\":\"b2\"}}\n{\"a\":2}\n\
                 {\"index\":{\"_id\":\"b3\"}}\n{\"n\":\"word\"}\n{\"index\":{\"_id\":\"b4\"}}\n{\"n\":4}\n";
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk", lines.into()).await;
    let items = answer["items"].as_array().unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item["index"]["status"].clone()).collect();
    assert_eq!(statuses, [400, 201, 400, 201], "{answer}");
    let mapped = properties(&c, "a").await;
    let names: Vec<&String> = mapped.as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "n", "shut", "strict"]);
    assert_eq!(c.counted("a").await["count"], 3);
    let (status, answer) =
        c.ask("PUT", "/a/_mapping", json!({"properties": {"m": {"type": "long"}}})).await;
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("illegal_argument_exception")));
}

async fn nodes_that_add_fields_at_once_lose_none(env: Env) {
    let c = made(&env, 3, copies(3, 2)).await;
    let writing: Vec<_> = c
        .nodes
        .values()
        .enumerate()
        .map(|(number, node)| {
            let node = node.clone();
            env.spawn("writes", async move {
                for n in 0..8 {
                    let body =
                        json!({format!("f{number}_{n}"): n, "both": {format!("g{n}"): "word"}});
                    let path = format!("/a/_doc/{number}-{n}");
                    let (status, answer) = ask(&node, "PUT", &path, body).await;
                    assert_eq!(status, 201, "{answer}");
                }
            })
        })
        .collect();
    for task in writing {
        task.await.unwrap();
    }
    let mapped = properties(&c, "a").await;
    assert_eq!(mapped.as_object().unwrap().len(), 25, "{mapped}");
    assert_eq!(mapped["both"]["properties"].as_object().unwrap().len(), 8);
    for n in 0..8 {
        found_everywhere(&c, json!({"term": {format!("f1_{n}"): n}}), 1).await;
        found_everywhere(&c, json!({"match": {format!("both.g{n}"): "word"}}), 3).await;
    }
    let digests = c.digests("a").await;
    assert!(digests.chunks(3).all(|same| same.iter().all(|one| *one == same[0])), "{digests:?}");
}

async fn of_two_types_at_once_one_is_refused(env: Env) {
    let c = made(&env, 2, copies(8, 1)).await;
    let mut answers = Vec::new();
    let writing: Vec<_> = (0..16)
        .map(|number| {
            let node = c.nodes.values().nth(number % 2).unwrap().clone();
            let x = if number % 2 == 0 { json!(5) } else { json!({"y": 5}) };
            env.spawn("writes", async move {
                ask(&node, "PUT", &format!("/a/_doc/{number}"), json!({ "x": x })).await
            })
        })
        .collect();
    for task in writing {
        answers.push(task.await.unwrap());
    }
    let is_long = properties(&c, "a").await["x"] == json!({"type": "long"});
    for (number, (status, answer)) in answers.iter().enumerate() {
        match (number % 2 == 0) == is_long {
            true => assert_eq!(*status, 201, "{answer}"),
            false => {
                assert_eq!(*status, 400, "{answer}");
                assert_eq!(answer["error"]["type"], "mapper_parsing_exception", "{answer}");
            }
        }
    }
    let field = if is_long { "x" } else { "x.y" };
    found_everywhere(&c, json!({"term": {field: 5}}), 8).await;
}

async fn a_primary_lost_after_its_mapping_loses_no_write(env: Env) {
    let mut c = made(&env, 3, copies(1, 2)).await;
    let primary = |c: &Cluster| c.any().state().shard("a", 0)?.primary().node.clone();
    // Node 0 manages; the primary is to be another.
    if primary(&c).as_deref() == Some("c-0") {
        c.set(json!({"cluster.routing.allocation.exclude._name": "c-0"})).await;
        c.delete("/a").await;
        c.make("a", copies(1, 1)).await;
    }
    let lost: usize = primary(&c).unwrap()[2..].parse().unwrap();
    let node = c.node(0).clone();
    let writing = env.spawn("writes", async move {
        ask(&node, "PUT", "/a/_doc/1?timeout=60s", json!({"fresh": "word"})).await
    });
    // The moment at which the manager knows the field, and the document is nowhere yet.
    while c.node(0).state().indices["a"].mapping_version < 2 {
        env.sleep(Duration::from_micros(20)).await;
    }
    c.kill_node(lost).await;
    let (status, answer) = writing.await.unwrap();
    assert!(status == 201 || status == 200, "{answer}");
    c.start_node(lost).await;
    c.green("a").await;
    assert_eq!(properties(&c, "a").await["fresh"]["type"], "text");
    let digests = c.digests("a").await;
    assert!(digests.iter().all(|one| *one == digests[0] && one.1 == 1), "{digests:?}");
    found_everywhere(&c, json!({"match": {"fresh": "word"}}), 1).await;
}

async fn without_a_manager_only_what_is_mapped_is_written(env: Env) {
    let mut c = made(&env, 2, copies(1, 1)).await;
    c.set(json!({"cluster.routing.allocation.exclude._name": "c-0"})).await;
    c.must("PUT", "/b", copies(1, 0)).await;
    c.must("PUT", "/b/_doc/1", json!({"known": 1})).await;
    c.kill_node(0).await;
    let lines = "{\"index\":{\"_id\":\"2\"}}\n{\"known\":2}\n{\"index\":{\"_id\":\"3\"}}\n{\"unknown\":3}\n";
    let (_, answer) = raw(c.node(1), "POST", "/b/_bulk", lines.into()).await;
    assert_eq!(answer["items"][0]["index"]["status"], 201, "{answer}");
    assert_eq!(answer["items"][1]["index"]["status"], 503, "{answer}");
    c.start_node(0).await;
    c.green("b").await;
    c.must("PUT", "/b/_doc/3", json!({"unknown": 3})).await;
    assert_eq!(properties(&c, "b").await["unknown"]["type"], "long");
    assert_eq!(c.counted("b").await["count"], 3);
}

/// A field whose words are cut to their stems.
fn prose() -> Value {
    json!({"properties": {"prose": {"type": "text", "analyzer": "english"}}})
}

async fn a_replica_that_comes_back_indexes_what_came_meanwhile(env: Env) {
    let mut body = copies(1, 1);
    body["mappings"] = prose();
    let mut c = made(&env, 2, body).await;
    c.must("PUT", "/a/_doc/1", json!({"first": 1})).await;
    c.kill_node(1).await;
    c.must("PUT", "/a/_doc/2", json!({"first": 1, "second": 2})).await;
    c.start_node(1).await;
    for n in 3..30 {
        let body = json!({"first": 1, "second": 2, "prose": "copies", format!("more{n}"): true});
        c.must("PUT", &format!("/a/_doc/{n}"), body).await;
    }
    c.green("a").await;
    found_everywhere(&c, json!({"term": {"first": 1}}), 29).await;
    found_everywhere(&c, json!({"term": {"second": 2}}), 28).await;
    found_everywhere(&c, json!({"match": {"prose": "the copy"}}), 27).await;
    for n in 3..30 {
        found_everywhere(&c, json!({"term": {format!("more{n}"): true}}), 1).await;
    }
}

async fn a_restart_keeps_what_documents_brought(env: Env) {
    let mut c = made(&env, 2, copies(2, 1)).await;
    for n in 0..10 {
        c.must("PUT", &format!("/a/_doc/{n}"), json!({format!("f{n}"): n, "all": "word"})).await;
    }
    let before = properties(&c, "a").await;
    c.kill_all().await;
    c.start_all().await;
    c.green("a").await;
    assert_eq!(properties(&c, "a").await, before);
    found_everywhere(&c, json!({"match": {"all": "word"}}), 10).await;
    for n in 0..10 {
        found_everywhere(&c, json!({"term": {format!("f{n}"): n}}), 1).await;
    }
}

async fn a_follower_has_the_fields_of_its_leader(env: Env) {
    let pair = pair(&env, 20, 10 << 20, 0).await;
    pair.leader.must("PUT", "/a/_mapping", prose()).await;
    pair.leader.must("PUT", "/a/_doc/0", json!({"f0": 0, "prose": "leaders"})).await;
    let body = json!({"remote_cluster": "leader", "leader_index": "a"});
    // Documents bring fields while the follower recovers, and while it follows.
    let node = pair.leader.any().clone();
    let writing = env.spawn("writes", async move {
        for n in 1..20 {
            let body = json!({format!("f{n}"): n, "prose": "the following"});
            let (status, answer) = ask(&node, "PUT", &format!("/a/_doc/{n}"), body).await;
            assert_eq!(status, 201, "{answer}");
        }
    });
    pair.follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=1", body).await;
    writing.await.unwrap();
    eventually(&env, "the follower has all documents", async || {
        let (status, count) = pair.follower.ask("GET", "/b/_count", Value::Null).await;
        let _ = pair.follower.ask("POST", "/b/_refresh", Value::Null).await;
        status == 200 && count["count"] == 20
    })
    .await;
    assert_eq!(properties(&pair.follower, "b").await, properties(&pair.leader, "a").await);
    if !env.is_virtual() {
        for n in 0..20 {
            let query = json!({"query": {"term": {format!("f{n}"): n}}});
            let found = pair.follower.must("POST", "/b/_search", query).await;
            assert_eq!(found["hits"]["total"]["value"], 1, "f{n}: {found}");
        }
        let query = json!({"query": {"match": {"prose": "it follows"}}});
        let found = pair.follower.must("POST", "/b/_search", query).await;
        assert_eq!(found["hits"]["total"]["value"], 19, "{found}");
    }
}

/// A new mapping waits for a flush, which takes long where much is to be hashed, and searches of that index wait for
/// the mapping. They take no places meanwhile, which searches of other indices need.
async fn searches_that_wait_for_a_mapping_are_in_nobodys_way(env: Env) {
    let c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 3000).await;
    c.create("b", 1, 0).await;
    let host = env.host("c-0");
    let mut model = host.virtual_host_model().unwrap();
    model.costs.hash_bytes_per_s = 50_000;
    host.set_host_model(model);
    let ask_of = |method: &'static str, path: &'static str, body: Value| {
        let node = c.any().clone();
        env.spawn("asks", async move { ask(&node, method, path, body).await.0 })
    };
    let flush = ask_of("POST", "/a/_flush", Value::Null);
    env.sleep(Duration::from_millis(50)).await;
    c.must("PUT", "/a/_mapping", json!({"properties": {"new": {"type": "long"}}})).await;
    let counts = || json!({"size": 0, "query": {"match_all": {}}});
    let waiting: Vec<_> = (0..100).map(|_| ask_of("POST", "/a/_search", counts())).collect();
    env.sleep(Duration::from_millis(50)).await;
    let began = env.now();
    c.must("POST", "/b/_search", counts()).await;
    let took = env.now() - began;
    assert!(took < Duration::from_millis(50), "{took:?}");
    assert!(!flush.is_finished() && waiting.iter().all(|search| !search.is_finished()));
    for search in waiting {
        assert_eq!(search.await.unwrap(), 200);
    }
    assert_eq!(flush.await.unwrap(), 200);
}
