//! What is enough for a verdict, and what is healthy or unknown.

use std::collections::BTreeMap;

use insight::diagnosis::{By, Class, diagnose, paces, untold};
use record::observation::{AnswerTime, Gap, HotThreads, Node, RoundTrip, Scope};

use super::{LIMIT, against, judge, looks_at, looks_at_rest, only};
use crate::common::{
    CHUNK_SIZE, CHUNKS, MAX_BYTES, MB, case, cluster, looks, recovery, rtt, series, settings,
    settings_of,
};

/// The trap: a counter that began anew is not a fall, and what a node does not tell is not zero.
#[test]
fn a_node_that_restarts_or_is_silent_proves_nothing() {
    let restarted = looks_at(9 * MB, |look, s| {
        if s >= 5 {
            look.nodes[1].uptime_ms = Some((s - 5) * 1000);
            look.nodes[1].gc_ms = Some((s - 5) * 4);
        } else {
            look.nodes[1].gc_ms = Some(1_000_000);
        }
    });
    assert_eq!(only(&restarted).class, Class::Latency);
    let silent = looks_at(9 * MB, |look, s| {
        look.nodes = vec![Node { name: "b".into(), ..Node::default() }];
        if s % 3 == 0 {
            look.nodes.clear();
        }
    });
    assert_eq!(only(&silent).class, Class::Latency);
}

#[test]
fn healthy_is_no_finding() {
    let fast = judge(&looks_at(180 * MB, |look, _| {
        look.settings = settings(&[(MAX_BYTES, "-1")]);
        look.round_trips = rtt(0.0);
    }));
    assert!(fast.findings.is_empty() && fast.headline.starts_with("healthy"), "{fast:#?}");
    let short = judge(&looks(|s| {
        let mut look = case(s.min(1), 20 * MB);
        look.recoveries[0].ended = s > 1;
        look.recoveries[0].total_bytes = Some(40 * MB);
        look.recoveries[0].target_throttle_ms = Some(s.min(1) * 900);
        look
    }));
    assert!(short.findings.is_empty() && short.healthy.len() == 1, "{short:#?}");
    let quiet = judge(&looks_at_rest(|_, _| ()));
    assert!(quiet.findings.is_empty() && quiet.headline.starts_with("healthy"));
}

/// The trap: over ten seconds of looks, what was over after five seems half as fast as it was.
#[test]
fn a_recovery_that_is_over_within_the_looks_is_as_fast_as_in_its_own_time() {
    let found = judge(&looks_at(0, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "-1")]);
        look.round_trips = rtt(0.2);
        let one = &mut look.recoveries[0];
        let ran_s = s.min(4) + 1;
        one.ended = s >= 4;
        one.stage = if one.ended { "DONE" } else { "INDEX" }.into();
        (one.total_ms, one.total_bytes) = (Some(ran_s * 1000), Some(250 * MB));
        one.recovered_bytes = Some(ran_s * 50 * MB);
    }));
    assert!(found.findings.is_empty(), "{found:#?}");
    assert!(found.healthy[0].contains("goes at 50.0 MB/s"), "{found:#?}");
}

/// Pauses of chunks side by side add up to more than the time: the evidence says over how many, and in what time.
#[test]
fn summed_pauses_say_over_how_many_chunks_and_in_what_time() {
    let finding = only(&looks_at(MB, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "1mb"), (CHUNKS, "5")]);
        look.recoveries[0].source_throttle_ms = Some(s * 4500);
        look.nodes[0].throttle_ms = Some(s * 4500);
        look.round_trips = rtt(20.0);
    }));
    assert_eq!(finding.class, Class::RateLimit);
    let paused = finding.evidence.iter().filter(|line| line.field.contains("throttle_time"));
    let paused: Vec<&str> = paused.map(|line| line.value.as_str()).collect();
    let one = "45.0 s of pauses in 10.0 s, over 5 chunks in flight";
    assert_eq!(paused, [one, "a: 45.0 s of pauses in 10.0 s, over all chunks in flight"]);
}

/// A starved node answers so late that its recovery is in one look alone: what it counted since it began tells as much.
#[test]
fn a_recovery_that_is_seen_once_is_judged_by_its_own_counters() {
    let starved = |began: bool, ns: u64| {
        looks_at(MB, |look, s| {
            look.nodes[1].cgroup_throttled_ns = Some(s * ns);
            let once = std::mem::take(&mut look.recoveries).pop().filter(|_| s == 10);
            look.recoveries.extend(once);
            for recovery in look.recoveries.iter_mut().filter(|_| began) {
                recovery.total_ms = Some(500);
            }
        })
    };
    let finding = only(&starved(false, 1_400_000_000));
    assert_eq!((finding.class, finding.place.as_str()), (Class::CpuQuota, "b"));
    assert!(finding.sentence.contains("93 % of the time"), "{finding:?}");
    let formula = finding.gain.unwrap().formula;
    assert!(formula.starts_with("1 / (1 - 90 %)"), "no more counts: {formula}");
    // What is slow and cannot be explained is never called healthy.
    assert_eq!(only(&starved(false, 0)).class, Class::Latency);
    let young = judge(&starved(true, 0));
    assert_eq!(young.findings[0].class, Class::Unknown, "{young:#?}");
    assert!(young.headline.contains("look longer"), "{young:#?}");
}

/// Recoveries that went one after another took nothing from each other.
#[test]
fn what_went_before_is_not_added_to_a_nodes_rate() {
    let looks = looks_at(0, |look, s| {
        look.recoveries.clear();
        for (index, from) in [("i", 0), ("j", 5)] {
            if (from..=from + 5).contains(&s) {
                let mut one = recovery(index, s - from, 20 * MB);
                one.target_throttle_ms = Some((s - from) * 100);
                one.ended = s == from + 5;
                look.recoveries.push(one);
            }
        }
        look.round_trips = rtt(0.0);
    });
    // Together they would make 40 MB/s of the 42 that the limiter lets through.
    assert!(judge(&looks).findings.iter().all(|f| f.class != Class::RateLimit));
}

/// The way back may be another one: a proxy, a tunnel, a route.
#[test]
fn a_round_trip_is_that_of_the_source() {
    let looks = looks_at(10_400_000, |look, _| {
        look.round_trips = rtt(100.0);
        look.round_trips.push(RoundTrip { from: "b".into(), to: "a".into(), rtt_ms: 3.0 });
    });
    assert_eq!(only(&looks).class, Class::Latency);
}

/// Asking a node that hardly runs, or that collects garbage, takes long, and that is no round trip.
#[test]
fn a_node_that_is_kept_from_running_is_not_far_away() {
    type Change = fn(&mut Node, u64);
    let cases: [(Class, Change); 4] = [
        (Class::CpuQuota, |node, s| node.cgroup_throttled_ns = Some(s * 600_000_000)),
        (Class::Gc, |node, s| node.gc_ms = Some(s * 450)),
        (Class::Latency, |node, s| node.gc_ms = Some(s * 160)),
        // The kernel adds up what each of many cores stood still for.
        (Class::Latency, |node, s| {
            node.cgroup_throttled_ns = Some(s * 300_000_000);
            node.process_cpu_ms = Some(s * 3500);
        }),
    ];
    for (class, change) in cases {
        let finding = only(&looks_at(10_400_000, |look, s| {
            change(&mut look.nodes[1], s);
            look.round_trips = rtt(100.0);
        }));
        assert_eq!(finding.class, class, "{finding:#?}");
    }
}

/// Collections run on all cores. A node that works hard collects now and then.
#[test]
fn cores_that_collections_keep_busy_are_no_lack_of_cores() {
    let first = |ms: u64| {
        let looks = looks_at(10_400_000, |look, s| {
            look.nodes[1].os_cpu_percent = Some(97);
            look.nodes[1].process_cpu_ms = Some(s * 7600);
            look.nodes[1].gc_ms = Some(s * ms);
        });
        judge(&looks).findings[0].class
    };
    assert_eq!(first(770), Class::Gc);
    assert_eq!(first(300), Class::Cpu);
}

#[test]
fn one_look_is_not_enough() {
    let one = looks(|s| case(s, MB));
    let diagnosis = judge(&one[..1]);
    assert!(diagnosis.findings.is_empty() && diagnosis.headline.contains("one look"));
    assert!(judge(&[]).findings.is_empty());
}

/// A recovery that only the last of two looks has: nothing is ruled out, and each cause is named with that.
#[test]
fn a_recovery_that_was_seen_once_leaves_every_cause_open() {
    let looks = looks_at(9 * MB, |look, s| {
        look.recoveries[0].total_ms = Some(300);
        look.recoveries.retain(|_| s >= 1);
    });
    let finding = only(&looks[..2]);
    assert!(finding.sentence.contains("too short a time"), "{}", finding.sentence);
    for class in OF_COPYING {
        assert_eq!(against(&finding, class), (By::Untold, "two looks at it would tell"));
    }
}

/// The embedded engine's own accounting is evidence, and no verdict needs it.
#[test]
fn verdicts_are_the_same_without_the_engines_own_accounting() {
    let with = |charged: bool| {
        looks_at(9 * MB, |look, s| {
            if charged {
                look.recoveries[0].charged_ns.insert(record::Limit::Latency, s * 900_000_000);
            }
            look.round_trips = rtt(100.0);
        })
    };
    let (told, inferred) = (only(&with(true)), only(&with(false)));
    assert_eq!(
        (told.class, told.strength, &told.lift),
        (inferred.class, inferred.strength, &inferred.lift)
    );
    assert_eq!(told.evidence.len(), inferred.evidence.len() + 1);
}

#[test]
fn a_pace_is_an_interval_around_what_is_left() {
    let looks = looks_at(10 * MB, |look, _| {
        look.recoveries[0].total_bytes = Some(1000 * MB);
    });
    let pace = &paces(&series(&looks))[0];
    let (soon, late) = pace.eta_s.unwrap();
    assert!(soon < 89.0 && 89.0 < late && late < 110.0, "{pace:?}");
    assert_eq!(pace.bytes_per_s.map(f64::round), Some(10e6));
}

/// The causes that are looked for in a recovery that copies files.
const OF_COPYING: [Class; 10] = [
    Class::RateLimit,
    Class::Latency,
    Class::Bandwidth,
    Class::CpuQuota,
    Class::Gc,
    Class::Cpu,
    Class::ThreadCpu,
    Class::Disk,
    Class::Memory,
    Class::NoisyNeighbour,
];

#[test]
fn a_finding_says_what_speaks_against_every_other_cause() {
    let throttled = only(&looks_at(LIMIT, |look, s| {
        look.recoveries[0].target_throttle_ms = Some(s * 900);
        look.nodes[0].os_cpu_percent = Some(95);
        look.nodes[0].process_cpu_ms = Some(s * 7600);
        look.nodes[1].gc_ms = None;
        look.round_trips = rtt(5.0);
    }));
    assert_eq!(throttled.class, Class::RateLimit);
    let others = OF_COPYING.iter().filter(|class| **class != Class::RateLimit);
    let named: Vec<Class> = throttled.ruled_out.iter().map(|one| one.class).collect();
    assert_eq!(named, others.copied().collect::<Vec<_>>());
    let has = |class, by, words: &str| {
        let (found, why) = against(&throttled, class);
        assert!(found == by && why.contains(words), "{found:?}: {why}");
    };
    // The cores of the source are busy as well, but less surely what holds.
    has(Class::Cpu, By::Weaker, "the cores of a (source) are busy: 95 %");
    has(Class::ThreadCpu, By::Figure, "all cores of a are busy: 95 %; b uses 0.10 cores");
    has(Class::Latency, By::Figure, "(80 % would tell)");
    has(
        Class::Gc,
        By::Untold,
        "collections stop a for 0.5 % of the time (15 % would tell); b tells",
    );
    has(Class::Disk, By::Figure, "the disk of a is busy 5.0 % of the time");
    has(Class::NoisyNeighbour, By::Figure, "and its own process takes 95 %");
    has(Class::Bandwidth, By::Figure, "in use for more than 70 %");
}

#[test]
fn an_end_that_was_not_seen_rules_nothing_out() {
    let seen_at_the_target = only(&looks_at(9 * MB, |look, _| {
        look.nodes.remove(0);
    }));
    for class in [Class::Cpu, Class::Disk, Class::Gc, Class::Memory] {
        let (by, why) = against(&seen_at_the_target, class);
        let is_open =
            by == By::Untold && why.ends_with("the node at the source was not seen twice");
        assert!(is_open && why.contains("b"), "{why}");
    }
}

#[test]
fn without_an_answer_nothing_is_healthy() {
    let headline = |path: &str, has_health: bool, unassigned: u64| {
        let diagnosis = judge(&looks_at_rest(|look, _| {
            look.health = look.health.take().filter(|_| has_health);
            look.health.iter_mut().for_each(|health| health.unassigned = Some(unassigned));
            look.gaps = vec![Gap { path: path.into(), ..Gap::default() }];
        }));
        assert!(diagnosis.findings.is_empty(), "{diagnosis:#?}");
        diagnosis.headline
    };
    for (path, has_health) in
        [("/_recovery", true), ("/_cat/shards", true), ("/_cluster/health", false)]
    {
        let said = headline(path, has_health, 0);
        assert!(said.starts_with("not known: ") && said.contains(path), "{said}");
    }
    let said = headline("/_nodes/hot_threads", true, 0);
    assert!(said.starts_with("healthy: nothing recovers or waits"), "{said}");
    // While many indices are created, copies come up without a recovery that is seen.
    for (unassigned, words) in [(1, "healthy: 1 copy is still"), (185, "healthy: 185 copies are")] {
        let said = headline("/_nodes/hot_threads", true, unassigned);
        assert!(said.starts_with(words) && said.ends_with("(health yellow)"), "{said}");
    }
    // The health alone says that copies wait.
    for (unassigned, words) in [(1, "1 copy waits, "), (3, "3 copies wait, ")] {
        let said = headline("/_cat/shards", true, unassigned);
        assert!(said.starts_with(words) && said.contains("/_cat/shards"), "{said}");
    }
    assert!(headline("/_recovery", true, 3).starts_with("not known: "));
}

/// Scripts go by the exit code: where nothing could be judged, it is not that of a cluster that is well.
#[test]
fn what_could_not_be_judged_for_want_of_answers_names_them() {
    let told = |path: &str, recovers: bool| {
        let looks = looks_at(0, |look, _| {
            look.recoveries.retain(|_| recovers);
            look.gaps = vec![Gap { path: path.into(), ..Gap::default() }];
        });
        let series = series(&looks);
        untold(&diagnose(&series), &series)
    };
    assert_eq!(told("/_recovery", false), Some(vec!["/_recovery".to_owned()]));
    assert_eq!(told("/_nodes/hot_threads", false), None, "the rest was answered");
    assert_eq!(told("/_cat/shards", true), None, "a recovery is judged");
}

#[test]
fn unknown_is_an_answer_and_says_so_of_every_cause() {
    // Near nodes, idle, slow, and no limit in sight; the rate is uneven, so no path is full either.
    let unknown = only(&looks_at(0, |look, s| {
        look.recoveries[0].recovered_bytes = Some((s / 3) * 9 * MB);
        look.round_trips = rtt(0.0);
    }));
    assert!(unknown.class == Class::Unknown && unknown.sentence.contains("unknown"), "{unknown:?}");
    let named: Vec<Class> = unknown.ruled_out.iter().map(|one| one.class).collect();
    assert_eq!(named, OF_COPYING);
    assert!(unknown.ruled_out.iter().all(|one| one.by == By::Figure), "{unknown:#?}");
}

/// The trap: a node that hardly runs answers a second question as late as the first.
#[test]
fn an_unknown_recovery_tells_of_an_end_that_answers_late_beside_other_nodes() {
    let told = |are_all_late: bool| {
        let unknown = only(&looks_at(0, |look, s| {
            look.recoveries[0].recovered_bytes = Some((s / 3) * 9 * MB);
            look.round_trips = rtt(0.0);
            let late_ms = 20.0 + (s % 3) as f64 * 400.0;
            let answer = |node: &str, ms: f64| AnswerTime { node: node.into(), ms, again_ms: ms };
            let other_ms = if are_all_late { late_ms } else { 2.0 };
            look.answers = vec![answer("a", other_ms), answer("b", late_ms)];
        }));
        assert_eq!(unknown.class, Class::Unknown);
        let line = unknown.evidence.iter().find(|line| line.field.contains("answers"));
        line.map(|line| line.value.clone())
    };
    let late = "b: 364 ms later than its fastest answer on average; other nodes: at most 0 ms";
    assert_eq!(told(false).as_deref(), Some(late));
    assert_eq!(told(true), None, "what delays all is no node's");
}

/// The trap: releases differ in which settings they have, and schedulers in which they obey.
#[test]
fn no_setting_is_named_that_is_not_there_or_has_no_effect() {
    let mut looks = looks_at(9 * MB, |look, _| {
        look.settings = settings_of(Scope::Default, &[(CHUNKS, "5")]);
        look.round_trips = rtt(280.0);
    });
    let lift = only(&looks).lift.unwrap();
    assert!(lift.setting.is_none() && lift.action.contains("no larger ones"), "{lift:?}");
    looks = looks_at(8 * MB, |look, _| {
        look.cluster = cluster("narrows");
        look.settings = settings(&[("narrows.recovery.scheduler", "sequential")]);
        look.round_trips = rtt(60.0);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    let lift = finding.lift.unwrap();
    assert_eq!((lift.setting.as_deref(), lift.to.as_deref()), (Some(CHUNK_SIZE), Some("2mb")));
    looks = looks_at(20 * MB, |look, s| {
        look.cluster = cluster("narrows");
        look.settings = settings(&[("narrows.recovery.scheduler", "adaptive")]);
        look.nodes[1].process_cpu_ms = Some(s * 1000);
        let threads = BTreeMap::from([("tls".to_owned(), 1)]);
        look.hot_threads = vec![HotThreads { node: "b".into(), threads, ..HotThreads::default() }];
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.lift.unwrap().setting), (Class::ThreadCpu, None));
}

/// The trap: a cluster lists what its nodes' configuration sets among its defaults.
#[test]
fn a_value_among_the_defaults_that_is_not_the_fields_is_of_the_nodes_configuration() {
    let lift_of = |value: &'static str, rate: u64, paused_ms: u64| {
        let finding = only(&looks_at(rate, |look, s| {
            look.settings = settings_of(Scope::Default, &[(MAX_BYTES, value)]);
            look.recoveries[0].source_throttle_ms = Some(s * paused_ms);
        }));
        assert_eq!(finding.class, Class::RateLimit);
        // The default is twenty times the limit; two chunks that pause for less than half of their time bring twice.
        let gain = finding.gain.unwrap();
        assert!((gain.factor - 2.0).abs() < 0.01, "{gain:?}");
        (finding.lift.unwrap(), finding.evidence)
    };
    // Where chunks pause for nearly all of the time, nobody knows what comes next, and the limit is raised in steps.
    let words = |paused_ms: u64| lift_of("2mb", 2 << 20, paused_ms).0.to_words().unwrap();
    assert_eq!([700, 900].map(words), ["40mb, the default", "4mb (40mb is the default)"]);
    let set_by = |value: &'static str, rate: u64| {
        let (lift, evidence) = lift_of(value, rate, 800);
        assert_eq!(lift.to_words().unwrap().contains("the default"), rate < LIMIT, "{lift:?}");
        let words = lift.set_by_words().unwrap();
        let told = format!("{value} ({words})");
        assert!(evidence.iter().any(|line| line.value == told), "{told}");
        words
    };
    assert_eq!(set_by("2mb", 2 << 20), "in the nodes' configuration; 40mb by default");
    assert_eq!(set_by("40mb", LIMIT), "default");
    assert_eq!(set_by("41943040b", LIMIT), "default", "the same in other words");
}

/// The trap: before it replays, operations stand still however long one looks.
#[test]
fn the_rate_of_a_replay_is_that_since_it_replays() {
    let looks = looks_at(0, |look, s| {
        let recovery = &mut look.recoveries[0];
        let stage = if s < 5 { "INDEX" } else { "TRANSLOG" };
        recovery.stage = stage.into();
        recovery.recovered_ops = Some(s.saturating_sub(5) * 2000);
        recovery.total_ops = Some(30_000);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::OperationReplay);
    assert!(finding.sentence.contains("at 2000 a second"), "{}", finding.sentence);
    let series = series(&looks);
    let pace = paces(&series).remove(0);
    // 20 000 are left: ten seconds, from half of them to twice.
    assert_eq!((pace.ops_per_s, pace.eta_s), (Some(2000.0), Some((5.0, 20.0))));
}
