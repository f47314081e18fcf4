//! Clusters that are started for one stage, for what is no recovery: in virtual time, or as processes.

use anyhow::Context;
use clusters::{ClusterSpec, Clusters, EmbeddedClusters, TopologySpec, VirtualClusters};
use insight::diagnosis::Class;
use world::{Env, LinkConfig};

use super::one_cause::World;
use super::trial::{INTERVAL, Judgement, LOOK_FOR};
use crate::interrupt::in_virtual_time;
use crate::live::{ConnectArgs, Looking, client, greet};

/// Starts clusters of so many nodes, apart from each other behind a link if there is one, acts, and stops them.
pub(super) async fn on_clusters<T: 'static>(
    world: World<'_>,
    seed: u64,
    sizes: &'static [(&'static str, usize)],
    link: Option<LinkConfig>,
    act: impl AsyncFnOnce(&Env, &dyn Clusters) -> anyhow::Result<T> + 'static,
) -> anyhow::Result<T> {
    let cluster = |(name, nodes): &(&str, usize)| ClusterSpec::new(name, *nodes);
    let topology =
        TopologySpec { clusters: sizes.iter().map(cluster).collect(), link, joined: false };
    let acted = match world {
        World::Virtual => in_virtual_time(seed, async move |env: Env| {
            let mut clusters = VirtualClusters::new(&env);
            on_started(&env, &mut clusters, &topology, act).await
        }),
        World::Real(env) => {
            let mut clusters = EmbeddedClusters::new(env, std::env::current_exe()?);
            on_started(env, &mut clusters, &topology, act).await
        }
    };
    acted.with_context(|| format!("the case of seed {seed}"))
}

/// Starts them, acts, and stops them.
async fn on_started<T>(
    env: &Env,
    clusters: &mut impl Clusters,
    topology: &TopologySpec,
    act: impl AsyncFnOnce(&Env, &dyn Clusters) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    clusters.start(topology).await.context("start clusters")?;
    let acted = act(env, &*clusters).await;
    clusters.stop().await;
    acted
}

/// What looking at a cluster says, where these classes are right.
pub(super) async fn judged(
    env: &Env,
    clusters: &dyn Clusters,
    cluster: &str,
    right: &[Class],
) -> anyhow::Result<Judgement> {
    let nodes = clusters.nodes(cluster);
    let urls: Vec<String> = nodes.iter().map(|node| format!("http://{}", node.http)).collect();
    let args = ConnectArgs::default();
    let client = client(env, &urls, &args, args.timeout())?;
    let mut looking = Looking::new(greet(env, client, &args).await?, INTERVAL);
    looking.look_for(LOOK_FOR).await?;
    Ok(Judgement::of(&looking.series(), right))
}
