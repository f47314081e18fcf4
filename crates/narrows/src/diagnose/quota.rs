//! A control group that lets a process have a part of a core. Linux alone, and only where we may make groups.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A period is as short as may be: a process that has had its part waits for the next.
const PERIOD_MIN_US: f64 = 100_000.0;
/// The smallest part of a period that the kernel takes.
const PART_MIN_US: f64 = 1000.0;
/// With less, a node would hardly answer any more: a period is half a second then.
pub(super) const SHARE_MIN: f64 = 0.002;

/// A process that is kept from running. Dropping this lets it run again.
pub(super) struct Quota {
    pid: u32,
    group: PathBuf,
    /// Where it was before.
    home: PathBuf,
    /// Whether groups are of the first version.
    is_first: bool,
}

impl Quota {
    /// Whether this machine lets us make one.
    pub(super) fn is_allowed() -> bool {
        let mut idle = std::process::Command::new("sleep");
        let Ok(mut idle) = idle.arg("60").spawn() else { return false };
        let allowed = Quota::of(idle.id(), 1.0).is_ok();
        let _ = idle.kill();
        let _ = idle.wait();
        allowed
    }

    /// Lets a process have so much of one core. Fails where this machine does not let us.
    pub(super) fn of(pid: u32, share: f64) -> io::Result<Quota> {
        let first = PathBuf::from("/sys/fs/cgroup/cpu");
        let is_first =
            first.join("cpu.cfs_quota_us").exists() || first.join("cgroup.procs").exists();
        let home = if is_first { first } else { PathBuf::from("/sys/fs/cgroup") };
        let group = home.join(format!("narrows-{pid}"));
        fs::create_dir(&group)?;
        // From here on it is removed again, whatever fails.
        let made = Quota { pid, group, home, is_first };
        made.allow(share)?;
        fs::write(made.group.join("cgroup.procs"), pid.to_string())?;
        Ok(made)
    }

    /// From now on it has so much of one core.
    pub(super) fn allow(&self, share: f64) -> io::Result<()> {
        let period_us = PERIOD_MIN_US.max(PART_MIN_US / share);
        let (part_us, period_us) = ((share * period_us).round(), period_us.round());
        if self.is_first {
            // A part that is longer than its period is refused, so that neither order of the two always does.
            fs::write(self.group.join("cpu.cfs_quota_us"), "-1")?;
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
        let _ = fs::write(self.home.join("cgroup.procs"), self.pid.to_string());
        let _ = fs::remove_dir(&self.group);
    }
}
