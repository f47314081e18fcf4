//! Settings as JSON: nested or flat. Values are texts, as in the field, and lists of addresses arrays.

use serde_json::{Map, Value, json};

use super::table::{SettingScope, TABLE, find};
use super::{Kind, SettingsMap};

/// One object, full names as keys: `?flat_settings`.
pub fn flat(map: &SettingsMap) -> Value {
    map.iter().map(|(name, text)| (name.clone(), value(name, text))).collect()
}

/// An object for each part of a name.
pub fn nested(map: &SettingsMap) -> Value {
    let mut root = Map::new();
    for (name, text) in map {
        let mut parts: Vec<&str> = name.split('.').collect();
        let last = parts.pop().expect("a split text has a last part");
        let mut object = &mut root;
        for part in parts {
            let below = object.entry(part).or_insert_with(|| json!({}));
            object = below.as_object_mut().expect("no setting's name is the beginning of another");
        }
        object.insert(last.to_owned(), value(name, text));
    }
    Value::Object(root)
}

fn value(name: &str, text: &str) -> Value {
    match find(name).map(|setting| setting.kind) {
        Some(Kind::Addresses) => text.split(',').filter(|part| !part.is_empty()).collect(),
        _ => json!(text),
    }
}

/// The answer of `GET _cluster/settings`. `defaults` is there with `include_defaults`, and leaves out
/// what was given, as in the field.
pub fn cluster_settings(
    persistent: &SettingsMap,
    transient: &SettingsMap,
    include_defaults: bool,
    flat_settings: bool,
) -> Value {
    let render = if flat_settings { flat } else { nested };
    let mut answer = json!({"persistent": render(persistent), "transient": render(transient)});
    if include_defaults {
        answer["defaults"] = render(&defaults(SettingScope::Cluster, &[persistent, transient]));
    }
    answer
}

/// The inside of the answer of `GET {index}/_settings`, for one index: `settings`, and `defaults` where there are any.
/// `given` also holds what the engine adds (`index.uuid`, ...).
pub fn index_settings(
    given: &SettingsMap,
    defaults: Option<&SettingsMap>,
    flat_settings: bool,
) -> Value {
    let render = if flat_settings { flat } else { nested };
    let mut answer = json!({"settings": render(given)});
    if let Some(defaults) = defaults {
        answer["defaults"] = render(defaults);
    }
    answer
}

/// The defaults of the settings that an index was not given.
pub fn index_defaults(given: &SettingsMap) -> SettingsMap {
    defaults(SettingScope::Index, &[given])
}

fn defaults(scope: SettingScope, given: &[&SettingsMap]) -> SettingsMap {
    TABLE
        .iter()
        .filter(|setting| setting.scope == scope && !setting.is_pattern())
        .filter(|setting| !given.iter().any(|map| map.contains_key(setting.name)))
        .map(|setting| (setting.name.to_owned(), setting.default.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> SettingsMap {
        [
            ("cluster.remote.eu.seeds", "10.0.0.1:9300,10.0.0.2:9300"),
            ("indices.recovery.max_bytes_per_sec", "80mb"),
            ("indices.recovery.chunk_size", "1mb"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into()
    }

    #[test]
    fn renders_flat_and_nested() {
        assert_eq!(
            flat(&example()),
            json!({
                "cluster.remote.eu.seeds": ["10.0.0.1:9300", "10.0.0.2:9300"],
                "indices.recovery.chunk_size": "1mb",
                "indices.recovery.max_bytes_per_sec": "80mb",
            })
        );
        assert_eq!(
            nested(&example()),
            json!({
                "cluster": {"remote": {"eu": {"seeds": ["10.0.0.1:9300", "10.0.0.2:9300"]}}},
                "indices": {"recovery": {"chunk_size": "1mb", "max_bytes_per_sec": "80mb"}},
            })
        );
    }

    #[test]
    fn defaults_leave_out_what_was_given() {
        let empty = SettingsMap::new();
        let answer = cluster_settings(&example(), &empty, true, true);
        let defaults = answer["defaults"].as_object().unwrap();
        assert_eq!(defaults["ccr.indices.recovery.max_bytes_per_sec"], "40mb");
        assert_eq!(defaults["narrows.recovery.scheduler"], "file_window");
        assert!(!defaults.contains_key("indices.recovery.chunk_size"));
        assert!(!defaults.keys().any(|name| name.contains('*') || name.starts_with("index.")));

        let answer = cluster_settings(&empty, &empty, true, false);
        assert_eq!(answer["defaults"]["transport"]["connections_per_node"]["recovery"], "2");
        assert_eq!(cluster_settings(&empty, &empty, false, false).get("defaults"), None);

        let replicas = [("index.number_of_replicas".to_owned(), "0".to_owned())].into();
        let defaults = index_defaults(&replicas);
        assert!(!defaults.contains_key("index.number_of_replicas"));
        let answer = index_settings(&replicas, Some(&defaults), false);
        assert_eq!(answer["settings"]["index"]["number_of_replicas"], "0");
        assert_eq!(answer["defaults"]["index"]["translog"]["durability"], "request");
    }
}
