//! A program that is asked a question on its command line.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A JVM on a busy machine takes a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Nobody says more about a version.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// Runs a program to its end and returns what it wrote, standard error behind standard output.
///
/// # Errors
/// Why it could not be started, that it failed, or that it took more than 20 s; in words for people.
pub fn ask(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<String, String> {
    ask_within(PATIENCE, program.as_ref(), arguments)
}

/// Why a program did not start, in words for people.
pub fn why_not_started(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => format!("there is no {program}"),
        io::ErrorKind::NotFound => format!("there is no {program} on the path"),
        _ => format!("{program} cannot be started: {error}"),
    }
}

fn ask_within(patience: Duration, program: &OsStr, arguments: &[&str]) -> Result<String, String> {
    let name = program.to_string_lossy();
    let give_up = Instant::now() + patience;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| why_not_started(&name, &error))?;
    // What it leaves running may hold the other ends open, so nobody waits for the threads.
    let (out_sender, out) = channel();
    let (error_sender, error) = channel();
    read(child.stdout.take().expect("it is piped"), out_sender);
    read(child.stderr.take().expect("it is piped"), error_sender);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < give_up => thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} did not answer within {} s", patience.as_secs_f64()));
            }
            Err(error) => return Err(format!("{name} cannot be waited for: {error}")),
        }
    };
    let left = || give_up.saturating_duration_since(Instant::now()).max(LOOK);
    let said = [out.recv_timeout(left()), error.recv_timeout(left())];
    let said = said.map(Result::unwrap_or_default).concat();
    match status.success() {
        true => Ok(said),
        false => {
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let colon = if first.is_empty() { "" } else { ": " };
            Err(format!("{name} failed ({status}){colon}{}", first.trim()))
        }
    }
}

fn read(stream: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until an error counts.
        let _ = stream.take(SAID_BYTES_MAX).read_to_end(&mut bytes);
        let _ = to.send(String::from_utf8_lossy(&bytes).into_owned());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_read_and_failures_are_told() {
        assert_eq!(ask("sh", &["-c", "echo out; echo error >&2"]).unwrap(), "out\nerror\n");
        let refused = ask("sh", &["-c", "echo; echo because >&2; exit 3"]).unwrap_err();
        assert!(refused.contains("exit status: 3") && refused.ends_with(": because"), "{refused}");
        assert_eq!(ask("no-such", &[]).unwrap_err(), "there is no no-such on the path");
        assert_eq!(ask("/no/such", &[]).unwrap_err(), "there is no /no/such");
    }

    #[test]
    fn a_program_that_never_ends_is_ended() {
        let short = Duration::from_millis(50);
        let refused = ask_within(short, OsStr::new("sleep"), &["3600"]).unwrap_err();
        assert_eq!(refused, "sleep did not answer within 0.05 s");
    }

    /// Its pipes stay open, and more is said than is read.
    #[test]
    fn what_a_program_leaves_running_holds_nobody_up() {
        let script = ["-c", "sleep 60 & echo here; echo $! >&2"];
        // Longer where the machine stands still, so that not even the shell ends within the time.
        let mut within = [500, 4000, 32_000].map(Duration::from_millis).into_iter();
        let said = within.find_map(|time| ask_within(time, OsStr::new("sh"), &script).ok());
        assert_eq!(said, Some(String::new()), "nothing is read to its end");
        let much = ask("sh", &["-c", "yes | head -c 100000"]);
        assert!(much.is_err() || much.unwrap().len() == SAID_BYTES_MAX as usize);
    }
}
