//! `narrows steer` as a process, step by step.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::BINARY;
use super::running::Running;

/// Steers a cluster. Cores of a machine that is busy with other things say nothing of it.
pub fn steer(urls: &str, runs: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["steer", urls, "--interval", "500ms", "--guard-cpu", "100", "--json"]);
    // Without --apply there is no run; were one kept, it would be below this directory, too.
    command.args(more).current_dir(runs).stdout(Stdio::piped()).stderr(Stdio::piped());
    if more.contains(&"--apply") {
        command.arg("--runs").arg(runs);
    }
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
    pub child: Running,
    said: Vec<Value>,
}

impl Steering {
    pub fn start(mut command: Command) -> Steering {
        Steering { child: Running::start(&mut command), said: Vec::new() }
    }

    /// The step that it says next.
    fn next_step(&mut self) -> Option<&Value> {
        self.said.push(self.child.json()?);
        self.said.last()
    }

    /// The next step of a name; all before it are read, too.
    #[track_caller]
    pub fn until(&mut self, step: &str) -> Value {
        while let Some(next) = self.next_step() {
            if next["step"] == step {
                return next.clone();
            }
        }
        panic!("it ended without a step \"{step}\": {:#?}", self.said);
    }

    /// It ends with this code; its last step.
    #[track_caller]
    pub fn end(mut self, code: i32) -> Value {
        while self.next_step().is_some() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{:#?}", self.said);
        self.said.pop().unwrap()
    }
}

/// A way to a cluster that can be closed, and opened again at the same address.
pub struct Way {
    at: String,
    to: String,
    open: Option<Running>,
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
        let mut link = Running::start(command.stdout(Stdio::piped()));
        // It says where it listens.
        assert!(!link.line().is_empty(), "nothing listens at {}", self.at);
        self.open = Some(link);
    }

    pub fn close(&mut self) {
        self.open = None;
    }
}
