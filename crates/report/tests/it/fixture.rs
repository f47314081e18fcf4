//! Records of earlier formats still open. A stored fixture is never written again: a new format gets
//! a new directory beside it.

use std::path::{Path, PathBuf};

use record::{RunDir, Status, Writer};

use crate::{beside, common};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn the_record_of_format_1_still_opens() {
    let run = RunDir::open(&stored("run-v1")).unwrap();
    assert_eq!(run.manifest.format, 1);
    assert_eq!(run.manifest.status, Status::Complete);
    assert_eq!(run.manifest.nodes.len(), 6);
    assert_eq!(run.rows.len(), 5);
    let summary = insight::Summary::of(&run);
    assert_eq!(summary.gaps, Vec::<String>::new());
    let curves = insight::curves(&run, &summary);
    assert_eq!(curves.len(), 5);
    assert!(
        curves.iter().all(|c| c.nodes.len() == 6 && c.link.len() > 20 && c.recovered.len() > 20)
    );
    // It says nothing of disks.
    assert!(curves.iter().flat_map(|c| &c.nodes).all(|node| node.disk_busy.is_empty()));
    assert!(!report::html(&run).contains("Disk bytes"));
}

/// A watched cluster (format 2): OpenSearch 2.19.1, two nodes, a replica that comes at a throttle of 3mb.
#[test]
fn the_record_of_a_watched_cluster_opens_and_is_explained() {
    let run = RunDir::open(&stored("run-v2")).unwrap();
    assert_eq!(run.manifest.format, 2);
    let summary = insight::Summary::of(&run);
    let found = summary.watched.as_ref().unwrap();
    assert_eq!(found.findings[0].class, insight::diagnosis::Class::RateLimit);
    let page = report::html(&run);
    assert!(page.contains("Findings") && page.contains("indices.recovery.max_bytes_per_sec"));
    assert!(report::json(&summary)["watched"]["findings"][0]["evidence"].is_array());
    assert_eq!(insight::curves(&run, &summary).len(), 1);
}

/// A follower on processes (format 3): logs that roll over while its nodes restart. Of every four samples of nodes and
/// the link one is kept.
#[test]
fn the_record_of_a_follower_opens_and_is_told() {
    let run = RunDir::open(&stored("run-v3")).unwrap();
    assert_eq!(run.manifest.format, 3);
    let summary = insight::Summary::of(&run);
    assert_eq!(summary.gaps, Vec::<String>::new());
    let figures = &summary.following[0].laps[0];
    assert_eq!((figures.rollovers, figures.restarts_ended, figures.copies), (7, 4, 64));
    assert_eq!((figures.acknowledged, figures.violations), (150_600, 0));
    let worst = figures.restarts.iter().max_by_key(|wait| wait.lag_operations).unwrap();
    assert_eq!(
        (worst.lag_operations, worst.after.as_str()),
        (7000, "follower was killed for 3.00 s")
    );
    let curves = insight::curves(&run, &summary);
    assert!(curves[0].lag.iter().any(|point| point.value == 8600.0));
    let page = report::html(&run);
    let told = "8 indices after 7 rollovers; 4 restarts at random, caught up after 4 of them, within 2.31 s and at least";
    assert!(page.contains(told) && page.contains("How far behind the follower was"));
}

/// The made-up run (format 4): every file begins with its version.
#[test]
fn every_file_of_the_record_says_its_format() {
    let dir = stored("run-v4");
    for name in ["lines.jsonl", "rows.jsonl"] {
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        assert_eq!(text.lines().next(), Some(r#"{"format":4}"#), "{name}");
    }
    let run = RunDir::open(&dir).unwrap();
    assert_eq!((run.manifest.format, run.rows.len(), run.lines.len()), (4, 5, 672));
    let summary = insight::Summary::of(&run);
    assert_eq!(summary.headline, insight::Summary::of(&common::made_up(1000.0, true)).headline);
}

/// The made-up run with writers beside its recoveries and a fault (format 5).
#[test]
fn the_record_of_writers_beside_and_a_fault_opens() {
    let run = RunDir::open(&stored("run-v5")).unwrap();
    assert_eq!((run.manifest.format, run.rows.len()), (5, 5));
    let summary = insight::Summary::of(&run);
    assert_eq!(summary.gaps, Vec::<String>::new());
    let curves = insight::curves(&run, &summary);
    assert!(curves[0].indexed.len() > 10, "{:?}", curves[0].indexed);
    let shades = &curves[0].shades;
    assert_eq!((shades.len(), shades[0].what.as_str()), (1, beside::FAULT));
}

/// A new version of the format needs one: `NARROWS_WRITE=1` writes it, and touches none that is stored.
#[test]
fn the_fixture_of_this_format_is_stored() {
    let dir = stored(&format!("run-v{}", record::FORMAT));
    if dir.exists() {
        return;
    }
    assert!(
        testbed::generated::writes(),
        "{} is missing; NARROWS_WRITE=1 writes it",
        dir.display()
    );
    let mut run = common::made_up(1000.0, true);
    beside::write_beside(&mut run);
    let mut writer = Writer::create(&dir, &run.manifest).unwrap();
    run.lines.iter().for_each(|line| writer.line(line).unwrap());
    run.rows.iter().for_each(|row| writer.row(row).unwrap());
    assert_eq!(RunDir::open(&dir).unwrap().lines.len(), run.lines.len());
}
