//! A copy on real files: segments by `tantivy`, and our own log and commits.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`TantivyStorage`]: every method, each a closure of [`world::Env::work`] |
//! | `shared.rs` | what those closures share between threads |
//! | `documents.rs` | parsing and indexing |
//! | `queue.rs` | how much waits to be indexed |
//! | `merges.rs`, `work_directory.rs` | how many merges go on; how they are ended, and the order of segments |
//! | `lookup.rs` | looking up, getting, digesting |
//! | `search/` | searching |
//! | `analyzer.rs`, `english.rs`, `analyzed.rs` | words of texts; their stems; how they are shown |
//! | `stored.rs` | a document's id and source |
//! | `commits.rs` | commits on disk: made, checked, read |
//! | `log.rs`, `log_file.rs`, `log_header.rs` | the operation log; one of its files; how that begins |
//! | `log_opening.rs` | opening it: what the commit expects of it, and what a crash or damage took |
//! | `log_checkpoint.rs` | how far it was synced |
//! | `pin.rs` | commits held for recoveries |
//! | `request_cache.rs` | cached answers to searches |
//! | `document_cache.rs` | documents that hits showed lately |
//! | `incoming.rs` | files being received |
//! | `incoming_journal.rs` | how far each of them has come |
//! | `schema.rs` | mapping to schema |
//! | `in_memory.rs` | small indexes of unit tests |
//!
//! A refresh is a commit of the index library in `index/`; that directory is scratch. Our commits are hard
//! links of its files beside it, so merges and refreshes go on without touching them.

mod analyzed;
mod analyzer;
mod commits;
mod document_cache;
mod documents;
mod english;
#[cfg(test)]
mod in_memory;
mod incoming;
mod incoming_journal;
mod log;
mod log_checkpoint;
mod log_file;
mod log_header;
mod log_opening;
mod lookup;
mod merges;
mod pin;
mod queue;
mod request_cache;
mod schema;
mod search;
mod shared;
pub use self::analyzed::{AnalyzedWord, analyzed};
pub use self::search::Aggregated;
mod stored;
mod work_directory;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use world::{Codec, Env, Work};

use query::{FetchRequest, FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHits, Stopped};

use self::document_cache::DocumentCache;
use self::request_cache::RequestCache;
use self::shared::{FailsInAPanic, Shared};
use crate::commit::{Commit, Extent, FileMeta, StoredCommit};
use crate::contents::{Counts, Found, Parsed, Refusals, SearchView, Seen};
use crate::error::io;
use crate::files;
use crate::operation::RUNS_ARE_VIRTUAL;
use crate::plan::{Change, Located};
use crate::{
    Digest, Error, GetResult, ListedDocument, Operation, Result, SegmentStats, WriteRequest,
};

pub(crate) use incoming::FileIncoming;
pub(crate) use pin::FilePin;
pub(crate) use shared::WRITER_BYTES;

/// A document is read with the compressed block that it lies in, of so many bytes at least.
const BLOCK_BYTES: u64 = 16 << 10;
/// Compiling a regular expression takes some milliseconds at least, and a tenth of a second at most.
const PATTERN_DOCUMENTS: u64 = 10_000;

pub(crate) struct TantivyStorage {
    env: Env,
    shared: Arc<Shared>,
    cache: RequestCache,
    documents: DocumentCache,
}

fn source_bytes(ops: &[Operation]) -> u64 {
    ops.iter().map(Operation::source_bytes).sum()
}

pub(crate) async fn create(
    env: &Env,
    dir: &Path,
    mapping: &Mapping,
    history_uuid: &str,
) -> Result<()> {
    let (dir, mapping, history) = (dir.to_owned(), mapping.clone(), history_uuid.to_owned());
    env.work(Work::DiskSync, move || commits::create(&dir, &mapping, &history)).await
}

/// Looks at a copy's directory where the disk may be waited for.
pub(crate) async fn look<T: Send + 'static>(
    env: &Env,
    dir: &Path,
    look: impl FnOnce(&Path) -> Result<T> + Send + 'static,
) -> Result<T> {
    let dir = dir.to_owned();
    env.work(Work::DiskRead { bytes: 4096 }, move || look(&dir)).await
}

pub(crate) fn committed(dir: &Path) -> Result<Option<Commit>> {
    Ok(commits::newest(dir)?.map(|stored| stored.commit))
}

pub(crate) fn extent(dir: &Path) -> Result<Extent> {
    let stored = commits::newest(dir)?;
    let logged = log_checkpoint::read(dir)?;
    let mut extent = stored.as_ref().map(Extent::of_commit).unwrap_or_default();
    if let log_checkpoint::Found::Synced(synced) = logged
        && stored.as_ref().is_none_or(|stored| synced.is_of(stored))
    {
        extent.next_seq_no = extent.next_seq_no.max(synced.next_seq_no);
        extent.global_checkpoint = extent.global_checkpoint.max(synced.global_checkpoint);
    }
    extent.is_loss_accepted = logged == log_checkpoint::Found::Accepted;
    Ok(extent)
}

/// Whether a directory has a part of a commit or of an operation log.
pub(crate) fn holds_operations(dir: &Path) -> Result<bool> {
    let is_part = |name: &String| name.starts_with("commit-") || name.starts_with("oplog");
    Ok(files::names(dir)?.iter().any(is_part))
}

pub(crate) fn holds_anything(dir: &Path) -> Result<bool> {
    Ok(!files::names(dir)?.is_empty())
}

pub(crate) async fn damage(env: &Env, dir: &Path, generation: u64, file: &FileMeta) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let path = commits::dir(dir, generation).join(&*file.name);
    let middle = file.len / 2;
    env.work(Work::DiskWrite { bytes: 1 }, move || {
        let open = std::fs::OpenOptions::new().read(true).write(true).open(&path);
        let flipped = open.and_then(|file| {
            let mut byte = [0];
            file.read_exact_at(&mut byte, middle)?;
            byte[0] ^= 1;
            file.write_all_at(&byte, middle)
        });
        flipped.map_err(io("damage", &path))
    })
    .await
}

impl TantivyStorage {
    /// Opens the copy: checks the newest commit, then rebuilds `index/` from it.
    pub(crate) async fn open(
        env: &Env,
        dir: &Path,
        mapping: &Mapping,
        verify: bool,
        history_uuid: Option<&str>,
    ) -> Result<(Self, Found)> {
        let begins = history_uuid.map(str::to_owned);
        let prepare = move |dir: &Path| commits::prepare(dir, begins.as_deref());
        let (lock, stored) = look(env, dir, prepare).await?;
        let commit_dir = commits::dir(dir, stored.commit.generation);
        for file in stored.commit.files.iter() {
            check_file(env, &commit_dir, file, verify).await?;
        }
        let (dir, mapping) = (dir.to_owned(), mapping.clone());
        let (shared, found) =
            env.work(Work::DiskSync, move || Shared::open(dir, lock, stored, &mapping)).await?;
        let (env, shared) = (env.clone(), Arc::new(shared));
        let (cache, documents) = (RequestCache::default(), DocumentCache::default());
        Ok((TantivyStorage { env, shared, cache, documents }, found))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.shared.dir
    }

    pub(crate) fn counts(&self) -> Counts {
        let (request_cache_hits, request_cache_misses) = self.cache.counts();
        Counts { request_cache_hits, request_cache_misses, ..self.shared.counts() }
    }

    pub(crate) fn segments(&self) -> Vec<SegmentStats> {
        self.shared.segments()
    }

    pub(crate) fn clear_caches(&self, requests: bool, others: bool) {
        if requests {
            self.cache.clear();
        }
        if others {
            self.documents.clear();
            self.shared.findings.clear();
        }
    }

    pub(crate) fn merging(&self) -> u64 {
        self.shared.merging()
    }

    async fn work<T: Send + 'static>(
        &self,
        work: Work,
        f: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = self.shared.clone();
        self.env
            .work(work, move || {
                shared.check_sound()?;
                f(&shared)
            })
            .await
    }

    /// As [`Self::work`], of what changes the copy: where that panics nobody knows what it left, and the copy fails.
    async fn change<T: Send + 'static>(
        &self,
        work: Work,
        f: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let change = move |shared: &Shared| {
            let _fails = FailsInAPanic(shared);
            f(shared)
        };
        self.work(work, change).await
    }

    pub(crate) async fn parse(&self, requests: &[WriteRequest], refused: Refusals) -> Parsed {
        let source = |(at, request): (usize, &WriteRequest)| match refused.contains_key(&at) {
            true => None,
            false => request.source().cloned(),
        };
        let sources: Vec<_> = requests.iter().enumerate().map(source).collect();
        let bytes = sources.iter().flatten().map(|source| source.len() as u64).sum();
        let shared = self.shared.clone();
        let mut parsed = self.env.work(Work::Parse { bytes }, move || shared.parse(&sources)).await;
        parsed.rejected.extend(refused);
        for (number, request) in requests.iter().enumerate() {
            if let WriteRequest::SyntheticBatch { .. } = request {
                let (kind, reason) =
                    ("mapper_parsing_exception".to_owned(), RUNS_ARE_VIRTUAL.to_owned());
                parsed.rejected.insert(number, query::Refusal { status: 400, kind, reason });
            }
        }
        parsed
    }

    pub(crate) async fn parse_missing(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<Parsed> {
        if !parsed.documents.is_empty() {
            return Ok(parsed);
        }
        let (ops, changes) = (ops.clone(), changes.to_vec());
        let bytes = source_bytes(&ops);
        self.work(Work::Parse { bytes }, move |shared| shared.parse_changes(&ops, &changes)).await
    }

    pub(crate) async fn append(&self, ops: &Arc<[Operation]>, bytes: u64) -> Result<()> {
        let ops = ops.clone();
        self.change(Work::DiskWrite { bytes }, move |shared| shared.append(&ops)).await
    }

    pub(crate) async fn index(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        parsed: Parsed,
    ) -> Result<()> {
        let (ops, changes) = (ops.clone(), changes.to_vec());
        let work = self.index_work(changes.len() as u64, source_bytes(&ops));
        self.change(work, move |shared| shared.index(&ops, &changes, parsed)).await
    }

    fn index_work(&self, documents: u64, bytes: u64) -> Work {
        // Where the queue to the index writer fills up the caller waits for room: not in the event loop.
        match self.shared.is_busy() {
            true => Work::DiskWrite { bytes },
            false => Work::Index { documents, bytes },
        }
    }

    pub(crate) async fn sync(&self, global_checkpoint: Option<u64>) -> Result<()> {
        self.change(Work::DiskSync, move |shared| shared.sync(global_checkpoint)).await
    }

    pub(crate) async fn note_global_checkpoint(&self, checkpoint: Option<u64>) -> Result<()> {
        let work = Work::DiskWrite { bytes: 0 };
        self.change(work, move |shared| shared.note_global_checkpoint(checkpoint)).await
    }

    pub(crate) async fn lookup(&self, ids: &[Arc<str>]) -> Result<Vec<Option<Located>>> {
        let ids = ids.to_vec();
        // A lookup walks a term dictionary; about as dear as indexing some 64 bytes.
        let work = Work::Index { documents: 0, bytes: 64 * ids.len() as u64 };
        self.work(work, move |shared| shared.lookup(&ids)).await
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Option<GetResult>> {
        let id = id.to_owned();
        self.work(Work::DiskRead { bytes: 16 << 10 }, move |shared| shared.get(&id)).await
    }

    /// Documents and bytes that a search may look at; to compile a pattern takes as long as many documents.
    fn search_work(&self, request: &SearchRequest) -> Work {
        let counts = self.counts();
        let compiled = PATTERN_DOCUMENTS * request.query.compiled() as u64;
        let documents = counts.documents + counts.deleted + compiled;
        Work::Search { documents, bytes: counts.store_bytes }
    }

    pub(crate) async fn search(
        &self,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<(ShardHits, SearchView)> {
        // Readers and mapping of one moment: a later mapping has readers of its own.
        let handles = self.shared.handles();
        let searcher = handles.searcher();
        let view = SearchView(Seen::Documents(searcher.clone(), handles.mapping.clone()));
        let key = request_cache::key(request);
        if let Some(key) = &key
            && let Some(hits) = self.cache.get(&handles, &searcher, key)
        {
            return Ok((hits, view));
        }
        let hits = self.search_view(&view, request, limits).await?;
        if let Some(key) = key.filter(|_| hits.stopped != Stopped::OutOfTime) {
            self.cache.keep(&handles, &searcher, key, &hits);
        }
        Ok((hits, view))
    }

    pub(crate) async fn search_view(
        &self,
        view: &SearchView,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<ShardHits> {
        let Seen::Documents(searcher, mapping) = view.0.clone() else {
            return Ok(ShardHits::default());
        };
        let work = self.search_work(request);
        let (request, limits) = (request.clone(), limits.clone());
        let search = move |shared: &Shared| shared.search((&searcher, &mapping), &request, &limits);
        self.work(work, search).await
    }

    pub(crate) async fn fetch(
        &self,
        view: &SearchView,
        hits: Vec<(u32, u32)>,
        wants_source: bool,
    ) -> Result<Vec<FetchedHit>> {
        let Seen::Documents(searcher, _) = view.0.clone() else { return Ok(Vec::new()) };
        self.shared.check_sound()?;
        let mut found = self.documents.get(&searcher, &hits, wants_source);
        let is_missing = |(_, found): &(_, &Option<FetchedHit>)| found.is_none();
        let missing = hits.iter().zip(&found).filter(is_missing).map(|(hit, _)| *hit);
        let missing: Arc<[(u32, u32)]> = missing.collect();
        if !missing.is_empty() {
            let Counts { store_bytes, documents, .. } = self.counts();
            let each_bytes = BLOCK_BYTES.max(store_bytes / documents.max(1));
            let bytes = missing.len() as u64 * each_bytes;
            let work = Work::Decompress { bytes, codec: Codec::Lz4 };
            let (view, wanted) = (searcher.clone(), missing.clone());
            let read =
                self.work(work, move |shared| shared.fetch(&view, &wanted, wants_source)).await?;
            if wants_source {
                self.documents.keep(&searcher, &missing, &read);
            }
            let places = found.iter_mut().filter(|found| found.is_none());
            places.zip(read).for_each(|(place, read)| *place = Some(read));
        }
        Ok(found.into_iter().flatten().collect())
    }

    pub(crate) async fn highlight(
        &self,
        view: &SearchView,
        mut hits: Vec<FetchedHit>,
        (request, limits): (&Arc<FetchRequest>, &SearchLimits),
    ) -> Result<Vec<FetchedHit>> {
        let Seen::Documents(searcher, mapping) = view.0.clone() else { return Ok(hits) };
        let bytes = hits.iter().filter_map(|hit| hit.source.as_ref()).map(|source| source.len());
        let bytes = bytes.sum::<usize>() as u64;
        let work = match PATTERN_DOCUMENTS * request.highlight.compiled() as u64 {
            0 => Work::Parse { bytes },
            documents => Work::Search { documents, bytes },
        };
        let (request, limits) = (request.clone(), limits.clone());
        let highlight = move |shared: &Shared| -> Result<Vec<FetchedHit>> {
            shared.highlight((&searcher, &mapping), (&request, &limits), &mut hits)?;
            Ok(hits)
        };
        self.work(work, highlight).await
    }

    pub(crate) async fn refresh(&self) -> Result<()> {
        self.change(Work::DiskSync, Shared::refresh).await
    }

    pub(crate) async fn set_mapping(&self, mapping: &Mapping) -> Result<()> {
        let mapping = mapping.clone();
        self.change(Work::DiskSync, move |shared| shared.set_mapping(&mapping)).await
    }

    pub(crate) async fn terms(&self, path: &str, begin: &str, most: usize) -> Result<Vec<String>> {
        let (path, begin) = (path.to_owned(), begin.to_owned());
        let read = Work::DiskRead { bytes: most as u64 };
        self.work(read, move |shared| shared.terms(&path, &begin, most)).await
    }

    pub(crate) async fn digest(&self) -> Result<Digest> {
        let mut total = Digest::default();
        let shared = self.shared.clone();
        for (number, bytes) in shared.store_bytes_by_segment() {
            let searcher = shared.searcher();
            let part = self
                .work(Work::Hash { bytes }, move |shared| shared.digest_segment(&searcher, number))
                .await?;
            total.documents += part.documents;
            total.hash = total.hash.wrapping_add(part.hash);
        }
        Ok(total)
    }

    pub(crate) async fn list(&self) -> Result<Vec<ListedDocument>> {
        let bytes = self.counts().store_bytes;
        self.work(Work::Hash { bytes }, Shared::list).await
    }

    /// What was merged is searchable after the next refresh.
    pub(crate) async fn force_merge(&self, max_num_segments: usize) -> Result<()> {
        loop {
            let bytes = self.counts().store_bytes;
            let step = self
                .work(Work::Copy { bytes }, move |shared| shared.merge_towards(max_num_segments))
                .await?;
            match step {
                shared::Merge::Done => return Ok(()),
                shared::Merge::Again => {}
                shared::Merge::Busy => self.env.sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    }

    pub(crate) async fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        let bytes = self.counts().log_bytes.min(max_bytes as u64).max(1);
        self.work(Work::DiskRead { bytes }, move |shared| {
            let pieces = shared.log_pieces(&seq_nos);
            log_file::read(&pieces, &seq_nos, max_ops, max_bytes)
        })
        .await
    }

    pub(crate) async fn begin_commit(&self, generation: u64) -> Result<()> {
        self.change(Work::DiskSync, move |shared| shared.begin_commit(generation)).await
    }

    pub(crate) async fn finish_commit(
        &self,
        mut stored: StoredCommit,
        before: &Commit,
    ) -> Result<Commit> {
        let generation = stored.commit.generation;
        let before = before.clone();
        let mut listed = self
            .work(Work::DiskRead { bytes: 4096 }, move |shared| {
                commits::list(&shared.dir, generation, &before)
            })
            .await?;
        let dir = commits::dir(&self.shared.dir, generation);
        for file in &mut listed {
            if file.xxh3 == commits::NOT_HASHED {
                let path = dir.join(&*file.name);
                let work = Work::Hash { bytes: file.len };
                file.xxh3 = self.work(work, move |_| files::hash_file(&path)).await?;
            }
        }
        stored.commit.files = listed.into();
        self.change(Work::DiskSync, move |shared| shared.finish_commit(stored)).await
    }

    pub(crate) async fn trim(&self, floor: u64) -> Result<()> {
        self.change(Work::DiskSync, move |shared| shared.trim(floor)).await
    }

    pub(crate) async fn forget_received(&self) -> Result<()> {
        let forget = |shared: &Shared| files::remove_dir(&shared.dir.join(incoming::INCOMING));
        self.work(Work::DiskWrite { bytes: 0 }, forget).await
    }

    pub(crate) async fn pin(&self, commit: &Commit, session: &str) -> Result<FilePin> {
        let (commit, session) = (commit.clone(), session.to_owned());
        let take = move |shared: &Shared| FilePin::take(&shared.dir, &commit, &session);
        self.work(Work::DiskWrite { bytes: 4096 }, take).await
    }
}

/// Compares a committed file with its commit: always its length, and its hash if `verify`.
async fn check_file(env: &Env, dir: &Path, file: &FileMeta, verify: bool) -> Result<()> {
    let (path, file) = (dir.join(&*file.name), file.clone());
    let work = Work::Hash { bytes: if verify { file.len } else { 0 } };
    env.work(work, move || {
        let found = files::len_of(&path)?;
        if found != Some(file.len) {
            return Err(Error::FileLength { path, expected: file.len, found });
        }
        if verify {
            let found = files::hash_file(&path)?;
            if found != file.xxh3 {
                return Err(Error::FileDamaged { path, expected: file.xxh3, found });
            }
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty copy.
    fn opened(env: Env, dir: &tempfile::TempDir) -> TantivyStorage {
        let (copy, mapping) = (dir.path().join("copy"), Mapping::default());
        commits::create(&copy, &mapping, "history").unwrap();
        let (lock, stored) = commits::prepare(&copy, None).unwrap();
        let (shared, _) = Shared::open(copy, lock, stored, &mapping).unwrap();
        let (cache, documents) = (RequestCache::default(), DocumentCache::default());
        TantivyStorage { env, shared: Arc::new(shared), cache, documents }
    }

    /// In a process of a library, which goes on.
    #[test]
    fn a_copy_has_failed_that_a_panic_may_have_changed_by_half() {
        let dir = tempfile::tempdir().unwrap();
        world::real_world::run(7, |env| async move {
            let storage = opened(env.clone(), &dir);
            for work in [Work::DiskSync, Work::Index { documents: 1, bytes: 1 }] {
                let reads = storage.work::<()>(work, |_| panic!("while it reads"));
                env.caught(reads).await.unwrap_err();
            }
            storage.sync(None).await.unwrap();
            let changes = storage.change::<()>(Work::DiskSync, |_| panic!("half way"));
            env.caught(changes).await.unwrap_err();
            let refused = storage.sync(None).await.unwrap_err().to_string();
            assert!(refused.contains("a change of it that panicked"), "{refused}");
        });
    }

    /// Few bytes are indexed in the event loop, where nobody may wait.
    #[test]
    fn documents_that_may_have_to_wait_do_so_on_another_thread() {
        let dir = tempfile::tempdir().unwrap();
        world::real_world::run(7, |env| async move {
            let storage = opened(env, &dir);
            assert_eq!(storage.index_work(1, 10), Work::Index { documents: 1, bytes: 10 });
            let queue = storage.shared.handles().queue.clone();
            let half = queue.take(32 << 20);
            assert_eq!(storage.index_work(1, 10), Work::Index { documents: 1, bytes: 10 });
            let one = queue.take(1);
            assert_eq!(storage.index_work(1, 10), Work::DiskWrite { bytes: 10 });
            drop((half, one));
            assert_eq!(storage.index_work(1, 10), Work::Index { documents: 1, bytes: 10 });
        });
    }
}
