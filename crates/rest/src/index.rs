//! Indices: made, shown, deleted; their mappings.

use query::Mapping;
use query::mapping::expand_dots;
use serde_json::{Map, Value, json};

use super::active::Active;
use super::alias::{aliases_json, read_aliases};
use super::answer::{Reply, object_of};
use super::call::{Call, PATIENCE, object, refuse_unknown_keys};
use super::document::refuse_follower;
use super::error::not_supported;
use super::identity::release;
use super::index_settings::settings_json;
use super::names::{
    Closed, expanded, indices_themselves, indices_to_change, indices_with, is_pattern, with_uuids,
};
use engine::settings::{
    IndexSettings, SettingScope, SettingsMap, Update, When, check_update, parse_update,
};
use engine::state::{ClusterState, Event, Made, merge_mappings};
use engine::transport::{Failure, Result};

/// Takes what a new index is made with from a request, which may hold more.
pub(super) fn take_made(object: &mut Map<String, Value>) -> Result<Made> {
    let mut made = Made::default();
    if let Some(settings) = object.remove("settings") {
        made.settings = parse_update(SettingScope::Index, &settings)?;
    }
    made.mappings = object.remove("mappings").unwrap_or_default();
    if let Some(aliases) = object.remove("aliases") {
        made.aliases = read_aliases(&aliases)?;
    }
    expand_dots(&mut made.mappings)?;
    Mapping::parse(&made.mappings)?;
    Ok(made)
}

fn read_made(json: Value) -> Result<Made> {
    let mut object = object(json, ": {\"settings\", \"mappings\"}")?;
    let made = take_made(&mut object)?;
    refuse_unknown_keys(&object, &["aliases", "mappings", "settings"], "for create index")?;
    Ok(made)
}

/// Whether an index can be made with this body of `PUT /{index}`. The error is the reason of the refusal.
pub fn check_new_index(body: &Value) -> Result<(), String> {
    let read = read_made(body.clone()).map_err(|failure| failure.reason)?;
    let checked = check_update(SettingScope::Index, When::Start, &read.settings);
    checked.map(drop).map_err(|error| error.to_string())
}

/// `PUT /{index}`.
pub(super) async fn create(call: Call) -> Result<Reply> {
    refuse_types(&call)?;
    let active = Active::read(&call.query, 1)?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let index = call.index().to_owned();
    let made = read_made(call.json()?)?;
    active.check(&index, replicas(&call.state(), &index, &made.settings)?)?;
    let event = Event::CreateIndex { index: index.clone(), made };
    let env = &call.node.core().env;
    let give_up = env.now() + limit;
    let done = call.submit(vec![event]).await?;
    let left = give_up - env.now();
    let enough = done && active.wait_everywhere(&call.node, &index, left).await;
    Ok(json!({ "acknowledged": done, "shards_acknowledged": enough, "index": index }).into())
}

/// Replicas of a new index that is asked for with these settings.
pub(super) fn replicas(state: &ClusterState, index: &str, settings: &Update) -> Result<u32> {
    let asked = Made { settings: settings.clone(), ..Made::default() };
    let settings = state.with_templates(index, asked).settings;
    let checked = check_update(SettingScope::Index, When::Start, &settings)?;
    let given: SettingsMap = checked.into_iter().filter_map(|(k, v)| Some((k, v?))).collect();
    Ok(IndexSettings::resolve(&given).number_of_replicas())
}

/// `include_type_name`: mapping types are gone from the field, and clients may say that they send none.
pub(super) fn refuse_types(call: &Call) -> Result<()> {
    if call.query.flag("include_type_name", false)? {
        return Err(not_supported("a mapping type", "send mappings without one"));
    }
    Ok(())
}

/// `GET /{index}`.
pub(super) async fn get(call: Call) -> Result<Reply> {
    refuse_types(&call)?;
    shown(&call)
}

/// `HEAD /{index}`: without mappings, so that whoever wants them with their type, as older clients of Java do, misses
/// nothing.
pub(super) async fn exists(call: Call) -> Result<Reply> {
    call.query.flag("include_type_name", false)?;
    shown(&call)
}

fn shown(call: &Call) -> Result<Reply> {
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Named)?;
    let include_defaults = call.query.flag("include_defaults", false)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    let mut answer = Map::new();
    for name in names {
        let Some(meta) = state.indices.get(&name) else { continue };
        let mut object = settings_json(
            release(&call.node),
            (&name, &**meta),
            None,
            include_defaults,
            flat_settings,
        );
        object["aliases"] = aliases_json(&meta.aliases);
        object["mappings"] = meta.mappings.clone();
        answer.insert(name, object);
    }
    Ok(Value::Object(answer).into())
}

/// `DELETE /{index}`.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    let state = call.state();
    call.refuse_patterns()?;
    let by_default = (Closed::Expanded, true);
    let names = indices_themselves(&state, call.index(), &call.query, by_default)?;
    let events = with_uuids(&state, &names).map(|index| Event::DeleteIndex { index });
    call.acknowledged(events.collect()).await
}

/// `GET /{index}/_mapping`.
pub(super) async fn get_mapping(call: Call) -> Result<Reply> {
    refuse_types(&call)?;
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Named)?;
    let one = |name: String| {
        let mappings = &state.indices.get(&name)?.mappings;
        Some((name, json!({ "mappings": mappings })))
    };
    Ok(object_of(names.into_iter().filter_map(one)).into())
}

/// `GET /_data_stream/{name}`: there are none, which clients ask before they copy an index.
pub(super) async fn get_data_streams(call: Call) -> Result<Reply> {
    // Of none there is nothing more to show, whatever a pattern stands for.
    expanded(&call.query, Closed::Named)?;
    call.query.flag("include_defaults", false)?;
    match call.part("name").filter(|name| !is_pattern(name)) {
        Some(name) => Err(Failure::no_such_index(name)),
        None => Ok(json!({ "data_streams": [] }).into()),
    }
}

/// `PUT /{index}/_mapping`. Checked for every index before the first is changed.
pub(super) async fn put_mapping(call: Call) -> Result<Reply> {
    refuse_types(&call)?;
    if call.query.flag("write_index_only", false)? {
        return Err(not_supported("write_index_only", "name the index that is written to"));
    }
    let mut mappings = call.needed_json()?;
    expand_dots(&mut mappings)?;
    let state = call.state();
    let names = indices_to_change(&state, call.indices(), &call.query)?;
    for name in &names {
        refuse_follower(&call.node, name)?;
    }
    for meta in names.iter().filter_map(|name| state.indices.get(name)) {
        let merged = merge_mappings(&meta.mappings, &mappings);
        let merged = merged.map_err(|error| Failure::from(&error))?;
        // What an earlier build took, and this one refuses, stays.
        match Mapping::parse(&meta.mappings) {
            Ok(_) => Mapping::parse(&merged)?,
            Err(_) => Mapping::stored(&merged)?,
        };
    }
    let put = |index| Event::PutMapping { index, mappings: mappings.clone() };
    call.acknowledged(with_uuids(&state, &names).map(put).collect()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: Value) -> String {
        read_made(json).unwrap_err().reason
    }

    #[test]
    fn reads_the_body_of_a_new_index() {
        assert_eq!(read_made(Value::Null).unwrap(), Made::default());
        let mappings = json!({"properties": {"a": {"type": "long"}}});
        let body = read_made(json!({
            "settings": {"number_of_shards": 3}, "mappings": mappings.clone(), "aliases": {},
        }));
        let settings = Update::from([("index.number_of_shards".to_owned(), Some("3".to_owned()))]);
        assert_eq!(body.unwrap(), Made { settings, mappings, ..Made::default() });
        let dotted = read_made(json!({"mappings": {"properties": {"a.b": {"type": "long"}}}}));
        let expanded = json!({"properties": {"a": {"properties": {"b": {"type": "long"}}}}});
        assert_eq!(dotted.unwrap().mappings, expanded);
    }

    #[test]
    fn counts_replicas_before_the_index_is_made() {
        let state = ClusterState::new("c", [], || 1);
        let replicas = |settings: &Update| replicas(&state, "a", settings);
        assert_eq!(replicas(&Update::new()), Ok(1));
        let three = Update::from([("index.number_of_replicas".to_owned(), Some("3".to_owned()))]);
        assert_eq!(replicas(&three), Ok(3));
        let unknown = Update::from([("index.no_such".to_owned(), Some("3".to_owned()))]);
        assert_eq!(replicas(&unknown).unwrap_err().status, 400);
    }

    #[test]
    fn says_what_is_wrong_with_it() {
        assert_eq!(
            refused(json!({"setings": {}})),
            "unknown key [setings] for create index; did you mean \"settings\"?"
        );
        assert!(refused(json!([])).contains("JSON object"));
        assert!(refused(json!({"aliases": {"a": {"routing": "1"}}})).contains("not supported"));
        let wrong = json!({"mappings": {"properties": {"a": {"type": "lon"}}}});
        assert!(refused(wrong).contains("unknown type \"lon\""));
    }
}
