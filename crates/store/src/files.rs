//! Small pieces of file work that several parts of a copy share.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Result, io as io_error};

const READ_BYTES: usize = 1 << 20;

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|file| file.sync_all());
    synced.map_err(io_error("sync directory", dir))
}

/// Replaces a file so that a kill leaves either the old or the new one, and the new one is durable.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let fresh = path.with_extension("tmp");
    write_durably(&fresh, bytes)?;
    fs::rename(&fresh, path).map_err(io_error("replace", path))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Writes a file whose name becomes durable with its directory.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io_error("write", path))
}

/// Makes a file that begins so, durably. Where that fails nothing stays of it, if the disk lets us.
pub(crate) fn begin_file(path: &Path, header: &[u8]) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = file.map_err(io_error("create", path))?;
    let begin = || {
        file.write_all_at(header, 0).map_err(io_error("write", path))?;
        file.sync_all().map_err(io_error("sync", path))?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))
    };
    if let Err(error) = begin() {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

pub(crate) fn hash_file(path: &Path) -> Result<u64> {
    let mut file = File::open(path).map_err(io_error("open", path))?;
    let mut hasher = Xxh3::new();
    hash_prefix(&mut file, u64::MAX, &mut hasher).map_err(io_error("read", path))?;
    Ok(hasher.digest())
}

/// Feeds up to `len` bytes from where `file` stands; returns how many there were.
pub(crate) fn hash_prefix(file: &mut File, len: u64, hasher: &mut Xxh3) -> io::Result<u64> {
    let mut buffer = vec![0; READ_BYTES.min(usize::try_from(len).unwrap_or(READ_BYTES)).max(1)];
    let mut done = 0;
    while done < len {
        let want = buffer.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
        match file.read(&mut buffer[..want])? {
            0 => break,
            got => {
                hasher.update(&buffer[..got]);
                done += got as u64;
            }
        }
    }
    Ok(done)
}

/// Length of a file; none if it is not there.
pub(crate) fn len_of(path: &Path) -> Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("look at", path)(error)),
    }
}

/// Removes a directory with all in it; nothing if it is not there.
pub(crate) fn remove_dir(dir: &Path) -> Result<()> {
    /// A merge of a handle that was dropped just now may still write there; it can publish nothing any more.
    const ATTEMPTS: usize = 1000;
    for attempt in 1.. {
        match fs::remove_dir_all(dir) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error)
                if error.kind() == io::ErrorKind::DirectoryNotEmpty && attempt < ATTEMPTS =>
            {
                std::thread::yield_now();
            }
            Err(error) => return Err(io_error("remove directory", dir)(error)),
        }
    }
    Ok(())
}

/// Removes a file; nothing if it is not there.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes a directory, and those above it that are missing, with names that are durable: without one, all that is synced
/// in a directory is nowhere after a loss of power. One whose name may not be durable is not left behind: whoever tries
/// again would find it there and rely on it.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    make_dir_with(dir, |_, opened| opened.sync_all())
}

fn make_dir_with(
    dir: &Path,
    mut sync: impl FnMut(&Path, &File) -> io::Result<()>,
) -> io::Result<()> {
    match make_missing(dir, &mut sync) {
        // One above has gone meanwhile, as that of an index goes with its last copy.
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_missing(dir, &mut sync),
        made => made,
    }
}

fn make_missing(
    dir: &Path,
    sync: &mut impl FnMut(&Path, &File) -> io::Result<()>,
) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.is_dir();
    let missing: Vec<&Path> = dir.ancestors().take_while(is_missing).collect();
    for dir in missing.into_iter().rev() {
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let opened = File::open(above)?;
        match fs::create_dir(dir) {
            // Somebody else made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made?,
        }
        if let Err(error) = sync(above, &opened) {
            // It stays where somebody else has put something in it.
            let _ = fs::remove_dir(dir);
            return Err(error);
        }
    }
    Ok(())
}

/// An empty directory, whatever was there. Its name becomes durable with what is published beside it.
pub(crate) fn fresh_dir(dir: &Path) -> Result<()> {
    remove_dir(dir)?;
    fs::create_dir_all(dir).map_err(io_error("create directory", dir))
}

/// The names in a directory, in order; none if it is not there.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("list directory", dir)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io_error("list directory", dir))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Numbers of the entries named `prefix<number>suffix`, ascending.
pub(crate) fn numbered(dir: &Path, prefix: &str, suffix: &str) -> Result<Vec<u64>> {
    let number =
        |name: &String| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse::<u64>().ok();
    let mut numbers: Vec<u64> = names(dir)?.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Hard-links a file, so that it stays while others delete it.
pub(crate) fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to).map_err(io_error("link", from))
}

/// Whether two names lead to the same file on disk.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::metadata(a), fs::metadata(b)), (Ok(a), Ok(b)) if is_same(&a, &b))
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Takes the lock that a file is, which is made where it is missing; it is let go when the handle is dropped, or with
/// the process. None where another has it.
pub fn lock_file(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = File::create(path)?;
        match file.try_lock() {
            Ok(()) => {
                let opened = file.metadata()?;
                if fs::metadata(path).is_ok_and(|named| is_same(&opened, &named)) {
                    return Ok(Some(file));
                }
                // Whoever held it has removed it since it was opened: a lock on it would keep nobody out.
            }
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Takes the lock on a copy's directory.
pub(crate) fn lock_dir(dir: &Path) -> Result<File> {
    let path = dir.join(".lock");
    let locked = lock_file(&path).map_err(io_error("lock", &path))?;
    locked.ok_or_else(|| crate::Error::InUse { dir: dir.to_owned() })
}

/// So often the lock is tried where a thread waits, and others behind it; and how long it waits each time.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Waits a second, on a thread that may wait, until nobody works in a copy's directory, and keeps others out of it.
/// None where it has no lock, as on a full disk, or there is no such directory. Fails where somebody still works there.
pub fn until_free(dir: &Path) -> Result<Option<File>> {
    for _ in 0..TRIES {
        match lock_dir(dir) {
            Err(crate::Error::InUse { .. }) => std::thread::sleep(PAUSE),
            locked => return Ok(locked.ok()),
        }
    }
    Err(crate::Error::InUse { dir: dir.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Makes a directory; answers in which ones names were synced.
    fn synced(dir: &Path) -> Vec<PathBuf> {
        let mut synced = Vec::new();
        let sync = |above: &Path, _: &File| {
            synced.push(above.to_owned());
            Ok(())
        };
        make_dir_with(dir, sync).unwrap();
        assert!(dir.is_dir());
        synced
    }

    #[test]
    fn the_name_of_each_directory_that_was_made_is_synced() {
        let root = tempfile::tempdir().unwrap();
        let indices = root.path().join("indices");
        let index = indices.join("uuid");
        assert_eq!(synced(&index.join("0")), [root.path(), indices.as_path(), index.as_path()]);
        assert_eq!(synced(&index.join("1")), [index.as_path()]);
        assert_eq!(synced(&index.join("1")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_directory_whose_name_could_not_be_synced_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let indices = root.path().join("indices");
        let copy = indices.join("uuid").join("0");
        let failed = make_dir_with(&copy, |above, _| match above == indices {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(indices.is_dir() && !indices.join("uuid").exists());
        assert_eq!(synced(&copy), [indices.clone(), indices.join("uuid")]);
    }

    #[test]
    fn a_directory_is_made_all_the_same_where_one_above_goes_meanwhile() {
        let root = tempfile::tempdir().unwrap();
        let index = root.path().join("uuid");
        let mut goes = true;
        let sync = |_: &Path, _: &File| match std::mem::take(&mut goes) {
            true => fs::remove_dir(&index),
            false => Ok(()),
        };
        make_dir_with(&index.join("0"), sync).unwrap();
        assert!(index.join("0").is_dir() && !goes);
    }

    #[test]
    fn a_lock_that_its_holder_removes_is_held_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (path, is_held) = (dir.path().join(".lock"), AtomicBool::new(false));
        let hold_again_and_again = || {
            for _ in 0..5_000 {
                let Some(lock) = lock_file(&path).unwrap() else { continue };
                assert!(!is_held.swap(true, Ordering::SeqCst), "two hold it");
                std::thread::yield_now();
                is_held.store(false, Ordering::SeqCst);
                fs::remove_file(&path).unwrap();
                drop(lock);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(hold_again_and_again);
            }
        });
    }

    #[test]
    fn a_file_is_no_directory() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        for dir in [file.clone(), file.join("0")] {
            assert!(make_dir(&dir).is_err(), "{}", dir.display());
        }
    }
}
