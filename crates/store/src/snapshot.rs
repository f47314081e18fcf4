//! A commit held for a recovery that reads its files: the source's side.

use std::path::PathBuf;
use std::rc::Rc;

use world::{Env, LocalFuture};

use crate::synthetic::SyntheticPin;
use crate::tantivy_storage::FilePin;
use crate::{Chunk, Commit, Error, Result};

/// A held commit. Cheap to clone; its files are released with the last clone.
#[derive(Clone)]
pub struct Snapshot {
    inner: Rc<Inner>,
}

struct Inner {
    env: Env,
    dir: PathBuf,
    commit: Commit,
    pin: Pin,
}

/// What holds the files.
pub(crate) enum Pin {
    Files(FilePin),
    Synthetic(SyntheticPin),
}

impl Snapshot {
    pub(crate) fn new(env: Env, dir: PathBuf, commit: Commit, pin: Pin) -> Self {
        Snapshot { inner: Rc::new(Inner { env, dir, commit, pin }) }
    }

    /// The commit.
    pub fn commit(&self) -> &Commit {
        &self.inner.commit
    }

    /// Reads up to `len` bytes of file number `file` of the commit from `offset` on; fewer at its end.
    pub fn read_chunk(&self, file: usize, offset: u64, len: u64) -> LocalFuture<'_, Result<Chunk>> {
        Box::pin(async move {
            let inner = &*self.inner;
            let meta = inner.commit.files.get(file).filter(|meta| offset <= meta.len);
            let meta = meta.ok_or_else(|| Error::OutOfRange {
                dir: inner.dir.clone(),
                file,
                offset,
                end: offset.saturating_add(len),
            })?;
            let len = len.min(meta.len - offset);
            match &inner.pin {
                Pin::Files(pin) => pin.read(&inner.env, meta, offset, len).await,
                Pin::Synthetic(pin) => pin.read(&inner.env, meta, offset, len).await,
            }
        })
    }

    /// Reads file number `file` whole and compares its hash with the commit's. [`Error::SourceDamaged`] if
    /// they differ: such a file must not be copied.
    pub fn verify_file(&self, file: usize) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let inner = &*self.inner;
            let meta = inner.commit.files.get(file).ok_or_else(|| Error::OutOfRange {
                dir: inner.dir.clone(),
                file,
                offset: 0,
                end: 0,
            })?;
            let found = match &inner.pin {
                Pin::Files(pin) => pin.hash(&inner.env, meta).await?,
                Pin::Synthetic(pin) => pin.hash(&inner.env, meta).await?,
            };
            if found == meta.xxh3 {
                return Ok(());
            }
            Err(Error::SourceDamaged { file: meta.name.to_string(), expected: meta.xxh3, found })
        })
    }
}
