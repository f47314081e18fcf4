//! Tables, and the recoveries that they show.

use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, refuses};

testbed::both_worlds!(shows_recoveries, writes_tables,);

async fn shows_recoveries(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 1, 0), 500).await;
    c.post("/a/_flush").await;
    c.must("PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    c.green("a").await;
    let plain = c.get("/a/_recovery").await;
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
    let detailed = c.get("/_recovery?detailed=true").await;
    let files = detailed["a"]["shards"][1]["index"]["files"]["details"].as_array().unwrap();
    assert!(!files.is_empty());
    assert_eq!(c.get("/_recovery?active_only").await, json!({}));
    let path =
        "/_cat/recovery/a?format=json&h=type,stage,source_node,bytes_percent,files_percent&s=type";
    let rows = c.get(path).await;
    assert_eq!(
        rows[1],
        json!({
            "type": "peer", "stage": "done", "source_node": replica["source"]["name"],
            "bytes_percent": "100.0%", "files_percent": "100.0%",
        })
    );
}

async fn writes_tables(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    c.must("PUT", "/b", json!({"settings": {"number_of_replicas": 2}})).await;
    c.get("/_cluster/health?wait_for_no_initializing_shards").await;
    c.index("a", 0, 10).await;
    let text = async |path: &str| c.get(path).await.as_str().unwrap().to_owned();

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
    assert_eq!(text("/_cat/indices?health=YELLOW&h=index").await, "b\n");
    assert_eq!(text("/_cat/indices/a?expand_wildcards=none&h=index").await, "a\n");
    assert_eq!(text("/_cat/indices/*?expand_wildcards=closed&h=index").await, "");
    for (path, status) in [
        ("/_cat/indices/a,gone", 404),
        ("/_cat/indices/a,gone?ignore_unavailable=true", 200),
        ("/_cat/indices/zzz*?allow_no_indices=false", 404),
        ("/_cat/recovery/a,gone?ignore_unavailable=true", 200),
        ("/_cat/recovery/zzz*?allow_no_indices=false", 404),
        // As in the field these have no such parameter.
        ("/_cat/count/a*?expand_wildcards=none", 400),
        ("/_cat/shards/a*?expand_wildcards=none", 400),
    ] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, status, "{path}");
    }
    // An index that is named has to be there; a pattern may stand for none.
    for table in ["indices", "shards", "recovery"] {
        for names in ["gone", "a,gone"] {
            let path = format!("/_cat/{table}/{names}");
            refuses(c.ask("GET", &path, Value::Null).await, 404, "index_not_found_exception");
        }
        assert_eq!(text(&format!("/_cat/{table}/zzz*")).await, "", "{table}");
    }
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
    let untimed = text("/_cat/health?ts=false").await;
    assert!(untimed.starts_with("c yellow 2 2 "), "{untimed}");
    assert!(text("/_cat/recovery?help").await.contains("translog_ops_percent"));
    let json = c.get("/_cat/nodes?format=json&h=name,heap.percent&s=name").await;
    assert_eq!(json[0], json!({"name": "c-0", "heap.percent": null}));
    assert_eq!(c.ask("GET", "/_cat/indices?s=zzz", Value::Null).await.0, 400);
}
