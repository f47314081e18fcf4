//! The node that a client asks to write: it sends each document to its shard's primary.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::routing;
use store::{SyntheticBatch, WriteRequest};
use world::Task;

use super::apply::{RETRY_AFTER, not_known};
use crate::core::Core;
use crate::planted;
use crate::transport::{
    CallError, Class, Failure, Request, Response, Result, UNAVAILABLE, Write, Written, unexpected,
};

/// How long a write waits for its primary.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes documents to an index from any node: each to its shard's primary. One result for each request, in
/// order.
pub async fn write_documents(
    core: &Rc<Core>,
    index: &str,
    requests: Vec<WriteRequest>,
) -> Result<Vec<Result<Written>>> {
    let shards = number_of_shards(core, index)?;
    let mut groups = Groups::new();
    let total = requests.len();
    for (place, request) in requests.into_iter().enumerate() {
        let (places, group) = groups.entry(routing::shard_of(request.id(), shards)).or_default();
        places.push(place);
        group.push(request);
    }
    Ok(write_groups(core, index, groups, total).await)
}

/// Writes a synthetic batch: new documents that exist only as a number, an equal part to each shard. In the
/// virtual world alone. What became of each part: shard, documents, result. Without an `id` each part has one of
/// its own.
pub async fn write_synthetic_batch(
    core: &Rc<Core>,
    index: &str,
    documents: u64,
    source_bytes: u64,
    id: Option<&str>,
) -> Result<Vec<(u32, u64, Result<Written>)>> {
    let shards = number_of_shards(core, index)?;
    let share = |whole: u64, shard: u32| SyntheticBatch::share(whole, shard, shards);
    let mut groups = Groups::new();
    let mut parts = Vec::new();
    for shard in 0..shards {
        let (documents, bytes) = (share(documents, shard), share(source_bytes, shard));
        if documents > 0 {
            let id = id.map_or_else(|| core.next_id(), |id| SyntheticBatch::id_of_shard(id, shard));
            let (id, batch) = (Arc::from(id), SyntheticBatch::new(documents, bytes));
            groups.insert(
                shard,
                (vec![parts.len()], vec![WriteRequest::SyntheticBatch { id, batch }]),
            );
            parts.push((shard, documents));
        }
    }
    let results = write_groups(core, index, groups, parts.len()).await;
    Ok(parts
        .into_iter()
        .zip(results)
        .map(|((shard, some), result)| (shard, some, result))
        .collect())
}

fn number_of_shards(core: &Rc<Core>, index: &str) -> Result<u32> {
    let state = core.state();
    state.indices.get(index).map(|meta| meta.shards).ok_or_else(|| Failure::no_such_index(index))
}

/// Writes by shard, with the place of each in the request.
type Groups = BTreeMap<u32, (Vec<usize>, Vec<WriteRequest>)>;

async fn write_groups(
    core: &Rc<Core>,
    index: &str,
    groups: Groups,
    total: usize,
) -> Vec<Result<Written>> {
    let tasks: Vec<(Vec<usize>, Task<_>)> = groups
        .into_iter()
        .map(|(shard, (places, requests))| {
            let write = Write { index: index.to_owned(), shard, requests };
            let core2 = core.clone();
            (places, core.env.spawn("writes", async move { to_primary(&core2, write).await }))
        })
        .collect();
    let mut results: Vec<Option<Result<Written>>> = vec![None; total];
    for (places, task) in tasks {
        let answers = task.await.unwrap_or_else(|_| Err(unexpected()));
        match answers {
            Ok(answers) => {
                for (place, answer) in places.into_iter().zip(answers) {
                    results[place] = Some(answer);
                }
            }
            Err(failure) => {
                places.into_iter().for_each(|p| results[p] = Some(Err(failure.clone())))
            }
        }
    }
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(unexpected()))).collect()
}

/// Sends a write to the primary, and waits for one where there is none yet. A write whose connection broke is
/// sent again, as Elasticsearch does: it may have been done, so that from then on no id counts as fresh.
async fn to_primary(core: &Rc<Core>, mut write: Write) -> Result<Vec<Result<Written>>> {
    let give_up = core.env.now() + WRITE_TIMEOUT;
    let mut was_sent = false;
    loop {
        let state = core.state();
        let primary = state.shard(&write.index, write.shard).and_then(|s| s.started_primary());
        let address =
            primary.and_then(|p| p.node.as_deref()).and_then(|name| core.address_of(name));
        let failure = match address {
            None => Failure::unavailable(&write.index, write.shard, "has no started primary"),
            Some(address) => {
                let request = Request::Write(write.clone());
                match core.call(&address, Class::Bulk, request, WRITE_TIMEOUT).await {
                    Ok(Response::Written(mut results)) => {
                        // The conflict may be with this write itself, which was sent before.
                        let refused = results.iter_mut().filter_map(|result| result.as_mut().err());
                        let may_be =
                            was_sent && !core.env.is_planted(planted::CONFLICT_WITH_ITSELF);
                        let conflicts = refused.filter(|failure| may_be && failure.status == 409);
                        conflicts.for_each(|failure| *failure = not_known(failure.clone()));
                        return Ok(results);
                    }
                    Ok(_) => return Err(unexpected()),
                    // No other failure is tried again: the write may have been done, and must not get a second sequence
                    // number.
                    Err(CallError::Failed(failure)) if failure.kind == UNAVAILABLE => failure,
                    Err(broken @ CallError::Broken { .. }) => {
                        // A synthetic batch cannot be looked up by its id.
                        if write.requests.iter().any(WriteRequest::is_synthetic_batch) {
                            return Err(not_known(broken.into()));
                        }
                        was_sent = true;
                        write.requests.iter_mut().for_each(may_exist);
                        broken.into()
                    }
                    Err(error) if was_sent => return Err(not_known(error.into())),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if core.env.now() >= give_up || !core.state().indices.contains_key(&write.index) {
            return Err(failure);
        }
        core.env.sleep(RETRY_AFTER).await;
    }
}

fn may_exist(request: &mut WriteRequest) {
    if let WriteRequest::Index { auto_id, .. } = request {
        *auto_id = false;
    }
}
