//! What is started is stopped: by order, by Ctrl-C, and when the runner is killed. Who asks a guarded cluster.

use std::io::{Read, Write, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clusters::NodeStart;
use engine::NodeConfig;
use testbed::free_port;

use crate::common::cluster::{Cluster, http, http_with};
use crate::common::running::Running;
use crate::common::{
    BINARY, all_end, children_of, entries, failed, files_below, kill_all, said, signal, spawned,
    until,
};

fn start(nodes: usize, port: u16, data: &Path) -> Cluster {
    Cluster::start_with(nodes, |command| {
        command.arg("--port").arg(port.to_string()).arg("--data").arg(data)
    })
}

/// A cluster whose temporary files go into this directory.
fn start_in(dir: &Path, nodes: usize) -> Cluster {
    Cluster::start_with(nodes, |command| command.env("TMPDIR", dir))
}

#[test]
fn no_node_outlives_a_killed_runner_and_data_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let cluster = start(2, port, dir.path());
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    assert_eq!(http(&cluster.urls[0], "PUT", "/a", settings).0, 200);
    cluster.until_healthy("wait_for_status=green");
    let bulk: String =
        (0..500).map(|n| format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"n\":{n}}}\n")).collect();
    let (status, answer) = http(&cluster.urls[1], "POST", "/a/_bulk", &bulk);
    assert_eq!(status, 200);
    assert!(answer.contains("\"errors\":false"), "{answer}");
    let nodes = children_of(cluster.child.id());
    assert_eq!(nodes.len(), 2);
    kill_all(cluster.child.id(), &nodes);
    drop(cluster);
    let again = start(2, port, dir.path());
    again.until_healthy("wait_for_status=green");
    let (_, count) = http(&again.urls[1], "GET", "/a/_count", "");
    assert!(count.contains("\"count\":500"), "{count}");
    let runner = again.child.id();
    let nodes = children_of(runner);
    signal(runner, "KILL");
    all_end(&nodes);
}

#[test]
fn temporary_data_goes_with_a_killed_runner_and_its_nodes() {
    let dir = tempfile::tempdir().unwrap();
    // Neither of these is a runner's, though one looks like it.
    std::fs::create_dir(dir.path().join("narrows-other")).unwrap();
    std::fs::write(dir.path().join("narrows-other/file"), "").unwrap();
    let cluster = start_in(dir.path(), 3);
    assert_eq!(http(&cluster.urls[0], "PUT", "/a", "{}").0, 200);
    let runner = cluster.child.id();
    let nodes = children_of(runner);
    // A node that goes while the runner lives takes nothing with it.
    assert_eq!(nodes.len(), 3);
    assert_eq!(entries(dir.path()).len(), 2);
    signal(runner, "KILL");
    all_end(&nodes);
    assert_eq!(entries(dir.path()), ["narrows-other"]);
    // With all of them killed at once nobody is left to do it, until somebody starts the next.
    let cluster = start_in(dir.path(), 2);
    kill_all(cluster.child.id(), &children_of(cluster.child.id()));
    drop(cluster);
    assert_eq!(entries(dir.path()).len(), 2);
    let cluster = start_in(dir.path(), 1);
    assert_eq!(entries(dir.path()).len(), 2, "the new one's, and the one that is nobody's");
    signal(cluster.child.id(), "INT");
    assert_eq!(cluster.wait().0, Some(0));
    assert_eq!(entries(dir.path()), ["narrows-other"]);
    assert!(dir.path().join("narrows-other/file").exists());
}

#[test]
fn nodes_and_temporary_data_go_with_a_cluster_that_ends_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = start_in(dir.path(), 2);
    let nodes = children_of(cluster.child.id());
    signal(cluster.child.id(), "INT");
    assert_eq!(cluster.wait().0, Some(0));
    all_end(&nodes);
    assert_eq!(entries(dir.path()).len(), 0);
}

#[test]
fn a_node_that_ends_is_started_again_until_it_does_so_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = start(2, 0, dir.path());
    let mut lines = cluster.child.said();
    let mut until = |words: &[&str]| {
        let said = lines.find(|line| words.iter().any(|words| line.contains(*words)));
        said.unwrap_or_else(|| panic!("it ended before it said one of {words:?}"))
    };
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    assert_eq!(http(&cluster.urls[0], "PUT", "/a", settings).0, 200);
    let write = http(&cluster.urls[1], "PUT", "/a/_doc/1?wait_for_active_shards=all", "{}");
    assert_eq!(write.0, 201, "{}", write.1);
    let runner = cluster.child.id();
    // The child that was started last.
    let kill_node_1 = || signal(*children_of(runner).last().unwrap(), "KILL");
    let mut restarts = 0;
    loop {
        kill_node_1();
        until(&["node narrows-1 ended by itself (signal: 9"]);
        let stays_down = "narrows-1 stays down: it has ended 3 times in a minute";
        if until(&["narrows-1 was started again", stays_down]).contains(stays_down) {
            break;
        }
        restarts += 1;
        // It listens at the same address again.
        assert_eq!(http(&cluster.urls[1], "GET", "/", "").0, 200);
        cluster.until_healthy("wait_for_nodes=2&wait_for_status=green");
    }
    // More than twice where the first time was over a minute ago by the third.
    assert!((2..20).contains(&restarts), "{restarts}");
    cluster.until_healthy("wait_for_nodes=1");
    assert_eq!(http(&cluster.urls[0], "GET", "/a/_doc/1", "").0, 200);
    signal(runner, "TERM");
    until(&["stopping"]);
    assert_eq!(cluster.child.wait().unwrap().code(), Some(0));
}

/// What a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

#[test]
fn a_node_hears_who_stops_it_before_it_says_that_it_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let config = NodeConfig::new("narrows-0", "alone", &["narrows-0".to_owned()], dir.path());
    let start = serde_json::to_string(&NodeStart { config, temporary: None }).unwrap();
    // Its line has to wait for room.
    let (mut printed, mut full) = pipe().unwrap();
    full.write_all(&[b' '; PIPE_BYTES]).unwrap();
    let mut command = Command::new(BINARY);
    let mut node = Running::start(command.arg("node").stdin(Stdio::piped()).stdout(full));
    drop(command);
    writeln!(node.stdin.as_ref().unwrap(), "{start}").unwrap();
    until("it does not hear SIGTERM", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", node.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        caught & (1 << 14) != 0
    });
    signal(node.id(), "TERM");
    let mut said = String::new();
    printed.read_to_string(&mut said).unwrap();
    assert_eq!(node.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("narrows-0"), "{said}");
}

#[test]
fn indices_that_the_state_does_not_know_are_said_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = start(1, 0, dir.path());
    assert_eq!(http(cluster.url(), "PUT", "/a/_doc/1", "{}").0, 201);
    signal(cluster.child.id(), "INT");
    let (code, said) = cluster.wait();
    assert!(code == Some(0) && !said.contains("dangling"), "{said}");
    for name in ["state.json", "state.second.json"] {
        std::fs::remove_file(dir.path().join("narrows-0").join(name)).unwrap();
    }
    let again = start(1, 0, dir.path());
    signal(again.child.id(), "INT");
    let (_, said) = again.wait();
    let warnings = said.lines().filter(|line| line.starts_with("[narrows-0] "));
    let warnings: Vec<&str> = warnings.collect();
    assert!(matches!(warnings[..], [one] if one.contains("[a] is dangling")), "{said}");
}

/// What a page does whose own name leads to 127.0.0.1.
#[test]
fn a_node_answers_only_to_its_own_names() {
    let cluster = Cluster::start_with(1, |command| command.args(["--allow-host", "search.test"]));
    let ask = |host: &str| http_with(cluster.url(), "GET", "/", &format!("host: {host}\r\n"), "");
    for host in ["search.test:9200", "localhost", "[::1]:9200"] {
        assert_eq!(ask(host).0, 200, "{host}");
    }
    let (status, said) = ask("rebound.example:9200");
    assert_eq!(status, 403);
    assert!(said.contains("--allow-host rebound.example"), "{said}");
}

const PASSWORD: &str = "correct horse battery staple";

#[test]
fn a_guarded_cluster_asks_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_with(2, |command| {
        command.env("NARROWS_USER", "anna").env("NARROWS_PASSWORD", PASSWORD);
        command.args(["--http-host", "0.0.0.0", "--data"]).arg(dir.path())
    });
    // printf 'anna:correct horse battery staple' | base64
    let right = "authorization: Basic YW5uYTpjb3JyZWN0IGhvcnNlIGJhdHRlcnkgc3RhcGxl\r\n";
    let wrong = "authorization: Basic YW5uYTp3cm9uZw==\r\n";
    for url in &cluster.urls {
        for headers in ["", wrong] {
            let (status, body) = http_with(url, "GET", "/_cat/nodes", headers, "");
            assert_eq!(status, 401, "{body}");
            assert!(body.contains("security_exception"), "{body}");
        }
        let (status, body) = http_with(url, "GET", "/_cat/nodes?h=name", right, "");
        assert_eq!(status, 200);
        assert!(body.contains("narrows-0") && body.contains("narrows-1"), "{body}");
    }
    // What anybody on this machine may look at says nothing of it; nor do the nodes' environments.
    let pids = children_of(cluster.child.id());
    for pid in pids.iter().chain([&cluster.child.id()]) {
        let read = |name: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        assert!(!read("cmdline").contains(PASSWORD));
        let is_runner = *pid == cluster.child.id();
        assert_eq!(read("environ").contains(PASSWORD), is_runner);
    }
    signal(cluster.child.id(), "INT");
    let (code, said) = cluster.wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("plain HTTP") && said.contains("basic authentication"), "{said}");
    assert!(!said.contains("horse"), "{said}");
    for path in files_below(dir.path()) {
        let bytes = std::fs::read(&path).unwrap();
        let has_it = bytes.windows(5).any(|window| window == b"horse");
        assert!(!has_it, "a secret was written to {}", path.display());
    }
}

#[test]
fn a_cluster_that_others_can_reach_needs_credentials() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials.toml");
    std::fs::write(&file, format!("user = \"anna\"\npassword = \"{PASSWORD}\"\n")).unwrap();
    let refused = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(BINARY);
        command.arg("cluster").args(args).envs(variables.iter().copied());
        let output = command.output().unwrap();
        failed(&output, 2, &[]);
        assert!(!said(&output).contains("horse"), "{}", said(&output));
        said(&output)
    };
    let said = refused(&["--http-host", "0.0.0.0"], &[]);
    assert!(said.contains("--credentials") && said.contains("NARROWS_PASSWORD"), "{said}");
    let said = refused(&["--http-host", "0.0.0.0"], &[("NARROWS_PASSWORD", PASSWORD)]);
    assert!(said.contains("NARROWS_USER"), "{said}");
    let variables = [("NARROWS_USER", "an:na"), ("NARROWS_PASSWORD", PASSWORD)];
    assert!(refused(&["--http-host", "0.0.0.0"], &variables).contains("colon"));
    let said = refused(&["--http-host", "0.0.0.0"], &[("NARROWS_TOKEN", PASSWORD)]);
    assert!(said.contains("user and password"), "{said}");
    let path = file.to_str().unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refused(&["--credentials", path], &[]).contains("read by others"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let cluster = Cluster::start_with(1, |command| command.args(["--credentials", path]));
    assert_eq!(http(&cluster.urls[0], "GET", "/", "").0, 401);
}

/// A run whose first variant is under way: long enough to be disturbed.
fn run_that_recovers(runs: &Path) -> (Running, impl Iterator<Item = String>, Vec<u32>) {
    let mut command = Command::new(BINARY);
    command.args(["run", "remote-recovery", "--scale", "0.05", "--runs"]).arg(runs);
    let mut run = spawned(&mut command);
    let mut lines = run.said();
    assert!(lines.any(|line| line.starts_with("recover 64 KB")));
    std::thread::sleep(Duration::from_millis(500));
    let nodes = children_of(run.id());
    assert_eq!(nodes.len(), 6);
    (run, lines, nodes)
}

fn shown(runs: &Path) -> String {
    said(&Command::new(BINARY).args(["show", "--runs"]).arg(runs).output().unwrap())
}

#[test]
fn an_interrupted_run_leaves_a_readable_record_and_no_node() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, lines, nodes) = run_that_recovers(dir.path());
    signal(run.id(), "INT");
    let rest: Vec<String> = lines.collect();
    assert_eq!(run.wait().unwrap().code(), Some(1), "{rest:?}");
    all_end(&nodes);
    let shown = shown(dir.path());
    assert!(shown.contains("64 KB x 1"), "{shown}");
    assert!(shown.to_lowercase().contains("interrupted"), "{shown}");
}

#[test]
fn a_run_ends_with_a_node_that_ends_and_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, lines, nodes) = run_that_recovers(dir.path());
    signal(*nodes.last().unwrap(), "KILL");
    let rest = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(run.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("node follower-2 ended by itself (signal: 9"), "{rest}");
    all_end(&nodes);
    assert!(shown(dir.path()).contains("64 KB x 1"));
}
