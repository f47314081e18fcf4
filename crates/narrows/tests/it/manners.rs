//! Manners: readers that go away, loads that nobody answers, and what a place changes of a plan.

use std::path::Path;
use std::process::{Command, Stdio};

use record::{RunDir, Status};

use crate::common::cluster::Cluster;
use crate::common::running::Running;
use crate::common::{
    command, entries, failed, json, narrows, narrows_in, nothing_is_left, only_run, refused, said,
    signal, spawned,
};

/// A small run in virtual time.
const SMALL: [&str; 8] =
    ["run", "remote-recovery", "--on", "virtual", "--scale", "0.01", "--variant", "adaptive"];

/// `narrows ... | head`, and worse: nobody reads standard error either.
#[test]
fn whoever_stops_reading_is_left_in_peace() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let runs = runs.to_str().unwrap();
    let small = [&SMALL[..], &["--runs", runs]].concat();
    let commands: [&[&str]; 13] = [
        &["--help"],
        &["run", "--help"],
        &["plans"],
        &["plans", "--json"],
        &["plans", "--keys"],
        &["plans", "stability"],
        &["completions", "bash"],
        &["explain", "--rules"],
        &small,
        &["show", "--runs", runs],
        &["show", "--json", "--runs", runs],
        &["show", "--csv", "--runs", runs],
        &["report", "--runs", runs],
    ];
    for args in commands {
        for also_error in [false, true] {
            let mut command = command(args);
            let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
            drop(child.stdout.take());
            if also_error {
                drop(child.stderr.take());
            }
            let output = child.wait_with_output();
            let told = said(&output);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {told}");
            assert!(!told.contains("panicked") && !told.contains("roken pipe"), "{args:?}: {told}");
            assert!(told.is_empty() || args.contains(&"--runs"), "{args:?}: {told}");
        }
    }
}

/// A disk that is full is no reader that went away.
#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_has_failed() {
    for args in [&["--help"][..], &["show", "--help"], &["--version"], &["plans"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).output().unwrap();
        failed(&output, 1, &["No space left on device"]);
    }
}

#[test]
fn what_virtual_time_changes_stands_in_the_record_the_table_and_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let output = narrows_in(dir.path(), &SMALL).output().unwrap();
    let changed = "in place of 125 MB/s";
    failed(&output, 0, &[changed, "in place of 25\u{202f}000 documents", "of virtual time"]);
    let shown = narrows_in(dir.path(), &["show"]).output().unwrap();
    failed(&shown, 0, &["Not as in the plan: The link carries 85.0 MB/s", changed]);
    let found = json(&narrows_in(dir.path(), &["show", "--json"]).output().unwrap());
    assert_eq!(found["changes"].as_array().unwrap().len(), 2, "{found}");
    let run = crate::common::only_run(&dir.path().join("runs"));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Not as in the plan") && page.contains(changed));
}

/// Says stop once it has said a line like this; it ends at once, and says so.
#[track_caller]
fn is_interrupted_after(mut command: Command, is_it: impl Fn(&str) -> bool) {
    let mut running = spawned(&mut command);
    let mut lines = running.said();
    assert!(lines.any(|line| is_it(&line)));
    // As `timeout` does it.
    signal(running.id(), "INT");
    signal(running.id(), "INT");
    let rest: Vec<String> = lines.collect();
    assert_eq!(running.wait().unwrap().code(), Some(1), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("narrows: interrupted")), "{rest:?}");
}

#[test]
fn what_was_measured_in_virtual_time_is_kept_where_somebody_says_stop() {
    let dir = tempfile::tempdir().unwrap();
    let record = |dir: &Path| RunDir::open(&only_run(&dir.join("runs"))).unwrap();
    let long = [&SMALL[..], &["--laps", "1000"]].concat();
    is_interrupted_after(narrows_in(dir.path(), &long), |line| line.starts_with("adaptive "));
    let run = record(dir.path());
    assert_eq!(run.manifest.status, Status::Interrupted);
    assert!((1..1000).contains(&run.rows.len()), "{} rows", run.rows.len());
    nothing_is_left(dir.path());

    // Each variant and lap of a bucket has a world of its own.
    let dir = tempfile::tempdir().unwrap();
    let long = ["run", "dcp-rebalance", "--on", "virtual", "--scale", "0.01", "--laps", "1000"];
    is_interrupted_after(narrows_in(dir.path(), &long), |line| line.starts_with("move "));
    let run = record(dir.path());
    assert_eq!(run.manifest.status, Status::Interrupted);
    assert!(run.rows.len() < 1000, "{} rows", run.rows.len());
    nothing_is_left(dir.path());
}

#[test]
fn many_runs_in_virtual_time_end_where_somebody_says_stop() {
    let dir = tempfile::tempdir().unwrap();
    let published = narrows_in(dir.path(), &["published", "remote-recovery"]);
    // The first of those that find out whether seeds matter; those of the published size come after them.
    is_interrupted_after(published, |line| line.contains("scale 0.02"));
    let is_scratch = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(".seeds");
    assert!(!entries(&dir.path().join("runs")).iter().any(is_scratch));
    nothing_is_left(dir.path());

    let mut bench = command(&["diagnose", "--bench", "--on", "virtual", "--cases", "500"]);
    bench.env("TMPDIR", dir.path().join("tmp"));
    is_interrupted_after(bench, |line| line.starts_with("1 of "));
    nothing_is_left(dir.path());
}

#[test]
fn a_load_of_nothing_but_errors_has_failed() {
    let cluster = Cluster::start(1);
    let url = cluster.url();
    let none = narrows(&["load", url, "--index", "nothing-here", "--iterations", "10"]);
    failed(&none, 1, &["nothing was answered well", "404", "--index NAME"]);
    // What is not sent in time hides no answer, although there is more of it.
    let rate = ["--rate", "200000", "--clients", "1", "--duration", "3s"];
    let most_unsent = [&["load", url, "--index", "nothing-here"][..], &rate].concat();
    failed(&narrows(&most_unsent), 1, &["most of it \"404", "--index NAME"]);
    let good = narrows(&["load", url, "--operation", "/_cluster/health", "--iterations", "10"]);
    failed(&good, 0, &["health"]);
    // A script sees what failed besides, where it says how much of that it lets pass.
    let rate = ["--rate", "200000", "--clients", "1", "--duration", "500ms", "--fail-over", "1%"];
    let unsent = [&["load", url, "--operation", "/_cluster/health"][..], &rate].concat();
    failed(&narrows(&unsent), 1, &["more than 1 %", "were not sent in time", "--clients"]);
}

/// A rate that cannot be reached does not make a load longer: what was not sent is counted.
#[test]
fn a_load_keeps_its_time() {
    let cluster = Cluster::start(1);
    let rate = ["--rate", "200000", "--clients", "1", "--duration", "3s", "--json"];
    let args = [&["load", cluster.url(), "--operation", "/_cluster/health"][..], &rate].concat();
    let found = json(&narrows(&args));
    let lap = &found["laps"][0];
    assert!(lap["seconds"].as_f64().unwrap() <= 3.0 + 1e-6, "{found}");
    let unsent = lap["errors"]["not sent in time"].as_u64().unwrap();
    assert!(unsent > 0 && unsent < lap["requests"].as_u64().unwrap(), "{found}");
    assert!((lap["requests"].as_f64().unwrap() - 600_000.0).abs() < 2.0, "{found}");
    assert!(lap["samples"].is_null(), "single requests are for stores: {found}");
}

/// What helps is said, and not what sounds alike.
#[test]
fn hints_are_lines_that_help() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let tried: [(&[&str], &str); 6] = [
        (&["start"], "narrows cluster --nodes 3"),
        (&["cluster", "--port", "none"], "--port 9200"),
        (&["link", "--listen", &taken, "--to", "127.0.0.1:1"], "--listen 127.0.0.1:0"),
        (&["restore"], "narrows restore DIR"),
        (&["watch", "9200"], "write http://localhost:9200"),
        (&["explain", "9200"], "a cluster is written http://localhost:9200"),
    ];
    for (args, line) in tried {
        failed(&command(args).current_dir(dir.path()).output().unwrap(), 2, &[line]);
    }
}

#[test]
fn who_names_no_run_that_is_there_is_told_how_to_list_them() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("runs/20261121-043000-remote-recovery");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("manifest.json"), "{}").unwrap();
    let output = narrows_in(dir.path(), &["show", "nope"]).output().unwrap();
    failed(&output, 2, &["`narrows runs` lists them"]);
}

/// Only `explain` takes a cluster in place of a run, and a file is none.
#[test]
fn a_cluster_is_proposed_where_one_can_be_given() {
    let dir = tempfile::tempdir().unwrap();
    let tried: [(&[&str], bool); 5] = [
        (&["explain", "nope"], true),
        (&["explain", "nope.json"], false),
        (&["show", "nope"], false),
        (&["report", "nope"], false),
        (&["compare", "nope", "nope2"], false),
    ];
    for (args, is_proposed) in tried {
        let output = narrows_in(dir.path(), args).output().unwrap();
        failed(&output, 2, &["no run is called \"nope"]);
        assert_eq!(said(&output).contains("http://nope"), is_proposed, "{args:?}");
    }
}

#[test]
fn no_line_is_proposed_without_the_option_that_is_missing() {
    let output = narrows(&["steer", "http://127.0.0.1:1", "--keep"]);
    failed(&output, 2, &["--apply"]);
    assert!(!said(&output).contains("tip:"), "{}", said(&output));
    refused(&["link"], &["tip: narrows link --listen 127.0.0.1:9901"]);
}

#[test]
fn a_place_that_holds_no_run_is_called_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (dir, file) = (dir.path().to_str().unwrap(), file.to_str().unwrap());
    refused(&["show", dir], &["is a directory, but holds no run"]);
    refused(&["explain", dir], &["is a directory, but holds no run"]);
    refused(&["runs", "--runs", file], &["is a file; write --runs DIR"]);
}

#[test]
fn a_folder_that_is_no_track_is_called_so_and_not_an_unknown_plan() {
    let dir = tempfile::tempdir().unwrap();
    refused(&["run", dir.path().to_str().unwrap()], &["is a folder without track.json"]);
}

#[test]
fn a_plan_whose_requests_all_failed_has_failed_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let load = "[[operation]]\nname = \"nobody\"\npath = \"/nothing/_count\"\n[load]\noperations = [\"nobody\"]\n\
                clients = 1\nmeasured = 5\n[[variant]]\nname = \"one\"\n";
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, [testbed::plans::LOAD, load].concat()).unwrap();
    let args = ["run", path.to_str().unwrap(), "--on", "virtual"];
    let output = narrows_in(dir.path(), &args).output().unwrap();
    let reason = "nobody (404 index_not_found_exception: no such index [nothing]). The record";
    failed(&output, 1, &["these operations", reason]);
}
