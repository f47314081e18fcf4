//! Deletes, updates and copies of what a query finds: beside what a ledger says of each document.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::Env;

use super::lines;
use crate::common::{Cluster, ask, eventually, raw, settled};

testbed::real_world!(
    what_is_found_is_deleted_and_nothing_else,
    an_update_reads_documents_by_the_mappings_of_now,
    an_index_is_copied_into_another,
    what_was_written_meanwhile_is_a_conflict,
    pages_are_held_back_and_end_with_their_client,
    what_is_not_offered_is_refused_by_name,
);
testbed::virtual_world!(the_virtual_world_has_no_documents_to_find);

async fn the_virtual_world_has_no_documents_to_find(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 2, 0), 50).await;
    for (path, body) in [
        ("/a/_delete_by_query", json!({"query": {"match_all": {}}})),
        ("/a/_update_by_query", json!({})),
        ("/_reindex", json!({"source": {"index": "a"}, "dest": {"index": "b"}})),
    ] {
        c.refuses(400, "holds sizes and no documents", "POST", path, body).await;
    }
    assert_eq!(count(&c, "a").await, 50);
    settled(&c).await;
}

async fn count(c: &Cluster, index: &str) -> u64 {
    c.counted(index).await["count"].as_u64().unwrap()
}

/// Every document of an index: its version and source.
async fn all(c: &Cluster, index: &str) -> BTreeMap<String, (u64, Value)> {
    let path = format!("/{index}/_search?size=1000&version=true");
    let found = c.must("POST", &path, json!({})).await;
    let one = |hit: &Value| {
        let version = hit["_version"].as_u64().unwrap();
        (hit["_id"].as_str().unwrap().to_owned(), (version, hit["_source"].clone()))
    };
    found["hits"]["hits"].as_array().unwrap().iter().map(one).collect()
}

async fn filled(env: &Env, nodes: usize) -> Cluster {
    let c = Cluster::start(env, "c", nodes).await;
    c.create("a", 3, nodes as u32 - 1).await;
    c.index("a", 0, 200).await;
    c.post("/a/_refresh").await;
    c
}

fn counts(said: &Value, names: &[&str]) -> Vec<u64> {
    names
        .iter()
        .map(|name| said[name].as_u64().unwrap_or_else(|| panic!("{name}: {said}")))
        .collect()
}

async fn what_is_found_is_deleted_and_nothing_else(env: Env) {
    let c = filled(&env, 2).await;
    let mut ledger = all(&c, "a").await;
    let query = json!({"query": {"range": {"n": {"gte": 20, "lt": 120}}}});
    let path = "/a/_delete_by_query?scroll_size=7&refresh=true&slices=auto";
    let said = c.must("POST", path, query.clone()).await;
    let names = ["total", "deleted", "batches", "version_conflicts", "noops"];
    assert_eq!(counts(&said, &names), [100, 100, 15, 0, 0], "{said}");
    assert_eq!((&said["timed_out"], &said["failures"]), (&json!(false), &json!([])));
    assert_eq!(said["retries"], json!({"bulk": 0, "search": 0}));
    assert_eq!((said.get("updated"), said.get("created")), (None, None));
    ledger.retain(|_, (_, source)| !(20..120).contains(&source["n"].as_u64().unwrap()));
    assert_eq!(all(&c, "a").await, ledger);
    let said = c.must("POST", "/a/_delete_by_query", query).await;
    assert_eq!(counts(&said, &["total", "deleted", "batches"]), [0, 0, 0]);
    // No more than was asked for, by parameter or body.
    let everything = json!({"query": {"match_all": {}}, "max_docs": 30.0, "size": 20});
    let said = c.must("POST", "/a/_delete_by_query?refresh", everything).await;
    assert_eq!(counts(&said, &["total", "deleted", "batches"]), [30, 30, 2], "{said}");
    let everything = json!({"query": {"match_all": {}}});
    let path = "/a/_delete_by_query?size=5&max_docs=5&refresh";
    assert_eq!(c.must("POST", path, everything.clone()).await["deleted"], 5);
    assert_eq!(all(&c, "a").await.len(), 65);
    let said = c.must("POST", "/a,b*/_delete_by_query?refresh", everything).await;
    assert_eq!((said["deleted"].as_u64(), count(&c, "a").await), (Some(65), 0));
    let digests = c.digests("a").await;
    assert!(digests.iter().all(|(_, documents, _)| *documents == 0), "{digests:?}");
    settled(&c).await;
}

async fn an_update_reads_documents_by_the_mappings_of_now(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let mapping = json!({"dynamic": false, "properties": {"n": {"type": "long"}}});
    c.make("a", json!({"mappings": mapping})).await;
    c.index("a", 0, 60).await;
    c.post("/a/_refresh").await;
    c.must("PUT", "/a/_mapping", json!({"properties": {"word": {"type": "keyword"}}})).await;
    let query = json!({"query": {"term": {"word": "w3"}}});
    let hits = async || {
        c.must("POST", "/a/_search", query.clone()).await["hits"]["total"]["value"].clone()
    };
    assert_eq!(hits().await, 0);
    let before = all(&c, "a").await;
    let said = c.post("/a/_update_by_query?refresh&scroll_size=25").await;
    assert_eq!(
        counts(&said, &["total", "updated", "deleted", "batches"]),
        [60, 60, 0, 3],
        "{said}"
    );
    assert_eq!(hits().await, 60u64.div_ceil(7) - u64::from(60 % 7 <= 3));
    for (id, (version, source)) in all(&c, "a").await {
        assert_eq!((version, &source), (before[&id].0 + 1, &before[&id].1));
    }
    settled(&c).await;
}

async fn an_index_is_copied_into_another(env: Env) {
    let c = filled(&env, 2).await;
    let names = ["total", "created", "updated", "batches", "version_conflicts"];
    let body = json!({
        "source": {"index": "a", "size": "40", "query": {"range": {"n": {"lt": 90}}}},
        "dest": {"index": "b"},
    });
    let said = c.must("POST", "/_reindex?refresh", body.clone()).await;
    assert_eq!(counts(&said, &names), [90, 90, 0, 3, 0], "{said}");
    let (from, to) = (all(&c, "a").await, all(&c, "b").await);
    assert!(to.len() == 90 && to.iter().all(|(id, document)| from[id] == *document));
    // Again: they are replaced, or left where they must be new.
    let said = c.must("POST", "/_reindex", body.clone()).await;
    assert_eq!(counts(&said, &names), [90, 0, 90, 3, 0]);
    let new = json!({
        "source": {"index": ["a"], "_source": ["n"]}, "dest": {"index": "b", "op_type": "create"},
        "conflicts": "proceed",
    });
    let said = c.must("POST", "/_reindex?refresh", new.clone()).await;
    assert_eq!(counts(&said, &names), [200, 110, 0, 1, 90], "{said}");
    assert_eq!(all(&c, "b").await["150"].1, json!({"n": 150}));
    let mut aborts = new;
    aborts["conflicts"] = json!("abort");
    let (status, said) = c.ask("POST", "/_reindex", aborts).await;
    assert_eq!((status, said["version_conflicts"].as_u64()), (409, Some(200)), "{said}");
    let failure = &said["failures"][0];
    assert_eq!((&failure["status"], &failure["index"]), (&json!(409), &json!("b")), "{failure}");
    assert_eq!(failure["cause"]["type"], "version_conflict_engine_exception");
    // By their versions: of these two one is newer than its copy, and the other as new.
    for id in ["3", "150"] {
        c.must("PUT", &format!("/a/_doc/{id}?refresh=true"), json!({"n": 1000})).await;
    }
    let by_version = |kind: &str| {
        let dest = json!({"index": "b", "version_type": kind});
        json!({"source": {"index": "a"}, "dest": dest, "conflicts": "proceed"})
    };
    let (from, to) = (all(&c, "a").await, all(&c, "b").await);
    let newer = from.iter().filter(|(id, (version, _))| *version > to[*id].0).count() as u64;
    assert!(newer > 0 && newer < 200, "{newer}");
    let said = c.must("POST", "/_reindex?refresh", by_version("external")).await;
    assert_eq!(counts(&said, &names), [200, 0, newer, 1, 200 - newer], "{said}");
    let to = all(&c, "b").await;
    assert!(from.iter().all(|(id, (version, _))| to[id].0 >= *version));
    assert_eq!(to["150"], from["150"]);
    let said = c.must("POST", "/_reindex", by_version("external")).await;
    assert_eq!(counts(&said, &names), [200, 0, 0, 1, 200], "{said}");
    let said = c.must("POST", "/_reindex", by_version("external_gte")).await;
    assert!(said["updated"].as_u64() >= Some(newer), "{said}");
    settled(&c).await;
}

/// Each page is written only where nothing else has written since the first was read.
async fn what_was_written_meanwhile_is_a_conflict(env: Env) {
    let c = filled(&env, 1).await;
    let node = c.any().clone();
    // The first waits for seconds before its second page, which finds what was written meanwhile.
    for (proceeds, rate, status) in [("abort", 1, 409), ("proceed", 50, 200)] {
        let path = format!(
            "/a/_delete_by_query?scroll_size=10&requests_per_second={rate}&conflicts={proceeds}&refresh"
        );
        let before = count(&c, "a").await;
        let deleting = env.spawn("deletes", {
            let node = node.clone();
            async move { ask(&node, "POST", &path, json!({"query": {"match_all": {}}})).await }
        });
        eventually(&env, "a page is deleted", async || count(&c, "a").await < before).await;
        // What is left is written once more, and none of it is to be lost.
        let mut actions = Vec::new();
        for id in all(&c, "a").await.into_keys() {
            actions.push(json!({"index": {"_index": "a", "_id": id}}));
            actions.push(json!({"n": 7, "round": proceeds}));
        }
        let (_, answer) = raw(&node, "POST", "/_bulk", lines(&actions)).await;
        let items = answer["items"].as_array().unwrap();
        let kept = items.iter().filter(|item| item["index"]["result"] == "updated").count() as u64;
        let (found, said) = deleting.await.unwrap();
        assert_eq!(found, status, "{said}");
        let conflicts = said["version_conflicts"].as_u64().unwrap();
        if status == 200 {
            assert_eq!(counts(&said, &["total"]), [said["deleted"].as_u64().unwrap() + conflicts]);
            assert_eq!(said["failures"], json!([]));
        } else {
            assert!(conflicts > 0 && conflicts <= 10, "{said}");
            assert_eq!(said["failures"].as_array().unwrap().len() as u64, conflicts);
        }
        c.post("/a/_refresh").await;
        let left = all(&c, "a").await;
        let written = left.values().filter(|(_, source)| source["round"] == proceeds).count();
        assert!(written as u64 >= kept, "{written} of {kept} are there");
    }
}

async fn pages_are_held_back_and_end_with_their_client(env: Env) {
    let c = filled(&env, 1).await;
    let query = json!({"query": {"match_all": {}}, "max_docs": 20});
    let began = env.now();
    let path = "/a/_delete_by_query?scroll_size=10&requests_per_second=20&refresh";
    let said = c.must("POST", path, query).await;
    assert!(env.now() - began >= Duration::from_millis(400), "ten at 20 in a second");
    assert_eq!(said["requests_per_second"], 20.0);
    assert!(said["throttled_millis"].as_u64().unwrap() > 0, "{said}");
    // A client that does not wait for the answer.
    let body = r#"{"query":{"match_all":{}}}"#;
    let text = format!(
        "POST /a/_delete_by_query?scroll_size=10&requests_per_second=10 HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = TcpStream::connect(c.any().http_address()).await.unwrap();
    client.write_all(text.as_bytes()).await.unwrap();
    eventually(&env, "a page is deleted", async || count(&c, "a").await < 180).await;
    let answered = env.timeout(Duration::ZERO, client.read_u8()).await;
    assert!(answered.is_err(), "it goes away before the second page");
    drop(client);
    eventually(&env, "it has ended", async || {
        let stats = c.get("/_nodes/stats/indices/search").await;
        let nodes = stats["nodes"].as_object().unwrap();
        nodes.values().all(|node| node["indices"]["search"]["open_contexts"] == 0)
    })
    .await;
    let left = count(&c, "a").await;
    assert!(left > 0 && left < 180, "{left} are left");
    env.sleep(Duration::from_millis(1500)).await;
    assert_eq!(count(&c, "a").await, left);
}

async fn what_is_not_offered_is_refused_by_name(env: Env) {
    let c = filled(&env, 1).await;
    let all = || json!({"query": {"match_all": {}}});
    let copy = |source: Value, dest: Value| json!({"source": source, "dest": dest});
    let to_b = |source: Value| copy(source, json!({"index": "b"}));
    let from_a = |dest: Value| copy(json!({"index": "a"}), dest);
    let delete = "/a/_delete_by_query";
    let script = json!({"script": {"source": "ctx._source.n++"}});
    for (path, body, why) in [
        (delete, json!({}), "query is missing"),
        (delete, json!({"query": {"matc_all": {}}}), "did you mean \\\"match_all\\\""),
        (delete, json!({"query": {"match_all": {}}, "max_doc": 1}), "unknown key [max_doc]"),
        (delete, json!({"query": {"match_all": {}}, "max_docs": 0}), "greater than 0"),
        (&format!("{delete}?max_docs=-1"), all(), "greater than 0, not [-1]"),
        (
            &format!("{delete}?max_docs=2"),
            json!({"query": {"match_all": {}}, "max_docs": 1}),
            "two different values [1] and [2]",
        ),
        (&format!("{delete}?size=3&max_docs=2"), all(), "two different values [2] and [3]"),
        (&format!("{delete}?conflicts=ignore"), all(), "but was [ignore]"),
        (&format!("{delete}?requests_per_second=0"), all(), "greater than 0"),
        (&format!("{delete}?slices=0"), all(), "[slices]"),
        (&format!("{delete}?scroll_size=10001"), all(), "index.max_result_window"),
        (&format!("{delete}?scroll_size=0"), all(), "not [0]"),
        (&format!("{delete}?from=1"), all(), "parameter [from]"),
        (&format!("{delete}?q=(x"), all(), "not closed"),
        (&format!("{delete}?refresh=wait_for"), all(), "wait_for"),
        ("/a/_update_by_query", script.clone(), "[script]"),
        ("/a/_update_by_query?pipeline=p", json!({}), "transform documents"),
        ("/_reindex", json!({}), "index must be specified"),
        ("/_reindex", from_a(json!({"index": "a"})), "its reading from [a]"),
        ("/_reindex", from_a(json!({})), "index must be specified"),
        ("/_reindex", from_a(json!({"index": "b", "pipeline": "p"})), "[pipeline] of a dest"),
        ("/_reindex", from_a(json!({"index": "b", "version_type": "force"})), "match [force]"),
        (
            "/_reindex",
            from_a(json!({"index": "b", "version_type": "external", "op_type": "create"})),
            "create operations",
        ),
        ("/_reindex", from_a(json!({"index": "b", "routing": "x"})), "routing must be unset"),
        ("/_reindex", to_b(json!({"index": "a", "remote": {"host": "h"}})), "[remote] of a source"),
        ("/_reindex", to_b(json!({"index": "a", "slice": {"id": 0}})), "[slice] of a source"),
        ("/a/_update_by_query", json!({"slice": {"id": 0, "max": 2}}), "[slice] is not supported"),
        ("/_reindex", to_b(json!({"query": {"match_all": {}}})), "_all"),
        ("/_reindex", to_b(json!({"index": ""})), "_all"),
        ("/_reindex", to_b(json!({"index": []})), "_all"),
    ] {
        c.refuses(400, why, "POST", path, body).await;
    }
    c.answers(404, "POST", "/none/_delete_by_query", all()).await;
    assert_eq!(count(&c, "a").await, 200);
    assert_eq!(c.ask("HEAD", "/b", Value::Null).await.0, 404, "nothing was made");
}
