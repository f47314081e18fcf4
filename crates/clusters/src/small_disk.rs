//! A disk of a node's own that can be filled while the node runs: a file system in memory below its copies, which is made as
//! small as what is on it and what is left free.
//!
//! Such a file system needs the right to mount. It goes with the namespace of mounts of the process that made it: whoever
//! wants nothing to be left behind has one of its own (`unshare --mount`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// As large as nobody fills it who does not mean to.
const WHOLE_BYTES: u64 = 2 << 30;

/// The disks of some nodes.
#[derive(Default)]
pub(crate) struct SmallDisks {
    nodes: BTreeSet<String>,
    mounted: BTreeMap<String, PathBuf>,
}

impl SmallDisks {
    /// Disks for these nodes, once they start.
    pub(crate) fn of(nodes: BTreeSet<String>) -> SmallDisks {
        SmallDisks { nodes, mounted: BTreeMap::new() }
    }

    /// Gives a node that is about to start its disk at `path`, if it is to have one and has none.
    pub(crate) fn mount(
        &mut self,
        target: &'static str,
        node: &str,
        path: &Path,
    ) -> Result<(), Error> {
        if !self.nodes.contains(node) || self.mounted.contains_key(node) {
            return Ok(());
        }
        std::fs::create_dir_all(path).map_err(|source| Error::Io {
            what: "make",
            path: path.to_owned(),
            source,
        })?;
        let size = format!("size={WHOLE_BYTES}");
        run(
            target,
            node,
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path),
        )?;
        self.mounted.insert(node.to_owned(), path.to_owned());
        Ok(())
    }

    /// Leaves so many bytes of room, or all that there was.
    pub(crate) fn limit(
        &self,
        target: &'static str,
        node: &str,
        free_bytes: Option<u64>,
    ) -> Result<(), Error> {
        let Some(path) = self.mounted.get(node) else {
            return Err(refused(target, node, "it has no disk of its own".to_owned()));
        };
        let bytes = match free_bytes {
            Some(free) => {
                used(path).map_err(|error| refused(target, node, error.to_string()))? + free
            }
            None => WHOLE_BYTES,
        };
        let size = format!("remount,size={}", bytes.max(1));
        run(target, node, Command::new("mount").args(["-o", &size]).arg(path))
    }

    /// Takes them away. What is busy stays until nobody uses it.
    pub(crate) fn clear(&mut self) {
        for path in std::mem::take(&mut self.mounted).into_values() {
            // Where it fails, the namespace takes it along when its last process ends.
            let _ = Command::new("umount").arg("--lazy").arg(path).status();
        }
    }
}

impl Drop for SmallDisks {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Bytes of whole blocks that are in use.
fn used(path: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok((stat.f_blocks - stat.f_bfree) * stat.f_frsize)
}

fn run(target: &'static str, node: &str, command: &mut Command) -> Result<(), Error> {
    let output = command.output().map_err(|error| refused(target, node, error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(refused(target, node, said))
}

fn refused(target: &'static str, node: &str, why: String) -> Error {
    Error::NoFault { target, what: format!("fill the disk of {node}"), why }
}
