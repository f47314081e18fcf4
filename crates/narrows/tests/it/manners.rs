//! Manners: readers that go away, loads that nobody answers, and what a place changes of a plan.

use std::process::Stdio;

use crate::common::cluster::Cluster;
use crate::common::{command, failed, json, narrows, narrows_in, said};

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
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());
            if also_error {
                drop(child.stderr.take());
            }
            let output = child.wait_with_output().unwrap();
            let told = said(&output);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {told}");
            assert!(!told.contains("panicked") && !told.contains("roken pipe"), "{args:?}: {told}");
        }
    }
}

#[test]
fn what_virtual_time_changes_stands_in_the_record_the_table_and_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let output = narrows_in(dir.path(), &SMALL).output().unwrap();
    let changed = "in place of 125 MB/s";
    failed(&output, 0, &[changed, "in place of 25000 documents", "of virtual time"]);
    let shown = narrows_in(dir.path(), &["show"]).output().unwrap();
    failed(&shown, 0, &["Not as in the plan: The link carries 85.0 MB/s", changed]);
    let found = json(&narrows_in(dir.path(), &["show", "--json"]).output().unwrap());
    assert_eq!(found["changes"].as_array().unwrap().len(), 2, "{found}");
    let run = crate::common::only_run(&dir.path().join("runs"));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Not as in the plan") && page.contains(changed));
}

#[test]
fn a_load_of_nothing_but_errors_has_failed() {
    let cluster = Cluster::start(1);
    let url = cluster.url();
    let none = narrows(&["load", url, "--index", "nothing-here", "--iterations", "10"]);
    failed(&none, 1, &["nothing was answered well", "404", "--index NAME"]);
    // What is not sent in time hides no answer, although there is more of it.
    let rate = ["--rate", "200000", "--clients", "1", "--duration", "500ms"];
    let most_unsent = [&["load", url, "--index", "nothing-here"][..], &rate].concat();
    failed(&narrows(&most_unsent), 1, &["most of it \"404", "--index NAME"]);
    let good = narrows(&["load", url, "--operation", "/_cluster/health", "--iterations", "10"]);
    failed(&good, 0, &["health"]);
}

/// A rate that cannot be reached does not make a load longer: what was not sent is counted.
#[test]
fn a_load_keeps_its_time() {
    let cluster = Cluster::start(1);
    let rate = ["--rate", "200000", "--clients", "1", "--duration", "500ms", "--json"];
    let args = [&["load", cluster.url(), "--operation", "/_cluster/health"][..], &rate].concat();
    let found = json(&narrows(&args));
    let lap = &found["laps"][0];
    assert!(lap["seconds"].as_f64().unwrap() <= 0.5 + 1e-6, "{found}");
    let unsent = lap["errors"]["not sent in time"].as_u64().unwrap();
    assert!(unsent > 0 && unsent < lap["requests"].as_u64().unwrap(), "{found}");
    assert!((lap["requests"].as_f64().unwrap() - 100_000.0).abs() < 2.0, "{found}");
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
