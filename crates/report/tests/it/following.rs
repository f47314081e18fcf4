//! The page of a follower: where it meets its leader, and what it copied before that.

use std::path::Path;

use record::{Line, RunDir, Status};

use crate::page::{chart, checked};

/// A stored follower that copies 10 MB in ten samples, and is level from the eleventh on.
fn that_meets() -> RunDir {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v3");
    let mut run = RunDir::open(&stored).unwrap();
    let mut at = 0;
    for line in &mut run.lines {
        if let Line::Following { sample, .. } = line {
            at += 1;
            sample.answered = true;
            sample.caught_up = at == 11;
            sample.leader_operations = at * 1000;
            sample.follower_operations = if at <= 10 { 0 } else { at * 1000 };
            sample.lag_operations = sample.leader_operations - sample.follower_operations;
            sample.recovered_bytes = Some(at.min(10) * 1_000_000);
            sample.indexing_requests = Some(at);
            sample.indexing_ms = Some(at as f64 * 20.0);
        }
    }
    run
}

#[test]
fn leader_and_follower_lie_on_one_axis_with_a_ring_where_they_meet() {
    let run = that_meets();
    let summary = insight::Summary::of(&run);
    let curves = insight::curves(&run, &summary);
    let met = curves[0].met.expect("they meet");
    assert_eq!(met.value, 11_000.0);
    let json = report::json(&summary);
    let told = &json["following"][0]["met"];
    assert_eq!(
        (told["seconds"].as_f64(), told["operations"].as_u64()),
        (Some(met.t_s), Some(11_000))
    );
    let page = report::html(&run);
    let chart = |id: &str| chart(&page, &format!("{id}-0-wide-t"));
    let operations = chart("operations");
    for (what, class) in [("leader", "dashed"), ("follower", "line")] {
        let drawn = operations.matches(&format!("<path class=\"{class}\"")).count();
        assert_eq!(drawn, 1, "{what}: {operations}");
    }
    assert_eq!(operations.matches("<circle class=\"ring\"").count(), 1, "{operations}");
    assert!(!chart("lag").contains("class=\"ring\""), "it is marked where both are drawn");
    assert_eq!(chart("beside").matches("<path class=\"line\"").count(), 1, "recovered bytes");
    assert!(chart("index-latency").contains("at most 20.0 ms"), "of requests to index");
    let after = record::units::show_seconds(met.t_s);
    let told = format!("after {after}, at {} operations", insight::words::count(11_000));
    assert!(page.contains(&insight::words::unbroken(&told)), "{page}");
}

#[test]
fn a_run_that_stopped_while_it_followed_shows_how_far_behind_the_follower_was() {
    let mut run = that_meets();
    run.rows.clear();
    run.manifest.status = Status::Interrupted;
    run.lines.retain(|line| !matches!(line, Line::Phase { phase, .. } if !phase.begins));
    let page = checked(&run);
    assert!(page.contains("id=\"lag-0-wide-t\"") && !page.contains("Table of waits"), "{page}");
    let told = page.split(": stopped after ").nth(1).expect("how far it came");
    assert!(told.split('<').next().unwrap().ends_with(", before its end."), "{told}");
    assert!(!told.starts_with('0'), "{told}");
}

#[test]
fn a_follower_that_copied_nothing_or_an_empty_index_has_no_chart_of_files() {
    for copied in [None, Some(3600)] {
        let mut run = that_meets();
        for line in &mut run.lines {
            if let Line::Following { sample, .. } = line {
                sample.recovered_bytes = copied;
            }
        }
        let page = report::html(&run);
        assert!(page.contains("id=\"operations-0-wide-t\"") && !page.contains("id=\"beside-0-"));
    }
}

#[test]
fn the_page_of_a_run_that_follows_is_named_at_the_margin_as_that_of_any_other() {
    let run = that_meets();
    let style = report::Style { color: false, width: 100 };
    let page = Path::new("runs/r1/report.html");
    let text = report::table(&insight::Summary::of(&run), style, Some(page));
    assert!(text.ends_with("\nReport: runs/r1/report.html\n"), "{text}");
}
