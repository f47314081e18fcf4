//! One variant: copies of a cluster recover from copies of the same cluster.

use clusters::FaultKind;
use record::Row;
use serde_json::{Value, json};

use super::recovering::Watched;
use super::replicating::PLACE;
use super::sampling::{Before, Recoveries, Wanted};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Peers, Variant};

/// What stops copies from being placed while a node is away.
const ENABLE: &str = "cluster.routing.allocation.enable";

impl Runner<'_> {
    pub(super) async fn recover_peers(
        &mut self,
        variant: &Variant,
        lap: u32,
        peers: Peers,
    ) -> Result<Row, Error> {
        self.set_up(variant).await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let (seconds, end) = match peers {
            Peers::Replicas => self.add_replicas(variant, lap, &before).await?,
            Peers::Restart { nodes } => self.restart_in_turn(variant, lap, &before, nodes).await?,
        };
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        let row = self.row(variant, lap, seconds, &end);
        let receiving = match peers {
            Peers::Replicas => self.plan.leader.nodes.min(self.plan.shards()),
            Peers::Restart { .. } => 1,
        };
        let node_bytes_per_s = Some(row.bytes_per_s / f64::from(receiving));
        Ok(Row { node_bytes_per_s, ..row })
    }

    /// Every index gets one replica more.
    async fn add_replicas(
        &self,
        variant: &Variant,
        lap: u32,
        before: &Before,
    ) -> Result<(f64, Recoveries), Error> {
        let began_epoch_ms = self.env.epoch_ms();
        self.set_replicas(1).await?;
        let wanted = Wanted::Peers {
            target: None,
            since_epoch_ms: began_epoch_ms,
            copies: self.plan.shards(),
        };
        let end = self.watch_peers(variant, lap, before, wanted, Recoveries::default()).await?;
        Ok((end.seconds_since(began_epoch_ms), end))
    }

    /// So many replicas more than the plan says.
    pub(super) async fn set_replicas(&self, more: u32) -> Result<(), Error> {
        for index in &self.plan.indices {
            let replicas = index.replicas + more;
            let mut body = json!({ "index.number_of_replicas": replicas });
            if more > 0 && self.plan.joined && self.target.has_allocation_filters() {
                // The primaries were kept on the first site while they were filled.
                let nodes = [LEADER, FOLLOWER].into_iter().flat_map(|site| self.target.nodes(site));
                let names: Vec<String> = nodes.map(|node| node.name).collect();
                body[PLACE] = json!(names.join(","));
            }
            let path = format!("/{}/_settings", index.name);
            self.ask(LEADER, "PUT", &path, Some(&body)).await?;
        }
        Ok(())
    }

    /// Restarts nodes one after another, each with an empty disk, and waits each time until it holds again what
    /// it held. The last node goes first; the first one manages and stays up.
    async fn restart_in_turn(
        &mut self,
        variant: &Variant,
        lap: u32,
        before: &Before,
        nodes: u32,
    ) -> Result<(f64, Recoveries), Error> {
        let (mut total_s, mut all) = (0.0, Recoveries::default());
        for turn in 1..=nodes {
            let node = format!("{LEADER}-{}", self.plan.leader.nodes - turn);
            let copies = self.restart(&node).await?;
            let began_epoch_ms = self.env.epoch_ms();
            self.set_allocation(Value::Null).await?;
            let wanted =
                Wanted::Peers { target: Some(&node), since_epoch_ms: began_epoch_ms, copies };
            all = self.watch_peers(variant, lap, before, wanted, all).await?;
            let took_s = all.seconds_since(began_epoch_ms);
            total_s += took_s;
            let text = format!(
                "{node} has its {copies} copies again after {}",
                record::units::show_seconds(took_s)
            );
            self.note(Some(variant), &text)?;
        }
        Ok((total_s, all))
    }

    /// Ends a node, empties its disk and starts it again, with nothing placed meanwhile. Answers how many copies
    /// lack a place now.
    async fn restart(&mut self, node: &str) -> Result<u32, Error> {
        self.set_allocation(json!("none")).await?;
        let faults = self.target.faults()?;
        faults.begin(node, FaultKind::Kill).await?;
        faults.wipe(node)?;
        faults.end(node, FaultKind::Kill).await?;
        let nodes = self.plan.leader.nodes;
        let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout=60s");
        let health = self.ask(LEADER, "GET", &path, None).await?;
        let copies = health["unassigned_shards"].as_u64().unwrap_or(0);
        Ok(u32::try_from(copies).unwrap_or(u32::MAX))
    }

    async fn set_allocation(&self, enable: Value) -> Result<(), Error> {
        let body = json!({ "persistent": { ENABLE: enable } });
        self.ask(LEADER, "PUT", "/_cluster/settings", Some(&body)).await?;
        Ok(())
    }

    async fn watch_peers(
        &self,
        variant: &Variant,
        lap: u32,
        before: &Before,
        wanted: Wanted<'_>,
        already: Recoveries,
    ) -> Result<Recoveries, Error> {
        let cluster = LEADER;
        self.watch_recovery(Watched {
            variant,
            lap,
            cluster,
            wanted,
            before,
            already,
            beside: None,
        })
        .await
    }
}
