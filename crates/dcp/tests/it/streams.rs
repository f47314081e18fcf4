//! Streams that are taken up in the middle, have an end, are not taken, or whose vbucket changes its state.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::common::{Bench, PATIENCE, follow, persisted, reach, set, settings};
use crate::server::{all_of_it, ask, has_ended, open_raw, read_all, replica};
use bytes::Bytes;
use dcp::bucket::{BucketSettings, CheckpointLimits, ItemData, Take};
use dcp::codec::{
    Answer, Body, EndReason, FailoverEntry, Marker, Opcode, Request, Response, SNAPSHOT_DISK,
    SNAPSHOT_MEMORY, STREAM_DISK_ONLY, STREAM_TAKEOVER, STREAM_TO_LATEST, Status, StreamRequest,
    VbucketState, Version,
};
use dcp::consumer::{Consumer, ConsumerKind, Counts, Event, NOOP_INTERVAL, Sink};
use dcp::wire::Wire;
use world::Env;

testbed::both_worlds!(
    a_takeover_in_the_middle_of_a_snapshot_ends,
    a_stream_with_an_end_is_whole_at_its_last_marker,
    a_stream_with_an_end_reads_to_the_first_whole_view_alone,
    a_stream_from_a_replica_is_not_whole_before_the_replica_is,
    a_vbucket_that_is_promoted_ends_its_own_stream_alone,
    a_vbucket_that_is_promoted_while_its_stream_is_asked_for_is_refused_alone,
    a_stream_from_a_replica_ends_when_that_becomes_active,
    what_came_before_the_producer_was_gone_counts,
    an_idle_consumer_waits_for_noops_alone;
    simulated:
    a_full_disk_during_a_rollback_refuses_that_stream_alone,
    a_backfill_that_nobody_acknowledges_ends,
    a_stream_from_memory_that_nobody_acknowledges_ends,
    a_takeover_that_nobody_acknowledges_holds_up_no_clients_for_ever,
    a_takeover_that_nobody_answers_holds_up_no_clients_for_ever,
    a_producer_that_sends_beyond_its_window_while_memory_is_short_is_left,
);

/// The rest of the snapshot comes in two, the first of which is never whole: both markers are answered.
async fn a_takeover_in_the_middle_of_a_snapshot_ends(env: Env) {
    let checkpoints = CheckpointLimits { max_items: 50, max_bytes: 1 << 20 };
    let settings = BucketSettings { checkpoints, ..settings(4, 64 << 20) };
    let bench = Bench::start(&env, settings).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Mainstream).await;
    // With the first stream comes the failover log.
    follower.add_stream(0, 0).unwrap();
    while follower.step().await.unwrap() != Some(Event::Opened { vb: 0, rollbacks: 0 }) {}
    drop(follower);
    bench.fill(0..400, 100).await;
    let open = bench.bucket.open_stream(0, 0, &Rc::default()).unwrap();
    let Some(Take::Some(first)) = bench.bucket.take(0, open.cursor) else { panic!("no items") };
    bench.bucket.close_stream(0, open.cursor);
    bucket.begin_snapshot(0, Marker { start: 1, end: 60, flags: SNAPSHOT_MEMORY }).unwrap();
    bucket.apply_all(0, first.items[..25].iter().map(|item| (***item).clone())).unwrap();
    let sink = Sink::Bucket(bucket.clone());
    let kind = ConsumerKind::Mainstream;
    let mut follower = follow(&env, &bench, "moves", sink, kind, 1 << 20).await;
    follower.add_stream(0, STREAM_TAKEOVER).unwrap();
    let ends = async {
        loop {
            match follower.step().await.unwrap() {
                Some(Event::Ended { vb: 0, reason }) => return reason,
                Some(Event::Opened { vb: 0, rollbacks: 0 }) | None => {}
                Some(other) => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(env.timeout(PATIENCE, ends).await, Ok(EndReason::Ok));
    assert_eq!(bucket.state(0), Some(VbucketState::Active));
    assert_eq!((bucket.high_seqno(0), bucket.documents_of(0)), (Some(100), Some(100)));
}

/// Half of the documents are written again after the end that is asked for.
async fn a_stream_with_an_end_is_whole_at_its_last_marker(env: Env) {
    for (quota_bytes, flags) in [(64 << 20, 0), (2 << 20, 0), (2 << 20, STREAM_DISK_ONLY)] {
        let bench = Bench::start(&env, settings(1, quota_bytes)).await;
        let (end, mut history) = (3000, Vec::new());
        for n in (0..end).chain((0..end).step_by(2)) {
            let key = format!("key{n}");
            let value = format!("{}-{}", history.len(), "x".repeat(1000));
            let seqno = loop {
                match set(&bench.bucket, 0, &key, &value) {
                    Ok(seqno) => break seqno,
                    Err(_) => env.sleep(Duration::from_millis(1)).await,
                }
            };
            history.push((seqno, key, value));
        }
        persisted(&bench.bucket, 0).await;
        let from_disk = bench.bucket.stats().expelled_bytes > 0;
        assert_eq!(from_disk, quota_bytes == 2 << 20, "{quota_bytes}");
        let mut wire = open_raw(&bench, "reader", 0).await;
        let request = StreamRequest { flags, end, ..StreamRequest::default() };
        ask(&mut wire, Request::new(7, 0, Body::StreamRequest(request))).await;
        let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
        assert_eq!(bodies.last(), Some(&Body::StreamEnd { reason: EndReason::Ok }));
        let (mut view, mut whole_at, mut last) = (BTreeMap::new(), 0, 0);
        for body in bodies {
            match body {
                Body::SnapshotMarker(marker) => whole_at = marker.end,
                Body::Mutation(item) => {
                    last = item.by_seqno;
                    view.insert(item.key, item.value);
                }
                _ => {}
            }
        }
        assert!(last >= end && last == whole_at, "{last} of {whole_at}");
        let then = history.into_iter().filter(|(seqno, ..)| *seqno <= whole_at);
        let then: BTreeMap<Bytes, Bytes> =
            then.map(|(_, key, value)| (key.into(), value.into())).collect();
        assert!(view == then, "{} documents came of {}", view.len(), then.len());
    }
}

async fn a_stream_with_an_end_reads_to_the_first_whole_view_alone(env: Env) {
    let bench = Bench::start(&env, settings(1, 64 << 20)).await;
    // Each two are a round of the flusher.
    for keys in [["a", "b"], ["c", "a"]] {
        let [_, last] = keys.map(|key| set(&bench.bucket, 0, key, "x").unwrap());
        bench.bucket.wait_persisted(0, last, PATIENCE).await.unwrap();
    }
    let mut wire = open_raw(&bench, "reader", 0).await;
    let request = StreamRequest { flags: STREAM_DISK_ONLY, end: 1, ..StreamRequest::default() };
    ask(&mut wire, Request::new(7, 0, Body::StreamRequest(request))).await;
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    let [Body::SnapshotMarker(marker), Body::Mutation(a), Body::Mutation(b), last] = &bodies[..]
    else {
        panic!("{bodies:?}");
    };
    assert_eq!((marker.start, marker.end, a.by_seqno, b.by_seqno), (0, 2, 1, 2));
    assert_eq!(last, &Body::StreamEnd { reason: EndReason::Ok });
}

async fn a_stream_from_a_replica_is_not_whole_before_the_replica_is(env: Env) {
    let item = |by_seqno: u64| ItemData {
        key: format!("key{by_seqno}").into(),
        value: Bytes::from_static(b"x"),
        by_seqno,
        cas: by_seqno,
        ..ItemData::default()
    };
    for flags in [STREAM_TO_LATEST, STREAM_DISK_ONLY] {
        let bench = Bench::start(&env, settings(1, 64 << 20)).await;
        let bucket = &bench.bucket;
        bucket.set_state(0, VbucketState::Replica).unwrap();
        bucket.begin_snapshot(0, Marker { start: 1, end: 100, flags: SNAPSHOT_DISK }).unwrap();
        bucket.apply_all(0, [item(50)]).unwrap();
        bucket.wait_persisted(0, 50, PATIENCE).await.unwrap();
        let mut wire = open_raw(&bench, "reader", 0).await;
        ask(&mut wire, Request::new(7, 0, all_of_it(flags))).await;
        let (_, bodies) = read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
        let [Body::SnapshotMarker(marker), Body::Mutation(first)] = &bodies[..] else {
            panic!("{bodies:?}");
        };
        assert_eq!((marker.end, first.by_seqno), (100, 50));
        bucket.apply_all(0, [item(100)]).unwrap();
        let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
        let [Body::Mutation(last), Body::StreamEnd { reason: EndReason::Ok }] = &bodies[..] else {
            panic!("{bodies:?}");
        };
        assert_eq!(last.by_seqno, 100);
    }
}

async fn a_vbucket_that_is_promoted_ends_its_own_stream_alone(env: Env) {
    for kind in [ConsumerKind::Mainstream, ConsumerKind::Batching] {
        let bench = Bench::start(&env, settings(4, 64 << 20)).await;
        let (bucket, mut follower) = replica(&env, &bench, kind).await;
        bench.fill(0..40, 100).await;
        [0, 1].iter().for_each(|vb| follower.add_stream(*vb, 0).unwrap());
        reach(&mut follower, &bucket, 0, Some(10)).await;
        reach(&mut follower, &bucket, 1, Some(10)).await;
        bucket.set_state(0, VbucketState::Active).unwrap();
        bench.fill(40..80, 100).await;
        let (ended, mut events) = (Event::Ended { vb: 0, reason: EndReason::State }, Vec::new());
        while bucket.high_seqno(1) != Some(20) || !events.contains(&ended) {
            events.extend(follower.step().await.unwrap());
        }
        assert_eq!(bucket.high_seqno(0), Some(10));
        // The producer is told, too.
        bench.fill(80..84, 100).await;
        reach(&mut follower, &bucket, 1, Some(21)).await;
        let mut client = bench.client().await;
        while client.stats("dcp").await.unwrap()["eq_dcpq:replication:num_streams"] != "1" {
            env.sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn a_vbucket_that_is_promoted_while_its_stream_is_asked_for_is_refused_alone(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..40, 100).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Mainstream).await;
    [0, 1].iter().for_each(|vb| follower.add_stream(*vb, 0).unwrap());
    bucket.set_state(0, VbucketState::Active).unwrap();
    let log = bucket.failover_log(0);
    let mut events = Vec::new();
    while bucket.high_seqno(1) != Some(10) {
        events.extend(follower.step().await.unwrap());
    }
    let status = Status::NotMyVbucket.name().to_owned();
    assert!(events.contains(&Event::Refused { vb: 0, status }), "{events:?}");
    assert_eq!((bucket.high_seqno(0), bucket.failover_log(0)), (Some(0), log));
}

async fn a_stream_from_a_replica_ends_when_that_becomes_active(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..40, 100).await;
    bench.bucket.set_state(0, VbucketState::Replica).unwrap();
    let mut wire = open_raw(&bench, "reader", 0).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(0))).await;
    let (_, bodies) = read_all(&env, &mut wire, |bodies| bodies.len() >= 11).await;
    assert_eq!(bodies.len(), 11, "a marker and ten items");
    bench.bucket.set_state(0, VbucketState::Active).unwrap();
    set(&bench.bucket, 0, "key0", "of another history").unwrap();
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    assert_eq!(bodies, [Body::StreamEnd { reason: EndReason::State }]);
}

/// It goes while the server has its NOOPs to answer, of which there are more than are handled together.
async fn what_came_before_the_producer_was_gone_counts(env: Env) {
    let bench = Bench::start(&env, settings(1, 64 << 20)).await;
    bench.bucket.set_state(0, VbucketState::Replica).unwrap();
    let mut client = bench.client().await;
    let open = Body::Open { flags: 0, name: "producer".into(), value: Bytes::new() };
    client.require(0, open).await.unwrap();
    let mut wire = client.into_wire();
    ask(&mut wire, Request::new(1000, 0, Body::AddStream { flags: 0 })).await;
    let opaque = loop {
        let packet = wire.incoming.expect("before it asked for a stream").await.unwrap();
        if packet.opcode == Opcode::StreamRequest.number() {
            break packet.opaque;
        }
    };
    let log = Answer::FailoverLog(vec![FailoverEntry { uuid: 5, seqno: 0 }]);
    let granted = Response::new(Opcode::StreamRequest, opaque, Status::Success, log).packet();
    wire.outgoing.put(granted).unwrap();
    wire.outgoing.flush().await.unwrap();
    let added = wire.incoming.expect("before it had its stream").await.unwrap();
    assert_eq!(added.opcode, Opcode::AddStream.number());
    let items = (1..=10).map(|by_seqno| {
        let key = format!("key{by_seqno}").into();
        Body::Mutation(Version { by_seqno, key, ..Version::default() })
    });
    let marker = Body::SnapshotMarker(Marker { start: 0, end: 10, flags: SNAPSHOT_MEMORY });
    for body in (0..2048).map(|_| Body::Noop).chain([marker]).chain(items) {
        wire.outgoing.put(Request::new(opaque, 0, body).packet()).unwrap();
    }
    wire.outgoing.flush().await.unwrap();
    drop(wire);
    let comes = async {
        while bench.bucket.high_seqno(0) != Some(10) {
            env.sleep(Duration::from_millis(10)).await;
        }
    };
    env.timeout(PATIENCE, comes).await.expect("what it sent last is lost");
}

async fn an_idle_consumer_waits_for_noops_alone(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut wire = Wire::connect(&env, bench.server.address(), None).await.unwrap();
    let window_bytes = 1 << 20;
    let sink = Sink::Count(Counts::default());
    let mut consumer = Consumer::new(&env, ConsumerKind::Fast, sink, window_bytes);
    assert_eq!(consumer.run_due(&mut wire.outgoing).await.unwrap(), None);
    let began = env.now();
    consumer.controls(window_bytes);
    let until = consumer.run_due(&mut wire.outgoing).await.unwrap().expect("silence has an end");
    assert!(until >= began + 2 * NOOP_INTERVAL, "{until:?}");
}

async fn a_full_disk_during_a_rollback_refuses_that_stream_alone(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..8, 100).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Mainstream).await;
    bucket.set_state(0, VbucketState::Active).unwrap();
    set(&bucket, 0, "key", "of another history").unwrap();
    bucket.set_state(0, VbucketState::Replica).unwrap();
    env.sleep(Duration::from_millis(200)).await;
    assert!(store::set_disk_free_bytes(&env, Some(0)));
    [0, 1].iter().for_each(|vb| follower.add_stream(*vb, 0).unwrap());
    let status = Status::TemporaryFailure.name().to_owned();
    let (refused, mut events) = (Event::Refused { vb: 0, status }, Vec::new());
    while bucket.high_seqno(1) != Some(2) || !events.contains(&refused) {
        events.extend(follower.step().await.unwrap());
    }
    assert_eq!(bucket.high_seqno(0), Some(1));
    store::set_disk_free_bytes(&env, None);
    follower.add_stream(0, 0).unwrap();
    reach(&mut follower, &bucket, 0, Some(2)).await;
    assert_eq!(bucket.documents_of(0), Some(2));
}

/// Files are not compacted while it reads.
async fn a_backfill_that_nobody_acknowledges_ends(env: Env) {
    let bench = Bench::start(&env, settings(1, 2 << 20)).await;
    bench.fill(0..6000, 1000).await;
    let mut wire = open_raw(&bench, "stalls", 10_000).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(0))).await;
    let (bytes, bodies) = read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
    let (Some(Body::SnapshotMarker(marker)), Some(Body::Mutation(last))) =
        (bodies.first(), bodies.last())
    else {
        panic!("{bodies:?}");
    };
    let mut client = bench.client().await;
    for (after_s, reading) in [(0, "1"), (500, "1"), (200, "0")] {
        env.sleep(Duration::from_secs(after_s)).await;
        let stats = client.stats("dcp").await.unwrap();
        assert_eq!(stats["eq_dcpq:stalls:backfill_num_active"], reading);
    }
    ask(&mut wire, Request::new(8, 0, Body::BufferAck { bytes: bytes as u32 })).await;
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    assert_eq!(bodies, [Body::StreamEnd { reason: EndReason::Slow }]);
    // It goes on where it was.
    let rest = StreamRequest {
        flags: 0,
        start: last.by_seqno,
        end: u64::MAX,
        uuid: bench.bucket.failover_log(0).unwrap()[0].uuid,
        snap_start: marker.start,
        snap_end: marker.end,
    };
    ask(&mut wire, Request::new(9, 0, Body::StreamRequest(rest))).await;
    let answered = Response::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
    assert!(answered.is(Status::Success), "{answered:?}");
}

/// What it has taken from memory stays there for as long as it lasts.
async fn a_stream_from_memory_that_nobody_acknowledges_ends(env: Env) {
    let bench = Bench::start(&env, settings(1, 64 << 20)).await;
    bench.fill(0..400, 1000).await;
    let mut wire = open_raw(&bench, "stalls", 10_000).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(0))).await;
    let (bytes, _) = read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
    env.sleep(Duration::from_secs(700)).await;
    ask(&mut wire, Request::new(8, 0, Body::BufferAck { bytes: bytes as u32 })).await;
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    assert_eq!(bodies, [Body::StreamEnd { reason: EndReason::Slow }]);
}

async fn a_producer_that_sends_beyond_its_window_while_memory_is_short_is_left(env: Env) {
    let bench = Bench::start(&env, settings(1, 1 << 20)).await;
    let Wire { outgoing: mut out, .. } =
        Wire::connect(&env, bench.server.address(), None).await.unwrap();
    let sink = Sink::Bucket(bench.replica(settings(1, 1 << 20)).await);
    let mut consumer = Consumer::new(&env, ConsumerKind::Mainstream, sink, 100_000);
    let opaque = consumer.add_stream(0, 0, None).unwrap().opaque;
    let log = Answer::FailoverLog(vec![FailoverEntry { uuid: 5, seqno: 0 }]);
    let granted = Response::new(Opcode::StreamRequest, opaque, Status::Success, log).packet();
    let marker = Marker { start: 0, end: 1000, flags: SNAPSHOT_MEMORY };
    let marker = Request::new(opaque, 0, Body::SnapshotMarker(marker)).packet();
    consumer.take(vec![granted, marker], &mut out).await.unwrap();
    for by_seqno in 1..=1000 {
        // Keys stay in memory, also where they are on disk.
        let key = Bytes::from(format!("{by_seqno:0>60000}"));
        let item = Body::Mutation(Version { by_seqno, key, ..Version::default() });
        let took = consumer.take(vec![Request::new(opaque, 0, item).packet()], &mut out).await;
        if let Err(error) = took {
            assert!(error.to_string().contains("a full window"), "{error}");
            assert!(by_seqno < 400, "{by_seqno} came");
            return;
        }
    }
    panic!("60 MB came, and the window is one of 100 kB");
}

async fn a_takeover_that_nobody_acknowledges_holds_up_no_clients_for_ever(env: Env) {
    let checkpoints = CheckpointLimits { max_items: 5, max_bytes: 1 << 20 };
    let takeover_max_time = Duration::from_millis(50);
    let settings = BucketSettings { checkpoints, takeover_max_time, ..settings(1, 64 << 20) };
    let bench = Bench::start(&env, settings).await;
    bench.fill(0..400, 1000).await;
    let mut wire = open_raw(&bench, "stalls", 10_000).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(STREAM_TAKEOVER))).await;
    let (bytes, _) = read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
    // What it takes from now on comes later than a takeover may last.
    ask(&mut wire, Request::new(8, 0, Body::BufferAck { bytes: bytes as u32 })).await;
    read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
    assert_eq!(set(&bench.bucket, 0, "key0", "x"), Err(Status::TemporaryFailure));
    env.sleep(Duration::from_secs(700)).await;
    set(&bench.bucket, 0, "key0", "x").unwrap();
}

/// Its window never fills up.
async fn a_takeover_that_nobody_answers_holds_up_no_clients_for_ever(env: Env) {
    let takeover_max_time = Duration::from_millis(50);
    let settings = BucketSettings { takeover_max_time, ..settings(1, 64 << 20) };
    let bench = Bench::start(&env, settings).await;
    let mut wire = open_raw(&bench, "mute", 0).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(STREAM_TAKEOVER))).await;
    read_all(&env, &mut wire, |bodies| !bodies.is_empty()).await;
    // What it takes from now on comes later than a takeover may last.
    set(&bench.bucket, 0, "key0", "x").unwrap();
    let (_, bodies) = read_all(&env, &mut wire, |bodies| bodies.len() >= 2).await;
    assert!(matches!(bodies[..], [Body::SnapshotMarker(_), Body::Mutation(_)]), "{bodies:?}");
    assert_eq!(set(&bench.bucket, 0, "key0", "x"), Err(Status::TemporaryFailure));
    env.sleep(Duration::from_secs(700)).await;
    set(&bench.bucket, 0, "key0", "x").unwrap();
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    assert_eq!(bodies, [Body::StreamEnd { reason: EndReason::Slow }]);
}
