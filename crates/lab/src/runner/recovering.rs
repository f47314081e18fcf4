//! One variant: the follower joins, recovers from remote, and is watched until it is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clusters::Target;
use record::{Limit, LimitShare, Line, Row};
use serde_json::{Value, json};

use super::sampling::{Before, Copies, Recoveries};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::Variant;

/// A recovery in which nothing moves for this long has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long the follower may take to reach the leader.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

impl<T: Target> Runner<'_, T> {
    pub(super) async fn recover(&self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        self.set_up(variant).await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let index = self.follower_index();
        let body = json!({ "remote_cluster": LEADER, "leader_index": self.plan.index.name });
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let began_epoch_ms = self.env.epoch_ms();
        let path = format!("/{index}/_ccr/follow?wait_for_active_shards=0");
        self.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
        let end = self.watch_recovery(variant, lap, &before, Copies::Primaries).await?;
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        Ok(self.row(variant, lap, began_epoch_ms, &end))
    }

    /// Gives both clusters the variant's settings, and takes back those of other variants.
    async fn set_up(&self, variant: &Variant) -> Result<(), Error> {
        let mut settings = self.settings_of(variant);
        let leader = json!({ "persistent": settings });
        self.ask(LEADER, "PUT", "/_cluster/settings", Some(&leader)).await?;
        let seeds = self.target.seeds_through_link(LEADER);
        let remote = format!("cluster.remote.{LEADER}.seeds");
        settings.insert(&remote, json!(seeds.join(",")));
        let follower = json!({ "persistent": settings });
        self.ask(FOLLOWER, "PUT", "/_cluster/settings", Some(&follower)).await?;
        self.wait_for_remote().await
    }

    /// A variant's settings; null for those that only others have.
    pub(super) fn settings_of<'v>(&'v self, variant: &'v Variant) -> BTreeMap<&'v str, Value> {
        let all: BTreeSet<&String> =
            self.plan.variants.iter().flat_map(|variant| variant.settings.keys()).collect();
        let mut settings: BTreeMap<&str, Value> =
            all.into_iter().map(|name| (name.as_str(), Value::Null)).collect();
        for (name, value) in &variant.settings {
            settings.insert(name, json!(value));
        }
        settings
    }

    async fn wait_for_remote(&self) -> Result<(), Error> {
        let give_up = self.env.now() + CONNECT_PATIENCE;
        loop {
            let info = self.ask(FOLLOWER, "GET", "/_remote/info", None).await?;
            let connected = info[LEADER]["num_nodes_connected"].as_u64().unwrap_or(0);
            if connected >= u64::from(self.plan.leader.nodes) {
                return Ok(());
            }
            if self.env.now() >= give_up {
                return Err(Error::NotConnected { connected, nodes: self.plan.leader.nodes });
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Samples until every shard is complete.
    pub(super) async fn watch_recovery(
        &self,
        variant: &Variant,
        lap: u32,
        before: &Before,
        copies: Copies,
    ) -> Result<Recoveries, Error> {
        let index = self.follower_index();
        let shards = match copies {
            Copies::Primaries => self.plan.index.shards,
            Copies::Replicas => self.plan.index.shards * self.plan.follower.nodes,
        };
        let mut moved = (self.env.now(), 0);
        let mut next = self.env.now();
        loop {
            next = (next + self.plan.sample).max(self.env.now());
            let path = format!("/{index}/_recovery");
            let answer = self.ask(FOLLOWER, "GET", &path, None).await?;
            let all = Recoveries::read(&answer, index, copies, shards);
            let (t_ms, sample) = (self.journal.t_ms(), all.sample.clone());
            let line = Line::Recovery { t_ms, variant: variant.name.clone(), lap, sample };
            self.journal.line(&line)?;
            self.sample_nodes(&variant.name, lap, before).await?;
            self.watch.progress(all.sample.recovered_bytes, Some(all.sample.total_bytes));
            if all.done {
                return Ok(all);
            }
            let now = self.env.now();
            if all.sample.recovered_bytes > moved.1 {
                moved = (now, all.sample.recovered_bytes);
            }
            if now - moved.0 > PATIENCE {
                let bytes = all.sample.recovered_bytes;
                let why = all.failure.unwrap_or_else(|| "no shard says why".to_owned());
                return Err(Error::Stuck { variant: variant.name.clone(), bytes, why });
            }
            self.env.sleep_until(next).await;
        }
    }

    pub(super) fn row(
        &self,
        variant: &Variant,
        lap: u32,
        began_epoch_ms: u64,
        end: &Recoveries,
    ) -> Row {
        let seconds = end.stopped_epoch_ms.saturating_sub(began_epoch_ms).max(1) as f64 / 1e3;
        let bytes = end.sample.recovered_bytes + end.operations_bytes;
        let bytes_per_s = bytes as f64 / seconds;
        let rate = self.plan.link.rate_bytes_per_s as f64;
        Row {
            variant: variant.name.clone(),
            lap,
            seconds,
            bytes,
            bytes_per_s,
            link_share: self.target.link().map(|_| bytes_per_s / rate),
            limits: shares(&end.sample.charged_s),
            verified: false,
            documents: 0,
            refetched_chunks: end.refetched_chunks,
            published_s: variant.published.as_ref().map(|published| published.seconds),
            published_bytes: variant.published.as_ref().map(|published| published.bytes),
        }
    }

    /// Takes the follower index away, so that the next variant begins with nothing.
    pub(super) async fn forget_follower(&self) -> Result<(), Error> {
        self.ask(FOLLOWER, "DELETE", &format!("/{}", self.follower_index()), None).await?;
        Ok(())
    }
}

/// Charged seconds as shares of their sum, largest first.
fn shares(charged_s: &BTreeMap<Limit, f64>) -> Vec<LimitShare> {
    let total: f64 = charged_s.values().sum();
    let mut shares: Vec<LimitShare> = charged_s
        .iter()
        .filter(|(_, seconds)| **seconds > 0.0)
        .map(|(limit, seconds)| LimitShare { limit: *limit, share: seconds / total })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.limit.cmp(&b.limit)));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_largest_first() {
        let charged = BTreeMap::from([(Limit::Latency, 3.0), (Limit::LinkRate, 9.0)]);
        let shares = shares(&charged);
        assert_eq!(shares[0], LimitShare { limit: Limit::LinkRate, share: 0.75 });
        assert_eq!(shares[1], LimitShare { limit: Limit::Latency, share: 0.25 });
    }
}
