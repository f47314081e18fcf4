//! One variant: a load on the leader, one operation after another, and what befalls nodes meanwhile.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clusters::FaultKind;
use clusters::wire::WireHost;
use record::{LoadFigures, Row};
use serde_json::Value;
use world::Time;

use super::sampling::Before;
use super::{LEADER, Runner};
use crate::Error;
use crate::load::{self, Live, Load, Operation};
use crate::plan::{Fault, LoadUse, Variant};

/// Sample so often at least: what is shown of the progress.
const SHOW_EVERY: Duration = Duration::from_millis(500);

/// Something to do while a load goes on.
struct Act {
    at: Time,
    fault: Fault,
    /// Whether the fault begins; it ends otherwise.
    begins: bool,
}

/// A load that is being watched.
struct Watched<'a> {
    variant: &'a Variant,
    lap: u32,
    live: Arc<Live>,
}

impl Runner<'_> {
    pub(super) async fn load(&mut self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        let mut plan = variant.load.clone().expect("a plan with the step has a load");
        if self.loads() {
            let full = plan.full.clone();
            (plan.operations, plan.warm_up, plan.measured) =
                (full.operations, full.warm_up, full.measured);
        } else {
            self.renew_indices(variant).await?;
        }
        self.set_up(variant).await?;
        let mut loads = Vec::new();
        for operation in &plan.operations {
            loads.push(self.send(variant, lap, &plan, operation).await?);
        }
        let seconds: f64 = loads.iter().map(|figures| figures.seconds).sum();
        let bytes = loads.iter().map(|figures| figures.answer_bytes).sum();
        Ok(Row { loads, ..Row::measured(&variant.name, lap, seconds, bytes) })
    }

    /// Sends one operation as the variant says.
    async fn send(
        &mut self,
        variant: &Variant,
        lap: u32,
        plan: &LoadUse,
        operation: &Operation,
    ) -> Result<LoadFigures, Error> {
        let (nodes, load) = self.load_of(plan);
        self.journal.phase("load", true, Some(&variant.name), lap)?;
        let total = match load.measured {
            load::Extent::Requests(requests) => Some(requests),
            load::Extent::Time(_) => None,
        };
        self.watch.begin(&operation.name, Some(&variant.name), total, "requests");
        let before = self.searches_by_node().await;
        let watched = Watched { variant, lap, live: Arc::new(Live::default()) };
        let env = self.env.clone();
        let mut acts = self.acts(&variant.faults);
        let ended = if self.target.is_virtual() {
            let sending = load::in_virtual_time(&env, &load, operation, &watched.live);
            self.watch_load(&watched, &mut acts, sending).await
        } else {
            let hosts: Vec<WireHost> =
                load.hosts.iter().map(|host| WireHost::plain(host)).collect();
            let running = load::start(&load, operation, &hosts, plan.threads, &watched.live)?;
            self.watch_load(&watched, &mut acts, running.figures()).await
        };
        // Whatever its end, what was done to nodes is undone.
        let undone = self.undo(variant, &acts).await;
        let mut figures = ended?;
        undone?;
        self.watch.end();
        self.journal.phase("load", false, Some(&variant.name), lap)?;
        for (node, completed) in self.searches_by_node().await {
            let earlier = before.get(&node).copied().unwrap_or(0);
            figures.searches.insert(node, completed.saturating_sub(earlier));
        }
        // Nodes are known by their names, not by the ports that they have today.
        let name = |host: &String| nodes.get(host).unwrap_or(host).clone();
        figures.hosts = figures.hosts.iter().map(|(host, count)| (name(host), *count)).collect();
        Ok(figures)
    }

    /// Makes the indices anew where they do not have as many replicas as the variant: copies that are added and taken
    /// away leave some nodes with more of them than others.
    async fn renew_indices(&self, variant: &Variant) -> Result<(), Error> {
        let mut fit = true;
        for index in &self.plan.indices {
            let path = format!("/{}/_settings", index.name);
            let found = self.ask(LEADER, "GET", &path, None).await?;
            let found = &found[&index.name]["settings"]["index"]["number_of_replicas"];
            fit &= *found == index.replicas_of(variant).to_string().as_str();
        }
        if fit {
            return Ok(());
        }
        self.forget_indices(LEADER).await?;
        self.set_up(variant).await?;
        self.index(Some(variant)).await
    }

    /// The load, and the names of the nodes that it goes to, by their addresses.
    fn load_of(&self, plan: &LoadUse) -> (BTreeMap<String, String>, Load) {
        let nodes = self.target.nodes(LEADER);
        let asked = |name: &String| plan.nodes.is_empty() || plan.nodes.contains(name);
        let nodes: Vec<_> = nodes.into_iter().filter(|node| asked(&node.name)).collect();
        let load = Load {
            hosts: nodes.iter().map(|node| node.http.clone()).collect(),
            clients: plan.clients,
            arrival: plan.arrival,
            warm_up: plan.warm_up,
            measured: plan.measured,
            timeout: plan.timeout,
            window: plan.window,
            seed: self.plan.seed,
        };
        (nodes.into_iter().map(|node| (node.http, node.name)).collect(), load)
    }

    /// Waits for a load; samples nodes, shows how far it is, and does what is due.
    async fn watch_load(
        &mut self,
        watched: &Watched<'_>,
        acts: &mut Vec<Act>,
        sending: impl Future<Output = Result<LoadFigures, Error>>,
    ) -> Result<LoadFigures, Error> {
        let Watched { variant, lap, live } = watched;
        let env = self.env.clone();
        let every = self.plan.sample.max(SHOW_EVERY);
        let before = Before::default();
        let (mut next, mut done) = (env.now(), 0);
        let mut sending = pin!(sending);
        loop {
            let act = acts.get(done).map(|act| act.at);
            let due = act.map_or(next, |at| at.min(next));
            tokio::select! {
                biased;
                figures = &mut sending => {
                    acts.truncate(done);
                    return figures;
                }
                () = env.sleep_until(due) => {}
            }
            if act.is_some_and(|at| at <= env.now()) {
                done += 1;
                let Act { fault, begins, .. } = &acts[done - 1];
                if let Err(error) = self.befall(variant, fault, *begins).await {
                    acts.truncate(done);
                    return Err(error);
                }
            } else if next <= env.now() {
                next = env.now() + every;
                // A node that stands still does not answer, and would be waited for past the moment at which it goes on.
                let limit = act.map_or(every, |at| (at - env.now()).min(every));
                let sampling = self.sample_nodes(&variant.name, *lap, &before);
                if let Ok(sampled) = env.timeout(limit, sampling).await {
                    sampled?;
                }
                self.watch.progress(live.sent(), None);
            }
        }
    }

    /// Beginnings and ends of faults, in the order of time.
    fn acts(&self, faults: &[Fault]) -> Vec<Act> {
        let now = self.env.now();
        let mut acts = Vec::new();
        for fault in faults {
            let at = now + fault.at;
            acts.push(Act { at, fault: fault.clone(), begins: true });
            if let Some(lasts) = fault.lasts {
                acts.push(Act { at: at + lasts, fault: fault.clone(), begins: false });
            }
        }
        acts.sort_by_key(|act| act.at);
        acts
    }

    /// Ends every fault that began and has not ended; where one cannot be ended, the others are all the same.
    async fn undo(&mut self, variant: &Variant, acts: &[Act]) -> Result<(), Error> {
        let mut result = Ok(());
        let mut lost_node = false;
        for (n, act) in acts.iter().enumerate() {
            lost_node |=
                matches!(act.fault.kind, FaultKind::Cut | FaultKind::Stop | FaultKind::Kill);
            let ended = acts[n..].iter().any(|later| !later.begins && later.fault == act.fault);
            if act.begins && !ended {
                let undone = self.befall(variant, &act.fault, false).await;
                result = result.and(undone);
            }
        }
        result?;
        if lost_node {
            let indices = self.plan.indices.clone();
            for index in &indices {
                self.wait_for_health(LEADER, &index.name).await?;
            }
        }
        Ok(())
    }

    /// Queries of shards that the search pool of each node has completed; those that do not answer are left out.
    async fn searches_by_node(&self) -> BTreeMap<String, u64> {
        let path = "/_cat/thread_pool/search?format=json&h=node_name,completed";
        let Ok(answer) = self.ask(LEADER, "GET", path, None).await else { return BTreeMap::new() };
        let number = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        let rows = answer.as_array().into_iter().flatten();
        rows.filter_map(|row| {
            Some((row["node_name"].as_str()?.to_owned(), number(&row["completed"])?))
        })
        .collect()
    }
}
