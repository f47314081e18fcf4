//! What clients feel of slow and hostile ones beside them, and what those cost the node.
//!
//! `cargo bench -p narrows --bench hostile_peers`: honest clients search one node, alone, beside peers of one kind, and
//! alone again. The peers have a thread of their own, and whichever the node closes comes back after a second.
//! NARROWS_SECONDS sets how long each is measured.

mod common;
#[path = "common/liar.rs"]
mod liar;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clusters::{Clusters, EmbeddedClusters};
use futures_util::future::join_all;
use lab::corpus::Corpus;
use serde_json::{Value, json};
use testbed::bench::Table;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use world::Env;

use liar::Liar;

const HONEST: usize = 4;
const SEARCH: &str = "GET /a/_search?size=10 HTTP/1.1\r\nhost: localhost\r\n\r\n";
const LARGE: &str = "GET /a/_search?size=5000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
const UPLOAD: &str = "PUT /a/_doc/1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                      content-length: 90000000\r\n\r\n{";
/// Between one peer and the next: of all at once, the kernel's queue drops most before the node sees them.
const APART: Duration = Duration::from_micros(200);
/// Handles that the node and the peers are to have.
const HANDLES: &str = "65536";
const RAISED: &str = "NARROWS_HANDLES_RAISED";

const TABLE: Table = Table {
    page: "hostile_peers",
    name: "measured",
    columns: &[
        "peers",
        "how many",
        "requests/s beside them",
        "of those alone",
        "p99, ms (alone)",
        "failed",
        "memory before, during, after, MB",
        "handles before, during, after",
        "closed by the node",
    ],
};

#[derive(Clone, Copy)]
enum Kind {
    Idle,
    SlowHead,
    SlowBody,
    NeverReads,
    BreaksOff,
    Nonsense,
    /// Answers nonsense to those who follow it.
    Lies,
}

const PEERS: [(&str, Kind, usize); 8] = [
    ("idle", Kind::Idle, 10_000),
    ("idle, more than the node grants", Kind::Idle, 20_000),
    ("a byte a second of a head", Kind::SlowHead, 1_000),
    ("a byte a second of a body of 90 MB", Kind::SlowBody, 1_000),
    ("ask for 5000 hits again and again and read nothing", Kind::NeverReads, 50),
    ("break off in the middle of a body, 100 times a second each", Kind::BreaksOff, 20),
    ("send what is no HTTP, 100 times a second each", Kind::Nonsense, 20),
    ("a leader lies to so many indices, resumed each second", Kind::Lies, 20),
];

fn main() {
    // Twenty thousand connections need more handles than most shells give; a limit that cannot be raised is kept.
    if std::env::var_os(RAISED).is_none() {
        let script = format!(
            "ulimit -Hn {HANDLES} 2>/dev/null; ulimit -n $(ulimit -Hn); exec \"$0\" \"$@\""
        );
        let mut again = Command::new("bash");
        again.args(["-c", &script]).args(std::env::args_os()).env(RAISED, "1");
        eprintln!("not started again with more handles: {}", again.exec());
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    eprintln!(
        "{}",
        limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default()
    );
    let seconds = common::sized("NARROWS_SECONDS", 10);
    world::real_world::run(1, async |env| {
        let target = common::start(&env, &[("one", 1), ("leader", 1)], None).await;
        common::create(&target, "one", Corpus::Geopoint, 1).await;
        common::index(&target, "one", Corpus::Geopoint, 100_000, 2, 5000).await;
        common::settle(&target, "one").await;
        common::create(&target, "leader", Corpus::Geopoint, 1).await;
        common::index(&target, "leader", Corpus::Geopoint, 1_000, 1, 1_000).await;
        let address = target.nodes("one")[0].http.trim_start_matches("http://").to_owned();
        let mut bench = Bench { env, target, address, during: Duration::from_secs(seconds) };
        TABLE.begin();
        bench.measure().await;
        for (name, kind, count) in PEERS {
            match kind {
                Kind::Lies => bench.beside_a_liar(name, count).await,
                _ => bench.beside(name, kind, count).await,
            }
        }
        bench.target.stop().await;
    });
}

struct Bench {
    env: Env,
    target: EmbeddedClusters,
    address: String,
    during: Duration,
}

/// What honest clients had.
struct Felt {
    per_s: f64,
    p99_ms: f64,
    failed: u64,
    memory_max_mb: f64,
    handles_max: u64,
}

impl Bench {
    async fn beside(&self, name: &str, kind: Kind, count: usize) {
        let before = self.cost().await;
        let alone = self.measure().await;
        let peers = Peers::start(&self.address, kind, count);
        // A little longer than it takes until heads are given up, so that those who come back are measured, too.
        let give_up = Instant::now() + Duration::from_secs(15);
        while peers.shared.connected.load(Ordering::Relaxed) < count as u64
            && Instant::now() < give_up
        {
            self.env.sleep(Duration::from_millis(50)).await;
        }
        let felt = self.measure().await;
        let closed = peers.shared.closed.load(Ordering::Relaxed);
        peers.stop();
        self.env.sleep(Duration::from_secs(2)).await;
        let after = self.cost().await;
        let again = self.measure().await;
        row((name, count), [before, after], [alone, felt, again], closed);
    }

    /// The indices follow before they are lied to, so that they themselves are no part of what it costs.
    async fn beside_a_liar(&self, name: &str, count: usize) {
        let liar = Liar::before(&self.target.nodes("leader")[0].transport);
        let ask = async |method: &str, path: String, body: Value| {
            common::ask(&self.target, "one", method, &path, body).await
        };
        let seeds = json!({ "persistent": { "cluster.remote.leader.seeds": [liar.address] } });
        ask("PUT", "/_cluster/settings".to_owned(), seeds).await;
        for number in 0..count {
            let body = json!({
                "remote_cluster": "leader", "leader_index": "a", "read_poll_timeout": "500ms",
                "settings": { "index.number_of_replicas": 0 },
            });
            let path = format!("/follows-{number}/_ccr/follow?wait_for_active_shards=1");
            ask("PUT", path, body).await;
        }
        let before = self.cost().await;
        let alone = self.measure().await;
        liar.lie(true);
        let resuming = liar::resume(self.env.clone(), self.address.clone(), count);
        let resuming = self.env.spawn("has them follow again", resuming);
        let felt = self.measure().await;
        drop(resuming);
        liar.lie(false);
        eprintln!("{} lies were told", liar.told());
        let closed = liar.closed();
        self.env.sleep(Duration::from_secs(2)).await;
        let after = self.cost().await;
        let again = self.measure().await;
        row((name, count), [before, after], [alone, felt, again], closed);
        liar.stop();
    }

    /// Memory of the node in MB, and its handles.
    async fn cost(&self) -> (f64, u64) {
        let answer =
            common::ask(&self.target, "one", "GET", "/_nodes/stats/process", Value::Null).await;
        let nodes = answer["nodes"].as_object().expect("nodes");
        let process = &nodes.values().next().expect("a node")["process"];
        let bytes = process["mem"]["resident_in_bytes"].as_u64().expect("its memory");
        let handles = process["open_file_descriptors"].as_u64().expect("its handles");
        (bytes as f64 / 1e6, handles)
    }

    async fn measure(&self) -> Felt {
        let (latencies, failed) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0)));
        let ends = Instant::now() + self.during;
        let mut clients = Vec::new();
        for _ in 0..HONEST {
            let (address, latencies, failed) =
                (self.address.clone(), latencies.clone(), failed.clone());
            clients.push(self.env.spawn("searches", async move {
                while Instant::now() < ends {
                    if search_until(&address, ends, &latencies).await.is_err() {
                        failed.set(failed.get() + 1);
                    }
                }
            }));
        }
        let (mut memory_max_mb, mut handles_max) = (0.0_f64, 0);
        while Instant::now() < ends {
            let (mb, handles) = self.cost().await;
            (memory_max_mb, handles_max) = (memory_max_mb.max(mb), handles_max.max(handles));
            self.env.sleep(Duration::from_millis(500)).await;
        }
        join_all(clients).await;
        let mut latencies = latencies.take();
        latencies.sort_unstable_by(f64::total_cmp);
        let p99_ms = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(f64::NAN);
        let per_s = latencies.len() as f64 / self.during.as_secs_f64();
        Felt { per_s, p99_ms, failed: failed.get(), memory_max_mb, handles_max }
    }
}

fn row(
    (name, count): (&str, usize),
    [before, after]: [(f64, u64); 2],
    [alone, felt, again]: [Felt; 3],
    closed: u64,
) {
    TABLE.row(&[
        name.to_owned(),
        count.to_string(),
        format!("{:.0}", felt.per_s),
        format!("{:.2}", felt.per_s / ((alone.per_s + again.per_s) / 2.0)),
        format!("{:.2} ({:.2}, {:.2})", felt.p99_ms, alone.p99_ms, again.p99_ms),
        felt.failed.to_string(),
        format!("{:.0}, {:.0}, {:.0}", before.0, felt.memory_max_mb, after.0),
        format!("{}, {}, {}", before.1, felt.handles_max, after.1),
        closed.to_string(),
    ]);
}

/// Searches over one connection until it breaks.
async fn search_until(
    address: &str,
    ends: Instant,
    latencies: &RefCell<Vec<f64>>,
) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    stream.get_ref().set_nodelay(true)?;
    while Instant::now() < ends {
        let began = Instant::now();
        stream.get_mut().write_all(SEARCH.as_bytes()).await?;
        read_answer(&mut stream).await?;
        latencies.borrow_mut().push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

async fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    let (mut line, mut length, mut is_ok) = (String::new(), 0, false);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        is_ok |= line.starts_with("HTTP/1.1 200");
        match line.split_once(": ") {
            Some(("content-length", number)) => length = number.trim().parse().unwrap_or(0),
            _ if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    if is_ok { Ok(()) } else { Err(io::Error::other("it was refused")) }
}

/// Slow and hostile peers on a thread of their own.
struct Peers {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    stops: AtomicBool,
    connected: AtomicU64,
    closed: AtomicU64,
}

impl Peers {
    fn start(address: &str, kind: Kind, count: usize) -> Peers {
        let shared = Arc::new(Shared::default());
        let (address, inner) = (address.to_owned(), shared.clone());
        let thread = std::thread::spawn(move || {
            world::real_world::run(2, async |env| {
                let mut peers = Vec::new();
                for number in 0..count as u32 {
                    let (env2, address, shared) = (env.clone(), address.clone(), inner.clone());
                    peers.push(env.spawn("is a nuisance", async move {
                        env2.sleep(APART * number).await;
                        loop {
                            // Whatever comes of it, it comes back.
                            let _ = annoy(&env2, &address, kind, &shared).await;
                            let pause = match kind {
                                Kind::BreaksOff | Kind::Nonsense => Duration::from_millis(10),
                                _ => Duration::from_secs(1),
                            };
                            env2.sleep(pause).await;
                        }
                    }));
                }
                while !inner.stops.load(Ordering::Relaxed) {
                    env.sleep(Duration::from_millis(50)).await;
                }
            });
        });
        Peers { shared, thread }
    }

    fn stop(self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        self.thread.join().expect("peers do not panic");
    }
}

async fn annoy(env: &Env, address: &str, kind: Kind, shared: &Shared) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    shared.connected.fetch_add(1, Ordering::Relaxed);
    let annoyed = match kind {
        Kind::Idle => stream.read_u8().await.map(drop),
        Kind::SlowHead => trickle(env, &mut stream, "GET / HTTP/1.1\r\nx: ").await,
        Kind::SlowBody => trickle(env, &mut stream, UPLOAD).await,
        Kind::NeverReads => loop {
            if let Err(error) = stream.write_all(LARGE.as_bytes()).await {
                break Err(error);
            }
        },
        Kind::BreaksOff => {
            stream.write_all(UPLOAD.as_bytes()).await?;
            stream.write_all(&[b' '; 8192]).await?;
            return stream.set_zero_linger();
        }
        Kind::Nonsense => {
            stream.write_all(b"\x16\x03\x01\0\0 what is this\r\n\r\n").await?;
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await.map(drop)
        }
        Kind::Lies => return Ok(()),
    };
    shared.closed.fetch_add(1, Ordering::Relaxed);
    annoyed
}

/// Sends a byte a second until that fails.
async fn trickle(env: &Env, stream: &mut TcpStream, first: &str) -> io::Result<()> {
    stream.write_all(first.as_bytes()).await?;
    loop {
        env.sleep(Duration::from_secs(1)).await;
        stream.write_all(b" ").await?;
    }
}
