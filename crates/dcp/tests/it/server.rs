//! The server over its protocol, in both worlds: who gets in, documents, streams, flow control, and what is refused.

use std::time::Duration;

use crate::common::{
    Bench, PASSWORD, PATIENCE, USER, catch_up, credentials, follow, reach, set, settings,
    write_until_it_moves,
};
use bytes::Bytes;
use dcp::Error;
use dcp::auth::{Credentials, Hash, Mechanism};
use dcp::bucket::{Bucket, CheckpointLimits};
use dcp::client::Client;
use dcp::codec::{
    Answer, Body, EndReason, OPEN_PRODUCER, Opcode, Request, Response, STREAM_TAKEOVER,
    STREAM_TO_LATEST, Status, StreamRequest, VbucketState,
};
use dcp::consumer::{ConsumerKind, Event, Follower, Sink};
use dcp::wire::Wire;
use world::Env;

testbed::both_worlds!(
    everyone_with_the_password_gets_in,
    nobody_else_gets_in,
    documents_are_written_and_read,
    statistics_and_configuration,
    a_replica_is_brought_up_from_disk_and_memory,
    writes_go_on_while_it_streams,
    a_window_is_kept_and_too_much_is_refused,
    a_replica_with_another_history_rolls_back,
    a_rollback_in_mid_stream_ends_the_streams,
    a_second_connection_of_the_name_ends_the_first,
    nothing_is_streamed_to_whoever_fails_to_authenticate_anew,
    noops_find_the_dead,
    what_is_not_right_is_refused,
    a_vbucket_moves,
);

async fn everyone_with_the_password_gets_in(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    for mechanism in Mechanism::ALL {
        let mut client = bench.stranger().await;
        client.authenticate_by(mechanism, &credentials()).await.unwrap();
        client.require(0, Body::SelectBucket { name: "example".into() }).await.unwrap();
        assert_eq!(client.get(0, "none").await.unwrap(), None);
    }
    assert_eq!(bench.server.stats().auth_failures, 0);
}

async fn nobody_else_gets_in(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut stranger = bench.stranger().await;
    let refused = stranger.ask(0, Body::Get { key: "a".into() }).await.unwrap();
    assert_eq!(refused.status, Ok(Status::Access));
    let wrong = Credentials { user: USER.to_owned(), password: "wrong".to_owned() };
    let nobody = Credentials { user: "nobody".to_owned(), password: PASSWORD.to_owned() };
    for mechanism in Mechanism::ALL {
        for who in [&wrong, &nobody] {
            let error = stranger.authenticate_by(mechanism, who).await.unwrap_err().to_string();
            assert!(error.contains("AUTH_ERROR") && error.contains(mechanism.name()), "{error}");
            assert!(!error.contains(PASSWORD), "{error}");
        }
    }
    let step = Body::SaslStep { mechanism: "SCRAM-SHA1".into(), data: "c=biws".into() };
    assert_eq!(stranger.ask(0, step).await.unwrap().status, Ok(Status::Invalid));
    let auth = Body::SaslAuth { mechanism: "GSSAPI".into(), data: Bytes::new() };
    assert_eq!(stranger.ask(0, auth).await.unwrap().status, Ok(Status::NotSupported));
    // Who failed may try again, and has no bucket yet.
    stranger.authenticate_by(Mechanism::Scram(Hash::Sha256), &credentials()).await.unwrap();
    let refused = stranger.ask(0, Body::Get { key: "a".into() }).await.unwrap();
    assert_eq!(refused.status, Ok(Status::NoBucket));
    let options = dcp::client::ClientOptions { bucket: "other".to_owned(), ..bench.options() };
    let error = Client::connect(&env, &options).await.err().unwrap().to_string();
    assert!(error.contains("bucket \"other\"") && error.contains("EACCESS"), "{error}");
    assert_eq!(bench.server.stats().auth_failures, 8);
}

async fn documents_are_written_and_read(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut client = bench.client().await;
    // Features that are not had are not granted, and each is once.
    let features = vec![0x06, 0x08, 0x0b, 0x08, 0x0b];
    let hello = Body::Hello { agent: "test".into(), features };
    assert_eq!(client.ask(0, hello).await.unwrap().answer, Answer::Features(vec![0x08, 0x0b]));
    assert_eq!(client.set(1, "a", "one".into()).await.unwrap(), Ok(Status::Success));
    assert_eq!(client.get(1, "a").await.unwrap(), Some("one".into()));
    assert_eq!(client.set(9, "a", "one".into()).await.unwrap(), Ok(Status::NotMyVbucket));
    let persisted = client.ask(1, Body::SeqnoPersistence { seqno: 1 }).await.unwrap();
    assert_eq!(persisted.status, Ok(Status::Success));
    let deleted = client.ask(1, Body::Delete { key: "a".into() }).await.unwrap();
    assert!(deleted.is(Status::Success) && deleted.cas != 0);
    assert_eq!(client.get(1, "a").await.unwrap(), None);
    assert_eq!(client.active_seqnos().await.unwrap()[&1], 2);
    // A client that is less patient than the server.
    let timeout = Duration::from_secs(5);
    let options = dcp::client::ClientOptions { timeout, ..bench.options() };
    let mut client = Client::connect(&env, &options).await.unwrap();
    let before = env.now();
    let later = client.ask(1, Body::SeqnoPersistence { seqno: 3 }).await;
    assert!(matches!(later, Err(Error::Silent { .. })), "{later:?}");
    assert!(env.now() - before >= timeout);
}

async fn statistics_and_configuration(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut client = bench.client().await;
    for n in 0..10 {
        client.set(n % 2, &format!("k{n}"), "x".into()).await.unwrap().unwrap();
    }
    let stats = client.stats("vbucket-seqno 1").await.unwrap();
    assert_eq!(stats["vb_1:high_seqno"], "5");
    let all = client.stats("").await.unwrap();
    assert_eq!((all["curr_items"].as_str(), all["ep_max_vbuckets"].as_str()), ("10", "4"));
    let log = client.stats("failovers").await.unwrap();
    assert_eq!(log["vb_3:num_entries"], "1");
    assert_eq!(client.stats("vbucket").await.unwrap()["vb_2"], "active");
    assert!(client.stats("vbucket-details 77").await.is_err());
    assert!(client.stats("nothing").await.is_err());
    let config = client.require(0, Body::GetClusterConfig).await.unwrap();
    let Answer::Value(config) = config.answer else { panic!("no configuration") };
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(config["vBucketServerMap"]["vBucketMap"].as_array().unwrap().len(), 4);
    assert_eq!(config["vBucketServerMap"]["serverList"][0], bench.server.address());
    let errors = client.require(0, Body::ErrorMap { version: 1 }).await.unwrap();
    let Answer::Value(errors) = errors.answer else { panic!("no error map") };
    assert!(
        serde_json::from_slice::<serde_json::Value>(&errors).unwrap()["errors"]["86"].is_object()
    );
}

/// A replica of the bench's bucket in a bucket of its own.
pub async fn replica(env: &Env, bench: &Bench, kind: ConsumerKind) -> (Bucket, Follower) {
    let bucket = bench.replica(settings(4, 64 << 20)).await;
    let follower =
        follow(env, bench, "replication", Sink::Bucket(bucket.clone()), kind, 1 << 20).await;
    (bucket, follower)
}

async fn same(from: &Bucket, to: &Bucket, keys: impl Iterator<Item = (u16, String)>) {
    for (vb, key) in keys {
        from.set_state(vb, VbucketState::Active).unwrap();
        to.set_state(vb, VbucketState::Active).unwrap();
        let (a, b) = (from.get(vb, key.as_bytes()).await, to.get(vb, key.as_bytes()).await);
        assert_eq!(a, b, "{key} in {vb}");
    }
    assert_eq!(from.documents(), to.documents());
}

async fn a_replica_is_brought_up_from_disk_and_memory(env: Env) {
    for kind in [ConsumerKind::Mainstream, ConsumerKind::Batching] {
        // Little memory, so that most of it has to come from disk.
        let little = dcp::bucket::BucketSettings {
            checkpoints: CheckpointLimits { max_items: 50, max_bytes: 1 << 20 },
            ..settings(4, 2 << 20)
        };
        let bench = Bench::start(&env, little).await;
        bench.fill(0..3000, 300).await;
        assert!(bench.bucket.stats().expelled_bytes > 0, "{:?}", bench.bucket.stats());
        bench.bucket.delete(1, b"key1", 0).unwrap();
        let (bucket, mut follower) = replica(&env, &bench, kind).await;
        (0..4).for_each(|vb| follower.add_stream(vb, 0).unwrap());
        catch_up(&mut follower, &bench.bucket, &bucket).await;
        for vb in 0..4 {
            assert_eq!(bucket.failover_log(vb), bench.bucket.failover_log(vb));
        }
        same(&bench.bucket, &bucket, (0..3000).map(|n| ((n % 4) as u16, format!("key{n}")))).await;
        assert!(follower.consumer().stats().acknowledged_bytes > 0);
    }
}

async fn writes_go_on_while_it_streams(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..500, 100).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Batching).await;
    (0..4).for_each(|vb| follower.add_stream(vb, 0).unwrap());
    let mut writer = bench.client().await;
    let writing = env.spawn("writes", async move {
        for n in 0..600 {
            let (vb, key) = (n % 4, format!("key{}", n % 200));
            writer.set(vb, &key, format!("new{n}").into()).await.unwrap().unwrap();
        }
    });
    let mut writing = std::pin::pin!(writing);
    loop {
        tokio::select! {
            biased;
            done = &mut writing => { done.unwrap(); break }
            event = follower.step() => { event.unwrap(); }
        }
    }
    catch_up(&mut follower, &bench.bucket, &bucket).await;
    same(&bench.bucket, &bucket, (0..500).map(|n| ((n % 4) as u16, format!("key{n}")))).await;
}

/// A raw connection that was opened for streams.
pub async fn open_raw(bench: &Bench, name: &'static str, window: u32) -> Wire {
    let mut client = bench.client().await;
    let open = Body::Open { flags: OPEN_PRODUCER, name: name.into(), value: Bytes::new() };
    client.require(0, open).await.unwrap();
    let value = window.to_string().into();
    let control = Body::Control { name: "connection_buffer_size".into(), value };
    client.require(0, control).await.unwrap();
    client.into_wire()
}

pub async fn ask(wire: &mut Wire, request: Request) {
    wire.outgoing.put(request.packet()).unwrap();
    wire.outgoing.flush().await.unwrap();
}

pub fn all_of_it(flags: u32) -> Body {
    Body::StreamRequest(StreamRequest { flags, end: u64::MAX, ..StreamRequest::default() })
}

/// Reads what is enough, which is waited for, and until nothing more comes for a while; answers the bytes of requests.
pub async fn read_all(
    env: &Env,
    wire: &mut Wire,
    is_enough: impl Fn(&[Body]) -> bool,
) -> (u64, Vec<Body>) {
    let (mut bytes, mut bodies) = (0, Vec::new());
    let patience = |bodies: &[Body]| match is_enough(bodies) {
        true => Duration::from_millis(400),
        false => PATIENCE,
    };
    while let Ok(packet) = env.timeout(patience(&bodies), wire.incoming.next()).await {
        let packet = packet.unwrap().expect("it stays open");
        let size = packet.wire_bytes() as u64;
        if let Ok(request) = Request::parse(packet) {
            bytes += size;
            bodies.push(request.body);
        }
    }
    (bytes, bodies)
}

pub fn has_ended(bodies: &[Body]) -> bool {
    matches!(bodies.last(), Some(Body::StreamEnd { .. }))
}

async fn a_window_is_kept_and_too_much_is_refused(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..400, 1000).await;
    let window = 10_000;
    let mut wire = open_raw(&bench, "slow", window).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(STREAM_TO_LATEST))).await;
    let (mut total, mut bodies) = (0, Vec::new());
    loop {
        let (bytes, more) = read_all(&env, &mut wire, |more| !more.is_empty()).await;
        assert!(bytes <= u64::from(window) + 1200, "{bytes} is more than the window and a message");
        bodies.extend(more);
        total += bytes;
        if has_ended(&bodies) {
            break;
        }
        assert!(bytes > 0, "acknowledged, and nothing came");
        let body = Body::BufferAck { bytes: bytes as u32 };
        ask(&mut wire, Request::new(8, 0, body)).await;
    }
    assert_eq!(bodies.len(), 102, "100 items, their marker and the end; {total} bytes");
    ask(&mut wire, Request::new(9, 0, Body::BufferAck { bytes: total as u32 })).await;
    assert!(matches!(wire.incoming.next().await, Ok(None) | Err(_)), "over-acknowledged");
    let error = bench.server.last_error().unwrap();
    assert!(error.contains("were acknowledged while"), "{error}");
}

async fn a_replica_with_another_history_rolls_back(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..40, 100).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Mainstream).await;
    follower.add_stream(0, 0).unwrap();
    reach(&mut follower, &bucket, 0, Some(10)).await;
    drop(follower);
    // The replica was active for a while and took writes that nobody else has.
    bucket.set_state(0, VbucketState::Active).unwrap();
    set(&bucket, 0, "key0", "mine").unwrap();
    set(&bucket, 0, "mine", "mine").unwrap();
    bucket.set_state(0, VbucketState::Replica).unwrap();
    set(&bench.bucket, 0, "key4", "theirs").unwrap();
    let sink = Sink::Bucket(bucket.clone());
    let mut follower = follow(&env, &bench, "again", sink, ConsumerKind::Batching, 1 << 20).await;
    follower.add_stream(0, 0).unwrap();
    let opened = loop {
        if let Some(event) = follower.step().await.unwrap() {
            break event;
        }
    };
    assert_eq!(opened, Event::Opened { vb: 0, rollbacks: 1 });
    reach(&mut follower, &bucket, 0, bench.bucket.high_seqno(0)).await;
    bucket.set_state(0, VbucketState::Active).unwrap();
    for key in ["key0", "key4", "mine"] {
        let there = bench.bucket.get(0, key.as_bytes()).await;
        assert_eq!(bucket.get(0, key.as_bytes()).await, there, "{key}");
    }
}

async fn a_rollback_in_mid_stream_ends_the_streams(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..20, 100).await;
    // The flusher has taken five, so that a rollback can lead there.
    bench.bucket.wait_persisted(0, 5, PATIENCE).await.unwrap();
    bench.fill(20..40, 100).await;
    let mut wire = open_raw(&bench, "reader", 0).await;
    ask(&mut wire, Request::new(7, 0, all_of_it(0))).await;
    let (_, bodies) = read_all(&env, &mut wire, |bodies| bodies.len() >= 11).await;
    assert_eq!(bodies.len(), 11);
    bench.bucket.set_state(0, VbucketState::Replica).unwrap();
    bench.bucket.roll_back(0, 5).await.unwrap();
    let (_, bodies) = read_all(&env, &mut wire, has_ended).await;
    assert_eq!(bodies, [Body::StreamEnd { reason: EndReason::Rollback }]);
    // Whoever had more is sent back when it asks again.
    let again = StreamRequest {
        start: 10,
        end: u64::MAX,
        uuid: bench.bucket.failover_log(0).unwrap()[0].uuid,
        snap_start: 10,
        snap_end: 10,
        flags: 0,
    };
    ask(&mut wire, Request::new(8, 0, Body::StreamRequest(again))).await;
    let answered = Response::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
    assert_eq!((answered.status, answered.answer), (Ok(Status::Rollback), Answer::Rollback(5)));
}

async fn a_second_connection_of_the_name_ends_the_first(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut first = open_raw(&bench, "name", 0).await;
    let mut other = open_raw(&bench, "another name", 0).await;
    let mut second = open_raw(&bench, "name", 0).await;
    assert!(matches!(first.incoming.next().await, Ok(None) | Err(_)));
    for wire in [&mut other, &mut second] {
        ask(wire, Request::new(3, 0, Body::FailoverLog)).await;
        let answered = Response::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
        assert!(answered.is(Status::Success));
    }
    let stats = bench.client().await.stats("dcp").await.unwrap();
    assert_eq!(stats["ep_dcp_count"], "2");
    assert_eq!(stats["eq_dcpq:name:type"], "producer");
}

async fn nothing_is_streamed_to_whoever_fails_to_authenticate_anew(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..40, 100).await;
    let refused = [("PLAIN", Status::AuthError), ("GSSAPI", Status::NotSupported)];
    for (mechanism, status) in refused {
        let mut wire = open_raw(&bench, "reader", 0).await;
        ask(&mut wire, Request::new(7, 0, all_of_it(0))).await;
        read_all(&env, &mut wire, |bodies| bodies.len() >= 11).await;
        let data = Bytes::from_static(b"\0someone\0wrong");
        ask(&mut wire, Request::new(8, 0, Body::SaslAuth { mechanism: mechanism.into(), data }))
            .await;
        let answered = Response::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(answered.status, Ok(status));
        let ended = env.timeout(PATIENCE, wire.incoming.next()).await.expect("it streams on");
        assert!(matches!(ended, Ok(None) | Err(_)), "{ended:?}");
        assert_eq!(bench.client().await.stats("dcp").await.unwrap()["ep_dcp_count"], "0");
    }
}

async fn noops_find_the_dead(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    let mut wire = open_raw(&bench, "name", 0).await;
    // On a machine that stands still for a moment nobody is to be taken for gone who answers.
    let interval_s = if env.is_virtual() { "0.2" } else { "4" };
    for (name, value) in [("set_noop_interval", interval_s), ("enable_noop", "true")] {
        let control = Body::Control { name: name.into(), value: value.into() };
        ask(&mut wire, Request::new(1, 0, control)).await;
        let answered = Response::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
        assert!(answered.is(Status::Success), "{name}");
    }
    for _ in 0..3 {
        let noop = Request::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(noop.body, Body::Noop);
        let answer = Response::new(Opcode::Noop, noop.opaque, Status::Success, Answer::Empty);
        wire.outgoing.put(answer.packet()).unwrap();
        wire.outgoing.flush().await.unwrap();
    }
    let noop = Request::parse(wire.incoming.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(noop.body, Body::Noop);
    assert!(matches!(wire.incoming.next().await, Ok(None) | Err(_)), "nobody answered");
    assert!(bench.server.last_error().unwrap().contains("taken for gone"));
}

async fn what_is_not_right_is_refused(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..40, 100).await;
    bench.bucket.set_state(3, VbucketState::Dead).unwrap();
    let mut client = bench.client().await;
    let status = |response: Response| response.status.unwrap();
    // Before OPEN there are no streams.
    assert_eq!(status(client.ask(0, all_of_it(0)).await.unwrap()), Status::Invalid);
    let long = Bytes::from(vec![b'x'; 201]);
    let open = |name: Bytes| Body::Open { flags: OPEN_PRODUCER, name, value: Bytes::new() };
    assert_eq!(status(client.ask(0, open(long)).await.unwrap()), Status::Invalid);
    // Collections, which this server does not have.
    let flags = OPEN_PRODUCER | 0x10;
    let collections = Body::Open { flags, name: "name".into(), value: Bytes::new() };
    assert_eq!(status(client.ask(0, collections).await.unwrap()), Status::Invalid);
    assert_eq!(status(client.ask(0, open("name".into())).await.unwrap()), Status::Success);
    assert_eq!(status(client.ask(0, open("twice".into())).await.unwrap()), Status::Invalid);
    let control = Body::Control { name: "no_such_setting".into(), value: "true".into() };
    assert_eq!(status(client.ask(0, control).await.unwrap()), Status::Invalid);
    assert_eq!(status(client.ask(0, all_of_it(0x8000)).await.unwrap()), Status::Invalid);
    assert_eq!(status(client.ask(9, all_of_it(0)).await.unwrap()), Status::NotMyVbucket);
    assert_eq!(status(client.ask(3, all_of_it(0)).await.unwrap()), Status::NotMyVbucket);
    let stream = |start, end, snap_start, snap_end| {
        Body::StreamRequest(StreamRequest { flags: 0, start, end, uuid: 0, snap_start, snap_end })
    };
    for wrong in [stream(5, 4, 5, 5), stream(5, 9, 6, 9), stream(5, 9, 1, 4)] {
        assert_eq!(status(client.ask(0, wrong).await.unwrap()), Status::Range);
    }
    assert_eq!(status(client.ask(0, Body::CloseStream).await.unwrap()), Status::NotFound);
    assert_eq!(status(client.ask(0, Body::Manifest).await.unwrap()), Status::NotSupported);
    assert_eq!(status(client.ask(0, Body::AddStream { flags: 0 }).await.unwrap()), Status::Invalid);
    let mut wire = client.into_wire();
    ask(&mut wire, Request::new(70, 0, all_of_it(0))).await;
    ask(&mut wire, Request::new(71, 0, all_of_it(0))).await;
    let mut statuses = Vec::new();
    while statuses.len() < 2 {
        let packet = wire.incoming.next().await.unwrap().unwrap();
        if let Ok(response) = Response::parse(packet) {
            statuses.push((response.opaque, response.status.unwrap()));
        }
    }
    assert_eq!(statuses, [(70, Status::Success), (71, Status::Exists)]);
    // After all that the server lives.
    assert!(bench.client().await.get(0, "key0").await.unwrap().is_some());
}

/// Clients write to a vbucket while it moves; at no moment is it active in both places, and nothing is lost.
async fn a_vbucket_moves(env: Env) {
    // In the virtual world clients are so near that a takeover never drains while they write.
    let takeover_max_time = Duration::from_millis(50);
    let settings = dcp::bucket::BucketSettings { takeover_max_time, ..settings(4, 64 << 20) };
    let bench = Bench::start(&env, settings).await;
    bench.fill(0..400, 100).await;
    let (bucket, mut follower) = replica(&env, &bench, ConsumerKind::Mainstream).await;
    follower.add_stream(2, 0).unwrap();
    let high = bench.bucket.high_seqno(2).unwrap();
    reach(&mut follower, &bucket, 2, Some(high)).await;
    bucket.wait_persisted(2, high, PATIENCE).await.unwrap();
    drop(follower);
    let sink = Sink::Bucket(bucket.clone());
    let mut follower = follow(&env, &bench, "moves", sink, ConsumerKind::Batching, 1 << 20).await;
    follower.add_stream(2, STREAM_TAKEOVER).unwrap();
    let writing = write_until_it_moves(&env, &bench, 2, Duration::ZERO).await;
    let active = |bucket: &Bucket| bucket.state(2) == Some(VbucketState::Active);
    loop {
        assert!(!(active(&bucket) && active(&bench.bucket)), "two are active");
        match follower.step().await.unwrap() {
            Some(Event::Ended { vb: 2, reason: EndReason::Ok }) => break,
            Some(Event::Opened { vb: 2, rollbacks: 0 }) | None => {}
            Some(other) => panic!("{other:?}"),
        }
    }
    let written = writing.await.unwrap();
    assert!(active(&bucket) && bench.bucket.state(2) == Some(VbucketState::Dead));
    assert_eq!(bucket.high_seqno(2), bench.bucket.high_seqno(2));
    assert_eq!(bucket.high_seqno(2), Some(high + written));
    for n in 0..written {
        assert!(bucket.get(2, format!("late{n}").as_bytes()).await.is_ok(), "late{n}");
    }
    assert_eq!(bucket.failover_log(2).unwrap().len(), 2, "a history begins with the new owner");
}
