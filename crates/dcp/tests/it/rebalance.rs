//! Vbuckets move between servers while clients write, through both kinds of proxies, in both worlds.

use std::future::pending;
use std::time::Duration;

use crate::common::{Bench, PATIENCE, options_to, set, settings, write_until_it_moves};
use crate::wrong_servers::answered_well;
use bytes::Bytes;
use dcp::Error;
use dcp::bucket::BucketSettings;
use dcp::client::ClientOptions;
use dcp::codec::{Answer, Body, Opcode, Packet, Request, Response, Status, VbucketState};
use dcp::consumer::ConsumerKind;
use dcp::rebalance::{Path, Rebalance};
use dcp::wire::{PacketListener, Wire};
use world::Env;

testbed::both_worlds!(
    vbuckets_move_while_clients_write,
    a_fast_destination_counts_and_keeps_nothing,
    a_destination_that_keeps_its_history_does_not_roll_back,
    a_vbucket_that_is_not_there_does_not_move,
    a_server_that_goes_ends_the_move,
    a_connection_that_breaks_ends_the_move;
    simulated:
    a_bridge_between_servers_that_fall_silent_ends,
    a_copy_that_stands_still_is_given_up,
    a_takeover_that_stands_still_is_given_up,
    a_replica_that_will_never_be_persisted_is_given_up,
);

fn rebalance(from: &Bench, to: &Bench, path: Path) -> Rebalance {
    let (source, destination) = (from.options(), to.options());
    let move_overhead = Duration::from_millis(5);
    Rebalance { source, destination, path, name: "test".to_owned(), move_overhead }
}

async fn destination(env: &Env, consumer: ConsumerKind) -> Bench {
    let bench = Bench::with(env, settings(4, 64 << 20), consumer).await;
    (0..4).for_each(|vb| bench.bucket.set_state(vb, VbucketState::Dead).unwrap());
    bench
}

async fn vbuckets_move_while_clients_write(env: Env) {
    for (path, kind) in [
        (Path::Decoding, ConsumerKind::Mainstream),
        (Path::Plain, ConsumerKind::Mainstream),
        (Path::Plain, ConsumerKind::Batching),
    ] {
        let takeover_max_time = Duration::from_millis(50);
        let settings = BucketSettings { takeover_max_time, ..settings(4, 8 << 20) };
        let source = Bench::start(&env, settings).await;
        source.fill(0..6000, 500).await;
        assert!(source.bucket.stats().expelled_bytes > 0, "nothing has to come from disk");
        let to = destination(&env, kind).await;
        let rebalance = rebalance(&source, &to, path);
        let writing = write_until_it_moves(&env, &source, 3, Duration::from_micros(300)).await;
        for vb in 0..4 {
            let stats = rebalance.move_vbucket(&env, vb).await.unwrap();
            assert!(stats.bytes > 1500 * 500, "{stats:?}");
            assert_eq!(source.bucket.state(vb), Some(VbucketState::Dead));
            assert_eq!(to.bucket.state(vb), Some(VbucketState::Active));
            assert_eq!(source.bucket.high_seqno(vb), to.bucket.high_seqno(vb));
        }
        let written = writing.await.unwrap();
        for n in 0..written {
            assert!(
                to.bucket.get(3, format!("late{n}").as_bytes()).await.is_ok(),
                "late{n} of {written}"
            );
        }
        assert_eq!(to.bucket.documents(), 6000 + written);
        for n in (0..6000).step_by(97) {
            let read = to.bucket.get((n % 4) as u16, format!("key{n}").as_bytes()).await.unwrap();
            assert!(read.value.starts_with(format!("{n}-").as_bytes()), "key{n}");
        }
    }
}

async fn a_fast_destination_counts_and_keeps_nothing(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    source.fill(0..4000, 200).await;
    let to = destination(&env, ConsumerKind::Fast).await;
    let rebalance = rebalance(&source, &to, Path::Plain);
    let count = |vb| to.server.counts("example").unwrap().of(vb);
    // It keeps no failover log: the takeover's stream rolls back, and the vbucket is streamed again.
    let moved = rebalance.move_vbucket(&env, 1).await.unwrap();
    assert!(moved.packets > 2000, "{moved:?}");
    assert_eq!((count(1).items(), count(1).rollbacks), (2000, 1));
    // A replica has one stream, and nothing to roll back.
    let replication = rebalance.build_replica(&env, 2).await.unwrap();
    let built = replication.stats();
    assert!(built.packets < 1100, "{built:?}");
    assert_eq!((count(2).items(), count(2).rollbacks), (1000, 0));
    assert_eq!(source.bucket.state(2), Some(VbucketState::Active));
    assert_eq!(to.bucket.documents(), 0);
}

async fn a_destination_that_keeps_its_history_does_not_roll_back(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    source.fill(0..4000, 200).await;
    let to = destination(&env, ConsumerKind::Mainstream).await;
    let rebalance = rebalance(&source, &to, Path::Plain);
    let moved = rebalance.move_vbucket(&env, 1).await.unwrap();
    assert!(moved.packets < 1100, "{moved:?}");
    assert_eq!(to.bucket.stats().rollbacks, 0);
    // A replica follows what is written for as long as it is kept.
    let replication = rebalance.build_replica(&env, 2).await.unwrap();
    let written = source.client().await.set(2, "late", "x".into()).await.unwrap();
    assert_eq!(written, Ok(Status::Success));
    let follows = async {
        while source.bucket.high_seqno(2) != to.bucket.high_seqno(2) {
            env.sleep(Duration::from_millis(200)).await;
        }
    };
    env.timeout(PATIENCE, follows).await.expect("it follows");
    assert!(to.bucket.get(2, b"late").await.is_err(), "a replica answers no reads");
    assert_eq!(to.bucket.state(2), Some(VbucketState::Replica));
    drop(replication);
}

async fn a_vbucket_that_is_not_there_does_not_move(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    let to = destination(&env, ConsumerKind::Mainstream).await;
    source.bucket.set_state(2, VbucketState::Dead).unwrap();
    let error = rebalance(&source, &to, Path::Decoding).move_vbucket(&env, 2).await.unwrap_err();
    assert!(error.to_string().contains("NOT_MY_VBUCKET"), "{error}");
}

async fn a_server_that_goes_ends_the_move(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    source.fill(0..4000, 2000).await;
    let to = destination(&env, ConsumerKind::Mainstream).await;
    let rebalance = rebalance(&source, &to, Path::Decoding);
    let server = to.server.clone();
    drop(to.server);
    let clock = env.clone();
    let moving = rebalance.move_vbucket(&env, 0);
    let going = async {
        clock.sleep(Duration::from_millis(2)).await;
        drop(server);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        moved = moving => match moved {
            // It may have been done by then.
            Ok(_) => assert_eq!(to.bucket.state(0), Some(VbucketState::Active)),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        () = going => {}
    }
    assert!(source.client().await.stats("").await.is_ok(), "the source lives");
}

async fn a_connection_that_breaks_ends_the_move(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    source.fill(0..8000, 500).await;
    // The keys alone are too many for it: the move waits for ever.
    let to = Bench::start(&env, settings(4, 64 << 10)).await;
    to.bucket.set_state(0, VbucketState::Dead).unwrap();
    let rebalance = rebalance(&source, &to, Path::Plain);
    let breaking = async {
        while to.bucket.high_seqno(0) == Some(0) {
            env.sleep(Duration::from_millis(1)).await;
        }
        let name = "test:replication:0".into();
        let open = Body::Open { flags: 0, name, value: Bytes::new() };
        to.client().await.require(0, open).await.unwrap();
        pending::<()>().await;
    };
    let building = env.timeout(PATIENCE, rebalance.build_replica(&env, 0));
    let built = tokio::select! {
        biased;
        built = building => built.expect("it goes on waiting"),
        () = breaking => unreachable!("it is pending"),
    };
    let error = built.err().expect("there is no room for it");
    assert!(matches!(error, Error::Closed { .. } | Error::Io { .. }), "{error}");
}

/// Statistics of a source that has streamed nearly all of a vbucket.
fn few_are_left(opaque: u32) -> Vec<Packet> {
    let stats = [("status", "in-memory"), ("estimate", "0"), ("", "")].map(|(name, value)| {
        let answer = Answer::Stat { name: name.into(), value: value.into() };
        Response::new(Opcode::Stat, opaque, Status::Success, answer).packet()
    });
    stats.into()
}

/// A server that takes a second to grant what is asked for, except for requests that it passes over. By itself it says
/// nothing but NOOPs, and as a source `says_few` are left, or nothing of it.
async fn speechless(
    env: &Env,
    passes_over: Option<Opcode>,
    says_few: bool,
    noop_every: Duration,
) -> ClientOptions {
    let mut listener = PacketListener::bind(env, &env.any_address()).await.unwrap();
    let options = options_to(listener.address());
    let (passes_over, clock) = (passes_over.map(Opcode::number), env.clone());
    let serving = async move {
        loop {
            let Wire { mut incoming, mut outgoing } = listener.accept().await.unwrap();
            let env = clock.clone();
            let answering = async move {
                loop {
                    let said = match env.timeout(noop_every, incoming.next()).await {
                        Ok(Ok(Some(packet))) if Some(packet.opcode) == passes_over => continue,
                        Ok(Ok(Some(packet))) => match Opcode::of(packet.opcode) {
                            Some(Opcode::Stat) if says_few => few_are_left(packet.opaque),
                            _ => answered_well(packet).into_iter().collect(),
                        },
                        Ok(_) => return,
                        Err(_) => vec![Request::new(0, 0, Body::Noop).packet()],
                    };
                    if said.is_empty() {
                        continue;
                    }
                    env.sleep(Duration::from_secs(1)).await;
                    said.into_iter().for_each(|packet| outgoing.put(packet).unwrap());
                    if outgoing.flush().await.is_err() {
                        return;
                    }
                }
            };
            clock.spawn("answers", answering).detach();
        }
    };
    env.spawn("a speechless server", serving).detach();
    options
}

/// A move from one server that says little to another.
async fn between_speechless(
    env: &Env,
    path: Path,
    passes_over: Option<Opcode>,
    says_few: bool,
    noop_every: Duration,
) -> Rebalance {
    let source = speechless(env, None, says_few, noop_every).await;
    let destination = speechless(env, passes_over, false, noop_every).await;
    let name = "test".to_owned();
    Rebalance { source, destination, path, name, move_overhead: Duration::ZERO }
}

/// As where the power of both hosts fails: no connection closes.
async fn a_bridge_between_servers_that_fall_silent_ends(env: Env) {
    for path in [Path::Decoding, Path::Plain] {
        let rebalance =
            between_speechless(&env, path, None, false, Duration::from_secs(86_400)).await;
        let replication = rebalance.replicate(&env, &[0]).await.unwrap();
        let ended = env.timeout(Duration::from_secs(3600), replication.failure()).await;
        let error = ended.expect("it waits for ever");
        assert!(error.to_string().contains("taken for gone"), "{error}");
    }
}

/// The destination does not answer, or the source grants a stream and sends nothing.
async fn a_copy_that_stands_still_is_given_up(env: Env) {
    let noop_every = Duration::from_secs(20);
    for passes_over in [Some(Opcode::AddStream), None] {
        let rebalance = between_speechless(&env, Path::Plain, passes_over, false, noop_every).await;
        let built = env.timeout(Duration::from_secs(3600), rebalance.build_replica(&env, 0)).await;
        let error = built.expect("it waits for ever").err().expect("nothing was copied");
        assert!(error.to_string().contains("for 600 s"), "{error}");
    }
}

/// The replica is there, and the source lets the destination wait for the rest.
async fn a_takeover_that_stands_still_is_given_up(env: Env) {
    let noop_every = Duration::from_secs(20);
    let rebalance = between_speechless(&env, Path::Plain, None, true, noop_every).await;
    let moved = env.timeout(Duration::from_secs(3600), rebalance.move_vbucket(&env, 0)).await;
    let error = moved.expect("it waits for ever").expect_err("nothing was taken over");
    assert!(
        error.to_string().contains("a takeover with something else: no item for 600 s"),
        "{error}"
    );
}

/// Why a replica is not built, where something happens after a while.
async fn failed_build(env: &Env, rebalance: &Rebalance, vb: u16, happens: impl Fn()) -> String {
    let meanwhile = async {
        env.sleep(Duration::from_millis(100)).await;
        happens();
        pending::<()>().await;
    };
    tokio::select! {
        biased;
        built = rebalance.build_replica(env, vb) => built.err().expect("it was built").to_string(),
        () = meanwhile => unreachable!("it is pending"),
    }
}

async fn a_replica_that_will_never_be_persisted_is_given_up(env: Env) {
    let source = Bench::start(&env, settings(4, 64 << 20)).await;
    source.fill(0..400, 200).await;
    source.bucket.wait_all_persisted(PATIENCE).await.unwrap();
    let to = destination(&env, ConsumerKind::Mainstream).await;
    let rebalance = rebalance(&source, &to, Path::Plain);
    assert!(store::set_disk_free_bytes(&env, Some(0)));
    let full = failed_build(&env, &rebalance, 0, || ()).await;
    assert!(full.contains("SEQNO_PERSISTENCE of vbucket 0: ETMPFAIL"), "{full}");
    // The next item finds that the destination takes none any more.
    let promotes = || {
        to.bucket.set_state(1, VbucketState::Active).unwrap();
        set(&source.bucket, 1, "late", "x").unwrap();
    };
    let promoted = failed_build(&env, &rebalance, 1, promotes).await;
    assert!(promoted.contains("the stream was closed"), "{promoted}");
    let ends = || source.bucket.set_state(2, VbucketState::Dead).unwrap();
    let ended = failed_build(&env, &rebalance, 2, ends).await;
    assert!(ended.contains("moved or changed its state"), "{ended}");
    store::set_disk_free_bytes(&env, None);
}
