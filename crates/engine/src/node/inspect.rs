//! What tests and checkers ask of a node.

use std::rc::Rc;

use record::ledger;
use store::Segments;
use world::LocalFuture;

use super::parts::Node;
use crate::shard::LocalShard;
use crate::transport::Result;

impl Node {
    /// The retention leases of this node's primaries of an index, each with the first operation that it retains. None
    /// where the node has no primary of it.
    pub fn retention_leases(&self, index: &str) -> Option<Vec<(String, u64)>> {
        let shards = self.core().shards.borrow();
        let mut of_index =
            shards.values().filter(|shard| shard.index == index && shard.is_primary()).peekable();
        of_index.peek()?;
        let leases = of_index.filter_map(|shard| Some(shard.store().ok()?.stats().leases));
        Some(leases.flatten().collect())
    }

    /// Reads this node's started copies of an index, document by document: for a checker.
    pub fn copies<'a>(&'a self, index: &'a str) -> LocalFuture<'a, Result<Vec<ledger::Copy>>> {
        Box::pin(async move {
            let of_index: Vec<Rc<LocalShard>> = {
                let shards = self.core().shards.borrow();
                shards.values().filter(|s| s.index == index && s.is_started()).cloned().collect()
            };
            let mut copies = Vec::new();
            for shard in of_index {
                let store = shard.store()?;
                let held = |document: store::ListedDocument| ledger::Held {
                    id: document.id.to_string(),
                    seq_no: document.seq_no,
                    version: document.version,
                    content: document.hash,
                };
                let documents: Vec<ledger::Held> =
                    store.list().await?.into_iter().map(held).collect();
                let runs = match self.core().env.is_virtual() {
                    true => without(&store.digest().await?, &documents),
                    false => ledger::RunSum::default(),
                };
                let role = if shard.is_primary() { "primary" } else { "replica" };
                copies.push(ledger::Copy {
                    name: format!("{}, {role} [{index}][{}]", self.name(), shard.number),
                    shard: shard.number,
                    documents,
                    runs,
                    max_seq_no: store.max_seq_no(),
                    local_checkpoint: store.local_checkpoint(),
                });
            }
            Ok(copies)
        })
    }

    /// Fills this node's copy of a shard with `documents` that exist only as a number and take `bytes` in the
    /// files of so many segments. In the virtual world alone.
    pub async fn synthesize(
        &self,
        index: &str,
        shard: u32,
        documents: u64,
        bytes: u64,
        segments: Segments,
    ) -> Result<()> {
        let store = self.core().local_shard(index, shard)?.store()?;
        Ok(store.synthesize_stored(documents, bytes, segments).await?)
    }
}

/// The sum over the documents that exist only as a number: the whole sum without the documents that are listed.
fn without(sum: &store::Digest, documents: &[ledger::Held]) -> ledger::RunSum {
    let content = documents.iter().fold(sum.hash, |left, held| left.wrapping_sub(held.content));
    let documents = sum.documents.saturating_sub(documents.len() as u64);
    ledger::RunSum { documents, content }
}
