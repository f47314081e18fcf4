//! A disk of a node's own that can be slowed while the node runs: a loop device over a file that takes as long as a
//! disk of given rates ([`serve_disk`](super::disk_server::serve_disk)), so that the kernel counts the device's time
//! and its bytes.
//!
//! All of it is mounted in a mount namespace of one shell, which the node enters. When both have ended, however they
//! end, the kernel unmounts it and frees the loop device, and the server ends. The server itself is not in that
//! namespace: were it the last one there, its end would wait for writes that it is to serve.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, major, minor};

use super::disk_server::{IMAGE, RATES};
use super::order::Order;
use super::process_fault::ProcessFault;
use crate::fault::{DiskRates, Strain};
use crate::{Error, Result};

/// Goes on in a mount namespace of its own, with the same process id.
const ALONE: &str = r#"exec unshare --mount sh -c "$@""#;

/// `$1` is the directory, `$2` this program, `$3` the disk's file. The file system writes little but what the node
/// does: it has no journal, and its tables are there from the beginning. The kernel's limit to what is written later
/// stays with a loop device, so it is lifted at the end. The shell itself waits for the end of its input: a program
/// that did so would keep the namespace when the shell is killed.
const MAKE: &str = r#"
mkdir -p "$1/disk" "$1/data" && exec 3<> /dev/fuse || exit 1
trap 'umount -l "$1/data" 2> /dev/null; umount -l "$1/disk" 2> /dev/null
[ -n "$limits" ] && echo 0 > "$limits/strict_limit" && echo 100 > "$limits/max_ratio"' EXIT
mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 narrows "$1/disk" || exit 1
nsenter --mount="/proc/$PPID/ns/mnt" "$2" disk <&3 > /dev/null 3>&- &
exec 3>&-
mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=0,nodiscard -N 8192 -m 0 "$1/disk/$3" || exit 1
mount -o loop,noatime "$1/disk/$3" "$1/data" && rmdir "$1/data/lost+found" || exit 1
limits=/sys/class/bdi/$(mountpoint -d "$1/data")
echo done
read -r end"#;

/// `$1` is a file, `$2` how many processes write to it, each 1 MiB after another. They are all of the shell's group.
const WRITE_BESIDE: &str = r#"
dd if=/dev/zero of="$1" bs=1M count=16 2> /dev/null || exit 1
n=0
while [ "$n" -lt "$2" ]; do
  while dd if=/dev/zero of="$1" bs=1M count=16 oflag=direct conv=notrunc; do :; done > /dev/null 2>&1 &
  n=$((n + 1))
done
echo done
cat > /dev/null
trap '' TERM
kill 0
wait
rm -f "$1""#;

/// Dirty bytes that may wait in memory for a slow disk. With fewer, the disk idles between two parts where cores are
/// busy; with more, a small file counts as written before most of it is on the disk.
const WRITTEN_LATER_BYTES: u64 = 2 << 20;

/// A disk, until this is dropped. Whoever uses it has ended by then.
pub struct SlowDisk {
    dir: PathBuf,
    device: (u32, u32),
    /// Above the shell: what is written beside ends before it.
    neighbours: RefCell<Option<ProcessFault>>,
    shell: ProcessFault,
}

impl SlowDisk {
    /// Makes one below a directory of the node's own, as fast as this machine is; `program disk` serves it. Needs
    /// [`machine::OWN_DISKS`]. Fails with a sentence that says what was refused.
    pub fn make(dir: &Path, program: &Path) -> Result<SlowDisk, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let arguments =
            [MAKE.to_owned(), "sh".to_owned(), text(dir), text(program), IMAGE.to_owned()];
        let shell = ProcessFault::begin(ALONE, &arguments)?;
        let (dir, device) = (dir.to_owned(), (0, 0));
        let mut disk = SlowDisk { dir, device, neighbours: RefCell::default(), shell };
        let path = disk.path();
        let metadata =
            fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        disk.device = (major(metadata.dev()), minor(metadata.dev()));
        Ok(disk)
    }

    /// The process that holds it, by its id.
    pub fn holder(&self) -> u32 {
        self.shell.id()
    }

    /// Its file system, as others see it.
    pub fn path(&self) -> PathBuf {
        self.seen("data")
    }

    /// Its device, by the kernel's two numbers.
    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// From now on it has these rates; without, it is as fast as this machine. What is read of a slow disk next comes
    /// from it: the kernel keeps nothing of it. Fails if whoever holds it has ended, or this system does not let us
    /// limit what is written later.
    pub fn set(&self, rates: Option<DiskRates>) -> io::Result<()> {
        let order = Order::Strain(Strain::Disk(rates));
        fs::write(self.seen("disk").join(RATES), order.to_string())?;
        self.limit_written_later(rates.is_some())?;
        if rates.is_some() { forget_cached(&self.path()) } else { Ok(()) }
    }

    fn limit_written_later(&self, limits: bool) -> io::Result<()> {
        let (major, minor) = self.device;
        let write = |name: &str, value: &str| {
            fs::write(format!("/sys/class/bdi/{major}:{minor}/{name}"), value)
        };
        if limits {
            write("max_bytes", &WRITTEN_LATER_BYTES.to_string())?;
            return write("strict_limit", "1");
        }
        write("strict_limit", "0")?;
        write("max_ratio", "100")
    }

    /// From now on so many processes write to it, whatever the node does. Fails with a sentence, if they cannot.
    pub fn write_beside(&self, processes: u32) -> Result<(), String> {
        let mut neighbours = self.neighbours.borrow_mut();
        *neighbours = None;
        if processes > 0 {
            let file = self.path().join("neighbour").to_string_lossy().into_owned();
            *neighbours = Some(ProcessFault::begin(WRITE_BESIDE, &[file, processes.to_string()])?);
        }
        Ok(())
    }

    fn seen(&self, what: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.shell.id()));
        // An absolute path would take the place of what stands before it.
        root.join(self.dir.strip_prefix("/").unwrap_or(&self.dir)).join(what)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // The shell does it, too, if this process is killed; and this one, if the shell was.
        let _ = self.limit_written_later(false);
    }
}

/// Has the kernel keep nothing in memory of the files below a directory, but what is still to be written and what
/// somebody has mapped.
fn forget_cached(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let forgotten = if entry.file_type()?.is_dir() {
            forget_cached(&entry.path())
        } else {
            let whole =
                |file: File| fadvise(file, 0, None, Advice::DontNeed).map_err(io::Error::from);
            File::open(entry.path()).and_then(whole)
        };
        match forgotten {
            // The node has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// The disks of some nodes.
#[derive(Default)]
pub(crate) struct SlowDisks {
    program: PathBuf,
    nodes: BTreeSet<String>,
    made: BTreeMap<String, SlowDisk>,
}

impl SlowDisks {
    /// Disks for these nodes, once they start; `program disk` serves each.
    pub(crate) fn of(program: PathBuf, nodes: BTreeSet<String>) -> SlowDisks {
        SlowDisks { program, nodes, made: BTreeMap::new() }
    }

    /// The mount namespace that a node is to start in, as `nsenter` takes it; its data is below `dir`. None where it
    /// has no disk of its own.
    pub(crate) fn namespace(
        &mut self,
        target: &'static str,
        node: &str,
        dir: &Path,
    ) -> Result<Option<PathBuf>> {
        if !self.nodes.contains(node) {
            return Ok(None);
        }
        let refused = |why| {
            let what = format!("give {node} a disk of its own");
            Error::NoFault { target, what, why }
        };
        let disk = match self.made.entry(node.to_owned()) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(none) => {
                none.insert(SlowDisk::make(dir, &self.program).map_err(refused)?)
            }
        };
        Ok(Some(PathBuf::from(format!("/proc/{}/ns/mnt", disk.holder()))))
    }

    /// The disk of a node that has one of its own.
    pub(crate) fn find(&self, node: &str) -> Option<&SlowDisk> {
        self.made.get(node)
    }

    /// Takes a node's disk away, with all that is on it.
    pub(crate) fn remove(&mut self, node: &str) {
        self.made.remove(node);
    }

    /// Takes all of them away.
    pub(crate) fn clear(&mut self) {
        self.made.clear();
    }
}
