//! Segment files of the virtual world: sizes and hashes, no bytes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::commit::FileMeta;
use crate::operation::GENERATED_ID_BYTES;

/// The list of segments of a commit, as the index library names it.
pub(crate) const META: &str = "meta.json";
/// How the name of a list of deleted documents ends.
pub(crate) const DELETES: &str = ".del";

/// What a commit holds: the content of its [`META`].
pub(crate) type SegmentList = Rc<[SegmentState]>;

/// A file whose content follows from its name.
pub(crate) fn named(name: &str, len: u64) -> FileMeta {
    FileMeta { name: name.into(), len, xxh3: xxh3_64(format!("{name} {len}").as_bytes()) }
}

/// [`META`] of a commit of this generation.
pub(crate) fn meta(generation: u64, segments: &[SegmentState]) -> FileMeta {
    let mut text = format!("{META} {generation}");
    for state in segments {
        text.push_str(&format!(" {} {}", state.segment.name, state.deleted.len()));
    }
    // About what the real file takes: the schema, and a line a segment.
    let len = 900 + 120 * segments.len() as u64;
    FileMeta { name: META.into(), len, xxh3: xxh3_64(text.as_bytes()) }
}

/// Names of the files of one disk's copy that are damaged.
#[derive(Debug, Default)]
pub(crate) struct Damaged(RefCell<BTreeSet<Arc<str>>>);

impl Damaged {
    /// Damages a file, or mends it if it was damaged.
    pub(crate) fn toggle(&self, name: &str) {
        let mut names = self.0.borrow_mut();
        if !names.remove(name) {
            names.insert(name.into());
        }
    }

    /// This file, or any if none is named, was written anew.
    pub(crate) fn forget(&self, name: Option<&str>) {
        let mut names = self.0.borrow_mut();
        names.retain(|known| name.is_some_and(|name| **known != *name));
    }

    /// The hash that reading a file now would give.
    pub(crate) fn xxh3(&self, file: &FileMeta) -> u64 {
        if self.0.borrow().contains(&file.name) { !file.xxh3 } else { file.xxh3 }
    }
}

/// A document without its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    pub(crate) source_bytes: u32,
    pub(crate) hash: u64,
    pub(crate) routing: Option<Arc<str>>,
}

impl Document {
    /// Bytes that its names are stored in, whose `_id` is this.
    fn name_bytes(&self, id: &str) -> u64 {
        (id.len() + self.routing.as_ref().map_or(0, |routing| routing.len())) as u64
    }
}

/// Documents that exist only as a sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bulk {
    pub(crate) documents: u64,
    pub(crate) source_bytes: u64,
    pub(crate) hash: u64,
}

impl Bulk {
    pub(crate) fn add(&mut self, other: &Bulk) {
        self.documents += other.documents;
        self.source_bytes += other.source_bytes;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Written once, never changed.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    /// By id.
    pub(crate) documents: Vec<(Arc<str>, Document)>,
    pub(crate) bulk: Bulk,
    pub(crate) source_bytes: u64,
    id_bytes: u64,
    bytes: u64,
    is_compound: bool,
}

/// A segment and which of its documents are gone.
#[derive(Clone, Debug)]
pub(crate) struct SegmentState {
    pub(crate) segment: Rc<Segment>,
    pub(crate) deleted: Rc<BTreeSet<Arc<str>>>,
}

/// What compression leaves of stored sources.
const STORED_PERCENT: u64 = 41;

/// Sizes of a segment's files, as they are on a real copy of 1 million documents of one point each with
/// generated ids (`cargo bench -p store --bench index_speed`): bytes a document, and for the stored
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

/// Bytes of the two small files of a compound segment, about what Lucene writes: where each part begins, and what the
/// segment is. Both together are less than an empty segment's [`files`].
const ENTRIES_BYTES: u64 = 479;
const INFO_BYTES: u64 = 395;

/// The same segment as Lucene has it in compound format: all parts in one file. `bytes` are those of its [`files`].
fn compound(name: &str, bytes: u64) -> Vec<(String, u64)> {
    let part = |extension: &str, bytes: u64| (format!("{name}.{extension}"), bytes);
    vec![
        part("cfe", ENTRIES_BYTES),
        part("cfs", bytes - ENTRIES_BYTES - INFO_BYTES),
        part("si", INFO_BYTES),
    ]
}

/// Bytes that `documents` in `segments` segments take in files, however short their sources are.
pub fn least_stored_bytes(documents: u64, segments: u32) -> u64 {
    let each = files("", 0, 0, 0).iter().map(|(_, len)| len).sum::<u64>() * u64::from(segments);
    let bare: u64 = files("", documents, 0, documents * GENERATED_ID_BYTES)
        .iter()
        .zip(files("", 0, 0, 0))
        .map(|((_, len), (_, empty))| len - empty)
        .sum();
    each + bare
}

/// Bytes of sources with which `documents` in `segments` segments take `stored_bytes` in files; none where the
/// documents alone take more. The inverse of [`files`].
pub(crate) fn sources_for(documents: u64, stored_bytes: u64, segments: u32) -> Option<u64> {
    let for_sources = stored_bytes.checked_sub(least_stored_bytes(documents, segments))?;
    Some(for_sources * 100 / STORED_PERCENT)
}

impl Segment {
    pub(crate) fn new(
        name: String,
        mut documents: Vec<(Arc<str>, Document)>,
        bulk: Bulk,
        is_compound: bool,
    ) -> Segment {
        documents.sort_by(|a, b| a.0.cmp(&b.0));
        let count = documents.len() as u64 + bulk.documents;
        let sources = documents.iter().map(|(_, d)| u64::from(d.source_bytes)).sum::<u64>();
        let ids = documents.iter().map(|(id, d)| d.name_bytes(id)).sum::<u64>();
        let source_bytes = sources + bulk.source_bytes;
        let id_bytes = ids + bulk.documents * GENERATED_ID_BYTES;
        let bytes = files(&name, count, source_bytes, id_bytes).iter().map(|(_, len)| len).sum();
        Segment { name, documents, bulk, source_bytes, id_bytes, bytes, is_compound }
    }

    /// Names and lengths of its files. Worked out when they are asked for: of a large cluster, the names of all files
    /// would be most of what there is to remember.
    pub(crate) fn files(&self) -> Vec<(String, u64)> {
        match self.is_compound {
            true => compound(&self.name, self.bytes),
            false => files(&self.name, self.count(), self.source_bytes, self.id_bytes),
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&(Arc<str>, Document)> {
        let at = self.documents.binary_search_by(|(other, _)| (**other).cmp(id)).ok()?;
        Some(&self.documents[at])
    }

    pub(crate) fn count(&self) -> u64 {
        self.documents.len() as u64 + self.bulk.documents
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl SegmentState {
    pub(crate) fn new(segment: Segment) -> Self {
        SegmentState { segment: Rc::new(segment), deleted: Rc::default() }
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &(Arc<str>, Document)> {
        self.segment.documents.iter().filter(|(id, _)| !self.deleted.contains(id))
    }

    /// The file that lists what is gone; none where nothing is. Its name says how many, as they only grow.
    pub(crate) fn deletes_file(&self) -> Option<(String, u64)> {
        let deleted = self.deleted.len() as u64;
        let name = || format!("{}.{deleted}{DELETES}", self.segment.name);
        (deleted > 0).then(|| (name(), 64 + self.segment.count() / 8))
    }
}
