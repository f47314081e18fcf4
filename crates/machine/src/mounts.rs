//! Mounts that only one process and its children see.

use crate::ask::ask;
use crate::tool::Tool;

/// Mounts of a process's own.
pub static OWN_MOUNTS: Tool = Tool {
    name: "mounts of a process's own",
    look: || match own_mounts() {
        Some(arguments) => Ok(format!("unshare {} and mount work", arguments.join(" "))),
        None => Err("this user may not mount a file system, or unshare is missing".to_owned()),
    },
    remedy: "run it as root, with util-linux and mount installed",
};

/// Arguments with which `unshare` gives a process a namespace of mounts in which it may mount a file system; none where
/// this user may not have one. Who is not root is so among its own.
pub fn own_mounts() -> Option<&'static [&'static str]> {
    let ways = [&["--mount"][..], &["--mount", "--user", "--map-root-user"][..]];
    let place = std::env::temp_dir();
    // The mount goes with the process that made it.
    let mount = ["mount", "-t", "tmpfs", "tmpfs", place.to_str()?];
    ways.into_iter().find(|way| ask("unshare", &[*way, &mount[..]].concat()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_leaves_no_mount_behind() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
        let before = mounts();
        let _ = OWN_MOUNTS.look();
        assert_eq!(mounts(), before);
    }
}
