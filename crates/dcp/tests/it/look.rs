//! Looks at live servers: what is read of their statistics, what ours answers, and servers that mean harm.
//!
//! No server of Couchbase was asked: the fixtures say where each of them comes from.

use std::time::Duration;

use crate::common::{Bench, PATIENCE, settings};
use crate::wrong_servers::{Says, answer, but, encoded, server};
use dcp::Error;
use dcp::client::ClientOptions;
use dcp::codec::{Answer, Opcode, Response, Status};
use dcp::look::{Looker, Statistics};
use record::bucket::{BucketNode, DcpConnection};
use world::Env;

testbed::both_worlds!(what_our_server_says_is_read, a_node_that_goes_is_a_gap);

fn read(fixture: &str) -> BucketNode {
    let mut statistics = Statistics::default();
    for line in fixture.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(": ").expect("a name and a value");
        statistics.take(name, value.trim());
    }
    statistics.of_node("a:11210", 5.0)
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let node = read(include_str!("fixtures/documented-7.6.txt"));
    let [one] = &node.connections[..] else { panic!("{node:?}") };
    let expected = DcpConnection {
        name: "replication:ns_1@10.5.2.117->ns_1@10.5.2.54:default".to_owned(),
        streams: 1,
        ..DcpConnection::default()
    };
    assert_eq!(*one, expected, "what the page does not show is none and never zero");
    assert_eq!((node.mem_used_bytes, node.quota_bytes), (None, None));
}

#[test]
fn what_the_sources_name_is_read() {
    let node = read(include_str!("fixtures/from-sources.txt"));
    assert_eq!((node.mem_used_bytes, node.quota_bytes), (Some(973_078_528), Some(1 << 30)));
    assert_eq!((node.cursors_dropped, node.disk_queue_items), (Some(3), Some(12_000)));
    let [older, producer, consumer] = &node.connections[..] else { panic!("{node:?}") };
    assert_eq!(older.paused_for.as_deref(), Some("ReadyListEmpty"));
    assert_eq!(older.paused_ms, [("ReadyListEmpty".to_owned(), 3_643_000)].into());
    assert_eq!((older.flow_control, older.paused), (Some(false), None));
    let expected = DcpConnection {
        name: "replication:ns_1@a->ns_1@b:travel".to_owned(),
        kind: "producer".to_owned(),
        items_sent: Some(900_000),
        items_remaining: Some(41_000),
        bytes_sent: Some(950_000_000),
        acked_bytes: Some(939_514_199),
        unacked_bytes: Some(10_485_801),
        max_buffer_bytes: Some(10_485_760),
        flow_control: Some(true),
        paused: Some(true),
        paused_for: Some("BufferLogFull".to_owned()),
        paused_ms: [("BufferLogFull".to_owned(), 842_212), ("ReadyListEmpty".to_owned(), 8_301)]
            .into(),
        streams: 2,
        backfilling: 1,
        backfills: Some(8),
        backfill_full: Some(false),
        ..DcpConnection::default()
    };
    assert_eq!(*producer, expected);
    assert_eq!((consumer.kind.as_str(), consumer.backoffs), ("consumer", Some(77)));
    assert_eq!(consumer.has_more_to_process, Some(true));
}

#[test]
fn what_is_no_statistic_is_passed_over() {
    let mut statistics = Statistics::default();
    for (name, value) in [
        ("", ""),
        ("eq_dcpq:", "x"),
        ("eq_dcpq::::", "x"),
        ("eq_dcpq:a:items_sent", "-1"),
        ("eq_dcpq:a:total_bytes_sent", "99999999999999999999999"),
        ("eq_dcpq:a:paused", "maybe"),
        ("eq_dcpq:a:paused_previous__duration", "soon"),
        ("eq_dcpq:a:stream_99999_state", "backfilling"),
        ("mem_used", "1e9"),
    ] {
        statistics.take(name, value);
    }
    let long = format!("eq_dcpq:{}:type", "n".repeat(300));
    statistics.take(&long, "producer");
    (0..20_000).for_each(|n| statistics.take(&format!("eq_dcpq:{n}:type"), "producer"));
    let node = statistics.of_node("a", 0.0);
    assert_eq!(node.connections.len(), 10_000, "so many are kept");
    assert_eq!(node.mem_used_bytes, None);
    let a = node.connections.iter().find(|one| one.name == "a").unwrap();
    assert_eq!(*a, DcpConnection { name: "a".to_owned(), ..DcpConnection::default() });
}

async fn what_our_server_says_is_read(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    bench.fill(0..2000, 1000).await;
    let drain = bench.drain_slowly().await;
    env.sleep(Duration::from_secs(1)).await;
    let mut looker = Looker::connect(&env, &[bench.options()]).await.unwrap();
    let began = env.now();
    let (_, then) = looker.look().await.unwrap();
    env.sleep(Duration::from_secs(2)).await;
    let (t_ms, now) = looker.look().await.unwrap();
    let most_ms = (env.now() - began).as_millis() as u64 + 500;
    assert!(t_ms >= 2000.0 && now.gaps.is_empty(), "{now:?}");
    assert_eq!(now.cluster.name, "example");
    let [then, now] = [&then.buckets[..], &now.buckets[..]].map(|all| match all {
        [node] => node,
        _ => panic!("one node was named: {all:?}"),
    });
    assert_eq!((now.node.as_str(), now.quota_bytes), (bench.server.address(), Some(64 << 20)));
    assert_eq!(now.mem_used_bytes, Some(bench.bucket.used_bytes()));
    let [one] = &now.connections[..] else { panic!("{now:?}") };
    let before = &then.connections[0];
    assert_eq!((one.name.as_str(), one.kind.as_str()), ("slow-1", "producer"));
    assert_eq!((one.max_buffer_bytes, one.flow_control), (Some(50_000), Some(true)));
    assert_eq!(one.items_sent.unwrap() + one.items_remaining.unwrap(), 2000);
    assert!(one.items_sent > before.items_sent && one.items_remaining < before.items_remaining);
    let unacked = one.bytes_sent.unwrap() - one.acked_bytes.unwrap();
    assert_eq!(one.unacked_bytes, Some(unacked));
    let paused = |one: &DcpConnection| one.paused_ms["BufferLogFull"];
    let risen = paused(one) - paused(before);
    assert!((1000..=most_ms).contains(&risen), "it waits nearly always: {risen} of {most_ms} ms");
    assert_eq!((one.streams, one.backfilling), (4, 0), "all of it is in memory");
    drop(drain);
    let ended = async {
        while !looker.look().await.unwrap().1.buckets[0].connections.is_empty() {
            env.sleep(Duration::from_millis(50)).await;
        }
    };
    env.timeout(PATIENCE, ended).await.expect("a connection that ended is gone");
    let refused = bench.client().await.stats("uuid").await.unwrap_err().to_string();
    assert!(refused.contains("\"uuid\"") && refused.contains("KEY_ENOENT"), "{refused}");
}

async fn a_node_that_goes_is_a_gap(env: Env) {
    let stays = Bench::start(&env, settings(4, 64 << 20)).await;
    let goes = Bench::start(&env, settings(4, 64 << 20)).await;
    let gone = goes.server.address().to_owned();
    let mut looker = Looker::connect(&env, &[stays.options(), goes.options()]).await.unwrap();
    let (_, both) = looker.look().await.unwrap();
    assert_eq!((both.buckets.len(), both.gaps.len()), (2, 0));
    drop(goes);
    for _ in 0..2 {
        let (_, one) = looker.look().await.unwrap();
        let [node] = &one.buckets[..] else { panic!("{one:?}") };
        let [gap] = &one.gaps[..] else { panic!("{one:?}") };
        assert_eq!((node.node.as_str(), &gap.path), (stays.server.address(), &gone));
    }
    drop(stays);
    assert!(looker.look().await.is_err(), "nobody answers");
}

/// The answer to the first look at a server that says this to STAT; one answer may take so long.
fn looked(says: Says, timeout_s: u64) -> Error {
    world::real_world::run(7, async move |env| {
        let options = server(&env, but(Opcode::Stat, says)).await;
        let options = ClientOptions { timeout: Duration::from_secs(timeout_s), ..options };
        let mut looker = match Looker::connect(&env, &[options]).await {
            Ok(looker) => looker,
            Err(error) => return error,
        };
        looker.look().await.expect_err("it does not answer well")
    })
}

fn statistic(opaque: u32, name: &str) -> Vec<u8> {
    let said = Answer::Stat { name: name.to_owned().into(), value: "1".into() };
    encoded(Response::new(Opcode::Stat, opaque, Status::Success, said).packet())
}

#[test]
fn statistics_that_never_end_come_to_an_end() {
    // One, without the empty one at the end.
    let silent = looked(|request| Some(statistic(request.opaque, "mem_used")), 1);
    assert!(matches!(silent, Error::Silent { .. }), "{silent}");
    // More than there can be.
    let endless = looked(|request| Some(statistic(request.opaque, "x").repeat(1_100_000)), 300);
    assert!(endless.to_string().contains("without end: 1000001"), "{endless}");
}

#[test]
fn a_server_that_refuses_is_named() {
    let refused = looked(|request| answer(request, Status::Access, Answer::Empty), 20);
    let said = refused.to_string();
    assert!(said.contains("Data Monitor") && said.contains("statistics"), "{said}");
}
