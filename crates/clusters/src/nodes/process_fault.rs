//! Faults of a process: paused, limited to a share of the cores, or with other processes beside it there. A small shell
//! brings the fault about and undoes it when its input ends, so that a process is not left paused when this one is
//! killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The period of the kernel's scheduler in which a share of cores is counted.
const PERIOD_US: u64 = 20_000;

/// `$1` is the process. It stops a moment after the signal is sent, so the script waits until it has.
const PAUSE: &str = r#"
kill -STOP "$1" || exit 1
for n in 1 2 3 4 5 6 7 8 9 10; do
  grep -q '^State:.[RSD]' "/proc/$1/status" 2> /dev/null || break
  sleep 0.01
done
echo done
cat > /dev/null
kill -CONT "$1""#;

/// `$1` is the process; again and again it runs for `$2` seconds and stands still for `$3`.
const PAUSES: &str = r#"
kill -0 "$1" || exit 1
while sleep "$2" && kill -STOP "$1" && sleep "$3" && kill -CONT "$1"; do :; done > /dev/null 2>&1 &
loop=$!
echo done
cat > /dev/null
kill "$loop" 2> /dev/null
wait "$loop"
kill -CONT "$1" 2> /dev/null"#;

/// `$1` is the process, `$2` the period and `$3` the quota in it, in microseconds; `$4` is how many processes of
/// `stress-ng` share that quota. Works with control groups of either version; at the end the process goes back to its
/// own group, or above all groups: in a container that sees those of its host no path leads to its own. An empty group
/// is left of a process of this number that was killed together with its shell.
const SLOW: &str = r#"
if [ -d /sys/fs/cgroup/cpu ]; then
  root=/sys/fs/cgroup/cpu
  own=$(sed -n 's/^[0-9]*:\([^:]*,\)*cpu\(,[^:]*\)*://p' "/proc/$1/cgroup")
else
  root=/sys/fs/cgroup
  own=$(sed -n 's/^0:://p' "/proc/$1/cgroup")
fi
group="$root/narrows-$1"
rmdir "$group" 2> /dev/null
mkdir "$group" || exit 1
if [ -e "$group/cpu.max" ]; then
  echo "$3 $2" > "$group/cpu.max" || { rmdir "$group"; exit 1; }
else
  echo "$2" > "$group/cpu.cfs_period_us" && echo "$3" > "$group/cpu.cfs_quota_us" || { rmdir "$group"; exit 1; }
fi
if [ "$4" -gt 0 ]; then
  sh -c 'echo $$ > "$1/cgroup.procs" && exec stress-ng --quiet --cpu "$2"' sh "$group" "$4" > /dev/null 2>&1 &
  competitors=$!
fi
echo "$1" > "$group/cgroup.procs" && echo done && cat > /dev/null
[ -n "$competitors" ] && kill "$competitors" 2> /dev/null && wait "$competitors"
echo "$1" > "$root$own/cgroup.procs" || echo "$1" > "$root/cgroup.procs"
for n in 1 2 3 4 5 6 7 8 9 10; do rmdir "$group" 2> /dev/null && exit 0; sleep 0.05; done"#;

/// A fault that lasts until this is dropped.
pub struct ProcessFault(Child);

impl ProcessFault {
    /// Pauses a process.
    pub(crate) fn pause(pid: u32) -> Result<ProcessFault, String> {
        ProcessFault::begin(PAUSE, &[pid.to_string()])
    }

    /// Has a process run for a while and stand still for a while, again and again. Fails with a sentence, where there
    /// is no such process, or none of ours.
    pub fn pauses(pid: u32, runs: Duration, stands: Duration) -> Result<ProcessFault, String> {
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        ProcessFault::begin(PAUSES, &[pid.to_string(), seconds(runs), seconds(stands)])
    }

    /// Limits a process to a number of cores, which it shares with a number of processes of `stress-ng`.
    pub(crate) fn limit_cores(
        pid: u32,
        cores: f64,
        competitors: u32,
    ) -> Result<ProcessFault, String> {
        // The kernel takes no less than a millisecond.
        let quota = ((PERIOD_US as f64 * cores) as u64).max(1000);
        ProcessFault::begin(
            SLOW,
            &[pid.into(), PERIOD_US, quota, competitors.into()].map(|n| n.to_string()),
        )
    }

    /// The shell's process, by its id.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Has a shell run a script that says `done`, and undoes what it did when its input ends. The error is what it said
    /// on its standard error.
    pub(super) fn begin(script: &str, arguments: &[String]) -> Result<ProcessFault, String> {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C in the terminal is for the runner alone.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        let mut said = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        // An end of its output is an answer, too.
        let _ = BufReader::new(stdout).read_line(&mut said);
        if said.trim() == "done" {
            return Ok(ProcessFault(child));
        }
        drop(child.stdin.take());
        let mut why = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_string(&mut why);
        }
        let _ = child.wait();
        Err(why.trim().to_owned())
    }
}

impl Drop for ProcessFault {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    }

    /// A process stops and goes on as `expected` under a fault, and runs once that has ended.
    fn stands_still(begin: impl Fn(u32) -> Result<ProcessFault, String>, expected: &[bool]) {
        let mut sleeper = Command::new("sleep").arg("3600").spawn().unwrap();
        let fault = begin(sleeper.id()).unwrap();
        // The signal is sent; on a busy machine it may take a moment until the process obeys.
        for stops in expected {
            while (state(sleeper.id()) == 'T') != *stops {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(fault);
        assert_ne!(state(sleeper.id()), 'T');
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(begin(4_194_305).err().unwrap().contains("No such process"));
    }

    #[test]
    fn a_process_stands_still_as_long_as_the_fault_lasts() {
        stands_still(ProcessFault::pause, &[true]);
    }

    #[test]
    fn a_process_stands_still_again_and_again_and_runs_once_that_ends() {
        let (runs, stands) = (Duration::from_millis(10), Duration::from_secs(1));
        stands_still(|pid| ProcessFault::pauses(pid, runs, stands), &[true, false, true]);
    }

    /// What cannot be limited is an error that says why, with and without the right to make control groups.
    #[test]
    fn a_process_that_there_is_not_cannot_be_limited() {
        let none = 4_194_305;
        assert!(!ProcessFault::limit_cores(none, 0.1, 0).err().unwrap().is_empty());
    }
}
