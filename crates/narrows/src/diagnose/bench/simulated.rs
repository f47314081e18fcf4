//! Clusters in a world of their own, for what is no recovery. Nothing is ever waited for.

use anyhow::Context;
use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, TopologySpec, VirtualClusters};
use insight::diagnosis::Class;
use serde_json::Value;
use world::{Env, LinkConfig};

use super::trial::{INTERVAL, Judgement, LOOK_FOR};
use crate::interrupt::in_virtual_time;
use crate::live::{ConnectArgs, Looking, client, greet};

/// Starts clusters of so many nodes, apart from each other behind a link if there is one, acts, and stops them.
pub(super) async fn on_clusters<T: 'static>(
    seed: u64,
    sizes: &'static [(&'static str, usize)],
    link: Option<LinkConfig>,
    act: impl AsyncFnOnce(&Env, &VirtualClusters) -> anyhow::Result<T> + 'static,
) -> anyhow::Result<T> {
    let acted = in_virtual_time(seed, async move |env| {
        let mut clusters = VirtualClusters::new(&env);
        let cluster = |(name, nodes): &(&str, usize)| ClusterSpec {
            name: (*name).to_owned(),
            nodes: *nodes,
            settings: Default::default(),
            attributes: Vec::new(),
        };
        let topology =
            TopologySpec { clusters: sizes.iter().map(cluster).collect(), link, joined: false };
        clusters.start(&topology).await.context("start clusters")?;
        let acted = act(&env, &clusters).await;
        clusters.stop().await;
        acted
    });
    acted.with_context(|| format!("the case of seed {seed}"))
}

/// Asks a node of a cluster.
pub(super) async fn ask(
    clusters: &VirtualClusters,
    cluster: &str,
    method: &str,
    path: &str,
    body: Value,
) -> anyhow::Result<Value> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Ok(clusters.request(cluster, method, path, body).await?.json()?)
}

/// What looking at a cluster says, where these classes are right.
pub(super) async fn judged(
    env: &Env,
    clusters: &VirtualClusters,
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
