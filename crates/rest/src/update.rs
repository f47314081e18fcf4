//! `_update`, and updates within `_bulk`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use store::{WriteOutcome, WriteRequest};

use super::answer::{Reply, with_member};
use super::call::Call;
use super::document::{
    Found, Refresh, check_id, ensure_index, find, index_to_fill, location, refuse_unsupported,
    refuse_versions, routing, wait_for_active, write_limit, write_one, written_json,
};
use super::error::{bad_request, invalid, not_supported};
use super::parameters::Query;
use super::partial_update::{Change, PartialUpdate};
use super::spread::at_once;
use super::unchanged::{Condition, Unchanged};
use super::wanted::{Wanted, with_source};
use engine::Node;
use engine::replication::{RETRY_AFTER, write_documents};
use engine::transport::{Failure, Result, Written};

/// Parameters beside those of every write.
pub(super) const KNOWN: &[&str] =
    &["_source _source_excludes _source_includes doc_as_upsert lang retry_on_conflict"];

/// Documents of a request with updates that are written at once.
const AT_ONCE: usize = 256;

/// A document that is to be changed.
pub(super) struct Update {
    pub(super) id: Arc<str>,
    pub(super) routing: Option<Arc<str>>,
    pub(super) body: Bytes,
    /// Of the request; the body stands above it.
    pub(super) doc_as_upsert: bool,
    pub(super) unchanged: Option<Unchanged>,
    /// How often it is tried again where another write comes in between.
    pub(super) retries: u32,
}

impl Update {
    /// Reads the document, changes it, and writes it unless it was changed meanwhile. What came of it, and the document
    /// as it is then.
    async fn carry_out(
        &self,
        node: &Node,
        index: &str,
        limit: Duration,
    ) -> Result<(Written, Bytes)> {
        let update = PartialUpdate::read(&self.body, self.doc_as_upsert)?.without_script()?;
        if self.unchanged.is_some() && update.may_create() {
            return Err(bad_request("upsert requests don't support `if_seq_no`"));
        }
        if self.unchanged.is_some() && self.retries > 0 {
            return Err(invalid("compare and write operations can not be retried"));
        }
        let mut retries = self.retries;
        loop {
            match self.attempt(node, (index, limit), &update).await {
                Err(failure) if failure.status == 409 && retries > 0 => retries -= 1,
                done => return done,
            }
        }
    }

    async fn attempt(
        &self,
        node: &Node,
        (index, limit): (&str, Duration),
        update: &PartialUpdate<'_>,
    ) -> Result<(Written, Bytes)> {
        let id = self.id.clone();
        let by = self.routing.as_deref();
        let found = read_once_started(node, (index, limit), (&id, by)).await?;
        let change = update.apply(&id, found.as_ref().map(|found| found.source.as_ref()))?;
        // As in the field what the request says stands above what is there: it leads to the same shard.
        let there = found.as_ref().and_then(|found| found.routing.clone());
        let routing = self.routing.clone().or(there);
        let read = found.map(|found| (Unchanged::from(&found), found));
        let (source, request) = match (change, read) {
            (Change::Nothing, Some((now, Found { version, source, .. })))
                if self.unchanged.is_none_or(|u| u == now) =>
            {
                let Unchanged { seq_no, primary_term } = now;
                let outcome = WriteOutcome::Noop;
                return Ok((Written { seq_no, version, primary_term, outcome }, source));
            }
            // A write of what is there finds out who is right.
            (Change::Replace(source), Some((now, _))) => {
                let unchanged = Condition::Unchanged(self.unchanged.unwrap_or(now));
                (source.clone(), unchanged.write(id, Some(source), routing))
            }
            (Change::Create(source), _) => {
                let kept = source.clone();
                (kept, WriteRequest::Index { id, source, auto_id: false, create: true, routing })
            }
            (Change::Nothing | Change::Replace(_), _) => {
                let reason = format!("[{id}]: version conflict, the document has changed");
                return Err(Failure::new(409, "version_conflict_engine_exception", reason));
            }
        };
        Ok((write_one(node, (index, limit), request).await?, source))
    }
}

/// Reads a document of the primary; waits for one where there is none yet, as a write does.
async fn read_once_started(
    node: &Node,
    (index, limit): (&str, Duration),
    (id, routing): (&str, Option<&str>),
) -> Result<Option<Found>> {
    let env = &node.core().env;
    let give_up = env.now() + limit;
    loop {
        match find(node, index, (id.to_owned(), routing)).await {
            Err(failure) if failure.status == 503 && env.now() < give_up => {
                env.sleep(RETRY_AFTER).await;
            }
            found => return found,
        }
    }
}

/// A write of a bulk request. An update is boxed, so that a plain write takes no more room for it.
pub(super) enum BulkWrite {
    Plain(WriteRequest),
    Update(Box<Update>),
}

impl BulkWrite {
    fn id(&self) -> &Arc<str> {
        match self {
            BulkWrite::Plain(request) => request.id(),
            BulkWrite::Update(update) => &update.id,
        }
    }
}

/// Carries out the writes of a bulk request to one index: those of one document one after another.
pub(super) async fn write_all(
    node: &Node,
    index: &Arc<str>,
    writes: Vec<BulkWrite>,
    limit: Duration,
) -> Result<Vec<Result<Written>>> {
    let has_updates = writes.iter().any(|write| matches!(write, BulkWrite::Update(_)));
    if !has_updates {
        let plain = writes.into_iter().filter_map(|write| match write {
            BulkWrite::Plain(request) => Some(request),
            BulkWrite::Update(_) => None,
        });
        return write_documents(node.core(), index, plain.collect(), limit).await;
    }
    let mut results = Vec::with_capacity(writes.len());
    let (mut together, mut ids) = (Vec::new(), BTreeSet::new());
    for write in writes {
        if ids.contains(write.id()) || together.len() == AT_ONCE {
            let writes = std::mem::take(&mut together);
            results.extend(write_together(node, index, writes, limit).await);
            ids.clear();
        }
        ids.insert(write.id().clone());
        together.push(write);
    }
    results.extend(write_together(node, index, together, limit).await);
    Ok(results)
}

async fn write_together(
    node: &Node,
    index: &Arc<str>,
    writes: Vec<BulkWrite>,
    limit: Duration,
) -> Vec<Result<Written>> {
    let work = writes.into_iter().map(|write| {
        let (node, index) = (node.clone(), index.clone());
        async move {
            match write {
                BulkWrite::Plain(request) => write_one(&node, (&index, limit), request).await,
                BulkWrite::Update(update) => {
                    update.carry_out(&node, &index, limit).await.map(|(written, _)| written)
                }
            }
        }
    });
    at_once(node, "writes a document of a bulk", work).await
}

/// Refuses to answer with the documents of a bulk.
pub(super) fn refuse_parts(query: &Query) -> Result<()> {
    match Wanted::asked(query) {
        None => Ok(()),
        Some(_) => {
            let instead = "read the documents after it";
            Err(not_supported("parameter [_source] of a bulk with updates", instead))
        }
    }
}

/// `POST /{index}/_update/{id}`.
pub(super) async fn update(call: Call) -> Result<Reply> {
    refuse_unsupported(&call.query)?;
    refuse_versions(&call.query)?;
    let refresh = Refresh::read(&call.query)?;
    let id = call.part("id").unwrap_or_default();
    check_id(id)?;
    let update = Update {
        id: Arc::from(id),
        routing: routing(&call.query),
        body: call.body.clone(),
        doc_as_upsert: call.query.flag("doc_as_upsert", false)?,
        unchanged: Unchanged::read(&call.query)?,
        retries: call.query.number("retry_on_conflict")?.unwrap_or(0),
    };
    let read = PartialUpdate::read(&update.body, update.doc_as_upsert)?.without_script()?;
    let wanted = match read.shown {
        // As in the field it stands above the parameters.
        Some(text) => Some(Wanted::parse(text)?).filter(Wanted::is_any),
        None => Wanted::asked(&call.query),
    };
    let index = index_to_fill(&call)?;
    // As in the field also where a document is to be there already.
    ensure_index(&call, &index).await?;
    wait_for_active(&call, &index).await?;
    let limit = write_limit(&call.query)?;
    let (written, source) = update.carry_out(&call.node, &index, limit).await?;
    let get = json!({
        "_seq_no": written.seq_no, "_primary_term": written.primary_term, "found": true,
    });
    refresh.carry_out(&call.node, std::slice::from_ref(&index)).await;
    let document = (&*update.id, update.routing.as_deref());
    let (status, answer) = written_json(&call.state(), &index, document, written, refresh);
    let location = location(status, &index, document);
    let Some(wanted) = wanted else {
        return Ok(Reply { location, ..Reply::with(status, answer) });
    };
    let get = with_source(&call.node, &get, (source, wanted)).await;
    Ok(Reply { location, ..Reply::written(status, with_member(&answer, "get", &get)) })
}
