//! A commit of the virtual world, held for a recovery.

use std::rc::Rc;

use world::{Env, Work};

use crate::chunk::{Chunk, SyntheticChunk};
use crate::commit::FileMeta;
use crate::error::Result;
use crate::virtual_files::{Damaged, META, SegmentList};

pub(crate) struct SyntheticPin {
    pub(super) segments: SegmentList,
    pub(super) damaged: Rc<Damaged>,
}

impl SyntheticPin {
    pub(crate) async fn read(
        &self,
        env: &Env,
        meta: &FileMeta,
        offset: u64,
        len: u64,
    ) -> Result<Chunk> {
        env.work(Work::DiskRead { bytes: len }, || ()).await;
        let (xxh3, is_list) = (self.damaged.xxh3(meta), &*meta.name == META);
        let segments = is_list.then(|| self.segments.clone());
        Ok(Chunk::Synthetic(SyntheticChunk { xxh3, segments, offset, len, damaged: false }))
    }

    pub(crate) async fn hash(&self, env: &Env, meta: &FileMeta) -> Result<u64> {
        env.work(Work::DiskRead { bytes: meta.len }, || ()).await;
        env.work(Work::Hash { bytes: meta.len }, || ()).await;
        Ok(self.damaged.xxh3(meta))
    }
}
