//! Objects in mappings as the field shows them: `"a.b"` is `b` of the object `a`, and what has fields needs no type.

use std::mem;

use serde_json::{Map, Value, json};

use super::{DEPTH_MAX, Result, refuse};

/// Writes fields whose names have dots as fields of objects, and objects without `"type": "object"` where they have
/// fields. What cannot be a name stays as it is, and is refused where the mapping is read. Errors:
/// [`crate::MappingError`] where a field stands there twice, or objects are nested too deep.
pub fn expand_dots(mappings: &mut Value) -> Result<()> {
    expand(mappings, 0)
}

fn expand(of: &mut Value, depth: usize) -> Result<()> {
    let Some(properties) = of.get_mut("properties").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    for (name, mut field) in mem::take(properties) {
        if depth > DEPTH_MAX {
            let why = format!("Limit of mapping depth [{DEPTH_MAX}] has been exceeded");
            return Err(refuse(&name, why));
        }
        let parts = name.split_once('.').filter(|_| name.split('.').all(|part| !part.is_empty()));
        if let Some((_, within)) = parts {
            field = json!({ "properties": { within: field } });
        }
        expand(&mut field, depth + 1)?;
        if let Value::Object(object) = &mut field {
            remove_type(object);
        }
        add(properties, parts.map_or(name.as_str(), |(object, _)| object), field)?;
    }
    Ok(())
}

fn is_object(field: &Map<String, Value>) -> bool {
    field.get("type").is_none_or(|kind| kind.as_str() == Some("object"))
}

fn remove_type(object: &mut Map<String, Value>) {
    let fields = object.get("properties").and_then(Value::as_object);
    if is_object(object) && fields.is_some_and(|fields| !fields.is_empty()) {
        object.remove("type");
    }
}

/// Adds a field to others; objects of one name become one.
fn add(properties: &mut Map<String, Value>, name: &str, field: Value) -> Result<()> {
    let Some(there) = properties.get_mut(name) else {
        properties.insert(name.to_owned(), field);
        return Ok(());
    };
    let (Value::Object(there), Value::Object(mut field)) = (there, field) else {
        return Err(refuse(name, "a field is an object"));
    };
    if !is_object(there) || !is_object(&field) {
        return Err(refuse(name, "it stands there twice, once with dots; leave one out"));
    }
    let fields = there.entry("properties").or_insert_with(|| json!({}));
    match (fields, field.remove("properties")) {
        (Value::Object(fields), Some(Value::Object(more))) => {
            more.into_iter().try_for_each(|(name, field)| add(fields, &name, field))?;
        }
        (Value::Object(_), None) => {}
        _ => return Err(refuse(name, "\"properties\" is an object")),
    }
    there.extend(field);
    remove_type(there);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(properties: Value) -> std::result::Result<Value, String> {
        let mut mappings = json!({ "properties": properties });
        expand_dots(&mut mappings).map_err(|error| error.to_string())?;
        Ok(mappings["properties"].take())
    }

    #[test]
    fn names_with_dots_are_fields_of_objects() {
        let (long, date) = (json!({"type": "long"}), json!({"type": "date"}));
        let of = |fields: Value| json!({ "properties": fields });
        for (properties, expected) in [
            (json!({"a": long, "b": of(json!({"c": date}))}), None),
            (json!({"a.b": long}), Some(json!({"a": of(json!({"b": long}))}))),
            (
                json!({"a.b.c": long, "a": of(json!({"d": date})), "a.e": {"dynamic": false, "type": "object"}}),
                Some(json!({"a": of(json!({
                    "b": of(json!({"c": long})), "d": date, "e": {"dynamic": false, "type": "object"},
                }))})),
            ),
            (
                json!({"a": {"type": "object"}, "a.b": of(json!({"c.d": long}))}),
                Some(json!({"a": of(json!({"b": of(json!({"c": of(json!({"d": long}))}))}))})),
            ),
            (
                json!({"a": {"type": "object", "properties": {"b": long}}}),
                Some(json!({"a": of(json!({"b": long}))})),
            ),
            (json!({"a": {"type": "object", "properties": {}}, "b": {"type": "object"}}), None),
            // These are no names, and refused as such.
            (json!({".a": long, "a..b": long, "a.": long, "": long}), None),
            (json!({"a": {"type": "text", "fields": {"b.c": {"type": "keyword"}}}}), None),
        ] {
            let expected = expected.unwrap_or_else(|| properties.clone());
            assert_eq!(expanded(properties), Ok(expected));
        }
    }

    #[test]
    fn a_field_stands_there_once_and_not_too_deep() {
        let long = json!({"type": "long"});
        for (properties, why) in [
            (json!({"a": long, "a.b": long}), "twice"),
            (json!({"a.b": long, "a": {"properties": {"b": {"type": "keyword"}}}}), "twice"),
            (json!({(vec!["a"; 500].join(".")): long}), "mapping depth"),
        ] {
            let said = expanded(properties).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
