//! Reads the mapped fields of a document and skips the rest, in one pass over its JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::value::{date_millis, ip, is_point as is_on_earth, point};
use super::{Field, FieldType, Mapping, Properties, Property};

/// A value as it is indexed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Indexed<'a> {
    /// Of a text or keyword field.
    Text(&'a str),
    /// Of an integer field of any width.
    Integer(i64),
    /// Of a float or double field.
    Float(f64),
    /// Of a boolean field.
    Boolean(bool),
    /// Milliseconds since 1970.
    Date(i64),
    /// An IPv4 address is mapped into IPv6.
    Address(Ipv6Addr),
    /// Of a geo_point field.
    Point {
        /// Degrees, -90 to 90.
        lat: f64,
        /// Degrees, -180 to 180.
        lon: f64,
    },
}

/// Takes the values of one document. `field` counts the fields of [`Mapping::fields`].
pub trait Sink {
    /// One value of one field; a field with an array has several.
    fn put(&mut self, field: usize, value: Indexed<'_>);
}

/// A mapping made ready for reading many documents.
#[derive(Clone, Debug)]
pub struct Reader {
    root: Object,
    strict: bool,
}

#[derive(Clone, Debug, Default)]
struct Object(BTreeMap<String, Node>);

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Object(Object),
}

#[derive(Clone, Debug)]
struct Leaf {
    number: usize,
    name: String,
    field: Field,
}

impl Reader {
    /// Resolves the paths and types of all fields once.
    pub fn new(mapping: &Mapping) -> Self {
        let mut fields = 0;
        Reader { root: object("", &mapping.properties, &mut fields), strict: mapping.is_strict() }
    }

    /// Reads one document. The error is a sentence for the client that sent it. A new document must be JSON throughout;
    /// one that was accepted before may hold anything where no field is mapped.
    pub fn read(&self, source: &[u8], is_new: bool, sink: &mut impl Sink) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_slice(source);
        let skipping = Some(&self.root).filter(|_| !is_new);
        let read = JsonSeed { skipping }.deserialize(&mut json);
        let read = read.and_then(|document| json.end().map(|()| document));
        let read = read.map_err(|error| error.to_string()).and_then(|document| match document {
            Json::Object(_) => self.root.read(document, self.strict, sink),
            other => Err(format!("a document is an object, not {other}")),
        });
        read.map_err(|error| format!("failed to parse: {error}"))
    }
}

fn object(path: &str, properties: &Properties, fields: &mut usize) -> Object {
    let nodes = properties.iter().map(|(name, property)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let node = match property {
            Property::Object(inner) => Node::Object(object(&path, inner, fields)),
            Property::Field(field) => {
                *fields += 1;
                Node::Leaf(Leaf { number: *fields - 1, name: path, field: field.clone() })
            }
        };
        (name.clone(), node)
    });
    Object(nodes.collect())
}

/// A value of a document; its texts are those of the source where that has them without escapes.
enum Json<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    /// Greater than any of those.
    Unsigned(u64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(yes) => yes.fmt(f),
            Json::Integer(number) => number.fmt(f),
            Json::Unsigned(number) => number.fmt(f),
            Json::Float(number) => number.fmt(f),
            Json::Text(text) => text.fmt(f),
            Json::List(items) => write!(f, "an array of {}", items.len()),
            Json::Object(_) => f.write_str("an object"),
        }
    }
}

/// Reads a value.
#[derive(Clone, Copy)]
struct JsonSeed<'a> {
    /// What is mapped of it, where all else is to be skipped.
    skipping: Option<&'a Object>,
}

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = Json<'de>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Json<'de>, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, yes: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(yes))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Integer(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(i64::try_from(number).map_or(Json::Unsigned(number), Json::Integer))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(number))
    }
    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let whole = JsonSeed { skipping: None };
        let mut members = Vec::new();
        while let Some(Json::Text(name)) = map.next_key_seed(whole)? {
            let value = match self.skipping.map(|object| object.find(&name)) {
                None => map.next_value_seed(whole)?,
                Some(Some(Node::Object(inner))) => {
                    map.next_value_seed(JsonSeed { skipping: Some(inner) })?
                }
                Some(Some(Node::Leaf(leaf))) if leaf.field.indexed => map.next_value_seed(whole)?,
                Some(_) => map.next_value::<IgnoredAny>().map(|_| Json::Null)?,
            };
            members.push((name, value));
        }
        Ok(Json::Object(members))
    }
}

impl Object {
    /// The node of a key; dots lead into nested objects.
    fn find(&self, key: &str) -> Option<&Node> {
        if let Some(node) = self.0.get(key) {
            return Some(node);
        }
        let (head, tail) = key.split_once('.')?;
        match self.0.get(head)? {
            Node::Object(inner) => inner.find(tail),
            Node::Leaf(_) => None,
        }
    }

    /// Reads an object of the document; also an array of such objects, whose fields then have many values.
    fn read(&self, json: Json<'_>, strict: bool, sink: &mut impl Sink) -> Result<(), String> {
        match json {
            Json::Null => Ok(()),
            Json::List(items) => {
                items.into_iter().try_for_each(|item| self.read(item, strict, sink))
            }
            Json::Object(members) => {
                members.into_iter().try_for_each(|(key, value)| match self.find(&key) {
                    Some(Node::Leaf(leaf)) if leaf.field.indexed => leaf.read(&value, sink),
                    Some(Node::Object(object)) => object.read(value, strict, sink),
                    None if strict => {
                        Err(format!("field [{key}] is not mapped, and the mapping is strict"))
                    }
                    _ => Ok(()),
                })
            }
            other => Err(format!("[{other}] is no object or array of objects")),
        }
    }
}

impl Leaf {
    /// Puts a value, or each of an array.
    fn read(&self, json: &Json<'_>, sink: &mut impl Sink) -> Result<(), String> {
        let is_point = self.field.kind == FieldType::GeoPoint;
        match json {
            Json::Null => return Ok(()),
            // A point's array is [lon, lat] as in GeoJSON; an altitude may follow.
            Json::List(items) if is_point && items.iter().any(|item| number(item).is_some()) => {}
            Json::List(items) => return items.iter().try_for_each(|item| self.read(item, sink)),
            Json::Text(text) if matches!(self.field.kind, FieldType::Keyword | FieldType::Text) => {
                self.put_text(text, sink);
                return Ok(());
            }
            _ => {}
        }
        let value = match self.field.kind {
            FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
                let (least, greatest) = self.field.kind.integer_range();
                let value = integer(json).filter(|value| (least..=greatest).contains(value));
                value.map(Indexed::Integer)
            }
            FieldType::Double | FieldType::Float => match json {
                Json::Text(text) => text.trim().parse().ok().filter(|n: &f64| n.is_finite()),
                json => number(json),
            }
            .map(Indexed::Float),
            FieldType::Date => match json {
                Json::Text(text) => date_millis(text, self.field.date_unit),
                json => integer(json).map(|number| self.field.date_unit.to_millis(number)),
            }
            .map(Indexed::Date),
            FieldType::Ip => match json {
                Json::Text(text) => ip(text).map(Indexed::Address),
                _ => None,
            },
            FieldType::Boolean => match json {
                Json::Bool(yes) => Some(Indexed::Boolean(*yes)),
                Json::Text(text) if text == "true" => Some(Indexed::Boolean(true)),
                Json::Text(text) if text == "false" || text.is_empty() => {
                    Some(Indexed::Boolean(false))
                }
                _ => None,
            },
            FieldType::GeoPoint => {
                let found = place(json).filter(|(lat, lon)| is_on_earth(*lat, *lon));
                found.map(|(lat, lon)| Indexed::Point { lat, lon })
            }
            FieldType::Keyword | FieldType::Text => match json {
                Json::Object(_) => None,
                plain => {
                    self.put_text(&plain.to_string(), sink);
                    return Ok(());
                }
            },
        };
        let (name, kind) = (&self.name, self.field.kind);
        let value = value.ok_or_else(|| {
            format!("[{json}] is no value for field [{name}] of type [{}]", kind.name())
        })?;
        sink.put(self.number, value);
        Ok(())
    }

    fn put_text(&self, text: &str, sink: &mut impl Sink) {
        let above = self.field.ignore_above.unwrap_or(usize::MAX);
        if text.len() <= above || text.chars().count() <= above {
            sink.put(self.number, Indexed::Text(text));
        }
    }
}

fn number(json: &Json<'_>) -> Option<f64> {
    match json {
        Json::Integer(number) => Some(*number as f64),
        Json::Unsigned(number) => Some(*number as f64),
        Json::Float(number) => Some(*number),
        _ => None,
    }
}

/// A whole number; Elasticsearch coerces: the fraction is cut off.
fn integer(json: &Json<'_>) -> Option<i64> {
    let cut = |number: f64| (number.abs() < 9.2e18).then_some(number as i64);
    match json {
        Json::Integer(number) => Some(*number),
        Json::Float(number) => cut(*number),
        Json::Text(text) => {
            text.trim().parse().ok().or_else(|| text.trim().parse().ok().and_then(cut))
        }
        _ => None,
    }
}

/// Latitude and longitude.
fn place(json: &Json<'_>) -> Option<(f64, f64)> {
    match json {
        Json::Text(text) => point(text),
        Json::List(items) => match items.as_slice() {
            [lon, lat] | [lon, lat, _] => Some((number(lat)?, number(lon)?)),
            _ => None,
        },
        Json::Object(members) => match members.as_slice() {
            [(a, lat), (b, lon)] if a == "lat" && b == "lon" => Some((number(lat)?, number(lon)?)),
            [(a, lon), (b, lat)] if a == "lon" && b == "lat" => Some((number(lat)?, number(lon)?)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(usize, String)>);
    impl Sink for Seen {
        fn put(&mut self, field: usize, value: Indexed<'_>) {
            self.0.push((field, format!("{value:?}")));
        }
    }

    fn read(properties: serde_json::Value, source: &str) -> Result<Vec<String>, String> {
        let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
        let mut seen = Seen::default();
        Reader::new(&mapping).read(source.as_bytes(), true, &mut seen)?;
        Ok(seen.0.into_iter().map(|(field, value)| format!("{field} {value}")).collect())
    }

    #[test]
    fn points_in_every_form() {
        let one = ["0 Point { lat: 51.52, lon: -0.14 }"];
        let two = [one[0], "0 Point { lat: 1.0, lon: 2.0 }"];
        let point = || json!({"p": {"type": "geo_point"}});
        for form in [
            r#"[-0.14,51.52]"#,
            r#"[-0.14,51.52,12.5]"#,
            r#"{"lat":51.52,"lon":-0.14}"#,
            r#""51.52,-0.14""#,
            r#"[[-0.14,51.52]]"#,
        ] {
            assert_eq!(read(point(), &format!("{{\"p\":{form}}}")).unwrap(), one, "{form}");
        }
        for form in [r#"[[-0.14,51.52],[2,1]]"#, r#"[{"lat":51.52,"lon":-0.14},"1,2"]"#] {
            assert_eq!(read(point(), &format!("{{\"p\":{form}}}")).unwrap(), two, "{form}");
        }
        for bad in ["[200,0]", "[1]", "[1,2,3,4]", "{\"lat\":1}", "\"x\"", "true", "{\"x\":1}"] {
            let said = read(point(), &format!("{{\"p\":{bad}}}")).unwrap_err();
            assert!(said.contains("field [p] of type [geo_point]"), "{bad}: {said}");
        }
    }

    #[test]
    fn every_type_coerces_as_the_field_does() {
        let properties = json!({
            "b": {"type": "boolean"}, "d": {"type": "date", "format": "epoch_second"},
            "f": {"type": "float"}, "i": {"type": "ip"}, "k": {"type": "keyword", "ignore_above": 3},
            "l": {"type": "long"}, "o": {"properties": {"s": {"type": "short"}}}, "t": {"type": "text"}
        });
        let source = r#"{"b":"true","d":894000000,"f":"1.5","i":"::1","k":["abc","abcd",7],"l":2.9,
            "o":[{"s":1},{"s":null}],"o.s":2,"t":"a b","unmapped":{"x":[1,{}]}}"#;
        assert_eq!(
            read(properties.clone(), source).unwrap(),
            [
                "0 Boolean(true)",
                "1 Date(894000000000)",
                "2 Float(1.5)",
                "3 Address(::1)",
                "4 Text(\"abc\")",
                "4 Text(\"7\")",
                "5 Integer(2)",
                "6 Integer(1)",
                "6 Integer(2)",
                "7 Text(\"a b\")"
            ]
        );
        for bad in [
            r#"{"o":{"s":40000}}"#,
            r#"{"l":"x"}"#,
            r#"{"l":18446744073709551615}"#,
            r#"{"i":1}"#,
            r#"{"b":2}"#,
            r#"{"o":5}"#,
            r#"[]"#,
            r#"{"l":1"#,
            r#"{} {}"#,
            "",
        ] {
            assert!(read(properties.clone(), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_new_document_is_json_throughout() {
        let mapping = json!({"properties": {"k": {"type": "keyword"}, "d": {"type": "double"}}});
        let reader = Reader::new(&Mapping::parse(&mapping).unwrap());
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        let bad: [&[u8]; 8] = [
            b"{\"x\":\"\xff\"}",
            b"{\"x\":{\"y\":[\"\xed\xa0\x80\"]}}",
            b"{\"\xff\":1}",
            b"{\"x\":{\"\xc3\":1}}",
            br#"{"x":1e400}"#,
            br#"{"x":["\ud800"]}"#,
            br#"{"x":{"\udc00":1}}"#,
            deep.as_bytes(),
        ];
        for source in bad {
            let shown = String::from_utf8_lossy(source);
            let said = reader.read(source, true, &mut Seen::default()).unwrap_err();
            assert!(said.starts_with("failed to parse: "), "{shown}: {said}");
            // What an earlier build accepted must still be replayed; names were always read.
            let mapped = source.starts_with(b"{\"\xff");
            let replayed = reader.read(source, false, &mut Seen::default());
            assert_eq!(replayed.is_err(), mapped, "{shown}");
        }
        for mapped in [&br#"{"k":"\ud800"}"#[..], br#"{"d":1e400}"#, b"{\"k\":\"\xff\"}"] {
            assert!(reader.read(mapped, false, &mut Seen::default()).is_err());
        }
        let good =
            r#"{"x":["\ud83d\ude00", 1e308, -0.0, null, true, {"y": 18446744073709551615}]}"#;
        assert_eq!(reader.read(good.as_bytes(), true, &mut Seen::default()), Ok(()));
    }

    #[test]
    fn strict_refuses_what_is_not_mapped() {
        let json = json!({"dynamic": "strict", "properties": {"a": {"type": "long"}}});
        let reader = Reader::new(&Mapping::parse(&json).unwrap());
        assert!(reader.read(br#"{"a":1}"#, true, &mut Seen::default()).is_ok());
        let said = reader.read(br#"{"b":1}"#, true, &mut Seen::default()).unwrap_err();
        assert!(said.contains("field [b] is not mapped"), "{said}");
    }
}
