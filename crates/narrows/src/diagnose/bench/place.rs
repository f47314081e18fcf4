//! Where cases are staged: in virtual time, or on nodes that run as processes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use clusters::{Clusters, VirtualClusters};
use serde_json::json;
use world::{Env, LinkConfig};

use super::case::Case;
use super::conditions::{Conditions, Engine};
use super::stage::{Shape, Stage};
use crate::diagnose::bed::{self, FAR, NEAR};
use crate::interrupt::in_virtual_time;

/// So many chunks of the usual size that one more or less at either end counts little.
const SETTLED_BYTES: u64 = 32 * (512 << 10);

/// How long a rate is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(super) at_most: Duration,
    /// No longer than until it has settled, over so many bytes at least; none where time costs nothing.
    pub(super) settled_bytes: Option<u64>,
}

/// A place with two nodes, on which conditions can be made again and again.
pub(crate) trait Place {
    /// The case of a seed of which so many draws were no cases, as this place can show it.
    fn case(&self, seed: u64, refused: u8) -> Case;

    /// As `--on` names it.
    fn name(&self) -> &'static str;

    /// How long a rate is measured.
    fn measured(&self) -> Measured;

    /// Why it cannot make conditions; none where it can.
    fn cannot_make(&self, _: &Conditions) -> Option<&'static str> {
        None
    }

    /// Makes conditions, acts, and takes them back.
    async fn on_stage<T: 'static>(
        &self,
        seed: u64,
        conditions: &Conditions,
        act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T> + 'static,
    ) -> anyhow::Result<T>;
}

/// A world of its own for each stage. Nothing is ever waited for.
pub(crate) struct Simulated;

impl Place for Simulated {
    fn case(&self, seed: u64, refused: u8) -> Case {
        Case::again(seed, refused)
    }

    fn name(&self) -> &'static str {
        "virtual"
    }

    fn measured(&self) -> Measured {
        Measured { at_most: Duration::from_secs(8), settled_bytes: None }
    }

    async fn on_stage<T: 'static>(
        &self,
        seed: u64,
        conditions: &Conditions,
        act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T> + 'static,
    ) -> anyhow::Result<T> {
        let conditions = conditions.clone();
        let acted = in_virtual_time(seed, async move |env| {
            let mut clusters = VirtualClusters::new(&env);
            let settings = conditions.node_settings();
            bed::start(&mut clusters, conditions.link.clone(), &settings).await?;
            let acted = {
                let stage = Stage::set(&env, &clusters, &conditions, None).await?;
                act(&stage).await
            };
            clusters.stop().await;
            acted
        });
        acted.with_context(|| format!("the case of seed {seed}"))
    }
}

/// What the nodes run.
pub(super) fn engine(clusters: &impl Clusters) -> Engine {
    if clusters.name() == "opensearch" { Engine::OPENSEARCH } else { Engine::OURS }
}

/// The nodes of OpenSearch that are to have disks of their own, which can be slowed: both, where this machine lets us
/// make such disks.
pub(crate) fn nodes_with_disks() -> BTreeSet<String> {
    static CAN_MAKE: OnceLock<bool> = OnceLock::new();
    let can_make = *CAN_MAKE.get_or_init(|| machine::OWN_DISKS.look().is_ok());
    let nodes = [NEAR, FAR].into_iter().filter(|_| can_make);
    nodes.map(|site| format!("{site}-0")).collect()
}

/// Nodes that run for the whole bench: what a stage leaves is taken back, and the index stays for the next.
pub(crate) struct Processes<'a, C> {
    env: &'a Env,
    clusters: &'a C,
    filled: RefCell<Option<Shape>>,
}

impl<'a, C: Clusters> Processes<'a, C> {
    /// Two nodes that run already.
    pub(crate) async fn new(env: &'a Env, clusters: &'a C) -> anyhow::Result<Self> {
        // Shards that move by themselves are recoveries, too.
        let body = json!({ "persistent": { "cluster.routing.rebalance.enable": "none" } });
        bed::ask(clusters, NEAR, "PUT", "/_cluster/settings", body).await?;
        Ok(Processes { env, clusters, filled: RefCell::new(None) })
    }

    /// What the nodes run.
    pub(super) fn engine(&self) -> Engine {
        engine(self.clusters)
    }

    /// As [`Place::on_stage`], of no seed.
    pub(super) async fn act_under<T>(
        &self,
        conditions: &Conditions,
        act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let filled = self.filled.take();
        let configure = |config: LinkConfig| {
            let link = self.clusters.link().context("there is a link between the sites")?;
            // A line that loses nothing has the kernel's own TCP.
            let tcp = config.tcp.filter(|tcp| tcp.loss > 0.0);
            link.configure(LinkConfig { tcp, ..config }).context("change the link")
        };
        configure(LinkConfig::default())?;
        let stage = Stage::set(self.env, self.clusters, conditions, filled).await?;
        self.filled.replace(Some(Shape::of(conditions)));
        configure(conditions.link.clone())?;
        let acted = act(&stage).await;
        configure(LinkConfig::default())?;
        stage.clear().await?;
        acted
    }
}

impl<C: Clusters> Place for Processes<'_, C> {
    fn case(&self, seed: u64, refused: u8) -> Case {
        Case::again_on_processes(seed, self.engine(), refused)
    }

    fn name(&self) -> &'static str {
        self.clusters.name()
    }

    fn measured(&self) -> Measured {
        Measured { at_most: Duration::from_secs(5), settled_bytes: Some(SETTLED_BYTES) }
    }

    fn cannot_make(&self, conditions: &Conditions) -> Option<&'static str> {
        if conditions.quota.is_some() && machine::CONTROL_GROUPS.look().is_err() {
            return Some("this machine lets us make no control group");
        }
        // The embedded engine emulates a slow disk.
        let needs = self.engine() == Engine::OPENSEARCH && conditions.has_slow_disk();
        (needs && nodes_with_disks().is_empty())
            .then_some("this machine lets us make no disk of our own")
    }

    async fn on_stage<T: 'static>(
        &self,
        seed: u64,
        conditions: &Conditions,
        act: impl AsyncFnOnce(&Stage<'_>) -> anyhow::Result<T> + 'static,
    ) -> anyhow::Result<T> {
        let acted = self.act_under(conditions, act).await;
        acted.with_context(|| format!("the case of seed {seed}"))
    }
}
