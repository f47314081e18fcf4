//! Looking up documents in the refreshed index, and searching it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::schema::document::Value;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{
    DocId, DocSet, Searcher, SegmentReader, TERMINATED, TantivyDocument, TantivyError, Term,
};

use query::{FetchRequest, FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHits};

use super::schema::{Fields, SEQ_NO, VERSION};
use super::shared::Shared;
use super::stored::{STORE_CACHE_BLOCKS, Stored, StoredFields};
use crate::digest::routed_hash;
use crate::plan::Located;
use crate::tantivy_storage::search::{self, Execution, Failed};
use crate::{Digest, Error, GetResult, ListedDocument, Result};

/// One segment made ready for many lookups.
struct Segment<'a> {
    reader: &'a SegmentReader,
    ids: Arc<tantivy::InvertedIndexReader>,
    seq_nos: Column<u64>,
    versions: Column<u64>,
}

impl<'a> Segment<'a> {
    fn new(id: Field, reader: &'a SegmentReader) -> tantivy::Result<Self> {
        let columns = reader.fast_fields();
        Ok(Segment {
            reader,
            ids: reader.inverted_index(id)?,
            seq_nos: columns.u64(SEQ_NO)?,
            versions: columns.u64(VERSION)?,
        })
    }

    /// The live document with this id; there is at most one.
    fn find(&self, term: &Term) -> std::io::Result<Option<DocId>> {
        let postings = self.ids.read_postings(term, IndexRecordOption::Basic)?;
        let Some(mut postings) = postings else { return Ok(None) };
        let mut document = postings.doc();
        while document != TERMINATED && self.reader.is_deleted(document) {
            document = postings.advance();
        }
        Ok((document != TERMINATED).then_some(document))
    }

    fn locate(&self, document: DocId) -> Located {
        let first = |column: &Column<u64>| column.first(document).unwrap_or(0);
        Located { seq_no: first(&self.seq_nos), version: first(&self.versions) }
    }
}

/// A document that is read whole.
struct Visited<'a> {
    id: &'a str,
    routing: Option<&'a str>,
    source: &'a [u8],
}

impl Visited<'_> {
    fn hash(&self) -> u64 {
        routed_hash(self.id, self.routing, self.source)
    }
}

impl Shared {
    pub(super) fn lookup(&self, ids: &[Arc<str>]) -> Result<Vec<Option<Located>>> {
        self.try_lookup(ids).map_err(|e| self.index_error("look up documents", e))
    }

    fn try_lookup(&self, ids: &[Arc<str>]) -> tantivy::Result<Vec<Option<Located>>> {
        let mut found: Vec<Option<Located>> = vec![None; ids.len()];
        let id_field = self.handles().fields.id;
        for reader in self.searcher().segment_readers() {
            let segment = Segment::new(id_field, reader)?;
            for (id, found) in ids.iter().zip(&mut found) {
                let term = Term::from_field_text(id_field, id);
                if let Some(document) = segment.find(&term)? {
                    let located = segment.locate(document);
                    if found.is_none_or(|other| other.seq_no < located.seq_no) {
                        *found = Some(located);
                    }
                }
            }
        }
        Ok(found)
    }

    pub(super) fn get(&self, id: &str) -> Result<Option<GetResult>> {
        self.try_get(id).map_err(|e| self.index_error("get a document", e))
    }

    fn try_get(&self, id: &str) -> tantivy::Result<Option<GetResult>> {
        let Fields { id: id_field, source, routing, .. } = self.handles().fields.clone();
        let fields = StoredFields { id: id_field, source, routing: Some(routing) };
        let term = Term::from_field_text(fields.id, id);
        for reader in self.searcher().segment_readers() {
            let segment = Segment::new(fields.id, reader)?;
            if let Some(document) = segment.find(&term)? {
                let Located { seq_no, version } = segment.locate(document);
                let store = reader.get_store_reader(STORE_CACHE_BLOCKS)?;
                let Stored { source, routing, .. } = Stored::read(&store, document, fields, true)?;
                let routing = routing.map(Arc::from);
                return Ok(Some(GetResult { version, seq_no, source, routing }));
            }
        }
        Ok(None)
    }

    pub(super) fn search(
        &self,
        (searcher, mapping): (&Searcher, &Mapping),
        request: &SearchRequest,
        limits: &SearchLimits,
    ) -> Result<ShardHits> {
        let execution = Execution { request, mapping, findings: &self.findings, limits };
        execution.run(searcher).map_err(|failed| self.search_failed(failed))
    }

    fn search_failed(&self, failed: Failed) -> Error {
        match failed {
            Failed::Search(error) => Error::Search(error),
            // A view that cannot be read says nothing about the writer: the copy goes on.
            Failed::Index(error) => crate::error::index("search", &self.dir)(error),
        }
    }

    pub(super) fn highlight(
        &self,
        seen: (&Searcher, &Mapping),
        asked: (&FetchRequest, &SearchLimits),
        hits: &mut [FetchedHit],
    ) -> Result<()> {
        let done = search::highlight(seen, &self.findings, asked, hits);
        done.map_err(|failed| self.search_failed(failed))
    }

    pub(super) fn fetch(
        &self,
        searcher: &Searcher,
        hits: &[(u32, u32)],
        wants_source: bool,
    ) -> Result<Vec<FetchedHit>> {
        let found = search::fetch(searcher, hits, wants_source);
        found.map_err(crate::error::index("fetch documents", &self.dir))
    }

    /// Texts of a keyword field that begin so, in their order, at most so many; those of deleted documents, too, until
    /// they are merged away.
    pub(super) fn terms(&self, path: &str, begin: &str, most: usize) -> Result<Vec<String>> {
        let read = || -> tantivy::Result<Vec<String>> {
            let mut found = BTreeSet::new();
            for segment in self.searcher().segment_readers() {
                let Some(texts) = segment.fast_fields().str(path)? else { continue };
                let some = texts.dictionary().prefix_range(begin).limit(most as u64);
                let mut some = some.into_stream()?;
                while some.advance() {
                    found.insert(String::from_utf8_lossy(some.key()).into_owned());
                }
            }
            Ok(found.into_iter().take(most).collect())
        };
        read().map_err(|e| self.index_error("read terms", e))
    }

    pub(super) fn store_bytes_by_segment(&self) -> Vec<(usize, u64)> {
        let searcher = self.searcher();
        let bytes = |segment: &SegmentReader| {
            segment.space_usage().map_or(1 << 20, |usage| usage.store().total().get_bytes())
        };
        searcher.segment_readers().iter().map(bytes).enumerate().collect()
    }

    pub(super) fn digest_segment(&self, searcher: &Searcher, number: usize) -> Result<Digest> {
        self.try_digest(searcher, number).map_err(|e| self.index_error("read documents", e))
    }

    fn try_digest(&self, searcher: &Searcher, number: usize) -> tantivy::Result<Digest> {
        let mut digest = Digest::default();
        if let Some(segment) = searcher.segment_readers().get(number) {
            self.visit(segment, |_, document| digest.add(document.hash()))?;
        }
        Ok(digest)
    }

    pub(super) fn list(&self) -> Result<Vec<ListedDocument>> {
        self.try_list().map_err(|e| self.index_error("list documents", e))
    }

    fn try_list(&self) -> tantivy::Result<Vec<ListedDocument>> {
        let mut listed = Vec::new();
        let id_field = self.handles().fields.id;
        for reader in self.searcher().segment_readers() {
            let segment = Segment::new(id_field, reader)?;
            self.visit(reader, |number, document| {
                let Located { seq_no, version } = segment.locate(number);
                let (id, hash) = (Arc::from(document.id), document.hash());
                listed.push(ListedDocument { id, seq_no, version, hash });
            })?;
        }
        Ok(listed)
    }

    fn visit(
        &self,
        segment: &SegmentReader,
        mut show: impl FnMut(DocId, Visited<'_>),
    ) -> tantivy::Result<()> {
        let fields = self.handles().fields.clone();
        let store = segment.get_store_reader(STORE_CACHE_BLOCKS)?;
        let lacking =
            || TantivyError::InternalError("a document without _id or _source".to_owned());
        let documents = store.iter::<TantivyDocument>(segment.alive_bitset());
        for (number, document) in segment.doc_ids_alive().zip(documents) {
            let document = document?;
            let id = document.get_first(fields.id);
            let source = document.get_first(fields.source);
            let routing = document.get_first(fields.routing);
            let routing = routing.as_ref().and_then(|value| value.as_str());
            let id = id.as_ref().and_then(|value| value.as_str()).ok_or_else(lacking)?;
            let source = source.as_ref().and_then(|value| value.as_bytes()).ok_or_else(lacking)?;
            show(number, Visited { id, routing, source });
        }
        Ok(())
    }
}
