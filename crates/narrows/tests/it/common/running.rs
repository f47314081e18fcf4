//! A process that ends with the test, however that ends.

use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::process::{Child, ChildStdout, Command, Output};

use serde_json::Value;

/// It is killed where its end was not waited for.
pub struct Running {
    /// None once somebody waits for all that it says.
    child: Option<Child>,
    /// What it prints has to have somewhere to go.
    printed: Option<BufReader<ChildStdout>>,
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    #[track_caller]
    pub fn start(command: &mut Command) -> Running {
        Running { child: Some(command.spawn().unwrap()), printed: None }
    }

    /// The next line that it prints; empty where it prints no more.
    pub fn line(&mut self) -> String {
        let printed = self.printed.take();
        let printed = printed.unwrap_or_else(|| BufReader::new(self.stdout.take().unwrap()));
        let mut line = String::new();
        self.printed.insert(printed).read_line(&mut line).unwrap();
        line
    }

    /// The same as JSON.
    #[track_caller]
    pub fn json(&mut self) -> Option<Value> {
        let line = self.line();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The first of the next lines of JSON that is so.
    pub fn find(&mut self, is_so: impl Fn(&Value) -> bool) -> Option<Value> {
        std::iter::from_fn(|| self.json()).find(is_so)
    }

    /// The lines that it says on standard error.
    pub fn said(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.stderr.take().unwrap()).lines().map_while(Result::ok)
    }

    /// Kills it without warning, and waits for its end.
    pub fn kill(&mut self) {
        Child::kill(self).unwrap();
        self.wait().unwrap();
    }

    /// Waits for its end; what it said that nobody has read.
    pub fn wait_with_output(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}
