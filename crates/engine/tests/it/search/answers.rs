//! How much one answer holds.

use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, raw};

testbed::real_world!(an_answer_holds_so_much_and_no_more);

async fn an_answer_holds_so_much_and_no_more(env: Env) {
    let c = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    let kept = json!({ "type": "keyword", "index": false, "doc_values": false });
    c.must("PUT", "/a/_mapping", json!({ "properties": { "t": kept } })).await;
    let text = "x".repeat(2 << 20);
    for n in 0..60 {
        c.must("PUT", &format!("/a/_doc/{n}"), json!({ "t": text })).await;
    }
    c.post("/a/_refresh").await;
    for path in ["/a/_search", "/a/_search?scroll=1m"] {
        c.refuses(429, "ask for fewer", "POST", path, json!({ "size": 60 })).await;
    }
    // What goes before has room.
    let lines = "{}\n{\"size\":40}\n".repeat(3);
    let (status, answer) = raw(c.any(), "POST", "/a/_msearch", lines.into()).await;
    assert_eq!(status, 200);
    let responses = answer["responses"].as_array().unwrap();
    let status: Vec<&Value> = responses.iter().map(|response| &response["status"]).collect();
    assert_eq!(status, [200, 429, 429]);
    let ids: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    assert_eq!(c.ask("POST", "/a/_mget", json!({ "ids": ids })).await.0, 429);
}
