//! The control group of this process: how long it was kept from running, as Linux counts it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// `os.cgroup` of `_nodes/stats`; none where this process has no group that counts.
pub(super) fn stats() -> Option<Value> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let (group, dir) = group(&own, Path::new(ROOT))?;
    let stat = std::fs::read_to_string(dir.join("cpu.stat")).ok()?;
    Some(json!({ "cpu": { "control_group": group, "stat": counts(&stat)? } }))
}

/// The group that rules the CPU, and its directory. A line is `number:controllers:path`; version 2 has one hierarchy,
/// number 0, without controllers in it.
fn group<'a>(own: &'a str, root: &Path) -> Option<(&'a str, PathBuf)> {
    let line = |wanted: fn(&str, &str) -> bool| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(number, controllers).then_some((controllers, path))
        })
    };
    let below = |dir: &Path, path: &str| dir.join(path.trim_start_matches('/'));
    if let Some((controllers, path)) = line(|_, all| all.split(',').any(|one| one == "cpu")) {
        let mounted = root.join(controllers);
        let dir = if mounted.is_dir() { mounted } else { root.join("cpu") };
        return Some((path, below(&dir, path)));
    }
    let (_, path) = line(|number, all| number == "0" && all.is_empty())?;
    Some((path, below(root, path)))
}

/// Version 1 counts nanoseconds as `throttled_time`, version 2 microseconds as `throttled_usec`.
fn counts(stat: &str) -> Option<Value> {
    let at = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.trim().parse::<u64>().ok())
    };
    let nanos =
        at("throttled_time").or_else(|| Some(at("throttled_usec")?.saturating_mul(1000)))?;
    Some(json!({
        "number_of_elapsed_periods": at("nr_periods"),
        "number_of_times_throttled": at("nr_throttled"),
        "time_throttled_nanos": nanos,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_and_counted() {
        let root = Path::new("/none");
        let first = "9:name=systemd:/x\n4:cpu,cpuacct:/box/a\n1:memory:/m\n";
        let found = group(first, root);
        assert_eq!(found, Some(("/box/a", PathBuf::from("/none/cpu/box/a"))));
        let second = group("0::/user.slice/a\n", root);
        assert_eq!(second, Some(("/user.slice/a", PathBuf::from("/none/user.slice/a"))));
        assert_eq!(group("1:memory:/m\nnonsense\n", root), None);
        let first = counts("nr_periods 42\nnr_throttled 39\nthrottled_time 2763299386\n").unwrap();
        assert_eq!(first["time_throttled_nanos"], 2_763_299_386_u64);
        let second =
            counts("usage_usec 5\nnr_periods 4\nnr_throttled 3\nthrottled_usec 7\n").unwrap();
        assert_eq!(
            (&second["time_throttled_nanos"], &second["number_of_times_throttled"]),
            (&7000.into(), &3.into())
        );
        assert_eq!(counts("usage_usec 5\n"), None, "the root group counts nothing");
    }
}
