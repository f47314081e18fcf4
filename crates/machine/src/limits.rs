//! What this process may take: open files, memory, room on a disk.

use std::path::Path;

/// What others than the superuser may still write there, bytes; none where the system does not tell.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    disk_bytes(dir).map(|(_, free)| free)
}

/// How large the disk is that this is on, and what others than the superuser may still write there, bytes; none where
/// the system does not tell.
pub fn disk_bytes(dir: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some((stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}

/// How many files and connections this process may hold open: the soft limit; none where the system does not tell.
pub fn open_files_max() -> Option<u64> {
    open_files_in(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

/// A line of proc(5)'s limits: `Max open files            1024                 1048576              files`.
fn open_files_in(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The memory that a container leaves to this process, bytes; none where nothing limits it.
pub fn memory_limit_bytes() -> Option<u64> {
    // Within a container its own group stands there. The first version says 2^63 where there is no limit.
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok())?;
    text.trim().parse().ok().filter(|bytes: &u64| *bytes < 1 << 60)
}

/// The memory that this process may still take, bytes: what the system has free, and no more than its container leaves;
/// none where the system does not tell.
pub fn memory_free_bytes() -> Option<u64> {
    let free = available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let read =
        |files: [&str; 2]| files.into_iter().find_map(|file| std::fs::read_to_string(file).ok());
    let used =
        read(["/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"]);
    let used = used.and_then(|text| text.trim().parse::<u64>().ok());
    let stat = read(["/sys/fs/cgroup/memory.stat", "/sys/fs/cgroup/memory/memory.stat"]);
    let cached = stat.and_then(|stat| cached_in(&stat)).unwrap_or(0);
    let left = |(limit, used): (u64, u64)| limit.saturating_sub(used.saturating_sub(cached));
    let left = memory_limit_bytes().zip(used).map(left);
    Some(left.map_or(free, |left| left.min(free)))
}

/// Files that a control group has read or written and does not use now, which count as used and go as soon as somebody
/// needs room: `inactive_file 7516192768`, of the first version with the groups below it as `total_inactive_file`.
fn cached_in(stat: &str) -> Option<u64> {
    let of = |name: &str| {
        let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
        fields.find_map(|(field, bytes)| (field == name).then_some(bytes))
    };
    of("total_inactive_file").or_else(|| of("inactive_file"))?.trim().parse().ok()
}

/// A line of proc(5)'s meminfo, in KiB: `MemAvailable:   22016504 kB`.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let of = |soft: &str| {
            open_files_in(&format!("Max cpu time  1 2 s\nMax open files  {soft}  9 files\n"))
        };
        assert_eq!(of("1024"), Some(1024));
        assert_eq!(of("unlimited"), Some(u64::MAX));
        assert_eq!(of("?"), None);
        assert_eq!(open_files_in(""), None);
        let meminfo = "MemTotal:       25000000 kB\nMemAvailable:   22016504 kB\n";
        assert_eq!(available_in(meminfo), Some(22_016_504 * 1024));
        assert_eq!(available_in("MemTotal: 1 kB"), None);
    }

    #[test]
    fn files_that_a_group_keeps_in_memory_and_does_not_use_are_no_use_of_it() {
        assert_eq!(cached_in("anon 5\nactive_file 6\ninactive_file 7516192768\n"), Some(7 << 30));
        assert_eq!(cached_in("inactive_file 7\ntotal_inactive_file 8\n"), Some(8));
        assert_eq!(cached_in("anon 5\n"), None);
    }

    #[test]
    fn a_directory_that_there_is_not_has_no_room() {
        assert!(free_bytes(&std::env::temp_dir()).is_some());
        assert_eq!(free_bytes(Path::new("/no/such/place")), None);
    }
}
