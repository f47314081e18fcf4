//! Mappings: which fields of a document are indexed, and how. Elasticsearch's mapping JSON in and out.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Mapping`]: parsed, rendered |
//! | `field.rs` | [`Field`], [`FieldType`]: one mapped field and its parameters |
//! | `document.rs` | reads a document's mapped fields and nothing else |
//! | `value.rs` | dates, addresses and points from their texts |
//!
//! Fields that the mapping does not name are kept in `_source` and not indexed; with `dynamic: strict` such
//! documents are refused.

pub mod document;
mod field;
pub mod value;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use field::{Field, FieldType};

use crate::MappingError;

type Result<T> = std::result::Result<T, MappingError>;

/// How documents are read: fields by name, nested objects by nesting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    properties: Properties,
    dynamic: Option<Value>,
}

type Properties = BTreeMap<String, Property>;

#[derive(Clone, Debug, PartialEq)]
enum Property {
    Field(Field),
    Object(Properties),
}

const TOP_KEYS: &str = "properties dynamic";
const OBJECT_KEYS: &str = "properties dynamic type";

impl Mapping {
    /// Reads `{"properties": {...}}`. Errors: [`MappingError`] with the field's path; unknown types and
    /// parameters come with the nearest known ones.
    pub fn parse(json: &Value) -> Result<Self> {
        let object = match json {
            Value::Null => return Ok(Mapping::default()),
            Value::Object(object) => object,
            _ => return Err(refuse("", "it must be an object like {\"properties\": {...}}")),
        };
        known_keys("", object, TOP_KEYS)?;
        let dynamic = object.get("dynamic").cloned();
        let accepted = [json!(true), json!(false), json!("true"), json!("false"), json!("strict")];
        if let Some(given) = dynamic.as_ref().filter(|given| !accepted.contains(given)) {
            return Err(refuse(
                "dynamic",
                format!("{given} is not one of true, false, \"strict\""),
            ));
        }
        Ok(Mapping { properties: properties("", object.get("properties"))?, dynamic })
    }

    /// Renders what [`Mapping::parse`] reads.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        if let Some(dynamic) = &self.dynamic {
            object.insert("dynamic".to_owned(), dynamic.clone());
        }
        object.insert("properties".to_owned(), render(&self.properties));
        Value::Object(object)
    }

    /// Every field with its dotted path, in the order of the paths' parts.
    pub fn fields(&self) -> Vec<(String, &Field)> {
        let mut fields = Vec::new();
        flatten("", &self.properties, &mut fields);
        fields
    }

    /// The field of a dotted path; none if nothing, or an object, has this path.
    pub fn field(&self, path: &str) -> Option<&Field> {
        let mut properties = &self.properties;
        let mut rest = path;
        loop {
            let (name, below) = match rest.split_once('.') {
                Some((name, below)) => (name, Some(below)),
                None => (rest, None),
            };
            match (properties.get(name)?, below) {
                (Property::Field(field), None) => return Some(field),
                (Property::Object(inner), Some(below)) => (properties, rest) = (inner, below),
                _ => return None,
            }
        }
    }

    /// Whether documents with fields that are not mapped are refused.
    pub fn is_strict(&self) -> bool {
        self.dynamic == Some(json!("strict"))
    }
}

fn refuse(field: &str, reason: impl Into<String>) -> MappingError {
    MappingError { field: field.to_owned(), reason: reason.into() }
}

fn known_keys(path: &str, object: &Map<String, Value>, known: &str) -> Result<()> {
    let is_known = |key: &&String| known.split(' ').any(|known| known == key.as_str());
    let Some(key) = object.keys().find(|key| !is_known(key)) else { return Ok(()) };
    let near = record::names::did_you_mean(key, known.split(' '));
    let all = known.replace(' ', ", ");
    Err(refuse(path, format!("unknown parameter \"{key}\"{near} (known here: {all})")))
}

fn properties(path: &str, json: Option<&Value>) -> Result<Properties> {
    let Some(json) = json else { return Ok(Properties::new()) };
    let object = json.as_object().ok_or_else(|| refuse(path, "\"properties\" is an object"))?;
    let mut properties = Properties::new();
    for (name, json) in object {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if name.is_empty() || name.contains('.') || name.starts_with('_') {
            let why = "a field name is not empty, has no dot and does not begin with an underscore";
            return Err(refuse(&path, why));
        }
        properties.insert(name.clone(), property(&path, json)?);
    }
    Ok(properties)
}

fn property(path: &str, json: &Value) -> Result<Property> {
    let object = json.as_object().ok_or_else(|| refuse(path, "a field is an object"))?;
    let kind = object.get("type").and_then(Value::as_str);
    if object.contains_key("properties") || kind == Some("object") {
        if let Some(kind) = kind.filter(|kind| *kind != "object") {
            return Err(refuse(path, format!("type \"{kind}\" cannot have properties")));
        }
        known_keys(path, object, OBJECT_KEYS)?;
        return Ok(Property::Object(properties(path, object.get("properties"))?));
    }
    known_keys(path, object, field::PARAMETERS)?;
    Field::parse(object).map(Property::Field).map_err(|reason| refuse(path, reason))
}

fn render(properties: &Properties) -> Value {
    let rendered = properties.iter().map(|(name, property)| {
        let json = match property {
            Property::Field(field) => field.to_json(),
            Property::Object(inner) => json!({ "properties": render(inner) }),
        };
        (name.clone(), json)
    });
    Value::Object(rendered.collect())
}

fn flatten<'a>(path: &str, properties: &'a Properties, fields: &mut Vec<(String, &'a Field)>) {
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match property {
            Property::Field(field) => fields.push((path, field)),
            Property::Object(inner) => flatten(&path, inner, fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_what_it_read() {
        let json = json!({
            "dynamic": "strict",
            "properties": {
                "location": {"type": "geo_point"},
                "@timestamp": {"type": "date", "format": "strict_date_optional_time||epoch_second"},
                "nginx": {"properties": {"access": {"properties": {
                    "remote_ip": {"type": "ip"},
                    "status": {"type": "integer"},
                    "agent": {"type": "keyword", "ignore_above": 1024}
                }}}}
            }
        });
        let mapping = Mapping::parse(&json).unwrap();
        assert_eq!(mapping.to_json(), json);
        assert!(mapping.is_strict());
        let paths: Vec<String> = mapping.fields().into_iter().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "@timestamp",
                "location",
                "nginx.access.agent",
                "nginx.access.remote_ip",
                "nginx.access.status"
            ]
        );
    }

    #[test]
    fn refuses_with_the_nearest_names() {
        let said = |json: Value| Mapping::parse(&json).unwrap_err().to_string();
        assert_eq!(
            said(json!({"properties": {"a": {"properties": {"b": {"type": "keywrd"}}}}})),
            "mapping of \"a.b\": unknown type \"keywrd\"; did you mean \"keyword\"? (known: boolean, byte, \
             date, double, float, geo_point, integer, ip, keyword, long, short, text)"
        );
        assert!(
            said(json!({"properties": {"a": {"type": "date", "fromat": "x"}}}))
                .contains("unknown parameter \"fromat\"; did you mean \"format\"?")
        );
        assert!(said(json!({"propertys": {}})).contains("did you mean \"properties\""));
        assert!(said(json!({"properties": {"_id": {"type": "long"}}})).contains("underscore"));
        assert!(said(json!({"dynamic": "maybe"})).contains("strict"));
    }
}
