//! One mapped field: its type and the parameters that matter here.

use serde_json::{Map, Value};

use crate::{DateFormat, refused};

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
    /// a text by its words, each of which scores 1
    MatchOnlyText,
    /// -2^15 to 2^15 - 1
    Short,
    /// a text by its words
    Text,
}

const TYPES: [(&str, FieldType); 13] = [
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
    ("match_only_text", FieldType::MatchOnlyText),
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

/// Parameters that every field may have.
const OF_ALL: &str = "type index doc_values store meta boost copy_to fields";

/// One mapped field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its type.
    pub kind: FieldType,
    /// Whether it can be searched (`index`).
    pub indexed: bool,
    /// Whether it can be sorted and aggregated although it is not indexed (`doc_values`).
    pub has_column: bool,
    /// Texts with more characters are not indexed (`ignore_above`).
    pub ignore_above: Option<usize>,
    /// Whether a value that is none of the type is left out, and the document kept (`ignore_malformed`).
    pub ignore_malformed: bool,
    /// Whether numbers may stand in strings, and lose their fractions (`coerce`).
    pub coerce: bool,
    /// What a bare number in a date field counts since 1970: milliseconds, or seconds (`epoch_second`).
    pub date_unit_ms: i64,
    /// `format`, as it was given.
    pub format: Option<String>,
    /// `format`, where it has forms beyond those that every date field reads.
    pub(super) patterns: Option<DateFormat>,
    /// Whether it is one of the `fields` of another, and has the values of that one.
    pub(super) is_multi: bool,
    /// Its place among all fields of the mapping.
    pub(super) number: usize,
}

impl FieldType {
    /// All types, by name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|(name, _)| *name)
    }

    /// The parameters that a field of a type may have, those among them that may say one thing only.
    pub fn all_parameters() -> std::collections::BTreeSet<&'static str> {
        let own = TYPES.iter().flat_map(|(_, kind)| kind.parameters().split_whitespace());
        OF_ALL.split(' ').chain(own).collect()
    }

    /// Whether it is found by its words.
    pub fn has_words(self) -> bool {
        matches!(self, FieldType::Text | FieldType::MatchOnlyText)
    }

    fn is_number(self) -> bool {
        use FieldType::{Byte, Double, Float, Integer, Long, Short};
        matches!(self, Byte | Double | Float | Integer | Long | Short)
    }

    /// Parameters that only some types have.
    fn parameters(self) -> &'static str {
        match self {
            FieldType::Date => "format ignore_malformed",
            FieldType::GeoPoint | FieldType::Ip => "ignore_malformed",
            FieldType::Keyword => "ignore_above norms index_options eager_global_ordinals",
            FieldType::Text => {
                "analyzer search_analyzer search_quote_analyzer norms index_options \
                 eager_global_ordinals"
            }
            FieldType::Boolean | FieldType::MatchOnlyText => "",
            _ => "coerce ignore_malformed",
        }
    }
}

/// What a parameter says. A mapping that an earlier build accepted is read as that build read it.
struct Parameters<'a> {
    object: &'a Map<String, Value>,
    is_new: bool,
}

impl Parameters<'_> {
    fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        match self.object.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
            Some(_) if !self.is_new => Ok(default),
            Some(other) => Err(format!("\"{name}\" is true or false, not {other}")),
        }
    }

    /// Refuses what is not done, and would change what is found or how it is ordered.
    fn refuse_unless(&self, name: &str, allowed: &[Value], instead: &str) -> Result<(), String> {
        match self.object.get(name) {
            Some(given) if self.is_new && !allowed.contains(given) => {
                Err(format!("\"{name}\": {given} is not offered here; {instead}"))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, kind: FieldType) -> Result<(), String> {
        let text = |words: &[&str]| words.iter().map(|word| Value::from(*word)).collect::<Vec<_>>();
        self.refuse_unless("boost", &[1.into(), 1.0.into()], "boost in the query")?;
        let copies = "put the values into the other field, or search both with multi_match";
        self.refuse_unless("copy_to", &[Value::Array(Vec::new())], copies)?;
        let own = "texts are read by the standard analyzer; a keyword field keeps them whole";
        for name in ["analyzer", "search_analyzer", "search_quote_analyzer"] {
            self.refuse_unless(name, &text(&["standard", "default"]), own)?;
        }
        let (norms, options) = match kind {
            FieldType::Text => (true, text(&["positions", "offsets", "freqs"])),
            _ => (false, text(&["docs"])),
        };
        self.refuse_unless("norms", &[norms.into()], &format!("leave it out, or say {norms}"))?;
        self.refuse_unless("index_options", &options, "leave it out")
    }
}

impl Field {
    pub(super) fn parse(object: &Map<String, Value>, is_new: bool) -> Result<Self, String> {
        let names = || TYPES.iter().map(|(name, _)| *name);
        let name = object.get("type").and_then(Value::as_str).ok_or_else(|| {
            format!("no \"type\" (known: {})", names().collect::<Vec<_>>().join(", "))
        })?;
        let kind = TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| {
            let near = record::names::did_you_mean(name, names());
            let all = names().collect::<Vec<_>>().join(", ");
            let unknown = format!("unknown type \"{name}\"{near} (known: {all})");
            refused::said(refused::TYPES, &format!("type \"{name}\""), name, unknown)
        })?;
        if is_new {
            let of_all = if kind == FieldType::MatchOnlyText { "type meta fields" } else { OF_ALL };
            known_keys(object, &format!("{of_all} {}", kind.parameters()))?;
        }
        let given = Parameters { object, is_new };
        given.check(kind)?;
        let indexed = given.flag("index", true)?;
        let has_column = given.flag("doc_values", true)? && !kind.has_words();
        given.flag("store", false)?;
        given.flag("eager_global_ordinals", false)?;
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
        let patterns = match format.as_deref().map(DateFormat::parse) {
            Some(Err(why)) if is_new => return Err(why),
            Some(Ok(format)) if format.has_patterns() => Some(format),
            _ => None,
        };
        Ok(Field {
            kind,
            indexed,
            has_column,
            ignore_above,
            ignore_malformed: given.flag("ignore_malformed", false)?,
            coerce: given.flag("coerce", true)? || !kind.is_number(),
            date_unit_ms,
            format,
            patterns,
            is_multi: false,
            number: 0,
        })
    }

    /// Whether it is one of the `fields` of another, and has the values of that one.
    pub fn is_multi_field(&self) -> bool {
        self.is_multi
    }

    /// Whether its values are kept beside `_source`.
    pub fn is_kept(&self) -> bool {
        self.indexed || self.has_column
    }
}

/// Fails where an object has another key than these.
pub(super) fn known_keys(object: &Map<String, Value>, known: &str) -> Result<(), String> {
    let is_known = |key: &&String| known.split_whitespace().any(|known| known == key.as_str());
    let Some(key) = object.keys().find(|key| !is_known(key)) else { return Ok(()) };
    let near = record::names::did_you_mean(key, known.split_whitespace());
    let all = known.split_whitespace().collect::<Vec<_>>().join(", ");
    let unknown = format!("unknown parameter \"{key}\"{near} (known here: {all})");
    Err(refused::said(refused::PARAMETERS, &format!("parameter \"{key}\""), key, unknown))
}
