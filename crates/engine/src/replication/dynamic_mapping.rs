//! Fields that documents bring: before a primary numbers an operation, the manager has mapped what is new in its
//! document, as in the field. Whoever is sent the operation waits for that version of the mappings, so that no copy
//! indexes the document without the field.
//!
//! The manager merges one request after the other. Of two documents that bring one field with two types at once, it
//! takes the first; the other is read again, by the mappings with the first, and refused where it does not fit them.

use std::collections::BTreeMap;
use std::rc::Rc;

use query::Refusal;
use serde_json::Value;
use store::{ReadRequests, WriteRequest};

use super::apply::{ApplyError, follow_mapping, mapping_version};
use crate::core::Core;
use crate::shard::LocalShard;
use crate::state::{Event, merge_mappings};
use crate::transport::{Failure, Result};

/// Reads documents, once their new fields are mapped. A document whose fields cannot be mapped is refused; the others
/// go on.
pub(super) async fn read_documents(
    core: &Rc<Core>,
    shard: &LocalShard,
    store: &store::Shard,
    requests: Vec<WriteRequest>,
) -> Result<ReadRequests, ApplyError> {
    follow_mapping(core, shard, store).await?;
    let known = || mapping_version(core, shard);
    let mut known_when_read = known();
    let mut read = store.read(requests).await;
    while !read.new_fields().is_empty() {
        if known() == 0 {
            // It is gone, and another may have its name by now.
            return Err(Failure::no_such_index(&shard.index).into());
        }
        let mut added = Value::Null;
        for (_, new) in read.new_fields() {
            added = merge_mappings(&added, new).map_err(|error| Failure::from(&error))?;
        }
        if let Err(failure) = put(core, shard, added).await {
            let may_be_new = failure.status < 500 && core.ask_for_state().await.is_ok();
            if !may_be_new || known() == known_when_read {
                put_each(core, shard, &mut read, &failure).await;
            }
        }
        follow_mapping(core, shard, store).await?;
        known_when_read = known();
        read = read.again(store).await;
    }
    Ok(read)
}

/// The manager refused all of it, and knows nothing that this node does not: what each document brings, for itself.
async fn put_each(core: &Core, shard: &LocalShard, read: &mut ReadRequests, all: &Failure) {
    let mut refused: BTreeMap<usize, Failure> = BTreeMap::new();
    for (at, added) in read.new_fields().to_vec() {
        // A manager that is not there is not asked again for each document.
        let put = if all.status < 500 { put(core, shard, added).await } else { Err(all.clone()) };
        refused.extend(put.err().map(|failure| (at, failure)));
    }
    for (at, Failure { status, kind, reason, .. }) in refused {
        read.refuse(at, Refusal { status, kind, reason });
    }
}

async fn put(core: &Core, shard: &LocalShard, mappings: Value) -> Result<()> {
    core.submit(Event::PutMapping { index: shard.index_id(), mappings }).await
}
