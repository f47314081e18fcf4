//! Mappings: which fields of a document are indexed, and how, read from Elasticsearch's mapping JSON.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Mapping`] |
//! | `field.rs` | [`Field`], [`FieldType`]: one mapped field and its parameters |
//! | `document.rs` | reads a document's mapped fields |
//!
//! Fields that the mapping does not name are kept in `_source` and not indexed; with `dynamic: strict` such
//! documents are refused.

pub mod document;
mod field;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub use field::{Field, FieldType};

use crate::MappingError;

type Result<T> = std::result::Result<T, MappingError>;

/// How documents are read: fields and objects by their dotted paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    fields: BTreeMap<String, Field>,
    objects: BTreeSet<String>,
    is_strict: bool,
}

impl Mapping {
    /// Reads `{"properties": {...}}`. Errors: [`MappingError`] with the field's path; unknown types and
    /// parameters come with the nearest known ones.
    pub fn parse(json: &Value) -> Result<Self> {
        let mut mapping = Mapping::default();
        let object = match json {
            Value::Null => return Ok(mapping),
            Value::Object(object) => object,
            _ => return Err(refuse("", "it must be an object like {\"properties\": {...}}")),
        };
        known_keys("", object, "properties dynamic")?;
        mapping.is_strict = match object.get("dynamic") {
            None | Some(Value::Bool(_)) => false,
            Some(Value::String(given)) if given == "true" || given == "false" => false,
            Some(Value::String(given)) if given == "strict" => true,
            Some(given) => {
                let why = format!("{given} is not one of true, false, \"strict\"");
                return Err(refuse("dynamic", why));
            }
        };
        mapping.add("", object.get("properties"))?;
        for (number, field) in mapping.fields.values_mut().enumerate() {
            field.number = number;
        }
        Ok(mapping)
    }

    fn add(&mut self, above: &str, properties: Option<&Value>) -> Result<()> {
        let Some(json) = properties else { return Ok(()) };
        let object =
            json.as_object().ok_or_else(|| refuse(above, "\"properties\" is an object"))?;
        for (name, json) in object {
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            if name.is_empty() || name.contains('.') || name.starts_with('_') {
                let why =
                    "a field name is not empty, has no dot and does not begin with an underscore";
                return Err(refuse(&path, why));
            }
            let object = json.as_object().ok_or_else(|| refuse(&path, "a field is an object"))?;
            let kind = object.get("type").and_then(Value::as_str);
            if object.contains_key("properties") || kind == Some("object") {
                if let Some(kind) = kind.filter(|kind| *kind != "object") {
                    return Err(refuse(&path, format!("type \"{kind}\" cannot have properties")));
                }
                known_keys(&path, object, "properties dynamic type")?;
                self.add(&path, object.get("properties"))?;
                self.objects.insert(path);
            } else {
                known_keys(&path, object, field::PARAMETERS)?;
                let field = Field::parse(object).map_err(|reason| refuse(&path, reason))?;
                self.fields.insert(path, field);
            }
        }
        Ok(())
    }

    /// Every field by its dotted path.
    pub fn fields(&self) -> &BTreeMap<String, Field> {
        &self.fields
    }

    /// The field of a dotted path; none if nothing, or an object, has this path.
    pub fn field(&self, path: &str) -> Option<&Field> {
        self.fields.get(path)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
