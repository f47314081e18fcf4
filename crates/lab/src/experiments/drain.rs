//! `drain`: everything leaves some nodes, one node after another: each is named by
//! `cluster.routing.allocation.exclude._name`, and its copies are moved to the others while they stay in use.

use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use record::Row;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{Cluster, DeclaredStep, LEADER, Needs, StepOption, Variant};
use crate::runner::{
    Experiment, Recoveries, Runner, Turn, Wanted, WatchedRecovery, fill_and_digest,
};

/// The option with the number of nodes.
const NODES: &str = "nodes";
/// The setting that names them, in the field as here.
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
/// How long after its last copy has recovered elsewhere a node may still be listed with it.
const EMPTY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct DrainNodes;

impl DrainNodes {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        options: &[StepOption { name: NODES, bounds: drained }],
        spoils_indices: |_| true,
        changes_settings: true,
        ..DeclaredStep::new("drain", Needs::OneCluster)
    };
}

/// How many nodes may be drained: the first node manages and stays.
fn drained(leader: Cluster) -> (String, RangeInclusive<i64>) {
    let what = format!("nodes to drain of {}, of which the first stays", leader.nodes);
    (what, 1..=i64::from(leader.nodes) - 1)
}

#[async_trait(?Send)]
impl Experiment for DrainNodes {
    fn step(&self) -> &'static DeclaredStep {
        &Self::STEP
    }

    /// Every node may hold copies again: the indices of the next variant are laid out as those of the first one.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        exclude(run, Value::Null).await?;
        fill_and_digest(run, variant).await
    }

    /// The last node goes first.
    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        let telemetry = run.begin_recovery(turn).await?;
        let asked = run.plan.measured_step().and_then(|step| step.options.get(NODES).copied());
        let nodes = asked.unwrap_or(1);
        let (mut total_s, mut all) = (0.0, Recoveries::default());
        let mut excluded: Vec<String> = Vec::new();
        for number in 1..=nodes {
            let node = format!("{LEADER}-{}", run.plan.leader.nodes - number);
            let copies = copies_on(run, &node).await?;
            if copies == 0 {
                let why = format!(
                    "{node} holds no copy of the plan's indices, so that nothing can leave it"
                );
                return Err(Error::Usage { why });
            }
            let since_epoch_ms = run.recoveries_count_since().await?;
            let began_epoch_ms = run.env.epoch_ms();
            excluded.push(node.clone());
            exclude(run, json!(excluded.join(","))).await?;
            let watched = WatchedRecovery {
                turn,
                cluster: LEADER,
                wanted: Wanted::Peers { since_epoch_ms, copies },
                telemetry: &telemetry,
                already: all,
                writers: None,
            };
            all = run.watch_recovery(watched).await?;
            wait_until_empty(run, &node).await?;
            let took_s = all.seconds_since(began_epoch_ms);
            total_s += took_s;
            let took = record::units::show_seconds(took_s);
            run.note(Some(turn.variant), &format!("{copies} copies left {node}: {took}"))?;
        }
        run.end_recovery(turn)?;
        let row = run.row(turn, total_s, &all);
        let receiving = run.plan.leader.nodes.saturating_sub(nodes).max(1);
        let node_bytes_per_s = Some(row.bytes_per_s / f64::from(receiving));
        Ok(Row { node_bytes_per_s, ..row })
    }
}

async fn exclude(run: &Runner<'_>, nodes: Value) -> Result<()> {
    let body = json!({ "persistent": { EXCLUDE: nodes } });
    run.ask(LEADER, "PUT", "/_cluster/settings", Some(&body)).await?;
    Ok(())
}

/// Copies of the plan's indices on a node, with those that are on their way from it.
async fn copies_on(run: &Runner<'_>, node: &str) -> Result<u32> {
    let names: Vec<&str> = run.plan.indices.iter().map(|index| index.name.as_str()).collect();
    let path = format!("/_cat/shards/{}?format=json&h=node", names.join(","));
    let rows = run.ask(LEADER, "GET", &path, None).await?;
    // A copy that is moved is listed with both nodes: from where, then to where.
    let is_there =
        |row: &&Value| row["node"].as_str().and_then(|n| n.split(' ').next()) == Some(node);
    let count = rows.as_array().into_iter().flatten().filter(is_there).count();
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

async fn wait_until_empty(run: &Runner<'_>, node: &str) -> Result<()> {
    let give_up = run.env.now() + EMPTY_WITHIN;
    loop {
        let left = copies_on(run, node).await?;
        if left == 0 {
            return Ok(());
        }
        if run.env.now() >= give_up {
            let why = format!(
                "{left} copies are still on {node}, although as many as it held have recovered elsewhere: \
                 GET /_cluster/allocation/explain says what keeps them"
            );
            return Err(Error::Usage { why });
        }
        run.env.sleep(LOOK_EVERY).await;
    }
}
