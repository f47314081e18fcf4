//! Searches over a cluster: query, then fetch; selection, failures, limits. In both worlds where documents are not
//! needed, on real nodes where they are.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Cluster, ask, eventually, raw, settled};
use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

both_worlds!(
    counts_over_shards,
    a_full_queue_refuses,
    a_lost_node_leaves_other_copies,
    shards_without_copies_are_partial_results,
    selection_shows_its_numbers,
);

mod on_real_nodes {
    #[test]
    fn finds_sorts_and_aggregates_over_shards() {
        world::real_world::run(7, super::finds_sorts_and_aggregates_over_shards);
    }
    #[test]
    fn what_is_wrong_is_said() {
        world::real_world::run(7, super::what_is_wrong_is_said);
    }
    #[test]
    fn many_searches_in_one_request() {
        world::real_world::run(7, super::many_searches_in_one_request);
    }
    #[test]
    fn preferences_choose_copies() {
        world::real_world::run(7, super::preferences_choose_copies);
    }
    #[test]
    fn who_hangs_up_leaves_nothing_behind() {
        world::real_world::run(7, super::who_hangs_up_leaves_nothing_behind);
    }
    #[test]
    fn answers_without_hits_are_kept() {
        world::real_world::run(7, super::answers_without_hits_are_kept);
    }
    #[test]
    fn a_field_is_found_in_all_its_ways_or_it_is_said() {
        world::real_world::run(7, super::a_field_is_found_in_all_its_ways_or_it_is_said);
    }
    #[test]
    fn writes_become_visible_by_time() {
        world::real_world::run(7, super::writes_become_visible_by_time);
    }
}

#[test]
fn the_virtual_world_refuses_what_needs_content() {
    world::virtual_world::run(7, |env| async move {
        let c = Cluster::start(&env, "c", 2).await;
        c.create("a", 2, 0).await;
        c.index("a", 0, 50).await;
        for body in [
            json!({}),
            json!({"size": 0, "query": {"term": {"word": "w1"}}}),
            json!({"size": 0, "aggs": {"m": {"max": {"field": "n"}}}}),
        ] {
            let (status, answer) = c.ask("POST", "/a/_search", body).await;
            assert_eq!(status, 400, "{answer}");
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

const ALL: &str = "/a/_search?size=0&track_total_hits=true";

async fn counts_over_shards(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    c.create("a", 4, 1).await;
    assert_eq!(c.index("a", 0, 300).await, 300);
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
    let capped = c.must("GET", "/a/_search?size=0&track_total_hits=100", Value::Null).await;
    assert_eq!(capped["hits"]["total"], json!({"value": 100, "relation": "gte"}));
    let none = c.must("GET", "/a/_search?size=0&track_total_hits=false", Value::Null).await;
    assert_eq!(none["hits"].get("total"), None);
    let bare = c.must("GET", &format!("{ALL}&rest_total_hits_as_int"), Value::Null).await;
    assert_eq!(bare["hits"]["total"], 300);
    let empty = c.must("GET", "/nothing*/_search", Value::Null).await;
    assert_eq!(
        (&empty["_shards"]["total"], &empty["hits"]["total"]["value"]),
        (&json!(0), &json!(0))
    );
    settled(&c).await;
    c.stop().await;
}

async fn a_full_queue_refuses(env: Env) {
    let settings = [("thread_pool.search.size", "1"), ("thread_pool.search.queue_size", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let c = Cluster::start_with(&env, "c", 1, BTreeMap::from(settings)).await;
    c.create("a", 8, 0).await;
    c.index("a", 0, 4000).await;
    c.must("POST", "/a/_refresh", Value::Null).await;
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
        assert_eq!(found["_shards"]["failed"], failures.len());
        for failure in &failures {
            assert_eq!(failure["reason"]["type"], "es_rejected_execution_exception");
        }
        failures.len()
    };
    eventually(&env, "a search is refused", async || refused().await > 0).await;
    let stats = c.must("GET", "/_nodes/stats/thread_pool", Value::Null).await;
    let pool = &stats["nodes"]["c-0"]["thread_pool"]["search"];
    assert!(pool["rejected"].as_u64().unwrap() > 0, "{stats}");
    assert_eq!(
        (&pool["threads"], &pool["largest"], &pool["queue_size"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let table =
        c.must("GET", "/_cat/thread_pool/search?h=name,active,queue,rejected", Value::Null).await;
    let row = table.as_str().unwrap();
    assert!(row.starts_with("search 0 0 "), "{row}");
    settled(&c).await;
    c.stop().await;
}

async fn a_lost_node_leaves_other_copies(env: Env) {
    let mut c = Cluster::start(&env, "c", 3).await;
    c.create("a", 3, 2).await;
    c.index("a", 0, 90).await;
    c.must("POST", "/a/_refresh", Value::Null).await;
    c.kill_node(2).await;
    // At once, while the state may still name the lost node: what fails there is answered by another copy.
    for _ in 0..6 {
        let found = c.must("GET", ALL, Value::Null).await;
        assert_eq!(found["_shards"]["failed"], 0, "{found}");
        assert_eq!(found["hits"]["total"]["value"], 90);
    }
    settled(&c).await;
    c.stop().await;
}

async fn shards_without_copies_are_partial_results(env: Env) {
    let mut c = Cluster::start(&env, "c", 3).await;
    c.create("a", 6, 0).await;
    c.index("a", 0, 120).await;
    c.must("POST", "/a/_refresh", Value::Null).await;
    c.kill_node(2).await;
    eventually(&env, "the lost node is noticed", async || {
        let health = c.must("GET", "/_cluster/health/a", Value::Null).await;
        health["status"] == "red"
    })
    .await;
    let found = c.must("GET", ALL, Value::Null).await;
    let shards = &found["_shards"];
    assert_eq!(
        (&shards["total"], &shards["successful"], &shards["failed"]),
        (&json!(6), &json!(4), &json!(2))
    );
    assert_eq!(shards["failures"][0]["reason"]["type"], "no_shard_available_action_exception");
    assert!(found["hits"]["total"]["value"].as_u64().unwrap() < 120);
    let strict = format!("{ALL}&allow_partial_search_results=false");
    let (status, answer) = c.ask("GET", &strict, Value::Null).await;
    assert_eq!(
        (status, &answer["error"]["type"]),
        (503, &json!("search_phase_execution_exception"))
    );
    assert_eq!(answer["error"]["failed_shards"].as_array().unwrap().len(), 2);
    settled(&c).await;
    c.stop().await;
}

async fn selection_shows_its_numbers(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    c.create("a", 1, 2).await;
    c.index("a", 0, 10).await;
    let words = engine::settings::Selection::WORDS.iter();
    // Switched while it runs; the oracle exists in virtual time alone.
    for policy in words.filter(|word| env.is_virtual() || **word != "oracle") {
        let settings = json!({"transient": {"narrows.search.selection": policy}});
        c.must("PUT", "/_cluster/settings", settings).await;
        for _ in 0..9 {
            let found = c.must("GET", ALL, Value::Null).await;
            assert_eq!(found["_shards"]["failed"], 0, "{policy}: {found}");
        }
    }
    if !env.is_virtual() {
        let settings = json!({"transient": {"narrows.search.selection": "oracle"}});
        c.must("PUT", "/_cluster/settings", settings).await;
        let (status, answer) = c.ask("GET", ALL, Value::Null).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer.to_string().contains("exists in virtual time alone"), "{answer}");
    }
    let stats = c.must("GET", "/_nodes/c-0/stats/adaptive_selection", Value::Null).await;
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
    c.stop().await;
}

const WORDS: [&str; 4] = ["red", "green", "blue", "red"];

/// An index with `count` documents, searchable.
async fn filled(c: &Cluster, shards: u32, replicas: u32, count: u64) {
    let body = json!({
        "settings": {"number_of_shards": shards, "number_of_replicas": replicas},
        "mappings": {"properties": {
            "n": {"type": "long"}, "word": {"type": "keyword"}, "text": {"type": "text"}, "at": {"type": "date"},
            "place": {"type": "geo_point"}, "o": {"properties": {"x": {"type": "double"}, "y": {"type": "double"}}},
        }},
    });
    c.must("PUT", "/a", body).await;
    c.green("a").await;
    let mut lines = String::new();
    for n in 0..count {
        let document = json!({
            "n": n, "word": WORDS[n as usize % 4], "text": format!("the {} number {n}", WORDS[n as usize % 4]),
            "at": 1_577_836_800_000u64 + n * 86_400_000, "place": [n as f64 / 10.0, 0.0],
            "o": {"x": n as f64 / 2.0, "y": 1},
        });
        lines += &format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{document}\n");
    }
    let (status, answer) = raw(c.any(), "POST", "/a/_bulk?refresh", Bytes::from(lines)).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(false)));
}

fn ids(found: &Value) -> Vec<u64> {
    let hits = found["hits"]["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["_id"].as_str().unwrap().parse().unwrap()).collect()
}

async fn finds_sorts_and_aggregates_over_shards(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    filled(&c, 5, 1, 200).await;
    let search = async |body: Value| c.must("POST", "/a/_search", body).await;
    let found = search(json!({"query": {"range": {"n": {"gte": 50}}}, "sort": [{"n": "desc"}], "from": 3, "size": 4, "_source": ["o.x", "wo*"]})).await;
    assert_eq!(ids(&found), [196, 195, 194, 193]);
    let first = &found["hits"]["hits"][0];
    assert_eq!(first["_source"], json!({"o": {"x": 98.0}, "word": "red"}));
    assert_eq!(
        (&first["sort"], &first["_score"], &first["_index"]),
        (&json!([196]), &Value::Null, &json!("a"))
    );
    assert_eq!(found["hits"]["total"], json!({"value": 150, "relation": "eq"}));
    // Pages behind one another.
    let mut after = Value::Null;
    let mut pages = Vec::new();
    loop {
        let mut body = json!({"size": 7, "sort": [{"word": "asc"}, "n"], "_source": false});
        if !after.is_null() {
            body["search_after"] = after;
        }
        let found = search(body).await;
        assert_eq!(found["hits"]["hits"].get(0).and_then(|hit| hit.get("_source")), None);
        let Some(last) = found["hits"]["hits"].as_array().unwrap().last() else { break };
        after = last["sort"].clone();
        pages.extend(ids(&found));
    }
    let mut expected: Vec<u64> = (0..200).collect();
    expected.sort_by_key(|n| (WORDS[*n as usize % 4], *n));
    assert_eq!(pages, expected);
    // Scores: a rare word beats common ones.
    let found = search(json!({"query": {"match": {"text": "red number 17"}}, "size": 200, "version": true, "seq_no_primary_term": true})).await;
    assert_eq!(ids(&found).len(), 200);
    assert_eq!(ids(&found)[0], 17);
    let scores: Vec<f64> = found["hits"]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["_score"].as_f64().unwrap())
        .collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(found["hits"]["max_score"], found["hits"]["hits"][0]["_score"]);
    assert_eq!(found["hits"]["hits"][0]["_version"], 1);
    assert!(found["hits"]["hits"][0]["_seq_no"].is_u64());
    let found = search(json!({"size": 0, "query": {"bool": {"must_not": {"term": {"word": "blue"}}}}, "aggs": {
        "words": {"terms": {"field": "word"}, "aggs": {"n": {"stats": {"field": "n"}}}},
        "months": {"date_histogram": {"field": "at", "calendar_interval": "month", "format": "yyyy-MM"}},
        "p": {"percentiles": {"field": "n", "percents": [50]}},
        "distinct": {"cardinality": {"field": "n"}, "meta": {"unit": "documents"}},
    }})).await;
    let aggs = &found["aggregations"];
    let red = &aggs["words"]["buckets"][0];
    assert_eq!((&red["key"], &red["doc_count"]), (&json!("red"), &json!(100)));
    assert_eq!((&red["n"]["count"], &red["n"]["max"]), (&json!(100), &json!(199.0)));
    assert_eq!(aggs["words"]["sum_other_doc_count"], 0);
    assert_eq!(
        aggs["months"]["buckets"][1],
        json!({"key_as_string": "2020-02", "key": 1_580_515_200_000u64, "doc_count": 22})
    );
    assert_eq!(aggs["distinct"], json!({"value": 150, "meta": {"unit": "documents"}}));
    let near = search(
        json!({"query": {"geo_distance": {"distance": "60km", "place": [0.0, 0.0]}}, "sort": "n"}),
    )
    .await;
    assert_eq!(ids(&near), [0, 1, 2, 3, 4, 5]);
    let counted = c.must("POST", "/a/_count", json!({"query": {"term": {"word": "green"}}})).await;
    assert_eq!(counted["count"], 50);
    let one = c.must("GET", "/a/_search?sort=n:desc&size=1&_source_includes=n", Value::Null).await;
    assert_eq!(one["hits"]["hits"][0]["_source"], json!({"n": 199}));
    settled(&c).await;
    c.stop().await;
}

async fn what_is_wrong_is_said(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    filled(&c, 2, 0, 20).await;
    for (body, status, kind, part) in [
        (
            json!({"query": {"fuzzy": {"a": "b"}}}),
            400,
            "parsing_exception",
            "unknown query [fuzzy]",
        ),
        (
            json!({"from": 9_995, "size": 10}),
            400,
            "illegal_argument_exception",
            "index.max_result_window",
        ),
        (json!({"query": {"term": {"n": "many"}}}), 400, "query_shard_exception", "many"),
        (json!({"query": {"prefix": {"n": "1"}}}), 400, "query_shard_exception", "prefix"),
        (
            json!({"sort": "nothing"}),
            400,
            "query_shard_exception",
            "No mapping found for [nothing]",
        ),
        (json!({"sort": "text"}), 400, "illegal_argument_exception", "keyword field instead"),
        (
            json!({"aggs": {"a": {"max": {"field": "word"}}}}),
            400,
            "illegal_argument_exception",
            "[word]",
        ),
        (
            json!({"size": 0, "aggs": {"a": {"histogram": {"field": "n", "interval": 0.0001}}}}),
            400,
            "too_many_buckets_exception",
            "search.max_buckets",
        ),
        (
            json!({"query": {"geo_distance": {"distance": "1km", "word": [0, 0]}}}),
            400,
            "query_shard_exception",
            "[keyword]",
        ),
    ] {
        let (found, answer) = c.ask("POST", "/a/_search", body.clone()).await;
        assert_eq!(found, status, "{body}: {answer}");
        let cause = &answer["error"]["root_cause"][0];
        assert_eq!(cause["type"], kind, "{body}: {answer}");
        assert!(cause["reason"].as_str().unwrap().contains(part), "{body}: {answer}");
    }
    let (_, answer) = c.ask("POST", "/a/_search", json!({"query": {"fuzzy": {"a": "b"}}})).await;
    assert_eq!((&answer["error"]["line"], &answer["error"]["col"]), (&json!(1), &json!(11)));
    let empty = c.must("POST", "/a/_search", json!({"query": {"term": {"unknown": 1}}, "aggs": {"a": {"max": {"field": "unknown"}}}})).await;
    assert_eq!(
        (&empty["hits"]["total"]["value"], &empty["aggregations"]["a"]["value"]),
        (&json!(0), &Value::Null)
    );
    for path in [
        "/a/_search?q=x",
        "/a/_search?scroll=1m",
        "/a/_search?search_type=dfs_query_then_fetch",
        "/a/_search?preference=_primary",
        "/a/_count?q=x",
        "/a/_search?sise=1",
    ] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, 400, "{path}");
    }
    settled(&c).await;
    c.stop().await;
}

async fn many_searches_in_one_request(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    filled(&c, 2, 0, 20).await;
    let body = "{}\n{\"size\":1,\"sort\":\"n\"}\n{\"index\":\"gone\"}\n{}\n{\"index\":[\"a\"],\"preference\":\"x\"}\n{\"query\":{\"mtch\":{}}}\n";
    let (status, answer) = raw(c.any(), "POST", "/a/_msearch", Bytes::from(body)).await;
    assert_eq!(status, 200, "{answer}");
    let responses = answer["responses"].as_array().unwrap();
    assert_eq!(responses.len(), 3);
    assert_eq!(
        (&responses[0]["status"], &responses[0]["hits"]["hits"][0]["_id"]),
        (&json!(200), &json!("0"))
    );
    assert_eq!(
        (&responses[1]["status"], &responses[1]["error"]["type"]),
        (&json!(404), &json!("index_not_found_exception"))
    );
    assert_eq!(
        (&responses[2]["status"], &responses[2]["error"]["type"]),
        (&json!(400), &json!("parsing_exception"))
    );
    for bad in ["", "{}", "{\"indx\":\"a\"}\n"] {
        let (status, _) = raw(c.any(), "POST", "/a/_msearch", Bytes::from(bad)).await;
        assert_eq!(status, 400, "{bad}");
    }
    c.stop().await;
}

async fn answers_without_hits_are_kept(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    filled(&c, 1, 0, 20).await;
    let counts = async || {
        let stats = c.must("GET", "/_nodes/stats/indices", Value::Null).await;
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
    c.stop().await;
}

async fn preferences_choose_copies(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    filled(&c, 1, 2, 20).await;
    let queries = async |node: usize| {
        let stats = c.must("GET", "/_nodes/stats/indices", Value::Null).await;
        stats["nodes"][format!("c-{node}")]["indices"]["search"]["query_total"].as_u64().unwrap()
    };
    for (preference, node) in
        [("_only_nodes:c-1", 1), ("_prefer_nodes:c-2", 2), ("_local", 0), ("_only_local", 0)]
    {
        let before = queries(node).await;
        for _ in 0..5 {
            c.must("GET", &format!("/a/_search?preference={preference}"), Value::Null).await;
        }
        assert_eq!(queries(node).await, before + 5, "{preference}");
    }
    let (status, answer) =
        c.ask("GET", "/a/_search?preference=_only_nodes:gone", Value::Null).await;
    assert_eq!(
        (status, &answer["error"]["root_cause"][0]["type"]),
        (503, &json!("no_shard_available_action_exception"))
    );
    let none = c.must("GET", "/a/_search?preference=_shards:7", Value::Null).await;
    assert_eq!(none["_shards"]["total"], 0);
    c.stop().await;
}

async fn who_hangs_up_leaves_nothing_behind(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    filled(&c, 6, 1, 600).await;
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
        let stats = c.must("GET", "/_nodes/stats", Value::Null).await;
        stats["nodes"].as_object().unwrap().values().all(|node| {
            let rows = node["adaptive_selection"].as_object().unwrap();
            node["thread_pool"]["search"]["active"] == 0
                && rows.values().all(|row| row["outgoing_searches"] == 0)
        })
    })
    .await;
    c.stop().await;
}

async fn writes_become_visible_by_time(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    filled(&c, 1, 0, 5).await;
    let count =
        async || c.must("GET", ALL, Value::Null).await["hits"]["total"]["value"].as_u64().unwrap();
    assert_eq!(count().await, 5);
    c.must("PUT", "/a/_doc/new", json!({"n": 1})).await;
    eventually(&env, "the write is found", async || count().await == 6).await;
    c.stop().await;
}

/// Multi-fields, fields that are not indexed, and fields without columns: right or refused, the same after a
/// restart.
async fn a_field_is_found_in_all_its_ways_or_it_is_said(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    let properties = json!({
        "title": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 20}}},
        "shown": {"type": "keyword", "index": false},
        "absent": {"type": "keyword", "index": false, "doc_values": false},
        "bare": {"type": "long", "doc_values": false, "ignore_malformed": true},
    });
    let body = json!({
        "settings": {"number_of_shards": 2, "number_of_replicas": 1},
        "mappings": {"properties": properties},
    });
    c.must("PUT", "/a", body).await;
    for n in 0..20 {
        let bare = if n % 2 == 0 { json!(n) } else { json!("no number") };
        let title = format!("Title Number{}", n % 4);
        let source = json!({"title": title, "shown": "s", "absent": "s", "bare": bare});
        c.must("PUT", &format!("/a/_doc/{n}"), source).await;
    }
    // One more way, after there are documents: those that come later have it, and what a replay of the log brings.
    c.must("POST", "/a/_flush", Value::Null).await;
    let later = json!({"properties": {"title": {"type": "text", "fields": {
        "later": {"type": "keyword"},
    }}}});
    c.must("PUT", "/a/_mapping", later).await;
    c.must("PUT", "/a/_doc/20", json!({"title": "one that is longer than twenty"})).await;
    c.green("a").await;
    for when in ["as it was written", "after a restart"] {
        c.must("POST", "/a/_refresh", Value::Null).await;
        let count = async |query: Value| {
            let body = json!({"size": 0, "query": query});
            c.must("POST", "/a/_search", body).await["hits"]["total"]["value"].as_u64().unwrap()
        };
        assert_eq!(count(json!({"match": {"title": "number3"}})).await, 5, "{when}");
        assert_eq!(count(json!({"term": {"title.raw": "Title Number3"}})).await, 5, "{when}");
        assert_eq!(count(json!({"term": {"title.raw": "title"}})).await, 0, "{when}");
        assert_eq!(count(json!({"exists": {"field": "title"}})).await, 21, "{when}");
        assert_eq!(count(json!({"exists": {"field": "title.raw"}})).await, 20, "{when}");
        assert_eq!(count(json!({"exists": {"field": "title.later"}})).await, 1, "{when}");
        assert_eq!(count(json!({"range": {"bare": {"gte": 0}}})).await, 10, "{when}");
        let body = json!({"size": 0, "aggs": {
            "raw": {"terms": {"field": "title.raw"}}, "shown": {"terms": {"field": "shown"}},
        }});
        let aggs = c.must("POST", "/a/_search", body).await["aggregations"].clone();
        assert_eq!(aggs["raw"]["buckets"].as_array().unwrap().len(), 4, "{when}");
        let shown = json!([{"key": "s", "doc_count": 20}]);
        assert_eq!(aggs["shown"]["buckets"], shown, "{when}");
        for (body, why) in [
            (json!({"query": {"term": {"shown": "s"}}}), "Cannot search on field [shown]"),
            (json!({"query": {"term": {"absent": "s"}}}), "Cannot search on field [absent]"),
            (json!({"sort": ["absent"]}), "fielddata on [absent]"),
            (json!({"aggs": {"x": {"max": {"field": "bare"}}}}), "fielddata on [bare]"),
        ] {
            let (status, said) = c.ask("POST", "/a/_search", body).await;
            assert!(status == 400 && said.to_string().contains(why), "{when}: {said}");
        }
        if when == "as it was written" {
            for node in [1, 0] {
                c.stop_node(node).await;
            }
            for node in [0, 1] {
                c.start_node(node).await;
            }
            c.green("a").await;
        }
    }
    for (path, body, why) in [
        (
            "/b",
            json!({"mappings": {"properties": {"t": {"type": "text", "analyzer": "x"}}}}),
            "standard",
        ),
        (
            "/b",
            json!({"mappings": {"properties": {"t": {"type": "text", "copy_to": "u"}}}}),
            "copy_to",
        ),
        (
            "/a/_mapping",
            json!({"properties": {"t": {"type": "long", "null_value": 1}}}),
            "null_value",
        ),
    ] {
        let (status, said) = c.ask("PUT", path, body).await;
        assert!(status == 400 && said.to_string().contains(why), "{path}: {said}");
    }
    for what in ["hot_threads", "usage"] {
        let (status, said) = c.ask("GET", &format!("/_nodes/{what}"), Value::Null).await;
        assert!(status == 400 && said.to_string().contains("is not offered"), "{what}: {said}");
    }
    c.stop().await;
}
