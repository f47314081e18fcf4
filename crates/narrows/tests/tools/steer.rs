//! `steer` on OpenSearch: a recovery that a throttle holds.

use std::time::Duration;

use clusters::{Clusters, OpenSearchClusters, TopologySpec};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::CannotRun;
use world::Env;

use crate::common::steered::{Steering, journals, steer};
use crate::common::{done, restore, signal, started};
use crate::opensearch::not_fetched;

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
const LEASE: &str = "cluster.metadata.narrows_steerer";
const FOUND: &str = "1mb";
/// Of a recovery that began so many bytes have come before it is steered: OpenSearch counts a while without any.
const BEGUN_BYTES: u64 = 1 << 20;

/// A cluster whose recoveries are throttled.
struct Throttled {
    env: Env,
    target: OpenSearchClusters,
}

impl Throttled {
    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        started::ask(&self.target, "c", method, path, body).await
    }

    async fn fill(&self) {
        self.ask("PUT", "/_cluster/settings", json!({ "persistent": persistent() })).await;
        started::fill(&self.target, "c", "orders", 1, 8000).await;
    }

    /// Lets a replica recover anew.
    async fn recover(&self) {
        for replicas in [0, 1] {
            let body = json!({ "number_of_replicas": replicas });
            self.ask("PUT", "/orders/_settings", body).await;
            std::thread::sleep(Duration::from_secs(1));
        }
        let has_begun = async || {
            let answer = self.ask("GET", "/orders/_recovery?active_only=true", Value::Null).await;
            let bytes = answer.pointer("/orders/shards/0/index/size/recovered_in_bytes");
            bytes.and_then(Value::as_u64) >= Some(BEGUN_BYTES)
        };
        started::until(&self.env, "a recovery has begun", has_begun).await;
    }

    async fn settings(&self) -> Value {
        let all = self.ask("GET", "/_cluster/settings?flat_settings=true", Value::Null).await;
        assert_eq!(all["transient"], json!({}));
        all["persistent"].clone()
    }

    /// Whoever steers a replica that recovers anew, and the first setting that was raised.
    async fn steered(&self, more: &[&str]) -> (TempDir, Steering, Value) {
        self.recover().await;
        let (dir, urls) = (tempfile::tempdir().unwrap(), started::urls(&self.target, "c"));
        let more = [&["--apply"], more].concat();
        let mut steering = Steering::start(steer(&urls, dir.path(), &more));
        let set = steering.until("set");
        (dir, steering, set)
    }
}

fn persistent() -> Value {
    json!({ LIMIT: FOUND })
}

pub fn opensearch_is_steered_and_everything_is_as_it_was() -> Result<(), CannotRun> {
    world::real_world::run(1, async |env| {
        let mut target = OpenSearchClusters::new(&env);
        let topology = TopologySpec::alone("c", 2);
        target.start(&topology).await.map_err(not_fetched)?;
        let mut throttled = Throttled { env, target };
        throttled.fill().await;
        ctrl_c(&throttled).await;
        kill_9(&throttled).await;
        somebody_else(&throttled).await;
        throttled.target.stop().await;
        Ok(())
    })
}

async fn ctrl_c(throttled: &Throttled) {
    let most = format!("{LIMIT}=4mb");
    let (dir, mut steering, set) = throttled.steered(&["--max", &most]).await;
    assert_eq!((&set["setting"], &set["from"]), (&json!(LIMIT), &json!(FOUND)), "{set}");
    let kept = steering.until("keep");
    println!("{set}\n{kept}");
    let got = kept["got"].as_f64().unwrap();
    assert!(got > 1.5, "twice the limit or more, {got} times the rate: {kept}");
    let there = throttled.settings().await;
    assert_ne!(there[LIMIT], FOUND);
    assert!(there[LEASE].is_string(), "OpenSearch keeps a lease: {there}");
    signal(steering.child.id(), "INT");
    steering.end(0);
    assert_eq!(throttled.settings().await, persistent());
    assert!(journals(dir.path()).is_empty());
}

async fn kill_9(throttled: &Throttled) {
    let (dir, mut steering, _) = throttled.steered(&[]).await;
    steering.child.kill();
    assert_ne!(throttled.settings().await, persistent());
    assert_eq!(journals(dir.path()).len(), 1);
    done(&restore("last", dir.path()));
    assert_eq!(throttled.settings().await, persistent());
    assert!(journals(dir.path()).is_empty());
}

async fn somebody_else(throttled: &Throttled) {
    let (_dir, steering, _) = throttled.steered(&[]).await;
    let body = json!({ "persistent": { LIMIT: "1500kb" } });
    throttled.ask("PUT", "/_cluster/settings", body).await;
    let end = steering.end(1);
    let end = end["why"].as_str().unwrap();
    assert!(end.contains("somebody else") && end.contains("1500kb"), "{end}");
    assert_eq!(throttled.settings().await, json!({ LIMIT: "1500kb" }));
}
