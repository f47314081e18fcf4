//! A plan that follows, on processes: its faults pass, nothing is lost, and the report says so; what cannot be done
//! there is refused before anything starts.

use crate::common::plans::{following, run};
use crate::common::{failed, json, narrows, only_run, refused, said};

#[test]
fn processes_are_killed_and_cut_off_and_nothing_is_lost() {
    let (dir, output) = run(&following(), "embedded", &[]);
    let found = json(&output);
    let lap = &found["following"][0]["laps"][0];
    assert_eq!((&lap["copies"], &lap["violations"]), (&10.into(), &0.into()), "{lap}");
    assert!(lap["acknowledged"].as_u64() > Some(1500), "{lap}");
    let waits = lap["catch_ups"].as_array().unwrap();
    assert_eq!(waits.len(), 4);
    assert_eq!(waits[1]["after"], "the link was cut off for 2.00 s");
    let run = only_run(&dir.path().join("runs"));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("How far behind the follower was") && page.contains("lag-0-wide"));
    let shown = narrows(&["show", run.to_str().unwrap()]);
    // Lines end where the terminal does.
    let shown: Vec<String> = said(&shown).split_whitespace().map(str::to_owned).collect();
    let shown = shown.join(" ");
    let expected = "10 copies read, each has every acknowledged write once";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn what_only_the_virtual_world_has_is_refused_before_anything_starts() {
    let cut = "{ fault = { kind = \"cut\", lasts = \"2s\" } }";
    let clock = "{ fault = { kind = \"clock\", node = \"leader\", by = \"1h\" } }";
    let (_dir, output) = run(&following().replacen(cut, clock, 1), "embedded", &[]);
    failed(&output, 2, &["move a node's clock", "--on virtual"]);
    refused(&["run", "follow-small", "--on", "opensearch"], &["--on embedded or --on virtual"]);
}
