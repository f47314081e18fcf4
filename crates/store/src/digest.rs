//! What a copy holds, as a number that does not depend on order.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

/// Documents of a copy and an order-independent hash of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Live documents.
    pub documents: u64,
    /// Wrapping sum of the xxh3 of `_id`, a zero byte and `_source` of each; `_routing` counts where there is one.
    pub hash: u64,
}

impl Digest {
    /// Counts one document in.
    pub(crate) fn add(&mut self, document_hash: u64) {
        self.documents += 1;
        self.hash = self.hash.wrapping_add(document_hash);
    }
}

/// A live document, and the hash of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDocument {
    /// `_id`.
    pub id: Arc<str>,
    /// `_seq_no`.
    pub seq_no: u64,
    /// `_version`.
    pub version: u64,
    /// [`document_hash`] of it, where it has no `_routing`.
    pub hash: u64,
}

/// The hash of one document: xxh3 of `_id`, a zero byte and `_source`.
pub fn document_hash(id: &str, source: &[u8]) -> u64 {
    routed_hash(id, None, source)
}

/// The same of a document that may have a `_routing`, which then stands behind `_id` and another zero byte.
pub(crate) fn routed_hash(id: &str, routing: Option<&str>, source: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(id.as_bytes());
    if let Some(routing) = routing {
        hasher.update(&[0]);
        hasher.update(routing.as_bytes());
    }
    hasher.update(&[0]);
    hasher.update(source);
    hasher.digest()
}
