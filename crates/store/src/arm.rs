//! The two ways a copy is kept: real files under `tantivy`, or the virtual world's sizes and hashes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use world::Env;

use query::{FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHits};

use crate::commit::{Commit, FileMeta, StoredCommit};
use crate::plan::{Change, Located};
use crate::synthetic::{self, SyntheticArm};
use crate::tantivy_arm::{self, SearchView, TantivyArm};
use crate::{Digest, GetResult, ListedDocument, Operation, Result, WriteRequest};

/// A copy's storage.
pub(crate) enum Arm {
    Tantivy(TantivyArm),
    Synthetic(SyntheticArm),
}

/// Documents ready to be indexed, by the place of their operation; and what is wrong with the others.
#[derive(Default)]
pub(crate) struct Parsed {
    /// Empty where the arm needs no parsed documents.
    pub(crate) documents: Vec<Option<tantivy::TantivyDocument>>,
    pub(crate) rejected: BTreeMap<usize, String>,
}

impl Parsed {
    /// Keeps the documents at `kept` (ascending), in this order.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        if self.documents.len() != kept.len() && !self.documents.is_empty() {
            self.documents = kept.iter().map(|at| self.documents[*at].take()).collect();
        }
    }
}

/// What opening found on disk.
pub(crate) struct Found {
    pub(crate) stored: StoredCommit,
    pub(crate) torn_bytes: u64,
}

/// What can be counted without reading documents, as of the last refresh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) documents: u64,
    pub(crate) deleted: u64,
    pub(crate) segments: u64,
    pub(crate) store_bytes: u64,
    pub(crate) log_ops: u64,
    pub(crate) log_bytes: u64,
    pub(crate) request_cache_hits: u64,
    pub(crate) request_cache_misses: u64,
}

pub(crate) async fn create(
    env: &Env,
    dir: &Path,
    mapping: &Mapping,
    history_uuid: &str,
) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => synthetic::create(&disk, dir, history_uuid),
        None => tantivy_arm::create(env, dir, mapping, history_uuid).await,
    }
}

pub(crate) async fn open(
    env: &Env,
    dir: &Path,
    mapping: &Mapping,
    verify: bool,
) -> Result<(Arm, Found)> {
    match env.virtual_disk() {
        Some(disk) => {
            let (arm, found) = SyntheticArm::open(env, &disk, dir, verify).await?;
            Ok((Arm::Synthetic(arm), found))
        }
        None => {
            let (arm, found) = TantivyArm::open(env, dir, mapping, verify).await?;
            Ok((Arm::Tantivy(arm), found))
        }
    }
}

pub(crate) async fn committed(env: &Env, dir: &Path) -> Result<Option<Commit>> {
    match env.virtual_disk() {
        Some(disk) => Ok(synthetic::committed(&disk, dir)),
        None => tantivy_arm::committed(env, dir).await,
    }
}

pub(crate) async fn holds_anything(env: &Env, dir: &Path) -> Result<bool> {
    match env.virtual_disk() {
        Some(disk) => Ok(disk.contains(&synthetic::disk_path(dir))),
        None => tantivy_arm::holds_anything(env, dir).await,
    }
}

pub(crate) async fn destroy(env: &Env, dir: &Path) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => {
            disk.remove_under(&synthetic::disk_path(dir));
            Ok(())
        }
        None => tantivy_arm::destroy(env, dir).await,
    }
}

pub(crate) async fn damage(env: &Env, dir: &Path, commit: &Commit, file: &FileMeta) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => {
            synthetic::damage(&disk, dir, &file.name);
            Ok(())
        }
        None => tantivy_arm::damage(env, dir, commit.generation, file).await,
    }
}

/// Calls the same method of whichever arm there is.
macro_rules! either {
    ($self:expr, $arm:ident => $call:expr) => {
        match $self {
            Arm::Tantivy($arm) => $call,
            Arm::Synthetic($arm) => $call,
        }
    };
}

impl Arm {
    pub(crate) fn dir(&self) -> PathBuf {
        either!(self, arm => arm.dir())
    }

    /// Reads the documents of new writes.
    pub(crate) async fn parse(&self, requests: &[WriteRequest]) -> Parsed {
        either!(self, arm => arm.parse(requests).await)
    }

    /// Reads the documents of `changes` that were not read yet.
    pub(crate) async fn parse_missing(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<Parsed> {
        either!(self, arm => arm.parse_missing(ops, changes, parsed).await)
    }

    /// Appends to the log; not durable yet.
    pub(crate) async fn append(&self, ops: &Arc<[Operation]>, bytes: u64) -> Result<()> {
        either!(self, arm => arm.append(ops, bytes).await)
    }

    /// Changes the index; not searchable yet.
    pub(crate) async fn index(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<()> {
        either!(self, arm => arm.index(ops, changes, parsed).await)
    }

    /// Makes the log durable.
    pub(crate) async fn sync(&self) -> Result<()> {
        either!(self, arm => arm.sync().await)
    }

    /// What the refreshed index holds of `ids`, in their order.
    pub(crate) async fn lookup(&self, ids: &[Arc<str>]) -> Result<Vec<Option<Located>>> {
        either!(self, arm => arm.lookup(ids).await)
    }

    /// A document of the refreshed index.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<GetResult>> {
        either!(self, arm => arm.get(id).await)
    }

    /// Searches the refreshed index.
    pub(crate) async fn search(
        &self,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<(ShardHits, SearchView)> {
        either!(self, arm => arm.search(request, limits).await)
    }

    /// Reads the documents of hits: segment and document of each.
    pub(crate) async fn fetch(
        &self,
        view: &SearchView,
        hits: Vec<(u32, u32)>,
        wants_source: bool,
    ) -> Result<Vec<FetchedHit>> {
        either!(self, arm => arm.fetch(view, hits, wants_source).await)
    }

    /// Makes what was indexed searchable.
    pub(crate) async fn refresh(&self) -> Result<()> {
        either!(self, arm => arm.refresh().await)
    }

    /// Indexes by another mapping from now on, while nothing is written, merged or committed.
    pub(crate) async fn set_mapping(&self, mapping: &Mapping) -> Result<()> {
        either!(self, arm => arm.set_mapping(mapping).await)
    }

    /// Documents of the refreshed index with a value in a field; none where that cannot be told.
    pub(crate) async fn count_with(&self, path: &str) -> Result<Option<u64>> {
        either!(self, arm => arm.count_with(path).await)
    }

    pub(crate) async fn digest(&self) -> Result<Digest> {
        either!(self, arm => arm.digest().await)
    }

    pub(crate) async fn list(&self) -> Result<Vec<ListedDocument>> {
        either!(self, arm => arm.list().await)
    }

    pub(crate) async fn force_merge(&self, max_num_segments: usize) -> Result<()> {
        either!(self, arm => arm.force_merge(max_num_segments).await)
    }

    pub(crate) fn counts(&self) -> Counts {
        either!(self, arm => arm.counts())
    }

    /// Operations of the log with these sequence numbers, ascending, each once.
    pub(crate) async fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        either!(self, arm => arm.ops_between(seq_nos, max_ops, max_bytes).await)
    }

    /// First half of a commit, while nothing is written: holds on to the refreshed index's files.
    pub(crate) async fn begin_commit(&self, generation: u64) -> Result<()> {
        either!(self, arm => arm.begin_commit(generation).await)
    }

    /// Second half: hashes what is new and makes it the newest commit, durably. `stored` comes without files.
    pub(crate) async fn finish_commit(
        &self,
        stored: StoredCommit,
        before: &Commit,
    ) -> Result<Commit> {
        either!(self, arm => arm.finish_commit(stored, before).await)
    }

    /// Drops operations below `floor` from the log, where that is cheap.
    pub(crate) async fn trim(&self, floor: u64) -> Result<()> {
        either!(self, arm => arm.trim(floor).await)
    }

    /// Holds the files of a commit for a session.
    pub(crate) async fn pin(&self, commit: &Commit, session: &str) -> Result<crate::snapshot::Pin> {
        either!(self, arm => arm.pin(commit, session).await)
    }
}
