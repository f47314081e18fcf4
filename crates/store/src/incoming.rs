//! Files being received until they become a copy: the target's side of a recovery.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use world::{Env, LocalFuture};

use query::Mapping;

use crate::commit::safe_name;
use crate::patience::patiently;
use crate::synthetic::SyntheticIncoming;
use crate::tantivy_storage::FileIncoming;
use crate::to_its_end::to_its_end;
use crate::{Chunk, Commit, Error, Options, Result, Shard};

/// A commit being received into `dir/incoming/`. Cheap to clone; all clones are the same reception.
///
/// Whatever ends it, a later [`Incoming::begin`] keeps what was received and checked.
#[derive(Clone)]
pub struct Incoming {
    inner: Rc<Inner>,
}

struct Inner {
    env: Env,
    dir: PathBuf,
    commit: Commit,
    storage: Reception,
}

enum Reception {
    Files(Rc<FileIncoming>),
    Synthetic(SyntheticIncoming),
}

/// Calls the same method of whichever storage there is.
macro_rules! either {
    ($self:expr, $storage:ident => $call:expr) => {
        match &$self.inner.storage {
            Reception::Files($storage) => $call,
            Reception::Synthetic($storage) => $call,
        }
    };
}

impl Incoming {
    /// Begins to receive `commit`, or goes on: files of the same name, length and hash that were received before are
    /// kept, whole or up to where they were checked, and so are those of an older copy in `dir`. All that is kept is
    /// read and checked again. Waits a while if the copy is still open, for example by a search that began before it
    /// was closed; then it fails with [`Error::InUse`].
    pub fn begin<'a>(
        env: &'a Env,
        dir: &'a Path,
        commit: Commit,
    ) -> LocalFuture<'a, Result<Incoming>> {
        Box::pin(async move {
            if let Some(file) = commit.files.iter().find(|file| !safe_name(&file.name)) {
                return Err(Error::UnsafeName { name: file.name.to_string() });
            }
            let begin = async || match env.virtual_disk() {
                Some(disk) => {
                    let begun = SyntheticIncoming::begin(env, &disk, dir, &commit).await;
                    begun.map(Reception::Synthetic)
                }
                None => {
                    let begun = FileIncoming::begin(env, dir, &commit).await;
                    begun.map(|begun| Reception::Files(Rc::new(begun)))
                }
            };
            let storage = patiently(env, begin).await?;
            let (env, dir) = (env.clone(), dir.to_owned());
            Ok(Incoming { inner: Rc::new(Inner { env, dir, commit, storage }) })
        })
    }

    /// For each file of the commit, in order: its number, and how many of its first bytes are here and
    /// counted into its hash.
    pub fn have(&self) -> Vec<(usize, u64)> {
        let files = 0..self.inner.commit.files.len();
        files.map(|file| (file, either!(self, storage => storage.have(file)))).collect()
    }

    /// Whether file number `file` is complete and checked.
    pub fn is_finished(&self, file: usize) -> bool {
        either!(self, storage => storage.is_finished(file))
    }

    /// Takes a chunk of file number `file`; those of one file may come in any order. The hash is computed as
    /// chunks join, so the file need not be read again.
    pub fn write_chunk(
        &self,
        file: usize,
        offset: u64,
        chunk: Chunk,
    ) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let end = offset.saturating_add(chunk.len());
            let inner = &self.inner;
            if inner.commit.files.get(file).is_none_or(|meta| end > meta.len) {
                return Err(Error::OutOfRange { dir: inner.dir.clone(), file, offset, end });
            }
            let this = self.clone();
            let write = move || async move {
                either!(this, storage => storage.write(file, offset, chunk).await)?;
                // A sync of the virtual disk costs the same whatever it writes: there one at the end suffices.
                if let Reception::Files(storage) = &this.inner.storage
                    && storage.is_sync_due(file)
                {
                    let (env, storage) = (&this.inner.env, storage.clone());
                    let sync = async move { storage.sync_part(file).await };
                    env.spawn("syncs what came", sync).detach();
                }
                Ok(())
            };
            to_its_end(&inner.env, &inner.dir, "write a chunk", write).await
        })
    }

    /// Says that all of file number `file` was written, and makes it durable. [`Error::ReceivedDamaged`] if its hash is
    /// not the commit's: the file is dropped, to be fetched again. [`Error::Incomplete`] if bytes are missing.
    pub fn finish_file(&self, file: usize) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.inner;
            if file >= inner.commit.files.len() {
                return Err(Error::OutOfRange { dir: inner.dir.clone(), file, offset: 0, end: 0 });
            }
            let this = self.clone();
            let finish =
                move || async move { either!(this, storage => storage.finish(file).await) };
            to_its_end(&inner.env, &inner.dir, "finish a file", finish).await
        })
    }

    /// Makes what was received the copy in `dir`, in place of an older one, and opens it. Every file must be
    /// finished. A kill leaves either the copy from before or the new one; operations that the older copy had
    /// logged are gone with it.
    pub fn install(self, mapping: &Mapping, options: Options) -> LocalFuture<'_, Result<Shard>> {
        Box::pin(async move {
            let missing = (0..self.inner.commit.files.len()).find(|file| !self.is_finished(*file));
            if let Some(file) = missing {
                let meta = &self.inner.commit.files[file];
                let have = either!(self, storage => storage.have(file));
                return Err(Error::Incomplete { file: meta.name.to_string(), have, len: meta.len });
            }
            either!(self, storage => storage.install(&self.inner.commit).await)?;
            let options = Options { check_on_startup: false, ..options };
            Shard::open(&self.inner.env, &self.inner.dir, mapping, options).await
        })
    }
}
