//! A copy's storage in the virtual world.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use world::{Env, VirtualDisk, Work};
use xxhash_rust::xxh3::xxh3_64;

use query::{
    FetchedHit, Mapping, SearchError, SearchErrorKind, SearchLimits, SearchRequest, ShardHits,
};

use super::index::Index;
use super::{Disk, SyntheticPin, known, space};
use crate::commit::{Commit, FileMeta, StoredCommit};
use crate::contents::{Counts, Found, Parsed, Refusals, Seen};
use crate::digest::routed_hash;
use crate::plan::{Change, Located};
use crate::virtual_files::{self, Bulk, DELETES, Damaged, Document, META, SegmentState};
use crate::{
    Digest, Error, GetResult, ListedDocument, OpKind, Operation, Result, SearchView, SegmentStats,
    Segments, WriteRequest, planted,
};

/// What a commit that is being made consists of.
#[derive(Default)]
struct Linked {
    files: Vec<FileMeta>,
    segments: Vec<SegmentState>,
    /// How many appends there were when it began: its log is synced with it.
    appends: u64,
}

pub(crate) struct SyntheticStorage {
    env: Env,
    dir: PathBuf,
    disk: Rc<RefCell<Disk>>,
    index: RefCell<Index>,
    mapping: RefCell<Mapping>,
    linked: RefCell<Linked>,
    /// Held by each merge that goes on.
    merging: Rc<()>,
    _holder: Rc<()>,
}

impl SyntheticStorage {
    pub(crate) async fn open(
        env: &Env,
        disk: &VirtualDisk,
        dir: &Path,
        mapping: &Mapping,
        verify: bool,
        history_uuid: Option<&str>,
    ) -> Result<(Self, Found)> {
        let disk = known(disk, dir).ok_or_else(|| Error::NoCommit { dir: dir.to_owned() })?;
        let (holder, stored, segments, damaged) = {
            let mut disk = disk.borrow_mut();
            let stored = disk.stored.clone();
            let mut stored = stored.ok_or_else(|| Error::NoCommit { dir: dir.to_owned() })?;
            if disk.log_damaged {
                let reason = "a record no longer has its checksum";
                return Err(Error::log_damaged(&dir.join("oplog"), 0, reason));
            }
            let holder = disk.hold(dir)?;
            if history_uuid.is_some_and(|history| stored.begin_history(history)) {
                disk.stored = Some(stored.clone());
            }
            disk.is_loss_accepted = false;
            (holder, stored, disk.segments.to_vec(), disk.damaged.clone())
        };
        for file in stored.commit.files.iter().filter(|_| verify) {
            check_file(env, dir, file, &damaged).await?;
        }
        let makes_compound = env.virtual_host_model().is_some_and(|host| host.compound_files);
        let index = Index::of(segments, makes_compound);
        disk.borrow_mut().lose_unsynced();
        let arm = SyntheticStorage {
            env: env.clone(),
            dir: dir.to_owned(),
            disk,
            index: RefCell::new(index),
            mapping: RefCell::new(mapping.clone()),
            linked: RefCell::default(),
            merging: Rc::default(),
            _holder: holder,
        };
        Ok((arm, Found { stored, torn_bytes: 0 }))
    }

    async fn pass(&self, work: Work) {
        self.env.work(work, || ()).await;
    }

    fn name(&self) -> String {
        format!("{:016x}", self.env.random_u64())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn merging(&self) -> u64 {
        Rc::strong_count(&self.merging) as u64 - 1
    }

    pub(crate) fn counts(&self) -> Counts {
        let (index, disk) = (self.index.borrow(), self.disk.borrow());
        Counts {
            documents: index.documents(),
            deleted: index.deleted(),
            segments: index.segments.len() as u64,
            store_bytes: index.store_bytes(),
            log_ops: disk.log.len() as u64,
            log_bytes: disk.log_bytes,
            ..Counts::default()
        }
    }

    pub(crate) fn segments(&self) -> Vec<SegmentStats> {
        let one = |state: &SegmentState| {
            let deleted = state.deleted.len() as u64;
            SegmentStats {
                name: state.segment.name.clone(),
                documents: Some((state.segment.count() - deleted, deleted)),
                bytes: state.segment.bytes(),
                committed: false,
            }
        };
        self.index.borrow().segments.iter().map(one).collect()
    }

    pub(crate) async fn parse(&self, requests: &[WriteRequest], refused: Refusals) -> Parsed {
        let bytes = |request: &WriteRequest| match request {
            WriteRequest::SyntheticBatch { batch, .. } => batch.source_bytes(),
            request => request.source().map_or(0, |source| source.len() as u64),
        };
        self.pass(Work::Parse { bytes: requests.iter().map(bytes).sum() }).await;
        let mut parsed = Parsed { rejected: refused.clone(), ..Parsed::default() };
        let mapping = self.mapping.borrow();
        if mapping.may_grow() {
            let documents = requests.iter().enumerate().filter_map(|(at, request)| match request {
                _ if refused.contains_key(&at) => None,
                request => request.source().map(|source| (at, source.as_ref())),
            });
            parsed.note_new_fields(&mapping, documents);
        }
        parsed
    }

    /// The time for parsing passes where documents are first met: in [`SyntheticStorage::parse`] on the primary.
    pub(crate) async fn parse_missing(
        &self,
        _ops: &Arc<[Operation]>,
        _changes: &[Change],
        parsed: Parsed,
    ) -> Result<Parsed> {
        Ok(parsed)
    }

    pub(crate) async fn append(&self, ops: &Arc<[Operation]>, bytes: u64) -> Result<()> {
        self.pass(Work::DiskWrite { bytes }).await;
        space::take(&self.env, &self.dir, bytes)?;
        let mut disk = self.disk.borrow_mut();
        for op in ops.iter() {
            disk.log_insert(op.clone());
        }
        Ok(())
    }

    pub(crate) async fn index(
        &self,
        ops: &Arc<[Operation]>,
        changes: &[Change],
        _parsed: Parsed,
    ) -> Result<()> {
        let bytes = ops.iter().map(Operation::source_bytes).sum();
        let documents = changes.iter().map(|change| ops[change.at].count()).sum();
        self.pass(Work::Index { documents, bytes }).await;
        let mut index = self.index.borrow_mut();
        for change in changes {
            let op = &ops[change.at];
            if change.replaces {
                index.remove(&op.id);
            }
            if let OpKind::SyntheticBatch(batch) = &op.kind {
                if op.seq_no.is_multiple_of(3) && self.env.is_planted(planted::BATCH_NOT_INDEXED) {
                    continue;
                }
                index.add_batch(&Bulk {
                    documents: batch.documents(),
                    source_bytes: batch.source_bytes(),
                    hash: batch.hash(&op.id),
                });
            }
            if let OpKind::Index { source, routing, .. } = &op.kind {
                let document = Document {
                    seq_no: op.seq_no,
                    version: op.version,
                    source_bytes: source.len() as u32,
                    hash: routed_hash(&op.id, routing.as_deref(), source),
                    routing: routing.clone(),
                };
                index.add(op.id.clone(), document);
            }
        }
        Ok(())
    }

    pub(crate) async fn sync(&self, global_checkpoint: Option<u64>) -> Result<()> {
        let appends = self.disk.borrow().appends;
        self.pass(Work::DiskSync).await;
        self.disk.borrow_mut().synced(appends);
        self.note_global_checkpoint(global_checkpoint).await
    }

    pub(crate) async fn note_global_checkpoint(&self, checkpoint: Option<u64>) -> Result<()> {
        let mut disk = self.disk.borrow_mut();
        disk.global_checkpoint = disk.global_checkpoint.max(checkpoint);
        Ok(())
    }

    pub(crate) async fn lookup(&self, ids: &[Arc<str>]) -> Result<Vec<Option<Located>>> {
        self.pass(Work::Index { documents: 0, bytes: 64 * ids.len() as u64 }).await;
        let index = self.index.borrow();
        Ok(ids.iter().map(|id| index.find(id)).collect())
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Option<GetResult>> {
        self.pass(Work::DiskRead { bytes: 16 << 10 }).await;
        let Some(Document { seq_no, version, routing, .. }) =
            self.index.borrow().document(id).cloned()
        else {
            return Ok(None);
        };
        let source = match self.disk.borrow().log.get(&seq_no).map(|op| &op.kind) {
            Some(OpKind::Index { source, .. }) => Some(source.clone()),
            _ => None,
        };
        Ok(Some(GetResult { version, seq_no, source, routing }))
    }

    /// Counts documents, at the cost that the request declares. What needs content is refused.
    pub(crate) async fn search(
        &self,
        request: &SearchRequest,
        _limits: &SearchLimits,
    ) -> Result<(ShardHits, SearchView)> {
        self.pay(request).await?;
        let view = SearchView(Seen::Count(self.index.borrow().documents()));
        Ok((counted(request, &view), view))
    }

    pub(crate) async fn search_view(
        &self,
        view: &SearchView,
        request: &SearchRequest,
        _limits: &SearchLimits,
    ) -> Result<ShardHits> {
        self.pay(request).await?;
        Ok(counted(request, view))
    }

    /// Takes the time that a search costs, if it is one that sizes can answer.
    async fn pay(&self, request: &SearchRequest) -> Result<()> {
        if request.needs_content() {
            return Err(Error::Search(SearchError {
                kind: SearchErrorKind::IllegalArgument,
                reason: "the virtual world holds sizes and no documents: it can count them (match_all with size 0 \
                         and without aggregations), at the cost that ext.narrows.cost declares"
                    .to_owned(),
                at: None,
            }));
        }
        let cost = request.cost.unwrap_or_default();
        self.pass(Work::Search { documents: cost.documents, bytes: cost.bytes }).await;
        Ok(())
    }

    /// Never called with hits: a search of the virtual world has none.
    pub(crate) async fn fetch(
        &self,
        _view: &SearchView,
        _hits: Vec<(u32, u32)>,
        _wants_source: bool,
    ) -> Result<Vec<FetchedHit>> {
        Ok(Vec::new())
    }

    pub(crate) async fn refresh(&self) -> Result<()> {
        let bytes = self.index.borrow_mut().refresh(|| self.name());
        self.pass(Work::DiskWrite { bytes }).await;
        loop {
            let due = self.index.borrow().merge_due();
            if due == 0 {
                return Ok(());
            }
            self.merge(due).await;
        }
    }

    /// Real merges run beside the writes; here they delay the writes, with the same work on disk and core.
    async fn merge(&self, segments: usize) {
        let _going_on = self.merging.clone();
        let (read, written) = self.index.borrow_mut().merge(segments, self.name());
        self.pass(Work::DiskRead { bytes: read }).await;
        self.pass(Work::Copy { bytes: read }).await;
        self.pass(Work::DiskWrite { bytes: written }).await;
    }

    /// Documents are read here only for the fields that they bring.
    pub(crate) async fn set_mapping(&self, mapping: &Mapping) -> Result<()> {
        self.pass(Work::DiskSync).await;
        self.mapping.replace(mapping.clone());
        Ok(())
    }

    pub(crate) async fn terms(&self, _: &str, _: &str, _: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    pub(crate) async fn digest(&self) -> Result<Digest> {
        let (stored, sources) = {
            let index = self.index.borrow();
            let sources: u64 = index.segments.iter().map(|s| s.segment.source_bytes).sum();
            (index.store_bytes(), sources)
        };
        self.pass(Work::DiskRead { bytes: stored }).await;
        self.pass(Work::Hash { bytes: sources }).await;
        Ok(self.index.borrow().digest())
    }

    pub(crate) async fn list(&self) -> Result<Vec<ListedDocument>> {
        let bytes = self.index.borrow().store_bytes();
        self.pass(Work::DiskRead { bytes }).await;
        Ok(self.index.borrow().list())
    }

    pub(crate) async fn force_merge(&self, max_num_segments: usize) -> Result<()> {
        let (segments, deleted) = {
            let index = self.index.borrow();
            (index.segments.len(), index.deleted())
        };
        if segments > max_num_segments {
            self.merge(segments - max_num_segments + 1).await;
        } else if segments == 1 && deleted > 0 {
            self.merge(1).await;
        }
        Ok(())
    }

    pub(crate) async fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        let wanted = *seq_nos.start()..seq_nos.end().saturating_add(1);
        let (ops, bytes) = self.disk.borrow().ops_within(wanted, max_ops as u64, max_bytes as u64);
        self.pass(Work::DiskRead { bytes }).await;
        Ok(ops)
    }

    pub(crate) async fn begin_commit(&self, generation: u64) -> Result<()> {
        let segments = self.index.borrow().segments.clone();
        let disk = self.disk.borrow();
        let known = disk.stored.as_ref().map(|stored| stored.commit.files.clone());
        let known = known.unwrap_or_default();
        let mut files = vec![virtual_files::meta(generation, &segments)];
        // So that the files come nearly in their order, and sorting them compares few names.
        let mut by_name: Vec<&SegmentState> = segments.iter().collect();
        by_name.sort_unstable_by(|a, b| a.segment.name.cmp(&b.segment.name));
        for state in by_name {
            // A segment is written once: only the list of what is gone from it may be another one. To name every file
            // anew would be most of what a commit costs.
            let kept = of_segment(&known, &state.segment.name);
            let begun = files.len();
            files.extend(kept.filter(|file| !file.name.ends_with(DELETES)).cloned());
            let is_new = files.len() == begun;
            let new = if is_new { state.segment.files() } else { Vec::new() };
            let named = new.into_iter().chain(state.deletes_file());
            files.extend(named.map(|(name, len)| match find(&known, &name) {
                Some(file) => file.clone(),
                None => virtual_files::named(&name, len),
            }));
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        self.linked.replace(Linked { files, segments, appends: disk.appends });
        Ok(())
    }

    pub(crate) async fn finish_commit(
        &self,
        mut stored: StoredCommit,
        before: &Commit,
    ) -> Result<Commit> {
        let Linked { files, segments, appends } = self.linked.take();
        // Both are in the order of their names.
        let mut before = before.files.iter().peekable();
        for file in &files {
            while before.next_if(|known| known.name < file.name).is_some() {}
            if *file.name == *META || before.peek().is_none_or(|known| known.name != file.name) {
                self.pass(Work::Hash { bytes: file.len }).await;
            }
        }
        stored.commit.files = files.into();
        self.pass(Work::DiskSync).await;
        let mut disk = self.disk.borrow_mut();
        disk.segments = segments.into();
        disk.damaged.forget(Some(META));
        disk.synced(appends);
        disk.stored = Some(stored.clone());
        Ok(stored.commit)
    }

    pub(crate) async fn trim(&self, floor: u64) -> Result<()> {
        self.disk.borrow_mut().log_remove_where(|op| op.last_seq_no() < floor);
        Ok(())
    }

    pub(crate) async fn pin(&self) -> SyntheticPin {
        self.pass(Work::DiskWrite { bytes: 4096 }).await;
        let disk = self.disk.borrow();
        SyntheticPin { segments: disk.segments.clone(), damaged: disk.damaged.clone() }
    }

    /// Adds documents as sums, in segments of the given sizes.
    pub(crate) fn synthesize(
        &self,
        first: u64,
        documents: u64,
        source_bytes: u64,
        sizes: Segments,
    ) {
        let mut index = self.index.borrow_mut();
        let (mut documents, mut source_bytes) = (documents, source_bytes);
        for (number, share) in sizes.shares_of_the_rest().enumerate() {
            let part = |whole: u64| ((whole as f64 * share).ceil() as u64).min(whole);
            let (some, bytes) = (part(documents), part(source_bytes));
            if some == 0 {
                break;
            }
            let hash = xxh3_64(format!("{first} {number} {some} {bytes}").as_bytes());
            index.add_bulk(Bulk { documents: some, source_bytes: bytes, hash });
            documents -= some;
            source_bytes -= bytes;
        }
    }
}

/// The answer to a search of a view, which has no documents.
fn counted(request: &SearchRequest, view: &SearchView) -> ShardHits {
    let Seen::Count(documents) = view.0 else { return ShardHits::default() };
    let (total, more) = request.track_total_hits.of(documents);
    ShardHits { total, more, ..ShardHits::default() }
}

/// The files of a segment in a commit, whose files are in the order of their names.
fn of_segment<'f>(files: &'f [FileMeta], name: &'f str) -> impl Iterator<Item = &'f FileMeta> {
    let from = files.partition_point(|file| *file.name < *name);
    let is_of_it = move |file: &&FileMeta| {
        file.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
    };
    files[from..].iter().take_while(is_of_it)
}

/// A file of a commit, whose files are in the order of their names.
fn find<'f>(files: &'f [FileMeta], name: &str) -> Option<&'f FileMeta> {
    let at = files.binary_search_by(|file| (*file.name).cmp(name)).ok()?;
    Some(&files[at])
}

async fn check_file(env: &Env, dir: &Path, file: &FileMeta, damaged: &Damaged) -> Result<()> {
    env.work(Work::DiskRead { bytes: file.len }, || ()).await;
    env.work(Work::Hash { bytes: file.len }, || ()).await;
    let found = damaged.xxh3(file);
    if found != file.xxh3 {
        return Err(Error::FileDamaged { path: dir.join(&*file.name), expected: file.xxh3, found });
    }
    Ok(())
}
