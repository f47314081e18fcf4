//! One variant of `add_replica`: the index gets a copy on the second site, which recovers it from the first.

use std::time::Duration;

use clusters::Target;
use record::Row;
use serde_json::{Value, json};

use super::sampling::{Before, Copies};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::Variant;

/// Where an index is placed.
pub(super) const PLACE: &str = "index.routing.allocation.include._name";
/// How long background merges of a fresh index are waited for.
const MERGE_PATIENCE: Duration = Duration::from_secs(120);
/// How long a node may take to remove a copy that it holds no longer. OpenSearch asks the other nodes first.
const REMOVAL: Duration = Duration::from_secs(2);

impl<T: Target> Runner<'_, T> {
    pub(super) async fn add_replica(&self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        let settings = json!({ "persistent": self.settings_of(variant) });
        self.ask(LEADER, "PUT", "/_cluster/settings", Some(&settings)).await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let began_epoch_ms = self.env.epoch_ms();
        self.set_replicas(self.plan.follower.nodes).await?;
        let end = self.watch_recovery(variant, lap, &before, Copies::Replicas).await?;
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        if end.reused_bytes > 0 {
            let bytes = record::units::show_bytes(end.reused_bytes);
            self.note(variant, &format!("{bytes} were still there from an earlier copy"))?;
        }
        self.wait_for_health(LEADER, &self.plan.index.name).await?;
        Ok(self.row(variant, lap, began_epoch_ms, &end))
    }

    /// Takes the copy away, so that the next variant begins with nothing.
    pub(super) async fn remove_replica(&self) -> Result<(), Error> {
        self.set_replicas(0).await?;
        self.wait_for_health(LEADER, &self.plan.index.name).await?;
        self.env.sleep(REMOVAL).await;
        Ok(())
    }

    async fn set_replicas(&self, replicas: u32) -> Result<(), Error> {
        let mut settings = json!({ "index.number_of_replicas": replicas });
        if replicas > 0 && self.target.places_by_setting() {
            // The primaries were kept on the first site while they were filled.
            let nodes = [LEADER, FOLLOWER].into_iter().flat_map(|site| self.target.nodes(site));
            let names: Vec<String> = nodes.map(|node| node.name).collect();
            settings[PLACE] = json!(names.join(","));
        }
        let path = format!("/{}/_settings", self.plan.index.name);
        self.ask(LEADER, "PUT", &path, Some(&settings)).await?;
        Ok(())
    }

    /// Waits until no merge runs in the background: it would take disk and cores from the first variant.
    pub(super) async fn wait_for_merges(&self) -> Result<(), Error> {
        let path = format!("/{}/_stats/merge", self.plan.index.name);
        let give_up = self.env.now() + MERGE_PATIENCE;
        while self.env.now() < give_up {
            let stats = self.ask(LEADER, "GET", &path, None).await?;
            if stats.pointer("/_all/total/merges/current").and_then(Value::as_u64) == Some(0) {
                break;
            }
            self.env.sleep(Duration::from_millis(500)).await;
        }
        // What was merged last is committed, too.
        let path = format!("/{}/_flush", self.plan.index.name);
        self.ask(LEADER, "POST", &path, None).await?;
        Ok(())
    }
}
