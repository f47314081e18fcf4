//! Each class from constructed observations, each trap of the field, what is healthy, and what is unknown.

use std::collections::BTreeMap;

use crate::common::{MB, case, cluster, recovery, rtt, settings};
use insight::diagnosis::{Class, Diagnosis, Finding, Series, diagnose, paces};
use record::observation::{
    Decision, Follower, HotThreads, Node, Observation, Remote, RoundTrip, Scope, Selection,
    WaitingCopy,
};

const LIMIT: u64 = 40 << 20;

/// Ten looks, a second apart; `at` makes each from the seconds gone by.
fn looks(at: impl Fn(u64) -> Observation) -> Vec<(f64, Observation)> {
    (0..=10).map(|s| (s as f64 * 1000.0, at(s))).collect()
}

fn judge(looks: &[(f64, Observation)]) -> Diagnosis {
    diagnose(&Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look))))
}

#[track_caller]
fn only(looks: &[(f64, Observation)]) -> Finding {
    let diagnosis = judge(looks);
    let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:#?}") };
    finding.clone()
}

#[test]
fn every_class_says_how_it_shows_and_what_lifts_it() {
    for class in Class::ALL {
        let rule = class.rule();
        assert!(!rule.label.is_empty() && !rule.signature.is_empty());
        assert!(!rule.reads.is_empty() && !rule.lift.is_empty());
    }
}

#[test]
fn a_throttle_is_a_nodes_and_its_gain_is_reckoned() {
    let looks = looks(|s| {
        let mut look = case(s, LIMIT / 2);
        look.recoveries.push(recovery("j", s, LIMIT / 2));
        for recovery in &mut look.recoveries {
            recovery.target_throttle_ms = Some(s * 900);
            recovery.source_throttle_ms = Some(s * 300);
        }
        look.round_trips = rtt(5.0);
        look
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.subjects.len()), (Class::RateLimit, 2));
    assert!(finding.strength > 0.95, "{finding:?}");
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting.as_deref(), Some("indices.recovery.max_bytes_per_sec"));
    assert_eq!((lift.now.as_deref(), lift.set_by), (Some("40mb"), Some(Scope::Persistent)));
    // Two recoveries of 2 x 512 KiB over 5 ms, far above the limit: capped at eight times.
    assert_eq!(lift.to.as_deref(), Some("320mb"));
    assert!(finding.next.unwrap().contains("latency"));
}

/// The trap: a limiter that pauses for bursts is not what holds, and pauses of several threads add up to more than
/// the time.
#[test]
fn pauses_far_below_the_limit_are_bursts_of_latency() {
    let looks = looks(|s| {
        let mut look = case(s, 9 * MB);
        look.recoveries[0].source_throttle_ms = Some(s * 120);
        look.recoveries[0].target_throttle_ms = Some(s * 120);
        look.round_trips = rtt(100.0);
        look
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    assert_eq!(finding.lift.unwrap().to.as_deref(), Some("5"));
    let gain = finding.gain.unwrap();
    assert!((gain.factor - 2.5).abs() < 1e-9, "{gain:?}");
    assert!(finding.next.unwrap().contains("max_bytes_per_sec"));
}

/// The trap: a busy machine beside a long way. What the round trip explains wholly is latency all the same.
#[test]
fn a_rate_that_the_round_trip_explains_is_latency_on_a_busy_machine_too() {
    let looks = looks(|s| {
        let mut look = case(s, 10_400_000);
        look.nodes[0].os_cpu_percent = Some(97);
        look.round_trips = rtt(100.0);
        look
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
}

/// The trap: the source alone pauses, and so the target never does.
#[test]
fn the_first_limiter_hides_the_other_so_both_are_summed() {
    let looks = looks(|s| {
        let mut look = case(s, LIMIT);
        look.recoveries[0].source_throttle_ms = Some(s * 800);
        look.nodes[0].throttle_ms = Some(s * 800);
        look
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "a"));
}

/// The trap: an operator raised the limit, nothing paused, and nothing changed (Elasticsearch 32622).
#[test]
fn a_raised_limit_without_pauses_is_not_the_limit() {
    let looks = looks(|s| {
        let mut look = case(s, 9 * MB);
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "400mb")]);
        look
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Latency);
    assert!(finding.doubt.unwrap().contains("bandwidth"), "without a round trip it is a guess");
}

#[test]
fn latency_from_remote_names_the_settings_of_that_kind() {
    let looks = looks(|s| {
        let mut look = case(s, 6 * MB);
        look.cluster = cluster("elasticsearch");
        look.recoveries[0].kind = "SNAPSHOT".into();
        look.recoveries[0].source = None;
        look.recoveries[0].repository = Some("_ccr_eu".into());
        look.settings = settings(&[("ccr.indices.recovery.max_concurrent_file_chunks", "1")]);
        look.round_trips = vec![RoundTrip { from: "b".into(), to: "eu".into(), rtt_ms: 160.0 }];
        look
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
        looks(|s| {
            let mut look = case(s, 9 * MB);
            look.cluster = cluster(flavour);
            look.settings = settings(&[(
                "indices.recovery.max_concurrent_file_chunks",
                if flavour == "opensearch" { "5" } else { "8" },
            )]);
            look.round_trips = rtt(if flavour == "opensearch" { 280.0 } else { 450.0 });
            look
        })
    };
    let lift = only(&at("opensearch")).lift.unwrap();
    assert_eq!(
        (lift.setting.as_deref(), lift.to.as_deref()),
        (Some("indices.recovery.chunk_size"), Some("2mb"))
    );
    let lift = only(&at("elasticsearch")).lift.unwrap();
    assert!(
        lift.setting.is_none() && lift.action.contains("node_concurrent_recoveries"),
        "{lift:?}"
    );
}

#[test]
fn a_level_rate_that_the_round_trip_does_not_explain_is_the_path() {
    let looks = looks(|s| {
        let mut look = case(s, 12 * MB);
        look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", "5")]);
        look.round_trips = rtt(20.0);
        look
    });
    let finding = only(&looks);
    assert_eq!((finding.class, finding.place.as_str()), (Class::Bandwidth, "a to b"));
}

#[test]
fn operations_are_replayed() {
    const SETTING: &str = "indices.recovery.max_concurrent_operations";
    let lift = |flavour: &str, value: &str| {
        let looks = looks(|s| {
            let mut look = case(s, 0);
            look.cluster = cluster(flavour);
            look.settings = settings(&[(SETTING, value)]);
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            recovery.recovered_ops = Some(s * 2000);
            recovery.total_ops = Some(1_000_000);
            look
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

#[test]
fn merges_hold_a_replay_back() {
    let looks = looks(|s| {
        let mut look = case(s, 0);
        look.recoveries[0].stage = "TRANSLOG".into();
        look.recoveries[0].recovered_ops = Some(s * 200);
        look.nodes[1].merge_throttled_ms = Some(s * 600);
        look
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
        let looks = looks(|s| {
            let mut look = case(s, 20 * MB);
            look.cluster.flavour = "narrows".into();
            look.settings = settings(&[("indices.recovery.max_concurrent_file_chunks", chunks)]);
            look.nodes[1].as_target = Some(1);
            look.nodes[1].os_cpu_percent = Some(20);
            look.nodes[1].process_cpu_ms = Some(s * cpu_ms);
            look.round_trips = rtt(0.2);
            look
        });
        only(&looks).class
    };
    assert_eq!(judged(1300, "2"), Class::ThreadCpu);
    assert_eq!(judged(700, "1"), Class::ThreadCpu);
    assert_eq!(judged(700, "2"), Class::Bandwidth);
}

/// The trap: few large chunks come in lumps, and the path is full all the same.
#[test]
fn a_path_that_is_full_of_large_chunks_is_level() {
    let looks = looks(|s| {
        let mut look = case(s, 0);
        let pairs = [
            ("indices.recovery.chunk_size", "4mb"),
            ("indices.recovery.max_concurrent_file_chunks", "5"),
        ];
        look.settings = settings(&pairs);
        // 20 MB/s: now 4 chunks come, now 6.
        look.recoveries[0].recovered_bytes = Some((s * 5 + s % 2) * (4 << 20));
        look.round_trips = rtt(20.0);
        look
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
        let looks = looks(|s| {
            let mut look = case(s, 9 * MB);
            change(&mut look, s);
            look
        });
        let diagnosis = judge(&looks);
        let first = &diagnosis.findings[0];
        assert_eq!((first.class, first.place.as_str()), (class, place), "{diagnosis:#?}");
        assert!(!first.evidence.is_empty() && first.lift.is_some());
    }
}

/// The trap: a counter that began anew is not a fall, and what a node does not tell is not zero.
#[test]
fn a_node_that_restarts_or_is_silent_proves_nothing() {
    let restarted = looks(|s| {
        let mut look = case(s, 9 * MB);
        if s >= 5 {
            look.nodes[1].uptime_ms = Some((s - 5) * 1000);
            look.nodes[1].gc_ms = Some((s - 5) * 4);
        } else {
            look.nodes[1].gc_ms = Some(1_000_000);
        }
        look
    });
    assert_eq!(only(&restarted).class, Class::Latency);
    let silent = looks(|s| {
        let mut look = case(s, 9 * MB);
        look.nodes = vec![Node { name: "b".into(), ..Node::default() }];
        if s % 3 == 0 {
            look.nodes.clear();
        }
        look
    });
    assert_eq!(only(&silent).class, Class::Latency);
}

fn waiting(can_allocate: &str, decisions: &[(&str, &str, &str)]) -> WaitingCopy {
    let decision = |(node, decider, decision): &(&str, &str, &str)| Decision {
        node: (*node).into(),
        decider: (*decider).into(),
        decision: (*decision).into(),
        explanation: "so it is".into(),
    };
    WaitingCopy {
        index: "w".into(),
        state: "UNASSIGNED".into(),
        can_allocate: Some(can_allocate.into()),
        decisions: decisions.iter().map(decision).collect(),
        ..WaitingCopy::default()
    }
}

#[test]
fn slots_are_a_finding_of_their_own_only_where_there_is_room() {
    let queue =
        || waiting("throttled", &[("a", "same_shard", "NO"), ("b", "throttling", "THROTTLE")]);
    let idle = looks(|_| Observation { recoveries: vec![], waiting: vec![queue()], ..case(0, 0) });
    let finding = only(&idle);
    assert_eq!((finding.class, finding.place.as_str()), (Class::AllocationSlots, "b"));
    assert!(finding.strength > 0.8 && finding.gain.is_some());
    let throttled = looks(|s| {
        let mut look = case(s, LIMIT);
        look.recoveries[0].target_throttle_ms = Some(s * 900);
        look.waiting = vec![queue()];
        look
    });
    let diagnosis = judge(&throttled);
    let classes: Vec<Class> = diagnosis.findings.iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [Class::RateLimit, Class::AllocationSlots]);
    let slots = &diagnosis.findings[1];
    assert!(
        slots.strength < 0.5 && slots.gain.is_none() && slots.sentence.contains("lift that first")
    );
}

#[test]
fn a_block_names_its_decider_and_what_to_do() {
    for (decisions, decider, words) in [
        (
            &[("a", "same_shard", "NO"), ("b", "disk_threshold", "NO")][..],
            "disk_threshold",
            "watermark",
        ),
        (&[("a", "filter", "NO"), ("b", "filter", "NO")], "filter", "filters"),
        (&[("a", "max_retry", "NO"), ("b", "max_retry", "NO")], "max_retry", "retry_failed"),
        (&[("a", "same_shard", "NO"), ("b", "same_shard", "NO")], "same_shard", "add a node"),
        (&[("a", "of_tomorrow", "NO")], "of_tomorrow", "read what the cluster says"),
    ] {
        let looks = looks(|_| Observation {
            recoveries: vec![],
            waiting: vec![waiting("no", decisions)],
            ..case(0, 0)
        });
        let finding = only(&looks);
        assert_eq!((finding.class, finding.place.as_str()), (Class::AllocationBlock, decider));
        assert!(finding.lift.unwrap().action.contains(words));
    }
}

#[test]
fn what_is_about_to_be_placed_is_no_finding() {
    for can_allocate in ["yes", "awaiting_info", "allocation_delayed"] {
        let looks = looks(|_| Observation {
            recoveries: vec![],
            waiting: vec![waiting(can_allocate, &[])],
            ..case(0, 0)
        });
        assert!(judge(&looks).findings.is_empty());
    }
    // Nor is what has only just begun to wait.
    let looks = looks(|s| {
        let copies = if s == 10 { vec![waiting("no", &[("a", "filter", "NO")])] } else { vec![] };
        Observation { recoveries: vec![], waiting: copies, ..case(s, 0) }
    });
    assert!(judge(&looks).findings.is_empty());
}

fn follower(s: u64) -> Follower {
    Follower {
        index: "f".into(),
        shard: Some(0),
        remote: Some("eu".into()),
        leader_checkpoint: Some(100_000 + s as i64 * 5000),
        follower_checkpoint: Some(50_000 + s as i64 * 2000),
        outstanding_reads: Some(12),
        outstanding_writes: Some(0),
        write_buffer_bytes: Some(0),
        read_ms: Some(s * 12_000),
        read_remote_ms: Some(s * 500),
        reads: Some(s * 100),
        bytes_read: Some(s * MB),
        ..Follower::default()
    }
}

#[test]
fn followers_read_or_write_too_slowly_or_stop() {
    let with = |change: fn(&mut Follower, u64)| {
        looks(move |s| {
            let mut one = follower(s);
            change(&mut one, s);
            Observation { recoveries: vec![], followers: vec![one], ..case(s, 0) }
        })
    };
    let reader = only(&with(|_, _| {}));
    assert_eq!(reader.class, Class::FollowerReader);
    assert!(reader.sentence.contains("on the way"), "{}", reader.sentence);
    let leader = only(&with(|f, s| f.read_remote_ms = Some(s * 11_000)));
    assert!(leader.sentence.contains("leader's work"), "{}", leader.sentence);
    let writer = only(&with(|f, s| {
        f.write_buffer_bytes = Some(s * 40 * MB);
        f.outstanding_writes = Some(9);
    }));
    assert_eq!(writer.class, Class::FollowerWriter);
    let stopped = only(&with(|f, _| f.fatal = Some("history UUID changed".into())));
    assert_eq!(stopped.class, Class::FollowerStopped);
    // Behind, but catching up.
    let well = judge(&with(|f, s| f.follower_checkpoint = Some(50_000 + s as i64 * 9900)));
    assert!(well.findings.is_empty(), "{well:#?}");
    let unknown = only(&with(|f, _| f.read_ms = None));
    assert_eq!(unknown.class, Class::Unknown);
}

#[test]
fn proxies_and_routing_are_seen() {
    let remote = Remote {
        alias: "eu".into(),
        mode: Some("proxy".into()),
        proxy_sockets: Some(2),
        proxy_sockets_max: Some(18),
        ..Remote::default()
    };
    let proxied =
        looks(|s| Observation { recoveries: vec![], remotes: vec![remote.clone()], ..case(s, 0) });
    assert_eq!(only(&proxied).class, Class::Proxy);
    let routed = |value: &'static str| {
        looks(move |s| {
            let mut look = Observation { recoveries: vec![], ..case(s, 0) };
            let rank = |rank| Selection { rank: Some(rank), ..Selection::default() };
            look.nodes[0].adaptive_selection = [("id-a", 1.0), ("id-b", 40.0), ("id-c", 1.2)]
                .map(|(id, r)| (id.to_owned(), rank(r)))
                .into();
            look.settings = settings(&[("cluster.routing.use_adaptive_replica_selection", value)]);
            look
        })
    };
    let finding = only(&routed("false"));
    assert_eq!((finding.class, finding.place.as_str()), (Class::ReplicaRouting, "b"));
    assert!(judge(&routed("true")).findings.is_empty());
}

#[test]
fn healthy_is_no_finding() {
    let fast = judge(&looks(|s| {
        let mut look = case(s, 180 * MB);
        look.settings = settings(&[("indices.recovery.max_bytes_per_sec", "-1")]);
        look.round_trips = rtt(0.0);
        look
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
    let quiet = judge(&looks(|s| Observation { recoveries: vec![], ..case(s, 0) }));
    assert!(quiet.findings.is_empty() && quiet.headline.starts_with("healthy"));
}

#[test]
fn unknown_is_an_answer() {
    // Near nodes, idle, slow, and no limit in sight; the rate is uneven, so no path is full either.
    let looks = looks(|s| {
        let mut look = case(s, 0);
        look.recoveries[0].recovered_bytes = Some((s / 3) * 9 * MB);
        look.round_trips = rtt(0.0);
        look
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::Unknown);
    assert!(finding.sentence.contains("unknown"));
}

/// A starved node answers so late that its recovery is in one look alone: what it counted since it began tells as much.
#[test]
fn a_recovery_that_is_seen_once_is_judged_by_its_own_counters() {
    let starved = |began: bool, ns: u64| {
        looks(|s| {
            let mut look = case(s, MB);
            look.nodes[1].cgroup_throttled_ns = Some(s * ns);
            let once = std::mem::take(&mut look.recoveries).pop().filter(|_| s == 10);
            look.recoveries.extend(once);
            for recovery in look.recoveries.iter_mut().filter(|_| began) {
                recovery.total_ms = Some(500);
            }
            look
        })
    };
    let finding = only(&starved(false, 1_400_000_000));
    assert_eq!((finding.class, finding.place.as_str()), (Class::CpuQuota, "b"));
    assert!(finding.sentence.contains("100 % of the time"), "{finding:?}");
    // What is slow and cannot be explained is never called healthy.
    assert_eq!(only(&starved(false, 0)).class, Class::Latency);
    let young = judge(&starved(true, 0));
    assert_eq!(young.findings[0].class, Class::Unknown, "{young:#?}");
    assert!(young.headline.contains("look longer"), "{young:#?}");
}

/// Recoveries that went one after another took nothing from each other.
#[test]
fn what_went_before_is_not_added_to_a_nodes_rate() {
    let looks = looks(|s| {
        let mut look = case(s, 0);
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
        look
    });
    // Together they would make 40 MB/s of the 42 that the limiter lets through.
    assert!(judge(&looks).findings.iter().all(|f| f.class != Class::RateLimit));
}

/// The way back may be another one: a proxy, a tunnel, a route.
#[test]
fn a_round_trip_is_that_of_the_source() {
    let looks = looks(|s| {
        let mut look = case(s, 10_400_000);
        look.round_trips = rtt(100.0);
        look.round_trips.push(RoundTrip { from: "b".into(), to: "a".into(), rtt_ms: 3.0 });
        look
    });
    assert_eq!(only(&looks).class, Class::Latency);
}

/// Asking a node that hardly runs takes long, and that is no round trip.
#[test]
fn a_starved_node_is_not_far_away() {
    let looks = looks(|s| {
        let mut look = case(s, 10_400_000);
        look.nodes[1].cgroup_throttled_ns = Some(s * 600_000_000);
        look.round_trips = rtt(100.0);
        look
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::CpuQuota);
}

#[test]
fn one_look_is_not_enough() {
    let one = looks(|s| case(s, MB));
    let diagnosis = judge(&one[..1]);
    assert!(diagnosis.findings.is_empty() && diagnosis.headline.contains("one look"));
    assert!(judge(&[]).findings.is_empty());
}

/// The embedded engine's own accounting is evidence, and no verdict needs it.
#[test]
fn verdicts_are_the_same_without_the_engines_own_accounting() {
    let with = |charged: bool| {
        looks(|s| {
            let mut look = case(s, 9 * MB);
            if charged {
                look.recoveries[0].charged_ns.insert(record::Limit::Latency, s * 900_000_000);
            }
            look.round_trips = rtt(100.0);
            look
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
    let looks = looks(|s| {
        let mut look = case(s, 10 * MB);
        look.recoveries[0].total_bytes = Some(1000 * MB);
        look
    });
    let pace = &paces(&Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look))))[0];
    let (soon, late) = pace.eta_s.unwrap();
    assert!(soon < 89.0 && 89.0 < late && late < 110.0, "{pace:?}");
    assert_eq!(pace.bytes_per_s.map(f64::round), Some(10e6));
}
