//! One mapped field: its type and the parameters that matter here.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json::Value as JsonValue;
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
    /// from one floating point number to another
    DoubleRange,
    /// floating point, kept as 64 bits
    Float,
    /// latitude and longitude
    GeoPoint,
    /// 16-bit floating point, kept as 64 bits
    HalfFloat,
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
    /// a number in steps of 1 / `scaling_factor`
    ScaledFloat,
    /// -2^15 to 2^15 - 1
    Short,
    /// a text by its words
    Text,
}

const OF_NUMBERS: &str = "coerce ignore_malformed null_value";
const OF_KEYWORDS: &str = "ignore_above norms index_options eager_global_ordinals null_value";
const OF_TEXTS: &str = "analyzer search_analyzer search_quote_analyzer norms index_options fielddata \
                        eager_global_ordinals";

/// The types by name, each with the parameters that only some have.
const TYPES: [(&str, FieldType, &str); 16] = [
    ("boolean", FieldType::Boolean, "null_value"),
    ("byte", FieldType::Byte, OF_NUMBERS),
    ("date", FieldType::Date, "format ignore_malformed null_value"),
    ("double", FieldType::Double, OF_NUMBERS),
    ("double_range", FieldType::DoubleRange, "coerce"),
    ("float", FieldType::Float, OF_NUMBERS),
    ("geo_point", FieldType::GeoPoint, "ignore_malformed"),
    ("half_float", FieldType::HalfFloat, OF_NUMBERS),
    ("integer", FieldType::Integer, OF_NUMBERS),
    ("ip", FieldType::Ip, "ignore_malformed null_value"),
    ("keyword", FieldType::Keyword, OF_KEYWORDS),
    ("long", FieldType::Long, OF_NUMBERS),
    ("match_only_text", FieldType::MatchOnlyText, ""),
    ("scaled_float", FieldType::ScaledFloat, "coerce ignore_malformed null_value scaling_factor"),
    ("short", FieldType::Short, OF_NUMBERS),
    ("text", FieldType::Text, OF_TEXTS),
];

impl FieldType {
    /// The name in mapping JSON.
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(_, kind, _)| *kind == self).map_or("", |(name, ..)| name)
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
    pub(super) ignore_above: Option<usize>,
    /// Whether a value that is none of the type is left out, and the document kept (`ignore_malformed`).
    pub ignore_malformed: bool,
    /// What stands for null (`null_value`).
    pub(super) null_value: Option<JsonValue<'static>>,
    /// Other fields that get its values, too (`copy_to`).
    pub(super) copy_to: Vec<String>,
    /// `scaling_factor`
    pub scaling_factor: Option<f64>,
    /// What cuts texts into words (`analyzer`), and texts of queries (`search_analyzer`).
    pub analyzers: (Analyzer, Analyzer),
    /// Whether long texts score less (`norms`).
    pub has_norms: bool,
    /// Whether phrases find it (`index_options`).
    pub has_positions: bool,
    /// Whether numbers may stand in strings, and lose their fractions (`coerce`).
    pub coerce: bool,
    /// What its dates are read and written by: `format`, or what every date field has without one.
    pub dates: DateFormat,
    /// Whether it is one of the `fields` of another, and has the values of that one.
    pub(super) is_multi: bool,
    /// Its place among all fields of the mapping.
    pub(super) number: usize,
}

/// What cuts a text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Analyzer {
    /// By the rules of Unicode, in lower case.
    Standard,
    /// Runs of letters, in lower case.
    Simple,
    /// Between spaces.
    Whitespace,
    /// The text is one word.
    Keyword,
    /// By the rules of Unicode, without English stop words, each cut to its stem.
    English,
}

impl Analyzer {
    /// All that there are, by name.
    pub const NAMED: [(&'static str, Analyzer); 6] = [
        ("standard", Analyzer::Standard),
        ("default", Analyzer::Standard),
        ("simple", Analyzer::Simple),
        ("whitespace", Analyzer::Whitespace),
        ("keyword", Analyzer::Keyword),
        ("english", Analyzer::English),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

impl FieldType {
    /// All types, by name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|(name, ..)| *name)
    }

    /// The parameters that a field of a type may have, those among them that may say one thing only.
    pub fn all_parameters() -> std::collections::BTreeSet<&'static str> {
        let own = TYPES.iter().flat_map(|(_, _, own)| own.split_whitespace());
        OF_ALL.split(' ').chain(own).collect()
    }

    /// Whether it is found by its words.
    pub fn has_words(self) -> bool {
        matches!(self, FieldType::Text | FieldType::MatchOnlyText)
    }

    /// Whether its values are texts, of one word or of many.
    pub fn is_of_texts(self) -> bool {
        self == FieldType::Keyword || self.has_words()
    }

    /// Whether a document has a value of it once, however often it stands there: Lucene's sorted sets.
    pub fn is_set(self) -> bool {
        matches!(self, FieldType::Keyword | FieldType::Text | FieldType::Ip)
    }

    /// Whether its columns keep numbers with fractions.
    pub fn is_float(self) -> bool {
        use FieldType::{Double, Float, HalfFloat, ScaledFloat};
        matches!(self, Double | Float | HalfFloat | ScaledFloat)
    }

    pub(super) fn is_number(self) -> bool {
        use FieldType::{Byte, Integer, Long, Short};
        matches!(self, Byte | Integer | Long | Short) || self.is_float()
    }

    /// The columns of a field that is kept in two; none where it is in one.
    pub fn columns(self) -> Option<(&'static str, &'static str)> {
        match self {
            FieldType::GeoPoint => Some(("lat", "lon")),
            FieldType::DoubleRange => Some(("gte", "lte")),
            _ => None,
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
            Some(given) if self.is_new => flag(name, given),
            Some(given) => Ok(boolean(given).unwrap_or(default)),
        }
    }

    /// Refuses what is not done, and would change what is found or how it is ordered.
    fn refuse_unless(&self, name: &str, allowed: &[Value], instead: &str) -> Result<(), String> {
        let is_allowed = |given: &Value| match boolean(given) {
            Some(flag) => allowed.contains(&flag.into()),
            None => allowed.contains(given),
        };
        match self.object.get(name) {
            Some(given) if self.is_new && !is_allowed(given) => {
                Err(format!("\"{name}\": {given} is not offered here; {instead}"))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, kind: FieldType) -> Result<(), String> {
        let text = |words: &[&str]| words.iter().map(|word| Value::from(*word)).collect::<Vec<_>>();
        let named = Analyzer::NAMED.map(|(name, _)| Value::from(name));
        self.refuse_unless("boost", &[1.into(), 1.0.into()], "boost in the query")?;
        self.refuse_unless("store", &[false.into()], "hits show it from _source")?;
        let own = "there are standard, simple, whitespace, keyword and english; a keyword field keeps texts whole";
        for name in ["analyzer", "search_analyzer", "search_quote_analyzer"] {
            self.refuse_unless(name, &named, own)?;
        }
        let (norms, options) = match kind {
            FieldType::Text => {
                (vec![true.into(), false.into()], text(&["positions", "offsets", "freqs"]))
            }
            _ => (vec![false.into()], text(&["docs"])),
        };
        self.refuse_unless("norms", &norms, "leave it out, or say false")?;
        self.refuse_unless("index_options", &options, "leave it out")
    }
}

impl Field {
    /// One of a type of which nothing else is said. Fails where there is no such type.
    pub fn of_type(name: &str) -> Result<Self, String> {
        let object = [("type".to_owned(), Value::from(name))].into_iter().collect();
        Field::parse(&object, true)
    }

    pub(super) fn parse(object: &Map<String, Value>, is_new: bool) -> Result<Self, String> {
        let all = || FieldType::names().collect::<Vec<_>>().join(", ");
        let name = object.get("type").and_then(Value::as_str);
        let name = name.ok_or_else(|| format!("no \"type\" (known: {})", all()))?;
        let known = TYPES.iter().find(|(known, ..)| *known == name);
        let (_, kind, own) = *known.ok_or_else(|| {
            let near = record::names::did_you_mean(name, FieldType::names());
            let unknown = format!("unknown type \"{name}\"{near} (known: {})", all());
            refused::said(refused::TYPES, &format!("type \"{name}\""), name, unknown)
        })?;
        if is_new {
            let of_all = if kind == FieldType::MatchOnlyText { "type meta fields" } else { OF_ALL };
            known_keys(object, &format!("{of_all} {own}"))?;
        }
        let given = Parameters { object, is_new };
        given.check(kind)?;
        let indexed = given.flag("index", true)?;
        let fielddata = kind == FieldType::Text && given.flag("fielddata", false)?;
        let has_column = fielddata || (given.flag("doc_values", true)? && !kind.has_words());
        given.flag("eager_global_ordinals", false)?;
        let most = |value: &Value| {
            let why = || format!("\"ignore_above\" is a number, not {value}");
            let number = value.as_str().map_or_else(|| value.as_u64(), |text| text.parse().ok());
            number.map(|most| most as usize).ok_or_else(why)
        };
        let ignore_above = object.get("ignore_above").map(most).transpose()?;
        let dates = match object.get("format") {
            Some(Value::String(format)) if is_new => DateFormat::parse(format)?,
            Some(Value::String(format)) => DateFormat::stored(format),
            Some(other) if is_new => return Err(format!("\"format\" is a text, not {other}")),
            _ => DateFormat::default(),
        };
        let null_value = match object.get("null_value") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(JsonValue::Text(Cow::Owned(text.clone()))),
            Some(Value::Bool(yes)) => Some(JsonValue::Bool(*yes)),
            Some(Value::Number(number)) => Some(JsonValue::Number(number.clone())),
            Some(other) => return Err(format!("\"null_value\" is a value, not {other}")),
        };
        let copy_to = match object.get("copy_to") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(path)) => vec![path.clone()],
            Some(Value::Array(paths)) if paths.iter().all(Value::is_string) => {
                paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(other) => return Err(format!("\"copy_to\" is a field, or several, not {other}")),
        };
        let scaling_factor = object.get("scaling_factor").and_then(|factor| match factor {
            Value::String(text) => text.parse().ok(),
            factor => factor.as_f64(),
        });
        let scaling_factor =
            scaling_factor.filter(|factor: &f64| *factor > 0.0 && factor.is_finite());
        if kind == FieldType::ScaledFloat && scaling_factor.is_none() {
            return Err("a scaled_float has a \"scaling_factor\" greater than 0".to_owned());
        }
        let analyzer = |name: &str| {
            let given = object.get(name).and_then(Value::as_str)?;
            Analyzer::NAMED.iter().find(|(known, _)| *known == given).map(|(_, analyzer)| *analyzer)
        };
        let indexed_by = analyzer("analyzer").unwrap_or(Analyzer::Standard);
        let searched_by = analyzer("search_analyzer").unwrap_or(indexed_by);
        if analyzer("search_quote_analyzer").is_some_and(|quoted| quoted != searched_by) {
            return Err(
                "\"search_quote_analyzer\" is that of other searches; leave it out".to_owned()
            );
        }
        Ok(Field {
            kind,
            null_value,
            copy_to,
            scaling_factor,
            analyzers: (indexed_by, searched_by),
            has_norms: given.flag("norms", true)?,
            has_positions: object.get("index_options").is_none_or(|options| options != "freqs"),
            indexed,
            has_column,
            ignore_above,
            ignore_malformed: given.flag("ignore_malformed", false)?,
            coerce: given.flag("coerce", true)? || !kind.is_number(),
            dates,
            is_multi: false,
            number: 0,
        })
    }

    /// Whether it is one of the `fields` of another, and has the values of that one.
    pub fn is_multi_field(&self) -> bool {
        self.is_multi
    }

    /// What stands for null, as a text.
    pub fn null_text(&self) -> Option<String> {
        self.null_value.as_ref().map(ToString::to_string)
    }

    /// What it makes of a number: of `scaled_float` the nearest step, of `half_float` the nearest number of 16 bits.
    pub fn stepped(&self, number: f64) -> f64 {
        match self.kind {
            FieldType::HalfFloat => half(number),
            _ => self.by_steps(number, |steps| (steps + 0.5).floor()),
        }
    }

    /// Whether it has room for a number with a fraction.
    pub fn has_room(&self, number: f64) -> bool {
        match self.kind {
            FieldType::Float => (number as f32).is_finite(),
            FieldType::HalfFloat => half(number).is_finite(),
            _ => true,
        }
    }

    /// A number after `whole` has made a whole number of its steps. As the field computes it: in steps of 1/100, 3.26
    /// becomes 3.2600000000000002.
    pub fn by_steps(&self, number: f64, whole: impl FnOnce(f64) -> f64) -> f64 {
        self.scaling_factor.map_or(number, |factor| whole(number * factor) * (1.0 / factor))
    }

    /// Whether a text is too long to be kept (`ignore_above`); the field counts characters as Java does.
    pub fn ignores(&self, text: &str) -> bool {
        let above = |most: usize| text.len() > most && text.encode_utf16().count() > most;
        self.ignore_above.is_some_and(above)
    }

    /// Whether its values are kept beside `_source`.
    pub fn is_kept(&self) -> bool {
        self.indexed || self.has_column
    }

    /// Whether queries find its values: of one that is not indexed by its column. Texts, ranges and
    /// points are found by an index alone.
    pub fn is_searched(&self) -> bool {
        let has_values = self.has_column && !self.kind.has_words() && self.kind.columns().is_none();
        self.indexed || has_values
    }
}

/// The greatest number of 16 bits.
const HALF_MAX: f64 = 65_504.0;

/// The nearest number of 16 bits, by way of one of 32 bits as in Lucene; what lies between two goes to the even one. It
/// is infinite beyond the greatest.
fn half(number: f64) -> f64 {
    let number = f64::from(number as f32);
    let power = ((number.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    // There are 2^10 steps from a power of two to the next. Below 2^-14 they grow no smaller.
    let step = 2f64.powi(power.max(-14) - 10);
    let nearest = (number / step).round_ties_even() * step;
    if nearest.abs() > HALF_MAX { f64::INFINITY.copysign(nearest) } else { nearest }
}

/// What an object says that has one flag; no where there is none.
pub(super) fn flag_of(json: Option<&Value>, name: &str) -> Result<bool, String> {
    let Some(json) = json else { return Ok(false) };
    let no_object = || format!("it is an object: {{\"{name}\": true}}");
    let object = json.as_object().ok_or_else(no_object)?;
    known_keys(object, name)?;
    object.get(name).map_or(Ok(false), |given| flag(name, given))
}

/// True or false, or one of them in a text.
pub(super) fn boolean(given: &Value) -> Option<bool> {
    given.as_bool().or_else(|| given.as_str()?.parse().ok())
}

/// The same of a parameter. The error says what is accepted.
pub(super) fn flag(name: &str, given: &Value) -> Result<bool, String> {
    boolean(given).ok_or_else(|| format!("\"{name}\" is true or false, not {given}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits() {
        for (number, nearest) in [
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, 1.0),
            (0.1, 0.099_975_585_937_5),
            (-0.1, -0.099_975_585_937_5),
            (0.333, 0.333_007_812_5),
            (2048.0, 2048.0),
            // Between two: to the even one, also where that is the next power of two.
            (2049.0, 2048.0),
            (2051.0, 2052.0),
            (4095.0, 4096.0),
            // A number that is no such one in 32 bits, either.
            (2_049.000_000_001, 2048.0),
            (2049.001, 2050.0),
            (65_504.0, 65_504.0),
            (65_519.9, 65_504.0),
            (65_520.0, f64::INFINITY),
            (-1e300, f64::NEG_INFINITY),
            // The least above zero, and half of it.
            (6e-8, 2f64.powi(-24)),
            (2.9e-8, 0.0),
            (6.1e-5, 6.097_555_160_522_461e-5),
        ] {
            let found = half(number);
            assert_eq!(found.to_bits(), nearest.to_bits(), "{number}: {found}");
        }
    }
}
