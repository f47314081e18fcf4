//! On a leader: its indices, as it describes them to clusters that follow it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::service::{Described, RemoteClusterService};
use crate::core::Core;
use crate::state::{IndexMeta, IndexShardRoutingTable};
use crate::transport::{Failure, RemoteIndex, Response, Result, UNAVAILABLE};

/// Bytes of the descriptions of indices in one answer; further indices are asked for one by one.
const DESCRIBED_BYTES_MAX: u64 = 1 << 20;

/// On a leader: describes an index.
pub(crate) fn describe(core: &Core, index: &str) -> Result<Response> {
    let state = core.joined_state(index, 0)?;
    let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
    if meta.closed {
        let reason = format!(
            "the index [{index}] is closed there; POST {index}/_open before it is followed"
        );
        return Err(Failure { reason, ..Failure::index_closed(index, &meta.uuid) });
    }
    Ok(Response::RemoteIndex(Box::new(description(meta))))
}

/// On a leader: the indices whose primaries have started. An asker that knows this version waits for a change.
pub(crate) async fn describe_all(
    service: &Rc<RemoteClusterService>,
    known_version: Option<u64>,
    wait: Duration,
) -> Result<Response> {
    let deadline = service.core.env.now() + wait;
    let state = loop {
        let changed = service.core.published.changed.notified();
        let state = service.core.state();
        if state.members.is_empty() {
            let why = "the node that was asked is starting; try again";
            return Err(Failure::new(503, UNAVAILABLE, why));
        }
        if known_version != Some(state.version) {
            break state;
        }
        if service.core.env.now() >= deadline {
            return Ok(Response::Done);
        }
        tokio::select! {
            biased;
            () = changed => {}
            () = service.core.env.sleep_until(deadline) => {}
        }
    };
    let mut bytes = 0;
    let mut indices = BTreeMap::new();
    let mut others = BTreeMap::new();
    // Few of hundreds of indices have changed since the last question.
    let mut before = service.described.take();
    let mut described = Described::new();
    for (name, shards) in &state.routing {
        let Some(meta) = state.indices.get(name) else { continue };
        if !shards.iter().all(IndexShardRoutingTable::was_started) {
            continue;
        }
        let one = before.remove(name).filter(|(of, _)| Arc::ptr_eq(of, meta));
        let one = one.unwrap_or_else(|| (meta.clone(), Arc::new(description(meta))));
        bytes += one.1.wire_bytes();
        // A closed index is asked for again before it is followed: it must be open by then.
        if bytes > DESCRIBED_BYTES_MAX || meta.closed {
            others.insert(name.clone(), one.1.uuid.clone());
        } else {
            indices.insert(name.clone(), one.1.clone());
        }
        described.insert(name.clone(), one);
    }
    service.described.replace(described);
    let nodes = state.present_nodes().map(|node| node.transport_address.clone()).collect();
    let cluster = state.cluster_uuid.clone();
    Ok(Response::RemoteIndices { version: state.version, cluster, nodes, indices, others })
}

fn description(meta: &IndexMeta) -> RemoteIndex {
    RemoteIndex {
        uuid: meta.uuid.clone(),
        shards: meta.shards,
        routing_shards: meta.routing_shards,
        mappings: meta.mappings.to_string(),
        mapping_version: meta.mapping_version,
        settings: meta.settings.clone(),
        settings_version: meta.settings_version,
        aliases: meta.aliases.clone(),
        aliases_version: meta.aliases_version,
    }
}
