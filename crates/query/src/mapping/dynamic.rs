//! What becomes of a field that the mapping does not name: by the `dynamic` of the object that it stands in it is
//! mapped by its first value, kept in `_source` alone, or refused with its document.

use record::names::matches;
use serde_json::{Map, Value as Json};

use super::field::{boolean, flag};
use crate::json::Value;

/// `dynamic` of an object; one that does not say has that of the object around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dynamic {
    /// It is mapped.
    #[default]
    True,
    /// It is kept in `_source` alone.
    False,
    /// Its document is refused.
    Strict,
    /// `enabled: false`: nothing below the object is looked at, nor whether it is one.
    Disabled,
}

impl Dynamic {
    /// Of an object that is mapped so. The error says what is wrong with it.
    pub(super) fn of(object: &Map<String, Json>, around: Dynamic) -> Result<Dynamic, String> {
        if around == Dynamic::Disabled {
            return Ok(around);
        }
        if !object.get("enabled").map_or(Ok(true), |given| flag("enabled", given))? {
            return Ok(Dynamic::Disabled);
        }
        let Some(given) = object.get("dynamic") else { return Ok(around) };
        match boolean(given) {
            Some(true) => Ok(Dynamic::True),
            Some(false) => Ok(Dynamic::False),
            None if given == "strict" => Ok(Dynamic::Strict),
            None => Err(format!("\"dynamic\" is true, false or \"strict\", not {given}")),
        }
    }
}

/// One of `dynamic_templates`: how fields that documents bring are mapped, where it fits them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    name: String,
    /// Each of [`CONDITIONS`] that it has, and its patterns.
    conditions: Vec<(&'static str, Vec<String>)>,
    mapping: Json,
}

/// The condition on the kind of the first value.
const OF_KIND: &str = "match_mapping_type";
/// That one, and those on names and on whole paths.
const CONDITIONS: [&str; 5] = ["match", "unmatch", "path_match", "path_unmatch", OF_KIND];

/// What first values are, each with the type of its field where a template says none.
const KINDS: [(&str, &str); 6] = [
    ("object", "object"),
    ("boolean", "boolean"),
    ("date", "date"),
    ("double", "float"),
    ("long", "long"),
    ("string", "text"),
];

impl Template {
    /// Reads all. The error says what is wrong with one.
    pub(super) fn all(json: Option<&Json>) -> Result<Vec<Template>, String> {
        let Some(json) = json else { return Ok(Vec::new()) };
        let templates = json.as_array().ok_or("\"dynamic_templates\" is an array of objects")?;
        let one = |json: &Json| {
            let named = json.as_object().filter(|object| object.len() == 1);
            let (name, body) = named
                .and_then(|object| object.iter().next())
                .ok_or("a template is an object with one name")?;
            Template::read(name, body).map_err(|why| format!("dynamic template [{name}]: {why}"))
        };
        templates.iter().map(one).collect()
    }

    fn read(name: &str, body: &Json) -> Result<Template, String> {
        let body = body.as_object().ok_or("it is an object")?;
        let name = name.to_owned();
        let mut template = Template { name, conditions: Vec::new(), mapping: Json::Null };
        for (key, value) in body {
            if key == "mapping" && value.is_object() {
                template.mapping = value.clone();
                continue;
            }
            if key == "match_pattern" && value == "simple" {
                continue;
            }
            let condition = CONDITIONS.into_iter().find(|name| name == key);
            let condition = condition
                .ok_or_else(|| format!("[{key}]: {value} is not supported by this engine"))?;
            let patterns = match value {
                Json::String(pattern) => vec![pattern.clone()],
                Json::Array(all) => {
                    all.iter().filter_map(Json::as_str).map(str::to_owned).collect()
                }
                _ => return Err(format!("[{key}] is a pattern, or several")),
            };
            template.conditions.push((condition, patterns));
        }
        match template.mapping {
            Json::Null => Err("it has no [mapping]".to_owned()),
            _ => Ok(template),
        }
    }

    /// As the field does, tries it with each kind of value that it is for: with one of them it has to do. Where it has
    /// none to try, nothing is wrong. `map` tries to map a field; the error says why the last cannot be mapped.
    pub(super) fn check(&self, map: impl Fn(&Json) -> Result<(), String>) -> Result<(), String> {
        let invalid = |why: String| {
            let Template { name, mapping, .. } = self;
            format!("dynamic template [{name}] has invalid content [{mapping}]: {why}")
        };
        let selects = |(condition, _): &(&str, Vec<String>)| !condition.contains("unmatch");
        if !self.conditions.iter().any(selects) {
            let why = "it must have [match], [path_match] or [match_mapping_type]";
            return Err(invalid(why.to_owned()));
        }
        let of_kinds = self.conditions.iter().filter(|(condition, _)| *condition == OF_KIND);
        let is_kind = |word: &str| {
            ["*", "binary"].contains(&word) || KINDS.iter().any(|(kind, _)| *kind == word)
        };
        if let Some(odd) = of_kinds.flat_map(|(_, words)| words).find(|word| !is_kind(word)) {
            let known = KINDS.map(|(kind, _)| kind).join(", ");
            return Err(invalid(format!(
                "no field type is called [{odd}]; there are {known} and *"
            )));
        }
        let mut failed = Ok(());
        for (kind, own) in KINDS {
            let is_for = |(condition, patterns): &(&str, Vec<String>)| {
                *condition != OF_KIND || patterns.iter().any(|one| matches(one, kind))
            };
            if !self.conditions.iter().all(is_for) {
                continue;
            }
            let mut json = filled(&self.mapping, "name", kind);
            if let Some(mapped) = json.as_object_mut() {
                mapped.entry("type").or_insert_with(|| own.into());
            }
            failed = map(&json);
            if failed.is_ok() {
                return Ok(());
            }
        }
        failed.map_err(invalid)
    }

    /// How a field is mapped; none where this is not for it. `kind` is what its first value is.
    pub(super) fn mapping(&self, path: &str, kind: &str) -> Option<Json> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let fits = self.conditions.iter().all(|(condition, patterns)| {
            let any = |text: &str| patterns.iter().any(|pattern| matches(pattern, text));
            match *condition {
                "match" => any(name),
                "unmatch" => !any(name),
                "path_match" => any(path),
                "path_unmatch" => !any(path),
                _ => any(kind),
            }
        });
        fits.then(|| filled(&self.mapping, name, kind))
    }
}

/// With the name and the kind where the template leaves room for them.
fn filled(json: &Json, name: &str, kind: &str) -> Json {
    // What is a string by its value is a text by its type.
    let kind_of_type = if kind == "string" { "text" } else { kind };
    let written = |text: &str| {
        let named = text.replace("{name}", name).replace("{dynamic_type}", kind_of_type);
        named.replace("{dynamicType}", kind_of_type)
    };
    match json {
        Json::String(text) => written(text).into(),
        Json::Array(items) => items.iter().map(|item| filled(item, name, kind)).collect(),
        Json::Object(object) => {
            object.iter().map(|(key, value)| (written(key), filled(value, name, kind))).collect()
        }
        other => other.clone(),
    }
}

/// Whether a value says of what type its field is: null and an array without anything do not.
pub(super) fn adds(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::List(items) => items.iter().any(|item| adds(&item.value)),
        _ => true,
    }
}
