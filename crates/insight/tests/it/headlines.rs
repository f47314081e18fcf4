//! Headlines of every kind of run have 14 words at most, and what they have no room for stands below.

use insight::Summary;
use insight::compare::Runs;
use record::{
    CatchUp, FollowFigures, Limit, Line, LoadFigures, Percentiles, Row, RunDir, Status, Throughput,
};

use crate::common::{MB, case};
use crate::summary::{row, run, stream};

const WORDS_MAX: usize = 14;

/// Names of bundled plans: none has more words.
const BUNDLED: [(&str, &str); 4] = [
    ("1: 1 MB x 5, files", "compressed: 5 MB x 8, Java 11"),
    ("67/s, 4 replicas, es3 loaded, all nodes", "67/s, es3 has background work for 20 s"),
    ("1 replica, es3 loaded: none", "1 replica, es3 loaded: narrows"),
    ("rebalance, mainstream", "rebalance, fast (measuring device)"),
];
/// Names that leave a headline no room.
const LONG: (&str, &str) = (
    "the nodes of before behind a link that is as long as from one continent to another",
    "the nodes of today behind a link that is as long as from one continent to another",
);

fn load(documents: u64, per_s: f64, failed: u64) -> LoadFigures {
    let times = Percentiles { p50_ms: 1.0, p90_ms: 2.0, p99_ms: 3.0, ..Percentiles::default() };
    LoadFigures {
        operation: "articles_monthly_agg_uncached".to_owned(),
        seconds: 10.0,
        requests: 1000,
        documents,
        throughput: Throughput { mean_per_s: per_s, median_per_s: per_s, ..Throughput::default() },
        latency: Some(times),
        errors: (failed > 0).then(|| ("timeout".to_owned(), failed)).into_iter().collect(),
        ..LoadFigures::default()
    }
}

fn of_loads(name: &str, load: LoadFigures) -> Row {
    Row { loads: vec![load], ..row(name, 1, 10.0, Limit::Cpu) }
}

fn of_following(name: &str, copies: u64, violations: u64) -> Row {
    let wait = CatchUp {
        after: "the link was cut off for 5:00".to_owned(),
        lag_operations: 1000,
        lag_s: 300.0,
        seconds: 12.0,
        operations: 900,
        indexed: 300,
        ..CatchUp::default()
    };
    let catch_ups = vec![wait];
    let acknowledged = 1_440_776;
    let figures =
        FollowFigures { acknowledged, copies, violations, catch_ups, ..FollowFigures::default() };
    Row { following: Some(figures), ..row(name, 1, 10.0, Limit::Cpu) }
}

/// Runs of every kind, and what is said of each, above or below.
fn kinds(a: &str, b: &str) -> Vec<(RunDir, Vec<&'static str>)> {
    let of = |rows: Vec<Row>| run(&[a, b], Status::Complete, rows);
    let path = |proxy_s| [("producer", 9.0), ("manager's proxy", proxy_s), ("consumer", 38.0)];
    let wider = [("producer", 9.0), ("manager's proxy", 20.0), ("fast consumer", 14.0)];
    let mut track = of(vec![Row {
        loads: vec![load(5000, 10.0, 1), LoadFigures { operation: "b".into(), ..load(0, 9.0, 1) }],
        ..row(a, 1, 10.0, Limit::Cpu)
    }]);
    track.manifest.challenge = Some("append-no-conflicts-index-only".to_owned());
    let looks = |rate: u64| {
        let mut run = run(&[], Status::Complete, vec![]);
        let look = |s: u64| Line::Observation {
            t_ms: s as f64 * 1000.0,
            observation: Box::new(case(s, rate)),
        };
        run.lines = (0..=10).map(look).collect();
        run
    };
    let slots = Limit::Slots;
    vec![
        (
            of(vec![row(a, 1, 480.0, Limit::Latency), row(b, 1, 10.0, Limit::LinkRate)]),
            vec!["48 times", "latency", "the link"],
        ),
        (of(vec![row(a, 1, 480.0, slots), row(b, 1, 10.0, slots)]), vec!["waiting for a slot"]),
        (
            of(vec![row(a, 1, 10.0, slots), row(b, 1, 10.2, slots)]),
            vec!["10.0 s", "10.2 s", "slot"],
        ),
        (of(vec![row(a, 1, 10.0, Limit::DiskRead)]), vec!["10.0 s", "100 MB/s", "source's disk"]),
        (run(&[a, b], Status::Running, vec![]), vec!["still going on"]),
        (run(&[a, b], Status::Complete, vec![]), vec!["measures none"]),
        (
            of(vec![stream(a, 45.0, &path(20.0)), stream(b, 25.0, &wider)]),
            vec!["The consumer", "manager's proxy", "22.2 MB/s", "84 %", "40.0 MB/s", "80 %"],
        ),
        (of(vec![stream(a, 45.0, &path(20.0))]), vec!["22.2 MB/s", "84 %", "50.0 MB/s"]),
        (
            of(vec![of_loads(a, load(0, 10.0, 0)), of_loads(b, load(0, 25.0, 0))]),
            vec!["2.5 times the throughput"],
        ),
        (of(vec![of_loads(a, load(0, 10.0, 0)), of_loads(b, load(0, 10.0, 0))]), vec!["by 5 %"]),
        (
            of(vec![of_loads(a, load(0, 10.0, 20))]),
            vec!["10.0 requests a second", "2.00 %", "1.00 ms", "3.00 ms"],
        ),
        (track, vec!["2 tasks", "1 more", "500 documents a second"]),
        (
            of(vec![of_following(a, 4, 0)]),
            vec![
                "12.0 s", "cut off for 5:00", "3.0 times", "1\u{202f}440\u{202f}776",
                "nothing lost",
            ],
        ),
        (of(vec![of_following(a, 4, 2)]), vec!["2 RULES BROKEN"]),
        (of(vec![of_following(a, 0, 0)]), vec!["not verified"]),
        (looks(9 * MB), vec![]),
        (looks(0), vec![]),
    ]
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn no_headline_of_a_run_has_more_than_14_words() {
    for (a, b) in BUNDLED {
        for (run, figures) in kinds(a, b) {
            let Summary { headline, details, watched, .. } = Summary::of(&run);
            assert!(words(&headline) <= WORDS_MAX, "{} words: {headline}", words(&headline));
            let all = format!("{headline}. {}", details.join(" "));
            for figure in figures {
                assert!(all.contains(figure), "{figure} is not in: {all}");
            }
            assert!(watched.is_none_or(|found| all.contains(&found.headline)), "{all}");
            assert!(details.iter().all(|sentence| sentence.ends_with('.')), "{details:?}");
        }
    }
}

#[test]
fn a_name_with_a_comma_of_its_own_does_not_read_as_two() {
    let (a, b) = ("40mb, the default", "no throttle");
    let rows = vec![row(a, 1, 480.0, Limit::Throttle), row(b, 1, 10.0, Limit::LinkRate)];
    let run = run(&[a, b], Status::Complete, rows);
    let said = Summary::of(&run).headline;
    assert_eq!(said, "no throttle is 48 times as fast as \"40mb, the default\"");
}

#[test]
fn a_name_is_never_cut_and_the_rest_stays_short() {
    let (a, b) = LONG;
    for (run, figures) in kinds(a, b) {
        let Summary { headline, details, .. } = Summary::of(&run);
        let own = headline.replace(a, "A").replace(b, "B");
        assert!(words(&own) <= WORDS_MAX, "{own}");
        let all = format!("{headline}. {}", details.join(" "));
        assert!(figures.iter().all(|figure| all.contains(figure)), "{all}");
    }
}

#[test]
fn runs_beside_each_other_have_a_short_headline_too() {
    let laps = |seconds: &[f64]| {
        let lap = |(lap, s): (u32, &f64)| row(LONG.0, lap, *s, Limit::Latency);
        run(&[LONG.0], Status::Complete, (1..).zip(seconds).map(lap).collect())
    };
    let base = laps(&[10.0, 10.1, 10.2, 10.3, 10.4]);
    for seconds in [vec![12.0, 12.1, 12.2, 12.3, 12.4], vec![10.05], vec![10.0; 5], vec![]] {
        let other = laps(&seconds);
        let said = Runs::of(&[&base, &other]).headline();
        assert!(words(&said.text) <= WORDS_MAX, "{}", said.text);
    }
    let far = laps(&[12.0, 12.1, 12.2, 12.3, 12.4]);
    let said = Runs::of(&[&base, &far]).headline();
    assert!(said.details[0].contains("% worse than in A."), "{said:?}");
}
