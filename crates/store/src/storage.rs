//! The two kinds of storage of a copy: real files under `tantivy`, or the virtual world's sizes and hashes.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use world::Env;

use query::{FetchRequest, FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHits};

use crate::commit::{Commit, Extent, FileMeta, StoredCommit};
use crate::contents::{Counts, Found, Parsed, Refusals, SearchView};
use crate::plan::{Change, Located};
use crate::snapshot::Pin;
use crate::synthetic::{self, SyntheticStorage};
use crate::tantivy_storage::{self, TantivyStorage};
use crate::{Digest, GetResult, ListedDocument, Operation, Result, SegmentStats, WriteRequest};

/// A copy's storage.
pub(crate) enum ShardStorage {
    Tantivy(TantivyStorage),
    Synthetic(SyntheticStorage),
}

pub(crate) async fn create(
    env: &Env,
    dir: &Path,
    mapping: &Mapping,
    history_uuid: &str,
) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => synthetic::create(&disk, dir, history_uuid),
        None => tantivy_storage::create(env, dir, mapping, history_uuid).await,
    }
}

pub(crate) async fn open(
    env: &Env,
    dir: &Path,
    mapping: &Mapping,
    verify: bool,
) -> Result<(ShardStorage, Found)> {
    match env.virtual_disk() {
        Some(disk) => {
            let (storage, found) = SyntheticStorage::open(env, &disk, dir, mapping, verify).await?;
            Ok((ShardStorage::Synthetic(storage), found))
        }
        None => {
            let (storage, found) = TantivyStorage::open(env, dir, mapping, verify).await?;
            Ok((ShardStorage::Tantivy(storage), found))
        }
    }
}

pub(crate) async fn committed(env: &Env, dir: &Path) -> Result<Option<Commit>> {
    match env.virtual_disk() {
        Some(disk) => Ok(synthetic::committed(&disk, dir)),
        None => tantivy_storage::committed(env, dir).await,
    }
}

pub(crate) async fn extent(env: &Env, dir: &Path) -> Result<Extent> {
    match env.virtual_disk() {
        Some(disk) => Ok(synthetic::extent(&disk, dir)),
        None => tantivy_storage::extent(env, dir).await,
    }
}

pub(crate) async fn holds_operations(env: &Env, dir: &Path) -> Result<bool> {
    match env.virtual_disk() {
        Some(disk) => Ok(synthetic::holds_operations(&disk, dir)),
        None => tantivy_storage::holds_operations(env, dir).await,
    }
}

pub(crate) async fn holds_anything(env: &Env, dir: &Path) -> Result<bool> {
    match env.virtual_disk() {
        Some(disk) => Ok(disk.contains(&synthetic::disk_path(dir))),
        None => tantivy_storage::holds_anything(env, dir).await,
    }
}

pub(crate) async fn destroy(env: &Env, dir: &Path) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => {
            disk.remove_under(&synthetic::disk_path(dir));
            Ok(())
        }
        None => tantivy_storage::destroy(env, dir).await,
    }
}

pub(crate) async fn damage(env: &Env, dir: &Path, commit: &Commit, file: &FileMeta) -> Result<()> {
    match env.virtual_disk() {
        Some(disk) => {
            synthetic::damage(&disk, dir, &file.name);
            Ok(())
        }
        None => tantivy_storage::damage(env, dir, commit.generation, file).await,
    }
}

/// Calls the same method of whichever storage there is.
macro_rules! either {
    ($self:expr, $storage:ident => $call:expr) => {
        match $self {
            ShardStorage::Tantivy($storage) => $call,
            ShardStorage::Synthetic($storage) => $call,
        }
    };
}

impl ShardStorage {
    pub(crate) fn dir(&self) -> PathBuf {
        either!(self, storage => storage.dir())
    }

    /// About the memory that the index takes for operations of so many bytes that it does not show yet.
    pub(crate) fn buffered_bytes(&self, unrefreshed_bytes: u64) -> u64 {
        match self {
            // What is more was written out.
            ShardStorage::Tantivy(_) => unrefreshed_bytes.min(tantivy_storage::WRITER_BYTES as u64),
            ShardStorage::Synthetic(_) => 0,
        }
    }

    /// Reads the documents of new writes.
    pub(crate) async fn parse(&self, requests: &[WriteRequest], refused: Refusals) -> Parsed {
        either!(self, storage => storage.parse(requests, refused).await)
    }

    /// Reads the documents of `changes` that were not read yet.
    pub(crate) async fn parse_missing(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<Parsed> {
        either!(self, storage => storage.parse_missing(ops, changes, parsed).await)
    }

    /// Appends to the log; not durable yet.
    pub(crate) async fn append(&self, ops: &Arc<[Operation]>, bytes: u64) -> Result<()> {
        either!(self, storage => storage.append(ops, bytes).await)
    }

    /// Changes the index; not searchable yet.
    pub(crate) async fn index(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<()> {
        either!(self, storage => storage.index(ops, changes, parsed).await)
    }

    /// Makes the log durable, and notes what every copy in sync has.
    pub(crate) async fn sync(&self, global_checkpoint: Option<u64>) -> Result<()> {
        either!(self, storage => storage.sync(global_checkpoint).await)
    }

    /// Notes what every copy in sync has.
    pub(crate) async fn note_global_checkpoint(&self, checkpoint: Option<u64>) -> Result<()> {
        either!(self, storage => storage.note_global_checkpoint(checkpoint).await)
    }

    /// What the refreshed index holds of `ids`, in their order.
    pub(crate) async fn lookup(&self, ids: &[Arc<str>]) -> Result<Vec<Option<Located>>> {
        either!(self, storage => storage.lookup(ids).await)
    }

    /// A document of the refreshed index.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<GetResult>> {
        either!(self, storage => storage.get(id).await)
    }

    /// Searches the refreshed index.
    pub(crate) async fn search(
        &self,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<(ShardHits, SearchView)> {
        either!(self, storage => storage.search(request, limits).await)
    }

    /// Searches a view that a search saw before.
    pub(crate) async fn search_view(
        &self,
        view: &SearchView,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<ShardHits> {
        match self {
            ShardStorage::Tantivy(storage) => storage.search_view(view, request, limits).await,
            ShardStorage::Synthetic(storage) => storage.count(view, request).await,
        }
    }

    /// Reads the documents of hits: segment and document of each.
    pub(crate) async fn fetch(
        &self,
        view: &SearchView,
        hits: Vec<(u32, u32)>,
        wants_source: bool,
    ) -> Result<Vec<FetchedHit>> {
        either!(self, storage => storage.fetch(view, hits, wants_source).await)
    }

    /// Adds fragments to hits, which come with their whole sources. Sizes have none.
    pub(crate) async fn highlight(
        &self,
        view: &SearchView,
        hits: Vec<FetchedHit>,
        asked: (&Arc<FetchRequest>, &SearchLimits),
    ) -> Result<Vec<FetchedHit>> {
        match self {
            ShardStorage::Tantivy(storage) => storage.highlight(view, hits, asked).await,
            ShardStorage::Synthetic(_) => Ok(hits),
        }
    }

    /// Makes what was indexed searchable.
    pub(crate) async fn refresh(&self) -> Result<()> {
        either!(self, storage => storage.refresh().await)
    }

    /// Indexes by another mapping from now on, while nothing is written or committed. Merges begin anew.
    pub(crate) async fn set_mapping(&self, mapping: &Mapping) -> Result<()> {
        either!(self, storage => storage.set_mapping(mapping).await)
    }

    /// Documents of the refreshed index with a value in a field; none where the field has no column.
    pub(crate) async fn count_with(&self, path: &str) -> Result<Option<u64>> {
        either!(self, storage => storage.count_with(path).await)
    }

    pub(crate) async fn digest(&self) -> Result<Digest> {
        either!(self, storage => storage.digest().await)
    }

    pub(crate) async fn list(&self) -> Result<Vec<ListedDocument>> {
        either!(self, storage => storage.list().await)
    }

    pub(crate) async fn force_merge(&self, max_num_segments: usize) -> Result<()> {
        either!(self, storage => storage.force_merge(max_num_segments).await)
    }

    pub(crate) fn counts(&self) -> Counts {
        either!(self, storage => storage.counts())
    }

    /// The segments that searches see; what is committed is known elsewhere.
    pub(crate) fn segments(&self) -> Vec<SegmentStats> {
        either!(self, storage => storage.segments())
    }

    /// Sizes are not kept twice.
    pub(crate) fn clear_caches(&self, requests: bool, others: bool) {
        if let ShardStorage::Tantivy(storage) = self {
            storage.clear_caches(requests, others);
        }
    }

    /// Merges that go on.
    pub(crate) fn merging(&self) -> u64 {
        either!(self, storage => storage.merging())
    }

    /// Operations of the log with these sequence numbers, ascending, each once.
    pub(crate) async fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        either!(self, storage => storage.ops_between(seq_nos, max_ops, max_bytes).await)
    }

    /// First half of a commit, while nothing is written: holds on to the refreshed index's files.
    pub(crate) async fn begin_commit(&self, generation: u64) -> Result<()> {
        either!(self, storage => storage.begin_commit(generation).await)
    }

    /// Second half: hashes what is new and makes it the newest commit, durably. `stored` comes without files.
    pub(crate) async fn finish_commit(
        &self,
        stored: StoredCommit,
        before: &Commit,
    ) -> Result<Commit> {
        either!(self, storage => storage.finish_commit(stored, before).await)
    }

    /// Drops operations below `floor` from the log, where that is cheap.
    pub(crate) async fn trim(&self, floor: u64) -> Result<()> {
        either!(self, storage => storage.trim(floor).await)
    }

    /// Holds the files of a commit for a session.
    pub(crate) async fn pin(&self, commit: &Commit, session: &str) -> Result<Pin> {
        Ok(match self {
            ShardStorage::Tantivy(storage) => Pin::Files(storage.pin(commit, session).await?),
            ShardStorage::Synthetic(storage) => Pin::Synthetic(storage.pin().await),
        })
    }
}
