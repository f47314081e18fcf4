//! A node as a child process.
//!
//! The child reads its configuration from standard input and ends when that input ends. So no node outlives
//! the process that started it, even if that is killed.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Duration;

use engine::NodeConfig;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use world::{Env, Task};

use crate::Error;

/// How long a node may take to listen and to join.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long a node may take to close its copies.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long the system may take to end a killed process.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Lines of standard error that are kept.
const STDERR_LINES: usize = 20;

/// The line that a node prints when it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) transport: String,
    pub(crate) http: String,
}

/// A running node.
pub(crate) struct NodeProcess {
    env: Env,
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stderr: Rc<RefCell<VecDeque<String>>>,
    reader: Task<()>,
}

impl NodeProcess {
    /// Starts `program node` and waits until it is ready.
    pub(crate) async fn start(
        env: &Env,
        program: &Path,
        config: &NodeConfig,
    ) -> Result<(NodeProcess, Ready), Error> {
        let mut command = Command::new(program);
        command.arg("node");
        let mut line = serde_json::to_string(config).expect("a configuration is plain data");
        line.push('\n');
        let (mut process, first) = NodeProcess::spawn(env, &config.name, command, &line).await?;
        match serde_json::from_str(&first) {
            Ok(ready) => Ok((process, ready)),
            Err(_) => {
                let what = format!("printed {:?} where its addresses should be", first.trim_end());
                Err(process.failed(&what).await)
            }
        }
    }

    /// Starts a command, gives it `input`, which stays open, and waits for its first line.
    pub(crate) async fn spawn(
        env: &Env,
        name: &str,
        mut command: Command,
        input: &str,
    ) -> Result<(NodeProcess, String), Error> {
        let path = command.as_std().get_program().into();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C in the terminal is for the runner alone, which then stops its nodes.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Io { what: "start", path, source })?;
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let errors = child.stderr.take().expect("it is piped");
        let stderr = Rc::new(RefCell::new(VecDeque::new()));
        let reader = env.spawn("reads a node's errors", keep_last_lines(errors, stderr.clone()));
        let (env, name) = (env.clone(), name.to_owned());
        let mut process = NodeProcess { env, name, child, stdin: Some(stdin), stderr, reader };
        let stdin = process.stdin.as_mut().expect("it was just put there");
        // It fails where the child has ended already; why, it said on standard error.
        let _ = stdin.write_all(input.as_bytes()).await;
        let mut first = String::new();
        let mut stdout = BufReader::new(stdout);
        match process.env.timeout(START_PATIENCE, stdout.read_line(&mut first)).await {
            Ok(Ok(1..)) => Ok((process, first)),
            Err(_) => Err(process.failed("was not ready after 60 s").await),
            _ => Err(process.failed("ended before it was ready").await),
        }
    }

    async fn failed(&mut self, what: &str) -> Error {
        // What it still has to say comes before its end.
        let _ = self.env.timeout(Duration::from_secs(1), self.child.wait()).await;
        if !self.reader.is_finished() {
            let _ = self.env.timeout(Duration::from_millis(200), &mut self.reader).await;
        }
        let stderr = self.stderr.borrow().iter().cloned().collect();
        Error::Node { node: self.name.clone(), what: what.to_owned(), stderr }
    }

    /// Whether it has ended by itself; if so, what it said.
    pub(crate) async fn ended(&mut self) -> Option<Error> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(self.failed(&format!("ended by itself ({status})")).await),
            _ => None,
        }
    }

    /// Ends it now.
    pub(crate) async fn kill(mut self) {
        // It fails only where the process is gone already.
        let _ = self.child.kill().await;
    }

    /// Asks it to end, and waits; ends it where that takes too long.
    pub(crate) async fn stop(mut self) {
        if self.end_in_order().await.is_none() {
            self.kill().await;
        }
    }

    /// Ends its input, and waits for what it makes of that; none where that takes too long.
    async fn end_in_order(&mut self) -> Option<ExitStatus> {
        drop(self.stdin.take());
        self.env.timeout(STOP_PATIENCE, self.child.wait()).await.ok()?.ok()
    }
}

async fn keep_last_lines(errors: ChildStderr, kept: Rc<RefCell<VecDeque<String>>>) {
    let (mut errors, mut line) = (BufReader::new(errors), Vec::new());
    while let Ok(1..) = errors.read_until(b'\n', &mut line).await {
        let line = String::from_utf8_lossy(&std::mem::take(&mut line)).trim_end().to_owned();
        let mut kept = kept.borrow_mut();
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// Ends it as `kill -9` does and waits for that, so that nothing writes to its data from here on.
impl Drop for NodeProcess {
    fn drop(&mut self) {
        // Fails where its end has been waited for already.
        if self.child.start_kill().is_err() {
            return;
        }
        let give_up = std::time::Instant::now() + KILL_PATIENCE;
        while let Ok(None) = self.child.try_wait()
            && std::time::Instant::now() < give_up
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the fake node does depends on its name.
    fn config(name: &str) -> NodeConfig {
        NodeConfig {
            name: name.to_owned(),
            cluster: "c".to_owned(),
            members: vec![name.to_owned()],
            manager: None,
            transport: "127.0.0.1:0".to_owned(),
            http: "127.0.0.1:0".to_owned(),
            data: "/nowhere".into(),
            settings: Default::default(),
            publish: None,
        }
    }

    async fn start(env: &Env, name: &str) -> Result<(NodeProcess, Ready), Error> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_node.sh");
        NodeProcess::start(env, &program, &config(name)).await
    }

    fn is_there(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    fn real<F: Future<Output = ()>>(body: impl FnOnce(Env) -> F) {
        world::real_world::run(1, body);
    }

    #[test]
    fn a_node_says_where_it_is_and_ends_in_order() {
        real(async |env| {
            let (mut process, ready) = start(&env, "good").await.unwrap();
            assert_eq!((&*ready.transport, &*ready.http), ("127.0.0.1:1", "127.0.0.1:2"));
            let pid = process.child.id().unwrap();
            assert!(is_there(pid));
            assert!(process.end_in_order().await.unwrap().success());
            assert!(!is_there(pid));
            // It saw the end of its input, and was not killed.
            while !process.reader.is_finished() {
                env.sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(*process.stderr.borrow(), ["input ended"]);
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            process.stop().await;
            assert!(!is_there(pid));
        });
    }

    #[test]
    fn no_process_is_left_after_a_kill_or_a_drop() {
        real(async |env| {
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            process.kill().await;
            assert!(!is_there(pid));
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            drop(process);
            assert!(!is_there(pid));
        });
    }

    #[test]
    fn a_node_that_fails_shows_its_last_words() {
        real(async |env| {
            let error = start(&env, "broken").await.err().unwrap();
            let Error::Node { node, stderr, .. } = &error else { panic!("{error}") };
            let expected: Vec<String> = (11..=30).map(|n| format!("line {n}")).collect();
            assert_eq!((node.as_str(), stderr), ("broken", &expected));
            let said = error.to_string();
            assert!(said.starts_with("node broken ended before it was ready; it said:\n  line 11"));
        });
    }

    #[test]
    fn a_program_that_is_no_node_is_told() {
        real(async |env| {
            let error = start(&env, "chatty").await.err().unwrap().to_string();
            assert!(error.contains("\"hello\" where its addresses should be"), "{error}");
            // It may be gone before it is told anything.
            let gone =
                NodeProcess::start(&env, Path::new("false"), &config("x")).await.err().unwrap();
            assert!(gone.to_string().contains("ended before it was ready"), "{gone}");
            let none =
                NodeProcess::start(&env, Path::new("/none"), &config("x")).await.err().unwrap();
            assert!(none.to_string().contains("cannot start /none"), "{none}");
        });
    }

    #[test]
    fn a_node_that_ends_by_itself_is_noticed() {
        real(async |env| {
            let (mut process, _) = start(&env, "good").await.unwrap();
            assert!(process.ended().await.is_none());
            process.child.start_kill().unwrap();
            let error = loop {
                if let Some(error) = process.ended().await {
                    break error.to_string();
                }
                env.sleep(Duration::from_millis(1)).await;
            };
            assert!(error.contains("ended by itself (signal: 9"), "{error}");
        });
    }
}
