//! Recoveries that move bytes: what holds them, but for limiters.

use std::collections::BTreeMap;

use insight::diagnosis::{By, Class, Onlooker};
use policy::steering::Foreground;
use record::observation::{AnswerTime, HotThreads, Observation, RoundTrip, UNKNOWN_FLAVOUR};
use world::Time;

use super::{LIMIT, against, judge, looks_at, only};
use crate::common::{
    CHUNK_SIZE, CHUNKS, MAX_BYTES, MB, cluster, node, recovery, restore_from, rtt, series, settings,
};

/// The trap: a busy machine beside a long way. What the round trip explains wholly is latency all the same.
#[test]
fn a_rate_that_the_round_trip_explains_is_latency_on_a_busy_machine_too() {
    let finding = only(&looks_at(10_400_000, |look, _| {
        look.nodes[0].os_cpu_percent = Some(97);
        look.round_trips = rtt(100.0);
    }));
    assert_eq!(finding.class, Class::Latency);
}

#[test]
fn latency_from_remote_names_the_settings_of_that_kind() {
    let finding = only(&looks_at(6 * MB, |look, _| {
        look.cluster = cluster("elasticsearch");
        restore_from("_ccr_eu", &mut look.recoveries[0]);
        look.settings = settings(&[("ccr.indices.recovery.max_concurrent_file_chunks", "1")]);
        look.round_trips = vec![RoundTrip { from: "b".into(), to: "eu".into(), rtt_ms: 160.0 }];
    }));
    assert_eq!(finding.class, Class::Latency);
    let one = "1 chunk of 1 MiB in flight, which takes 175 ms, gives 6.00 MB/s";
    assert!(finding.sentence.contains(one), "{}", finding.sentence);
    let lift = finding.lift.unwrap();
    assert_eq!(lift.setting.as_deref(), Some("ccr.indices.recovery.max_concurrent_file_chunks"));
    assert_eq!(lift.to.as_deref(), Some("10"));
    // 1 MiB over 160 ms, ten of them: 65 MB/s, but the limiter lets 41.9 through.
    assert!((finding.gain.unwrap().factor - LIMIT as f64 / 6e6).abs() < 0.01);
}

/// The trap: no chunk comes any more, which looks like one that stands in line at the limiter.
#[test]
fn a_recovery_whose_files_are_all_there_waits_for_no_chunk() {
    let finding = only(&looks_at(0, |look, _| {
        let recovery = &mut look.recoveries[0];
        recovery.recovered_bytes = recovery.total_bytes;
    }));
    assert_eq!(finding.class, Class::Unknown);
    assert!(finding.sentence.contains("unknown: all its files are there"), "{}", finding.sentence);
}

#[test]
fn chunks_at_their_most_leave_larger_ones_and_elasticsearch_has_none() {
    let at = |flavour: &str| {
        looks_at(9 * MB, |look, _| {
            look.cluster = cluster(flavour);
            look.settings = settings(&[(CHUNKS, if flavour == "opensearch" { "5" } else { "8" })]);
            look.round_trips = rtt(if flavour == "opensearch" { 280.0 } else { 450.0 });
        })
    };
    let lift = only(&at("opensearch")).lift.unwrap();
    assert_eq!((lift.setting.as_deref(), lift.to.as_deref()), (Some(CHUNK_SIZE), Some("2mb")));
    assert_eq!(lift.default.as_deref(), Some("512kb"));
    let lift = only(&at("elasticsearch")).lift.unwrap();
    assert!(
        lift.setting.is_none() && lift.action.contains("node_concurrent_recoveries"),
        "{lift:?}"
    );
}

/// Elasticsearch takes 8 since 7.16; who does not say what it is may take no more than 5.
#[test]
fn no_more_chunks_are_advised_than_the_release_takes() {
    for (flavour, version, most) in [
        ("elasticsearch", "7.10.2", "5"),
        ("elasticsearch", "7.17.0", "8"),
        ("elasticsearch", "8.11.1", "8"),
        ("elasticsearch", "", "5"),
        ("opensearch", "2.19.1", "5"),
        ("unknown", "", "5"),
        ("narrows", "0.1.0", "8"),
    ] {
        let finding = only(&looks_at(9 * MB, |look, _| {
            (look.cluster.flavour, look.cluster.version) = (flavour.into(), version.into());
            look.round_trips = rtt(100.0);
        }));
        assert_eq!(finding.class, Class::Latency, "{flavour} {version}");
        assert_eq!(finding.lift.unwrap().to.as_deref(), Some(most), "{flavour} {version}");
    }
}

/// The setting takes no more than 100mb.
#[test]
fn chunks_are_advised_as_large_as_they_may_be() {
    let at = |size: &str, rtt_ms: f64| {
        only(&looks_at(9 * MB, |look, _| {
            look.settings = settings(&[(CHUNKS, "5"), (CHUNK_SIZE, size)]);
            look.round_trips = rtt(rtt_ms);
        }))
    };
    let larger = at("32mb", 18_000.0);
    assert_eq!(larger.lift.unwrap().to.as_deref(), Some("100mb"));
    assert_eq!(larger.gain.unwrap().factor, 100.0 / 32.0);
    let lift = at("100mb", 56_000.0).lift.unwrap();
    assert!(lift.setting.is_none() && lift.to.is_none(), "{lift:?}");
    // Of small ones the default is wanted back, and no more promised of it than of chunks four times as large.
    let small = at("64kb", 35.0);
    assert_eq!(small.lift.unwrap().to.as_deref(), Some("512kb"));
    let gain = small.gain.unwrap();
    assert_eq!((gain.factor, gain.formula.as_str()), (4.0, "256kb / 64kb"));
}

#[test]
fn a_level_rate_that_the_round_trip_does_not_explain_is_the_path() {
    let finding = only(&looks_at(12 * MB, |look, _| {
        look.settings = settings(&[(CHUNKS, "5")]);
        look.round_trips = rtt(20.0);
    }));
    assert_eq!((finding.class, finding.place.as_str()), (Class::Bandwidth, "a to b"));
}

/// The trap: no figures of disks are told where a node's data is on no device that it knows, as on overlays.
#[test]
fn what_is_not_told_of_a_disk_is_not_called_idle() {
    let at = |rtt_ms: f64, is_told: bool| {
        only(&looks_at(12 * MB, |look, _| {
            look.settings = settings(&[(CHUNKS, "5")]);
            look.round_trips = rtt(rtt_ms);
            look.nodes[1].io_time_ms = look.nodes[1].io_time_ms.filter(|_| is_told);
        }))
    };
    let doubts = |is_told: bool| {
        let path = at(20.0, is_told);
        let says = if is_told { " core or disk binds" } else { " core or disk that is seen binds" };
        assert!(path.sentence.ends_with(says), "{}", path.sentence);
        path.doubt.unwrap().contains("a disk of which nothing")
    };
    assert_eq!([true, false].map(doubts), [false, true]);
    let says_idle =
        |is_told: bool| at(200.0, is_told).sentence.ends_with("cores and disks are idle");
    assert_eq!([true, false].map(says_idle), [true, false]);
}

#[test]
fn operations_are_replayed() {
    const SETTING: &str = "indices.recovery.max_concurrent_operations";
    let lift = |flavour: &str, value: &str| {
        let finding = only(&looks_at(0, |look, s| {
            look.cluster = cluster(flavour);
            look.settings = settings(&[(SETTING, value)]);
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            recovery.recovered_ops = Some(s * 2000);
            recovery.total_ops = Some(1_000_000);
        }));
        assert_eq!(finding.class, Class::OperationReplay);
        assert!(finding.gain.as_ref().is_none_or(|gain| gain.factor == 2.0), "{finding:?}");
        let lift = finding.lift.unwrap();
        assert_eq!(lift.to.is_some(), finding.gain.is_some());
        // Ignored since Elasticsearch 7.4, and refused by later releases.
        assert!(!lift.action.contains("index.translog.retention"), "{}", lift.action);
        (lift.setting, lift.to)
    };
    let set_to = |to: Option<&str>| (Some(SETTING.to_owned()), to.map(str::to_owned));
    for flavour in ["opensearch", "elasticsearch"] {
        assert_eq!(lift(flavour, "1"), set_to(Some("2")));
        assert_eq!(lift(flavour, "4"), set_to(None), "it is at its maximum");
    }
    assert_eq!(lift("opensearch", "0"), set_to(Some("2")), "and no gain without end");
    assert_eq!(lift("narrows", "1"), (None, None), "the embedded engine takes no other value");
}

/// The trap: the cores of the target, or its disk, are at work already for most of the time.
#[test]
fn more_batches_are_promised_no_more_than_the_target_has_left() {
    let gain = |cpu_ms: u64, io_ms: u64| {
        let finding = only(&looks_at(0, |look, s| {
            look.settings = settings(&[("indices.recovery.max_concurrent_operations", "1")]);
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            (recovery.recovered_ops, recovery.total_ops) = (Some(s * 2000), Some(1_000_000));
            let target = &mut look.nodes[1];
            (target.process_cpu_ms, target.io_time_ms) = (Some(s * cpu_ms), Some(s * io_ms));
        }));
        assert_eq!(finding.class, Class::OperationReplay);
        finding.gain.unwrap()
    };
    assert_eq!(gain(3200, 100).factor, 2.0);
    let cores = gain(6400, 100);
    assert!((cores.factor - 1.25).abs() < 1e-9, "{cores:?}");
    assert!(cores.formula.ends_with("the cores of the target are busy 80 % of the time already"));
    assert!(gain(6400, 1000).formula.contains("the disk of the target is busy 100 %"));
}

/// The trap: the setting of batches is for copies that replay what their primary sends. A primary that replays its own
/// log after a crash has none, and its data is away for as long as that takes.
#[test]
fn a_primary_that_replays_its_own_log_is_no_copy_that_is_well() {
    let opens = |stage: &str, first_s: u64| {
        looks_at(0, |look, s| {
            let one = &mut look.recoveries[0];
            (one.kind, one.stage) = ("EXISTING_STORE".into(), stage.into());
            (one.source, one.primary) = (None, true);
            (one.total_bytes, one.reused_bytes) = (Some(5 * MB), Some(5 * MB));
            (one.recovered_bytes, one.total_ms) = (Some(0), Some((first_s + s) * 1000));
            (one.total_ops, one.recovered_ops) = (Some(1_000_000), Some(s * 2000));
        })
    };
    let replay = only(&opens("TRANSLOG", 600));
    assert_eq!((replay.class, replay.place.as_str()), (Class::OperationReplay, "b"));
    assert!(replay.sentence.contains("2000 a second from its own log"), "{}", replay.sentence);
    assert!(replay.evidence[0].value.ends_with("the rest takes 8:10 at this rate"), "{replay:?}");
    let lift = replay.lift.unwrap();
    assert!(lift.setting.is_none() && replay.gain.is_none(), "{lift:?}");
    assert!(lift.action.contains("begins anew"), "{}", lift.action);
    // Nor is there anything that a hand may raise.
    let looks = opens("TRANSLOG", 600);
    let series = series(&looks);
    let users = Foreground::default();
    let seen = Onlooker::default().look(Time(0), &series, true, &judge(&looks), users);
    assert!(seen.verdicts.is_empty(), "{:?}", seen.verdicts);
    let mut stuck = opens("TRANSLOG", 600);
    stuck.iter_mut().for_each(|(_, look)| look.recoveries[0].recovered_ops = Some(7));
    let action = only(&stuck).lift.unwrap().action;
    assert!(action.starts_with("none was replayed meanwhile"), "{action}");
    let check = only(&opens("VERIFY_INDEX", 600));
    assert!(check.sentence.contains("index.shard.check_on_startup"), "{}", check.sentence);
    assert_eq!(against(&check, Class::RateLimit), (By::Figure, "it copies no files"));
    assert_eq!(against(&check, Class::Disk).0, By::Untold);
    // What has opened for a moment, and what reads its commit, are not held by it.
    let brief = opens("TRANSLOG", 0);
    assert!(judge(&brief[..3]).findings.is_empty());
    assert!(judge(&opens("INDEX", 600)).findings.is_empty());
}

/// The trap: a copy stays in the stage until the nodes have agreed on it, though it lacks no operation.
#[test]
fn no_replay_is_blamed_where_nothing_is_replayed_and_nothing_left() {
    let at = |done: fn(u64) -> u64, total: u64| {
        only(&looks_at(0, |look, s| {
            let recovery = &mut look.recoveries[0];
            recovery.stage = "TRANSLOG".into();
            (recovery.recovered_ops, recovery.total_ops) = (Some(done(s)), Some(total));
        }))
    };
    let idle = at(|_| 40, 40);
    assert_eq!(idle.class, Class::Unknown, "{idle:?}");
    assert!(idle.sentence.contains("no operation is left to replay"), "{}", idle.sentence);
    let (_, why) = against(&idle, Class::OperationReplay);
    assert!(why.contains("no operation was replayed meanwhile"), "{why}");
    let stuck = at(|_| 0, 40);
    assert_eq!(stuck.class, Class::OperationReplay, "it is stuck with some left");
    let action = stuck.lift.unwrap().action;
    assert!(stuck.gain.is_none() && action.starts_with("none was replayed meanwhile"), "{action}");
    assert_eq!(at(|s| s * 4, 40).class, Class::OperationReplay, "it replayed while one looked");
}

/// The trap: today's releases hold clients back for merges, and let a replay pass.
#[test]
fn merges_hold_a_replay_back_in_old_releases_alone() {
    let found = |flavour: &str, version: &str| {
        only(&looks_at(0, |look, s| {
            (look.cluster.flavour, look.cluster.version) = (flavour.into(), version.into());
            look.recoveries[0].stage = "TRANSLOG".into();
            look.recoveries[0].recovered_ops = Some(s * 200);
            look.nodes[1].merge_throttled_ms = Some(s * 600);
        }))
    };
    assert_eq!(found("elasticsearch", "7.9.3").class, Class::MergeThrottle);
    assert_eq!(found(UNKNOWN_FLAVOUR, "").class, Class::MergeThrottle, "it may be an old one");
    for (flavour, version) in
        [("elasticsearch", "7.10.2"), ("elasticsearch", "8.15.0"), ("opensearch", "2.19.1")]
    {
        let replay = found(flavour, version);
        assert_eq!(replay.class, Class::OperationReplay, "{flavour} {version}");
        let (_, why) = against(&replay, Class::MergeThrottle);
        assert!(why.contains("passes the throttle"), "{why}");
    }
}

/// A change to the nodes of a case, given the seconds.
type Change = fn(&mut Observation, u64);

/// Two chunks that one core after the other works on go at the pace of cores, though most cores are free. The path is
/// as level as a full one.
#[test]
fn chunks_that_wait_for_a_core_are_held_by_it_however_many_others_are_free() {
    let judged = |cpu_ms: u64, chunks: &str| {
        only(&looks_at(20 * MB, |look, s| {
            look.cluster.flavour = "narrows".into();
            look.settings = settings(&[(CHUNKS, chunks)]);
            look.nodes[1].as_target = Some(1);
            look.nodes[1].os_cpu_percent = Some(20);
            look.nodes[1].process_cpu_ms = Some(s * cpu_ms);
            look.round_trips = rtt(0.2);
        }))
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
    let finding = only(&looks_at(0, |look, s| {
        look.settings = settings(&[(CHUNK_SIZE, "4mb"), (CHUNKS, "5")]);
        // 20 MB/s: now 4 chunks come, now 6.
        look.recoveries[0].recovered_bytes = Some((s * 5 + s % 2) * (4 << 20));
        look.round_trips = rtt(20.0);
    }));
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
            look.hot_threads =
                vec![HotThreads { node: "a".into(), threads, ..HotThreads::default() }];
        }),
    ];
    for (class, place, change) in cases {
        let diagnosis = judge(&looks_at(9 * MB, change));
        let first = &diagnosis.findings[0];
        assert_eq!((first.class, first.place.as_str()), (class, place), "{diagnosis:#?}");
        assert!(!first.evidence.is_empty() && first.lift.is_some());
    }
}

/// The trap: a search that is too large, or writes that come too fast, are refused beside a recovery, whose chunks pass
/// neither of these bounds.
#[test]
fn what_refuses_searches_and_writes_holds_no_recovery() {
    let cases: [(Change, &[Class]); 3] = [
        (
            |look, s| look.nodes[0].pressure_rejections = Some(s * 3),
            &[Class::Memory, Class::Unknown],
        ),
        (
            |look, s| {
                look.nodes[0].breakers_tripped.insert("request".to_owned(), s);
            },
            &[Class::Memory, Class::Unknown],
        ),
        (
            |look, s| {
                look.nodes[0].breakers_tripped.insert("parent".to_owned(), s);
            },
            &[Class::Memory],
        ),
    ];
    for (change, classes) in cases {
        let found = judge(&looks_at(0, |look, s| {
            look.recoveries[0].recovered_bytes = Some((s / 3) * 9 * MB);
            look.round_trips = rtt(0.0);
            change(look, s);
        }));
        let named: Vec<Class> = found.findings.iter().map(|one| one.class).collect();
        assert_eq!(named, classes);
    }
}

/// The trap: a node that serves searches over TLS uses four of its cores, and one of its hottest threads has TLS on its
/// stack without doing much.
#[test]
fn a_thread_that_hardly_runs_holds_no_recovery() {
    let first = |percent: u32| {
        let diagnosis = judge(&looks_at(9 * MB, |look, s| {
            let of_tls = |count: u32| BTreeMap::from([("tls".to_owned(), count)]);
            let (threads, busiest_percent) = (of_tls(1), of_tls(percent));
            look.nodes[0].process_cpu_ms = Some(s * 4000);
            look.hot_threads = vec![HotThreads { node: "a".into(), threads, busiest_percent }];
        }));
        diagnosis.findings[0].class
    };
    assert_eq!((first(97), first(9)), (Class::ThreadCpu, Class::Latency));
}

/// Four disks that are each busy for a quarter of the time are not one that is busy for all of it.
#[test]
fn a_node_of_several_disks_is_as_busy_as_the_busiest_of_them() {
    for (busiest, holds) in [(240, false), (970, true)] {
        let diagnosis = judge(&looks_at(9 * MB, |look, s| {
            let disks = vec![s * 240, s * busiest, s * 240, s * 240];
            look.nodes[1].io_time_ms = Some(disks.iter().sum());
            look.nodes[1].io_times_ms = disks;
            (look.nodes[1].read_kib, look.nodes[1].write_kib) = (Some(0), Some(s * 10_000));
        }));
        let disk = diagnosis.findings.iter().find(|finding| finding.class == Class::Disk);
        assert_eq!(disk.is_some(), holds, "{diagnosis:#?}");
        let Some(disk) = disk else { continue };
        let doubt = disk.doubt.as_deref().unwrap();
        assert!(doubt.contains("(NVMe, RAID") && doubt.ends_with("not told"), "{doubt}");
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
        look.settings = settings(&[(MAX_BYTES, "-1")]);
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
            look.settings = settings(&[(CHUNK_SIZE, "4mb")]);
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

/// The trap: something else keeps all cores busy, beside a recovery that hardly needs them. A question to the node
/// waits for cores as a chunk does.
#[test]
fn busy_cores_hold_no_recovery_whose_chunks_hardly_wait_for_them() {
    let at = |answer_ms: f64, chunks: &str, rtt_ms: f64| {
        only(&looks_at(9 * MB, |look, _| {
            look.settings = settings(&[(CHUNKS, chunks)]);
            look.round_trips = rtt(rtt_ms);
            look.nodes[0].os_cpu_percent = Some(99);
            let answer =
                |node: &str| AnswerTime { node: node.into(), ms: answer_ms, again_ms: answer_ms };
            look.answers = vec![answer("a"), answer("b")];
        }))
    };
    // Five chunks take 291 ms each.
    assert_eq!(at(30.0, "5", 20.0).class, Class::Bandwidth);
    assert_eq!(at(200.0, "5", 20.0).class, Class::NoisyNeighbour);
    let explained = at(10.0, "2", 110.0);
    assert_eq!(explained.class, Class::Latency);
    assert!(explained.sentence.contains("chunks hardly wait for cores"), "{}", explained.sentence);
    let (_, why) = against(&explained, Class::NoisyNeighbour);
    assert!(why.contains("it answers within 10 ms"), "{why}");
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
