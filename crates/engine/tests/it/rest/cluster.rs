//! The cluster: who it is, its health and settings, its nodes, and the one it follows.

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use super::lines;
use crate::common::{Cluster, ask, eventually, raw, refuses};

testbed::both_worlds!(
    says_who_it_is,
    errors_have_the_shape_of_the_field,
    waits_for_health,
    keeps_cluster_settings,
    tells_about_nodes,
    explains_what_is_unassigned,
    follows_another_cluster,
    a_node_that_is_gone_is_no_hindrance,
);

async fn says_who_it_is(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let info = c.get("/").await;
    assert_eq!((&info["name"], &info["cluster_name"]), (&json!("c-0"), &json!("c")));
    assert_eq!(info["version"]["number"], "7.10.2");
    assert_eq!(info["version"]["narrows"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["cluster_uuid"].as_str().unwrap().len(), 20);
    let (status, body) = c.ask("HEAD", "/", Value::Null).await;
    assert_eq!((status, body), (200, json!("")));
    let long = format!("/?filter_path={}", vec!["**"; 2000].join("."));
    refuses(c.ask("GET", &long, Value::Null).await, 400, "too_long_http_line_exception");
    let only = c.get("/?filter_path=version.number&pretty").await;
    assert_eq!(only, json!({"version": {"number": "7.10.2"}}));
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
        (
            "PUT",
            "/_cluster/settings",
            json!({"persistent": {"indices.recovery.max_bytes_per_sec": "20"}}),
            400,
            "illegal_argument_exception",
        ),
        ("PUT", "/a?wait_for_active_shards=3", json!(null), 400, "illegal_argument_exception"),
        ("POST", "/a/_doc", json!(null), 400, "parse_exception"),
        ("POST", "/_bulk", json!({}), 400, "illegal_argument_exception"),
        ("PUT", "/_cluster/settings", json!(null), 400, "parse_exception"),
        ("GET", "/_ccr/stats/x", json!(null), 400, "illegal_argument_exception"),
        ("GET", "/a/_ccr/stats", json!(null), 404, "resource_not_found_exception"),
        // What it asks for would be passed over.
        ("POST", "/_forcemerge", json!({"max_num_segments": 1}), 400, "illegal_argument_exception"),
        ("DELETE", "/gone", json!({"a": 1}), 400, "illegal_argument_exception"),
        ("DELETE", "/gone", json!({}), 404, "index_not_found_exception"),
    ] {
        let (found, answer) = c.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        assert_eq!(answer["status"], status, "{method} {path}");
        assert_eq!(answer["error"]["type"], kind, "{method} {path}: {answer}");
        assert_eq!(answer["error"]["root_cause"][0]["type"], kind);
        assert!(!answer["error"]["reason"].as_str().unwrap().is_empty());
    }
    for (body, why) in [
        ("{", "no JSON"),
        (r#"{"mappings":{"properties":{"n":{"type":"long"},"n":{"type":"ip"}}}}"#, "duplicate"),
    ] {
        let (_, answer) = raw(c.any(), "PUT", "/a", Bytes::from_static(body.as_bytes())).await;
        assert!(answer["error"]["reason"].as_str().unwrap().contains(why), "{answer}");
    }
    assert_eq!(c.ask("HEAD", "/gone", Value::Null).await, (404, json!("")));
    assert!(c.get("/_cat/indices?format=json").await.as_array().unwrap().is_empty());
}

async fn waits_for_health(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    let health = c.get("/_cluster/health?wait_for_nodes=%3E%3D2&timeout=300s").await;
    assert_eq!((&health["status"], &health["timed_out"]), (&json!("green"), &json!(false)));
    assert_eq!(health["number_of_nodes"], 2);
    for name in ["delayed_unassigned_shards", "number_of_pending_tasks", "relocating_shards"] {
        assert_eq!(health[name], 0, "{name}");
    }
    let settings = json!({"settings": {"number_of_shards": 2, "number_of_replicas": 2}});
    c.must("PUT", "/a", settings).await;
    let path =
        "/_cluster/health/a?wait_for_status=yellow&wait_for_no_initializing_shards&level=shards";
    let health = c.get(path).await;
    assert_eq!((&health["status"], &health["unassigned_shards"]), (&json!("yellow"), &json!(2)));
    assert_eq!(health["indices"]["a"]["shards"]["1"]["active_shards"], 2);
    for (query, status, shards) in [
        ("expand_wildcards=open", "yellow", 4),
        ("expand_wildcards=closed", "green", 0),
        ("expand_wildcards=closed&allow_no_indices=false", "red", 0),
    ] {
        let health = c.get(&format!("/_cluster/health/a*?{query}")).await;
        assert_eq!(health["status"], status, "{query}");
        assert_eq!(health["active_shards"], shards, "{query}");
    }
    assert_eq!(c.ask("GET", "/_cluster/health?expand_wildcards=opened", Value::Null).await.0, 400);
    // Two nodes cannot hold three copies.
    let path = "/_cluster/health?wait_for_status=green&timeout=50ms";
    let (status, health) = c.ask("GET", path, Value::Null).await;
    assert_eq!((status, &health["timed_out"]), (408, &json!(true)));
    assert_eq!(health["status"], "yellow");
    let (status, health) = c.ask("GET", "/_cluster/health/gone?timeout=10ms", Value::Null).await;
    assert_eq!((status, &health["status"]), (408, &json!("red")));
}

async fn keeps_cluster_settings(env: Env) {
    let own = [("indices.recovery.max_bytes_per_sec", "7mb")];
    let c = Cluster::start_with(&env, "c", 2, &own).await;
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
    assert_eq!(c.get("/_cluster/settings").await, json!({"persistent": {}, "transient": {}}));
    // What takes longer than the request allows is done all the same, and is not acknowledged.
    let body = json!({"persistent": {"transport.compress": true}});
    let late = c.must("PUT", "/_cluster/settings?timeout=0s", body).await;
    if env.is_virtual() {
        assert_eq!(late["acknowledged"], false);
    }
    eventually(&env, "the setting is there", async || {
        let seen = c.get("/_cluster/settings?flat_settings").await;
        seen["persistent"]["transport.compress"] == "true"
    })
    .await;
    let reset = json!({"persistent": {"transport.compress": null}});
    assert_eq!(c.must("PUT", "/_cluster/settings?timeout=30s", reset).await["acknowledged"], true);
    let wrong = json!({"persistent": {"ccr.indices.recovery.chunk_sise": "1mb"}});
    let answer = c.answers(400, "PUT", "/_cluster/settings", wrong).await;
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("did you mean \"ccr.indices.recovery.chunk_size\""), "{reason}");
}

async fn tells_about_nodes(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    let stats = c.get("/_nodes/stats").await;
    assert_eq!(stats["_nodes"], json!({"total": 3, "successful": 3, "failed": 0}));
    for node in ["c-0", "c-1", "c-2"] {
        assert_eq!(stats["nodes"][node]["name"], node);
        assert!(stats["nodes"][node]["indices"]["recovery"]["throttle_time_in_millis"].is_u64());
    }
    // A process is told its own bytes, not what the machine's disk does; a simulated host has a disk of its own.
    let told = |path: &str| stats["nodes"]["c-0"].pointer(path).is_some_and(Value::is_u64);
    for path in ["/narrows/disk/read_size_in_bytes", "/narrows/disk/written_size_in_bytes"] {
        assert_eq!(told(path), !env.is_virtual(), "{path}");
    }
    assert_eq!(told("/fs/io_stats/total/io_time_in_millis"), env.is_virtual());
    // A disk of the virtual world has no size until it is given one.
    let rows = c.get("/_cat/allocation?format=json").await;
    let totals = rows.as_array().unwrap().iter().map(|row| row["disk.total"].is_string());
    assert_eq!(totals.collect::<Vec<_>>(), [!env.is_virtual(); 3], "{rows}");
    let by_role = c.get("/_cat/allocation/data:true?format=json").await;
    assert_eq!(by_role.as_array().unwrap().len(), 3, "{by_role}");
    let total = &stats["nodes"]["c-0"]["fs"]["total"]["total_in_bytes"];
    assert_eq!(total.is_u64(), !env.is_virtual(), "{total}");
    let local = c.get("/_nodes/_local/stats/process,jvm").await;
    assert_eq!(local["nodes"].as_object().unwrap().len(), 1);
    assert_eq!(local["nodes"]["c-0"].get("indices"), None);
    assert!(local["nodes"]["c-0"]["process"].is_object());
    assert_eq!(c.ask("GET", "/_nodes/stats/proces", Value::Null).await.0, 400);
    assert_eq!(c.ask("GET", "/_nodes/stats/indices/doc", Value::Null).await.0, 400);
    c.refuses(400, "[http] of _nodes/stats", "GET", "/_nodes/stats/jvm,http", Value::Null).await;
    c.get("/_nodes/stats/jvm,breaker,indexing_pressure").await;
    let disks = c.get("/_nodes/stats/fs").await["nodes"]["c-0"].clone();
    assert_eq!(disks["fs"]["total"].is_object(), !env.is_virtual(), "{disks}");
    assert_eq!(disks.get("indices"), None);
    assert_eq!(c.ask("GET", "/_nodes/stats?level=shards", Value::Null).await.0, 400);
    let flat = c.get("/_nodes/c-0/settings?flat_settings").await;
    assert_eq!(flat["nodes"]["c-0"]["settings"]["cluster.name"], "c");
    let http = c.get("/_nodes/c-1/http").await;
    let address = &http["nodes"]["c-1"]["http"]["publish_address"];
    assert_eq!(address, &json!(c.node(1).http_address()));
    assert_eq!(http["nodes"]["c-1"].get("transport"), None);
    assert_eq!(c.get("/_nodes/http").await["_nodes"]["total"], 3);
    let state = c.get("/_cluster/state/master_node,nodes").await;
    assert_eq!((&state["master_node"], state.get("metadata")), (&json!("c-0"), None));
    assert_eq!(state["nodes"].as_object().unwrap().len(), 3);
}

async fn explains_what_is_unassigned(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let answer = c.answers(400, "GET", "/_cluster/allocation/explain", Value::Null).await;
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("unable to find any unassigned shards to explain"), "{reason}");
    c.must("PUT", "/a", Value::Null).await;
    let answer = c.get("/_cluster/allocation/explain").await;
    assert_eq!((&answer["index"], &answer["primary"]), (&json!("a"), &json!(false)));
    assert_eq!(answer["current_state"], "unassigned");
    assert_eq!(answer["can_allocate"], "no");
    assert_eq!(answer["unassigned_info"]["reason"], "INDEX_CREATED");
    let decider = &answer["node_allocation_decisions"][0]["deciders"][0]["decider"];
    assert_eq!(decider, "same_shard");
    let path = "/_cluster/allocation/explain?include_yes_decisions=true&include_disk_info=true";
    assert_eq!(c.get(path).await, answer);
    let body = json!({"index": "a", "shard": 0, "primary": true});
    let answer = c.must("GET", "/_cluster/allocation/explain", body).await;
    assert_eq!(answer["current_state"], "started");
    assert_eq!(answer["current_node"]["name"], "c-0");
    assert_eq!(c.post("/_cluster/reroute?retry_failed=true").await["acknowledged"], true);
}

async fn follows_another_cluster(env: Env) {
    let leader = Cluster::start(&env, "leader", 2).await;
    let follower = Cluster::start(&env, "follower", 1).await;
    leader.create("l", 2, 0).await;
    leader.index("l", 0, 300).await;
    assert_eq!(follower.get("/_remote/info").await, json!({}));
    follower.set(json!({"cluster.remote.eu.seeds": leader.seeds()})).await;
    let mut info = Value::Null;
    eventually(&env, "both nodes are connected", async || {
        info = follower.get("/_remote/info").await;
        info["eu"]["connected"] == true && info["eu"]["num_nodes_connected"] == 2
    })
    .await;
    assert_eq!(info["eu"]["seeds"], json!(leader.seeds()));

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
            "index_following_started": true,
        })
    );
    assert_eq!(follower.counted("f").await["count"], 300);
    let digests = async |cluster: &Cluster, index: &str| {
        let answer = cluster.get(&format!("/{index}/_narrows/digest")).await;
        let rows = answer["shards"].as_array().unwrap().clone();
        rows.iter().map(|row| (row["shard"].clone(), row["content"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(digests(&follower, "f").await, digests(&leader, "l").await);

    let mut stats = Value::Null;
    eventually(&env, "both shards follow", async || {
        stats = follower.get("/f/_ccr/stats").await;
        stats["indices"][0]["shards"].as_array().is_some_and(|shards| shards.len() == 2)
    })
    .await;
    let shards = stats["indices"][0]["shards"].as_array().unwrap();
    let ops: i64 = shards.iter().map(|s| s["follower_max_seq_no"].as_i64().unwrap() + 1).sum();
    assert_eq!(ops, 300);
    assert_eq!(shards[0]["remote_cluster"], "eu");
    assert_eq!(shards[0]["leader_index"], "l");
    assert_eq!(follower.get("/_ccr/stats").await["follow_stats"]["indices"][0]["index"], "f");
    let recovery = follower.get("/f/_recovery").await;
    let shard = &recovery["f"]["shards"][0];
    assert_eq!(shard["type"], "SNAPSHOT");
    assert_eq!(shard["source"]["repository"], "_ccr_eu");

    let (status, refused) = follower.ask("PUT", "/f/_doc/1", json!({})).await;
    assert_eq!((status, &refused["error"]["type"]), (403, &json!("status_exception")));
    let body = lines(&[json!({"index": {}}), json!({})]);
    let (_, refused) = raw(follower.any(), "POST", "/f/_bulk", body).await;
    assert_eq!(refused["items"][0]["index"]["status"], 403);
}

async fn a_node_that_is_gone_is_no_hindrance(env: Env) {
    let mut c = Cluster::holding(&env, "c", 3, ("a", 3, 0), 60).await;
    c.kill_node(2).await;
    let path = "/_cluster/health?wait_for_nodes=2&timeout=300s";
    assert_eq!(c.get(path).await["status"], "red");
    let count = c.counted("a").await;
    assert_eq!(count["_shards"]["failed"], 1, "{count}");
    assert!(count["count"].as_u64().unwrap() < 60);
    let failure = &count["_shards"]["failures"][0]["reason"]["type"];
    assert_eq!(failure, "no_shard_available_action_exception");
    for path in ["/a/_narrows/digest", "/a/_narrows/digest?replicas=true"] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, 503, "half a comparison is none");
    }
    assert_eq!(c.get("/_nodes/stats").await["_nodes"]["total"], 2);
    c.start_node(2).await;
    c.green("a").await;
    assert_eq!(c.counted("a").await["count"], 60);
}
