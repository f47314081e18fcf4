//! How fast a follower follows over 100 ms and 1 Gbit/s, beside what it can index locally and what the link carries;
//! and its memory while the link is cut under full indexing, and after. The leader, which indexes the same documents,
//! tells how much of that is the index's.
//!
//! `cargo bench -p narrows --bench following`: one node on each side. A follower is paused while the leader is filled,
//! and resumed: everything comes as operations. The same documents were indexed on the follower's node directly before.
//! The follower has a core of its own both times, and everything else another one: what a follower can do does not
//! depend on how busy its leader's machine is. Both times end when all is searchable: the index library may have queued
//! much of it. `of local, CPU` compares the core time of the follower's node for each document. NARROWS_SCALE
//! multiplies the documents, NARROWS_LAPS repeats, NARROWS_CUT_SECONDS is how long the link is cut (0: not),
//! NARROWS_CORPUS names the only documents that are taken.

mod common;

use std::cell::Cell;
use std::time::{Duration, Instant};

use clusters::{Clusters, EmbeddedClusters};
use lab::corpus::Corpus;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::{Direction, Env, LinkConfig};

use crate::common::anonymous;

const RTT: Duration = Duration::from_millis(100);
const RATE_BYTES_PER_S: u64 = 125_000_000;
const SHARDS: u32 = 3;
const CLIENTS: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Documents at scale 1, and of a bulk request.
const CORPORA: [(Corpus, u64, u64); 3] = [
    (Corpus::Geopoint, 3_000_000, 5000),
    (Corpus::HttpLogs, 1_500_000, 5000),
    (Corpus::Pmc, 12_000, 50),
];

const SPEED: Table = Table {
    page: "following",
    name: "measured",
    columns: &[
        "documents", "count", "local, 1/s", "follow, 1/s", "of local", "of local, core time",
        "of the link", "of the lesser",
    ],
};

const CUT: Table = Table {
    page: "following",
    name: "cut",
    columns: &[
        "documents", "indexed", "cut, s", "caught up, s", "follower +MB", "buffers, MB",
        "leader +MB",
    ],
};

fn main() {
    let scale = common::sized("NARROWS_SCALE", 100) as f64 / 100.0;
    let laps = common::sized("NARROWS_LAPS", 1);
    let cut_s = common::sized("NARROWS_CUT_SECONDS", 60);
    let only = std::env::var("NARROWS_CORPUS").ok();
    let is_taken = |corpus: &Corpus| only.as_ref().is_none_or(|only| only == corpus.name());
    let corpora = || CORPORA.into_iter().filter(|(corpus, ..)| is_taken(corpus));
    assert!(corpora().next().is_some(), "NARROWS_CORPUS is geopoint, http_logs or pmc");
    world::real_world::run(1, async |env| {
        SPEED.begin();
        for _ in 0..laps {
            for (corpus, documents, bulk) in corpora() {
                let documents = (documents as f64 * scale) as u64;
                Bench { env: env.clone(), corpus, documents, bulk }.speed().await;
            }
        }
        if cut_s > 0 {
            CUT.begin();
            for (corpus, documents, bulk) in corpora() {
                let bench = Bench { env: env.clone(), corpus, documents, bulk };
                bench.memory(Duration::from_secs(cut_s)).await;
            }
        }
    });
}

struct Bench {
    env: Env,
    corpus: Corpus,
    documents: u64,
    bulk: u64,
}

impl Bench {
    async fn start(&self) -> EmbeddedClusters {
        let link = LinkConfig {
            rtt: RTT,
            rate_bytes_per_s: Some(RATE_BYTES_PER_S),
            ..LinkConfig::default()
        };
        let target = common::start(&self.env, &[("leader", 1), ("follower", 1)], Some(link)).await;
        give_cores();
        target
    }

    async fn speed(&self) {
        let mut target = self.start().await;
        common::create(&target, "follower", self.corpus, SHARDS).await;
        let idle = core_ms(&target).await;
        let began = Instant::now();
        self.index(&target, "follower", self.documents).await;
        make_searchable(&target).await;
        let local = began.elapsed();
        let local_core_ms = core_ms(&target).await - idle;
        common::ask(&target, "follower", "DELETE", "/a", Value::Null).await;
        self.follow(&target).await;
        common::ask(&target, "follower", "POST", "/a/_ccr/pause_follow", Value::Null).await;
        self.index(&target, "leader", self.documents).await;
        // What the leader still merges is no follower's work.
        common::ask(&target, "leader", "POST", "/a/_flush", Value::Null).await;
        self.env.sleep(Duration::from_secs(2)).await;
        let before = carried(&target);
        let idle = core_ms(&target).await;
        let began = Instant::now();
        common::ask(&target, "follower", "POST", "/a/_ccr/resume_follow", Value::Null).await;
        self.wait_for(&target, self.documents).await;
        make_searchable(&target).await;
        let follow = began.elapsed();
        let follow_core_ms = core_ms(&target).await - idle;
        let bytes = (carried(&target) - before) as f64;
        let per_s = |took: Duration| self.documents as f64 / took.as_secs_f64();
        let of_local = per_s(follow) / per_s(local);
        let of_link = bytes / follow.as_secs_f64() / RATE_BYTES_PER_S as f64;
        SPEED.row(&[
            self.corpus.name().to_owned(),
            self.documents.to_string(),
            format!("{:.0}", per_s(local)),
            format!("{:.0}", per_s(follow)),
            format!("{:.1} %", of_local * 100.0),
            format!("{:.1} %", local_core_ms / follow_core_ms * 100.0),
            format!("{:.1} %", of_link * 100.0),
            format!("{:.1} %", of_local.max(of_link) * 100.0),
        ]);
        target.stop().await;
    }

    /// Cuts the link while the leader is filled as fast as it can be; what memory that and the time after takes.
    async fn memory(&self, lasts: Duration) {
        let mut target = self.start().await;
        self.follow(&target).await;
        self.index(&target, "leader", self.documents / 20).await;
        self.wait_for(&target, self.documents / 20).await;
        let before = [anonymous(&target, "follower").await, anonymous(&target, "leader").await];
        target.link().expect("there is one").cut();
        let began = Instant::now();
        let mut indexed = self.documents / 20;
        while began.elapsed() < lasts {
            let part = self.documents / 10;
            self.index(&target, "leader", part).await;
            indexed += part;
        }
        let cut = began.elapsed();
        let most = Cell::new((0u64, 0u64, 0u64));
        let peak = |buffers: u64, follower: u64, leader: u64| {
            let (b, f, l) = most.get();
            most.set((b.max(buffers), f.max(follower), l.max(leader)));
        };
        peak(0, anonymous(&target, "follower").await, anonymous(&target, "leader").await);
        target.link().expect("there is one").heal();
        let healed = Instant::now();
        loop {
            let stats = stats(&target).await;
            let now = (anonymous(&target, "follower").await, anonymous(&target, "leader").await);
            peak(sum(&stats, "write_buffer_size_in_bytes"), now.0, now.1);
            if has(&stats) >= indexed {
                break;
            }
            self.env.sleep(LOOK_EVERY).await;
        }
        let (buffers, follower, leader) = most.get();
        let mb = |bytes: u64| bytes as f64 / 1e6;
        CUT.row(&[
            self.corpus.name().to_owned(),
            indexed.to_string(),
            format!("{:.1}", cut.as_secs_f64()),
            format!("{:.1}", healed.elapsed().as_secs_f64()),
            format!("{:.0}", mb(follower.saturating_sub(before[0]))),
            format!("{:.1}", mb(buffers)),
            format!("{:.0}", mb(leader.saturating_sub(before[1]))),
        ]);
        target.stop().await;
    }

    async fn index(&self, target: &EmbeddedClusters, cluster: &str, documents: u64) -> Duration {
        common::index(target, cluster, self.corpus, documents, CLIENTS, self.bulk).await
    }

    /// Makes an index on the leader and has the follower follow it from its first operation on.
    async fn follow(&self, target: &EmbeddedClusters) {
        common::create(target, "leader", self.corpus, SHARDS).await;
        common::connect(&self.env, target, json!({})).await;
        common::follow(target, 1).await;
    }

    async fn wait_for(&self, target: &EmbeddedClusters, operations: u64) {
        while has(&stats(target).await) < operations {
            self.env.sleep(LOOK_EVERY).await;
        }
    }
}

fn carried(target: &EmbeddedClusters) -> u64 {
    target.link().expect("there is one").stats(Direction::Back).bytes
}

async fn stats(target: &EmbeddedClusters) -> Value {
    common::ask(target, "follower", "GET", "/a/_ccr/stats", Value::Null).await
}

fn shards(stats: &Value) -> impl Iterator<Item = &Value> {
    stats["indices"][0]["shards"].as_array().into_iter().flatten()
}

fn sum(stats: &Value, name: &str) -> u64 {
    shards(stats).filter_map(|shard| shard[name].as_u64()).sum()
}

/// Operations that the follower has.
fn has(stats: &Value) -> u64 {
    let of = |shard: &Value| shard["follower_global_checkpoint"].as_i64();
    shards(stats).filter_map(of).map(|checkpoint| (checkpoint + 1) as u64).sum()
}

/// Waits until the follower has indexed what it was given.
async fn make_searchable(target: &EmbeddedClusters) {
    common::ask(target, "follower", "POST", "/a/_refresh", Value::Null).await;
}

/// Core time of the follower's node so far.
async fn core_ms(target: &EmbeddedClusters) -> f64 {
    let stats = common::ask(target, "follower", "GET", "/_nodes/stats/process", Value::Null).await;
    let nodes = stats["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter_map(|node| node["process"]["cpu"]["total_in_millis"].as_f64()).sum()
}

/// Gives the follower's node, which started last, a core of its own, and this process and the leader's node another.
/// Where there are no two cores or no `taskset`, says so.
fn give_cores() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let mut children: Vec<u32> = children
        .flat_map(|text| {
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect();
    children.sort_unstable();
    let (Some(&follower), Some(&leader)) = (children.last(), children.first()) else { return };
    let pinned = [(std::process::id(), "0"), (leader, "0"), (follower, "1")].map(|(pid, core)| {
        let mut taskset = std::process::Command::new("taskset");
        let taskset = taskset.args(["-acp", core, &pid.to_string()]);
        taskset.output().is_ok_and(|output| output.status.success())
    });
    if pinned.contains(&false) {
        eprintln!("the processes share their cores: taskset did not succeed");
    }
}
