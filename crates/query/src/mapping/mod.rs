//! Mappings: which fields of a document are indexed, and how, read from Elasticsearch's mapping JSON.

pub mod document;
mod dots;
mod dynamic;
mod field;
mod forms;
mod new_fields;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use dots::expand_dots;
pub use field::{Analyzer, Field, FieldType};
pub use new_fields::NewFields;

use dynamic::{Dynamic, Template};

use crate::MappingError;
use crate::json::join;
use crate::refused::{self, said};

type Result<T> = std::result::Result<T, MappingError>;

/// How documents are read: fields and objects by their dotted paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    fields: BTreeMap<String, Field>,
    objects: BTreeMap<String, Dynamic>,
    /// The further ways in which fields are kept (`fields`), by the paths of those.
    multi: BTreeMap<String, Vec<String>>,
    templates: Vec<Template>,
    dynamic: Dynamic,
    /// Whether a new field is no date even if its first text is one.
    ignores_dates: bool,
    /// Whether each document has one date in `@timestamp`.
    wants_timestamp: bool,
}

impl Mapping {
    /// Reads `{"properties": {...}}`. Errors: [`MappingError`] with the field's path; unknown types and
    /// parameters come with the nearest known ones.
    pub fn parse(json: &Value) -> Result<Self> {
        Self::read_json(json, true)
    }

    /// Reads a mapping that was accepted before, maybe by a build that refused less.
    pub fn stored(json: &Value) -> Result<Self> {
        Self::read_json(json, false)
    }

    fn read_json(json: &Value, is_new: bool) -> Result<Self> {
        let mut mapping = Mapping::default();
        let object = match json {
            Value::Null => return Ok(mapping),
            Value::Object(object) => object,
            _ => return Err(refuse("", "it must be an object like {\"properties\": {...}}")),
        };
        let known = "properties dynamic enabled dynamic_templates date_detection _source _routing _meta \
                     _data_stream_timestamp";
        field::known_keys(object, known).map_err(|why| {
            // Before Elasticsearch 7 a mapping stood under the name of a type.
            let mut of_types = object.iter().filter(|(_, of)| of["properties"].is_object());
            let of_type = of_types.find(|(name, _)| !known.split(' ').any(|known| known == *name));
            let why = of_type.map_or(why, |(name, _)| {
                format!(
                    "[{name}] is a type of mappings, as there were before Elasticsearch 7; move what stands below it \
                     to its place"
                )
            });
            refuse("", why)
        })?;
        if object.get("_source").is_some_and(|source| !keeps_source(source)) {
            return Err(refuse("_source", "documents are always kept whole; leave it out"));
        }
        if is_new {
            field::flag_of(object.get(ROUTING), "required").map_err(|why| refuse(ROUTING, why))?;
        }
        mapping.dynamic = Dynamic::of(object, Dynamic::True).map_err(|why| refuse("", why))?;
        let detects = object.get("date_detection");
        let detects = detects.map_or(Ok(true), |given| field::flag("date_detection", given));
        mapping.ignores_dates = !detects.map_err(|why| refuse("date_detection", why))?;
        mapping.wants_timestamp = field::flag_of(object.get(DATA_STREAM_TIMESTAMP), "enabled")
            .map_err(|why| refuse(DATA_STREAM_TIMESTAMP, why))?;
        mapping.templates = Template::all(object.get("dynamic_templates"))
            .map_err(|why| refuse("dynamic_templates", why))?;
        if is_new {
            let map = |field: &Value| {
                let mapped = Mapping::default().add("", Some(&json!({ "name": field })), true);
                mapped.map_err(|error| error.reason)
            };
            let checked = mapping.templates.iter().try_for_each(|one| one.check(map));
            checked.map_err(|why| refuse("dynamic_templates", why))?;
        }
        mapping.add("", object.get("properties"), is_new)?;
        if is_new {
            mapping.check_values()?;
        }
        let numbered = mapping.fields.values_mut().enumerate();
        numbered.for_each(|(number, field)| field.number = number);
        Ok(mapping)
    }

    /// As in the field a value is copied once: not on from where it was copied to.
    fn check_values(&self) -> Result<()> {
        for (path, field) in &self.fields {
            field.check_null().map_err(|why| refuse(path, why))?;
            for to in &field.copy_to {
                if self.fields.get(to).is_none_or(|to| to.is_multi) {
                    let why =
                        format!("\"copy_to\": [{to}] is no field of this mapping; map it, too");
                    return Err(refuse(path, why));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, above: &str, properties: Option<&Value>, is_new: bool) -> Result<()> {
        let Some(json) = properties else { return Ok(()) };
        let object =
            json.as_object().ok_or_else(|| refuse(above, "\"properties\" is an object"))?;
        for (name, json) in object {
            let path = join(above, name);
            check_name(&path, name, is_new)?;
            let object = json.as_object().ok_or_else(|| refuse(&path, "a field is an object"))?;
            let kind = object.get("type").and_then(Value::as_str);
            // As in the field what says no more than this is an object.
            let is_enabled_alone = object.len() == 1 && object.contains_key("enabled");
            if object.contains_key("properties") || kind == Some("object") || is_enabled_alone {
                if let Some(kind) = kind.filter(|kind| *kind != "object") {
                    let what = format!("type \"{kind}\"");
                    let unknown = format!("{what} cannot have properties");
                    return Err(refuse(&path, said(refused::TYPES, &what, kind, unknown)));
                }
                field::known_keys(object, "properties dynamic enabled type")
                    .map_err(|why| refuse(&path, why))?;
                // As in the field the document counts, and the fields of the deepest object do not.
                if is_new && 1 + path.split('.').count() > DEPTH_MAX {
                    let why = format!("Limit of mapping depth [{DEPTH_MAX}] has been exceeded");
                    return Err(refuse(&path, why));
                }
                let dynamic = Dynamic::of(object, self.dynamic_within(above))
                    .map_err(|why| refuse(&path, why))?;
                self.objects.insert(path.clone(), dynamic);
                self.add(&path, object.get("properties"), is_new)?;
            } else {
                let field = Field::parse(object, is_new).map_err(|why| refuse(&path, why))?;
                self.fields.insert(path.clone(), field);
                if let Some(fields) = object.get("fields") {
                    self.add_multi(path, fields, is_new)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the `fields` of a field.
    fn add_multi(&mut self, of: String, fields: &Value, is_new: bool) -> Result<()> {
        let fields =
            fields.as_object().ok_or_else(|| refuse(&of, "\"fields\" is an object of fields"))?;
        for (name, json) in fields {
            let path = format!("{of}.{name}");
            check_name(&path, name, is_new)?;
            let object = json.as_object().ok_or_else(|| refuse(&path, "a field is an object"))?;
            if let Some(key) =
                ["fields", "copy_to"].into_iter().find(|key| object.contains_key(*key))
            {
                return Err(refuse(&path, format!("one of \"fields\" has no \"{key}\"")));
            }
            let field = Field::parse(object, is_new).map_err(|why| refuse(&path, why))?;
            self.fields.insert(path.clone(), Field { is_multi: true, ..field });
            self.multi.entry(of.clone()).or_default().push(path);
        }
        Ok(())
    }

    /// The further ways in which the values of a field are kept, with their paths: its `fields`, and the fields of its
    /// `copy_to` with theirs.
    fn multi_fields<'a>(
        &'a self,
        path: &'a str,
        field: &'a Field,
    ) -> impl Iterator<Item = (&'a str, &'a Field)> {
        let (multi, fields) = (&self.multi, &self.fields);
        let fields_of = move |path: &str| multi.get(path).into_iter().flatten();
        let copied = field.copy_to.iter();
        let copied = copied.flat_map(move |to| std::iter::once(to).chain(fields_of(to)));
        let paths = fields_of(path).chain(copied);
        paths.filter_map(move |path| Some((path.as_str(), fields.get(path)?)))
    }

    /// `dynamic` of the nearest object around a path, or at it.
    fn dynamic_within(&self, path: &str) -> Dynamic {
        let mut path = path;
        loop {
            if let Some(dynamic) = self.objects.get(path) {
                return *dynamic;
            }
            match path.rfind('.') {
                Some(end) => path = &path[..end],
                None => return self.dynamic,
            }
        }
    }

    /// Whether documents may bring fields.
    pub fn may_grow(&self) -> bool {
        self.dynamic == Dynamic::True || self.objects.values().any(|of| *of == Dynamic::True)
    }

    /// Fields, those of `fields` and objects, as `index.mapping.total_fields.limit` counts them.
    pub fn total_fields(&self) -> usize {
        self.fields.len() + self.objects.len()
    }

    /// How many objects stand within each other, the document among them.
    pub fn depth(&self) -> usize {
        1 + self.objects.keys().map(|path| path.split('.').count()).max().unwrap_or(0)
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

/// Whether it asks for nothing but what is done anyway.
fn keeps_source(source: &Value) -> bool {
    source.as_object().is_some_and(|source| {
        source.iter().all(|(name, value)| match name.as_str() {
            "enabled" => field::boolean(value) == Some(true),
            // As Elasticsearch 8 calls it.
            "mode" => *value == "stored",
            "includes" | "excludes" => value.as_array().is_some_and(Vec::is_empty),
            _ => false,
        })
    })
}

/// Whether a mapping wants that each document names its `_routing`.
pub fn requires_routing(mappings: &Value) -> bool {
    field::boolean(&mappings[ROUTING]["required"]) == Some(true)
}

fn check_name(path: &str, name: &str, is_new: bool) -> Result<()> {
    let why = if name.is_empty() || name.contains('.') {
        "a field name is not empty and has no dot; write objects with \"properties\"".to_owned()
    } else if path.starts_with('-') {
        // The index library panics at such a field, in every copy.
        "the name of a field of the document does not begin with \"-\"".to_owned()
    } else if is_new && name.contains(char::is_control) {
        "a field name has no control characters".to_owned()
    } else if is_new && path.len() > PATH_BYTES_MAX {
        let shown = format!("{}...", &path[..path.floor_char_boundary(40)]);
        let why = format!("the path of a field has at most {PATH_BYTES_MAX} bytes");
        return Err(refuse(&shown, why));
    } else if is_metadata(path) {
        format!("[{path}] is a metadata field and cannot be added inside a document")
    } else {
        return Ok(());
    };
    Err(refuse(path, why))
}

/// `index.mapping.depth.limit` of the field. A deeper mapping is JSON that nobody could read again.
pub const DEPTH_MAX: usize = 20;

/// Each field below an object is kept with the object's whole path.
const PATH_BYTES_MAX: usize = 1024;

/// Whether a path is of what every document has beside its fields.
pub fn is_metadata(path: &str) -> bool {
    METADATA.split(' ').any(|name| name == path)
}

/// The metadata field that holds the name of a document's index.
pub const INDEX: &str = "_index";

/// The metadata field that says by what a document's shard is found, where that is not its id.
const ROUTING: &str = "_routing";

/// What a mapping asks by that each document has one date in `@timestamp`, as those of data streams do. Indices may ask
/// for it, too.
const DATA_STREAM_TIMESTAMP: &str = "_data_stream_timestamp";

/// What every document has beside its fields.
const METADATA: &str = "_doc_count _field_names _id _ignored _index _nested_path _primary_term _routing _seq_no _size \
                        _source _tier _type _version _wordless";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(json: Value) -> String {
        Mapping::parse(&json).unwrap_err().to_string()
    }

    #[test]
    fn what_is_known_of_the_field_is_refused_as_such_and_not_as_a_mistake() {
        let a = |field: Value| json!({"properties": {"a": field}});
        let nested = json!({"type": "nested", "properties": {"b": {"type": "date"}}});
        let typed = json!({"dynamic": "strict", "properties": {"a": {"type": "date"}}});
        let dimension = json!({"type": "keyword", "time_series_dimension": true});
        let text = json!({"type": "text", "properties": {}});
        for (mapping, why) in [
            (a(nested), "\"nested\" is not supported by this engine; objects are flattened"),
            (a(text), "type \"text\" cannot have properties"),
            (json!({ "_doc": typed }), "[_doc] is a type of mappings"),
            (json!({"_doc": {"a": 1}}), "unknown parameter \"_doc\""),
            (a(dimension), "leave it out, and index.mode"),
            (a(json!({"type": "date", "fromat": "x"})), "\"fromat\"; did you mean \"format\"?"),
            (json!({"propertys": {}}), "did you mean \"properties\""),
            (json!({"properties": {"_id": {"type": "long"}}}), "metadata field"),
            (json!({"properties": {"_wordless": {"type": "long"}}}), "metadata field"),
            (json!({"dynamic": "maybe"}), "strict"),
            (json!({"_source": {"enabled": false}}), "always kept whole"),
            (json!({"_source": {"mode": "synthetic"}}), "always kept whole"),
            (json!({"_source": {"excludes": ["a"]}}), "always kept whole"),
            (json!({"_routing": {"required": 1}}), "true or false"),
            (json!({"_routing": {"path": "a"}}), "unknown parameter \"path\""),
            (json!({"_routing": true}), "it is an object"),
            (json!({"date_detection": 1}), "is true or false, not 1"),
            (json!({"runtime": {}}), "is not supported"),
        ] {
            let said = said(mapping.clone());
            assert!(said.contains(why), "{mapping}: {said}");
        }
    }

    #[test]
    fn refuses_with_the_nearest_names() {
        assert_eq!(
            said(json!({"properties": {"a": {"properties": {"b": {"type": "keywrd"}}}}})),
            "mapping of \"a.b\": unknown type \"keywrd\"; did you mean \"keyword\"? (known: boolean, byte, \
             date, double, double_range, float, geo_point, half_float, integer, ip, keyword, long, \
             match_only_text, scaled_float, short, text)"
        );
        // Each field has the whole path: a name is not kept as often as there are fields below it.
        let long = said(json!({"properties": {"a".repeat(1020): {"properties": {"bcde": {}}}}}));
        assert!(long.contains("at most 1024 bytes") && long.len() < 200, "{long}");
        for whole in [json!({"mode": "stored"}), json!({"includes": [], "excludes": []})] {
            assert!(Mapping::parse(&json!({"_source": whole})).is_ok());
        }
        for (mapping, required) in [
            (json!(null), false),
            (json!({"_routing": {}}), false),
            (json!({"_routing": {"required": false}}), false),
            (json!({"_routing": {"required": true}}), true),
            (json!({"_routing": {"required": "true"}}), true),
        ] {
            assert_eq!(requires_routing(&mapping), required, "{mapping}");
            assert!(Mapping::parse(&mapping).is_ok(), "{mapping}");
        }
        let says = |yes: Value, no: Value, most: Value| {
            let fields = json!({
                "k": {"type": "keyword", "ignore_above": most, "norms": no},
                "t": {"type": "text", "norms": no, "store": no},
                "o": {"enabled": no},
            });
            let source = json!({ "enabled": yes });
            Mapping::parse(&json!({
                "_source": source, "date_detection": no, "dynamic": no, "properties": fields,
            }))
        };
        let as_texts = says(json!("true"), json!("false"), json!("7"));
        assert_eq!(as_texts, says(json!(true), json!(false), json!(7)));
        assert!(as_texts.unwrap().ignores_dates);
        assert!(Mapping::parse(&json!({"_source": {"enabled": true}, "_meta": {"a": 1}})).is_ok());
    }

    #[test]
    fn objects_count_for_the_depth_and_ways_to_keep_a_field_do_not() {
        let within = |objects: usize, json: Value| {
            (0..objects).fold(json, |inner, _| json!({"properties": {"y": inner}}))
        };
        let text = json!({"type": "text", "fields": {"keyword": {"type": "keyword"}}});
        assert_eq!(Mapping::parse(&within(20, text.clone())).unwrap().depth(), 20);
        for deeper in [within(21, text), within(20, json!({"properties": {}}))] {
            let said = Mapping::parse(&deeper).unwrap_err().to_string();
            assert!(said.contains("Limit of mapping depth [20]"), "{said}");
        }
    }

    #[test]
    fn refuses_what_it_would_not_do() {
        let fields = [
            (json!({"type": "text", "analyzer": "german"}), "there are standard, simple"),
            (json!({"type": "text", "search_quote_analyzer": "simple"}), "leave it out"),
            (json!({"type": "keyword", "norms": true}), "\"norms\": true is not offered"),
            (json!({"type": "scaled_float"}), "scaling_factor"),
            (json!({"type": "text", "index_options": "docs"}), "index_options"),
            (json!({"type": "text", "coerce": true}), "unknown parameter \"coerce\""),
            (json!({"type": "text", "copy_to": "all"}), "[all] is no field of this mapping"),
            (json!({"type": "keyword", "boost": 2}), "boost in the query"),
            (json!({"type": "date", "format": 5}), "\"format\" is a text, not 5"),
            (json!({"type": "keyword", "analyzer": "standard"}), "unknown parameter \"analyzer\""),
            (json!({"type": "keyword", "null_value": ["x"]}), "\"null_value\" is a value"),
            (json!({"type": "long", "null_value": "one"}), "null_value"),
            (json!({"type": "long", "null_value": ""}), "null_value"),
            (json!({"type": "long", "ignore_above": 3}), "unknown parameter \"ignore_above\""),
            (json!({"type": "long", "index": "maybe"}), "true or false"),
            (json!({"type": "long", "store": true}), "\"store\": true is not offered"),
            (json!({"type": "date", "format": "EEE"}), "date format [EEE]"),
            (json!({"type": "date", "format": "yyyy[-MM]"}), "optional parts"),
            (json!({"type": "text", "fields": {"x": {"type": "keywrd"}}}), "unknown type"),
            (json!({"type": "text", "fields": {"x": {"type": "text", "fields": {}}}}), "has no"),
            (json!({"type": "text", "fields": 7}), "an object of fields"),
        ];
        for (field, why) in fields {
            let mapping = json!({"properties": {"a": field}});
            let said = Mapping::parse(&mapping).unwrap_err().to_string();
            assert!(said.starts_with("mapping of \"a") && said.contains(why), "{mapping}: {said}");
        }
        // An index that an earlier build made is opened all the same.
        let older = json!({"properties": {"a": {
            "type": "text", "analyzer": "german", "copy_to": "b", "norms": false, "coerce": true,
            "boost": 2, "format": "EEE", "store": true,
        }}});
        assert_eq!(Mapping::stored(&older).unwrap().fields().len(), 1);
    }
}
