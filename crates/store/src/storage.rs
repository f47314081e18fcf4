//! The two kinds of storage of a copy: real files under `tantivy`, or the virtual world's sizes and hashes.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use world::{Env, LocalFuture, VirtualDisk};

use query::{FetchRequest, FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHits};

use crate::commit::{Commit, Extent, StoredCommit};
use crate::contents::{Counts, Found, Parsed, Refusals, SearchView};
use crate::plan::{Change, Located};
use crate::snapshot::Pin;
use crate::synthetic::{self, SyntheticStorage};
use crate::tantivy_storage::{self, TantivyStorage};
use crate::{
    Digest, Error, GetResult, ListedDocument, Operation, Result, SegmentStats, WriteRequest,
};

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
    history_uuid: Option<&str>,
) -> Result<(ShardStorage, Found)> {
    match env.virtual_disk() {
        Some(disk) => {
            let opened = SyntheticStorage::open(env, &disk, dir, mapping, verify, history_uuid);
            let (storage, found) = opened.await?;
            Ok((ShardStorage::Synthetic(storage), found))
        }
        None => {
            let opened = TantivyStorage::open(env, dir, mapping, verify, history_uuid);
            let (storage, found) = opened.await?;
            Ok((ShardStorage::Tantivy(storage), found))
        }
    }
}

/// Looks at a copy's directory without opening the copy.
async fn look<T: Send + 'static>(
    env: &Env,
    dir: &Path,
    in_virtual: fn(&VirtualDisk, &Path) -> T,
    on_files: fn(&Path) -> Result<T>,
) -> Result<T> {
    match env.virtual_disk() {
        Some(disk) => Ok(in_virtual(&disk, dir)),
        None => tantivy_storage::look(env, dir, on_files).await,
    }
}

/// The newest commit in `dir`, without opening the copy; none if there is no copy.
pub fn committed<'a>(env: &'a Env, dir: &'a Path) -> LocalFuture<'a, Result<Option<Commit>>> {
    Box::pin(look(env, dir, synthetic::committed, tantivy_storage::committed))
}

/// How far the copy in `dir` goes, without opening it.
pub fn extent<'a>(env: &'a Env, dir: &'a Path) -> LocalFuture<'a, Result<Extent>> {
    Box::pin(look(env, dir, synthetic::extent, tantivy_storage::extent))
}

/// Whether `dir` may hold what was acknowledged: a part of a commit or of an operation log. Files that were being
/// received are neither.
pub fn holds_operations<'a>(env: &'a Env, dir: &'a Path) -> LocalFuture<'a, Result<bool>> {
    Box::pin(look(env, dir, synthetic::holds_operations, tantivy_storage::holds_operations))
}

/// Whether `dir` holds anything of a copy: a commit, or files that were being received.
pub fn holds_anything<'a>(env: &'a Env, dir: &'a Path) -> LocalFuture<'a, Result<bool>> {
    Box::pin(look(env, dir, synthetic::holds_anything, tantivy_storage::holds_anything))
}

/// Flips a bit in the middle of the largest committed file of a copy, as a failing disk would; says which
/// file. For faults in experiments.
pub fn damage_largest_file<'a>(env: &'a Env, dir: &'a Path) -> LocalFuture<'a, Result<String>> {
    Box::pin(async move {
        let no_commit = || Error::NoCommit { dir: dir.to_owned() };
        let commit = committed(env, dir).await?.ok_or_else(no_commit)?;
        let largest = commit.files.iter().max_by_key(|file| (file.len, file.name.clone()));
        let file = largest.ok_or_else(no_commit)?;
        match env.virtual_disk() {
            Some(disk) => synthetic::damage(&disk, dir, &file.name),
            None => tantivy_storage::damage(env, dir, commit.generation, file).await?,
        }
        Ok(file.name.to_string())
    })
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

/// Methods that both kinds of storage have by the same name.
macro_rules! of_either {
    ($($(#[$about:meta])* async fn $name:ident($($given:ident: $of:ty),*) -> $answer:ty;)*) => {$(
        $(#[$about])*
        pub(crate) async fn $name(&self, $($given: $of),*) -> $answer {
            either!(self, storage => storage.$name($($given),*).await)
        }
    )*};
}

impl ShardStorage {
    of_either! {
        /// Reads the documents of new writes.
        async fn parse(requests: &[WriteRequest], refused: Refusals) -> Parsed;
        /// Reads the documents of `changes` that were not read yet.
        async fn parse_missing(ops: &Arc<[Operation]>, changes: &[Change], parsed: Parsed) -> Result<Parsed>;
        /// Appends to the log; not durable yet.
        async fn append(ops: &Arc<[Operation]>, bytes: u64) -> Result<()>;
        /// Changes the index; not searchable yet.
        async fn index(ops: &Arc<[Operation]>, changes: &[Change], parsed: Parsed) -> Result<()>;
        /// Makes the log durable, and notes what every copy in sync has.
        async fn sync(global_checkpoint: Option<u64>) -> Result<()>;
        /// Notes what every copy in sync has.
        async fn note_global_checkpoint(checkpoint: Option<u64>) -> Result<()>;
        /// What the refreshed index holds of `ids`, in their order.
        async fn lookup(ids: &[Arc<str>]) -> Result<Vec<Option<Located>>>;
        /// A document of the refreshed index.
        async fn get(id: &str) -> Result<Option<GetResult>>;
        /// Searches the refreshed index.
        async fn search(request: &Arc<SearchRequest>, limits: &SearchLimits) -> Result<(ShardHits, SearchView)>;
        /// Searches a view that a search saw before.
        async fn search_view(view: &SearchView, request: &Arc<SearchRequest>, limits: &SearchLimits) -> Result<ShardHits>;
        /// Reads the documents of hits: segment and document of each.
        async fn fetch(view: &SearchView, hits: Vec<(u32, u32)>, wants_source: bool) -> Result<Vec<FetchedHit>>;
        /// Makes what was indexed searchable.
        async fn refresh() -> Result<()>;
        /// Indexes by another mapping from now on, while nothing is written or committed. Merges begin anew.
        async fn set_mapping(mapping: &Mapping) -> Result<()>;
        /// Texts of a keyword field of the refreshed index that begin so, in their order, at most so many.
        async fn terms(path: &str, begin: &str, most: usize) -> Result<Vec<String>>;
        async fn digest() -> Result<Digest>;
        async fn list() -> Result<Vec<ListedDocument>>;
        async fn force_merge(max_num_segments: usize) -> Result<()>;
        /// Operations of the log with these sequence numbers, ascending, each once.
        async fn ops_between(seq_nos: RangeInclusive<u64>, max_ops: usize, max_bytes: usize) -> Result<Vec<Operation>>;
        /// First half of a commit, while nothing is written: holds on to the refreshed index's files.
        async fn begin_commit(generation: u64) -> Result<()>;
        /// Second half: hashes what is new and makes it the newest commit, durably. `stored` comes without files.
        async fn finish_commit(stored: StoredCommit, before: &Commit) -> Result<Commit>;
        /// Drops operations below `floor` from the log, where that is cheap.
        async fn trim(floor: u64) -> Result<()>;
    }

    pub(crate) fn dir(&self) -> &Path {
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

    pub(crate) fn merging(&self) -> u64 {
        either!(self, storage => storage.merging())
    }

    /// Removes files that were being received. Sizes of files take no room.
    pub(crate) async fn forget_received(&self) -> Result<()> {
        match self {
            ShardStorage::Tantivy(storage) => storage.forget_received().await,
            ShardStorage::Synthetic(_) => Ok(()),
        }
    }

    /// Holds the files of a commit for a session.
    pub(crate) async fn pin(&self, commit: &Commit, session: &str) -> Result<Pin> {
        Ok(match self {
            ShardStorage::Tantivy(storage) => Pin::Files(storage.pin(commit, session).await?),
            ShardStorage::Synthetic(storage) => Pin::Synthetic(storage.pin().await),
        })
    }
}
