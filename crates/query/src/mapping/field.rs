//! One mapped field: its type and the parameters that matter here.

use serde_json::{Map, Value};

/// The types that are indexed. Numbers are kept as 64 bits, whatever their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldType {
    /// true, false
    Boolean,
    /// -2^7 to 2^7 - 1
    Byte,
    /// ISO 8601, or a number since 1970
    Date,
    /// 64-bit floating point
    Double,
    /// floating point, kept as 64 bits
    Float,
    /// latitude and longitude
    GeoPoint,
    /// -2^31 to 2^31 - 1
    Integer,
    /// IPv4 or IPv6
    Ip,
    /// a text as a whole
    Keyword,
    /// -2^63 to 2^63 - 1
    Long,
    /// -2^15 to 2^15 - 1
    Short,
    /// a text by its words
    Text,
}

const TYPES: [(&str, FieldType); 12] = [
    ("boolean", FieldType::Boolean),
    ("byte", FieldType::Byte),
    ("date", FieldType::Date),
    ("double", FieldType::Double),
    ("float", FieldType::Float),
    ("geo_point", FieldType::GeoPoint),
    ("integer", FieldType::Integer),
    ("ip", FieldType::Ip),
    ("keyword", FieldType::Keyword),
    ("long", FieldType::Long),
    ("short", FieldType::Short),
    ("text", FieldType::Text),
];

impl FieldType {
    /// The name in mapping JSON.
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The least and greatest number of an integer type; the whole of `i64` for the others.
    pub fn integer_range(self) -> (i64, i64) {
        match self {
            FieldType::Byte => (i8::MIN.into(), i8::MAX.into()),
            FieldType::Short => (i16::MIN.into(), i16::MAX.into()),
            FieldType::Integer => (i32::MIN.into(), i32::MAX.into()),
            _ => (i64::MIN, i64::MAX),
        }
    }
}

/// Parameters that are accepted. `index`, `format` and `ignore_above` act; the others change nothing that this store
/// measures.
pub const PARAMETERS: &str = "type index format ignore_above analyzer boost coerce copy_to doc_values \
                              eager_global_ordinals fields ignore_malformed index_options meta norms store";

/// One mapped field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its type.
    pub kind: FieldType,
    /// Whether it is indexed at all (`index`).
    pub indexed: bool,
    /// Texts with more characters are not indexed (`ignore_above`).
    pub ignore_above: Option<usize>,
    /// What a bare number in a date field counts since 1970: milliseconds, or seconds (`epoch_second`).
    pub date_unit_ms: i64,
    /// `format`, as it was given.
    pub format: Option<String>,
    /// Its place among all fields of the mapping.
    pub(super) number: usize,
}

impl Field {
    pub(super) fn parse(object: &Map<String, Value>) -> Result<Self, String> {
        let names = || TYPES.iter().map(|(name, _)| *name);
        let name = object.get("type").and_then(Value::as_str).ok_or_else(|| {
            format!("no \"type\" (known: {})", names().collect::<Vec<_>>().join(", "))
        })?;
        let kind = TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| {
            let near = record::names::did_you_mean(name, names());
            let all = names().collect::<Vec<_>>().join(", ");
            format!("unknown type \"{name}\"{near} (known: {all})")
        })?;
        let indexed = match object.get("index") {
            None => true,
            Some(Value::Bool(index)) => *index,
            Some(other) => return Err(format!("\"index\" is true or false, not {other}")),
        };
        let ignore_above = match object.get("ignore_above").map(|value| (value, value.as_u64())) {
            None => None,
            Some((_, Some(most))) => Some(most as usize),
            Some((other, None)) => {
                return Err(format!("\"ignore_above\" is a number, not {other}"));
            }
        };
        let format = object.get("format").and_then(Value::as_str).map(str::to_owned);
        let mut forms = format.as_deref().unwrap_or("").split("||");
        let date_unit_ms = if forms.any(|form| form.trim() == "epoch_second") { 1000 } else { 1 };
        Ok(Field { kind, indexed, ignore_above, date_unit_ms, format, number: 0 })
    }
}
