//! Recoveries that move bytes: what holds them.

use std::collections::BTreeMap;

use insight::diagnosis::{Class, Finding, RuledOut};
use record::observation::{AnswerTime, HotThreads, Node, Observation, RoundTrip, Scope};

use super::{LIMIT, judge, looks_at, only};
use crate::common::{MB, cluster, node, recovery, rtt, settings};

#[test]
fn a_throttle_is_a_nodes_and_its_gain_is_reckoned() {
    let looks = looks_at(LIMIT / 2, |look, s| {
        look.recoveries.push(recovery("j", s, LIMIT / 2));
        for recovery in &mut look.recoveries {
            recovery.target_throttle_ms = Some(s * 1500);
            recovery.source_throttle_ms = Some(s * 300);
        }
        look.round_trips = rtt(5.0);
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.subjects.len()), (Class::RateLimit, 2));
    assert!(finding.strength > 0.95, "{finding:?}");
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting.as_deref(), Some("indices.recovery.max_bytes_per_sec"));
    assert_eq!((lift.now.as_deref(), lift.set_by), (Some("40mb"), Some(Scope::Persistent)));
    // Latency of two recoveries of 2 x 512 KiB over 5 ms is far above the limit; what is nearer is not told.
    assert_eq!(lift.to.as_deref(), Some("80mb"));
    assert!(finding.next.sentence.unwrap().contains("latency"));
}

/// The trap: a limiter that pauses for bursts is not what holds, and pauses of several threads add up to more than
/// the time.
#[test]
fn pauses_far_below_the_limit_are_bursts_of_latency() {
    let looks = looks_at(9 * MB, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 120);
        look.recoveries[0].target_throttle_ms = Some(s * 120);
        look.round_trips = rtt(100.0);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    assert_eq!(finding.lift.unwrap().to.as_deref(), Some("5"));
    let gain = finding.gain.unwrap();
    assert!((gain.factor - 2.5).abs() < 1e-9, "{gain:?}");
    assert!(finding.next.sentence.unwrap().contains("max_bytes_per_sec"));
}

/// The trap: a busy machine beside a long way. What the round trip explains wholly is latency all the same.
#[test]
fn a_rate_that_the_round_trip_explains_is_latency_on_a_busy_machine_too() {
    let looks = looks_at(10_400_000, |look, _| {
        look.nodes[0].os_cpu_percent = Some(97);
        look.round_trips = rtt(100.0);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
}

/// The trap: the source alone pauses, and so the target never does.
#[test]
fn the_first_limiter_hides_the_other_so_both_are_summed() {
    let looks = looks_at(LIMIT, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 800);
        look.nodes[0].throttle_ms = Some(s * 800);
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
}

/// The trap: an operator raised the limit, nothing paused, and nothing changed (Elasticsearch 32622).
#[test]
fn a_raised_limit_without_pauses_is_not_the_limit() {
    let looks = looks_at(9 * MB, |look, _| {
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "400mb")]);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    assert!(finding.doubt.unwrap().contains("bandwidth"), "without a round trip it is a guess");
}

#[test]
fn a_restore_is_held_by_the_limiter_of_its_node_or_of_its_repository() {
    let restored = |rate: u64, limit: Option<&'static str>| {
        looks_at(rate, move |look, _| {
            look.recoveries[0].kind = "SNAPSHOT".into();
            look.recoveries[0].source = None;
            look.recoveries[0].repository = Some("backup".into());
            look.restore_limits =
                limit.map(|limit| ("backup".to_owned(), limit.to_owned())).into_iter().collect();
        })
    };
    let of_node = only(&restored(41 * MB, None));
    assert_eq!(of_node.class, Class::RateLimit);
    assert_eq!(
        of_node.lift.unwrap().setting.as_deref(),
        Some("indices.recovery.max_bytes_per_sec"),
        "no API tells pauses of a restore, so that its rate alone speaks"
    );
    let of_repository = only(&restored(10 * MB, Some("10mb")));
    assert_eq!(of_repository.class, Class::RateLimit);
    assert!(
        of_repository.sentence.starts_with("the repository backup is the bottleneck: 10.0 MB/s of")
    );
    let lift = of_repository.lift.unwrap();
    assert!(lift.setting.is_none() && lift.action.starts_with("PUT _snapshot/backup"), "{lift:?}");
    assert_eq!(of_repository.gain.unwrap().factor, 2.0);
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
fn the_limiter_of_a_repository_passes_its_own_restores_and_no_others() {
    let beside_another = |rate: u64| {
        judge(&looks_at(rate, |look, s| {
            look.recoveries.push(recovery("j", s, 6 * MB));
            for (recovery, repository) in look.recoveries.iter_mut().zip(["backup", "archive"]) {
                recovery.kind = "SNAPSHOT".into();
                recovery.source = None;
                recovery.repository = Some(repository.into());
            }
            look.restore_limits = [("backup".to_owned(), "10mb".to_owned())].into();
        }))
    };
    let held = beside_another(10 * MB);
    let finding = held.findings.iter().find(|one| one.class == Class::RateLimit).unwrap();
    let says = "the repository backup is the bottleneck: 10.0 MB/s of";
    assert!(finding.sentence.starts_with(says), "{}", finding.sentence);
    let factor = (LIMIT as f64 - 6e6) / 1e7;
    assert!((finding.next.factor.unwrap() - factor).abs() < 0.01, "the other goes on: {finding:?}");
    let below = beside_another(5 * MB);
    assert!(below.findings.iter().all(|one| one.class != Class::RateLimit), "{below:#?}");
}

#[test]
fn latency_from_remote_names_the_settings_of_that_kind() {
    let looks = looks_at(6 * MB, |look, _| {
        look.cluster = cluster("elasticsearch");
        look.recoveries[0].kind = "SNAPSHOT".into();
        look.recoveries[0].source = None;
        look.recoveries[0].repository = Some("_ccr_eu".into());
        look.settings = settings(&[("ccr.indices.recovery.max_concurrent_file_chunks", "1")]);
        look.round_trips = vec![RoundTrip { from: "b".into(), to: "eu".into(), rtt_ms: 160.0 }];
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting.as_deref(), Some("ccr.indices.recovery.max_concurrent_file_chunks"));
    assert_eq!(lift.to.as_deref(), Some("10"));
    // 1 MiB over 160 ms, ten of them: 65 MB/s, but the limiter lets 41.9 through.
    assert!((finding.gain.unwrap().factor - LIMIT as f64 / 6e6).abs() < 0.01);
}

#[test]
fn chunks_at_their_most_leave_larger_ones_and_elasticsearch_has_none() {
    let at = |flavour: &str| {
        looks_at(9 * MB, |look, _| {
            look.cluster = cluster(flavour);
            look.settings = settings(&[(
                "indices.recovery.max_concurrent_file_chunks",
                if flavour == "opensearch" { "5" } else { "8" },
            )]);
            look.round_trips = rtt(if flavour == "opensearch" { 280.0 } else { 450.0 });
        })
    };
    let lift = only(&at("opensearch")).lift.unwrap();
    assert_eq!(
        (lift.setting.as_deref(), lift.to.as_deref()),
        (Some("indices.recovery.chunk_size"), Some("2mb"))
    );
    assert_eq!(lift.default.as_deref(), Some("512kb"));
    let lift = only(&at("elasticsearch")).lift.unwrap();
    assert!(
        lift.setting.is_none() && lift.action.contains("node_concurrent_recoveries"),
        "{lift:?}"
    );
}

#[test]
fn a_level_rate_that_the_round_trip_does_not_explain_is_the_path() {
    let looks = looks_at(12 * MB, |look, _| {
        look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", "5")]);
        look.round_trips = rtt(20.0);
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.place.as_str()), (Class::Bandwidth, "a to b"));
}

#[test]
fn operations_are_replayed() {
    const SETTING: &str = "indices.recovery.max_concurrent_operations";
    let lift = |flavour: &str, value: &str| {
        let looks = looks_at(0, |look, s| {
            look.cluster = cluster(flavour);
            look.settings = settings(&[(SETTING, value)]);
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            recovery.recovered_ops = Some(s * 2000);
            recovery.total_ops = Some(1_000_000);
        });
        let finding = only(&looks);
        assert_eq!(finding.class, Class::OperationReplay);
        let lift = finding.lift.unwrap();
        assert_eq!(lift.to.is_some(), finding.gain.is_some());
        (lift.setting, lift.to)
    };
    let set_to = |to: Option<&str>| (Some(SETTING.to_owned()), to.map(str::to_owned));
    for flavour in ["opensearch", "elasticsearch"] {
        assert_eq!(lift(flavour, "1"), set_to(Some("2")));
        assert_eq!(lift(flavour, "4"), set_to(None), "it is at its maximum");
    }
    assert_eq!(lift("narrows", "1"), (None, None), "the embedded engine takes no other value");
}

/// The trap: a copy stays in the stage until the nodes have agreed on it, though it lacks no operation.
#[test]
fn no_replay_is_blamed_where_nothing_is_replayed_and_nothing_left() {
    let at = |done: fn(u64) -> u64, total: u64| {
        let looks = looks_at(0, |look, s| {
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            (recovery.recovered_ops, recovery.total_ops) = (Some(done(s)), Some(total));
        });
        only(&looks)
    };
    let idle = at(|_| 40, 40);
    assert_eq!(idle.class, Class::Unknown, "{idle:?}");
    assert!(idle.sentence.contains("no operation is left to replay"), "{}", idle.sentence);
    let replay = idle.ruled_out.iter().find(|one| one.class == Class::OperationReplay).unwrap();
    assert!(replay.why.contains("no operation was replayed meanwhile"), "{replay:?}");
    assert_eq!(at(|_| 0, 40).class, Class::OperationReplay, "it is stuck with some left");
    assert_eq!(at(|s| s * 4, 40).class, Class::OperationReplay, "it replayed while one looked");
}

#[test]
fn merges_hold_a_replay_back() {
    let looks = looks_at(0, |look, s| {
        look.recoveries[0].stage = "TRANSLOG".into();
        look.recoveries[0].recovered_ops = Some(s * 200);
        look.nodes[1].merge_throttled_ms = Some(s * 600);
    });
    assert_eq!(only(&looks).class, Class::MergeThrottle);
}

/// A change to the nodes of a case, given the seconds.
type Change = fn(&mut Observation, u64);

/// Two chunks that one core after the other works on go at the pace of cores, though most cores are free. The path is
/// as level as a full one.
#[test]
fn chunks_that_wait_for_a_core_are_held_by_it_however_many_others_are_free() {
    let judged = |cpu_ms: u64, chunks: &str| {
        let looks = looks_at(20 * MB, |look, s| {
            look.cluster.flavour = "narrows".into();
            look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", chunks)]);
            look.nodes[1].as_target = Some(1);
            look.nodes[1].os_cpu_percent = Some(20);
            look.nodes[1].process_cpu_ms = Some(s * cpu_ms);
            look.round_trips = rtt(0.2);
        });
        only(&looks)
    };
    for (cpu_ms, chunks) in [(1300, "2"), (700, "1")] {
        let held = judged(cpu_ms, chunks);
        assert_eq!(held.class, Class::ThreadCpu);
        assert_eq!(held.lift.unwrap().default.as_deref(), Some("2"));
    }
    assert_eq!(judged(700, "2").class, Class::Bandwidth);
}

/// The trap: few large chunks come in lumps, and the path is full all the same.
#[test]
fn a_path_that_is_full_of_large_chunks_is_level() {
    let looks = looks_at(0, |look, s| {
        let pairs = [
            ("indices.recovery.chunk_size", "4mb"),
            ("indices.recovery.max_concurrent_file_chunks", "5"),
        ];
        look.settings = settings(&pairs);
        // 20 MB/s: now 4 chunks come, now 6.
        look.recoveries[0].recovered_bytes = Some((s * 5 + s % 2) * (4 << 20));
        look.round_trips = rtt(20.0);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Bandwidth, "{finding:?}");
}

#[test]
fn nodes_hold_transfers_in_their_own_ways() {
    let cases: [(Class, &str, Change); 9] = [
        (Class::Cpu, "b", |look, s| {
            look.nodes[1].os_cpu_percent = Some(98);
            look.nodes[1].process_cpu_ms = Some(s * 7500);
        }),
        // The process itself hardly runs.
        (Class::NoisyNeighbour, "b", |look, _| look.nodes[1].os_cpu_percent = Some(98)),
        (Class::CpuQuota, "a", |look, s| look.nodes[0].cgroup_throttled_ns = Some(s * 700_000_000)),
        (Class::Gc, "b", |look, s| look.nodes[1].gc_ms = Some(s * 400)),
        (Class::Disk, "b", |look, s| {
            look.nodes[1].io_time_ms = Some(s * 970);
            look.nodes[1].read_kib = Some(0);
            look.nodes[1].write_kib = Some(s * 10_000);
        }),
        (Class::NoisyNeighbour, "b", |look, s| {
            look.nodes[1].io_time_ms = Some(s * 970);
            look.nodes[1].read_kib = Some(s * 200_000);
            look.nodes[1].searches = Some(s * 900);
        }),
        (Class::Memory, "b", |look, s| {
            look.nodes[1].breakers_tripped = BTreeMap::from([("parent".to_owned(), s)]);
        }),
        (Class::Memory, "a", |look, s| look.nodes[0].pressure_rejections = Some(s * 3)),
        (Class::ThreadCpu, "a", |look, s| {
            look.nodes[0].process_cpu_ms = Some(s * 1000);
            let threads = BTreeMap::from([("tls".to_owned(), 1)]);
            look.hot_threads = vec![HotThreads { node: "a".into(), threads }];
        }),
    ];
    for (class, place, change) in cases {
        let diagnosis = judge(&looks_at(9 * MB, change));
        let first = &diagnosis.findings[0];
        assert_eq!((first.class, first.place.as_str()), (class, place), "{diagnosis:#?}");
        assert!(!first.evidence.is_empty() && first.lift.is_some());
    }
}

/// The trap: a node that is drained sends to several others, and only a part of that arrives at each.
#[test]
fn a_disk_is_busy_with_what_recoveries_move_at_its_own_node() {
    let finding = only(&looks_at(10 * MB, |look, s| {
        let mut elsewhere = recovery("j", s, 70 * MB);
        elsewhere.target = Some("c".into());
        look.recoveries.push(elsewhere);
        look.nodes.push(node("c", s));
        look.nodes[1].io_time_ms = Some(s * 970);
        look.nodes[1].read_kib = Some(0);
        look.nodes[1].write_kib = Some(s * 80_000);
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "-1")]);
        look.round_trips = rtt(0.0);
        look.round_trips.push(RoundTrip { from: "a".into(), to: "c".into(), rtt_ms: 0.0 });
    }));
    assert_eq!((finding.class, finding.place.as_str()), (Class::NoisyNeighbour, "b"));
    assert!(finding.sentence.contains("88 % of it with something else"), "{}", finding.sentence);
}

/// The trap: chunks under way on a slow disk are the recovery's long before it tells of them.
#[test]
fn a_disk_is_busy_with_chunks_that_have_not_come_yet() {
    let class_at = |written_kib_per_s: u64| {
        let finding = only(&looks_at(0, |look, s| {
            look.settings = settings(&[("indices.recovery.chunk_size", "4mb")]);
            look.nodes[1].io_time_ms = Some(s * 1000);
            look.nodes[1].read_kib = Some(0);
            look.nodes[1].write_kib = Some(s * written_kib_per_s);
        }));
        (finding.class, finding.place)
    };
    assert_eq!(class_at(1_000), (Class::Disk, "b".to_owned()));
    // Two chunks of 4 MB are no tenth of what this disk writes meanwhile.
    assert_eq!(class_at(60_000), (Class::NoisyNeighbour, "b".to_owned()));
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
            look.settings = settings(&[("indices.recovery.max_bytes_per_sec", limit)]);
        })
    };
    let finding = only(&of(2 * MB));
    assert_eq!(finding.class, Class::RateLimit);
    let said = &finding.sentence;
    assert!(said.contains("from 1mb to 8.39 MB/s within the last 4.00 s"), "{said}");
    assert!(said.contains("not yet through: 2.00 MB/s"), "{said}");
    assert!(finding.gain.is_none() && finding.lift.unwrap().setting.is_none());
    let through = only(&of(8 * MB));
    assert!(!through.sentence.contains("through:"), "{}", through.sentence);
}

/// What has passed by now is through: a rate that still is not the limit's has another cause, or the limiter is not
/// the one that holds.
#[test]
fn a_change_is_not_on_its_way_for_ever() {
    let mut looks = looks_at(MB, |look, s| {
        look.recoveries[0].source_throttle_ms = Some(s * 1900);
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "8mb")]);
    });
    looks[0].1.settings = settings(&[("indices.recovery.max_bytes_per_sec", "1mb")]);
    let finding = only(&looks);
    assert!(!finding.sentence.contains("through:"), "{}", finding.sentence);
}

/// Chunks that come in lumps: one step between looks is at the new limit by chance, the others are not yet.
#[test]
fn one_step_does_not_tell_that_a_change_is_through() {
    let looks = looks_at(MB, |look, s| {
        let lump = if s == 10 { 8 * MB } else { 0 };
        look.recoveries[0].recovered_bytes = Some(s * MB + lump);
        look.recoveries[0].source_throttle_ms = Some(s * 1900);
        let limit = if s <= 6 { "1mb" } else { "8mb" };
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", limit)]);
    });
    let finding = only(&looks);
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
    assert!(second.action.contains("try 50mb first") && findings[1].gain.is_none());
}

/// The trap: chunks of 4 MB come in bursts, so that a limiter pauses some of them far below its rate.
#[test]
fn a_path_that_is_full_below_a_limit_is_not_excused_by_the_pauses_of_bursts() {
    let at = |rate: u64, paused_ms: u64| {
        let looks = looks_at(rate, |look, s| {
            let pairs = [
                ("indices.recovery.max_bytes_per_sec", "200mb"),
                ("indices.recovery.chunk_size", "4mb"),
                ("indices.recovery.max_concurrent_file_chunks", "8"),
            ];
            look.settings = settings(&pairs);
            look.recoveries[0].source_throttle_ms = Some(s * paused_ms);
            look.round_trips = rtt(3.4);
        });
        judge(&looks).findings.swap_remove(0)
    };
    // Each of eight chunks pauses for a twentieth of the time.
    let path = at(135 * MB, 460);
    assert_eq!(path.class, Class::Bandwidth);
    let limiter = path.ruled_out.iter().find(|one| one.class == Class::RateLimit).unwrap();
    assert!(limiter.why.contains("chunks pause 5."), "{limiter:?}");
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

/// The trap: what a path carries happens to be near the limit, which pauses nobody.
#[test]
fn a_level_rate_near_a_limit_that_pauses_nobody_is_the_path() {
    let at = |paused_ms: u64| {
        let looks = looks_at(LIMIT * 85 / 100, |look, s| {
            look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", "5")]);
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

/// The trap: something else keeps all cores busy, beside a recovery that hardly needs them. A question to the node
/// waits for cores as a chunk does.
#[test]
fn busy_cores_hold_no_recovery_whose_chunks_hardly_wait_for_them() {
    let at = |answer_ms: f64, chunks: &str, rtt_ms: f64| {
        let looks = looks_at(9 * MB, |look, _| {
            look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", chunks)]);
            look.round_trips = rtt(rtt_ms);
            look.nodes[0].os_cpu_percent = Some(99);
            let answer =
                |node: &str| AnswerTime { node: node.into(), ms: answer_ms, again_ms: answer_ms };
            look.answers = vec![answer("a"), answer("b")];
        });
        only(&looks)
    };
    // Five chunks take 291 ms each.
    assert_eq!(at(30.0, "5", 20.0).class, Class::Bandwidth);
    assert_eq!(at(200.0, "5", 20.0).class, Class::NoisyNeighbour);
    let explained = at(10.0, "2", 110.0);
    assert_eq!(explained.class, Class::Latency);
    assert!(explained.sentence.contains("chunks hardly wait for cores"), "{}", explained.sentence);
    let neighbour = |one: &&RuledOut| one.class == Class::NoisyNeighbour;
    let ruled_out = explained.ruled_out.iter().find(neighbour).unwrap();
    assert!(ruled_out.why.contains("it answers within 10 ms"), "{}", ruled_out.why);
}

/// A chunk of 512 KiB takes 8 s to pass 64 KiB/s: no look of ten seconds has to see one come.
#[test]
fn a_limit_so_low_that_nothing_came_while_one_looked_is_named_by_itself() {
    let at = |limit: &'static str, came: u64, ran_s: u64| {
        let looks = looks_at(0, |look, s| {
            look.settings = settings(&[("indices.recovery.max_bytes_per_sec", limit)]);
            let recovery = &mut look.recoveries[0];
            recovery.total_ms = Some(ran_s * 1000 + s * 1000);
            recovery.recovered_bytes = Some(came * (512 << 10));
            look.round_trips = rtt(20.0);
        });
        only(&looks)
    };
    for finding in [at("64kb", 0, 1), at("64kb", 1, 2)] {
        assert_eq!(finding.class, Class::RateLimit, "{finding:?}");
        assert_eq!(finding.lift.unwrap().to.as_deref(), Some("512kb"));
        assert_eq!(finding.gain.unwrap().factor, 8.0);
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
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "200kb")]);
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
    let looks = looks_at(0, |look, s| {
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "256kb")]);
        let recovery = &mut look.recoveries[0];
        recovery.total_ms = Some(30_000 + s * 1000);
        // A chunk takes 2 s; the last of these came just before the first look.
        recovery.recovered_bytes = Some((16 + s / 4) * (512 << 10));
        recovery.source_throttle_ms = Some(30_000 + s / 4 * 2000);
        look.round_trips = rtt(20.0);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::RateLimit, "{finding:?}");
}

/// The trap: a shard that hardly moves shares a path with one whose rate jumps. Measured by the bytes of the small one
/// alone, any jump is but a chunk more or less.
#[test]
fn a_path_on_which_the_rate_jumps_is_not_level_to_its_small_shards() {
    let looks = looks_at(MB / 10, |look, s| {
        let mut large = recovery("j", s, MB);
        // 20 MB, then 10, and so on.
        large.recovered_bytes = Some((s / 2 * 30 + s % 2 * 20) * MB);
        look.recoveries.push(large);
        look.round_trips = rtt(20.0);
    });
    let classes: Vec<Class> = judge(&looks).findings.iter().map(|f| f.class).collect();
    assert!(!classes.contains(&Class::Bandwidth), "{classes:?}");
}

/// The trap: looks keep an even beat with pauses of a process or of its machine, so that the rate seems level.
#[test]
fn a_node_that_stands_still_for_parts_of_the_time_is_no_full_path() {
    let late = |every: u64, both: bool| {
        looks_at(9 * MB, |look, s| {
            look.round_trips = rtt(25.0);
            let is_late = s.is_multiple_of(every);
            let ms = if is_late { 400.0 } else { 2.0 };
            let again_ms = if is_late && both { 380.0 } else { 2.0 };
            look.answers = vec![AnswerTime { node: "a".into(), ms, again_ms }];
        })
    };
    let still = only(&late(3, false));
    assert_eq!((still.class, still.place.as_str()), (Class::Unknown, "a"));
    assert!(still.sentence.contains("a stands still"), "{}", still.sentence);
    let line = still.evidence.iter().find(|line| line.field.contains("answers")).unwrap();
    assert_eq!(line.value, "a: 4 of 11 answers came 100 ms or more late, up to 398 ms");
    // Now and then proves nothing, and neither does a node that is always slow to answer.
    assert_eq!(only(&late(6, false)).class, Class::Bandwidth);
    assert_eq!(only(&late(3, true)).class, Class::Bandwidth);
}
