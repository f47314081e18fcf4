//! `_dangling`: indices on the disks of nodes that the cluster state does not know.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::answer::Reply;
use super::call::{Call, PATIENCE};
use super::error::bad_request;
use super::spread::on_nodes;
use super::time_text::moment;
use engine::state::{DanglingIndex, Event, StateError, StoredIndex};
use engine::transport::{Failure, Request, Result};

/// Parameters beside those of every managed request.
pub(super) const KNOWN: &[&str] = &["accept_data_loss"];

/// What these nodes have of a dangling index, together.
async fn described(
    call: &Call,
    uuid: &str,
    nodes: BTreeSet<String>,
    limit: Duration,
) -> DanglingIndex {
    let request = Request::Dangling(uuid.to_owned());
    let answers = on_nodes(&call.node, nodes.into_iter().collect(), &request, limit).await;
    let mut together = DanglingIndex::default();
    // A node that does not answer has nothing to give now.
    for answer in answers.into_iter().filter_map(|(_, answer)| answer.ok()) {
        let Ok(found) = serde_json::from_value::<DanglingIndex>(answer) else { continue };
        together.copies.extend(found.copies);
        let age = |stored: &StoredIndex| {
            let meta = &stored.meta;
            (meta.mapping_version, meta.settings_version, meta.aliases_version)
        };
        if together.stored.as_ref().map(age) < found.stored.as_ref().map(age) {
            together.stored = found.stored;
        }
    }
    together
}

/// `GET /_dangling`.
pub(super) async fn list(call: Call) -> Result<Reply> {
    let state = call.state();
    let mut indices = Vec::new();
    for (uuid, nodes) in state.dangling() {
        let stored = described(&call, &uuid, nodes.clone(), PATIENCE).await.stored;
        let created_ms = stored.as_ref().map(|stored| stored.meta.created_ms);
        indices.push(json!({
            "index_name": stored.map(|stored| stored.index),
            "index_uuid": uuid,
            "creation_date_millis": created_ms,
            "creation_date": created_ms.map(moment),
            "node_ids": nodes,
        }));
    }
    let nodes = state.present.len();
    Ok(json!({
        "_nodes": { "total": nodes, "successful": nodes, "failed": 0 },
        "cluster_name": state.cluster_name,
        "dangling_indices": indices,
    })
    .into())
}

/// The dangling index of the path, once the caller has said that he knows what may be missing of it.
async fn named(call: &Call) -> Result<(String, DanglingIndex)> {
    if !call.query.flag("accept_data_loss", false)? {
        return Err(bad_request(
            "accept_data_loss must be set to true: what was written while the index was unknown is not in it",
        ));
    }
    let uuid = call.part("uuid").unwrap_or_default().to_owned();
    let nodes = call.state().dangling().remove(&uuid);
    let nodes =
        nodes.ok_or_else(|| Failure::from(&StateError::NoDanglingIndex { uuid: uuid.clone() }))?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let index = described(call, &uuid, nodes, limit).await;
    Ok((uuid, index))
}

/// `POST /_dangling/{uuid}`.
pub(super) async fn import(call: Call) -> Result<Reply> {
    let (uuid, DanglingIndex { stored, copies }) = named(&call).await?;
    let stored = stored.ok_or_else(|| {
        bad_request(format!(
            "nobody can read what the dangling index [{uuid}] is: [indices/{uuid}/index.json] is gone or damaged on \
             every node that holds it"
        ))
    })?;
    let event = Event::ImportDangling { stored: Box::new(stored), copies };
    let done = call.submit(vec![event]).await?;
    Ok(Reply::with(202, json!({ "acknowledged": done })))
}

/// `DELETE /_dangling/{uuid}`.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    let (uuid, found) = named(&call).await?;
    let index = found.stored.map(|stored| stored.index).unwrap_or_default();
    let done = call.submit(vec![Event::DeleteDangling { index, uuid }]).await?;
    Ok(Reply::with(202, json!({ "acknowledged": done })))
}
