//! `restore`: the follower restores a snapshot of the leader's indices, which it reads through the link.
//!
//! This is what clusters without cross-cluster replication have: the leader keeps a snapshot in a directory, and the
//! follower reads it over HTTP as a repository of type `url`. Settings called `repository.*` are the repository's own.

use std::collections::BTreeMap;

use async_trait::async_trait;
use clusters::Repository;
use record::Row;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{DeclaredStep, FOLLOWER, LEADER, Needs, OF_REPOSITORY, Variant};
use crate::runner::{Experiment, Runner, Turn, Wanted, WatchedRecovery};

/// What the leader calls its repository.
const OWN: &str = "narrows";
/// What the follower calls it.
const REMOTE: &str = "narrows-remote";
const SNAPSHOT: &str = "all";

#[derive(Default)]
pub(crate) struct RestoreSnapshot;

impl RestoreSnapshot {
    pub(crate) const STEP: DeclaredStep =
        DeclaredStep { changes_settings: true, ..DeclaredStep::new("restore", Needs::TwoClusters) };
}

#[async_trait(?Send)]
impl Experiment for RestoreSnapshot {
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        run.fill_leader(variant).await?;
        take_snapshot(run, variant).await?;
        run.hold(variant).await
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        connect_repository(run, turn.variant).await?;
        let began_epoch_ms = run.begin_recovery(turn).await?;
        let body = json!({ "indices": run.plan.index_names(), "include_global_state": false });
        let path = format!("/_snapshot/{REMOTE}/{SNAPSHOT}/_restore");
        run.ask(FOLLOWER, "POST", &path, Some(&body)).await?;
        let wanted = Wanted::Primaries { shards: run.plan.shards() };
        let watched = WatchedRecovery::of(turn, FOLLOWER, wanted);
        let end = run.watch_recovery(watched).await?;
        run.end_recovery(turn)?;
        Ok(run.row(turn, end.seconds_since(began_epoch_ms), &end))
    }
}

fn repository(run: &Runner<'_>) -> Repository {
    run.clusters.repository(LEADER).expect("a plan with this step is refused where there is none")
}

/// Takes a snapshot of the leader's indices as they are now, in place of an earlier one: for one variant, or for all.
async fn take_snapshot(run: &Runner<'_>, variant: Option<&Variant>) -> Result<()> {
    let location = repository(run).location;
    let name = variant.map(|variant| variant.name.as_str());
    run.journal.phase("snapshot", true, name, 1)?;
    run.watch.begin("snapshot", name, None, "");
    let body = json!({ "type": "fs", "settings": { "location": location } });
    run.ask(LEADER, "PUT", &format!("/_snapshot/{OWN}"), Some(&body)).await?;
    let path = format!("/_snapshot/{OWN}/{SNAPSHOT}");
    match run.ask(LEADER, "DELETE", &path, None).await {
        Ok(_) | Err(Error::Target(clusters::Error::Refused { status: 404, .. })) => {}
        Err(error) => return Err(error),
    }
    let body = json!({ "indices": run.plan.index_names(), "include_global_state": false });
    let path = format!("/_snapshot/{OWN}/{SNAPSHOT}?wait_for_completion=true");
    let answer = run.ask(LEADER, "PUT", &path, Some(&body)).await?;
    if answer["snapshot"]["state"] != "SUCCESS" {
        return Err(Error::Snapshot { why: answer["snapshot"]["reason"].to_string() });
    }
    run.watch.end();
    run.journal.phase("snapshot", false, name, 1)
}

/// Gives the clusters the variant's settings, and the follower the leader's repository with those that are the
/// repository's. The leader has no use for the settings, but what was changed in another variant is taken back of it.
async fn connect_repository(run: &Runner<'_>, variant: &Variant) -> Result<()> {
    run.set_models(variant)?;
    let (own, mut of_cluster): (BTreeMap<&str, Value>, BTreeMap<&str, Value>) =
        run.settings_of(variant).into_iter().partition(|(name, _)| name.starts_with(OF_REPOSITORY));
    for cluster in [LEADER, FOLLOWER] {
        run.put_settings(cluster, variant, &mut of_cluster).await?;
    }
    let mut settings = json!({ "url": repository(run).url });
    for (name, value) in own.into_iter().filter(|(_, value)| !value.is_null()) {
        settings[name.trim_start_matches(OF_REPOSITORY)] = value;
    }
    let body = json!({ "type": "url", "settings": settings });
    let path = format!("/_snapshot/{REMOTE}?verify=false");
    run.ask(FOLLOWER, "PUT", &path, Some(&body)).await.map(drop)
}
