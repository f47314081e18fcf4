//! The binary as a process: what it is asked, what it says, and which processes it starts.
#![allow(dead_code, reason = "each module uses a part of it")]

pub mod answering;
pub mod busy;
pub mod cluster;
pub mod large;
pub mod noise;
pub mod plans;
pub mod running;
pub mod started;
pub mod steered;
pub mod tls;
pub mod watched;

use std::fmt::Debug;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use running::Running;

pub const BINARY: &str = env!("CARGO_BIN_EXE_narrows");
/// A password that nothing may ever say.
pub const SECRET: &str = "open-sesame-4711";
/// How long a test waits for what is to come. It costs nothing where that comes; a machine may stand still at times.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Looks at what goes on, until one is right.
const LOOKS: usize = 5;

/// The binary, which knows a password.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env("NO_COLOR", "1");
    command.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET);
    command
}

/// Runs it to its end.
pub fn narrows(args: &[&str]) -> Output {
    command(args).output().expect("the binary runs")
}

/// Starts it, and has what it prints on standard error piped.
pub fn spawned(command: &mut Command) -> Running {
    Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
}

/// All that it printed.
pub fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The same, having ended well.
#[track_caller]
pub fn done(output: &Output) -> String {
    let text = said(output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

/// What it printed on standard output alone, having ended well.
#[track_caller]
pub fn printed(output: &Output) -> String {
    done(output);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The same, as JSON.
#[track_caller]
pub fn json(output: &Output) -> Value {
    let text = printed(output);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// Looks again until a look is right, a few times at most; the last, right or not. A machine that stands still for
/// seconds spoils one look at what goes on, but not the next.
pub fn look_until<T>(mut look: impl FnMut() -> T, is_right: impl Fn(&T) -> bool) -> T {
    let mut found = look();
    for _ in 1..LOOKS {
        if is_right(&found) {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        found = look();
    }
    found
}

/// Looks until what is found is right.
#[track_caller]
pub fn until_found<T: Debug>(mut look: impl FnMut() -> T, is_right: impl Fn(&T) -> bool) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let found = look();
        if is_right(&found) {
            return found;
        }
        assert!(Instant::now() < give_up, "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until this is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub fn assert_no_secret(bytes: &[u8]) {
    // The password, and "watcher:open-sesame-4711" as basic authentication carries it.
    for secret in [SECRET.as_bytes(), b"d2F0Y2hlcjpvcGVuLXNlc2FtZS00NzEx"] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

/// It ended with this code, and said these words and no secret.
#[track_caller]
pub fn failed(output: &Output, code: i32, words: &[&str]) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in: {text}");
    }
    assert_no_secret(text.as_bytes());
}

/// What is asked wrongly or cannot be reached: one sentence with these words, and exit code 2.
#[track_caller]
pub fn refused(args: &[&str], words: &[&str]) {
    failed(&narrows(args), 2, words);
}

/// The directory of the one run in a directory of runs.
#[track_caller]
pub fn only_run(runs: &Path) -> PathBuf {
    let found: Vec<_> = std::fs::read_dir(runs).unwrap().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].as_ref().unwrap().path()
}

/// Names of what is in a directory.
pub fn entries(dir: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Every file below a directory.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let paths = entries(dir).into_iter().map(|name| dir.join(name));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The binary, with runs and temporary files in a directory of the test's own.
pub fn narrows_in(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--runs").arg(dir.join("runs"));
    let temporary = dir.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    command.env("TMPDIR", temporary);
    // A JVM that lives for seconds does best without its second compiler: 3.5 s of core time until it listens, in place
    // of 6.8 s.
    command.env("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
    command
}

/// Nothing is left of the temporary files of [`narrows_in`].
#[track_caller]
pub fn nothing_is_left(dir: &Path) {
    assert_eq!(entries(&dir.join("tmp")), Vec::<std::ffi::OsString>::new());
}

/// A file with a token that nobody else may read.
pub fn private(dir: &Path, text: &str) -> String {
    let file = dir.join("token.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Makes a directory with these programs alone, to be a `PATH`.
pub fn path_with(dir: &Path, programs: &[&str]) -> PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let found = std::env::var("PATH").unwrap();
        let mut found = found.split(':').map(|dir| Path::new(dir).join(program));
        let found = found.find(|path| path.is_file()).unwrap();
        std::os::unix::fs::symlink(found.canonicalize().unwrap(), bin.join(program)).unwrap();
    }
    bin
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended; nobody has asked for its status yet. Its first thread is one before the
    // others have ended, and while they live its sockets still listen.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !status.is_empty() && (threads > 1 || !status.contains(") Z "))
}

/// Processes whose home this is: what was started there, and what that started.
pub fn processes_of_home(home: &Path) -> Vec<u32> {
    let home = format!("HOME={}", home.display());
    let of_home = |pid: &u32| {
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let all = entries(Path::new("/proc"));
    let all = all.iter().filter_map(|name| name.to_str()?.parse::<u32>().ok());
    all.filter(of_home).collect()
}

/// Waits until these processes have ended.
#[track_caller]
pub fn all_end(pids: &[u32]) {
    until("a process outlived its runner", || !pids.iter().any(|pid| is_alive(*pid)));
}

/// Ends a runner and its nodes without warning, at the same moment: one that sees a node end would end by itself.
pub fn kill_all(runner: u32, nodes: &[u32]) {
    signal(runner, "STOP");
    for pid in nodes.iter().chain([&runner]) {
        signal(*pid, "KILL");
    }
    all_end(nodes);
}

/// Has what a run of these has changed put back.
pub fn restore(run: &str, runs: &Path) -> Output {
    Command::new(BINARY).args(["restore", run, "--runs"]).arg(runs).output().unwrap()
}

#[track_caller]
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// A line for a document, continued on the next ones where it is long.
pub fn folded(line: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > 0 && column + width > 116 {
            out.truncate(out.trim_end().len());
            out.push_str("\n    ");
            column = 4;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}
