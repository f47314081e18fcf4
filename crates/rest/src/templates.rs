//! `_template`, `_index_template` and `_component_template`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::alias::aliases_json;
use super::answer::{Reply, object_of};
use super::call::{Call, refuse_unknown_keys, texts};
use super::error::{bad_body, invalid, not_supported};
use super::index::{refuse_types, take_made};
use super::names::{matches, matches_any};
use super::table::{Cell, Column, Table, numbers, words};
use engine::settings::{SettingScope, SettingsMap, When, check_update, flat, nested};
use engine::state::{Event, Made, Template, TemplateChange, TemplateKind};
use engine::transport::{Failure, Result};

/// Parameters of what puts a template.
pub(super) const PUT: &[&str] = &["cause", "create", "include_type_name", "order"];

/// Keys of a template, by its kind.
fn keys(kind: TemplateKind) -> &'static [&'static str] {
    match kind {
        TemplateKind::Legacy => {
            &["aliases", "index_patterns", "mappings", "order", "settings", "version"]
        }
        TemplateKind::Index => {
            &["_meta", "composed_of", "index_patterns", "priority", "template", "version"]
        }
        TemplateKind::Component => &["_meta", "template", "version"],
    }
}

fn read(kind: TemplateKind, json: Value) -> Result<Template> {
    let Value::Object(mut object) = json else {
        return Err(bad_body("the body is a JSON object"));
    };
    for (key, instead) in [
        ("data_stream", "create an index, and an alias that _rollover moves on"),
        ("allow_auto_create", "leave it out: an index is made by its first document"),
        ("deprecated", "leave it out"),
    ] {
        if object.contains_key(key) {
            return Err(not_supported(&format!("[{key}] of a template"), instead));
        }
    }
    let place = format!("in the {}", kind.name());
    refuse_unknown_keys(&object, keys(kind), &place)?;
    let mut list = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => texts(&value).map_err(|odd| match value.is_array() {
            true => bad_body(format!("[{key}] is a list of texts")),
            false => bad_body(format!("[{key}] is a list of texts, not {odd}")),
        }),
    };
    let (index_patterns, composed_of) = (list("index_patterns")?, list("composed_of")?);
    if index_patterns.is_empty() && kind != TemplateKind::Component {
        return Err(invalid("index patterns are missing"));
    }
    let mut number = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64().or_else(|| value.as_str()?.parse().ok()) {
            Some(number) if number >= 0 || key == "order" => Ok(Some(number)),
            _ => Err(bad_body(format!("[{key}] is a number that is not negative, not {value}"))),
        },
    };
    let (order, version) = match kind {
        TemplateKind::Legacy => (number("order")?, number("version")?),
        _ => (number("priority")?, number("version")?),
    };
    let meta = object.remove("_meta").unwrap_or_default();
    let mut inner = match kind {
        TemplateKind::Legacy => object,
        _ => match object.remove("template") {
            Some(Value::Object(inner)) => inner,
            None | Some(Value::Null) if kind == TemplateKind::Index => Map::new(),
            _ => return Err(bad_body("[template] is an object: {\"settings\", \"mappings\"}")),
        },
    };
    let Made { settings, mappings, aliases } = take_made(&mut inner)?;
    refuse_unknown_keys(&inner, &["aliases", "mappings", "settings"], &place)?;
    let checked = check_update(SettingScope::Index, When::Start, &settings)?;
    let settings: SettingsMap =
        checked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    Ok(Template { index_patterns, order, settings, mappings, aliases, composed_of, version, meta })
}

/// Whether a template of this kind can be put with this body. The error is the reason of the refusal.
pub fn check_template(kind: TemplateKind, body: &Value) -> Result<(), String> {
    read(kind, body.clone()).map(drop).map_err(|failure| failure.reason)
}

/// `PUT /_template/{name}` and the like.
pub(super) async fn put(call: Call, kind: TemplateKind) -> Result<Reply> {
    refuse_types(&call)?;
    let create = call.query.flag("create", false)?;
    let mut template = read(kind, call.needed_json()?)?;
    if let Some(order) = call.query.number("order")? {
        if kind != TemplateKind::Legacy {
            return Err(not_supported("parameter [order]", "write priority into the body"));
        }
        // As in the field the body stands above it.
        template.order = template.order.or(Some(order));
    }
    let change = TemplateChange::Put { template: Box::new(template), create };
    let event = Event::ChangeTemplate { kind, name: name(&call).to_owned(), change };
    call.acknowledged(vec![event]).await
}

fn name(call: &Call) -> &str {
    call.part("name").unwrap_or_default()
}

/// `DELETE /_template/{name}` and the like: those of a pattern. As in the field only that of all may stand for none.
pub(super) async fn delete(call: Call, kind: TemplateKind) -> Result<Reply> {
    let state = call.state();
    let (mut missing, mut names) = (Vec::new(), BTreeSet::new());
    for part in name(&call).split(',') {
        let all = state.templates_of(kind).map(|(name, _)| name);
        let fit: Vec<&str> = all.filter(|name| matches(part, name)).collect();
        if fit.is_empty() && part != "*" {
            missing.push(part.to_owned());
        }
        names.extend(fit.into_iter().map(str::to_owned));
    }
    let delete = |name| Event::ChangeTemplate { kind, name, change: TemplateChange::Delete };
    // What there is not comes first: it is refused before another one is deleted.
    call.acknowledged(missing.into_iter().chain(names).map(delete).collect()).await
}

/// `GET /_template/{name}` and the like; `HEAD` asks only whether there are any. As in the field none is 404 where a
/// name or a pattern is given.
pub(super) async fn get(call: Call, kind: TemplateKind) -> Result<Reply> {
    refuse_types(&call)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    let state = call.state();
    let wanted = call.part("name").unwrap_or("*");
    let found = state.templates_of(kind).filter(|(name, _)| matches_any(wanted, name));
    let all: Vec<(&str, Value)> =
        found.map(|(name, template)| (name, shown(kind, template, flat_settings))).collect();
    let status = if all.is_empty() && call.part("name").is_some() { 404 } else { 200 };
    let (list, one) = match kind {
        TemplateKind::Legacy => {
            let all = all.into_iter().map(|(name, shown)| (name.to_owned(), shown));
            return Ok(Reply::with(status, object_of(all)));
        }
        TemplateKind::Index => ("index_templates", "index_template"),
        TemplateKind::Component => ("component_templates", "component_template"),
    };
    if status == 404 && !wanted.contains('*') {
        let reason = format!("{} matching [{wanted}] not found", kind.name());
        return Err(Failure::new(404, "resource_not_found_exception", reason));
    }
    let all = all.into_iter().map(|(name, shown)| json!({ "name": name, one: shown }));
    Ok(Reply::with(status, json!({ list: all.collect::<Vec<_>>() })))
}

fn shown(kind: TemplateKind, template: &Template, flat_settings: bool) -> Value {
    let render = if flat_settings { flat } else { nested };
    let legacy = kind == TemplateKind::Legacy;
    let mut inner = Map::new();
    if legacy || !template.settings.is_empty() {
        inner.insert("settings".to_owned(), render(&template.settings));
    }
    if legacy || !template.mappings.is_null() {
        let mappings = &template.mappings;
        let mappings = if mappings.is_null() { json!({}) } else { mappings.clone() };
        inner.insert("mappings".to_owned(), mappings);
    }
    if legacy || !template.aliases.is_empty() {
        inner.insert("aliases".to_owned(), aliases_json(&template.aliases));
    }
    let mut object = match kind {
        TemplateKind::Legacy => inner,
        _ => Map::from_iter([("template".to_owned(), Value::Object(inner))]),
    };
    let mut set = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    if kind != TemplateKind::Component {
        set("index_patterns", json!(template.index_patterns));
    }
    match (kind, template.order) {
        (TemplateKind::Legacy, order) => set("order", json!(order.unwrap_or(0))),
        (_, Some(priority)) => set("priority", json!(priority)),
        (_, None) => {}
    }
    if kind == TemplateKind::Index {
        set("composed_of", json!(template.composed_of));
    }
    if let Some(version) = template.version {
        set("version", json!(version));
    }
    if !template.meta.is_null() {
        set("_meta", template.meta.clone());
    }
    Value::Object(object)
}

static TEMPLATES: [Column; 5] = [
    words("name", "n", "name of the template"),
    words("index_patterns", "t", "which names of indices fit"),
    numbers("order", "o,p", "its order or priority"),
    words("version", "v", "its version"),
    words("composed_of", "c", "its component templates"),
];

/// `GET /_cat/templates`: of both kinds that have patterns.
pub(super) async fn cat(call: Call) -> Result<Reply> {
    let state = call.state();
    let wanted = call.part("name").unwrap_or("*");
    let mut table = Table::new(&TEMPLATES);
    for kind in [TemplateKind::Legacy, TemplateKind::Index] {
        for (name, template) in state.templates_of(kind) {
            if !matches_any(wanted, name) {
                continue;
            }
            let components = (kind == TemplateKind::Index)
                .then(|| format!("[{}]", template.composed_of.join(", ")));
            table.push(vec![
                name.into(),
                format!("[{}]", template.index_patterns.join(", ")).into(),
                template.order.unwrap_or(0).to_string().into(),
                template.version.map(|version| Cell::Text(version.to_string())).into(),
                components.into(),
            ]);
        }
    }
    table.answer(&call.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_shown_as_it_was_given() {
        let given = json!({
            "index_patterns": ["a*"], "priority": 3, "composed_of": ["c"], "version": 2,
            "_meta": {"by": "x"},
            "template": {
                "settings": {"index": {"number_of_shards": "2"}},
                "mappings": {"properties": {"n": {"type": "long"}}},
                "aliases": {"all": {}},
            },
        });
        let read_back =
            shown(TemplateKind::Index, &read(TemplateKind::Index, given.clone()).unwrap(), false);
        assert_eq!(read_back, given);
        let given = json!({"index_patterns": "a*", "settings": {"number_of_replicas": 0}});
        let legacy = read(TemplateKind::Legacy, given).unwrap();
        assert_eq!(
            shown(TemplateKind::Legacy, &legacy, true),
            json!({
                "index_patterns": ["a*"], "order": 0, "mappings": {}, "aliases": {},
                "settings": {"index.number_of_replicas": "0"},
            })
        );
        let component = json!({"template": {}});
        let template = read(TemplateKind::Component, component.clone()).unwrap();
        assert_eq!(shown(TemplateKind::Component, &template, false), component);
    }

    #[test]
    fn says_what_is_wrong_with_it() {
        let said = |kind, json: Value| read(kind, json).unwrap_err().reason;
        let (index, legacy) = (TemplateKind::Index, TemplateKind::Legacy);
        let near = said(index, json!({"index_pattern": ["a"]}));
        assert!(near.contains("did you mean \"index_patterns\""), "{near}");
        assert!(said(index, json!({"data_stream": {}})).contains("is not supported"));
        assert!(said(index, json!({})).contains("index patterns are missing"));
        let of_all = |key: &str, value: Value| json!({"index_patterns": "a", key: value});
        assert!(said(index, of_all("priority", json!(-1))).contains("not negative"));
        assert_eq!(read(index, of_all("priority", json!("7"))).unwrap().order, Some(7));
        let near = said(index, of_all("template", json!({"setings": {}})));
        assert!(near.contains("\"settings\""), "{near}");
        assert!(said(legacy, json!({"template": {}})).contains("unknown key [template]"));
        assert!(said(legacy, json!({"index_patterns": 7})).contains("list of texts"));
        let mixed = json!({"index_patterns": ["a", 7]});
        assert_eq!(said(legacy, mixed), "[index_patterns] is a list of texts");
        assert!(
            said(legacy, of_all("settings", json!({"no_such": 1}))).contains("unknown setting")
        );
        assert!(said(legacy, Value::Null).contains("JSON object"));
        let unknown = of_all("mappings", json!({"properties": {"a": {"type": "lon"}}}));
        assert!(said(legacy, unknown).contains("unknown type"));
    }
}
