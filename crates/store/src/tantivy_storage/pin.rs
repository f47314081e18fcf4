//! A commit held for a recovery: hard links of its files in a directory of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use world::{Env, Work};

use super::{commits, files};
use crate::commit::{Commit, FileMeta};
use crate::error::io;
use crate::{Chunk, Result};

/// Held files; the hard links are removed on drop.
pub(crate) struct FilePin {
    dir: PathBuf,
    open: RefCell<BTreeMap<Arc<str>, Arc<File>>>,
}

impl FilePin {
    pub(super) fn take(copy: &Path, commit: &Commit, session: &str) -> Result<Self> {
        let dir = copy.join(commits::SNAPSHOTS).join(session);
        files::fresh_dir(&dir)?;
        // What was linked before one fails goes with it.
        let pin = FilePin { dir, open: RefCell::default() };
        let from = commits::dir(copy, commit.generation);
        for file in commit.files.iter() {
            files::link(&from.join(&*file.name), &pin.dir.join(&*file.name))?;
        }
        Ok(pin)
    }

    pub(crate) async fn read(
        &self,
        env: &Env,
        meta: &FileMeta,
        offset: u64,
        len: u64,
    ) -> Result<Chunk> {
        let path = self.dir.join(&*meta.name);
        let open = self.open.borrow().get(&meta.name).cloned();
        let (file, bytes) = env
            .work(Work::DiskRead { bytes: len }, move || {
                let file = match open {
                    Some(file) => file,
                    None => Arc::new(File::open(&path).map_err(io("open", &path))?),
                };
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, offset).map_err(io("read", &path))?;
                Ok((file, Bytes::from(bytes)))
            })
            .await?;
        self.open.borrow_mut().insert(meta.name.clone(), file);
        Ok(Chunk::Bytes(bytes))
    }

    pub(crate) async fn hash(&self, env: &Env, meta: &FileMeta) -> Result<u64> {
        let path = self.dir.join(&*meta.name);
        env.work(Work::Hash { bytes: meta.len }, move || files::hash_file(&path)).await
    }
}

impl Drop for FilePin {
    fn drop(&mut self) {
        // What cannot be removed now is swept at the next open.
        let _ = files::remove_dir(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_that_fails_leaves_no_links() {
        let copy = tempfile::tempdir().unwrap();
        let meta = |name: &str| FileMeta { name: name.into(), len: 1, xxh3: 0 };
        let listed = [meta("there"), meta("gone")];
        let commit = Commit { generation: 1, files: listed.into(), ..Commit::default() };
        let dir = commits::dir(copy.path(), 1);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("there"), "x").unwrap();
        assert!(FilePin::take(copy.path(), &commit, "session").is_err());
        let snapshots = copy.path().join(commits::SNAPSHOTS);
        assert!(files::names(&snapshots).unwrap().is_empty());
    }
}
