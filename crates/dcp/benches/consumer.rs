//! How fast consumers take a bucket of 1 KiB documents in, from a producer in another process, until all is persisted.
//!
//! `cargo bench -p dcp --bench consumer [-- ITEMS]`. MB/s for each core is bytes over the core seconds of the
//! consumer's process, with what the kernel does for it.

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, options_to, set, settings};
use dcp::bucket::Bucket;
use dcp::client::Client;
use dcp::codec::VbucketState;
use dcp::consumer::{Consumer, ConsumerKind, Counts, Follower, Sink};
use testbed::bench::Table;
use world::Env;

const VBUCKETS: u16 = 4;
const VALUE_BYTES: usize = 1024;
const QUOTA_BYTES: u64 = 4 << 30;
const WINDOW_BYTES: u32 = 20 << 20;
const LONG: Duration = Duration::from_secs(600);

/// A producer with so many documents; it ends with its input.
fn serve(items: u64) {
    world::real_world::run(1, async |env| {
        let bench = Bench::start(&env, settings(VBUCKETS, QUOTA_BYTES)).await;
        let mut value = [0; VALUE_BYTES];
        for n in 0..items {
            for part in value.chunks_mut(8) {
                part.copy_from_slice(&env.random_u64().to_le_bytes());
            }
            let vb = (n % u64::from(VBUCKETS)) as u16;
            while set(&bench.bucket, vb, &format!("item-{n:012}"), &value).is_err() {
                env.sleep(Duration::from_millis(1)).await;
            }
            if n % 4096 == 0 {
                env.sleep(Duration::from_millis(1)).await;
            }
        }
        bench.bucket.wait_all_persisted(LONG).await.expect("it is persisted");
        println!("{}", bench.server.address());
        std::io::stdout().flush().expect("a reader");
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()))
            .await
            .expect("an end")
            .expect("an end");
    });
}

struct Producer {
    child: Child,
    address: String,
}

impl Drop for Producer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn producer(items: u64) -> Producer {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["serve", &items.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a producer");
    let mut address = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut address).expect("its address");
    Producer { child, address: address.trim().to_owned() }
}

/// Takes the vbuckets of one thread in; answers the bytes.
async fn take_in(
    env: Env,
    address: String,
    kind: ConsumerKind,
    vbuckets: Vec<u16>,
    dir: &Path,
) -> u64 {
    let mut client = Client::connect(&env, &options_to(address)).await.expect("a connection");
    let wanted = client.active_seqnos().await.expect("sequence numbers");
    let settings = settings(VBUCKETS, QUOTA_BYTES);
    let bucket = Bucket::open(&env, settings, dir).await.expect("a bucket");
    for vb in 0..VBUCKETS {
        bucket.set_state(vb, VbucketState::Replica).expect("a vbucket");
    }
    let counts = Counts::default();
    let sink = match kind {
        ConsumerKind::Fast => Sink::Count(counts.clone()),
        _ => Sink::Bucket(bucket.clone()),
    };
    let consumer = Consumer::new(&env, kind, sink, WINDOW_BYTES);
    let name = format!("bench-{}", vbuckets[0]);
    let mut follower =
        Follower::open(&env, client, &name, consumer, WINDOW_BYTES).await.expect("streams");
    for vb in &vbuckets {
        follower.add_stream(*vb, 0).expect("a stream");
    }
    let here = |vb: &u16| match kind {
        ConsumerKind::Fast => counts.of(*vb).at.last(),
        _ => bucket.high_seqno(*vb).unwrap_or(0),
    };
    while vbuckets.iter().any(|vb| here(vb) < wanted[vb]) {
        follower.step().await.expect("a stream that goes on");
    }
    if kind != ConsumerKind::Fast {
        for vb in &vbuckets {
            bucket.wait_persisted(*vb, wanted[vb], LONG).await.expect("it is persisted");
        }
    }
    follower.consumer().stats().bytes
}

fn run(address: &str, kind: ConsumerKind, threads: u16) {
    let cpu = || world::real_world::run(1, async |env| env.cpu_time());
    let (began, cpu_before) = (Instant::now(), cpu());
    let threads_of = (0..threads).map(|thread| {
        let address = address.to_owned();
        let vbuckets: Vec<u16> = (0..VBUCKETS).filter(|vb| vb % threads == thread).collect();
        std::thread::spawn(move || {
            let dir = tempfile::tempdir().expect("a directory");
            world::real_world::run(1, async |env| {
                take_in(env, address, kind, vbuckets, dir.path()).await
            })
        })
    });
    let running: Vec<_> = threads_of.collect();
    let bytes: u64 = running.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    let (seconds, cores) = (began.elapsed().as_secs_f64(), (cpu() - cpu_before).as_secs_f64());
    let mb = bytes as f64 / 1e6;
    TABLE.row(&[
        format!("{kind:?}, threads: {threads}"),
        format!("{mb:.0}"),
        format!("{seconds:.2}"),
        format!("{:.0}", mb / seconds),
        format!("{:.0}", mb / cores.max(1e-9)),
    ]);
}

const TABLE: Table = Table {
    page: "consumer",
    name: "measured",
    columns: &["consumer", "MB", "s", "MB/s", "MB/s for each core"],
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok()).unwrap_or(300_000);
    if args.first().is_some_and(|arg| arg == "serve") {
        return serve(number(args.get(1)));
    }
    let producer = producer(number(args.first()));
    TABLE.begin();
    for _ in 0..2 {
        for (kind, threads) in [
            (ConsumerKind::Fast, 1),
            (ConsumerKind::Mainstream, 1),
            (ConsumerKind::Batching, 1),
            (ConsumerKind::Batching, 2),
        ] {
            run(&producer.address, kind, threads);
        }
    }
}
