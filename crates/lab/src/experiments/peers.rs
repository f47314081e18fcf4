//! `recover_peers`: copies of a cluster recover from copies of the same cluster. Either every index gets one replica
//! more, or nodes restart one after another, each with an empty disk.

use async_trait::async_trait;
use clusters::FaultKind;
use record::Row;
use record::units::{counted, show_seconds};
use serde_json::json;

use crate::error::{Error, Result};
use crate::plan::{DeclaredStep, LEADER, Needs};
use crate::runner::{Experiment, Recoveries, Runner, Turn, Wanted, WatchedRecovery};

/// The option with the number of nodes that restart; without it replicas are added.
const RESTART: &str = "restart";
/// The setting that stops copies from being placed while a node is away.
const ENABLE: &str = "cluster.routing.allocation.enable";

#[derive(Default)]
pub(crate) struct RecoverPeers;

impl RecoverPeers {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        spoils_indices: |step| step.options.contains_key(RESTART),
        changes_settings: true,
        ..DeclaredStep::new("recover_peers", Needs::OneCluster)
    };
}

#[async_trait(?Send)]
impl Experiment for RecoverPeers {
    fn check_clusters(&self, run: &Runner<'_>) -> Result<()> {
        if nodes_to_restart(run).is_some() && run.is_elsewhere() {
            let why = "this plan restarts nodes, and those of a cluster that was not started for the run are left alone; \
                       run it with --on embedded, --on virtual or --on opensearch";
            return Err(Error::Usage { why: why.to_owned() });
        }
        Ok(())
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        run.begin_recovery(turn).await?;
        let (seconds, end, receiving) = match nodes_to_restart(run) {
            None => {
                let (seconds, end) = add_replicas(run, turn).await?;
                (seconds, end, run.plan.leader.nodes.min(run.plan.shards()))
            }
            Some(nodes) => {
                let (seconds, end) = restart_in_turn(run, turn, nodes).await?;
                (seconds, end, 1)
            }
        };
        run.end_recovery(turn)?;
        let row = run.row(turn, seconds, &end);
        let node_bytes_per_s = Some(row.bytes_per_s / f64::from(receiving));
        Ok(Row { node_bytes_per_s, ..row })
    }

    async fn clear_away(&mut self, run: &mut Runner<'_>) -> Result<()> {
        match nodes_to_restart(run) {
            None => run.set_replicas(0).await,
            Some(_) => Ok(()),
        }
    }
}

fn nodes_to_restart(run: &Runner<'_>) -> Option<u32> {
    run.plan.measured_step()?.options.get(RESTART).copied()
}

async fn add_replicas(run: &Runner<'_>, turn: &Turn<'_>) -> Result<(f64, Recoveries)> {
    let since_epoch_ms = run.recoveries_count_since().await?;
    let began_epoch_ms = run.env.epoch_ms();
    run.set_replicas(1).await?;
    let wanted = Wanted::Peers { since_epoch_ms, copies: run.plan.shards() };
    let end = run.watch_recovery(WatchedRecovery::of(turn, LEADER, wanted)).await?;
    Ok((end.seconds_since(began_epoch_ms), end))
}

/// Restarts nodes one after another, each with an empty disk, and waits each time until as many copies as it held have
/// recovered: on that node, or where the allocator evens out what was uneven before. The last node goes first.
async fn restart_in_turn(
    run: &mut Runner<'_>,
    turn: &Turn<'_>,
    nodes: u32,
) -> Result<(f64, Recoveries)> {
    let (mut total_s, mut all) = (0.0, Recoveries::default());
    for number in 1..=nodes {
        let node = format!("{LEADER}-{}", run.plan.leader.nodes - number);
        let copies = restart_empty(run, &node).await?;
        let began_epoch_ms = run.env.epoch_ms();
        run.persist(LEADER, &json!({ ENABLE: null })).await?;
        let wanted = Wanted::Peers { since_epoch_ms: began_epoch_ms, copies };
        let watched = WatchedRecovery::of(turn, LEADER, wanted);
        all = run.watch_recovery(WatchedRecovery { already: all, ..watched }).await?;
        let took_s = all.seconds_since(began_epoch_ms);
        total_s += took_s;
        let (copies, took) = (counted(copies, "copy", "copies"), show_seconds(took_s));
        let text = format!("{copies} recovered after {node} restarted empty: {took}");
        run.note(Some(turn.variant), &text)?;
    }
    Ok((total_s, all))
}

/// Ends a node, empties its disk and starts it again, while no copy is placed elsewhere. Answers how many copies lack a
/// place now.
async fn restart_empty(run: &mut Runner<'_>, node: &str) -> Result<u32> {
    run.persist(LEADER, &json!({ ENABLE: "none" })).await?;
    let faults = run.clusters.faults()?;
    faults.begin(node, FaultKind::Kill).await?;
    faults.wipe(node)?;
    faults.end(node, FaultKind::Kill).await?;
    let nodes = run.plan.leader.nodes;
    let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout=60s");
    let health = run.ask(LEADER, "GET", &path, None).await?;
    let copies = health["unassigned_shards"].as_u64().unwrap_or(0);
    Ok(u32::try_from(copies).unwrap_or(u32::MAX))
}
