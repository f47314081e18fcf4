//! A document as it is stored: its id and its source.
//!
//! The index library reads a value of bytes one byte at a time, which for a source of 40 kB takes longer than all else
//! of a search. So the two are cut out of the document's bytes here. The library reads what is not laid out as
//! expected.

use bytes::Bytes;
use tantivy::schema::Field;
use tantivy::schema::document::Value;
use tantivy::store::StoreReader;
use tantivy::{DocId, TantivyDocument};

/// Blocks of stored documents that stay unpacked while one segment is read.
pub(super) const STORE_CACHE_BLOCKS: usize = 2;

/// The library's codes of types, and the bit that the last byte of a number has.
const TEXT: u8 = 0;
const BYTES: u8 = 4;
const LAST: u8 = 128;

/// `_id` and `_source`; none of what is not there.
pub(crate) struct Stored {
    pub(crate) id: Option<String>,
    pub(crate) source: Option<Bytes>,
}

impl Stored {
    /// Reads a document, without its source where nobody wants it.
    pub(crate) fn read(
        store: &StoreReader,
        document: DocId,
        (id, source): (Field, Field),
        wants_source: bool,
    ) -> tantivy::Result<Self> {
        let bytes = store.get_document_bytes(document)?;
        if let Some((id, source)) = cut(&bytes, id.field_id(), source.field_id())
            && let Ok(id) = std::str::from_utf8(id)
        {
            let source = wants_source.then(|| Bytes::copy_from_slice(source));
            return Ok(Stored { id: Some(id.to_owned()), source });
        }
        let document: TantivyDocument = store.get(document)?;
        let id = document.get_first(id).and_then(|value| value.as_str().map(str::to_owned));
        let source = document.get_first(source).filter(|_| wants_source);
        let source = source.and_then(|value| value.as_bytes().map(Bytes::copy_from_slice));
        Ok(Stored { id, source })
    }
}

/// The two fields of a document that has these alone: their count, and of each its number, its type, its length and its
/// value.
fn cut(mut bytes: &[u8], id: u32, source: u32) -> Option<(&[u8], &[u8])> {
    let (mut found_id, mut found_source) = (None, None);
    for _ in 0..number(&mut bytes)? {
        let (field, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first()?;
        bytes = rest;
        let length = usize::try_from(number(&mut bytes)?).ok()?;
        let (value, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        match (u32::from_le_bytes(*field), *kind) {
            (field, TEXT) if field == id => found_id = Some(value),
            (field, BYTES) if field == source => found_source = Some(value),
            _ => return None,
        }
    }
    found_id.zip(found_source).filter(|_| bytes.is_empty())
}

/// A number of seven bits a byte, the least first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte % LAST) << shift;
        if *byte >= LAST {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{STORED, STRING, Schema};
    use tantivy::{Index, doc};

    use super::*;

    /// What is cut out is what the library reads, whatever the sizes.
    #[test]
    fn cuts_what_the_library_reads() {
        let mut schema = Schema::builder();
        let other = schema.add_u64_field("other", tantivy::schema::FAST);
        let source = schema.add_bytes_field("source", STORED);
        let id = schema.add_text_field("id", STRING | STORED);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        let sizes = [0, 1, 127, 128, 16_383, 16_384, 70_000];
        for size in sizes {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            writer
                .add_document(doc!(other => 7u64, source => bytes, id => "ä".repeat(size % 300)))
                .unwrap();
        }
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        let mut seen = 0;
        for segment in searcher.segment_readers() {
            let store = segment.get_store_reader(2).unwrap();
            for document in 0..segment.max_doc() {
                let bytes = store.get_document_bytes(document).unwrap();
                let cut = cut(&bytes, id.field_id(), source.field_id()).expect("it is laid out so");
                let read: TantivyDocument = store.get(document).unwrap();
                let text = read.get_first(id).and_then(|value| value.as_str().map(str::to_owned));
                assert_eq!(std::str::from_utf8(cut.0).ok(), text.as_deref());
                let value = read.get_first(source).unwrap();
                assert_eq!(Some(cut.1), value.as_bytes());
                let stored = Stored::read(&store, document, (id, source), false).unwrap();
                assert_eq!((stored.id, stored.source), (text, None));
                seen += 1;
            }
        }
        assert_eq!(seen, sizes.len());
        assert_eq!(cut(&[], 0, 1), None);
        assert_eq!(cut(&[129, 1, 0, 0, 0, 0, 133, 1], 1, 0), None);
    }
}
