//! One variant of `restore`: the follower restores a snapshot of the leader's index, which it reads through the link.
//!
//! What a cluster without cross-cluster replication has: the leader keeps a snapshot in a directory, and the follower
//! reads it over HTTP as a repository of type `url`. Settings called `repository.*` are the repository's own.

use std::collections::BTreeMap;

use record::Row;
use serde_json::{Value, json};

use super::recovering::Watched;
use super::sampling::{Before, Recoveries, Wanted};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::Variant;

/// What the leader calls its repository.
const OWN: &str = "narrows";
/// What the follower calls it.
const REMOTE: &str = "narrows-remote";
const SNAPSHOT: &str = "all";
/// Settings of a repository, in a plan.
const OF_REPOSITORY: &str = "repository.";

impl Runner<'_> {
    /// The leader's snapshot of the index as it is now, in place of one of before: of one variant, or for all.
    pub(super) async fn take_snapshot(&self, variant: Option<&Variant>) -> Result<(), Error> {
        let Some(repository) = self.target.repository(LEADER) else {
            return Err(Error::NoRepository { target: self.target.name() });
        };
        let name = variant.map(|variant| variant.name.as_str());
        self.journal.phase("snapshot", true, name, 1)?;
        self.watch.begin("snapshot", name, None, "");
        let body = json!({ "type": "fs", "settings": { "location": repository.location } });
        self.ask(LEADER, "PUT", &format!("/_snapshot/{OWN}"), Some(&body)).await?;
        let path = format!("/_snapshot/{OWN}/{SNAPSHOT}");
        match self.ask(LEADER, "DELETE", &path, None).await {
            Ok(_) | Err(Error::Target(clusters::Error::Refused { status: 404, .. })) => {}
            Err(error) => return Err(error),
        }
        let body = json!({ "indices": self.plan.index_names(), "include_global_state": false });
        let path = format!("/_snapshot/{OWN}/{SNAPSHOT}?wait_for_completion=true");
        let answer = self.ask(LEADER, "PUT", &path, Some(&body)).await?;
        if answer["snapshot"]["state"] != "SUCCESS" {
            return Err(Error::Snapshot { why: answer["snapshot"]["reason"].to_string() });
        }
        self.watch.end();
        self.journal.phase("snapshot", false, name, 1)
    }

    pub(super) async fn restore(&self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        let Some(repository) = self.target.repository(LEADER) else {
            return Err(Error::NoRepository { target: self.target.name() });
        };
        self.set_models(variant)?;
        let (own, cluster): (BTreeMap<&str, Value>, BTreeMap<&str, Value>) =
            self.settings_of(variant).into_iter().partition(|(name, _)| is_of_repository(name));
        let settings = json!({ "persistent": cluster });
        self.ask(FOLLOWER, "PUT", "/_cluster/settings", Some(&settings)).await?;
        let mut settings = json!({ "url": repository.url });
        for (name, value) in own.into_iter().filter(|(_, value)| !value.is_null()) {
            settings[name.trim_start_matches(OF_REPOSITORY)] = value;
        }
        let body = json!({ "type": "url", "settings": settings });
        self.ask(FOLLOWER, "PUT", &format!("/_snapshot/{REMOTE}?verify=false"), Some(&body))
            .await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let began_epoch_ms = self.env.epoch_ms();
        let body = json!({ "indices": self.plan.index_names(), "include_global_state": false });
        let path = format!("/_snapshot/{REMOTE}/{SNAPSHOT}/_restore");
        self.ask(FOLLOWER, "POST", &path, Some(&body)).await?;
        let watched = Watched {
            variant,
            lap,
            cluster: FOLLOWER,
            wanted: Wanted::Primaries { shards: self.plan.shards() },
            before: &before,
            already: Recoveries::default(),
            beside: None,
        };
        let end = self.watch_recovery(watched).await?;
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        Ok(self.row(variant, lap, end.seconds_since(began_epoch_ms), &end))
    }
}

/// Whether a setting is a repository's own, and none of the cluster.
fn is_of_repository(name: &str) -> bool {
    name.starts_with(OF_REPOSITORY)
}
