//! Reading a copy: documents, counts, operations.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::{Digest, Error, ListedDocument, Operation, Result, SearchView};
use query::{FetchedHit, SearchLimits, SearchRequest, ShardHits, SourceFilter};

use super::{GetResult, Shard, ShardStats};

impl Shard {
    /// The newest version of a document, searchable yet or not; none if there is none.
    pub async fn get(&self, id: &str) -> Result<Option<GetResult>> {
        let inner = &self.inner;
        let recent = |entry: &crate::versions::Entry| {
            entry.source.clone().map(|source| GetResult {
                version: entry.version,
                seq_no: entry.seq_no,
                source: Some(source),
            })
        };
        if let Some(entry) = inner.book.borrow().versions.get(id) {
            return Ok(recent(entry));
        }
        if inner.book.borrow().untracked {
            self.refresh().await?;
        }
        inner.arm.get(id).await
    }

    /// Live documents, counted in the index. Refreshes first if something is not searchable yet.
    pub async fn count(&self) -> Result<u64> {
        self.refresh().await?;
        Ok(self.inner.arm.counts().documents)
    }

    /// Searches what the last refresh made searchable. Hits are fetched from the view that comes with them.
    ///
    /// Errors: [`Error::Search`] if the search does not fit the mapping, or in the virtual world needs content.
    pub async fn search(
        &self,
        request: &Arc<SearchRequest>,
        limits: &SearchLimits,
    ) -> Result<(ShardHits, SearchView)> {
        self.inner.arm.search(request, limits).await
    }

    /// Reads the documents of hits (segment and document of each) from the view that they were found in. Sources are
    /// filtered.
    pub async fn fetch(
        &self,
        view: &SearchView,
        hits: Vec<(u32, u32)>,
        source: &SourceFilter,
    ) -> Result<Vec<FetchedHit>> {
        let mut found = self.inner.arm.fetch(view, hits, source.enabled).await?;
        for hit in &mut found {
            hit.source = hit.source.take().and_then(|bytes| source.apply(&bytes));
        }
        Ok(found)
    }

    /// Whether something was applied that searches do not see yet.
    pub fn has_unrefreshed(&self) -> bool {
        self.inner.book.borrow().unrefreshed
    }

    /// Live documents that have a value in the field with this dotted path. Refreshes first if something is not
    /// searchable yet. None where that cannot be told: the field is not indexed or is `text`, or the world is
    /// virtual, where documents are not parsed.
    pub async fn count_with(&self, field: &str) -> Result<Option<u64>> {
        self.refresh().await?;
        self.inner.arm.count_with(field).await
    }

    /// Reads every live document and sums their hashes. Refreshes first if something is not searchable yet.
    /// Equal digests of two copies mean equal documents, whatever their segments look like.
    pub async fn digest(&self) -> Result<Digest> {
        self.refresh().await?;
        self.inner.arm.digest().await
    }

    /// Every live document, in no particular order. Refreshes first if something is not searchable yet. For checkers; in
    /// the virtual world, without those that exist only as a number.
    pub async fn list(&self) -> Result<Vec<ListedDocument>> {
        self.refresh().await?;
        self.inner.arm.list().await
    }

    /// Operations from `from_seq_no` on, in ascending order and each once: at most `max_ops` and about
    /// `max_bytes`, but at least one if there is one. [`Error::OperationsGone`] if the log no longer reaches
    /// back that far.
    pub async fn ops_since(
        &self,
        from_seq_no: u64,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        self.ops_between(from_seq_no..=u64::MAX, max_ops, max_bytes).await
    }

    /// As [`Shard::ops_since`], of these sequence numbers alone: what lies above is not even looked at.
    pub async fn ops_between(
        &self,
        seq_nos: RangeInclusive<u64>,
        max_ops: usize,
        max_bytes: usize,
    ) -> Result<Vec<Operation>> {
        let (from, oldest) = (*seq_nos.start(), self.log_complete_from());
        if from < oldest {
            return Err(Error::OperationsGone { from, oldest });
        }
        self.inner.arm.ops_between(seq_nos, max_ops, max_bytes).await
    }

    /// The copy in numbers.
    pub fn stats(&self) -> ShardStats {
        let counts = self.inner.arm.counts();
        let book = self.inner.book.borrow();
        ShardStats {
            documents: book.documents,
            deleted: counts.deleted,
            store_bytes: counts.store_bytes,
            segments: counts.segments,
            log_ops: counts.log_ops,
            log_bytes: counts.log_bytes,
            log_complete_from: book.complete_from,
            log_syncs: self.inner.log.syncs(),
            uncommitted_ops: book.uncommitted_ops,
            uncommitted_bytes: book.uncommitted_bytes,
            max_seq_no: book.tracker.max_seq_no(),
            local_checkpoint: book.tracker.checkpoint(),
            global_checkpoint: book.global_checkpoint,
            request_cache_hits: counts.request_cache_hits,
            request_cache_misses: counts.request_cache_misses,
            commit_generation: book.commit.generation,
            leases: book.retention.leases().clone(),
        }
    }
}
