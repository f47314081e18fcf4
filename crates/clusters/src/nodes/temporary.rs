//! A temporary directory for nodes, which the last process that uses it removes.
//!
//! The runner creates it, with a marker file in it, and removes it at an orderly end. If the runner is killed, its
//! nodes remove it: each process holds a shared lock on the marker, which the system releases however the process ends,
//! and the last process gets the exclusive lock. If all of them were killed at once, the next runner removes what is
//! left. Only directories with such a marker are ever removed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};

use crate::{Error, Result};

/// How names of such directories begin.
const PREFIX: &str = "narrows-";
/// Name of the marker file.
const MARKER: &str = "narrows-temporary";
/// What stands in it.
const TEXT: &str = "Made by narrows for one run, which removes this directory at its end.\n";
/// With less room, nodes would fail in words of their own.
const FREE_BYTES_MIN: u64 = 16 << 20;
/// How long the last process waits for the lock of a runner that is just being killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The runner's side: removes the directory when it is dropped. Of a runner that is killed the last node removes it, or
/// the next runner.
pub struct TemporaryDir {
    dir: tempfile::TempDir,
    /// Its lock keeps nodes from removing the directory.
    _marker: File,
}

impl TemporaryDir {
    /// A fresh directory where the system keeps temporary ones. Fails if none can be made there, or there is no room.
    pub fn make() -> Result<TemporaryDir> {
        let above = std::env::temp_dir();
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::StorageFull => Error::NoRoom { path: above.clone() },
            _ => Error::Io { what: "make a directory in", path: above.clone(), source },
        };
        sweep(&above);
        if machine::free_bytes(&above).is_some_and(|free| free < FREE_BYTES_MIN) {
            return Err(Error::NoRoom { path: above });
        }
        TemporaryDir::fresh_in(&above).map_err(io)
    }

    /// A fresh directory in another one, where those that were left behind are removed as well. Fails if none can be
    /// made there.
    pub fn make_in(above: &Path) -> io::Result<TemporaryDir> {
        sweep(above);
        TemporaryDir::fresh_in(above)
    }

    fn fresh_in(above: &Path) -> io::Result<TemporaryDir> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(above)?;
        let marker = make_marker(dir.path())?;
        Ok(TemporaryDir { dir, _marker: marker })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn make_marker(dir: &Path) -> io::Result<File> {
    // It is locked before it gets its name, or another runner could take the directory for one that was left behind.
    let fresh = dir.join("marker.new");
    let mut marker = File::create_new(&fresh)?;
    marker.write_all(TEXT.as_bytes())?;
    // Where the file system has no locks, nobody gets one, and so takes it for left behind.
    let _ = marker.lock_shared();
    fs::rename(&fresh, dir.join(MARKER))?;
    Ok(marker)
}

/// Removes directories whose runner and nodes have all ended, as far as that is possible.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().filter_map(Result::ok) {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // A symbolic link may lead to somebody else's directory.
        if named
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(left) = TemporaryUse::begin(&entry.path())
        {
            let _ = left.end_within(Duration::ZERO);
        }
    }
}

/// A node's side: its use of a temporary directory.
#[derive(Debug)]
pub struct TemporaryUse {
    dir: PathBuf,
    marker: File,
}

impl TemporaryUse {
    /// Begins to use a directory that a runner has created. Fails if it has no marker of a runner, or is being removed.
    pub fn begin(dir: &Path) -> io::Result<TemporaryUse> {
        // Everybody may make such a directory where temporary ones are: whoever opens a pipe in it is not to wait for
        // its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let marker = File::from(open(dir.join(MARKER), flags, Mode::empty())?);
        let mut text = String::new();
        (&marker).take(TEXT.len() as u64 + 1).read_to_string(&mut text)?;
        if text != TEXT {
            let text = format!("{} holds no marker of narrows", dir.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        marker.try_lock_shared()?;
        Ok(TemporaryUse { dir: dir.to_owned(), marker })
    }

    /// Ends the use after the runner has vanished. The last process removes the directory and gets `true`. Waits up to
    /// two seconds for the others to end.
    pub fn end_without_runner(self) -> io::Result<bool> {
        self.end_within(PATIENCE)
    }

    fn end_within(self, patience: Duration) -> io::Result<bool> {
        // The shared lock is released first: two processes that upgraded theirs at once could both be refused.
        self.marker.unlock()?;
        let give_up = Instant::now() + patience;
        loop {
            match self.marker.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        // Another process was the last and has removed it meanwhile.
        if !self.dir.join(MARKER).is_file() {
            return Ok(false);
        }
        fs::remove_dir_all(&self.dir)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_removes_it() {
        let made = TemporaryDir::make().unwrap();
        let dir = made.path().to_owned();
        fs::create_dir(dir.join("node")).unwrap();
        let (first, second) =
            (TemporaryUse::begin(&dir).unwrap(), TemporaryUse::begin(&dir).unwrap());
        // As a killed runner leaves it: no lock, nothing removed.
        let TemporaryDir { dir: kept, _marker: marker } = made;
        drop(marker);
        let _ = kept.keep();
        let waiting = std::thread::spawn(|| first.end_without_runner().unwrap());
        let last = second.end_without_runner().unwrap();
        assert!(waiting.join().unwrap() != last, "one of them, and only one, removes it");
        assert!(!dir.exists());
    }

    #[test]
    fn what_nobody_uses_any_more_is_swept() {
        let above = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let dir = above.path().join(name);
            fs::create_dir(&dir).unwrap();
            (make_marker(&dir).unwrap(), dir)
        };
        let (left, used, other) = (make("narrows-left"), make("narrows-used"), make("other"));
        let unmarked = above.path().join("narrows-unmarked");
        fs::create_dir(&unmarked).unwrap();
        let linked = above.path().join("narrows-linked");
        std::os::unix::fs::symlink(&other.1, &linked).unwrap();
        drop((left.0, other.0));
        let fresh = TemporaryDir::make_in(above.path()).unwrap();
        assert!(!left.1.exists() && fresh.path().starts_with(above.path()));
        assert!(used.1.exists() && other.1.exists() && unmarked.exists() && linked.exists());
    }

    #[test]
    fn stays_while_its_runner_lives() {
        let made = TemporaryDir::make().unwrap();
        let dir = made.path().to_owned();
        let short = Duration::from_millis(30);
        assert!(!TemporaryUse::begin(&dir).unwrap().end_within(short).unwrap());
        assert!(dir.exists());
        drop(made);
        assert!(!dir.exists());
    }

    #[test]
    fn other_directories_are_never_touched() {
        let dir = tempfile::tempdir().unwrap();
        assert!(TemporaryUse::begin(dir.path()).is_err());
        fs::write(dir.path().join(MARKER), "something else").unwrap();
        let refused = TemporaryUse::begin(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("no marker"), "{refused}");
        fs::write(dir.path().join(MARKER), TEXT.repeat(2)).unwrap();
        assert!(TemporaryUse::begin(dir.path()).is_err());
        assert!(dir.path().exists());
    }

    /// A stranger's pipe would have every run on the machine wait for ever.
    #[test]
    fn a_marker_that_is_a_pipe_or_a_link_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join(MARKER);
        let made = std::process::Command::new("mkfifo").arg(&marker).status().unwrap();
        assert!(made.success());
        assert!(TemporaryUse::begin(dir.path()).is_err());
        fs::remove_file(&marker).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, TEXT).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &marker).unwrap();
        assert!(TemporaryUse::begin(dir.path()).is_err());
    }
}
