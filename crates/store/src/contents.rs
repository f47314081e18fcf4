//! What the storage of a copy says of its contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use query::{Mapping, Refusal, mapping::NewFields};
use tantivy::Searcher;

use crate::commit::StoredCommit;

/// The view that a search saw: hits are fetched from the same one, and a scroll goes on in it, whatever is written
/// meanwhile. It holds the files of its segments, and the mapping that they were searched by.
#[derive(Clone)]
pub struct SearchView(pub(crate) Seen);

#[derive(Clone)]
pub(crate) enum Seen {
    Documents(Searcher, Arc<Mapping>),
    /// So many, where there are sizes and no documents.
    Count(u64),
}

/// Why documents are refused, by the places of their requests.
pub(crate) type Refusals = BTreeMap<usize, Refusal>;

/// Documents ready to be indexed, by the place of their operation; and what is wrong with the others.
#[derive(Default)]
pub(crate) struct Parsed {
    /// Empty where the storage needs no parsed documents.
    pub(crate) documents: Vec<Option<tantivy::TantivyDocument>>,
    pub(crate) rejected: Refusals,
    /// What documents bring that the mapping lacks, as mapping JSON, each beside those before it.
    pub(crate) new_fields: Vec<(usize, serde_json::Value)>,
}

impl Parsed {
    /// Notes what documents bring, by their places; they are read once more, and only where they bring anything.
    pub(crate) fn note_new_fields<'a>(
        &mut self,
        mapping: &Mapping,
        documents: impl Iterator<Item = (usize, &'a [u8])>,
    ) {
        let mut fields = NewFields::of(mapping);
        for (at, source) in documents {
            match fields.meet(source) {
                Ok(None) => {}
                Ok(Some(added)) => self.new_fields.push((at, added)),
                Err(refusal) => drop(self.rejected.insert(at, refusal)),
            }
        }
    }

    /// Keeps the documents at `kept` (ascending), in this order.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        if self.documents.len() != kept.len() && !self.documents.is_empty() {
            self.documents = kept.iter().map(|at| self.documents[*at].take()).collect();
        }
    }
}

/// What opening found on disk.
pub(crate) struct Found {
    pub(crate) stored: StoredCommit,
    pub(crate) torn_bytes: u64,
}

/// What can be counted without reading documents, as of the last refresh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) documents: u64,
    pub(crate) deleted: u64,
    pub(crate) segments: u64,
    pub(crate) store_bytes: u64,
    pub(crate) log_ops: u64,
    pub(crate) log_bytes: u64,
    pub(crate) request_cache_hits: u64,
    pub(crate) request_cache_misses: u64,
}
