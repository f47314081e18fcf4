//! Documents that hits showed lately, unpacked: many searches of a moment show the same ones, and unpacking ten long
//! documents costs more than finding them. Segments never change, so that a cached document stays valid.
//! `pmc: default` is 2.6 and `pmc: term` 2.3 times as fast (2026-12-01, docs/benchmarks/search_side_by_side.md).

use std::sync::Mutex;

use lru::LruCache;
use tantivy::index::SegmentId;
use tantivy::{DocId, Searcher};

use query::FetchedHit;

use crate::lock::lock;

/// Bytes of documents that a copy keeps; beyond, the least recently shown are dropped.
const MAX_BYTES: usize = 2 << 20;
/// A document with more would push too many others out.
const MAX_DOCUMENT_BYTES: usize = MAX_BYTES / 8;
/// Bytes of an entry in addition to the id, the routing and the source.
const ENTRY_BYTES: usize = 160;

pub(super) struct DocumentCache(Mutex<CachedDocuments>);

struct CachedDocuments {
    documents: LruCache<(SegmentId, DocId), FetchedHit>,
    bytes: usize,
}

impl Default for DocumentCache {
    fn default() -> Self {
        DocumentCache(Mutex::new(CachedDocuments { documents: LruCache::unbounded(), bytes: 0 }))
    }
}

fn key(searcher: &Searcher, (segment, doc): (u32, u32)) -> Option<(SegmentId, DocId)> {
    let segment = searcher.segment_readers().get(segment as usize)?;
    Some((segment.segment_id(), doc))
}

fn bytes_of(document: &FetchedHit) -> usize {
    let routing = document.routing.as_ref().map_or(0, String::len);
    let source = document.source.as_ref().map_or(0, |source| source.len());
    ENTRY_BYTES + document.id.len() + routing + source
}

impl DocumentCache {
    /// The cached document of each hit, without its source where `wants_source` is false.
    pub(super) fn get(
        &self,
        searcher: &Searcher,
        hits: &[(u32, u32)],
        wants_source: bool,
    ) -> Vec<Option<FetchedHit>> {
        let mut cached = lock(&self.0);
        let found = hits.iter().map(|hit| {
            let mut document = cached.documents.get(&key(searcher, *hit)?)?.clone();
            document.source = document.source.filter(|_| wants_source);
            Some(document)
        });
        found.collect()
    }

    /// Keeps documents of hits, which were read with their sources.
    pub(super) fn keep(&self, searcher: &Searcher, hits: &[(u32, u32)], documents: &[FetchedHit]) {
        let mut cached = lock(&self.0);
        for (hit, document) in hits.iter().zip(documents) {
            let Some(key) = key(searcher, *hit) else { continue };
            let bytes = bytes_of(document);
            if bytes > MAX_DOCUMENT_BYTES {
                continue;
            }
            cached.bytes += bytes;
            let before = cached.documents.put(key, document.clone());
            cached.bytes -= before.as_ref().map_or(0, bytes_of);
        }
        while cached.bytes > MAX_BYTES
            && let Some((_, oldest)) = cached.documents.pop_lru()
        {
            cached.bytes -= bytes_of(&oldest);
        }
    }

    pub(super) fn clear(&self) {
        let mut cached = lock(&self.0);
        cached.documents.clear();
        cached.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use tantivy::schema::{STORED, STRING, Schema};
    use tantivy::{Index, doc};

    use super::super::in_memory::searcher;
    use super::*;

    fn document(n: u32, bytes: usize) -> FetchedHit {
        let source = Some(Bytes::from(vec![b'x'; bytes]));
        let (id, highlight) = (n.to_string(), BTreeMap::new());
        FetchedHit { id, version: 1, seq_no: u64::from(n), source, routing: None, highlight }
    }

    #[test]
    fn keeps_what_was_shown_last_and_no_more_than_it_may() {
        let mut schema = Schema::builder();
        let id = schema.add_text_field("id", STRING | STORED);
        let index = Index::create_in_ram(schema.build());
        let searcher = searcher(&index, vec![doc!(id => "0")]);
        let cache = DocumentCache::default();
        let (large, hot) = (100 << 10, [(0, 0)]);
        for n in 0..100 {
            cache.keep(&searcher, &[(0, n)], &[document(n, large)]);
            assert!(cache.get(&searcher, &hot, true)[0].is_some(), "shown again and again");
            // Twice the same counts once.
            cache.keep(&searcher, &[(0, n)], &[document(n, large)]);
        }
        let cached = cache.get(&searcher, &(0..100).map(|n| (0, n)).collect::<Vec<_>>(), true);
        let count = cached.iter().flatten().count();
        assert!((15..=MAX_BYTES / large).contains(&count), "{count}");
        assert_eq!(cached[99], Some(document(99, large)));
        assert!(cached[50].is_none());
        let bare = cache.get(&searcher, &[(0, 99), (7, 0)], false);
        assert_eq!(bare[0].as_ref().map(|found| &found.source), Some(&None));
        assert!(bare[1].is_none(), "of a segment that the view does not have");
        cache.keep(&searcher, &[(0, 200)], &[document(200, MAX_DOCUMENT_BYTES)]);
        assert!(cache.get(&searcher, &[(0, 200)], true)[0].is_none(), "too long");
        assert_eq!(lock(&cache.0).bytes, count * bytes_of(&document(10, large)) - 1);
        cache.clear();
        assert!(cache.get(&searcher, &[(0, 99)], true)[0].is_none(), "cleared");
        assert_eq!(lock(&cache.0).bytes, 0);
    }
}
