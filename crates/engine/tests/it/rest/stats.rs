//! `_stats`, `_cluster/stats` and `_segments`; clearing caches; and what deletes by patterns.

use serde_json::{Value, json};
use world::Env;

use crate::common::Cluster;

testbed::both_worlds!(
    stats_are_sums_over_copies,
    clusters_are_told_in_numbers,
    segments_are_committed_or_searched_or_both,
    caches_are_cleared_by_name,
    patterns_delete_only_where_that_is_allowed,
);

async fn stats_are_sums_over_copies(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 2, 1)).await;
    c.create("b", 1, 0).await;
    c.green("a").await;
    c.index("a", 0, 50).await;
    c.index("b", 0, 10).await;
    c.delete("/a/_doc/1").await;
    c.get("/a/_doc/2").await;
    c.ask("GET", "/a/_doc/1", Value::Null).await;
    c.post("/_refresh").await;
    c.post("/_flush").await;

    let all = c.get("/_stats").await;
    assert_eq!(all["_shards"], json!({"total": 5, "successful": 5, "failed": 0}));
    let (primaries, total) = (&all["_all"]["primaries"], &all["_all"]["total"]);
    assert_eq!((&primaries["docs"]["count"], &total["docs"]["count"]), (&json!(59), &json!(108)));
    assert_eq!(primaries["indexing"]["index_total"], 60);
    assert_eq!(total["indexing"]["index_total"], 110, "replicas index what they are sent");
    assert_eq!(primaries["indexing"]["delete_total"], 1);
    assert_eq!(total["indexing"]["delete_total"], 2);
    let get = &total["get"];
    assert!(get["exists_total"].as_u64() >= Some(1) && get["missing_total"] == 1, "{get}");
    assert_eq!(primaries["flush"]["total"], 3, "one for each shard: {primaries}");
    assert!(primaries["refresh"]["total"].as_u64() >= Some(3));
    assert!(primaries["store"]["size_in_bytes"].as_u64() > Some(0));
    assert_eq!(total["merges"], json!({"current": 0}));
    assert_eq!(total.get("warmer"), None, "what is not counted is left out");
    assert_eq!(all["indices"]["a"].get("shards"), None);

    let of_a = c.get("/a/_stats/docs,store?level=shards").await;
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
    let cluster = c.get("/_stats/_all?level=cluster").await;
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
    let nodes = c.get("/_nodes/stats/indices/indexing").await;
    let nodes = nodes["nodes"].as_object().unwrap().values();
    let indexed = nodes.map(|node| node["indices"]["indexing"]["index_total"].as_u64().unwrap());
    assert_eq!(indexed.sum::<u64>(), 110);
}

async fn clusters_are_told_in_numbers(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 2, 1)).await;
    c.create("b", 1, 0).await;
    c.index("a", 0, 50).await;
    c.index("b", 0, 10).await;
    c.post("/_refresh").await;

    let all = c.get("/_cluster/stats").await;
    assert_eq!(all["_nodes"], json!({"total": 2, "successful": 2, "failed": 0}));
    assert_eq!((&all["cluster_name"], &all["status"]), (&json!("c"), &json!("green")));
    let indices = &all["indices"];
    assert_eq!((&indices["count"], &indices["docs"]["count"]), (&json!(2), &json!(60)));
    let shards = &indices["shards"];
    assert_eq!((&shards["total"], &shards["primaries"]), (&json!(5), &json!(3)));
    assert_eq!(shards["index"]["shards"], json!({"min": 1, "max": 4, "avg": 2.5}));
    assert_eq!(shards["index"]["replication"], json!({"min": 0.0, "max": 1.0, "avg": 0.5}));
    let stats = c.get("/_stats/store,segments").await;
    for metric in ["store", "segments"] {
        assert_eq!(indices[metric], stats["_all"]["total"][metric], "of every copy");
    }
    let nodes = &all["nodes"];
    assert_eq!((&nodes["count"]["total"], &nodes["count"]["data"]), (&json!(2), &json!(2)));
    assert_eq!(nodes["versions"].as_array().unwrap().len(), 1);
    // A disk of the virtual world has no size; that of the machine counts once.
    let disks = c.get("/_cat/allocation?format=json&bytes=b").await;
    let disk = disks[0]["disk.total"].as_str().map(|bytes| bytes.parse::<u64>().unwrap());
    assert_eq!(nodes["fs"]["total_in_bytes"].as_u64(), disk, "{nodes}");

    let mut copies = 0;
    for node in ["c-0", "c-1"] {
        let one = c.get(&format!("/_cluster/stats/nodes/{node}?timeout=10s&flat_settings")).await;
        assert_eq!(one["_nodes"]["total"], 1);
        assert_eq!(one["nodes"]["count"]["data"], 1);
        copies += one["indices"]["shards"]["total"].as_u64().unwrap();
    }
    assert_eq!(copies, 5);
    let nobody = c.get("/_cluster/stats/nodes/gone").await;
    assert_eq!((&nobody["_nodes"]["total"], &nobody["indices"]["shards"]), (&json!(0), &json!({})));
    for path in
        ["/_cluster/stats/nodes/rack:a", "/_cluster/stats/fs/nodes/c-0", "/_cluster/stats?local"]
    {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, 400, "{path}");
    }
}

/// The segments of each copy of `a`: how many are committed and searched, and all of them.
async fn segments(c: &Cluster) -> Vec<(u64, u64, Vec<Value>)> {
    let told = c.get("/a/_segments").await;
    assert_eq!(told["_shards"], json!({"total": 2, "successful": 2, "failed": 0}));
    let copies = told["indices"]["a"]["shards"]["0"].as_array().unwrap().iter();
    copies
        .map(|copy| {
            assert_eq!(copy["routing"]["state"], "STARTED");
            let count = |name: &str| copy[name].as_u64().unwrap();
            let each = copy["segments"].as_object().unwrap().values().cloned().collect();
            (count("num_committed_segments"), count("num_search_segments"), each)
        })
        .collect()
}

async fn segments_are_committed_or_searched_or_both(env: Env) {
    let c = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    for (from, to) in [(0, 20), (20, 50)] {
        c.index("a", from, to).await;
        c.post("/a/_flush").await;
    }
    c.delete("/a/_doc/1").await;
    c.post("/a/_refresh").await;
    let sum =
        |all: &[Value], part: &str| all.iter().filter_map(|one| one[part].as_u64()).sum::<u64>();
    let before = segments(&c).await;
    for (committed, searched, all) in &before {
        assert!(*committed >= 2 && committed == searched, "{all:?}");
        assert_eq!((sum(all, "num_docs"), sum(all, "deleted_docs")), (49, 1), "{all:?}");
        assert!(all.iter().all(|one| one["committed"] == true && one["search"] == true), "{all:?}");
    }
    let bytes: u64 = before.iter().map(|(.., all)| sum(all, "size_in_bytes")).sum();
    assert_eq!(c.get("/a/_stats/store").await["_all"]["total"]["store"]["size_in_bytes"], bytes);

    // What is merged is searched, and what it was made of is still what the commit has.
    c.post("/a/_forcemerge?max_num_segments=1&flush=false").await;
    for ((committed, ..), (still, searched, all)) in before.iter().zip(segments(&c).await) {
        assert_eq!((still, searched, all.len() as u64), (*committed, 1, committed + 1), "{all:?}");
        for one in &all {
            let is_searched = one["search"] == true;
            assert_eq!(
                (&one["committed"], one.get("num_docs").is_some()),
                (&json!(!is_searched), is_searched)
            );
            assert!(one["size_in_bytes"].as_u64() > Some(0), "{one}");
        }
        assert_eq!((sum(&all, "num_docs"), sum(&all, "deleted_docs")), (49, 0), "{all:?}");
    }
    c.post("/a/_flush").await;
    let columns = "h=index,shard,prirep,docs.count,docs.deleted,committed,searchable&s=prirep";
    let rows = c.get(&format!("/_cat/segments/a?format=json&{columns}")).await;
    let row = |prirep: &str| {
        json!({
            "index": "a", "shard": "0", "prirep": prirep, "docs.count": "49", "docs.deleted": "0",
            "committed": "true", "searchable": "true",
        })
    };
    assert_eq!(rows, json!([row("p"), row("r")]));
    for (path, status) in [
        ("/gone/_segments", 404),
        ("/zzz*/_segments?allow_no_indices=false", 404),
        ("/_segments?verbose=true&expand_wildcards=all", 200),
        ("/_segments?verbose=maybe", 400),
        ("/_cat/segments/gone", 404),
        ("/_cat/segments?bytes=b&v", 200),
        ("/_cat/segments?expand_wildcards=all", 400),
    ] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, status, "{path}");
    }
}

async fn caches_are_cleared_by_name(env: Env) {
    let c = Cluster::with(&env, "c", 1, ("a", 2, 0)).await;
    c.index("a", 0, 20).await;
    c.post("/_refresh").await;
    let misses = async || {
        c.must("POST", "/a/_search?request_cache=true", json!({"size": 0})).await;
        let stats = c.get("/a/_stats/request_cache").await;
        stats["_all"]["total"]["request_cache"]["miss_count"].as_u64().unwrap()
    };
    // The virtual world keeps no answers.
    let each = if env.is_virtual() { 0 } else { 2 };
    assert_eq!((misses().await, misses().await), (each, each));
    for (path, more) in [
        ("/_cache/clear?query&fielddata=true", 0),
        ("/_cache/clear?fields=n", 0),
        ("/_cache/clear?request=true", 1),
        ("/a/_cache/clear", 1),
        ("/_cache/clear?index=a&file=false", 1),
    ] {
        let before = misses().await;
        let cleared = c.post(path).await;
        assert_eq!(cleared["_shards"], json!({"total": 2, "successful": 2, "failed": 0}), "{path}");
        assert_eq!(misses().await, before + more * each, "{path}");
    }
    for (path, status) in [
        ("/gone/_cache/clear", 404),
        ("/_cache/clear?index=gone", 404),
        ("/_cache/clear?file=x", 400),
    ] {
        assert_eq!(c.ask("POST", path, Value::Null).await.0, status, "{path}");
    }
}

async fn patterns_delete_only_where_that_is_allowed(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    for name in ["logs-1", "logs-2", "other"] {
        c.create(name, 1, 0).await;
    }
    c.set_for_now(json!({"action.destructive_requires_name": true})).await;
    for path in ["/_all", "/*", "/logs-*", "/other,logs-*"] {
        c.refuses(400, "Wildcard expressions", "DELETE", path, Value::Null).await;
    }
    c.delete("/logs-1").await;
    c.set_for_now(json!({"action.destructive_requires_name": null})).await;
    c.delete("/logs-*").await;
    assert_eq!(c.get("/_cat/indices?h=index&format=json").await, json!([{"index": "other"}]));
}
