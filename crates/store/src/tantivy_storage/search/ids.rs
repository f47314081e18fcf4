//! The ids of a segment as a column, by which hits can be sorted. Ids are indexed, and beside that only stored, so that
//! the column is made of the index, as the field makes its `fielddata` of `_id`.

use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::columnar::{ColumnarReader, ColumnarWriter, DynamicColumn, StrColumn};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, SegmentReader, TERMINATED};

use crate::tantivy_storage::schema::ID;

/// The column; none of a segment without documents, or where it was stopped: of millions of documents it takes long.
pub(super) fn column(
    segment: &SegmentReader,
    stop: &AtomicBool,
) -> tantivy::Result<Option<StrColumn>> {
    let is_over = || stop.load(Ordering::Relaxed);
    let index = segment.inverted_index(segment.schema().get_field(ID)?)?;
    // Of each document the place of its id among all of them: the column is written by documents.
    let mut places: Vec<u64> = vec![0; segment.max_doc() as usize];
    let mut ids = index.terms().stream()?;
    while ids.advance() {
        if is_over() {
            return Ok(None);
        }
        let mut docs = index.read_postings_from_terminfo(ids.value(), IndexRecordOption::Basic)?;
        while docs.doc() != TERMINATED {
            places[docs.doc() as usize] = ids.term_ord();
            docs.advance();
        }
    }
    let (mut columns, mut id) = (ColumnarWriter::default(), Vec::new());
    for (doc, place) in (0..).zip(places) {
        if is_over() {
            return Ok(None);
        }
        index.terms().ord_to_term(place, &mut id)?;
        columns.record_str(doc, ID, &String::from_utf8_lossy(&id));
    }
    let mut written: Vec<u8> = Vec::new();
    columns.serialize(segment.max_doc(), None, &mut written)?;
    for found in ColumnarReader::open(written)?.read_columns(ID)? {
        if let DynamicColumn::Str(ids) = found.open()? {
            return Ok(Some(ids));
        }
    }
    Ok(None)
}
