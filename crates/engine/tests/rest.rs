//! The REST face, in both worlds: what ordinary clients ask, and what they are answered.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use common::{Cluster, ask, raw};
use engine::rest::{RestMessage, RestRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::Env;

both_worlds!(
    says_who_it_is,
    errors_have_the_shape_of_the_field,
    waits_for_health,
    keeps_cluster_settings,
    makes_shows_and_deletes_indices,
    reads_and_writes_documents,
    takes_bulks,
    a_bulk_fails_by_item,
    acts_on_every_copy,
    tells_about_nodes,
    explains_what_is_unassigned,
    shows_recoveries,
    writes_tables,
    follows_another_cluster,
    a_node_that_is_gone_is_no_hindrance,
);

async fn says_who_it_is(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let info = c.must("GET", "/", Value::Null).await;
    assert_eq!((&info["name"], &info["cluster_name"]), (&json!("c-0"), &json!("c")));
    assert_eq!(info["version"]["number"], "7.10.2");
    assert_eq!(info["version"]["distribution"], "narrows");
    assert_eq!(info["cluster_uuid"].as_str().unwrap().len(), 20);
    let (status, body) = c.ask("HEAD", "/", Value::Null).await;
    assert_eq!((status, body), (200, json!("")));
    let only = c.must("GET", "/?filter_path=version.number&pretty", Value::Null).await;
    assert_eq!(only, json!({"version": {"number": "7.10.2"}}));
    c.stop().await;
}

async fn errors_have_the_shape_of_the_field(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    for (method, path, body, status, kind) in [
        ("GET", "/gone", json!(null), 404, "index_not_found_exception"),
        ("GET", "/gone/_doc/1", json!(null), 404, "index_not_found_exception"),
        ("DELETE", "/gone", json!(null), 404, "index_not_found_exception"),
        ("DELETE", "/gone/_doc/1", json!(null), 404, "index_not_found_exception"),
        ("GET", "/gone/_count", json!(null), 404, "index_not_found_exception"),
        ("GET", "/no/such/path", json!(null), 400, "illegal_argument_exception"),
        ("PATCH", "/_cluster/health", json!(null), 405, "method_not_allowed_exception"),
        ("GET", "/_cluster/health?wait=1", json!(null), 400, "illegal_argument_exception"),
        ("PUT", "/UPPER", json!(null), 400, "invalid_index_name_exception"),
        ("PUT", "/a", json!({"setings": {}}), 400, "parse_exception"),
        (
            "PUT",
            "/a",
            json!({"settings": {"number_of_shards": 0}}),
            400,
            "illegal_argument_exception",
        ),
        ("PUT", "/a?wait_for_active_shards=3", json!(null), 400, "illegal_argument_exception"),
        ("POST", "/a/_doc", json!(null), 400, "parse_exception"),
        ("POST", "/_bulk", json!({}), 400, "illegal_argument_exception"),
        ("POST", "/a/_update/1", json!({"doc": {}}), 400, "illegal_argument_exception"),
        ("PUT", "/_cluster/settings", json!(null), 400, "parse_exception"),
        ("GET", "/_ccr/stats/x", json!(null), 400, "illegal_argument_exception"),
        ("GET", "/a/_ccr/stats", json!(null), 404, "resource_not_found_exception"),
    ] {
        let (found, answer) = c.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        assert_eq!(answer["status"], status, "{method} {path}");
        assert_eq!(answer["error"]["type"], kind, "{method} {path}: {answer}");
        assert_eq!(answer["error"]["root_cause"][0]["type"], kind);
        assert!(!answer["error"]["reason"].as_str().unwrap().is_empty());
    }
    let (_, answer) = raw(c.any(), "PUT", "/a", Bytes::from_static(b"{")).await;
    assert!(answer["error"]["reason"].as_str().unwrap().contains("no JSON"), "{answer}");
    assert_eq!(c.ask("HEAD", "/gone", Value::Null).await, (404, json!("")));
    assert!(
        c.must("GET", "/_cat/indices?format=json", Value::Null)
            .await
            .as_array()
            .unwrap()
            .is_empty()
    );
    c.stop().await;
}

async fn waits_for_health(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let path = "/_cluster/health?wait_for_nodes=%3E%3D2&timeout=30s";
    let health = c.must("GET", path, Value::Null).await;
    assert_eq!((&health["status"], &health["timed_out"]), (&json!("green"), &json!(false)));
    assert_eq!(health["number_of_nodes"], 2);
    for name in ["delayed_unassigned_shards", "number_of_pending_tasks", "relocating_shards"] {
        assert_eq!(health[name], 0, "{name}");
    }
    let settings = json!({"settings": {"number_of_shards": 2, "number_of_replicas": 2}});
    c.must("PUT", "/a", settings).await;
    let path =
        "/_cluster/health/a?wait_for_status=yellow&wait_for_no_initializing_shards&level=shards";
    let health = c.must("GET", path, Value::Null).await;
    assert_eq!((&health["status"], &health["unassigned_shards"]), (&json!("yellow"), &json!(2)));
    assert_eq!(health["indices"]["a"]["shards"]["1"]["active_shards"], 2);
    // Two nodes cannot hold three copies.
    let path = "/_cluster/health?wait_for_status=green&timeout=50ms";
    let (status, health) = c.ask("GET", path, Value::Null).await;
    assert_eq!((status, &health["timed_out"]), (408, &json!(true)));
    assert_eq!(health["status"], "yellow");
    let (status, health) = c.ask("GET", "/_cluster/health/gone?timeout=10ms", Value::Null).await;
    assert_eq!((status, &health["status"]), (408, &json!("red")));
    c.stop().await;
}

async fn keeps_cluster_settings(env: Env) {
    let own = BTreeMap::from([("indices.recovery.max_bytes_per_sec".to_owned(), "7mb".to_owned())]);
    let c = Cluster::start_with(&env, "c", 2, own).await;
    let echo = c
        .must(
            "PUT",
            "/_cluster/settings?flat_settings",
            json!({
                "persistent": {"ccr": {"indices": {"recovery": {"chunk_size": "5120kb"}}}},
                "transient": {"transport.compress": true},
            }),
        )
        .await;
    assert_eq!(
        echo,
        json!({
            "acknowledged": true,
            "persistent": {"ccr.indices.recovery.chunk_size": "5mb"},
            "transient": {"transport.compress": "true"},
        })
    );
    let (_, seen) = ask(c.node(1), "GET", "/_cluster/settings?include_defaults", Value::Null).await;
    assert_eq!(seen["persistent"]["ccr"]["indices"]["recovery"]["chunk_size"], "5mb");
    let recovery = &seen["defaults"]["indices"]["recovery"];
    assert_eq!(recovery["max_bytes_per_sec"], "7mb", "a node's configuration stands below");
    assert_eq!(recovery["chunk_size"], "512kb");
    let reset = json!({"persistent": {"ccr.*": null}, "transient": {"transport.compress": null}});
    c.must("PUT", "/_cluster/settings", reset).await;
    let seen = c.must("GET", "/_cluster/settings", Value::Null).await;
    assert_eq!(seen, json!({"persistent": {}, "transient": {}}));
    let wrong = json!({"persistent": {"ccr.indices.recovery.chunk_sise": "1mb"}});
    let (status, answer) = c.ask("PUT", "/_cluster/settings", wrong).await;
    assert_eq!(status, 400);
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("did you mean \"ccr.indices.recovery.chunk_size\""), "{reason}");
    c.stop().await;
}

async fn makes_shows_and_deletes_indices(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let body = json!({
        "settings": {"index": {"number_of_shards": 2, "number_of_replicas": "0"}},
        "mappings": {"properties": {"place": {"type": "geo_point"}}},
    });
    let made = c.must("PUT", "/a", body).await;
    assert_eq!(made, json!({"acknowledged": true, "shards_acknowledged": true, "index": "a"}));
    let (status, again) = c.ask("PUT", "/a", Value::Null).await;
    assert_eq!(
        (status, &again["error"]["type"]),
        (400, &json!("resource_already_exists_exception"))
    );
    assert_eq!(c.ask("HEAD", "/a", Value::Null).await.0, 200);
    let shown = c.must("GET", "/a", Value::Null).await;
    assert_eq!(shown["a"]["aliases"], json!({}));
    assert_eq!(shown["a"]["mappings"]["properties"]["place"]["type"], "geo_point");
    let index = &shown["a"]["settings"]["index"];
    assert_eq!((&index["number_of_shards"], &index["provided_name"]), (&json!("2"), &json!("a")));

    let more = json!({"properties": {"name": {"type": "keyword"}}});
    c.must("PUT", "/a/_mapping", more).await;
    let mapping = c.must("GET", "/a/_mapping", Value::Null).await;
    assert_eq!(mapping["a"]["mappings"]["properties"]["name"]["type"], "keyword");
    assert_eq!(mapping["a"]["mappings"]["properties"]["place"]["type"], "geo_point");
    for (wrong, said) in [
        (json!({"properties": {"name": {"type": "long"}}}), "cannot be changed"),
        (json!({"properties": {"age": {"type": "lnog"}}}), "did you mean \"long\""),
    ] {
        let (status, answer) = c.ask("PUT", "/a/_mapping", wrong).await;
        assert_eq!(status, 400);
        assert!(answer["error"]["reason"].as_str().unwrap().contains(said), "{answer}");
    }

    c.must("PUT", "/a/_settings", json!({"index": {"refresh_interval": "30s"}})).await;
    let path = "/a/_settings/index.refresh*?flat_settings";
    let settings = c.must("GET", path, Value::Null).await;
    assert_eq!(settings, json!({"a": {"settings": {"index.refresh_interval": "30s"}}}));
    let fixed = json!({"index.number_of_shards": 3});
    assert_eq!(c.ask("PUT", "/a/_settings", fixed.clone()).await.0, 400);
    c.must("PUT", "/a/_settings?preserve_existing", fixed).await;

    c.must("PUT", "/b", json!({"settings": {"number_of_replicas": 0}})).await;
    c.must("DELETE", "/a,b*", Value::Null).await;
    assert_eq!(c.must("GET", "/_all", Value::Null).await, json!({}));
    c.stop().await;
}

async fn reads_and_writes_documents(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.create("a", 3, 1).await;
    let made = c.must("PUT", "/a/_doc/x%2F1?refresh=true", json!({"n": 1})).await;
    assert_eq!((&made["result"], &made["_id"]), (&json!("created"), &json!("x/1")));
    assert_eq!(made["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));
    assert_eq!(made["forced_refresh"], true);
    // From the other node, which may have to ask for it.
    let (status, read) = ask(c.node(1), "GET", "/a/_doc/x%2F1", Value::Null).await;
    assert_eq!((status, &read["_source"], &read["found"]), (200, &json!({"n": 1}), &json!(true)));
    let (status, made) = c.ask("PUT", "/a/_doc/x%2F1", json!({"n": 2})).await;
    assert_eq!((status, &made["result"], &made["_version"]), (200, &json!("updated"), &json!(2)));
    let (status, conflict) = c.ask("PUT", "/a/_create/x%2F1", json!({"n": 3})).await;
    assert_eq!(
        (status, &conflict["error"]["type"]),
        (409, &json!("version_conflict_engine_exception"))
    );
    assert_eq!(c.ask("PUT", "/a/_doc/x%2F1?op_type=create", json!({"n": 3})).await.0, 409);
    assert_eq!(c.must("GET", "/a/_source/x%2F1", Value::Null).await, json!({"n": 2}));
    assert_eq!(c.ask("HEAD", "/a/_doc/x%2F1", Value::Null).await.0, 200);
    let path = "/a/_doc/x%2F1?_source=false";
    assert_eq!(c.must("GET", path, Value::Null).await.get("_source"), None);

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
        let (status, wrong) = c.ask("PUT", "/a/_doc/y", json!({"place": "nowhere"})).await;
        assert_eq!((status, &wrong["error"]["type"]), (400, &json!("mapper_parsing_exception")));
    }
    assert_eq!(c.ask("PUT", "/a/_doc/y?routing=z", json!({})).await.0, 400);
    // An index that is written to is made.
    let (status, made) = c.ask("PUT", "/fresh/_doc/1", json!({"any": {"thing": [1, 2]}})).await;
    assert_eq!((status, &made["_shards"]["total"]), (201, &json!(2)));
    assert_eq!(
        c.must("GET", "/fresh/_source/1", Value::Null).await,
        json!({"any": {"thing": [1, 2]}})
    );
    c.stop().await;
}

fn lines(actions: &[Value]) -> Bytes {
    Bytes::from(actions.iter().map(|action| format!("{action}\n")).collect::<String>())
}

async fn takes_bulks(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.create("a", 3, 1).await;
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
    assert_eq!(
        (&items[5]["index"]["_index"], &items[5]["index"]["_id"]),
        (&json!("b"), &json!("7"))
    );
    assert_eq!(c.must("GET", "/_count", Value::Null).await["count"], 2);

    let body = lines(&[json!({"index": {}}), json!({"n": 1})]);
    let (_, answer) = raw(c.any(), "POST", "/a/_bulk?filter_path=errors,took", body).await;
    assert_eq!(answer["errors"], false);
    assert_eq!(answer.get("items"), None);
    assert!(answer["took"].is_u64());
    c.stop().await;
}

async fn a_bulk_fails_by_item(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    c.create("a", 1, 0).await;
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
            (400, &json!("illegal_argument_exception")),
            (404, &json!("index_not_found_exception")),
            (400, &json!("invalid_index_name_exception")),
            (400, &json!("illegal_argument_exception")),
        ]
    );
    assert!(items[2]["error"]["reason"].as_str().unwrap().contains("update is not supported"));
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
    }
    let (status, answer) =
        raw(c.any(), "POST", "/a/_bulk", Bytes::from_static(b"{\"index\":{}}\n{}")).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["reason"].as_str().unwrap().contains("terminated by a newline"));
    c.stop().await;
}

async fn acts_on_every_copy(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.create("a", 2, 1).await;
    assert_eq!(c.index("a", 0, 100).await, 100);
    let count = c.must("GET", "/a/_count", json!({"query": {"match_all": {}}})).await;
    assert_eq!(count["count"], 100);
    let shards = json!({"total": 2, "successful": 2, "skipped": 0, "failed": 0});
    assert_eq!(count["_shards"], shards);
    for path in [
        "/a/_refresh",
        "/_flush?force=true&wait_if_ongoing=true",
        "/a/_forcemerge?max_num_segments=1",
    ] {
        let done = c.must("POST", path, Value::Null).await;
        assert_eq!(done["_shards"], json!({"total": 4, "successful": 4, "failed": 0}), "{path}");
    }
    let rows =
        c.must("GET", "/_cat/shards/a?format=json&h=segments.count,docs,state", Value::Null).await;
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        assert_eq!(
            (&row["segments.count"], &row["state"]),
            (&json!("1"), &json!("STARTED")),
            "{row}"
        );
    }
    let (status, refused) = c.ask("GET", "/a/_count", json!({"query": {"term": {"n": 1}}})).await;
    assert_eq!(status, 400);
    assert!(refused["error"]["reason"].as_str().unwrap().contains("not supported"));
    assert_eq!(c.ask("POST", "/a/_forcemerge?max_num_segments=0", Value::Null).await.0, 400);

    let primaries = c.must("GET", "/a/_narrows/digest", Value::Null).await;
    let all = c.must("GET", "/a/_narrows/digest?replicas=true", Value::Null).await;
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
    c.stop().await;
}

async fn tells_about_nodes(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    let stats = c.must("GET", "/_nodes/stats", Value::Null).await;
    assert_eq!(stats["_nodes"], json!({"total": 3, "successful": 3, "failed": 0}));
    for node in ["c-0", "c-1", "c-2"] {
        assert_eq!(stats["nodes"][node]["name"], node);
        assert!(stats["nodes"][node]["indices"]["recovery"]["throttle_time_in_millis"].is_u64());
    }
    let local = c.must("GET", "/_nodes/_local/stats/process,jvm", Value::Null).await;
    assert_eq!(local["nodes"].as_object().unwrap().len(), 1);
    assert_eq!(local["nodes"]["c-0"].get("indices"), None);
    assert!(local["nodes"]["c-0"]["process"].is_object());
    assert_eq!(c.ask("GET", "/_nodes/stats/proces", Value::Null).await.0, 400);
    let http = c.must("GET", "/_nodes/c-1/http", Value::Null).await;
    let address = &http["nodes"]["c-1"]["http"]["publish_address"];
    assert_eq!(address, &json!(c.node(1).http_address()));
    assert_eq!(http["nodes"]["c-1"].get("transport"), None);
    assert_eq!(c.must("GET", "/_nodes/http", Value::Null).await["_nodes"]["total"], 3);
    let state = c.must("GET", "/_cluster/state/master_node,nodes", Value::Null).await;
    assert_eq!((&state["master_node"], state.get("metadata")), (&json!("c-0"), None));
    assert_eq!(state["nodes"].as_object().unwrap().len(), 3);
    c.stop().await;
}

async fn explains_what_is_unassigned(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let (status, answer) = c.ask("GET", "/_cluster/allocation/explain", Value::Null).await;
    assert_eq!(status, 400);
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("unable to find any unassigned shards to explain"), "{reason}");
    c.must("PUT", "/a", Value::Null).await;
    let answer = c.must("GET", "/_cluster/allocation/explain", Value::Null).await;
    assert_eq!((&answer["index"], &answer["primary"]), (&json!("a"), &json!(false)));
    assert_eq!(
        (&answer["current_state"], &answer["can_allocate"]),
        (&json!("unassigned"), &json!("no"))
    );
    assert_eq!(answer["unassigned_info"]["reason"], "INDEX_CREATED");
    let decider = &answer["node_allocation_decisions"][0]["deciders"][0]["decider"];
    assert_eq!(decider, "same_shard");
    let body = json!({"index": "a", "shard": 0, "primary": true});
    let answer = c.must("GET", "/_cluster/allocation/explain", body).await;
    assert_eq!(
        (&answer["current_state"], &answer["current_node"]["name"]),
        (&json!("started"), &json!("c-0"))
    );
    let again = c.must("POST", "/_cluster/reroute?retry_failed=true", Value::Null).await;
    assert_eq!(again["acknowledged"], true);
    c.stop().await;
}

async fn shows_recoveries(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.create("a", 1, 0).await;
    c.index("a", 0, 500).await;
    c.must("POST", "/a/_flush", Value::Null).await;
    c.must("PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    c.green("a").await;
    let plain = c.must("GET", "/a/_recovery", Value::Null).await;
    let shards = plain["a"]["shards"].as_array().unwrap();
    let kinds: Vec<&str> = shards.iter().map(|shard| shard["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["EMPTY_STORE", "PEER"]);
    let replica = &shards[1];
    assert_eq!((&replica["id"], &replica["stage"]), (&json!(0), &json!("DONE")));
    assert_eq!(replica["source"]["name"], shards[0]["target"]["name"]);
    assert_ne!(replica["target"]["name"], replica["source"]["name"]);
    let size = &replica["index"]["size"];
    assert!(size["total_in_bytes"].as_u64().unwrap() > 0, "{replica}");
    assert_eq!(size["total_in_bytes"], size["recovered_in_bytes"]);
    assert_eq!(replica["index"]["files"].get("details"), None);
    assert!(replica["narrows"]["charged_ns"].is_object());
    assert!(replica["stop_time_in_millis"].as_u64() >= replica["start_time_in_millis"].as_u64());
    let detailed = c.must("GET", "/_recovery?detailed=true", Value::Null).await;
    let files = detailed["a"]["shards"][1]["index"]["files"]["details"].as_array().unwrap();
    assert!(!files.is_empty());
    assert_eq!(c.must("GET", "/_recovery?active_only", Value::Null).await, json!({}));
    let path =
        "/_cat/recovery/a?format=json&h=type,stage,source_node,bytes_percent,files_percent&s=type";
    let rows = c.must("GET", path, Value::Null).await;
    assert_eq!(
        rows[1],
        json!({
            "type": "peer", "stage": "done", "source_node": replica["source"]["name"],
            "bytes_percent": "100.0%", "files_percent": "100.0%",
        })
    );
    c.stop().await;
}

async fn writes_tables(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.create("a", 1, 1).await;
    c.must("PUT", "/b", json!({"settings": {"number_of_replicas": 2}})).await;
    c.must("GET", "/_cluster/health?wait_for_no_initializing_shards", Value::Null).await;
    c.index("a", 0, 10).await;
    let text =
        async |path: &str| c.must("GET", path, Value::Null).await.as_str().unwrap().to_owned();

    assert!(text("/_cat").await.contains("/_cat/recovery\n"));
    assert_eq!(
        text("/_cat/indices?h=health,index,pri,rep,docs.count&s=index:desc").await,
        "\
yellow b 1 2  0
green  a 1 1 10
"
    );
    assert_eq!(
        text("/_cat/indices/a?v&h=index,docs.count").await,
        "index docs.count\na             10\n"
    );
    assert_eq!(text("/_cat/indices?health=yellow&h=index").await, "b\n");
    let shards = text("/_cat/shards/b?h=index,shard,prirep,state,docs,unassigned.reason").await;
    assert_eq!(
        shards.lines().last().unwrap().trim_end(),
        "b 0 r UNASSIGNED   INDEX_CREATED",
        "{shards}"
    );
    assert_eq!(shards.lines().count(), 3);
    assert_eq!(text("/_cat/nodes?h=name,master&s=name").await, "c-0 *\nc-1 -\n");
    let health = text("/_cat/health?h=cluster,status,node.total,pri,unassign").await;
    assert_eq!(health, "c yellow 2 2 1\n");
    assert!(text("/_cat/recovery?help").await.contains("translog_ops_percent"));
    let json =
        c.must("GET", "/_cat/nodes?format=json&h=name,heap.percent&s=name", Value::Null).await;
    assert_eq!(json[0], json!({"name": "c-0", "heap.percent": null}));
    assert_eq!(c.ask("GET", "/_cat/indices?s=zzz", Value::Null).await.0, 400);
    c.stop().await;
}

async fn follows_another_cluster(env: Env) {
    let leader = Cluster::start(&env, "leader", 2).await;
    let follower = Cluster::start(&env, "follower", 1).await;
    leader.create("l", 2, 0).await;
    leader.index("l", 0, 300).await;
    assert_eq!(follower.must("GET", "/_remote/info", Value::Null).await, json!({}));
    let seeds: Vec<&str> = leader.nodes.values().map(|node| node.transport_address()).collect();
    let settings = json!({"persistent": {"cluster.remote.eu.seeds": seeds}});
    follower.must("PUT", "/_cluster/settings", settings).await;
    let info = follower.must("GET", "/_remote/info", Value::Null).await;
    assert_eq!(
        (&info["eu"]["connected"], &info["eu"]["num_nodes_connected"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(info["eu"]["seeds"], json!(seeds));

    let whom = |alias: &str, index: &str| {
        json!({
            "remote_cluster": alias, "leader_index": index,
            "settings": {"index.number_of_replicas": 0},
        })
    };
    for (body, status) in
        [(whom("us", "l"), 404), (whom("eu", "gone"), 404), (json!({"a": 1}), 400)]
    {
        assert_eq!(follower.ask("PUT", "/f/_ccr/follow", body.clone()).await.0, status, "{body}");
    }
    let path = "/f/_ccr/follow?wait_for_active_shards=1";
    let made = follower.must("PUT", path, whom("eu", "l")).await;
    assert_eq!(
        made,
        json!({
            "follow_index_created": true, "follow_index_shards_acked": true,
            "index_following_started": false,
        })
    );
    assert_eq!(follower.must("GET", "/f/_count", Value::Null).await["count"], 300);
    let digests = async |cluster: &Cluster, index: &str| {
        let answer = cluster.must("GET", &format!("/{index}/_narrows/digest"), Value::Null).await;
        let rows = answer["shards"].as_array().unwrap().clone();
        rows.iter().map(|row| (row["shard"].clone(), row["content"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(digests(&follower, "f").await, digests(&leader, "l").await);

    let stats = follower.must("GET", "/f/_ccr/stats", Value::Null).await;
    let shards = stats["indices"][0]["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 2);
    let ops: i64 = shards.iter().map(|s| s["follower_max_seq_no"].as_i64().unwrap() + 1).sum();
    assert_eq!(ops, 300);
    assert_eq!(
        (&shards[0]["remote_cluster"], &shards[0]["leader_index"]),
        (&json!("eu"), &json!("l"))
    );
    let all = follower.must("GET", "/_ccr/stats", Value::Null).await;
    assert_eq!(all["follow_stats"]["indices"][0]["index"], "f");
    let recovery = follower.must("GET", "/f/_recovery", Value::Null).await;
    let shard = &recovery["f"]["shards"][0];
    assert_eq!(
        (&shard["type"], &shard["source"]["repository"]),
        (&json!("SNAPSHOT"), &json!("_ccr_eu"))
    );

    let (status, refused) = follower.ask("PUT", "/f/_doc/1", json!({})).await;
    assert_eq!((status, &refused["error"]["type"]), (403, &json!("status_exception")));
    let body = lines(&[json!({"index": {}}), json!({})]);
    let (_, refused) = raw(follower.any(), "POST", "/f/_bulk", body).await;
    assert_eq!(refused["items"][0]["index"]["status"], 403);
    follower.stop().await;
    leader.stop().await;
}

async fn a_node_that_is_gone_is_no_hindrance(env: Env) {
    let mut c = Cluster::start(&env, "c", 3).await;
    c.create("a", 3, 0).await;
    c.index("a", 0, 60).await;
    c.kill_node(2).await;
    let path = "/_cluster/health?wait_for_nodes=2&timeout=60s";
    assert_eq!(c.must("GET", path, Value::Null).await["status"], "red");
    let count = c.must("GET", "/a/_count", Value::Null).await;
    assert_eq!(count["_shards"]["failed"], 1, "{count}");
    assert!(count["count"].as_u64().unwrap() < 60);
    let failure = &count["_shards"]["failures"][0]["reason"]["type"];
    assert_eq!(failure, "unavailable_shards_exception");
    let (status, _) = c.ask("GET", "/a/_narrows/digest", Value::Null).await;
    assert_eq!(status, 503, "half a comparison is none");
    let stats = c.must("GET", "/_nodes/stats", Value::Null).await;
    assert_eq!(stats["_nodes"]["total"], 2);
    c.start_node(2).await;
    c.green("a").await;
    assert_eq!(c.must("GET", "/a/_count", Value::Null).await["count"], 60);
    c.stop().await;
}

/// What hosts of the virtual world send each other.
#[test]
fn answers_messages() {
    world::virtual_world::run(7, |env| async move {
        let c = Cluster::start(&env, "c", 1).await;
        let client = env.host("client");
        let mut connection = client.connect::<RestMessage>(c.any().http_address()).await.unwrap();
        for path in ["/", "/_cluster/health"] {
            let request =
                RestRequest { method: "GET".into(), path: path.into(), body: Bytes::new() };
            connection.sender.send(RestMessage::Request(request)).await.unwrap();
            let Some(RestMessage::Response(answer)) = connection.receiver.recv().await.unwrap()
            else {
                panic!("not answered");
            };
            assert_eq!(answer.status, 200);
            assert_eq!(answer.content_type, "application/json; charset=UTF-8");
            let json: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(json["cluster_name"], "c");
        }
        c.stop().await;
    });
}

/// Sends text as it is, and reads what comes until it has been silent for a while or closed.
async fn http(env: &Env, address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = env.timeout(Duration::from_millis(500), reading).await;
    String::from_utf8(answer).unwrap()
}

#[test]
fn speaks_http() {
    world::real_world::run(7, |env| async move {
        let c = Cluster::start(&env, "c", 1).await;
        let address = c.any().http_address().to_owned();
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");

        let twice = get("/") + &get("/_cluster/health");
        let answer = http(&env, &address, &twice).await;
        assert_eq!(
            answer.matches("HTTP/1.1 200 OK").count(),
            2,
            "one connection, two requests: {answer}"
        );
        assert!(answer.contains("content-type: application/json; charset=UTF-8"), "{answer}");

        let answer = http(&env, &address, "HEAD /gone HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("\r\n\r\n"), "{answer}");

        let answer =
            http(&env, &address, "DELETE /_cluster/health HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(
            answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET\r\n"),
            "{answer}"
        );

        let post = |headers: &str, body: &str| {
            let len = body.len();
            format!(
                "POST /a/_doc HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
            )
        };
        let json = "Content-Type: application/json\r\n";
        for (text, status) in [
            (post(json, "{\"a\":1}"), "201"),
            (post("", "{\"a\":1}"), "201"),
            (post("Content-Type: text/plain\r\n", "{}"), "406"),
            (post("Content-Encoding: gzip\r\n", "{}"), "415"),
            (post("Origin: https://example.org\r\n", "{}"), "403"),
            (
                "POST /_bulk HTTP/1.1\r\nHost: x\r\nContent-Length: 104857601\r\n\r\n".to_owned(),
                "413",
            ),
            ("nonsense\r\n\r\n".to_owned(), "400"),
        ] {
            let answer = http(&env, &address, &text).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{text}: {answer}");
        }
        let chunked = "POST /a/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                       4\r\n{\"a\"\r\n3\r\n:2}\r\n0\r\n\r\n";
        let answer = http(&env, &address, chunked).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert_eq!(c.must("GET", "/a/_count", Value::Null).await["count"], 3);
        c.stop().await;
        assert!(TcpStream::connect(&address).await.is_err(), "a node that stopped does not listen");
    });
}

#[test]
fn an_address_in_use_is_named() {
    world::real_world::run(7, |env| async move {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let dir = tempfile::tempdir().unwrap();
        let config = engine::NodeConfig {
            name: "n".into(),
            cluster: "c".into(),
            members: vec!["n".into()],
            manager: None,
            transport: "127.0.0.1:0".into(),
            http: address.clone(),
            data: dir.path().to_owned(),
            settings: BTreeMap::new(),
            publish: None,
        };
        let error = engine::Node::start(&env, config).await.err().unwrap().to_string();
        assert!(error.contains(&format!("listen for REST on {address}")), "{error}");
    });
}

/// The script in `tests/python`, where `OPENSEARCH_PYTHON` names a Python that has opensearch-py.
#[test]
fn an_ordinary_client_works() {
    let Ok(python) = std::env::var("OPENSEARCH_PYTHON") else {
        println!("not run: set OPENSEARCH_PYTHON to a Python that has opensearch-py");
        return;
    };
    world::real_world::run(7, |env| async move {
        let c = Cluster::start(&env, "c", 2).await;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/opensearch_client.py");
        let url = format!("http://{}", c.any().http_address());
        let run = tokio::process::Command::new(python).arg(script).arg(url).output();
        let output = env.timeout(Duration::from_secs(120), run).await.unwrap().unwrap();
        let (said, failed) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(output.status.success() && said.ends_with("OK\n"), "{said}\n{failed}");
        c.stop().await;
    });
}
