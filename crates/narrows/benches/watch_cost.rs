//! What one look a second costs the nodes that are looked at: CPU time of their threads in spans with and without
//! looks, in turn, so that what they do by themselves cancels out.
//!
//! A JVM's compilers of bytecode are counted apart: they work on what is asked for some thousand times, and then never
//! again, but that is spread over hours of looks.
//!
//! ```text
//! cargo bench -p narrows --bench watch_cost -- embedded 10 20
//! ```
//! `page` measures the other side: what `watch` itself takes of this machine where a cluster of 300 nodes and 20 000
//! shards answers it, with lines, with a page, and with figures for Prometheus: `-- page SECONDS`. `-- serve` is that
//! cluster alone, for a profile of whoever watches it.
//!
//! `opensearch` or `embedded`, how many pairs of spans, and how many seconds each takes; `recovering` as the fourth has
//! a throttled recovery go on all the while.

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clusters::live::{Address, Depth, LiveClient, LiveOptions, Sampler, TlsOptions};
use clusters::{Clusters, Credentials, EmbeddedClusters, OpenSearchClusters, TopologySpec};
use common::large::Large;
use common::started::{ask, fill};
use common::watched::Watched;
use insight::stats::{mean, median, median_interval};
use serde_json::json;
use testbed::bench::Table;
use world::Env;

const NODES: usize = 2;
/// A JVM that has just started interprets what it answers with: so many looks at everything, one after another, until
/// most of what it does for a look is compiled.
const WARM_LOOKS: u32 = 3000;
/// Compilers of bytecode are at work for so long afterwards.
const WARM_S: u64 = 20;
/// Until everything was asked for at least twice.
const SETTLED_S: u64 = 25;
/// Until a page has all the frames that it keeps: one a look at first.
const FULL_S: u64 = 480;
/// Names of their threads begin so.
const COMPILERS: [&str; 2] = ["C1 Compiler", "C2 Compiler"];

const TABLE: Table = Table {
    page: "watch_cost",
    name: "measured",
    columns: &[
        "on",
        "state",
        "the nodes' own threads, % of a core",
        "mean",
        "their compilers",
        "idle",
        "requests",
        "bytes",
    ],
};

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number = |n: usize, default| arguments.get(n).map_or(default, |a| a.parse().unwrap());
    let (pairs, seconds) = (number(1, 5), number(2, 20));
    match arguments.first().map(String::as_str) {
        Some("page") => return pages(number(1, 60)),
        Some("serve") => {
            println!("{}", large());
            loop {
                std::thread::park();
            }
        }
        _ => {}
    }
    let recovers = arguments.get(3).is_some_and(|word| word == "recovering");
    world::real_world::run(1, async |env| match arguments.first().map(String::as_str) {
        Some("opensearch") => {
            let target = OpenSearchClusters::new(&env);
            measure(&env, target, pairs, seconds, recovers).await;
        }
        _ => {
            let target = EmbeddedClusters::new(&env, PathBuf::from(env!("CARGO_BIN_EXE_narrows")));
            measure(&env, target, pairs, seconds, recovers).await;
        }
    });
}

const OWN_TABLE: Table = Table {
    page: "watch_cost",
    name: "own",
    columns: &["watched by", "% of a core", "memory at most, MB", "sent to each page, KB a look"],
};

fn large() -> String {
    Large::start(300, 20_000, 60, 900)
}

/// What `watch` itself takes, on a cluster that is not there.
fn pages(seconds: u64) {
    let url = large();
    OWN_TABLE.begin();
    let web = ["--web", "127.0.0.1:0"];
    let figures = ["--serve-metrics", "127.0.0.1:0"];
    own("lines (`--plain`)", &url, &["--plain"], 0, SETTLED_S, seconds);
    own("`--web`, no page open", &url, &web, 0, SETTLED_S, seconds);
    own("`--web`, one page open", &url, &web, 1, SETTLED_S, seconds);
    own("`--web`, five pages open", &url, &web, 5, SETTLED_S, seconds);
    own("`--serve-metrics`, asked every second", &url, &figures, 1, SETTLED_S, seconds);
    own("`--web`, one page open, with all its 450 frames", &url, &web, 1, FULL_S, seconds);
}

fn own(name: &str, url: &str, arguments: &[&str], pages: usize, settles_s: u64, seconds: u64) {
    let watched = Watched::start(&[&[url], arguments].concat());
    let pid = watched.child.id();
    let sent = Arc::new(AtomicU64::new(0));
    for _ in 0..pages {
        let (address, sent) = (watched.address().to_owned(), sent.clone());
        let is_page = arguments[0] == "--web";
        std::thread::spawn(move || if is_page { page(&address, &sent) } else { scraped(&address) });
    }
    std::thread::sleep(Duration::from_secs(settles_s));
    let (before, sent_before) = (threads(&[pid]), sent.load(Relaxed));
    std::thread::sleep(Duration::from_secs(seconds));
    let [used, _] = used_s(&before, &threads(&[pid]));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most_kib: f64 = most.trim().split(' ').next().unwrap().parse().unwrap();
    let each = (sent.load(Relaxed) - sent_before) as f64 / pages.max(1) as f64;
    OWN_TABLE.row(&[
        name.to_owned(),
        format!("{:.2}", used / seconds as f64 * 100.0),
        format!("{:.0}", most_kib * 1024.0 / 1e6),
        if each > 0.0 { format!("{:.0}", each / seconds as f64 / 1e3) } else { "-".to_owned() },
    ]);
}

/// Reads events until they end.
fn page(address: &str, sent: &AtomicU64) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read) = stream.read(&mut buffer)
        && read > 0
    {
        sent.fetch_add(read as u64, Relaxed);
    }
}

/// Asks every second until nobody answers.
fn scraped(address: &str) {
    while let Ok(mut stream) = TcpStream::connect(address) {
        let _ = write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
        std::thread::sleep(Duration::from_secs(1));
    }
}

async fn measure<T: Clusters>(env: &Env, mut target: T, pairs: u64, seconds: u64, recovers: bool) {
    target.start(&TopologySpec::alone("c", NODES)).await.unwrap();
    if recovers {
        begin_recovery(&target).await;
    }
    let nodes = target.nodes("c");
    let pids: Vec<u32> = nodes.iter().filter_map(|node| target.process_id(&node.name)).collect();
    assert_eq!(pids.len(), NODES);
    let urls: Vec<&str> = nodes.iter().map(|node| node.http.as_str()).collect();
    let options = LiveOptions {
        addresses: Address::parse_all(urls).unwrap(),
        credentials: Credentials::None,
        tls: TlsOptions::default(),
        timeout: Duration::from_secs(10),
    };
    let client = LiveClient::new(env, &options).unwrap();
    let mut sampler = Sampler::connect(client).await.unwrap();
    let warm_s = if target.name() == "opensearch" { WARM_S } else { 5 };
    if target.name() == "opensearch" {
        for _ in 0..WARM_LOOKS {
            sampler.look(Depth::Full).await.unwrap();
        }
    }
    look_for(env, &mut sampler, warm_s).await;
    let (mut costs, mut compiling, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (mut with, mut without) = ([0.0; 2], [0.0; 2]);
        // Which comes first changes from pair to pair.
        for looks in [pair % 2 == 0, pair % 2 != 0] {
            let before = threads(&pids);
            if looks {
                look_for(env, &mut sampler, seconds).await;
                with = used_s(&before, &threads(&pids));
            } else {
                env.sleep(Duration::from_secs(seconds)).await;
                without = used_s(&before, &threads(&pids));
            }
        }
        let percent = |used_s: f64| used_s / seconds as f64 * 100.0;
        eprintln!(
            "{:.2} % of a core with, {:.2} % without; compilers {:.2} %, {:.2} %",
            percent(with[0]),
            percent(without[0]),
            percent(with[1]),
            percent(without[1])
        );
        costs.push(percent(with[0] - without[0]));
        compiling.push(percent(with[1] - without[1]));
        idle.push(percent(without[0]));
    }
    let (requests, bytes) = sampler.client().cost();
    let interval = median_interval(&costs, 1).map_or_else(String::new, |interval| {
        format!(" ({:.2} to {:.2})", interval.low, interval.high)
    });
    TABLE.begin();
    let middle = |all: &[f64]| format!("{:.2}", median(all).unwrap_or(f64::NAN));
    TABLE.row(&[
        target.name().to_owned(),
        if recovers { "one recovery under way" } else { "nothing recovers" }.to_owned(),
        format!("{}{interval}", middle(&costs)),
        format!("{:.2}", mean(&costs).unwrap_or(f64::NAN)),
        middle(&compiling),
        middle(&idle),
        requests.to_string(),
        bytes.to_string(),
    ]);
    target.stop().await;
}

/// A replica that takes hours to come.
async fn begin_recovery<T: Clusters>(target: &T) {
    let limit = json!({"persistent": {"indices.recovery.max_bytes_per_sec": "20kb"}});
    ask(target, "c", "PUT", "/_cluster/settings", limit).await;
    fill(target, "c", "noise", 1, 4000).await;
    ask(target, "c", "PUT", "/noise/_settings", json!({"number_of_replicas": 1})).await;
}

async fn look_for(env: &Env, sampler: &mut Sampler, seconds: u64) {
    let mut next = env.now();
    for _ in 0..seconds {
        sampler.look(Depth::Light).await.unwrap();
        next = next + Duration::from_secs(1);
        env.sleep_until(next).await;
    }
}

/// CPU time of each thread of processes so far, in seconds, and its name.
fn threads(pids: &[u32]) -> BTreeMap<PathBuf, (String, f64)> {
    let tasks = pids.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).unwrap());
    let one = |task: std::io::Result<std::fs::DirEntry>| {
        let dir = task.ok()?.path();
        // A thread may end in between.
        let name = std::fs::read_to_string(dir.join("comm")).ok()?;
        let times = std::fs::read_to_string(dir.join("schedstat")).ok()?;
        let ns: f64 = times.split(' ').next()?.parse().ok()?;
        Some((dir, (name, ns / 1e9)))
    };
    tasks.filter_map(one).collect()
}

/// CPU seconds between: of all threads but compilers, and of those.
fn used_s(
    before: &BTreeMap<PathBuf, (String, f64)>,
    after: &BTreeMap<PathBuf, (String, f64)>,
) -> [f64; 2] {
    let mut used_s = [0.0; 2];
    for (task, (name, now_s)) in after {
        let compiles = COMPILERS.iter().any(|start| name.starts_with(start));
        used_s[usize::from(compiles)] +=
            now_s - before.get(task).map_or(0.0, |(_, then_s)| *then_s);
    }
    used_s
}
