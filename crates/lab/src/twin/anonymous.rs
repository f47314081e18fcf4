//! An inventory whose names are hashed: sizes and places stay, and nobody can tell whose they are.

use std::collections::BTreeMap;

use record::inventory::Inventory;
use record::names::matches;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::filters::{is_filter, names};

/// A name in place of another: of the same kind, the same for the same name and salt.
pub fn anonymous_name(kind: &str, name: &str, salt: u64) -> String {
    format!("{kind}-{:012x}", xxh3_64_with_seed(format!("{kind} {name}").as_bytes(), salt) >> 16)
}

/// The same cluster with other names of itself, its nodes, their attributes' values, and its indices. Without the salt,
/// which is kept nowhere, guessing a name does not help.
pub fn anonymous(seen: &Inventory, salt: u64) -> Inventory {
    let mut hidden = seen.clone();
    hidden.cluster.name = anonymous_name("cluster", &seen.cluster.name, salt);
    for node in &mut hidden.nodes {
        node.name = anonymous_name("node", &node.name, salt);
        node.attributes = node
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), anonymous_name("zone", value, salt)))
            .collect();
    }
    for copy in &mut hidden.copies {
        copy.index = anonymous_name("index", &copy.index, salt);
        copy.node = copy.node.as_ref().map(|node| anonymous_name("node", node, salt));
    }
    let indices = std::mem::take(&mut hidden.indices);
    hidden.indices = indices
        .into_iter()
        .map(|(index, settings)| {
            let kept = [
                "index.priority",
                "index.unassigned.node_left.delayed_timeout",
                "index.auto_expand_replicas",
            ];
            let kept: BTreeMap<String, String> =
                settings.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect();
            (anonymous_name("index", &index, salt), kept)
        })
        .collect();
    // Filters name nodes and addresses: of those that fit some nodes' names these stay, hashed as the nodes are.
    if let Some(settings) = &mut hidden.settings {
        let kinds = ["exclude.", "include.", "require."];
        settings.retain(|name, _| is_filter(name) || !kinds.iter().any(|kind| name.contains(kind)));
        for (_, setting) in settings.iter_mut().filter(|(name, _)| is_filter(name)) {
            let fitting = |pattern: String| {
                let called = seen.nodes.iter().map(|node| node.name.as_str());
                let mut fitting: Vec<&str> =
                    called.filter(|name| matches(&pattern, name)).collect();
                if fitting.is_empty() {
                    fitting.push(&pattern);
                }
                let hashed = fitting.into_iter().map(|name| anonymous_name("node", name, salt));
                hashed.collect::<Vec<_>>().join(",")
            };
            let hashed: Vec<String> = names(&setting.value).into_iter().map(fitting).collect();
            setting.value = hashed.join(",");
        }
        let forced = settings.iter_mut().filter(|(name, _)| name.contains("awareness.force."));
        for (_, setting) in forced {
            let zones = setting
                .value
                .split(',')
                .map(|zone| anonymous_name("zone", zone.trim_matches(['[', ']', '"', ' ']), salt));
            setting.value = zones.collect::<Vec<_>>().join(",");
        }
    }
    hidden
}
