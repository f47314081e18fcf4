//! `_narrows/run`: documents that exist only as a number. The field has no such thing, and the real world neither.

use serde_json::{Value, json};

use super::answer::Reply;
use super::call::Call;
use super::document::{ensure_index, wait_for_active};
use super::error::{bad_request, cause_json, not_supported};
use super::names::write_index;
use engine::replication::write_synthetic_batch;
use engine::transport::Result;

/// Parameters.
pub(super) const KNOWN: &[&str] =
    &["documents", "id", "source_bytes", "timeout", "wait_for_active_shards"];
/// A request with more documents would take longer than a write may.
const MAX_DOCUMENTS: u64 = 10_000_000;

/// `POST /{index}/_narrows/run?documents=N&source_bytes=B&id=X`: what was acknowledged, by shard. With an id each
/// shard's part has the id of [`store::SyntheticBatch::id_of_shard`], so that the sender can compute its hash.
pub(super) async fn index(call: Call) -> Result<Reply> {
    if !call.node.core().env.is_virtual() {
        let what = "writing documents that exist only as a number";
        return Err(not_supported(what, "send documents with _bulk"));
    }
    let documents = number(&call, "documents")?;
    let source_bytes = number(&call, "source_bytes")?;
    if !(1..=MAX_DOCUMENTS).contains(&documents) {
        return Err(bad_request(format!(
            "[documents] is from 1 to {MAX_DOCUMENTS}, not {documents}"
        )));
    }
    let index = write_index(&call.state(), call.index())?.to_owned();
    ensure_index(&call, &index).await?;
    wait_for_active(&call, &index).await?;
    let mut acknowledged = 0;
    let mut shards: Vec<Value> = Vec::new();
    let id = call.query.get("id");
    let parts =
        write_synthetic_batch(call.node.core(), &index, documents, source_bytes, id).await?;
    for (shard, documents, result) in parts {
        shards.push(match result {
            Ok(written) => {
                acknowledged += documents;
                json!({ "shard": shard, "documents": documents, "seq_no": written.seq_no })
            }
            Err(failure) => json!({
                "shard": shard, "documents": documents, "status": failure.status,
                "error": cause_json(&failure),
            }),
        });
    }
    let errors = acknowledged < documents;
    let answer = json!({
        "index": index, "acknowledged": acknowledged, "errors": errors, "shards": shards,
    });
    Ok(answer.into())
}

fn number(call: &Call, name: &str) -> Result<u64> {
    call.query.number(name)?.ok_or_else(|| bad_request(format!("parameter [{name}] is needed")))
}
