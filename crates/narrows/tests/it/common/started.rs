//! Clusters that a test has started by itself, and what it asks of them.

use std::time::Duration;

use clusters::Clusters;
use serde_json::Value;
use world::Env;

use super::{PATIENCE, noise};

/// Waits until this is so.
pub async fn until(env: &Env, what: &str, is_so: impl AsyncFn() -> bool) {
    let waits = async {
        while !is_so().await {
            env.sleep(Duration::from_millis(20)).await;
        }
    };
    env.timeout(PATIENCE, waits).await.expect(what);
}

pub async fn ask(
    target: &impl Clusters,
    cluster: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Value {
    let answer = target.request(cluster, method, path, rest::json_body(&body)).await;
    answer.unwrap().json().unwrap()
}

/// Makes an index, and writes so many documents into it.
pub async fn fill(target: &impl Clusters, cluster: &str, index: &str, shards: u32, documents: u32) {
    ask(target, cluster, "PUT", &format!("/{index}"), noise::index(shards)).await;
    for lines in noise::bulks(documents) {
        let path = format!("/{index}/_bulk");
        let answer = target.request(cluster, "POST", &path, lines.into()).await;
        assert_eq!(answer.unwrap().json().unwrap()["errors"], false);
    }
    ask(target, cluster, "POST", &format!("/{index}/_flush"), Value::Null).await;
}

pub fn urls(target: &impl Clusters, cluster: &str) -> String {
    let urls = target.nodes(cluster).into_iter().map(|node| format!("http://{}", node.http));
    urls.collect::<Vec<_>>().join(",")
}
