//! A cluster of the embedded engine that someone else started, asked from outside.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::running::Running;
use super::{BINARY, PATIENCE, said};

/// Processes that end with the test.
pub struct Cluster {
    pub child: Running,
    /// Where each node is asked.
    pub urls: Vec<String>,
}

impl Cluster {
    /// Starts so many nodes; returns when they found each other.
    pub fn start(nodes: usize) -> Cluster {
        Cluster::start_with(nodes, |command| command).found_each_other()
    }

    /// The same of a cluster that presents itself as a release.
    pub fn start_as(release: &str, nodes: usize) -> Cluster {
        Cluster::start_with(nodes, |command| command.args(["--as", release])).found_each_other()
    }

    fn found_each_other(self) -> Cluster {
        self.until_healthy(&format!("wait_for_nodes={}", self.urls.len()));
        self
    }

    /// Starts so many nodes with more arguments or variables.
    #[track_caller]
    pub fn start_with(nodes: usize, more: impl FnOnce(&mut Command) -> &mut Command) -> Cluster {
        let mut command = Command::new(BINARY);
        command.args(["cluster", "--nodes", &nodes.to_string()]);
        let command = more(&mut command);
        if command.get_args().all(|argument| argument != "--port") {
            command.args(["--port", "0"]);
        }
        let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut urls = Vec::new();
        for _ in 0..nodes {
            let Some(url) = child.line().split_whitespace().next().map(str::to_owned) else {
                panic!("the cluster did not start: {}", said(&child.wait_with_output()));
            };
            urls.push(url);
        }
        Cluster { child, urls }
    }

    /// Waits for its end; its exit code, and what it said.
    pub fn wait(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output();
        (output.status.code(), said(&output))
    }

    pub fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Asks, and takes the answer for JSON.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let (_, answer) = http(self.url(), method, path, body);
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"))
    }

    /// Waits until its health is this: `wait_for_status=green`.
    #[track_caller]
    pub fn until_healthy(&self, wanted: &str) {
        let health = self.ask("GET", &format!("/_cluster/health?{wanted}&timeout=2m"), "");
        assert_eq!(health["timed_out"], false, "{wanted}: {health}");
    }

    /// Waits until it has made all that anybody who is gone by now had asked for.
    pub fn until_quiet(&self) {
        // What came over a connection may not be read yet.
        std::thread::sleep(Duration::from_secs(1));
        self.until_healthy("wait_for_events=languid");
    }

    /// What is set at a rank: `persistent` or `transient`.
    pub fn set_at(&self, rank: &str) -> Value {
        self.ask("GET", "/_cluster/settings?flat_settings=true", "")[rank].clone()
    }

    /// What is set for good.
    pub fn settings(&self) -> Value {
        self.set_at("persistent")
    }

    /// Sets for good.
    pub fn set(&self, settings: &Value) {
        self.ask("PUT", "/_cluster/settings", &json!({ "persistent": settings }).to_string());
    }

    pub fn indices(&self) -> Vec<String> {
        let rows = self.ask("GET", "/_cat/indices?format=json&h=index", "");
        let name = |row: &Value| row["index"].as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(name).collect()
    }
}

/// A request without a client library: status and body.
pub fn http(url: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    http_with(url, method, path, "", body)
}

/// With more headers, a line each.
pub fn http_with(url: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{headers}connection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let (status, _, body) = ask_over(connect(address), &request);
    (status, body)
}

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// All that is answered to a request: status, head in small letters, body.
pub fn ask_over(mut stream: impl Read + Write, request: &str) -> (u16, String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // TLS may end without saying so.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_lowercase(), body.to_owned())
}
