//! Receiving files in the virtual world.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use world::{Env, VirtualDisk, Work};

use super::{Disk, Noted, open_disk, space};
use crate::checkpoint::LocalCheckpointTracker;
use crate::commit::{Commit, FileMeta, StoredCommit};
use crate::error::FirstFailure;
use crate::virtual_files::{META, SegmentList};
use crate::{Chunk, Error, Result};

/// As on real files: progress is noted each time this much was added, and a kill goes back to the last note.
const NOTE_BYTES: u64 = 8 << 20;

/// One file on its way.
#[derive(Default)]
struct Receiving {
    /// Which bytes are here, as a checkpoint over bytes.
    bytes: LocalCheckpointTracker,
    /// The list of segments, where this is the file that has it.
    segments: Option<SegmentList>,
    damaged: bool,
    noted: u64,
    finished: bool,
}

impl Receiving {
    fn prefix(&self) -> u64 {
        self.bytes.checkpoint().map_or(0, |last| last + 1)
    }

    fn kept(segments: Option<SegmentList>, prefix: u64, finished: bool) -> Self {
        let bytes = LocalCheckpointTracker::new(prefix.checked_sub(1), None);
        Receiving { bytes, segments, damaged: false, noted: prefix, finished }
    }
}

pub(crate) struct SyntheticIncoming {
    env: Env,
    dir: PathBuf,
    disk: Rc<RefCell<Disk>>,
    metas: Arc<[FileMeta]>,
    files: Vec<RefCell<Receiving>>,
    holder: RefCell<Option<Rc<()>>>,
}

impl SyntheticIncoming {
    pub(crate) async fn begin(
        env: &Env,
        disk: &VirtualDisk,
        dir: &Path,
        commit: &Commit,
    ) -> Result<Self> {
        let disk = open_disk(disk, dir);
        let holder = disk.borrow_mut().hold(dir)?;
        disk.borrow_mut().incoming.retain(|_, noted| commit.files.contains(&noted.meta));
        let mut files = Vec::new();
        for meta in commit.files.iter() {
            let kept = keep(&disk.borrow(), meta);
            let bytes = kept.prefix();
            env.work(Work::DiskRead { bytes }, || ()).await;
            env.work(Work::Hash { bytes }, || ()).await;
            files.push(RefCell::new(kept));
        }
        Ok(SyntheticIncoming {
            env: env.clone(),
            dir: dir.to_owned(),
            disk,
            metas: commit.files.clone(),
            files,
            holder: RefCell::new(Some(holder)),
        })
    }

    pub(crate) fn have(&self, file: usize) -> u64 {
        self.files[file].borrow().prefix()
    }

    pub(crate) fn is_finished(&self, file: usize) -> bool {
        self.files[file].borrow().finished
    }

    pub(crate) async fn write(&self, file: usize, offset: u64, chunk: Chunk) -> Result<()> {
        let Chunk::Synthetic(chunk) = chunk else {
            let first = FirstFailure::new("it was sent real bytes in the virtual world");
            return Err(first.error(&self.dir));
        };
        let end = offset + chunk.len;
        if self.is_finished(file) || end <= self.have(file) {
            return Ok(());
        }
        let path = self.dir.join("incoming").join(&*self.metas[file].name);
        space::take(&self.env, &path, chunk.len)?;
        self.env.work(Work::DiskWrite { bytes: chunk.len }, || ()).await;
        self.env.work(Work::Hash { bytes: chunk.len }, || ()).await;
        let meta = &self.metas[file];
        let mut state = self.files[file].borrow_mut();
        state.damaged |= chunk.damaged || chunk.xxh3 != meta.xxh3 || chunk.offset != offset;
        state.bytes.mark_range(offset..end);
        state.segments = state.segments.take().or(chunk.segments);
        if !state.damaged && state.prefix() >= state.noted + NOTE_BYTES {
            state.noted = state.prefix();
            self.note(meta, &state);
        }
        Ok(())
    }

    fn note(&self, meta: &FileMeta, state: &Receiving) {
        let (prefix, segments) = (state.prefix(), state.segments.clone());
        let noted = Noted { meta: meta.clone(), prefix, segments };
        self.disk.borrow_mut().incoming.insert(meta.name.clone(), noted);
    }

    pub(crate) async fn finish(&self, file: usize) -> Result<()> {
        let meta = &self.metas[file];
        if self.is_finished(file) {
            return Ok(());
        }
        if self.have(file) == meta.len {
            self.env.work(Work::DiskSync, || ()).await;
        }
        let mut state = self.files[file].borrow_mut();
        let have = state.prefix();
        if have < meta.len {
            let file = meta.name.to_string();
            return Err(Error::Incomplete { file, have, len: meta.len });
        }
        if state.damaged {
            *state = Receiving::default();
            self.disk.borrow_mut().incoming.remove(&meta.name);
            let (file, expected) = (meta.name.to_string(), meta.xxh3);
            return Err(Error::ReceivedDamaged { file, expected, found: !expected });
        }
        state.finished = true;
        self.note(meta, &state);
        Ok(())
    }

    pub(crate) async fn install(&self, commit: &Commit) -> Result<()> {
        self.env.work(Work::DiskSync, || ()).await;
        let mut disk = self.disk.borrow_mut();
        disk.segments =
            self.files.iter().find_map(|file| file.borrow().segments.clone()).unwrap_or_default();
        disk.damaged.forget(None);
        let older = disk.stored.as_ref().map_or(0, |stored| stored.commit.generation + 1);
        let generation = commit.generation.max(older);
        let commit = Commit { generation, ..commit.clone() };
        disk.stored = Some(StoredCommit::received(commit, 1));
        disk.global_checkpoint = None;
        disk.log_remove_where(|_| true);
        disk.log_damaged = false;
        disk.incoming.clear();
        self.holder.take();
        Ok(())
    }
}

/// What of one file can be kept: what was noted of it, or else the same file of an older copy.
fn keep(disk: &Disk, meta: &FileMeta) -> Receiving {
    if let Some(noted) = disk.incoming.get(&meta.name) {
        return Receiving::kept(noted.segments.clone(), noted.prefix, noted.prefix == meta.len);
    }
    let older = disk.stored.as_ref().is_some_and(|stored| stored.commit.files.contains(meta));
    if !older || disk.damaged.xxh3(meta) != meta.xxh3 {
        return Receiving::default();
    }
    let segments = (*meta.name == *META).then(|| disk.segments.clone());
    Receiving::kept(segments, meta.len, true)
}
