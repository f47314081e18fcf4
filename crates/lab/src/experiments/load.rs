//! `load`: operations on the leader, one after another, with faults of nodes meanwhile.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clusters::FaultKind;
use clusters::wire::WireHost;
use record::{LoadFigures, Row};
use serde_json::Value;
use world::Time;

use crate::error::Result;
use crate::load::{self, Ending, Live, Load, Operation};
use crate::plan::{DeclaredStep, Fault, LEADER, LoadUse, Needs, Resolved, Variant};
use crate::runner::{Experiment, Runner, Telemetry, Turn};

/// Progress is shown at least this often.
const SHOW_EVERY: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct SendLoad;

impl SendLoad {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        copies: false,
        sends_load: true,
        check: has_load,
        ..DeclaredStep::new("load", Needs::OneCluster)
    };
}

fn has_load(plan: &Resolved) -> Result<(), String> {
    match plan.variants.iter().any(|variant| variant.load.is_some()) {
        true => Ok(()),
        false => Err("the step \"load\" needs a [load] that says which".to_owned()),
    }
}

/// The beginning or the end of a fault while a load goes on.
struct DueFault {
    at: Time,
    fault: Fault,
    /// Whether the fault begins; it ends otherwise.
    begins: bool,
}

#[async_trait(?Send)]
impl Experiment for SendLoad {
    /// Settings come before the indices: they may say where copies are placed.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        if variant.is_some() || run.plan.indexes() {
            let variant = variant.unwrap_or(&run.plan.variants[0]);
            run.set_up(variant).await?;
            run.index(Some(variant)).await?;
        }
        Ok(())
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        let Turn { variant, lap, .. } = *turn;
        let mut plan = variant.load.clone().expect("a plan with the step has a load");
        if run.clusters.is_virtual() {
            plan.operations = plan.full.operations.clone();
        }
        if run.loads_sizes() {
            (plan.load.warm_up, plan.load.measured) = (plan.full.warm_up, plan.full.measured);
        } else {
            renew_indices(run, variant).await?;
        }
        run.set_up(variant).await?;
        let mut loads = Vec::new();
        for operation in &plan.operations {
            loads.push(send(run, turn, &plan, operation).await?);
        }
        let seconds: f64 = loads.iter().map(|figures| figures.seconds).sum();
        let bytes = loads.iter().map(|figures| figures.answer_bytes).sum();
        Ok(Row { loads, ..Row::measured(&variant.name, lap, seconds, bytes) })
    }
}

/// Sends one operation as the variant says.
async fn send(
    run: &mut Runner<'_>,
    turn: &Turn<'_>,
    plan: &LoadUse,
    operation: &Operation,
) -> Result<LoadFigures> {
    let Turn { variant, lap, .. } = *turn;
    let (nodes, hosts) = hosts_of(run, plan)?;
    let load = load_of(run, plan, &hosts, lap);
    run.journal.phase("load", true, Some(&variant.name), lap)?;
    let requests = |extent| match extent {
        load::Extent::Requests(requests) => Some(requests),
        load::Extent::NONE => Some(0),
        load::Extent::Time(_) => None,
    };
    // What is done is counted from the beginning of the warm-up.
    let both = requests(load.warm_up).zip(requests(load.measured));
    let total = both.map(|(warm_up, measured)| warm_up + measured);
    run.watch.begin(&operation.name, Some(&variant.name), total, "requests");
    let before = searches_by_node(run).await;
    let live = Arc::new(Live::default());
    // The run's indices are deleted on a cluster that was there, however it ends.
    let _ending = run.is_elsewhere().then(|| Ending(std::slice::from_ref(&live)));
    let env = run.env.clone();
    let mut faults = due_faults(run.env.now(), &variant.faults);
    let ended = if run.clusters.is_virtual() {
        let sending = load::in_virtual_time(&env, &load, operation, &live);
        watch_load(run, turn, &live, &mut faults, sending).await
    } else {
        let running = load::start(&load, operation, &hosts, plan.threads, &live)?;
        watch_load(run, turn, &live, &mut faults, running.figures()).await
    };
    // The phase ends with the load: charts count back from there. Whatever its end, what was done to nodes is undone.
    let noted = run.journal.phase("load", false, Some(&variant.name), lap);
    let undone = end_faults(run, variant, &faults).await;
    let mut figures = ended?;
    undone?;
    noted?;
    run.watch.end();
    figures.searches = completed_between(&before, searches_by_node(run).await);
    // Nodes are known by their names, not by the ports that they have today.
    let name = |host: &String| nodes.get(host).unwrap_or(host).clone();
    figures.hosts = figures.hosts.iter().map(|(host, count)| (name(host), *count)).collect();
    // A plan has many loads, and is compared by their figures: single requests are for what comes from tracks.
    figures.samples.clear();
    Ok(figures)
}

/// Makes the indices anew where they do not have as many replicas as the variant: copies that are added and taken
/// away leave some nodes with more of them than others.
async fn renew_indices(run: &Runner<'_>, variant: &Variant) -> Result<()> {
    let mut fit = true;
    for index in &run.plan.indices {
        let path = format!("/{}/_settings", index.name);
        let found = run.ask(LEADER, "GET", &path, None).await?;
        let found = &found[&index.name]["settings"]["index"]["number_of_replicas"];
        fit &= *found == index.replicas_of(variant).to_string().as_str();
    }
    if fit {
        return Ok(());
    }
    run.delete_indices(LEADER).await?;
    run.set_up(variant).await?;
    run.index(Some(variant)).await
}

/// Where requests go, and the nodes there by their addresses: those that the plan names, or all. Of a cluster that is
/// already there the hosts that were given, whatever it calls its nodes.
fn hosts_of(run: &Runner<'_>, plan: &LoadUse) -> Result<(BTreeMap<String, String>, Vec<WireHost>)> {
    let mut nodes = run.clusters.nodes(LEADER);
    nodes.retain(|node| plan.nodes.is_empty() || plan.nodes.contains(&node.name));
    let nodes: BTreeMap<_, _> = nodes.into_iter().map(|node| (node.http, node.name)).collect();
    let mut hosts = run.clusters.wire_hosts(LEADER)?;
    if hosts.iter().any(|host| nodes.contains_key(host.address())) {
        hosts.retain(|host| nodes.contains_key(host.address()));
    }
    Ok((nodes, hosts))
}

fn load_of(run: &Runner<'_>, plan: &LoadUse, hosts: &[WireHost], lap: u32) -> Load {
    Load {
        hosts: hosts.iter().map(|host| host.address().to_owned()).collect(),
        seed: run.plan.seed,
        // Variants of a lap are compared: they have the same. Laps are independent of each other.
        gaps: u64::from(lap - 1),
        ..plan.load.clone()
    }
}

/// Waits for a load; samples nodes, shows how far it is, and does what is due.
async fn watch_load(
    run: &mut Runner<'_>,
    turn: &Turn<'_>,
    live: &Live,
    faults: &mut Vec<DueFault>,
    sending: impl Future<Output = Result<LoadFigures>>,
) -> Result<LoadFigures> {
    let Turn { variant, lap, .. } = *turn;
    let env = run.env.clone();
    let every = run.plan.sample.max(SHOW_EVERY);
    let telemetry = Telemetry::default();
    let (mut next, mut done) = (env.now(), 0);
    let mut sending = pin!(sending);
    loop {
        let due_at = faults.get(done).map(|due| due.at);
        let wakes_at = due_at.map_or(next, |at| at.min(next));
        tokio::select! {
            biased;
            figures = &mut sending => {
                faults.truncate(done);
                return figures;
            }
            () = env.sleep_until(wakes_at) => {}
        }
        if due_at.is_some_and(|at| at <= env.now()) {
            done += 1;
            let DueFault { fault, begins, .. } = &faults[done - 1];
            if let Err(error) = run.set_fault(variant, fault, *begins).await {
                faults.truncate(done);
                return Err(error);
            }
        } else if next <= env.now() {
            next = env.now() + every;
            // A node that stands still does not answer, and would be waited for past the moment at which it goes on.
            let limit = due_at.map_or(every, |at| (at - env.now()).min(every));
            let sampling = run.sample_nodes(&variant.name, lap, &telemetry);
            if let Ok(sampled) = env.timeout(limit, sampling).await {
                sampled?;
            }
            run.watch.progress(live.sent(), None);
        }
    }
}

/// Beginnings and ends of faults, in the order of time.
fn due_faults(now: Time, faults: &[Fault]) -> Vec<DueFault> {
    let mut due = Vec::new();
    for fault in faults {
        let at = now + fault.at;
        due.push(DueFault { at, fault: fault.clone(), begins: true });
        if let Some(lasts) = fault.lasts {
            due.push(DueFault { at: at + lasts, fault: fault.clone(), begins: false });
        }
    }
    due.sort_by_key(|due| due.at);
    due
}

/// Ends every fault that began and has not ended; where one cannot be ended, the others are all the same.
async fn end_faults(run: &mut Runner<'_>, variant: &Variant, faults: &[DueFault]) -> Result<()> {
    let mut result = Ok(());
    let mut lost_node = false;
    for (n, due) in faults.iter().enumerate() {
        lost_node |= matches!(due.fault.kind, FaultKind::Cut | FaultKind::Stop | FaultKind::Kill);
        let ended = faults[n..].iter().any(|later| !later.begins && later.fault == due.fault);
        if due.begins && !ended {
            let undone = run.set_fault(variant, &due.fault, false).await;
            result = result.and(undone);
        }
    }
    result?;
    if lost_node {
        let indices = run.plan.indices.clone();
        for index in &indices {
            run.wait_for_health(&index.name).await?;
        }
    }
    Ok(())
}

/// What each node has completed between two looks. Of a node that did not answer in the first, or has restarted since
/// and counts anew, that is not known.
fn completed_between(
    before: &BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let more = |(node, completed): (String, u64)| {
        let more = completed.checked_sub(*before.get(&node)?)?;
        Some((node, more))
    };
    after.into_iter().filter_map(more).collect()
}

/// Queries of shards that the search pool of each node has completed; those that do not answer are left out.
async fn searches_by_node(run: &Runner<'_>) -> BTreeMap<String, u64> {
    let path = "/_cat/thread_pool/search?format=json&h=node_name,completed";
    let Ok(answer) = run.ask(LEADER, "GET", path, None).await else { return BTreeMap::new() };
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    let rows = answer.as_array().into_iter().flatten();
    rows.filter_map(|row| Some((row["node_name"].as_str()?.to_owned(), number(&row["completed"])?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_completed_is_known_of_two_looks_alone() {
        let of = |all: &[(&str, u64)]| -> BTreeMap<String, u64> {
            all.iter().map(|(node, completed)| ((*node).to_owned(), *completed)).collect()
        };
        let before = of(&[("a", 1000), ("restarted", 1000), ("gone", 7)]);
        let after = of(&[("a", 1500), ("restarted", 300), ("did not answer", 1_000_000)]);
        assert_eq!(completed_between(&before, after.clone()), of(&[("a", 500)]));
        assert_eq!(completed_between(&of(&[]), after), of(&[]), "the first look failed");
    }
}
