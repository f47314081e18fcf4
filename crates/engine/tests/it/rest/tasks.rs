//! Tasks: the requests that nodes work on, and the results that nobody waited for.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use super::http;
use crate::common::{Cluster, ask, eventually, raw, settled};

testbed::both_worlds!(
    every_node_says_what_it_works_on,
    a_merge_ends_once_a_node_that_merges_has_left,
    a_result_is_read_later;
    real:
    pages_are_gone_through_in_a_task,
    a_cancelled_task_ends_between_two_pages,
    a_task_gets_another_pace,
    tasks_that_nobody_waits_for_are_bounded,
    a_task_has_the_id_that_its_client_sent,
);

/// The only task of an action, by a list that is not grouped.
async fn only(c: &Cluster, action: &str) -> Value {
    let listed = c.get(&format!("/_tasks?group_by=none&detailed&actions={action}")).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{listed}");
    listed["tasks"][0].clone()
}

async fn every_node_says_what_it_works_on(env: Env) {
    let c = Cluster::start(&env, "c", 3).await;
    let list = async |more: &str| c.get(&format!("/_tasks?actions=*health{more}")).await;
    let nothing = json!({ "nodes": {} });
    assert_eq!(list("").await, nothing);
    let waits = |limit: &str| {
        let (node, limit) = (c.node(1).clone(), limit.to_owned());
        env.spawn("waits", async move {
            let path = format!("/_cluster/health?wait_for_nodes=9&timeout={limit}");
            ask(&node, "GET", &path, Value::Null).await
        })
    };
    let waiting = waits("60s");
    eventually(&env, "it is listed", async || list("").await != nothing).await;
    let listed = list("").await;
    let nodes = listed["nodes"].as_object().unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["c-1"], "{listed}");
    let node = &nodes["c-1"];
    assert_eq!(node["transport_address"], c.node(1).transport_address());
    let (id, task) = node["tasks"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(*id, format!("c-1:{}", task["id"]));
    let words = ["action", "type", "cancellable", "headers", "description"].map(|word| &task[word]);
    let expected =
        [json!("cluster:monitor/health"), json!("transport"), json!(false), json!({}), Value::Null];
    assert_eq!(words.map(Value::clone), expected, "{task}");
    assert!(task["start_time_in_millis"].as_u64().unwrap() > 1_577_836_000_000);
    // From any node, by its id, within those that are asked for, as a table.
    let one = c.get(&format!("/_tasks/{id}")).await;
    assert_eq!((&one["completed"], &one["task"]["id"]), (&json!(false), &task["id"]));
    assert_eq!(
        (list("&nodes=c-0,c-2").await, list("&parent_task_id=c-1:1").await),
        (nothing.clone(), nothing.clone())
    );
    assert_eq!(list("&group_by=parents").await["tasks"][id]["node"], "c-1");
    let table = c.get("/_cat/tasks?h=action,task_id,node&actions=*health").await;
    assert_eq!(table, format!("cluster:monitor/health {id} c-1\n"));
    // What is not to be cancelled says so, also what is not there.
    for (id, why) in [
        (id.as_str(), "doesn't support cancellation"),
        ("c-1:1", "is not found"),
        ("c-9:1", "has left the cluster"),
    ] {
        let said = c.post(&format!("/_tasks/{id}/_cancel")).await;
        assert_eq!(said["nodes"], json!({}), "{said}");
        assert!(
            said["node_failures"][0]["caused_by"]["reason"].as_str().unwrap().contains(why),
            "{said}"
        );
    }
    for (id, status, why) in [
        ("c-1", 400, "malformed task id c-1"),
        ("c-1:1", 404, "task [c-1:1] isn't running and hasn't stored its results"),
        ("c-9:1", 404, "isn't part of the cluster"),
        (&format!("{id}?wait_for_completion=true&timeout=300ms"), 500, "Timed out waiting"),
    ] {
        let (found, said) = c.ask("GET", &format!("/_tasks/{id}"), Value::Null).await;
        assert!(found == status && said.to_string().contains(why), "{id}: {found} {said}");
    }
    let late = list("&wait_for_completion=true&timeout=300ms").await;
    assert_eq!(late["task_failures"][0]["reason"]["type"], "timeout_exception", "{late}");
    // A client that goes away leaves no task behind; and what is waited for ends.
    drop(waiting);
    eventually(&env, "it is listed no more", async || list("").await == nothing).await;
    let waiting = waits("10s");
    eventually(&env, "it is listed", async || list("").await != nothing).await;
    let ended = list("&wait_for_completion=true").await;
    assert_eq!((ended.get("task_failures"), list("").await), (None, nothing));
    assert_eq!(waiting.await.unwrap().0, 408);
    // A node that does not answer is a failure, and the others are listed.
    c.node(2).cut_off(true);
    let said = c.get("/_tasks?timeout=5s&actions=*lists").await;
    c.node(2).cut_off(false);
    assert_eq!(said["node_failures"][0]["node_id"], "c-2", "{said}");
    assert_eq!(said["nodes"].as_object().unwrap().keys().collect::<Vec<_>>(), ["c-0"], "{said}");
}

/// Until then it is a task, and holds nothing of the body that it was sent with.
async fn a_merge_ends_once_a_node_that_merges_has_left(env: Env) {
    // A node that says nothing is given up soon.
    let quick = [("cluster.fault_detection.follower_check.interval", "100ms")];
    let c = Cluster::start_with(&env, "c", 3, &quick).await;
    c.create("a", 1, 2).await;
    c.index("a", 0, 50).await;
    let listed = async || {
        let path = "/_tasks?actions=*forcemerge&nodes=c-1&group_by=none";
        c.get(path).await["tasks"].as_array().unwrap().len()
    };
    c.node(2).cut_off(true);
    let body: Arc<[u8]> = Arc::from(vec![b' '; 100]);
    let merging = env.spawn("merges", {
        let (node, body) = (c.node(1).clone(), Bytes::from_owner(body.clone()));
        let path = "/a/_forcemerge?max_num_segments=1&flush=false";
        async move { raw(&node, "POST", path, body).await }
    });
    eventually(&env, "it is listed", async || listed().await == 1).await;
    assert_eq!(Arc::strong_count(&body), 1, "its body is held");
    eventually(&env, "it is listed no more", async || listed().await == 0).await;
    let (status, said) = merging.await.unwrap();
    let shards = &said["_shards"];
    assert_eq!(status, 200, "{said}");
    assert_eq!(shards["total"], 3, "{said}");
    assert_eq!(shards["failed"], 1, "{said}");
    let failure = &shards["failures"][0];
    assert_eq!((&failure["node"], &failure["status"]), (&json!("c-2"), &json!(503)), "{said}");
    assert_eq!(failure["reason"]["reason"], "node [c-2] has left the cluster", "{said}");
    c.node(2).cut_off(false);
    let back = "/_cluster/health/a?wait_for_nodes=3&wait_for_status=green&timeout=300s";
    assert_eq!(c.get(back).await["timed_out"], false);
}

/// In the virtual world, which has no documents to go through, that is an error.
async fn a_result_is_read_later(env: Env) {
    let c = Cluster::holding(&env, "c", 2, ("a", 1, 0), 50).await;
    let body = json!({ "query": { "match_all": {} } });
    let path = "/a/_delete_by_query?wait_for_completion=false&refresh";
    let (status, said) = ask(c.node(1), "POST", path, body).await;
    let id = said["task"].as_str().unwrap();
    assert!(status == 200 && id.starts_with("c-1:"), "{said}");
    let path = format!("/_tasks/{id}?wait_for_completion=true");
    let ended = c.get(&path).await;
    assert_eq!((&ended["completed"], &ended["task"]["node"]), (&json!(true), &json!("c-1")));
    let is_error = ended["error"].to_string().contains("holds sizes and no documents");
    assert_eq!((is_error, ended["response"].is_null()), (env.is_virtual(), env.is_virtual()));
    // As often as somebody asks, and from any node.
    assert_eq!(ask(c.node(1), "GET", &path, Value::Null).await, (200, ended));
    assert_eq!(c.get("/_tasks?actions=*byquery").await, json!({ "nodes": {} }));
    settled(&c).await;
}

async fn filled(env: &Env) -> Cluster {
    let c = Cluster::holding(env, "c", 2, ("a", 2, 0), 200).await;
    c.post("/a/_refresh").await;
    c
}

async fn pages_are_gone_through_in_a_task(env: Env) {
    let c = filled(&env).await;
    let body = json!({
        "source": { "index": "a", "size": 20, "query": { "range": { "n": { "lt": 60 } } } },
        "dest": { "index": "b" },
    });
    let path = "/_reindex?wait_for_completion=false&refresh&requests_per_second=5";
    let id = c.must("POST", path, body.clone()).await["task"].as_str().unwrap().to_owned();
    // The second page waits four seconds for the first.
    let mut task = Value::Null;
    eventually(&env, "a page is written", async || {
        task = only(&c, "*reindex").await;
        task["status"]["batches"] == 1
    })
    .await;
    assert_eq!(task["status"]["total"], 60, "{task}");
    assert_eq!(task["status"]["created"], 20, "{task}");
    assert_eq!(task["description"], "reindex from [a] to [b]");
    assert_eq!(task["cancellable"], true);
    let ended = c.get(&format!("/_tasks/{id}?wait_for_completion=true")).await;
    let response = &ended["response"];
    let counts =
        ["total", "created", "updated", "batches"].map(|name| response[name].as_u64().unwrap());
    assert_eq!(counts, [60, 60, 0, 3], "{ended}");
    // Four seconds after each page, the last one, too.
    assert!(response["throttled_millis"].as_u64() > Some(8000), "{ended}");
    assert_eq!((&response["failures"], response.get("canceled")), (&json!([]), None));
    assert_eq!(ended["task"]["status"]["created"], 60);
    assert_eq!(c.counted("b").await["count"], 60);
    // Conflicts are the result, too; and what is wrong with a request is said at once.
    let mut again = body;
    again["dest"]["op_type"] = json!("create");
    let id = c.must("POST", "/_reindex?wait_for_completion=false", again).await["task"].clone();
    let ended = c.get(&format!("/_tasks/{}?wait_for_completion=true", id.as_str().unwrap())).await;
    assert_eq!(ended["response"]["version_conflicts"], 20, "{ended}");
    let path = "/none/_update_by_query?wait_for_completion=false";
    assert_eq!(c.ask("POST", path, Value::Null).await.0, 404);
    settled(&c).await;
}

async fn a_cancelled_task_ends_between_two_pages(env: Env) {
    let c = filled(&env).await;
    let all = || json!({ "query": { "match_all": {} } });
    let slow = "/a/_delete_by_query?scroll_size=10&requests_per_second=1";
    let id = c.must("POST", &format!("{slow}&wait_for_completion=false"), all()).await;
    let id = id["task"].as_str().unwrap().to_owned();
    eventually(&env, "a page is written", async || {
        only(&c, "*byquery").await["status"]["batches"] == 1
    })
    .await;
    // Asked of the other node.
    let (_, said) = ask(c.node(1), "POST", &format!("/_tasks/{id}/_cancel"), Value::Null).await;
    assert_eq!(said["nodes"]["c-0"]["tasks"][&id]["cancelled"], true, "{said}");
    let ended = c.get(&format!("/_tasks/{id}?wait_for_completion=true")).await;
    for part in [&ended["response"], &ended["task"]["status"]] {
        assert_eq!(part["canceled"], "by user request", "{ended}");
        assert_eq!((&part["deleted"], &part["total"]), (&json!(10), &json!(200)), "{ended}");
    }
    c.post("/a/_refresh").await;
    // One whose client waits is told the same; and it is found by its action.
    let waiting = env.spawn("waits", {
        let node = c.node(1).clone();
        async move { ask(&node, "POST", slow, all()).await }
    });
    let listed = async || c.get("/_tasks?detailed&actions=*byquery").await;
    eventually(&env, "it runs", async || listed().await["nodes"]["c-1"].is_object()).await;
    let said = c.post("/_tasks/_cancel?actions=*byquery&wait_for_completion").await;
    assert_eq!(said["nodes"]["c-1"]["tasks"].as_object().unwrap().len(), 1, "{said}");
    assert_eq!(listed().await, json!({ "nodes": {} }));
    let (status, said) = waiting.await.unwrap();
    assert_eq!((status, &said["canceled"]), (200, &json!("by user request")), "{said}");
    assert!(c.counted("a").await["count"].as_u64().unwrap() >= 180);
    settled(&c).await;
}

/// The first page would be waited for some hours.
async fn a_task_gets_another_pace(env: Env) {
    let c = filled(&env).await;
    let all = json!({ "query": { "match_all": {} } });
    let path =
        "/a/_delete_by_query?wait_for_completion=false&scroll_size=10&requests_per_second=0.001";
    let id = c.must("POST", path, all).await["task"].as_str().unwrap().to_owned();
    eventually(&env, "a page is written", async || {
        only(&c, "*byquery").await["status"]["batches"] == 1
    })
    .await;
    // Asked of the other node, and by the path of another kind, as in the field.
    let rethrottle = async |pace: &str| {
        let path = format!("/_update_by_query/{id}/_rethrottle{pace}");
        ask(c.node(1), "POST", &path, Value::Null).await
    };
    for (pace, why) in [
        ("", "requests_per_second is a required parameter"),
        ("?requests_per_second=0", "must be a float greater than 0"),
    ] {
        let (status, said) = rethrottle(pace).await;
        assert!(status == 400 && said.to_string().contains(why), "{status} {said}");
    }
    for pace in [0.002, -1.0] {
        let (status, said) = rethrottle(&format!("?requests_per_second={pace}")).await;
        let of_task = &said["nodes"]["c-0"]["tasks"][&id]["status"]["requests_per_second"];
        assert_eq!((status, of_task), (200, &json!(pace)), "{said}");
    }
    let ended = c.get(&format!("/_tasks/{id}?wait_for_completion=true&timeout=5m")).await;
    let counts = ["deleted", "batches"].map(|name| ended["response"][name].as_u64().unwrap());
    assert_eq!(counts, [200, 20], "{ended}");
    settled(&c).await;
}

async fn tasks_that_nobody_waits_for_are_bounded(env: Env) {
    let c = filled(&env).await;
    c.create("b", 1, 0).await;
    let body = json!({ "source": { "index": "a", "size": 1 }, "dest": { "index": "b" } });
    let begin = async |node: usize, spaces: usize| {
        let path = "/_reindex?wait_for_completion=false&requests_per_second=0.001";
        raw(c.node(node), "POST", path, format!("{body}{}", " ".repeat(spaces)).into()).await
    };
    let refused = async |spaces: usize, bound: &str| {
        let (status, said) = begin(0, spaces).await;
        let error = &said["error"];
        assert_eq!(status, 429, "{said}");
        assert_eq!(error["type"], "rejected_execution_exception", "{said}");
        assert!(error["reason"].as_str().unwrap().contains(bound), "{said}");
    };
    let cancel = async || c.post("/_tasks/_cancel?actions=*reindex&wait_for_completion").await;
    for _ in 0..100 {
        let (status, said) = begin(0, 0).await;
        assert_eq!(status, 200, "{said}");
    }
    refused(0, "takes [100] with").await;
    assert_eq!(begin(1, 0).await.0, 200, "another node has places");
    assert_eq!(cancel().await.get("task_failures"), None);
    // Two that may be as long as one body.
    assert_eq!(begin(0, 6 << 20).await.0, 200);
    refused(6 << 20, "with [10485760] bytes").await;
    assert_eq!(cancel().await.get("task_failures"), None);
    assert_eq!(begin(0, 6 << 20).await.0, 200);
    cancel().await;
    settled(&c).await;
}

async fn a_task_has_the_id_that_its_client_sent(env: Env) {
    let c = filled(&env).await;
    let body = r#"{"query":{"match_all":{}}}"#;
    let text = format!(
        "POST /a/_update_by_query?scroll_size=10&requests_per_second=1&wait_for_completion=false HTTP/1.1\r\n\
         Host: localhost\r\nX-Opaque-Id: me\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = http(&env, c.any().http_address(), &text).await;
    assert!(answer.contains(r#"{"task":"c-0:"#), "{answer}");
    let task = only(&c, "*byquery").await;
    assert_eq!(task["headers"], json!({ "X-Opaque-Id": "me" }), "{task}");
    let table = c.get("/_cat/tasks?h=x,desc&detailed&actions=*byquery").await;
    assert_eq!(table, "me update-by-query [a]\n");
    // The node stops while it goes on.
    c.stop().await;
}
