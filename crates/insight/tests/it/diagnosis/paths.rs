//! What holds the recoveries of a path together: windows by connection, and recoveries without a cause of their own.

use insight::diagnosis::{Class, Finding};
use record::observation::{AnswerTime, Observation, Recovery, RoundTrip, WaitingCopy};

use super::{against, judge, looks_at, only};
use crate::common::{CHUNKS, MAX_BYTES, MB, node, recovery, rtt, settings, waiting};

const CONNECTIONS: &str = "transport.connections_per_node.recovery";

#[test]
fn a_full_path_says_what_window_by_connection_would_give_its_rate() {
    let at = |rtt_ms: f64, connections: &str| {
        only(&looks_at(12 * MB, |look, _| {
            look.settings = settings(&[(CHUNKS, "5"), (CONNECTIONS, connections)]);
            look.round_trips = rtt(rtt_ms);
        }))
    };
    let told = |finding: &Finding| finding.evidence.iter().any(|line| line.field == CONNECTIONS);
    for (connections, window) in [("2", "120 kB"), ("4", "60.0 kB")] {
        let far = at(20.0, connections);
        assert_eq!(far.class, Class::Bandwidth);
        let formula = format!("12.0 MB/s x 20 ms / {connections} connections");
        let doubt = far.doubt.as_ref().unwrap();
        let says = format!("a window of {window} a connection would give it, too: {formula}");
        assert!(doubt.contains(&says), "{doubt}");
        assert!(told(&far), "{far:?}");
    }
    let near = at(0.5, "2");
    assert_eq!(near.class, Class::Bandwidth);
    assert!(near.sentence.contains("level, 0.5 ms of round trip would"), "{}", near.sentence);
    assert!(!near.doubt.as_ref().unwrap().contains("a window of") && !told(&near), "{near:?}");
}

/// The trap: over a change of the limit the mean rate is near the new one, and what came since is far below it.
#[test]
fn a_path_is_not_ruled_out_by_a_limit_that_only_the_rate_before_it_was_near() {
    let finding = only(&looks_at(0, |look, s| {
        let came = s.min(4) * 11_500_000 + s.saturating_sub(4) * 8_500_000;
        look.recoveries[0].recovered_bytes = Some(came);
        look.recoveries[0].source_throttle_ms = Some(s * 400);
        look.settings = settings(&[(MAX_BYTES, if s <= 4 { "20mb" } else { "12mb" })]);
        look.round_trips = rtt(5.0);
    }));
    assert_eq!(finding.class, Class::Bandwidth, "{finding:?}");
}

/// The trap: of a large cluster one host is given, which is no end of what recovers, so that nobody measures the round
/// trip. Where both ends are near that host, latency is no guess.
#[test]
fn a_round_trip_that_nobody_measured_is_hardly_longer_than_by_way_of_a_third_node() {
    let at = |to_source: f64, to_target: f64| {
        only(&looks_at(9 * MB, |look, _| {
            let from_h = |to: &str, rtt_ms| RoundTrip { from: "h".into(), to: to.into(), rtt_ms };
            look.round_trips = vec![from_h("a", to_source), from_h("b", to_target)];
        }))
    };
    let near = at(0.0, 1.5);
    assert_eq!(near.class, Class::Unknown);
    let (_, why) = against(&near, Class::Latency);
    let says = "allow over 2.5 ms, in which a third node reaches both ends (60 % would tell)";
    assert!(why.ends_with(says), "{why}");
    for (to_source, to_target) in [(0.0, 90.0), (90.0, 0.0), (300.0, 300.0)] {
        let far = at(to_source, to_target);
        assert_eq!(far.class, Class::Latency, "they may be far from each other: {far:?}");
    }
}

/// A small shard, of which a lump comes now and then, so that the path does not go at a level rate.
fn small(s: u64, source: &str, target: &str) -> Recovery {
    let mut small = recovery("small", s, 0);
    small.recovered_bytes = Some(s / 3 * 9 * MB);
    (small.source, small.target) = (Some(source.into()), Some(target.into()));
    small
}

fn named(looks: &[(f64, Observation)]) -> Vec<(Class, Vec<String>)> {
    let findings = judge(looks).findings.into_iter();
    findings.map(|finding| (finding.class, finding.subjects)).collect()
}

#[test]
fn what_has_no_cause_of_its_own_is_held_by_what_holds_its_path() {
    let beside_latency = |source: &'static str| {
        named(&looks_at(9 * MB, |look, s| {
            look.recoveries.push(small(s, source, "b"));
            look.round_trips = rtt(100.0);
            let from_c = RoundTrip { from: "c".into(), to: "b".into(), rtt_ms: 100.0 };
            look.round_trips.push(from_c);
        }))
    };
    let both = vec!["i[0] to b".to_owned(), "small[0] to b".to_owned()];
    assert_eq!(beside_latency("a"), [(Class::Latency, both)]);
    let classes: Vec<Class> = beside_latency("c").iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::Latency, Class::Unknown], "from another node it is another path");
}

/// The trap: a copy that has had all its files for long waits for something else than the path. Nobody looks for that
/// where the path is said to hold it.
#[test]
fn what_has_all_its_files_is_held_by_no_path() {
    let found = named(&looks_at(9 * MB, |look, s| {
        let mut done = recovery("done", s, 0);
        (done.stage, done.recovered_bytes) = ("FINALIZE".into(), done.total_bytes);
        look.recoveries.push(done);
        look.round_trips = rtt(100.0);
    }));
    let of = |name: &str| vec![name.to_owned()];
    assert_eq!(found, [(Class::Latency, of("i[0] to b")), (Class::Unknown, of("done[0] to b"))]);
}

/// Two recoveries from one node to two others, of which one has the limiter's line to itself for now: chunks of 512 KiB
/// that pass one after another.
fn in_one_line(limit: &'static str, ran_s: u64, chunk_ms: u64) -> Vec<(f64, Observation)> {
    looks_at(0, |look, s| {
        look.settings = settings(&[(MAX_BYTES, limit)]);
        let ran_ms = (ran_s + s) * 1000;
        let passed = ran_ms / chunk_ms;
        let mut waits = small(s, "a", "c");
        waits.recovered_bytes = Some(0);
        waits.total_ms = Some(ran_ms);
        let goes = &mut look.recoveries[0];
        goes.total_ms = Some(ran_ms);
        goes.recovered_bytes = Some(passed * (512 << 10));
        // Of two chunks in flight each waits for the one before it; the first had nobody to wait for.
        goes.source_throttle_ms = Some((passed * 2 * chunk_ms).saturating_sub(chunk_ms));
        look.nodes[0].throttle_ms = goes.source_throttle_ms;
        look.recoveries.push(waits);
        look.round_trips = rtt(20.0);
    })
}

/// A chunk takes 8.5 s to pass 60 KiB/s: that of the second recovery is due once those of the first have passed.
#[test]
fn a_recovery_that_waits_in_line_behind_another_one_is_held_by_the_same_limiter() {
    let finding = only(&in_one_line("60kb", 12, 8533));
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
    assert_eq!(finding.subjects, ["i[0] to b", "small[0] to c"]);
    assert!(finding.sentence.contains("a chunk takes 8.53 s to pass it"), "{}", finding.sentence);
}

/// At 2.56 s a chunk, nothing but the finding on the first recovery tells of the second.
#[test]
fn a_recovery_without_a_cause_is_held_by_the_limiter_of_its_node_that_holds_another() {
    let finding = only(&in_one_line("200kb", 6, 2560));
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
    assert_eq!(finding.subjects, ["i[0] to b", "small[0] to c"]);
    let elsewhere = named(&looks_at(0, |look, s| {
        *look = in_one_line("200kb", 6, 2560)[s as usize].1.clone();
        look.recoveries[1].source = Some("d".into());
    }));
    let classes: Vec<Class> = elsewhere.iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::RateLimit, Class::Unknown], "from another node: another limiter");
}

/// The trap: a node's limiter serves what it sends and what it receives, so that half of the limit fills it each way.
#[test]
fn a_limiter_passes_what_its_node_sends_and_what_it_receives() {
    for ring in [&["a", "b"][..], &["a", "b", "c"]] {
        let found = judge(&looks_at(0, |look, s| {
            look.settings = settings(&[(MAX_BYTES, "2mb")]);
            look.nodes = ring.iter().map(|name| node(name, s)).collect();
            let onwards = |(at, source): (usize, &&str)| Recovery {
                source: Some((*source).to_owned()),
                target: Some(ring[(at + 1) % ring.len()].to_owned()),
                source_throttle_ms: Some(s * 900),
                target_throttle_ms: Some(s * 900),
                ..recovery(&format!("i{at}"), s, 1 << 20)
            };
            look.recoveries = ring.iter().enumerate().map(onwards).collect();
        }));
        let held: usize = found.findings.iter().map(|one| one.subjects.len()).sum();
        assert_eq!(held, ring.len(), "{found:#?}");
        for one in &found.findings {
            assert_eq!((one.class, &one.doubt), (Class::RateLimit, &None), "{found:#?}");
            assert!(one.sentence.contains("2.10 MB/s of the 2.10 MB/s"), "{}", one.sentence);
            assert!(one.strength > 0.95, "{found:#?}");
        }
    }
}

/// The trap: a path and a card carry so much each way. 60 MB/s in and out are none that a near and fast path rules out,
/// nor what makes a recovery healthy that nothing visible holds.
#[test]
fn a_path_and_a_card_carry_what_goes_one_way() {
    let both_ways = |rate: u64, lump_s: u64| {
        let found = named(&looks_at(0, |look, s| {
            let one = |index: &str, source: &str, target: &str| Recovery {
                source: Some(source.to_owned()),
                target: Some(target.to_owned()),
                recovered_bytes: Some(s / lump_s * lump_s * rate),
                ..recovery(index, s, 0)
            };
            look.settings = settings(&[(MAX_BYTES, "-1")]);
            look.round_trips = rtt(0.0);
            look.recoveries = vec![one("i", "a", "b"), one("j", "b", "a")];
        }));
        let mut classes: Vec<Class> = found.into_iter().map(|(class, _)| class).collect();
        classes.dedup();
        classes
    };
    assert_eq!(both_ways(30 * MB, 1), [Class::Bandwidth], "slow each way");
    assert_eq!(both_ways(118 * MB, 1), [Class::Bandwidth], "a card of 1 Gbit/s each way");
    assert_eq!(both_ways(30 * MB, 3), [Class::Unknown], "uneven, and slow each way");
    assert_eq!(both_ways(60 * MB, 3), [], "uneven, and fast each way");
}

#[test]
fn a_replay_is_a_copys_own_and_explains_no_other() {
    let looks = looks_at(0, |look, s| {
        look.recoveries[0].stage = "TRANSLOG".into();
        look.recoveries[0].recovered_ops = Some(s * 2000);
        look.recoveries.push(small(s, "a", "b"));
        look.round_trips = rtt(0.0);
    });
    let classes: Vec<Class> = named(&looks).iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::OperationReplay, Class::Unknown]);
}

/// The trap: a node that stands still is no riddle, and nothing else that holds explains it.
#[test]
fn a_node_that_stands_still_stays_a_finding_of_its_own() {
    let looks = looks_at(9 * MB, |look, s| {
        look.round_trips = rtt(25.0);
        let ms = if s.is_multiple_of(3) { 400.0 } else { 2.0 };
        look.answers = vec![AnswerTime { node: "b".into(), ms, again_ms: 2.0 }];
        look.waiting = [for_a_slot()].into();
    });
    let classes: Vec<Class> = judge(&looks).findings.iter().map(|one| one.class).collect();
    assert_eq!(classes, [Class::AllocationSlots, Class::Unknown]);
}

fn for_a_slot() -> WaitingCopy {
    waiting("throttled", &[("a", "same_shard", "NO"), ("b", "throttling", "THROTTLE")])
}

#[test]
fn a_recovery_that_has_the_slot_others_wait_for_is_no_riddle_beside_them() {
    // Many small shards: the one that has the slot goes slowly, and nothing that can be seen is near a limit.
    let with_a_slot = |target: &'static str, stage: &'static str| {
        named(&looks_at(0, |look, s| {
            let mut small = small(s, "a", target);
            small.stage = stage.into();
            (small.total_ops, small.recovered_ops) = (Some(0), Some(0));
            look.recoveries = vec![small];
            let near = |to: &str| RoundTrip { from: "a".into(), to: to.into(), rtt_ms: 0.0 };
            look.round_trips = vec![near("b"), near("c")];
            look.waiting = [for_a_slot()].into();
        }))
    };
    let subjects = vec!["replica of w[0]".to_owned(), "small[0] to b".to_owned()];
    assert_eq!(with_a_slot("b", "INDEX"), [(Class::AllocationSlots, subjects.clone())]);
    // Its files are there, and the nodes have still to agree on it.
    assert_eq!(with_a_slot("b", "TRANSLOG"), [(Class::AllocationSlots, subjects)]);
    // One that stands still has something of its own, and keeps others from the slot.
    let stuck = named(&looks_at(0, |look, _| {
        look.round_trips = rtt(0.0);
        look.waiting = [for_a_slot()].into();
    }));
    let classes: Vec<Class> = stuck.iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::AllocationSlots, Class::Unknown]);
    let elsewhere = with_a_slot("c", "INDEX");
    let classes: Vec<Class> = elsewhere.iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [Class::AllocationSlots, Class::Unknown], "the slot of another node");
}

/// Of a recovery from remote the source is no node of this cluster.
#[test]
fn a_path_from_remote_is_told_by_what_the_target_receives() {
    let finding = only(&looks_at(20 * MB, |look, s| {
        look.recoveries[0].source = None;
        look.recoveries[0].repository = Some("_ccr_eu".into());
        look.nodes[1].transport_rx_bytes = Some(s * 21 * MB);
        look.round_trips = vec![RoundTrip { from: "b".into(), to: "eu".into(), rtt_ms: 10.0 }];
    }));
    assert_eq!(finding.class, Class::Bandwidth);
    let moved = finding.evidence.iter().find(|line| line.field.starts_with("transport."));
    let moved = moved.map(|line| (&*line.field, line.value.as_str()));
    assert_eq!(moved, Some(("transport.rx_size_in_bytes", "b: 21.0 MB/s")));
    // The setting of connections within a cluster opens none to another one.
    assert!(finding.sentence.starts_with("the path eu to b carries"), "{}", finding.sentence);
    assert!(finding.evidence.iter().all(|line| line.field != CONNECTIONS), "{finding:#?}");
    let (_, why) = against(&finding, Class::Cpu);
    assert!(why.ends_with("do is not seen here"), "{why}");
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting, None);
    assert!(lift.action.contains("cluster.remote.eu.proxy_socket_connections"), "{}", lift.action);
}
