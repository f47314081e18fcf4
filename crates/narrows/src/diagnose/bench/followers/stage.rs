//! Two clusters under given conditions, of which one follows the other.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clusters::{Asker, Clusters, DiskRates, Strain};
use insight::diagnosis::Class;
use serde_json::{Value, json};
use world::model::{Disk, Host};
use world::{Env, Task};

use super::super::one_cause::World;
use super::super::simulated::{judged, on_clusters};
use super::super::trial::Judgement;
use super::case::Conditions;
use crate::diagnose::bed::ask;

const LEADER: &str = "leader";
const FOLLOWER: &str = "follower";
const INDEX: &str = "data";
/// How long the follower may take to reach its leader.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Writes come so often.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// Documents of a bulk request at most.
const BULK_DOCUMENTS: u64 = 2000;

/// Two clusters, of which one follows the other.
pub(super) struct Stage<'a> {
    pub(super) env: Env,
    clusters: &'a dyn Clusters,
    /// What is written meanwhile ends with it.
    _writes: Task<()>,
}

/// Makes conditions, and acts.
pub(super) async fn on_stage<T: 'static>(
    world: World<'_>,
    seed: u64,
    conditions: &Conditions,
    act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T> + 'static,
) -> anyhow::Result<T> {
    let (conditions, link) = (conditions.clone(), Some(conditions.link.clone()));
    let whole = async move |env: &Env, clusters: &dyn Clusters| {
        act(&Stage::set(env, clusters, &conditions).await?).await
    };
    on_clusters(world, seed, &[(LEADER, 1), (FOLLOWER, 1)], link, whole).await
}

impl<'a> Stage<'a> {
    /// The follower follows under these conditions, and writes have begun.
    async fn set(
        env: &Env,
        clusters: &'a dyn Clusters,
        conditions: &Conditions,
    ) -> anyhow::Result<Stage<'a>> {
        connect(env, clusters, conditions.sockets).await?;
        let settings = json!({
            "number_of_shards": conditions.shards,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
        });
        let body = json!({ "settings": settings });
        ask(clusters, LEADER, "PUT", &format!("/{INDEX}"), body).await?;
        let body = json!({
            "remote_cluster": LEADER,
            "leader_index": INDEX,
            "settings": { "index.number_of_replicas": 0 },
            "max_outstanding_read_requests": conditions.reads,
            "max_read_request_operation_count": conditions.ops,
            "max_write_request_operation_count": conditions.ops,
        });
        let path = format!("/{INDEX}/_ccr/follow?wait_for_active_shards=1");
        ask(clusters, FOLLOWER, "PUT", &path, body).await?;
        match clusters.virtual_controls() {
            Some(controls) => controls.set_hosts(FOLLOWER, &conditions.far),
            None => strain(clusters, &conditions.far).await?,
        }
        if conditions.is_paused {
            let path = format!("/{INDEX}/_ccr/pause_follow");
            ask(clusters, FOLLOWER, "POST", &path, Value::Null).await?;
        }
        let asker = clusters.asker(LEADER, CONNECT_WITHIN)?;
        let (clock, burst_is_written) = (env.clone(), Rc::new(Cell::new(false)));
        let (written, told) = (Written::of(conditions), burst_is_written.clone());
        let writing = env.spawn("writes", async move {
            // A leader that is stopped takes no more.
            let _ = written.go_on(&clock, &asker, &told).await;
        });
        let gives_up = env.now() + CONNECT_WITHIN;
        while !burst_is_written.get() {
            ensure!(env.now() < gives_up, "the leader takes no documents");
            env.sleep(LOOK_EVERY).await;
        }
        Ok(Stage { env: env.clone(), clusters, _writes: writing })
    }

    /// What looking at the follower says, where these classes are right.
    pub(super) async fn judged(&self, right: &[Class]) -> anyhow::Result<Judgement> {
        judged(&self.env, self.clusters, FOLLOWER, right).await
    }

    /// Operations that the follower has; 0 where it tells of none.
    pub(super) async fn written(&self) -> anyhow::Result<u64> {
        let path = format!("/{INDEX}/_stats?level=shards&filter_path=indices.*.shards.*.seq_no");
        let stats = ask(self.clusters, FOLLOWER, "GET", &path, Value::Null).await?;
        let shards = stats["indices"][INDEX]["shards"].as_object().cloned().unwrap_or_default();
        let copies = shards.values().filter_map(Value::as_array).flatten();
        let checkpoints = copies.filter_map(|copy| copy["seq_no"]["global_checkpoint"].as_i64());
        Ok(checkpoints.map(|checkpoint| (checkpoint + 1) as u64).sum())
    }
}

/// Gives the follower's process the disk of a host, where that is not as it comes. Its cores are the machine's.
async fn strain(clusters: &dyn Clusters, host: &Host) -> anyhow::Result<()> {
    if host.disk == Disk::default() {
        return Ok(());
    }
    let node = clusters.nodes(FOLLOWER).into_iter().next().context("the follower runs")?;
    let Disk { read_bytes_per_s, write_bytes_per_s, .. } = host.disk;
    let rates = DiskRates { read_bytes_per_s, write_bytes_per_s };
    Ok(clusters.strain(&node.name, Strain::Disk(Some(rates))).await?)
}

/// What is written to the leader.
struct Written {
    /// A document's lines of a bulk request.
    document: String,
    burst: u64,
    per_s: f64,
}

impl Written {
    fn of(conditions: &Conditions) -> Written {
        let text = "x".repeat(conditions.document_bytes);
        let document = format!("{{\"index\":{{}}}}\n{{\"field\":\"{text}\"}}\n");
        Written { document, burst: conditions.burst, per_s: conditions.writes_per_s }
    }

    /// Writes the burst, tells, and goes on.
    async fn go_on(&self, env: &Env, asker: &Asker, told: &Cell<bool>) -> clusters::Result<()> {
        self.write(asker, self.burst).await?;
        told.set(true);
        let (began, mut count) = (env.now(), 0);
        loop {
            let due = (self.per_s * (env.now() - began).as_secs_f64()) as u64;
            self.write(asker, due - count).await?;
            count = due;
            env.sleep(WRITE_EVERY).await;
        }
    }

    async fn write(&self, asker: &Asker, mut documents: u64) -> clusters::Result<()> {
        let path = format!("/{INDEX}/_bulk");
        while documents > 0 {
            let count = documents.min(BULK_DOCUMENTS);
            let body = self.document.repeat(count as usize);
            asker.ask("POST", &path, body.into()).await?;
            documents -= count;
        }
        Ok(())
    }
}

/// Registers the leader, and waits until it is reached: with a proxy, by all sockets to it.
async fn connect(env: &Env, clusters: &dyn Clusters, sockets: Option<u32>) -> anyhow::Result<()> {
    let seeds = clusters.seeds_through_link(LEADER);
    let remote = match sockets {
        Some(sockets) => json!({
            "mode": "proxy",
            "proxy_address": seeds.first().context("the leader runs")?,
            "proxy_socket_connections": sockets,
        }),
        None => json!({ "seeds": seeds.join(",") }),
    };
    let body = json!({ "persistent": { "cluster": { "remote": { LEADER: remote } } } });
    ask(clusters, FOLLOWER, "PUT", "/_cluster/settings", body).await?;
    let (counted, least) = match sockets {
        Some(sockets) => ("num_proxy_sockets_connected", sockets),
        None => ("num_nodes_connected", 1),
    };
    let gives_up = env.now() + CONNECT_WITHIN;
    loop {
        let info = ask(clusters, FOLLOWER, "GET", "/_remote/info", Value::Null).await?;
        if info[LEADER][counted].as_u64().unwrap_or(0) >= u64::from(least) {
            return Ok(());
        }
        ensure!(env.now() < gives_up, "the follower does not reach its leader");
        env.sleep(LOOK_EVERY).await;
    }
}
