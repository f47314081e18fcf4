//! A commit of the virtual world, held for a recovery.

use std::collections::BTreeMap;
use std::rc::Rc;

use world::{Env, Work};

use crate::chunk::{Chunk, SyntheticChunk};
use crate::commit::FileMeta;
use crate::error::Result;
use crate::virtual_files::FileContent;

/// Held files.
pub(crate) struct SyntheticPin {
    files: BTreeMap<String, Rc<FileContent>>,
}

impl SyntheticPin {
    pub(super) fn new(files: BTreeMap<String, Rc<FileContent>>) -> Self {
        SyntheticPin { files }
    }

    fn content(&self, meta: &FileMeta) -> Rc<FileContent> {
        self.files[&meta.name].clone()
    }

    pub(crate) async fn read(
        &self,
        env: &Env,
        meta: &FileMeta,
        offset: u64,
        len: u64,
    ) -> Result<Chunk> {
        env.work(Work::DiskRead { bytes: len }, || ()).await;
        let content = self.content(meta);
        Ok(Chunk::Synthetic(SyntheticChunk { content, offset, len, damaged: false }))
    }

    pub(crate) async fn hash(&self, env: &Env, meta: &FileMeta) -> Result<u64> {
        env.work(Work::DiskRead { bytes: meta.len }, || ()).await;
        env.work(Work::Hash { bytes: meta.len }, || ()).await;
        Ok(self.content(meta).xxh3())
    }
}
