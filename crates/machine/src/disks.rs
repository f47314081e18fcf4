//! Disks of a process's own whose rates we set.

use crate::ask::ask;
use crate::tool::Tool;

/// Disks of our own: a loop device over a file system in user space.
pub static OWN_DISKS: Tool = Tool {
    name: "disks of our own",
    look: || {
        ask("unshare", &["--mount", "sh", "-c", TRY])?;
        Ok("FUSE, loop devices and ext4 work".to_owned())
    },
    remedy: "run it as root on Linux with FUSE and loop devices, with util-linux, mount and e2fsprogs installed; in a \
             container, with --privileged",
};

/// Opens FUSE, and mounts a file as a disk where it goes with this process. What is written later can be limited since
/// Linux 6.2.
const TRY: &str = r#"
exec 3<> /dev/fuse || exit 1
place=${TMPDIR:-/tmp}
mount -t tmpfs tmpfs "$place" && mkdir "$place/disk" && truncate -s 4M "$place/narrows-look" || exit 1
mkfs.ext4 -q -F -O ^has_journal "$place/narrows-look" || exit 1
mount -o loop "$place/narrows-look" "$place/disk" || exit 1
nsenter --version > /dev/null || exit 1
limit=/sys/class/bdi/$(mountpoint -d "$place/disk")/strict_limit
[ -w "$limit" ] && exit 0
echo "the kernel has no $limit" >&2
exit 1"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_leaves_no_loop_device_in_use() {
        let in_use = || {
            let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
            let image = |device: std::fs::DirEntry| {
                std::fs::read_to_string(device.path().join("loop/backing_file")).ok()
            };
            devices.filter_map(image).any(|image| image.trim_end().ends_with("/narrows-look"))
        };
        let _ = OWN_DISKS.look();
        // Somebody else on this machine may be looking just now.
        while in_use() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
