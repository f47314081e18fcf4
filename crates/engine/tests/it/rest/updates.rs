//! Updates, conditional writes, and reads of many documents: the same on every copy.

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use super::lines;
use crate::common::{Cluster, ask, eventually, raw, refuses};

testbed::both_worlds!(
    updates_documents,
    updates_within_bulks,
    a_write_is_refused_where_another_came_between,
    clients_may_count_the_versions,
    concurrent_updates_lose_nothing,
    an_update_waits_for_its_primary,
    reads_many_documents,
);

/// As every write does. Half of the documents are on the node that is away.
async fn an_update_waits_for_its_primary(env: Env) {
    let mut c = Cluster::with(&env, "c", 2, ("a", 2, 0)).await;
    let ids: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    for id in &ids {
        c.must("PUT", &format!("/a/_doc/{id}"), json!({"late": false})).await;
    }
    c.kill_node(1).await;
    let node = c.node(0).clone();
    let lost = async || {
        let mut is_away = false;
        for id in &ids {
            is_away |= ask(&node, "GET", &format!("/a/_doc/{id}"), Value::Null).await.0 == 503;
        }
        is_away
    };
    eventually(&env, "some documents are away", lost).await;
    let updates: Vec<_> = ids
        .iter()
        .map(|id| {
            let (node, path) = (node.clone(), format!("/a/_update/{id}"));
            env.spawn("updates", async move {
                ask(&node, "POST", &path, json!({"doc": {"late": true}})).await
            })
        })
        .collect();
    c.start_node(1).await;
    for update in updates {
        let (status, said) = update.await.unwrap();
        assert_eq!((status, &said["result"]), (200, &json!("updated")), "{said}");
    }
}

async fn updates_documents(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    let answer = c.ask("POST", "/a/_update/1", json!({"doc": {"n": 1}})).await;
    refuses(answer, 404, "document_missing_exception");
    let body = json!({"doc": {"n": 1, "o": {"x": 1}}});
    let mut not_made = body.clone();
    not_made["doc_as_upsert"] = json!(false);
    let path = "/a/_update/1?doc_as_upsert=true";
    assert_eq!(c.ask("POST", path, not_made).await.0, 404, "the body stands above it");
    let (status, made) = c.ask("POST", path, body.clone()).await;
    assert_eq!((status, &made["result"], &made["_version"]), (201, &json!("created"), &json!(1)));
    let body = json!({"doc": body["doc"], "doc_as_upsert": true});
    let same = c.must("POST", "/a/_update/1", body).await;
    assert_eq!((&same["result"], &same["_version"]), (&json!("noop"), &json!(1)));
    assert_eq!(same["_seq_no"], made["_seq_no"]);
    assert_eq!(same["_shards"]["total"], 0);
    let body = json!({"doc": {"o": {"y": 2}}, "upsert": {"n": 9}});
    let changed = c.must("POST", "/a/_update/1?retry_on_conflict=2&refresh=true", body).await;
    assert_eq!((&changed["result"], &changed["_version"]), (&json!("updated"), &json!(2)));
    assert_eq!(c.get("/a/_doc/1").await["_source"], json!({"n": 1, "o": {"x": 1, "y": 2}}));
    for (path, body, status) in [
        ("/a/_update/1", json!({"script": {"source": "x"}}), 400),
        ("/a/_update/1?lang=painless", json!({"doc": {}}), 400),
        ("/a/_update/1", json!({"doc": {}, "_source": 5}), 400),
        ("/a/_update/1?if_seq_no=0", json!({"doc": {"n": 2}}), 400),
        ("/a/_update/1?if_seq_no=0&if_primary_term=1", json!({"doc": {"n": 2}, "upsert": {}}), 400),
        ("/a/_update/1?if_seq_no=0&if_primary_term=1", json!({"doc": {"n": 2}}), 409),
        (
            "/a/_update/1?if_seq_no=0&if_primary_term=1&retry_on_conflict=4000000000",
            json!({"doc": {"n": 2}}),
            400,
        ),
        ("/a/_update/1?if_seq_no=0&if_primary_term=1", json!({"doc": {"n": 1}}), 409),
    ] {
        let (found, said) = c.ask("POST", path, body).await;
        assert_eq!(found, status, "{path}: {said}");
    }
    for wrong in ["refresh=x", "wait_for_active_shards=x", "timeout=x"] {
        for path in ["_doc", "_update"] {
            let path = format!("/new/{path}/1?{wrong}");
            assert_eq!(c.ask("POST", &path, json!({"doc": {"n": 1}})).await.0, 400, "{path}");
        }
    }
    assert_eq!(c.ask("HEAD", "/new", Value::Null).await.0, 404, "what is refused makes no index");
    let answer = c.ask("POST", "/new/_update/1", json!({"doc": {"n": 1}})).await;
    refuses(answer, 404, "document_missing_exception");
    c.must("HEAD", "/new", Value::Null).await;
    // The document as it is then, whether that changed it or not.
    for (parameters, body, source) in [
        ("_source", json!({"doc": {}}), json!({"n": 1, "o": {"x": 1, "y": 2}})),
        (
            "_source_includes=o&_source_excludes=o.x",
            json!({"doc": {"o": {"y": 3}}}),
            json!({"o": {"y": 3}}),
        ),
        ("_source=false", json!({"doc": {"n": 2}, "_source": ["n"]}), json!({"n": 2})),
    ] {
        let said = c.must("POST", &format!("/a/_update/1?{parameters}"), body).await;
        let get = json!({
            "_seq_no": said["_seq_no"], "_primary_term": 1, "found": true, "_source": source,
        });
        assert_eq!(said["get"], get, "{parameters}");
    }
    let hidden = c.must("POST", "/a/_update/1?_source", json!({"doc": {}, "_source": false})).await;
    assert_eq!(hidden.get("get"), None, "{hidden}");
    c.has(2, 1).await;
}

async fn updates_within_bulks(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    let body = lines(&[
        json!({"index": {"_id": "x"}}),
        json!({"n": 1}),
        json!({"update": {"_id": "x", "retry_on_conflict": 3}}),
        json!({"doc": {"word": "w"}}),
        json!({"update": {"_id": "x"}}),
        json!({"doc": {"word": "w"}}),
        json!({"update": {"_id": "y"}}),
        json!({"doc": {"n": 2}, "doc_as_upsert": true}),
        json!({"update": {"_id": "z"}}),
        json!({"doc": {"n": 3}}),
        json!({"delete": {"_id": "y"}}),
        json!({"update": {"_id": "y"}}),
        json!({"doc": {"n": 4}, "upsert": {"n": 5}}),
        json!({"update": {"_id": "x"}}),
        json!({"script": {"source": "ctx"}}),
    ]);
    let (status, answer) = raw(c.any(), "POST", "/a/_bulk?refresh=true", body).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(true)), "{answer}");
    let results: Vec<(u64, Value)> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap())
        .map(|item| (item["status"].as_u64().unwrap(), item["result"].clone()))
        .collect();
    let expected = [
        (201, json!("created")),
        (200, json!("updated")),
        (200, json!("noop")),
        (201, json!("created")),
        (404, Value::Null),
        (200, json!("deleted")),
        (201, json!("created")),
        (400, Value::Null),
    ];
    assert_eq!(results, expected);
    assert_eq!(c.get("/a/_source/x").await, json!({"n": 1, "word": "w"}));
    assert_eq!(c.get("/a/_source/y").await, json!({"n": 5}));
    // What is no update cannot be told apart from what follows: nothing of the request is written.
    for bad in ["{\"doc\":{\"n\":6}", "[]", "{\"docs\":{}}", "{}", "{\"doc\":{},\"_source\":true}"]
    {
        let body = format!(
            "{{\"index\":{{\"_id\":\"w\"}}}}\n{{}}\n{{\"update\":{{\"_id\":\"x\"}}}}\n{bad}\n"
        );
        let (status, said) = raw(c.any(), "POST", "/a/_bulk", Bytes::from(body)).await;
        assert!(status == 400 && said.to_string().contains("update on line [4]"), "{said}");
    }
    assert_eq!(c.ask("GET", "/a/_doc/w", Value::Null).await.0, 404);
    c.has(2, 2).await;
}

async fn a_write_is_refused_where_another_came_between(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    let first = c.must("PUT", "/a/_doc/1", json!({"n": 1})).await;
    let (seq_no, term) = (&first["_seq_no"], &first["_primary_term"]);
    let read = format!("if_seq_no={seq_no}&if_primary_term={term}");
    let second = c.must("PUT", &format!("/a/_doc/1?{read}"), json!({"n": 2})).await;
    assert_eq!((&second["result"], &second["_version"]), (&json!("updated"), &json!(2)));
    for (method, path, body) in [
        ("PUT", format!("/a/_doc/1?{read}"), json!({"n": 3})),
        ("DELETE", format!("/a/_doc/1?{read}"), Value::Null),
        ("PUT", format!("/a/_doc/2?{read}"), json!({"n": 3})),
        (
            "PUT",
            format!("/a/_doc/1?if_seq_no={}&if_primary_term=7", second["_seq_no"]),
            json!({"n": 3}),
        ),
    ] {
        refuses(c.ask(method, &path, body).await, 409, "version_conflict_engine_exception");
    }
    assert_eq!(c.ask("PUT", "/a/_doc/1?if_seq_no=1", json!({})).await.0, 400);
    assert_eq!(c.ask("PUT", &format!("/a/_create/1?{read}"), json!({})).await.0, 400);
    let bulk = lines(&[
        json!({"index": {"_id": "1", "if_seq_no": seq_no, "if_primary_term": term}}),
        json!({"n": 4}),
        json!({"delete": {"_id": "1", "if_seq_no": second["_seq_no"], "if_primary_term": term}}),
    ]);
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk", bulk).await;
    assert_eq!(answer["items"][0]["index"]["status"], 409, "{answer}");
    assert_eq!(answer["items"][1]["delete"]["status"], 200, "{answer}");
    c.has(2, 0).await;
}

async fn clients_may_count_the_versions(env: Env) {
    let mut c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    for (method, path, status, version) in [
        ("PUT", "/a/_doc/1?version=5&version_type=external", 201, 5),
        ("PUT", "/a/_doc/1?version=5&version_type=external", 409, 0),
        ("PUT", "/a/_doc/1?version=5&version_type=external_gte", 200, 5),
        ("PUT", "/a/_doc/1", 200, 6),
        ("GET", "/a/_doc/1?version=6", 200, 6),
        ("GET", "/a/_doc/1?version=5", 409, 0),
        ("DELETE", "/a/_doc/1?version=6&version_type=external", 409, 0),
        ("DELETE", "/a/_doc/1?version=9&version_type=external&refresh=true", 200, 9),
        ("PUT", "/a/_doc/1?version=8&version_type=external", 409, 0),
        ("PUT", "/a/_doc/2?version=70&version_type=external&refresh=true", 201, 70),
        ("PUT", "/a/_doc/1?version=7", 400, 0),
        ("PUT", "/a/_create/3?version=7&version_type=external", 400, 0),
        ("POST", "/a/_update/2?version=71&version_type=external", 400, 0),
    ] {
        let body = if method == "PUT" { json!({"n": version}) } else { Value::Null };
        let (found, said) = c.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {said}");
        assert_eq!(said["_version"].as_u64().unwrap_or(0), version, "{method} {path}: {said}");
    }
    let external =
        |id: &str, version: u64| json!({"_id": id, "version": version, "version_type": "external"});
    let body = lines(&[
        json!({"index": external("2", 70)}),
        json!({"n": 70}),
        json!({"index": external("2", 71)}),
        json!({"n": 71}),
        json!({"delete": external("1", 10)}),
    ]);
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk", body).await;
    let statuses = ["/items/0/index", "/items/1/index", "/items/2/delete"]
        .map(|place| answer.pointer(place).unwrap()["status"].clone());
    assert_eq!(statuses, [json!(409), json!(200), json!(404)], "{answer}");
    c.has(2, 1).await;
    // The copy that is left has the versions.
    c.kill_node(1).await;
    eventually(&env, "a primary takes writes", async || {
        let path = "/a/_doc/2?version=71&version_type=external&timeout=1s";
        c.ask("PUT", path, json!({"n": 1})).await.0 == 409
    })
    .await;
}

/// Each of many clients adds a field of its own to one document.
async fn concurrent_updates_lose_nothing(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    c.must("PUT", "/a/_doc/1", json!({"n": 0})).await;
    let tasks: Vec<_> = (0..12)
        .map(|client| {
            let node = c.node(client % 2).clone();
            env.spawn("a client", async move {
                let body =
                    json!({"doc": {"place": {"lat": 1, "lon": 1}, format!("f{client}"): client}});
                ask(&node, "POST", "/a/_update/1?retry_on_conflict=50", body).await
            })
        })
        .collect();
    for task in tasks {
        let (status, answer) = task.await.unwrap();
        assert_eq!((status, &answer["result"]), (200, &json!("updated")), "{answer}");
    }
    let read = c.get("/a/_doc/1").await;
    assert_eq!((&read["_version"], read["_source"].as_object().unwrap().len()), (&json!(13), 14));
    c.has(2, 1).await;
}

async fn reads_many_documents(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 2, 0), 100).await;
    let ids: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let answer = c.must("POST", "/a/_mget?_source_includes=n", json!({ "ids": ids })).await;
    let docs = answer["docs"].as_array().unwrap();
    assert_eq!(docs.len(), 101);
    for (n, doc) in docs.iter().enumerate() {
        assert_eq!((&doc["_id"], &doc["found"]), (&json!(n.to_string()), &json!(n < 100)));
    }
    assert_eq!(docs[7]["_source"], json!({"n": 7}));
    let body = json!({"docs": [
        {"_index": "a", "_id": "1", "_source": false},
        {"_index": "gone", "_id": "1"},
        {"_index": "a", "_id": 2, "_source": {"includes": ["word"]}},
        {"_index": "a", "_id": 3, "_source": "false"},
        {"_index": "a", "_id": 4, "_source": null, "routing": null, "stored_fields": null,
            "version": -3, "version_type": "internal"},
    ]});
    let docs = &c.must("GET", "/_mget?_source_includes=n", body).await["docs"];
    assert_eq!((&docs[0]["found"], docs[0].get("_source")), (&json!(true), None));
    assert_eq!(docs[1]["error"]["type"], "index_not_found_exception");
    assert_eq!(docs[2]["_source"], json!({"word": "w2"}));
    assert_eq!((&docs[3]["found"], docs[3].get("_source")), (&json!(true), None));
    assert_eq!(docs[4]["_source"], json!({"n": 4}));
    for body in [json!({}), json!({"ids": []}), json!({"docs": [{"_id": "1"}]}), json!({"id": "1"})]
    {
        assert_eq!(c.ask("POST", "/_mget", body.clone()).await.0, 400, "{body}");
    }
}
