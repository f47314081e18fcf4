//! Hits that are read page by page, from what the first page saw.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use world::Env;

use super::{filled, ids, started};
use crate::common::{Cluster, ask, eventually, refuses};

testbed::real_world!(
    every_hit_comes_once_whatever_is_written_meanwhile,
    a_scroll_is_kept_for_as_long_as_was_asked,
    a_shard_that_is_lost_is_told_on_every_page,
    views_of_scrolls_are_bounded,
    a_search_of_no_shard_begins_no_scroll,
    a_scroll_goes_on_behind_hits_without_the_number,
    hits_are_of_the_term_in_which_their_view_was_made,
);
testbed::virtual_world!(the_virtual_world_has_no_hits_to_scroll_through);

async fn the_virtual_world_has_no_hits_to_scroll_through(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 2, 0), 50).await;
    c.refuses(400, "holds sizes and no documents", "POST", "/a/_search?scroll=1m", json!({})).await;
    c.answers(400, "POST", "/a/_search?scroll=1m&size=0", json!({})).await;
    assert_eq!(open_views(&c).await, 0);
    let (status, _) = c.ask("DELETE", "/_search/scroll/_all", Value::Null).await;
    assert_eq!(status, 404, "nothing was open");
}

async fn open_views(c: &Cluster) -> u64 {
    let stats = c.get("/_nodes/stats/indices/search").await;
    let nodes = stats["nodes"].as_object().unwrap();
    nodes.values().map(|node| node["indices"]["search"]["open_contexts"].as_u64().unwrap()).sum()
}

/// The further pages of a scroll, asked of each node in turn until one is empty.
async fn all_pages(c: &Cluster, first: &Value, mut between: impl AsyncFnMut()) -> Vec<u64> {
    let mut found = ids(first);
    let total = &first["hits"]["total"];
    for page in 0.. {
        between().await;
        let body = json!({ "scroll": "1m", "scroll_id": first["_scroll_id"] });
        let (status, next) = ask(c.node(page % 2), "POST", "/_search/scroll", body).await;
        assert_eq!(status, 200, "{next}");
        assert_eq!(next["_shards"]["failed"], 0, "{next}");
        assert_eq!((&next["hits"]["total"], &next["_scroll_id"]), (total, &first["_scroll_id"]));
        assert_eq!(next.get("aggregations"), None);
        let more = ids(&next);
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found
}

async fn every_hit_comes_once_whatever_is_written_meanwhile(env: Env) {
    let c = started(&env, 2, (3, 1), 400).await;
    // Some have no value, and some the value that stands for none.
    for (id, document) in [(400, json!({"word": "red"})), (401, json!({"n": i64::MAX}))] {
        c.must("PUT", &format!("/a/_doc/{id}?refresh"), document).await;
    }
    for (size, body) in [
        (7, json!({})),
        (50, json!({"sort": ["_doc"]})),
        (33, json!({"sort": [{"n": "desc"}], "aggs": {"m": {"max": {"field": "n"}}}})),
        (33, json!({"sort": ["n"]})),
        (60, json!({"sort": ["word", {"at": "desc"}]})),
        (100, json!({"query": {"exists": {"field": "n"}}, "sort": ["_score"]})),
        (10, json!({"query": {"match": {"text": "red number"}}})),
        // By the moment at which the first page is asked for, as everything that counts from now.
        (50, json!({"query": {"function_score": {"random_score": {}}}})),
    ] {
        let path = format!("/a/_search?scroll=1m&size={size}");
        let once = c.must("POST", "/a/_search?size=1000&track_total_hits=true", body.clone()).await;
        let first = c.must("POST", &path, body.clone()).await;
        assert_eq!(first["hits"]["total"], once["hits"]["total"], "{body}");
        assert_eq!(first["aggregations"], once["aggregations"]);
        assert_eq!(first["hits"]["hits"][0].get("sort").is_some(), body.get("sort").is_some());
        let mut round = 0;
        let found = all_pages(&c, &first, async || {
            // What the first page saw stays, whatever comes, goes and is merged.
            let (n, path) = (round, format!("/a/_doc/{}?refresh", round * 3));
            round += 1;
            if n < 12 {
                c.ask("DELETE", &path, Value::Null).await;
                c.must("PUT", "/a/_doc/1000?refresh", json!({"n": 5, "word": "new"})).await;
            }
            if n == 5 {
                c.post("/a/_forcemerge?max_num_segments=1").await;
                c.must("PUT", "/a/_mapping", json!({"properties": {"more": {"type": "long"}}}))
                    .await;
            }
        })
        .await;
        let expected = ids(&once);
        assert_eq!(found.len(), expected.len(), "{body}: each once");
        assert_eq!(
            found.iter().collect::<BTreeSet<_>>(),
            expected.iter().collect::<BTreeSet<_>>(),
            "{body}"
        );
        // What is sorted by a field comes in its order.
        let is_sorted = found.iter().filter(|id| **id < 400).is_sorted_by(|a, b| a > b);
        assert!(body["sort"] != json!([{"n": "desc"}]) || is_sorted, "{found:?}");
        let ended =
            c.must("DELETE", "/_search/scroll", json!({"scroll_id": [first["_scroll_id"]]})).await;
        assert_eq!(ended, json!({"succeeded": true, "num_freed": 3}));
        let body = json!({ "scroll_id": first["_scroll_id"] });
        let answer = c.ask("POST", "/_search/scroll", body).await;
        refuses(answer, 404, "search_context_missing_exception");
    }
    eventually(&env, "every view is let go", async || open_views(&c).await == 0).await;
}

async fn a_scroll_is_kept_for_as_long_as_was_asked(env: Env) {
    let c = started(&env, 2, (2, 0), 30).await;
    let refused = async |query: &str, body: Value, why: &str| {
        c.refuses(400, why, "POST", &format!("/a/_search?{query}"), body).await;
    };
    refused("scroll=25h", json!({}), "Keep alive for request (25h) is too large").await;
    refused("scroll=soon", json!({}), "failed to parse parameter [scroll]").await;
    refused("scroll=0ms", json!({}), "must be longer").await;
    refused("scroll=1m&size=0", json!({}), "[size] cannot be [0]").await;
    refused("scroll=1m", json!({"from": 1}), "[from] is not allowed").await;
    refused("scroll=1m", json!({"sort": ["n"], "search_after": [1]}), "`search_after`").await;
    for counted in [json!(false), json!(3)] {
        refused("scroll=1m", json!({ "track_total_hits": counted }), "[track_total_hits]").await;
    }
    refused("scroll=1m&size=20000", json!({}), "Result window is too large").await;
    for wrong in ["x", "DnF1ZXJ5VGhlbkZldGNo"] {
        let body = json!({"scroll_id": wrong});
        c.refuses(400, "Cannot parse scroll id", "POST", "/_search/scroll", body).await;
    }
    c.answers(400, "POST", "/_search/scroll", json!({"scroll": "1m"})).await;
    let first = c.must("POST", "/a/_search?scroll=1ms&size=5", json!({})).await;
    env.sleep(Duration::from_millis(20)).await;
    let body = json!({ "scroll": "1m", "scroll_id": first["_scroll_id"] });
    c.answers(404, "POST", "/_search/scroll", body).await;
    // The whole id may stand in the path, and the bare number of hits be asked for.
    let first =
        c.must("GET", "/a/_search?scroll=1m&size=20&rest_total_hits_as_int=true", json!({})).await;
    assert_eq!(first["hits"]["total"], 30);
    let path = format!("/_search/scroll/{}?scroll=1m", first["_scroll_id"].as_str().unwrap());
    assert_eq!(ids(&c.get(&path).await).len(), 10);
    let all = c.delete("/_search/scroll/_all").await;
    assert!(all["num_freed"].as_u64() >= Some(2), "{all}");
}

async fn a_shard_that_is_lost_is_told_on_every_page(env: Env) {
    let mut c = started(&env, 3, (3, 0), 90).await;
    let (status, first) =
        ask(c.node(0), "POST", "/a/_search?scroll=1m&size=20&sort=n", json!({})).await;
    assert_eq!((status, ids(&first)), (200, (0..20).collect()));
    c.stop_node(2).await;
    let (_, left) = ask(c.node(0), "POST", "/a/_search?size=100&sort=n", json!({})).await;
    let mut found: BTreeSet<u64> = ids(&first).into_iter().collect();
    let expected: BTreeSet<u64> = found.iter().copied().chain(ids(&left)).collect();
    assert!(expected.len() < 90, "a shard is lost: {left}");
    loop {
        let body = json!({ "scroll": "1m", "scroll_id": first["_scroll_id"] });
        let (status, next) = ask(c.node(0), "POST", "/_search/scroll", body).await;
        let shards = &next["_shards"];
        assert_eq!((status, &shards["total"], &shards["failed"]), (200, &json!(3), &json!(1)));
        let page = ids(&next);
        if page.is_empty() {
            break;
        }
        assert!(page.iter().all(|id| found.insert(*id)), "twice: {next}");
    }
    assert_eq!(found, expected);
}

async fn views_of_scrolls_are_bounded(env: Env) {
    let c = started(&env, 1, (2, 0), 30).await;
    c.set_for_now(json!({"search.max_open_scroll_context": 4})).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let first = c.must("POST", "/a/_search?scroll=1m&size=5", json!({})).await;
        ids.push(first["_scroll_id"].clone());
    }
    let said = c.answers(429, "POST", "/a/_search?scroll=1m&size=5", json!({})).await;
    let reason = said["error"]["root_cause"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("[4]") && reason.contains("search.max_open_scroll_context"), "{said}");
    assert_eq!(open_views(&c).await, 4, "who is refused holds nothing");
    // Searches without a scroll go on.
    c.must("POST", "/a/_search?size=5", json!({})).await;
    c.must("DELETE", "/_search/scroll", json!({ "scroll_id": ids })).await;
    eventually(&env, "they are let go", async || open_views(&c).await == 0).await;
    c.must("POST", "/a/_search?scroll=1m&size=5", json!({})).await;
}

/// Its node would keep it, and none that holds views would say that there are too many.
async fn a_search_of_no_shard_begins_no_scroll(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let found = c.must("POST", "/none-*/_search?scroll=1m", json!({})).await;
    assert_eq!((&found["_shards"]["total"], found.get("_scroll_id")), (&json!(0), None));
}

async fn a_scroll_goes_on_behind_hits_without_the_number(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let properties = json!({"x": {"type": "double"}, "n": {"type": "long"}});
    c.map("f", (1, 0), json!({"properties": properties})).await;
    let documents =
        [json!({"n": 0, "x": 3}), json!({"n": 1}), json!({"n": 2, "x": 1}), json!({"n": 3})];
    for (id, document) in documents.into_iter().enumerate() {
        c.must("PUT", &format!("/f/_doc/{id}"), document).await;
    }
    c.post("/f/_refresh").await;
    for (order, expected) in [("asc", [2, 0, 1, 3]), ("desc", [0, 2, 1, 3])] {
        let body = json!({"size": 1, "sort": [{"x": order}, "n"]});
        let mut page = c.must("POST", "/f/_search?scroll=1m", body).await;
        let mut found = ids(&page);
        for _ in 0..3 {
            let next = json!({"scroll": "1m", "scroll_id": page["_scroll_id"]});
            page = c.must("POST", "/_search/scroll", next).await;
            found.extend(ids(&page));
        }
        assert_eq!(found, expected, "{order}");
    }
}

fn primary_of(c: &Cluster) -> Option<String> {
    let state = c.any().state();
    state.shard("a", 0)?.started_primary()?.node.clone()
}

/// A copy that recovers from a new primary may have had what that lacks: the same places are given anew.
async fn hits_are_of_the_term_in_which_their_view_was_made(env: Env) {
    let mut c = Cluster::start(&env, "c", 4).await;
    c.set_for_now(json!({ "cluster.routing.allocation.exclude._name": "c-0" })).await;
    filled(&c, 1, 2, 20).await;
    let lost = primary_of(&c).unwrap();
    let others: Vec<String> =
        c.nodes.keys().filter(|node| *node != "c-0" && **node != lost).cloned().collect();
    let before = c.any().state().shard("a", 0).unwrap().in_sync.clone();
    let mut scrolls = Vec::new();
    for node in &others {
        let path = format!("/a/_search?scroll=5m&size=5&preference=_only_nodes:{node}");
        let first = c.must("POST", &path, json!({ "seq_no_primary_term": true })).await;
        assert_eq!(first["hits"]["hits"][0]["_primary_term"], 1, "{first}");
        scrolls.push(first["_scroll_id"].clone());
    }
    let number = c.nodes.keys().position(|node| *node == lost).unwrap();
    c.stop_node(number).await;
    eventually(&env, "a copy has recovered from the new primary", async || {
        let state = c.any().state();
        let mut copies = state.shard("a", 0).unwrap().copies.iter();
        copies.any(|copy| copy.is_started() && !before.contains(&copy.allocation_id))
    })
    .await;
    let next = primary_of(&c).unwrap();
    for (node, scroll) in others.iter().zip(scrolls) {
        let body = json!({ "scroll": "5m", "scroll_id": scroll });
        let page = c.must("POST", "/_search/scroll", body).await;
        let term = if *node == next { 2 } else { 1 };
        assert_eq!(page["hits"]["hits"][0]["_primary_term"], term, "{page}");
    }
}
