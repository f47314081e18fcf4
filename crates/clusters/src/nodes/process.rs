//! A node as a child process.
//!
//! The child reads its configuration from the first line of standard input, and ends when that input ends. So no node
//! outlives the process that started it, even if that is killed. Between the two, each line is an [`Order`]. A line
//! [`STOP`] comes before an orderly end; without it the runner has vanished, and the nodes remove the temporary
//! directory.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Duration;

use engine::NodeConfig;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::{Mutex, Notify};
use world::{Env, Task};

use super::list::RunningNode;
use super::order::{Order, STOP};
use super::process_fault::ProcessFault;
use super::warnings::Warnings;
use crate::{Error, Result, credentials};

/// How long a node may take to listen and to join: three JVMs that start at once on two busy cores take over a minute.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// How long a node may take to close its copies.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long the system may take to end a killed process.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// How many lines of standard error are kept.
const STDERR_LINES: usize = 20;

/// Exit code of a node whose address another process has taken: it may be free again soon (`EX_TEMPFAIL` of
/// `sysexits.h`).
pub const ADDRESS_TAKEN: u8 = 75;
/// Pauses before a restarted node tries again to listen where it listened before: other processes are given
/// such ports for a connection, often a short one.
const TAKEN_PAUSES_MS: [u64; 6] = [50, 100, 200, 500, 1000, 2000];
/// Exit code of a process that panicked, as Rust has it.
const PANICKED: i32 = 101;

/// What a node's process is started with: the first line on its standard input, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeStart {
    /// The node.
    pub config: NodeConfig,
    /// The runner's temporary directory, which holds the node's data; the last process that uses it removes it.
    pub temporary: Option<PathBuf>,
}

/// What a node prints, as a line of JSON, when it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReady {
    /// Its name.
    pub name: String,
    /// Its transport address.
    pub transport: String,
    /// Its REST address.
    pub http: String,
}

/// Has every panic of this process, in whatever thread or task, end the process. A node that has lost a task would
/// neither work nor be seen to be gone.
pub fn end_process_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(PANICKED);
    }));
}

/// Starts a node where it was before; tries again a few times where another process listens there.
pub(crate) async fn start_where_it_was<T>(
    env: &Env,
    mut start: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    for pause in TAKEN_PAUSES_MS {
        match start().await {
            Err(Error::AddressTaken { .. }) => env.sleep(Duration::from_millis(pause)).await,
            started => return started,
        }
    }
    start().await
}

/// A running node.
pub(crate) struct NodeProcess {
    env: Env,
    name: String,
    child: Child,
    stdin: Mutex<Option<ChildStdin>>,
    stderr: Rc<RefCell<VecDeque<String>>>,
    reader: Task<()>,
    /// Whether its end is a failure: it has been ready, and nobody has told it to end.
    watched: Rc<Cell<bool>>,
    ends: Rc<Notify>,
    /// Faults that last until they are dropped.
    paused: Option<ProcessFault>,
    slowed: Option<ProcessFault>,
}

impl NodeProcess {
    /// Starts `program node` and waits until it is ready. `ends` is notified if it ends by itself after that.
    pub(crate) async fn start(
        env: &Env,
        program: &Path,
        start: &NodeStart,
        ends: &Rc<Notify>,
    ) -> Result<(NodeProcess, NodeReady)> {
        let mut command = Command::new(program);
        command.arg("node");
        // The one thing in it that may be no text is where its data is.
        let mut line = serde_json::to_string(start).map_err(|error| Error::Io {
            what: "tell a node of its directory, whose name has to be UTF-8,",
            path: start.config.data.clone(),
            source: error.into(),
        })?;
        line.push('\n');
        let name = &start.config.name;
        let (mut process, first) = NodeProcess::spawn(env, name, command, &line, ends).await?;
        match serde_json::from_str(&first) {
            Ok(ready) => {
                process.watch();
                Ok((process, ready))
            }
            Err(_) => {
                let what = format!("printed {:?} where its addresses should be", first.trim_end());
                Err(process.failed(&what).await)
            }
        }
    }

    /// Starts a command, writes `input` to its standard input, which stays open, and waits for its first line. Its end
    /// is a failure from [`NodeProcess::watch`] on.
    pub(crate) async fn spawn(
        env: &Env,
        name: &str,
        mut command: Command,
        input: &str,
        ends: &Rc<Notify>,
    ) -> Result<(NodeProcess, String)> {
        let path = command.as_std().get_program().into();
        // A node gets the credentials that it needs with its configuration.
        for name in credentials::VARIABLES {
            command.env_remove(name);
        }
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
        let watched = Rc::new(Cell::new(false));
        let (last_lines, is_failure, ends_here) = (stderr.clone(), watched.clone(), ends.clone());
        let warnings = Warnings::of(name);
        let reader = env.spawn("reads a node's errors", async move {
            keep_last_lines(errors, last_lines, warnings).await;
            if is_failure.get() {
                ends_here.notify_one();
            }
        });
        let mut process = NodeProcess {
            env: env.clone(),
            name: name.to_owned(),
            child,
            stdin: Mutex::new(Some(stdin)),
            stderr,
            reader,
            watched,
            ends: ends.clone(),
            paused: None,
            slowed: None,
        };
        let stdin = process.stdin.get_mut().as_mut().expect("it was just put there");
        // It fails where the child has ended already; why, it said on standard error.
        let _ = stdin.write_all(input.as_bytes()).await;
        let mut first = String::new();
        let mut stdout = BufReader::new(stdout);
        match process.env.timeout(START_PATIENCE, stdout.read_line(&mut first)).await {
            Ok(Ok(1..)) => Ok((process, first)),
            Err(_) => {
                let what = format!("was not ready after {} s", START_PATIENCE.as_secs());
                Err(process.failed(&what).await)
            }
            _ => Err(process.failed("ended before it was ready").await),
        }
    }

    /// From now on its end is a failure, unless it is told to end.
    pub(crate) fn watch(&self) {
        self.watched.set(true);
        // It may have ended already.
        if self.reader.is_finished() {
            self.ends.notify_one();
        }
    }

    async fn failed(&mut self, what: &str) -> Error {
        // Its last lines arrive before its end.
        let _ = self.env.timeout(Duration::from_secs(1), self.child.wait()).await;
        if !self.reader.is_finished() {
            let _ = self.env.timeout(Duration::from_millis(200), &mut self.reader).await;
        }
        let stderr = self.stderr.borrow().iter().cloned().collect();
        if let Ok(Some(status)) = self.child.try_wait()
            && status.code() == Some(ADDRESS_TAKEN.into())
        {
            return Error::AddressTaken { node: self.name.clone(), stderr };
        }
        Error::Node { node: self.name.clone(), what: what.to_owned(), stderr }
    }

    /// Pauses it, or has it go on. The error is a sentence.
    pub(crate) fn pause(&mut self, pauses: bool) -> Result<(), String> {
        self.paused = None;
        if let Some(pid) = self.child.id().filter(|_| pauses) {
            self.paused = Some(ProcessFault::pause(pid)?);
        }
        Ok(())
    }

    /// Limits it to a number of cores, which it shares with a number of processes of `stress-ng`; without `share` it
    /// has all cores again. The error is a sentence.
    pub(crate) fn limit_cores(&mut self, share: Option<(f64, u32)>) -> Result<(), String> {
        self.slowed = None;
        if let (Some(pid), Some((cores, competitors))) = (self.child.id(), share) {
            self.slowed = Some(ProcessFault::limit_cores(pid, cores, competitors)?);
        }
        Ok(())
    }

    /// Writes an order to its standard input. The error is a sentence.
    pub(crate) async fn order(&self, order: Order) -> Result<(), String> {
        let gone = || "its standard input is closed".to_owned();
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().ok_or_else(gone)?;
        let line = format!("{order}\n");
        stdin.write_all(line.as_bytes()).await.map_err(|error| format!("tell it: {error}"))
    }

    /// Ends it now. The error is a sentence: the system may keep a process that waits for a disk.
    pub(crate) async fn kill(mut self) -> Result<(), String> {
        self.watched.set(false);
        // It fails only where the process is gone already.
        let killed = self.env.timeout(KILL_PATIENCE, self.child.kill()).await;
        killed.map(drop).map_err(|elapsed| {
            format!("the system has not ended its process {} s after SIGKILL", elapsed.0.as_secs())
        })
    }

    /// Closes its input, and waits for its end; none where that takes too long.
    async fn end_in_order(&mut self) -> Option<ExitStatus> {
        (self.paused, self.slowed) = (None, None);
        self.watched.set(false);
        if let Some(mut stdin) = self.stdin.get_mut().take() {
            // It fails where the node has ended already.
            let _ = stdin.write_all(format!("{STOP}\n").as_bytes()).await;
        }
        self.env.timeout(STOP_PATIENCE, self.child.wait()).await.ok()?.ok()
    }
}

impl RunningNode for NodeProcess {
    /// Asks it to end, and waits; kills it where that takes too long.
    async fn stop(mut self) {
        if self.end_in_order().await.is_none() {
            // What is left then is the system's to end: it was sent the signal.
            let _ = self.kill().await;
        }
    }

    fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    async fn failure(&mut self) -> Option<Error> {
        if self.reader.is_finished() {
            // It has closed its standard error, and so is about to end.
            let _ = self.env.timeout(Duration::from_secs(1), self.child.wait()).await;
        }
        match self.child.try_wait() {
            Ok(Some(status)) => Some(self.failed(&format!("ended by itself ({status})")).await),
            _ => None,
        }
    }
}

/// Keeps the last lines, and prints warnings as they come.
async fn keep_last_lines(
    errors: ChildStderr,
    last_lines: Rc<RefCell<VecDeque<String>>>,
    mut warnings: Warnings,
) {
    let (mut errors, mut line) = (BufReader::new(errors), Vec::new());
    while let Ok(1..) = errors.read_until(b'\n', &mut line).await {
        let line = String::from_utf8_lossy(&std::mem::take(&mut line)).trim_end().to_owned();
        if let Some(warning) = warnings.hear(&line) {
            engine::core::print_warning(&warning);
        }
        let mut last_lines = last_lines.borrow_mut();
        if last_lines.len() == STDERR_LINES {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
    }
}

/// Ends it as `kill -9` does and waits for that, so that nothing writes to its data from here on.
impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.watched.set(false);
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
    fn config(name: &str) -> NodeStart {
        let config = NodeConfig::new(name, "c", &[name.to_owned()], "/nowhere");
        NodeStart { config, temporary: None }
    }

    async fn start(env: &Env, name: &str) -> Result<(NodeProcess, NodeReady)> {
        start_noting(env, name, &Rc::default()).await
    }

    async fn start_noting(
        env: &Env,
        name: &str,
        ends: &Rc<Notify>,
    ) -> Result<(NodeProcess, NodeReady)> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_node.sh");
        NodeProcess::start(env, &program, &config(name), ends).await
    }

    fn is_there(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_node_says_where_it_is_and_ends_in_order() {
        world::real_world::run(1, async |env| {
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
            assert_eq!(*process.stderr.borrow(), ["told to stop", "input ended"]);
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            process.stop().await;
            assert!(!is_there(pid));
        });
    }

    #[test]
    fn a_directory_whose_name_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        world::real_world::run(1, async |env| {
            let mut start = config("good");
            start.config.data = std::ffi::OsStr::from_bytes(b"/\xff").into();
            let shared = Rc::default();
            let started = NodeProcess::start(&env, Path::new("none"), &start, &shared).await;
            let refused = started.err().unwrap().to_string();
            assert!(refused.contains("has to be UTF-8"), "{refused}");
        });
    }

    #[test]
    fn no_process_is_left_after_a_kill_or_a_drop() {
        world::real_world::run(1, async |env| {
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            process.kill().await.unwrap();
            assert!(!is_there(pid));
            let (process, _) = start(&env, "good").await.unwrap();
            let pid = process.child.id().unwrap();
            drop(process);
            assert!(!is_there(pid));
        });
    }

    #[test]
    fn warnings_of_a_node_are_printed() {
        static PRINTED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
        engine::core::print_warnings_with(|line| PRINTED.lock().unwrap().push(line.to_owned()));
        world::real_world::run(1, async |env| {
            let (mut process, _) = start(&env, "warns").await.unwrap();
            process.end_in_order().await.unwrap();
            while !process.reader.is_finished() {
                env.sleep(Duration::from_millis(1)).await;
            }
        });
        assert_eq!(*PRINTED.lock().unwrap(), ["[warns] of a full disk"]);
    }

    #[test]
    fn a_node_that_fails_shows_its_last_words() {
        world::real_world::run(1, async |env| {
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
        world::real_world::run(1, async |env| {
            let error = start(&env, "chatty").await.err().unwrap().to_string();
            assert!(error.contains("\"hello\" where its addresses should be"), "{error}");
            // It may be gone before it is told anything.
            let start = async |program| {
                let ends = Rc::default();
                NodeProcess::start(&env, Path::new(program), &config("x"), &ends)
                    .await
                    .err()
                    .unwrap()
            };
            let gone = start("false").await;
            assert!(gone.to_string().contains("ended before it was ready"), "{gone}");
            let none = start("/none").await;
            assert!(none.to_string().contains("cannot start /none"), "{none}");
        });
    }

    #[test]
    fn a_node_that_ends_by_itself_is_noticed() {
        world::real_world::run(1, async |env| {
            let ends = Rc::default();
            // An end that was ordered is no news.
            start_noting(&env, "good", &ends).await.unwrap().0.stop().await;
            start_noting(&env, "good", &ends).await.unwrap().0.kill().await.unwrap();
            drop(start_noting(&env, "good", &ends).await.unwrap());
            start_noting(&env, "broken", &ends).await.err().unwrap();
            assert!(env.timeout(Duration::from_millis(50), ends.notified()).await.is_err());
            let (mut process, _) = start_noting(&env, "good", &ends).await.unwrap();
            assert!(process.failure().await.is_none());
            process.child.start_kill().unwrap();
            ends.notified().await;
            let error = process.failure().await.unwrap().to_string();
            assert!(error.contains("ended by itself (signal: 9"), "{error}");
        });
    }

    #[test]
    fn a_taken_address_is_told_apart() {
        world::real_world::run(1, async |env| {
            let error = start(&env, "taken").await.err().unwrap();
            assert!(matches!(error, Error::AddressTaken { .. }), "{error}");
            assert!(error.to_string().contains("address in use"), "{error}");
        });
    }

    #[test]
    fn a_node_is_started_again_until_its_address_is_free() {
        world::virtual_world::run(1, async |env| {
            let start = async |taken: usize| {
                let mut starts = 0;
                let started = start_where_it_was(&env, async || {
                    starts += 1;
                    let (node, stderr) = ("a-0".to_owned(), Vec::new());
                    if starts > taken { Ok(()) } else { Err(Error::AddressTaken { node, stderr }) }
                });
                (started.await.is_ok(), starts)
            };
            assert_eq!(start(2).await, (true, 3));
            assert_eq!(start(9).await, (false, 7));
        });
    }

    /// Runs in a process of its own: with the variable it is the one that panics.
    #[test]
    fn a_panic_in_a_task_ends_the_process() {
        const VARIABLE: &str = "NARROWS_TEST_PANICS";
        if std::env::var_os(VARIABLE).is_some() {
            end_process_on_panic();
            world::real_world::run(1, async |env| {
                let _task = env.spawn("panics", async { panic!("a task is lost") });
                env.sleep(Duration::from_secs(3600)).await;
            });
        }
        let name = "nodes::process::tests::a_panic_in_a_task_ends_the_process";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output =
            again.args(["--exact", name, "--nocapture"]).env(VARIABLE, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(PANICKED), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("a task is lost"), "{said}");
    }
}
