//! Summaries of small hand-made runs.

use std::collections::BTreeMap;

use insight::diagnosis::By;
use insight::published::{comparisons, standing};
use insight::{Advice, Progress, Summary, advice, curves};
use record::{
    ConsumerMemory, FORMAT, FollowFigures, FollowSample, Kind, Limit, LimitShare, Line, LinkInfo,
    LoadFigures, Manifest, Percentiles, Phase, PublishedInfo, RecoverySample, Row, RunDir, Status,
    StreamFigures, ThreadUse, Throughput, TwinQuestion, VariantInfo,
};

fn manifest(variants: &[&str], status: Status) -> Manifest {
    let info = |name: &&str| VariantInfo { name: (*name).to_owned(), ..VariantInfo::default() };
    Manifest {
        plan: "p".into(),
        target: "virtual".into(),
        status,
        link: Some(LinkInfo {
            rtt_ms: 100.0,
            rate_bytes_per_s: 125_000_000,
            window_bytes: None,
            ceiling_bytes_per_s: None,
        }),
        variants: variants.iter().map(info).collect(),
        ..Manifest::unknown("r", FORMAT)
    }
}

pub(crate) fn row(variant: &str, lap: u32, seconds: f64, limit: Limit) -> Row {
    Row {
        link_share: Some(1e9 / seconds / 125e6),
        limits: vec![LimitShare { limit, share: 1.0 }],
        verified: true,
        documents: 10,
        ..Row::measured(variant, lap, seconds, 1_000_000_000)
    }
}

pub(crate) fn run(variants: &[&str], status: Status, rows: Vec<Row>) -> RunDir {
    RunDir { manifest: manifest(variants, status), lines: vec![], rows, damage: vec![] }
}

#[test]
fn gains_are_over_the_first_row_ours_and_published() {
    let mut rows = vec![row("a", 1, 480.0, Limit::Latency), row("b", 1, 10.0, Limit::LinkRate)];
    (rows[0].published_s, rows[0].published_bytes) = (Some(14_400.0), Some(4_900_000_000));
    (rows[1].published_s, rows[1].published_bytes) = (Some(72.0), Some(4_900_000_000));
    let run = run(&["a", "b"], Status::Complete, rows);
    let summary = Summary::of(&run);
    assert_eq!(summary.baseline.as_deref(), Some("a"));
    assert_eq!(summary.variants[1].finished().unwrap().gain, Some(48.0));
    assert_eq!(summary.variants[1].published_gain, Some(200.0));
    assert_eq!(summary.headline, "b is 48 times as fast as a");
    assert_eq!(
        summary.details,
        ["The slow one was held by latency, the fast one by the link."],
        "a headline has 14 words at most"
    );
    assert_eq!(
        summary.comparison.as_deref(),
        Some(
            "Published rows moved 4.90 GB, these 1.00 GB: compare gains, not times. With less data gains are smaller: \
             to begin and to end a copy takes more of its time."
        )
    );
    let mut larger = run.clone();
    larger.rows[0].seconds = 4800.0;
    let said = Summary::of(&larger).comparison.unwrap();
    assert!(said.ends_with("compare gains, not times."), "480 times is more than 200: {said}");
}

/// The first lap goes by what is assumed, as the answer of a twin does; others are drawn.
#[test]
fn a_twin_is_told_by_what_it_was_asked() {
    let told = |variants: &[&str], asked: &str, until: &str| {
        let took = |name: &str, lap: u32| match name.contains('=') {
            true => row(name, lap, 12.2, Limit::DiskWrite),
            false => row(name, lap, 48.6 + 10.0 * f64::from(lap - 1), Limit::Throttle),
        };
        let laps = |name: &&str| [1, 2, 3].map(|lap| took(name, lap));
        let mut run = run(variants, Status::Complete, variants.iter().flat_map(laps).collect());
        let (asked, until) = (asked.to_owned(), until.to_owned());
        run.manifest.question = Some(TwinQuestion { asked, until });
        Summary::of(&run).headline
    };
    let alone = told(&["as it is"], "n2 lost for good", "green");
    assert_eq!(alone, "n2 lost for good: green after 48.6 s; the throttle held it");
    let drained = "everything is moved away from n2";
    let both = told(&["as it is", "max_bytes_per_sec = 80mb"], drained, "empty");
    assert_eq!(both, format!("{drained}: empty after 48.6 s; with max_bytes_per_sec=80mb 12.2 s"));
    let set = told(&["enable = all"], "an empty node joins", "balanced");
    assert_eq!(set, "an empty node joins: balanced after 12.2 s with enable=all");
}

/// What never comes is no time, and nothing that a setting lifts holds it.
#[test]
fn a_twin_that_is_never_green_says_so() {
    let stays = Row::measured("as it is", 1, 0.001, 0);
    let mut run = run(&["as it is", "enable = all"], Status::Complete, vec![stays]);
    let (asked, until) = ("n2 lost for good".to_owned(), "green".to_owned());
    run.manifest.question = Some(TwinQuestion { asked, until });
    let text = format!("3 copies find no place, and {}: why", TwinQuestion::STAYS);
    let variant = Some("as it is".to_owned());
    run.lines.push(Line::Note { t_ms: 1.0, variant, text: text.clone() });
    let (said, told) = {
        let summary = Summary::of(&run);
        ((summary.headline.clone(), summary.details.clone()), advice(&run, &summary).remove(0))
    };
    assert_eq!(said, ("n2 lost for good: never green".to_owned(), vec![format!("{text}.")]));
    assert_eq!((told.limit, told.sentence.as_str()), (None, "nothing was copied"));
    assert!(told.gain.is_none() && told.lift.is_none(), "{told:?}");
    // Another one that is made is the fastest, however long it takes.
    run.rows.push(row("enable = all", 1, 12.2, Limit::DiskWrite));
    let summary = Summary::of(&run);
    let said = "n2 lost for good: never green; with enable=all placed after 12.2 s";
    assert_eq!(summary.headline, said);
    assert!(summary.finished().all(|(_, figures)| figures.gain.is_none()), "there is no time");
    assert_eq!(summary.slowest_and_fastest().unwrap().0.name, "enable = all");
    run.lines.push(Line::Note { t_ms: 1.0, variant: Some("enable = all".to_owned()), text });
    let summary = Summary::of(&run);
    assert_eq!(summary.slowest_and_fastest().unwrap().1.name, "enable = all", "it places some");
    // Others are made beside those that have no place.
    (run.rows[0].bytes, run.rows[0].seconds) = (60_000_000, 67.0);
    run.rows.truncate(1);
    let headline = Summary::of(&run).headline;
    assert_eq!(headline, "n2 lost for good: placed after 67.0 s, but never green");
}

/// Nodes are back with their files: whatever the first messages of their copies waited for, no setting of a transfer
/// lifts it.
#[test]
fn a_twin_that_copies_nothing_is_held_by_nothing() {
    let mut back = row("as it is", 1, 65.0, Limit::Latency);
    (back.bytes, back.bytes_per_s) = (0, 0.0);
    let mut run = run(&["as it is"], Status::Complete, vec![back]);
    let (asked, until) = ("all nodes restart".to_owned(), "green".to_owned());
    run.manifest.question = Some(TwinQuestion { asked, until });
    let summary = Summary::of(&run);
    assert_eq!(summary.headline, "all nodes restart: green after 65.0 s");
    let told = advice(&run, &summary).remove(0);
    assert!(told.limit.is_none() && told.lift.is_none() && told.gain.is_none(), "{told:?}");
}

#[test]
fn a_load_has_no_recovery_to_advise_on() {
    let mut rows = vec![row("a", 1, 480.0, Limit::Latency), row("b", 1, 10.0, Limit::LinkRate)];
    rows[0].loads.push(LoadFigures { operation: "search".to_owned(), ..LoadFigures::default() });
    let run = run(&["a", "b"], Status::Complete, rows);
    let told = advice(&run, &Summary::of(&run));
    assert_eq!(told.iter().map(|one| one.variant.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn no_promise_is_less_than_what_the_run_measured() {
    let told = |limit: Limit| {
        let rows = vec![row("a", 1, 480.0, limit), row("b", 1, 2.0, Limit::DiskWrite)];
        let mut run = run(&["a", "b"], Status::Complete, rows);
        for (info, rate) in run.manifest.variants.iter_mut().zip(["1mb", "0"]) {
            info.settings.insert("indices.recovery.max_bytes_per_sec".to_owned(), rate.to_owned());
        }
        let told = advice(&run, &Summary::of(&run)).remove(0);
        let gain = told.gain.unwrap();
        assert!((gain.factor - 240.0).abs() < 1e-6, "{gain:?}");
        (told.measured, gain.formula)
    };
    let (measured, formula) = told(Limit::Throttle);
    assert_eq!(measured, ["b, with 0, took 2.00 s in place of 8:00: 240 times the rate"]);
    assert!(
        formula.starts_with(
            "b measured that, with 0; the shares of time alone give 60 times: 100 % of"
        ),
        "{formula}"
    );
    // No setting lifts it, and all of its time would come back: any other variant tells how far that goes.
    let (measured, formula) = told(Limit::Cpu);
    assert!(measured.is_empty(), "{measured:?}");
    assert_eq!(
        formula,
        "b measured that; the shares of time alone give 10 times: 90 % of the time is saved, of the 100 % that it took"
    );
}

#[test]
fn a_follower_is_judged_by_the_time_in_which_its_files_came() {
    let figures = FollowFigures::default();
    // The link carried 11 MB/s over the whole run, in which the follower mostly followed.
    let whole = Row::measured("a", 1, 100.0, 1_100_000_000);
    let row = Row { following: Some(figures), link_share: Some(0.088), ..whole };
    let mut run = run(&["a"], Status::Complete, vec![row]);
    let sample = |s: u64| FollowSample {
        lag_operations: if s < 12 { 900 } else { 0 },
        answered: true,
        recovered_bytes: Some(s.min(10) * 100_000_000),
        ..FollowSample::default()
    };
    for s in 0..100 {
        let (t_ms, variant) = (s as f64 * 1e3, "a".to_owned());
        run.lines.push(Line::Following { t_ms, variant, lap: 1, sample: sample(s) });
    }
    run.manifest.variants[0]
        .settings
        .insert("ccr.indices.recovery.max_bytes_per_sec".to_owned(), "104857600b".to_owned());
    let told = &advice(&run, &Summary::of(&run))[0];
    assert!(told.sentence.contains("100 MB/s"), "{}", told.sentence);
    let evidence = &told.evidence[0];
    assert_eq!(
        (&*evidence.field, &*evidence.value),
        ("files / seconds", "900 MB in 9.00 s: 100 MB/s")
    );
    let throttle = told.ruled_out.iter().find(|one| one.limit == Limit::Throttle).unwrap();
    assert!(throttle.why.ends_with("of which 95 % was used"), "{}", throttle.why);
}

#[test]
fn laps_become_medians_with_intervals_from_three_on() {
    let laps = |name: &str, seconds: &[f64]| -> Vec<Row> {
        let lap = |(i, s): (usize, &f64)| row(name, i as u32 + 1, *s, Limit::Latency);
        seconds.iter().enumerate().map(lap).collect()
    };
    let rows = [laps("a", &[100.0, 103.0, 97.0]), laps("b", &[50.0, 52.0, 49.0])].concat();
    let run = run(&["a", "b"], Status::Complete, rows);
    let summary = Summary::of(&run);
    let figures = summary.variants[1].finished().unwrap();
    assert_eq!(figures.seconds, 50.0);
    assert_eq!(figures.shown_lap, 1);
    let interval = figures.gain_interval.unwrap();
    assert!(interval.low < 2.0 && interval.high > 2.0 && interval.low > 1.7, "{interval:?}");
    let first = summary.variants[0].finished().unwrap();
    assert_eq!(first.gain, Some(1.0));
    assert!(first.gain_interval.is_none(), "a row is not compared with itself");
}

#[test]
fn laps_that_overlap_have_no_winner() {
    let rows = [("a", [100.0, 130.0, 97.0]), ("b", [93.0, 110.0, 92.0])]
        .iter()
        .flat_map(|(name, laps)| {
            laps.iter().enumerate().map(|(i, s)| row(name, i as u32 + 1, *s, Limit::Latency))
        })
        .collect();
    let run = run(&["a", "b"], Status::Complete, rows);
    let headline = Summary::of(&run).headline;
    assert!(headline.starts_with("No clear winner among 2 variants"), "{headline}");
}

/// A stream of documents that took so many seconds, and its threads' core seconds.
pub(crate) fn stream(variant: &str, seconds: f64, threads: &[(&str, f64)]) -> Row {
    let thread = |(name, busy_s): &(&str, f64)| ThreadUse {
        name: (*name).into(),
        busy_s: *busy_s,
        ..ThreadUse::default()
    };
    let threads = threads.iter().map(thread).collect();
    let figures = StreamFigures { threads, ..StreamFigures::default() };
    Row { limits: Vec::new(), stream: Some(figures), ..row(variant, 1, seconds, Limit::Cpu) }
}

/// The first limit is lifted up to the second thread, and the variant that tried it says what that brought.
#[test]
fn a_stream_is_advised_on_by_its_threads() {
    let path = [("producer", 11.7), ("manager's proxy", 25.0)];
    let with = |consumer: (&'static str, f64)| [path[0], path[1], consumer];
    let rows = vec![
        stream("slow", 45.0, &with(("consumer", 38.0))),
        stream("faster", 30.0, &with(("batching consumer", 20.0))),
    ];
    let mut run = run(&["slow", "faster"], Status::Complete, rows);
    for (info, consumer) in run.manifest.variants.iter_mut().zip(["mainstream", "batching"]) {
        let settings = [("dcp.path", "rebalance"), ("dcp.consumer", consumer)];
        info.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    }
    let told = advice(&run, &Summary::of(&run));
    let to = |one: &Advice| {
        let lift = one.lift.clone().unwrap();
        (lift.setting.unwrap(), lift.to.unwrap(), one.gain.as_ref().unwrap().factor)
    };
    let (setting, value, factor) = to(&told[0]);
    assert_eq!((setting.as_str(), value.as_str()), ("dcp.consumer", "batching"));
    assert!((factor - 45.0 / 25.0).abs() < 1e-9, "as much as the proxy carries: {factor}");
    let [measured] = &told[0].measured[..] else { panic!("{told:#?}") };
    assert!(measured.ends_with("30.0 s in place of 45.0 s: 1.5 times the rate"), "{measured}");
    assert!(told[0].evidence.iter().any(|line| line.value == "busy 84 % of the time"), "{told:#?}");
    let proxy = told[0].ruled_out.iter().find(|one| one.limit == Limit::Proxy).unwrap();
    let says = "the thread of the manager's proxy is busy for 56 % of the time (60 % would tell)";
    assert_eq!((proxy.by, proxy.why.as_str()), (By::Figure, says));
    let (setting, value, factor) = to(&told[1]);
    assert_eq!((setting.as_str(), value.as_str()), ("dcp.path", "data-copy"));
    assert!((factor - 30.0 / 20.0).abs() < 1e-9, "as much as the consumer writes: {factor}");
}

#[test]
fn what_only_counts_is_told_in_one_sentence() {
    let counting = |name: &str| {
        let mut row = stream(name, 25.0, &[("producer", 9.0), ("fast consumer", 14.0)]);
        row.stream.as_mut().unwrap().measuring_device = true;
        row
    };
    let run = run(&["a, fast", "b"], Status::Complete, vec![counting("a, fast"), counting("b")]);
    let told =
        "Not verified, because what took them in only counts, and keeps nothing: a, fast; b.";
    assert_eq!(Summary::of(&run).gaps, [told]);
}

#[test]
fn a_consumer_that_memory_stops_leads_the_headline() {
    let row = |name: &str, seconds: f64, stops: u64, stopped_s: f64| {
        let threads = [("producer", 2.0), ("plain proxy", 1.0), ("consumer", 4.0)];
        let mut row = stream(name, seconds, &threads);
        row.stream.as_mut().unwrap().memory = Some(ConsumerMemory {
            quota_bytes: 1,
            used_bytes_max: 1,
            stops,
            stopped_s,
            longest_stop_s: stopped_s / 4.0,
            buffered_items_max: 0,
        });
        row
    };
    let rows = vec![row("expel", 5.0, 0, 0.0), row("without", 20.0, 12, 16.0)];
    let run = run(&["expel", "without"], Status::Complete, rows);
    let Summary { headline, details, .. } = Summary::of(&run);
    assert_eq!(headline, "without: its consumer lacked memory 80 % of the time");
    assert_eq!(
        details,
        [
            "expel: 200 MB/s; its consumer never stopped.",
            "without: 50.0 MB/s; its consumer stopped 12 times, the longest for 4.00 s.",
        ]
    );
}

#[test]
fn a_stream_names_the_thread_that_holds_it_and_the_one_behind_it() {
    let baseline =
        || stream("a", 45.0, &[("producer", 9.0), ("manager's proxy", 20.0), ("consumer", 38.0)]);
    let other_path = stream("b", 10.0, &[("producer", 9.5), ("reader", 1.0)]);
    let widened = |proxy_s| {
        let threads = [("producer", 9.0), ("manager's proxy", proxy_s), ("fast consumer", 14.0)];
        stream("c", 25.0, &threads)
    };
    let said = |rows: Vec<Row>| {
        let names: Vec<String> = rows.iter().map(|row| row.variant.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let run = run(&names, Status::Complete, rows);
        let summary = Summary::of(&run);
        (summary.headline, summary.details.join(" "))
    };
    let first = "a: 22.2 MB/s, the thread of the consumer busy 84 % of the time.";
    assert_eq!(
        said(vec![baseline(), other_path.clone(), widened(20.0)]),
        (
            "The consumer is the first limit, the manager's proxy the next".to_owned(),
            format!(
                "{first} c: 40.0 MB/s, the thread of the manager's proxy busy 80 % of the time."
            )
        )
    );
    // Nothing was widened on its path: what its own threads say.
    assert_eq!(
        said(vec![baseline(), other_path]),
        (
            "The consumer is the first limit, at 22.2 MB/s".to_owned(),
            format!("{first} The next would be the manager's proxy at 50.0 MB/s, at most.")
        )
    );
    // The consumer still holds the second, so it says nothing of what is behind it.
    assert!(said(vec![baseline(), widened(10.0)]).1.contains("The next would be "));
    // No thread is busy.
    let idle = stream("a", 100.0, &[("producer", 9.0), ("consumer", 20.0)]);
    assert!(said(vec![idle, widened(20.0)]).0.contains("as fast as"));
}

#[test]
fn an_interrupted_run_says_how_far_it_came() {
    let mut run =
        run(&["a", "b", "c"], Status::Interrupted, vec![row("a", 1, 480.0, Limit::Latency)]);
    let variant = || "b".to_owned();
    run.lines.push(Line::Phase {
        t_ms: 500_000.0,
        variant: Some(variant()),
        lap: 1,
        phase: Phase { name: "recover".into(), begins: true },
    });
    for i in 1..=4u64 {
        let sample = RecoverySample {
            recovered_bytes: i * 100,
            total_bytes: 1000,
            ..RecoverySample::default()
        };
        let t_ms = 500_000.0 + i as f64 * 100.0;
        run.lines.push(Line::Recovery { t_ms, variant: variant(), lap: 1, sample });
    }
    let summary = Summary::of(&run);
    assert_eq!(
        summary.variants[1].progress,
        Progress::Partial { seconds: 0.4, recovered_bytes: 400, total_bytes: 1000 }
    );
    assert_eq!(
        summary.gaps,
        [
            "The run was interrupted: 1 of 3 variants finished.",
            "b: stopped after 400 ms at 40 % of 1.00 kB.",
            "c: not run.",
            "No samples for a, so no curves of it.",
        ]
    );
    let curves = curves(&run, &summary);
    assert_eq!(curves.len(), 1);
    assert_eq!(curves[0].recovered.last().unwrap().value, 400.0);
    assert!(curves[0].link.is_empty() && curves[0].nodes.is_empty());
    // Nothing is whole before its last byte.
    if let Some(Line::Recovery { sample, .. }) = run.lines.last_mut() {
        sample.recovered_bytes = 999;
    }
    let gaps = Summary::of(&run).gaps;
    assert!(gaps.iter().any(|gap| gap.contains(" at 99 % of ")), "{gaps:?}");
}

#[test]
fn a_track_that_stopped_in_the_middle_did_not_finish_and_says_at_which_task() {
    let lap = |lap: u32, stopped_at: Option<&str>| Row {
        loads: vec![LoadFigures::default()],
        stopped_at: stopped_at.map(str::to_owned),
        ..row("a", lap, 10.0, Limit::Cpu)
    };
    let said = |status: Status, rows: Vec<Row>| Summary::of(&run(&["a"], status, rows)).gaps;
    assert_eq!(
        said(Status::Failed, vec![lap(1, Some("merge"))]),
        ["The run failed: 0 of 1 variant finished.", "a: stopped at merge, before its end."]
    );
    assert_eq!(
        said(Status::Interrupted, vec![lap(1, None), lap(2, Some("merge"))]),
        [
            "The run was interrupted: 0 of 1 variant finished.",
            "a: in lap 2 stopped at merge, before its end."
        ]
    );
    assert_eq!(said(Status::Complete, vec![lap(1, None)]), [""; 0]);
}

#[test]
fn an_empty_run_and_a_row_without_time_are_no_results() {
    let failed = run(&[], Status::Failed, vec![]);
    assert_eq!(Summary::of(&failed).headline, "No variant began: the run failed");
    let mut failed = run(&["a"], Status::Failed, vec![]);
    failed.manifest.failure = Some("no index [a]".to_owned());
    let why = "The run failed: 0 of 1 variant finished. Why: no index [a].";
    assert_eq!(Summary::of(&failed).gaps[0], why);
    let zero = run(&["a"], Status::Complete, vec![row("a", 1, 0.0, Limit::Latency)]);
    let summary = Summary::of(&zero);
    assert_eq!(summary.variants[0].progress, Progress::NotRun);
    assert_eq!(summary.baseline, None);
}

#[test]
fn a_copy_that_differs_is_said_aloud() {
    let mut wrong = row("a", 1, 10.0, Limit::LinkRate);
    wrong.verified = false;
    let run = run(&["a"], Status::Complete, vec![wrong]);
    let gaps = Summary::of(&run).gaps;
    assert!(gaps.iter().any(|gap| gap.starts_with("a: NOT VERIFIED")), "{gaps:?}");
}

#[test]
fn published_loads_stand_beside_ours_as_figures_and_as_changes() {
    let load = |per_s: f64, p50_ms: f64| LoadFigures {
        operation: "search".into(),
        requests: 100,
        throughput: Throughput { median_per_s: per_s, ..Throughput::default() },
        latency: Some(Percentiles { p50_ms, ..Percentiles::default() }),
        ..LoadFigures::default()
    };
    let published = |per_s: f64, p50_ms: f64, kind: Kind| PublishedInfo {
        figure: "f".into(),
        row: "r".into(),
        text: "t".into(),
        node_bytes_per_s: None,
        load: BTreeMap::from([
            ("Median Throughput".to_owned(), per_s),
            ("50th percentile latency".to_owned(), p50_ms),
            ("error rate".to_owned(), 1.0),
            ("90th percentile service time".to_owned(), 700.0),
        ]),
        kind,
    };
    let rows = [("none", load(40.0, 500.0)), ("ars", load(90.0, 1000.0))]
        .map(|(name, load)| Row { loads: vec![load], ..row(name, 1, 10.0, Limit::Cpu) });
    let mut run = run(&["none", "ars"], Status::Complete, rows.to_vec());
    run.manifest.variants[0].published = Some(published(50.0, 400.0, Kind::Calibrated));
    run.manifest.variants[1].published = Some(published(100.0, 900.0, Kind::Predicted));
    run.manifest.variants[1].baseline = Some("none".into());
    let summary = Summary::of(&run);
    let found = comparisons(&summary);
    let of = |name: &str| found.iter().find(|row| row.name() == name).unwrap();
    assert_eq!(found.len(), 6, "what is neither compared nor beside has no row");
    let none = of("none, median throughput");
    assert_eq!((none.published, none.ours, none.kind), (Some(50.0), Some(40.0), Kind::Calibrated));
    assert!((none.error().unwrap() + 0.2).abs() < 1e-9);
    let change = of("ars, 50th percentile latency");
    assert_eq!((change.published, change.ours), (Some(125.0), Some(100.0)));
    assert!((change.error().unwrap() + 0.25).abs() < 1e-9, "percentage points");
    let throughput = of("ars, median throughput");
    assert_eq!((throughput.published, throughput.ours), (Some(100.0), Some(125.0)));
    let errors = of("ars, error rate");
    assert_eq!((errors.published, errors.ours, errors.error()), (Some(1.0), Some(0.0), None));
    assert_eq!(standing(found.iter()).rows, 4, "what only stands beside is not judged");
}
