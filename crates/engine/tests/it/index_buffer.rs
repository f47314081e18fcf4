//! What is not searchable yet takes memory, also where nobody ever searches.

use std::time::Duration;

use serde_json::json;
use world::Env;

use crate::common::{Cluster, eventually};

testbed::both_worlds!(
    copies_that_nobody_searches_are_refreshed_once_they_hold_much;
    simulated:
    what_copies_hold_that_rest_counts_too,
);

/// Writes documents of 1 MB each.
async fn write(cluster: &Cluster, index: &str, ids: std::ops::Range<u32>) {
    let text = "x".repeat(1 << 20);
    for id in ids {
        cluster.must("PUT", &format!("/{index}/_doc/{id}"), json!({ "text": text })).await;
    }
}

async fn refreshes(cluster: &Cluster, index: &str) -> u64 {
    let stats = cluster.get(&format!("/{index}/_stats")).await;
    stats["_all"]["total"]["refresh"]["total"].as_u64().expect("a count")
}

async fn copies_that_nobody_searches_are_refreshed_once_they_hold_much(env: Env) {
    let cluster = Cluster::start(&env, "one", 1).await;
    // None of three copies holds so much that it would refresh by itself.
    cluster.map("a", (3, 0), json!({ "dynamic": false })).await;
    write(&cluster, "a", 0..10).await;
    env.sleep(Duration::from_secs(3)).await;
    assert_eq!(refreshes(&cluster, "a").await, 0, "it is little");
    write(&cluster, "a", 10..150).await;
    eventually(&env, "a copy is refreshed", async || refreshes(&cluster, "a").await > 0).await;
    assert!(refreshes(&cluster, "a").await < 30, "a copy is refreshed for each few documents");
    assert_eq!(cluster.counted("a").await["count"], 150);
}

/// Copies rest after a minute, and all are looked at every five: one of the two is refreshed before that.
async fn what_copies_hold_that_rest_counts_too(env: Env) {
    let cluster = Cluster::start(&env, "one", 1).await;
    cluster.map("a", (3, 0), json!({ "dynamic": false })).await;
    cluster.map("b", (3, 0), json!({ "dynamic": false })).await;
    write(&cluster, "a", 0..110).await;
    env.sleep(Duration::from_secs(90)).await;
    assert_eq!(refreshes(&cluster, "a").await, 0, "two copies alone may hold more");
    write(&cluster, "b", 0..80).await;
    let of_both = async || refreshes(&cluster, "a").await + refreshes(&cluster, "b").await;
    eventually(&env, "a copy is refreshed", async || of_both().await > 0).await;
}
