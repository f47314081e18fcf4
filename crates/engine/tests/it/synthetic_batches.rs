//! Runs of documents that exist only as a number, in the virtual world: written, replicated, recovered and followed as
//! documents are, whatever fails meanwhile.

use std::time::Duration;

use crate::common::eventually;
use crate::common::pair::{Pair, pair_of};
use serde_json::{Value, json};
use world::{Env, virtual_world};

testbed::virtual_world!(
    are_followed_beside_documents,
    are_refused_in_numbers_that_make_no_sense,
    a_follower_that_rests_costs_little_and_loses_nothing,
);

impl Pair {
    /// Writes a run; how many documents were acknowledged.
    async fn run(&self, index: &str, documents: u64) -> u64 {
        let bytes = documents * 300;
        let path = format!("/{index}/_narrows/run?documents={documents}&source_bytes={bytes}");
        self.leader.post(&path).await["acknowledged"].as_u64().unwrap()
    }

    /// Waits until every copy on both sides holds so many documents, and the same.
    async fn both_hold(&self, env: &Env, leader: &str, follower: &str, documents: u64) {
        // Indices that a pattern names have the same names on both sides; another follower has one of its own.
        let by_name = leader.contains('*');
        let rows = async |cluster: &crate::common::Cluster, index: &str| {
            let path = format!("/{index}/_narrows/digest?replicas=true");
            let (_, found) = cluster.ask("GET", &path, Value::Null).await;
            let rows = found["shards"].as_array().cloned().unwrap_or_default();
            let mut rows: Vec<(String, u64, u64, String)> = rows
                .iter()
                .map(|row| {
                    let number = |name: &str| row[name].as_u64().unwrap();
                    let index = if by_name { row["index"].to_string() } else { String::new() };
                    (index, number("shard"), number("documents"), row["content"].to_string())
                })
                .collect();
            rows.sort();
            rows.dedup();
            rows
        };
        let expected = rows(&self.leader, leader).await;
        assert_eq!(expected.iter().map(|row| row.2).sum::<u64>(), documents, "{expected:?}");
        eventually(env, "the follower holds the same", async || {
            rows(&self.follower, follower).await == expected
        })
        .await;
    }
}

async fn started(env: &Env) -> Pair {
    let pair = pair_of(env, (2, 2), (20, 50_000_000), (1, 0)).await;
    pair.follower.follow("b", ("leader", "a"), 1, "all").await;
    pair
}

async fn are_followed_beside_documents(env: Env) {
    let pair = started(&env).await;
    let mut written = 0;
    for round in 0..20 {
        written += pair.run("a", 10_000 + round).await;
        assert_eq!(pair.leader.index("a", round * 10, round * 10 + 10).await, 10);
    }
    assert_eq!(written, 200_190);
    pair.both_hold(&env, "a", "b", written + 200).await;
    assert_eq!(pair.follower.counted("b").await["count"], written + 200);
    let stats = pair.follower.get("/b/_ccr/stats").await;
    for shard in stats["indices"][0]["shards"].as_array().unwrap() {
        assert_eq!(shard["leader_global_checkpoint"], shard["follower_global_checkpoint"]);
        assert!(shard["operations_written"].as_u64().unwrap() >= 100_000, "{shard}");
    }
    // A copy that comes up later has its files and the operations after them.
    pair.follower.must("PUT", "/b/_settings", json!({ "index.number_of_replicas": 0 })).await;
    written += pair.run("a", 5_000).await;
    pair.follower.must("PUT", "/b/_settings", json!({ "index.number_of_replicas": 1 })).await;
    written += pair.run("a", 5_000).await;
    pair.follower.green("b").await;
    pair.both_hold(&env, "a", "b", written + 200).await;
}

#[test]
fn survive_kills_on_either_side() {
    for seed in 0..12 {
        virtual_world::run(seed, async |env: Env| {
            let mut pair = started(&env).await;
            let mut written = 0;
            for round in 0..8 {
                for _ in 0..4 {
                    written += pair.run("a", 1 + env.random_u64() % 20_000).await;
                    env.sleep(Duration::from_millis(env.random_u64() % 60)).await;
                }
                if round % 2 == 0 {
                    let number = (env.random_u64() % 2) as usize;
                    pair.follower.kill_node(number).await;
                    env.sleep(Duration::from_millis(env.random_u64() % 3000)).await;
                    pair.follower.start_node(number).await;
                } else {
                    // The leader's other node, which does not manage.
                    pair.leader.kill_node(1).await;
                    written += pair.run("a", 1000).await;
                    pair.leader.start_node(1).await;
                    pair.leader.post("/_cluster/reroute?retry_failed=true").await;
                    pair.leader.green("a").await;
                }
            }
            pair.follower.post("/_cluster/reroute?retry_failed=true").await;
            pair.follower.green("b").await;
            pair.both_hold(&env, "a", "b", written).await;
            pair.stop().await;
        });
    }
}

async fn are_refused_in_numbers_that_make_no_sense(env: Env) {
    let cluster = crate::common::Cluster::start(&env, "c", 1).await;
    for query in ["documents=0&source_bytes=1", "documents=1", "documents=x&source_bytes=1"] {
        let path = format!("/a/_narrows/run?{query}");
        assert_eq!(cluster.ask("POST", &path, Value::Null).await.0, 400, "{query}");
    }
}

/// Logs of a busy site for two hours: the leader rolls over, and the follower picks each index up, though its nodes are
/// down for five minutes again and again.
#[test]
fn a_leader_rolls_over_for_hours_while_the_follower_restarts() {
    const A_SECOND: u64 = 19_700;
    const AT_ONCE: u64 = 400_000;
    virtual_world::run(11, async |env: Env| {
        let mut pair = pair_of(&env, (2, 3), (100, 125_000_000), (1, 0)).await;
        let body = json!({"remote_cluster": "leader", "leader_index_patterns": ["logs-*"]});
        pair.follower.must("PUT", "/_ccr/auto_follow/logs", body).await;
        let settings = json!({"number_of_shards": 2, "number_of_replicas": 1});
        let aliases = json!({"logs": {"is_write_index": true}});
        let first = json!({"settings": settings, "aliases": aliases});
        pair.leader.must("PUT", "/logs-000001", first).await;
        let end = env.now() + Duration::from_secs(2 * 3600);
        let (mut written, mut rolled, mut restarts) = (0, 0, 0);
        let mut next = env.now();
        let mut down: Option<(usize, world::Time)> = None;
        while env.now() < end {
            written += pair.run("logs", AT_ONCE).await;
            let due = json!({
                "conditions": {"max_docs": 52_000_000, "max_size": "20gb"}, "settings": settings,
            });
            let answer = pair.leader.must("POST", "/logs/_rollover", due).await;
            rolled += u64::from(answer["rolled_over"] == true);
            match down {
                Some((node, until)) if env.now() >= until => {
                    pair.follower.start_node(node).await;
                    down = None;
                }
                None if env.random_u64().is_multiple_of(60) => {
                    let node = (env.random_u64() % 3) as usize;
                    pair.follower.kill_node(node).await;
                    down = Some((node, env.now() + Duration::from_secs(300)));
                    restarts += 1;
                }
                _ => {}
            }
            next = next + Duration::from_secs_f64(AT_ONCE as f64 / A_SECOND as f64);
            env.sleep_until(next).await;
        }
        if let Some((node, _)) = down {
            pair.follower.start_node(node).await;
        }
        assert!(rolled >= 2 && restarts >= 3, "{rolled} rollovers, {restarts} restarts");
        assert!(written >= 2 * 3600 * A_SECOND, "{written}");
        let followers = rolled as usize + 1;
        eventually(&env, "every index is followed", async || {
            let (_, all) = pair.follower.ask("GET", "/logs-*", Value::Null).await;
            all.as_object().is_some_and(|all| all.len() == followers)
        })
        .await;
        pair.follower.post("/_cluster/reroute?retry_failed=true").await;
        pair.follower.green("logs-*").await;
        pair.both_hold(&env, "logs-*", "logs-*", written).await;
        pair.stop().await;
    });
}

/// A follower that nobody writes to asks seldom, holds its lease all the same, and hears at once of what comes.
async fn a_follower_that_rests_costs_little_and_loses_nothing(env: Env) {
    let pair = started(&env).await;
    let period = json!({ "index.soft_deletes.retention_lease.period": "1h" });
    pair.leader.must("PUT", "/a/_settings", period).await;
    let mut written = pair.run("a", 1000).await;
    pair.both_hold(&env, "a", "b", written).await;
    let reads = async || {
        let stats = pair.follower.get("/b/_ccr/stats").await;
        let shards = stats["indices"][0]["shards"].as_array().cloned().unwrap();
        shards.iter().map(|s| s["successful_read_requests"].as_u64().unwrap()).sum::<u64>()
    };
    let before = reads().await;
    env.sleep(Duration::from_secs(10 * 3600)).await;
    let asked = reads().await - before;
    assert!(asked < 2 * 10 * 7, "two shards, at most every ten minutes after the first: {asked}");
    written += pair.run("a", 1000).await;
    env.sleep(Duration::from_secs(1)).await;
    let count = pair.follower.counted("b").await;
    assert_eq!(count["count"], written, "it waited at the leader for what came");
    // The leader lets go of what nobody needs, and has not let go of what the follower did.
    pair.leader.post("/a/_flush").await;
    pair.both_hold(&env, "a", "b", written).await;
    let stats = pair.follower.get("/b/_ccr/stats").await;
    for shard in stats["indices"][0]["shards"].as_array().unwrap() {
        assert!(shard["narrows"].get("recovered_from_remote_again").is_none(), "{shard}");
        assert_eq!(shard["failed_read_requests"], 0, "{shard}");
    }
    // What an index is changes without an operation, and is heard of, too.
    pair.leader.must("PUT", "/a/_alias/x", Value::Null).await;
    env.sleep(Duration::from_secs(1)).await;
    let shown = pair.follower.get("/_alias/x").await;
    assert_eq!(shown, json!({"b": {"aliases": {"x": {"is_write_index": false}}}}));
}
