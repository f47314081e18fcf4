//! Two nodes under given conditions, and recoveries between them.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use clusters::{Clusters, DiskRates, ProcessFault, RestClient, Strain, SyntheticIndex};
use machine::Quota;
use serde_json::{Value, json};
use world::model::{Disk, Host};
use world::{Env, Task, Work};

use super::cause::Load;
use super::conditions::{CROWD_SLICE, Conditions, EXCLUDE, Engine, NEIGHBOUR_WRITE_BYTES};
use crate::diagnose::LIMIT;
use crate::diagnose::bed::{self, BULK_BYTES, FAR, NEAR, bulk, incompressible};

/// What is recovered.
const DATA: &str = "data";
/// What clients search, or index into.
pub(super) const BESIDE: &str = "beside";
/// How long copies may take to come at most, before they are asked for again.
const COPIES_WITHIN: &str = "120s";
/// Copies are removed a moment after they are taken away; one that is still there would be recovered at once.
const REMOVED_WITHIN: Duration = Duration::from_secs(1);
/// The recoveries for which a node of OpenSearch reads. One that was cancelled goes on until its chunk has passed the
/// limiter: for half a minute, of chunks of 16 MB, in which it takes the rate of the next.
const READS: &str = "/_tasks?actions=internal:index/shard/recovery/start_recovery";
const CANCELLED_WITHIN: Duration = Duration::from_secs(60);
/// Between two requests of the load.
const REQUEST_EVERY: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);
/// What a search of the load reads, where it has to say so.
const SEARCHED_DOCUMENTS: u64 = 50_000;
const SEARCHED_BYTES: u64 = 1 << 20;
/// Bytes of a document that exists only as a number, in virtual time; documents that are indexed have
/// [`bed::DOCUMENT_BYTES`].
const SYNTHETIC_DOCUMENT_BYTES: u64 = 1000;

/// The nodes, and what goes on there.
pub(crate) struct Stage<'a> {
    pub(crate) env: Env,
    clusters: &'a dyn Clusters,
    engine: Engine,
    recovers: bool,
    is_flushed: bool,
    /// Load, neighbours and pauses, which end with it.
    background: Vec<Task<()>>,
    /// Pauses of a node that is a process. They end when this is dropped, and so does the quota.
    pauses: Option<ProcessFault>,
    quota: Option<Quota>,
    /// Nodes that are processes and are under a strain, and what ends each.
    strained: Vec<(String, Strain)>,
    /// The slow disk that copies are read from, where nothing of it may be in memory when they begin.
    read_anew: Option<(String, Strain)>,
}

/// The shape of the index: an index of the same shape is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    shards: u32,
    shard_bytes: u64,
    is_flushed: bool,
}

impl Shape {
    pub(crate) fn of(conditions: &Conditions) -> Shape {
        let Conditions { shards, shard_bytes, is_flushed, .. } = *conditions;
        Shape { shards, shard_bytes, is_flushed }
    }
}

/// How far recoveries have come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moved {
    /// Bytes of files; of operations where there are no files.
    pub(crate) bytes: u64,
    /// How long these have been copied, from the first recovery's beginning to where the last one's were through; by
    /// the recoveries' own clocks. Zero where none has begun.
    pub(crate) copying: Duration,
    /// Whether every copy is there.
    pub(crate) is_done: bool,
}

impl<'a> Stage<'a> {
    /// Two nodes that run. Everything is there, and nothing recovers yet. The index that is there already is `filled`.
    pub(crate) async fn set(
        env: &Env,
        clusters: &'a dyn Clusters,
        conditions: &Conditions,
        filled: Option<Shape>,
    ) -> anyhow::Result<Stage<'a>> {
        let Conditions { engine, recovers, is_flushed, .. } = *conditions;
        let mut stage = Stage {
            env: env.clone(),
            clusters,
            engine,
            recovers,
            is_flushed,
            background: Vec::new(),
            pauses: None,
            quota: None,
            strained: Vec::new(),
            read_anew: None,
        };
        if filled != Some(Shape::of(conditions)) {
            // The filter keeps the new indices away from the far node, where they are to recover later.
            stage.set_all(&[(EXCLUDE, format!("{FAR}-0"))].into()).await?;
            match filled {
                Some(_) => stage.ask("DELETE", &format!("/{DATA}"), Value::Null).await.map(drop)?,
                None => stage.index(BESIDE, 1).await?,
            }
            stage.index(DATA, conditions.shards).await?;
            stage.fill(conditions).await?;
        }
        if stage.clusters.virtual_controls().is_none() {
            // OpenSearch's limiter keeps what chunks of a recovery that was cancelled are still to pass in, unless it
            // goes: the next recovery would wait for them.
            stage.set_all(&[(LIMIT, "-1".to_owned())].into()).await?;
        }
        stage.set_all(&conditions.settings).await?;
        if let Some(controls) = stage.clusters.virtual_controls() {
            controls.set_hosts(NEAR, &conditions.near);
            controls.set_hosts(FAR, &conditions.far);
        }
        stage.begin_background(conditions).await?;
        Ok(stage)
    }

    /// Asks for the copies.
    pub(crate) async fn begin(&self) -> anyhow::Result<()> {
        if !self.recovers {
            return Ok(());
        }
        if let Some((node, strain)) = &self.read_anew {
            self.clusters.strain(node, *strain).await?;
        }
        let body = json!({ "index.number_of_replicas": 1 });
        self.ask("PUT", &format!("/{DATA}/_settings"), body).await.map(drop)
    }

    /// Has copies recover again and again, for as long as it is polled.
    pub(crate) async fn keep_recovering(&self) -> anyhow::Result<()> {
        if !self.recovers {
            return std::future::pending().await;
        }
        loop {
            let path =
                format!("/_cluster/health/{DATA}?wait_for_status=green&timeout={COPIES_WITHIN}");
            match self.ask("GET", &path, Value::Null).await {
                Ok(health) if health["timed_out"] == false => {
                    self.recover_again().await?;
                }
                // OpenSearch calls it an error that copies did not come in time.
                _ => self.env.sleep(REMOVED_WITHIN).await,
            }
        }
    }

    /// Takes all copies away, and asks for them again.
    pub(super) async fn recover_again(&self) -> anyhow::Result<()> {
        self.take_away().await?;
        self.begin().await
    }

    async fn take_away(&self) -> anyhow::Result<()> {
        let body = json!({ "index.number_of_replicas": 0 });
        self.ask("PUT", &format!("/{DATA}/_settings"), body).await?;
        self.env.sleep(REMOVED_WITHIN).await;
        if self.clusters.virtual_controls().is_some() {
            return Ok(());
        }
        let give_up = self.env.now() + CANCELLED_WITHIN;
        // The embedded engine refuses the question: its limiter takes back what a cancelled recovery had reserved.
        while let Ok(answer) = self.ask("GET", READS, Value::Null).await
            && answer["nodes"].as_object().is_some_and(|nodes| !nodes.is_empty())
            && self.env.now() < give_up
        {
            self.env.sleep(REMOVED_WITHIN / 10).await;
        }
        Ok(())
    }

    /// Addresses of both nodes.
    pub(crate) fn urls(&self) -> Vec<String> {
        let nodes = [NEAR, FAR].into_iter().flat_map(|site| self.clusters.nodes(site));
        nodes.map(|node| format!("http://{}", node.http)).collect()
    }

    /// How far the recoveries have come, as the cluster says.
    pub(crate) async fn moved(&self) -> anyhow::Result<Moved> {
        let answer = self.ask("GET", &format!("/{DATA}/_recovery"), Value::Null).await?;
        let shards = answer[DATA]["shards"].as_array().cloned().unwrap_or_default();
        let peers: Vec<&Value> = shards.iter().filter(|shard| shard["type"] == "PEER").collect();
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let bytes = |peer: &&Value| match self.is_flushed {
            true => number(&peer["index"]["size"]["recovered_in_bytes"]),
            false => number(&peer["translog"]["recovered"]) * bed::DOCUMENT_BYTES as u64,
        };
        let began = |peer: &&Value| number(&peer["start_time_in_millis"]);
        let stages: &[&str] = if self.is_flushed { &["index"] } else { &["index", "translog"] };
        let through = |peer: &&Value| {
            let took = stages.iter().map(|stage| number(&peer[*stage]["total_time_in_millis"]));
            began(peer) + took.sum::<u64>()
        };
        let first = peers.iter().map(began).min().unwrap_or(0);
        let last = peers.iter().map(through).max().unwrap_or(0);
        let copying = Duration::from_millis(last.saturating_sub(first));
        let health = self.ask("GET", &format!("/_cluster/health/{DATA}"), Value::Null).await?;
        let bytes = peers.iter().map(bytes).sum();
        Ok(Moved { bytes, copying, is_done: health["status"] == "green" })
    }

    /// Takes back what conditions left; the index stays.
    pub(crate) async fn clear(mut self) -> anyhow::Result<()> {
        self.background.clear();
        (self.pauses, self.quota) = (None, None);
        for (node, end) in std::mem::take(&mut self.strained) {
            self.clusters.strain(&node, end).await?;
        }
        self.take_away().await
    }

    /// The node that has the primaries.
    pub(crate) fn near(&self) -> anyhow::Result<String> {
        let node = self.clusters.nodes(NEAR).into_iter().next().context("the near node runs")?;
        Ok(node.http)
    }

    /// Asks the near node.
    async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        bed::ask(self.clusters, NEAR, method, path, body).await
    }

    /// Sets these; all others that conditions may name get their defaults.
    async fn set_all<N: Borrow<str> + Ord>(
        &self,
        settings: &BTreeMap<N, String>,
    ) -> anyhow::Result<()> {
        let body: BTreeMap<&str, Option<&String>> =
            self.engine.settings().map(|name| (name, settings.get(name))).collect();
        self.ask("PUT", "/_cluster/settings", json!({ "persistent": body })).await.map(drop)
    }

    async fn index(&self, name: &str, shards: u32) -> anyhow::Result<()> {
        let mut settings = json!({
            "number_of_shards": shards,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
        });
        if self.engine == Engine::OPENSEARCH {
            // What is mapped into memory stays there, and is not read from a slow disk.
            settings["store.type"] = "niofs".into();
        }
        let body = json!({ "settings": settings, "mappings": incompressible() });
        self.ask("PUT", &format!("/{name}"), body).await?;
        let path = format!("/_cluster/health/{name}?wait_for_status=green&timeout=60s");
        let health = self.ask("GET", &path, Value::Null).await?;
        ensure!(health["timed_out"] != true, "{name} does not come up");
        Ok(())
    }

    async fn fill(&self, conditions: &Conditions) -> anyhow::Result<()> {
        let bytes = conditions.shard_bytes * u64::from(conditions.shards);
        let Some(controls) = self.clusters.virtual_controls() else {
            for _ in 0..bytes.div_ceil(BULK_BYTES) {
                let (path, body) = (format!("/{DATA}/_bulk"), bulk(&self.env).into());
                let answer = self.clusters.request(NEAR, "POST", &path, body).await?;
                ensure!(answer.json()?["errors"] == false, "documents were refused");
            }
            if !conditions.is_flushed {
                return Ok(());
            }
            return self.ask("POST", &format!("/{DATA}/_flush"), Value::Null).await.map(drop);
        };
        let index = SyntheticIndex {
            name: DATA.to_owned(),
            documents: bytes / SYNTHETIC_DOCUMENT_BYTES,
            bytes,
            segments: conditions.segments * conditions.shards,
            segment_ratio: 1.0,
        };
        Ok(controls.load_index(NEAR, &index).await?)
    }

    fn request(&self, load: Load) -> Request {
        match load {
            Load::Search => {
                // Where documents are only counted, a search says what it costs; elsewhere it costs what it costs.
                let is_virtual = self.clusters.virtual_controls().is_some();
                let body = if is_virtual { counting().to_string() } else { String::new() };
                Request { path: format!("/{BESIDE}/_search"), body: body.into() }
            }
            Load::Indexing => {
                let line = "{\"index\":{}}\n{\"field\":\"some words that are indexed\"}\n";
                Request { path: format!("/{BESIDE}/_bulk"), body: line.repeat(20).into() }
            }
        }
    }

    /// Begins load, neighbours, pauses and quota.
    async fn begin_background(&mut self, conditions: &Conditions) -> anyhow::Result<()> {
        if let Some(load) = conditions.load {
            let (env, address) = (self.env.clone(), self.near()?);
            let request = self.request(load);
            // Where this one is refused, all would be, and there would be no load.
            self.clusters
                .request(NEAR, "POST", &request.path, request.body.clone())
                .await?
                .json()?;
            self.background.push(self.env.spawn("load", requests(env, address, request)));
        }
        if self.clusters.virtual_controls().is_none() {
            self.strain(conditions).await?;
            return self.disturb(conditions);
        }
        for _ in 0..conditions.neighbours() {
            let host = self.env.host(&format!("{FAR}-0"));
            self.background.push(self.env.spawn("neighbour", async move {
                loop {
                    host.work(Work::DiskWrite { bytes: NEIGHBOUR_WRITE_BYTES }, || ()).await;
                }
            }));
        }
        for _ in 0..conditions.crowd {
            let host = self.env.host(&format!("{FAR}-0"));
            self.background.push(self.env.spawn("crowd", async move {
                loop {
                    host.crowd(CROWD_SLICE).await;
                }
            }));
        }
        if let Some((site, paused)) = conditions.pauses {
            let (env, name) = (self.env.clone(), format!("{site}-0"));
            self.background.push(self.env.spawn("pauses", async move {
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

    /// Slow disks, their neighbours, and collections of nodes that are processes. A disk that is as it comes is the
    /// machine's own.
    async fn strain(&mut self, conditions: &Conditions) -> anyhow::Result<()> {
        let slow = |host: &Host| {
            let Disk { read_bytes_per_s, write_bytes_per_s, .. } = host.disk;
            let rates = DiskRates { read_bytes_per_s, write_bytes_per_s };
            (host.disk != Disk::default()).then_some(Strain::Disk(Some(rates)))
        };
        let neighbours = conditions.neighbours();
        let neighbours = (neighbours > 0).then_some(Strain::Neighbours(neighbours));
        if self.engine == Engine::OPENSEARCH {
            self.read_anew = slow(&conditions.near).map(|strain| (format!("{NEAR}-0"), strain));
        }
        let strains = [
            // They end before their disk is fast again.
            (FAR, neighbours, Strain::Neighbours(0)),
            (NEAR, slow(&conditions.near), Strain::Disk(None)),
            (FAR, slow(&conditions.far), Strain::Disk(None)),
            (FAR, conditions.collections.map(Strain::Collections), Strain::Collections(0.0)),
        ];
        for (site, strain, end) in strains {
            let Some(strain) = strain else { continue };
            let node = format!("{site}-0");
            self.clusters.strain(&node, strain).await?;
            self.strained.push((node, end));
        }
        Ok(())
    }

    /// Pauses and quota of nodes that are processes.
    fn disturb(&mut self, conditions: &Conditions) -> anyhow::Result<()> {
        let process = |site: &str| {
            let pid = self.clusters.process_id(&format!("{site}-0"));
            pid.with_context(|| format!("the {site} node is no process of ours"))
        };
        if let Some((site, paused)) = conditions.pauses {
            let pauses =
                ProcessFault::pauses(process(site)?, SECOND.saturating_sub(paused), paused);
            let pauses = pauses.map_err(|why| anyhow!("pause the {site} node: {why}"))?;
            self.pauses = Some(pauses);
        }
        if let Some(share) = conditions.quota {
            let quota = Quota::of(process(FAR)?, share).context("make a control group")?;
            self.quota = Some(quota);
        }
        Ok(())
    }
}

/// A search as the virtual world can answer it.
fn counting() -> Value {
    let cost = json!({ "documents": SEARCHED_DOCUMENTS, "bytes": SEARCHED_BYTES });
    json!({ "size": 0, "query": { "match_all": {} }, "ext": { "narrows": { "cost": cost } } })
}

/// A request of the load.
struct Request {
    path: String,
    body: Bytes,
}

/// Requests, one after another. A node that stands still or is busy answers late or not at all.
async fn requests(env: Env, address: String, request: Request) {
    let client = RestClient::new(&env);
    loop {
        let _ = client.send(&address, "POST", &request.path, request.body.clone()).await;
        env.sleep(REQUEST_EVERY).await;
    }
}
