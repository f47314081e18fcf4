//! Keeping a copy: durable, searchable, committed, merged.

use std::sync::Arc;

use query::Mapping;
use world::LocalFuture;

use crate::commit::{Commit, StoredCommit};
use crate::error::FirstFailure;
use crate::snapshot::Snapshot;
use crate::storage::ShardStorage;
use crate::to_its_end::to_its_end;
use crate::virtual_files::sources_for;
use crate::{Result, Segments, planted};

use super::{Inner, Shard};

impl Shard {
    /// Returns once every operation applied before the call is durable. Calls that come together share one
    /// sync of the disk.
    pub fn sync(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.inner;
            inner
                .log
                .wait(async || {
                    // An operation is logged before it is applied.
                    let covers = inner.seq_nos.borrow().tracker.checkpoint();
                    if !inner.env.is_planted(planted::LOG_NOT_SYNCED) {
                        let global_checkpoint = inner.seq_nos.borrow().global_checkpoint;
                        inner.storage.sync(global_checkpoint).await?;
                    }
                    inner.persisted(covers);
                    Ok(())
                })
                .await
        })
    }

    /// Notes on the disk what every copy in sync has, as far as this one was told. A sync does it by the way where
    /// there are operations to sync.
    pub fn note_global_checkpoint(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let checkpoint = self.global_checkpoint();
            self.inner.storage.note_global_checkpoint(checkpoint).await
        })
    }

    /// Removes files that were being received to replace this copy, which is complete without them.
    pub fn forget_received(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move { self.inner.storage.forget_received().await })
    }

    /// Makes what was applied searchable. Does nothing where nothing is new.
    pub fn refresh(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            if !self.inner.seq_nos.borrow().unrefreshed {
                return Ok(());
            }
            let _writes = self.inner.writes.lock().await;
            // Another refresh may have done it meanwhile.
            if !self.inner.seq_nos.borrow().unrefreshed {
                return Ok(());
            }
            self.inner.refresh_locked().await
        })
    }

    /// Indexes by another mapping from now on. As in Elasticsearch, new fields are indexed in documents that are
    /// written later, and stay in `_source` alone in older ones. Costs a refresh, and merges that go on begin anew,
    /// unless the mapping is the same.
    pub fn set_mapping<'a>(&'a self, mapping: &'a Mapping) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let inner = &self.inner;
            if *inner.mapping.borrow() == *mapping {
                return Ok(());
            }
            let mapping = mapping.clone();
            let change = |shard: Shard| async move {
                let inner = &shard.inner;
                let _flushes = inner.flushes.lock().await;
                let _writes = inner.writes.lock().await;
                // Another caller may have done it meanwhile.
                if *inner.mapping.borrow() == mapping {
                    return Ok(());
                }
                inner.refresh_locked().await?;
                inner.storage.set_mapping(&mapping).await?;
                *inner.mapping.borrow_mut() = mapping;
                Ok(())
            };
            self.to_its_end("take over a mapping", change).await
        })
    }

    /// Commits: what was applied is durable in segment files, and the log is cut to what retention needs.
    /// Returns the newest commit; the one before where nothing is new.
    pub fn flush(&self) -> LocalFuture<'_, Result<Commit>> {
        Box::pin(self.to_its_end("flush", |shard| async move {
            let _flushes = shard.inner.flushes.lock().await;
            shard.inner.flush_locked().await
        }))
    }

    /// Merges segments until there are at most `max_num_segments` (at least one). The next flush commits it. A mapping
    /// that comes meanwhile has it begin anew.
    pub fn force_merge(&self, max_num_segments: usize) -> LocalFuture<'_, Result<()>> {
        Box::pin(self.to_its_end("merge segments", move |shard| async move {
            let inner = &shard.inner;
            let _merges = inner.merges.lock().await;
            shard.refresh().await?;
            inner.storage.force_merge(max_num_segments.max(1)).await?;
            // In the virtual world it is searchable at once.
            if let ShardStorage::Tantivy(storage) = &inner.storage {
                // A mapping that comes takes the writer away, and must not do so in the midst of this.
                let _writes = inner.writes.lock().await;
                storage.refresh().await?;
            }
            inner.seq_nos.borrow_mut().uncommitted = true;
            Ok(())
        }))
    }

    /// Flushes, then holds the commit's files for a recovery that reads them. Merges and flushes go on
    /// meanwhile. Dropping the last clone of the snapshot lets the files go.
    pub fn snapshot<'a>(&'a self, session: &'a str) -> LocalFuture<'a, Result<Snapshot>> {
        let session = session.to_owned();
        Box::pin(self.to_its_end("hold a commit", |shard| async move {
            let inner = &shard.inner;
            let _flushes = inner.flushes.lock().await;
            let commit = inner.flush_locked().await?;
            let number = inner.snapshots.get();
            inner.snapshots.set(number + 1);
            let pin = inner.storage.pin(&commit, &session_dir(&session, number)).await?;
            Ok(Snapshot::new(inner.env.clone(), inner.storage.dir().to_owned(), commit, pin))
        }))
    }

    /// Runs work on the copy to its end also where the caller is dropped: half a commit leaves files, counters and the
    /// index library at odds.
    pub(super) async fn to_its_end<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(Shard) -> F + 'static,
    ) -> Result<T> {
        let shard = self.clone();
        to_its_end(&self.inner.env, self.inner.storage.dir(), name, move || work(shard)).await
    }

    /// Adds documents that exist only as a number: a corpus too large to index document by document. They are
    /// committed at once, take `documents` places in the history, and are not in the log. In the virtual world alone;
    /// elsewhere an error.
    pub fn synthesize(
        &self,
        documents: u64,
        source_bytes: u64,
        segments: Segments,
    ) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.inner;
            let ShardStorage::Synthetic(storage) = &inner.storage else {
                let reason = "documents can only be synthesized in the virtual world";
                return Err(FirstFailure::new(reason).error(inner.storage.dir()));
            };
            {
                let _writes = inner.writes.lock().await;
                let mut seq_nos = inner.seq_nos.borrow_mut();
                let first = seq_nos.tracker.max_seq_no().map_or(0, |max| max + 1);
                storage.synthesize(first, documents, source_bytes, segments);
                seq_nos.tracker.mark_range(first..first + documents);
                seq_nos.complete_from = seq_nos.complete_from.max(first + documents);
                seq_nos.persisted_checkpoint = seq_nos.tracker.checkpoint();
                seq_nos.documents += documents;
                seq_nos.unrefreshed = true;
                seq_nos.uncommitted = true;
            }
            self.flush().await.map(|_| ())
        })
    }

    /// As [`Shard::synthesize`], for segment files of `stored_bytes` together. An error where the documents alone
    /// take more.
    pub fn synthesize_stored(
        &self,
        documents: u64,
        stored_bytes: u64,
        segments: Segments,
    ) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let source_bytes = sources_for(documents, stored_bytes, segments.count).ok_or_else(|| {
                let segments = segments.count;
                let reason = format!(
                    "{documents} documents in {segments} segments take more than {stored_bytes} bytes of files; \
                     give more bytes, or fewer documents or segments"
                );
                FirstFailure::new(reason).error(self.inner.storage.dir())
            })?;
            self.synthesize(documents, source_bytes, segments).await
        })
    }
}

impl Inner {
    /// Raises the checkpoint up to which everything is durable.
    pub(super) fn persisted(&self, checkpoint: Option<u64>) {
        let mut seq_nos = self.seq_nos.borrow_mut();
        seq_nos.persisted_checkpoint = seq_nos.persisted_checkpoint.max(checkpoint);
    }

    /// The caller holds the lock on writes.
    pub(super) async fn refresh_locked(&self) -> Result<()> {
        if self.seq_nos.borrow().unrefreshed {
            let began = self.env.now();
            if !self.env.is_planted(planted::REFRESH_SHOWS_NOTHING) {
                self.storage.refresh().await?;
            }
            self.work.count(&self.env, |work| &mut work.refreshes, began);
        }
        // Deletions of what is not there leave nothing to refresh, and versions all the same.
        let mut seq_nos = self.seq_nos.borrow_mut();
        let checkpoint = seq_nos.tracker.checkpoint();
        seq_nos.versions.refreshed(checkpoint, self.env.now());
        seq_nos.unrefreshed = false;
        seq_nos.unrefreshed_bytes = 0;
        seq_nos.untracked = false;
        Ok(())
    }

    /// The caller holds the lock on flushes.
    async fn flush_locked(&self) -> Result<Commit> {
        let began = self.env.now();
        let (stored, before, (ops, bytes)) = {
            let _writes = self.writes.lock().await;
            if !self.seq_nos.borrow().uncommitted {
                return Ok(self.seq_nos.borrow().commit.clone());
            }
            self.refresh_locked().await?;
            let stored = self.next_commit();
            self.seq_nos.borrow_mut().begun = stored.commit.generation;
            self.storage.begin_commit(stored.commit.generation).await?;
            let mut seq_nos = self.seq_nos.borrow_mut();
            seq_nos.uncommitted = false;
            seq_nos.track_appends = false;
            let ops = std::mem::take(&mut seq_nos.uncommitted_ops);
            let bytes = std::mem::take(&mut seq_nos.uncommitted_bytes);
            (stored, seq_nos.commit.clone(), (ops, bytes))
        };
        let floor = stored.complete_from;
        match self.storage.finish_commit(stored, &before).await {
            Ok(commit) => {
                self.persisted(commit.local_checkpoint);
                let floor = {
                    let mut seq_nos = self.seq_nos.borrow_mut();
                    seq_nos.commit = commit.clone();
                    // A lease may have been set meanwhile.
                    let needed = seq_nos.retention.floor(commit.local_checkpoint, None);
                    let is_planted = self.env.is_planted(planted::LOG_CUT_TO_COMMIT);
                    let floor = if is_planted { floor } else { floor.min(needed) };
                    seq_nos.complete_from = seq_nos.complete_from.max(floor);
                    floor
                };
                self.storage.trim(floor).await?;
                self.work.count(&self.env, |work| &mut work.flushes, began);
                Ok(commit)
            }
            Err(error) => {
                let mut seq_nos = self.seq_nos.borrow_mut();
                seq_nos.uncommitted = true;
                seq_nos.uncommitted_ops += ops;
                seq_nos.uncommitted_bytes += bytes;
                Err(error)
            }
        }
    }

    fn next_commit(&self) -> StoredCommit {
        let seq_nos = self.seq_nos.borrow();
        let local_checkpoint = match self.env.is_planted(planted::COMMIT_CLAIMS_HOLES) {
            true => seq_nos.tracker.max_seq_no(),
            false => seq_nos.tracker.checkpoint(),
        };
        let floor = match self.env.is_planted(planted::LOG_CUT_TO_COMMIT) {
            true => local_checkpoint.map_or(0, |checkpoint| checkpoint + 1),
            false => seq_nos.retention.floor(local_checkpoint, seq_nos.global_checkpoint),
        };
        let commit = Commit {
            generation: seq_nos.begun + 1,
            files: Arc::default(),
            max_seq_no: seq_nos.tracker.max_seq_no(),
            local_checkpoint,
            above_checkpoint: seq_nos.tracker.above(),
            documents: seq_nos.documents,
            history_uuid: self.history_uuid.clone(),
        };
        StoredCommit {
            complete_from: seq_nos.complete_from.max(floor),
            global_checkpoint: seq_nos.global_checkpoint,
            // The storage knows the generation of its log, and the history of that, too.
            ..StoredCommit::new(commit, 0)
        }
    }
}

/// A directory name for a session: readable, and distinct by its number.
fn session_dir(session: &str, number: u64) -> String {
    let readable = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let short: String = session.chars().map(readable).take(80).collect();
    format!("{short}-{number}")
}
