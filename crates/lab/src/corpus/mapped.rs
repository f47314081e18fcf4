//! Documents that are made of nothing but a mapping: a value of the right type in each field. They show whether the
//! requests of a track work, and nothing of how long they take.

use query::DateFormat;
use serde_json::{Map, Value, json};

use super::random::Random;
use super::sought::{DATES, Sought, Span};
use super::words::WORDS;

const FAMILY: u64 = 0x6d61_7070;
/// 2015-01-01T00:00:00Z, when the first document is from unless dates are asked for; each is a second younger than the
/// one before.
const FIRST_EPOCH_MS: i64 = 1_420_070_400_000;
/// Distinct values of a keyword.
const KEYWORDS: u32 = 100;
const TEXT_WORDS: u32 = 12;
/// Of so many values one is of those that are asked for.
const ASKED_ONE_IN: u32 = 4;
/// Decimals have two digits behind the point.
const DECIMAL_PARTS: u32 = 100;
/// Whole numbers that are exact wherever they are read.
const EXACT: i64 = 1 << 53;
/// The greatest number of 16 bits, in parts.
const HALF_PARTS: i64 = 65_504 * DECIMAL_PARTS as i64;

/// What is made in each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped(Vec<(String, Made)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Made {
    /// With the values that are asked for, as those below that hold some.
    Keyword(Vec<String>),
    Words(Vec<String>),
    Whole {
        /// From 0 to below.
        below: u32,
        /// What the type holds.
        held: Span,
        asked: Vec<Span>,
    },
    /// In parts.
    Decimal {
        held: Span,
        asked: Vec<Span>,
    },
    Flag,
    Date(DateFormat, Vec<Span>),
    Address,
    Point,
    Range,
    Object(Mapped),
}

impl Mapped {
    /// Documents of a mapping, `{"properties": {...}}`. Fields of other types are left out and their paths told.
    pub fn of(mapping: &Value) -> (Mapped, Vec<String>) {
        let mut left_out = Vec::new();
        (Mapped::below(mapping, "", &mut left_out), left_out)
    }

    /// Whether no field is made.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, made)| matches!(made, Made::Object(fields) if fields.is_empty()))
    }

    fn below(mapping: &Value, path: &str, left_out: &mut Vec<String>) -> Mapped {
        let mut fields = Vec::new();
        for (name, field) in mapping["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let made = match field["type"].as_str() {
                None | Some("object" | "nested") => {
                    Some(Made::Object(Mapped::below(field, &path, left_out)))
                }
                Some("keyword") => Some(Made::Keyword(Vec::new())),
                Some("text" | "match_only_text") => Some(Made::Words(Vec::new())),
                Some("byte") => Some(Made::whole(100, i8::MAX.into())),
                Some("short") => Some(Made::whole(10_000, i16::MAX.into())),
                Some("integer") => Some(Made::whole(10_000, i32::MAX.into())),
                Some("long") => Some(Made::whole(10_000, EXACT)),
                Some("half_float") => Some(Made::decimal(HALF_PARTS)),
                Some("float" | "double" | "scaled_float") => Some(Made::decimal(EXACT)),
                Some("boolean") => Some(Made::Flag),
                Some("date") => {
                    let format = field["format"].as_str().map(DateFormat::parse);
                    let format = format.unwrap_or_else(|| Ok(DateFormat::default())).ok();
                    format.map(|format| Made::Date(format, Vec::new()))
                }
                Some("ip") => Some(Made::Address),
                Some("geo_point") => Some(Made::Point),
                Some("integer_range" | "long_range" | "float_range" | "double_range") => {
                    Some(Made::Range)
                }
                Some(_) => None,
            };
            match made {
                Some(made) => fields.push((name.clone(), made)),
                None => left_out.push(path),
            }
        }
        Mapped(fields)
    }

    /// Has a field hold now and then what is asked for, if its type can; one of its `fields` is the field.
    pub fn ask(&mut self, path: &str, sought: &Sought) {
        for (name, made) in &mut self.0 {
            let Some(below) = path.strip_prefix(name.as_str()) else { continue };
            let below = match below.strip_prefix('.') {
                None if !below.is_empty() => continue,
                below => below.unwrap_or_default(),
            };
            match made {
                Made::Object(fields) => fields.ask(below, sought),
                Made::Keyword(asked) | Made::Words(asked) => {
                    add(asked, sought.text().map(str::to_owned));
                }
                Made::Whole { held, asked, .. } => add(asked, sought.numbers(1, held)),
                Made::Decimal { held, asked } => add(asked, sought.numbers(DECIMAL_PARTS, held)),
                Made::Date(format, asked) => add(asked, sought.dates(format)),
                Made::Flag | Made::Address | Made::Point | Made::Range => {}
            }
        }
    }

    /// Appends document `n`, without a newline.
    pub(super) fn write(&self, seed: u64, n: u64, out: &mut Vec<u8>) {
        let document = self.document(&mut Random::new(seed, FAMILY, n), n);
        out.extend_from_slice(document.to_string().as_bytes());
    }

    fn document(&self, random: &mut Random, n: u64) -> Value {
        let field = |(name, made): &(String, Made)| (name.clone(), made.value(random, n));
        Value::Object(self.0.iter().map(field).collect::<Map<_, _>>())
    }
}

impl Made {
    fn whole(below: u32, most: i64) -> Made {
        Made::Whole { below, held: -most..=most, asked: Vec::new() }
    }

    fn decimal(most: i64) -> Made {
        Made::Decimal { held: -most..=most, asked: Vec::new() }
    }

    fn value(&self, random: &mut Random, n: u64) -> Value {
        match self {
            // The lesser of two: some are frequent and some are rare.
            Made::Keyword(asked) => {
                if let Some(text) = one_of(asked, random) {
                    return text.as_str().into();
                }
                let value = random.below(KEYWORDS).min(random.below(KEYWORDS));
                format!("value {value}").into()
            }
            Made::Words(asked) => {
                let mut text = Vec::new();
                if let Some(asked) = one_of(asked, random) {
                    text.extend(asked.bytes().chain([b' ']));
                }
                WORDS.write(TEXT_WORDS, random, &mut text);
                String::from_utf8(text)
                    .expect("words are ASCII, and what is asked for is text")
                    .into()
            }
            Made::Whole { below, asked, .. } => match within_one_of(asked, random) {
                Some(number) => number.into(),
                None => random.below(*below).into(),
            },
            Made::Decimal { asked, .. } => {
                let parts = within_one_of(asked, random);
                let parts = parts.unwrap_or_else(|| random.below(10_000).into());
                json!(parts as f64 / f64::from(DECIMAL_PARTS))
            }
            Made::Flag => (random.below(2) == 1).into(),
            Made::Date(format, asked) => {
                // Just behind those that are asked for: years between them would be too many buckets of an hour.
                let behind = asked.iter().map(|span| span.end() + 1).max();
                let first = behind.unwrap_or(FIRST_EPOCH_MS);
                let in_turn = || (first + n.min(1 << 40) as i64 * 1000).min(*DATES.end());
                format.show(within_one_of(asked, random).unwrap_or_else(in_turn)).into()
            }
            Made::Address => {
                format!("10.{}.{}.{}", random.below(4), random.below(16), random.below(256)).into()
            }
            Made::Point => {
                let degrees = |random: &mut Random, most: u32| {
                    f64::from(random.below(2 * most * 1000)) / 1000.0 - f64::from(most)
                };
                json!({ "lat": degrees(random, 80), "lon": degrees(random, 180) })
            }
            Made::Range => {
                let (low, width) = (random.below(1000), random.below(100));
                json!({ "gte": low, "lte": low + width })
            }
            Made::Object(fields) => fields.document(random, n),
        }
    }
}

fn add<T: PartialEq>(asked: &mut Vec<T>, more: Option<T>) {
    if let Some(one) = more
        && !asked.contains(&one)
    {
        asked.push(one);
    }
}

/// Now and then one of those that are asked for.
fn one_of<'a, T>(asked: &'a [T], random: &mut Random) -> Option<&'a T> {
    if asked.is_empty() || random.below(ASKED_ONE_IN) > 0 {
        return None;
    }
    Some(random.pick(asked))
}

/// Now and then a number of one of the spans that are asked for.
fn within_one_of(asked: &[Span], random: &mut Random) -> Option<i64> {
    let span = one_of(asked, random)?;
    let (low, high) = (*span.start(), *span.end());
    let above = (random.unit() * ((high - low) as f64 + 1.0)) as i64;
    Some((low + above).min(high))
}

#[cfg(test)]
mod tests {
    use query::Mapping;
    use query::mapping::document::Extent;

    use super::*;

    #[test]
    fn documents_fit_the_mapping_that_they_are_made_of() {
        let mapping = json!({"dynamic": "strict", "properties": {
            "k": {"type": "keyword"}, "t": {"type": "text"}, "b": {"type": "byte"}, "s": {"type": "short"},
            "x": {"type": "scaled_float", "scaling_factor": 100}, "y": {"type": "boolean"},
            "d": {"type": "date", "format": "yyyy-MM-dd HH:mm:ss"}, "e": {"type": "date", "format": "epoch_second"},
            "i": {"type": "ip"}, "r": {"type": "double_range"},
            "o": {"properties": {"p": {"type": "geo_point"}, "l": {"type": "long"}}},
        }});
        let (made, left_out) = Mapped::of(&mapping);
        assert!(left_out.is_empty() && !made.is_empty());
        let mapping = Mapping::parse(&mapping).unwrap();
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for n in 0..200 {
            let mut document = Vec::new();
            made.write(7, n, &mut document);
            let mut values = 0;
            let read = mapping.read(&document, true, &mut |_, _| values += 1);
            assert_eq!(read, Ok(Extent::Whole));
            assert_eq!(values, 12, "a value in each field");
            first.extend(document);
            made.write(7, n, &mut again);
        }
        assert_eq!(first, again);
    }

    #[test]
    fn what_is_asked_for_is_held_now_and_then() {
        let (mut made, _) = Mapped::of(&json!({"properties": {
            "k": {"type": "keyword"}, "key": {"type": "keyword"}, "n": {"type": "boolean"},
            "o": {"properties": {"t": {"type": "text", "fields": {"raw": {"type": "keyword"}}}}},
        }}));
        for (path, text) in [("k", "AT"), ("o.t.raw", "two words"), ("n", "7"), ("gone", "x")] {
            made.ask(path, &Sought::value(&json!(text)).unwrap());
        }
        let (mut keywords, mut texts) = (0, 0);
        for n in 0..200 {
            let mut document = Vec::new();
            made.write(7, n, &mut document);
            let document: Value = serde_json::from_slice(&document).unwrap();
            keywords += usize::from(document["k"] == "AT");
            texts += usize::from(document["o"]["t"].as_str().unwrap().starts_with("two words "));
            assert!(document["key"] != "AT" && document["n"].is_boolean());
        }
        assert!((10..190).contains(&keywords) && (10..190).contains(&texts), "{keywords} {texts}");
    }

    #[test]
    fn numbers_and_dates_that_are_asked_for_are_held_now_and_then() {
        let (mut made, _) = Mapped::of(&json!({"properties": {
            "b": {"type": "byte"}, "n": {"type": "long"}, "x": {"type": "double"},
            "d": {"type": "date", "format": "yyyy-MM-dd"},
        }}));
        for (path, range) in [
            ("b", json!({"gte": -5, "lt": 0})),
            ("b", json!({"gte": 200, "lt": 300})),
            ("n", json!({"gt": 1_000_000, "lte": 2_000_000})),
            ("x", json!({"gte": 1000.07, "lte": 1000.07})),
            ("d", json!({"gte": "01/02/1998", "lt": "01/03/1998", "format": "dd/MM/yyyy"})),
        ] {
            made.ask(path, &Sought::range(&range));
        }
        let mut held = [0; 4];
        for n in 0..200 {
            let mut document = Vec::new();
            made.write(7, n, &mut document);
            let document: Value = serde_json::from_slice(&document).unwrap();
            let number = |name: &str| document[name].as_i64().unwrap();
            assert!((-5..100).contains(&number("b")), "{document}");
            let day = document["d"].as_str().unwrap();
            assert!(day.starts_with("1998-02-") || day == "1998-03-01", "{document}");
            let is_held = [
                number("b") < 0,
                (1_000_001..=2_000_000).contains(&number("n")),
                document["x"] == 1000.07,
                day.starts_with("1998-02-"),
            ];
            held.iter_mut().zip(is_held).for_each(|(count, is)| *count += u32::from(is));
        }
        assert!(held.iter().all(|count| (10..190).contains(count)), "{held:?}");
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let shapes = json!({"properties": {"o": {"properties": {"shape": {"type": "geo_shape"}}}}});
        let (made, left_out) = Mapped::of(&shapes);
        assert!(made.is_empty());
        assert_eq!(left_out, ["o.shape"]);
        assert!(Mapped::of(&json!({"dynamic": "true"})).0.is_empty());
    }
}
