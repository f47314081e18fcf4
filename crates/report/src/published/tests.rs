//! Tests of tables and of JSON, and the sample that those of the page have.

use record::Limit;
use unicode_width::UnicodeWidthStr;

use super::*;

pub(super) fn sample() -> Published {
    let row = |variant: &str, figure, published, ours, kind| Comparison {
        plan: "remote-recovery".to_owned(),
        variant: variant.to_owned(),
        figure,
        published,
        text: "charts only: one | two".to_owned(),
        laps: None,
        ours,
        range: None,
        kind,
        held_by: Some(Limit::Latency),
        verdict: Some("97 % latency".to_owned()),
    };
    let (predicted, calibrated) = (Kind::Predicted, Kind::Calibrated);
    let drawn = Some(Interval { low: 80.0, high: 130.0 });
    let larger = Conclusion {
        document: "benchmark-plan".to_owned(),
        place: "experiment 1".to_owned(),
        claim: "larger chunks <help>".to_owned(),
        rows: "1 MB x 1, 64 KB x 1".to_owned(),
        unit: Unit::Times,
        published: Some(17.0),
        within: (Some(4.1), None),
        ours: Some(15.1),
        range: None,
        holds: Some(true),
        is_near: Some(false),
        kind: predicted,
        expected: true,
        why: String::new(),
    };
    let faster = Conclusion {
        claim: "40 seconds faster".to_owned(),
        rows: "1 less 2".to_owned(),
        unit: Unit::Seconds,
        published: Some(40.6),
        within: (Some(36.5), Some(44.6)),
        ours: Some(149.0),
        range: Some(Interval { low: 148.0, high: 150.0 }),
        holds: Some(false),
        kind: calibrated,
        expected: false,
        why: "Bytes bind.".to_owned(),
        ..larger.clone()
    };
    Published {
        documents: vec![Document {
            id: "benchmark-plan".to_owned(),
            title: "Benchmark plan".to_owned(),
            by: "somebody, 2019".to_owned(),
            plans: vec!["remote-recovery".to_owned()],
        }],
        rows: vec![
            row("64 KB x 1", Figure::Seconds, Some(14384.9), Some(14000.0), calibrated),
            row("1 MB x 1", Figure::Seconds, Some(844.0), Some(928.4), predicted),
            row("20mb", Figure::Seconds, Some(604_800.0), Some(604_000.0), Kind::Implied),
            row("2gb", Figure::NodeBytesPerS, Some(66e6), Some(61e6), predicted),
            row("plain", Figure::Words, None, Some(75.0), predicted),
            row("none", Figure::Load("Throughput", "ops/s"), Some(95.8), Some(95.8), calibrated),
            Comparison {
                range: drawn,
                ..row("ARS", Figure::Change("Throughput"), Some(115.8), Some(127.1), predicted)
            },
        ],
        conclusions: vec![larger, faster],
        walls: vec![Wall { plan: "remote-recovery".to_owned(), seeds: 20, seconds: 4.0 }],
        wall_s: 2.5,
        cores: 2,
        seeds: 20,
        scale: 1.0,
        ..Published::default()
    }
}

#[test]
fn the_range_of_a_published_figure_over_its_laps_stands_beside_it() {
    let mut published = sample();
    published.rows[5].laps = Some(Interval { low: 95.0, high: 96.6 });
    let page = published.markdown().remove(1).1;
    assert!(page.contains("| 95.8 ops/s, laps 95.0 to 96.6 ops/s |"), "{page}");
    assert!(published.html().contains("95.8 ops/s<small>laps 95.0 to 96.6 ops/s</small>"));
    assert_eq!(published.json()["rows"][5]["laps_high"], 96.6);
    assert!(!sample().html().contains("<small>laps"));
}

#[test]
fn the_table_has_a_line_for_each_figure_and_judges_each_kind() {
    let text = sample().text(usize::MAX);
    let line = |with: &str| text.lines().find(|line| line.contains(with)).unwrap().to_owned();
    assert!(line("64 KB x 1  ").contains("calibrated"), "{text}");
    assert!(line("1 MB x 1  ").contains("+10.0 %"), "{text}");
    assert!(line("20mb  ").contains("implied"), "{text}");
    let mut alike = sample();
    (alike.rows[1].published, alike.rows[1].ours) = (Some(73.3), Some(103.0));
    let both = alike.text(usize::MAX);
    let both = both.lines().find(|line| line.contains("1 MB x 1  ")).unwrap();
    assert!(both.contains(" 1:13 ") && both.contains(" 1:43 "), "{both}");
    assert!(line("2gb").contains("66.0 MB/s"), "{text}");
    let words = line("plain");
    assert!(words.contains("charts only") && !words.contains("predicted"), "{text}");
    assert!(line("none, throughput").contains("95.8 ops/s"), "{text}");
    let change = line("ARS, throughput");
    assert!(change.contains("+115.8 %") && change.contains("+11.3 points"), "{text}");
    assert!(change.contains("+80.0 to +130.0 %, in range"), "{text}");
    let median = |what: &str, kind: &str| {
        let of = |line: &&str| line.contains(what) && line.contains(kind);
        text.lines().filter(|line| line.starts_with("Benchmark plan")).find(of).unwrap()
    };
    assert!(median("times", "predicted").contains("10.0 %"), "{text}");
    assert!(median("changes", "predicted").contains("11.3 points"), "{text}");
    assert!(line("larger chunks").starts_with("holds   "), "{text}");
    let changed = line("40 seconds faster");
    assert!(changed.starts_with("does not hold") && changed.ends_with("which is NEW"), "{text}");
    assert!(changed.contains("2:29, calibrated, asked 36.5 to 44.6 s"), "{text}");
    // With fewer seeds, or smaller indices, it may come out either way.
    for few in [Published { seeds: 1, ..sample() }, Published { scale: 0.1, ..sample() }] {
        assert!(!few.can_tell_changes() && !few.text(usize::MAX).contains("NEW"));
    }
    let small = Published { scale: 0.1, ..sample() };
    assert!(small.text(usize::MAX).starts_with("Not at the published size: scale 0.1."), "{text}");
    assert!(!small.text(usize::MAX).contains("+10.0 %"), "{}", small.text(usize::MAX));
    assert!(small.text(usize::MAX).contains("median error"), "of changes");
    let mut judged = small.clone();
    judged.rows.truncate(2);
    assert!(!judged.text(usize::MAX).contains("median error"), "a table without rows is none");
    let error = |at: usize| small.json()["rows"][at]["error"].clone();
    assert!(error(0).is_null() && error(6).is_number(), "a change is one at every size");
    assert!(small.json()["rows"][0]["within_range"].is_null());
    assert!(small.groups().iter().all(|group| group.what == CHANGES));
    assert!(text.ends_with("Time of a core: remote-recovery 4.00 s (20 seeds).\n"), "{text}");
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_broken_sentences() {
    let text = sample().text(60);
    assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    let row = text.lines().find(|line| line.contains("1 MB x 1 ")).unwrap();
    assert!(row.contains("14:04") && row.contains("15:28"), "{text}");
    assert!(!text.contains("held by") && !text.contains("furthest off"), "{text}");
}

#[test]
fn json_has_the_same() {
    let json = sample().json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 7);
    let row = &json["rows"][6];
    for (key, value) in [
        ("document", json!("benchmark-plan")),
        ("plan", json!("remote-recovery")),
        ("row", json!("ARS, throughput")),
        ("unit", json!("%")),
        ("published", json!(115.8)),
        ("ours", json!(127.1)),
        ("low", json!(80.0)),
        ("high", json!(130.0)),
        ("kind", json!("predicted")),
    ] {
        assert_eq!(row[key], value, "{key}");
    }
    let points = row["error"].as_f64().unwrap();
    assert!((points - 11.3).abs() < 1e-6, "a change is off by points: {points}");
    let share = json["rows"][1]["error"].as_f64().unwrap();
    assert!((share - 0.1).abs() < 1e-6, "a time is off by a share: {share}");
    let medians = json["medians"].as_array().unwrap();
    let of_changes = medians.iter().find(|median| median["of"] == CHANGES).unwrap();
    assert!((of_changes["median_error"].as_f64().unwrap() - 11.3).abs() < 1e-6, "{of_changes}");
    assert_eq!(json["rows"][0]["low"], 14000.0, "one seed is its own range");
    assert_eq!(json["conclusions"][0]["holds"], true);
    assert_eq!(json["conclusions"][0]["within_tenth"], false);
    assert_eq!(json["conclusions"][1]["kind"], "calibrated");
    assert_eq!(json["conclusions"][1]["ours_low"], 148.0);
    assert_eq!(json["conclusions"][1]["claim"], "40 seconds faster");
    assert_eq!(json["medians"][0]["kind"], "predicted");
    assert_eq!(json["wall_s"], 2.5);
}
