//! What one look a second costs the nodes that are looked at: CPU time of their processes in spans with and without
//! looks, in turn, so that what they do by themselves cancels out.
//!
//! ```text
//! cargo bench -p narrows --bench watch_cost -- embedded 10 20
//! ```
//! `opensearch` or `embedded`, how many pairs of spans, and how many seconds each takes; `recovering` as the fourth has a
//! throttled recovery go on all the while.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::time::Duration;

use clusters::live::{Address, Depth, LiveClient, LiveOptions, Sampler, TlsOptions};
use clusters::{ClusterSpec, Credentials, EmbeddedTarget, OpenSearchTarget, Target, TopologySpec};
use common::{noise, noise_index};
use insight::stats::{mean, median, median_interval};
use serde_json::json;
use world::Env;

const NODES: usize = 2;
/// A JVM that has just started interprets what it answers with: so many looks at everything, one after another, until
/// what it does for a look is compiled, as it is in a cluster that has been watched for an hour.
const WARM_LOOKS: u32 = 3000;
/// Compilers of bytecode are at work for so long afterwards.
const WARM_S: u64 = 20;
/// Clock ticks a second in `/proc/<pid>/stat`; Linux has 100 on every machine.
const TICKS_PER_S: f64 = 100.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |n: usize, default| arguments.get(n).map_or(default, |a| a.parse().unwrap());
    let (pairs, seconds) = (number(1, 5), number(2, 20));
    let recovers = arguments.get(3).is_some_and(|word| word == "recovering");
    world::real_world::run(1, async |env| match arguments.first().map(String::as_str) {
        Some("opensearch") => {
            let target = OpenSearchTarget::new(&env);
            measure(&env, target, pairs, seconds, recovers).await;
        }
        _ => {
            let target = EmbeddedTarget::new(&env, PathBuf::from(env!("CARGO_BIN_EXE_narrows")));
            measure(&env, target, pairs, seconds, recovers).await;
        }
    });
}

async fn measure<T: Target>(env: &Env, mut target: T, pairs: u64, seconds: u64, recovers: bool) {
    let settings = Default::default();
    let cluster = ClusterSpec { name: "c".to_owned(), nodes: NODES, settings };
    let topology = TopologySpec { clusters: vec![cluster], link: None, joined: false };
    target.start(&topology).await.unwrap();
    if recovers {
        begin_recovery(&target).await;
    }
    let nodes = target.nodes("c");
    let pids: Vec<u32> = nodes.iter().filter_map(|node| target.process_of(&node.name)).collect();
    assert_eq!(pids.len(), NODES);
    let urls: Vec<&str> = nodes.iter().map(|node| node.http.as_str()).collect();
    let options = LiveOptions {
        addresses: Address::parse_all(urls).unwrap(),
        credentials: Credentials::None,
        tls: TlsOptions::default(),
        timeout: Duration::from_secs(10),
    };
    let client = LiveClient::new(env, &options).unwrap();
    let mut sampler = Sampler::connect(env, client).await.unwrap();
    let warm_s = if target.name() == "opensearch" { WARM_S } else { 5 };
    if target.name() == "opensearch" {
        for _ in 0..WARM_LOOKS {
            sampler.look(Depth::Full).await.unwrap();
        }
    }
    look_for(env, &mut sampler, warm_s).await;
    let mut costs = Vec::new();
    let mut idle = Vec::new();
    for pair in 0..pairs {
        let (mut with, mut without) = (0.0, 0.0);
        // Which comes first changes from pair to pair.
        for looks in [pair % 2 == 0, pair % 2 != 0] {
            let before = ticks(&pids);
            if looks {
                look_for(env, &mut sampler, seconds).await;
                with = ticks(&pids) - before;
            } else {
                env.sleep(Duration::from_secs(seconds)).await;
                without = ticks(&pids) - before;
            }
        }
        let share = |ticks: f64| ticks / TICKS_PER_S / seconds as f64;
        println!(
            "{:.2} % of a core with, {:.2} % without",
            share(with) * 100.0,
            share(without) * 100.0
        );
        costs.push(share(with - without) * 100.0);
        idle.push(share(without) * 100.0);
    }
    let (requests, bytes) = sampler.client().cost();
    let interval = median_interval(&costs, 1).map_or_else(String::new, |interval| {
        format!(" ({:.2} to {:.2})", interval.low, interval.high)
    });
    println!(
        "{}, {NODES} nodes together, {}: one look a second costs {:.2} % of one core{interval}, mean {:.2}; idle {:.2} %; \
         {requests} requests, {bytes} bytes",
        target.name(),
        if recovers { "one recovery" } else { "nothing recovers" },
        median(&costs).unwrap_or(f64::NAN),
        mean(&costs).unwrap_or(f64::NAN),
        median(&idle).unwrap_or(f64::NAN),
    );
    target.stop().await;
}

/// A replica that takes hours to come.
async fn begin_recovery<T: Target>(target: &T) {
    let ask = async |method: &str, path: &str, body: String| {
        target.request("c", method, path, body.into()).await.unwrap()
    };
    let limit = json!({"persistent": {"indices.recovery.max_bytes_per_sec": "20kb"}});
    ask("PUT", "/_cluster/settings", limit.to_string()).await;
    ask("PUT", "/noise", noise_index(1).to_string()).await;
    for lines in noise(4000) {
        ask("POST", "/noise/_bulk", lines).await;
    }
    ask("POST", "/noise/_flush", String::new()).await;
    ask("PUT", "/noise/_settings", json!({"number_of_replicas": 1}).to_string()).await;
}

async fn look_for(env: &Env, sampler: &mut Sampler, seconds: u64) {
    let mut next = env.now();
    for _ in 0..seconds {
        sampler.look(Depth::Light).await.unwrap();
        next = next + Duration::from_secs(1);
        env.sleep_until(next).await;
    }
}

/// CPU time of processes, user and system, in clock ticks.
fn ticks(pids: &[u32]) -> f64 {
    let of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name in brackets may hold spaces.
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
        fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
    };
    pids.iter().map(of).sum()
}
