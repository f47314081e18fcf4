//! `_stats`, and what deletes by patterns.

use serde_json::{Value, json};
use world::Env;

use crate::common::Cluster;

testbed::both_worlds!(stats_are_sums_over_copies, patterns_delete_only_where_that_is_allowed,);

async fn stats_are_sums_over_copies(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 2, 1)).await;
    c.create("b", 1, 0).await;
    c.green("a").await;
    c.index("a", 0, 50).await;
    c.index("b", 0, 10).await;
    c.must("DELETE", "/a/_doc/1", Value::Null).await;
    c.must("GET", "/a/_doc/2", Value::Null).await;
    c.ask("GET", "/a/_doc/1", Value::Null).await;
    c.must("POST", "/_refresh", Value::Null).await;
    c.must("POST", "/_flush", Value::Null).await;

    let all = c.must("GET", "/_stats", Value::Null).await;
    assert_eq!(all["_shards"], json!({"total": 5, "successful": 5, "failed": 0}));
    let (primaries, total) = (&all["_all"]["primaries"], &all["_all"]["total"]);
    assert_eq!((&primaries["docs"]["count"], &total["docs"]["count"]), (&json!(59), &json!(108)));
    assert_eq!(primaries["indexing"]["index_total"], 60);
    assert_eq!(total["indexing"]["index_total"], 110, "replicas index what they are sent");
    assert_eq!(
        (&primaries["indexing"]["delete_total"], &total["indexing"]["delete_total"]),
        (&json!(1), &json!(2))
    );
    let get = &total["get"];
    assert!(get["exists_total"].as_u64() >= Some(1) && get["missing_total"] == 1, "{get}");
    assert_eq!(primaries["flush"]["total"], 3, "one for each shard: {primaries}");
    assert!(primaries["refresh"]["total"].as_u64() >= Some(3));
    assert!(primaries["store"]["size_in_bytes"].as_u64() > Some(0));
    assert_eq!(total["merges"], json!({"current": 0}));
    assert_eq!(total.get("warmer"), None, "what is not counted is left out");
    assert_eq!(all["indices"]["a"].get("shards"), None);

    let of_a = c.must("GET", "/a/_stats/docs,store?level=shards", Value::Null).await;
    assert_eq!(of_a["_shards"]["total"], 4);
    assert_eq!(of_a["indices"].as_object().unwrap().len(), 1);
    let shards = of_a["indices"]["a"]["shards"].as_object().unwrap();
    let counted: u64 =
        shards.values().map(|copies| copies[0]["docs"]["count"].as_u64().unwrap()).sum();
    assert_eq!((shards.len(), counted), (2, 49));
    for copies in shards.values() {
        let copies = copies.as_array().unwrap();
        assert_eq!(copies.len(), 2);
        let primaries = copies.iter().filter(|copy| copy["routing"]["primary"] == true).count();
        assert_eq!(primaries, 1);
        assert_eq!(copies[0]["seq_no"]["max_seq_no"], copies[1]["seq_no"]["max_seq_no"]);
        assert!(copies[0].get("indexing").is_none());
    }
    let cluster = c.must("GET", "/_stats/_all?level=cluster", Value::Null).await;
    assert!(cluster.get("indices").is_none() && cluster["_all"]["total"]["docs"]["count"] == 108);
    for (path, status) in [
        ("/_stats/dcos", 400),
        ("/_stats?level=shard", 400),
        ("/_stats?forbid_closed_indices=maybe", 400),
        // What is counted by fields or groups would be more; nothing is.
        ("/_stats?groups=a&fields=*", 200),
        ("/gone/_stats", 404),
    ] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, status, "{path}");
    }
    // The same sums by node.
    let nodes = c.must("GET", "/_nodes/stats/indices/indexing", Value::Null).await;
    let nodes = nodes["nodes"].as_object().unwrap().values();
    let indexed = nodes.map(|node| node["indices"]["indexing"]["index_total"].as_u64().unwrap());
    assert_eq!(indexed.sum::<u64>(), 110);
    c.stop().await;
}

async fn patterns_delete_only_where_that_is_allowed(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    for name in ["logs-1", "logs-2", "other"] {
        c.create(name, 1, 0).await;
    }
    let by_name = |set: Value| json!({"transient": {"action.destructive_requires_name": set}});
    c.must("PUT", "/_cluster/settings", by_name(json!(true))).await;
    for path in ["/_all", "/*", "/logs-*", "/other,logs-*"] {
        let (status, said) = c.ask("DELETE", path, Value::Null).await;
        assert!(
            status == 400 && said.to_string().contains("Wildcard expressions"),
            "{path}: {said}"
        );
    }
    c.must("DELETE", "/logs-1", Value::Null).await;
    c.must("PUT", "/_cluster/settings", by_name(json!(null))).await;
    c.must("DELETE", "/logs-*", Value::Null).await;
    let left = c.must("GET", "/_cat/indices?h=index&format=json", Value::Null).await;
    assert_eq!(left, json!([{"index": "other"}]));
    c.stop().await;
}
