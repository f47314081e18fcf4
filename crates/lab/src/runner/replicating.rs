//! One variant of `add_replica`: the index gets a copy on the second site, which recovers it from the first.

use std::time::Duration;

use record::Row;
use serde_json::Value;

use super::recovering::Watched;
use super::sampling::{Before, Recoveries, Wanted};
use super::{LEADER, Runner};
use crate::Error;
use crate::plan::Variant;

/// Where an index is placed.
pub(super) const PLACE: &str = "index.routing.allocation.include._name";
/// How long background merges of a fresh index are waited for.
const MERGE_PATIENCE: Duration = Duration::from_secs(120);
/// How long a node may take to remove a copy that it holds no longer. OpenSearch asks the other nodes first.
const REMOVAL: Duration = Duration::from_secs(2);

impl Runner<'_> {
    pub(super) async fn add_replica(&self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        self.set_up(variant).await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let began_epoch_ms = self.env.epoch_ms();
        let more = self.plan.follower.map_or(0, |follower| follower.nodes);
        self.set_replicas(more).await?;
        // Of an index without replicas there was none before, so every one counts. A live cluster's clock is its own.
        let copies = self.plan.shards() * more;
        let watched = Watched {
            variant,
            lap,
            cluster: LEADER,
            wanted: Wanted::Peers { target: None, since_epoch_ms: 0, copies },
            before: &before,
            already: Recoveries::default(),
            beside: None,
        };
        let end = self.watch_recovery(watched).await?;
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        if end.reused_bytes > 0 {
            let bytes = record::units::show_bytes(end.reused_bytes);
            self.note(Some(variant), &format!("{bytes} were still there from an earlier copy"))?;
        }
        self.wait_for_health(LEADER, &self.plan.index_names()).await?;
        Ok(self.row(variant, lap, end.seconds_since(began_epoch_ms), &end))
    }

    /// Takes the copy away, so that the next variant begins with nothing.
    pub(super) async fn remove_replica(&self) -> Result<(), Error> {
        self.set_replicas(0).await?;
        self.wait_for_health(LEADER, &self.plan.index_names()).await?;
        self.env.sleep(REMOVAL).await;
        Ok(())
    }

    /// Waits until no merge runs in the background: it would take disk and cores from the first variant.
    pub(super) async fn wait_for_merges(&self) -> Result<(), Error> {
        let path = format!("/{}/_stats/merge", self.plan.index_names());
        let give_up = self.env.now() + MERGE_PATIENCE;
        while self.env.now() < give_up {
            let stats = self.ask(LEADER, "GET", &path, None).await?;
            if stats.pointer("/_all/total/merges/current").and_then(Value::as_u64) == Some(0) {
                break;
            }
            self.env.sleep(Duration::from_millis(500)).await;
        }
        // What was merged last is committed, too.
        let path = format!("/{}/_flush", self.plan.index_names());
        self.ask(LEADER, "POST", &path, None).await?;
        Ok(())
    }
}
