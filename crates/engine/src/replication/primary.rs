//! A write on its primary.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::Refusal;
use store::{ReadRequests, Rejection, WriteRequest};
use world::Time;

use super::apply::{not_known, report_apply_failure, report_store_failure};
use super::dynamic_mapping::read_documents;
use super::in_sync::{finish, send_to_replicas};
use crate::core::Core;
use crate::planted;
use crate::shard::LocalShard;
use crate::transport::{Failure, Response, Result, Write, Written};

/// On the primary: indexes, makes durable, and replicates.
///
/// Once begun it runs to its end, even if the node that asked is lost meanwhile: an operation that has a sequence
/// number must become durable here and reach every copy, or their histories would have holes for good.
pub(crate) async fn write(core: &Rc<Core>, write: Write) -> Result<Response> {
    let core2 = core.clone();
    let writing = async move { write_on_primary(&core2, write).await };
    if core.env.is_planted(planted::WRITE_STOPS_HALF_WAY) {
        return writing.await;
    }
    core.run_to_end("writes on a primary", writing).await
}

async fn write_on_primary(core: &Rc<Core>, write: Write) -> Result<Response> {
    let began = core.env.now();
    let shard = core.local_shard_of((&write.index, &write.index_uuid), write.shard)?;
    let store = shard.primary_store()?;
    if write.resent {
        note_resent(&shard, &write.requests, began);
    }
    // A write to a closed index is refused before its documents map a field.
    shard.check_open(&core.state())?;
    let mut read = read_documents(core, &shard, &store, write.requests)
        .await
        .map_err(|error| report_apply_failure(core, &shard, error))?;
    // The manager may have been asked meanwhile: this copy must still be the primary.
    let (store, _operation) = shard.begin_operation()?;
    shard.check_open(&core.state())?;
    if shard.is_yet_to_end_following() && !core.env.is_planted(planted::WRITTEN_BEFORE_THE_END) {
        let why = "has still to end following its leader; try again";
        return Err(Failure::unavailable(&shard.index, shard.number, why));
    }
    core.note_use_of(&shard);
    let primary_term = shard.term();
    refuse_other_terms(&mut read, primary_term);
    // The one that was sent before may have come first, or may be this one, which comes last.
    read.may_exist(|id| shard.resent.borrow().contains_key(id));
    let outcomes = store.index_read(read).await;
    let outcomes = outcomes.map_err(|error| report_store_failure(core, &shard, error))?;
    let mut ops = Vec::with_capacity(outcomes.len());
    let mut results = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        results.push(match outcome {
            Ok((op, outcome)) => {
                let (seq_no, version) = (op.seq_no, op.version);
                ops.push(op);
                Ok(Written { seq_no, version, primary_term, outcome })
            }
            Err(rejection) => Err(rejected(&rejection)),
        });
    }
    if !ops.is_empty() {
        let sent = send_to_replicas(core, (&shard, &store), primary_term, Arc::new(ops));
        let sent = sent.map_err(not_known)?;
        let finished = finish(core, &shard, &store, sent).await;
        let refuses = core.env.is_planted(planted::REFUSED_WHAT_MAY_BE_DONE);
        finished.map_err(|error| match refuses {
            true => Failure { status: 400, ..error.into() },
            false => not_known(error.into()),
        })?;
    }
    core.served_in(core.env.now() - began);
    Ok(Response::Written(results))
}

/// How long after a write was sent again the first one may still come: both ends of its connection have closed that by
/// then.
const LATE_AT_MOST: Duration = Duration::from_secs(600);

/// Notes the ids of a write that was sent again: of two appends under one id, both would be found. The field does not
/// look up ids that were generated after the last one that was sent again (`mayHaveBeenIndexedBefore`); here others are
/// not looked up at all.
fn note_resent(shard: &LocalShard, requests: &[WriteRequest], now: Time) {
    let mut resent = shard.resent.borrow_mut();
    resent.retain(|_, at| now - *at < LATE_AT_MOST);
    resent.extend(requests.iter().map(|request| (request.id().clone(), now)));
}

/// How long a primary waits for the writes that run when its index is closed.
const WRITES_PATIENCE: Duration = Duration::from_secs(30);

/// On the primary of an index that was closed: waits until the writes have ended that were begun before. Each looks at
/// the state when it begins, so that from then on none is acknowledged.
pub(crate) async fn end_writes(core: &Rc<Core>, shard: &LocalShard) -> Result<()> {
    let refuse = |why: &str| Failure::unavailable(&shard.index, shard.number, why);
    if shard.check_open(&core.state()).is_ok() {
        // This node may have missed what the manager published.
        core.ask_for_state().await?;
        if shard.check_open(&core.state()).is_ok() {
            return Err(refuse("is not closed, or not any more; try again"));
        }
    }
    let ended = core.env.timeout(WRITES_PATIENCE, shard.operations.end()).await;
    ended.map_err(|_| refuse("has writes that do not end; close it again"))
}

/// Sequence numbers may have been given anew since the term in which a document was read.
fn refuse_other_terms(read: &mut ReadRequests, now: u64) {
    let other = |(at, request): (usize, &WriteRequest)| match request {
        WriteRequest::IfUnchanged { primary_term, .. } if *primary_term != now => {
            Some((at, *primary_term))
        }
        _ => None,
    };
    let others: Vec<(usize, u64)> = read.requests().iter().enumerate().filter_map(other).collect();
    for (at, term) in others {
        let reason = format!("version conflict, required primary term [{term}], but it is [{now}]");
        read.refuse(at, Refusal { status: 409, kind: CONFLICT.to_owned(), reason });
    }
}

const CONFLICT: &str = "version_conflict_engine_exception";

fn rejected(rejection: &Rejection) -> Failure {
    match rejection {
        Rejection::VersionConflict { .. }
        | Rejection::Changed { .. }
        | Rejection::Version { .. } => Failure::new(409, CONFLICT, rejection.to_string()),
        Rejection::Document { refusal, .. } => {
            Failure::new(refusal.status, &refusal.kind, rejection.to_string())
        }
    }
}
