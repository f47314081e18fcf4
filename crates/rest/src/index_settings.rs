//! `_settings` of indices.

use serde_json::{Value, json};

use super::answer::{Reply, object_of};
use super::call::Call;
use super::error::invalid;
use super::identity::{Release, release};
use super::names::{Closed, indices_to_change, indices_with, matches_any, with_uuids};
use engine::settings::{SettingScope, Update, index_defaults, index_settings, parse_update};
use engine::state::{Event, IndexMeta};
use engine::transport::Result;

const ROUTING_SHARDS: &str = "index.number_of_routing_shards";

/// `settings` and, with `include_defaults`, `defaults` of an index; only those whose names fit `wanted`.
pub(super) fn settings_json(
    release: &Release,
    (name, meta): (&str, &IndexMeta),
    wanted: Option<&str>,
    include_defaults: bool,
    flat_settings: bool,
) -> Value {
    let mut given = meta.settings.clone();
    for (key, value) in [
        ("index.creation_date", meta.created_ms.to_string()),
        ("index.provided_name", name.to_owned()),
        ("index.uuid", meta.uuid.clone()),
        ("index.version.created", release.version_created.to_owned()),
    ] {
        given.insert(key.to_owned(), value);
    }
    let mut defaults = include_defaults.then(|| index_defaults(&given));
    // It depends on the shards, and on the build that made the index.
    if let Some(shown) = defaults.as_mut().and_then(|all| all.get_mut(ROUTING_SHARDS)) {
        *shown = meta.routing_shards.unwrap_or(meta.shards).to_string();
    }
    if let Some(wanted) = wanted {
        for settings in [Some(&mut given), defaults.as_mut()].into_iter().flatten() {
            settings.retain(|key, _| matches_any(wanted, key));
        }
    }
    index_settings(&given, defaults.as_ref(), flat_settings)
}

/// `GET /{index}/_settings`.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Expanded)?;
    let include_defaults = call.query.flag("include_defaults", false)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    let one = |name: String| {
        let meta = state.indices.get(&name)?;
        let (release, index) = (release(&call.node), (name.as_str(), &**meta));
        let json =
            settings_json(release, index, call.part("name"), include_defaults, flat_settings);
        // As in the field an index is left out of which there is nothing to show.
        let is_shown = include_defaults || json["settings"] != json!({});
        is_shown.then_some((name, json))
    };
    Ok(object_of(names.into_iter().filter_map(one)).into())
}

/// `PUT /{index}/_settings`.
pub(super) async fn put(call: Call) -> Result<Reply> {
    let preserve = call.query.flag("preserve_existing", false)?;
    // The answer has no settings that could be written flat.
    call.query.flag("flat_settings", false)?;
    let update = parse_update(SettingScope::Index, &call.needed_json()?)?;
    if update.is_empty() {
        return Err(invalid("no settings to update"));
    }
    let state = call.state();
    let mut events = Vec::new();
    let names = indices_to_change(&state, call.indices(), &call.query)?;
    for index in with_uuids(&state, &names) {
        let meta = &state.indices[&index.name];
        let is_new = |name: &String| !preserve || !meta.settings.contains_key(name);
        let settings: Update = update
            .iter()
            .filter(|(name, _)| is_new(name))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        events.push(Event::PutIndexSettings { index, settings });
    }
    call.acknowledged(events).await
}

#[cfg(test)]
mod tests {
    use super::super::identity::ELASTICSEARCH;
    use super::*;
    use engine::settings::SettingsMap;

    #[test]
    fn shows_what_was_given_and_what_the_engine_adds() {
        let settings = SettingsMap::from([("index.number_of_replicas".into(), "0".into())]);
        let meta = IndexMeta { uuid: "u".into(), settings, created_ms: 7, ..Default::default() };
        let whole = settings_json(&ELASTICSEARCH, ("a", &meta), None, false, false);
        assert_eq!(
            whole["settings"]["index"],
            json!({
                "number_of_replicas": "0", "uuid": "u", "creation_date": "7", "provided_name": "a",
                "version": {"created": "7100299"},
            })
        );
        let some = settings_json(&ELASTICSEARCH, ("a", &meta), Some("index.number*"), false, true);
        assert_eq!(some, json!({"settings": {"index.number_of_replicas": "0"}}));
        for (shards, routing_shards, shown) in [(3, Some(768), "768"), (5, None, "5")] {
            let meta = IndexMeta { shards, routing_shards, ..meta.clone() };
            let wanted = Some("index.number_of_ro*");
            let whole = settings_json(&ELASTICSEARCH, ("a", &meta), wanted, true, true);
            let defaults = json!({"index.number_of_routing_shards": shown});
            assert_eq!(whole, json!({"settings": {}, "defaults": defaults}));
        }
    }
}
