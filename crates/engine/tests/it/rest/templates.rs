//! Templates, and indices that are made by them.

use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, ask};

testbed::both_worlds!(
    new_indices_are_made_by_templates,
    templates_outlive_restarts,
    templates_are_read_and_deleted_by_name,
    fields_are_told_with_what_can_be_done_with_them,
    tables_of_the_cluster,
);

async fn new_indices_are_made_by_templates(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let low = json!({
        "index_patterns": ["logs-*"], "order": 1,
        "settings": {"number_of_shards": 2, "number_of_replicas": 0},
        "mappings": {"properties": {"a": {"type": "long"}}}, "aliases": {"logs": {}},
    });
    c.must("PUT", "/_template/low", low).await;
    // A document makes its index.
    c.must("PUT", "/logs-1/_doc/1", json!({"a": "7"})).await;
    let made = c.get("/logs-1").await;
    assert_eq!(made["logs-1"]["settings"]["index"]["number_of_shards"], "2");
    assert_eq!(made["logs-1"]["mappings"]["properties"]["a"]["type"], "long");
    assert_eq!(made["logs-1"]["aliases"], json!({"logs": {}}));
    // So does another node's bulk, and a rollover.
    let component = json!({"template": {"mappings": {"properties": {"c": {"type": "ip"}}}}});
    c.must("PUT", "/_component_template/c", component).await;
    let high = json!({
        "index_patterns": ["logs-*"], "priority": 5, "composed_of": ["c"],
        "template": {"settings": {"index": {"number_of_shards": 3, "number_of_replicas": 1}}},
    });
    c.must("PUT", "/_index_template/high", high).await;
    assert_eq!(c.must("POST", "/logs/_rollover", json!({})).await["new_index"], "logs-000002");
    let made = c.get("/logs-000002").await;
    let fields = json!({"c": {"type": "ip"}});
    assert_eq!(made["logs-000002"]["mappings"]["properties"], fields, "legacy ones are left out");
    assert_eq!(made["logs-000002"]["aliases"], json!({"logs": {}}));
    c.must("PUT", "/logs-x", json!({"settings": {"number_of_shards": 1}})).await;
    let made = c.get("/logs-x").await;
    assert_eq!(made["logs-x"]["settings"]["index"]["number_of_shards"], "1", "a request is above");
    assert_eq!(made["logs-x"]["mappings"]["properties"], fields);
    // Two copies are enough for what has one replica by its template.
    let active = "wait_for_active_shards=2";
    c.must("PUT", &format!("/logs-y?{active}"), Value::Null).await;
    c.refuses(400, "copies [2]", "PUT", "/logs-z?wait_for_active_shards=3", Value::Null).await;
}

async fn templates_outlive_restarts(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    for (path, body) in [
        ("/_template/t", json!({"index_patterns": ["t*"], "version": 4})),
        ("/_component_template/c", json!({"template": {"settings": {"number_of_shards": 4}}})),
        ("/_index_template/i", json!({"index_patterns": ["i*"], "composed_of": ["c"]})),
    ] {
        c.must("PUT", path, body).await;
    }
    let paths = ["/_template", "/_component_template", "/_index_template"];
    let mut before = Vec::new();
    for path in paths {
        before.push(c.get(path).await);
        assert_eq!(
            ask(c.node(1), "GET", path, Value::Null).await,
            (200, before.last().unwrap().clone())
        );
    }
    c.stop_all().await;
    c.start_all().await;
    for (path, before) in paths.into_iter().zip(before) {
        assert_eq!(ask(c.node(1), "GET", path, Value::Null).await, (200, before));
    }
    c.must("PUT", "/i1/_doc/1", json!({})).await;
    assert_eq!(c.get("/i1/_settings").await["i1"]["settings"]["index"]["number_of_shards"], "4");
}

async fn templates_are_read_and_deleted_by_name(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    for kind in ["_template", "_index_template"] {
        for name in ["a", "ab", "c"] {
            let body = json!({"index_patterns": [format!("{name}-*")]});
            c.must("PUT", &format!("/{kind}/{name}"), body).await;
        }
    }
    let said = c.get("/_template/a*").await;
    assert_eq!(said.as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "ab"]);
    let said = c.get("/_index_template/ab").await;
    let ab = json!({"index_patterns": ["ab-*"], "composed_of": [], "template": {}});
    assert_eq!(said, json!({"index_templates": [{"name": "ab", "index_template": ab}]}));
    let mut status = Vec::new();
    for (method, path) in [
        ("GET", "/_data_stream/c"),
        ("GET", "/_data_stream"),
        ("HEAD", "/_template/c"),
        ("HEAD", "/_template/d"),
        ("GET", "/_template/d"),
        ("GET", "/_index_template/d"),
        ("GET", "/_component_template/d"),
        ("GET", "/_component_template"),
        ("GET", "/_component_template/*"),
        ("HEAD", "/_index_template/d*"),
        ("GET", "/_template/d*"),
        ("DELETE", "/_index_template/d,e"),
        ("DELETE", "/_template/d"),
        ("DELETE", "/_template/a*"),
        ("DELETE", "/_template/none*"),
        ("DELETE", "/_component_template/*"),
        ("PUT", "/_template/c?create=true"),
    ] {
        let body = match method {
            "PUT" => json!({"index_patterns": ["c-*"]}),
            _ => Value::Null,
        };
        status.push(c.ask(method, path, body).await.0);
    }
    let expected =
        [404, 200, 200, 404, 404, 404, 404, 200, 404, 404, 404, 404, 404, 200, 404, 200, 400];
    assert_eq!(status, expected);
    let table = c.get("/_cat/templates?h=name,index_patterns,order,composed_of&s=name").await;
    let rows: Vec<String> = table
        .as_str()
        .unwrap()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, ["a [a-*] 0 []", "ab [ab-*] 0 []", "c [c-*] 0", "c [c-*] 0 []"]);
}

async fn fields_are_told_with_what_can_be_done_with_them(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let index = |fields: Value| json!({"mappings": {"properties": fields}});
    c.must(
        "PUT",
        "/a",
        index(json!({
            "n": {"type": "long"}, "x": {"type": "keyword", "index": false},
            "t": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
            "o": {"properties": {"p": {"type": "date"}, "q": {"type": "ip"}}},
        })),
    )
    .await;
    c.must("PUT", "/b", index(json!({"n": {"type": "double"}, "x": {"type": "keyword"}}))).await;
    fn caps(kind: &str, searchable: bool, aggregatable: bool) -> Value {
        json!({"type": kind, "searchable": searchable, "aggregatable": aggregatable})
    }
    let said = c.get("/a/_field_caps?fields=*").await;
    assert_eq!(
        said,
        json!({"indices": ["a"], "fields": {
            "n": {"long": caps("long", true, true)},
            "x": {"keyword": caps("keyword", false, true)},
            "t": {"text": caps("text", true, false)},
            "t.raw": {"keyword": caps("keyword", true, true)},
            "o": {"object": caps("object", false, false)},
            "o.p": {"date": caps("date", true, true)},
            "o.q": {"ip": caps("ip", true, true)},
        }})
    );
    let said =
        c.must("POST", "/_field_caps?include_unmapped", json!({"fields": ["n", "x", "o.p"]})).await;
    let of = |kind: &str, index: &str, can: bool| {
        let mut caps = caps(kind, can, can);
        caps["indices"] = json!([index]);
        caps
    };
    assert_eq!(
        said,
        json!({"indices": ["a", "b"], "fields": {
            "n": {"long": of("long", "a", true), "double": of("double", "b", true)},
            "x": {"keyword": {"type": "keyword", "searchable": false, "aggregatable": true,
                "non_searchable_indices": ["a"]}},
            "o.p": {"date": of("date", "a", true), "unmapped": of("unmapped", "b", false)},
        }})
    );
    for (path, body, why) in [
        ("/a/_field_caps", Value::Null, "no fields specified"),
        ("/a/_field_caps?fields=n", json!({"index_filter": {}}), "[index_filter]"),
    ] {
        c.refuses(400, why, "POST", path, body).await;
    }
}

async fn tables_of_the_cluster(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 2, 1)).await;
    c.create("b", 1, 0).await;
    c.index("a", 0, 30).await;
    c.must("PUT", "/c", json!({"settings": {"number_of_shards": 1, "number_of_replicas": 2}}))
        .await;
    let rows = async |path: &str| -> Vec<String> {
        let said = c.get(path).await;
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        // A number alone is read as one.
        let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
        text.lines().map(words).collect()
    };
    c.get("/_cluster/health/c?wait_for_status=yellow&timeout=300s").await;
    let shards: Vec<u64> = rows("/_cat/allocation?h=shards,node&s=node")
        .await
        .iter()
        .map(|row| row.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!((shards.len(), shards.iter().sum::<u64>(), shards[0]), (3, 8, 1), "{shards:?}");
    assert_eq!(rows("/_cat/allocation/c-0?h=node").await, ["c-0"]);
    assert_eq!(rows("/_cat/count/a?h=count").await, ["30"]);
    assert_eq!(rows("/_cat/count?h=count").await, ["30"]);
    for path in ["/_cat/master?h=id,node", "/_cat/cluster_manager?h=id,node"] {
        assert_eq!(rows(path).await, ["c-0 c-0"]);
    }
    assert_eq!(rows("/_cat/plugins").await, Vec::<String>::new());
}
