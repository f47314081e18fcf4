//! One observation of a cluster after another, each as cheap as the moment allows.
//!
//! What changes slowly is asked rarely (see `pacing`), and what costs most is asked only where a cheaper answer says
//! that there is something to see: where nothing recovers, a light observation is one request, the cluster's health. A
//! question that fails leaves a gap in the observation, also where every host is too late for it or refuses it. The
//! observation fails only where no host is there, not even for a question about itself, or the credentials are wrong.

mod asking;
mod followers;
mod presence;
mod recoveries;
mod turns;
mod unsettled;

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{
    Cost, FollowLimits, Follower, Gap, Health, Identity, Node, Observation, Recovery, RoundTrip,
    Scope, Setting, Snapshot, UNKNOWN_FLAVOUR,
};
use serde_json::Value;
use world::Time;

use super::pacing::{Pacing, Question};
use super::questions::{
    BLOCKS, CANCELLED, CANCELLED_FROM, CORES, HEALTH, NODES_STATS, REMOTES, REPOSITORY_FILTER,
    SNAPSHOT_STATUS, SNAPSHOTS, STATE, STORES, escape, lost_without,
};
use super::{LiveClient, ask_version, check_version, parse, round_trips};
use crate::Error;
use presence::Presence;
use turns::Turns;

/// How long a node may take to tell its statistics, in seconds. Without a limit, one that hangs would keep those of all
/// others from whoever asks.
const NODE_S: u64 = 3;
/// What round trips are called in gaps: many requests tell them.
const ROUND_TRIPS: &str = "round trips";
/// Repositories that are asked for their settings, in all.
const REPOSITORIES_MAX: usize = 20;
/// Indices that one question names.
const NAMED_MAX: usize = 5;

/// How much an observation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What can be asked every second for as long as one likes.
    Light,
    /// Also the statistics of nodes every time; for a while.
    Full,
    /// Also hot threads, adaptive replica selection, and everything that changes slowly.
    Deep,
}

/// Observes one cluster.
pub struct Sampler {
    client: LiveClient,
    /// What observations tell again for as long as nothing newer is told; what each finds anew is not in it.
    last: Observation,
    pacing: Pacing,
    /// Parts of `_nodes/stats` that this version has.
    metrics: Vec<&'static str>,
    cores: BTreeMap<String, u64>,
    /// Who was there when statistics of nodes were last asked, and who is missed.
    presence: Presence,
    /// Nodes that did not answer when they were last asked.
    silent: u64,
    /// The last settings that were asked, defaults included.
    settings: Option<BTreeMap<String, Setting>>,
    /// Pairs of source and target whose round trip was measured, or cannot be.
    measured: BTreeSet<(String, String)>,
    /// Recoveries that were active in the last observation.
    active: Vec<Recovery>,
    /// Recoveries that began up to this moment were told of, in milliseconds since 1970; none before any was active.
    told_to_ms: Option<u64>,
    /// When copies that wait or move were asked for; none where none does.
    unsettled_at: Option<Time>,
    turns: Turns,
    /// The counts of copies that wait, come up or move for which these were asked.
    counted: Option<[Option<u64>; 3]>,
    /// Copies that the cluster listed when these were last asked.
    rows: u64,
    /// When the snapshots that are being taken were told.
    snapshots_at: Option<Time>,
    /// Followers that do not run, as they were last asked, and how many there were.
    stopped: (u64, Vec<Follower>),
    /// What bounds the reads and writes of followers, by their indices, as they were last asked.
    follow_limits: BTreeMap<String, FollowLimits>,
    /// What `_snapshot` answered of the repositories that were asked for; none of one that it does not tell.
    repositories: BTreeMap<String, Option<Value>>,
    gaps: BTreeMap<String, Gap>,
    /// Questions, by name, that this cluster does not have or keeps from us: they are not asked again.
    absent: BTreeSet<&'static str>,
    /// Bytes of answers before this observation: nobody has answered in it where there are no more.
    bytes_before: u64,
}

impl Sampler {
    /// Asks for the version. Fails where no host answers, where the credentials are wrong, or where it is no cluster.
    pub async fn connect(client: LiveClient) -> Result<Self, Error> {
        let mut gaps = BTreeMap::new();
        let identity = match ask_version(&client).await {
            Ok((_, identity)) => identity,
            // A role may be allowed to monitor the cluster and not to ask for this.
            Err(error @ Error::Forbidden { .. }) => {
                let lost = "the flavour and version of the cluster".to_owned();
                gaps.insert("/".into(), Gap { path: "/".into(), found: error.to_string(), lost });
                Identity { flavour: UNKNOWN_FLAVOUR.into(), ..Identity::default() }
            }
            Err(error) => return Err(error),
        };
        Ok(Sampler {
            client,
            last: Observation { cluster: identity, ..Observation::default() },
            stopped: (0, Vec::new()),
            follow_limits: BTreeMap::new(),
            repositories: BTreeMap::new(),
            pacing: Pacing::default(),
            metrics: parse::METRICS.to_vec(),
            cores: BTreeMap::new(),
            presence: Presence::default(),
            silent: 0,
            settings: None,
            measured: BTreeSet::new(),
            active: Vec::new(),
            told_to_ms: None,
            unsettled_at: None,
            turns: Turns::default(),
            counted: None,
            rows: 0,
            snapshots_at: None,
            gaps,
            absent: BTreeSet::new(),
            bytes_before: 0,
        })
    }

    /// The name, flavour and version of the cluster.
    pub fn identity(&self) -> &Identity {
        &self.last.cluster
    }

    /// The client, for other requests to the same cluster.
    pub fn client(&self) -> &LiveClient {
        &self.client
    }

    /// Refuses a version that narrows was not built for. A version that is unknown is not refused.
    pub fn check_version(&self) -> Result<(), Error> {
        check_version(&self.last.cluster)
    }

    /// Makes one observation.
    pub async fn look(&mut self, depth: Depth) -> Result<Observation, Error> {
        let _under_way = self.client.begin_look();
        let began = self.client.now();
        let (requests, bytes) = self.client.cost();
        self.bytes_before = bytes;
        let slow = self.pacing.take(Question::Slow, began, depth == Depth::Deep);
        let mut seen = Observation { cluster: self.last.cluster.clone(), ..Observation::default() };
        if depth != Depth::Light && !self.active.is_empty() {
            seen.answers = round_trips::answers(&self.client).await;
        }
        seen.health = self.health_if_due(depth, began).await?;
        seen.nodes = self.nodes_if_due(depth, began, seen.health.as_ref()).await?;
        self.presence.take(&seen.nodes, self.silent, began);
        seen.gone = self.presence.gone().to_vec();
        (seen.recoveries, seen.unseen_bytes) =
            self.recoveries(&seen.nodes, seen.health.as_ref()).await?;
        seen.restore_limits = self.restore_limits(&seen.recoveries).await?;
        self.unsettled(seen.health.as_ref(), slow, began).await?;
        (seen.waiting, seen.moves) = (self.last.waiting.clone(), self.last.moves.clone());
        seen.waiting_age_ms = self.unsettled_at.map(|at| (began - at).as_millis() as u64);
        if slow {
            self.slow_parts(&mut seen, depth, began).await?;
        } else if depth != Depth::Light && self.pacing.take(Question::Settings, began, false) {
            seen.settings = self.settings(depth, began).await?;
        }
        (seen.snapshots, seen.index_blocks) =
            (self.last.snapshots.clone(), self.last.index_blocks.clone());
        seen.remotes = self.last.remotes.clone();
        // Where no other cluster is known, nobody follows one and nobody is asked who paused.
        self.followers(slow).await?;
        seen.followers = self.last.followers.clone();
        seen.auto_follow_errors = self.last.auto_follow_errors.clone();
        seen.round_trips = self.round_trips_if_due(&seen, depth, began).await;
        if depth == Depth::Deep {
            seen.hot_threads = self.hot_threads().await?;
        }
        seen.gaps = self.gaps.values().cloned().collect();
        let (requests_now, bytes_now) = self.client.cost();
        seen.cost = Cost {
            requests: requests_now - requests,
            bytes: bytes_now - bytes,
            took_ms: (self.client.now() - began).as_secs_f64() * 1e3,
        };
        Ok(seen)
    }

    /// The cluster's health. While recoveries go on, which are observed themselves, it is asked rarely and the last
    /// answer counts.
    async fn health_if_due(&mut self, depth: Depth, now: Time) -> Result<Option<Health>, Error> {
        let wanted = depth != Depth::Light || self.active.is_empty() || self.last.health.is_none();
        if self.pacing.take(Question::Health, now, wanted) {
            let answer = self.read::<Value>("/_cluster/health", HEALTH).await?;
            self.last.health = answer.as_ref().and_then(parse::health);
        }
        Ok(self.last.health.clone())
    }

    /// Statistics of nodes, from time to time, and when the number of nodes has changed.
    async fn nodes_if_due(
        &mut self,
        depth: Depth,
        now: Time,
        health: Option<&Health>,
    ) -> Result<Vec<Node>, Error> {
        let is_changed =
            health.and_then(|h| h.nodes).is_some_and(|count| count != self.presence.present());
        match self.pacing.take(Question::Nodes, now, depth != Depth::Light || is_changed) {
            true => self.nodes(depth).await,
            false => Ok(Vec::new()),
        }
    }

    fn with_cores(&self, mut nodes: Vec<Node>) -> Vec<Node> {
        for node in &mut nodes {
            node.cores = self.cores.get(&node.id).copied();
        }
        nodes
    }

    /// Settings; none where the cluster does not tell them now. Defaults are many, so they are asked again only when a
    /// setting was set or reset.
    async fn settings(
        &mut self,
        depth: Depth,
        now: Time,
    ) -> Result<Option<BTreeMap<String, Setting>>, Error> {
        const NAME: &str = "/_cluster/settings";
        let asks_all = self.settings.is_none() || depth == Depth::Deep;
        if !self.pacing.take(Question::Defaults, now, asks_all) {
            let path = format!("{NAME}?flat_settings=true&filter_path={}", parse::SETTINGS_FILTER);
            let answer: Option<Value> = self.read(NAME, &path).await?;
            let Some(set) = answer.as_ref().map(parse::settings) else {
                return Ok(None);
            };
            let known = self.settings.iter().flatten();
            let known: BTreeMap<_, _> =
                known.filter(|(_, setting)| setting.scope != Scope::Default).collect();
            if set.iter().collect::<BTreeMap<_, _>>() == known {
                return Ok(self.settings.clone());
            }
            self.pacing.ask(Question::Defaults, now);
        }
        let path = format!(
            "{NAME}?include_defaults=true&flat_settings=true&filter_path={}",
            parse::SETTINGS_FILTER
        );
        let answer: Option<Value> = self.read(NAME, &path).await?;
        self.settings = answer.as_ref().map(parse::settings);
        Ok(self.settings.clone())
    }

    /// Round trips are measured again from time to time, and soon when another pair of nodes recovers.
    async fn round_trips_if_due(
        &mut self,
        seen: &Observation,
        depth: Depth,
        now: Time,
    ) -> Vec<RoundTrip> {
        if seen.nodes.is_empty() {
            return Vec::new();
        }
        let pairs = round_trips::pairs(seen);
        if pairs.is_empty() && self.last.followers.is_empty() {
            self.gaps.remove(ROUND_TRIPS);
            return Vec::new();
        }
        let is_new = !pairs.is_subset(&self.measured);
        let asks = (is_new && self.pacing.is_due(Question::NewPairs, now))
            || self.pacing.is_due(Question::RoundTrips, now)
            || depth == Depth::Deep;
        if !asks {
            return Vec::new();
        }
        let (asked, given) = (round_trips::HOSTS_MAX, self.client.hosts().len());
        if given > asked {
            let found = format!("{asked} of {given} hosts were asked");
            let lost = "how far apart nodes are of which none was asked".to_owned();
            let gap = Gap { path: ROUND_TRIPS.to_owned(), found, lost };
            self.gaps.insert(ROUND_TRIPS.to_owned(), gap);
        }
        self.pacing.ask(Question::NewPairs, now);
        self.pacing.ask(Question::RoundTrips, now);
        self.measured = pairs;
        round_trips::measure(&self.client, seen, &self.last.remotes).await
    }

    async fn slow_parts(
        &mut self,
        seen: &mut Observation,
        depth: Depth,
        now: Time,
    ) -> Result<(), Error> {
        seen.settings = self.settings(depth, now).await?;
        // Nodes that joined later are asked for theirs.
        let is_known = |node: &Node| self.cores.contains_key(&node.id);
        if (self.cores.is_empty() || !seen.nodes.iter().all(is_known))
            && let Some(answer) = self.try_ask(CORES).await?
        {
            self.cores = parse::cores(&answer);
            seen.nodes = self.with_cores(std::mem::take(&mut seen.nodes));
        }
        let tells_cancelled = self.last.cluster.flavour == "opensearch"
            && self.last.cluster.release() >= Some(CANCELLED_FROM)
            && !seen.nodes.is_empty();
        if tells_cancelled && let Some(answer) = self.try_ask(CANCELLED).await? {
            let mut cancelled = parse::cancelled(&answer);
            for node in &mut seen.nodes {
                node.searches_cancelled = cancelled.remove(&node.id).unwrap_or_default();
            }
        }
        self.snapshots(now).await?;
        if depth != Depth::Light
            && let Some(answer) = self.ask_unless_absent(STATE, BLOCKS).await?
        {
            self.last.index_blocks = parse::index_blocks(&answer, &BTreeSet::new());
            let is_any =
                self.last.index_blocks.iter().any(|block| block.setting == parse::NOT_WRITTEN);
            if is_any && let Some(stores) = self.try_ask(STORES).await? {
                self.last.index_blocks = parse::index_blocks(&answer, &parse::mounted(&stores));
            }
        }
        // Asked again even if there are none: one may be added meanwhile.
        if let Some(answer) = self.ask_unless_absent(REMOTES, REMOTES).await? {
            self.last.remotes = parse::remotes(&answer);
        }
        Ok(())
    }

    async fn nodes(&mut self, depth: Depth) -> Result<Vec<Node>, Error> {
        loop {
            let mut metrics = self.metrics.join(",");
            if depth == Depth::Deep {
                // Before `indices`, after which its own parts follow in the path.
                metrics = format!("adaptive_selection,{metrics}");
            }
            let path = format!(
                "{NODES_STATS}/{metrics}/{}?timeout={NODE_S}s&filter_path={}",
                parse::INDEX_METRICS,
                parse::FILTER
            );
            match self.client.read::<parse::Nodes>(&path).await {
                Ok(answer) => {
                    self.silent = answer.all.failed;
                    let found =
                        format!("nodes without an answer within {NODE_S} s: {}", self.silent);
                    let lost = lost_without(NODES_STATS).to_owned();
                    let gap = Gap { path: NODES_STATS.to_owned(), found, lost };
                    match self.silent {
                        0 => self.gaps.remove(NODES_STATS),
                        _ => self.gaps.insert(NODES_STATS.to_owned(), gap),
                    };
                    return Ok(self.with_cores(answer.nodes));
                }
                Err(Error::Refused { status: 400, reason, .. }) if self.drop_metric(&reason) => {}
                Err(error) => {
                    self.lose(NODES_STATS, error).await?;
                    return Ok(Vec::new());
                }
            }
        }
    }

    /// Removes the metric that this version of the cluster does not know, so that it is not asked again.
    fn drop_metric(&mut self, reason: &str) -> bool {
        let before = self.metrics.len();
        if reason.contains("unrecognized metric") {
            let is_named = |name: &str| reason.contains(&format!("[{name}]"));
            self.metrics.retain(|name| !is_named(name));
        }
        self.metrics.len() < before
    }

    /// The limits of the repositories that are restored from.
    async fn restore_limits(
        &mut self,
        recoveries: &[Recovery],
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut limits = BTreeMap::new();
        let names: BTreeSet<_> = recoveries.iter().filter_map(Recovery::restored_from).collect();
        for name in names {
            let limit = self.repository_setting(name, "max_restore_bytes_per_sec").await?;
            limits.extend(limit.map(|limit| (name.to_owned(), limit)));
        }
        Ok(limits)
    }

    /// A setting of a repository. Each is asked until it answers.
    async fn repository_setting(
        &mut self,
        repository: &str,
        name: &str,
    ) -> Result<Option<String>, Error> {
        let is_room = self.repositories.len() < REPOSITORIES_MAX;
        if !self.repositories.contains_key(repository) && is_room {
            let path = format!("/_snapshot/{}{REPOSITORY_FILTER}", escape(repository));
            let answer = match self.client.get(&path).await {
                Ok(answer) => Some(answer),
                Err(error) if error.is_absent() => None,
                Err(error) => match self.is_over(&error).await {
                    true => return Err(error),
                    false => return Ok(None),
                },
            };
            self.repositories.insert(repository.to_owned(), answer);
        }
        let answer = self.repositories.get(repository).and_then(Option::as_ref);
        Ok(answer.and_then(|answer| parse::repository_setting(repository, name, answer)))
    }

    /// The snapshots that are being taken, with the limits of their repositories, and since when they stand still.
    async fn snapshots(&mut self, now: Time) -> Result<(), Error> {
        let Some(answer) = self.ask_unless_absent(SNAPSHOT_STATUS, SNAPSHOTS).await? else {
            return Ok(());
        };
        let mut found = parse::snapshots(&answer);
        for one in &mut found {
            one.limit =
                self.repository_setting(&one.repository, "max_snapshot_bytes_per_sec").await?;
            let before = self.last.snapshots.iter().find(|other| is_as_before(one, other));
            let since_ms = self.snapshots_at.map_or(0, |at| (now - at).as_millis() as u64);
            one.still_ms = before.map(|other| other.still_ms.unwrap_or(0) + since_ms);
        }
        (self.last.snapshots, self.snapshots_at) = (found, Some(now));
        Ok(())
    }

    async fn hot_threads(&mut self) -> Result<Vec<record::observation::HotThreads>, Error> {
        if self.last.cluster.flavour == "narrows" {
            return Ok(Vec::new());
        }
        let path = "/_nodes/hot_threads?threads=5&interval=300ms";
        match self.client.text(path).await {
            Ok(text) => Ok(parse::hot_threads(&text)),
            Err(error) => {
                self.lose("/_nodes/hot_threads", error).await?;
                Ok(Vec::new())
            }
        }
    }
}

/// Whether a snapshot is where another look found it.
fn is_as_before(one: &Snapshot, before: &Snapshot) -> bool {
    let told = |one: &Snapshot| (one.written_bytes, one.shards_done);
    (&one.repository, &one.name) == (&before.repository, &before.name) && told(one) == told(before)
}
