//! Who answers a search: copies, failures, limits, and answers that are kept.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};
use world::Env;

use super::{ALL, started};
use crate::common::{Cluster, ask, eventually, refuses, settled};

testbed::both_worlds!(
    counts_over_shards,
    a_full_queue_refuses,
    a_lost_node_leaves_other_copies,
    shards_without_copies_are_partial_results,
    selection_shows_its_numbers,
    where_requests_alone_refresh_no_search_does;
    real:
    preferences_choose_copies,
    who_hangs_up_leaves_nothing_behind,
    answers_without_hits_are_kept,
);

#[test]
fn the_virtual_world_refuses_what_needs_content() {
    world::virtual_world::run(7, |env| async move {
        let c = Cluster::holding(&env, "c", 2, ("a", 2, 0), 50).await;
        for body in [
            json!({}),
            json!({"size": 0, "query": {"term": {"word": "w1"}}}),
            json!({"size": 0, "aggs": {"m": {"max": {"field": "n"}}}}),
        ] {
            let answer = c.answers(400, "POST", "/a/_search", body).await;
            let reason = answer["error"]["root_cause"][0]["reason"].as_str().unwrap();
            assert!(reason.contains("holds sizes and no documents"), "{reason}");
        }
        // A declared cost passes as time on the nodes' cores.
        let at = |documents: u64| json!({"size": 0, "ext": {"narrows": {"cost": {"documents": documents, "bytes": 1000}}}});
        let cheap = c.must("POST", "/a/_search", at(1)).await["took"].as_u64().unwrap();
        let dear = c.must("POST", "/a/_search", at(50_000_000)).await;
        assert_eq!(dear["hits"]["total"]["value"], 50);
        assert!(
            dear["took"].as_u64().unwrap() >= cheap + 1000,
            "50 million documents at 20 ns each: {dear}"
        );
        c.stop().await;
    });
}

/// How many documents a search finds: `_count` says the same, with a query and without.
async fn total(c: &Cluster) -> Value {
    let found = c.get(ALL).await["hits"]["total"]["value"].clone();
    for body in [Value::Null, json!({"query": {"match_all": {}}})] {
        let counted = c.must("GET", "/a/_count", body).await;
        assert_eq!(counted["count"], found, "{counted}");
    }
    found
}

/// Not even the first search of a copy. What a copy has when it opens is searchable, as in the field.
async fn where_requests_alone_refresh_no_search_does(env: Env) {
    let mut c = Cluster::start(&env, "c", 1).await;
    let settings =
        json!({"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"});
    c.make("a", json!({"settings": settings, "mappings": {"dynamic": false}})).await;
    assert_eq!(c.index("a", 0, 10).await, 10);
    if !env.is_virtual() {
        let all = json!({"query": {"match_all": {}}});
        assert_eq!(c.must("POST", "/a/_delete_by_query", all).await["total"], 0);
    }
    assert_eq!(total(&c).await, 0, "the first search");
    if env.is_virtual() {
        env.sleep(Duration::from_secs(40)).await;
        assert_eq!(total(&c).await, 0, "after a while without a search");
    }
    c.post("/a/_refresh").await;
    assert_eq!(total(&c).await, 10);

    assert_eq!(c.index("a", 10, 20).await, 10);
    c.stop_node(0).await;
    c.start_node(0).await;
    c.green("a").await;
    assert_eq!(c.index("a", 20, 30).await, 10);
    assert_eq!(total(&c).await, 20, "all that there was when the copies opened");

    c.must("PUT", "/a/_settings", json!({"refresh_interval": "1s"})).await;
    eventually(&env, "time refreshes it", async || {
        c.get(ALL).await["hits"]["total"]["value"] == 30
    })
    .await;
}

async fn counts_over_shards(env: Env) {
    let c = Cluster::holding(&env, "c", 3, ("a", 4, 1), 300).await;
    for node in 0..3 {
        let (status, found) = ask(c.node(node), "GET", ALL, Value::Null).await;
        assert_eq!(status, 200, "{found}");
        assert_eq!(
            found["hits"],
            json!({"total": {"value": 300, "relation": "eq"}, "max_score": null, "hits": []})
        );
        assert_eq!(
            found["_shards"],
            json!({"total": 4, "successful": 4, "skipped": 0, "failed": 0})
        );
        assert_eq!(found["timed_out"], false);
    }
    let capped = c.get("/a/_search?size=0&track_total_hits=100").await;
    assert_eq!(capped["hits"]["total"], json!({"value": 100, "relation": "gte"}));
    assert_eq!(c.get("/a/_search?size=0&track_total_hits=false").await["hits"].get("total"), None);
    let as_int = "/a/_search?size=0&rest_total_hits_as_int&track_total_hits";
    let bare = c.get(&format!("{as_int}=true")).await;
    assert_eq!(bare["hits"]["total"], 300);
    let uncounted = c.get(&format!("{as_int}=false")).await;
    assert_eq!(uncounted["hits"]["total"], -1);
    let refused = c.answers(400, "GET", &format!("{as_int}=100"), Value::Null).await;
    assert_eq!(refused["error"]["type"], "illegal_argument_exception");
    let empty = c.get("/nothing*/_search").await;
    assert_eq!(empty["_shards"]["total"], 0);
    assert_eq!(empty["hits"]["total"]["value"], 0);
    settled(&c).await;
}

async fn a_full_queue_refuses(env: Env) {
    let settings = [("thread_pool.search.size", "1"), ("thread_pool.search.queue_size", "0")];
    let c = Cluster::start_with(&env, "c", 1, &settings).await;
    c.create("a", 8, 0).await;
    c.index("a", 0, 4000).await;
    c.post("/a/_refresh").await;
    // Eight shards of one node at once, and room for one: the others are refused.
    let tries = Cell::new(0);
    let refused = async || {
        tries.set(tries.get() + 1);
        let body = if env.is_virtual() {
            json!({"size": 0, "ext": {"narrows": {"cost": {"documents": 1_000_000}}}})
        } else {
            // Another each time: what was answered once comes from the cache, which is never refused.
            json!({"size": 0, "query": {"range": {"n": {"lt": 4000 - tries.get()}}}})
        };
        let found = c.must("POST", "/a/_search", body).await;
        let failures = found["_shards"]["failures"].as_array().cloned().unwrap_or_default();
        for failure in &failures {
            assert_eq!(failure["reason"]["type"], "es_rejected_execution_exception");
        }
        let failed = found["_shards"]["failed"].as_u64().unwrap();
        assert_eq!(failed > 0, !failures.is_empty(), "{found}");
        failed
    };
    eventually(&env, "a search is refused", async || refused().await > 0).await;
    let stats = c.get("/_nodes/stats/thread_pool").await;
    let pool = &stats["nodes"]["c-0"]["thread_pool"]["search"];
    assert!(pool["rejected"].as_u64().unwrap() > 0, "{stats}");
    assert_eq!(pool["threads"], 1);
    assert_eq!(pool["largest"], 1);
    assert_eq!(pool["queue_size"], 0);
    eventually(&env, "nothing runs, and nothing waits", async || {
        let table = c.get("/_cat/thread_pool/search?h=name,active,queue,rejected").await;
        table.as_str().unwrap().starts_with("search 0 0 ")
    })
    .await;
    settled(&c).await;
}

async fn a_lost_node_leaves_other_copies(env: Env) {
    let mut c = Cluster::holding(&env, "c", 3, ("a", 3, 2), 90).await;
    c.post("/a/_refresh").await;
    c.kill_node(2).await;
    // At once, while the state may still name the lost node: what fails there is answered by another copy.
    for _ in 0..6 {
        let found = c.get(ALL).await;
        assert_eq!(found["_shards"]["failed"], 0, "{found}");
        assert_eq!(found["hits"]["total"]["value"], 90);
    }
    settled(&c).await;
}

async fn shards_without_copies_are_partial_results(env: Env) {
    let mut c = Cluster::holding(&env, "c", 3, ("a", 6, 0), 120).await;
    c.post("/a/_refresh").await;
    c.kill_node(2).await;
    eventually(&env, "the lost node is noticed", async || {
        let health = c.get("/_cluster/health/a").await;
        health["status"] == "red"
    })
    .await;
    let found = c.get(ALL).await;
    let shards = &found["_shards"];
    assert_eq!(shards["total"], 6);
    assert_eq!(shards["successful"], 4);
    assert_eq!(shards["failed"], 2);
    assert_eq!(shards["failures"][0]["reason"]["type"], "no_shard_available_action_exception");
    assert!(found["hits"]["total"]["value"].as_u64().unwrap() < 120);
    let strict = format!("{ALL}&allow_partial_search_results=false");
    let answer = c.ask("GET", &strict, Value::Null).await;
    let answer = refuses(answer, 503, "search_phase_execution_exception");
    assert_eq!(answer["error"]["failed_shards"].as_array().unwrap().len(), 2);
    // What the cluster says holds for counts, too.
    assert_eq!(c.get("/a/_count").await["_shards"]["failed"], 2);
    c.set_for_now(json!({"search.default_allow_partial_results": false})).await;
    let answer = c.ask("GET", "/a/_count", Value::Null).await;
    refuses(answer, 503, "search_phase_execution_exception");
    settled(&c).await;
}

async fn selection_shows_its_numbers(env: Env) {
    let c = Cluster::holding(&env, "c", 3, ("a", 1, 2), 10).await;
    let words = engine::settings::Selection::WORDS.iter();
    // Switched while it runs; the oracle exists in virtual time alone.
    for policy in words.filter(|word| env.is_virtual() || **word != "oracle") {
        c.set_for_now(json!({"narrows.search.selection": policy})).await;
        for _ in 0..9 {
            let found = c.get(ALL).await;
            assert_eq!(found["_shards"]["failed"], 0, "{policy}: {found}");
        }
    }
    if !env.is_virtual() {
        c.set_for_now(json!({"narrows.search.selection": "oracle"})).await;
        c.refuses(400, "exists in virtual time alone", "GET", ALL, Value::Null).await;
    }
    settled(&c).await;
    let stats = c.get("/_nodes/c-0/stats/adaptive_selection").await;
    let rows = &stats["nodes"]["c-0"]["adaptive_selection"];
    assert_eq!(rows.as_object().unwrap().len(), 3, "rotation alone asks every copy: {rows}");
    for row in rows.as_object().unwrap().values() {
        assert_eq!(row["outgoing_searches"], 0);
        for part in ["avg_queue_size", "avg_service_time_ns", "avg_response_time_ns"] {
            assert!(row[part].is_u64(), "{part}: {row}");
        }
        row["rank"].as_str().unwrap().parse::<f64>().unwrap();
    }
    let wrong = json!({"transient": {"narrows.search.selection": "arse"}});
    assert_eq!(c.ask("PUT", "/_cluster/settings", wrong).await.0, 400);
    settled(&c).await;
}

async fn answers_without_hits_are_kept(env: Env) {
    let c = started(&env, 1, (1, 0), 20).await;
    let counts = async || {
        let stats = c.get("/_nodes/stats/indices").await;
        let kept = stats["nodes"]["c-0"]["indices"]["request_cache"].clone();
        (kept["hit_count"].as_u64().unwrap(), kept["miss_count"].as_u64().unwrap())
    };
    let of_size = |size: u64| json!({"size": size, "aggs": {"n": {"sum": {"field": "n"}}}});
    let sum = async |parameters: &str, size: u64| {
        let found = c.must("POST", &format!("/a/_search{parameters}"), of_size(size)).await;
        found["aggregations"]["n"]["value"].as_f64().unwrap()
    };
    let settings = async |kept: bool| {
        c.must("PUT", "/a/_settings", json!({"index.requests.cache.enable": kept})).await;
    };
    for _ in 0..3 {
        assert_eq!(sum("", 0).await, 190.0);
    }
    assert_eq!(counts().await, (2, 1));
    // Not where hits are shown, or where request or index say no; unless the request says yes.
    sum("", 1).await;
    sum("?request_cache=false", 0).await;
    assert_eq!(counts().await, (2, 1));
    sum("?request_cache=true", 1).await;
    assert_eq!(counts().await, (2, 2));
    settings(false).await;
    sum("", 0).await;
    assert_eq!(counts().await, (2, 2));
    sum("?request_cache=true", 0).await;
    assert_eq!(counts().await, (3, 2));
    settings(true).await;
    c.must("PUT", "/a/_doc/20?refresh=true", json!({"n": 10})).await;
    assert_eq!(sum("", 0).await, 200.0);
    assert_eq!(counts().await, (3, 3));
}

async fn preferences_choose_copies(env: Env) {
    let c = started(&env, 3, (1, 2), 20).await;
    let queries = async |node: usize| {
        let stats = c.get("/_nodes/stats/indices").await;
        stats["nodes"][format!("c-{node}")]["indices"]["search"]["query_total"].as_u64().unwrap()
    };
    for (preference, node) in
        [("_only_nodes:c-1", 1), ("_prefer_nodes:c-2", 2), ("_local", 0), ("_only_local", 0)]
    {
        let before = queries(node).await;
        for _ in 0..5 {
            c.get(&format!("/a/_search?preference={preference}")).await;
        }
        assert_eq!(queries(node).await, before + 5, "{preference}");
    }
    let answer = c.answers(503, "GET", "/a/_search?preference=_only_nodes:gone", Value::Null).await;
    assert_eq!(answer["error"]["root_cause"][0]["type"], "no_shard_available_action_exception");
    assert_eq!(c.get("/a/_search?preference=_shards:7").await["_shards"]["total"], 0);
}

async fn who_hangs_up_leaves_nothing_behind(env: Env) {
    let c = started(&env, 3, (6, 1), 600).await;
    for pause_us in [0, 50, 200, 400, 800, 1600, 3200] {
        let node = c.any().clone();
        let asking = env.spawn("asks and hangs up", async move {
            ask(&node, "POST", "/a/_search", json!({"query": {"match": {"text": "red"}}})).await
        });
        env.sleep(Duration::from_micros(pause_us)).await;
        drop(asking);
    }
    // Views that a coordinator left are let go in time; slots and requests in flight at once.
    eventually(&env, "no slot is held", async || {
        let stats = c.get("/_nodes/stats").await;
        stats["nodes"].as_object().unwrap().values().all(|node| {
            let rows = node["adaptive_selection"].as_object().unwrap();
            node["thread_pool"]["search"]["active"] == 0
                && rows.values().all(|row| row["outgoing_searches"] == 0)
        })
    })
    .await;
}
