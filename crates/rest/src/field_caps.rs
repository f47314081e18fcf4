//! `_field_caps`: which fields there are, of which types, and what can be done with them.

use std::collections::BTreeMap;

use query::Mapping;
use serde_json::{Value, json};

use super::answer::{Reply, object_of};
use super::call::{Call, object, texts};
use super::error::{bad_body, invalid, not_supported};
use super::names::{indices, matches_any};
use engine::transport::Result;

/// Parameters.
pub(super) const KNOWN: &[&str] = &["fields", "include_unmapped"];

/// What a field is in an index: its name, whether it can be searched, and whether it can be aggregated.
type Mapped<'a> = (&'a str, bool, bool);

/// `GET /{index}/_field_caps`.
pub(super) async fn field_caps(call: Call) -> Result<Reply> {
    let include_unmapped = call.query.flag("include_unmapped", false)?;
    let patterns = patterns(&call)?;
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let mut fields: BTreeMap<String, BTreeMap<&str, Vec<Mapped>>> = BTreeMap::new();
    for name in &names {
        let Some(meta) = state.indices.get(name) else { continue };
        let mapping = Mapping::stored(&meta.mappings)?;
        let mut add = |path: &str, kind: &'static str, searchable: bool, aggregatable: bool| {
            if matches_any(&patterns, path) {
                let kinds = fields.entry(path.to_owned()).or_default();
                let mapped = kinds.entry(kind).or_default();
                // An object stands once for all its fields.
                if mapped.last().is_none_or(|(last, ..)| last != name) {
                    mapped.push((name, searchable, aggregatable));
                }
            }
        };
        for (path, field) in mapping.fields() {
            let objects = path.match_indices('.').map(|(end, _)| &path[..end]);
            for object in objects.filter(|object| mapping.field(object).is_none()) {
                add(object, "object", false, false);
            }
            add(path, field.kind.name(), field.indexed, field.has_column);
        }
    }
    let shown = fields.into_iter().map(|(path, mut kinds)| {
        let found = |name: &&String| kinds.values().flatten().any(|(of, ..)| of == name);
        let without: Vec<Mapped> = names
            .iter()
            .filter(|name| !found(name))
            .map(|name| (name.as_str(), false, false))
            .collect();
        if include_unmapped && !without.is_empty() {
            kinds.insert("unmapped", without);
        }
        let several = kinds.len() > 1;
        let kinds = kinds
            .into_iter()
            .map(|(kind, mapped)| (kind.to_owned(), shown(kind, &mapped, several)));
        (path, object_of(kinds))
    });
    let fields = object_of(shown);
    Ok(json!({ "indices": names, "fields": fields }).into())
}

/// A field of one type: in which indices it has it is said where it has others elsewhere.
fn shown(kind: &str, mapped: &[Mapped], several: bool) -> Value {
    let searchable = mapped.iter().all(|(_, searchable, _)| *searchable);
    let aggregatable = mapped.iter().all(|(.., aggregatable)| *aggregatable);
    let mut object =
        json!({ "type": kind, "searchable": searchable, "aggregatable": aggregatable });
    let mut list = |key: &str, wanted: &dyn Fn(&Mapped) -> bool| {
        let names: Vec<&str> =
            mapped.iter().filter(|one| wanted(one)).map(|(name, ..)| *name).collect();
        object[key] = json!(names);
    };
    if several {
        list("indices", &|_| true);
    }
    // Where it is so in none, or in all, there is nothing to list.
    if !searchable && mapped.iter().any(|(_, searchable, _)| *searchable) {
        list("non_searchable_indices", &|(_, searchable, _)| !searchable);
    }
    if !aggregatable && mapped.iter().any(|(.., aggregatable)| *aggregatable) {
        list("non_aggregatable_indices", &|(.., aggregatable)| !aggregatable);
    }
    object
}

/// Which fields are asked for, by parameter or body, joined by commas.
fn patterns(call: &Call) -> Result<String> {
    let mut fields = call.query.get("fields").unwrap_or_default().to_owned();
    for (key, value) in object(call.json()?, ": {\"fields\"}")? {
        if key != "fields" || !(value.is_string() || value.is_array()) {
            let instead = "name the indices and fields in the path";
            return Err(not_supported(&format!("[{key}] of _field_caps"), instead));
        }
        let given = texts(&value).map_err(|_| bad_body("[fields] is a list of texts"))?;
        fields = given.join(",");
    }
    if fields.is_empty() {
        return Err(invalid("no fields specified"));
    }
    Ok(fields)
}
