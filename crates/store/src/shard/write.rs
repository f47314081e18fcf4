//! Applying operations: with given sequence numbers, or with those that a primary assigns.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use query::Refusal;
use world::{LocalFuture, Time};

use crate::checkpoint::LocalCheckpointTracker;
use crate::contents::{Parsed, Refusals};
use crate::operation::RUNS_ARE_VIRTUAL;
use crate::plan::{self, Current, Plan, Planner};
use crate::{Error, OpKind, Operation, Result, planted};

use super::copy_state::CopyState;
use super::{Inner, Shard};
use crate::requests::{Opened, Rejection, Timed, WriteOutcome, WriteRequest, WriteResult};

/// Past this the version map is emptied by a refresh.
const VERSION_MAP_BYTES: u64 = 64 << 20;

/// Operations replayed at once.
const REPLAY_OPS: usize = 20_000;
const REPLAY_BYTES: usize = 16 << 20;

/// Whether operations still have to go into the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    Lacks,
    Has,
}

impl Shard {
    /// Applies operations on any copy. Those already processed are skipped; on each document the highest
    /// sequence number wins, in whatever order they come. Durable after the next [`Shard::sync`].
    ///
    /// Once begun it runs to its end, even where the caller goes away.
    pub fn apply(&self, ops: Vec<Operation>) -> LocalFuture<'_, Result<()>> {
        let apply = |shard: Shard| shard.inner.apply_locked(ops, Log::Lacks);
        Box::pin(self.to_its_end("apply operations", apply))
    }

    /// Keeps operations that the copy's files hold already, for whoever has still to read them: they go into the log
    /// alone. They are in ascending order and older than all that the log holds. From `complete_from` on, which is
    /// given with the last of them, it then holds every operation; after the next commit also where the copy is opened
    /// again.
    pub fn keep_history(
        &self,
        ops: Vec<Operation>,
        complete_from: Option<u64>,
    ) -> LocalFuture<'_, Result<()>> {
        let keep = move |shard: Shard| shard.inner.keep_history_locked(ops, complete_from);
        Box::pin(self.to_its_end("keep operations", keep))
    }

    /// Writes on the primary: gives each request its sequence number and version, applies it, and returns the
    /// operations for the other copies, in the order of the requests. A refused request takes no place in the
    /// history and stops none of the others. Durable after the next [`Shard::sync`].
    ///
    /// Once begun it runs to its end, even where the caller goes away. Fields that the mapping lacks are kept in
    /// `_source` alone: who has them mapped calls [`Shard::read`] first.
    pub fn index(&self, requests: Vec<WriteRequest>) -> LocalFuture<'_, Result<Vec<WriteResult>>> {
        Box::pin(async move { self.index_read(self.read(requests).await).await })
    }

    /// Reads the documents of requests by the mapping of now.
    pub fn read(&self, requests: Vec<WriteRequest>) -> LocalFuture<'_, ReadRequests> {
        Box::pin(async move {
            let parsed = self.inner.storage.parse(&requests, Refusals::new()).await;
            ReadRequests { requests, parsed }
        })
    }

    /// [`Shard::index`] of what was read.
    pub fn index_read(&self, read: ReadRequests) -> LocalFuture<'_, Result<Vec<WriteResult>>> {
        let index = |shard: Shard| shard.inner.index_locked(read.requests, read.parsed);
        Box::pin(self.to_its_end("index documents", index))
    }
}

/// Requests whose documents were read.
pub struct ReadRequests {
    requests: Vec<WriteRequest>,
    parsed: Parsed,
}

impl ReadRequests {
    /// What documents bring that the mapping lacks, as mapping JSON, by the places of their requests: each as it would
    /// be after those before it. A document that would not fit then is refused already.
    pub fn new_fields(&self) -> &[(usize, serde_json::Value)] {
        &self.parsed.new_fields
    }

    /// The requests.
    pub fn requests(&self) -> &[WriteRequest] {
        &self.requests
    }

    /// Has these ids looked up although they were generated: their documents may be there.
    pub fn may_exist(&mut self, is_one: impl Fn(&str) -> bool) {
        for request in &mut self.requests {
            if let WriteRequest::Index { id, auto_id, .. } = request
                && is_one(id)
            {
                *auto_id = false;
            }
        }
    }

    /// Refuses a request.
    pub fn refuse(&mut self, at: usize, refusal: Refusal) {
        self.parsed.new_fields.retain(|(place, _)| *place != at);
        self.parsed.rejected.insert(at, refusal);
    }

    /// Reads the documents again that are not refused, by another mapping.
    pub async fn again(self, shard: &Shard) -> ReadRequests {
        let ReadRequests { requests, parsed } = self;
        let parsed = shard.inner.storage.parse(&requests, parsed.rejected).await;
        ReadRequests { requests, parsed }
    }
}

impl Inner {
    /// Applies what the log holds beyond the commit.
    pub(super) async fn replay(self: &Rc<Self>) -> Result<()> {
        let mut from = self.seq_nos.borrow().tracker.checkpoint().map_or(0, |c| c + 1);
        let mut replayed = 0;
        loop {
            let mut ops =
                self.storage.ops_between(from..=u64::MAX, REPLAY_OPS, REPLAY_BYTES).await?;
            if self.env.is_planted(planted::REPLAY_ENDS_EARLY) {
                ops.pop();
            }
            if self.env.is_planted(planted::DELETES_NOT_REPLAYED) {
                let deletes = ops.iter_mut().filter(|op| op.kind == OpKind::Delete);
                deletes.for_each(|op| op.kind = OpKind::NoOp);
            }
            let Some(last) = ops.last() else { break };
            from = last.last_seq_no() + 1;
            replayed += ops.len() as u64;
            self.clone().apply_locked(ops, Log::Has).await?;
        }
        let checkpoint = self.seq_nos.borrow().tracker.checkpoint();
        self.persisted(checkpoint);
        let opened = Opened { replayed_ops: replayed, ..self.opened.get() };
        self.opened.set(opened);
        Ok(())
    }

    pub(super) async fn apply_locked(self: Rc<Self>, ops: Vec<Operation>, log: Log) -> Result<()> {
        let _writes = self.writes.lock().await;
        if self.env.virtual_disk().is_none()
            && let Some(op) = ops.iter().find(|op| op.is_synthetic_batch())
        {
            let reason = RUNS_ARE_VIRTUAL.to_owned();
            return Err(Error::Document { id: op.id.to_string(), reason });
        }
        let ops = self.unprocessed(ops);
        if ops.is_empty() {
            return Ok(());
        }
        let known = self.look_up(&ops).await?;
        let plan = {
            let seq_nos = self.seq_nos.borrow();
            let track = (seq_nos.track_appends, self.env.now());
            let bounds = seq_nos.bounds.clone();
            let mut planner = Planner::new(&seq_nos.versions, known, bounds, &ops, track);
            for (at, op) in ops.iter().enumerate() {
                planner.take(at, op);
            }
            planner.finish()
        };
        self.carry_out(ops, plan, Parsed::default(), log).await
    }

    async fn keep_history_locked(
        self: Rc<Self>,
        ops: Vec<Operation>,
        complete_from: Option<u64>,
    ) -> Result<()> {
        let _writes = self.writes.lock().await;
        if !ops.is_empty() {
            let bytes: u64 = ops.iter().map(Operation::encoded_bytes).sum();
            self.storage.append(&Arc::from(ops), bytes).await?;
            self.log.appended(bytes);
        }
        if let Some(from) = complete_from {
            let mut seq_nos = self.seq_nos.borrow_mut();
            seq_nos.complete_from = seq_nos.complete_from.min(from);
            // The next commit says so, and not before that does an open know.
            seq_nos.uncommitted = true;
        }
        Ok(())
    }

    async fn index_locked(
        self: Rc<Self>,
        requests: Vec<WriteRequest>,
        parsed: Parsed,
    ) -> Result<Vec<WriteResult>> {
        let _writes = self.writes.lock().await;
        let Drafted { drafts, ops: all, mut parsed, mut results } = self.draft(requests, parsed);
        let known = self.look_up(&all).await?;
        let (ops, plan) = {
            let seq_nos = self.seq_nos.borrow();
            let track = (seq_nos.track_appends, self.env.now());
            let bounds = seq_nos.bounds.clone();
            let mut planner = Planner::new(&seq_nos.versions, known, bounds, &all, track);
            let mut seq_no = seq_nos.tracker.max_seq_no().map_or(0, |max| max + 1);
            let mut ops = Vec::with_capacity(all.len());
            let mut kept = Vec::with_capacity(all.len());
            for (at, (Draft { request, create, required, external }, mut op)) in
                drafts.into_iter().zip(all).enumerate()
            {
                let appends = matches!(
                    op.kind,
                    OpKind::Index { auto_id: true, .. } | OpKind::SyntheticBatch(_)
                );
                let current = if appends { None } else { planner.remembered(&op.id) };
                if let Some(Current { deleted: None, version, .. }) = current
                    && create
                {
                    let conflict = Rejection::VersionConflict { id: op.id, version };
                    results[request] = Some(Err(conflict));
                    continue;
                }
                let found = current.filter(Current::is_live).map(|current| current.seq_no);
                if let Some(required) = required.filter(|required| found != Some(*required)) {
                    let changed = Rejection::Changed { id: op.id, required, found };
                    results[request] = Some(Err(changed));
                    continue;
                }
                if let (Some((given, or_equal)), Some(Current { version, .. })) =
                    (external, current)
                    && (given < version || given == version && !or_equal)
                {
                    let conflict = Rejection::Version { id: op.id, version, given, or_equal };
                    results[request] = Some(Err(conflict));
                    continue;
                }
                op.seq_no = seq_no;
                let next = current.map_or(1, |current| current.version.saturating_add(1));
                op.version = external.map_or(next, |(given, _)| given);
                seq_no += op.count();
                planner.take(ops.len(), &op);
                results[request] = Some(Ok((op.clone(), outcome(&op, current))));
                ops.push(op);
                kept.push(at);
            }
            parsed.keep(&kept);
            (ops, planner.finish())
        };
        self.carry_out(ops, plan, parsed, Log::Lacks).await?;
        Ok(results.into_iter().map(|r| r.expect("every request was decided")).collect())
    }

    /// Operations without their places yet, of the requests whose documents are sound.
    fn draft(&self, requests: Vec<WriteRequest>, mut parsed: Parsed) -> Drafted {
        let mut results: Vec<Option<WriteResult>> = requests.iter().map(|_| None).collect();
        let mut drafts = Vec::with_capacity(requests.len());
        let mut ops = Vec::with_capacity(requests.len());
        // Above all bounds, so that generated ids count as appends.
        let seq_no = self.seq_nos.borrow().tracker.max_seq_no().map_or(0, |max| max + 1);
        for (number, request) in requests.into_iter().enumerate() {
            if let Some(refusal) = parsed.rejected.remove(&number) {
                let rejection = Rejection::Document { id: request.id().clone(), refusal };
                results[number] = Some(Err(rejection));
                continue;
            }
            let (mut required, mut external) = (None, None);
            let (id, kind, create) = match request {
                WriteRequest::Delete { id, .. } => (id, OpKind::Delete, false),
                WriteRequest::IfUnchanged { id, seq_no, source, routing, .. } => {
                    required = Some(seq_no);
                    let index = |source| OpKind::Index { source, auto_id: false, routing };
                    (id, source.map_or(OpKind::Delete, index), false)
                }
                WriteRequest::Versioned { id, version, or_equal, source, routing } => {
                    external = Some((version, or_equal));
                    let index = |source| OpKind::Index { source, auto_id: false, routing };
                    (id, source.map_or(OpKind::Delete, index), false)
                }
                WriteRequest::SyntheticBatch { id, batch } => {
                    (id, OpKind::SyntheticBatch(batch), false)
                }
                WriteRequest::Index { id, source, auto_id, create, routing } => {
                    // A generated id is always new: nothing can conflict.
                    (id, OpKind::Index { source, auto_id, routing }, create && !auto_id)
                }
            };
            ops.push(Operation { seq_no: seq_no + number as u64, version: 0, id, kind });
            drafts.push(Draft { request: number, create, required, external });
        }
        let kept: Vec<usize> = drafts.iter().map(|draft| draft.request).collect();
        parsed.keep(&kept);
        Drafted { drafts, ops, parsed, results }
    }

    /// Drops what was processed before, and repetitions within the batch.
    fn unprocessed(&self, ops: Vec<Operation>) -> Vec<Operation> {
        let seq_nos = self.seq_nos.borrow();
        // Nearly always all come after what was processed.
        let ascending = ops.is_sorted_by(|a, b| a.last_seq_no() < b.seq_no);
        let is_new = |first: &Operation| Some(first.seq_no) > seq_nos.tracker.max_seq_no();
        if ascending && ops.first().is_some_and(is_new) {
            return ops;
        }
        if ops.iter().any(Operation::is_synthetic_batch) {
            return unprocessed_parts(&seq_nos, &ops);
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut is_new = |op: &Operation| {
            !seq_nos.tracker.contains(op.seq_no) && (ascending || seen.insert(op.seq_no))
        };
        ops.into_iter().filter(|op| is_new(op)).collect()
    }

    /// What the index holds of the documents that the batch touches.
    async fn look_up(&self, ops: &[Operation]) -> Result<HashMap<Arc<str>, crate::plan::Located>> {
        let find = || {
            let seq_nos = self.seq_nos.borrow();
            plan::lookups(ops, &seq_nos.bounds, &seq_nos.versions)
        };
        let mut ids = find();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        if self.seq_nos.borrow().untracked {
            // The unfinished segment may hold such a document: make it searchable, and track appends from now on.
            self.refresh_locked().await?;
            self.seq_nos.borrow_mut().track_appends = true;
            ids = find();
        }
        let found = self.storage.lookup(&ids).await?;
        Ok(ids.into_iter().zip(found).filter_map(|(id, found)| Some((id, found?))).collect())
    }

    /// Log first, then index, then the seq_nos.
    async fn carry_out(
        &self,
        ops: Vec<Operation>,
        plan: Plan,
        parsed: Parsed,
        log: Log,
    ) -> Result<()> {
        if ops.is_empty() {
            return Ok(());
        }
        let began = self.env.now();
        let ops: Arc<[Operation]> = Arc::from(ops);
        let bytes: u64 = ops.iter().map(Operation::encoded_bytes).sum();
        let parsed = self.storage.parse_missing(&ops, &plan.changes, parsed).await?;
        if log == Log::Lacks {
            match self.env.is_planted(planted::LOG_TAKES_THE_FIRST) {
                true => self.storage.append(&Arc::from(&ops[..1]), bytes).await?,
                false => self.storage.append(&ops, bytes).await?,
            }
        }
        self.storage.index(&ops, &plan.changes, parsed).await?;
        self.enter(&ops, plan, bytes);
        if log == Log::Lacks {
            self.count_work(&ops, began);
        }
        if self.env.is_planted(planted::APPLIED_COUNTS_AS_DURABLE) {
            let checkpoint = self.seq_nos.borrow().tracker.checkpoint();
            self.persisted(checkpoint);
        }
        if log == Log::Lacks {
            // Only now: a sync that began before would make the operations durable without raising the checkpoint, and
            // nobody would sync again.
            self.log.appended(bytes);
        }
        if self.seq_nos.borrow().versions.bytes() > VERSION_MAP_BYTES {
            self.refresh_locked().await?;
        }
        Ok(())
    }

    /// Counts operations, and divides their time among indexed and deleted ones by their numbers.
    fn count_work(&self, ops: &[Operation], began: Time) {
        let is_delete = |op: &&Operation| op.kind == OpKind::Delete;
        let deletes = ops.iter().filter(is_delete).count() as u64;
        let indexed = ops
            .iter()
            .filter(|op| matches!(op.kind, OpKind::Index { .. } | OpKind::SyntheticBatch(_)));
        let indexed: u64 = indexed.map(Operation::count).sum();
        let all = indexed + deletes;
        if all == 0 {
            return;
        }
        let took = self.env.now() - began;
        let share = took.mul_f64(deletes as f64 / all as f64);
        self.work.add(|work| &mut work.deletes, Timed { count: deletes, time: share });
        self.work.add(|work| &mut work.indexing, Timed { count: indexed, time: took - share });
    }

    fn enter(&self, ops: &[Operation], plan: Plan, bytes: u64) {
        let mut seq_nos = self.seq_nos.borrow_mut();
        let mut run = ops[0].seq_no..ops[0].seq_no;
        for op in ops {
            if op.seq_no != run.end {
                seq_nos.tracker.mark_range(run);
                run = op.seq_no..op.seq_no;
            }
            run.end += op.count();
        }
        seq_nos.tracker.mark_range(run);
        for (id, entry) in plan.entries {
            seq_nos.versions.insert(id, entry);
        }
        seq_nos.bounds.updates = seq_nos.bounds.updates.max(plan.updates);
        seq_nos.documents = seq_nos.documents.saturating_add_signed(plan.documents);
        seq_nos.untracked |= plan.untracked;
        if !plan.changes.is_empty() {
            seq_nos.unrefreshed = true;
            seq_nos.unrefreshed_bytes += bytes;
        }
        seq_nos.uncommitted = true;
        seq_nos.uncommitted_ops += ops.iter().map(Operation::count).sum::<u64>();
        seq_nos.uncommitted_bytes += bytes;
    }
}

/// The parts of operations, some of them synthetic batches, that were not processed yet. They are cut where the ranges
/// begin and end that the files hold above the checkpoint.
fn unprocessed_parts(seq_nos: &CopyState, ops: &[Operation]) -> Vec<Operation> {
    let edges: Vec<u64> =
        seq_nos.bounds.committed_above.iter().flat_map(|range| [range.start, range.end]).collect();
    let mut seen = LocalCheckpointTracker::default();
    let mut parts = Vec::with_capacity(ops.len());
    for op in ops {
        let missing = seq_nos.tracker.missing(op.places()).into_iter();
        for range in missing.flat_map(|range| seen.missing(range)).collect::<Vec<_>>() {
            let inside = edges.iter().copied().filter(|edge| range.contains(edge));
            let mut from = range.start;
            for to in inside.chain([range.end]) {
                parts.extend(op.within(&(from..to)));
                from = to;
            }
        }
        seen.mark_range(op.places());
    }
    parts
}

/// A request that will become an operation if nothing conflicts.
struct Draft {
    request: usize,
    create: bool,
    /// Where its document must have been written.
    required: Option<u64>,
    /// The version that its client gives it, and whether the document may have that one already.
    external: Option<(u64, bool)>,
}

/// What becomes of the requests of a write, each operation beside its draft.
struct Drafted {
    drafts: Vec<Draft>,
    ops: Vec<Operation>,
    parsed: Parsed,
    /// By request; those that are refused have theirs already.
    results: Vec<Option<WriteResult>>,
}

fn outcome(op: &Operation, current: Option<Current>) -> WriteOutcome {
    let live = current.is_some_and(|current| current.is_live());
    match (&op.kind, live) {
        (OpKind::Delete, true) => WriteOutcome::Deleted,
        (OpKind::Delete, false) => WriteOutcome::NotFound,
        (_, true) => WriteOutcome::Updated,
        (_, false) => WriteOutcome::Created,
    }
}
