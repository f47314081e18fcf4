//! The column of a field in one segment: the values of one document, or of many documents at once.

use std::net::Ipv6Addr;
use std::ops::Range;

use tantivy::columnar::{Column as Library, ColumnIndex, ColumnType, StrColumn};
use tantivy::{DocId, SegmentReader, f64_to_u64};
pub(super) use tantivy::{i64_to_u64 as long_bits, u64_to_f64 as double_of, u64_to_i64 as long_of};

use query::{FieldType, Literal};

/// Nanoseconds of a millisecond. Copies of earlier builds keep dates in nanoseconds, everybody else in milliseconds.
const NANOS: i64 = 1_000_000;

/// The column of a field in one segment.
#[derive(Debug)]
pub(super) struct Column {
    kind: FieldType,
    values: Values,
    /// Whether it keeps dates in nanoseconds.
    has_nanos: bool,
}

#[derive(Debug)]
enum Values {
    /// No document of the segment has it.
    Absent,
    /// Numbers, dates and booleans, as the library keeps them.
    Raw(Library<u64>),
    Text(StrColumn),
    Ip(Library<Ipv6Addr>),
}

impl Column {
    /// The column of a field that no document has.
    pub(super) fn absent(kind: FieldType) -> Self {
        Column { kind, values: Values::Absent, has_nanos: false }
    }

    /// Opens the column of a field that is neither a text nor a point.
    pub(super) fn open(
        segment: &SegmentReader,
        path: &str,
        kind: FieldType,
    ) -> tantivy::Result<Self> {
        let columns = segment.fast_fields();
        let mut has_nanos = false;
        let found = match kind {
            FieldType::Ip => columns.column_opt(path)?.map(Values::Ip),
            // Of a text with `fielddata` the words.
            FieldType::Keyword | FieldType::Text => columns.str(path)?.map(Values::Text),
            FieldType::MatchOnlyText | FieldType::GeoPoint | FieldType::DoubleRange => None,
            _ => columns.u64_lenient(path)?.map(|(column, kept)| {
                has_nanos = kept == ColumnType::DateTime;
                Values::Raw(column)
            }),
        };
        let kind = if kind == FieldType::Text { FieldType::Keyword } else { kind };
        Ok(Column { kind, values: found.unwrap_or(Values::Absent), has_nanos })
    }

    pub(super) fn kind(&self) -> FieldType {
        self.kind
    }

    /// The texts of a keyword field.
    pub(super) fn texts(&self) -> Option<&StrColumn> {
        match &self.values {
            Values::Text(texts) => Some(texts),
            _ => None,
        }
    }

    fn raw(&self) -> Option<&Library<u64>> {
        match &self.values {
            Values::Raw(column) => Some(column),
            Values::Text(texts) => Some(texts.ords()),
            Values::Absent | Values::Ip(_) => None,
        }
    }

    /// Whether every document of the segment has the field exactly once, and not an address: only then
    /// [`Column::block`] and what is built on it may be asked.
    pub(super) fn is_single(&self) -> bool {
        self.raw().is_some_and(|column| matches!(column.index, ColumnIndex::Full))
    }

    /// Values in all documents of the segment, which are no addresses.
    pub(super) fn values(&self) -> u32 {
        self.raw().map_or(0, |column| column.values.num_vals())
    }

    /// Documents that have the field, which has no addresses, and values in all of them; of a set each once.
    pub(super) fn counts(&self, max_doc: u32) -> (u64, u64) {
        let values = u64::from(self.values());
        let is_multiple = |column: &Library<u64>| column.get_cardinality().is_multivalue();
        if !self.raw().is_some_and(is_multiple) {
            return (values, values);
        }
        let (mut documents, mut values, mut found) = (0, 0, Vec::new());
        for doc in 0..max_doc {
            self.read_bits(doc, &mut found);
            documents += u64::from(!found.is_empty());
            values += found.len() as u64;
        }
        (documents, values)
    }

    /// Calls with each value of a document as bits: equal values have equal bits, and bits of numbers sort as the
    /// numbers do. Texts are their ordinals in the segment.
    pub(super) fn each_bits(&self, doc: DocId, mut call: impl FnMut(u128)) {
        match (&self.values, self.raw()) {
            (Values::Ip(column), _) => column.values_for_doc(doc).for_each(|v| call(v.to_bits())),
            (_, Some(column)) => {
                column.values_for_doc(doc).for_each(|raw| call(self.bits_of(raw).into()));
            }
            _ => {}
        }
    }

    /// Calls with each value of a document as a number; texts and addresses are none.
    pub(super) fn each_number(&self, doc: DocId, mut call: impl FnMut(f64)) {
        let is_float = self.kind.is_float();
        if let Values::Raw(_) = self.values {
            self.each_bits(doc, |bits| match is_float {
                true => call(double_of(bits as u64)),
                false => call(long_of(bits as u64) as f64),
            });
        }
    }

    /// Reads the bits of the values of a document; of a set each once, in order.
    pub(super) fn read_bits(&self, doc: DocId, found: &mut Vec<u128>) {
        found.clear();
        self.each_bits(doc, |bits| found.push(bits));
        if self.kind.is_set() {
            found.sort_unstable();
            found.dedup();
        }
    }

    /// The value with such bits: dates are milliseconds since 1970, booleans 0 and 1.
    pub(super) fn literal(&self, bits: u128) -> Literal {
        match self.texts() {
            Some(texts) => Literal::Text(text_of(texts, bits as u64)),
            None if self.kind == FieldType::Ip => Literal::Address(Ipv6Addr::from_bits(bits)),
            None if self.kind.is_float() => Literal::Float(double_of(bits as u64)),
            None => Literal::Integer(long_of(bits as u64)),
        }
    }

    /// Reads the one value of each of some documents, which are in order, as the column keeps them.
    fn block(&self, docs: &[DocId], raw: &mut Vec<u64>) {
        let Some(column) = self.raw() else { return raw.clear() };
        raw.resize(docs.len(), 0);
        match docs {
            [first, .., last] if (last - first) as usize + 1 == docs.len() => {
                column.values.get_range(u64::from(*first), raw);
            }
            _ => column.values.get_vals(docs, raw),
        }
    }

    /// The bits of the one value of each document.
    pub(super) fn block_bits(&self, docs: &[DocId], bits: &mut Vec<u64>) {
        self.block(docs, bits);
        // Long numbers, dates and ordinals are kept as such bits.
        if self.has_nanos || self.kind.is_float() || self.kind == FieldType::Boolean {
            bits.iter_mut().for_each(|raw| *raw = self.bits_of(*raw));
        }
    }

    fn bits_of(&self, raw: u64) -> u64 {
        match self.kind {
            _ if self.has_nanos => long_bits(long_of(raw).div_euclid(NANOS)),
            FieldType::Boolean => long_bits(raw as i64),
            kind if kind.is_float() => double_bits(double_of(raw)),
            _ => raw,
        }
    }

    /// Puts those of some documents whose one value has bits between two ends into `found`.
    pub(super) fn find(&self, docs: Range<DocId>, ends: (u64, u64), found: &mut Vec<DocId>) {
        found.clear();
        let ends = raw_ends(self.kind, self.has_nanos, ends);
        if let (Some(column), Some((low, high))) = (self.raw(), ends) {
            column.values.get_row_ids_for_value_range(low..=high, docs, found);
        }
    }
}

/// The columns of a field that is kept in two, as points are.
#[derive(Debug)]
pub(super) struct Pair(Library<f64>, Library<f64>);

/// Opens them; none where no document of the segment has the field.
pub(super) fn pair(
    segment: &SegmentReader,
    path: &str,
    kind: FieldType,
) -> tantivy::Result<Option<Pair>> {
    let Some((first, second)) = kind.columns() else { return Ok(None) };
    let open = |name| segment.fast_fields().column_opt::<f64>(&format!("{path}.{name}"));
    Ok(open(first)?.zip(open(second)?).map(|(first, second)| Pair(first, second)))
}

impl Pair {
    /// The pairs of a document.
    pub(super) fn of(&self, doc: DocId) -> impl Iterator<Item = (f64, f64)> {
        self.0.values_for_doc(doc).zip(self.1.values_for_doc(doc))
    }
}

/// Two ends as the column keeps its values; none where nothing lies between.
fn raw_ends(kind: FieldType, has_nanos: bool, (low, high): (u64, u64)) -> Option<(u64, u64)> {
    let nanos =
        |bits: u64, rest: i64| long_bits(long_of(bits).saturating_mul(NANOS).saturating_add(rest));
    let ends = match kind {
        _ if has_nanos => (nanos(low, 0), nanos(high, NANOS - 1)),
        FieldType::Boolean => {
            let last = long_of(high).min(1);
            (long_of(low).max(0) as u64, u64::try_from(last).ok()?)
        }
        // -0.0 equals 0.0, and lies before it.
        kind if kind.is_float() => {
            let zero = double_bits(0.0);
            (low - u64::from(low == zero), high - u64::from(high == zero - 1))
        }
        _ => (low, high),
    };
    (ends.0 <= ends.1).then_some(ends)
}

/// The text of an ordinal.
pub(super) fn text_of(texts: &StrColumn, ord: u64) -> String {
    let mut text = String::new();
    // An ordinal of the column is in its dictionary; where the file is damaged the copy says so elsewhere.
    let _ = texts.ord_to_str(ord, &mut text);
    text
}

/// -0.0 equals 0.0, so both get the same bits.
pub(super) fn double_bits(value: f64) -> u64 {
    f64_to_u64(value + 0.0)
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{DateOptions, DateTimePrecision, NumericOptions, Schema};
    use tantivy::{Index, TantivyDocument};

    use super::*;
    use crate::tantivy_storage::in_memory::searcher;
    use crate::tantivy_storage::schema::nanos;

    #[test]
    fn ends_reach_the_same_values_as_they_are_kept() {
        let date = (long_bits(-1), long_bits(2));
        assert_eq!(raw_ends(FieldType::Date, false, date), Some(date));
        let nanos = raw_ends(FieldType::Date, true, date).unwrap();
        assert_eq!((long_of(nanos.0), long_of(nanos.1)), (-NANOS, 3 * NANOS - 1));
        let yes =
            |low, high| raw_ends(FieldType::Boolean, false, (long_bits(low), long_bits(high)));
        assert_eq!(yes(i64::MIN, i64::MAX), Some((0, 1)));
        assert_eq!((yes(1, 1), yes(2, 5), yes(-5, -1)), (Some((1, 1)), None, None));
        let minus_zero = !(-0.0f64).to_bits();
        let (low, _) = raw_ends(FieldType::Double, false, (double_bits(0.0), u64::MAX)).unwrap();
        assert_eq!(low, minus_zero);
        let (_, high) = raw_ends(FieldType::Double, false, (0, double_bits(0.0) - 1)).unwrap();
        assert_eq!(high, minus_zero - 1);
    }

    /// A copy that an earlier build made is read as one that is made now.
    #[test]
    fn dates_in_nanoseconds_are_read_as_milliseconds() {
        let mut builder = Schema::builder();
        let dates = DateOptions::default().set_precision(DateTimePrecision::Milliseconds);
        let older = builder.add_date_field("older", dates.set_fast());
        let newer = builder.add_i64_field("newer", NumericOptions::default().set_fast());
        let index = Index::create_in_ram(builder.build());
        let moments = [-1, 0, 951_868_800_001];
        let document = |ms: i64| {
            let mut document = TantivyDocument::new();
            document.add_date(older, nanos(ms));
            document.add_i64(newer, ms);
            document
        };
        let searcher = searcher(&index, moments.map(document).to_vec());
        for path in ["older", "newer"] {
            let column = Column::open(searcher.segment_reader(0), path, FieldType::Date).unwrap();
            let (mut bits, mut found) = (Vec::new(), Vec::new());
            column.block_bits(&[0, 1, 2], &mut bits);
            assert_eq!(bits, moments.map(long_bits), "{path}");
            (0..3).for_each(|doc| column.each_number(doc, |ms| found.push(ms)));
            assert_eq!(found, moments.map(|ms| ms as f64), "{path}");
            let mut docs = Vec::new();
            column.find(0..3, (long_bits(i64::MIN), long_bits(0)), &mut docs);
            assert_eq!(docs, [0, 1], "{path}");
        }
    }
}
