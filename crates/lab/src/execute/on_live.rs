//! On clusters that are there already: whatever the end, they are left as they were.

use std::path::Path;

use clusters::live::{LiveClient, LiveOptions};
use clusters::{
    ClusterIdentity, Clusters, FollowApi, Head, Journal, LiveCluster, LiveClusters, NodeHandle,
    PUT_BACK_PATIENCE, follow_api, lease_holder, restore_command,
};
use record::{Manifest, NodeInfo, Writer};
use world::Env;

use super::options::Options;
use super::place::{LiveHosts, hosts};
use super::working::{Ended, caught, until_interrupted, work};
use crate::error::{Error, Result};
use crate::plan::{FOLLOWER, LEADER, Resolved};

/// The journals of changes in a run's directory: of the cluster, and of the leader where a run changed two.
pub const JOURNALS: [&str; 2] = ["changes.jsonl", "changes-leader.jsonl"];

/// A new journal of changes to a cluster. Fails if the cluster does not say which one it is, or the file cannot be
/// written.
pub fn journal(path: &Path, cluster_uuid: &str, hosts: Vec<String>) -> Result<Journal> {
    if cluster_uuid.is_empty() {
        let why =
            "the cluster does not say its cluster_uuid, so changes could not be put back for sure";
        return Err(Error::Usage { why: why.to_owned() });
    }
    Ok(Journal::create(path, Head::new(cluster_uuid.to_owned(), hosts))?)
}

/// A cluster that may be changed, with a new journal of that. Fails as [`journal`] does.
pub fn live_cluster(
    env: &Env,
    options: &LiveOptions,
    (client, identity): (LiveClient, ClusterIdentity),
    path: &Path,
) -> Result<LiveCluster> {
    let journal = journal(path, &identity.uuid, hosts(options))?;
    let at_the_end = LiveOptions { timeout: PUT_BACK_PATIENCE, ..options.clone() };
    let end_client = LiveClient::new(env, &at_the_end).map_err(usage)?;
    Ok(LiveCluster::new(client, end_client, identity, journal))
}

pub(super) fn run(
    plan: &Resolved,
    live: &LiveHosts,
    options: &Options,
    dir: &Path,
    writer: &mut Writer,
    manifest: &mut Manifest,
) -> Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let (clusters, follow_api) = reach(&env, live, dir).await?;
        let run = dir.file_name().unwrap_or_default().to_string_lossy();
        let tells = options.watch.clone();
        let tell = move |text: &str| tells.note(&format!("narrows: {text}"));
        let clusters = LiveClusters::new(clusters, follow_api);
        let mut clusters = clusters.held_by(lease_holder(&run), tell);
        let watch = &*options.watch;
        let work = work(&env, plan, &mut clusters, writer, watch);
        let work = async { caught(work).await? };
        let ended = until_interrupted(&options.interrupt, work).await;
        watch.clear();
        let nodes = [LEADER, FOLLOWER].into_iter().flat_map(|site| {
            let name = |node: NodeHandle| NodeInfo { cluster: site.to_owned(), name: node.name };
            clusters.nodes(site).into_iter().map(name)
        });
        manifest.nodes = nodes.collect();
        let is_told = matches!(ended, Ok(Ended::Interrupted));
        let interrupted = || (options.interrupt)();
        clusters.stop_until_told(is_told, interrupted, |text| watch.note(text)).await;
        match clusters.ended() {
            Some(Err(source)) => {
                let restore = restore_command(dir, &live.follower);
                Err(Error::NotRestored { restore, source: Box::new(source) })
            }
            Some(Ok(left)) => {
                left.iter().for_each(|sentence| watch.note(&format!("narrows: {sentence}")));
                ended
            }
            None => ended,
        }
    })
}

/// The clusters, the leader first, each with a journal of its own, and how one follows the other.
async fn reach(env: &Env, live: &LiveHosts, dir: &Path) -> Result<(Vec<LiveCluster>, FollowApi)> {
    let (client, identity) = identify(env, live, &live.follower).await?;
    let (mut found, mut api) = (Vec::new(), FollowApi::default());
    if let Some(leader) = &live.leader {
        api = follow_api(&client, &identity).await.map_err(usage)?;
        let reached = identify(env, live, leader).await?;
        if reached.1.uuid == identity.uuid {
            let why = "--leader and --on name the same cluster; a plan that recovers from another one needs two";
            return Err(Error::Usage { why: why.to_owned() });
        }
        found.push((leader, reached));
    }
    found.push((&live.follower, (client, identity)));
    let mut clusters = Vec::new();
    for ((options, reached), name) in found.into_iter().rev().zip(JOURNALS) {
        clusters.insert(0, live_cluster(env, options, reached, &dir.join(name))?);
    }
    Ok((clusters, api))
}

/// A client of a cluster that may be changed, and which cluster it is.
async fn identify(
    env: &Env,
    live: &LiveHosts,
    options: &LiveOptions,
) -> Result<(LiveClient, ClusterIdentity)> {
    let client = LiveClient::new(env, options).map_err(usage)?;
    let identity = ClusterIdentity::ask_before_changes(&client, live.any_version).await;
    Ok((client, identity.map_err(usage)?))
}

/// A cluster that cannot be reached is a usage error: the address, the credentials or the version is not right.
fn usage(error: clusters::Error) -> Error {
    Error::Usage { why: error.to_string() }
}
