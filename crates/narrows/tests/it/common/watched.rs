//! `narrows watch --web` or `--serve-metrics` as a process that ends with the test.

use std::process::Stdio;

use super::running::Running;
use super::{command, signal};

pub struct Watched {
    pub child: Running,
    /// Where it listens: `http://127.0.0.1:40123/`.
    url: String,
}

impl Watched {
    /// Starts it; it knows a password that the page may never show. Returns once it listens, where it is to.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Watched {
        let listens = ["--web", "--serve-metrics"].iter().any(|option| arguments.contains(option));
        let mut command = command(&[&["watch"], arguments].concat());
        command.stdout(if listens { Stdio::piped() } else { Stdio::null() });
        let mut child = Running::start(command.stderr(Stdio::null()));
        let line = if listens { child.line() } else { String::new() };
        assert!(!listens || !line.is_empty(), "it says where it listens");
        let url = line.split_whitespace().next().unwrap_or_default().to_owned();
        Watched { child, url }
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
