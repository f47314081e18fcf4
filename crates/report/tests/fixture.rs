//! Records of earlier formats still open. A stored fixture is never written again: a new format gets
//! a new directory beside it.

mod common;

use std::path::{Path, PathBuf};

use record::{RunDir, Status, Writer};

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
    assert!(curves.iter().all(|c| c.cpu.len() == 6 && c.link.len() > 20 && c.recovered.len() > 20));
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

/// Run by hand with `--ignored` when the format has a new version; refuses to touch a stored one.
#[test]
#[ignore = "writes a fixture"]
fn write_the_fixture_of_this_format() {
    let dir = stored(&format!("run-v{}", record::FORMAT));
    assert!(!dir.exists(), "{} is stored already and must stay as it is", dir.display());
    let run = common::made_up(100.0, true);
    let mut writer = Writer::create(&dir, &run.manifest).unwrap();
    run.lines.iter().for_each(|line| writer.line(line).unwrap());
    run.rows.iter().for_each(|row| writer.row(row).unwrap());
    assert_eq!(RunDir::open(&dir).unwrap().lines.len(), run.lines.len());
}
