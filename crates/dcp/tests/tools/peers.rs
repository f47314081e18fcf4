//! Independent clients against our server, and our consumer against a producer on somebody else's codec.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::capture::{self, Capture};
use crate::common::{Bench, PASSWORD, USER, options_to, settings};
use bytes::Bytes;
use dcp::bucket::{Bucket, Condition};
use dcp::client::{Client, ClientOptions};
use dcp::codec::{VbucketState, Write};
use dcp::consumer::{Consumer, ConsumerKind, Counts, Event, Follower, Sink};
use testbed::CannotRun;
use tokio::io::{AsyncBufReadExt, BufReader};
use world::Env;

const VBUCKETS: u16 = 16;

/// Runs a command that fetches what others publish.
fn fetch(command: &mut Command, what: &str) -> Result<(), CannotRun> {
    let done = command.stdin(Stdio::null()).output().unwrap();
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stdout, done.stderr].concat();
    Err(CannotRun(format!("{what}: {}", String::from_utf8_lossy(&said))))
}

/// The Go program, built once.
fn go_peer() -> Result<PathBuf, CannotRun> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(built) = &*built {
        return Ok(built.clone());
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dcp-peers");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/go");
    let mut go = Command::new("go");
    go.arg("build").arg("-o").arg(&out).arg(".").current_dir(source);
    fetch(&mut go, "go does not build Couchbase's clients")?;
    Ok(built.insert(out).clone())
}

/// The class path of Couchbase's Java client.
fn java_class_path() -> Result<String, CannotRun> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dcp-client.classpath");
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:build-classpath", "-f"]).arg(java_source("pom.xml"));
    maven.arg(format!("-Dmdep.outputFile={}", out.display()));
    fetch(&mut maven, "mvn does not fetch Couchbase's Java client")?;
    Ok(std::fs::read_to_string(out).unwrap())
}

fn java_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/java").join(name)
}

/// What a peer saw of one vbucket.
#[derive(Debug, Default)]
struct Seen {
    documents: BTreeMap<String, (u32, String)>,
    items: u64,
    last: u64,
    snap_end: u64,
    uuid: u64,
    ended: bool,
}

/// Reads what a peer printed; numbers of a vbucket must rise, within snapshots.
fn read_seen(text: &str) -> BTreeMap<u16, Seen> {
    let mut all: BTreeMap<u16, Seen> = BTreeMap::new();
    for line in text.lines().filter(|line| *line != "done") {
        let mut words = line.splitn(6, ' ');
        let kind = words.next().unwrap();
        let seen = all.entry(words.next().unwrap().parse().expect(line)).or_default();
        let mut number = || words.next().unwrap_or_default().parse::<u64>().ok();
        match kind {
            "opened" => seen.uuid = number().and(number()).expect(line),
            "marker" => seen.snap_end = number().and(number()).expect(line),
            "mutation" | "deletion" | "expiration" => {
                let seqno = number().expect(line);
                assert!(seqno > seen.last && seqno <= seen.snap_end, "{line} after {seen:?}");
                (seen.last, seen.items) = (seqno, seen.items + 1);
                let key = words.next().expect(line).to_owned();
                match kind {
                    "mutation" => {
                        let flags = words.next().expect(line).parse().expect(line);
                        let value = words.next().unwrap_or_default().to_owned();
                        seen.documents.insert(key, (flags, value));
                    }
                    _ => drop(seen.documents.remove(&key)),
                }
            }
            "end" => {
                assert_eq!(number(), None);
                assert!(line.ends_with("<nil>"), "{line}");
                seen.ended = true;
            }
            _ => panic!("{line}"),
        }
    }
    all
}

/// A bench with documents on disk and in memory, deletions and expirations.
async fn filled(env: &Env) -> Bench {
    let bench = Bench::start(env, settings(VBUCKETS, 8 << 20)).await;
    bench.fill(0..6000, 700).await;
    for n in (0..600).step_by(7) {
        bench.bucket.delete(n % VBUCKETS, format!("key{n}").as_bytes(), 0).unwrap();
    }
    let now_s = (env.epoch_ms() / 1000) as u32;
    for vb in 0..VBUCKETS {
        let write = Write {
            flags: 0,
            expiry: now_s - 5,
            key: Bytes::from_static(b"old"),
            value: Bytes::from_static(b"x"),
        };
        bench.bucket.write(vb, write, 0, 0, Condition::Always).unwrap();
        assert!(bench.bucket.get(vb, b"old").await.is_err());
    }
    assert!(bench.bucket.stats().expelled_bytes > 0, "nothing has to come from disk");
    bench
}

async fn check_seen(bucket: &Bucket, text: &str) {
    let all = read_seen(text);
    assert_eq!(all.len(), usize::from(VBUCKETS));
    let mut documents = 0;
    for (vb, seen) in all {
        assert!(seen.ended, "the stream of {vb} did not end");
        assert_eq!(Some(seen.last), bucket.high_seqno(vb));
        assert_eq!(seen.uuid, bucket.failover_log(vb).unwrap()[0].uuid);
        documents += seen.documents.len() as u64;
        for (key, (flags, value)) in seen.documents {
            let here = bucket.get(vb, key.as_bytes()).await.expect(&key);
            assert_eq!((flags, value.as_bytes()), (here.flags, &here.value[..]), "{key}");
        }
    }
    assert_eq!(documents, bucket.documents());
}

/// Runs a peer to its end beside the server.
async fn run_peer(env: &Env, program: &Path, args: &[&str]) -> String {
    let mut command = tokio::process::Command::new(program);
    command.args(args).env("PEER_USER", USER).env("PEER_PASSWORD", PASSWORD).kill_on_drop(true);
    let running = command.stdin(Stdio::null()).output();
    let done = env.timeout(Duration::from_secs(600), running).await;
    let done = done.expect("the peer does not end").unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {errors}");
    String::from_utf8(done.stdout).unwrap()
}

fn stream_through(mode: &str) -> Result<(), CannotRun> {
    let program = go_peer()?;
    world::real_world::run(7, async |env| {
        let bench = filled(&env).await;
        let seen = run_peer(&env, &program, &[mode, bench.server.address(), "example"]).await;
        check_seen(&bench.bucket, &seen).await;
    });
    Ok(())
}

pub fn gocbcore_streams_everything() -> Result<(), CannotRun> {
    stream_through("gocbcore")
}

pub fn gomemcached_streams_everything() -> Result<(), CannotRun> {
    stream_through("gomemcached")
}

/// Couchbase's own Java client: SCRAM, the manifest that is refused, sequence numbers, streams, a window.
pub fn couchbases_java_client_streams_everything() -> Result<(), CannotRun> {
    let class_path = java_class_path()?;
    world::real_world::run(7, async |env| {
        let bench = filled(&env).await;
        let source = java_source("Streams.java");
        let address = bench.server.address();
        let args = ["-cp", &class_path, source.to_str().unwrap(), address, "example"];
        let seen = run_peer(&env, Path::new("java"), &args).await;
        check_seen(&bench.bucket, &seen).await;
    });
    Ok(())
}

/// Our consumer reads what a producer on gomemcached's codec writes, which stops wherever its window is full.
pub fn our_consumer_reads_a_producer_on_another_codec() -> Result<(), CannotRun> {
    let program = go_peer()?;
    world::real_world::run(7, async |env| {
        for kind in [ConsumerKind::Mainstream, ConsumerKind::Batching, ConsumerKind::Fast] {
            let mut command = tokio::process::Command::new(&program);
            command.args(["producer", "4", "2000"]).stdout(Stdio::piped()).kill_on_drop(true);
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let address = lines.next_line().await.unwrap().unwrap();
            let options = ClientOptions { bucket: "any".to_owned(), ..options_to(address) };
            let mut client = Client::connect(&env, &options).await.unwrap();
            assert_eq!(
                client.active_seqnos().await.unwrap(),
                (0..4).map(|vb| (vb, 2000)).collect()
            );
            let bench = Bench::start(&env, settings(4, 64 << 20)).await;
            (0..4).for_each(|vb| bench.bucket.set_state(vb, VbucketState::Replica).unwrap());
            let counts = Counts::default();
            let sink = match kind {
                ConsumerKind::Fast => Sink::Count(counts.clone()),
                _ => Sink::Bucket(bench.bucket.clone()),
            };
            let consumer = Consumer::new(&env, kind, sink, 4000);
            let mut follower = Follower::open(&env, client, "ours", consumer, 4000).await.unwrap();
            // One after another: the producer has one stream at a time.
            for vb in 0..4 {
                follower.add_stream(vb, 0).unwrap();
                loop {
                    match follower.step().await.unwrap() {
                        Some(Event::Ended { vb: ended, .. }) if ended == vb => break,
                        Some(Event::Opened { .. }) | None => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            let stats = follower.consumer().stats();
            assert_eq!(stats.items, 8000);
            for vb in 0..4 {
                match kind {
                    ConsumerKind::Fast => assert_eq!(counts.of(vb).items(), 2000),
                    _ => {
                        assert_eq!(bench.bucket.high_seqno(vb), Some(2000));
                        bench.bucket.set_state(vb, VbucketState::Active).unwrap();
                        let read = bench.bucket.get(vb, b"key77").await.unwrap();
                        assert_eq!(read.value, format!("value 77 of {vb}"));
                        assert_eq!(read.flags, 9);
                    }
                }
            }
            drop(follower);
            // The codec says things of its own in between.
            let mut end = String::new();
            while !end.starts_with("done") {
                end = lines.next_line().await.unwrap().expect("the producer ends well");
            }
            assert!(child.wait().await.unwrap().success());
        }
    });
    Ok(())
}

/// The couchbase package from PyPI: it finds vbuckets by the configuration, and wants errors as it knows them.
pub fn pythons_couchbase_writes_reads_and_deletes() {
    world::real_world::run(7, async |env| {
        let bench = Bench::start(&env, settings(64, 64 << 20)).await;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python/documents.py");
        let script = script.to_str().unwrap();
        let args = [script, bench.server.address(), "example", "200"];
        let said = run_peer(&env, Path::new(&testbed::tools::python()), &args).await;
        assert_eq!(said.trim(), "done");
        assert_eq!(bench.bucket.documents(), 100);
        let vb = dcp::bucket::vbucket_of(b"python1", 64);
        assert_eq!(bench.bucket.get(vb, b"python1").await.unwrap().value, r#"{"number": 1}"#);
    });
}

/// Wireshark's dissector reads all that goes over a connection: authentication, documents, streams, refusals.
pub fn tshark_finds_nothing_malformed() {
    world::real_world::run(7, async |env| {
        let bench = Bench::start(&env, settings(4, 64 << 20)).await;
        bench.fill(0..200, 60).await;
        bench.bucket.delete(0, b"key4", 0).unwrap();
        let capture = Capture::start(&env, bench.server.address()).await;
        let options = ClientOptions { address: capture.address().to_owned(), ..bench.options() };
        let mut client = Client::connect(&env, &options).await.unwrap();
        client.set(1, "written", "here".into()).await.unwrap().unwrap();
        assert_eq!(client.get(1, "written").await.unwrap(), Some("here".into()));
        assert_eq!(client.get(1, "not there").await.unwrap(), None);
        client.stats("vbucket-seqno").await.unwrap();
        client.active_seqnos().await.unwrap();
        let consumer =
            Consumer::new(&env, ConsumerKind::Fast, Sink::Count(Counts::default()), 3000);
        let mut follower = Follower::open(&env, client, "seen", consumer, 3000).await.unwrap();
        for vb in [0, 1, 2, 3, 9] {
            follower.add_stream(vb, dcp::codec::STREAM_TO_LATEST).unwrap();
        }
        while follower.consumer().streams().next().is_some() {
            follower.step().await.unwrap();
        }
        assert_eq!(follower.consumer().stats().items, 201);
        drop(follower);
        let file = tempfile::Builder::new().suffix(".pcap").tempfile().unwrap();
        std::fs::write(file.path(), capture.pcap()).unwrap();
        let mut tshark = tokio::process::Command::new("tshark");
        let port = format!("tcp.port=={},couchbase", capture::SERVER_PORT);
        tshark.arg("-r").arg(file.path()).args(["-d", &port, "-V"]);
        let read = tshark.output().await.unwrap();
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        for wrong in
            ["Malformed", "Illegal", "Unknown opcode", "Unreassembled", "[Expert Info (Error"]
        {
            let at = text
                .find(wrong)
                .map(|at| &text[at.saturating_sub(1500)..(at + 200).min(text.len())]);
            assert_eq!(at, None, "{wrong}");
        }
        let count = |what: &str| text.matches(what).count();
        let mutations = count("Opcode: DCP Mutation") + count("Opcode: DCP (Key) Mutation");
        assert_eq!(mutations, 200, "tshark read {} packets", count("Couchbase Protocol"));
        assert!(count("SASL") > 0 && count("Snapshot Marker") > 0);
    });
}
