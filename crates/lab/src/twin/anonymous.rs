//! An inventory whose names are hashed: sizes and places stay, and nobody can tell whose they are.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryNode};
use record::names::matches;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::cluster_settings::LIMIT;
use super::filters::{OR, TIER_PREFERENCE, is_by_attribute, is_filter, names, values_of};
use super::indices::{PARTIAL, REMOTE_STORE, STORE_TYPE};

/// A name in place of another: of the same kind, the same for the same name and salt.
pub fn anonymous_name(kind: &str, name: &str, salt: u64) -> String {
    format!("{kind}-{:012x}", xxh3_64_with_seed(format!("{kind} {name}").as_bytes(), salt) >> 16)
}

/// The same cluster with other names of itself, its nodes, their attributes' values, and its indices. Without the salt,
/// which is kept nowhere, guessing a name does not help.
pub fn anonymous(seen: &Inventory, salt: u64) -> Inventory {
    let mut hidden = Inventory { names_are_hashed: true, ..seen.clone() };
    hidden.cluster.name = anonymous_name("cluster", &seen.cluster.name, salt);
    for node in &mut hidden.nodes {
        node.name = anonymous_name("node", &node.name, salt);
        for address in &mut node.addresses {
            *address = anonymous_name("node", address, salt);
        }
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
    hidden.documents_per_s = seen.documents_per_s.as_ref().map(|rates| {
        let rates = rates.iter();
        rates.map(|(index, rate)| (anonymous_name("index", index, salt), *rate)).collect()
    });
    // Filters name nodes, addresses and attributes: of those that fit some nodes these stay, hashed as they are there.
    let hashed = |filter: &str, list: &str| {
        if filter.ends_with("._id") {
            return list.to_owned();
        }
        let kind = if is_by_attribute(filter) { "zone" } else { "node" };
        let one = |pattern: String| {
            let fits = |node: &&InventoryNode| {
                values_of(node, filter).into_iter().any(|value| matches(&pattern, value))
            };
            let fitting = seen.nodes.iter().filter(fits);
            let mut fitting: BTreeSet<&str> = match kind {
                "zone" => fitting.flat_map(|node| values_of(node, filter)).collect(),
                _ => fitting.map(|node| node.name.as_str()).collect(),
            };
            if fitting.is_empty() {
                fitting.insert(&pattern);
            }
            let hashed = fitting.into_iter().map(|name| anonymous_name(kind, name, salt));
            hashed.collect::<Vec<_>>().join(OR)
        };
        names(list).into_iter().map(one).collect::<Vec<_>>().join(",")
    };
    let indices = std::mem::take(&mut hidden.indices);
    hidden.indices = indices
        .into_iter()
        .map(|(index, settings)| {
            let kept = [
                "index.priority",
                "index.unassigned.node_left.delayed_timeout",
                "index.auto_expand_replicas",
                STORE_TYPE,
                PARTIAL,
                REMOTE_STORE,
                TIER_PREFERENCE,
                LIMIT,
            ];
            let one = |(name, value): (String, String)| match is_filter(&name) {
                true => Some((name.clone(), hashed(&name, &value))),
                false => kept.contains(&name.as_str()).then_some((name, value)),
            };
            let kept: BTreeMap<String, String> = settings.into_iter().filter_map(one).collect();
            (anonymous_name("index", &index, salt), kept)
        })
        .collect();
    if let Some(settings) = &mut hidden.settings {
        let kinds = ["exclude.", "include.", "require."];
        settings.retain(|name, _| is_filter(name) || !kinds.iter().any(|kind| name.contains(kind)));
        for (name, setting) in settings.iter_mut().filter(|(name, _)| is_filter(name)) {
            setting.value = hashed(name, &setting.value);
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
