//! Two nodes on two sites of one cluster, with indices on one of them that are recovered onto the other.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clusters::{ClusterSpec, Clusters, TopologySpec};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

use crate::terminal::say;

use super::{Case, Kind, LIMIT, QUOTA_SHARE_MAX, RTT, STARVED_RECOVERY};
use machine::Quota;

/// The site that has the primaries, and the one that recovers replicas. Each is one node.
pub(crate) const NEAR: &str = "near";
pub(crate) const FAR: &str = "far";
/// Indices of one shard: one recovers while the copies of another are taken away.
const WHOLE: [&str; 4] = ["whole-0", "whole-1", "whole-2", "whole-3"];
/// An index of many small shards.
const SPLIT: &str = "split";
const SPLIT_SHARDS: u32 = 12;
/// Documents of [`DOCUMENT_BYTES`] in each.
const DOCUMENTS: u32 = 4000;
pub(crate) const DOCUMENT_BYTES: usize = 10_000;
const BULK_DOCUMENTS: u32 = 200;
pub(crate) const BULK_BYTES: u64 = BULK_DOCUMENTS as u64 * DOCUMENT_BYTES as u64;
/// To this part of itself, so that it does not come down by ever smaller steps.
const LOWERED_AT_LEAST: f64 = 0.8;
/// How long a recovery may take.
const PATIENCE_S: u32 = 120;
const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const REQUIRE: &str = "index.routing.allocation.require._name";
const INCLUDE: &str = "index.routing.allocation.include._name";

/// A cluster to inject causes into.
pub(crate) struct Bed<T> {
    env: Env,
    target: T,
}

/// Two clusters of one node each, joined across a link, with settings in the nodes' configuration.
fn two_nodes(link: LinkConfig, settings: &BTreeMap<String, String>) -> TopologySpec {
    let site = |name: &str| ClusterSpec { settings: settings.clone(), ..ClusterSpec::new(name, 1) };
    TopologySpec { clusters: vec![site(NEAR), site(FAR)], link: Some(link), joined: true }
}

/// Starts [`two_nodes`], and says beforehand what takes long in silence.
pub(crate) async fn start(
    clusters: &mut impl Clusters,
    link: LinkConfig,
    settings: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    if let Some(sentence) = clusters.prepares() {
        say!("{sentence}");
    }
    clusters.start(&two_nodes(link, settings)).await.context("start two nodes")
}

/// An injected cause. What it leaves is taken back by [`Bed::calm`].
pub(crate) struct Injected {
    indices: &'static [&'static str],
    /// Whether recoveries go on one after another.
    goes_on: bool,
    _quota: Option<Quota>,
}

impl<T: Clusters> Bed<T> {
    /// Starts the nodes, and indexes what is recovered in these cases.
    pub(crate) async fn start(env: &Env, target: T, cases: &[&Case]) -> anyhow::Result<Self> {
        let mut bed = Bed { env: env.clone(), target };
        start(&mut bed.target, LinkConfig::default(), &BTreeMap::new()).await?;
        // What was placed stays there: shards that move by themselves are recoveries, too.
        bed.set(json!({ "cluster.routing.rebalance.enable": "none" })).await?;
        for name in WHOLE {
            bed.index(name, 1).await?;
        }
        if cases.iter().any(|case| case.kind == Kind::Slots) {
            bed.index(SPLIT, SPLIT_SHARDS).await?;
        }
        Ok(bed)
    }

    pub(crate) async fn stop(mut self) {
        self.target.stop().await;
    }

    /// Addresses of both nodes.
    pub(crate) fn urls(&self) -> Vec<String> {
        let nodes = [NEAR, FAR].into_iter().flat_map(|site| self.target.nodes(site));
        nodes.map(|node| format!("http://{}", node.http)).collect()
    }

    /// Makes a case's cause.
    pub(crate) async fn inject(&self, case: &Case) -> anyhow::Result<Injected> {
        let mut injected = Injected { indices: &WHOLE, goes_on: true, _quota: None };
        match case.kind {
            Kind::Throttle => self.set(json!({ LIMIT: "4mb" })).await?,
            Kind::Link => self.round_trip(RTT)?,
            Kind::Cpu => {
                self.set(json!({ LIMIT: "-1" })).await?;
                let node = self.target.nodes(FAR).into_iter().next().map(|node| node.name);
                let pid = node.and_then(|node| self.target.process_id(&node));
                let pid = pid.context("the far node is no process of ours")?;
                let none = "this machine lets us make no control group";
                let quota = Quota::of(pid, QUOTA_SHARE_MAX).context(none)?;
                self.starve(&quota).await?;
                injected._quota = Some(quota);
            }
            Kind::Slots => {
                self.set(json!({ SLOTS: "1" })).await?;
                self.round_trip(RTT)?;
                injected.indices = &[SPLIT];
            }
            Kind::Block => {
                injected.goes_on = false;
                self.update(WHOLE[0], json!({ REQUIRE: "no-such-node" })).await?;
                self.replicas(WHOLE[0], 1).await?;
            }
            Kind::Healthy => self.set(json!({ LIMIT: "-1" })).await?,
        }
        Ok(injected)
    }

    /// Lowers a quota until a recovery takes the far node [`STARVED_RECOVERY`] or more: how much of a core that is
    /// differs tenfold between one build of the engine and another. A JVM answers nothing with less than the most.
    async fn starve(&self, quota: &Quota) -> anyhow::Result<()> {
        if self.target.name() != "embedded" {
            return Ok(());
        }
        let mut share = QUOTA_SHARE_MAX;
        loop {
            quota.allow(share)?;
            // The first may have more to do than all that follow, and any may be held up by something else.
            let took = self.time_of_recovery().await?.min(self.time_of_recovery().await?);
            if took >= STARVED_RECOVERY || share <= Quota::SHARE_MIN {
                return Ok(());
            }
            let fits = took.div_duration_f64(STARVED_RECOVERY).min(LOWERED_AT_LEAST);
            share = (share * fits).max(Quota::SHARE_MIN);
        }
    }

    async fn time_of_recovery(&self) -> anyhow::Result<Duration> {
        let began = self.env.now();
        self.replicas(WHOLE[0], 1).await?;
        self.until_green(WHOLE[0]).await?;
        let took = self.env.now() - began;
        self.replicas(WHOLE[0], 0).await?;
        Ok(took)
    }

    /// Lets recoveries go on, one after another, for as long as it is polled.
    pub(crate) async fn feed(&self, injected: &Injected) -> anyhow::Result<()> {
        if !injected.goes_on {
            return std::future::pending().await;
        }
        loop {
            for index in injected.indices {
                self.replicas(index, 1).await?;
                self.until_green(index).await?;
                self.replicas(index, 0).await?;
            }
        }
    }

    /// Takes back what a case left.
    pub(crate) async fn calm(&self, injected: Injected) -> anyhow::Result<()> {
        let indices = injected.indices;
        drop(injected);
        self.round_trip(Duration::ZERO)?;
        self.set(json!({ LIMIT: null, SLOTS: null })).await?;
        self.update(WHOLE[0], json!({ REQUIRE: null })).await?;
        for index in indices {
            self.replicas(index, 0).await?;
            self.until_green(index).await?;
        }
        // Copies are removed a moment after they are taken away; one that is still there would be recovered at once.
        self.env.sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        ask(&self.target, NEAR, method, path, body).await
    }

    async fn set(&self, settings: Value) -> anyhow::Result<()> {
        let body = json!({ "persistent": settings });
        self.ask("PUT", "/_cluster/settings", body).await.map(drop)
    }

    async fn update(&self, index: &str, settings: Value) -> anyhow::Result<()> {
        self.ask("PUT", &format!("/{index}/_settings"), settings).await.map(drop)
    }

    async fn replicas(&self, index: &str, replicas: u32) -> anyhow::Result<()> {
        self.update(index, json!({ "number_of_replicas": replicas })).await
    }

    async fn until_green(&self, index: &str) -> anyhow::Result<()> {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout={PATIENCE_S}s");
        let health = self.ask("GET", &path, Value::Null).await?;
        match health["timed_out"] == true {
            true => Err(anyhow!("{index} was not recovered within {PATIENCE_S} s")),
            false => Ok(()),
        }
    }

    fn round_trip(&self, rtt: Duration) -> anyhow::Result<()> {
        let link = self.target.link().context("there is a link between the sites")?;
        link.configure(LinkConfig { rtt, ..LinkConfig::default() })?;
        Ok(())
    }

    /// An index on the near node, of documents that do not compress.
    async fn index(&self, name: &str, shards: u32) -> anyhow::Result<()> {
        let settings = json!({
            "number_of_shards": shards,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            INCLUDE: format!("{NEAR}-0"),
        });
        let body = json!({ "settings": settings, "mappings": incompressible() });
        self.ask("PUT", &format!("/{name}"), body).await?;
        for _ in 0..DOCUMENTS / BULK_DOCUMENTS {
            let path = format!("/{name}/_bulk");
            let answer = self.target.request(NEAR, "POST", &path, bulk(&self.env).into()).await?;
            if answer.json()?["errors"] != false {
                return Err(anyhow!("documents of {name} were refused"));
            }
        }
        self.ask("POST", &format!("/{name}/_flush"), Value::Null).await?;
        self.update(name, json!({ INCLUDE: null })).await
    }
}

/// Asks a node of a cluster.
pub(crate) async fn ask(
    clusters: &dyn Clusters,
    cluster: &str,
    method: &str,
    path: &str,
    body: Value,
) -> anyhow::Result<Value> {
    Ok(clusters.request(cluster, method, path, rest::json_body(&body)).await?.json()?)
}

/// Mappings of [`bulk`]: documents of one field, which is kept as it is.
pub(crate) fn incompressible() -> Value {
    let field = json!({"type": "keyword", "index": false, "doc_values": false});
    json!({"properties": {"t": field}})
}

/// A bulk request of [`BULK_BYTES`] in documents that do not compress.
pub(crate) fn bulk(env: &Env) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut lines = String::with_capacity(BULK_DOCUMENTS as usize * (DOCUMENT_BYTES + 40));
    for _ in 0..BULK_DOCUMENTS {
        lines.push_str("{\"index\":{}}\n{\"t\":\"");
        let ends = lines.len() + DOCUMENT_BYTES;
        while lines.len() < ends {
            // Ten letters of six bits each.
            let bits = env.random_u64();
            lines.extend((0..10).map(|n| char::from(LETTERS[(bits >> (6 * n)) as usize & 63])));
        }
        lines.push_str("\"}\n");
    }
    lines
}
