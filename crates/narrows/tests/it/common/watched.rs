//! `narrows watch --web` or `--serve-metrics` as a process that ends with the test.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{BINARY, SECRET, signal};

pub struct Watched {
    pub child: Child,
    /// Where it listens: `http://127.0.0.1:40123/`.
    url: String,
    _output: Option<BufReader<ChildStdout>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watched {
    /// Starts it; it knows a password that the page may never show. Returns once it listens, where it is to.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Watched {
        let listens = ["--web", "--serve-metrics"].iter().any(|option| arguments.contains(option));
        let mut child = Command::new(BINARY)
            .arg("watch")
            .args(arguments)
            .env("NARROWS_USER", "watcher")
            .env("NARROWS_PASSWORD", SECRET)
            .stdout(if listens { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().map(BufReader::new);
        let mut line = String::new();
        if let Some(output) = &mut output {
            output.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "it says where it listens");
        }
        let url = line.split_whitespace().next().unwrap_or_default().to_owned();
        Watched { child, url, _output: output }
    }

    pub fn url(&self) -> &str {
        &self.url
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
