//! `_narrows/digest` and `_narrows/copies`: what shards hold, as a number or document by document, for a checker. The
//! field has no such thing.

use std::time::Duration;

use record::ShardDigest;
use serde_json::{Value, json};

use super::answer::Reply;
use super::call::Call;
use super::names::{Closed, indices_with};
use super::spread::{are_started, on_shards, primaries, started};
use engine::state::ClusterState;
use engine::transport::{Result, ShardAction, ShardAnswer, unexpected};

/// Every live document is read: of terabytes in virtual time, for days. A node that is lost is told by its connection.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);

/// Whoever asks may have heard of a started copy from another node, before the manager's publication reached this one.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(10);

/// `GET /{index}/_narrows/digest`: of the primaries, or with `replicas` of every started copy.
///
/// Fails if any of them cannot answer, or a shard has no started primary: half a comparison would be none.
pub(super) async fn digest(call: Call) -> Result<Reply> {
    let names = indices_with(&call.state(), call.indices(), &call.query, Closed::Expanded)?;
    let replicas = call.query.flag("replicas", false)?;
    // Where that does not come true, what is missing is said below.
    let all_started = |state: &ClusterState| are_started(state, &names, replicas);
    call.node.core().wait_for_state(PUBLISHED_WITHIN, all_started).await;
    let state = call.state();
    let mut places = primaries(&state, &names);
    if replicas {
        // A shard of which no copy is started would be told by nobody.
        places.retain(|primary| primary.node.is_none());
        places.extend(started(&state, &names));
    }
    let mut shards = Vec::new();
    for (place, answer) in on_shards(&call.node, places, &ShardAction::Digest, PATIENCE).await {
        let ShardAnswer::Digest(documents, hash) = answer? else { return Err(unexpected()) };
        let (index, shard) = (place.index, place.shard);
        let row = ShardDigest { index, shard, documents, content: format!("{hash:016x}") };
        let mut row = serde_json::to_value(row).expect("a digest is plain data");
        if replicas {
            row["node"] = json!(place.node);
            row["primary"] = json!(place.primary);
        }
        shards.push(row);
    }
    Ok(json!({ "shards": Value::Array(shards) }).into())
}

/// `GET /{index}/_narrows/copies`: every document of every started copy that the node has which is asked, with the
/// number of its last operation and a hash of its content ([`record::ledger::Copy`]).
pub(super) async fn copies(call: Call) -> Result<Reply> {
    let state = call.state();
    let mut copies = Vec::new();
    for index in indices_with(&state, call.indices(), &call.query, Closed::Expanded)? {
        copies.extend(call.node.copies(&index).await?);
    }
    Ok(Reply::written(200, serde_json::to_vec(&copies).expect("copies are plain data")))
}
