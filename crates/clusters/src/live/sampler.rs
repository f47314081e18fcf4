//! One look at a cluster after another, each as cheap as the moment allows.
//!
//! What changes slowly is asked every tenth time, what costs most only where something cheaper says that there is
//! something to see. Nothing that fails ends a look, save that nobody answers or that the credentials are wrong.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{Cost, Gap, Health, Identity, Node, Observation, Recovery, WaitingCopy};
use serde_json::{Value, json};
use world::Env;

use super::{LiveClient, parse, round_trips};
use crate::Error;

/// Settings, waiting copies, remotes and round trips are asked again after so many looks.
const SLOW_EVERY: u64 = 10;
/// Waiting copies of which an explanation is asked at once.
const EXPLAINED_MAX: usize = 3;
/// Indices of which an ended recovery is looked up at once.
const ENDED_MAX: usize = 5;

const RECOVERY_FILTER: &str = "*.shards.id,*.shards.type,*.shards.stage,*.shards.primary,\
    *.shards.start_time_in_millis,*.shards.total_time_in_millis,*.shards.source.name,\
    *.shards.source.repository,*.shards.target.name,*.shards.index.size,\
    *.shards.index.files.total,*.shards.index.files.recovered,*.shards.index.*throttle_time_in_millis,\
    *.shards.translog.total,*.shards.translog.recovered,*.shards.narrows.charged_ns";
const SHARD_COLUMNS: &str = "index,shard,prirep,state,node,unassigned.reason";

/// How much a look asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What a look every second can afford.
    Light,
    /// Also what threads do, how nodes see each other, and everything that changes slowly.
    Deep,
}

/// What a look cannot do without something, by what was asked.
const LOST: [(&str, &str); 7] = [
    ("/_nodes/stats", "throttle, disk, network, CPU and memory of nodes"),
    ("/_cluster/health", "whether copies wait"),
    ("/_recovery", "recoveries themselves"),
    ("/_cluster/settings", "today's settings; defaults are assumed"),
    ("/_cat/shards", "which copies wait"),
    ("/_cluster/allocation/explain", "why copies wait"),
    ("/_nodes/hot_threads", "what threads do"),
];

/// Looks at one cluster.
pub struct Sampler {
    env: Env,
    client: LiveClient,
    identity: Identity,
    looks: u64,
    /// Parts of `_nodes/stats` that this version has.
    metrics: Vec<&'static str>,
    cores: BTreeMap<String, u64>,
    seen_nodes: BTreeSet<String>,
    /// Recoveries that were active at the last look.
    active: Vec<Recovery>,
    waiting: Vec<WaitingCopy>,
    /// Counts of waiting copies when `waiting` was asked.
    counted: Option<(Option<u64>, Option<u64>)>,
    has_remotes: bool,
    follows: bool,
    gaps: BTreeMap<String, Gap>,
}

impl Sampler {
    /// Asks who answers. Fails where nobody does, where the credentials are wrong, or where it is no cluster.
    pub async fn connect(env: &Env, client: LiveClient) -> Result<Self, Error> {
        let mut gaps = BTreeMap::new();
        let identity = match client.get("/").await {
            Ok(answer) => parse::identity(&answer).ok_or_else(|| Error::NotJson {
                path: "/".to_owned(),
                reason: "JSON without version.number, so neither Elasticsearch nor OpenSearch; \
                         give the address of a node"
                    .to_owned(),
            })?,
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
            has_remotes: true,
            identity,
            looks: 0,
            metrics: parse::METRICS.to_vec(),
            cores: BTreeMap::new(),
            seen_nodes: BTreeSet::new(),
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

    /// A sentence where the version is none that this was built for.
    pub fn unfamiliar(&self) -> Option<String> {
        let major =
            self.identity.version.split('.').next().and_then(|text| text.parse::<u32>().ok());
        let known = matches!(
            (self.identity.flavour.as_str(), major),
            ("elasticsearch", Some(7..=9)) | ("opensearch", Some(1..=3)) | ("narrows", _)
        );
        let Identity { flavour, version, .. } = &self.identity;
        (!known).then(|| {
            format!(
                "{flavour} {version} was never tried with narrows (Elasticsearch 7 to 9 and OpenSearch 1 to 3 \
                 were); it is looked at all the same, and what it does not say is left out"
            )
        })
    }

    /// Looks once.
    pub async fn look(&mut self, depth: Depth) -> Result<Observation, Error> {
        let began = self.env.now();
        let (requests, bytes) = self.client.cost();
        let slow = depth == Depth::Deep || self.looks.is_multiple_of(SLOW_EVERY);
        self.looks += 1;
        let mut seen = Observation { cluster: self.identity.clone(), ..Observation::default() };
        seen.nodes = self.nodes(depth).await?;
        seen.health = self.ask("/_cluster/health", HEALTH).await?.as_ref().and_then(parse::health);
        let present: BTreeSet<String> = seen.nodes.iter().map(|node| node.name.clone()).collect();
        if !present.is_empty() {
            seen.gone = self.seen_nodes.difference(&present).cloned().collect();
            self.seen_nodes.extend(present);
        }
        seen.recoveries = self.recoveries(&seen.nodes, seen.health.as_ref()).await?;
        seen.waiting = self.waiting(seen.health.as_ref(), slow).await?;
        seen.followers = self.followers().await?;
        if slow {
            self.slow_parts(&mut seen).await?;
        }
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

    async fn slow_parts(&mut self, seen: &mut Observation) -> Result<(), Error> {
        let path = format!(
            "/_cluster/settings?include_defaults=true&flat_settings=true&filter_path={}",
            parse::SETTINGS_FILTER
        );
        let settings = self.ask("/_cluster/settings", &path).await?;
        seen.settings = settings.as_ref().map(parse::settings);
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
            seen.remotes = remotes.as_ref().map(parse::remotes).unwrap_or_default();
            // Asked again all the same: one may be added while we look.
            self.has_remotes = remotes.is_some();
        }
        seen.round_trips = round_trips::measure(&self.env, &self.client, seen).await;
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
                    let mut nodes = parse::nodes(&answer);
                    for node in &mut nodes {
                        node.cores = self.cores.get(&node.id).copied();
                    }
                    return Ok(nodes);
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
        let idle = !nodes.is_empty()
            && nodes.iter().all(|node| none(node.as_source) && none(node.as_target))
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
    ) -> Result<Vec<WaitingCopy>, Error> {
        let Some(health) = health else { return Ok(Vec::new()) };
        let counts = (health.unassigned, health.initializing);
        if counts == (Some(0), Some(0)) {
            self.waiting.clear();
            self.counted = None;
            return Ok(Vec::new());
        }
        if slow || self.counted != Some(counts) {
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

    async fn followers(&mut self) -> Result<Vec<record::observation::Follower>, Error> {
        if !self.follows {
            return Ok(Vec::new());
        }
        let is_plugin = self.identity.flavour == "opensearch";
        let path = if is_plugin { "/_plugins/_replication/follower_stats" } else { CCR };
        match self.try_ask(path).await? {
            Some(answer) if is_plugin => Ok(parse::replication(&answer)),
            Some(answer) => Ok(parse::ccr(&answer)),
            None => {
                self.follows = false;
                Ok(Vec::new())
            }
        }
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
        if ends_a_look(&error) {
            return Err(error);
        }
        let lost = LOST.iter().find(|(path, _)| *path == name).map_or("", |(_, lost)| lost);
        let gap = Gap { path: name.to_owned(), found: error.to_string(), lost: lost.to_owned() };
        self.gaps.insert(name.to_owned(), gap);
        Ok(())
    }
}

const HEALTH: &str = "/_cluster/health?filter_path=status,number_of_nodes,initializing_shards,\
    relocating_shards,unassigned_shards,delayed_unassigned_shards,number_of_pending_tasks&timeout=5s";
const CCR: &str = "/_ccr/stats?filter_path=follow_stats";
const CORES: &str = "/_nodes/os?filter_path=nodes.*.os.allocated_processors";
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

/// The name of an index in a path. Names of the field hold no slash; dates in brackets hold `<`.
fn escape(name: &str) -> String {
    name.bytes()
        .map(|b| match b {
            b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => char::from(b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect()
}
