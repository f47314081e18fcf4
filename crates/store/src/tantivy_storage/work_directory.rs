//! The directory that the index library works in. It can be told to refuse writes, which is the only way to end a
//! merge: the library waits for one, however long that takes. It puts the library's list of segments in the order in
//! which their documents were indexed, in which they are searched then: the library knows none.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tantivy::Directory;
use tantivy::columnar::ColumnarReader;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr, footer::Footer,
};
use tantivy::index::SegmentId;

use super::schema::SEQ_NO;
use crate::lock::lock;
use crate::virtual_files::META;

/// A directory. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct WorkDirectory {
    files: MmapDirectory,
    gate: Gate,
    /// Of segments, by the files of their columns.
    first_seq_nos: Arc<Mutex<BTreeMap<PathBuf, u64>>>,
}

/// Whether files may be written.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn pass(&self) -> io::Result<()> {
        match self.0.load(Ordering::Acquire) {
            true => Err(io::Error::other("it was ended, to make room for another mapping")),
            false => Ok(()),
        }
    }
}

impl WorkDirectory {
    pub(super) fn open(dir: &Path) -> tantivy::Result<Self> {
        let files = MmapDirectory::open(dir)?;
        Ok(WorkDirectory { files, gate: Gate::default(), first_seq_nos: Arc::default() })
    }

    /// The least sequence number of a segment. One that cannot be read is the last; whoever opens it tells why.
    pub(super) fn first_seq_no(&self, segment: SegmentId) -> u64 {
        let path = PathBuf::from(format!("{}.fast", segment.uuid_string()));
        if let Some(known) = lock(&self.first_seq_nos).get(&path).copied() {
            return known;
        }
        let Some(found) = self.read_first_seq_no(&path) else { return u64::MAX };
        lock(&self.first_seq_nos).insert(path, found);
        found
    }

    fn read_first_seq_no(&self, path: &Path) -> Option<u64> {
        let (_, columns) = Footer::extract_footer(self.files.open_read(path).ok()?).ok()?;
        let columns = ColumnarReader::open(columns).ok()?.read_columns(SEQ_NO).ok()?;
        Some(columns.first()?.open_u64_lenient().ok()??.min_value())
    }

    /// The library's list of segments, those first whose documents were indexed first.
    fn in_order(&self, list: &[u8]) -> io::Result<Vec<u8>> {
        let mut list: Value = serde_json::from_slice(list)?;
        if let Some(segments) = list.get_mut("segments").and_then(Value::as_array_mut) {
            segments.sort_by_cached_key(|segment| {
                let id = segment["segment_id"].as_str().unwrap_or_default();
                SegmentId::from_uuid_string(id).map_or(u64::MAX, |id| self.first_seq_no(id))
            });
        }
        Ok(serde_json::to_vec(&list)?)
    }

    /// From now on merges fail, those that go on and those that would begin: their segments stay as they are. What is
    /// replaced whole, as the list of segments, is still written: a merge that has all of its segment may end.
    pub(super) fn refuse_writes(&self) {
        self.gate.0.store(true, Ordering::Release);
    }

    pub(super) fn refuses_writes(&self) -> bool {
        self.gate.pass().is_err()
    }
}

impl Directory for WorkDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        lock(&self.first_seq_nos).remove(path);
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let failed = |error| OpenWriteError::wrap_io_error(error, path.to_owned());
        self.gate.pass().map_err(failed)?;
        let file = self.files.open_write(path)?.into_inner();
        let file = file.map_err(|error| failed(error.into_error()))?;
        Ok(BufWriter::new(Box::new(GatedFile { file, gate: self.gate.clone() })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if path == Path::new(META) {
            return self.files.atomic_write(path, &self.in_order(data)?);
        }
        self.files.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.files.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// A file that is being written.
struct GatedFile {
    file: Box<dyn TerminatingWrite + Send + Sync>,
    gate: Gate,
}

impl Write for GatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gate.pass()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for GatedFile {
    fn terminate_ref(&mut self, token: AntiCallToken) -> io::Result<()> {
        self.file.terminate_ref(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_fails_and_what_is_replaced_whole_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let directory = WorkDirectory::open(dir.path()).unwrap();
        let whole = Path::new("whole");
        let mut file = directory.open_write(whole).unwrap();
        file.write_all(b"abc").unwrap();
        file.terminate().unwrap();
        let mut begun = directory.open_write(Path::new("begun")).unwrap();
        assert!(!directory.refuses_writes());
        directory.clone().refuse_writes();
        assert!(directory.refuses_writes());
        begun.write_all(&[0; 100_000]).unwrap_err();
        assert!(directory.open_write(Path::new("other")).is_err());
        directory.atomic_write(Path::new("list"), b"segments").unwrap();
        assert_eq!(directory.atomic_read(Path::new("list")).unwrap(), b"segments");
        assert_eq!(directory.atomic_read(whole).unwrap(), b"abc");
        directory.delete(whole).unwrap();
        assert!(!directory.exists(whole).unwrap());
    }
}
