//! Documents that go to a shard by their `_routing`: written, read, searched, copied, followed, required.

use policy::routing::shard_of;
use serde_json::{Value, json};
use world::Env;

use super::lines;
use crate::common::pair::pair;
use crate::common::{Cluster, ask, eventually, raw, refuses};

testbed::both_worlds!(
    documents_are_read_and_written_by_their_routing,
    bulks_name_a_routing_for_each_action_or_for_all,
    searches_go_to_the_shards_of_their_routing,
    every_copy_has_the_routing,
    a_follower_has_the_routing,
    an_index_may_require_a_routing,
    an_index_has_the_routing_shards_that_it_names;
    real:
    hits_show_their_routing,
    what_a_query_finds_keeps_its_routing,
);

const SHARDS: u32 = 5;
const ROUTING: &str = "hello";

/// An id that would lead to another shard than [`ROUTING`], the `nth` of them.
fn id(nth: usize) -> String {
    let elsewhere = |id: &String| shard_of(id, SHARDS) != shard_of(ROUTING, SHARDS);
    (0..1000).map(|n| format!("id{n}")).filter(elsewhere).nth(nth).unwrap()
}

async fn start(env: &Env, replicas: u32) -> Cluster {
    Cluster::with(env, "c", 2, ("a", SHARDS, replicas)).await
}

async fn documents_are_read_and_written_by_their_routing(env: Env) {
    let c = start(&env, 1).await;
    let x = id(0);
    let path = format!("/a/_doc/{x}?routing={ROUTING}");
    let made = c.must("PUT", &path, json!({"n": 1})).await;
    assert_eq!(made["result"], "created");
    assert_eq!(made["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));
    assert_eq!(made.get("_routing"), None, "as in the field");
    let (status, read) = ask(c.node(1), "GET", &path, Value::Null).await;
    assert_eq!((status, &read["_routing"]), (200, &json!(ROUTING)));
    assert_eq!((&read["found"], &read["_source"]), (&json!(true), &json!({"n": 1})));
    assert_eq!(c.ask("GET", &format!("/a/_doc/{x}"), Value::Null).await.0, 404);
    assert_eq!(c.ask("HEAD", &path, Value::Null).await.0, 200);
    assert_eq!(c.get(&format!("/a/_source/{x}?routing={ROUTING}")).await, json!({"n": 1}));
    assert_eq!(c.ask("PUT", &format!("/a/_create/{x}?routing={ROUTING}"), json!({})).await.0, 409);

    let update = json!({"doc": {"m": 2}});
    assert_eq!(c.ask("POST", &format!("/a/_update/{x}"), update.clone()).await.0, 404);
    c.must("POST", &format!("/a/_update/{x}?routing={ROUTING}"), update).await;
    let read = c.get(&path).await;
    assert_eq!((&read["_routing"], &read["_source"]), (&json!(ROUTING), &json!({"m": 2, "n": 1})));
    let (seq_no, term) = (&read["_seq_no"], &read["_primary_term"]);
    let unchanged = format!("{path}&if_seq_no={seq_no}&if_primary_term={term}");
    c.must("PUT", &unchanged, json!({"n": 3})).await;
    assert_eq!(c.get(&path).await["_routing"], ROUTING);

    let is_twin = |routing: &String| shard_of(routing, SHARDS) == shard_of(ROUTING, SHARDS);
    let twin = (0..).map(|n| format!("r{n}")).find(is_twin).unwrap();
    c.must("POST", &format!("/a/_update/{x}?routing={twin}"), json!({"doc": {"m": 3}})).await;
    let read = c.get(&path).await;
    assert_eq!(read["_routing"], twin, "what the request says stands above what is there");

    let docs = json!({"docs": [{"_id": x, "routing": ROUTING}, {"_id": x}]});
    let read = c.must("POST", "/a/_mget", docs).await;
    assert_eq!(read["docs"][0]["found"], true);
    assert_eq!(read["docs"][1]["found"], false);
    assert_eq!(read["docs"][0]["_routing"], twin);
    let read = c.must("POST", &format!("/a/_mget?routing={ROUTING}"), json!({"ids": [x]})).await;
    assert_eq!(read["docs"][0]["found"], true);
    let none = json!({"docs": [{"_id": x, "routing": ""}, {"_id": x, "routing": null}]});
    let read = c.must("POST", &format!("/a/_mget?routing={ROUTING}"), none).await;
    assert_eq!(read["docs"][0]["found"], true);
    assert_eq!(read["docs"][1]["found"], true);

    assert_eq!(c.ask("DELETE", &format!("/a/_doc/{x}"), Value::Null).await.0, 404);
    assert_eq!(c.delete(&path).await["result"], "deleted");
    assert_eq!(c.ask("GET", &path, Value::Null).await.0, 404);
    // The empty one is none, and one without a routing says nothing of any.
    c.must("PUT", &format!("/a/_doc/{x}?routing="), json!({"n": 4})).await;
    assert_eq!(c.get(&format!("/a/_doc/{x}")).await.get("_routing"), None);
}

async fn bulks_name_a_routing_for_each_action_or_for_all(env: Env) {
    let c = start(&env, 1).await;
    let (x, y, z) = (id(0), id(1), id(2));
    let body = lines(&[
        json!({"index": {"_id": x, "routing": ROUTING}}),
        json!({"n": 1}),
        json!({"create": {"_id": y, "_routing": ROUTING}}),
        json!({"n": 2}),
        json!({"index": {"_id": z, "routing": "other"}}),
        json!({"n": 3}),
        json!({"update": {"_id": x, "routing": ROUTING}}),
        json!({"doc": {"n": 4}}),
        json!({"index": {"routing": 7}}),
        json!({"n": 5}),
    ]);
    let (status, answer) = raw(c.node(1), "POST", "/a/_bulk", body).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(false)), "{answer}");
    for (id, routing, n) in [(&x, ROUTING, 4), (&y, ROUTING, 2), (&z, "other", 3)] {
        let read = c.get(&format!("/a/_doc/{id}?routing={routing}")).await;
        assert_eq!((&read["_routing"], &read["_source"]["n"]), (&json!(routing), &json!(n)));
    }
    let made = answer["items"][4]["index"]["_id"].as_str().unwrap();
    let read = c.get(&format!("/a/_doc/{made}?routing=7")).await;
    assert_eq!(read["_routing"], "7");
    let body = lines(&[
        json!({"delete": {"_id": x}}),
        json!({"delete": {"_id": z, "routing": "other"}}),
        json!({"update": {"_id": "up"}}),
        json!({"doc": {"n": 6}, "doc_as_upsert": true}),
    ]);
    let (_, answer) = raw(c.node(0), "POST", &format!("/a/_bulk?routing={ROUTING}"), body).await;
    assert_eq!(answer["errors"], false, "{answer}");
    assert_eq!(answer["items"][0]["delete"]["result"], "deleted");
    assert_eq!(answer["items"][1]["delete"]["result"], "deleted");
    let read = c.get(&format!("/a/_doc/up?routing={ROUTING}")).await;
    assert_eq!(read["_routing"], ROUTING);
}

async fn searches_go_to_the_shards_of_their_routing(env: Env) {
    let c = start(&env, 0).await;
    for nth in 0..3 {
        c.must("PUT", &format!("/a/_doc/{}?routing={ROUTING}", id(nth)), json!({"n": nth})).await;
    }
    c.post("/a/_refresh").await;
    let elsewhere = id(0);
    let both = format!("{ROUTING},{elsewhere}");
    for (routing, shards, count) in
        [(ROUTING, 1, 3), (elsewhere.as_str(), 1, 0), (both.as_str(), 2, 3), ("", 5, 3)]
    {
        for (path, body) in [("_search", json!({"size": 0})), ("_count", Value::Null)] {
            let path = format!("/a/{path}?routing={routing}");
            let found = c.must("POST", &path, body).await;
            assert_eq!(found["_shards"]["total"], shards, "{path}: {found}");
            let total = found.get("count").unwrap_or(&found["hits"]["total"]["value"]);
            assert_eq!(total, count, "{path}: {found}");
        }
    }
    let body = [json!({"routing": ROUTING}), json!({"routing": null}), json!({"routing": [7]})]
        .map(|head| [head, json!({"size": 0})])
        .concat();
    let (_, found) = raw(c.node(0), "POST", "/a/_msearch", lines(&body)).await;
    let shards = [0, 1, 2].map(|n| found["responses"][n]["_shards"]["total"].clone());
    assert_eq!(shards, [1, i64::from(SHARDS), 1], "{found}");
    let point = c.post(&format!("/a/_search/point_in_time?keep_alive=1m&routing={ROUTING}")).await;
    assert_eq!(point["_shards"]["total"], 1, "{point}");
    let search = json!({"size": 0, "pit": {"id": point["pit_id"]}});
    assert_eq!(c.must("POST", "/_search", search.clone()).await["hits"]["total"]["value"], 3);
    c.refuses(400, "[routing] cannot be used", "POST", "/_search?routing=x", search).await;
}

/// Some come with files and some as operations; then the copies that were written first are gone.
async fn every_copy_has_the_routing(env: Env) {
    let mut c = start(&env, 0).await;
    let put = async |c: &Cluster, numbers: std::ops::Range<usize>| {
        for nth in numbers {
            c.must("PUT", &format!("/a/_doc/{}?routing=r{nth}", id(nth)), json!({"n": nth})).await;
        }
    };
    put(&c, 0..20).await;
    c.post("/a/_flush").await;
    c.must("PUT", "/a/_settings", json!({"index.number_of_replicas": 1})).await;
    c.green("a").await;
    put(&c, 20..40).await;
    let digests = c.digests("a").await;
    assert_eq!(digests.len(), 2 * SHARDS as usize);
    assert!(digests.chunks(2).all(|of_shard| of_shard[0] == of_shard[1]), "{digests:?}");
    c.kill_node(1).await;
    eventually(&env, "the other node has every document with its routing", async || {
        for nth in 0..40 {
            let path = format!("/a/_doc/{}?routing=r{nth}", id(nth));
            let (status, read) = c.ask("GET", &path, Value::Null).await;
            if status != 200 {
                return false;
            }
            assert_eq!(read["_routing"], format!("r{nth}"), "{read}");
        }
        true
    })
    .await;
}

async fn a_follower_has_the_routing(env: Env) {
    let pair = pair(&env, 10, 50_000_000, 20).await;
    let put = async |id: &str| {
        pair.leader.must("PUT", &format!("/a/_doc/{id}?routing={ROUTING}"), json!({"n": 1})).await;
    };
    put("with-the-files").await;
    pair.leader.post("/a/_flush").await;
    pair.follow("b").await;
    pair.complete(&env, "b").await;
    put("as-an-operation").await;
    for id in ["with-the-files", "as-an-operation"] {
        let path = format!("/b/_doc/{id}?routing={ROUTING}");
        eventually(&env, "the follower has the document", async || {
            let (status, read) = pair.follower.ask("GET", &path, Value::Null).await;
            status == 200 && read["_routing"] == ROUTING
        })
        .await;
    }
}

async fn an_index_may_require_a_routing(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let required = |yes: bool| json!({"_routing": {"required": yes}});
    let settings = json!({"number_of_replicas": 0});
    c.must("PUT", "/r", json!({"mappings": required(true), "settings": settings})).await;
    for (method, path, body) in [
        ("PUT", "/r/_doc/1", json!({"n": 1})),
        ("POST", "/r/_doc", json!({"n": 1})),
        ("GET", "/r/_doc/1", Value::Null),
        ("GET", "/r/_source/1", Value::Null),
        ("POST", "/r/_update/1", json!({"doc": {"n": 1}})),
        ("DELETE", "/r/_doc/1", Value::Null),
    ] {
        refuses(c.ask(method, path, body).await, 400, "routing_missing_exception");
    }
    let body = lines(&[
        json!({"index": {"_id": "1"}}),
        json!({"n": 1}),
        json!({"index": {"_id": "2", "routing": "r"}}),
        json!({"n": 2}),
    ]);
    let (_, answer) = raw(c.node(0), "POST", "/r/_bulk", body).await;
    let first = &answer["items"][0]["index"];
    assert_eq!(first["status"], 400);
    assert_eq!(first["error"]["type"], "routing_missing_exception");
    assert_eq!(first["error"]["reason"], "routing is required for [r]/[1]");
    assert_eq!(answer["items"][1]["index"]["result"], "created");
    let docs = json!({"docs": [{"_id": "2"}, {"_id": "2", "routing": "r"}]});
    let read = c.must("POST", "/r/_mget", docs).await;
    assert_eq!(read["docs"][0]["error"]["type"], "routing_missing_exception");
    assert_eq!(read["docs"][1]["found"], true);
    assert_eq!(c.get("/r/_mapping").await["r"]["mappings"]["_routing"], required(true)["_routing"]);

    c.must("PUT", "/s", json!({"settings": settings})).await;
    for (path, body, why) in [
        ("/r/_mapping", required(false), "[_routing] cannot be changed"),
        ("/s/_mapping", required(true), "[_routing] cannot be changed"),
        ("/t", json!({"mappings": {"_routing": {"required": "yes"}}}), "true or false"),
        ("/t", json!({"settings": {"index.routing_partition_size": 2}}), "routing_partition_size"),
        ("/s/_alias/t", json!({"routing": "1"}), "[routing]"),
        ("/s/_alias/t", json!({"search_routing": "1"}), "[search_routing]"),
    ] {
        c.refuses(400, why, "PUT", path, body).await;
    }
}

async fn an_index_has_the_routing_shards_that_it_names(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    // The shard of this routing is 521 of 640, 1 of 5.
    for (index, named, shard) in [("a", None, 4), ("b", Some("640"), 4), ("c", Some("5"), 1)] {
        let settings = json!({
            "number_of_shards": SHARDS, "number_of_routing_shards": named, "number_of_replicas": 0,
        });
        c.must("PUT", &format!("/{index}"), json!({"settings": settings})).await;
        c.must("PUT", &format!("/{index}/_doc/{ROUTING}?refresh=true"), json!({"n": 1})).await;
        let path = format!("/{index}/_count?preference=_shards:{shard}");
        assert_eq!(c.must("GET", &path, Value::Null).await["count"], 1, "{path}");
        let path = format!("/{index}/_doc/{ROUTING}");
        assert_eq!(c.must("GET", &path, Value::Null).await["found"], true, "{path}");
        let shown = c.must("GET", &format!("/{index}/_settings"), Value::Null).await;
        let shown = &shown[index]["settings"]["index"]["number_of_routing_shards"];
        assert_eq!(shown.as_str(), named, "{index}");
    }
    let wrong = json!({"settings": {"number_of_shards": 4, "number_of_routing_shards": 6}});
    let (status, said) = c.ask("PUT", "/d", wrong).await;
    let why = "it must be a multiple of index.number_of_shards, which is 4";
    assert!(status == 400 && said.to_string().contains(why), "{said}");
    let later = json!({"index.number_of_routing_shards": 10});
    assert_eq!(c.ask("PUT", "/a/_settings", later).await.0, 400);
}

async fn hits_show_their_routing(env: Env) {
    let c = start(&env, 0).await;
    c.must("PUT", &format!("/a/_doc/{}?routing={ROUTING}", id(0)), json!({"n": 1})).await;
    c.must("PUT", &format!("/a/_doc/{}?refresh=true", id(1)), json!({"n": 2})).await;
    let body = json!({"sort": ["n"], "aggs": {"best": {"top_hits": {"sort": ["n"]}}}});
    let found = c.must("POST", "/a/_search", body).await;
    for hits in [&found["hits"], &found["aggregations"]["best"]["hits"]] {
        assert_eq!(hits["hits"][0]["_routing"], ROUTING, "{found}");
        assert_eq!(hits["hits"][1].get("_routing"), None, "{found}");
    }
    // A single shard sends its documents at once, and so does the cache of documents.
    for _ in 0..2 {
        let path = format!("/a/_search?routing={ROUTING}&_source=false");
        let found = c.must("POST", &path, json!({})).await;
        assert_eq!(found["hits"]["hits"].as_array().unwrap().len(), 1);
        assert_eq!(found["hits"]["hits"][0]["_routing"], ROUTING);
    }
    let body = json!({"query": {"term": {"_routing": ROUTING}}});
    c.refuses(400, "[_routing] cannot be searched", "POST", "/a/_search", body).await;
}

async fn what_a_query_finds_keeps_its_routing(env: Env) {
    let c = start(&env, 0).await;
    for nth in 0..10 {
        c.must("PUT", &format!("/a/_doc/{}?routing={ROUTING}", id(nth)), json!({"n": nth})).await;
    }
    c.must("PUT", &format!("/a/_doc/{}?routing={}&refresh=true", id(10), id(10)), json!({"n": 10}))
        .await;
    let path = format!("/a/_update_by_query?routing={ROUTING}&refresh=true");
    assert_eq!(c.must("POST", &path, json!({})).await["updated"], 10);
    let read = c.get(&format!("/a/_doc/{}?routing={ROUTING}", id(3))).await;
    assert_eq!((&read["_routing"], &read["_version"]), (&json!(ROUTING), &json!(2)));

    let settings = json!({"number_of_shards": SHARDS, "number_of_replicas": 0});
    for (to, routing, read_by, shown) in [
        ("kept", json!(null), Some(ROUTING), json!(ROUTING)),
        ("dropped", json!("discard"), None, Value::Null),
        ("set", json!("=other"), Some("other"), json!("other")),
    ] {
        c.must("PUT", &format!("/{to}"), json!({"settings": settings})).await;
        let mut dest = json!({"index": to});
        if !routing.is_null() {
            dest["routing"] = routing;
        }
        let body = json!({"source": {"index": "a"}, "dest": dest});
        assert_eq!(c.must("POST", "/_reindex", body).await["created"], 11);
        let by = read_by.map_or(String::new(), |routing| format!("?routing={routing}"));
        let read = c.get(&format!("/{to}/_doc/{}{by}", id(3))).await;
        assert_eq!((&read["_routing"], &read["_source"]["n"]), (&shown, &json!(3)), "{to}");
    }
    let all = json!({"query": {"match_all": {}}});
    let done = c.must("POST", "/a/_delete_by_query?refresh=true", all).await;
    assert_eq!((&done["deleted"], &done["version_conflicts"]), (&json!(11), &json!(0)));
    assert_eq!(c.counted("a").await["count"], 0);
}
