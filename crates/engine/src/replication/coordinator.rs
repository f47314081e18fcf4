//! The node that a client asks to write: it sends each document to its shard's primary.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use store::{SyntheticBatch, WriteRequest};
use world::{LocalFuture, Task};

use super::apply::{RETRY_AFTER, not_known};
use crate::core::Core;
use crate::planted;
use crate::state::IndexMeta;
use crate::transport::{
    CallError, Class, Failure, OPERATION_BYTES_MAX, OPERATIONS_AT_ONCE_BYTES, Request, Response,
    Result, UNAVAILABLE, Write, Written, unexpected,
};

/// How long a write waits for its primary where its request does not say, and for the primary's answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes documents to an index from any node: each to its shard's primary, for which it waits no longer than `limit`.
/// One result for each request, in order.
pub fn write_documents<'a>(
    core: &'a Rc<Core>,
    index: &'a str,
    requests: Vec<WriteRequest>,
    limit: Duration,
) -> LocalFuture<'a, Result<Vec<Result<Written>>>> {
    Box::pin(async move {
        let index = Routed::by(core, index)?;
        let mut groups = Groups::new();
        let mut refused = Vec::new();
        let total = requests.len();
        let share = total.div_ceil(index.meta.shards as usize);
        // Ids spread evenly, but for a few.
        let room = share + share / 8;
        for (place, request) in requests.into_iter().enumerate() {
            if let Err(failure) = check_size(&request).and_then(|()| index.check_routing(&request))
            {
                refused.push((place, failure));
                continue;
            }
            let by = request.routing().unwrap_or(request.id());
            let shard = index.meta.shard_of(by);
            let new_group = || (Vec::with_capacity(room), Vec::with_capacity(room));
            let (places, group) = groups.entry(shard).or_insert_with(new_group);
            places.push(place);
            group.push(request);
        }
        let mut results = write_groups(core, index, groups, (total, limit)).await;
        refused.into_iter().for_each(|(place, failure)| results[place] = Err(failure));
        Ok(results)
    })
}

/// What became of a part of a synthetic batch: its shard, its documents, its result.
pub type BatchPart = (u32, u64, Result<Written>);

/// Writes a synthetic batch: new documents that exist only as a number, an equal part to each shard. In the
/// virtual world alone. Without an `id` each part has one of its own.
pub fn write_synthetic_batch<'a>(
    core: &'a Rc<Core>,
    index: &'a str,
    documents: u64,
    source_bytes: u64,
    id: Option<&'a str>,
) -> LocalFuture<'a, Result<Vec<BatchPart>>> {
    Box::pin(async move {
        let index = Routed::by(core, index)?;
        if index.requires_routing {
            return Err(Failure::routing_missing(&index.name, id.unwrap_or("")));
        }
        let share = |whole: u64, shard: u32| SyntheticBatch::share(whole, shard, index.meta.shards);
        let mut groups = Groups::new();
        let mut parts = Vec::new();
        for shard in 0..index.meta.shards {
            let (documents, bytes) = (share(documents, shard), share(source_bytes, shard));
            if documents > 0 {
                let id =
                    id.map_or_else(|| core.next_id(), |id| SyntheticBatch::id_of_shard(id, shard));
                let (id, batch) = (Arc::from(id), SyntheticBatch::new(documents, bytes));
                groups.insert(
                    shard,
                    (vec![parts.len()], vec![WriteRequest::SyntheticBatch { id, batch }]),
                );
                parts.push((shard, documents));
            }
        }
        let results = write_groups(core, index, groups, (parts.len(), WRITE_TIMEOUT)).await;
        Ok(parts
            .into_iter()
            .zip(results)
            .map(|((shard, some), result)| (shard, some, result))
            .collect())
    })
}

/// The index that writes are routed by. Another of the same name is not meant, however long a write waits.
struct Routed {
    name: String,
    meta: Arc<IndexMeta>,
    requires_routing: bool,
}

impl Routed {
    fn by(core: &Rc<Core>, index: &str) -> Result<Routed> {
        let state = core.state();
        let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
        if meta.closed {
            return Err(Failure::index_closed(index, &meta.uuid));
        }
        Ok(Routed {
            name: index.to_owned(),
            meta: meta.clone(),
            requires_routing: meta.requires_routing(),
        })
    }

    fn check_routing(&self, request: &WriteRequest) -> Result<()> {
        match request.routing() {
            None if self.requires_routing => {
                Err(Failure::routing_missing(&self.name, request.id()))
            }
            Some(routing) if routing.len() > ROUTING_BYTES_MAX => {
                let (id, bytes) = (request.id(), routing.len());
                let reason = format!(
                    "routing of [{id}] has {bytes} bytes, and may have {ROUTING_BYTES_MAX}"
                );
                Err(Failure::new(400, "illegal_argument_exception", reason))
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of a `_routing`, which in the field is one term of the index.
const ROUTING_BYTES_MAX: usize = 32_766;

/// What a request takes in a message beside its id, its routing and its source, at most.
const REQUEST_BYTES: u64 = 64;

/// Refuses what would fit into no message: the primary could keep it, and no other copy could be sent it.
fn check_size(request: &WriteRequest) -> Result<()> {
    let bytes = request.source().map_or(0, |source| source.len() as u64);
    if bytes <= OPERATION_BYTES_MAX {
        return Ok(());
    }
    let id = request.id();
    let reason = format!("document [{id}] has {bytes} bytes, and may have {OPERATION_BYTES_MAX}");
    Err(Failure::new(413, "content_too_long_exception", reason))
}

/// What a request takes in a message, at most.
fn sent_bytes(request: &WriteRequest) -> u64 {
    let source = request.source().map_or(0, |source| source.len());
    let routing = request.routing().map_or(0, |routing| routing.len());
    REQUEST_BYTES + (request.id().len() + routing + source) as u64
}

/// Cuts a write, in order, so that each part fits into a message, also on its way to the replicas.
fn parts(requests: Vec<WriteRequest>) -> Vec<Vec<WriteRequest>> {
    // Nearly always.
    if requests.iter().map(sent_bytes).sum::<u64>() <= OPERATIONS_AT_ONCE_BYTES {
        return vec![requests];
    }
    let mut parts: Vec<Vec<WriteRequest>> = Vec::new();
    let mut bytes = 0;
    for request in requests {
        let more = sent_bytes(&request);
        bytes += more;
        if parts.is_empty() || bytes > OPERATIONS_AT_ONCE_BYTES {
            parts.push(Vec::new());
            bytes = more;
        }
        if let Some(last) = parts.last_mut() {
            last.push(request);
        }
    }
    parts
}

/// Writes by shard, with the place of each in the request.
type Groups = BTreeMap<u32, (Vec<usize>, Vec<WriteRequest>)>;

async fn write_groups(
    core: &Rc<Core>,
    index: Routed,
    groups: Groups,
    (total, limit): (usize, Duration),
) -> Vec<Result<Written>> {
    let tasks: Vec<(Vec<usize>, Task<_>)> = groups
        .into_iter()
        .map(|(shard, (places, requests))| {
            let (index, index_uuid) = (index.name.clone(), index.meta.uuid.clone());
            let write = Write { index, index_uuid, shard, requests, resent: false };
            let core2 = core.clone();
            (places, core.env.spawn("writes", async move { in_parts(&core2, write, limit).await }))
        })
        .collect();
    // A failure is two texts: none is made for a place that gets its answer.
    let mut results: Vec<Option<Result<Written>>> = Vec::new();
    results.resize_with(total, || None);
    for (places, task) in tasks {
        let answers = task.await.unwrap_or_default();
        places.into_iter().zip(answers).for_each(|(place, answer)| results[place] = Some(answer));
    }
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(unexpected()))).collect()
}

/// Sends a write to the primary, one part after the other; one result for each request. What comes after a part that
/// failed fails with it: that part may still be under way, and must not be overtaken.
async fn in_parts(core: &Rc<Core>, write: Write, limit: Duration) -> Vec<Result<Written>> {
    let Write { index, index_uuid, shard, requests, .. } = write;
    let total = requests.len();
    let mut results = Vec::with_capacity(total);
    for requests in parts(requests) {
        let asked = results.len() + requests.len();
        let (index, index_uuid) = (index.clone(), index_uuid.clone());
        let part = Write { index, index_uuid, shard, requests, resent: false };
        match to_primary(core, part, limit).await {
            Ok(answers) => {
                results.extend(answers);
                results.resize(asked, Err(unexpected()));
            }
            Err(failure) => {
                results.resize(total, Err(failure));
                break;
            }
        }
    }
    results
}

/// Whether the index that a write was routed by is still there.
fn is_there(core: &Core, write: &Write) -> bool {
    let state = core.state();
    state.indices.get(&write.index).is_some_and(|meta| meta.uuid == write.index_uuid)
}

/// Sends a write to the primary, and waits for one where there is none yet. A write whose connection broke is sent
/// again, as Elasticsearch does, and says so: it may have been done.
async fn to_primary(
    core: &Rc<Core>,
    mut write: Write,
    limit: Duration,
) -> Result<Vec<Result<Written>>> {
    let give_up = core.env.now() + limit;
    loop {
        if !is_there(core, &write) {
            let gone = Failure::no_such_index(&write.index);
            return Err(if write.resent { not_known(gone) } else { gone });
        }
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
                            write.resent && !core.env.is_planted(planted::CONFLICT_WITH_ITSELF);
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
                        write.resent = true;
                        broken.into()
                    }
                    Err(error) if write.resent => return Err(not_known(error.into())),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if core.env.now() >= give_up {
            return Err(if write.resent { not_known(failure) } else { failure });
        }
        if is_there(core, &write) {
            core.env.sleep(RETRY_AFTER).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn index(id: &str, bytes: u64) -> WriteRequest {
        let source = Bytes::from(vec![0; bytes as usize]);
        WriteRequest::index(id.into(), source)
    }

    #[test]
    fn each_part_of_a_write_fits_into_a_message() {
        let third = OPERATIONS_AT_ONCE_BYTES / 3;
        let sizes = [third, third, third, 1, OPERATION_BYTES_MAX, 1];
        let requests = ["a", "b", "c", "d", "e", "f"].into_iter().zip(sizes);
        let requests: Vec<WriteRequest> = requests.map(|(id, bytes)| index(id, bytes)).collect();
        let ids = |part: &Vec<WriteRequest>| -> String {
            part.iter().map(|request| request.id().to_string()).collect()
        };
        let cut: Vec<String> = parts(requests).iter().map(ids).collect();
        assert_eq!(cut, ["ab", "cd", "e", "f"]);
    }

    #[test]
    fn a_document_that_fits_into_no_message_is_refused() {
        assert!(check_size(&index("a", OPERATION_BYTES_MAX)).is_ok());
        let refused = check_size(&index("b", OPERATION_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(refused.status, 413);
        assert!(refused.reason.contains("document [b] has 134217729 bytes"), "{refused}");
    }

    #[test]
    fn a_routing_that_is_no_term_is_refused() {
        let meta = Arc::new(IndexMeta { shards: 1, ..IndexMeta::default() });
        let index = Routed { name: "a".to_owned(), meta, requires_routing: true };
        let check = |routing: Option<String>| {
            let routing = routing.map(Arc::from);
            index.check_routing(&WriteRequest::Delete { id: "b".into(), routing })
        };
        assert_eq!(check(None).unwrap_err().kind, "routing_missing_exception");
        assert!(check(Some("r".repeat(ROUTING_BYTES_MAX))).is_ok());
        let refused = check(Some("r".repeat(ROUTING_BYTES_MAX + 1))).unwrap_err();
        assert!(refused.reason.contains("routing of [b] has 32767 bytes"), "{refused}");
    }
}
