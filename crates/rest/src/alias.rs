//! Aliases: given, taken, shown.

use std::collections::BTreeSet;

use record::names::did_you_mean;
use serde_json::{Map, Value, json};

use super::answer::{Reply, object_of};
use super::call::{Call, object, refuse_unknown_keys, texts, truth};
use super::error::{bad_body, bad_request, not_supported};
use super::names::{
    Closed, indices_themselves, indices_with, is_pattern, matches, read_filter, with_uuids,
};
use super::table::{Cell, Column, Table, words};
use engine::state::{Alias, AliasAction, Aliases, ClusterState, Event, Index};
use engine::transport::{Failure, Result};

/// Further properties of an alias in the field, which are refused.
const UNSUPPORTED: [&str; 4] = ["index_routing", "is_hidden", "routing", "search_routing"];

/// Which indices a change of aliases is about: none is 404, so that no change of nothing is acknowledged.
const OF_ALIASES: (Closed, bool) = (Closed::Named, false);

/// Reads `{"is_write_index", "filter"}`.
fn read_alias(object: &Map<String, Value>, known: &[&'static str]) -> Result<Alias> {
    let mut alias = Alias::default();
    for (key, value) in object {
        match (key.as_str(), value) {
            ("is_write_index", Value::Null) => {}
            ("is_write_index", _) => {
                let wrong =
                    || bad_body(format!("[is_write_index] is true or false, not [{value}]"));
                alias.is_write_index = Some(truth(value).ok_or_else(wrong)?);
            }
            ("filter", Value::Null) => {}
            // As in the field an empty one is none.
            ("filter", Value::Object(filter)) if filter.is_empty() => {}
            ("filter", Value::Object(_)) => {
                let filter = value.to_string();
                read_filter(&filter)?;
                alias.filter = Some(filter);
            }
            ("filter", _) => return Err(bad_body(format!("[filter] is a query, not [{value}]"))),
            (key, _) if known.contains(&key) => {}
            (key, _) if UNSUPPORTED.contains(&key) => {
                return Err(not_supported(&format!("an alias with [{key}]"), "leave it out"));
            }
            (key, _) => {
                let near =
                    did_you_mean(key, known.iter().copied().chain(["is_write_index", "filter"]));
                return Err(bad_body(format!("unknown key [{key}] of an alias{near}")));
            }
        }
    }
    Ok(alias)
}

/// Reads `{"alias": {"is_write_index", "filter"}}`.
pub(super) fn read_aliases(json: &Value) -> Result<Aliases> {
    let Value::Object(all) = json else {
        return Err(bad_body("[aliases] is an object: {\"alias\": {\"is_write_index\"}}"));
    };
    let one = |(name, json): (&String, &Value)| {
        let object =
            json.as_object().ok_or_else(|| bad_body(format!("alias [{name}] is an object")))?;
        Ok((name.clone(), read_alias(object, &[])?))
    };
    all.iter().map(one).collect()
}

/// `{"alias": {"is_write_index", "filter"}}`.
pub(super) fn aliases_json(aliases: &Aliases) -> Value {
    let one = |(name, alias): (&String, &Alias)| {
        let mut object = json!({});
        if let Some(yes) = alias.is_write_index {
            object["is_write_index"] = json!(yes);
        }
        if let Some(filter) = &alias.filter {
            object["filter"] = serde_json::from_str(filter).unwrap_or_default();
        }
        (name.clone(), object)
    };
    object_of(aliases.iter().map(one))
}

/// A name, or several: `{"alias"}` or `{"aliases"}`.
fn names(object: &Map<String, Value>, one: &str, many: &str) -> Result<Vec<String>> {
    let wrong =
        || bad_body(format!("an action needs [{one}], a text, or [{many}], a list of texts"));
    let names = match (object.get(one), object.get(many)) {
        (Some(Value::String(name)), None) => vec![name.clone()],
        (None, Some(names)) => texts(names).map_err(|_| wrong())?,
        _ => return Err(wrong()),
    };
    // An empty name would stand for all indices.
    if names.is_empty() || names.iter().any(String::is_empty) { Err(wrong()) } else { Ok(names) }
}

/// `POST /_aliases`: `{"actions": [{"add": {..}}, {"remove": {..}}, {"remove_index": {..}}]}`.
pub(super) async fn change(call: Call) -> Result<Reply> {
    let state = call.state();
    let body = object(call.needed_json()?, ": {\"actions\"}")?;
    refuse_unknown_keys(&body, &["actions"], "of _aliases")?;
    let list = body.get("actions").and_then(Value::as_array);
    let list = list.ok_or_else(|| bad_body("the body is {\"actions\": [{\"add\": {..}}, ..]}"))?;
    let mut actions = Vec::new();
    for one in list {
        actions.extend(read_action(&call, &state, one)?);
    }
    if list.is_empty() {
        return Err(bad_request("no aliases action specified"));
    }
    call.acknowledged(vec![Event::ChangeAliases { actions }]).await
}

fn read_action(call: &Call, state: &ClusterState, one: &Value) -> Result<Vec<AliasAction>> {
    const KINDS: [(&str, &[&str]); 3] = [
        ("add", &["alias", "aliases", "index", "indices"]),
        ("remove", &["alias", "aliases", "index", "indices", "must_exist"]),
        ("remove_index", &["index", "indices"]),
    ];
    let kinds = KINDS.map(|(kind, _)| kind);
    let entry = one.as_object().filter(|one| one.len() == 1).and_then(|one| one.iter().next());
    let Some((kind, Value::Object(object))) = entry else {
        let kinds = kinds.join(", ");
        return Err(bad_body(format!("an action is an object with one of {kinds} in it: {one}")));
    };
    let Some((_, known)) = KINDS.iter().find(|(known, _)| known == kind) else {
        let near = did_you_mean(kind, kinds);
        return Err(bad_body(format!("unknown action [{kind}] of _aliases{near}")));
    };
    let properties = read_alias(object, known)?;
    if kind != "add" && properties != Alias::default() {
        return Err(bad_body(format!("[{kind}] takes neither [filter] nor [is_write_index]")));
    }
    let expression = call.with_dates(&names(object, "index", "indices")?.join(","))?;
    let found = indices_themselves(state, &expression, &call.query, OF_ALIASES)?;
    let aliases = || names(object, "alias", "aliases");
    match kind.as_str() {
        "add" => Ok(adding(state, &found, &aliases()?, &properties)),
        "remove" => {
            let must_exist = object.get("must_exist").map_or(Some(true), truth);
            let must_exist = must_exist.ok_or_else(|| bad_body("[must_exist] is true or false"))?;
            removing(state, &found, &aliases()?.join(","), must_exist)
        }
        _ => {
            let remove = |index| AliasAction::RemoveIndex { index };
            Ok(with_uuids(state, &found).map(remove).collect())
        }
    }
}

fn adding(
    state: &ClusterState,
    indices: &[String],
    aliases: &[String],
    properties: &Alias,
) -> Vec<AliasAction> {
    let of = |index: &Index, alias: &String| AliasAction::Add {
        index: index.clone(),
        alias: alias.clone(),
        properties: properties.clone(),
    };
    let each = |index: Index| aliases.iter().map(|alias| of(&index, alias)).collect::<Vec<_>>();
    with_uuids(state, indices).flat_map(each).collect()
}

/// Takes the aliases that fit an expression; 404 where none does.
fn removing(
    state: &ClusterState,
    indices: &[String],
    aliases: &str,
    must_exist: bool,
) -> Result<Vec<AliasAction>> {
    let found: Vec<AliasAction> = fitting(state, indices, Some(aliases))
        .filter_map(|(index, alias, _)| {
            Some(AliasAction::Remove { index: state.index(index)?, alias: alias.to_owned() })
        })
        .collect();
    if found.is_empty() && must_exist { Err(missing(aliases)) } else { Ok(found) }
}

fn missing(aliases: &str) -> Failure {
    Failure::new(404, "aliases_not_found_exception", format!("aliases [{aliases}] missing"))
}

/// Whether an expression says an alias. As in the field `-` excludes, behind a pattern or not.
fn is_said(expression: &str, alias: &str) -> bool {
    expression.split(',').fold(false, |said, part| match part.strip_prefix('-') {
        Some(excluded) => said && !matches(excluded, alias),
        None => said || part == "_all" || matches(part, alias),
    })
}

/// The names of an expression that an alias is to have. As in the field `-` excludes from them behind a pattern alone.
fn wanted(expression: &str) -> BTreeSet<&str> {
    let parts: Vec<&str> = expression.split(',').collect();
    let first_pattern = parts.iter().position(|part| part.contains('*')).unwrap_or(parts.len());
    let is_wanted = |&(at, name): &(usize, &str)| {
        let fits = |of: &str| of == "_all" || matches(of, name);
        let mut later = parts.iter().skip(first_pattern.max(at + 1));
        let excludes = at > first_pattern && name.starts_with('-');
        let is_excluded = later.any(|part| part.strip_prefix('-').is_some_and(fits));
        !is_pattern(name) && !excludes && !is_excluded
    };
    parts.iter().copied().enumerate().filter(is_wanted).map(|(_, name)| name).collect()
}

/// Index, alias, and what it is, of these indices; those that an expression says.
fn fitting<'a>(
    state: &'a ClusterState,
    indices: &'a [String],
    aliases: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str, &'a Alias)> {
    let of = |name: &'a String| Some((name.as_str(), state.indices.get(name)?));
    indices.iter().filter_map(of).flat_map(move |(name, meta)| {
        let fits = move |alias: &str| aliases.is_none_or(|aliases| is_said(aliases, alias));
        let fit = meta.aliases.iter().filter(move |(alias, _)| fits(alias));
        fit.map(move |(alias, properties)| (name, alias.as_str(), properties))
    })
}

/// `PUT /{index}/_alias/{name}`.
pub(super) async fn put(call: Call) -> Result<Reply> {
    let properties = read_alias(&object(call.json()?, ": {\"is_write_index\"}")?, &[])?;
    let state = call.state();
    let found = indices_themselves(&state, call.index(), &call.query, OF_ALIASES)?;
    let alias = call.part("name").unwrap_or_default().to_owned();
    let actions = adding(&state, &found, &[alias], &properties);
    call.acknowledged(vec![Event::ChangeAliases { actions }]).await
}

/// `DELETE /{index}/_alias/{name}`.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    let state = call.state();
    let found = indices_themselves(&state, call.index(), &call.query, OF_ALIASES)?;
    let actions = removing(&state, &found, call.part("name").unwrap_or_default(), true)?;
    call.acknowledged(vec![Event::ChangeAliases { actions }]).await
}

/// `GET /_alias`, `GET /{index}/_alias/{name}`. Without a name: every index, also those without an alias. A name that
/// is no pattern and that no alias has makes it 404, with what there is of the others.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let state = call.state();
    let found = indices_with(&state, call.indices(), &call.query, Closed::Expanded)?;
    let name = call.part("name");
    let mut answer = Map::new();
    if name.is_none() {
        answer.extend(found.iter().map(|index| (index.clone(), json!({ "aliases": {} }))));
    }
    let mut missing = name.map(wanted).unwrap_or_default();
    for (index, alias, properties) in fitting(&state, &found, name) {
        missing.remove(alias);
        let entry = answer.entry(index).or_insert_with(|| json!({ "aliases": {} }));
        let one = Aliases::from([(alias.to_owned(), properties.clone())]);
        entry["aliases"][alias] = aliases_json(&one)[alias].take();
    }
    if missing.is_empty() {
        return Ok(Value::Object(answer).into());
    }
    let what = if missing.len() == 1 { "alias" } else { "aliases" };
    let missing = missing.into_iter().collect::<Vec<_>>().join(",");
    answer.insert("error".to_owned(), json!(format!("{what} [{missing}] missing")));
    answer.insert("status".to_owned(), json!(404));
    Ok(Reply::with(404, Value::Object(answer)))
}

static ALIASES: [Column; 6] = [
    words("alias", "a", "alias"),
    words("index", "i,idx", "index"),
    words("filter", "f,fi", "whether searches by it go through a filter"),
    words("routing.index", "ri,routingIndex", "none: aliases have no routing"),
    words("routing.search", "rs,routingSearch", "none: aliases have no routing"),
    words("is_write_index", "w,isWriteIndex", "whether this index takes the writes"),
];

/// `GET /_cat/aliases`.
pub(super) async fn cat(call: Call) -> Result<Reply> {
    let state = call.state();
    let all = indices_with(&state, None, &call.query, Closed::Expanded)?;
    let mut rows: Vec<_> = fitting(&state, &all, call.part("name")).collect();
    rows.sort_by_key(|(index, alias, _)| (*alias, *index));
    let mut table = Table::new(&ALIASES);
    for (index, alias, properties) in rows {
        let writes = properties.is_write_index.map_or("-".to_owned(), |yes| yes.to_string());
        let filter = Cell::from(if properties.filter.is_some() { "*" } else { "-" });
        let none = || Cell::from("-");
        table.push(vec![alias.into(), index.into(), filter, none(), none(), writes.into()]);
    }
    table.answer(&call.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_an_alias_is() {
        let aliases = read_aliases(&json!({"a": {}, "b": {"is_write_index": true}})).unwrap();
        assert_eq!(aliases["a"].is_write_index, None);
        assert_eq!(aliases["b"].is_write_index, Some(true));
        assert_eq!(aliases_json(&aliases), json!({"a": {}, "b": {"is_write_index": true}}));
        let said = read_aliases(&json!({"b": {"is_write_index": "false"}})).unwrap();
        assert_eq!(said["b"].is_write_index, Some(false));
        let filtered = json!({"a": {"filter": {"term": {"k": 1}}}, "b": {"is_write_index": false}});
        assert_eq!(aliases_json(&read_aliases(&filtered).unwrap()), filtered);
        assert_eq!(read_aliases(&json!({"a": {"filter": {}}})).unwrap()["a"].filter, None);
        let said = |json: Value| read_aliases(&json).unwrap_err().reason;
        assert!(said(json!({"a": {"routing": "1"}})).contains("[routing] is not supported"));
        assert!(said(json!({"a": {"filter": "x"}})).contains("[filter] is a query"));
        assert!(said(json!({"a": {"filter": {"foo": {}}}})).contains("unknown query [foo]"));
        assert!(said(json!({"a": {"is_write_idx": true}})).contains("\"is_write_index\""));
        assert!(said(json!({"a": {"is_write_index": 1}})).contains("true or false"));
        assert!(said(json!([])).contains("is an object"));
    }

    #[test]
    fn reads_one_name_or_several() {
        let read = |json: Value| names(json.as_object().unwrap(), "alias", "aliases");
        assert_eq!(read(json!({"alias": "a"})).unwrap(), ["a"]);
        assert_eq!(read(json!({"aliases": ["a", "b"]})).unwrap(), ["a", "b"]);
        for wrong in [
            json!({}),
            json!({"aliases": []}),
            json!({"alias": 1}),
            json!({"aliases": [1]}),
            json!({"alias": ""}),
            json!({"aliases": ["a", ""]}),
        ] {
            assert!(read(wrong).unwrap_err().reason.contains("[aliases], a list of texts"));
        }
    }
}
