//! OpenSearch as a target: two JVMs at a time are enough for any machine.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testbed::CannotRun;

use crate::common::running::Running;
use crate::common::{
    all_end, children_of, done, entries, failed, json, kill_all, look_until, narrows_in,
    nothing_is_left, only_run, path_with, plans, said, signal, spawned,
};

/// Documents that are indexed while something else is measured.
const IN_BACKGROUND: &str = "{ index_in_background = { documents_per_s = 500 } }";

/// What came of it, unless jars could not be fetched.
pub fn fetched(output: Output) -> Result<Output, CannotRun> {
    match said(&output) {
        text if text.contains("mvn could not") => Err(CannotRun(text)),
        _ => Ok(output),
    }
}

/// Why nodes of OpenSearch did not start: its jars could not be fetched.
pub fn not_fetched(error: clusters::Error) -> CannotRun {
    let error = error.to_string();
    assert!(error.contains("mvn could not"), "{error}");
    CannotRun(error)
}

fn run(dir: &Path, plan: &str, more: &[&str]) -> Result<Output, CannotRun> {
    let on = ["run", plan, "--on", "opensearch", "--json"];
    fetched(narrows_in(dir, &[&on[..], more].concat()).output().unwrap())
}

pub fn a_replica_crosses_the_link_and_both_copies_hold_the_same() -> Result<(), CannotRun> {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--scale", "0.1", "--variant", "default", "--variant", "4 MB x 5"];
    let found = json(&run(dir.path(), "replica-over-link", &more)?);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{found}");
    for row in rows {
        assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &100_000.into()), "{row}");
        // The target does not account for its time; narrows does, from outside.
        let limits = row["limits"].as_array().unwrap();
        let share: f64 = limits.iter().map(|limit| limit["share"].as_f64().unwrap()).sum();
        assert!((0.5..1.001).contains(&share), "{row}");
        assert_eq!(row["held_by"], limits[0]["limit"], "{row}");
        assert!(row["verdict"].as_str().unwrap().contains("seen from outside"), "{row}");
        assert!(row["bytes"].as_u64().unwrap() > 1_000_000, "{row}");
    }
    let record = only_run(&dir.path().join("runs"));
    let lines = std::fs::read_to_string(record.join("lines.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The files did pass the emulator, towards the far node.
    let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    let carried = of("link").filter_map(|line| line["sample"]["to_follower_bytes"].as_u64()).max();
    let files: u64 = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert!(carried.unwrap() > files * 9 / 10, "{carried:?} of {files} bytes passed the link");
    // Both nodes were sampled, each under its site.
    for (site, node) in [("leader", "leader-0"), ("follower", "follower-0")] {
        let seen =
            |line: &Value| line["sample"]["cluster"] == site && line["sample"]["node"] == node;
        assert!(of("node").any(seen), "{node} of {site} was not sampled");
    }
    let digests: Vec<&Value> = of("digest").collect();
    assert_eq!(digests.len(), 3);
    assert_eq!(digests[0]["shards"][0]["content"], digests[1]["shards"][0]["content"]);
    nothing_is_left(dir.path());
    Ok(())
}

/// Of either flavour, old and new: started, watched, and a replica that crosses the link while documents are indexed.
fn is_started_and_understood(release: &str, variant: &str) -> Result<(), CannotRun> {
    let plan = include_str!("../../../../plans/replica-over-link.toml");
    let plan = plan.replace("\"add_replica\"", &format!("{IN_BACKGROUND}, \"add_replica\""));
    let more = ["--scale", "0.02", "--opensearch-version", release, "--variant", variant];
    let (dir, output) = plans::run(&plan, "opensearch", &more);
    let found = json(&fetched(output)?);
    let row = &found["rows"][0];
    assert_eq!(row["verified"], true, "{row}");
    assert!(row["documents"].as_u64().unwrap() > 20_000, "what was indexed beside, too: {row}");
    nothing_is_left(dir.path());
    Ok(())
}

pub fn opensearch_1_3_13_is_started_and_understood() -> Result<(), CannotRun> {
    is_started_and_understood("1.3.13", "512 KB x 5")
}

pub fn opensearch_3_0_0_is_started_and_understood() -> Result<(), CannotRun> {
    is_started_and_understood("3.0.0", "4 MB x 5")
}

pub fn elasticsearch_7_10_2_is_started_and_understood() -> Result<(), CannotRun> {
    is_started_and_understood("elasticsearch-7.10.2", "512 KB x 5")
}

pub fn a_setting_that_the_release_does_not_have_is_said() -> Result<(), CannotRun> {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--opensearch-version", "1.3.13", "--scale", "0.02", "--variant", "4 MB x 5"];
    let output = run(dir.path(), "replica-over-link", &more)?;
    failed(&output, 2, &["no indices.recovery.chunk_size"]);
    nothing_is_left(dir.path());
    Ok(())
}

/// A plan that recovers from remote, on clusters that have no cross-cluster replication.
pub fn a_snapshot_is_restored_through_the_link() -> Result<(), CannotRun> {
    // Of its three nodes a cluster, one each: there are few cores.
    let plan = include_str!("../../../../plans/remote-recovery.toml");
    let plan = plan.replace("nodes = 3", "nodes = 1");
    let plan = plan.replace("\"recover\"", &format!("{IN_BACKGROUND}, \"recover\""));
    let limit = "indices.recovery.max_bytes_per_sec";
    let change = format!("change = [{{ at = \"1ms\", settings = {{ \"{limit}\" = \"100mb\" }} }}]");
    let plan = plan.replacen("laps = 1", &format!("laps = 1\n{change}"), 1);
    let (dir, output) =
        plans::run(&plan, "opensearch", &["--scale", "0.02", "--variant", "default"]);
    let output = fetched(output)?;
    let (found, said) = (json(&output), said(&output));
    let row = &found["rows"][0];
    assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &50_000.into()), "{row}");
    // What held it is told from outside: none here is `unknown`, which would be null.
    assert!(row["held_by"].is_string(), "{row}");
    // What was indexed meanwhile is not in the snapshot.
    assert!(said.contains("documents beside"), "{said}");
    // What the plan changes meanwhile is changed.
    assert!(said.contains(&format!("{limit} is 100mb from now on")), "{said}");
    // It says which way it went: at once, and on the page.
    assert!(said.contains("restores a snapshot in place of a recovery from remote"), "{said}");
    let record = only_run(&dir.path().join("runs"));
    let page = std::fs::read_to_string(record.join("report.html")).unwrap();
    assert!(page.contains("these nodes have no cross-cluster replication"));
    nothing_is_left(dir.path());
    Ok(())
}

/// A run that indexes, and its nodes.
fn indexing(dir: &Path) -> (Running, Vec<u32>) {
    let arguments = ["run", "replica-over-link", "--on", "opensearch", "--scale", "0.1"];
    let mut run = spawned(&mut narrows_in(dir, &arguments));
    let indexes = run.said().any(|line| line.starts_with("index"));
    assert!(indexes, "it ended before it indexed");
    let nodes = children_of(run.id());
    assert_eq!(nodes.len(), 2);
    (run, nodes)
}

pub fn no_jvm_and_no_directory_outlives_a_killed_runner() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, nodes) = indexing(dir.path());
    signal(run.id(), "KILL");
    run.wait().unwrap();
    all_end(&nodes);
    nothing_is_left(dir.path());
    // With all of them killed at once nobody is left to do it, until somebody starts the next.
    let (mut run, nodes) = indexing(dir.path());
    kill_all(run.id(), &nodes);
    run.wait().unwrap();
    assert_eq!(entries(&dir.path().join("tmp")).len(), 1);
    let next = ["run", "replica-over-link", "--scale", "0.01", "--variant", "default"];
    done(&narrows_in(dir.path(), &next).output().unwrap());
    nothing_is_left(dir.path());
}

/// A part of `narrows diagnose`; all of it is in docs/diagnosis.md.
pub fn injected_causes_are_found_by_looking_and_by_probing() -> Result<(), CannotRun> {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["diagnose", "--on", "opensearch", "--json"];
    let cases = ["--case", "throttle", "--case", "block"];
    let mut command = narrows_in(dir.path(), &[&arguments[..], &cases[..]].concat());
    // A wrong one is exit code 1; jars that cannot be fetched are no verdict.
    let is_told =
        |output: &Output| output.status.success() || said(output).contains("mvn could not");
    let found = json(&fetched(look_until(|| command.output().unwrap(), is_told))?);
    assert_eq!(found["wrong"], 0, "{found:#}");
    let rows = found["rows"].as_array().unwrap();
    assert!(rows[0]["cluster"].as_str().unwrap().contains("opensearch 2.19.1"), "{found:#}");
    let brake = &rows[0]["probes"][0];
    // On a machine that is busy with other things it may tell nothing; it must not tell the opposite.
    assert_eq!(brake["kind"], "brake", "{brake:#}");
    assert_ne!(brake["reading"], "stays", "{brake:#}");
    assert_eq!(rows[1]["passive"]["class"], "allocation block");
    nothing_is_left(dir.path());
    Ok(())
}

pub fn that_maven_is_missing_is_said_with_the_command_that_installs_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = narrows_in(dir.path(), &["run", "replica-over-link", "--on", "opensearch"]);
    command.env("PATH", path_with(dir.path(), &["java"]));
    command.env("NARROWS_CACHE", dir.path().join("cache"));
    failed(&command.output().unwrap(), 2, &["apt-get install maven"]);
    nothing_is_left(dir.path());
}
