//! What goes on beside recoveries and needs nobody's help: copies that move, snapshots, nodes that may come back.

use insight::diagnosis::{By, Class, RuledOut};
use record::observation::{Gap, IndexBlock, Lack, Move, Observation, Scope, Snapshot, WaitingCopy};

use super::{judge, looks_at, looks_at_rest, only};
use crate::common::{MB, cluster, settings, settings_of, waiting};

const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
const OF_INDEX: &str = "index.routing.allocation.require._name";

/// What is said of two copies that leave node a, and changes to each look.
#[track_caller]
fn moves(change: impl Fn(&mut Observation)) -> String {
    let one = |shard: u32| Move {
        index: "logs".into(),
        shard,
        from: "a".into(),
        to: "b".into(),
        ..Move::default()
    };
    let diagnosis = judge(&looks_at_rest(|look, _| {
        look.moves = [one(0), one(3)].into();
        change(look);
    }));
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let [sentence] = &diagnosis.healthy[..] else { panic!("{diagnosis:?}") };
    assert!(diagnosis.headline.contains(sentence), "{}", diagnosis.headline);
    assert!(sentence.starts_with("2 copies move from a (logs[0] to b, logs[3] to b): "));
    sentence.clone()
}

#[test]
fn copies_that_move_say_from_where_to_where_and_why() {
    let by_command = moves(|_| ());
    assert!(by_command.contains("no API tells which"), "{by_command}");
    assert!(by_command.contains("cluster_concurrent_rebalance = 2"), "{by_command}");
    let by_filter = moves(|look| look.settings = settings(&[(EXCLUDE, "x, a*")]));
    assert!(by_filter.contains(&format!("{EXCLUDE} = x, a* wants it away")), "{by_filter}");
    assert!(by_filter.contains("node_concurrent_recoveries = 2"), "{by_filter}");
    let by_another = moves(|look| look.settings = settings(&[(EXCLUDE, "b"), (EXCLUDE, "")]));
    assert!(by_another.contains("no API tells which"), "{by_another}");
    let of_index = moves(|look| {
        // All of a list is required.
        let filters = [(OF_INDEX.to_owned(), "a,b".to_owned())];
        let one = |one: &Move| Move { filters: filters.clone().into(), ..one.clone() };
        look.moves = look.moves.iter().map(one).collect();
    });
    assert!(of_index.contains(&format!("{OF_INDEX} = a,b wants it away")), "{of_index}");
    let full = |available: u64| {
        moves(|look| {
            look.nodes[0].disk_total_bytes = Some(1000);
            look.nodes[0].disk_available_bytes = Some(available);
        })
    };
    assert!(full(80).contains("the disk of a is 92 % full, past"), "{}", full(80));
    assert!(full(200).contains("no API tells which"), "{}", full(200));
    let cached = moves(|look| {
        look.nodes[0].disk_total_bytes = Some(1000);
        look.nodes[0].disk_available_bytes = Some(80);
        look.nodes[0].roles = vec!["data_frozen".to_owned()];
    });
    assert!(cached.contains("no API tells which"), "{cached}");
}

/// The trap: Elasticsearch since 8.5 bounds by a second setting what a watermark keeps free of a large disk.
#[test]
fn a_large_disk_is_past_a_watermark_only_where_less_than_its_headroom_is_free() {
    const HIGH: &str = "cluster.routing.allocation.disk.watermark.high";
    const GIB: u64 = 1 << 30;
    let bound = format!("{HIGH}.max_headroom");
    let moves_of = |free_gib: u64, headroom: &str| {
        moves(|look| {
            look.settings = settings(&[(bound.as_str(), headroom)]);
            look.nodes[0].disk_total_bytes = Some(10_000 * GIB);
            look.nodes[0].disk_available_bytes = Some(free_gib * GIB);
        })
    };
    let roomy = moves_of(800, "150GB");
    assert!(roomy.contains("no API tells which"), "{roomy}");
    let full = moves_of(140, "150GB");
    assert!(full.contains(&format!("99 % full, past {bound} = 150GB")), "{full}");
    // What somebody set the watermark to is bounded by nothing, nor is a share of a small disk.
    for headroom in ["-1", "2000gb"] {
        let full = moves_of(800, headroom);
        assert!(full.contains(&format!("92 % full, past {HIGH} = 90 %")), "{full}");
    }
    // The default of a headroom bounds no watermark that somebody set.
    let full = moves(|look| {
        let mut all = settings_of(Scope::Default, &[(bound.as_str(), "150GB")]).unwrap();
        all.extend(settings(&[(HIGH, "90%")]).unwrap());
        look.settings = Some(all);
        look.nodes[0].disk_total_bytes = Some(10_000 * GIB);
        look.nodes[0].disk_available_bytes = Some(800 * GIB);
    });
    assert!(full.contains(&format!("92 % full, past {HIGH} = 90 %")), "{full}");
}

#[test]
fn a_long_queue_of_the_manager_is_told() {
    let notes = |seen: u64, tasks: u64, waited_ms: u64| {
        let judged = judge(&looks_at_rest(|look, s| {
            let health = look.health.as_mut().unwrap();
            let is_long = s < seen;
            health.pending_tasks = Some(if is_long { tasks } else { 0 });
            health.task_waited_ms = Some(if is_long { waited_ms } else { 0 });
        }));
        judged.notes
    };
    let note = notes(5, 1, 4200).remove(0);
    assert!(
        note.starts_with("up to 1 task waited for the manager, the oldest for 4.20 s"),
        "{note}"
    );
    let note = notes(2, 60, 0).remove(0);
    assert!(note.starts_with("up to 60 tasks waited for the manager (in 2 of 11 looks)"), "{note}");
    assert_eq!(notes(1, 60, 4200), Vec::<String>::new(), "one look may meet what passes");
    assert_eq!(notes(5, 29, 900), Vec::<String>::new());
}

/// The trap: each try goes well for as long as it lasts, so that something else seems to hold them.
#[test]
fn a_recovery_that_is_given_up_and_begins_anew_is_told() {
    let judged = |last_stage: &str| {
        judge(&looks_at(MB, |look, s| {
            let mut again = look.recoveries[0].clone();
            let since = s.saturating_sub(4);
            again.start_ms = Some(1_003_000);
            (again.total_ms, again.recovered_bytes) = (Some(since * 1000), Some(since * MB));
            let first = &mut look.recoveries[0];
            first.ended = s == 4;
            first.stage = if first.ended { last_stage } else { "INDEX" }.into();
            match s {
                0..4 => (),
                4 => look.recoveries.push(again),
                _ => look.recoveries = vec![again],
            }
        }))
    };
    let given_up = judged("INDEX");
    let [note] = &given_up.notes[..] else { panic!("{given_up:#?}") };
    assert!(note.starts_with("i[0] to b was given up and began anew once"), "{note}");
    assert!(!given_up.findings.is_empty(), "{given_up:#?}");
    for finding in &given_up.findings {
        assert_eq!(finding.subjects, ["i[0] to b"], "it is named once");
    }
    assert_eq!(judged("DONE").notes, [""; 0], "it came, and was made again");
    // Of tries that take longer than one looks, only how the last one ended is told.
    let comes_up = |reason: &str| {
        let copy = WaitingCopy {
            index: "logs".into(),
            state: "INITIALIZING".into(),
            reason: Some(reason.into()),
            ..WaitingCopy::default()
        };
        judge(&looks_at(MB, |look, _| look.waiting = [copy.clone()].into())).notes
    };
    let told = comes_up("ALLOCATION_FAILED");
    let [note] = &told[..] else { panic!("{told:?}") };
    let said =
        "1 copy comes up once more after a try that failed (replica of logs[0]): GET _cat/shards";
    assert!(note.starts_with(said), "{note}");
    assert_eq!(comes_up("NODE_LEFT"), [""; 0]);
}

/// The trap: a node that only restarts, for longer than its copies wait for it, has them all made anew elsewhere.
#[test]
fn copies_that_are_made_anew_after_a_restart_say_what_spares_the_next_one() {
    let notes = |reason: &str, reused: u64| {
        let copy = WaitingCopy {
            index: "i".into(),
            state: "INITIALIZING".into(),
            reason: Some(reason.into()),
            node: Some("b".into()),
            ..WaitingCopy::default()
        };
        let looks = looks_at(MB, |look, _| {
            look.recoveries[0].reused_bytes = Some(reused);
            look.waiting = [copy.clone()].into();
        });
        judge(&looks).notes
    };
    let told = notes("NODE_LEFT", 0);
    let [note] = &told[..] else { panic!("{told:?}") };
    assert!(note.starts_with("1 copy is copied whole because a node left"), "{note}");
    assert!(note.contains("PUT _all/_settings a longer one"), "{note}");
    assert_eq!(notes("NODE_LEFT", MB), [""; 0], "it is back, and has most of its files");
    assert_eq!(notes("REPLICA_ADDED", 0), [""; 0]);
}

/// The trap: while a node restarts, every other one of a small cluster holds a copy, and none is to be added.
#[test]
fn a_replica_that_other_nodes_hold_comes_back_with_the_node_that_left() {
    let held = [("a", "same_shard", "NO"), ("b", "same_shard", "NO")];
    let found = |reason: &str| {
        let copy = WaitingCopy { reason: Some(reason.into()), ..waiting("no", &held) };
        let found = judge(&looks_at_rest(|look, _| look.waiting = [copy.clone()].into()));
        let first = found.findings.into_iter().next().unwrap();
        (first.sentence, first.lift.unwrap().action)
    };
    let (said, action) = found("NODE_LEFT");
    assert!(said.ends_with("decider same_shard; it comes back with the node that left"), "{said}");
    assert!(action.starts_with("start the node that left") && action.contains("add a node"));
    let (said, action) = found("REPLICA_ADDED");
    assert!(said.ends_with("; it will not come by itself") && action.starts_with("a node takes"));
}

#[test]
fn a_snapshot_is_held_by_its_repository_or_says_how_far_it_is() {
    let taken = |written_bytes: u64, limit: Option<&str>| {
        looks_at_rest(|look, _| {
            look.snapshots = vec![Snapshot {
                name: "nightly".into(),
                repository: "backups".into(),
                shards_done: Some(1),
                shards: Some(4),
                nodes: Some(2),
                bytes: Some(4_000_000_000),
                written_bytes: Some(written_bytes),
                time_ms: Some(10_000),
                limit: limit.map(str::to_owned),
                ..Snapshot::default()
            }];
        })
    };
    // 80 MB/s of two nodes, each of which the default lets write 41.9 MB/s.
    let finding = only(&taken(800_000_000, None));
    assert_eq!((finding.class, finding.place.as_str()), (Class::RateLimit, "backups"));
    assert!(finding.sentence.contains("max_snapshot_bytes_per_sec = 40mb lets each of 2 nodes"));
    let action = finding.lift.unwrap().action;
    assert!(action.ends_with("or ended by DELETE _snapshot/backups/nightly"), "{action}");
    assert!((finding.gain.unwrap().factor - 2.0).abs() < 1e-9);
    assert_eq!(finding.ruled_out.len(), 3);
    let is_told = |one: &RuledOut| one.by == By::Figure && one.why.starts_with("nodes write 95 %");
    assert!(finding.ruled_out.iter().all(is_told), "{:?}", finding.ruled_out);
    for (written, limit) in
        [(400_000_000, None), (800_000_000, Some("80mb")), (800_000_000, Some("0"))]
    {
        let diagnosis = judge(&taken(written, limit));
        assert!(diagnosis.findings.is_empty(), "{limit:?} {diagnosis:?}");
    }
    let said = judge(&taken(400_000_000, None)).healthy.remove(0);
    let expected = "snapshot nightly to backups goes on, 400 MB of 4.00 GB are in whole files there, 1 of 4 shards \
                    done, the rest takes 43.0 s at max_snapshot_bytes_per_sec = 40mb on each of 2 nodes, and 90.0 s at \
                    the 40.0 MB/s of whole files so far";
    assert_eq!(said, expected);
    // The trap: of one large file nothing is whole for a while, and small files beside it are soon there.
    let mut large = taken(7_000, None);
    large.iter_mut().for_each(|(_, look)| look.snapshots[0].shards_done = Some(0));
    let said = judge(&large).healthy.remove(0);
    assert!(said.ends_with("max_snapshot_bytes_per_sec = 40mb on each of 2 nodes"), "{said}");
    let mut alone = taken(400_000_000, None);
    alone.iter_mut().for_each(|(_, look)| look.snapshots[0].nodes = Some(1));
    let held = only(&alone).sentence;
    assert!(held.contains("= 40mb lets one node write 41.9 MB/s; "), "{held}");
}

/// A file counts once it is whole, so that a large one stands still for a while.
#[test]
fn a_snapshot_that_stands_still_for_minutes_names_its_shards_and_nodes() {
    let taken = |still_s: u64, writing: &[(&str, &str)]| {
        judge(&looks_at_rest(|look, s| {
            let writing = writing.iter().map(|(shard, id)| ((*shard).to_owned(), (*id).to_owned()));
            look.snapshots = vec![Snapshot {
                name: "nightly".into(),
                repository: "backups".into(),
                nodes: Some(1),
                written_bytes: Some(100 * MB),
                time_ms: Some(1_000_000),
                still_ms: Some((still_s + s) * 1000),
                writing: writing.collect(),
                ..Snapshot::default()
            }];
        }))
    };
    let moves = taken(120, &[("logs[0]", "id-b")]);
    assert!(moves.notes.is_empty() && moves.healthy.len() == 1, "{moves:#?}");
    let stands = taken(600, &[("logs[0]", "id-b"), ("logs[1]", "id-x")]);
    let [note] = &stands.notes[..] else { panic!("{stands:#?}") };
    for part in [
        "snapshot nightly to backups has finished neither a file nor a shard for 10:10 (",
        "logs[0] on b and logs[1] on id-x",
        "GET _nodes/b,id-x/hot_threads",
        "DELETE _snapshot/backups/nightly ends it",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
    assert!(stands.healthy.is_empty(), "it does not go on: {:?}", stands.healthy);
    assert!(taken(600, &[]).notes[0].contains("no shard is written"));
}

/// The trap: the rate is of all nodes since the beginning, and some of them are done by now.
#[test]
fn what_nodes_wrote_that_are_done_is_not_taken_for_the_others_rate() {
    let taken = |mb_per_s: u64, (then, now): (u64, u64)| {
        judge(&looks_at_rest(|look, s| {
            look.snapshots = vec![Snapshot {
                name: "nightly".into(),
                repository: "backups".into(),
                nodes: Some(if s < 5 { then } else { now }),
                written_bytes: Some(mb_per_s * 100 * MB),
                time_ms: Some(100_000),
                ..Snapshot::default()
            }];
        }))
    };
    // Of the last, nobody looked while the others wrote, but the limiter lets no node write so much.
    for (mb_per_s, nodes) in [(180, (10, 1)), (200, (10, 5)), (180, (1, 1))] {
        let diagnosis = taken(mb_per_s, nodes);
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert_eq!(diagnosis.healthy, ["snapshot nightly to backups goes on"]);
    }
    // None writes any more: the rest is no bytes.
    let done = judge(&looks_at_rest(|look, _| {
        look.snapshots = vec![Snapshot {
            nodes: Some(0),
            bytes: Some(200 * MB),
            written_bytes: Some(100 * MB),
            time_ms: Some(100_000),
            ..Snapshot::default()
        }];
    }));
    assert!(!done.healthy[0].contains("the rest takes"));
    let held = taken(400, (10, 8));
    assert!(held.findings[0].sentence.contains("lets each of 10 nodes write"), "{held:?}");
}

#[test]
fn copies_that_wait_for_their_node_say_what_they_lack() {
    let said = |lacks: &[Lack]| {
        let copy = |(shard, lacks): (usize, &Lack)| WaitingCopy {
            shard: shard as u32,
            delay_ms: Some(60_000),
            delay_left_ms: Some(42_300),
            lacks: Some(*lacks),
            ..waiting("allocation_delayed", &[])
        };
        let copies: Vec<WaitingCopy> = lacks.iter().enumerate().map(copy).collect();
        let looks = looks_at_rest(|look, _| look.waiting = copies.clone().into());
        judge(&looks).healthy.remove(0)
    };
    let by_ops = said(&[Lack::Operations(700), Lack::Operations(50)]);
    assert!(by_ops.contains("delayed_timeout = 60.0 s): 43.0 s left"), "{by_ops}");
    assert!(by_ops.contains("once it is back, 750 operations bring"), "{by_ops}");
    assert!(by_ops.contains("where it needs longer, PUT _all/_settings"), "{by_ops}");
    let by_files = said(&[Lack::Files]);
    assert!(said(&[Lack::Operations(1)]).contains("back, 1 operation brings it up to date"));
    assert!(by_files.contains("no primary keeps operations for it"), "{by_files}");
    assert!(by_files.contains("let indexing pause and POST _flush"), "{by_files}");
    assert!(!by_ops.contains("_flush"), "{by_ops}");
    assert!(!by_files.contains("where it needs longer"), "{by_files}");
    let both = said(&[Lack::Operations(7), Lack::Files]);
    assert!(both.contains("7 operations bring 1 of 2 copies up to date"), "{both}");
    assert!(both.contains("POST _flush"), "{both}");
}

/// The trap: where a node announced its restart, what it announced counts, while the cluster tells the index's delay.
/// Made after the node shutdown API's documentation and Elasticsearch's sources: no Elasticsearch was run.
#[test]
fn copies_of_a_node_that_restarts_wait_for_as_long_as_it_announced() {
    let copy = WaitingCopy {
        reason: Some("NODE_RESTARTING".into()),
        delay_ms: Some(60_000),
        delay_left_ms: Some(282_000),
        ..waiting("allocation_delayed", &[])
    };
    let can_allocate = Some("no_valid_shard_copy".to_owned());
    let primary = WaitingCopy { shard: 1, primary: true, can_allocate, ..copy.clone() };
    let looks = looks_at_rest(|look, _| {
        look.waiting = [copy.clone(), primary.clone()].into();
        look.health.as_mut().unwrap().delayed = Some(2);
    });
    let said = judge(&looks).healthy.remove(0);
    let by = "replica of w[0] waits for a node to come back (allocation_delay of its shutdown";
    assert!(said.starts_with(by) && !said.contains("60.0 s"), "{said}");
}

/// The trap: forgotten after a restart of nodes, it shows when the next one is lost.
#[test]
fn allocation_that_is_turned_off_is_told_while_no_copy_waits() {
    const ENABLE: &str = "cluster.routing.allocation.enable";
    let notes = |value: &'static str, state: &'static str| {
        let copy = WaitingCopy { state: state.into(), ..WaitingCopy::default() };
        let diagnosis = judge(&looks_at_rest(|look, _| {
            look.settings = settings(&[(ENABLE, value)]);
            look.waiting = [copy.clone()].into();
        }));
        assert!(diagnosis.headline.starts_with("healthy"), "{diagnosis:?}");
        diagnosis.notes
    };
    let put = r#"PUT _cluster/settings {"persistent":{"cluster.routing.allocation.enable":null}}"#;
    for (value, copies) in
        [("none", "copies"), ("primaries", "replicas"), ("PRIMARIES", "replicas")]
    {
        let told = notes(value, "INITIALIZING");
        let [note] = &told[..] else { panic!("{told:?}") };
        assert!(note.starts_with(&format!("{ENABLE} = {value}: {copies} of a node")), "{note}");
        assert!(note.ends_with(put), "{note}");
    }
    for all in ["all", "ALL"] {
        assert_eq!(notes(all, "INITIALIZING"), [""; 0]);
    }
    assert_eq!(notes("none", "UNASSIGNED"), [""; 0], "what waits is told by a finding");
}

/// The trap: the health is green, nothing moves, and a node stays empty or full.
#[test]
fn what_keeps_copies_where_they_are_is_told() {
    const REBALANCE: &str = "cluster.routing.rebalance.enable";
    let notes = |flavour: &str, pair: (&'static str, &'static str), scope: Scope, from: &str| {
        let one = Move { from: from.into(), to: "c".into(), ..Move::default() };
        let diagnosis = judge(&looks_at_rest(|look, _| {
            look.cluster = cluster(flavour);
            look.settings = settings_of(scope, &[pair]);
            look.moves = [one.clone()].into();
        }));
        diagnosis.notes
    };
    let told = |pair, said: &str| {
        let notes = notes("opensearch", pair, Scope::Transient, "x");
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.starts_with(said), "{note}");
        let put = format!(r#"PUT _cluster/settings {{"transient":{{"{}":null}}}}"#, pair.0);
        assert!(note.ends_with(&put), "{note}");
    };
    told((REBALANCE, "none"), "cluster.routing.rebalance.enable = none: no copy moves");
    told(
        (REBALANCE, "primaries"),
        "cluster.routing.rebalance.enable = primaries: no replica moves",
    );
    told((EXCLUDE, "x, b*"), &format!("{EXCLUDE} = x, b* keeps copies from b, and none moves"));
    for (flavour, pair, scope, from) in [
        ("opensearch", (REBALANCE, "ALL"), Scope::Persistent, "x"),
        ("narrows", (REBALANCE, "none"), Scope::Default, "x"),
        ("opensearch", (EXCLUDE, ""), Scope::Default, "x"),
        ("opensearch", (EXCLUDE, "gone"), Scope::Persistent, "x"),
        ("opensearch", (EXCLUDE, "b"), Scope::Persistent, "b"),
    ] {
        assert_eq!(notes(flavour, pair, scope, from), [""; 0], "{pair:?}");
    }
    // Where nobody tells which copies move, they may.
    let untold = judge(&looks_at_rest(|look, _| {
        look.settings = settings(&[(EXCLUDE, "b")]);
        look.gaps = vec![Gap { path: "/_cat/shards".into(), ..Gap::default() }];
    }));
    assert_eq!(untold.notes, [""; 0]);
}

/// The trap: no copy waits and the health is green, and yet nothing can be written.
#[test]
fn what_the_cluster_forbids_is_told_while_it_is_green() {
    const FLOOD: &str = "cluster.routing.allocation.disk.watermark.flood_stage";
    let notes = |set: &[(&str, &str)], free: u64| {
        let diagnosis = judge(&looks_at_rest(|look, _| {
            look.settings = settings(set);
            look.nodes[0].disk_total_bytes = Some(1000);
            look.nodes[0].disk_available_bytes = Some(free);
        }));
        assert!(diagnosis.headline.starts_with("healthy"), "{diagnosis:?}");
        diagnosis.notes
    };
    assert_eq!(notes(&[], 60), [""; 0]);
    for (set, said) in [("95%", "95 %"), ("50b", "50b")] {
        let told = notes(&[(FLOOD, set)], 40);
        let [note] = &told[..] else { panic!("{told:?}") };
        assert!(note.starts_with(&format!("the disk of a is past {FLOOD} = {said}: ")), "{note}");
    }
    // The traps: a cache fills the disk of a node of partially mounted indices, which Elasticsearch only warns of; and
    // a manager has no copies.
    let of_roles = |roles: &[&str]| {
        let full = judge(&looks_at_rest(|look, _| {
            look.nodes[0].disk_total_bytes = Some(1000);
            look.nodes[0].disk_available_bytes = Some(40);
            look.nodes[0].roles = roles.iter().map(|role| (*role).to_owned()).collect();
        }));
        full.notes.len()
    };
    assert_eq!((of_roles(&["data_frozen"]), of_roles(&["master", "ingest"])), (0, 0));
    assert_eq!(of_roles(&["data", "master"]), 1);
    let off = ("cluster.routing.allocation.disk.threshold_enabled", "false");
    assert_eq!(notes(&[off], 40), [""; 0]);
    let told = notes(&[("cluster.blocks.create_index", "true")], 60);
    let [note] = &told[..] else { panic!("{told:?}") };
    let put = r#"PUT _cluster/settings {"persistent":{"cluster.blocks.create_index":null}}"#;
    assert!(note.contains("no index can be created") && note.ends_with(put), "{note}");
}

#[test]
fn blocks_of_indices_are_told_with_what_takes_them_back() {
    let indices = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let note = |count: u64, indices: &[String]| {
        let (setting, indices) = ("index.blocks.read_only".into(), indices.to_vec());
        let block = IndexBlock { setting, count, indices };
        let blocked = looks_at_rest(|look, _| look.index_blocks = vec![block.clone()]);
        let told = judge(&blocked).notes;
        let [note] = &told[..] else { panic!("{told:?}") };
        note.clone()
    };
    let many = note(12, &indices);
    let begins = "index.blocks.read_only = true of a, b, c and 9 more: neither documents nor ";
    let put = r#"PUT a,b,c/_settings {"index.blocks.read_only":null}"#;
    assert!(many.starts_with(begins), "{many}");
    assert!(many.ends_with(&format!("{put}, and the same of the others")), "{many}");
    // One request takes back all that are named.
    let few = note(3, &indices[..3]);
    assert!(few.ends_with(put), "{few}");
}

/// A copy that came back with its node copies no files, however long its nodes take to open and compare it. Of many
/// small ones, some are seen once their files are there.
#[test]
fn a_copy_that_copies_nothing_is_well_once_it_is_there_and_while_that_is_a_moment() {
    // It is first seen after so many seconds, and over after so many; so many of its bytes came, before that.
    let judged = |stage: &str, seen_s: u64, ended_s: u64, came: u64| {
        judge(&looks_at(0, |look, s| {
            let one = &mut look.recoveries[0];
            one.ended = s >= ended_s;
            // One that is given up is no longer told of, as it was.
            one.stage = if one.ended && stage != "INDEX" { "DONE" } else { stage }.into();
            one.total_ms = Some(1000 + s.min(ended_s) * 1000);
            (one.total_bytes, one.reused_bytes) = (Some(5 * MB), Some(5 * MB - came));
            (one.recovered_bytes, one.recovered_ops) = (Some(came), Some(40));
            look.recoveries.retain(|_| s >= seen_s);
        }))
    };
    let took = |by: &str| format!("i[0] to b took 5.00 s in all, and {by}");
    let there = took("its files were there when it was first seen");
    for (stage, seen_s, ended_s, came, said) in [
        ("INIT", 0, 4, 0, took("it came by 40 operations and no files")),
        ("TRANSLOG", 2, 4, 0, took("it came by 40 operations and no files")),
        ("FINALIZE", 2, 4, 5 * MB, there),
        ("FINALIZE", 8, 99, 5 * MB, "i[0] to b is in FINALIZE, where no files are copied".into()),
    ] {
        let found = judged(stage, seen_s, ended_s, came);
        assert!(found.findings.is_empty(), "{stage}: {found:#?}");
        assert_eq!(found.healthy, [said]);
    }
    // Where it was given up, nobody knows what held it.
    let given_up = judged("INDEX", 0, 4, 0);
    assert_eq!(given_up.findings.len(), 1, "{given_up:#?}");
    let long = judged("INIT", 0, 99, 0);
    let [finding] = &long.findings[..] else { panic!("{long:#?}") };
    assert_eq!(finding.class, Class::Unknown);
    let why = " is in INIT at 0.00 MB/s 11.0 s after it began, and what holds it is unknown: in INIT no files are \
               copied, but opened and compared by its nodes";
    assert!(finding.sentence.ends_with(why), "{}", finding.sentence);
    let action = &finding.lift.as_ref().unwrap().action;
    assert!(action.starts_with("GET _nodes/a,b/hot_threads and the logs there"), "{action}");
    assert!(action.contains("_cluster/reroute with cancel"), "{action}");
}
