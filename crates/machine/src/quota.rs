//! A control group that lets a process have a part of a core. Linux alone, and only where we may make groups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ask::why_not_started;
use crate::tool::Tool;

/// Groups of processes that are given a share of the cores.
pub static CONTROL_GROUPS: Tool = Tool {
    name: "control groups with a quota",
    look: look_for_groups,
    remedy: "run it as root on Linux; in a container, with --privileged",
};

/// The shortest period. A process that has had its part of one stands still until the next begins.
const PERIOD_MIN_US: f64 = 100_000.0;
/// The smallest part of a period that the kernel takes.
const PART_MIN_US: f64 = 1000.0;

/// A bound on the core time of a process. Dropping this lifts it.
#[derive(Debug)]
pub struct Quota {
    pid: u32,
    group: PathBuf,
    /// Where groups are made.
    home: PathBuf,
    /// Where it was before.
    before: PathBuf,
    /// Whether groups are of the first version.
    is_first: bool,
}

impl Quota {
    /// Bounds a process to a share of one core, which is above 0; above 1 it may use several.
    ///
    /// # Errors
    /// If no control group can be made, or the process cannot be put into it.
    pub fn of(pid: u32, share: f64) -> io::Result<Quota> {
        let (home, is_first) = home();
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let before = group_in(&groups, is_first).unwrap_or_default();
        let before = home.join(before.trim_start_matches('/'));
        let group = home.join(format!("narrows-{pid}"));
        // An empty one is left of a process of this number that was killed together with whoever bounded it.
        let _ = fs::remove_dir(&group);
        fs::create_dir(&group)?;
        // From here on it is removed again, whatever fails.
        let made = Quota { pid, group, home, before, is_first };
        made.allow(share)?;
        fs::write(made.group.join("cgroup.procs"), pid.to_string())?;
        Ok(made)
    }

    fn allow(&self, share: f64) -> io::Result<()> {
        let period_us = PERIOD_MIN_US.max(PART_MIN_US / share);
        let (part_us, period_us) = ((share * period_us).round(), period_us.round());
        if self.is_first {
            fs::write(self.group.join("cpu.cfs_period_us"), period_us.to_string())?;
            fs::write(self.group.join("cpu.cfs_quota_us"), part_us.to_string())
        } else {
            fs::write(self.group.join("cpu.max"), format!("{part_us} {period_us}"))
        }
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A group with a process in it stays; one whose process has ended can go at once.
        let move_to = |group: &Path| fs::write(group.join("cgroup.procs"), self.pid.to_string());
        // In a container that sees the groups of its host there is no such path.
        let _ = move_to(&self.before).or_else(|_| move_to(&self.home));
        let _ = fs::remove_dir(&self.group);
    }
}

/// Where groups are made, and whether they are of the first version.
fn home() -> (PathBuf, bool) {
    let first = PathBuf::from("/sys/fs/cgroup/cpu");
    let is_first = first.join("cpu.cfs_quota_us").exists() || first.join("cgroup.procs").exists();
    (if is_first { first } else { PathBuf::from("/sys/fs/cgroup") }, is_first)
}

/// The group that bounds the cores of a process, by its lines in cgroups(7): `0::/user.slice`, of the first version
/// `4:cpu,cpuacct:/user.slice`.
fn group_in(groups: &str, is_first: bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (_, of) = line.split_once(':')?;
        let (controllers, path) = of.split_once(':')?;
        let fits = match is_first {
            true => controllers.split(',').any(|controller| controller == "cpu"),
            false => controllers.is_empty(),
        };
        fits.then_some(path)
    })
}

/// Makes a group and puts a process into it that does nothing.
fn look_for_groups() -> Result<String, String> {
    let mut idle = Command::new("sleep");
    idle.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut idle = idle.spawn().map_err(|error| why_not_started("sleep", &error))?;
    let made = Quota::of(idle.id(), 1.0);
    let found = made.as_ref().map(|quota| {
        let version = if quota.is_first { "1" } else { "2" };
        format!("version {version}, in {}", quota.home.display())
    });
    let found = found.map_err(|error| format!("no group can be made in /sys/fs/cgroup: {error}"));
    // A group can go once nobody is in it.
    drop(made);
    let _ = idle.kill();
    let _ = idle.wait();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether or not this machine lets us make one.
    #[test]
    fn a_group_goes_with_its_quota() {
        let mut idle = Command::new("sleep").arg("60").spawn().unwrap();
        let homes = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
        let groups = homes.map(|home| PathBuf::from(format!("{home}/narrows-{}", idle.id())));
        let is_there = || groups.iter().any(|group| group.exists());
        let own = || fs::read_to_string(format!("/proc/{}/cgroup", idle.id())).unwrap();
        let before = own();
        let left = fs::create_dir(home().0.join(format!("narrows-{}", idle.id())));
        let quota = Quota::of(idle.id(), 0.5);
        assert_eq!(is_there(), quota.is_ok(), "{quota:?} beside {left:?}");
        assert_eq!(CONTROL_GROUPS.look().is_ok(), quota.is_ok());
        drop(quota);
        assert!(!is_there());
        assert_eq!(own(), before, "it is where it was");
        idle.kill().unwrap();
        idle.wait().unwrap();
    }

    #[test]
    fn a_process_is_in_a_group_of_each_version() {
        let both = "12:memory:/a\n4:cpu,cpuacct:/user.slice/b\n3:cpuset:/c\n0::/d\n";
        assert_eq!(group_in(both, true), Some("/user.slice/b"));
        assert_eq!(group_in(both, false), Some("/d"));
        assert_eq!(group_in("", false), None);
    }
}
