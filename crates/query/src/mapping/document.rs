//! Reads the mapped fields of a document and skips the rest, in one pass over its JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::value::{DateUnit, date_millis, ip, is_point, point};
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
    kind: FieldType,
    indexed: bool,
    ignore_above: usize,
    date_unit: DateUnit,
}

impl Reader {
    /// Resolves the paths and types of all fields once.
    pub fn new(mapping: &Mapping) -> Self {
        let mut fields = 0;
        Reader { root: object("", &mapping.properties, &mut fields), strict: mapping.is_strict() }
    }

    /// Reads one document. The error is a sentence for the client that sent it.
    pub fn read(&self, source: &[u8], sink: &mut impl Sink) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_slice(source);
        let seed = ObjectSeed { object: &self.root, strict: self.strict, sink };
        seed.deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| format!("failed to parse: {error}"))
    }
}

fn object(path: &str, properties: &Properties, fields: &mut usize) -> Object {
    let nodes = properties.iter().map(|(name, property)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let node = match property {
            Property::Object(inner) => Node::Object(object(&path, inner, fields)),
            Property::Field(field) => {
                *fields += 1;
                Node::Leaf(leaf(*fields - 1, path, field))
            }
        };
        (name.clone(), node)
    });
    Object(nodes.collect())
}

fn leaf(number: usize, name: String, field: &Field) -> Leaf {
    Leaf {
        number,
        name,
        kind: field.kind,
        indexed: field.indexed,
        ignore_above: field.ignore_above.unwrap_or(usize::MAX),
        date_unit: field.date_unit,
    }
}

/// What a key leads to.
enum Target<'a> {
    Node(&'a Node),
    Unknown(String),
    Ignored,
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
}

struct KeySeed<'a> {
    object: &'a Object,
    strict: bool,
}

impl<'de, 'a> DeserializeSeed<'de> for KeySeed<'a> {
    type Value = Target<'a>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Target<'a>, D::Error> {
        d.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for KeySeed<'a> {
    type Value = Target<'a>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a field name")
    }
    fn visit_str<E>(self, key: &str) -> Result<Target<'a>, E> {
        Ok(match self.object.find(key) {
            Some(node) => Target::Node(node),
            None if self.strict => Target::Unknown(key.to_owned()),
            None => Target::Ignored,
        })
    }
}

/// An object of the document; also an array of such objects, whose fields then have many values.
struct ObjectSeed<'a, S> {
    object: &'a Object,
    strict: bool,
    sink: &'a mut S,
}

impl<'de, S: Sink> DeserializeSeed<'de> for ObjectSeed<'_, S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for ObjectSeed<'_, S> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ObjectSeed { object, strict, sink } = self;
        while let Some(target) = map.next_key_seed(KeySeed { object, strict })? {
            match target {
                Target::Node(Node::Leaf(leaf)) if leaf.indexed => {
                    map.next_value_seed(LeafSeed { leaf, sink: &mut *sink })?;
                }
                Target::Node(Node::Object(object)) => {
                    map.next_value_seed(Nested(ObjectSeed { object, strict, sink: &mut *sink }))?;
                }
                Target::Unknown(key) => {
                    let why = format!("field [{key}] is not mapped, and the mapping is strict");
                    return Err(de::Error::custom(why));
                }
                Target::Node(Node::Leaf(_)) | Target::Ignored => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// An object below the document itself: null and arrays are allowed there.
struct Nested<'a, S>(ObjectSeed<'a, S>);

impl<'de, S: Sink> DeserializeSeed<'de> for Nested<'_, S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Nested<'_, S> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object or an array of objects")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.visit_map(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let ObjectSeed { object, strict, sink } = self.0;
        loop {
            let next = Nested(ObjectSeed { object, strict, sink: &mut *sink });
            if seq.next_element_seed(next)?.is_none() {
                return Ok(());
            }
        }
    }
}

/// A value, or an array of values, of one field.
struct LeafSeed<'a, S> {
    leaf: &'a Leaf,
    sink: &'a mut S,
}

/// What was found in an array: a bare number may be a point's half, anything else was taken already.
enum Found {
    Number(f64),
    Taken,
}

impl<S: Sink> LeafSeed<'_, S> {
    fn put<E>(self, value: Indexed) -> Result<Found, E> {
        self.sink.put(self.leaf.number, value);
        Ok(Found::Taken)
    }

    fn refuse<T, E: de::Error>(&self, value: impl fmt::Display) -> Result<T, E> {
        let Leaf { name, kind, .. } = self.leaf;
        Err(E::custom(format!(
            "[{value}] is no value for field [{name}] of type [{}]",
            kind.name()
        )))
    }

    fn point<E: de::Error>(self, lat: f64, lon: f64) -> Result<Found, E> {
        if is_point(lat, lon) {
            self.put(Indexed::Point { lat, lon })
        } else {
            self.refuse(format_args!("lat {lat}, lon {lon}"))
        }
    }

    fn integer<E: de::Error>(self, value: i64) -> Result<Found, E> {
        let (least, greatest) = self.leaf.kind.integer_range();
        match self.leaf.kind {
            FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
                if (least..=greatest).contains(&value) {
                    self.put(Indexed::Integer(value))
                } else {
                    self.refuse(value)
                }
            }
            FieldType::Double | FieldType::Float => self.put(Indexed::Float(value as f64)),
            FieldType::Date => {
                let millis = self.leaf.date_unit.to_millis(value);
                self.put(Indexed::Date(millis))
            }
            FieldType::Keyword | FieldType::Text => self.text(&value.to_string()),
            FieldType::GeoPoint => Ok(Found::Number(value as f64)),
            FieldType::Boolean | FieldType::Ip => self.refuse(value),
        }
    }

    fn float<E: de::Error>(self, value: f64) -> Result<Found, E> {
        match self.leaf.kind {
            FieldType::Double | FieldType::Float => self.put(Indexed::Float(value)),
            FieldType::GeoPoint => Ok(Found::Number(value)),
            FieldType::Keyword | FieldType::Text => self.text(&value.to_string()),
            FieldType::Boolean | FieldType::Ip => self.refuse(value),
            // Elasticsearch coerces: the fraction is cut off.
            _ if value.abs() < 9.2e18 => self.integer(value as i64),
            _ => self.refuse(value),
        }
    }

    fn text<E: de::Error>(self, text: &str) -> Result<Found, E> {
        let leaf = self.leaf;
        match leaf.kind {
            FieldType::Keyword | FieldType::Text => {
                let long =
                    text.len() > leaf.ignore_above && text.chars().count() > leaf.ignore_above;
                if long { Ok(Found::Taken) } else { self.put(Indexed::Text(text)) }
            }
            FieldType::Date => match date_millis(text, leaf.date_unit) {
                Some(millis) => self.put(Indexed::Date(millis)),
                None => self.refuse(text),
            },
            FieldType::Ip => match ip(text) {
                Some(address) => self.put(Indexed::Address(address)),
                None => self.refuse(text),
            },
            FieldType::GeoPoint => match point(text) {
                Some((lat, lon)) => self.point(lat, lon),
                None => self.refuse(text),
            },
            FieldType::Boolean => match text {
                "true" => self.put(Indexed::Boolean(true)),
                "false" | "" => self.put(Indexed::Boolean(false)),
                _ => self.refuse(text),
            },
            FieldType::Double | FieldType::Float => match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => self.float(value),
                _ => self.refuse(text),
            },
            FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
                match (text.trim().parse::<i64>(), text.trim().parse::<f64>()) {
                    (Ok(value), _) => self.integer(value),
                    (_, Ok(value)) if value.is_finite() => self.float(value),
                    _ => self.refuse(text),
                }
            }
        }
    }
}

impl<'de, S: Sink> DeserializeSeed<'de> for LeafSeed<'_, S> {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Found, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for LeafSeed<'_, S> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a value for field [{}] of type [{}]", self.leaf.name, self.leaf.kind.name())
    }
    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Taken)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Found, E> {
        match self.leaf.kind {
            FieldType::Boolean => self.put(Indexed::Boolean(value)),
            FieldType::Keyword | FieldType::Text => self.text(if value { "true" } else { "false" }),
            _ => self.refuse(value),
        }
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Found, E> {
        self.integer(value)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Found, E> {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => match self.leaf.kind {
                FieldType::Double | FieldType::Float => self.float(value as f64),
                FieldType::Keyword | FieldType::Text => self.text(&value.to_string()),
                _ => self.refuse(value),
            },
        }
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Found, E> {
        self.float(value)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Found, E> {
        self.text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Found, A::Error> {
        let LeafSeed { leaf, sink } = self;
        // A point's array is [lon, lat] as in GeoJSON; an altitude may follow.
        let mut numbers = [0.0; 2];
        let mut count = 0;
        while let Some(found) = seq.next_element_seed(LeafSeed { leaf, sink: &mut *sink })? {
            if let Found::Number(number) = found {
                if let Some(place) = numbers.get_mut(count) {
                    *place = number;
                }
                count += 1;
            }
        }
        let seed = LeafSeed { leaf, sink };
        match count {
            0 => Ok(Found::Taken),
            2 | 3 => seed.point(numbers[1], numbers[0]),
            _ => seed.refuse(format_args!("an array of {count} numbers")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        if self.leaf.kind != FieldType::GeoPoint {
            return self.refuse("an object");
        }
        let (mut lat, mut lon) = (None, None);
        while let Some(key) = map.next_key::<std::borrow::Cow<str>>()? {
            match key.as_ref() {
                "lat" => lat = Some(map.next_value()?),
                "lon" => lon = Some(map.next_value()?),
                other => return self.refuse(format_args!("an object with \"{other}\"")),
            }
        }
        match (lat, lon) {
            (Some(lat), Some(lon)) => self.point(lat, lon),
            _ => self.refuse("an object without \"lat\" and \"lon\""),
        }
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
        Reader::new(&mapping).read(source.as_bytes(), &mut seen)?;
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
    fn strict_refuses_what_is_not_mapped() {
        let json = json!({"dynamic": "strict", "properties": {"a": {"type": "long"}}});
        let reader = Reader::new(&Mapping::parse(&json).unwrap());
        assert!(reader.read(br#"{"a":1}"#, &mut Seen::default()).is_ok());
        let said = reader.read(br#"{"b":1}"#, &mut Seen::default()).unwrap_err();
        assert!(said.contains("field [b] is not mapped"), "{said}");
    }
}
