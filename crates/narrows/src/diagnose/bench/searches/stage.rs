//! A cluster under given conditions, and who searches it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use clusters::{Clusters, ProcessFault, SyntheticIndex, VirtualControls};
use insight::diagnosis::Class;
use serde_json::json;
use world::model::{CoreCosts, Host};
use world::{Env, Task};

use super::super::one_cause::World;
use super::super::simulated::{judged, on_clusters};
use super::super::trial::Judgement;
use super::case::Conditions;
use crate::diagnose::bed::ask;

const CLUSTER: &str = "searched";
const NODES: usize = 4;
/// A copy on each node but one.
const REPLICAS: usize = NODES - 2;
const INDEX: &str = "data";
const DOCUMENTS: u64 = 100_000;
const DOCUMENT_BYTES: u64 = 1000;
/// A process searches in earnest, and fewer do: what is measured is how late copies answer, and not this machine.
const DOCUMENTS_OF_PROCESSES: usize = 2000;
/// Between two searches of a client there. So one machine has room for all nodes.
const PAUSE_OF_PROCESSES: Duration = Duration::from_millis(20);
/// A process that is slower stands still for a part of each such time.
const PERIOD: Duration = Duration::from_millis(100);
/// A search that takes longer is given up.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A cluster that is searched.
pub(super) struct Stage<'a> {
    pub(super) env: Env,
    clusters: &'a dyn Clusters,
    answered: Rc<Cell<u64>>,
    failed: Rc<RefCell<Option<String>>>,
    /// The searching clients, which end with the stage.
    _clients: Vec<Task<()>>,
    /// Keeps a node slow that is a process, until the stage ends.
    _slow: Option<ProcessFault>,
}

/// Makes conditions, and acts.
pub(super) async fn on_stage<T: 'static>(
    world: World<'_>,
    seed: u64,
    conditions: &Conditions,
    act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T> + 'static,
) -> anyhow::Result<T> {
    let conditions = conditions.clone();
    let whole = async move |env: &Env, clusters: &dyn Clusters| {
        act(&Stage::set(env, clusters, &conditions).await?).await
    };
    on_clusters(world, seed, &[(CLUSTER, NODES)], None, whole).await
}

impl<'a> Stage<'a> {
    /// Every copy is there, and searches have begun.
    async fn set(
        env: &Env,
        clusters: &'a dyn Clusters,
        conditions: &Conditions,
    ) -> anyhow::Result<Stage<'a>> {
        let adaptive = "cluster.routing.use_adaptive_replica_selection";
        let body = json!({ "persistent": { adaptive: conditions.is_adaptive } });
        ask(clusters, CLUSTER, "PUT", "/_cluster/settings", body).await?;
        let settings =
            json!({ "number_of_shards": conditions.shards, "number_of_replicas": REPLICAS });
        let path = format!("/{INDEX}?wait_for_active_shards=all");
        ask(clusters, CLUSTER, "PUT", &path, json!({ "settings": settings })).await?;
        let late = clusters.nodes(CLUSTER).pop().context("the cluster has nodes")?.name;
        let (slow, pause) = match clusters.virtual_controls() {
            Some(controls) => {
                simulate(env, controls, conditions, &late).await?;
                (None, Duration::ZERO)
            }
            None => {
                fill(clusters).await?;
                (slowed(clusters, conditions.slower, &late)?, PAUSE_OF_PROCESSES)
            }
        };
        let (answered, failed) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(None)));
        let client = |_| {
            let asker = clusters.asker(CLUSTER, ANSWERED_WITHIN)?;
            let (answered, failed, clock) = (answered.clone(), failed.clone(), env.clone());
            // Documents are only counted: what a search costs is the core's time for each.
            let body = json!({ "size": 0, "query": { "match_all": {} } }).to_string();
            Ok(env.spawn("searches", async move {
                let path = format!("/{INDEX}/_search");
                loop {
                    match asker.ask("POST", &path, body.clone().into()).await {
                        Ok(_) => answered.set(answered.get() + 1),
                        Err(why) => return drop(failed.replace(Some(why.to_string()))),
                    }
                    if !pause.is_zero() {
                        clock.sleep(pause).await;
                    }
                }
            }))
        };
        let clients = (0..conditions.clients).map(client).collect::<anyhow::Result<_>>()?;
        let env = env.clone();
        Ok(Stage { env, clusters, answered, failed, _clients: clients, _slow: slow })
    }

    /// Searches that were answered; fails where one was not.
    pub(super) fn answered(&self) -> anyhow::Result<u64> {
        match &*self.failed.borrow() {
            Some(why) => bail!("a search failed: {why}"),
            None => Ok(self.answered.get()),
        }
    }

    /// What looking at the cluster says, where these classes are right.
    pub(super) async fn judged(&self, right: &[Class]) -> anyhow::Result<Judgement> {
        judged(&self.env, self.clusters, CLUSTER, right).await
    }
}

/// Documents that are only counted, and hosts of which one is slow.
async fn simulate(
    env: &Env,
    controls: &dyn VirtualControls,
    conditions: &Conditions,
    late: &str,
) -> anyhow::Result<()> {
    let index = SyntheticIndex {
        name: INDEX.to_owned(),
        documents: DOCUMENTS,
        bytes: DOCUMENTS * DOCUMENT_BYTES,
        segments: conditions.shards,
        segment_ratio: 1.0,
    };
    controls.load_index(CLUSTER, &index).await?;
    let costs = CoreCosts { search: conditions.search, ..CoreCosts::default() };
    let host = Host { cores: conditions.cores, costs, ..Host::default() };
    controls.set_hosts(CLUSTER, &host);
    let costs = host.costs.slowed(conditions.slower);
    env.host(late).set_host_model(Host { costs, ..host });
    Ok(())
}

/// Documents of nodes that are processes.
async fn fill(clusters: &dyn Clusters) -> anyhow::Result<()> {
    let document = "{\"index\":{}}\n{\"field\":\"some words that are searched\"}\n";
    let (path, body) =
        (format!("/{INDEX}/_bulk?refresh=true"), document.repeat(DOCUMENTS_OF_PROCESSES));
    let answer = clusters.request(CLUSTER, "POST", &path, body.into()).await?;
    ensure!(answer.json()?["errors"] == false, "documents were refused");
    Ok(())
}

/// A node that is a process, and so many times as slow: it stands still for a part of the time.
fn slowed(
    clusters: &dyn Clusters,
    slower: f64,
    node: &str,
) -> anyhow::Result<Option<ProcessFault>> {
    if slower <= 1.0 {
        return Ok(None);
    }
    let pid = clusters.process_id(node).with_context(|| format!("{node} is no process of ours"))?;
    let runs = PERIOD.div_f64(slower);
    let pauses = ProcessFault::pauses(pid, runs, PERIOD.saturating_sub(runs));
    Ok(Some(pauses.map_err(|why| anyhow!("pause {node}: {why}"))?))
}
