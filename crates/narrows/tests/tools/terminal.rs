//! What needs a terminal, or a disk that is full.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use testbed::SmallDisk;

use crate::common::answering::falls_silent;
use crate::common::cluster::Cluster;
use crate::common::running::Running;
use crate::common::{BINARY, done, failed, narrows, only_run, signal as send, until};

const ENTERS: &str = "\x1b[?1049h";
const LEAVES: &str = "\x1b[?1049l";

/// Runs a command of the shell in a terminal of its own; all that it writes there is in `file`.
fn in_terminal(command: &str, file: &Path) -> Running {
    let mut script = Command::new("script");
    script.args(["-q", "-f", "-e", "-c", command]).arg(file);
    Running::start(script.stdin(Stdio::piped()).stdout(Stdio::null()))
}

pub fn watch_gives_the_terminal_back_whoever_ends_it() {
    let cluster = Cluster::start(1);
    let dir = tempfile::tempdir().unwrap();
    for signal in ["TERM", "HUP", "INT", "USR1"] {
        let (shown, pid) = (dir.path().join(signal), dir.path().join(format!("{signal}.pid")));
        let command = format!("echo $$ > {}; exec {BINARY} watch {}", pid.display(), cluster.url());
        let mut terminal = in_terminal(&command, &shown);
        let text =
            || String::from_utf8_lossy(&std::fs::read(&shown).unwrap_or_default()).into_owned();
        until("the screen is drawn", || {
            text().contains(ENTERS) && text().contains("narrows watch")
        });
        assert!(!text().contains(LEAVES));
        let pid = std::fs::read_to_string(&pid).unwrap();
        send(pid.trim().parse().unwrap(), signal);
        assert_eq!(terminal.wait().unwrap().code(), Some(0), "{signal}");
        let (before, after) =
            text().rsplit_once(ENTERS).map(|(a, b)| (a.len(), b.to_owned())).unwrap();
        assert!(after.contains(LEAVES), "{signal}, after {before} bytes: {after:?}");
    }
}

/// In a raw terminal Ctrl-C is a key, too: nobody has to wait until the cluster answers.
pub fn a_key_ends_watch_while_the_cluster_is_silent() {
    let (told, silent) = mpsc::channel();
    let url = falls_silent(move || {
        // Whoever listened may have heard enough.
        let _ = told.send(());
    });
    let dir = tempfile::tempdir().unwrap();
    let shown = dir.path().join("shown");
    let mut terminal =
        in_terminal(&format!("exec {BINARY} watch {url} --timeout 5m --for 5m"), &shown);
    silent.recv_timeout(Duration::from_secs(60)).expect("it looks twice");
    terminal.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    until("a key ends it", || terminal.try_wait().unwrap().is_some());
    assert_eq!(terminal.wait().unwrap().code(), Some(0));
    let text = String::from_utf8_lossy(&std::fs::read(&shown).unwrap()).into_owned();
    assert!(text.contains(ENTERS) && text.contains(LEAVES), "{text:?}");
}

fn run_in_virtual_time(runs: &Path) -> Output {
    let small = ["run", "remote-recovery", "--on", "virtual", "--scale", "0.01", "--runs"];
    narrows(&[&small[..], &[runs.to_str().unwrap()]].concat())
}

/// The run of a disk of so many bytes.
fn run_on_a_disk(bytes: u64) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::mount(dir.path(), bytes).unwrap();
    let output = run_in_virtual_time(dir.path());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

pub fn a_disk_that_fills_does_not_take_the_table_with_it() {
    let dir = tempfile::tempdir().unwrap();
    done(&run_in_virtual_time(dir.path()));
    let run = only_run(dir.path());
    let length = |file: &str| std::fs::metadata(run.join(file)).unwrap().len();
    let lines = std::fs::read_to_string(run.join("lines.jsonl")).unwrap();
    let first = lines.rfind("\"64 KB x 1\"").unwrap() as u64;
    let without_page = length("manifest.json") + length("rows.jsonl");
    let (all, page) = (length("lines.jsonl"), length("report.html"));
    // One holds the record of the first variant, the other all of it, and not the page.
    for (bytes, page_alone) in
        [(without_page + (first + all) / 2, false), (without_page + all + page / 2, true)]
    {
        let (code, shown, said) = run_on_a_disk(bytes);
        assert_eq!(code, Some(1), "{bytes}: {shown}{said}");
        assert!(said.contains("No space left"), "{bytes}: {said}");
        assert!(shown.contains("2:25   0.36"), "{bytes}: {shown}{said}");
        assert_eq!(said.contains("report.html: No space left"), page_alone, "{bytes}: {said}");
    }
}

pub fn a_full_directory_for_temporary_files_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::mount(dir.path(), 1 << 20).unwrap();
    let output =
        Command::new(BINARY).args(["cluster", "--port", "0"]).env("TMPDIR", dir.path()).output();
    failed(&output.unwrap(), 1, &["is full", "TMPDIR"]);
}
