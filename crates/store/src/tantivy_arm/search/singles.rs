//! The values of many documents at once, of a field that every document of a segment has exactly once: most fields are
//! like that, and a column gives up a block of values for little more than one of them.

use std::ops::Range;
use std::sync::Arc;

use tantivy::columnar::{ColumnIndex, ColumnValues};
use tantivy::{DateTime, DocId, SegmentReader};

use super::values::{double_bits, double_of, long_bits, long_of};
use query::FieldType;

/// The column of such a field in one segment. What it gives up is what [`super::values::Values`] gives one by one.
pub(super) struct Singles {
    kind: FieldType,
    column: Arc<dyn ColumnValues<u64>>,
    /// As the column keeps them.
    raw: Vec<u64>,
    numbers: Vec<f64>,
}

impl Singles {
    /// Opens the column of a field; none where a document may have no value or several, or these are no numbers.
    pub(super) fn open(
        segment: &SegmentReader,
        path: &str,
        kind: FieldType,
    ) -> tantivy::Result<Option<Self>> {
        if matches!(kind, FieldType::Text | FieldType::GeoPoint | FieldType::Ip) {
            return Ok(None);
        }
        let found = segment.fast_fields().u64_lenient(path)?.map(|(column, _)| column);
        let full = found.filter(|column| matches!(column.index, ColumnIndex::Full));
        let singles = |column: Arc<dyn ColumnValues<u64>>| Singles {
            kind,
            column,
            raw: Vec::new(),
            numbers: Vec::new(),
        };
        Ok(full.map(|column| singles(column.values)))
    }

    /// Puts those of some documents whose value lies between two into `found`; says whether it did, which it can where
    /// values are kept as their bits: the column looks at many at once.
    pub(super) fn find(
        &self,
        docs: Range<DocId>,
        (low, high): (u64, u64),
        found: &mut Vec<DocId>,
    ) -> bool {
        let kept_as_bits = !matches!(
            self.kind,
            FieldType::Date | FieldType::Boolean | FieldType::Double | FieldType::Float
        );
        if kept_as_bits {
            self.column.get_row_ids_for_value_range(low..=high, docs, found);
        }
        kept_as_bits
    }

    /// Reads the values of documents, which are in order.
    fn read(&mut self, docs: &[DocId]) {
        self.raw.resize(docs.len(), 0);
        match docs {
            [first, .., last] if (last - first) as usize + 1 == docs.len() => {
                self.column.get_range(u64::from(*first), &mut self.raw);
            }
            _ => self.column.get_vals(docs, &mut self.raw),
        }
    }

    /// As `Values::each_bits`.
    pub(super) fn bits(&mut self, docs: &[DocId]) -> &[u64] {
        self.read(docs);
        let convert: fn(u64) -> u64 = match self.kind {
            FieldType::Date => |raw| long_bits(millis(raw)),
            FieldType::Boolean => |raw| long_bits(raw as i64),
            FieldType::Double | FieldType::Float => |raw| double_bits(double_of(raw)),
            // Long numbers and ordinals are kept as such bits.
            _ => return &self.raw,
        };
        self.raw.iter_mut().for_each(|raw| *raw = convert(*raw));
        &self.raw
    }

    /// As `Values::each_number`; of texts nothing that means anything.
    pub(super) fn numbers(&mut self, docs: &[DocId]) -> &[f64] {
        self.read(docs);
        let convert: fn(u64) -> f64 = match self.kind {
            FieldType::Date => |raw| millis(raw) as f64,
            FieldType::Boolean => |raw| raw as f64,
            FieldType::Double | FieldType::Float => double_of,
            _ => |raw| long_of(raw) as f64,
        };
        self.numbers.clear();
        self.numbers.extend(self.raw.iter().map(|raw| convert(*raw)));
        &self.numbers
    }
}

/// Of a moment as the column keeps it.
fn millis(raw: u64) -> i64 {
    DateTime::from_timestamp_nanos(long_of(raw)).into_timestamp_millis()
}
