//! `narrows steer` as a process, step by step.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::BINARY;

/// Steers a cluster. Cores of a machine that is busy with other things say nothing of it.
pub fn steer(urls: &str, runs: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["steer", urls, "--interval", "500ms", "--guard-cpu", "100", "--json"]);
    command.args(more).arg("--runs").arg(runs).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Journals that were left behind.
pub fn journals(runs: &Path) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(runs).unwrap();
    let journals = runs.map(|run| run.unwrap().path().join("changes.jsonl"));
    journals.filter(|path| path.exists()).collect()
}

/// A process that steers, and what it says.
pub struct Steering {
    pub child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    said: Vec<Value>,
}

impl Steering {
    pub fn start(mut command: Command) -> Steering {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Steering { child, lines, said: Vec::new() }
    }

    /// The next step of a name; all before it are read, too.
    #[track_caller]
    pub fn until(&mut self, step: &str) -> Value {
        for line in self.lines.by_ref() {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            self.said.push(line.clone());
            if line["step"] == step {
                return line;
            }
        }
        panic!("it ended without a step \"{step}\": {:#?}", self.said);
    }

    /// It ends with this code; its last step.
    #[track_caller]
    pub fn end(mut self, code: i32) -> Value {
        for line in self.lines.by_ref() {
            self.said.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{:#?}", self.said);
        self.said.pop().unwrap()
    }
}

/// A way to a cluster that can be closed, and opened again at the same address.
pub struct Way {
    at: String,
    to: String,
    /// What it prints has to have somewhere to go.
    open: Option<(Child, BufReader<ChildStdout>)>,
}

impl Way {
    pub fn to(url: &str) -> Way {
        let at = format!("127.0.0.1:{}", testbed::free_port());
        let to = url.strip_prefix("http://").unwrap().to_owned();
        let mut way = Way { at, to, open: None };
        way.open();
        way
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    pub fn open(&mut self) {
        let mut command = Command::new(BINARY);
        command.args(["link", "--listen", &self.at, "--to", &self.to]);
        let mut link = command.stdout(Stdio::piped()).spawn().unwrap();
        // It says where it listens.
        let mut output = BufReader::new(link.stdout.take().unwrap());
        let read = output.read_line(&mut String::new()).unwrap();
        assert!(read > 0, "nothing listens at {}", self.at);
        self.open = Some((link, output));
    }

    pub fn close(&mut self) {
        if let Some((mut link, _)) = self.open.take() {
            link.kill().unwrap();
            link.wait().unwrap();
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.close();
    }
}
