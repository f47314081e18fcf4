//! What is not searchable yet takes memory, also where nobody ever searches.

use std::time::Duration;

use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, eventually};

testbed::both_worlds!(copies_that_nobody_searches_are_refreshed_once_they_hold_much);

/// Three copies, none of which holds so much that it would refresh by itself.
async fn copies_that_nobody_searches_are_refreshed_once_they_hold_much(env: Env) {
    let cluster = Cluster::start(&env, "one", 1).await;
    let body = json!({
        "settings": { "number_of_shards": 3, "number_of_replicas": 0 },
        "mappings": { "dynamic": false },
    });
    cluster.must("PUT", "/a", body).await;
    cluster.green("a").await;
    let text = "x".repeat(1 << 20);
    let index = async |ids: std::ops::Range<u32>| {
        for id in ids {
            cluster.must("PUT", &format!("/a/_doc/{id}"), json!({ "text": text })).await;
        }
    };
    let refreshes = async || {
        let stats = cluster.must("GET", "/a/_stats", Value::Null).await;
        stats["_all"]["total"]["refresh"]["total"].as_u64().expect("a count")
    };
    index(0..10).await;
    env.sleep(Duration::from_secs(3)).await;
    assert_eq!(refreshes().await, 0, "it is little");
    index(10..110).await;
    eventually(&env, "a copy is refreshed", async || refreshes().await > 0).await;
    assert!(refreshes().await < 30, "a copy is refreshed for each few documents");
    let count = cluster.must("GET", "/a/_count", Value::Null).await;
    assert_eq!(count["count"], 110);
    cluster.stop().await;
}
