//! Documents in segments, as numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::operation::GENERATED_ID_BYTES;
use crate::plan::Located;
use crate::{Digest, ListedDocument};

/// A document without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document {
    pub(super) seq_no: u64,
    pub(super) version: u64,
    pub(super) source_bytes: u32,
    pub(super) hash: u64,
}

/// Documents that exist only as a sum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    pub(super) documents: u64,
    pub(super) source_bytes: u64,
    pub(super) hash: u64,
}

impl Bulk {
    fn add(&mut self, other: &Bulk) {
        self.documents += other.documents;
        self.source_bytes += other.source_bytes;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Written once, never changed.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: String,
    /// By id.
    documents: Vec<(Arc<str>, Document)>,
    bulk: Bulk,
    pub(super) source_bytes: u64,
    /// Names and lengths of its files.
    pub(super) files: Vec<(String, u64)>,
}

/// A segment and which of its documents are gone.
#[derive(Clone, Debug)]
pub(super) struct SegmentState {
    pub(super) segment: Rc<Segment>,
    pub(super) deleted: Rc<BTreeSet<Arc<str>>>,
}

/// What compression leaves of stored sources.
const STORED_PERCENT: u64 = 41;

/// Sizes of a segment's files, as they are on a real copy of 1 million documents of one point each with
/// generated ids (`cargo run --release -p store --example index_speed`): bytes a document, and for the stored
/// part the share that compression leaves.
fn files(name: &str, documents: u64, source_bytes: u64, id_bytes: u64) -> Vec<(String, u64)> {
    let part = |extension: &str, bytes: u64| (format!("{name}.{extension}"), bytes);
    let raw = source_bytes + id_bytes + 8 * documents;
    vec![
        part("fast", 400 + 14 * documents),
        part("fieldnorm", 99),
        part("idx", 200 + 3 * documents),
        part("pos", 104),
        part("store", 200 + raw * STORED_PERCENT / 100),
        part("term", 300 + 2 * documents),
    ]
}

/// Bytes of sources with which `documents` in `segments` segments take `stored_bytes` in files; none where the
/// documents alone take more. The inverse of [`files`].
pub(crate) fn sources_for(documents: u64, stored_bytes: u64, segments: u32) -> Option<u64> {
    let each = files("", 0, 0, 0).iter().map(|(_, len)| len).sum::<u64>() * u64::from(segments);
    let bare: u64 = files("", documents, 0, documents * GENERATED_ID_BYTES)
        .iter()
        .zip(files("", 0, 0, 0))
        .map(|((_, len), (_, empty))| len - empty)
        .sum();
    Some(stored_bytes.checked_sub(each + bare)? * 100 / STORED_PERCENT)
}

impl Segment {
    pub(super) fn new(
        name: String,
        mut documents: Vec<(Arc<str>, Document)>,
        bulk: Bulk,
    ) -> Segment {
        documents.sort_by(|a, b| a.0.cmp(&b.0));
        let count = documents.len() as u64 + bulk.documents;
        let sources = documents.iter().map(|(_, d)| u64::from(d.source_bytes)).sum::<u64>();
        let ids = documents.iter().map(|(id, _)| id.len() as u64).sum::<u64>();
        let source_bytes = sources + bulk.source_bytes;
        let id_bytes = ids + bulk.documents * GENERATED_ID_BYTES;
        let files = files(&name, count, source_bytes, id_bytes);
        Segment { name, documents, bulk, source_bytes, files }
    }

    fn find(&self, id: &str) -> Option<&(Arc<str>, Document)> {
        let at = self.documents.binary_search_by(|(other, _)| (**other).cmp(id)).ok()?;
        Some(&self.documents[at])
    }

    fn count(&self) -> u64 {
        self.documents.len() as u64 + self.bulk.documents
    }

    /// Bytes of its files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, len)| len).sum()
    }
}

impl SegmentState {
    pub(super) fn new(segment: Segment) -> Self {
        SegmentState { segment: Rc::new(segment), deleted: Rc::default() }
    }

    fn live(&self) -> impl Iterator<Item = &(Arc<str>, Document)> {
        self.segment.documents.iter().filter(|(id, _)| !self.deleted.contains(id))
    }

    /// The file that lists what is gone; none where nothing is. Its name says how many, as they only grow.
    pub(super) fn deletes_file(&self) -> Option<(String, u64)> {
        let deleted = self.deleted.len() as u64;
        let name = || format!("{}.{deleted}.del", self.segment.name);
        (deleted > 0).then(|| (name(), 64 + self.segment.count() / 8))
    }
}

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
    /// Runs that are not searchable yet.
    runs: Bulk,
}

impl Index {
    pub(super) fn of(segments: Vec<SegmentState>) -> Self {
        Index { segments, ..Index::default() }
    }

    pub(super) fn add(&mut self, id: Arc<str>, document: Document) {
        self.buffer.insert(id, document);
    }

    pub(super) fn add_bulk(&mut self, bulk: Bulk) {
        self.bulks.push(bulk);
    }

    pub(super) fn add_run(&mut self, run: &Bulk) {
        self.runs.add(run);
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
                return;
            }
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Located> {
        let live = |state: &SegmentState| {
            state.segment.find(id).filter(|(id, _)| !state.deleted.contains(id)).map(|(_, d)| *d)
        };
        let buffered = self.buffer.get(id).copied();
        let found = buffered.or_else(|| self.segments.iter().rev().find_map(live))?;
        Some(Located { seq_no: found.seq_no, version: found.version })
    }

    /// Turns what was added into segments. Returns their bytes.
    pub(super) fn refresh(&mut self, mut name: impl FnMut() -> String) -> u64 {
        let mut bytes = 0;
        let mut push = |documents, bulk| {
            let segment = Segment::new(name(), documents, bulk);
            bytes += segment.bytes();
            self.segments.push(SegmentState::new(segment));
        };
        for bulk in std::mem::take(&mut self.bulks) {
            push(Vec::new(), bulk);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let runs = std::mem::take(&mut self.runs);
        if !buffer.is_empty() || runs.documents > 0 {
            push(buffer.into_iter().collect(), runs);
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
        let segment = Segment::new(name, documents, bulk);
        let written = segment.bytes();
        if segment.count() > 0 {
            self.segments.push(SegmentState::new(segment));
        }
        (read, written)
    }

    /// Searchable live documents.
    pub(super) fn documents(&self) -> u64 {
        self.segments.iter().map(|s| s.segment.count() - s.deleted.len() as u64).sum()
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

    /// Sums the searchable live documents.
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
