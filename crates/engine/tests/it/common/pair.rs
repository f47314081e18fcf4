//! A leader and a follower, joined by a link.

use std::time::Duration;

use serde_json::{Value, json};
use world::{Env, Link, LinkConfig};

use super::{Cluster, eventually, same};

pub struct Pair {
    pub leader: Cluster,
    pub follower: Cluster,
    pub link: Link,
}

/// A leader with an index `a` of two shards, and a follower of two nodes behind a link.
pub async fn pair(env: &Env, rtt_ms: u64, rate: u64, documents: u64) -> Pair {
    pair_of(env, (2, 2), (rtt_ms, rate), (0, documents)).await
}

/// The same with so many nodes on either side, and so many replicas and documents of the leader's index.
pub async fn pair_of(
    env: &Env,
    nodes: (usize, usize),
    (rtt_ms, rate): (u64, u64),
    index: (u32, u64),
) -> Pair {
    let config = LinkConfig {
        rtt: Duration::from_millis(rtt_ms),
        rate_bytes_per_s: Some(rate),
        ..LinkConfig::default()
    };
    pair_over(env, config, nodes, index).await
}

/// The same over a link that may be any.
pub async fn pair_over(
    env: &Env,
    config: LinkConfig,
    (leaders, followers): (usize, usize),
    (replicas, documents): (u32, u64),
) -> Pair {
    let leader = Cluster::with(env, "leader", leaders, ("a", 2, replicas)).await;
    for from in (0..documents).step_by(1000) {
        let to = (from + 1000).min(documents);
        assert_eq!(leader.index("a", from, to).await, to - from);
    }
    let follower = Cluster::start(env, "follower", followers).await;
    let link = Link::open(env, config);
    let mut seeds = Vec::new();
    for node in leader.nodes.values() {
        seeds.push(link.route(node.transport_address()).await.unwrap());
    }
    follower.set(json!({ "cluster.remote.leader.seeds": seeds })).await;
    Pair { leader, follower, link }
}

impl Pair {
    pub async fn set(&self, settings: Value) {
        self.leader.set(settings.clone()).await;
        self.follower.set(settings).await;
    }

    pub async fn follow(&self, index: &str) {
        let body = json!({ "remote_cluster": "leader", "leader_index": "a" });
        self.follower.must("PUT", &format!("/{index}/_ccr/follow"), body).await;
    }

    /// Waits until every copy of the follower's index holds what the leader's `a` holds.
    pub async fn same(&self, index: &str) {
        same((&self.leader, "a"), (&self.follower, index)).await;
    }

    /// What is said of each shard that follows.
    pub async fn stats(&self, index: &str) -> Vec<Value> {
        let answer = self.follower.get(&format!("/{index}/_ccr/stats")).await;
        answer["indices"][0]["shards"].as_array().cloned().unwrap()
    }

    /// Waits until this is said of both shards that follow. One that is not open yet is not listed.
    pub async fn both_shards(&self, index: &str, what: &str, says: impl Fn(&Value) -> bool) {
        let path = format!("/{index}/_ccr/stats");
        eventually(&self.follower.env, what, async || {
            let (_, answer) = self.follower.ask("GET", &path, Value::Null).await;
            let shards = answer["indices"][0]["shards"].as_array().cloned().unwrap_or_default();
            shards.len() == 2 && shards.iter().all(&says)
        })
        .await;
    }

    pub async fn recoveries(&self, index: &str) -> Vec<Value> {
        let answer = self.follower.get(&format!("/{index}/_recovery")).await;
        answer[index]["shards"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for the end, and compares both sides.
    pub async fn complete(&self, env: &Env, index: &str) {
        eventually(env, "the follower is complete", async || {
            let rows = self.recoveries(index).await;
            rows.iter().filter(|row| row["primary"] == true && row["stage"] == "DONE").count() == 2
        })
        .await;
        eventually(env, "the follower's shards are started", async || {
            let health = self.follower.get(&format!("/_cluster/health/{index}")).await;
            health["active_primary_shards"] == 2
        })
        .await;
        let path = "_narrows/digest";
        let leader = self.leader.get(&format!("/a/{path}")).await;
        let follower = self.follower.get(&format!("/{index}/{path}")).await;
        let strip = |value: &Value| -> Vec<Value> {
            let rows = value["shards"].as_array().unwrap();
            rows.iter().map(|row| json!([row["shard"], row["documents"], row["content"]])).collect()
        };
        assert_eq!(strip(&leader), strip(&follower));
        for row in self.recoveries(index).await {
            let charged: u64 = row["narrows"]["charged_ns"]
                .as_object()
                .unwrap()
                .values()
                .map(|ns| ns.as_u64().unwrap())
                .sum();
            assert_eq!(charged, row["narrows"]["elapsed_ns"].as_u64().unwrap(), "{row}");
        }
    }

    pub async fn stop(self) {
        self.leader.stop().await;
        self.follower.stop().await;
    }
}
