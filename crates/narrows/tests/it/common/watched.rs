//! `narrows watch --web` or `--serve-metrics` as a process that ends with the test.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{BINARY, SECRET, signal};

pub struct Watched {
    pub child: Child,
    /// Where each server listens, in the order in which it said so: `http://127.0.0.1:40123/`.
    pub urls: Vec<String>,
    _output: Option<BufReader<ChildStdout>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watched {
    /// Starts it; it knows a password that the page may never show. Returns once it listens as often as is said.
    #[track_caller]
    pub fn start(arguments: &[&str], servers: usize) -> Watched {
        let mut child = Command::new(BINARY)
            .arg("watch")
            .args(arguments)
            .env("NARROWS_USER", "watcher")
            .env("NARROWS_PASSWORD", SECRET)
            .stdout(if servers > 0 { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().map(BufReader::new);
        let mut urls = Vec::new();
        for _ in 0..servers {
            let mut line = String::new();
            output.as_mut().unwrap().read_line(&mut line).unwrap();
            let url = line.split_whitespace().next();
            urls.push(url.expect("it says where it listens").to_owned());
        }
        Watched { child, urls, _output: output }
    }

    pub fn url(&self) -> &str {
        &self.urls[0]
    }

    /// `127.0.0.1:40123`.
    pub fn address(&self) -> &str {
        self.url()
            .split_once("://")
            .unwrap()
            .1
            .trim_end_matches(|c| c != ':' && !char::is_numeric(c))
    }

    /// Ends it as its user would, and returns its exit code.
    pub fn end(mut self, name: &str) -> Option<i32> {
        signal(self.child.id(), name);
        self.child.wait().unwrap().code()
    }
}
