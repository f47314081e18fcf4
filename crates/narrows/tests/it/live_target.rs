//! `run --on URL`: a cluster that is already there is left as it was, whatever the end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::{self, BINARY, failed, said, signal};

const THROTTLE: &str = "indices.recovery.max_bytes_per_sec";
const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";

fn run(cluster: &Cluster, runs: &Path, more: &[&str]) -> Command {
    run_plan("replica-over-link", cluster, runs, more)
}

fn run_plan(plan: &str, cluster: &Cluster, runs: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["run", plan, "--on", cluster.url(), "--runs"]).arg(runs).args(more);
    command.env_remove("NARROWS_USER").env_remove("NARROWS_PASSWORD");
    command
}

#[test]
fn nothing_is_written_unless_that_is_allowed() {
    let (cluster, runs) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let output = run(&cluster, runs.path(), &[]).output().unwrap();
    failed(&output, 2, &["--allow-changes"]);
    assert!(std::fs::read_dir(runs.path()).unwrap().next().is_none(), "not even a run directory");
    // A cluster that is too small is found before anything is written, too.
    let output = run(&cluster, runs.path(), &["--allow-changes"]).output().unwrap();
    failed(&output, 2, &["has 1 data nodes"]);
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
}

#[test]
fn a_run_leaves_settings_and_indices_as_they_were() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let mine = json!({ THROTTLE: "77mb" });
    cluster.set(&mine);
    cluster.ask("PUT", "/logs", r#"{"settings":{"number_of_replicas":0}}"#);
    let more = ["--allow-changes", "--scale", "0.01", "--json", "--variant", "512 KB x 5"];
    let output = run(&cluster, runs.path(), &more).output().unwrap();
    let found = common::json(&output);
    assert_eq!(found["rows"][0]["verified"], true, "{found}");
    assert_eq!(found["rows"][0]["link_share"], Value::Null, "there is no link of ours");
    assert_eq!((cluster.settings(), cluster.indices()), (mine, vec!["logs".to_owned()]));
}

#[test]
fn after_kill_9_restore_puts_everything_back_but_what_others_changed() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    cluster.set(&json!({ THROTTLE: "77mb" }));
    let more = ["--allow-changes", "--scale", "0.01", "--laps", "100"];
    let mut killed = run(&cluster, runs.path(), &more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let give_up = Instant::now() + Duration::from_secs(120);
    while cluster.settings().get(CHUNKS).is_none() {
        assert!(Instant::now() < give_up, "no variant began");
        std::thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    // What it asked for last may still be carried out.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(cluster.indices().len(), 1);
    // Someone raised it in the meantime.
    cluster.set(&json!({ CHUNKS: "8" }));
    let restore = || {
        let mut command = Command::new(BINARY);
        let output = command.args(["restore", "last", "--runs"]).arg(runs.path()).output().unwrap();
        (output.status.code(), said(&output))
    };
    let (code, said) = restore();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(CHUNKS) && said.contains("\"8\" now"), "{said}");
    assert_eq!(cluster.settings(), json!({ THROTTLE: "77mb", CHUNKS: "8" }));
    assert_eq!(cluster.indices(), Vec::<String>::new());
    let (code, said) = restore();
    assert!(code == Some(0) && said.contains("nothing to put back"), "{said}");
}

#[test]
fn ctrl_c_puts_everything_back() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let more = ["--allow-changes", "--scale", "0.01", "--laps", "100"];
    let mut running = run(&cluster, runs.path(), &more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("recover default")));
    signal(running.id(), "INT");
    let rest: Vec<String> = lines.collect();
    assert_eq!(running.wait().unwrap().code(), Some(1), "{rest:?}");
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
    let run = common::only_run(runs.path());
    assert!(!run.join("changes.jsonl").exists());
}

/// `remote-recovery` between two clusters that are there, through `_ccr`.
#[test]
fn one_cluster_follows_another_and_both_are_left_as_they_were() {
    let (leader, follower) = (Cluster::start(2), Cluster::start(1));
    let runs = tempfile::tempdir().unwrap();
    let mine = json!({ "ccr.indices.recovery.max_bytes_per_sec": "33mb" });
    follower.set(&mine);
    let more = ["--allow-changes", "--scale", "0.004", "--json", "--leader", leader.url()];
    let variants = ["--variant", "1 MB x 5", "--variant", "5 MB x 1"];
    let more = [&more[..], &variants[..]].concat();
    let output = run_plan("remote-recovery", &follower, runs.path(), &more).output().unwrap();
    let found = common::json(&output);
    for row in found["rows"].as_array().unwrap() {
        assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &10_000.into()), "{row}");
    }
    assert_eq!(found["rows"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!((follower.settings(), follower.indices()), (mine, vec![]));
    assert_eq!((leader.settings(), leader.indices()), (json!({}), vec![]));
    let run = common::only_run(runs.path());
    for journal in ["changes.jsonl", "changes-leader.jsonl"] {
        assert!(!run.join(journal).exists(), "{journal}");
    }
}

#[test]
fn two_clusters_that_are_one_or_read_each_other_already_are_left_alone() {
    let (leader, follower) = (Cluster::start(1), Cluster::start(1));
    let runs = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], words: &str| {
        let more = [&["--allow-changes", "--scale", "0.004"], more].concat();
        let output = run_plan("remote-recovery", &follower, runs.path(), &more).output().unwrap();
        failed(&output, 2, &[words]);
    };
    refused(&[], "--leader URL");
    refused(&["--leader", follower.url()], "the same cluster");
    // Someone reads from a cluster of that name.
    let others = json!({ "cluster.remote.leader.seeds": "127.0.0.1:1" });
    follower.set(&others);
    refused(&["--leader", leader.url()], "cluster.remote.leader.seeds is set");
    let others = json!({ "cluster.remote.leader.seeds": ["127.0.0.1:1"] });
    assert_eq!((follower.settings(), follower.indices()), (others, vec![]));
    assert_eq!((leader.settings(), leader.indices()), (json!({}), vec![]));
}
