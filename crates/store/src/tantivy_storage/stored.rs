//! A document as it is stored: its id, its source, and its routing where it has one.
//!
//! The index library reads a value of bytes one byte at a time, which for a source of 40 kB takes longer than all else
//! of a search. So they are cut out of the document's bytes here. The library reads what is not laid out as
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

/// The fields that are stored. A view may be older than the last of them.
#[derive(Clone, Copy)]
pub(crate) struct StoredFields {
    pub(crate) id: Field,
    pub(crate) source: Field,
    pub(crate) routing: Option<Field>,
}

/// `_id`, `_source` and `_routing`; none of what is not there.
pub(crate) struct Stored {
    pub(crate) id: Option<String>,
    pub(crate) source: Option<Bytes>,
    pub(crate) routing: Option<String>,
}

impl Stored {
    /// Reads a document, without its source where nobody wants it.
    pub(crate) fn read(
        store: &StoreReader,
        document: DocId,
        fields: StoredFields,
        wants_source: bool,
    ) -> tantivy::Result<Self> {
        let bytes = store.get_document_bytes(document)?;
        if let Some(Cut { id, source, routing }) = cut(&bytes, fields)
            && let Ok(id) = std::str::from_utf8(id)
            && let Ok(routing) = routing.map(std::str::from_utf8).transpose()
        {
            let source = wants_source.then(|| Bytes::copy_from_slice(source));
            let routing = routing.map(str::to_owned);
            return Ok(Stored { id: Some(id.to_owned()), source, routing });
        }
        let document: TantivyDocument = store.get(document)?;
        let text = |field: Field| {
            document.get_first(field).and_then(|value| value.as_str().map(str::to_owned))
        };
        let source = document.get_first(fields.source).filter(|_| wants_source);
        let source = source.and_then(|value| value.as_bytes().map(Bytes::copy_from_slice));
        Ok(Stored { id: text(fields.id), source, routing: fields.routing.and_then(text) })
    }
}

/// The values of a document's stored fields, where they lie.
#[derive(Debug, PartialEq)]
struct Cut<'a> {
    id: &'a [u8],
    source: &'a [u8],
    routing: Option<&'a [u8]>,
}

/// The fields of a document that has these alone, the last or not: their count, and of each its number, its type, its
/// length and its value.
fn cut(mut bytes: &[u8], fields: StoredFields) -> Option<Cut<'_>> {
    let (id, source) = (fields.id.field_id(), fields.source.field_id());
    let routing = fields.routing.map(Field::field_id);
    let (mut found_id, mut found_source, mut found_routing) = (None, None, None);
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
            (field, TEXT) if routing == Some(field) => found_routing = Some(value),
            _ => return None,
        }
    }
    let cut = Cut { id: found_id?, source: found_source?, routing: found_routing };
    bytes.is_empty().then_some(cut)
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

    use super::super::in_memory::searcher;
    use super::*;

    /// The bytes that are cut out are those that the library reads, whatever the sizes.
    #[test]
    fn cuts_what_the_library_reads() {
        let mut schema = Schema::builder();
        let other = schema.add_u64_field("other", tantivy::schema::FAST);
        let source = schema.add_bytes_field("source", STORED);
        let id = schema.add_text_field("id", STRING | STORED);
        let routing = schema.add_text_field("routing", STORED);
        let fields = StoredFields { id, source, routing: Some(routing) };
        let index = Index::create_in_ram(schema.build());
        let sizes = [0, 1, 127, 128, 16_383, 16_384, 70_000];
        let document = |size: usize| {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            let mut document = doc!(other => 7u64, source => bytes, id => "ä".repeat(size % 300));
            if size % 2 == 1 {
                document.add_text(routing, "r".repeat(size % 200));
            }
            document
        };
        let searcher = searcher(&index, sizes.into_iter().map(document).collect());
        let mut seen = 0;
        for segment in searcher.segment_readers() {
            let store = segment.get_store_reader(2).unwrap();
            for document in 0..segment.max_doc() {
                let bytes = store.get_document_bytes(document).unwrap();
                let cut = cut(&bytes, fields).expect("it is laid out so");
                let read: TantivyDocument = store.get(document).unwrap();
                let text = read.get_first(id).and_then(|value| value.as_str().map(str::to_owned));
                assert_eq!(std::str::from_utf8(cut.id).ok(), text.as_deref());
                let value = read.get_first(source).unwrap();
                assert_eq!(Some(cut.source), value.as_bytes());
                let by = read.get_first(routing);
                let by = by.and_then(|value| value.as_str().map(str::to_owned));
                assert_eq!(cut.routing.map(<[u8]>::to_vec), by.clone().map(String::into_bytes));
                let stored = Stored::read(&store, document, fields, false).unwrap();
                assert_eq!((stored.id, stored.source, stored.routing), (text, None, by));
                seen += 1;
            }
        }
        assert_eq!(seen, sizes.len());
        assert_eq!(cut(&[], fields), None);
        assert_eq!(cut(&[129, 2, 0, 0, 0, 0, 133, 1], fields), None);
    }
}
