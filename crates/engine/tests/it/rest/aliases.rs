//! Aliases and rollover.

use serde_json::{Value, json};
use world::Env;

use super::lines;
use crate::common::{Cluster, raw};

testbed::both_worlds!(
    an_alias_stands_for_its_indices,
    writes_go_to_one_index,
    a_rollover_waits_for_its_conditions,
    wrong_aliases_are_refused,
    a_write_may_require_an_alias;
    real: an_alias_may_have_a_filter,
);

async fn a_write_may_require_an_alias(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let settings = json!({"number_of_replicas": 0});
    c.must("PUT", "/a", json!({"settings": settings, "aliases": {"all": {}}})).await;
    for (method, path) in [
        ("PUT", "/all/_doc/1"),
        ("PUT", "/all/_create/2"),
        ("POST", "/all/_doc"),
        ("POST", "/all/_update/1"),
    ] {
        let path = format!("{path}?require_alias=true");
        let doc = json!({"doc": {"n": 1}});
        assert_eq!(c.must(method, &path, doc.clone()).await["_index"], "a", "{path}");
        for name in ["/a/", "/gone/"] {
            let (status, said) = c.ask(method, &path.replace("/all/", name), doc.clone()).await;
            let kind = &said["error"]["type"];
            assert_eq!((status, kind), (404, &json!("index_not_found_exception")), "{path}");
            assert!(said.to_string().contains("is not an alias"), "{said}");
        }
    }
    let body = lines(&[
        json!({"index": {"_id": "3"}}),
        json!({}),
        json!({"index": {"_index": "all", "_id": "3", "op_type": "create", "pipeline": "_none"}}),
        json!({}),
        json!({"index": {"_id": "3", "require_alias": false}}),
        json!({}),
        json!({"create": {"_index": "gone", "_id": "3"}}),
        json!({}),
        json!({"delete": {"_id": "3"}}),
    ]);
    let path = "/a/_bulk?require_alias=true&pipeline=_none";
    let (_, answer) = raw(c.any(), "POST", path, body).await;
    let items = answer["items"].as_array().unwrap();
    let statuses: Vec<&Value> = items
        .iter()
        .map(|item| &item.as_object().unwrap().values().next().unwrap()["status"])
        .collect();
    assert_eq!(statuses, [404, 201, 200, 404, 200], "{answer}");
    assert_eq!(answer["items"][1]["create"]["_index"], "a", "{answer}");
    assert_eq!(c.ask("HEAD", "/gone", Value::Null).await.0, 404, "no index was made");
}

async fn an_alias_stands_for_its_indices(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.must("PUT", "/a-1", json!({"aliases": {"all": {}, "old": {}}})).await;
    c.must("PUT", "/a-2", Value::Null).await;
    c.must("PUT", "/a-2/_alias/all", Value::Null).await;
    for (index, documents) in [("a-1", 3), ("a-2", 4)] {
        assert_eq!(c.index(index, 0, documents).await, documents);
    }
    assert_eq!(c.counted("all").await["count"], 7);
    c.post("/all/_refresh").await;
    for names in ["al*", ","] {
        let found = c.get(&format!("/{names}/_search?size=0")).await;
        assert_eq!(found["hits"]["total"]["value"], 7, "{names}");
    }
    assert_eq!(c.get("/old/_doc/1").await["_index"], "a-1");
    c.answers(400, "GET", "/all/_doc/1", Value::Null).await;

    let shown = c.get("/_alias/all").await;
    let one = json!({"aliases": {"all": {}}});
    assert_eq!(shown, json!({"a-1": one, "a-2": one}));
    assert_eq!(c.get("/a-2").await["a-2"]["aliases"], json!({"all": {}}));
    let rows = c.get("/_cat/aliases?format=json&s=index").await;
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows}");
    let path = "/_cat/aliases?format=json&expand_wildcards=";
    assert_eq!(c.get(&format!("{path}closed")).await, json!([]));
    assert_eq!(c.ask("GET", &format!("{path}opened"), Value::Null).await.0, 400);
    assert_eq!(c.ask("HEAD", "/_alias/nix", Value::Null).await.0, 404);
    let (status, some) = c.ask("GET", "/_alias/all,gone", Value::Null).await;
    let expected = json!({"error": "alias [gone] missing", "status": 404, "a-1": one, "a-2": one});
    assert_eq!((status, some), (404, expected));
    assert_eq!(c.ask("HEAD", "/_alias/old,gone", Value::Null).await.0, 404);
    let (_, none) = c.ask("GET", "/_alias/lost,gone", Value::Null).await;
    assert_eq!(none, json!({"error": "aliases [gone,lost] missing", "status": 404}));
    c.must("HEAD", "/_alias/all,no*", Value::Null).await;
    let old = json!({"a-1": {"aliases": {"old": {}}}});
    assert_eq!(c.get("/_alias/*,-a*").await, old);
    assert_eq!(c.get("/_alias/*,all,-al*").await, old, "what is excluded is not missing");
    let (status, none) = c.ask("GET", "/_alias/all,-all,old", Value::Null).await;
    let expected = json!({"error": "aliases [-all,all] missing", "status": 404, "a-1": old["a-1"]});
    assert_eq!((status, none), (404, expected), "behind no pattern");
    assert_eq!(c.get("/_cat/aliases/*,-all?h=alias&format=json").await, json!([{"alias": "old"}]));
    assert_eq!(c.ask("DELETE", "/a-*/_alias/al*,-all", Value::Null).await.0, 404);

    let (status, refused) = c.ask("DELETE", "/all", Value::Null).await;
    assert_eq!(status, 400, "an alias is not deleted as if it were an index: {refused}");
    // Nor are its indices by a pattern that fits it.
    c.delete("/al*,ol*").await;
    let alias = |of: &str| json!({"actions": [{"remove_index": {"index": of}}]});
    for (of, expected) in [("all", 400), ("al*", 404), ("", 400)] {
        assert_eq!(c.ask("POST", "/_aliases", alias(of)).await.0, expected, "{of}");
    }
    assert_eq!(c.counted("all").await["count"], 7);
    c.delete("/_all/_alias/all").await;
    assert_eq!(c.ask("GET", "/all/_count", Value::Null).await.0, 404);
    c.delete("/a-*").await;
    assert_eq!(c.get("/_alias").await, json!({}));
}

async fn an_alias_may_have_a_filter(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let filter = |shop: &str| json!({"filter": {"term": {"shop": shop}}});
    let properties = json!({"shop": {"type": "keyword"}, "t": {"type": "text"}});
    let one = json!({"mappings": {"properties": properties}, "aliases": {"of-x": filter("x"), "all": {}}});
    c.must("PUT", "/s-1", one.clone()).await;
    c.must("PUT", "/s-2", json!({"mappings": one["mappings"]})).await;
    let add = json!({"add": {"index": "s-2", "alias": "of-y", "filter": {"term": {"shop": "y"}}}});
    c.must("POST", "/_aliases", json!({"actions": [add]})).await;
    for index in ["s-1", "s-2"] {
        for (id, shop) in [("1", "x"), ("2", "y"), ("3", "x")] {
            let document = json!({"shop": shop, "t": "an x of a shop"});
            c.must("PUT", &format!("/{index}/_doc/{id}?refresh"), document).await;
        }
    }
    for (expression, count) in
        [("of-x", 2), ("of-y", 1), ("of-*", 3), ("of-x,all", 3), ("s-1,of-y", 4), ("s-*", 6)]
    {
        let body = json!({"query": {"match": {"t": "shop"}}, "highlight": {"fields": {"*": {}}}});
        let found = c.must("POST", &format!("/{expression}/_search"), body).await;
        assert_eq!(found["hits"]["total"]["value"], count, "{expression}");
        let shown = &found["hits"]["hits"][0]["highlight"];
        assert!(shown["t"].is_array() && shown["shop"].is_null(), "{shown}");
        assert_eq!(c.counted(expression).await["count"], count, "{expression}");
    }
    let found = c.must("POST", "/of-x/_search", json!({"size": 1})).await;
    assert_eq!(found["hits"]["max_score"], 1.0, "{found}");
    // What matches nothing and is left out of clauses around it finds nothing here, too.
    let wordless = json!({"query": {"query_string": {"query": "...", "default_field": "t"}}});
    assert_eq!(c.must("POST", "/of-x/_search", wordless).await["hits"]["total"]["value"], 0);
    let scrolled = c.post("/of-x/_search?scroll=1m&size=1").await;
    let next = json!({"scroll": "1m", "scroll_id": scrolled["_scroll_id"]});
    for hits in [1, 0] {
        let page = c.must("POST", "/_search/scroll", next.clone()).await;
        assert_eq!(page["hits"]["hits"].as_array().unwrap().len(), hits, "{page}");
    }
    // The filters are those of the aliases by which it was opened, whatever these are by now.
    for (expression, count) in [("of-x", 2), ("of-*", 3), ("s-1,of-y", 4)] {
        let path = format!("/{expression}/_search/point_in_time?keep_alive=1m");
        let id = c.post(&path).await["pit_id"].clone();
        let found = c.must("POST", "/_search", json!({"pit": {"id": id}})).await;
        assert_eq!(found["hits"]["total"]["value"], count, "{expression}");
    }
    c.delete("/_search/point_in_time/_all").await;
    assert_eq!(c.get("/_alias/of-*").await["s-1"]["aliases"], json!({"of-x": filter("x")}));
    assert_eq!(c.get("/_cat/aliases/of-x?format=json&h=filter").await, json!([{"filter": "*"}]));
    // The filter is there after a restart, and holds what is deleted.
    let mut c = c;
    c.stop_node(0).await;
    c.start_node(0).await;
    c.green("s-1").await;
    c.green("s-2").await;
    let all = json!({"query": {"match_all": {}}});
    let deleted = c.must("POST", "/of-x/_delete_by_query?refresh", all).await;
    assert_eq!(deleted["deleted"], 2, "{deleted}");
    assert_eq!(c.counted("s-1").await["count"], 1);
    let reindex = json!({"source": {"index": "of-y"}, "dest": {"index": "y"}});
    assert_eq!(c.must("POST", "/_reindex", reindex).await["created"], 1);
}

async fn writes_go_to_one_index(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    c.must("PUT", "/w-1", json!({"aliases": {"w": {}}})).await;
    assert_eq!(c.must("PUT", "/w/_doc/1", json!({"n": 1})).await["_index"], "w-1");
    c.must("PUT", "/w-2", json!({"aliases": {"w": {}}})).await;
    let (status, refused) = c.ask("PUT", "/w/_doc/2", json!({"n": 2})).await;
    assert_eq!(status, 400, "{refused}");
    let said = refused["error"]["reason"].as_str().unwrap();
    assert!(said.starts_with("no write index is defined for alias [w]"), "{said}");
    let body = lines(&[
        json!({"index": {"_index": "w", "_id": "2"}}),
        json!({"n": 2}),
        json!({"index": {"_index": "w-1", "_id": "2"}}),
        json!({"n": 3}),
    ]);
    let (_, answer) = raw(c.any(), "POST", "/_bulk", body.clone()).await;
    assert_eq!(answer["items"][0]["index"]["status"], 400, "{answer}");
    assert_eq!(answer["items"][1]["index"]["status"], 201, "{answer}");

    let switch = json!({"actions": [{"add": {
        "index": "w-1", "alias": "w", "is_write_index": true,
    }}]});
    c.must("POST", "/_aliases", switch).await;
    let (_, answer) = raw(c.any(), "POST", "/_bulk", body).await;
    let items = &answer["items"];
    assert_eq!(items[0]["index"]["_index"], "w-1");
    assert_eq!(items[0]["index"]["result"], "updated");
    assert_eq!(
        items[1]["index"]["_version"], 3,
        "both mean one document, in their order: {answer}"
    );
    assert_eq!(c.get("/w-1/_doc/2").await["_source"], json!({"n": 3}));
    assert_eq!(c.delete("/w/_doc/2").await["_index"], "w-1");
    let count = c.get("/_cat/indices/w?format=json&h=index").await;
    assert_eq!(
        count,
        json!([{"index": "w-1"}, {"index": "w-2"}]),
        "no index of that name was made"
    );
}

async fn a_rollover_waits_for_its_conditions(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let write = json!({"logs": {"is_write_index": true}});
    c.must("PUT", "/logs-000001", json!({"aliases": write})).await;
    assert_eq!(c.index("logs", 0, 10).await, 10);
    let not_yet = json!({"conditions": {"max_docs": 11, "max_age": "1d", "max_size": "1tb"}});
    let answer = c.must("POST", "/logs/_rollover", not_yet).await;
    assert_eq!(answer["rolled_over"], false);
    assert_eq!(answer["new_index"], "logs-000002");
    assert_eq!(answer["conditions"]["[max_docs: 11]"], false);
    // What the new index is made with is read once it is due, or for a dry run.
    let wrong = json!({"conditions": {"max_docs": 11}, "settings": {"nix": 1}});
    let answer = c.must("POST", "/logs/_rollover", wrong.clone()).await;
    assert_eq!(answer["rolled_over"], false);
    assert_eq!(c.ask("POST", "/logs/_rollover?dry_run", wrong).await.0, 400);
    let due = json!({
        "conditions": {"max_docs": 10},
        "settings": {"number_of_shards": 3},
        "mappings": {"properties": {"n": {"type": "long"}}},
        "aliases": {"newest": {}},
    });
    let dry = c.must("POST", "/logs/_rollover?dry_run", due.clone()).await;
    assert_eq!(dry["rolled_over"], false);
    assert_eq!(dry["conditions"], json!({"[max_docs: 10]": true}));
    let answer = c.must("POST", "/logs/_rollover", due).await;
    assert_eq!(answer["rolled_over"], true);
    assert_eq!(answer["shards_acknowledged"], true);
    let made = c.get("/logs-000002").await;
    let made = &made["logs-000002"];
    assert_eq!(made["aliases"], json!({"logs": {"is_write_index": true}, "newest": {}}));
    assert_eq!(made["settings"]["index"]["number_of_shards"], "3");
    assert_eq!(made["mappings"]["properties"]["n"]["type"], "long");
    assert_eq!(c.must("PUT", "/logs/_doc/x", json!({"n": 1})).await["_index"], "logs-000002");
    let named = c.post("/logs/_rollover/logs-next").await;
    assert_eq!(named["old_index"], "logs-000002");
    assert_eq!(named["new_index"], "logs-next");
    assert_eq!(c.counted("logs").await["count"], 11, "read through the alias, all of them");
    for (path, status, said) in [
        ("/logs/_rollover", 400, "does not match pattern"),
        ("/logs/_rollover/logs-000001", 400, "already exists"),
        ("/logs-000001/_rollover", 400, "concrete index"),
        ("/nix/_rollover", 404, "no such index"),
    ] {
        let (found, answer) = c.ask("POST", path, Value::Null).await;
        let reason = answer["error"]["reason"].as_str().unwrap();
        assert!(found == status && reason.contains(said), "{path}: {answer}");
    }
    // A name of an alias says where it is kept over a restart of the manager.
    let mut c = c;
    c.stop_node(0).await;
    c.start_node(0).await;
    c.green("logs").await;
    assert_eq!(c.must("PUT", "/logs/_doc/y", json!({"n": 2})).await["_index"], "logs-next");
}

async fn wrong_aliases_are_refused(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    c.must("PUT", "/a", Value::Null).await;
    c.must("PUT", "/b", Value::Null).await;
    for (actions, said) in [
        (json!([{"add": {"index": "a", "alias": "b"}}]), "an index has this name"),
        (json!([{"add": {"index": "a", "alias": "x y"}}]), "must not contain spaces"),
        (json!([{"add": {"index": "nix", "alias": "x"}}]), "no such index [nix]"),
        (json!([{"add": {"index": "a"}}]), "[alias], a text"),
        (json!([{"ad": {"index": "a", "alias": "x"}}]), "did you mean \"add\""),
        (json!([{"remove": {"index": "a", "alias": "x"}}]), "aliases [x] missing"),
        (
            json!([{"add": {"index": "a", "alias": "x", "routing": "1"}}]),
            "[routing] is not supported",
        ),
        (
            json!([{"add": {"index": "a", "alias": "x", "filter": {"foo": {}}}}]),
            "unknown query [foo]",
        ),
        (
            json!([{"remove": {"index": "a", "alias": "x", "filter": {"match_all": {}}}}]),
            "takes neither",
        ),
        (json!([{"add": {"index": "z*", "alias": "x"}}]), "no such index [z*]"),
        (json!([{"remove_index": {"index": "a", "alias": "x"}}]), "unknown key [alias]"),
        (
            json!([{"remove": {"index": "a", "alias": "x", "must_exist": "no"}}]),
            "[must_exist] is true or false",
        ),
        (json!([]), "no aliases action"),
    ] {
        let (status, answer) = c.ask("POST", "/_aliases", json!({"actions": actions})).await;
        let reason = answer["error"]["reason"].as_str().unwrap_or_default();
        assert!(status >= 400 && reason.contains(said), "{said}: {answer}");
    }
    assert_eq!(c.ask("PUT", "/z*/_alias/x", Value::Null).await.0, 404);
    let add = json!([{"add": {"index": "a", "alias": "x"}}]);
    assert_eq!(c.ask("POST", "/_aliases", json!({"actions": add, "extra": 1})).await.0, 400);
    assert_eq!(c.ask("PUT", "/c", json!({"aliases": {"b": {}}})).await.0, 400);
    assert_eq!(c.ask("HEAD", "/c", Value::Null).await.0, 404, "refused whole");
    let absent = json!({"remove": {"index": "a", "alias": "x", "must_exist": false}});
    c.must("POST", "/_aliases", json!({"actions": [absent]})).await;
    // An index gives its name to an alias in one step.
    let swap = json!({"actions": [
        {"remove_index": {"index": "b"}}, {"add": {"index": "a", "alias": "b"}},
        {"remove": {"index": "a", "alias": "x", "must_exist": false}},
    ]});
    c.must("POST", "/_aliases", swap).await;
    assert_eq!(c.counted("b").await["count"], 0);
}
