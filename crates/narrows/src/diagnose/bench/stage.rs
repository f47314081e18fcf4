//! Two nodes in virtual time under given conditions, and recoveries between them.

use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use clusters::{Clusters, RestClient, SyntheticIndex, VirtualClusters};
use serde_json::{Value, json};
use world::{Env, Task, Work};

use super::cause::Load;
use super::conditions::Conditions;
use crate::diagnose::bed::{FAR, NEAR, two_nodes};

/// What is recovered.
const DATA: &str = "data";
/// What clients search, or index into.
const BESIDE: &str = "beside";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
/// Between two requests of the load.
const REQUEST_EVERY: Duration = Duration::from_millis(20);
/// A neighbour's writes are of this size.
const NEIGHBOUR_WRITE_BYTES: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);
/// A document's part of the bytes of an index.
const DOCUMENT_BYTES: u64 = 1000;

/// The nodes, and what goes on there.
pub(crate) struct Stage {
    env: Env,
    clusters: VirtualClusters,
    recovers: bool,
    /// What goes on beside ends with it.
    beside: Vec<Task<()>>,
}

/// How far recoveries have come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moved {
    /// Bytes of files.
    pub(crate) bytes: u64,
    /// Whether every copy is there.
    pub(crate) is_done: bool,
}

impl Stage {
    /// Starts the nodes. Everything is there, and nothing recovers yet.
    pub(crate) async fn set(env: &Env, conditions: &Conditions) -> anyhow::Result<Stage> {
        let mut clusters = VirtualClusters::new(env);
        clusters.start(&two_nodes(conditions.link.clone())).await.context("start two nodes")?;
        let recovers = conditions.recovers;
        let mut stage = Stage { env: env.clone(), clusters, recovers, beside: Vec::new() };
        // What is placed now stays there.
        stage.settings(&json!({ EXCLUDE: format!("{FAR}-0") })).await?;
        stage.index(DATA, conditions.shards).await?;
        stage.index(BESIDE, 1).await?;
        stage.fill(conditions).await?;
        let mut settings = json!({ EXCLUDE: null });
        for (name, value) in &conditions.settings {
            settings[name] = json!(value);
        }
        stage.settings(&settings).await?;
        let controls = stage.clusters.virtual_controls().context("hosts are simulated")?;
        controls.set_hosts(NEAR, &conditions.near);
        controls.set_hosts(FAR, &conditions.far);
        stage.go_on_beside(conditions)?;
        Ok(stage)
    }

    /// Asks for the copies.
    pub(crate) async fn begin(&self) -> anyhow::Result<()> {
        if !self.recovers {
            return Ok(());
        }
        let body = json!({ "index.number_of_replicas": 1 });
        self.ask("PUT", &format!("/{DATA}/_settings"), body).await.map(drop)
    }

    /// Addresses of both nodes.
    pub(crate) fn urls(&self) -> Vec<String> {
        let nodes = [NEAR, FAR].into_iter().flat_map(|site| self.clusters.nodes(site));
        nodes.map(|node| format!("http://{}", node.http)).collect()
    }

    pub(crate) async fn moved(&self) -> anyhow::Result<Moved> {
        let answer = self.ask("GET", &format!("/{DATA}/_recovery"), Value::Null).await?;
        let shards = answer[DATA]["shards"].as_array().cloned().unwrap_or_default();
        let peers: Vec<&Value> = shards.iter().filter(|shard| shard["type"] == "PEER").collect();
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let bytes =
            peers.iter().map(|peer| number(&peer["index"]["size"]["recovered_in_bytes"])).sum();
        let health = self.ask("GET", &format!("/_cluster/health/{DATA}"), Value::Null).await?;
        Ok(Moved { bytes, is_done: health["status"] == "green" })
    }

    /// Stops the nodes.
    pub(crate) async fn end(mut self) {
        self.beside.clear();
        self.clusters.stop().await;
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        Ok(self.clusters.request(NEAR, method, path, body).await?.json()?)
    }

    async fn settings(&self, settings: &Value) -> anyhow::Result<()> {
        let body = json!({ "persistent": settings });
        self.ask("PUT", "/_cluster/settings", body).await.map(drop)
    }

    async fn index(&self, name: &str, shards: u32) -> anyhow::Result<()> {
        let settings = json!({
            "number_of_shards": shards,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
        });
        self.ask("PUT", &format!("/{name}"), json!({ "settings": settings })).await?;
        let path = format!("/_cluster/health/{name}?wait_for_status=green&timeout=60s");
        let health = self.ask("GET", &path, Value::Null).await?;
        ensure!(health["timed_out"] != true, "{name} does not come up");
        Ok(())
    }

    async fn fill(&self, conditions: &Conditions) -> anyhow::Result<()> {
        let bytes = conditions.shard_bytes * u64::from(conditions.shards);
        let index = SyntheticIndex {
            name: DATA.to_owned(),
            documents: bytes / DOCUMENT_BYTES,
            bytes,
            segments: conditions.segments * conditions.shards,
            segment_ratio: 1.0,
        };
        let controls = self.clusters.virtual_controls().context("hosts are simulated")?;
        Ok(controls.load_index(NEAR, &index).await?)
    }

    /// Load, neighbour and pauses.
    fn go_on_beside(&mut self, conditions: &Conditions) -> anyhow::Result<()> {
        let node = self.clusters.nodes(NEAR).into_iter().next().context("the near node runs")?;
        if let Some(load) = conditions.load {
            let (env, address) = (self.env.clone(), node.http);
            self.beside.push(self.env.spawn("load", requests(env, address, load)));
        }
        let writers = conditions.neighbour_bytes.div_ceil(NEIGHBOUR_WRITE_BYTES);
        for _ in 0..writers {
            let host = self.env.host(&format!("{FAR}-0"));
            self.beside.push(self.env.spawn("neighbour", async move {
                loop {
                    host.work(Work::DiskWrite { bytes: NEIGHBOUR_WRITE_BYTES }, || ()).await;
                }
            }));
        }
        if let Some((site, paused)) = conditions.pauses {
            let (env, name) = (self.env.clone(), format!("{site}-0"));
            self.beside.push(self.env.spawn("pauses", async move {
                loop {
                    env.sleep(SECOND.saturating_sub(paused)).await;
                    env.pause_host(&name, true);
                    env.sleep(paused).await;
                    env.pause_host(&name, false);
                }
            }));
        }
        Ok(())
    }
}

/// Requests, one after another. A node that stands still or is busy answers late or not at all.
async fn requests(env: Env, address: String, load: Load) {
    let client = RestClient::new(&env);
    let (path, body) = match load {
        Load::Search => (format!("/{BESIDE}/_search"), Bytes::new()),
        Load::Indexing => {
            let line = "{\"index\":{}}\n{\"field\":\"some words that are indexed\"}\n";
            (format!("/{BESIDE}/_bulk"), Bytes::from(line.repeat(20)))
        }
    };
    loop {
        let _ = client.send(&address, "POST", &path, body.clone()).await;
        env.sleep(REQUEST_EVERY).await;
    }
}
