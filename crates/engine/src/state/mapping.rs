//! Merging of mappings: fields may be added, and never change what they are.

use query::mapping::requires_routing;
use serde_json::{Map, Value, json};

use super::StateError;

/// Parameters that say how a field is stored: what is on disk cannot follow a change of these.
const FIXED: [&str; 11] = [
    "index", "analyzer", "normalizer", "doc_values", "store", "fielddata", "scaling_factor",
    "format", "null_value", "index_options", "norms",
];

/// The mappings `current` with `added` merged in. Null is no mappings.
///
/// Fails if `added` is no object, if it changes how a field is stored or whether documents need a `_routing`, or if an
/// object would become a field or the reverse; then nothing is to be merged.
pub fn merge(current: &Value, added: &Value) -> Result<Value, StateError> {
    let mut merged = match current {
        Value::Object(object) => object.clone(),
        _ => Map::new(),
    };
    match added {
        Value::Null => {}
        Value::Object(added) => merge_object("", &mut merged, added, current.is_null())?,
        _ => return Err(StateError::Mapping(format!("mappings are an object, not {added}"))),
    }
    let merged = Value::Object(merged);
    let (is, would_be) = (requires_routing(current), requires_routing(&merged));
    if is != would_be && !current.is_null() {
        return Err(conflict("_routing", "required", &is.to_string(), &would_be.to_string()));
    }
    Ok(merged)
}

/// Merges the root (`path` is empty) or a field. `fresh`: nothing was there before.
fn merge_object(
    path: &str,
    current: &mut Map<String, Value>,
    added: &Map<String, Value>,
    fresh: bool,
) -> Result<(), StateError> {
    for (key, value) in added {
        // `fields` are the further ways in which one field is indexed; they merge as properties do.
        let holds_fields = key == "properties" || (key == "fields" && !path.is_empty());
        if !holds_fields {
            if !fresh && key == "enabled" {
                check_fixed(path, key, current, added)?;
            }
            current.insert(key.clone(), value.clone());
            continue;
        }
        let Value::Object(added_fields) = value else {
            let place = if path.is_empty() { "the mappings" } else { path };
            let said = format!("[{key}] of {place} must be an object of fields, not {value}");
            return Err(StateError::Mapping(said));
        };
        let slot = current.entry(key.clone()).or_insert_with(|| json!({}));
        let fields = slot.as_object_mut().expect("merged mappings hold objects of fields");
        for (name, field) in added_fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            merge_field(&path, fields, name, field)?;
        }
    }
    Ok(())
}

fn merge_field(
    path: &str,
    fields: &mut Map<String, Value>,
    name: &str,
    field: &Value,
) -> Result<(), StateError> {
    if name.is_empty() {
        return Err(StateError::Mapping("a field must have a name".to_owned()));
    }
    let Value::Object(added) = field else {
        let said = format!("field [{path}] must be an object with a type, not {field}");
        return Err(StateError::Mapping(said));
    };
    let added_type = type_of(added).ok_or_else(|| {
        StateError::Mapping(format!("field [{path}] has no type; write {{\"type\": \"keyword\"}}"))
    })?;
    match fields.get_mut(name).and_then(Value::as_object_mut) {
        Some(current) => {
            let before = type_of(current).unwrap_or_default();
            if before != added_type {
                return Err(conflict(path, "type", before, added_type));
            }
            if added_type == "object" {
                return merge_object(path, current, added, false);
            }
            // The field turns fielddata off again where it is left out: here its column stays, and so does it.
            let is_left = |key: &str| key == "fielddata" && !added.contains_key(key);
            let mut fixed = FIXED.iter().filter(|key| !is_left(key));
            fixed.try_for_each(|key| check_fixed(path, key, current, added))?;
            // As in the field what is left out has its default again, but for points.
            let stays = |key: &str| {
                added.contains_key(key) || ["type", "fields", "fielddata"].contains(&key)
            };
            current.retain(|key, _| added_type == "geo_point" || stays(key));
            merge_object(path, current, added, true)
        }
        None => {
            let mut fresh = Map::new();
            merge_object(path, &mut fresh, added, true)?;
            fields.insert(name.to_owned(), Value::Object(fresh));
            Ok(())
        }
    }
}

/// The type of a field; one that has `properties` and no type is an object, as one that says `enabled` alone.
fn type_of(field: &Map<String, Value>) -> Option<&str> {
    match field.get("type") {
        Some(Value::String(name)) => Some(name),
        None if field.contains_key("properties") => Some("object"),
        None if field.len() == 1 && field.contains_key("enabled") => Some("object"),
        _ => None,
    }
}

fn conflict(path: &str, parameter: &str, before: &str, after: &str) -> StateError {
    let instead = match parameter {
        "fielddata" => "add a keyword to its [fields], or index anew",
        _ => "use another field, or index anew",
    };
    StateError::Mapping(format!(
        "mapper [{path}] cannot be changed: [{parameter}] is [{before}] and would be [{after}]; {instead}"
    ))
}

/// What is fixed may only be repeated, also by saying or leaving out its default; norms may be given up.
fn check_fixed(
    path: &str,
    key: &str,
    current: &Map<String, Value>,
    added: &Map<String, Value>,
) -> Result<(), StateError> {
    let is_text = type_of(current) == Some("text");
    let default = match key {
        "enabled" | "index" | "doc_values" => "true",
        "norms" if is_text => "true",
        "fielddata" | "store" | "norms" => "false",
        "format" => "strict_date_optional_time||epoch_millis",
        "index_options" if is_text => "positions",
        "index_options" => "docs",
        "null_value" => "null",
        _ => "default",
    };
    let of = |field: &Map<String, Value>| field.get(key).map_or(default.to_owned(), shown);
    let (before, after) = (of(current), of(added));
    // 100 and 100.0 are one number.
    let number = |text: &str| text.parse::<f64>().ok();
    let is_same = before == after || number(&before).is_some_and(|n| Some(n) == number(&after));
    match is_same || key == "norms" && after == "false" {
        true => Ok(()),
        false => Err(conflict(path, key, &before, &after)),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(current: &Value, added: &Value) -> String {
        merge(current, added).unwrap_err().to_string()
    }

    #[test]
    fn whether_documents_need_a_routing_is_said_once() {
        let required = |yes: bool| json!({"_routing": {"required": yes}});
        assert_eq!(merge(&Value::Null, &required(true)).unwrap(), required(true));
        let field = json!({"properties": {"n": {"type": "long"}}});
        let both = merge(&required(true), &field).unwrap();
        assert_eq!(both["_routing"], json!({"required": true}));
        assert!(merge(&both, &required(true)).is_ok() && merge(&field, &required(false)).is_ok());
        for (current, added) in [(&both, required(false)), (&field, required(true))] {
            let said = said(current, &added);
            assert!(said.contains("mapper [_routing] cannot be changed: [required] is"), "{said}");
        }
    }

    #[test]
    fn fields_are_added_at_every_depth() {
        let current = json!({
            "dynamic": true,
            "properties": {
                "name": {"type": "text"},
                "place": {"properties": {"city": {"type": "keyword"}}},
            },
        });
        let added = json!({
            "dynamic": false,
            "properties": {
                "age": {"type": "long"},
                "name": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                "place": {"properties": {"at": {"type": "geo_point"}}},
            },
        });
        let merged = merge(&current, &added).unwrap();
        assert_eq!(
            merged,
            json!({
                "dynamic": false,
                "properties": {
                    "age": {"type": "long"},
                    "name": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                    "place": {"properties": {
                        "at": {"type": "geo_point"},
                        "city": {"type": "keyword"},
                    }},
                },
            })
        );
        assert_eq!(merge(&merged, &added).as_ref(), Ok(&merged), "the same again changes nothing");
        assert_eq!(merge(&Value::Null, &Value::Null), Ok(json!({})));
    }

    #[test]
    fn a_field_never_changes_what_it_is() {
        let current = json!({"properties": {
            "a": {"type": "long"},
            "b": {"properties": {"c": {"type": "text", "analyzer": "english"}}},
            "s": {"type": "scaled_float", "scaling_factor": 100},
            "t": {"type": "text"},
            "d": {"type": "date", "format": "yyyy"},
            "n": {"type": "text", "norms": false},
        }});
        assert_eq!(
            said(&current, &json!({"properties": {"a": {"type": "keyword"}}})),
            "mapper [a] cannot be changed: [type] is [long] and would be [keyword]; \
             use another field, or index anew"
        );
        for (added, path) in [
            (json!({"a": {"properties": {"x": {"type": "long"}}}}), "[a]"),
            (json!({"a": {"type": "long", "index": false}}), "[a]"),
            (json!({"b": {"type": "keyword"}}), "[b]"),
            (json!({"b": {"properties": {"c": {"type": "text", "analyzer": "german"}}}}), "[b.c]"),
            (json!({"s": {"type": "scaled_float", "scaling_factor": 10}}), "[s]"),
            (json!({"b": {"properties": {"c": {"type": "text"}}}}), "[b.c]"),
            (json!({"t": {"type": "text", "fielddata": true}}), "[t]"),
            (json!({"t": {"type": "text", "index_options": "freqs"}}), "[t]"),
            (json!({"a": {"type": "long", "null_value": 1}}), "[a]"),
            (json!({"d": {"type": "date", "format": "epoch_millis"}}), "[d]"),
            (json!({"n": {"type": "text", "norms": true}}), "[n]"),
            (json!({"b": {"enabled": false}}), "[b]"),
        ] {
            let said = said(&current, &json!({"properties": added}));
            assert!(said.starts_with(&format!("mapper {path} cannot be changed")), "{said}");
        }
        // What may change: how a field is read, not how it is stored. A default may be said.
        let looser = json!({"properties": {
            "a": {"type": "long", "ignore_malformed": true, "index": true, "store": false},
            "t": {"type": "text", "fielddata": false, "norms": false},
            "s": {"type": "scaled_float", "scaling_factor": "100.0"},
        }});
        assert!(merge(&current, &looser).is_ok());
        // What is left out has its default again; points keep it, and fields their further ways.
        let ways = json!({"w": {"type": "long"}});
        let short = json!({"type": "keyword", "ignore_above": 5, "copy_to": "b", "fields": ways});
        let point = json!({"type": "geo_point", "ignore_malformed": true});
        let before = json!({"properties": {"k": short, "p": point}});
        let again = json!({"properties": {"k": {"type": "keyword"}, "p": {"type": "geo_point"}}});
        let expected = json!({"k": {"type": "keyword", "fields": ways}, "p": point});
        assert_eq!(merge(&before, &again).unwrap()["properties"], expected);
        let column = json!({"properties": {"t": {"type": "text", "fielddata": true}}});
        let without = json!({"properties": {"t": {"type": "text"}}});
        assert_eq!(merge(&column, &without), Ok(column));
        let whole = json!({"enabled": false});
        assert!(merge(&Value::Null, &whole).is_ok());
        assert!(said(&current, &whole).contains("[enabled] is [true] and would be [false]"));
        let object =
            json!({"properties": {"b": {"type": "object", "enabled": true, "properties": {}}}});
        assert!(merge(&current, &object).is_ok());
    }

    #[test]
    fn refuses_what_is_no_mapping() {
        for (added, part) in [
            (json!([1]), "mappings are an object"),
            (json!({"properties": 1}), "must be an object of fields"),
            (json!({"properties": {"a": "long"}}), "must be an object with a type"),
            (json!({"properties": {"a": {}}}), "has no type"),
            (json!({"properties": {"": {"type": "long"}}}), "must have a name"),
        ] {
            let said = said(&Value::Null, &added);
            assert!(said.contains(part), "{said}");
        }
    }
}
