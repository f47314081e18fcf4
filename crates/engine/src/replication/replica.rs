//! A write on a replica.

use std::rc::Rc;
use std::sync::Arc;

use super::apply::{check_term, follow_mapping_to};
use crate::core::Core;
use crate::planted;
use crate::transport::{Failure, Replicate, Response, Result};

pub(crate) async fn replicate(core: &Rc<Core>, sent: Replicate) -> Result<Response> {
    let key = (sent.index_uuid, sent.shard);
    let shard = core.shards.borrow().get(&key).cloned();
    let shard = shard.filter(|shard| shard.allocation_id == sent.allocation_id);
    let shard = shard.ok_or_else(|| {
        Failure::new(404, "shard_not_found_exception", "this copy is not on this node")
    })?;
    check_term(core, &shard, sent.primary_term)?;
    let store = shard.store()?;
    follow_mapping_to(core, &shard, &store, sent.mapping_version).await?;
    // That may have taken long, and this copy may be the primary by now.
    check_term(core, &shard, sent.primary_term)?;
    let ops = Arc::try_unwrap(sent.ops).unwrap_or_else(|shared| Vec::clone(&shared));
    core.note_use_of(&shard);
    // A request without operations asks what is durable.
    let is_question = ops.is_empty();
    store.apply(ops).await?;
    // A sync notes it.
    if let Some(checkpoint) = sent.global_checkpoint {
        store.advance_global_checkpoint(checkpoint);
    }
    let is_told = sent.sync && !core.env.is_planted(planted::DURABILITY_UNHEARD);
    let is_durable = is_told || store.durability() == store::Durability::Request;
    if is_question || is_durable && !core.env.is_planted(planted::REPLICA_NOT_SYNCED) {
        store.sync().await?;
    }
    if is_question {
        store.note_global_checkpoint().await?;
    }
    Ok(Response::Replicated { local_checkpoint: store.persisted_checkpoint() })
}
