//! OpenSearch as a target. Where there is no Java or no mvn these tests say so and test nothing, unless
//! NARROWS_REQUIRE_OPENSEARCH is set.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_narrows");
/// Documents that are indexed while something else is measured.
const BESIDE: &str = "{ index_in_background = { documents_per_s = 500 } }";
/// Two JVMs at a time are enough for any machine.
static ONE_PAIR: Mutex<()> = Mutex::new(());

fn narrows(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--runs").arg(temporary.join("runs"));
    let own = temporary.join("tmp");
    std::fs::create_dir_all(&own).unwrap();
    command.env("TMPDIR", own);
    command
}

#[track_caller]
fn nothing_is_left(temporary: &Path) {
    let left: Vec<_> = std::fs::read_dir(temporary.join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn a_replica_crosses_the_link_and_both_copies_hold_the_same() {
    if !common::has_opensearch() {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let plan = ["run", "replica-over-link", "--on", "opensearch", "--scale", "0.1", "--json"];
    let variants = ["--variant", "default", "--variant", "4 MB x 5"];
    let output = narrows(dir.path(), &[&plan[..], &variants[..]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{found}");
    for row in rows {
        assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &100_000.into()), "{row}");
        // Nothing is charged to a limit by a target that does not account for its time.
        assert_eq!(row["limits"], Value::Array(Vec::new()), "{row}");
        assert!(row["bytes"].as_u64().unwrap() > 1_000_000, "{row}");
    }
    let lines = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let lines = std::fs::read_to_string(lines.join("lines.jsonl")).unwrap();
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
}

/// Releases of both flavours, old and new: started, watched, and a replica that crosses the link while documents are indexed.
#[test]
fn other_releases_are_started_and_understood() {
    if !common::is_here(&["java", "mvn"]) {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    for (release, variant) in
        [("1.3.13", "512 KB x 5"), ("3.0.0", "4 MB x 5"), ("elasticsearch-7.10.2", "512 KB x 5")]
    {
        let dir = tempfile::tempdir().unwrap();
        let plan = include_str!("../../../plans/replica-over-link.toml");
        let plan = plan.replace("\"add_replica\"", &format!("{BESIDE}, \"add_replica\""));
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, plan).unwrap();
        let plan =
            ["run", path.to_str().unwrap(), "--on", "opensearch", "--scale", "0.02", "--json"];
        let more = ["--opensearch-version", release, "--variant", variant];
        let output = narrows(dir.path(), &[&plan[..], &more[..]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Java 21 is not everywhere, and jars come from elsewhere.
        let is_missing = output.status.code() == Some(2) || said.contains("mvn could not");
        if is_missing && std::env::var_os("NARROWS_REQUIRE_OPENSEARCH").is_none() {
            eprintln!("SKIPPED: {release} cannot be started here: {said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{release}: {said}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = &found["rows"][0];
        assert_eq!(row["verified"], true, "{row}");
        assert!(row["documents"].as_u64().unwrap() > 20_000, "what was indexed beside, too: {row}");
        nothing_is_left(dir.path());
    }
}

/// What a release does not have is said, and a name that there is not.
#[test]
fn releases_and_settings_that_there_are_not_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["run", "replica-over-link", "--on", "opensearch", "--opensearch-version"];
    let said = refused(&mut narrows(dir.path(), &[&run[..], &["2.18.0"]].concat()));
    assert!(said.contains("1.3.13") && said.contains("--opensearch-home"), "{said}");
    if !common::is_here(&["java", "mvn"]) {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let arguments = ["1.3.13", "--scale", "0.02", "--variant", "4 MB x 5"];
    let mut command = narrows(dir.path(), &[&run[..], &arguments[..]].concat());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("mvn could not") {
        eprintln!("SKIPPED: 1.3.13 cannot be fetched here: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no indices.recovery.chunk_size"), "{said}");
    nothing_is_left(dir.path());
}

/// A plan that recovers from remote, on clusters that have no cross-cluster replication.
#[test]
fn a_snapshot_is_restored_through_the_link() {
    if !common::has_opensearch() {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    // Of its three nodes a cluster, one each: there are few cores.
    let plan = include_str!("../../../plans/remote-recovery.toml");
    let plan = plan.replace("nodes = 3", "nodes = 1").replace("\"recover\"", "BESIDE, \"recover\"");
    let plan = plan.replace("BESIDE", BESIDE);
    let path = dir.path().join("plan.toml");
    std::fs::write(&path, plan).unwrap();
    let arguments = ["--on", "opensearch", "--scale", "0.02", "--json", "--variant", "default"];
    let mut command =
        narrows(dir.path(), &[&["run", path.to_str().unwrap()][..], &arguments].concat());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &found["rows"][0];
    assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &50_000.into()), "{row}");
    // What was indexed meanwhile is not in the snapshot.
    assert!(said.contains("documents beside"), "{said}");
    // It says which way it went: at once, and on the page.
    assert!(said.contains("a snapshot and its restore"), "{said}");
    let run = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("the cluster has no cross-cluster replication"));
    nothing_is_left(dir.path());
}

#[test]
fn no_jvm_and_no_directory_outlives_a_killed_runner() {
    if !common::has_opensearch() {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["run", "replica-over-link", "--on", "opensearch", "--scale", "0.1"];
    let mut run = narrows(dir.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let indexing = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("index"));
    assert!(indexing, "it ended before it indexed");
    let nodes = children_of(run.id());
    assert_eq!(nodes.len(), 2);
    run.kill().unwrap();
    run.wait().unwrap();
    let give_up = Instant::now() + Duration::from_secs(30);
    while nodes.iter().any(|pid| is_alive(*pid)) {
        assert!(Instant::now() < give_up, "a JVM outlived its runner");
        std::thread::sleep(Duration::from_millis(50));
    }
    nothing_is_left(dir.path());
}

/// A part of `narrows diagnose`; all of it is in docs/diagnosis.md.
#[test]
fn injected_causes_are_found_by_looking_and_by_probing() {
    if !common::has_opensearch() {
        return;
    }
    let _one = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["diagnose", "--on", "opensearch", "--json"];
    let cases = ["--case", "throttle", "--case", "block"];
    let output = narrows(dir.path(), &[&arguments[..], &cases[..]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((output.status.code(), &found["wrong"]), (Some(0), &0.into()), "{found:#}");
    let rows = found["rows"].as_array().unwrap();
    assert!(rows[0]["cluster"].as_str().unwrap().contains("opensearch 2.19.1"), "{found:#}");
    let brake = &rows[0]["probes"][0];
    // On a machine that is busy with other things it may tell nothing; it must not tell the opposite.
    assert_eq!(brake["kind"], "brake", "{brake:#}");
    assert_ne!(brake["reading"], "stays", "{brake:#}");
    assert_eq!(rows[1]["passive"]["class"], "allocation block");
    nothing_is_left(dir.path());
}

/// A `PATH` with these programs alone.
fn path_with(dir: &Path, programs: &[&str]) -> std::path::PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let found = std::env::var("PATH").unwrap();
        let mut found = found.split(':').map(|dir| Path::new(dir).join(program));
        let found = found.find(|path| path.is_file()).unwrap();
        std::os::unix::fs::symlink(found.canonicalize().unwrap(), bin.join(program)).unwrap();
    }
    bin
}

/// What is said by a run that cannot begin.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn what_is_missing_is_said_with_the_command_that_installs_it() {
    let dir = tempfile::tempdir().unwrap();
    let bare = |programs: &[&str]| {
        let mut command = narrows(dir.path(), &["run", "replica-over-link", "--on", "opensearch"]);
        let cache = dir.path().join("cache");
        command.env("PATH", path_with(dir.path(), programs)).env("NARROWS_CACHE", cache);
        command.env_remove("JAVA_HOME");
        command
    };
    let said = refused(&mut bare(&[]));
    assert!(said.contains("apt-get install openjdk-17-jre-headless"), "{said}");
    let said = refused(bare(&[]).args(["--opensearch-home", dir.path().to_str().unwrap()]));
    assert!(said.contains("lib and modules"), "{said}");
    if common::is_here(&["java"]) {
        let said = refused(&mut bare(&["java"]));
        assert!(said.contains("apt-get install maven"), "{said}");
    }
    nothing_is_left(dir.path());
}

#[test]
fn what_only_the_embedded_engine_has_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["run", "replica-over-link", "--on", "opensearch", "--variant", "adaptive"];
    let said = refused(&mut narrows(dir.path(), &arguments));
    assert!(said.contains("--on embedded"), "{said}");
    let arguments = ["run", "remote-recovery", "--on", "opensearch", "--variant", "1 MB x 1"];
    let said = refused(&mut narrows(dir.path(), &arguments));
    assert!(said.contains("there are default, not throttled"), "{said}");
    let arguments = ["run", "replica-over-link", "--on", "opensearch", "--heap", "big"];
    let said = refused(&mut narrows(dir.path(), &arguments));
    assert!(said.contains("512m"), "{said}");
}
