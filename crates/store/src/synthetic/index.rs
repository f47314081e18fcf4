//! Documents in segments, as numbers: what is searchable, deleted, merged.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::digest::{Digest, ListedDocument};
use crate::plan::Located;
use crate::virtual_files::{Bulk, Document, Segment, SegmentState};

/// Merges begin past this many segments.
const MAX_SEGMENTS: usize = 16;
/// As many of the smallest are merged at once.
const MERGE_SEGMENTS: usize = 8;

/// The searchable segments and what is not searchable yet.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) segments: Vec<SegmentState>,
    buffer: BTreeMap<Arc<str>, Document>,
    bulks: Vec<Bulk>,
    /// Synthetic batches that are not searchable yet.
    batches: Bulk,
    /// Documents that were deleted or replaced since the last refresh: searches see them until the next.
    unseen_deletes: u64,
    /// Whether segments are made in compound format.
    makes_compound: bool,
}

impl Index {
    pub(super) fn of(segments: Vec<SegmentState>, makes_compound: bool) -> Self {
        Index { segments, makes_compound, ..Index::default() }
    }

    pub(super) fn add(&mut self, id: Arc<str>, document: Document) {
        self.buffer.insert(id, document);
    }

    pub(super) fn add_bulk(&mut self, bulk: Bulk) {
        self.bulks.push(bulk);
    }

    pub(super) fn add_batch(&mut self, batch: &Bulk) {
        self.batches.add(batch);
    }

    pub(super) fn remove(&mut self, id: &str) {
        if self.buffer.remove(id).is_some() {
            return;
        }
        for state in self.segments.iter_mut().rev() {
            if let Some((id, _)) = state.segment.find(id)
                && !state.deleted.contains(id)
            {
                let id = id.clone();
                Rc::make_mut(&mut state.deleted).insert(id);
                self.unseen_deletes += 1;
                return;
            }
        }
    }

    /// The live document with this id.
    pub(super) fn document(&self, id: &str) -> Option<&Document> {
        self.buffer.get(id).or_else(|| {
            self.segments.iter().rev().find_map(|state| {
                let (id, document) = state.segment.find(id)?;
                (!state.deleted.contains(id)).then_some(document)
            })
        })
    }

    pub(super) fn find(&self, id: &str) -> Option<Located> {
        let found = self.document(id)?;
        Some(Located { seq_no: found.seq_no, version: found.version })
    }

    /// Turns what was added into segments. Returns their bytes.
    pub(super) fn refresh(&mut self, mut name: impl FnMut() -> String) -> u64 {
        self.unseen_deletes = 0;
        let mut bytes = 0;
        let mut push = |documents, bulk| {
            let segment = Segment::new(name(), documents, bulk, self.makes_compound);
            bytes += segment.bytes();
            self.segments.push(SegmentState::new(segment));
        };
        for bulk in std::mem::take(&mut self.bulks) {
            push(Vec::new(), bulk);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let batches = std::mem::take(&mut self.batches);
        if !buffer.is_empty() || batches.documents > 0 {
            push(buffer.into_iter().collect(), batches);
        }
        bytes
    }

    /// How many of the smallest segments the policy would merge now; 0 for none.
    pub(super) fn merge_due(&self) -> usize {
        if self.segments.len() > MAX_SEGMENTS { MERGE_SEGMENTS } else { 0 }
    }

    /// Merges the `count` smallest segments into one. Returns the bytes read and written.
    pub(super) fn merge(&mut self, count: usize, name: String) -> (u64, u64) {
        self.segments.sort_by(|a, b| {
            let key = |s: &SegmentState| (s.segment.bytes(), s.segment.name.clone());
            key(a).cmp(&key(b))
        });
        let merged: Vec<SegmentState> = self.segments.drain(..count).collect();
        let mut documents = Vec::new();
        let mut bulk = Bulk::default();
        let mut read = 0;
        for state in &merged {
            read += state.segment.bytes();
            documents.extend(state.live().cloned());
            bulk.add(&state.segment.bulk);
        }
        let segment = Segment::new(name, documents, bulk, self.makes_compound);
        let written = segment.bytes();
        if segment.count() > 0 {
            self.segments.push(SegmentState::new(segment));
        }
        (read, written)
    }

    /// Documents that searches see.
    pub(super) fn documents(&self) -> u64 {
        let live = self.segments.iter().map(|s| s.segment.count() - s.deleted.len() as u64);
        live.sum::<u64>() + self.unseen_deletes
    }

    pub(super) fn deleted(&self) -> u64 {
        self.segments.iter().map(|s| s.deleted.len() as u64).sum()
    }

    pub(super) fn store_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.segment.bytes()).sum()
    }

    /// The searchable live documents, but those of [`Bulk`].
    pub(super) fn list(&self) -> Vec<ListedDocument> {
        let listed = |(id, document): &(Arc<str>, Document)| {
            let Document { seq_no, version, hash, .. } = *document;
            ListedDocument { id: id.clone(), seq_no, version, hash }
        };
        self.segments.iter().flat_map(SegmentState::live).map(listed).collect()
    }

    pub(super) fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for state in &self.segments {
            for (_, document) in state.live() {
                digest.add(document.hash);
            }
            digest.documents += state.segment.bulk.documents;
            digest.hash = digest.hash.wrapping_add(state.segment.bulk.hash);
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_see_what_was_replaced_until_the_next_refresh() {
        let document =
            |seq_no| Document { seq_no, version: 1, source_bytes: 1, hash: seq_no, routing: None };
        let mut index = Index::default();
        index.add("a".into(), document(0));
        assert_eq!(index.documents(), 0);
        index.refresh(|| "1".to_owned());
        index.remove("a");
        index.add("a".into(), document(1));
        assert_eq!((index.documents(), index.deleted()), (1, 1));
        index.refresh(|| "2".to_owned());
        assert_eq!(index.documents(), 1);
        index.remove("a");
        assert_eq!(index.documents(), 1);
        index.refresh(|| "3".to_owned());
        assert_eq!(index.documents(), 0);
    }
}
