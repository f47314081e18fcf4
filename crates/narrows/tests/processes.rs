//! What is started is stopped: by order, by Ctrl-C, and when the runner is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_narrows");

/// A cluster of processes; ended with the test.
struct Cluster {
    child: Child,
    urls: Vec<String>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(nodes: usize, port: u16, data: &Path) -> Cluster {
    let mut child = Command::new(BINARY)
        .args(["cluster", "--nodes", &nodes.to_string(), "--port", &port.to_string()])
        .arg("--data")
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut urls = Vec::new();
    for _ in 0..nodes {
        match lines.next() {
            Some(Ok(line)) => urls.push(line.split_whitespace().next().unwrap().to_owned()),
            _ => {
                let mut said = String::new();
                let _ = child.stderr.take().unwrap().read_to_string(&mut said);
                panic!("the cluster did not start: {said}");
            }
        }
    }
    Cluster { child, urls }
}

/// A port with room for a few more above it, most likely free.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    if port > 60_000 { port - 20_000 } else { port }
}

/// A request without a client library: status line and body.
fn http(url: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended; nobody has asked for its status yet.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[track_caller]
fn all_end(pids: &[u32]) {
    let give_up = Instant::now() + Duration::from_secs(30);
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(Instant::now() < give_up, "nodes outlived their runner");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn no_node_outlives_a_killed_runner_and_data_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let cluster = start(2, port, dir.path());
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    assert_eq!(http(&cluster.urls[0], "PUT", "/a", settings).0, 200);
    let health = "/_cluster/health/a?wait_for_status=green";
    assert_eq!(http(&cluster.urls[0], "GET", health, "").0, 200);
    let bulk: String =
        (0..500).map(|n| format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"n\":{n}}}\n")).collect();
    let (status, answer) = http(&cluster.urls[1], "POST", "/a/_bulk", &bulk);
    assert_eq!(status, 200);
    assert!(answer.contains("\"errors\":false"), "{answer}");
    let nodes = children_of(cluster.child.id());
    assert_eq!(nodes.len(), 2);
    // Nodes and runner, without warning, at the same moment.
    for pid in nodes.iter().copied().chain([cluster.child.id()]) {
        signal(pid, "KILL");
    }
    drop(cluster);
    all_end(&nodes);
    let again = start(2, port, dir.path());
    assert_eq!(http(&again.urls[1], "GET", health, "").0, 200);
    let (_, count) = http(&again.urls[0], "GET", "/a/_count", "");
    assert!(count.contains("\"count\":500"), "{count}");
    let runner = again.child.id();
    let nodes = children_of(runner);
    signal(runner, "KILL");
    all_end(&nodes);
}

#[test]
fn ctrl_c_stops_a_cluster_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = start(2, free_port(), dir.path());
    let nodes = children_of(cluster.child.id());
    signal(cluster.child.id(), "INT");
    assert!(cluster.child.wait().unwrap().success());
    all_end(&nodes);
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = Command::new(BINARY)
        .args(["cluster", "--nodes", "1", "--port", &port.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains(&port.to_string()) && said.contains("in use"), "{said}");
    assert!(said.contains("--port"), "{said}");
}

#[test]
fn an_interrupted_run_leaves_a_readable_record_and_no_node() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let mut run = Command::new(BINARY)
        .args(["run", "remote-recovery", "--scale", "0.05", "--runs", runs])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first variant takes long enough to be interrupted.
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let begun = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("recover 64 KB"));
    assert!(begun);
    std::thread::sleep(Duration::from_millis(500));
    let nodes = children_of(run.id());
    assert_eq!(nodes.len(), 6);
    signal(run.id(), "INT");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(run.wait().unwrap().code(), Some(1), "{rest:?}");
    all_end(&nodes);
    let shown = Command::new(BINARY).args(["show", "--runs", runs]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("64 KB x 1"), "{shown}");
    assert!(shown.to_lowercase().contains("interrupted"), "{shown}");
}
