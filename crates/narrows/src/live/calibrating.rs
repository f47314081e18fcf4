//! `calibrate --on URL`: what copies cost in a cluster that is there, by an index that is deleted whatever the end.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clusters::live::{LiveClient, LiveOptions};
use clusters::{
    ClusterIdentity, Clusters, FollowApi, LiveClusters, TopologySpec, index_of_run, restore_command,
};
use lab::calibration::{Amount, TargetCalibration, TwoNodes, calibrate_live};
use record::observation::Observation;
use world::Env;

use super::{ConnectArgs, Recording, checked_options, refuse_several_clusters, tell_left, usage};
use crate::interrupt::{Ended, told_to_stop, until_told};
use crate::terminal::say;

/// How long a cluster that has answered may take to answer at least: a wait for copies is one answer, of five minutes.
const PATIENCE: Duration = Duration::from_secs(330);
const CLUSTER: &str = "calibrated";

/// What is to be calibrated.
pub(crate) struct Calibrating<'a> {
    pub(crate) urls: &'a [String],
    pub(crate) connect: &'a ConnectArgs,
    /// Where the journal of changes is kept.
    pub(crate) runs: &'a Path,
    pub(crate) amount: Amount,
}

/// What was found out, and where.
pub(crate) struct Calibrated {
    /// Flavour and version.
    pub(crate) release: String,
    pub(crate) nodes: TwoNodes,
    pub(crate) found: TargetCalibration,
}

/// Measures, and deletes the index. Whoever makes this has permission to change the cluster.
pub(crate) async fn calibrate_there(
    env: &Env,
    asked: &Calibrating<'_>,
    tell: impl Fn(&str),
) -> anyhow::Result<Calibrated> {
    let timeout = asked.connect.timeout();
    let options = checked_options(asked.urls, asked.connect, PATIENCE.max(timeout))?;
    refuse_several_clusters(env, &options.addresses, asked.connect).await?;
    let greeting = LiveOptions { timeout, ..options.clone() };
    let greets = LiveClient::new(env, &greeting).map_err(usage)?;
    let identity = ClusterIdentity::ask_before_changes(&greets, asked.connect.any_version()).await;
    let identity = identity.map_err(usage)?;
    let client = LiveClient::new(env, &options).map_err(usage)?;
    let nodes = TwoNodes::find(&client, !identity.embedded).await?;
    let release = format!("{} {}", identity.version.flavour, identity.version.version);
    let first = Observation { cluster: identity.version.clone(), ..Observation::default() };
    let hosts: Vec<String> = client.hosts().iter().map(ToString::to_string).collect();
    let recording = Recording::create(asked.runs, "calibrate", &hosts.join(","), &first)?;
    let dir = recording.dir();
    let restore = restore_command(&dir, &options);
    let journal = dir.join(lab::JOURNALS[0]);
    let live = lab::live_cluster(env, &options, (client, identity), &journal)?;
    let there = LiveClusters::new(vec![live], FollowApi::default());
    let mut there = there.held_by(recording.holder(), |text| say!("narrows: {text}"));
    let index = index_of_run(&dir.file_name().unwrap_or_default().to_string_lossy());
    let mut found = None;
    let ended = until_told(async {
        there.start(&TopologySpec::alone(CLUSTER, 2)).await?;
        let place = (CLUSTER, index.as_str());
        found = Some(calibrate_live(&there, place, &nodes, asked.amount, &tell).await?);
        Ok(())
    })
    .await;
    let is_told = matches!(ended, Ok(Ended::Interrupted));
    there.stop_until_told(is_told, told_to_stop, |text| say!("narrows: {text}")).await;
    if let Some(put_back) = there.ended() {
        tell_left(&put_back.with_context(|| {
            format!("{index} could not be deleted; once the cluster answers, say `{restore}`")
        })?);
    }
    recording.end(0.0)?;
    if matches!(ended?, Ended::Interrupted) {
        return Err(anyhow!("interrupted; the cluster is as it was"));
    }
    let found = found.context("nothing was measured")?;
    Ok(Calibrated { release, nodes, found })
}
