//! Recoveries that a limiter holds, and those that it does not though they are near it or pause.

use insight::diagnosis::{By, Class, Diagnosis, Finding, Onlooker, RuledOut};
use policy::steering::{Foreground, Holds};
use record::observation::{Identity, Node, RoundTrip, Scope};
use world::Time;

use super::{LIMIT, against, judge, looks_at, only};
use crate::common::{
    CHUNK_SIZE, CHUNKS, MAX_BYTES, MB, cluster, node, recovery, restore_from, rtt, series,
    settings, settings_of,
};

#[test]
fn a_throttle_is_a_nodes_and_its_gain_is_reckoned() {
    let finding = only(&looks_at(LIMIT / 2, |look, s| {
        look.recoveries.push(recovery("j", s, LIMIT / 2));
        for recovery in &mut look.recoveries {
            recovery.target_throttle_ms = Some(s * 1500);
            recovery.source_throttle_ms = Some(s * 300);
        }
        look.round_trips = rtt(5.0);
    }));
    assert_eq!((finding.class, finding.subjects.len()), (Class::RateLimit, 2));
    assert!(finding.strength > 0.95, "{finding:?}");
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting.as_deref(), Some(MAX_BYTES));
    assert_eq!((lift.now.as_deref(), lift.set_by), (Some("40mb"), Some(Scope::Persistent)));
    // Latency of two recoveries of 2 x 512 KiB over 5 ms is far above the limit; what is nearer is not told.
    assert_eq!(lift.to.as_deref(), Some("80mb"));
    let next = finding.next.sentence.unwrap();
    assert!(
        next.contains("latency") && next.ends_with(", 2.0 times for all that b moves)"),
        "{next}"
    );
}

/// The trap: a limiter that pauses for bursts is not what holds, and pauses of several threads add up to more than
/// the time.
#[test]
fn pauses_far_below_the_limit_are_bursts_of_latency() {
    let finding = only(&looks_at(9 * MB, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 120);
        look.recoveries[0].target_throttle_ms = Some(s * 120);
        look.round_trips = rtt(100.0);
    }));
    assert_eq!(finding.class, Class::Latency);
    assert_eq!(finding.lift.unwrap().to.as_deref(), Some("5"));
    let gain = finding.gain.unwrap();
    assert!((gain.factor - 2.5).abs() < 1e-9, "{gain:?}");
    assert!(finding.next.sentence.unwrap().contains("max_bytes_per_sec"));
}

/// The trap: the source alone pauses, and so the target never does.
#[test]
fn the_first_limiter_hides_the_other_so_both_are_summed() {
    let finding = only(&looks_at(LIMIT, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 800);
        look.nodes[0].throttle_ms = Some(s * 800);
    }));
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
}

/// The trap: where recoveries go both ways both limiters are full, and now the one pauses a little more, now the other.
#[test]
fn of_two_limiters_that_are_as_full_the_same_one_is_named() {
    let place = |ms: [u64; 2]| {
        let finding = only(&looks_at(LIMIT, |look, s| {
            look.recoveries[0].source_throttle_ms = Some(s * 800);
            look.nodes.iter_mut().zip(ms).for_each(|(node, ms)| node.throttle_ms = Some(s * ms));
        }));
        finding.place
    };
    assert_eq!([[700, 800], [800, 700]].map(place), ["a", "a"]);
    assert_eq!([[300, 800], [800, 300]].map(place), ["b", "a"], "that which holds hides the other");
}

/// The trap: an operator raised the limit, nothing paused, and nothing changed (Elasticsearch 32622).
#[test]
fn a_raised_limit_without_pauses_is_not_the_limit() {
    let finding = only(&looks_at(9 * MB, |look, _| {
        look.settings = settings(&[(MAX_BYTES, "400mb")]);
    }));
    assert_eq!(finding.class, Class::Latency);
    assert!(finding.doubt.unwrap().contains("bandwidth"), "without a round trip it is a guess");
}

/// The trap: by default the limiter of a node of Elasticsearch's cold tier alone goes by its memory, while the cluster
/// lists the default of the node that answered. Made after "Index recovery settings": no Elasticsearch was run.
#[test]
fn a_cold_nodes_limiter_goes_by_its_memory() {
    let found = |rate: u64, listed: &str, cold: &[&str]| {
        let found = only(&looks_at(rate, |look, s| {
            look.cluster = Identity { version: "8.15.0".into(), ..cluster("elasticsearch") };
            look.settings = settings_of(Scope::Default, &[(MAX_BYTES, listed)]);
            look.nodes.push(node("c", s));
            for one in &mut look.nodes {
                let tier = if cold.contains(&&*one.name) { "data_cold" } else { "data_hot" };
                (one.roles, one.memory_bytes) = (vec![tier.to_owned()], Some(32 << 30));
            }
            look.recoveries[0].target_throttle_ms = Some(s * 900);
        }));
        assert_eq!(found.class, Class::RateLimit);
        let lift = found.lift.unwrap();
        assert_eq!(lift.set_by_words().as_deref(), Some("default"));
        (lift.now.unwrap(), lift.action)
    };
    let (now, action) = found(125 << 20, "40mb", &["a", "b"]);
    assert_eq!(now, "125mb");
    assert!(action.ends_with("and those of other tiers let 40mb through by default"), "{action}");
    // A cold node answered, and those that recover are none.
    let (now, action) = found(40 << 20, "125mb", &["c"]);
    assert_eq!(now, "40mb");
    assert!(action.ends_with("and c lets 125mb through by default"), "{action}");
}

/// The trap: a cluster lists the default of the node that answered, while the files of others let more through
/// (`node.bandwidth.recovery.*`). To "raise" the one that is told would lower theirs.
#[test]
fn a_default_that_is_passed_by_far_is_not_the_limit_of_the_node() {
    let at = |rate: u64, scope: Scope, limit: &str| {
        judge(&looks_at(rate, |look, s| {
            look.settings = settings_of(scope, &[(MAX_BYTES, limit)]);
            look.recoveries[0].source_throttle_ms = Some(s * 900);
            look.round_trips = rtt(0.0);
        }))
    };
    let fast = at(250 * MB, Scope::Default, "40mb");
    assert!(fast.findings.is_empty() && fast.healthy.len() == 1, "{fast:#?}");
    let slow = at(20 * MB, Scope::Default, "2mb");
    assert_eq!(slow.findings[0].class, Class::Unknown, "{slow:#?}");
    let (by, why) = against(&slow.findings[0], Class::RateLimit);
    assert!(by == By::Untold && why.ends_with("its own configuration sets another limit"), "{why}");
    // What is set for all holds everywhere, and a little more is a lump.
    assert_eq!(at(250 * MB, Scope::Persistent, "40mb").findings[0].class, Class::RateLimit);
    assert_eq!(at(50 * MB, Scope::Default, "40mb").findings[0].class, Class::RateLimit);
}

/// The trap: the source of a copy is a node, and its files come from a snapshot. Neither chunks nor the round trip to
/// that node have to do with it, and it is not the source that pauses. Made after the documentation of snapshot-based
/// recoveries: no Elasticsearch was run.
#[test]
fn files_that_come_from_a_snapshot_are_sent_by_no_node() {
    let looks = |rate: u64, from_snapshot: bool, paused_ms: u64| {
        looks_at(rate, |look, s| {
            look.cluster = Identity { version: "8.15.0".into(), ..cluster("elasticsearch") };
            let one = &mut look.recoveries[0];
            one.from_snapshot_bytes = one.recovered_bytes.filter(|_| from_snapshot);
            one.target_throttle_ms = Some(s * paused_ms);
            look.round_trips = rtt(100.0);
        })
    };
    assert_eq!(only(&looks(9 * MB, false, 0)).class, Class::Latency);
    let unknown = only(&looks(9 * MB, true, 0));
    assert_eq!(unknown.class, Class::Unknown);
    assert!(unknown.evidence[0].value.ends_with("from a snapshot"), "{:?}", unknown.evidence);
    let action = unknown.lift.unwrap().action;
    assert!(action.contains("indices.recovery.use_snapshots = false"), "{action}");
    let limited = only(&looks(LIMIT, true, 4000));
    assert_eq!((limited.class, limited.place.as_str()), (Class::RateLimit, "b"));
}

/// The trap: no node sends the files of a shrunken index, nor of one that OpenSearch restores from its remote store.
/// Neither passes the limiter of recoveries, or comes in chunks.
#[test]
fn what_no_node_sends_is_held_by_no_limiter_and_no_chunks() {
    for (kind, rate) in [("LOCAL_SHARDS", 9 * MB), ("LOCAL_SHARDS", LIMIT), ("REMOTE_STORE", LIMIT)]
    {
        let found = only(&looks_at(rate, |look, _| {
            let one = &mut look.recoveries[0];
            (one.kind, one.source) = (kind.into(), None);
            (one.source_throttle_ms, one.target_throttle_ms) = (None, None);
        }));
        assert_eq!(found.class, Class::Unknown, "{kind}: {found:?}");
        let is_of_source = |one: &RuledOut| one.why.contains("the node at the source");
        assert!(!found.ruled_out.iter().any(is_of_source), "{:?}", found.ruled_out);
    }
}

#[test]
fn a_restore_is_held_by_the_limiter_of_its_node_or_of_its_repository() {
    let restored = |rate: u64, limit: Option<&'static str>| {
        looks_at(rate, move |look, _| {
            restore_from("backup", &mut look.recoveries[0]);
            look.restore_limits =
                limit.map(|limit| ("backup".to_owned(), limit.to_owned())).into_iter().collect();
        })
    };
    let of_node = only(&restored(41 * MB, None));
    assert_eq!(of_node.class, Class::RateLimit);
    let is_of_source = |one: &RuledOut| one.why.contains("the node at the source");
    assert!(!of_node.ruled_out.iter().any(is_of_source), "there is none: {:?}", of_node.ruled_out);
    assert_eq!(
        of_node.lift.unwrap().setting.as_deref(),
        Some(MAX_BYTES),
        "no API tells pauses of a restore, so that its rate alone speaks"
    );
    let of_repository = only(&restored(10 * MB, Some("10mb")));
    assert_eq!(of_repository.class, Class::RateLimit);
    assert!(
        of_repository.sentence.starts_with("the repository backup is the bottleneck: 10.0 MB/s of")
    );
    let lift = of_repository.lift.unwrap();
    assert!(lift.setting.is_none() && lift.action.starts_with("PUT _snapshot/backup"), "{lift:?}");
    // A cluster does not change a repository that it reads.
    assert!(lift.action.contains("refuses this of a repository in use"), "{lift:?}");
    assert_eq!(of_repository.gain.unwrap().factor, 2.0);
    // Nor is it nothing to whoever raises settings.
    let looks = restored(10 * MB, Some("10mb"));
    let series = series(&looks);
    let users = Foreground::default();
    let seen = Onlooker::default().look(Time(0), &series, true, &judge(&looks), users);
    let [verdict] = &seen.verdicts[..] else { panic!("{:?}", seen.verdicts) };
    assert_eq!((verdict.holds, &*verdict.label), (Holds::Elsewhere, "the limit of a repository"));
    // Beside other work that keeps the cores of the target busy: its rate is still that of the limit.
    let mut beside = restored(10 * MB, Some("10mb"));
    beside.iter_mut().for_each(|(_, look)| look.nodes[1].os_cpu_percent = Some(100));
    assert_eq!(judge(&beside).findings[0].class, Class::RateLimit);
    // Far below both: chunks and how many are in flight are no settings of a restore, and are not blamed.
    let unknown = only(&restored(5 * MB, Some("10mb")));
    assert_eq!(unknown.class, Class::Unknown);
    assert!(unknown.ruled_out.iter().any(|one| one.class == Class::Latency));
}

#[test]
fn a_restore_and_a_recovery_onto_a_node_fill_its_limiter_together() {
    let held = judge(&looks_at(LIMIT / 2, |look, s| {
        look.recoveries[0].target_throttle_ms = Some(s * 1500);
        let mut restore = recovery("j", s, LIMIT / 2);
        restore_from("backup", &mut restore);
        look.recoveries.push(restore);
        look.round_trips = rtt(5.0);
    }));
    let finding = held.findings.iter().find(|one| one.class == Class::RateLimit).unwrap();
    assert_eq!((finding.place.as_str(), finding.subjects.len()), ("b", 2), "{held:#?}");
    assert!(finding.sentence.contains("lets through"), "it is full: {}", finding.sentence);
}

#[test]
fn the_limiter_of_a_repository_passes_its_own_restores_and_no_others() {
    let beside_another = |rate: u64, other: u64| {
        judge(&looks_at(rate, move |look, s| {
            look.recoveries.push(recovery("j", s, other));
            for (recovery, repository) in look.recoveries.iter_mut().zip(["backup", "archive"]) {
                restore_from(repository, recovery);
            }
            look.restore_limits = [("backup".to_owned(), "10mb".to_owned())].into();
        }))
    };
    for other in [6 * MB, 16 * MB, 25 * MB] {
        let held = beside_another(10 * MB, other);
        let finding = held.findings.iter().find(|one| one.class == Class::RateLimit).unwrap();
        let says = "the repository backup is the bottleneck: 10.0 MB/s of";
        assert!(finding.sentence.starts_with(says), "{}", finding.sentence);
        let factor = (LIMIT - other) as f64 / 1e7;
        let is_it = |seen: f64, due: f64| (seen - due).abs() < 0.01;
        assert!(is_it(finding.next.factor.unwrap(), factor), "the other goes on: {finding:?}");
        let gain = finding.gain.as_ref().unwrap().factor;
        assert!(
            is_it(gain, factor.min(2.0)),
            "what the node lets through is for both: {finding:?}"
        );
    }
    let below = beside_another(5 * MB, 6 * MB);
    assert!(below.findings.iter().all(|one| one.class != Class::RateLimit), "{below:#?}");
}

/// Five chunks that queued up at 1 MB/s keep to it for a while after the limit was raised.
#[test]
fn a_limit_that_has_just_changed_is_not_blamed_by_its_new_value() {
    let of = |rate_after: u64| {
        looks_at(MB, |look, s| {
            let recovery = &mut look.recoveries[0];
            recovery.recovered_bytes = Some(s.min(6) * MB + s.saturating_sub(6) * rate_after);
            recovery.source_throttle_ms = Some(s * 1900);
            let limit = if s <= 6 { "1mb" } else { "8mb" };
            look.settings = settings(&[(MAX_BYTES, limit)]);
        })
    };
    let finding = only(&of(2 * MB));
    assert_eq!(finding.class, Class::RateLimit);
    let said = &finding.sentence;
    assert!(said.contains("from 1mb to 8mb within the last 4.00 s"), "{said}");
    assert!(said.contains("not yet through: 2.00 MB/s"), "{said}");
    assert!(finding.gain.is_none() && finding.lift.unwrap().setting.is_none());
    let through = only(&of(8 * MB));
    assert!(!through.sentence.contains("through:"), "{}", through.sentence);
}

/// The trap: over a change the mean rate is far from both limits, and busy cores look nearer to what holds.
#[test]
fn a_limit_that_is_through_is_judged_by_the_rate_since_it_changed() {
    let finding = only(&looks_at(MB, |look, s| {
        let came = 2 * MB * s.min(4) + 4 * MB * s.saturating_sub(4);
        look.recoveries[0].recovered_bytes = Some(came);
        look.recoveries[0].source_throttle_ms = Some(s * 1900);
        let limit = if s <= 4 { "2mb" } else { "4mb" };
        look.settings = settings(&[(MAX_BYTES, limit)]);
    }));
    let said = &finding.sentence;
    assert!(said.contains("4.00 MB/s of the 4.19 MB/s") && finding.strength > 0.9, "{finding:?}");
    let told = "4.00 MB/s on b since indices.recovery.max_bytes_per_sec changed from 2mb";
    assert!(finding.evidence.iter().any(|one| one.value == told), "{finding:?}");
}

/// What has passed by now is through: a rate that still is not the limit's has another cause, or the limiter is not
/// the one that holds.
#[test]
fn a_change_is_not_on_its_way_for_ever() {
    let mut looks = looks_at(MB, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 1900);
        look.settings = settings(&[(MAX_BYTES, "8mb")]);
    });
    looks[0].1.settings = settings(&[(MAX_BYTES, "1mb")]);
    let finding = only(&looks);
    assert!(!finding.sentence.contains("through:"), "{}", finding.sentence);
}

/// Chunks that come in lumps: one step between looks is at the new limit by chance, the others are not yet.
#[test]
fn one_step_does_not_tell_that_a_change_is_through() {
    let finding = only(&looks_at(MB, |look, s| {
        let lump = if s == 10 { 8 * MB } else { 0 };
        look.recoveries[0].recovered_bytes = Some(s * MB + lump);
        look.recoveries[0].source_throttle_ms = Some(s * 1900);
        let limit = if s <= 6 { "1mb" } else { "8mb" };
        look.settings = settings(&[(MAX_BYTES, limit)]);
    }));
    assert!(finding.sentence.contains("not yet through: 3.67 MB/s"), "{}", finding.sentence);
}

/// Two nodes with limiters that would each be raised by as much as its own round trip allows.
#[test]
fn one_setting_is_proposed_one_value() {
    let looks = looks_at(LIMIT, |look, s| {
        let other = Node { name: "d".into(), ..look.nodes[1].clone() };
        look.nodes.extend([Node { name: "c".into(), ..look.nodes[0].clone() }, other]);
        let mut second = recovery("j", s, LIMIT * 9 / 10);
        (second.source, second.target) = (Some("c".into()), Some("d".into()));
        look.recoveries.push(second);
        for recovery in &mut look.recoveries {
            recovery.target_throttle_ms = Some(s * 900);
        }
        look.round_trips = rtt(20.0);
        look.round_trips.push(RoundTrip { from: "c".into(), to: "d".into(), rtt_ms: 10.0 });
    });
    let findings = judge(&looks).findings;
    assert!(findings.len() == 2 && findings.iter().all(|f| f.class == Class::RateLimit));
    let to = |finding: &Finding| finding.lift.as_ref().and_then(|lift| lift.to.clone());
    assert_eq!((to(&findings[0]), to(&findings[1])), (Some("50mb".to_owned()), None));
    let second = findings[1].lift.as_ref().unwrap();
    assert!(second.action.contains("the value above first") && findings[1].gain.is_none());
}

/// The trap: chunks of 4 MB come in bursts, so that a limiter pauses some of them far below its rate.
#[test]
fn a_path_that_is_full_below_a_limit_is_not_excused_by_the_pauses_of_bursts() {
    let at = |rate: u64, paused_ms: u64| {
        let looks = looks_at(rate, |look, s| {
            look.settings = settings(&[(MAX_BYTES, "200mb"), (CHUNK_SIZE, "4mb"), (CHUNKS, "8")]);
            look.recoveries[0].source_throttle_ms = Some(s * paused_ms);
            look.round_trips = rtt(3.4);
        });
        judge(&looks).findings.swap_remove(0)
    };
    // Each of eight chunks pauses for a twentieth of the time.
    let path = at(135 * MB, 460);
    assert_eq!(path.class, Class::Bandwidth);
    let (_, why) = against(&path, Class::RateLimit);
    assert!(why.contains("chunks pause 5."), "{why}");
    assert_eq!(at(200 * MB, 4600).class, Class::RateLimit);
    assert_eq!(at(135 * MB, 4600).class, Class::RateLimit, "others use the rest of the limit");
}

/// No limiter lets more through than its rate: what comes in lumps is not said to be more than all of it.
#[test]
fn a_rate_just_above_a_limit_is_said_to_be_all_of_it() {
    let above = only(&looks_at(LIMIT * 102 / 100, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 1000);
        look.recoveries[0].target_throttle_ms = Some(s * 1000);
    }));
    assert_eq!(above.class, Class::RateLimit);
    assert!(above.sentence.contains("41.9 MB/s of the 41.9 MB/s"), "{}", above.sentence);
    let formula = above.gain.unwrap().formula;
    assert!(formula.contains("chunks pause 100 % of their time"), "{formula}");
}

/// The trap: the source alone pauses, for all of the time, and the chunks behind the one that pauses wait for it. A
/// fifth of the time would be no reason to promise twice the rate.
#[test]
fn chunks_that_wait_behind_one_that_pauses_are_held_for_all_of_the_time() {
    let found = only(&looks_at(1 << 20, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "1mb"), (CHUNKS, "5")]);
        look.recoveries[0].source_throttle_ms = Some(s * 1000);
        look.round_trips = rtt(0.0);
    }));
    assert_eq!(found.class, Class::RateLimit);
    let gain = found.gain.unwrap();
    assert!((gain.factor - 2.0).abs() < 0.01, "{gain:?}");
    assert!(gain.formula.contains("chunks pause 100 % of their time"), "{}", gain.formula);
}

/// The trap: a limit was raised before one looked, chunks in line still keep to the old one, and other work keeps all
/// cores busy. Chunks that pause one after another for all of the time wait for no cores.
#[test]
fn pauses_for_all_of_the_time_come_before_a_busy_neighbour() {
    let found = only(&looks_at(1_900_000, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "3mb")]);
        look.recoveries[0].source_throttle_ms = Some(s * 1000);
        look.recoveries[0].target_throttle_ms = Some(s * 300);
        look.nodes[1].os_cpu_percent = Some(99);
        look.round_trips = rtt(0.0);
    }));
    assert_eq!(found.class, Class::RateLimit, "{found:?}");
}

/// The trap: what a path carries happens to be near the limit, which pauses nobody.
#[test]
fn a_level_rate_near_a_limit_that_pauses_nobody_is_the_path() {
    let at = |paused_ms: u64| {
        let looks = looks_at(LIMIT * 85 / 100, |look, s| {
            look.settings = settings(&[(CHUNKS, "5")]);
            look.recoveries[0].source_throttle_ms = Some(s * paused_ms);
            look.round_trips = rtt(20.0);
        });
        only(&looks).class
    };
    assert_eq!(at(20), Class::Bandwidth);
    // Chunks that come in bursts: without their pauses they would be faster by a twentieth.
    assert_eq!(at(250), Class::Bandwidth);
    assert_eq!(at(900), Class::RateLimit);
}

/// A chunk of 512 KiB takes 8 s to pass 64 KiB/s: no look of ten seconds has to see one come.
#[test]
fn a_limit_so_low_that_nothing_came_while_one_looked_is_named_by_itself() {
    let at = |limit: &'static str, came: u64, ran_s: u64| {
        only(&looks_at(0, |look, s| {
            look.settings = settings(&[(MAX_BYTES, limit)]);
            let recovery = &mut look.recoveries[0];
            recovery.total_ms = Some(ran_s * 1000 + s * 1000);
            recovery.recovered_bytes = Some(came * (512 << 10));
            look.round_trips = rtt(20.0);
        }))
    };
    for finding in [at("64kb", 0, 1), at("64kb", 1, 2)] {
        assert_eq!(finding.class, Class::RateLimit, "{finding:?}");
        let lift = finding.lift.unwrap();
        assert_eq!(lift.to_words().as_deref(), Some("40mb, the default"));
        let gain = finding.gain.unwrap();
        assert_eq!(gain.factor, 8.0, "nothing that is seen supports more");
        assert!(gain.formula.starts_with("0.52 MB/s / 0.0655 MB/s; "), "{}", gain.formula);
        assert!(finding.doubt.is_some());
    }
    // The next chunk was due long ago, or would have been.
    let late = at("64kb", 0, 30);
    assert_eq!(late.class, Class::Unknown);
    assert!(late.sentence.contains("nothing came meanwhile"), "{}", late.sentence);
    assert_eq!(at("2mb", 0, 1).class, Class::Unknown);
}

/// A chunk of 512 KiB passes 200 KiB/s in 2.56 s, and its pause is told then: each verdict on the way is the limit's.
#[test]
fn at_200_kb_the_first_verdict_is_the_limit() {
    let looks = looks_at(0, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "200kb")]);
        let recovery = &mut look.recoveries[0];
        let ran_ms = 6000 + s * 1000;
        let passed = ran_ms / 2560;
        recovery.total_ms = Some(ran_ms);
        recovery.recovered_bytes = Some(passed * (512 << 10));
        // Of two chunks in flight each waits for the one before it; the first had nobody to wait for.
        recovery.source_throttle_ms = Some((passed * 5120).saturating_sub(2560));
        look.round_trips = rtt(20.0);
    });
    for seen in 2..=looks.len() {
        let finding = only(&looks[..seen]);
        assert_eq!(finding.class, Class::RateLimit, "after {seen} looks: {finding:?}");
        // No chunk may come between two looks; the recovery moves all the same.
        let lines = finding.evidence.iter().map(|line| &line.value);
        for said in lines.chain([&finding.sentence]) {
            assert!(!said.contains("0.00 MB/s"), "after {seen} looks: {said}");
        }
    }
}

/// The trap: two chunks came while one looked, and by chance it were not three.
#[test]
fn of_few_chunks_the_whole_time_of_a_recovery_tells() {
    let finding = only(&looks_at(0, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "256kb")]);
        let recovery = &mut look.recoveries[0];
        recovery.total_ms = Some(30_000 + s * 1000);
        // A chunk takes 2 s; the last of these came just before the first look.
        recovery.recovered_bytes = Some((16 + s / 4) * (512 << 10));
        recovery.source_throttle_ms = Some(30_000 + s / 4 * 2000);
        look.round_trips = rtt(20.0);
    }));
    assert_eq!(finding.class, Class::RateLimit, "{finding:?}");
}

/// The trap: a limit was lowered before one looked, and the whole time of the recovery tells of the one before.
#[test]
fn what_came_at_a_higher_limit_says_nothing_of_a_lower_one() {
    let finding = only(&looks_at(0, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "256kb")]);
        let recovery = &mut look.recoveries[0];
        recovery.total_ms = Some(100_000 + s * 1000);
        recovery.recovered_bytes = Some(100 * MB);
        recovery.source_throttle_ms = Some(80_000);
        look.round_trips = rtt(20.0);
    }));
    assert_eq!(finding.class, Class::Unknown, "{finding:?}");
}

/// The trap: of several copies that share a low limit, no chunk of one came while one looked, and other work keeps all
/// cores of its target busy.
#[test]
fn a_busy_neighbour_is_not_blamed_for_what_waits_in_line_at_a_limiter() {
    let finding = only(&looks_at(MB, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "1mb")]);
        look.recoveries[0].source_throttle_ms = Some(s * 1000);
        look.nodes[0].throttle_ms = Some(s * 1000);
        let mut waits = recovery("j", s, 0);
        (waits.target, waits.recovered_bytes) = (Some("c".into()), Some(10 * MB));
        look.recoveries.push(waits);
        look.nodes.push(node("c", s));
        look.nodes[2].os_cpu_percent = Some(100);
        look.round_trips = rtt(0.0);
    }));
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
    assert_eq!(finding.subjects, ["i[0] to b", "j[0] to c"]);
}

/// The trap: of many short recoveries each is over soon, and the next passes the limiter that held it.
#[test]
fn a_limiter_that_the_next_recovery_passes_is_not_over() {
    let looks = |target: &'static str| {
        looks_at(LIMIT, move |look, s| {
            look.recoveries[0].source_throttle_ms = Some(s * 900);
            look.nodes[0].throttle_ms = Some(s * 900);
            look.recoveries[0].ended = s == 10;
            look.nodes.push(node("c", s));
            look.nodes.push(node("d", s));
            if s == 10 {
                let mut next = recovery("j", 0, 0);
                (next.start_ms, next.total_ms) = (Some(1_009_900), Some(100));
                (next.source, next.target) = (Some("c".into()), Some(target.into()));
                look.recoveries.push(next);
            }
        })
    };
    let held = only(&looks("a"));
    assert!(!held.over && held.sentence.contains(" is the bottleneck"), "{held:?}");
    assert_eq!(held.subjects, ["i[0] to b", "j[0] to a"]);
    let elsewhere = only(&looks("d"));
    assert!(elsewhere.over && elsewhere.sentence.contains(" was the bottleneck"), "{elsewhere:?}");
}

/// The trap: a second look, at two copies that began a moment ago. No pause is over that the limiter could tell, and
/// nobody has measured the round trip, so that chunks that take 2 s each look like latency.
#[test]
fn of_few_chunks_nobody_says_that_no_limiter_binds() {
    let of = |limit: &'static str, seen: usize| {
        let looks = looks_at(512 << 10, |look, s| {
            look.settings = settings(&[(MAX_BYTES, limit)]);
            look.recoveries.push(recovery("j", s, 512 << 10));
            for recovery in &mut look.recoveries {
                recovery.source_throttle_ms = Some(s.saturating_sub(2) * 900);
            }
        });
        judge(&looks[..seen])
    };
    let early = of("1mb", 3);
    assert!(!early.findings.is_empty());
    for finding in &early.findings {
        assert_eq!(finding.class, Class::Unknown, "{early:#?}");
        let why = "too few chunks came yet to tell whether the limiter of b binds";
        assert!(finding.sentence.contains(why), "{}", finding.sentence);
        let open = finding.ruled_out.iter().filter(|one| one.by == By::Untold);
        let open: Vec<Class> = open.map(|one| one.class).collect();
        let both = [Class::RateLimit, Class::Latency];
        assert!(both.iter().all(|class| open.contains(class)), "{:?}", finding.ruled_out);
    }
    let classes = |seen: Diagnosis| seen.findings.iter().map(|one| one.class).collect::<Vec<_>>();
    assert_eq!(classes(of("1mb", 11)), [Class::RateLimit]);
    assert_eq!(classes(of("100mb", 3)), [Class::Latency], "far from the limit");
}
