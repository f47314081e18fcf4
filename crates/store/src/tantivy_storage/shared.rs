//! What the work on other threads shares: the index library's handles, the log, and whether the copy has failed.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyError};

use query::Mapping;

use super::commits;
use super::log::{Log, LogError};
use super::log_file::Piece;
use super::log_opening::{self, Expected, OpenedLog};
use super::merges::Merges;
use super::queue::{Queue, Queued};
use super::schema::{self, Fields};
use super::work_directory::WorkDirectory;
use crate::commit::{Commit, StoredCommit};
use crate::contents::{Counts, Found};
use crate::error::FirstFailure;
use crate::lock::lock;
use crate::tantivy_storage::analyzer;
use crate::tantivy_storage::search::Findings;
use crate::{Error, Operation, Result, SegmentStats};

/// A segment is written out when the documents in memory reach this.
pub(crate) const WRITER_BYTES: usize = 64 << 20;

/// The index library's handles, and how documents are read for them. A new mapping takes new ones.
pub(super) struct Handles {
    pub(super) fields: Fields,
    pub(super) mapping: Arc<Mapping>,
    directory: WorkDirectory,
    index: Index,
    /// None once newer handles have taken over.
    writer: Mutex<Option<IndexWriter<Queued>>>,
    pub(super) queue: Arc<Queue>,
    reader: IndexReader,
    merges: Merges,
}

/// Never more than one lock is held, but for the log's within the writer's or a sync's, and others within that of a
/// reload.
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    handles: RwLock<Arc<Handles>>,
    log: Mutex<Log>,
    /// Held while the log is synced, also where whoever asked for it is gone and the next one asks.
    syncing: Mutex<()>,
    counts: Mutex<Counts>,
    /// Those that the reader sees.
    segments: Mutex<Vec<SegmentStats>>,
    /// Held from reading the list of segments until the reader and the counts are of it.
    reloading: Mutex<()>,
    pub(super) findings: Arc<Findings>,
    /// Why nothing more is accepted.
    failure: OnceLock<FirstFailure>,
    _lock: File,
}

/// How far a merge came.
pub(super) enum Merge {
    /// There are no more segments than wanted.
    Done,
    /// Some were merged, and there may still be too many.
    Again,
    /// The segments are being merged already, or a mapping is being taken over: it is tried again.
    Busy,
}

/// How often a writer's lock is asked for, and the pause between.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Opens the writer. The threads of the writer before may release the lock a moment after it was closed.
fn open_writer(index: &Index) -> tantivy::Result<IndexWriter<Queued>> {
    let writer = open_bare_writer(index)?;
    // The first operation of a writer has the stamp of the commit before it. If it deletes, a merge that begins before
    // the next commit takes it for part of that commit, skips it in those segments whose deletes are as new, and loses
    // it: the document is there twice. So the first operation does nothing.
    writer.run([])?;
    Ok(writer)
}

fn open_bare_writer(index: &Index) -> tantivy::Result<IndexWriter<Queued>> {
    let mut tries = 0;
    loop {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        match index.writer_with_options(options) {
            Err(TantivyError::LockFailure(..)) if tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
}

impl Handles {
    /// Opens the index of a copy, after fields that only the mapping has were added to its schema.
    fn open(dir: &Path, mapping: &Mapping) -> Result<Self> {
        let refused = |what: &'static str| crate::error::index(what, dir);
        commits::extend_schema(dir, mapping)?;
        let directory = WorkDirectory::open(&commits::work_dir(dir));
        let directory = directory.map_err(refused("open the index"))?;
        let index = Index::open(directory.clone()).map_err(refused("open the index"))?;
        analyzer::register(&index);
        let fields = Fields::of(&index.schema(), mapping).ok_or_else(|| Error::Index {
            what: "open the index",
            path: dir.to_owned(),
            reason: "its schema lacks the fields that every copy has".to_owned(),
        })?;
        let writer = open_writer(&index).map_err(refused("open a writer"))?;
        let merges = Merges::new(directory.clone());
        writer.set_merge_policy(Box::new(merges.clone()));
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let reader = reader.map_err(refused("open a reader"))?;
        let writer = Mutex::new(Some(writer));
        let mapping = Arc::new(mapping.clone());
        let queue = Arc::default();
        Ok(Handles { fields, mapping, directory, index, writer, queue, reader, merges })
    }

    /// What the last refresh made searchable.
    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    pub(super) fn write<T>(
        &self,
        f: impl FnOnce(&mut IndexWriter<Queued>) -> tantivy::Result<T>,
    ) -> tantivy::Result<T> {
        match lock(&self.writer).as_mut() {
            Some(writer) => f(writer),
            None => Err(TantivyError::SystemError("the writer was closed".to_owned())),
        }
    }

    /// Whether every field of `mapping` that is indexed is in the schema.
    fn covers(&self, mapping: &Mapping) -> bool {
        schema::missing(&self.index.schema(), mapping).is_empty()
    }
}

impl Shared {
    /// Rebuilds `index/` from the commit, which was checked, and opens it and the log.
    pub(super) fn open(
        dir: PathBuf,
        lock: File,
        mut stored: StoredCommit,
        mapping: &Mapping,
    ) -> Result<(Self, Found)> {
        commits::rebuild(&dir, &stored)?;
        let handles = Handles::open(&dir, mapping)?;
        let OpenedLog { log, torn_bytes, begins_at } =
            log_opening::open(&dir, Expected::by(&stored))?;
        stored.complete_from = stored.complete_from.max(begins_at.unwrap_or(0));
        let shared = Shared {
            dir,
            handles: RwLock::new(Arc::new(handles)),
            log: Mutex::new(log),
            syncing: Mutex::default(),
            counts: Mutex::default(),
            segments: Mutex::default(),
            reloading: Mutex::default(),
            findings: Arc::default(),
            failure: OnceLock::new(),
            _lock: lock,
        };
        shared.count()?;
        Ok((shared, Found { stored, torn_bytes }))
    }

    /// Fails if an earlier write failed: nothing is accepted until the copy is opened again.
    pub(super) fn check_sound(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(first) => Err(first.error(&self.dir)),
        }
    }

    /// Marks the copy as failed: log and index may differ from here on.
    pub(super) fn fail(&self, error: Error) -> Error {
        self.failure.get_or_init(|| FirstFailure::from(&error)).error(&self.dir)
    }

    /// An error of the index library, which ends its writer; the copy cannot go on.
    pub(super) fn index_error(&self, what: &'static str, error: TantivyError) -> Error {
        self.fail(crate::error::index(what, &self.dir)(error))
    }

    pub(super) fn handles(&self) -> Arc<Handles> {
        self.handles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether documents may have to wait for their turn to be indexed.
    pub(super) fn is_busy(&self) -> bool {
        self.handles().queue.is_filling()
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.handles().searcher()
    }

    /// Takes over another mapping: documents that are indexed from now on have its fields. Older segments stay as they
    /// are, and none of their documents has the new fields. Nothing may be written or committed meanwhile. Merges end
    /// without having merged: they may take minutes, and whoever writes or searches waits for the mapping.
    pub(super) fn set_mapping(&self, mapping: &Mapping) -> Result<()> {
        let old = self.handles();
        // Documents that were parsed for the old schema go into a segment of their own.
        self.refresh()?;
        let merging = old.merges.going_on(&old.index) > 0;
        // From here on nobody but merges would write.
        old.directory.refuse_writes();
        let writer = lock(&old.writer).take();
        if let Some(writer) = writer {
            let ended = writer.wait_merging_threads();
            ended.map_err(|e| self.index_error("close the writer", e))?;
        }
        let opened = Handles::open(&self.dir, mapping).map_err(|error| self.fail(error))?;
        debug_assert!(opened.covers(mapping));
        *self.handles.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
        // Segments that were being merged are considered for a merge again by a commit, and by nothing else.
        if merging { self.refresh() } else { self.count() }
    }

    pub(super) fn counts(&self) -> Counts {
        *lock(&self.counts)
    }

    pub(super) fn segments(&self) -> Vec<SegmentStats> {
        lock(&self.segments).clone()
    }

    pub(super) fn append(&self, ops: &[Operation]) -> Result<()> {
        let rolls = lock(&self.log).is_full();
        let _turn = rolls.then(|| self.turn_to_sync()).transpose()?;
        let mut log = lock(&self.log);
        let appended = log.append(ops);
        self.count_log(&log);
        appended.map_err(|error| self.log_failed(error))
    }

    fn log_failed(&self, error: LogError) -> Error {
        match error {
            LogError::Refused(error) => error,
            LogError::Broken(error) => self.fail(error),
        }
    }

    /// The turn to sync the log, or to begin another file of it, which syncs the one before. The system tells a failure
    /// once: of two syncs at a time one would end as if nothing had happened.
    fn turn_to_sync(&self) -> Result<MutexGuard<'_, ()>> {
        let turn = lock(&self.syncing);
        self.check_sound()?;
        Ok(turn)
    }

    /// After a failed sync nobody knows what is durable, so the copy fails.
    pub(super) fn sync(&self, global_checkpoint: Option<u64>) -> Result<()> {
        let _turn = self.turn_to_sync()?;
        let (file, path, position) = lock(&self.log).current();
        let synced = file.sync_data();
        synced.map_err(|error| self.fail(crate::error::io("sync", &path)(error)))?;
        let noted = lock(&self.log).note_synced(position, global_checkpoint);
        noted.map_err(|error| self.fail(error))
    }

    pub(super) fn note_global_checkpoint(&self, checkpoint: Option<u64>) -> Result<()> {
        let noted = lock(&self.log).note_global_checkpoint(checkpoint);
        noted.map_err(|error| self.fail(error))
    }

    pub(super) fn log_pieces(&self, seq_nos: &RangeInclusive<u64>) -> Vec<Piece> {
        lock(&self.log).pieces(seq_nos)
    }

    pub(super) fn trim(&self, floor: u64) -> Result<()> {
        let mut log = lock(&self.log);
        log.trim(floor)?;
        self.count_log(&log);
        Ok(())
    }

    fn count_log(&self, log: &Log) {
        let mut counts = lock(&self.counts);
        (counts.log_ops, counts.log_bytes) = log.size();
    }

    /// Counts what the reader sees.
    fn count(&self) -> Result<()> {
        let mut counts = Counts::default();
        let mut segments = Vec::new();
        for segment in self.searcher().segment_readers() {
            let usage = segment.space_usage();
            let usage = usage.map_err(|e| self.index_error("measure the index", e.into()))?;
            let bytes = usage.total().get_bytes();
            let live = u64::from(segment.num_docs());
            let deleted = u64::from(segment.num_deleted_docs());
            counts.documents += live;
            counts.deleted += deleted;
            counts.segments += 1;
            counts.store_bytes += bytes;
            segments.push(SegmentStats {
                name: segment.segment_id().uuid_string(),
                documents: Some((live, deleted)),
                bytes,
                committed: false,
            });
        }
        (counts.log_ops, counts.log_bytes) = lock(&self.log).size();
        *lock(&self.counts) = counts;
        *lock(&self.segments) = segments;
        Ok(())
    }

    pub(super) fn refresh(&self) -> Result<()> {
        let handles = self.handles();
        let committed = handles.write(IndexWriter::commit);
        if committed.is_err() && handles.directory.refuses_writes() {
            // Nobody waits for this one any more: a mapping is taken over, whose handles show all that was written.
            return Ok(());
        }
        committed.map_err(|e| self.index_error("refresh the index", e))?;
        handles.merges.forget_ended(&handles.index);
        // The future of an earlier refresh may have been dropped, with the node that asked for it, while its thread
        // goes on: it must not put its older view in the place of this one.
        let _one = lock(&self.reloading);
        handles.reader.reload().map_err(|e| self.index_error("read the index again", e))?;
        self.count()
    }

    pub(super) fn merging(&self) -> u64 {
        let handles = self.handles();
        handles.merges.going_on(&handles.index)
    }

    /// Merges the smallest segments, if there are more than `max_num_segments`.
    pub(super) fn merge_towards(&self, max_num_segments: usize) -> Result<Merge> {
        let handles = self.handles();
        let metas = handles.index.searchable_segment_metas();
        let mut metas = metas.map_err(|e| self.index_error("list segments", e))?;
        let deleted = metas.iter().any(|meta| meta.num_deleted_docs() > 0);
        let expunges = max_num_segments == 1 && metas.len() == 1 && deleted;
        if metas.len() <= max_num_segments && !expunges {
            return Ok(Merge::Done);
        }
        metas.sort_by_key(|meta| meta.num_docs());
        let count = metas.len() - max_num_segments + 1;
        let mut ids: Vec<_> = metas.iter().take(count).map(|meta| meta.id()).collect();
        handles.merges.sort(&mut ids);
        handles.merges.begin(&ids);
        let merge = handles.write(|writer| Ok(writer.merge(&ids)));
        let merged = merge.and_then(|merge| merge.wait());
        handles.merges.end(&ids);
        match merged {
            Ok(_) => Ok(Merge::Again),
            // Some of them are being merged already, or were just now.
            Err(TantivyError::InvalidArgument(_)) => Ok(Merge::Busy),
            // A mapping came, whose handles are there soon.
            Err(_) if handles.directory.refuses_writes() => Ok(Merge::Busy),
            // The segments stay as they were, and so does the copy.
            Err(error) => Err(crate::error::index("merge segments", &self.dir)(error)),
        }
    }

    /// Holds on to the files of the refreshed index as commit `generation`, and begins a new log file.
    pub(super) fn begin_commit(&self, generation: u64) -> Result<()> {
        {
            let _turn = self.turn_to_sync()?;
            lock(&self.log).roll().map_err(|error| self.log_failed(error))?;
        }
        commits::link_index(&self.dir, &self.handles().index, generation)
    }

    pub(super) fn finish_commit(&self, mut stored: StoredCommit) -> Result<Commit> {
        {
            let log = lock(&self.log);
            stored.log_generation = log.oldest();
            stored.log_history = Some(log.history());
        }
        commits::publish(&self.dir, &stored)?;
        Ok(stored.commit)
    }
}

/// Marks a copy as failed where the thread panics before this is dropped.
pub(super) struct FailsInAPanic<'a>(pub(super) &'a Shared);

impl Drop for FailsInAPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failure.get_or_init(|| FirstFailure::new("a change of it that panicked"));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tantivy::merge_policy::NoMergePolicy;

    use super::*;
    use crate::OpKind;
    use crate::plan::Change;

    fn open(copy: PathBuf) -> Shared {
        let (in_use, stored) = commits::prepare(&copy, None).unwrap();
        Shared::open(copy, in_use, stored, &Mapping::default()).unwrap().0
    }

    /// A copy without documents, and the directory that it is in.
    fn opened() -> (tempfile::TempDir, Shared) {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        commits::create(&copy, &Mapping::default(), "history").unwrap();
        (dir, open(copy))
    }

    /// Indexes documents of these ids as the next segment.
    fn index(shared: &Shared, seq_no: &mut u64, ids: &[&str], replaces: bool) {
        let mut ops = Vec::new();
        for id in ids {
            let kind =
                OpKind::Index { source: Bytes::from_static(b"{}"), auto_id: false, routing: None };
            ops.push(Operation { seq_no: *seq_no, version: 1, id: Arc::from(*id), kind });
            *seq_no += 1;
        }
        let changes: Vec<Change> = (0..ids.len()).map(|at| Change { at, replaces }).collect();
        let parsed = shared.parse_changes(&ops, &changes).unwrap();
        shared.index(&ops, &changes, parsed).unwrap();
        shared.refresh().unwrap();
    }

    /// A kill leaves segments that wait to be merged. What replaces a document of them first must replace it.
    #[test]
    fn the_first_update_after_a_start_survives_the_merges_that_begin_with_it() {
        let (_dir, shared) = opened();
        let copy = shared.dir.clone();
        let no_merges = |writer: &mut IndexWriter<Queued>| {
            writer.set_merge_policy(Box::new(NoMergePolicy));
            Ok(())
        };
        shared.handles().write(no_merges).unwrap();
        let mut seq_no = 0;
        index(&shared, &mut seq_no, &["a", "b", "c", "d"], false);
        index(&shared, &mut seq_no, &["x", "y", "z"], false);
        for id in ["0", "1", "2", "3", "4", "5"] {
            index(&shared, &mut seq_no, &[id], false);
        }
        // The segment of `x` has deletes as new as the commit.
        index(&shared, &mut seq_no, &["y"], true);
        shared.begin_commit(2).unwrap();
        let mut stored = commits::newest(&copy).unwrap().unwrap();
        stored.commit.generation = 2;
        stored.commit.files = commits::list(&copy, 2, &Commit::default()).unwrap().into();
        shared.finish_commit(stored).unwrap();
        drop(shared);

        let shared = open(copy);
        index(&shared, &mut seq_no, &["x"], true);
        while !matches!(shared.merge_towards(1).unwrap(), Merge::Done) {}
        shared.refresh().unwrap();
        let mut ids: Vec<Arc<str>> = shared.list().unwrap().into_iter().map(|d| d.id).collect();
        ids.sort_unstable();
        assert_eq!(
            ids.iter().map(|id| &**id).collect::<Vec<_>>(),
            ["0", "1", "2", "3", "4", "5", "a", "b", "c", "d", "x", "y", "z"]
        );
    }

    fn seq_nos(shared: &Shared) -> Vec<u64> {
        let searcher = shared.searcher();
        let of = |segment: &tantivy::SegmentReader| {
            let column = segment.fast_fields().u64(schema::SEQ_NO).unwrap();
            (0..segment.max_doc()).filter_map(|doc| column.first(doc)).collect::<Vec<_>>()
        };
        searcher.segment_readers().iter().flat_map(of).collect()
    }

    #[test]
    fn documents_are_searched_in_the_order_in_which_they_were_indexed_merged_or_not() {
        let (_dir, shared) = opened();
        let mut seq_no = 0;
        for ids in [&["a", "b"][..], &["c"], &["d", "e", "f"], &["g"], &["h"], &["i"], &["j"]] {
            index(&shared, &mut seq_no, ids, false);
            assert_eq!(seq_nos(&shared), (0..seq_no).collect::<Vec<_>>());
        }
        assert_eq!(shared.counts().segments, 7);
        // With the eighth the library's policy merges them.
        index(&shared, &mut seq_no, &["k"], false);
        while shared.merging() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        shared.refresh().unwrap();
        assert_eq!((shared.counts().segments, seq_nos(&shared)), (1, (0..11).collect()));
        index(&shared, &mut seq_no, &["l"], false);
        while !matches!(shared.merge_towards(1).unwrap(), Merge::Done) {}
        shared.refresh().unwrap();
        assert_eq!((shared.counts().segments, seq_nos(&shared)), (1, (0..12).collect()));
    }

    /// Whoever asked for an earlier refresh may be gone, and its thread stands still between the list of segments and
    /// the view of them.
    #[test]
    fn a_refresh_does_not_pass_an_earlier_one() {
        let (_dir, shared) = opened();
        let shared = Arc::new(shared);
        let earlier = lock(&shared.reloading);
        let (told, is_done) = std::sync::mpsc::channel();
        let later = std::thread::spawn({
            let shared = shared.clone();
            move || {
                index(&shared, &mut 0, &["a"], false);
                told.send(()).unwrap();
            }
        });
        assert!(is_done.recv_timeout(Duration::from_millis(300)).is_err(), "it went by");
        drop(earlier);
        later.join().unwrap();
        assert_eq!(shared.counts().documents, 1);
    }

    /// Whoever asked for the first one may be gone, and its thread goes on.
    #[test]
    fn a_sync_behind_one_that_failed_acknowledges_nothing() {
        let syncs: [fn(&Shared) -> Result<()>; 2] = [|it| it.sync(None), |it| it.begin_commit(2)];
        for sync in syncs {
            let (_dir, shared) = opened();
            let shared = Arc::new(shared);
            let failing = lock(&shared.syncing);
            let behind = std::thread::spawn({
                let shared = shared.clone();
                move || sync(&shared)
            });
            std::thread::sleep(Duration::from_millis(50));
            shared.fail(FirstFailure::new("the disk took no sync").error(&shared.dir));
            drop(failing);
            let error = behind.join().unwrap().unwrap_err();
            assert!(error.to_string().contains("the disk took no sync"), "{error}");
        }
    }

    #[test]
    fn a_merge_that_is_ended_for_a_mapping_begins_anew() {
        let (_dir, shared) = opened();
        let mut seq_no = 0;
        for id in ["a", "b", "c"] {
            index(&shared, &mut seq_no, &[id], false);
        }
        // As in the midst of taking over a mapping.
        shared.handles().directory.refuse_writes();
        assert!(matches!(shared.merge_towards(1).unwrap(), Merge::Busy));
        let wider = serde_json::json!({"properties": {"n": {"type": "long"}}});
        shared.set_mapping(&Mapping::parse(&wider).unwrap()).unwrap();
        assert_eq!(shared.counts().segments, 3);
        while !matches!(shared.merge_towards(1).unwrap(), Merge::Done) {}
        shared.refresh().unwrap();
        assert_eq!((shared.counts().segments, shared.list().unwrap().len()), (1, 3));
    }
}
