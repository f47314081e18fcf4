//! One variant: the follower joins, recovers from remote, and is watched until it is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::try_join_all;
use record::{Limit, LimitShare, Line, Row};
use serde_json::{Value, json};

use super::beside::Beside;
use super::sampling::{Before, Recoveries, Wanted};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Scope, Variant, models};

/// A recovery in which nothing moves for this long has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// ... or for so many samples, where those are far between.
const PATIENCE_SAMPLES: u32 = 20;
/// How long the follower may take to reach the leader.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// What releases without such a setting do all the same.
const FIXED: [(&str, &str); 1] = [("indices.recovery.chunk_size", "512kb")];
/// Of a remote cluster Elasticsearch connects to so many nodes (`cluster.remote.*.node_connections`).
const SNIFFED_MAX: u32 = 3;
/// After so many samples they are taken half as often, and so on: a week is not sampled as a minute is.
const SAMPLES_BEFORE_THINNING: u32 = 1000;

/// A recovery that is watched: its variant, and what it looks for.
pub(super) struct Watched<'a> {
    pub(super) variant: &'a Variant,
    pub(super) lap: u32,
    pub(super) cluster: &'a str,
    pub(super) wanted: Wanted<'a>,
    pub(super) before: &'a Before,
    /// What earlier parts of the same variant recovered.
    pub(super) already: Recoveries,
    /// Who begins to write once every shard has listed its files.
    pub(super) beside: Option<&'a Beside>,
}

impl Runner<'_> {
    /// What is indexed `beside` begins once the follower has listed the files of every shard: what it copies is then what
    /// the leader held before, and can be compared.
    pub(super) async fn recover(
        &self,
        variant: &Variant,
        lap: u32,
        beside: Option<&Beside>,
    ) -> Result<Row, Error> {
        self.set_up(variant).await?;
        self.journal.phase("recover", true, Some(&variant.name), lap)?;
        self.watch.begin("recover", Some(&variant.name), None, "bytes");
        let before = Before::default();
        self.sample_nodes(&variant.name, lap, &before).await?;
        let began_epoch_ms = self.env.epoch_ms();
        let follows = self.plan.indices.iter().map(|index| async move {
            let body = json!({ "remote_cluster": LEADER, "leader_index": index.name });
            let path = format!("/{}/_ccr/follow?wait_for_active_shards=0", index.name);
            self.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
            if beside.is_some() {
                // What was copied is compared with what the leader held: what is indexed beside must not come after.
                let path = format!("/{}/_ccr/pause_follow", index.name);
                self.ask(FOLLOWER, "POST", &path, None).await?;
            }
            Ok::<_, Error>(())
        });
        try_join_all(follows).await?;
        let watched = Watched {
            variant,
            lap,
            cluster: FOLLOWER,
            wanted: Wanted::Primaries { shards: self.plan.shards() },
            before: &before,
            already: Recoveries::default(),
            beside,
        };
        let end = self.watch_recovery(watched).await?;
        self.watch.end();
        self.journal.phase("recover", false, Some(&variant.name), lap)?;
        Ok(self.row(variant, lap, end.seconds_since(began_epoch_ms), &end))
    }

    /// Gives the clusters the variant's settings, and takes back those of other variants; in the virtual world
    /// what hosts and link are like, too.
    pub(super) async fn set_up(&self, variant: &Variant) -> Result<(), Error> {
        self.set_models(variant)?;
        let mut settings = self.settings_of(variant);
        self.put_settings(LEADER, variant, &mut settings).await?;
        if self.plan.follower.is_none() || self.plan.joined {
            return Ok(());
        }
        let seeds = self.target.seeds_through_link(LEADER);
        let remote = format!("cluster.remote.{LEADER}.seeds");
        settings.insert(&remote, json!(seeds.join(",")));
        self.put_settings(FOLLOWER, variant, &mut settings).await?;
        self.wait_for_remote().await
    }

    /// Sets settings of a variant. Releases differ in which they have: what this one does not know and only other
    /// variants have needs no taking back, and is left out; a variant that has it cannot be run here.
    async fn put_settings(
        &self,
        cluster: &str,
        variant: &Variant,
        settings: &mut BTreeMap<&str, Value>,
    ) -> Result<(), Error> {
        // A cluster refuses a request that sets nothing.
        while !settings.is_empty() {
            let body = json!({ "persistent": settings });
            let asked = self.ask(cluster, "PUT", "/_cluster/settings", Some(&body)).await;
            let Err(Error::Target(clusters::Error::Refused { status: 400, reason, .. })) = &asked
            else {
                return asked.map(drop);
            };
            let is_unknown = |name: &&str| {
                reason.contains("not recognized") && reason.contains(&format!("[{name}]"))
            };
            let Some(name) = settings.keys().copied().find(is_unknown) else {
                return asked.map(drop);
            };
            let fixed = FIXED.iter().find(|(setting, _)| *setting == name);
            let is_as_fixed = |value: &String| fixed.is_some_and(|(_, fixed)| value == fixed);
            if variant.settings.get(name).is_some_and(|value| !is_as_fixed(value)) {
                let (variant, setting) = (variant.name.clone(), name.to_owned());
                return Err(Error::NoSetting { variant, setting });
            }
            settings.remove(name);
        }
        Ok(())
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

    pub(super) fn set_models(&self, variant: &Variant) -> Result<(), Error> {
        let Some(controls) = self.target.virtual_controls() else {
            if !variant.own_parameters.is_empty() {
                let (what, target) = (variant.own_parameters.join(", "), self.target.name());
                let text = format!(
                    "{what} of {} is for --on virtual: {target} keeps its own",
                    variant.name
                );
                self.note(Some(variant), &text)?;
            }
            return Ok(());
        };
        controls.set_hosts(LEADER, &models(variant, Scope::Leader).host);
        if self.plan.follower.is_some() {
            controls.set_hosts(FOLLOWER, &models(variant, Scope::Follower).host);
        }
        if let (Some(link), Some(config)) = (self.target.link(), super::link(self.plan)) {
            let config = models(variant, Scope::Everywhere).link.apply(config);
            link.configure(config).map_err(clusters::Error::Link)?;
        }
        Ok(())
    }

    async fn wait_for_remote(&self) -> Result<(), Error> {
        // A cluster that is already there has as many nodes as it has.
        let there = u32::try_from(self.target.nodes(LEADER).len()).unwrap_or(u32::MAX);
        let most = if self.target.has_allocation_filters() { SNIFFED_MAX } else { u32::MAX };
        let nodes = self.plan.leader.nodes.min(there).min(most);
        let give_up = self.env.now() + CONNECT_PATIENCE;
        loop {
            let info = self.ask(FOLLOWER, "GET", "/_remote/info", None).await?;
            let connected = info[LEADER]["num_nodes_connected"].as_u64().unwrap_or(0);
            if connected >= u64::from(nodes) {
                return Ok(());
            }
            if self.env.now() >= give_up {
                return Err(Error::NotConnected { connected, nodes });
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Samples until every shard is complete.
    pub(super) async fn watch_recovery(&self, watched: Watched<'_>) -> Result<Recoveries, Error> {
        let Watched { variant, lap, .. } = watched;
        let path = format!("/{}/_recovery", self.plan.index_names());
        let mut moved = (self.env.now(), 0);
        let mut next = self.env.now();
        let mut samples = 0;
        loop {
            let every = self.plan.sample * (1 << (samples / SAMPLES_BEFORE_THINNING).min(20));
            samples += 1;
            next = (next + every).max(self.env.now());
            let answer = self.ask(watched.cluster, "GET", &path, None).await?;
            let now_here = Recoveries::read(&answer, &watched.wanted);
            if let Some(beside) = watched.beside.filter(|_| now_here.listed) {
                beside.begin();
            }
            let all = watched.already.clone().and(now_here);
            let (t_ms, sample) = (self.journal.t_ms(), all.sample.clone());
            let line = Line::Recovery { t_ms, variant: variant.name.clone(), lap, sample };
            self.journal.line(&line)?;
            self.sample_nodes(&variant.name, lap, watched.before).await?;
            self.watch.progress(all.sample.recovered_bytes, Some(all.sample.total_bytes));
            if all.done {
                return Ok(all);
            }
            let now = self.env.now();
            if all.sample.recovered_bytes > moved.1 {
                moved = (now, all.sample.recovered_bytes);
            }
            let patience = PATIENCE.max(every * PATIENCE_SAMPLES);
            if now - moved.0 > patience {
                let bytes = all.sample.recovered_bytes;
                let why = all.failure.unwrap_or_else(|| "no shard says why".to_owned());
                let variant = variant.name.clone();
                return Err(Error::Stuck { variant, seconds: patience.as_secs(), bytes, why });
            }
            self.env.sleep_until(next).await;
        }
    }

    pub(super) fn row(&self, variant: &Variant, lap: u32, seconds: f64, end: &Recoveries) -> Row {
        let bytes = end.sample.recovered_bytes + end.operations_bytes;
        let row = Row::measured(&variant.name, lap, seconds, bytes);
        let published = variant.published.as_ref();
        let link = self.plan.link.filter(|_| self.target.link().is_some());
        let link_share = link.map(|link| row.bytes_per_s / link.rate_bytes_per_s as f64);
        Row {
            link_share,
            limits: shares(&end.sample.charged_s, link_share),
            refetched_chunks: end.refetched_chunks,
            published_s: published.and_then(|published| published.seconds),
            published_bytes: published.and_then(|published| published.bytes),
            ..row
        }
    }
}

/// Charged seconds as shares of their sum, largest first.
///
/// An engine calls the link's rate what it cannot tell otherwise from the time until the last byte came. The link held
/// back no longer than it was full, at most so long as it takes to carry what it carried; the rest is latency, too: a
/// connection's window was smaller than what was asked for.
fn shares(charged_s: &BTreeMap<Limit, f64>, link_share: Option<f64>) -> Vec<LimitShare> {
    let total: f64 = charged_s.values().sum();
    let mut charged_s = charged_s.clone();
    if let (Some(share), Some(charged)) = (link_share, charged_s.get_mut(&Limit::LinkRate)) {
        let more = *charged - charged.min(share * total);
        *charged -= more;
        *charged_s.entry(Limit::Latency).or_default() += more;
    }
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
        let latency = LimitShare { limit: Limit::Latency, share: 0.25 };
        let link = LimitShare { limit: Limit::LinkRate, share: 0.75 };
        let expected = [link, latency];
        assert_eq!(shares(&charged, None), expected);
        assert_eq!(shares(&charged, Some(0.98)), expected);
    }

    #[test]
    fn the_link_held_no_longer_than_it_was_full() {
        let charged = BTreeMap::from([(Limit::Latency, 3.0), (Limit::LinkRate, 9.0)]);
        let latency = LimitShare { limit: Limit::Latency, share: 0.875 };
        let link = LimitShare { limit: Limit::LinkRate, share: 0.125 };
        assert_eq!(shares(&charged, Some(0.125)), [latency, link]);
    }
}
