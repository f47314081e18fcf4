//! What new indices are given by templates, and the events about those.
//!
//! As in the field: of the index templates that fit, the one of the highest priority, with its component templates
//! below it; only where none fits, every legacy template that does, by ascending order. What a request says stands
//! above all. Mappings of legacy templates merge down to the parameters of a field, others by whole fields.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::applied::{Applied, NewIndex, bad_name};
use super::made::Made;
use super::template::{Template, TemplateChange, TemplateKind};
use super::{Change, ClusterState, StateError};
use crate::settings::{SettingScope, When, check_update};

/// Bytes of the patterns of a template together: whether others overlap costs the product of both.
const MAX_PATTERN_BYTES: usize = 4096;

impl Made {
    fn add(&mut self, above: Made, lay_over: LayOver) {
        self.settings.extend(above.settings);
        lay_over(&mut self.mappings, above.mappings);
        self.aliases.extend(above.aliases);
    }

    fn add_template(&mut self, template: &Template, lay_over: LayOver) {
        let Template { settings, mappings, aliases, .. } = template.clone();
        let settings = settings.into_iter().map(|(name, value)| (name, Some(value))).collect();
        self.add(Made { settings, mappings, aliases }, lay_over);
    }
}

type LayOver = fn(&mut Value, Value);

/// Lays mappings over others: a field that both have is that of the upper one, but objects hold the fields of both.
fn lay_over(below: &mut Value, above: Value) {
    let Value::Object(above) = above else { return };
    let Value::Object(below) = below else {
        *below = Value::Object(above);
        return;
    };
    for (key, value) in above {
        match (key.as_str(), below.get_mut(&key), value) {
            ("properties", Some(Value::Object(fields)), Value::Object(new)) => {
                lay_fields_over(fields, new);
            }
            ("dynamic_templates", Some(Value::Array(templates)), Value::Array(new)) => {
                for template in new {
                    match templates.iter().position(|below| name_of(below) == name_of(&template)) {
                        Some(place) => templates[place] = template,
                        None => templates.push(template),
                    }
                }
            }
            (_, _, value) => drop(below.insert(key, value)),
        }
    }
}

fn lay_fields_over(fields: &mut Map<String, Value>, new: Map<String, Value>) {
    let is_object = |field: &Value| field.get("properties").is_some();
    for (name, field) in new {
        match fields.get_mut(&name) {
            Some(below) if is_object(below) && is_object(&field) => lay_over(below, field),
            _ => drop(fields.insert(name, field)),
        }
    }
}

/// The one name in an item of a list, such as those of `dynamic_templates`.
fn name_of(item: &Value) -> Option<&String> {
    let item = item.as_object().filter(|item| item.len() == 1)?;
    item.keys().next()
}

/// Lays mappings over others as legacy templates do: `XContentHelper.mergeDefaults`.
fn lay_legacy_over(below: &mut Value, above: Value) {
    match (below, above) {
        (_, Value::Null) => {}
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                match below.get_mut(&key) {
                    Some(below) => lay_legacy_over(below, value),
                    None => drop(below.insert(key, value)),
                }
            }
        }
        (Value::Array(below), Value::Array(above)) => {
            if below.iter().chain(&above).any(|item| name_of(item).is_none()) {
                let new = above.into_iter().filter(|item| !below.contains(item));
                let new: Vec<Value> = new.collect();
                below.extend(new);
                return;
            }
            for mut item in std::mem::replace(below, above) {
                match below.iter().position(|above| name_of(above) == name_of(&item)) {
                    Some(place) => {
                        lay_legacy_over(&mut item, below[place].take());
                        below[place] = item;
                    }
                    None => below.push(item),
                }
            }
        }
        (below, above) => *below = above,
    }
}

impl ClusterState {
    /// What an index of this name is made with, where a request asks for `asked`.
    pub fn with_templates(&self, index: &str, asked: Made) -> Made {
        let fit = |kind| {
            let fits = move |template: &&Template| template.fits(index);
            self.templates_of(kind).map(|(_, template)| template).filter(fits)
        };
        let mut made = Made::default();
        let mut laid_over: LayOver = lay_over;
        // The last of those that are equal: none of equal priority fit the same names.
        if let Some(template) = fit(TemplateKind::Index).max_by_key(|template| template.order()) {
            for name in &template.composed_of {
                let component = self.template(TemplateKind::Component, name);
                component.into_iter().for_each(|of| made.add_template(of, laid_over));
            }
            made.add_template(template, laid_over);
        } else {
            laid_over = lay_legacy_over;
            let mut legacy: Vec<&Template> = fit(TemplateKind::Legacy).collect();
            legacy.sort_by_key(|template| template.order());
            legacy.into_iter().for_each(|template| made.add_template(template, laid_over));
        }
        // Those of a request are names as they stand.
        let named =
            made.aliases.into_iter().map(|(alias, of)| (alias.replace("{index}", index), of));
        made.aliases = named.collect();
        made.add(asked, laid_over);
        made
    }

    /// The templates of a kind, by name.
    pub fn templates_of(&self, kind: TemplateKind) -> impl Iterator<Item = (&str, &Template)> {
        let all = self.templates.get(&kind).into_iter().flatten();
        all.map(|(name, template)| (name.as_str(), template))
    }

    fn template(&self, kind: TemplateKind, name: &str) -> Option<&Template> {
        self.templates.get(&kind)?.get(name)
    }
}

/// An index that is made with what a request asks for, and what templates say.
pub(super) fn new_index(state: &ClusterState, index: String, asked: Made) -> NewIndex {
    let made = state.with_templates(&index, asked);
    NewIndex { index, leader: None, made }
}

pub(super) fn change(
    state: &mut ClusterState,
    kind: TemplateKind,
    name: String,
    change: TemplateChange,
) -> Applied {
    match change {
        TemplateChange::Put { template, create } => {
            check(state, kind, &name, &template, create)?;
            if state.template(kind, &name) == Some(&*template) {
                return Ok(Vec::new());
            }
            let of_kind = Arc::make_mut(&mut state.templates).entry(kind).or_default();
            of_kind.insert(name, *template);
        }
        TemplateChange::Delete => {
            if state.template(kind, &name).is_none() {
                return Err(StateError::NoTemplate { kind: kind.name(), name });
            }
            let uses = |(_, template): &(&str, &Template)| template.composed_of.contains(&name);
            let users = state.templates_of(TemplateKind::Index).filter(uses);
            let users: Vec<&str> = users.map(|(name, _)| name).collect();
            if kind == TemplateKind::Component && !users.is_empty() {
                let users = users.join(", ");
                let why = format!("it cannot be removed as index templates [{users}] still use it");
                return Err(StateError::Template { name, why });
            }
            let of_kind = Arc::make_mut(&mut state.templates).get_mut(&kind);
            of_kind.and_then(|of_kind| of_kind.remove(&name));
        }
    }
    Ok(vec![Change::Other])
}

fn check(
    state: &ClusterState,
    kind: TemplateKind,
    name: &str,
    template: &Template,
    create: bool,
) -> Result<(), StateError> {
    let refuse = |why: String| Err(StateError::Template { name: name.to_owned(), why });
    if let Some(why) = bad_name(name) {
        return refuse(why.to_owned());
    }
    if create && state.template(kind, name).is_some() {
        return refuse("it already exists".to_owned());
    }
    let settings = template.settings.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect();
    check_update(SettingScope::Index, When::Start, &settings)?;
    let mapping = query::Mapping::stored(&template.mappings);
    mapping.map_err(|error| StateError::Mapping(error.to_string()))?;
    // In place of `{index}` stands the name of an index, which is right already.
    let bad = |alias: &String| Some((alias.clone(), bad_name(&alias.replace("{index}", "i"))?));
    if let Some((alias, why)) = template.aliases.keys().find_map(bad) {
        return Err(StateError::AliasName { alias, why });
    }
    if kind != TemplateKind::Component && template.index_patterns.is_empty() {
        return refuse("index_patterns are missing".to_owned());
    }
    // Also an empty one is compared with all others.
    let bytes = template.index_patterns.iter().map(|pattern| pattern.len() + 1);
    if bytes.sum::<usize>() > MAX_PATTERN_BYTES {
        return refuse(format!("its index_patterns have more than {MAX_PATTERN_BYTES} bytes"));
    }
    let has = |name: &String| state.template(TemplateKind::Component, name).is_some();
    if let Some(missing) = template.composed_of.iter().find(|name| !has(name)) {
        return refuse(format!(
            "it specifies the component template [{missing}], which does not exist"
        ));
    }
    if kind != TemplateKind::Index {
        return Ok(());
    }
    let rival = state.templates_of(kind).find(|(other, existing)| {
        let mut pairs = template.index_patterns.iter();
        let overlaps = |a: &String| existing.index_patterns.iter().any(|b| overlap(a, b));
        *other != name && existing.order() == template.order() && pairs.any(overlaps)
    });
    match rival {
        None => Ok(()),
        Some((other, existing)) => refuse(format!(
            "its index patterns {} match those of [{other}], {}, with the same priority [{}]; use a different priority",
            json!(template.index_patterns),
            json!(existing.index_patterns),
            template.order()
        )),
    }
}

/// Whether some name fits both patterns.
fn overlap(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Which ends of both fit a common text: from the ends on.
    let mut fits = vec![vec![false; b.len() + 1]; a.len() + 1];
    fits[a.len()][b.len()] = true;
    for i in (0..=a.len()).rev() {
        for j in (0..=b.len()).rev() {
            let (left, right) = (a.get(i), b.get(j));
            fits[i][j] |= match (left, right) {
                (None, None) => true,
                (Some('*'), _) if fits[i + 1][j] => true,
                (_, Some('*')) if fits[i][j + 1] => true,
                (Some('*'), Some(_)) => fits[i][j + 1],
                (Some(_), Some('*')) => fits[i + 1][j],
                (Some(left), Some(right)) => left == right && fits[i + 1][j + 1],
                _ => false,
            };
        }
    }
    fits[0][0]
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::{Lab, creation};
    use super::super::{Alias, Event};
    use super::*;
    use crate::settings::{SettingsMap, Update};

    fn put(
        lab: &mut Lab,
        kind: TemplateKind,
        name: &str,
        template: Template,
    ) -> Result<(), String> {
        let change = TemplateChange::Put { template: Box::new(template), create: false };
        let event = Event::ChangeTemplate { kind, name: name.to_owned(), change };
        lab.apply(event).map(drop).map_err(|error| error.to_string())
    }

    fn delete(lab: &mut Lab, kind: TemplateKind, name: &str) -> Result<(), String> {
        let change = TemplateChange::Delete;
        let event = Event::ChangeTemplate { kind, name: name.to_owned(), change };
        lab.apply(event).map(drop).map_err(|error| error.to_string())
    }

    fn template(patterns: &[&str], order: i64, shards: &str, mappings: Value) -> Template {
        Template {
            index_patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            order: Some(order),
            settings: SettingsMap::from([("index.number_of_shards".to_owned(), shards.to_owned())]),
            mappings,
            ..Template::default()
        }
    }

    fn create(lab: &mut Lab, index: &str) {
        lab.apply(creation(index, Update::new())).unwrap();
    }

    fn field(name: &str, kind: &str) -> Value {
        json!({"properties": {name: {"type": kind}}})
    }

    #[test]
    fn patterns_overlap_where_a_name_fits_both() {
        for (a, b, both) in [
            ("a*", "*b", true),
            ("logs-*", "logs-*-x", true),
            ("logs-*", "metrics-*", false),
            ("*", "", true),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("a*c", "ab*", true),
            ("a*c", "*d", false),
            ("*a*", "*b*", true),
        ] {
            assert_eq!((overlap(a, b), overlap(b, a)), (both, both), "{a} {b}");
        }
    }

    #[test]
    fn index_templates_stand_above_legacy_ones_and_requests_above_both() {
        let mut lab = Lab::new(1);
        let legacy = TemplateKind::Legacy;
        put(&mut lab, legacy, "low", template(&["l*"], 1, "2", field("a", "long"))).unwrap();
        let mut high = template(&["logs*"], 2, "3", field("a", "keyword"));
        high.aliases.insert("all".to_owned(), Alias::default());
        put(&mut lab, legacy, "high", high).unwrap();
        create(&mut lab, "logs-1");
        let meta = &lab.state.indices["logs-1"];
        assert_eq!((meta.shards, &meta.mappings), (3, &field("a", "keyword")));
        assert!(meta.aliases.contains_key("all"));

        put(&mut lab, TemplateKind::Component, "c", template(&[], 0, "7", field("c", "ip")))
            .unwrap();
        let mut new = template(&["logs-2*"], 5, "4", field("a", "date"));
        new.composed_of = vec!["c".to_owned()];
        put(&mut lab, TemplateKind::Index, "new", new).unwrap();
        put(&mut lab, TemplateKind::Index, "lower", template(&["log*"], 4, "9", Value::Null))
            .unwrap();
        create(&mut lab, "logs-2");
        let meta = &lab.state.indices["logs-2"];
        let both = json!({"properties": {"a": {"type": "date"}, "c": {"type": "ip"}}});
        assert_eq!((meta.shards, &meta.mappings, meta.aliases.len()), (4, &both, 0));

        let asked = Made {
            settings: Update::from([("index.number_of_shards".to_owned(), None)]),
            mappings: field("a", "text"),
            ..Made::default()
        };
        let made = lab.state.with_templates("logs-2", asked);
        assert_eq!(made.settings["index.number_of_shards"], None);
        assert_eq!(made.mappings["properties"]["a"]["type"], "text");
        assert_eq!(made.mappings["properties"]["c"]["type"], "ip");
    }

    #[test]
    fn aliases_of_templates_may_hold_the_name_of_the_index() {
        let mut lab = Lab::new(1);
        for (kind, pattern) in [(TemplateKind::Legacy, "q*"), (TemplateKind::Index, "r*")] {
            let mut of = template(&[pattern], 1, "1", Value::Null);
            of.aliases.insert("{index}-x".to_owned(), Alias::default());
            put(&mut lab, kind, "t", of).unwrap();
        }
        for index in ["q1", "r1"] {
            create(&mut lab, index);
            let aliases: Vec<&String> = lab.state.indices[index].aliases.keys().collect();
            assert_eq!(aliases, [&format!("{index}-x")]);
        }
    }

    #[test]
    fn dynamic_templates_merge_by_name_and_legacy_fields_by_parameter() {
        let mut lab = Lab::new(1);
        let of = |dynamic: Value, field: Value| json!({"dynamic_templates": dynamic, "properties": {"f": field}});
        let low = of(
            json!([{"s": {"match": "s*", "mapping": {"type": "text"}}}, {"d": {"mapping": {"type": "date"}}}]),
            json!({"type": "date", "format": "yyyy"}),
        );
        let high = of(
            json!([{"n": {"mapping": {"type": "long"}}}, {"s": {"mapping": {"type": "keyword"}}}]),
            json!({"type": "date", "ignore_malformed": true}),
        );
        for (name, order, mappings) in [("low", 1, low.clone()), ("high", 2, high.clone())] {
            let of = template(&["l*"], order, "1", mappings);
            put(&mut lab, TemplateKind::Legacy, name, of).unwrap();
        }
        let merged = json!({"s": {"match": "s*", "mapping": {"type": "keyword"}}});
        assert_eq!(
            lab.state.with_templates("l", Made::default()).mappings,
            of(
                json!([{"n": {"mapping": {"type": "long"}}}, merged, {"d": {"mapping": {"type": "date"}}}]),
                json!({"type": "date", "format": "yyyy", "ignore_malformed": true}),
            )
        );
        put(&mut lab, TemplateKind::Component, "c", template(&[], 0, "1", low)).unwrap();
        let new = Template { composed_of: vec!["c".to_owned()], ..template(&["n*"], 1, "1", high) };
        put(&mut lab, TemplateKind::Index, "new", new).unwrap();
        assert_eq!(
            lab.state.with_templates("n", Made::default()).mappings,
            of(
                json!([
                    {"s": {"mapping": {"type": "keyword"}}}, {"d": {"mapping": {"type": "date"}}},
                    {"n": {"mapping": {"type": "long"}}},
                ]),
                json!({"type": "date", "ignore_malformed": true}),
            )
        );
    }

    #[test]
    fn what_would_be_ambiguous_or_dangle_is_refused() {
        let mut lab = Lab::new(1);
        let index = TemplateKind::Index;
        put(&mut lab, index, "a", template(&["a*"], 1, "1", Value::Null)).unwrap();
        let said = put(&mut lab, index, "b", template(&["*b"], 1, "1", Value::Null)).unwrap_err();
        assert!(said.contains("[a]") && said.contains("same priority [1]"), "{said}");
        put(&mut lab, index, "b", template(&["*b"], 2, "1", Value::Null)).unwrap();
        let mut of = template(&["c*"], 1, "1", Value::Null);
        of.composed_of = vec!["c".to_owned()];
        let said = put(&mut lab, index, "c", of.clone()).unwrap_err();
        assert!(said.contains("[c], which does not exist"), "{said}");
        put(&mut lab, TemplateKind::Component, "c", Template::default()).unwrap();
        put(&mut lab, index, "c", of).unwrap();
        let said = delete(&mut lab, TemplateKind::Component, "c").unwrap_err();
        assert!(said.contains("[c] still use it"), "{said}");
        delete(&mut lab, index, "c").unwrap();
        delete(&mut lab, TemplateKind::Component, "c").unwrap();
        assert!(delete(&mut lab, index, "c").unwrap_err().contains("[c] missing"));
        let said = put(&mut lab, index, "_x", template(&["x"], 9, "1", Value::Null)).unwrap_err();
        assert!(said.contains("must not start with _"), "{said}");
        let said = put(&mut lab, index, "x", template(&["x"], 9, "0", Value::Null)).unwrap_err();
        assert!(said.contains("index.number_of_shards"), "{said}");
    }

    /// As in the field: no index whose name fits could be made.
    #[test]
    fn an_alias_that_no_index_can_have_is_refused_with_its_template() {
        let mut lab = Lab::new(1);
        for kind in [TemplateKind::Legacy, TemplateKind::Index, TemplateKind::Component] {
            for (alias, is_right) in [("{index}-x", true), ("two words", false), ("logs-*", false)]
            {
                let mut of = template(&["a*"], 1, "1", Value::Null);
                of.aliases.insert(alias.to_owned(), Alias::default());
                let said = put(&mut lab, kind, "t", of);
                let names_it = |said: String| said.contains(&format!("[{alias}]"));
                assert_eq!(
                    said.map_err(names_it),
                    if is_right { Ok(()) } else { Err(true) },
                    "{alias}"
                );
            }
        }
    }

    #[test]
    fn a_build_without_templates_stored_none() {
        let text = serde_json::to_string(&Lab::new(1).state).unwrap();
        let mut older: Value = serde_json::from_str(&text).unwrap();
        older.as_object_mut().unwrap().remove("templates");
        // As text: another source would have the readers of all of a state compiled once more.
        let read: ClusterState = serde_json::from_str(&older.to_string()).unwrap();
        assert!(read.templates.is_empty());
    }
}
