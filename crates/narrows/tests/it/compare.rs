//! Runs beside each other: the list of them, what differs, and what a run that never started is good for.

use std::path::Path;

use crate::common::{done, failed, json, narrows, printed, refused, said};

/// A run of a small plan in virtual time; its id.
fn run(runs: &str, seed: &str, more: &[&str]) -> String {
    let plan = ["run", "remote-recovery", "--on", "virtual", "--variant", "1 MB x 1", "--json"];
    let small = ["--scale", "0.05", "--runs", runs, "--seed", seed];
    let found = json(&narrows(&[&plan[..], &small, more].concat()));
    found["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_slower_run_is_worse_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let a = run(runs, "1", &["--laps", "4"]);
    let b = run(runs, "2", &["--laps", "4", "--rtt", "200ms"]);
    let compare =
        |more: &[&str]| narrows(&[&["compare", &a, &b, "--runs", runs][..], more].concat());
    let found = json(&compare(&["--format", "json"]));
    let time = &found["figures"][0];
    assert_eq!((time["figure"].as_str(), time["unit"].as_str()), (Some("time"), Some("s")));
    assert_eq!(time["laps"][1].as_array().unwrap().len(), 4, "{time}");
    let difference = &time["differences"][0];
    // A recovery in virtual time has no chance in it: four laps are one, four times.
    assert_eq!((&difference["supported"], &difference["worse"]), (&false.into(), &true.into()));
    assert!(difference["change_percent"].as_f64().unwrap() > 20.0, "{difference}");
    assert!(difference["p"].is_null() && difference["interval_percent"].is_null(), "{difference}");
    let said = found["remarks"].to_string();
    assert!(said.contains("Laps of A and B are copies of one"), "{said}");
    assert!(said.contains("link 100 ms") && said.contains("200 ms"), "{said}");

    let table = printed(&compare(&[]));
    assert!(table.contains("1 MB x 1") && !table.contains("95 % interval"), "{table}");
    let markdown = printed(&compare(&["--format", "markdown"]));
    assert!(markdown.contains("| variant | figure | A | B | change % |"), "{markdown}");

    failed(&compare(&["--fail-over", "5%"]), 1, &["more than 5 % worse", "time of 1 MB x 1"]);
    done(&compare(&["--fail-over", "9000%"]));
    // What is faster is not worse.
    done(&narrows(&["compare", &b, &a, "--runs", runs, "--fail-over", "5%"]));

    let page = dir.path().join("page.html");
    done(&compare(&["--format", "html", "--output", page.to_str().unwrap()]));
    let page = std::fs::read_to_string(page).unwrap();
    let lines = page.matches("path class=\"line\"").count();
    assert!(lines >= 2, "a curve of each run in one chart: {lines}");
    assert!(page.contains("Recovered bytes") && !page.contains("<script"));

    let listed = json(&narrows(&["runs", "--runs", runs, "--json"]));
    let ids: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(ids, [a.as_str(), b.as_str()], "the oldest first");
    assert!(listed["runs"][0]["headline"].as_str().unwrap().contains("1 MB x 1"), "{listed}");
    let text = printed(&narrows(&["runs", "--runs", runs]));
    assert!(text.contains(&b) && text.contains("virtual") && text.contains("complete"), "{text}");

    refused(&["explain", &a, &b, "--runs", runs], &["narrows compare", &a, &b]);
    refused(&["explain", &a, "http://127.0.0.1:1", "--runs", runs], &["narrows explain", &a]);
    refused(&["compare", &a, &a, "--runs", runs], &["the same run"]);
    refused(&["compare", &a, "last-year", "--runs", runs], &["last-year", "give an id"]);

    // A record that has lost a lap is compared by the others, which is said.
    let rows = dir.path().join(&b).join("rows.jsonl");
    let text = std::fs::read_to_string(&rows).unwrap();
    let (kept, _) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&rows, format!("{kept}\n")).unwrap();
    let found = json(&compare(&["--format", "json"]));
    assert_eq!(found["figures"][0]["laps"][1].as_array().unwrap().len(), 3);
    assert!(found["remarks"].to_string().contains("B: rows.jsonl is cut off"), "{found}");
    let table = printed(&compare(&[]));
    assert!(table.contains("B: rows.jsonl is cut off"), "{table}");
}

#[test]
fn the_last_run_is_one_that_started() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let empty = done(&narrows(&["runs", "--runs", runs]));
    assert!(empty.contains("narrows run remote-recovery"), "{empty}");
    let good = run(runs, "1", &[]);
    let last = || narrows(&["show", "last", "--runs", runs]);
    for status in ["failed", "interrupted"] {
        never_started(dir.path(), &good, status);
        let shown = last();
        assert!(printed(&shown).contains(&good), "{}", said(&shown));
        assert!(said(&shown).contains("29991231-235959-x"), "{}", said(&shown));
        let listed = json(&narrows(&["runs", "--runs", runs, "--json"]));
        assert_eq!(listed["runs"][1]["status"], status, "{listed}");
    }
    // What failed once something was measured is not skipped.
    let rows = dir.path().join("29991231-235959-x/rows.jsonl");
    std::fs::copy(dir.path().join(&good).join("rows.jsonl"), &rows).unwrap();
    let shown = last();
    let table = String::from_utf8_lossy(&shown.stdout);
    assert!(table.contains("29991231-235959-x") && !table.contains(&good), "{}", said(&shown));
    never_started(dir.path(), &good, "failed");
    std::fs::remove_dir_all(dir.path().join(&good)).unwrap();
    refused(&["show", "--runs", runs], &["did start", "narrows show 29991231-235959-x"]);
}

/// A run, newer than any other, whose clusters did not start: its record has a manifest and nothing else.
fn never_started(runs: &Path, like: &str, status: &str) {
    let manifest = std::fs::read_to_string(runs.join(like).join("manifest.json")).unwrap();
    let dir = runs.join("29991231-235959-x");
    std::fs::create_dir_all(&dir).unwrap();
    let manifest = manifest.replace(like, "29991231-235959-x");
    let manifest = manifest.replace("\"complete\"", &format!("\"{status}\""));
    std::fs::write(dir.join("manifest.json"), manifest).unwrap();
    for file in ["lines.jsonl", "rows.jsonl"] {
        std::fs::write(dir.join(file), format!("{{\"format\":{}}}\n", record::FORMAT)).unwrap();
    }
}
