//! What a copy holds, as a number that does not depend on order.

use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Documents of a copy and an order-independent hash of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Live documents.
    pub documents: u64,
    /// Wrapping sum of the xxh3 of `_id`, a zero byte and `_source` of each; `_routing` counts where there is one.
    pub hash: u64,
}

impl Digest {
    pub(crate) fn add(&mut self, document_hash: u64) {
        self.documents += 1;
        self.hash = self.hash.wrapping_add(document_hash);
    }
}

/// A live document, and the hash of it.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDocument {
    pub id: Arc<str>,
    pub seq_no: u64,
    pub version: u64,
    /// [`document_hash`] of it, where it has no `_routing`.
    pub hash: u64,
}

/// The hash of one document: xxh3 of `_id`, a zero byte and `_source`.
pub fn document_hash(id: &str, source: &[u8]) -> u64 {
    routed_hash(id, None, source)
}

/// The same of one that is short: a hasher for parts sets up half a kilobyte of state first.
pub(crate) fn short_document_hash(id: &str, source: &[u8]) -> u64 {
    xxh3_64(&[id.as_bytes(), &[0][..], source].concat())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_document_has_the_hash_of_any() {
        for (id, source) in [("", "{}"), ("a", ""), ("a batch/1", "b"), ("zwölf", "{\"a\":1}")] {
            let source = source.as_bytes();
            assert_eq!(short_document_hash(id, source), document_hash(id, source), "{id}");
        }
    }
}
