//! A control group that lets a process have a part of a core. Linux alone, and only where we may make groups.

use std::fs;
use std::io;
use std::path::PathBuf;

const PERIOD_US: u64 = 100_000;
/// The smallest share that the kernel takes: a millisecond of each period.
pub(super) const SHARE_MIN: f64 = 0.01;

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
        let quota_us = (share * PERIOD_US as f64) as u64;
        if self.is_first {
            fs::write(self.group.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            fs::write(self.group.join("cpu.cfs_quota_us"), quota_us.to_string())
        } else {
            fs::write(self.group.join("cpu.max"), format!("{quota_us} {PERIOD_US}"))
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
