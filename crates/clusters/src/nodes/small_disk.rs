//! A disk of a node's own that can be filled while the node runs: a file system in memory below its shard copies, which
//! is resized to what is used and what is to be left free.
//!
//! That needs the right to mount. The mount goes with the mount namespace of the process that made it, so nothing is
//! left behind by a process that has one of its own (`unshare --mount`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{Error, Result};

/// Its size while it is not filled: larger than any test needs.
const WHOLE_BYTES: u64 = 2 << 30;

/// How often a full disk is checked for room that its node has made.
const LOOK: Duration = Duration::from_millis(20);

/// The disks of some nodes.
#[derive(Default)]
pub(crate) struct SmallDisks {
    nodes: BTreeSet<String>,
    mounted: BTreeMap<String, PathBuf>,
    full: BTreeMap<String, Full>,
}

impl SmallDisks {
    /// Disks for these nodes, once they start.
    pub(crate) fn of(nodes: BTreeSet<String>) -> SmallDisks {
        SmallDisks { nodes, mounted: BTreeMap::new(), full: BTreeMap::new() }
    }

    /// Gives a node that is about to start its disk at `path`, if it is to have one and has none.
    pub(crate) fn mount(&mut self, target: &'static str, node: &str, path: &Path) -> Result<()> {
        if !self.nodes.contains(node) || self.mounted.contains_key(node) {
            return Ok(());
        }
        std::fs::create_dir_all(path).map_err(|source| Error::Io {
            what: "make",
            path: path.to_owned(),
            source,
        })?;
        let size = format!("size={WHOLE_BYTES}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path))
            .map_err(|why| refused(target, node, why))?;
        self.mounted.insert(node.to_owned(), path.to_owned());
        Ok(())
    }

    /// Leaves `free_bytes` of room, or lifts the limit. Room that the node makes while its disk is full is not given
    /// back to it, as if somebody else filled the disk.
    pub(crate) fn limit(
        &mut self,
        target: &'static str,
        node: &str,
        free_bytes: Option<u64>,
    ) -> Result<()> {
        let Some(path) = self.mounted.get(node) else {
            return Err(refused(target, node, "it has no disk of its own".to_owned()));
        };
        self.full.remove(node);
        let done = match free_bytes {
            None => resize(path, WHOLE_BYTES),
            Some(free) => Full::new(path, free).map(|full| {
                self.full.insert(node.to_owned(), full);
            }),
        };
        done.map_err(|why| refused(target, node, why))
    }

    /// Unmounts them. A disk in use stays until nobody uses it.
    pub(crate) fn clear(&mut self) {
        self.full.clear();
        for path in std::mem::take(&mut self.mounted).into_values() {
            // Where this fails, the mount ends with the last process of the namespace.
            let _ = Command::new("umount").arg("--lazy").arg(path).status();
        }
    }
}

impl Drop for SmallDisks {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Keeps a disk full until it is dropped; the disk keeps its last size.
struct Full {
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Full {
    fn new(path: &Path, free_bytes: u64) -> Result<Full, String> {
        let mut size = shrink(path, free_bytes)?;
        let (stop, stopped) = channel();
        let path = path.to_owned();
        let keep = move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // What fails now is tried again at the next check.
                if used(&path).is_ok_and(|used| used + free_bytes < size) {
                    size = shrink(&path, free_bytes).unwrap_or(size);
                }
            }
        };
        let keeper = std::thread::Builder::new()
            .name("full-disk".to_owned())
            .spawn(keep)
            .map_err(|error| error.to_string())?;
        Ok(Full { stop: Some(stop), keeper: Some(keeper) })
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Resizes a file system to what is used and what is to be left free. Returns its size, bytes.
fn shrink(path: &Path, free_bytes: u64) -> Result<u64, String> {
    let used = || used(path).map_err(|error| error.to_string());
    let mut before = used()?;
    loop {
        let size = (before + free_bytes).max(1);
        let done = resize(path, size);
        // A node that goes on writing may use more than that by now; then the kernel refuses the size.
        let now = used()?;
        if done.is_ok() || now <= before {
            return done.map(|()| size);
        }
        before = now;
    }
}

fn resize(path: &Path, bytes: u64) -> Result<(), String> {
    run(Command::new("mount").args(["-o", &format!("remount,size={bytes}")]).arg(path))
}

/// Used bytes, in whole blocks.
fn used(path: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok((stat.f_blocks - stat.f_bfree) * stat.f_frsize)
}

/// Runs a command; the error is what it wrote.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn refused(target: &'static str, node: &str, why: String) -> Error {
    Error::NoFault { target, what: format!("fill the disk of {node}"), why }
}
