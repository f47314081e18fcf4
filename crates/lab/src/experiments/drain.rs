//! `drain`: everything leaves some nodes, one node after another: each is named by
//! `cluster.routing.allocation.exclude._name`, and its copies are moved to the others while they stay in use.
//!
//! Of a cluster that was there before the run only the plan's indices leave, by the same setting of each index: all
//! others stay where their owner has them.

use std::time::Duration;

use async_trait::async_trait;
use record::Row;
use record::units::{counted, show_seconds};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{DeclaredStep, LEADER, Needs, Variant};
use crate::runner::{
    Experiment, Recoveries, Runner, Turn, Wanted, WatchedRecovery, fill_and_digest,
};

/// The option with the number of nodes.
const NODES: &str = "nodes";
/// The setting that names them, in the field as here.
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
const EXCLUDE_OF_INDEX: &str = "index.routing.allocation.exclude._name";
/// How long after its last copy has recovered elsewhere a node may still be listed with it.
const EMPTY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct DrainNodes;

impl DrainNodes {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        spoils_indices: |_| true,
        changes_settings: true,
        ..DeclaredStep::new("drain", Needs::OneCluster)
    };
}

#[async_trait(?Send)]
impl Experiment for DrainNodes {
    fn check_clusters(&self, run: &Runner<'_>) -> Result<()> {
        let (plan, drained) = (run.plan, nodes_to_drain(run));
        let there = u32::try_from(run.clusters.nodes(LEADER).len()).unwrap_or(u32::MAX);
        let replicas = plan
            .indices
            .iter()
            .flat_map(|index| plan.variants.iter().map(move |variant| index.replicas_of(variant)));
        let copies = 1 + replicas.max().unwrap_or(0);
        let needed = drained + copies;
        if there < needed {
            return Err(Error::usage(format!(
                "the cluster has {there} data nodes for new indices, and to drain {drained} of them takes {needed}, as \
                 the copies of a shard ({copies}) are each on a node of its own; drain fewer nodes, or have fewer \
                 replicas in the plan"
            )));
        }
        Ok(())
    }

    /// Every node may hold copies again: the indices of the next variant are laid out as those of the first one. Where
    /// indices were excluded they are gone.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        if !run.is_elsewhere() {
            exclude(run, Value::Null).await?;
        }
        fill_and_digest(run, variant).await
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        run.begin_recovery(turn).await?;
        let nodes = nodes_to_drain(run);
        let (mut total_s, mut all) = (0.0, Recoveries::default());
        let mut excluded: Vec<String> = Vec::new();
        for number in 1..=nodes {
            let node = next_node(run, number, &excluded).await?;
            let copies = copies_on(run, &node).await?;
            if copies == 0 {
                return Err(Error::usage(format!(
                    "{node} holds no copy of the plan's indices, so that nothing can leave it"
                )));
            }
            let since_epoch_ms = run.recoveries_count_since().await?;
            let began_epoch_ms = run.env.epoch_ms();
            excluded.push(node.clone());
            exclude(run, json!(excluded.join(","))).await?;
            let wanted = Wanted::Peers { since_epoch_ms, copies };
            let watched = WatchedRecovery::of(turn, LEADER, wanted);
            let watched = WatchedRecovery { already: all, ..watched };
            all = run.watch_recovery(watched).await?;
            wait_until_empty(run, &node).await?;
            let took_s = all.seconds_since(began_epoch_ms);
            total_s += took_s;
            let (copies, took) = (counted(copies, "copy", "copies"), show_seconds(took_s));
            run.note(Some(turn.variant), &format!("{copies} left {node}: {took}"))?;
        }
        run.end_recovery(turn)?;
        let row = run.row(turn, total_s, &all);
        let there = u32::try_from(run.clusters.nodes(LEADER).len()).unwrap_or(u32::MAX);
        let receiving = there.saturating_sub(nodes).max(1);
        let node_bytes_per_s = Some(row.bytes_per_s / f64::from(receiving));
        Ok(Row { node_bytes_per_s, ..row })
    }
}

fn nodes_to_drain(run: &Runner<'_>) -> u32 {
    let asked = run.plan.measured_step().and_then(|step| step.options.get(NODES).copied());
    asked.unwrap_or(1)
}

/// The node that is drained as the `number`th, from 1. Of nodes that were started for the run the last goes first; of a
/// cluster that was there, the last by name that holds any copy of the plan's indices.
async fn next_node(run: &Runner<'_>, number: u32, excluded: &[String]) -> Result<String> {
    if !run.is_elsewhere() {
        return Ok(format!("{LEADER}-{}", run.plan.leader.nodes - number));
    }
    let holding = nodes_of_copies(run).await?;
    let last = holding.into_iter().filter(|node| !excluded.contains(node)).max();
    last.ok_or_else(|| Error::usage("no node holds a copy of the plan's indices"))
}

async fn exclude(run: &Runner<'_>, nodes: Value) -> Result<()> {
    if !run.is_elsewhere() {
        return run.persist(LEADER, &json!({ EXCLUDE: nodes })).await;
    }
    for index in &run.plan.indices {
        let body = json!({ EXCLUDE_OF_INDEX: nodes });
        run.ask(LEADER, "PUT", &format!("/{}/_settings", index.name), Some(&body)).await?;
    }
    Ok(())
}

/// Copies of the plan's indices on a node, with those that are on their way from it.
async fn copies_on(run: &Runner<'_>, node: &str) -> Result<u32> {
    let count = nodes_of_copies(run).await?.iter().filter(|holding| *holding == node).count();
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The node of each copy of the plan's indices; of one that is on its way, the node that it leaves.
async fn nodes_of_copies(run: &Runner<'_>) -> Result<Vec<String>> {
    let names: Vec<&str> = run.plan.indices.iter().map(|index| index.name.as_str()).collect();
    let path = format!("/_cat/shards/{}?format=json&h=node", names.join(","));
    let rows = run.ask(LEADER, "GET", &path, None).await?;
    // A copy that is moved is listed with both nodes: from where, then to where.
    let node = |row: &Value| Some(row["node"].as_str()?.split(" -> ").next()?.to_owned());
    Ok(rows.as_array().into_iter().flatten().filter_map(node).collect())
}

async fn wait_until_empty(run: &Runner<'_>, node: &str) -> Result<()> {
    let give_up = run.env.now() + EMPTY_WITHIN;
    loop {
        let left = copies_on(run, node).await?;
        if left == 0 {
            return Ok(());
        }
        if run.env.now() >= give_up {
            let left = counted(left, "copy is", "copies are");
            return Err(Error::usage(format!(
                "{left} still on {node}, although as many as it held have recovered elsewhere: \
                 GET /_cluster/allocation/explain says why"
            )));
        }
        run.env.sleep(LOOK_EVERY).await;
    }
}
