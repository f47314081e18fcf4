//! `calibrate --on URL`: what copies cost in a cluster that is there, which is left as it was, whatever the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::running::Running;
use crate::common::steered::journals;
use crate::common::{self, BINARY, done, entries, failed, look_until, narrows, signal, until};

const THROTTLE: &str = "indices.recovery.max_bytes_per_sec";

fn calibrate(cluster: &Cluster, runs: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["calibrate", "--on", cluster.url(), "--runs"]).arg(runs).args(more);
    command.env_remove("NARROWS_USER").env_remove("NARROWS_PASSWORD");
    command
}

/// Two nodes, an index of somebody's, and a rate limit.
fn somebodys(limit: &str) -> (Cluster, tempfile::TempDir) {
    let cluster = Cluster::start(2);
    cluster.set(&json!({ THROTTLE: limit }));
    cluster.ask("PUT", "/logs", r#"{"settings":{"number_of_replicas":1}}"#);
    cluster.until_healthy("wait_for_status=green");
    (cluster, tempfile::tempdir().unwrap())
}

#[track_caller]
fn everything_is_as_it_was(cluster: &Cluster, limit: &str, runs: &Path) {
    assert_eq!(cluster.settings(), json!({ THROTTLE: limit }));
    assert_eq!(cluster.set_at("transient"), json!({}));
    assert_eq!(cluster.indices(), ["logs"]);
    assert_eq!(journals(runs), Vec::<PathBuf>::new());
}

fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn what_would_be_done_is_said_and_nothing_is_done() {
    let (cluster, runs) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let file = runs.path().join("there.toml");
    let output = calibrate(&cluster, runs.path(), &["--write", file.to_str().unwrap()]).output();
    let words = ["nothing was asked", "index.routing.allocation.include._name", "200 MB"];
    let more = ["index.shard.check_on_startup", "--allow-changes", "deleted"];
    failed(&output.unwrap(), 2, &[&words[..], &more].concat());
    // With one node there is nowhere to copy to.
    let output = calibrate(&cluster, runs.path(), &["--allow-changes"]).output().unwrap();
    failed(&output, 2, &["has 1 data nodes"]);
    assert!(entries(runs.path()).is_empty(), "no run, and no file");
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
    common::refused(&["calibrate", "--on", cluster.url(), "--scale", "2"], &["--scale 0.1"]);
}

#[test]
fn copies_are_measured_and_a_twin_goes_by_what_they_cost() {
    let (cluster, dir) = somebodys("-1");
    let (runs, file) = (dir.path().join("runs"), dir.path().join("there.toml"));
    let file = file.to_str().unwrap();
    let more = ["--allow-changes", "--laps", "1", "--scale", "0.05", "--json", "--write", file];
    let measure = || {
        let _ = std::fs::remove_file(file);
        let found = common::json(&calibrate(&cluster, &runs, &more).output().unwrap());
        everything_is_as_it_was(&cluster, "-1", &runs);
        found
    };
    let wanted = ["cores.receive_bytes_per_s", "recovery.open_copy", "recovery.new_copy"];
    // Where the machine stood still during a copy, what a copy costs cannot be told of that lap.
    let found = look_until(measure, |found| {
        wanted.iter().all(|name| names(&found["parameters"]).contains(name))
    });
    let (measured, not_measured) = (names(&found["parameters"]), names(&found["not_measured"]));
    for name in wanted {
        assert!(measured.contains(&name), "{name}: {found:#}");
    }
    // Nodes of this engine do not tell how long a check took.
    let untold = ["cores.message", "cores.send_bytes_per_s", "cores.hash_bytes_per_s"];
    for name in [&untold[..], &["cores.lz4_bytes_per_s", "disk.sync"]].concat() {
        assert!(not_measured.contains(&name), "{name}: {found:#}");
    }
    for name in ["cores.index_document", "cores.index_bytes_per_s"] {
        assert!(measured.contains(&name) != not_measured.contains(&name), "{name}: {found:#}");
    }
    assert!(found["target"].as_str().unwrap().starts_with("narrows "), "{found:#}");
    let text = std::fs::read_to_string(file).unwrap();
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["virtual"].as_table().unwrap().len(), measured.len());
    assert!(text.contains("# \"cores.message\": it needs chunks of another size"), "{text}");
    for name in ["127.0.0.1", "narrows-0", "narrows-1"] {
        assert!(!text.contains(name) && !found.to_string().contains(name), "{name}: {text}");
    }
    let twin = dir.path().join("twin.toml");
    let twin = twin.to_str().unwrap();
    let args = ["what-if", cluster.url(), "--calibration", file, "--save", twin, "--runs"];
    done(&narrows(&[&args[..], &[runs.to_str().unwrap()]].concat()));
    let plan: toml::Table = std::fs::read_to_string(twin).unwrap().parse().unwrap();
    let row = |table: &toml::Table| table["virtual"]["recovery.open_copy"].clone();
    assert_eq!(row(&plan), row(&table));
}

/// What a byte costs cannot be told where a setting of the cluster holds the copy, and that is not changed.
#[test]
fn what_a_setting_of_the_cluster_holds_is_not_measured() {
    let (cluster, runs) = somebodys("1mb");
    let more = ["--allow-changes", "--laps", "1", "--scale", "0.015", "--json"];
    let found = common::json(&calibrate(&cluster, runs.path(), &more).output().unwrap());
    everything_is_as_it_was(&cluster, "1mb", runs.path());
    let rows = found["not_measured"].as_array().unwrap();
    let receive = rows.iter().find(|row| row["name"] == "cores.receive_bytes_per_s");
    let receive = receive.unwrap_or_else(|| panic!("{found:#}"));
    assert!(receive["why"].as_str().unwrap().contains(THROTTLE), "{receive}");
    assert_eq!(receive["is"], "assumed");
    assert!(names(&found["parameters"]).contains(&"recovery.open_copy"), "{found:#}");
}

/// Measures for as long as it lives; returns once its index is there.
fn begun(cluster: &Cluster, runs: &Path) -> Running {
    let more = ["--allow-changes", "--laps", "100", "--scale", "0.01"];
    let mut command = calibrate(cluster, runs, &more);
    let running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until("an index is made", || cluster.indices().len() >= 2);
    running
}

#[test]
fn ctrl_c_deletes_the_index() {
    let (cluster, runs) = somebodys("77mb");
    let mut running = begun(&cluster, runs.path());
    signal(running.id(), "INT");
    assert_eq!(running.wait().unwrap().code(), Some(1));
    everything_is_as_it_was(&cluster, "77mb", runs.path());
}

#[test]
fn after_kill_9_restore_deletes_the_index() {
    let (cluster, runs) = somebodys("77mb");
    let mut running = begun(&cluster, runs.path());
    running.kill();
    assert_eq!(journals(runs.path()).len(), 1);
    cluster.until_quiet();
    done(&common::restore("last", runs.path()));
    everything_is_as_it_was(&cluster, "77mb", runs.path());
}
