//! The values of a field in one segment, whatever its type.

use std::net::Ipv6Addr;

use tantivy::columnar::{Column, ColumnIndex, StrColumn};
use tantivy::{DateTime, DocId, SegmentReader};

use query::FieldType;

/// The column of a field in one segment.
pub(super) enum Values {
    /// No document of the segment has it.
    Absent,
    Long(Column<i64>),
    Double(Column<f64>),
    Boolean(Column<bool>),
    /// Nanoseconds inside, milliseconds for everybody else.
    Date(Column<DateTime>),
    Ip(Column<Ipv6Addr>),
    Text(StrColumn, Column<u64>),
}

impl Values {
    /// Opens the column of a field that is neither a text nor a point.
    pub(super) fn open(
        segment: &SegmentReader,
        path: &str,
        kind: FieldType,
    ) -> tantivy::Result<Self> {
        let columns = segment.fast_fields();
        let found = match kind {
            FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
                columns.column_opt(path)?.map(Values::Long)
            }
            FieldType::Double | FieldType::Float => columns.column_opt(path)?.map(Values::Double),
            FieldType::Boolean => columns.column_opt(path)?.map(Values::Boolean),
            FieldType::Date => columns.column_opt(path)?.map(Values::Date),
            FieldType::Ip => columns.column_opt(path)?.map(Values::Ip),
            FieldType::Keyword => columns.str(path)?.map(|texts| {
                let ords = texts.ords().clone();
                Values::Text(texts, ords)
            }),
            FieldType::Text | FieldType::GeoPoint => None,
        };
        Ok(found.unwrap_or(Values::Absent))
    }

    /// Documents that have the field, and its values in all of them.
    pub(super) fn counts(&self, max_doc: u32) -> (u64, u64) {
        let of = |index: &ColumnIndex, values: u32| {
            let documents = match index {
                ColumnIndex::Empty { .. } => 0,
                ColumnIndex::Full => max_doc,
                ColumnIndex::Optional(_) => values,
                many => (0..max_doc).filter(|doc| many.has_value(*doc)).count() as u32,
            };
            (u64::from(documents), u64::from(values))
        };
        match self {
            Values::Absent => (0, 0),
            Values::Long(column) => of(&column.index, column.values.num_vals()),
            Values::Double(column) => of(&column.index, column.values.num_vals()),
            Values::Boolean(column) => of(&column.index, column.values.num_vals()),
            Values::Date(column) => of(&column.index, column.values.num_vals()),
            Values::Ip(column) => of(&column.index, column.values.num_vals()),
            Values::Text(_, column) => of(&column.index, column.values.num_vals()),
        }
    }

    /// Calls with each value of a document as a number: milliseconds, 0 and 1; never for texts and addresses.
    pub(super) fn each_number(&self, doc: DocId, mut call: impl FnMut(f64)) {
        match self {
            Values::Long(column) => column.values_for_doc(doc).for_each(|v| call(v as f64)),
            Values::Double(column) => column.values_for_doc(doc).for_each(call),
            Values::Boolean(column) => column.values_for_doc(doc).for_each(|v| call(f64::from(v))),
            Values::Date(column) => {
                column.values_for_doc(doc).for_each(|v| call(v.into_timestamp_millis() as f64));
            }
            Values::Absent | Values::Ip(_) | Values::Text(..) => {}
        }
    }

    /// Calls with each value of a document as bits: equal values have equal bits, and bits of numbers sort as the
    /// numbers do. Texts are their ordinals in the segment.
    pub(super) fn each_bits(&self, doc: DocId, mut call: impl FnMut(u128)) {
        match self {
            Values::Long(column) => {
                column.values_for_doc(doc).for_each(|v| call(u128::from(long_bits(v))));
            }
            Values::Double(column) => {
                column.values_for_doc(doc).for_each(|v| call(u128::from(double_bits(v))));
            }
            Values::Boolean(column) => {
                column.values_for_doc(doc).for_each(|v| call(u128::from(long_bits(i64::from(v)))));
            }
            Values::Date(column) => column
                .values_for_doc(doc)
                .for_each(|v| call(u128::from(long_bits(v.into_timestamp_millis())))),
            Values::Ip(column) => column.values_for_doc(doc).for_each(|v| call(v.to_bits())),
            Values::Text(_, ords) => ords.values_for_doc(doc).for_each(|v| call(u128::from(v))),
            Values::Absent => {}
        }
    }
}

/// The text of an ordinal.
pub(super) fn text_of(texts: &StrColumn, ord: u64) -> String {
    let mut text = String::new();
    // An ordinal of the column is in its dictionary; where the file is damaged the copy says so elsewhere.
    let _ = texts.ord_to_str(ord, &mut text);
    text
}

pub(super) fn long_bits(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

pub(super) fn long_of(bits: u64) -> i64 {
    (bits ^ (1 << 63)) as i64
}

pub(super) fn double_bits(value: f64) -> u64 {
    // -0.0 is 0.0 for whoever compares values.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

pub(super) fn double_of(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_sort_as_their_numbers() {
        let doubles = [f64::NEG_INFINITY, -1e300, -1.5, -0.0, 1e-300, 2.0, f64::INFINITY];
        assert!(doubles.windows(2).all(|pair| double_bits(pair[0]) < double_bits(pair[1])));
        assert!(doubles.iter().all(|d| double_of(double_bits(*d)) == *d));
        let longs = [i64::MIN, -1, 0, 1, i64::MAX];
        assert!(longs.windows(2).all(|pair| long_bits(pair[0]) < long_bits(pair[1])));
        assert!(longs.iter().all(|l| long_of(long_bits(*l)) == *l));
    }
}
