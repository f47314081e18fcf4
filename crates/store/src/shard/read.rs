//! Reading a copy: documents, searches, operations.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::{Digest, Error, ListedDocument, Operation, Result, SearchView};
use query::{FetchRequest, FetchedHit, SearchLimits, SearchRequest, ShardHits, SourceFilter};
use world::{LocalFuture, Work};

use super::Shard;
use crate::requests::{GetResult, SegmentStats, ShardStats, ShardWork, Timed};
use crate::virtual_files::META;

/// Whoever asks for more operations gets so many bytes of them: no message between nodes has room for more.
const READ_BYTES_MAX: usize = 128 << 20;

impl Shard {
    /// The newest version of a document, searchable yet or not; none if there is none.
    pub fn get<'a>(&'a self, id: &'a str) -> LocalFuture<'a, Result<Option<GetResult>>> {
        Box::pin(async move {
            let began = self.inner.env.now();
            let found = self.get_uncounted(id).await?;
            let of: fn(&mut ShardWork) -> &mut Timed = match found {
                Some(_) => |work| &mut work.found,
                None => |work| &mut work.missing,
            };
            self.inner.work.count(&self.inner.env, of, began);
            Ok(found)
        })
    }

    async fn get_uncounted(&self, id: &str) -> Result<Option<GetResult>> {
        let inner = &self.inner;
        let recent = |entry: &crate::versions::Entry| {
            entry.source.clone().map(|source| GetResult {
                version: entry.version,
                seq_no: entry.seq_no,
                source: Some(source),
                routing: entry.routing.clone(),
            })
        };
        if let Some(entry) = inner.seq_nos.borrow().versions.get(id) {
            return Ok(recent(entry));
        }
        if inner.seq_nos.borrow().untracked {
            self.refresh().await?;
        }
        inner.storage.get(id).await
    }

    /// Searches what the last refresh made searchable. Hits are fetched from the view that comes with them.
    ///
    /// Errors: [`Error::Search`] if the search does not fit the mapping, or in the virtual world needs content.
    pub fn search<'a>(
        &'a self,
        request: &'a Arc<SearchRequest>,
        limits: &'a SearchLimits,
    ) -> LocalFuture<'a, Result<(ShardHits, SearchView)>> {
        Box::pin(async move {
            let began = self.inner.env.now();
            let found = self.inner.storage.search(request, limits).await?;
            self.inner.work.count(&self.inner.env, |work| &mut work.queries, began);
            Ok(found)
        })
    }

    /// Searches a view that a search saw before, as it was then.
    pub fn search_view<'a>(
        &'a self,
        view: &'a SearchView,
        request: &'a Arc<SearchRequest>,
        limits: &'a SearchLimits,
    ) -> LocalFuture<'a, Result<ShardHits>> {
        Box::pin(async move {
            let began = self.inner.env.now();
            let found = self.inner.storage.search_view(view, request, limits).await?;
            self.inner.work.count(&self.inner.env, |work| &mut work.queries, began);
            Ok(found)
        })
    }

    /// Reads the documents of hits (segment and document of each) from the view that they were found in. Sources are
    /// filtered, and fragments are made of their texts where these are asked for: within `limits`.
    pub fn fetch<'a>(
        &'a self,
        view: &'a SearchView,
        hits: Vec<(u32, u32)>,
        request: &'a Arc<FetchRequest>,
        limits: &'a SearchLimits,
    ) -> LocalFuture<'a, Result<Vec<FetchedHit>>> {
        Box::pin(async move {
            let began = self.inner.env.now();
            let storage = &self.inner.storage;
            let is_highlighted = !request.highlight.fields.is_empty();
            let wants_source = request.source.enabled || is_highlighted;
            let mut found = storage.fetch(view, hits, wants_source).await?;
            if is_highlighted {
                found = storage.highlight(view, found, (request, limits)).await?;
            }
            let found = self.filtered(found, &request.source).await;
            self.inner.work.count(&self.inner.env, |work| &mut work.fetches, began);
            Ok(found)
        })
    }

    /// Whether something was applied that searches do not see yet.
    pub fn has_unrefreshed(&self) -> bool {
        self.inner.seq_nos.borrow().unrefreshed
    }

    /// About the memory that what was applied takes until a refresh: its newest versions, and what the index has not
    /// written out.
    pub fn unrefreshed_bytes(&self) -> u64 {
        let seq_nos = self.inner.seq_nos.borrow();
        seq_nos.versions.bytes() + self.inner.storage.buffered_bytes(seq_nos.unrefreshed_bytes)
    }

    /// Drops what is remembered of documents that were deleted a while ago, as each refresh does; whether some of it is
    /// still to be dropped.
    pub fn forget_deletions(&self) -> bool {
        let now = self.inner.env.now();
        self.inner.seq_nos.borrow_mut().versions.forget_deletions(now)
    }

    /// Texts of a keyword field that begin so, in their order, at most so many, as of the last refresh; those of
    /// documents that were deleted since, too. None in the virtual world.
    pub fn terms<'a>(
        &'a self,
        field: &'a str,
        begin: &'a str,
        most: usize,
    ) -> LocalFuture<'a, Result<Vec<String>>> {
        Box::pin(async move { self.inner.storage.terms(field, begin, most).await })
    }

    /// Reads every live document and sums their hashes. Refreshes first if something is not searchable yet.
    /// Equal digests of two copies mean equal documents, whatever their segments look like.
    pub fn digest(&self) -> LocalFuture<'_, Result<Digest>> {
        Box::pin(async move {
            self.refresh().await?;
            self.inner.storage.digest().await
        })
    }

    /// Every live document, in no particular order. Refreshes first if something is not searchable yet. For checkers;
    /// in the virtual world, without those that exist only as a number.
    pub fn list(&self) -> LocalFuture<'_, Result<Vec<ListedDocument>>> {
        Box::pin(async move {
            self.refresh().await?;
            self.inner.storage.list().await
        })
    }

    /// Operations with these sequence numbers, in ascending order and each once: at most `max_ops` and about
    /// `max_bytes`, 128 MiB at most, but at least one if there is one. Fails with [`Error::OperationsGone`] if the log
    /// no longer reaches back that far.
    pub fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> LocalFuture<'_, Result<Vec<Operation>>> {
        Box::pin(async move {
            let (from, oldest) = (*seq_nos.start(), self.log_complete_from());
            if from < oldest {
                return Err(Error::OperationsGone { from, oldest });
            }
            let max_bytes = max_bytes.min(READ_BYTES_MAX);
            self.inner.storage.ops_between(seq_nos, max_ops, max_bytes).await
        })
    }

    /// The copy in numbers.
    pub fn stats(&self) -> ShardStats {
        let counts = self.inner.storage.counts();
        let seq_nos = self.inner.seq_nos.borrow();
        ShardStats {
            documents: seq_nos.documents,
            deleted: counts.deleted,
            store_bytes: counts.store_bytes,
            segments: counts.segments,
            merging: self.inner.storage.merging(),
            log_ops: counts.log_ops,
            log_bytes: counts.log_bytes,
            log_complete_from: seq_nos.complete_from,
            log_syncs: self.inner.log.syncs(),
            uncommitted_ops: seq_nos.uncommitted_ops,
            uncommitted_bytes: seq_nos.uncommitted_bytes,
            max_seq_no: seq_nos.tracker.max_seq_no(),
            local_checkpoint: seq_nos.tracker.checkpoint(),
            global_checkpoint: seq_nos.global_checkpoint,
            request_cache_hits: counts.request_cache_hits,
            request_cache_misses: counts.request_cache_misses,
            work: self.inner.work.counted(),
            commit_generation: seq_nos.commit.generation,
            leases: seq_nos.retention.leases().clone(),
            segment_list: Vec::new(),
        }
    }

    /// Every segment: those that searches see, then those that only the newest commit has.
    pub fn segments(&self) -> Vec<SegmentStats> {
        let mut segments = self.inner.storage.segments();
        let files = self.inner.seq_nos.borrow().commit.files.clone();
        let mut committed: BTreeMap<&str, u64> = BTreeMap::new();
        for file in files.iter().filter(|file| *file.name != *META) {
            let name = file.name.split_once('.').map_or(&*file.name, |(name, _)| name);
            *committed.entry(name).or_default() += file.len;
        }
        for segment in &mut segments {
            segment.committed = committed.remove(segment.name.as_str()).is_some();
        }
        segments.extend(committed.into_iter().map(|(name, bytes)| SegmentStats {
            name: name.to_owned(),
            documents: None,
            bytes,
            committed: true,
        }));
        segments
    }

    /// Drops answers to searches that are kept, and what else was kept to answer sooner.
    pub fn clear_caches(&self, requests: bool, others: bool) {
        self.inner.storage.clear_caches(requests, others);
    }
}

impl Shard {
    /// Hits with what they show of their sources. These are read as JSON only where parts of them are left out.
    async fn filtered(&self, mut hits: Vec<FetchedHit>, source: &SourceFilter) -> Vec<FetchedHit> {
        if *source == SourceFilter::default() || hits.is_empty() {
            return hits;
        }
        let sources = hits.iter().filter_map(|hit| hit.source.as_ref());
        let bytes = sources.map(|source| source.len() as u64).sum();
        let source = source.clone();
        let filter = move || {
            for hit in &mut hits {
                hit.source = hit.source.take().and_then(|bytes| source.apply(&bytes));
            }
            hits
        };
        self.inner.env.work(Work::Parse { bytes }, filter).await
    }

    /// Highest sequence number seen; none before the first operation.
    pub fn max_seq_no(&self) -> Option<u64> {
        self.inner.seq_nos.borrow().tracker.max_seq_no()
    }

    /// Everything up to here is applied; none while operation 0 is missing.
    pub fn local_checkpoint(&self) -> Option<u64> {
        self.inner.seq_nos.borrow().tracker.checkpoint()
    }

    /// Everything up to here is applied and survives a `kill -9`; none while operation 0 does not. Global checkpoints
    /// are computed from these: an operation that a copy may still lose must not count as known everywhere.
    pub fn persisted_checkpoint(&self) -> Option<u64> {
        self.inner.seq_nos.borrow().persisted_checkpoint
    }

    /// Everything up to here is in the newest commit; none while operation 0 is not.
    pub fn committed_checkpoint(&self) -> Option<u64> {
        self.inner.seq_nos.borrow().commit.local_checkpoint
    }

    /// What is missing below [`Shard::max_seq_no`]; a new primary fills it with [`crate::OpKind::NoOp`].
    pub fn gaps(&self) -> Vec<std::ops::Range<u64>> {
        self.inner.seq_nos.borrow().tracker.gaps()
    }

    /// Every in-sync copy has applied everything up to here, as far as this copy was told.
    pub fn global_checkpoint(&self) -> Option<u64> {
        self.inner.seq_nos.borrow().global_checkpoint
    }

    /// Raises the global checkpoint; a lower one than before is ignored.
    pub fn advance_global_checkpoint(&self, checkpoint: u64) {
        let mut seq_nos = self.inner.seq_nos.borrow_mut();
        seq_nos.global_checkpoint = seq_nos.global_checkpoint.max(Some(checkpoint));
    }

    /// Sets a retention lease: flushes keep the operations from `seq_no` on. None releases it.
    pub fn retain_ops_from(&self, lease_id: &str, seq_no: Option<u64>) {
        self.inner.seq_nos.borrow_mut().retention.set(lease_id, seq_no);
    }

    /// Bytes of operations since the last commit.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.inner.seq_nos.borrow().uncommitted_bytes
    }

    /// The log holds every operation from this sequence number on.
    pub fn log_complete_from(&self) -> u64 {
        self.inner.seq_nos.borrow().complete_from
    }
}
