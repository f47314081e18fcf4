//! One look at a cluster after another, each as cheap as the moment allows.
//!
//! What changes slowly is asked rarely (see `pacing`), what costs most only where something cheaper says that there is
//! something to see: where nothing recovers, a light look is one question, the cluster's health. Nothing that fails ends a look, save that nobody answers or that the credentials are wrong.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{
    Cost, Gap, Health, Identity, Node, Observation, Recovery, Remote, RoundTrip, Scope, Setting,
    WaitingCopy,
};
use serde_json::{Value, json};
use world::{Env, Time};

use super::pacing::{Pacing, Question};
use super::questions::{CCR, CORES, HEALTH, LOST, RECOVERY_FILTER, SHARD_COLUMNS, escape};
use super::{LiveClient, ask_version, check_version, parse, round_trips};
use crate::Error;

/// Waiting copies of which an explanation is asked at once.
const EXPLAINED_MAX: usize = 3;
/// Indices of which an ended recovery is looked up at once.
const ENDED_MAX: usize = 5;

/// How much a look asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What a look every second can afford, for as long as one likes.
    Light,
    /// Every part of the nodes' figures each time, for a while.
    Full,
    /// Also what threads do, how nodes see each other, and everything that changes slowly.
    Deep,
}

/// Looks at one cluster.
pub struct Sampler {
    env: Env,
    client: LiveClient,
    identity: Identity,
    pacing: Pacing,
    /// Parts of `_nodes/stats` that this version has.
    metrics: Vec<&'static str>,
    cores: BTreeMap<String, u64>,
    seen_nodes: BTreeSet<String>,
    /// Those of them that did not answer when nodes were last asked, and how many did.
    gone: Vec<String>,
    answered: u64,
    /// As last told.
    health: Option<Health>,
    /// Settings as last told, those that nobody set included.
    settings: Option<BTreeMap<String, Setting>>,
    /// Pairs of source and target whose round trip was measured, or could not be.
    measured: BTreeSet<(String, String)>,
    /// Recoveries that were active at the last look.
    active: Vec<Recovery>,
    waiting: Vec<WaitingCopy>,
    /// Counts of waiting copies when `waiting` was asked.
    counted: Option<(Option<u64>, Option<u64>)>,
    has_remotes: bool,
    remotes: Vec<Remote>,
    follows: bool,
    has_followers: bool,
    gaps: BTreeMap<String, Gap>,
}

impl Sampler {
    /// Asks who answers. Fails where nobody does, where the credentials are wrong, or where it is no cluster.
    pub async fn connect(env: &Env, client: LiveClient) -> Result<Self, Error> {
        let mut gaps = BTreeMap::new();
        let identity = match ask_version(&client).await {
            Ok((_, identity)) => identity,
            // A role may be allowed to monitor and not to ask this.
            Err(error @ Error::Forbidden { .. }) => {
                let lost = "the flavour and version of the cluster".to_owned();
                gaps.insert("/".into(), Gap { path: "/".into(), found: error.to_string(), lost });
                Identity { flavour: "unknown".into(), ..Identity::default() }
            }
            Err(error) => return Err(error),
        };
        Ok(Sampler {
            env: env.clone(),
            client,
            follows: true,
            has_followers: false,
            has_remotes: true,
            remotes: Vec::new(),
            identity,
            pacing: Pacing::default(),
            metrics: parse::METRICS.to_vec(),
            cores: BTreeMap::new(),
            seen_nodes: BTreeSet::new(),
            gone: Vec::new(),
            answered: 0,
            health: None,
            settings: None,
            measured: BTreeSet::new(),
            active: Vec::new(),
            waiting: Vec::new(),
            counted: None,
            gaps,
        })
    }

    /// Who answers.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The client, for what else is asked of the same cluster.
    pub fn client(&self) -> &LiveClient {
        &self.client
    }

    /// Refuses a version that this was not built for. One that is not told is none.
    pub fn check_version(&self) -> Result<(), Error> {
        check_version(&self.identity)
    }

    /// Looks once.
    pub async fn look(&mut self, depth: Depth) -> Result<Observation, Error> {
        let began = self.env.now();
        let (requests, bytes) = self.client.cost();
        let slow = self.pacing.take(Question::Slow, began, depth == Depth::Deep);
        let mut seen = Observation { cluster: self.identity.clone(), ..Observation::default() };
        seen.health = self.health_if_due(depth, began).await?;
        seen.nodes = self.nodes_if_due(depth, began, seen.health.as_ref()).await?;
        if !seen.nodes.is_empty() {
            let present: BTreeSet<String> =
                seen.nodes.iter().map(|node| node.name.clone()).collect();
            self.gone = self.seen_nodes.difference(&present).cloned().collect();
            self.answered = present.len() as u64;
            self.seen_nodes.extend(present);
        }
        seen.gone = self.gone.clone();
        seen.recoveries = self.recoveries(&seen.nodes, seen.health.as_ref()).await?;
        seen.waiting = self.waiting(seen.health.as_ref(), slow, began).await?;
        seen.followers = self.followers(slow).await?;
        if slow {
            self.slow_parts(&mut seen, depth, began).await?;
        }
        seen.round_trips = self.round_trips_if_due(&seen, depth, began).await;
        if depth == Depth::Deep {
            seen.hot_threads = self.hot_threads().await?;
        }
        seen.gaps = self.gaps.values().cloned().collect();
        let (requests_now, bytes_now) = self.client.cost();
        seen.cost = Cost {
            requests: requests_now - requests,
            bytes: bytes_now - bytes,
            took_ms: (self.env.now() - began).as_secs_f64() * 1e3,
        };
        Ok(seen)
    }

    /// The cluster's health. While recoveries go on it is asked rarely, and what was told last counts: they are seen
    /// themselves.
    async fn health_if_due(&mut self, depth: Depth, now: Time) -> Result<Option<Health>, Error> {
        let wanted = depth != Depth::Light || self.active.is_empty() || self.health.is_none();
        if self.pacing.take(Question::Health, now, wanted) {
            let answer = self.ask("/_cluster/health", HEALTH).await?;
            self.health = answer.as_ref().and_then(parse::health);
        }
        Ok(self.health.clone())
    }

    /// The nodes' figures, from time to time, and where another number of nodes is there.
    async fn nodes_if_due(
        &mut self,
        depth: Depth,
        now: Time,
        health: Option<&Health>,
    ) -> Result<Vec<Node>, Error> {
        let is_changed = health.and_then(|h| h.nodes).is_some_and(|count| count != self.answered);
        match self.pacing.take(Question::Nodes, now, depth != Depth::Light || is_changed) {
            true => self.nodes(depth).await,
            false => Ok(Vec::new()),
        }
    }

    fn with_cores(&self, answer: &Value) -> Vec<Node> {
        let mut nodes = parse::nodes(answer);
        for node in &mut nodes {
            node.cores = self.cores.get(&node.id).copied();
        }
        nodes
    }

    /// Settings. Those that nobody set are many, and change only where another one was set or taken back.
    async fn settings(&mut self, depth: Depth, now: Time) -> Result<(), Error> {
        const NAME: &str = "/_cluster/settings";
        let asks_all = self.settings.is_none() || depth == Depth::Deep;
        if !self.pacing.take(Question::Defaults, now, asks_all) {
            let path = format!("{NAME}?flat_settings=true&filter_path={}", parse::SETTINGS_FILTER);
            let set = self.ask(NAME, &path).await?.as_ref().map(parse::settings);
            let known = self.settings.iter().flatten();
            let known: BTreeMap<_, _> =
                known.filter(|(_, setting)| setting.scope != Scope::Default).collect();
            if set.is_none_or(|set| set.iter().collect::<BTreeMap<_, _>>() == known) {
                return Ok(());
            }
            self.pacing.ask(Question::Defaults, now);
        }
        let path = format!(
            "{NAME}?include_defaults=true&flat_settings=true&filter_path={}",
            parse::SETTINGS_FILTER
        );
        self.settings = self.ask(NAME, &path).await?.as_ref().map(parse::settings);
        Ok(())
    }

    /// Measured again from time to time, and soon where another pair of nodes recovers.
    async fn round_trips_if_due(
        &mut self,
        seen: &Observation,
        depth: Depth,
        now: Time,
    ) -> Vec<RoundTrip> {
        let pairs = round_trips::pairs(seen);
        let is_new = !pairs.is_subset(&self.measured);
        let asks = (is_new && self.pacing.is_due(Question::NewPairs, now))
            || self.pacing.is_due(Question::RoundTrips, now)
            || depth == Depth::Deep;
        if !asks || seen.nodes.is_empty() || (pairs.is_empty() && !self.has_followers) {
            return Vec::new();
        }
        self.pacing.ask(Question::NewPairs, now);
        self.pacing.ask(Question::RoundTrips, now);
        self.measured = pairs;
        round_trips::measure(&self.env, &self.client, seen, &self.remotes).await
    }

    async fn slow_parts(
        &mut self,
        seen: &mut Observation,
        depth: Depth,
        now: Time,
    ) -> Result<(), Error> {
        self.settings(depth, now).await?;
        seen.settings = self.settings.clone();
        if self.cores.is_empty()
            && let Some(answer) = self.try_ask(CORES).await?
        {
            self.cores = parse::cores(&answer);
            for node in &mut seen.nodes {
                node.cores = self.cores.get(&node.id).copied();
            }
        }
        if self.has_remotes {
            let remotes = self.try_ask("/_remote/info").await?;
            self.remotes = remotes.as_ref().map(parse::remotes).unwrap_or_default();
            seen.remotes = self.remotes.clone();
            // Asked again all the same: one may be added while we look.
            self.has_remotes = remotes.is_some();
        }
        Ok(())
    }

    async fn nodes(&mut self, depth: Depth) -> Result<Vec<Node>, Error> {
        loop {
            let mut metrics = self.metrics.join(",");
            let deep = depth == Depth::Deep && self.identity.flavour != "narrows";
            if deep {
                // Before `indices`, which has parts of its own.
                metrics = format!("adaptive_selection,{metrics}");
            }
            let path = format!(
                "/_nodes/stats/{metrics}/{}?filter_path={}",
                parse::INDEX_METRICS,
                parse::FILTER
            );
            match self.client.get(&path).await {
                Ok(answer) => {
                    self.gaps.remove("/_nodes/stats");
                    return Ok(self.with_cores(&answer));
                }
                Err(Error::Refused { status: 400, reason, .. }) if self.drop_metric(&reason) => {}
                Err(error) => {
                    self.lose("/_nodes/stats", error)?;
                    return Ok(Vec::new());
                }
            }
        }
    }

    /// Asks no more for a part that this version does not know.
    fn drop_metric(&mut self, reason: &str) -> bool {
        let before = self.metrics.len();
        if reason.contains("unrecognized metric") {
            let is_named = |name: &str| reason.contains(&format!("[{name}]"));
            self.metrics.retain(|name| !is_named(name));
        }
        self.metrics.len() < before
    }

    /// What is active, and once more what was active before. Not asked where nothing can be: on a cluster of
    /// thousands of shards this question goes to all of them.
    async fn recoveries(
        &mut self,
        nodes: &[Node],
        health: Option<&Health>,
    ) -> Result<Vec<Recovery>, Error> {
        let none = |count: Option<u64>| count == Some(0);
        let idle = nodes.iter().all(|node| none(node.as_source) && none(node.as_target))
            && health.is_some_and(|health| none(health.initializing) && none(health.relocating));
        let mut found = Vec::new();
        if !idle {
            let path = format!("/_recovery?active_only=true&filter_path={RECOVERY_FILTER}");
            found = self
                .ask("/_recovery", &path)
                .await?
                .as_ref()
                .map(parse::recoveries)
                .unwrap_or_default();
            // Some versions show what is done for a moment.
            found.retain(|recovery| recovery.stage != "DONE");
        }
        let active = found.clone();
        let ended: Vec<Recovery> = std::mem::take(&mut self.active)
            .into_iter()
            .filter(|before| !active.iter().any(|now| now.key() == before.key()))
            .collect();
        found.extend(self.ended(ended).await?);
        self.active = active;
        Ok(found)
    }

    /// The end of recoveries that are no longer active: a short one would leave nothing but its first moments.
    async fn ended(&mut self, mut ended: Vec<Recovery>) -> Result<Vec<Recovery>, Error> {
        let indices: BTreeSet<&str> =
            ended.iter().map(|recovery| recovery.index.as_str()).take(ENDED_MAX).collect();
        let mut last = Vec::new();
        if !indices.is_empty() {
            let names: Vec<String> = indices.into_iter().map(escape).collect();
            let path = format!("/{}/_recovery?filter_path={RECOVERY_FILTER}", names.join(","));
            last = self.try_ask(&path).await?.as_ref().map(parse::recoveries).unwrap_or_default();
        }
        for recovery in &mut ended {
            if let Some(now) = last.iter().find(|now| now.key() == recovery.key()) {
                *recovery = now.clone();
            }
            recovery.ended = true;
        }
        Ok(ended)
    }

    async fn waiting(
        &mut self,
        health: Option<&Health>,
        slow: bool,
        now: Time,
    ) -> Result<Vec<WaitingCopy>, Error> {
        let Some(health) = health else { return Ok(Vec::new()) };
        let counts = (health.unassigned, health.initializing);
        if counts == (Some(0), Some(0)) {
            self.waiting.clear();
            self.counted = None;
            return Ok(Vec::new());
        }
        let is_changed = self.counted.is_none()
            || (self.counted != Some(counts) && self.pacing.is_due(Question::Waiting, now));
        if slow || is_changed {
            self.pacing.ask(Question::Waiting, now);
            let path = format!("/_cat/shards?format=json&h={SHARD_COLUMNS}");
            let answer = self.ask("/_cat/shards", &path).await?;
            self.waiting = answer.as_ref().map(parse::waiting).unwrap_or_default();
            self.counted = Some(counts);
            let mut unassigned: Vec<usize> = (0..self.waiting.len())
                .filter(|index| self.waiting[*index].state == "UNASSIGNED")
                .collect();
            // Replicas mostly wait for their primaries.
            unassigned.sort_by_key(|index| !self.waiting[*index].primary);
            for index in unassigned.into_iter().take(EXPLAINED_MAX) {
                self.explain(index).await?;
            }
        }
        Ok(self.waiting.clone())
    }

    async fn explain(&mut self, index: usize) -> Result<(), Error> {
        let copy = &self.waiting[index];
        let body = json!({"index": copy.index, "shard": copy.shard, "primary": copy.primary});
        let path = "/_cluster/allocation/explain";
        match self.client.ask("POST", path, &body).await {
            Ok(answer) => parse::explain_into(&mut self.waiting[index], &answer),
            // It was assigned in the meantime.
            Err(Error::Refused { status: 400 | 404, .. }) => {}
            Err(error) => self.lose(path, error)?,
        }
        Ok(())
    }

    /// Followers, at every look once there are some; whether there are any, from time to time.
    async fn followers(&mut self, slow: bool) -> Result<Vec<record::observation::Follower>, Error> {
        if !self.follows || !(slow || self.has_followers) {
            return Ok(Vec::new());
        }
        let is_plugin = self.identity.flavour == "opensearch";
        let path = if is_plugin { "/_plugins/_replication/follower_stats" } else { CCR };
        let followers = match self.try_ask(path).await? {
            Some(answer) if is_plugin => parse::replication(&answer),
            Some(answer) => parse::ccr(&answer),
            None => {
                self.follows = false;
                Vec::new()
            }
        };
        self.has_followers = !followers.is_empty();
        Ok(followers)
    }

    async fn hot_threads(&mut self) -> Result<Vec<record::observation::HotThreads>, Error> {
        if self.identity.flavour == "narrows" {
            return Ok(Vec::new());
        }
        let path = "/_nodes/hot_threads?threads=5&interval=300ms";
        match self.client.text(path).await {
            Ok(text) => Ok(parse::hot_threads(&text)),
            Err(error) => {
                self.lose("/_nodes/hot_threads", error)?;
                Ok(Vec::new())
            }
        }
    }

    /// Asks; what is refused becomes a gap.
    async fn ask(&mut self, name: &'static str, path: &str) -> Result<Option<Value>, Error> {
        match self.client.get(path).await {
            Ok(answer) => {
                self.gaps.remove(name);
                Ok(Some(answer))
            }
            Err(error) => {
                self.lose(name, error)?;
                Ok(None)
            }
        }
    }

    /// Asks for something that many clusters do not have; its absence is no gap.
    async fn try_ask(&self, path: &str) -> Result<Option<Value>, Error> {
        match self.client.get(path).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if ends_a_look(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn lose(&mut self, name: &str, error: Error) -> Result<(), Error> {
        // Without recoveries there is nothing to see, and nothing that could be called well.
        let is_all = name == "/_recovery" && matches!(error, Error::Forbidden { .. });
        // Threads are asked for last and take longest: a starved node answers everything else.
        let is_last = name == "/_nodes/hot_threads";
        if is_all || (ends_a_look(&error) && !is_last) {
            return Err(error);
        }
        let lost = LOST.iter().find(|(path, _)| *path == name).map_or("", |(_, lost)| lost);
        let gap = Gap { path: name.to_owned(), found: error.to_string(), lost: lost.to_owned() };
        self.gaps.insert(name.to_owned(), gap);
        Ok(())
    }
}

/// Without an answer from anybody, or without being known, there is nothing more to ask.
fn ends_a_look(error: &Error) -> bool {
    matches!(
        error,
        Error::Connection { .. }
            | Error::Peer { .. }
            | Error::NoHost { .. }
            | Error::Unauthorized { .. }
    )
}
