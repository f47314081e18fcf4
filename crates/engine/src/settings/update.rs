//! A change of settings: from JSON, checked against the table, applied to a map.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::table::{TABLE, check, find, instead_of, is_refused_below, unknown};
use super::watermark::{HIGH, LOW, Watermark, Watermarks};
use super::{SettingError, SettingScope, Settings, SettingsMap};

/// Settings to change, by full name: none takes a setting back to its default. A name that ends in
/// `.*` stands for all below it and can only be taken back.
pub type Update = BTreeMap<String, Option<String>>;

/// The body of `PUT _cluster/settings`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterUpdate {
    /// To keep over restarts.
    pub persistent: Update,
    /// To keep while the cluster runs; these win.
    pub transient: Update,
}

/// When settings are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With a node's configuration, or a new index: all may be given.
    Start,
    /// To what is running: dynamic ones alone.
    Running,
}

/// Reads settings from nested, flat or mixed JSON; `null` takes a setting back to its default.
///
/// Settings of an index may leave out `index.`, and may stand below `settings`. Names and values are
/// checked by [`check_update`].
pub fn parse_update(scope: SettingScope, json: &Value) -> Result<Update, SettingError> {
    let object = json.as_object().ok_or_else(|| {
        SettingError::Shape(format!("{json} is no JSON object; write {{\"name\": value}}"))
    })?;
    if scope == SettingScope::Index
        && let (1, Some(inner)) = (object.len(), object.get("settings"))
    {
        return parse_update(scope, inner);
    }
    let mut update = Update::new();
    flatten("", object, &mut |name, value| {
        let bare =
            scope == SettingScope::Index && !name.starts_with("index.") && find(&name).is_none();
        let name = if bare { format!("index.{name}") } else { name };
        match update.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(SettingError::Shape(format!("[{name}] is given twice; leave one out"))),
        }
    })?;
    Ok(update)
}

/// Reads the body of `PUT _cluster/settings`.
pub fn parse_cluster_update(json: &Value) -> Result<ClusterUpdate, SettingError> {
    let mut update = ClusterUpdate::default();
    let object = json.as_object().into_iter().flatten();
    for (key, settings) in object {
        match key.as_str() {
            "persistent" => update.persistent = parse_update(SettingScope::Cluster, settings)?,
            "transient" => update.transient = parse_update(SettingScope::Cluster, settings)?,
            _ => return Err(SettingError::Shape(format!("unknown key \"{key}\"; {BODY}"))),
        }
    }
    if update == ClusterUpdate::default() {
        return Err(SettingError::Shape(format!("no settings to change; {BODY}")));
    }
    Ok(update)
}

const BODY: &str = "write {\"persistent\": {...}, \"transient\": {...}}, either or both";

const MAX_NAME_BYTES: usize = 1024;

fn flatten(
    prefix: &str,
    object: &Map<String, Value>,
    found: &mut impl FnMut(String, Option<String>) -> Result<(), SettingError>,
) -> Result<(), SettingError> {
    for (key, value) in object {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        // Each setting below an object is kept with the object's whole name.
        if name.len() > MAX_NAME_BYTES {
            let name = &name[..name.floor_char_boundary(40)];
            return Err(SettingError::Shape(format!(
                "[{name}...] is longer than the {MAX_NAME_BYTES} bytes that a setting's name may have"
            )));
        }
        match value {
            Value::Object(inner) => flatten(&name, inner, found)?,
            Value::Null => found(name, None)?,
            Value::Array(items) => {
                let texts: Result<Vec<String>, _> =
                    items.iter().map(|v| scalar(&name, v)).collect();
                found(name, Some(texts?.join(",")))?;
            }
            value => {
                let text = scalar(&name, value)?;
                found(name, Some(text))?;
            }
        }
    }
    Ok(())
}

fn scalar(name: &str, value: &Value) -> Result<String, SettingError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(yes) => Ok(yes.to_string()),
        _ => Err(SettingError::Shape(format!("[{name}] holds {value}; write a text or a number"))),
    }
}

/// Checks every name and value; answers with the same update in canonical text.
///
/// Fails on the first that is unknown, of another scope, not accepted, or static while `Running`.
pub fn check_update(
    scope: SettingScope,
    when: When,
    update: &Update,
) -> Result<Update, SettingError> {
    let mut checked = Update::new();
    for (name, value) in update {
        if let Some(prefix) = name.strip_suffix('*') {
            check_wildcard(scope, name, prefix, value.as_deref())?;
            checked.insert(name.clone(), None);
            continue;
        }
        let found = find(name);
        // No value of it is ever accepted, so that there is none to take back: clients that lift a block go on.
        let is_taken_back = scope == SettingScope::Index && value.is_none();
        if is_taken_back && found.is_none() && instead_of(name).is_some() {
            continue;
        }
        let setting = found.ok_or_else(|| unknown(name))?;
        if setting.scope != scope {
            return Err(misplaced(name, setting.scope));
        }
        if when == When::Running && !setting.dynamic {
            let what = match scope {
                SettingScope::Cluster => {
                    "give it in the configuration of each node and restart them"
                }
                SettingScope::Index => "give it when the index is created",
            };
            return Err(SettingError::Static { name: name.clone(), what });
        }
        let value = value.as_deref().map(|value| check(name, value)).transpose()?;
        checked.insert(name.clone(), value);
    }
    Ok(checked)
}

fn misplaced(name: &str, scope: SettingScope) -> SettingError {
    let (owner, endpoint) = match scope {
        SettingScope::Cluster => ("the cluster", "_cluster/settings"),
        SettingScope::Index => ("an index", "{index}/_settings"),
    };
    SettingError::Misplaced { name: name.to_owned(), owner, endpoint }
}

fn check_wildcard(
    scope: SettingScope,
    name: &str,
    prefix: &str,
    value: Option<&str>,
) -> Result<(), SettingError> {
    if let Some(value) = value {
        let why = "a name with * can only be taken back, with null".to_owned();
        return Err(SettingError::Value { name: name.to_owned(), value: value.to_owned(), why });
    }
    let whole_parts = prefix.is_empty() || prefix.ends_with('.');
    let stands_for = TABLE.iter().any(|setting| {
        let before_alias = setting.name.split_once('*').map(|(before, _)| before);
        setting.scope == scope
            && setting.dynamic
            && (setting.name.starts_with(prefix)
                || before_alias.is_some_and(|before| prefix.starts_with(before)))
    });
    let is_taken_back = || scope == SettingScope::Index && is_refused_below(prefix);
    if whole_parts && (stands_for || is_taken_back()) { Ok(()) } else { Err(unknown(name)) }
}

/// Applies a checked update. Answers with the names whose value changed, sorted.
pub fn apply(map: &mut SettingsMap, update: &Update) -> Vec<String> {
    let before = map.clone();
    // Wildcards first, so that settings given beside one stay; as in the field, so do those that cannot change.
    let is_fixed = |name: &str| find(name).is_some_and(|setting| !setting.dynamic);
    for prefix in update.keys().filter_map(|name| name.strip_suffix('*')) {
        map.retain(|name, _| !name.starts_with(prefix) || is_fixed(name));
    }
    for (name, value) in update {
        match value {
            Some(value) => drop(map.insert(name.clone(), value.clone())),
            None => drop(map.remove(name)),
        }
    }
    let names: BTreeSet<&String> = before.keys().chain(map.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != map.get(*name)).cloned().collect()
}

/// Whether settings go together: those of a remote cluster belong to its mode, and a node that may still be given
/// copies must not have them taken away. Fails if they do not.
pub fn check_together(settings: &Settings) -> Result<(), SettingError> {
    if let Some(error) = settings.remotes_at_odds() {
        return Err(error.clone());
    }
    let Watermarks { low, high } = settings.disk_watermarks();
    let why = match (low, high) {
        (Watermark::Used(low), Watermark::Used(high)) if low <= high => return Ok(()),
        (Watermark::Free(low), Watermark::Free(high)) if low >= high => return Ok(()),
        (Watermark::Used(_), Watermark::Used(_)) | (Watermark::Free(_), Watermark::Free(_)) => {
            format!("it is above [{HIGH}], which is [{high}]")
        }
        _ => format!("[{HIGH}] is [{high}]: write both as shares, or both as bytes"),
    };
    Err(SettingError::Value { name: LOW.to_owned(), value: low.to_string(), why })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(pairs: &[(&str, Option<&str>)]) -> Update {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect()
    }

    #[test]
    fn a_name_is_not_kept_as_often_as_there_are_settings_below_it() {
        let json = json!({"a".repeat(1000): {"b": {"c".repeat(30): 1}}});
        let said = parse_update(SettingScope::Cluster, &json).unwrap_err().to_string();
        assert!(said.contains("longer than the 1024 bytes") && said.len() < 200, "{said}");
    }

    #[test]
    fn reads_nested_flat_and_mixed() {
        let expected = given(&[
            ("cluster.remote.eu.seeds", Some("a:1,b:2")),
            ("indices.recovery.max_bytes_per_sec", Some("80mb")),
            ("indices.recovery.max_concurrent_file_chunks", Some("4")),
            ("transport.compress", None),
        ]);
        for json in [
            json!({
                "indices": {"recovery": {"max_bytes_per_sec": "80mb", "max_concurrent_file_chunks": 4}},
                "transport": {"compress": null},
                "cluster": {"remote": {"eu": {"seeds": ["a:1", "b:2"]}}},
            }),
            json!({
                "indices.recovery.max_bytes_per_sec": "80mb",
                "indices": {"recovery.max_concurrent_file_chunks": "4"},
                "transport.compress": null,
                "cluster.remote": {"eu.seeds": "a:1,b:2"},
            }),
        ] {
            assert_eq!(parse_update(SettingScope::Cluster, &json).as_ref(), Ok(&expected));
        }
    }

    #[test]
    fn reads_index_settings_with_and_without_prefix() {
        let expected = given(&[
            ("index.number_of_replicas", Some("2")),
            ("index.translog.durability", Some("async")),
        ]);
        for json in [
            json!({"number_of_replicas": 2, "translog": {"durability": "async"}}),
            json!({"index": {"number_of_replicas": 2}, "index.translog.durability": "async"}),
            json!({"settings": {"index": {"number_of_replicas": "2"}, "translog.durability": "async"}}),
        ] {
            assert_eq!(parse_update(SettingScope::Index, &json).as_ref(), Ok(&expected));
        }
        // A setting of the cluster keeps its name, so that the refusal can say where it belongs.
        let stray =
            parse_update(SettingScope::Index, &json!({"transport.compress": true})).unwrap();
        assert_eq!(
            check_update(SettingScope::Index, When::Running, &stray).unwrap_err().to_string(),
            "setting [transport.compress] belongs to the cluster: send it to _cluster/settings"
        );
    }

    #[test]
    fn refuses_what_is_no_settings() {
        let said =
            |json: Value| parse_update(SettingScope::Cluster, &json).unwrap_err().to_string();
        assert!(said(json!([1])).contains("is no JSON object"));
        assert!(said(json!({"a": [{"b": 1}]})).contains("write a text or a number"));
        assert!(said(json!({"a.b": 1, "a": {"b": 2}})).contains("[a.b] is given twice"));
        let said = |json: Value| parse_cluster_update(&json).unwrap_err().to_string();
        assert!(said(json!({"persistant": {}})).contains("unknown key \"persistant\""));
        assert!(said(json!({})).contains("no settings to change"));
    }

    #[test]
    fn refuses_static_settings_while_running() {
        let update = given(&[("index.number_of_shards", Some("3"))]);
        assert!(check_update(SettingScope::Index, When::Start, &update).is_ok());
        assert_eq!(
            check_update(SettingScope::Index, When::Running, &update).unwrap_err().to_string(),
            "setting [index.number_of_shards] cannot change while running: \
             give it when the index is created"
        );
        let update = given(&[("transport.connections_per_node.recovery", None)]);
        assert!(check_update(SettingScope::Cluster, When::Running, &update).is_err());
    }

    #[test]
    fn what_is_never_accepted_can_be_taken_back() {
        let update = given(&[
            ("index.blocks.read_only_allow_delete", None),
            ("index.number_of_replicas", Some("2")),
            ("index.search.slowlog.threshold.query.warn", None),
        ]);
        let checked = check_update(SettingScope::Index, When::Running, &update).unwrap();
        assert_eq!(checked, given(&[("index.number_of_replicas", Some("2"))]));
        // So can all below a part of such names, wherever the table cuts them off.
        for name in ["index.indexing.*", "index.blocks.*", "index.search.slowlog.threshold.*"] {
            let update = given(&[(name, None)]);
            let checked = check_update(SettingScope::Index, When::Running, &update).unwrap();
            assert!(apply(&mut SettingsMap::new(), &checked).is_empty(), "{name}");
            assert!(check_update(SettingScope::Cluster, When::Running, &update).is_err(), "{name}");
        }
        for (name, value) in [
            ("index.blocks.read_only_allow_delete", Some("true")),
            ("index.nothing", None),
            ("index.nothing.*", None),
        ] {
            let update = given(&[(name, value)]);
            assert!(check_update(SettingScope::Index, When::Running, &update).is_err(), "{name}");
        }
    }

    #[test]
    fn applies_and_takes_back() {
        let mut map = SettingsMap::new();
        let update = given(&[
            ("indices.recovery.chunk_size", Some("1024kb")),
            ("indices.recovery.max_bytes_per_sec", Some("0")),
            ("transport.compress", Some("true")),
        ]);
        let update = check_update(SettingScope::Cluster, When::Running, &update).unwrap();
        assert_eq!(apply(&mut map, &update).len(), 3);
        assert_eq!(map["indices.recovery.max_bytes_per_sec"], "-1");
        assert!(apply(&mut map, &update).is_empty(), "the same again changes nothing");

        let update = given(&[
            ("indices.recovery.*", None),
            ("indices.recovery.chunk_size", Some("2mb")),
            ("transport.compress", None),
        ]);
        let update = check_update(SettingScope::Cluster, When::Running, &update).unwrap();
        assert_eq!(apply(&mut map, &update).len(), 3);
        assert_eq!(
            map.into_iter().collect::<Vec<_>>(),
            [("indices.recovery.chunk_size".to_owned(), "2mb".to_owned())]
        );
    }

    #[test]
    fn wildcards_leave_what_cannot_change() {
        let fixed = [("index.codec", "best_compression"), ("index.number_of_routing_shards", "6")];
        let fixed = SettingsMap::from(fixed.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let mut map = fixed.clone();
        map.insert("index.priority".to_owned(), "5".to_owned());
        assert_eq!(apply(&mut map, &given(&[("index.*", None)])), ["index.priority"]);
        assert_eq!(map, fixed);
    }

    #[test]
    fn wildcards_only_take_back_what_exists() {
        let check = |name: &str, value| {
            check_update(SettingScope::Cluster, When::Running, &given(&[(name, value)]))
        };
        for name in ["*", "indices.*", "cluster.remote.*", "cluster.remote.eu.*"] {
            assert!(check(name, None).is_ok(), "{name}");
        }
        for name in ["index.*", "indices.rec*", "nothing.*"] {
            assert!(check(name, None).is_err(), "{name}");
        }
        assert!(check("indices.*", Some("1")).is_err());
    }
}
