//! Questions to a remote cluster: which indices it has, and how many of its nodes answer.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use world::LocalFuture;

use super::addresses::{addresses, addresses_of_any};
use super::patience::{REMOTE_TIMEOUT, SILENT_PATIENCE};
use super::service::RemoteClusterService;
use crate::core::Core;
use crate::state::{Event, Index};
use crate::transport::{
    CallError, Class, Failure, INDEX_NOT_FOUND, RemoteIndex, Request, Response, Result,
    UNAVAILABLE, unexpected,
};

/// Nodes of a remote cluster that the field connects to (`cluster.remote.*.node_connections`).
pub const NODE_CONNECTIONS: usize = 3;

/// Asks a remote cluster to describe one of its indices.
pub(crate) async fn ask_index(
    service: Rc<RemoteClusterService>,
    alias: String,
    index: String,
) -> Result<RemoteIndex> {
    match ask_any(&service, &alias, Request::RemoteIndex(index), Duration::ZERO).await? {
        Response::RemoteIndex(described) => Ok(*described),
        _ => Err(unexpected()),
    }
}

/// Gives a follower its leader's mappings.
pub(crate) async fn take_mappings(core: &Core, index: Index, leader: &RemoteIndex) -> Result<()> {
    let mappings: Value = serde_json::from_str(&leader.mappings).map_err(|error| {
        let reason = format!("the leader's mappings of [{}] cannot be read: {error}", index.name);
        Failure::new(500, "transport_exception", reason)
    })?;
    let state = core.state();
    let meta = state.indices.get(&index.name).filter(|meta| meta.uuid == index.uuid);
    if meta.is_none_or(|meta| meta.mappings == mappings) {
        return Ok(());
    }
    core.submit(Event::PutMapping { index, mappings }).await
}

/// The indices of a remote cluster, at a version of its state.
pub struct Listing {
    /// UUID of the cluster.
    pub cluster: String,
    /// Of its state.
    pub version: u64,
    /// Uuids by name, of those whose primaries have been started.
    pub uuids: BTreeMap<String, String>,
}

/// Asks a remote cluster for its indices; none where it is still at the version that is known after a wait.
pub fn list<'a>(
    service: &'a Rc<RemoteClusterService>,
    alias: &'a str,
    known_version: Option<u64>,
    wait: Duration,
) -> LocalFuture<'a, Result<Option<Listing>>> {
    Box::pin(async move {
        let request = Request::RemoteIndices { known_version, wait };
        match ask_any(service, alias, request, wait).await? {
            Response::Done => Ok(None),
            Response::RemoteIndices { version, cluster, indices, others, .. } => {
                let mut uuids = others;
                uuids.extend(indices.into_iter().map(|(name, index)| (name, index.uuid.clone())));
                Ok(Some(Listing { cluster, version, uuids }))
            }
            _ => Err(unexpected()),
        }
    })
}

/// Asks the nodes one after another until one answers, for half a minute in all; a long poll may take `wait` longer.
/// One that is starting, is busy, or does not know an index is passed over: others may say more. Begins with the one
/// that answered last, so that one which stands still is waited for only once. Where the nodes are is noted, if that is
/// what the answer says.
pub(super) async fn ask_any(
    service: &Rc<RemoteClusterService>,
    alias: &str,
    request: Request,
    wait: Duration,
) -> Result<Response> {
    let env = &service.core.env;
    let mut failure = None;
    let mut addresses = addresses_of_any(service, alias)?;
    let last = service.answered.borrow().get(alias).cloned();
    let begin = addresses.iter().position(|one| Some(one) == last.as_ref()).unwrap_or(0);
    addresses.rotate_left(begin);
    let patience = if addresses.len() > 1 { SILENT_PATIENCE } else { REMOTE_TIMEOUT };
    let give_up = env.now() + REMOTE_TIMEOUT + wait;
    for address in addresses {
        let limit = patience + wait;
        let answer = service.core.call(&address, Class::Control, request.clone(), limit).await;
        if let Ok(Response::RemoteIndices { cluster, nodes, .. }) = &answer
            && let Some(known) = service.sniffed.borrow_mut().get_mut(alias)
            && !known.note_nodes(&address, cluster, nodes)
        {
            let why = format!("at {address} there is another cluster by now");
            failure = Some(Failure::new(503, UNAVAILABLE, why));
            continue;
        }
        match answer {
            Err(error) if error.is_transient() => failure = failure.or(Some(error.into())),
            Err(CallError::Failed(unknown)) if unknown.kind == INDEX_NOT_FOUND => {
                failure = Some(unknown);
            }
            answered => {
                service.answered.borrow_mut().insert(alias.to_owned(), address);
                return answered.map_err(Failure::from);
            }
        }
        if env.now() >= give_up {
            break;
        }
    }
    Err(failure.unwrap_or_else(unexpected))
}

/// How many nodes of a remote cluster answer within `limit`, of those that the field connects to.
pub fn connected_nodes<'a>(
    service: &'a Rc<RemoteClusterService>,
    alias: &'a str,
    limit: Duration,
) -> LocalFuture<'a, usize> {
    Box::pin(async move {
        let calls: Vec<_> = addresses(service, alias)
            .unwrap_or_default()
            .into_iter()
            .map(|address| {
                let (service2, alias) = (service.clone(), alias.to_owned());
                service.core.env.spawn("asks a node of a remote cluster", async move {
                    let answer =
                        service2.core.call(&address, Class::Control, Request::Hello, limit).await;
                    service2.note_seed(&alias, &address, &answer);
                    match answer {
                        Ok(Response::Hello(row)) => Some(row.transport),
                        _ => None,
                    }
                })
            })
            .collect();
        // Two seeds may lead to one node.
        let mut nodes = BTreeSet::new();
        for call in calls {
            nodes.extend(call.await.ok().flatten());
        }
        nodes.len().min(NODE_CONNECTIONS)
    })
}
