//! A small file system of a test's own.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory, mounted until this is dropped.
pub struct SmallDisk {
    mount: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many bytes on this directory. Needs [`crate::tools::MOUNT`].
    pub fn mount(directory: &Path, bytes: u64) -> io::Result<SmallDisk> {
        let size = format!("size={bytes}");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], directory)?;
        Ok(SmallDisk { mount: directory.to_owned() })
    }

    /// Writes a file of its own until nothing more fits.
    pub fn fill(&self) -> io::Result<()> {
        let mut ballast = std::fs::File::create(self.mount.join("ballast"))?;
        loop {
            match ballast.write(&[0; 4096]) {
                Ok(_) => (),
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes it as large as this.
    pub fn resize(&self, bytes: u64) -> io::Result<()> {
        mount(&["-o", &format!("remount,size={bytes}")], &self.mount)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Where it stays mounted, removing the directory fails, and says so.
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

fn mount(arguments: &[&str], directory: &Path) -> io::Result<()> {
    let done = Command::new("mount").args(arguments).arg(directory).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}
