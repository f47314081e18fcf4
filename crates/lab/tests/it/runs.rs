//! The runner on the virtual world: the same steps, record and checker as on real processes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lab::load::Extent;
use lab::plan::{Full, Measured, Parameter, ParameterScope, Plan, Resolved, Step};
use lab::{Ended, Options, Place};
use record::{Limit, Line, NodeSample, Row, RunDir, Status};
use testbed::plans::LOAD;
use world::Trace;

use crate::common;

/// Runs a plan, changed by `change`, at a small scale.
fn run_plan(
    plan: &Plan,
    scale: f64,
    change: impl Fn(&mut Resolved),
) -> (Vec<Row>, RunDir, Option<Trace>) {
    let mut plan = common::resolved(plan, scale);
    change(&mut plan);
    let (rows, run_dir, trace) = common::run(plan, None);
    (rows.unwrap(), run_dir, trace)
}

fn run(name: &str, scale: f64, change: impl Fn(&mut Resolved)) -> Vec<Row> {
    run_plan(&Plan::open(name).unwrap(), scale, change).0
}

fn keep(names: &'static [&'static str]) -> impl Fn(&mut Resolved) {
    move |plan| plan.variants.retain(|variant| names.contains(&variant.name.as_str()))
}

#[test]
fn the_same_seed_gives_the_same_rows_and_the_same_trace() {
    let plan = Plan::open("remote-recovery").unwrap();
    let (first, read, trace) = run_plan(&plan, 0.001, |_| ());
    let (again, _, other_trace) = run_plan(&plan, 0.001, |_| ());
    assert_eq!((&first, &trace), (&again, &other_trace));
    assert_eq!(first.len(), 5);
    assert!(first.iter().all(|row| row.verified && row.documents == first[0].documents));
    assert_eq!(first[1].held_by().unwrap().limit, Limit::Latency);
    assert_eq!(read.rows.len(), 5);
    assert!(read.lines.len() > 100);
}

#[test]
fn samples_tell_what_the_disks_of_virtual_nodes_do_and_nothing_of_a_heap() {
    let plan = Plan::open("remote-recovery").unwrap();
    let (rows, run, _) = run_plan(&plan, 0.01, keep(&["1 MB x 5"]));
    let samples = |cluster: &str| -> Vec<&NodeSample> {
        let nodes = run.lines.iter().filter_map(|line| match line {
            Line::Node { sample, .. } => Some(sample),
            _ => None,
        });
        nodes.filter(|sample| sample.cluster == cluster).collect()
    };
    let grown = |cluster: &str, of: fn(&NodeSample) -> Option<u64>| -> u64 {
        let mut nodes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for sample in samples(cluster) {
            nodes.entry(&sample.node).or_default().push(of(sample).expect("it is told"));
        }
        nodes.values().map(|counts| counts[counts.len() - 1] - counts[0]).sum()
    };
    let written = grown("follower", |sample| sample.disk_written_bytes);
    assert!(written as f64 > rows[0].bytes as f64 * 0.99, "{written} of {}", rows[0].bytes);
    assert!(grown("follower", |sample| sample.disk_busy_ms) > 0);
    let leader = samples("leader");
    assert!(!leader.is_empty() && leader.iter().all(|sample| sample.disk_read_bytes.is_some()));
    assert!(leader.iter().all(|sample| sample.gc_ms.is_none()));
}

#[test]
fn the_index_of_the_first_variant_is_made_as_its_hosts_make_files() {
    let files = |value: &'static str| -> u64 {
        let plan = Plan::open("remote-recovery").unwrap();
        let (_, run, _) = run_plan(&plan, 0.01, |plan| {
            keep(&["1 MB x 5"])(plan);
            let (name, value) = ("recovery.compound_files".to_owned(), value.to_owned());
            let (scope, source) = (ParameterScope::Everywhere, "a test".to_owned());
            let parameter = Parameter { scope, name, value, source, calibrated_on: Vec::new() };
            plan.variants[0].parameters.push(parameter);
        });
        let files = common::lines(&run, |line| match line {
            Line::Recovery { sample, .. } => Some(sample.total_files),
            _ => None,
        });
        files.into_iter().max().unwrap()
    };
    let (six, three) = (files("off"), files("on"));
    assert!(0 < three && three < six, "a segment is six files, or three: {six} and {three}");
}

#[test]
fn what_is_interrupted_in_virtual_time_says_so() {
    for name in ["remote-recovery", "dcp-rebalance"] {
        let ended = common::on_a_large_stack(move || {
            let dir = tempfile::tempdir().unwrap();
            let interrupt: lab::Interrupt = Rc::new(|| Box::pin(async { Ok(()) }));
            let options = Options { scale: 0.01, interrupt, ..Options::new(dir.path()) };
            let plan = Plan::open(name).unwrap();
            let executed = lab::execute(&plan, &Place::VIRTUAL, &options).unwrap();
            (executed.ended.unwrap(), executed.run.manifest.status, executed.run.rows.len())
        });
        assert_eq!(ended, (Ended::Interrupted, Status::Interrupted, 0), "{name}");
    }
}

#[test]
fn a_line_that_loses_segments_is_what_holds() {
    let rows = run("remote-recovery", 0.05, |plan| {
        plan.variants.retain(|variant| variant.name == "1 MB x 5");
        let (name, value) = ("link.loss".to_owned(), "0.5%".to_owned());
        let (scope, source) = (ParameterScope::Everywhere, "a test".to_owned());
        let parameter = Parameter { scope, name, value, source, calibrated_on: Vec::new() };
        plan.variants[0].parameters.push(parameter);
    });
    assert_eq!(rows[0].held_by().unwrap().limit, Limit::Loss, "{:?}", rows[0].limits);
}

#[test]
fn indices_have_their_published_size_and_documents() {
    let rows = run("remote-recovery", 1.0, keep(&["adaptive"]));
    let published = 4.9 * f64::from(1 << 30);
    assert!((rows[0].bytes as f64 / published - 1.0).abs() < 0.01, "{}", rows[0].bytes);
    assert_eq!(rows[0].documents, 60_844_404);
    assert!(rows[0].verified);
}

#[test]
fn three_indices_recover_at_once_and_compressed() {
    let rows = run("remote-recovery-http-logs", 0.002, |_| ());
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.verified && row.documents > 490_000), "{rows:?}");
    let small = run("small-nodes-compression", 0.002, |_| ());
    assert!(small.len() == 2 && small.iter().all(|row| row.verified), "{small:?}");
    // What is compressed keeps the link busy for less time, and its rate holds a recovery for no longer than that.
    let compressed = &small[1];
    assert!(compressed.link_busy < compressed.link_share, "{compressed:?}");
    let held = compressed.limits.iter().find(|share| share.limit == Limit::LinkRate);
    let busy = compressed.link_busy.unwrap() + 1e-9;
    assert!(held.is_none_or(|held| held.share <= busy), "{compressed:?}");
}

/// What is indexed beside is not in the copy.
#[test]
fn every_track_recovers_alone_and_beside_writers() {
    for (name, scale, documents) in [
        ("recover-while-indexing", 0.01, 1_190_000),
        ("remote-recovery-compressed", 0.002, 121_689),
        ("remote-recovery-pmc", 0.02, 11_484),
        ("recover-while-indexing-geopoint", 0.01, 292_840),
        ("recover-while-indexing-pmc", 0.1, 27_600),
    ] {
        let rows = run(name, scale, |_| ());
        let is_whole = |row: &Row| row.verified && row.documents == documents;
        assert!(rows.len() >= 2 && rows.iter().all(is_whole), "{name}: {rows:?}");
    }
}

#[test]
fn one_of_forty_nodes_restarts_and_copies_what_it_held() {
    let rows = run("shard-recovery-ec2", 5e-5, keep(&["500mb"]));
    // 25 of 1000 copies, each a 500th of the primaries.
    let whole = 12.5e12 * 5e-5 / 20.0;
    assert!(rows[0].verified && (rows[0].bytes as f64 / whole - 1.0).abs() < 0.05, "{rows:?}");
}

#[test]
fn nodes_restart_in_turn_and_copy_what_they_held() {
    let rows = run("shard-recovery", 5e-5, keep(&["2gb", "2gb, noop"]));
    // Half of all 256 copies, each a 128th of the primaries.
    let whole = 12.8e12 * 5e-5;
    for row in &rows {
        assert!(row.verified && (row.bytes as f64 / whole - 1.0).abs() < 0.01, "{row:?}");
        assert!(row.node_bytes_per_s > Some(0.0) && row.link_share.is_none());
    }
    assert!(rows[1].seconds < rows[0].seconds, "noop removes the limit");
}

/// Has all changes come as much sooner as the recovery is shorter.
fn sooner(plan: &mut Resolved, scale: f64) {
    for change in plan.variants.iter_mut().flat_map(|variant| &mut variant.setting_changes) {
        change.at.full = change.at.full.mul_f64(scale);
    }
}

#[test]
fn slots_and_a_throttle_are_raised_while_a_node_copies_what_it_held() {
    const SCALE: f64 = 0.01;
    let plan = Plan::open("shard-recovery-raised").unwrap();
    let (rows, run_dir, _) = run_plan(&plan, SCALE, |plan| {
        plan.variants.truncate(2);
        sooner(plan, SCALE);
    });
    // An eighth of all 256 copies, each a 128th of the primaries.
    let whole = 12.8e12 * SCALE / 4.0;
    for row in &rows {
        assert!(row.verified && (row.bytes as f64 / whole - 1.0).abs() < 0.05, "{row:?}");
    }
    assert!(rows[0].seconds > 1.5 * rows[1].seconds, "{rows:?}");
    let begins = |line: &&Line| matches!(line, Line::Fault { begins: true, .. });
    assert_eq!(run_dir.lines.iter().filter(begins).count(), 3, "each change is made");
}

#[test]
fn a_recovery_is_faster_once_the_disks_of_its_sources_are_without_cfq() {
    const SCALE: f64 = 0.01;
    let plan = Plan::open("shard-recovery-raised").unwrap();
    let (rows, run_dir, _) = run_plan(&plan, SCALE, |plan| {
        keep(&["raised, then noop node by node"])(plan);
        sooner(plan, SCALE);
        plan.sample = Duration::from_millis(600);
    });
    assert!(rows[0].verified, "{rows:?}");
    let begins_ms: Vec<(&str, f64)> = common::lines(&run_dir, |line| match line {
        Line::Fault { what, begins: true, t_ms, .. } => Some((&**what, *t_ms)),
        _ => None,
    });
    let schedulers: Vec<(&str, f64)> =
        begins_ms.iter().copied().filter(|(what, _)| what.starts_with("disk.scheduler")).collect();
    assert_eq!(schedulers.len(), 8, "{begins_ms:?}");
    assert_eq!(schedulers[0].0, "disk.scheduler of leader-0 = noop");
    let samples: Vec<(f64, f64)> = common::lines(&run_dir, |line| match line {
        Line::Recovery { t_ms, sample, .. } => Some((*t_ms, sample.recovered_bytes as f64)),
        _ => None,
    });
    // Bytes a millisecond between the samples that are within two moments.
    let rate = |from_ms: f64, to_ms: f64| {
        let within: Vec<&(f64, f64)> =
            samples.iter().filter(|(t_ms, _)| (from_ms..=to_ms).contains(t_ms)).collect();
        let (first, last) = (within[0], within[within.len() - 1]);
        (last.1 - first.1) / (last.0 - first.0)
    };
    let last = samples.last().unwrap().0;
    let (before, after) = (rate(begins_ms[1].1, schedulers[0].1), rate(schedulers[7].1, last));
    assert!(after > 1.5 * before, "{before} and {after} bytes a millisecond: {samples:?}");
}

#[test]
fn a_node_is_drained_and_what_it_held_is_elsewhere() {
    let rows = run("drain-node", 0.01, |_| ());
    assert_eq!(rows.len(), 3);
    // Six of 24 copies, each a twelfth of the primaries.
    let moved = 0.5 * 24.0 * f64::from(1 << 30) * 0.01;
    for row in &rows {
        assert!(row.verified && (row.bytes as f64 / moved - 1.0).abs() < 0.02, "{row:?}");
    }
    let seconds: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    assert!(seconds[0] > seconds[1] && seconds[1] >= seconds[2], "{seconds:?}");
}

/// The step `recover_peers` without nodes that restart.
fn add_replicas() -> Step {
    let (name, options) = ("recover_peers", Default::default());
    Step::Measure(Measured { name, options, spoils_indices: false })
}

#[test]
fn replicas_that_appear_recover_from_their_primaries() {
    let rows = run("shard-recovery", 5e-5, |plan| {
        plan.steps[2] = add_replicas();
        plan.indices[0].replicas = 0;
        plan.variants.truncate(1);
    });
    assert!(rows[0].verified && rows[0].bytes as f64 > 0.99 * 12.8e12 * 5e-5, "{rows:?}");
    let throttle = f64::from(20 << 20);
    assert!(rows[0].node_bytes_per_s.unwrap() < throttle * 1.05, "{rows:?}");
}

/// Why the plan may use chunks 64 times as large as the field's.
#[test]
fn chunks_of_512kb_and_of_32mb_take_the_same_time_where_throttle_or_disk_hold() {
    for name in ["20mb, the default", "2gb"] {
        let seconds = |chunk: &'static str| {
            let rows = run("shard-recovery", 1.0, move |plan| {
                plan.variants.retain(|variant| variant.name == name);
                let settings = &mut plan.variants[0].settings;
                settings.insert("indices.recovery.chunk_size".to_owned(), chunk.to_owned());
                plan.steps[2] = add_replicas();
                plan.leader.nodes = 2;
                let index = &mut plan.indices[0];
                (index.shards, index.replicas) = (1, 0);
                index.full = Some(Full {
                    documents: 1_000_000,
                    bytes: 4 << 30,
                    unscaled: (1_000_000, 4 << 30),
                    segments: 2,
                    segment_ratio: 0.5,
                });
            });
            rows[0].seconds
        };
        let (small, large) = (seconds("512kb"), seconds("32mb"));
        assert!((small / large - 1.0).abs() < 0.02, "{name}: {small} s and {large} s");
    }
}

#[test]
fn a_replica_crosses_the_link_within_one_cluster() {
    let rows = run("replica-over-link", 0.01, |_| ());
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row.verified && row.documents == 10_000), "{rows:?}");
    assert!(rows.iter().all(|row| row.bytes == rows[0].bytes && row.link_share > Some(0.0)));
    let (throttled, adaptive) = (rows[0].seconds, rows[5].seconds);
    assert!(adaptive < throttled, "{adaptive} s and {throttled} s");
}

/// Health, asked of three nodes, of which one is not itself for a while.
const FAULTS: &str = r#"
[[operation]]
name = "health"
path = "/_cluster/health"
[load]
operations = ["health"]
clients = 200
rate = 100.0
measured = "15s"
timeout = "30s"
[[variant]]
name = "healthy"
[[variant]]
name = "slow"
fault = [{ node = "leader-2", kind = "slow", factor = 1000.0 }]
[[variant]]
name = "paused"
fault = [{ node = "leader-2", kind = "pause", at = "5s", lasts = "5s" }]
[[variant]]
name = "killed"
fault = [{ node = "leader-2", kind = "kill", at = "5s", lasts = "5s" }]
[[variant]]
name = "stopped"
fault = [{ node = "leader-2", kind = "stop", at = "5s" }]
[[variant]]
name = "healthy again"
"#;

#[test]
fn faults_show_in_a_load_and_are_gone_after_it() {
    let plan = Plan::parse("load.toml", &[LOAD, FAULTS].concat()).unwrap();
    let (rows, _, trace) = run_plan(&plan, 1.0, |_| ());
    let (again, _, other_trace) = run_plan(&plan, 1.0, |_| ());
    assert_eq!((&rows, &trace), (&again, &other_trace), "the same seed, the same rows");
    assert_eq!(rows.len(), 12);
    let of = |name: &str| &rows.iter().find(|row| row.variant == name).unwrap().loads[0];
    let p100_ms = |name: &str| of(name).latency.unwrap().p100_ms;
    for name in ["healthy", "healthy again"] {
        assert_eq!((of(name).requests, of(name).failed()), (1500, 0), "{name}");
        assert!(of(name).hosts.values().eq(&[500_u64; 3]), "{name}: {:?}", of(name).hosts);
        assert!(p100_ms(name) < 10.0, "{name}: {} ms", p100_ms(name));
    }
    assert!(p100_ms("slow") > 2.0 * p100_ms("healthy"), "{} ms", p100_ms("slow"));
    // Who asked it waits until it goes on; there are clients enough for the others meanwhile.
    let paused = p100_ms("paused");
    assert!((4_900.0..5_600.0).contains(&paused), "{paused} ms");
    assert_eq!(of("paused").failed(), 0, "{:?}", of("paused").errors);
    for name in ["killed", "stopped"] {
        let lost = of(name).errors.get("not reachable").copied().unwrap_or(0);
        assert!((3..=60).contains(&lost), "{name}: {:?}", of(name).errors);
        assert!(of(name).hosts["leader-2"] < 500, "{name}: {:?}", of(name).hosts);
    }
}

/// Health at random moments, some two seconds apart.
const ARRIVALS: &str = r#"
[[operation]]
name = "health"
path = "/_cluster/health"
[load]
operations = ["health"]
clients = 10
arrival = "poisson"
rate = 0.5
measured = 100
[[variant]]
name = "one"
[[variant]]
name = "other"
"#;

#[test]
fn variants_of_a_lap_have_the_same_arrivals_and_each_lap_its_own() {
    let plan = Plan::parse("load.toml", &[LOAD, ARRIVALS].concat()).unwrap();
    let rows = run_plan(&plan, 1.0, |_| ()).0;
    let seconds: Vec<f64> = rows.iter().map(|row| row.loads[0].seconds).collect();
    let apart = |one: usize, other: usize| (seconds[one] - seconds[other]).abs();
    // An answer takes milliseconds.
    assert!(apart(0, 1) < 0.1 && apart(2, 3) < 0.1, "{seconds:?}");
    assert!(apart(0, 2) > 0.2, "{seconds:?}");
}

/// Searches that ask for words, of documents that are written one by one.
const WORDS: &str = r#"
[[operation]]
name = "match"
body = '{"query": {"match": {"request": "english"}}}'
[[operation]]
name = "many"
path = "/{index}/_msearch"
body = '''
{}
{"query": {"match": {"request": "english"}}}
'''
[[operation]]
name = "count"
path = "/{index}/_count"
body = '{"query": {"match": {"request": "english"}}}'
[load]
operations = ["match", "many", "count"]
clients = 2
measured = 20
[[variant]]
name = "one"
"#;

#[test]
fn a_search_of_documents_without_words_counts_them() {
    let plan = Plan::parse("load.toml", &[LOAD, WORDS].concat()).unwrap();
    let rows = run_plan(&plan, 1.0, |_| ()).0;
    let loads = &rows[0].loads;
    let sent: Vec<(u64, u64)> = loads.iter().map(|load| (load.requests, load.failed())).collect();
    let errors: Vec<_> = loads.iter().map(|load| &load.errors).collect();
    assert_eq!(sent, [(20, 0); 3], "{errors:?}");
}

/// A load of a bundled plan, small.
fn searches(plan: &mut Resolved, variants: &[&str], requests: u64) {
    plan.laps = 1;
    plan.variants.retain(|variant| variants.contains(&variant.name.as_str()));
    for load in plan.variants.iter_mut().filter_map(|variant| variant.load.as_mut()) {
        (load.full.warm_up, load.full.measured) =
            (Extent::Requests(200), Extent::Requests(requests));
    }
}

#[test]
fn a_loaded_node_is_routed_around_and_the_first_node_only_coordinates() {
    const VARIANTS: [&str; 6] = [
        "4 replicas, es3 loaded: none",
        "4 replicas, es3 loaded: ARS",
        "4 replicas, es3 loaded: narrows",
        "1 replica, all nodes: none",
        "1 replica, all nodes: ARS",
        "1 replica, all nodes: narrows",
    ];
    let rows = run("replica-selection", 1.0, |plan| searches(plan, &VARIANTS, 1000));
    let load = |n: usize| &rows[n].loads[0];
    let per_s = |n: usize| load(n).throughput.mean_per_s;
    for n in 0..6 {
        assert_eq!((load(n).requests, load(n).failed()), (1000, 0));
        assert_eq!(load(n).searches["leader-0"], 0, "no copy is placed there");
        assert_eq!(load(n).searches.values().sum::<u64>(), 5 * 1200);
    }
    let shares = |n: usize| (load(n).searches["leader-3"], load(n).searches["leader-1"]);
    assert_eq!(shares(0), (1200, 1200), "in turn each is asked as often as the others");
    for n in [1, 2] {
        let (es3, other) = shares(n);
        assert!(es3 > 0 && es3 * 3 / 2 < other, "{es3} and {other}");
        assert!(per_s(n) > 1.5 * per_s(0), "{} and {}", per_s(n), per_s(0));
    }
    let p99 = |n: usize| load(n).latency.unwrap().p99_ms;
    assert!(p99(2) < p99(1) && p99(1) < p99(0), "{} {} {}", p99(2), p99(1), p99(0));
    // Many who choose, each by what it learns itself.
    assert!(per_s(5) > 0.9 * per_s(4), "{} and {}", per_s(5), per_s(4));
    assert!(p99(5) < 1.15 * p99(4) && p99(5) < p99(3), "{} {} {}", p99(5), p99(4), p99(3));
}

#[test]
fn without_a_loaded_node_selection_changes_little() {
    const VARIANTS: [&str; 2] = ["1 replica: none", "1 replica: ARS"];
    let rows = run("replica-selection", 1.0, |plan| searches(plan, &VARIANTS, 1000));
    let [none, ars] = [0, 1].map(|n| {
        let (load, latency) = (&rows[n].loads[0], rows[n].loads[0].latency.unwrap());
        [load.throughput.mean_per_s, latency.p50_ms, latency.p90_ms, latency.p99_ms]
    });
    let changes = [0, 1, 2, 3].map(|figure| ars[figure] / none[figure] - 1.0);
    assert!(changes.iter().all(|change| change.abs() < 0.3), "{changes:?}");
}

#[test]
fn every_policy_serves_at_a_rate_and_who_knows_everything_is_the_bound() {
    let rows = run("selection-policies", 1.0, |plan| {
        let case: Vec<String> = plan.variants.iter().map(|v| v.name.clone()).collect();
        let case: Vec<&str> = case.iter().filter(|n| n.starts_with("40/s")).map(|n| &**n).collect();
        searches(plan, &case, 800);
    });
    let p99 = |policy: &str| {
        let row = rows.iter().find(|row| row.variant.ends_with(&format!(": {policy}"))).unwrap();
        assert_eq!((row.loads[0].requests, row.loads[0].failed()), (800, 0), "{policy}");
        row.loads[0].latency.unwrap().p99_ms
    };
    assert_eq!(rows.len(), 11);
    let bound = p99("oracle");
    for row in &rows {
        let policy = row.variant.rsplit(": ").next().unwrap();
        assert!(p99(policy) > 0.9 * bound, "{policy}: {} and {bound}", p99(policy));
    }
    assert!(p99("narrows") < p99("none") && p99("narrows") < 1.05 * p99("ars_7_13"));
    assert!(p99("narrows") < 1.3 * bound, "{} and {bound}", p99("narrows"));
}

/// A node comes back empty behind a limit, which is raised meanwhile in one variant.
const CHANGED: &str = r#"
[settings]
"indices.recovery.max_bytes_per_sec" = "10kb"
[[variant]]
name = "as it is"
[[variant]]
name = "raised"
change = [
    { at = "1h", full = "100d", settings = { "indices.recovery.max_bytes_per_sec" = "40mb" } },
    { at = "2h", full = "1s", settings = { "indices.recovery.max_bytes_per_sec" = "20mb" } },
]
[[variant]]
name = "as it was"
"#;

#[test]
fn a_limit_that_is_raised_meanwhile_counts_from_then_on_and_in_no_other_variant() {
    let steps = "{ recover_peers = { restart = 1 } }, \"verify\"]";
    let text = LOAD.replace("\"load\"]", steps).replace("laps = 2", "laps = 1") + CHANGED;
    let plan = Plan::parse("changed.toml", &text).unwrap();
    let (rows, run_dir, _) = run_plan(&plan, 1.0, |_| ());
    assert!(rows.iter().all(|row| row.verified && row.bytes > 0), "{rows:?}");
    // Each variant has files of other lengths, in another order: at such a limit a pause more or less is much.
    let rates: Vec<f64> = rows.iter().map(|row| row.bytes as f64 / row.seconds).collect();
    assert!(rates[1] > 5.0 * rates[0] && rates[1] > 5.0 * rates[2], "{rates:?}");
    let told = run_dir.lines.iter().filter_map(|line| match line {
        Line::Fault { variant, what, begins, .. } => Some((&**variant, &**what, *begins)),
        _ => None,
    });
    let what = "indices.recovery.max_bytes_per_sec = 20mb";
    assert_eq!(told.collect::<Vec<_>>(), [("raised", what, true), ("raised", what, false)]);
    let missed = "the recovery ended before indices.recovery.max_bytes_per_sec was changed";
    let notes = common::notes(&run_dir);
    assert_eq!(notes.into_iter().filter(|text| *text == missed).count(), 1);
}
