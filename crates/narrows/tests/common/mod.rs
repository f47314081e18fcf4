//! A cluster of the embedded engine that someone else started, for tests of what is done to it from outside.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_narrows");
/// A password that nothing may ever say.
pub const SECRET: &str = "open-sesame-4711";

/// Whether what OpenSearch needs is here; says so where it is not.
pub fn is_here(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let mut asked = Command::new(program);
        let asked = asked.arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
        !asked.status().is_ok_and(|status| status.success())
    });
    let Some(missing) = missing else { return true };
    assert!(
        std::env::var_os("NARROWS_REQUIRE_OPENSEARCH").is_none(),
        "NARROWS_REQUIRE_OPENSEARCH is set, and {missing} cannot be run"
    );
    eprintln!("SKIPPED: {missing} cannot be run; apt-get install openjdk-17-jre-headless maven");
    false
}

/// As [`is_here`], of all that OpenSearch needs.
pub fn has_opensearch() -> bool {
    is_here(&["java", "mvn"])
}

/// The binary, which knows a password.
pub fn narrows(args: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(args).env("NO_COLOR", "1");
    command.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET);
    command.output().expect("the binary runs")
}

/// All that it printed.
pub fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[track_caller]
pub fn assert_no_secret(bytes: &[u8]) {
    // The password, and "watcher:open-sesame-4711" as basic authentication carries it.
    for secret in [SECRET.as_bytes(), b"d2F0Y2hlcjpvcGVuLXNlc2FtZS00NzEx"] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

/// What is asked wrongly or cannot be reached: one sentence with these words, and exit code 2.
#[track_caller]
pub fn refused(args: &[&str], words: &[&str]) {
    let output = narrows(args);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in: {text}");
    }
    assert_no_secret(text.as_bytes());
}

/// Bulk requests of documents of 10 000 bytes that do not compress; the same in every run.
pub fn noise(documents: u32) -> Vec<String> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut letter = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match b'!' + (state % 90) as u8 {
            b'"' | b'\\' => 'x',
            other => char::from(other),
        }
    };
    let mut bodies = Vec::new();
    for _ in 0..documents / 100 {
        let mut lines = String::new();
        for _ in 0..100 {
            let text: String = (0..10_000).map(|_| letter()).collect();
            lines.push_str(&format!("{{\"index\":{{}}}}\n{{\"t\":\"{text}\"}}\n"));
        }
        bodies.push(lines);
    }
    bodies
}

/// The body that makes an index for [`noise`].
pub fn noise_index(shards: u32) -> Value {
    let settings = json!({"number_of_shards": shards, "number_of_replicas": 0});
    let field = json!({"type": "keyword", "index": false, "doc_values": false});
    json!({"settings": settings, "mappings": {"properties": {"t": field}}})
}

/// A cluster that someone else started.
pub struct Cluster {
    child: Child,
    /// Where it is asked.
    pub url: String,
    /// What it prints has to have somewhere to go.
    _output: BufReader<ChildStdout>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cluster {
    /// Starts so many nodes; returns when they found each other.
    pub fn start(nodes: u32) -> Cluster {
        let mut child = Command::new(BINARY)
            .args(["cluster", "--nodes", &nodes.to_string(), "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        let url = first.split_whitespace().next().expect("an address").to_owned();
        let cluster = Cluster { child, url, _output: output };
        cluster.ask("GET", &format!("/_cluster/health?wait_for_nodes={nodes}"), "");
        cluster
    }

    /// Asks, and takes the answer for JSON.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
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

    /// Names of all indices.
    pub fn indices(&self) -> Vec<String> {
        let rows = self.ask("GET", "/_cat/indices?format=json&h=index", "");
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["index"].as_str().unwrap().to_owned())
            .collect()
    }
}
