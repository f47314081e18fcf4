//! The machine a run takes place on.

use std::path::Path;

use record::Machine;

/// File systems that keep files in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];

/// What is known of this machine; empty and zero where the system does not say.
pub fn describe() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let release = read("/proc/sys/kernel/osrelease");
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Machine {
        os: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned(),
        cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: memory_kib.unwrap_or(0) * 1024,
    }
}

/// The kind of file system that a directory is on, for example `ext4`; "an unknown file system" where the
/// system does not say.
pub fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    file_system_of(&dir, &mounts).unwrap_or("an unknown file system").to_owned()
}

/// Whether the files of a directory are kept in memory, so that nothing is learnt of a disk there.
pub fn is_in_memory(dir: &Path) -> bool {
    IN_MEMORY.contains(&file_system(dir).as_str())
}

/// From lines of proc(5)'s mountinfo: `36 35 98:0 / /mnt rw - ext4 /dev/root rw`. Of mounts on one place the last
/// covers the others.
fn file_system_of<'a>(dir: &Path, mounts: &'a str) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (place, kind) = line.split_once(" - ")?;
        let at = Path::new(place.split(' ').nth(4)?);
        dir.starts_with(at).then_some((at.components().count(), kind.split(' ').next()?))
    };
    mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_counts() {
        let mounts = "22 1 8:1 / / rw shared:1 - ext4 /dev/root rw\n\
                      30 22 0:26 / /tmp rw,nosuid - tmpfs tmpfs rw\n\
                      31 22 0:27 / /tmp rw - xfs /dev/b rw\n\
                      no mount at all\n";
        let of = |dir: &str| file_system_of(Path::new(dir), mounts);
        assert_eq!(of("/home/x"), Some("ext4"));
        assert_eq!(of("/tmp/x"), Some("xfs"));
        assert_eq!(of("/tmpx"), Some("ext4"));
        assert_eq!(file_system_of(Path::new("/"), ""), None);
        let memory = "23 1 0:5 / /dev/shm rw - tmpfs shm rw\n22 1 8:1 / / rw - ext4 /dev/root rw\n";
        let is_memory = |dir: &str| {
            file_system_of(Path::new(dir), memory).is_some_and(|kind| IN_MEMORY.contains(&kind))
        };
        assert_eq!([is_memory("/dev/shm/x"), is_memory("/var/tmp")], [true, false]);
    }
}
