//! Searches that see what there was at one moment.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use world::Env;

use super::{filled, ids, started};
use crate::common::{Cluster, ask, eventually};

testbed::both_worlds!(
    a_point_in_time_ends_by_itself_or_is_ended,
    what_is_counted_stays_as_it_was;
    real:
    every_hit_comes_once_whatever_is_written_meanwhile,
    what_a_search_of_one_may_not_have,
    a_shard_that_is_lost_is_told,
    views_are_bounded,
);

async fn open_views(c: &Cluster) -> u64 {
    let stats = c.get("/_nodes/stats/indices/search").await;
    let nodes = stats["nodes"].as_object().unwrap();
    let open = |node: &Value| node["indices"]["search"]["point_in_time_current"].as_u64().unwrap();
    nodes.values().map(open).sum()
}

async fn opened(c: &Cluster, keep_alive: &str) -> Value {
    let made = c.post(&format!("/a/_search/point_in_time?keep_alive={keep_alive}")).await;
    assert_eq!(made["_shards"]["failed"], 0, "{made}");
    assert!(made["creation_time"].is_u64(), "{made}");
    made["pit_id"].clone()
}

async fn listed(c: &Cluster) -> Vec<Value> {
    let all = c.get("/_search/point_in_time/_all").await;
    all["pits"].as_array().unwrap().iter().map(|pit| pit["pit_id"].clone()).collect()
}

async fn a_point_in_time_ends_by_itself_or_is_ended(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 3, 0), 50).await;
    // The machine may stand still for a moment before it is looked at.
    let lasts_s = if env.is_virtual() { 1 } else { 5 };
    let soon = format!("{lasts_s}s");
    let (short, long) = (opened(&c, &soon).await, opened(&c, "10m").await);
    assert_eq!(open_views(&c).await, 6);
    assert_eq!(listed(&c).await.len(), 2);
    let count = async |id: &Value, keep_alive: Option<&str>| {
        let mut body = json!({"size": 0, "track_total_hits": true, "pit": {"id": id}});
        if let Some(text) = keep_alive {
            body["pit"]["keep_alive"] = json!(text);
        }
        c.ask("POST", "/_search", body).await
    };
    assert_eq!(count(&short, None).await.0, 200);
    env.sleep(Duration::from_millis(lasts_s * 1000 + 100)).await;
    let (status, said) = count(&short, None).await;
    assert_eq!(status, 404, "{said}");
    assert!(said.to_string().contains("search_context_missing_exception"), "{said}");
    assert_eq!(listed(&c).await, std::slice::from_ref(&long));
    eventually(&env, "its views are let go", async || open_views(&c).await == 3).await;
    // A search keeps it for longer, and none for less.
    let third = opened(&c, &soon).await;
    assert_eq!(count(&third, Some("1h")).await.0, 200);
    assert_eq!(count(&third, Some("1ms")).await.0, 200);
    env.sleep(Duration::from_secs(lasts_s + 2)).await;
    assert_eq!(count(&third, None).await.0, 200);
    // One that has ended is deleted all the same, as in the field.
    let (ids, path) = (json!({"pit_id": [third, short]}), "/_search/point_in_time");
    let ended = c.must("DELETE", path, ids).await;
    let each = |id: &Value| json!({"successful": true, "pit_id": id});
    assert_eq!(ended, json!({"pits": [each(&third), each(&short)]}));
    assert_eq!(count(&third, None).await.0, 404);
    assert_eq!(c.delete("/_search/point_in_time/_all").await, json!({"pits": [each(&long)]}));
    assert_eq!((open_views(&c).await, listed(&c).await.len()), (0, 0));
    // As Elasticsearch has it.
    let made = c.post("/a/_pit?keep_alive=1m").await;
    assert_eq!(count(&made["id"], None).await.0, 200);
    let (status, ended) = c.ask("DELETE", "/_pit", json!({"id": made["id"]})).await;
    assert_eq!((status, ended), (200, json!({"succeeded": true, "num_freed": 3})));
    let (status, ended) = c.ask("DELETE", "/_pit", json!({"id": made["id"]})).await;
    assert_eq!((status, ended), (404, json!({"succeeded": true, "num_freed": 0})));
}

async fn what_is_counted_stays_as_it_was(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 2, 1), 50).await;
    c.post("/a/_refresh").await;
    let id = opened(&c, "5m").await;
    c.index("a", 50, 80).await;
    c.post("/a/_refresh").await;
    let body = json!({"size": 0, "track_total_hits": true});
    assert_eq!(c.must("POST", "/a/_search", body.clone()).await["hits"]["total"]["value"], 80);
    for node in [0, 1] {
        let mut body = body.clone();
        body["pit"] = json!({"id": id, "keep_alive": "5m"});
        let (status, then) = ask(c.node(node), "POST", "/_search", body).await;
        assert_eq!((status, &then["hits"]["total"]["value"]), (200, &json!(50)), "{then}");
        assert_eq!(then["pit_id"], id);
    }
    c.must("DELETE", "/_search/point_in_time", json!({"pit_id": id})).await;
}

/// All hits, page by page, asked of each node in turn.
async fn paged(c: &Cluster, id: &Value, body: &Value, mut between: impl AsyncFnMut()) -> Vec<u64> {
    let (mut found, mut after) = (Vec::new(), Value::Null);
    for page in 0.. {
        between().await;
        let mut body = body.clone();
        body["pit"] = json!({"id": id, "keep_alive": "1m"});
        if !after.is_null() {
            body["search_after"] = after.clone();
        }
        let (status, next) = ask(c.node(page % 2), "POST", "/_search", body).await;
        assert_eq!((status, &next["pit_id"]), (200, id), "{next}");
        assert_eq!(next["_shards"]["failed"], 0, "{next}");
        let more = ids(&next);
        if more.is_empty() {
            break;
        }
        after = next["hits"]["hits"].as_array().unwrap().last().unwrap()["sort"].clone();
        found.extend(more);
    }
    found
}

async fn every_hit_comes_once_whatever_is_written_meanwhile(env: Env) {
    let c = started(&env, 2, (3, 1), 300).await;
    let id = opened(&c, "5m").await;
    let mut round = 0;
    for body in [
        json!({"size": 33, "sort": [{"n": "desc"}]}),
        json!({"size": 50, "sort": ["word", {"at": "desc"}]}),
        json!({"size": 70, "query": {"match": {"text": "red"}}, "sort": ["_score", "n"]}),
    ] {
        let mut whole = body.clone();
        (whole["size"], whole["pit"]) = (json!(1000), json!({ "id": id }));
        let expected = ids(&c.must("POST", "/_search", whole).await);
        let found = paged(&c, &id, &body, async || {
            let n = round;
            round += 1;
            c.ask("DELETE", &format!("/a/_doc/{}?refresh", n * 3), Value::Null).await;
            c.must("PUT", "/a/_doc/1000?refresh", json!({"n": 5, "word": "new"})).await;
            if n == 5 {
                c.post("/a/_forcemerge?max_num_segments=1").await;
            }
        })
        .await;
        assert_eq!(found, expected, "{body}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
        assert!(!found.contains(&1000), "it was written later");
    }
    let aggregations =
        json!({"size": 0, "pit": {"id": id}, "aggs": {"m": {"max": {"field": "n"}}}});
    for node in [0, 1] {
        let (_, found) = ask(c.node(node), "POST", "/_search", aggregations.clone()).await;
        assert_eq!(found["aggregations"]["m"]["value"], 299.0, "{found}");
    }
    let many =
        format!("{{}}\n{}\n", json!({"size": 1, "pit": {"id": id}, "sort": [{"n": "desc"}]}));
    let (status, all) = crate::common::raw(c.any(), "POST", "/_msearch", many.into()).await;
    assert_eq!((status, ids(&all["responses"][0])), (200, vec![299]), "{all}");
    // What bears the name of an index now is not what was seen then.
    c.delete("/a").await;
    filled(&c, 3, 1, 10).await;
    c.answers(404, "POST", "/_search", json!({"pit": {"id": id}})).await;
    c.delete("/_search/point_in_time/_all").await;
    eventually(&env, "every view is let go", async || open_views(&c).await == 0).await;
}

async fn what_a_search_of_one_may_not_have(env: Env) {
    let c = started(&env, 1, (1, 0), 10).await;
    let id = opened(&c, "5m").await;
    let refused = async |method: &str, path: &str, body: Value, why: &str| {
        c.refuses(400, why, method, path, body).await;
    };
    let body = json!({"pit": {"id": id}});
    let cannot = "cannot be used with point in time";
    refused("POST", "/a/_search", body.clone(), &format!("[indices] {cannot}")).await;
    refused("POST", "/_search?preference=x", body.clone(), &format!("[preference] {cannot}")).await;
    refused("POST", "/_search?ignore_unavailable=true", body.clone(), cannot).await;
    refused("POST", "/_search?scroll=1m", body, "not allowed in a scroll context").await;
    for (body, why) in [
        (json!({"pit": {"id": "x"}}), "invalid id"),
        (json!({"pit": {}}), "[pit] requires [id]"),
        (json!({"pit": {"id": id, "keep_alive": "25h"}}), "point_in_time.max_keep_alive"),
        (json!({"pit": {"id": id, "keep_alive": "soon"}}), "failed to parse"),
        (json!({"pit": {"id": id, "keepalive": "1m"}}), "did you mean"),
    ] {
        refused("POST", "/_search", body, why).await;
    }
    let create = "/a/_search/point_in_time";
    refused("POST", create, Value::Null, "keep alive not specified").await;
    refused("POST", &format!("{create}?keep_alive=0s"), Value::Null, "must be longer").await;
    refused("POST", &format!("{create}?keep_alive=25h"), Value::Null, "(25h) is too large").await;
    refused("DELETE", "/_search/point_in_time", json!({"pit_id": []}), "no pit ids").await;
    refused("DELETE", "/_search/point_in_time", json!({"id": "x"}), "unknown parameter [id]").await;
    refused("DELETE", "/_pit", json!({"id": 7}), "is a text").await;
    c.answers(404, "POST", "/gone/_pit?keep_alive=1m", Value::Null).await;
}

async fn a_shard_that_is_lost_is_told(env: Env) {
    let mut c = started(&env, 3, (3, 0), 90).await;
    let id = opened(&c, "5m").await;
    c.stop_node(2).await;
    let body = json!({"size": 100, "sort": ["n"], "pit": {"id": id}});
    let (status, found) = ask(c.node(0), "POST", "/_search", body.clone()).await;
    let shards = &found["_shards"];
    assert_eq!((status, &shards["total"], &shards["failed"]), (200, &json!(3), &json!(1)));
    assert!((1..90).contains(&ids(&found).len()), "{found}");
    // Where partial results are not allowed it fails, and the views stay.
    let path = "/_search?allow_partial_search_results=false";
    assert_eq!(ask(c.node(0), "POST", path, body.clone()).await.0, 503);
    assert_eq!(ask(c.node(0), "POST", "/_search", body).await.1["hits"], found["hits"]);
}

async fn views_are_bounded(env: Env) {
    let c = started(&env, 1, (2, 0), 30).await;
    c.set_for_now(json!({"search.max_open_pit_context": 4})).await;
    let ids = [opened(&c, "1m").await, opened(&c, "1m").await];
    let path = "/a/_search/point_in_time?keep_alive=1m";
    c.refuses(429, "search.max_open_pit_context", "POST", path, Value::Null).await;
    assert_eq!(open_views(&c).await, 4, "who is refused holds nothing");
    // Scrolls have a bound of their own.
    c.must("POST", "/a/_search?scroll=1m&size=5", json!({})).await;
    c.must("DELETE", "/_search/point_in_time", json!({ "pit_id": ids })).await;
    opened(&c, "1m").await;
}
