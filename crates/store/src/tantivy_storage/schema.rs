//! How a mapping becomes the index library's schema, and a document one of its documents.
//!
//! Numbers, dates, addresses and points are columns and nothing else: range queries read those, and they are
//! cheap to write. Dates are milliseconds, as in the field: the index library's own are nanoseconds, which end in 1677
//! and in 2262. Copies of earlier builds have those, and go on with them.
//!
//! A field that comes later, mapped or brought by a document, goes to the end of the schema: segments name
//! fields by number, so that those from before stay as they are, and have nothing of it. It is a field like any other
//! then. One JSON field for all that documents bring would need no new schema, but a second way of searching, sorting,
//! aggregating and scoring each of them, would cost every document, and has no types of its own to refuse a value by.

use tantivy::schema::{
    BytesOptions, Field, FieldType as Kept, IndexRecordOption, IpAddrOptions, NumericOptions,
    STORED, Schema, SchemaBuilder, TextFieldIndexing, TextOptions, Type,
};
use tantivy::{DateTime, TantivyDocument};

use query::mapping::document::Indexed;
use query::mapping::{self, Analyzer};
use query::{FieldType, Mapping};

use crate::tantivy_storage::analyzer::{MARKED, has_word};

pub(crate) const ID: &str = "_id";
pub(crate) const SOURCE: &str = "_source";
pub(crate) const SEQ_NO: &str = "_seq_no";
pub(crate) const VERSION: &str = "_version";
/// The numbers of text fields of which a document has a value without a word: of these nothing else is indexed, and
/// the document has the field all the same. Copies that an earlier build made do not have it.
pub(crate) const WORDLESS: &str = "_wordless";
/// Stored beside `_id` and `_source`, of the documents that have one. A copy that an earlier build made gets the field
/// when it is opened.
pub(crate) const ROUTING: &str = "_routing";

/// The fields of a schema. Mapped ones stand in the order of [`Mapping::fields`].
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) id: Field,
    pub(super) source: Field,
    pub(super) seq_no: Field,
    pub(super) version: Field,
    pub(super) routing: Field,
    wordless: Option<Field>,
    mapped: Vec<Mapped>,
}

#[derive(Clone, Copy, Debug)]
enum Mapped {
    One(Field),
    Words(Field, Analyzer),
    /// Dates of a copy that an earlier build made.
    Nanos(Field),
    /// Latitudes and longitudes, or least and greatest numbers.
    Two(Field, Field),
    /// Not indexed: kept in `_source` alone.
    Absent,
}

/// The schema of a new copy.
pub(super) fn schema(mapping: &Mapping) -> Schema {
    let mut builder = Schema::builder();
    let whole = whole();
    builder.add_text_field(ID, whole.clone() | STORED);
    builder.add_bytes_field(SOURCE, BytesOptions::default().set_stored());
    builder.add_u64_field(SEQ_NO, NumericOptions::default().set_fast());
    builder.add_u64_field(VERSION, NumericOptions::default().set_fast());
    builder.add_u64_field(WORDLESS, NumericOptions::default().set_indexed());
    builder.add_text_field(ROUTING, STORED);
    for (path, field) in mapping.fields().iter().filter(|(_, field)| field.is_kept()) {
        add(&mut builder, path, field, &whole, Norms::Kept);
    }
    builder.build()
}

/// A field of a mapping that a schema has as another type: its files are of another history than the mapping.
pub(super) fn conflict(schema: &Schema, mapping: &Mapping) -> Option<String> {
    let expected = self::schema(mapping);
    let differs = |name: &str| {
        let (has, wants) = (kept_as(schema, name), kept_as(&expected, name));
        let is_nanos = has.is_some_and(|(has, _)| has == Type::Date) && wants == Some(DATE);
        has.is_some() && wants.is_some() && has != wants && !is_nanos
    };
    let mut names = expected.fields().map(|(_, entry)| entry.name());
    names.find(|name| differs(name)).map(str::to_owned)
}

/// How the columns of dates are kept: as long numbers with a mark, without which a schema would not tell the one from
/// the other. To the library the mark says how it parses documents of its own, and it parses none here.
const DATE: (Type, bool) = (Type::I64, true);

/// As what a schema has a field: its type, and whether it has the mark of dates.
fn kept_as(schema: &Schema, name: &str) -> Option<(Type, bool)> {
    let kind = schema.get_field_entry(schema.get_field(name).ok()?).field_type();
    let is_marked = matches!(kind, Kept::I64(options) if options.should_coerce());
    Some((kind.value_type(), is_marked))
}

/// Indexed fields of a mapping that a schema does not have, with their paths.
pub(super) fn missing<'m>(
    schema: &Schema,
    mapping: &'m Mapping,
) -> Vec<(&'m String, &'m mapping::Field)> {
    let fields = mapping.fields().iter().filter(|(_, field)| field.is_kept());
    fields
        .filter(|(path, field)| schema.get_field(&first_column(path, field.kind)).is_err())
        .collect()
}

/// Whether a schema has what every copy has by now; those of earlier builds do not.
pub(super) fn has_routing(schema: &Schema) -> bool {
    schema.get_field(ROUTING).is_ok()
}

/// A schema with fields behind those that it has, which keep their numbers: segments go by numbers.
pub(super) fn extended(
    schema: &Schema,
    added: &[(&String, &mapping::Field)],
    norms: Norms,
) -> Schema {
    let mut builder = Schema::builder();
    for (_, entry) in schema.fields() {
        builder.add_field(entry.clone());
    }
    if !has_routing(schema) {
        builder.add_text_field(ROUTING, STORED);
    }
    for (path, field) in added {
        add(&mut builder, path, field, &whole(), norms);
    }
    builder.build()
}

/// The index of a value as a whole.
fn whole() -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    TextOptions::default().set_indexing_options(indexing)
}

/// Whether the lengths of texts are kept. Segments from before a field was mapped have none for it, and the library
/// merges none with some only by failing; so fields that come later, where there are segments, leave them out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Norms {
    Kept,
    Left,
}

/// The column of a field, or the first of its two.
pub(crate) fn first_column(path: &str, kind: FieldType) -> String {
    kind.columns().map_or_else(|| path.to_owned(), |(first, _)| format!("{path}.{first}"))
}

/// The tokenizer of a text field, by its name in the index library.
fn tokenizer(field: &mapping::Field) -> &'static str {
    match field.analyzers.0 {
        // The library has it by another name.
        Analyzer::Keyword => "raw",
        analyzer => analyzer.name(),
    }
}

fn add(
    builder: &mut SchemaBuilder,
    path: &str,
    field: &mapping::Field,
    whole: &TextOptions,
    norms: Norms,
) {
    let column = || NumericOptions::default().set_fast();
    match field.kind {
        FieldType::Keyword => {
            builder.add_text_field(path, whole.clone().set_fast("raw"));
        }
        // The field reads phrases of `match_only_text` from `_source`; with positions they are found as of any text.
        FieldType::Text | FieldType::MatchOnlyText => {
            let is_text = field.kind == FieldType::Text;
            let words = TextFieldIndexing::default()
                .set_tokenizer(if is_text { tokenizer(field) } else { MARKED })
                .set_fieldnorms(norms == Norms::Kept && is_text && field.has_norms)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions);
            let mut options = TextOptions::default().set_indexing_options(words);
            if field.has_column {
                options = options.set_fast(tokenizer(field));
            }
            builder.add_text_field(path, options);
        }
        FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
            builder.add_i64_field(path, column());
        }
        FieldType::Date => {
            builder.add_i64_field(path, column().set_coerce());
        }
        FieldType::Double | FieldType::Float | FieldType::HalfFloat | FieldType::ScaledFloat => {
            builder.add_f64_field(path, column());
        }
        FieldType::Boolean => {
            builder.add_bool_field(path, column());
        }
        FieldType::Ip => {
            builder.add_ip_addr_field(path, IpAddrOptions::default().set_fast());
        }
        FieldType::GeoPoint | FieldType::DoubleRange => {
            let (first, second) = field.kind.columns().expect("it is kept in two");
            builder.add_f64_field(&format!("{path}.{first}"), column());
            builder.add_f64_field(&format!("{path}.{second}"), column());
        }
    }
}

impl Fields {
    /// Finds the fields in the schema of a copy. None if it is not one of ours.
    pub(super) fn of(schema: &Schema, mapping: &Mapping) -> Option<Self> {
        let find = |name: &str| schema.get_field(name).ok();
        let mapped = mapping.fields().iter().map(|(path, field)| match field.kind.columns() {
            _ if !field.is_kept() => Mapped::Absent,
            Some((first, second)) => {
                let pair = find(&format!("{path}.{first}")).zip(find(&format!("{path}.{second}")));
                pair.map_or(Mapped::Absent, |(first, second)| Mapped::Two(first, second))
            }
            None => match (find(path), field.kind) {
                (None, _) => Mapped::Absent,
                (Some(found), FieldType::Text) => Mapped::Words(found, field.analyzers.0),
                (Some(found), FieldType::Date) if has_nanos(schema, found) => Mapped::Nanos(found),
                (Some(found), _) => Mapped::One(found),
            },
        });
        Some(Fields {
            id: find(ID)?,
            source: find(SOURCE)?,
            seq_no: find(SEQ_NO)?,
            version: find(VERSION)?,
            routing: find(ROUTING)?,
            wordless: find(WORDLESS),
            mapped: mapped.collect(),
        })
    }
}

/// Whether a field has dates in nanoseconds.
pub(crate) fn has_nanos(schema: &Schema, field: Field) -> bool {
    schema.get_field_entry(field).field_type().value_type() == Type::Date
}

/// The moment of a field that has nanoseconds; of one that these do not reach, the first or the last.
pub(crate) fn nanos(ms: i64) -> DateTime {
    DateTime::from_timestamp_nanos(ms.saturating_mul(1_000_000))
}

/// Puts the values of one document where they belong.
pub(super) struct DocumentSink<'a> {
    pub(super) fields: &'a Fields,
    pub(super) document: TantivyDocument,
    /// A date, in milliseconds, that nanoseconds do not reach where the copy has these.
    pub(super) out_of_range: Option<i64>,
}

impl DocumentSink<'_> {
    pub(super) fn put(&mut self, field: usize, value: Indexed<'_>) {
        let document = &mut self.document;
        match (self.fields.mapped[field], value) {
            (Mapped::Absent, _) => {}
            (Mapped::Two(first, second), Indexed::Point { lat: a, lon: b })
            | (Mapped::Two(first, second), Indexed::Range { low: a, high: b }) => {
                document.add_f64(first, a);
                document.add_f64(second, b);
            }
            (Mapped::Words(field, analyzer), Indexed::Text(text)) => {
                if let Some(wordless) = self.fields.wordless.filter(|_| !has_word(analyzer, text)) {
                    document.add_u64(wordless, field.field_id().into());
                }
                document.add_text(field, text);
            }
            (Mapped::Nanos(field), Indexed::Date(ms)) => {
                document.add_date(field, nanos(ms));
                let is_reached = ms.checked_mul(1_000_000).is_some();
                self.out_of_range = self.out_of_range.or((!is_reached).then_some(ms));
            }
            (Mapped::One(field), value) => match value {
                Indexed::Text(text) => document.add_text(field, text),
                Indexed::Integer(number) | Indexed::Date(number) => {
                    document.add_i64(field, number);
                }
                Indexed::Float(number) => document.add_f64(field, number),
                Indexed::Boolean(yes) => document.add_bool(field, yes),
                Indexed::Address(address) => document.add_ip_addr(field, address),
                Indexed::Point { .. } | Indexed::Range { .. } => {}
            },
            (Mapped::Two(..) | Mapped::Words(..) | Mapped::Nanos(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tantivy::Index;
    use tantivy::schema::DateOptions;

    use super::*;
    use crate::tantivy_storage::analyzer;
    use crate::tantivy_storage::in_memory::searcher;

    #[test]
    fn every_type_reaches_its_column_or_its_words() {
        let json = json!({"properties": {
            "b": {"type": "boolean"}, "d": {"type": "date"}, "f": {"type": "double"},
            "i": {"type": "ip"}, "k": {"type": "keyword"}, "l": {"type": "long"},
            "o": {"properties": {"p": {"type": "geo_point"}}}, "t": {"type": "text"},
            "hidden": {"type": "long", "index": false, "doc_values": false},
            "seen": {"type": "long", "index": false},
            "w": {"type": "text", "fielddata": true}
        }});
        let mapping = Mapping::parse(&json).unwrap();
        let schema = schema(&mapping);
        let fields = Fields::of(&schema, &mapping).unwrap();
        let source = br#"{"b":true,"d":"2000-03-01","f":1.5,"i":"10.0.0.1","k":"a b","l":-7,
            "o":{"p":[[-0.14,51.52],[2,1]]},"t":"One two","hidden":3,"other":4,"w":"Two words"}"#;
        let document = TantivyDocument::new();
        let mut sink = DocumentSink { fields: &fields, document, out_of_range: None };
        mapping.read(source, true, &mut |field, value| sink.put(field, value)).unwrap();
        let index = Index::create_in_ram(schema.clone());
        analyzer::register(&index);
        let searcher = searcher(&index, vec![sink.document]);
        let segment = searcher.segment_reader(0);
        let columns = segment.fast_fields();
        assert_eq!(columns.bool("b").unwrap().first(0), Some(true));
        assert_eq!(columns.i64("d").unwrap().first(0), Some(951_868_800_000));
        assert_eq!(columns.f64("f").unwrap().first(0), Some(1.5));
        let address = columns.ip_addr("i").unwrap().first(0).unwrap();
        assert_eq!(address.to_ipv4_mapped().unwrap().to_string(), "10.0.0.1");
        assert_eq!(columns.i64("l").unwrap().first(0), Some(-7));
        assert_eq!(columns.str("w").unwrap().unwrap().term_ords(0).count(), 2);
        let values = |name: &str| columns.f64(name).unwrap().values_for_doc(0).collect::<Vec<_>>();
        assert_eq!((values("o.p.lat"), values("o.p.lon")), (vec![51.52, 1.0], vec![-0.14, 2.0]));
        let words = |name: &str| {
            let field = schema.get_field(name).unwrap();
            segment.inverted_index(field).unwrap().terms().num_terms()
        };
        assert_eq!((words("k"), words("t")), (1, 2));
        assert!(schema.get_field("hidden").is_err() && schema.get_field("seen").is_ok());
    }

    #[test]
    fn a_copy_with_dates_in_nanoseconds_goes_on_with_them() {
        let mapping =
            |kind: &str| Mapping::parse(&json!({"properties": {"d": {"type": kind}}})).unwrap();
        let dates = mapping("date");
        let mut builder = Schema::builder();
        for (_, entry) in schema(&mapping("text")).fields().filter(|(_, of)| of.name() != "d") {
            builder.add_field(entry.clone());
        }
        let field = builder.add_date_field("d", DateOptions::default().set_fast());
        let older = builder.build();
        assert_eq!((conflict(&older, &dates), missing(&older, &dates).len()), (None, 0));
        // Long numbers are no dates in either form, though new ones are kept as such.
        let (newer, long) = (schema(&dates), schema(&mapping("long")));
        for (has, wants) in [(&older, "long"), (&newer, "long"), (&long, "date")] {
            assert_eq!(conflict(has, &mapping(wants)), Some("d".to_owned()), "{wants}");
        }
        // The mark is kept with the schema.
        let stored = serde_json::to_value(&newer).unwrap();
        assert_eq!(conflict(&serde_json::from_value(stored).unwrap(), &dates), None);
        let fields = Fields::of(&older, &dates).unwrap();
        for (year, out_of_range) in [("1969", None), ("1500", Some(-14_831_769_600_000))] {
            let document = TantivyDocument::new();
            let mut sink = DocumentSink { fields: &fields, document, out_of_range: None };
            let source = format!("{{\"d\":\"{year}\"}}");
            let mut put = |field: usize, value: Indexed<'_>| sink.put(field, value);
            dates.read(source.as_bytes(), true, &mut put).unwrap();
            assert_eq!(sink.out_of_range, out_of_range, "{year}");
            assert_eq!(sink.document.get_all(field).count(), 1, "{year}");
        }
    }
}
