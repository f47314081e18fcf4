//! `explain --probe` on a cluster of real processes: what it changes is put back, whatever the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::running::Running;
use crate::common::steered::journals;
use crate::common::{self, BINARY, done, entries, failed, look_until, noise, said, signal, until};

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
/// What somebody set before we came: a transient value hides a persistent one.
const FOUND: &str = "1mb";

fn persistent() -> Value {
    // Small, so that the rate can be told after seconds.
    let chunks = "indices.recovery.max_concurrent_file_chunks";
    json!({ LIMIT: "50mb", "indices.recovery.chunk_size": "64kb", chunks: "5" })
}

/// A cluster that recovers 80 MB at 1 MB/s.
fn recovering() -> Cluster {
    let cluster = Cluster::start(2);
    cluster.set(&persistent());
    transient(&cluster, FOUND);
    noise::recover(&cluster, 8000);
    cluster
}

fn transient(cluster: &Cluster, limit: &str) {
    let body = json!({ "transient": { LIMIT: limit } });
    cluster.ask("PUT", "/_cluster/settings", &body.to_string());
}

fn explain(cluster: &Cluster, runs: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["explain", cluster.url(), "--for", "3s", "--interval", "250ms", "--probe"]);
    command.arg("--runs").arg(runs).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Probes; returns once the setting is changed. Where the machine stood still while it looked, it may have seen nothing
/// to probe, and looks again.
fn probing(cluster: &Cluster, runs: &Path) -> Running {
    let mut probing = Running::start(&mut explain(cluster, runs));
    until("the setting is changed", || {
        if cluster.set_at("transient")[LIMIT] != FOUND {
            return true;
        }
        if let Some(ended) = probing.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            probing = Running::start(&mut explain(cluster, runs));
        }
        false
    });
    probing
}

#[track_caller]
fn everything_is_as_it_was(cluster: &Cluster, limit: &str, runs: &Path) {
    assert_eq!(cluster.set_at("transient"), json!({ LIMIT: limit }));
    assert_eq!(cluster.settings(), persistent());
    assert_eq!(journals(runs), Vec::<PathBuf>::new());
}

#[test]
fn a_limit_is_confirmed() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let runs = dir.path();
    let probed = || common::json(&explain(cluster, runs).arg("--json").output().unwrap());
    let found = look_until(probed, |found| {
        found["findings"][0]["class"] == "rate_limit" && !found["probes"][0].is_null()
    });
    assert_eq!(found["findings"][0]["class"], "rate_limit", "{found:#}");
    let probe = &found["probes"][0];
    assert_eq!(probe["kind"], "brake", "{probe:#}");
    // On a machine that is busy with other things it may tell nothing; it must not tell the opposite.
    assert_ne!(probe["reading"], "stays", "{probe:#}");
    assert_eq!(found["probes"].as_array().unwrap().len(), 1);
    everything_is_as_it_was(cluster, FOUND, runs);
    // The record says what was tried, and opens like any other.
    let output =
        Command::new(BINARY).args(["explain", "last", "--runs"]).arg(runs).output().unwrap();
    assert!(said(&output).contains("rate limit"), "{}", said(&output));
}

#[test]
fn after_kill_9_restore_puts_it_back() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let runs = dir.path();
    let mut probing = probing(cluster, runs);
    probing.kill();
    assert_ne!(cluster.set_at("transient"), json!({ LIMIT: FOUND }));
    assert_eq!(journals(runs).len(), 1);
    done(&common::restore("last", runs));
    everything_is_as_it_was(cluster, FOUND, runs);
}

#[test]
fn ctrl_c_puts_it_back() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let runs = dir.path();
    let probing = probing(cluster, runs);
    signal(probing.id(), "INT");
    failed(&probing.wait_with_output(), 1, &["as it was"]);
    everything_is_as_it_was(cluster, FOUND, runs);
    let listed = Command::new(BINARY).args(["runs", "--runs"]).arg(runs).output().unwrap();
    assert!(done(&listed).contains("interrupted"), "{}", said(&listed));
}

#[test]
fn what_someone_else_sets_meanwhile_stays() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let runs = dir.path();
    let probing = probing(cluster, runs);
    transient(cluster, "3mb");
    let output = probing.wait_with_output();
    // What was found stands on standard output all the same.
    assert!(String::from_utf8_lossy(&output.stdout).contains("given up"), "{}", said(&output));
    failed(&output, 1, &["a probe was given up: ", "\"3mb\" now", "left so"]);
    everything_is_as_it_was(cluster, "3mb", runs);
}

#[test]
fn what_looking_found_is_said_where_the_journal_cannot_be_written() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let probed = || explain(cluster, &file.join("runs")).arg("--json").output().unwrap();
    let output = look_until(probed, |output| !output.status.success());
    failed(&output, 1, &["create run directory"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["findings"][0]["class"].is_string(), "{found:#}");
    everything_is_as_it_was(cluster, FOUND, dir.path());
}

#[test]
fn a_run_and_an_idle_cluster_are_not_probed() {
    let (cluster, runs) = (Cluster::start(1), tempfile::tempdir().unwrap());
    failed(&explain(&cluster, runs.path()).output().unwrap(), 0, &["nothing to probe"]);
    assert_eq!((cluster.settings(), cluster.set_at("transient")), (json!({}), json!({})));
    assert!(entries(runs.path()).is_empty(), "not even a run directory");
    let mut command = Command::new(BINARY);
    let output = command.args(["explain", "last", "--probe", "--runs"]).arg(runs.path()).output();
    failed(&output.unwrap(), 2, &["the URL of a cluster"]);
}
