//! Indices, their mappings, and documents in them.

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use super::lines;
use crate::common::{Cluster, ask, raw, refuses};

testbed::both_worlds!(
    makes_shows_and_deletes_indices,
    reads_and_writes_documents,
    takes_bulks,
    a_bulk_fails_by_item,
    acts_on_every_copy,
    indexes_fields_that_are_mapped_later,
    names_of_indices_may_have_dates;
    real:
    what_is_copied_goes_to_an_index_of_today,
);

/// A name with a date as it stands in a path.
fn encoded(name: &str) -> String {
    let signs = [('<', "%3C"), ('>', "%3E"), ('{', "%7B"), ('}', "%7D"), ('/', "%2F")];
    signs.iter().fold(name.to_owned(), |text, (sign, code)| text.replace(*sign, code))
}

async fn names_of_indices_may_have_dates(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let (dated, plain) = ("<a-{now/y{yyyy}}>", "<a-{2010||/y{yyyy}}>");
    c.must("PUT", "/a-2010", json!({"settings": {"number_of_replicas": 0}})).await;
    let path = encoded(plain);
    c.must("PUT", &format!("/{path}/_doc/1?refresh=true"), json!({"n": 1})).await;
    let read = c.must("GET", "/a-2010/_doc/1", Value::Null).await;
    assert_eq!((&read["_index"], &read["found"]), (&json!("a-2010"), &json!(true)));
    assert_eq!(c.must("GET", &format!("/{path},a-2*/_count"), Value::Null).await["count"], 1);
    let path = encoded(dated);
    let made = c.must("PUT", &format!("/{path}"), Value::Null).await;
    let name = made["index"].as_str().unwrap().to_owned();
    assert!(name.len() == "a-2010".len() && name.starts_with("a-"), "{made}");
    let body = lines(&[
        json!({"index": {"_index": plain, "_id": "2"}}),
        json!({"n": 2}),
        json!({"index": {"_index": dated, "_id": "2"}}),
        json!({"n": 2}),
    ]);
    let (_, answer) = raw(c.any(), "POST", "/_bulk", body).await;
    let names = [0, 1].map(|at| answer["items"][at]["index"]["_index"].clone());
    assert_eq!(names, [json!("a-2010"), json!(name)], "{answer}");
    let docs = json!({"docs": [{"_index": plain, "_id": "2"}]});
    let read = c.must("POST", "/_mget", docs).await;
    assert_eq!(read["docs"][0]["_index"], "a-2010", "{read}");
    let body = lines(&[json!({"index": plain}), json!({"size": 0})]);
    let (_, found) = raw(c.any(), "POST", "/_msearch", body).await;
    assert_eq!(found["responses"][0]["status"], 200, "{found}");
    let bad = lines(&[
        json!({"index": {"_index": "b", "_id": "1"}}),
        json!({}),
        json!({"delete": {"_index": "<b-{x}>", "_id": "1"}}),
    ]);
    refuses(raw(c.any(), "POST", "/_bulk", bad).await, 400, "parse_exception");
    assert_eq!(c.ask("HEAD", "/b", Value::Null).await.0, 404);
    assert_eq!(c.ask("DELETE", &format!("/{}", encoded("<a-{now")), Value::Null).await.0, 400);
    let alias = json!({"actions": [{"add": {"index": plain, "alias": "old"}}]});
    c.must("POST", "/_aliases", alias).await;
    assert_eq!(c.must("GET", "/old/_doc/2", Value::Null).await["_index"], "a-2010");
    c.must("DELETE", &format!("/{path}"), Value::Null).await;
    assert_eq!(c.ask("HEAD", &format!("/{name}"), Value::Null).await.0, 404);
}

async fn what_is_copied_goes_to_an_index_of_today(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    c.must("PUT", "/a-2010/_doc/1?refresh=true", json!({"n": 1})).await;
    let body = json!({
        "source": {"index": "<a-{2010||/y{yyyy}}>"}, "dest": {"index": "<b-{2010||/y{yyyy}}>"},
    });
    assert_eq!(c.must("POST", "/_reindex", body).await["created"], 1);
    assert_eq!(c.must("GET", "/b-2010/_doc/1", Value::Null).await["found"], true);
}

async fn makes_shows_and_deletes_indices(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let body = json!({
        "settings": {"index": {"number_of_shards": 2, "number_of_replicas": "0"}},
        "mappings": {"properties": {"place": {"type": "geo_point"}}},
    });
    let made = c.must("PUT", "/a", body).await;
    assert_eq!(made, json!({"acknowledged": true, "shards_acknowledged": true, "index": "a"}));
    refuses(c.ask("PUT", "/a", Value::Null).await, 400, "resource_already_exists_exception");
    assert_eq!(c.ask("HEAD", "/a", Value::Null).await.0, 200);
    let shown = c.get("/a").await;
    assert_eq!(shown["a"]["aliases"], json!({}));
    assert_eq!(shown["a"]["mappings"]["properties"]["place"]["type"], "geo_point");
    let index = &shown["a"]["settings"]["index"];
    assert_eq!((&index["number_of_shards"], &index["provided_name"]), (&json!("2"), &json!("a")));

    c.must("PUT", "/a/_mapping", json!({"properties": {"name": {"type": "keyword"}}})).await;
    let mapping = c.get("/a/_mapping").await;
    assert_eq!(mapping["a"]["mappings"]["properties"]["name"]["type"], "keyword");
    assert_eq!(mapping["a"]["mappings"]["properties"]["place"]["type"], "geo_point");
    for (wrong, said) in [
        (json!({"properties": {"name": {"type": "long"}}}), "cannot be changed"),
        (json!({"properties": {"age": {"type": "lnog"}}}), "did you mean \"long\""),
    ] {
        let answer = c.answers(400, "PUT", "/a/_mapping", wrong).await;
        assert!(answer["error"]["reason"].as_str().unwrap().contains(said), "{answer}");
    }

    c.must("PUT", "/a/_settings", json!({"index": {"refresh_interval": "30s"}})).await;
    let settings = c.get("/a/_settings/index.refresh*?flat_settings").await;
    assert_eq!(settings, json!({"a": {"settings": {"index.refresh_interval": "30s"}}}));
    assert_eq!(c.get("/a/_settings/index.priority").await, json!({}), "it is not set");
    let defaults = c.get("/a/_settings/index.priority?include_defaults&flat_settings").await;
    let expected = json!({"settings": {}, "defaults": {"index.priority": "1"}});
    assert_eq!(defaults, json!({ "a": expected }));
    let fixed = json!({"index.number_of_shards": 3});
    assert_eq!(c.ask("PUT", "/a/_settings", fixed.clone()).await.0, 400);
    assert_eq!(c.ask("PUT", "/a/_settings", json!({})).await.0, 400);
    c.must("PUT", "/a/_settings?preserve_existing", fixed).await;
    assert_eq!(c.ask("GET", "/a?include_type_name=true", Value::Null).await.0, 400);
    assert_eq!(c.ask("HEAD", "/a?include_type_name=true", Value::Null).await.0, 200);

    c.must("PUT", "/b", json!({"settings": {"number_of_replicas": 0}})).await;
    c.delete("/a,b*").await;
    assert_eq!(c.get("/_all").await, json!({}));
}

async fn reads_and_writes_documents(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 3, 1)).await;
    let made = c.must("PUT", "/a/_doc/x%2F1?refresh=true", json!({"n": 1})).await;
    assert_eq!((&made["result"], &made["_id"]), (&json!("created"), &json!("x/1")));
    assert_eq!(made["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));
    assert_eq!(made["forced_refresh"], true);
    // From the other node, which may have to ask for it.
    let (status, read) = ask(c.node(1), "GET", "/a/_doc/x%2F1", Value::Null).await;
    assert_eq!((status, &read["_source"], &read["found"]), (200, &json!({"n": 1}), &json!(true)));
    let (status, made) = c.ask("PUT", "/a/_doc/x%2F1", json!({"n": 2})).await;
    assert_eq!((status, &made["result"], &made["_version"]), (200, &json!("updated"), &json!(2)));
    let answer = c.ask("PUT", "/a/_create/x%2F1", json!({"n": 3})).await;
    refuses(answer, 409, "version_conflict_engine_exception");
    for create in ["create", "CREATE"] {
        let path = format!("/a/_doc/x%2F1?op_type={create}");
        assert_eq!(c.ask("PUT", &path, json!({"n": 3})).await.0, 409);
    }
    for (method, path, why) in [
        ("PUT", "/a/_create/x%2F1?op_type=index", "opType must be 'create'"),
        ("DELETE", "/a/_doc/x%2F1?op_type=create", "unrecognized parameter: [op_type]"),
        ("POST", "/_bulk?op_type=create", "unrecognized parameter: [op_type]"),
        ("POST", "/_bulk?require_data_stream=true", "[require_data_stream]"),
        ("GET", "/a/_doc/x%2F1?realtime=false", "[realtime] false"),
        ("GET", "/a/_mget?realtime=false", "[realtime] false"),
        ("GET", "/a/_doc/x%2F1?preference=_only_local", "[preference] _only_local"),
    ] {
        let body = if path.contains("_doc/") { Value::Null } else { json!({"ids": ["x/1"]}) };
        c.refuses(400, why, method, path, body).await;
    }
    let whole = json!({"ids": ["x/1"], "stored_fields": ["n"]});
    c.refuses(400, "unknown key [stored_fields]", "POST", "/a/_mget", whole).await;
    let refreshes = async || {
        let stats = c.get("/a/_stats/refresh").await;
        stats["_all"]["primaries"]["refresh"]["total"].as_u64().unwrap()
    };
    for (path, body) in [
        ("/a/_doc/x%2F1?refresh=true", Value::Null),
        ("/a/_mget?refresh=true", json!({"ids": ["x/1"]})),
    ] {
        c.must("PUT", "/a/_doc/x%2F1", json!({"n": 2})).await;
        let before = refreshes().await;
        c.must("GET", path, body).await;
        assert!(refreshes().await > before, "{path}");
    }
    assert_eq!(c.get("/a/_source/x%2F1").await, json!({"n": 2}));
    assert_eq!(c.ask("HEAD", "/a/_doc/x%2F1", Value::Null).await.0, 200);
    assert_eq!(c.get("/a/_doc/x%2F1?_source=false").await.get("_source"), None);

    let (status, made) = c.ask("POST", "/a/_doc", json!({"n": 4})).await;
    assert_eq!((status, made["_id"].as_str().unwrap().len()), (201, 20));
    let (status, gone) = c.ask("DELETE", "/a/_doc/x%2F1", Value::Null).await;
    assert_eq!((status, &gone["result"]), (200, &json!("deleted")));
    let (status, gone) = c.ask("DELETE", "/a/_doc/x%2F1", Value::Null).await;
    assert_eq!((status, &gone["result"]), (404, &json!("not_found")));
    let (status, read) = c.ask("GET", "/a/_doc/x%2F1", Value::Null).await;
    assert_eq!((status, read), (404, json!({"_index": "a", "_id": "x/1", "found": false})));
    assert_eq!(c.ask("HEAD", "/a/_doc/x%2F1", Value::Null).await.0, 404);
    assert_eq!(c.ask("GET", "/a/_source/x%2F1", Value::Null).await.0, 404);
    if !env.is_virtual() {
        let answer = c.ask("PUT", "/a/_doc/y", json!({"place": "nowhere"})).await;
        refuses(answer, 400, "mapper_parsing_exception");
    }
    assert_eq!(c.ask("PUT", "/a/_doc/y?pipeline=z", json!({})).await.0, 400);
    // An index that is written to is made.
    let (status, made) = c.ask("PUT", "/fresh/_doc/1", json!({"any": {"thing": [1, 2]}})).await;
    assert_eq!((status, &made["_shards"]["total"]), (201, &json!(2)));
    assert_eq!(c.get("/fresh/_source/1").await, json!({"any": {"thing": [1, 2]}}));
}

async fn takes_bulks(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 3, 1)).await;
    let body = lines(&[
        json!({"index": {}}),
        json!({"n": 1}),
        json!({"create": {"_id": "x"}}),
        json!({"n": 2}),
        json!({"index": {"_id": "x"}}),
        json!({"n": 3}),
        json!({"delete": {"_id": "x"}}),
        json!({"delete": {"_id": "x"}}),
        json!({"index": {"_index": "b", "_id": 7}}),
        json!({"n": 4}),
    ]);
    let (status, answer) = raw(c.node(1), "POST", "/a/_bulk?refresh=true", body).await;
    assert_eq!(status, 200);
    assert_eq!(answer["errors"], false, "{answer}");
    let items = answer["items"].as_array().unwrap();
    let results: Vec<(&str, u64)> = items
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap())
        .map(|item| (item["result"].as_str().unwrap(), item["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        results,
        [
            ("created", 201),
            ("created", 201),
            ("updated", 200),
            ("deleted", 200),
            ("not_found", 404),
            ("created", 201)
        ]
    );
    assert_eq!(items[0]["index"]["_id"].as_str().unwrap().len(), 20);
    assert_eq!(items[0]["index"]["_shards"]["successful"], 2);
    assert_eq!(
        items[1]["create"]["_seq_no"].as_u64().unwrap() + 1,
        items[2]["index"]["_seq_no"].as_u64().unwrap()
    );
    assert_eq!(items[5]["index"]["_index"], "b");
    assert_eq!(items[5]["index"]["_id"], "7");
    c.post("/_refresh").await;
    assert_eq!(c.get("/_count").await["count"], 2);

    let body = lines(&[json!({"index": {}}), json!({"n": 1})]);
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk?filter_path=errors,took", body).await;
    assert_eq!(answer["errors"], false);
    assert_eq!(answer.get("items"), None);
    assert!(answer["took"].is_u64());
}

async fn a_bulk_fails_by_item(env: Env) {
    let c = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    let body = lines(&[
        json!({"create": {"_id": "x"}}),
        json!({"n": 1}),
        json!({"create": {"_id": "x"}}),
        json!({"n": 2}),
        json!({"update": {"_id": "x"}}),
        json!({"doc": {"n": 3}}),
        json!({"delete": {"_index": "gone", "_id": "x"}}),
        json!({"index": {"_index": "BAD", "_id": "x"}}),
        json!({"n": 4}),
        json!({"index": {"_id": ""}}),
        json!({"n": 5}),
    ]);
    let (status, answer) = raw(c.any(), "POST", "/a/_bulk", body).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(true)));
    let items: Vec<&Value> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap())
        .collect();
    let kinds: Vec<(u64, &Value)> = items
        .iter()
        .map(|item| (item["status"].as_u64().unwrap(), &item["error"]["type"]))
        .collect();
    assert_eq!(
        kinds,
        [
            (201, &Value::Null),
            (409, &json!("version_conflict_engine_exception")),
            (200, &Value::Null),
            (404, &json!("index_not_found_exception")),
            (400, &json!("invalid_index_name_exception")),
            (400, &json!("illegal_argument_exception")),
        ]
    );
    if !env.is_virtual() {
        let body = lines(&[
            json!({"index": {}}),
            json!({"n": "seven"}),
            json!({"index": {}}),
            json!({"n": 7}),
        ]);
        let (_, answer) = raw(c.any(), "POST", "/a/_bulk", body).await;
        assert_eq!(answer["items"][0]["index"]["error"]["type"], "mapper_parsing_exception");
        assert_eq!(answer["items"][1]["index"]["status"], 201);
        for bad in [&b"{\"x\":\"\xff\"}"[..], br#"{"x":1e400}"#, br#"{"x":["\ud800"]}"#] {
            let body = [b"{\"index\":{}}\n", bad, b"\n{\"index\":{}}\n{\"n\":7}\n"].concat();
            let (_, answer) = raw(c.any(), "POST", "/a/_bulk", body.into()).await;
            let refused = &answer["items"][0]["index"];
            assert_eq!((&refused["status"], &answer["errors"]), (&json!(400), &json!(true)));
            assert_eq!(refused["error"]["type"], "mapper_parsing_exception", "{answer}");
            assert_eq!(answer["items"][1]["index"]["status"], 201);
            let (status, answer) =
                raw(c.any(), "PUT", "/a/_doc/bad", Bytes::from_static(bad)).await;
            let kind = &answer["error"]["type"];
            assert_eq!((status, kind), (400, &json!("mapper_parsing_exception")), "{answer}");
        }
    }
    for bad in [&b"{\"index\":{\"_id\":\"\xff\"}}\n{}\n"[..], b"{\"index\":{\"_id\":1e400}}\n{}\n"]
    {
        let (status, answer) = raw(c.any(), "POST", "/a/_bulk", Bytes::from_static(bad)).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["reason"].as_str().unwrap().contains("line [1]"), "{answer}");
    }
    let (status, answer) =
        raw(c.any(), "POST", "/a/_bulk", Bytes::from_static(b"{\"index\":{}}\n{}")).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["reason"].as_str().unwrap().contains("terminated by a newline"));
}

async fn acts_on_every_copy(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 2, 1), 100).await;
    let count = c.must("GET", "/a/_count", json!({"query": {"match_all": {}}})).await;
    assert_eq!(count["count"], 100);
    let shards = json!({"total": 2, "successful": 2, "skipped": 0, "failed": 0});
    assert_eq!(count["_shards"], shards);
    for path in [
        "/a/_refresh",
        "/_flush?force=true&wait_if_ongoing=true",
        "/a/_forcemerge?max_num_segments=1",
    ] {
        let done = c.post(path).await;
        assert_eq!(done["_shards"], json!({"total": 4, "successful": 4, "failed": 0}), "{path}");
    }
    let rows = c.get("/_cat/shards/a?format=json&h=segments.count,docs,state").await;
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        assert_eq!(row["segments.count"], "1", "{row}");
        assert_eq!(row["state"], "STARTED", "{row}");
    }
    let (status, counted) = c.ask("GET", "/a/_count", json!({"query": {"term": {"n": 1}}})).await;
    if env.is_virtual() {
        let cause = &counted["error"]["root_cause"][0]["reason"];
        assert!(cause.as_str().unwrap().contains("no documents"), "{counted}");
        assert_eq!(status, 400);
    } else {
        assert_eq!((status, &counted["count"]), (200, &json!(1)), "{counted}");
    }
    assert_eq!(c.ask("POST", "/a/_forcemerge?max_num_segments=0", Value::Null).await.0, 400);
    let path = "/a/_flush?force=true&wait_if_ongoing=false";
    assert_eq!(c.ask("POST", path, Value::Null).await.0, 400);

    let primaries = c.get("/a/_narrows/digest").await;
    let all = c.get("/a/_narrows/digest?replicas=true").await;
    let (primaries, all) =
        (primaries["shards"].as_array().unwrap(), all["shards"].as_array().unwrap());
    assert_eq!((primaries.len(), all.len()), (2, 4));
    assert_eq!(primaries.iter().map(|row| row["documents"].as_u64().unwrap()).sum::<u64>(), 100);
    for row in all {
        let same = |p: &&Value| p["shard"] == row["shard"] && p["content"] == row["content"];
        assert!(primaries.iter().any(|primary| same(&primary)), "{row}");
        assert_eq!(row["content"].as_str().unwrap().len(), 16);
        assert!(row["node"].as_str().unwrap().starts_with("c-"));
    }
}

/// Documents are parsed in the real world alone; elsewhere `_count` says that it cannot tell.
async fn indexes_fields_that_are_mapped_later(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 20).await;
    let exists = |field: &str| json!({"query": {"exists": {"field": field}}});
    let added = json!({"properties": {"later": {"properties": {"tag": {"type": "keyword"}}}}});
    let (status, answer) = c.ask("GET", "/a/_count", exists("later.tag")).await;
    // A field that is not mapped is in no document.
    let expected = if env.is_virtual() { (400, Value::Null) } else { (200, json!(0)) };
    assert_eq!((status, answer["count"].clone()), expected, "{answer}");
    c.must("PUT", "/a/_mapping", added).await;
    let shown = c.get("/a/_mapping").await;
    assert_eq!(
        shown["a"]["mappings"]["properties"]["later"]["properties"]["tag"]["type"],
        "keyword"
    );
    for n in 20..25 {
        let document = json!({"n": n, "later": {"tag": format!("t{n}")}});
        c.must("PUT", &format!("/a/_doc/{n}?refresh=true"), document).await;
    }
    assert_eq!(c.counted("a").await["count"], 25);
    let counted = c.ask("GET", "/a/_count", exists("later.tag")).await;
    if env.is_virtual() {
        assert_eq!(counted.0, 400, "{}", counted.1);
    } else {
        assert_eq!((counted.0, &counted.1["count"]), (200, &json!(5)), "{}", counted.1);
        assert_eq!(c.must("GET", "/a/_count", exists("n")).await["count"], 25);
    }
    let refused = c.ask("GET", "/a/_count", json!({"query": {"trem": {"n": 1}}})).await;
    assert_eq!((refused.0, &refused.1["error"]["type"]), (400, &json!("parsing_exception")));
}
