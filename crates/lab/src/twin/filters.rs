//! Filters on nodes, of the cluster and of an index, as virtual nodes can have them: lists of names. The tier that an
//! index prefers becomes one, too.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::InventoryNode;
use record::names::matches;
use toml::{Table, Value};

pub(super) const OF_THE_CLUSTER: &str = "cluster.routing.allocation.";
pub(super) const OF_AN_INDEX: &str = "index.routing.allocation.";
const EXCLUDE: &str = "exclude";
const INCLUDE: &str = "include";
const REQUIRE: &str = "require";
const KINDS: [&str; 3] = [EXCLUDE, INCLUDE, REQUIRE];
const NAME: &str = "_name";
const ID: &str = "_id";
/// What goes by a node's host or IP address; many nodes are called by theirs.
const ADDRESSES: [&str; 4] = ["_host", "_ip", "_host_ip", "_publish_ip"];
pub(super) const TIER_PREFERENCE: &str = "index.routing.allocation.include._tier_preference";
/// The role of nodes that are in every tier.
const EVERY_TIER: &str = "data";
/// What stands between names of which one is enough, where they stand for one pattern that is hidden: with commas
/// between them all would be required. No name has it.
pub(super) const OR: &str = "\u{1f}";

/// The names of a list, as an API writes one.
pub(super) fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(|name| name.trim_matches(['[', ']', '"', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The kind of a filter and the attribute that it goes by; none for a setting that is no filter.
fn parts(setting: &str) -> Option<(&str, &str)> {
    let mut of = [OF_THE_CLUSTER, OF_AN_INDEX].into_iter();
    let (kind, by) = of.find_map(|of| setting.strip_prefix(of))?.split_once('.')?;
    (KINDS.contains(&kind) && setting != TIER_PREFERENCE).then_some((kind, by))
}

/// Whether it is a filter by names, addresses or attributes.
pub(super) fn is_filter(setting: &str) -> bool {
    parts(setting).is_some()
}

/// Whether it goes by an attribute of nodes.
pub(super) fn is_by_attribute(setting: &str) -> bool {
    parts(setting).is_some_and(|(_, by)| !by.starts_with('_'))
}

/// What a node has of what a filter goes by.
pub(super) fn values_of<'n>(node: &'n InventoryNode, filter: &str) -> Vec<&'n str> {
    match parts(filter).map_or("", |parts| parts.1) {
        ID => vec![node.id.as_str()],
        NAME => vec![node.name.as_str()],
        by if ADDRESSES.contains(&by) => {
            std::iter::once(&node.name).chain(&node.addresses).map(String::as_str).collect()
        }
        attribute => node.attributes.get(attribute).map(String::as_str).into_iter().collect(),
    }
}

/// The filters of the cluster or of an index among settings, by the names of nodes that are excluded or included. A
/// name or an address that fits no node is told. It is harmless in what is excluded, and so is a name elsewhere; where
/// nodes do not tell their addresses nobody knows which these would let pass, so that the filter is not taken.
pub(super) fn filters(
    of: &str,
    all: &[(&str, &str)],
    nodes: &[&InventoryNode],
    mut tell: impl FnMut(String),
) -> Table {
    let mut filters = Table::new();
    let tell_addresses = nodes.iter().all(|node| !node.addresses.is_empty());
    for kind in KINDS {
        let mut named: Option<BTreeSet<&str>> = None;
        let mut is_known = true;
        for (setting, value) in all.iter().filter(|(setting, _)| setting.starts_with(of)) {
            let patterns = names(value);
            let Some((_, by)) = parts(setting).filter(|parts| parts.0 == kind) else { continue };
            if patterns.is_empty() {
                continue;
            }
            let fits = |node: &InventoryNode, pattern: &str| {
                let fits = |value: &str| pattern.split(OR).any(|one| matches(one, value));
                values_of(node, setting).into_iter().any(fits)
            };
            // All of a list is required, but for addresses of the network (`DiscoveryNodeFilters` of Elasticsearch).
            let needs_all = kind == REQUIRE && !(ADDRESSES.contains(&by) && by.ends_with("_ip"));
            let passes = |node: &&&InventoryNode| match needs_all {
                true => patterns.iter().all(|pattern| fits(node, pattern)),
                false => patterns.iter().any(|pattern| fits(node, pattern)),
            };
            let fitting: BTreeSet<&str> =
                nodes.iter().filter(passes).map(|node| node.name.as_str()).collect();
            let is_unknown = |pattern: &&str| !nodes.iter().any(|node| fits(node, pattern));
            let unknown: Vec<&str> =
                patterns.iter().map(String::as_str).filter(is_unknown).collect();
            if !unknown.is_empty() && !is_by_attribute(setting) {
                let unknown = unknown.join(",");
                tell(format!("{setting} = {unknown}: no node of the twin is called so"));
                is_known &= !ADDRESSES.contains(&by) || tell_addresses;
            }
            named = Some(match named {
                Some(before) if kind == REQUIRE => before.intersection(&fitting).copied().collect(),
                Some(before) => before.union(&fitting).copied().collect(),
                None => fitting,
            });
        }
        let Some(mut named) = named else { continue };
        // All of a list would be required: nodes that have what is required are included by their names.
        let filter = format!("{of}{}.{NAME}", if kind == REQUIRE { INCLUDE } else { kind });
        if kind == REQUIRE
            && let Some(included) = filters.get(&filter).and_then(Value::as_str)
        {
            named.retain(|name| included.split(',').any(|one| one == *name));
        }
        if !named.is_empty() && (is_known || kind == EXCLUDE) {
            filters.insert(filter, joined(&named));
        } else if kind != EXCLUDE {
            tell(format!("{of}{kind}: copies may be on any node of the twin"));
        }
    }
    filters
}

/// The filters of an index with these settings; which nodes take its copies and what it prefers of tiers is a list of
/// nodes that are included.
pub(super) fn of_index(
    settings: &BTreeMap<String, String>,
    nodes: &[&InventoryNode],
    takes: impl Fn(&InventoryNode) -> bool,
    mut tell: impl FnMut(String),
) -> Table {
    let all: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut found = filters(OF_AN_INDEX, &all, nodes, &mut tell);
    let preferred = settings.get(TIER_PREFERENCE).map(|tiers| names(tiers)).unwrap_or_default();
    let taking: Vec<&InventoryNode> = nodes.iter().copied().filter(|node| takes(node)).collect();
    if preferred.is_empty() && taking.len() == nodes.len() {
        return found;
    }
    let include = format!("{OF_AN_INDEX}{INCLUDE}.{NAME}");
    let included = found.get(&include).and_then(Value::as_str).map(names);
    let mut tier = match preferred.is_empty() {
        true => taking.iter().map(|node| node.name.as_str()).collect(),
        false => nodes_of_tier(&preferred, &taking),
    };
    tier.retain(|name| included.as_ref().is_none_or(|names| names.iter().any(|one| one == name)));
    if tier.is_empty() && !preferred.is_empty() {
        let preferred = preferred.join(",");
        tell(format!(
            "{TIER_PREFERENCE} = {preferred}: no node of the twin says that it is there, and copies may be on any"
        ));
    } else if !tier.is_empty() && tier.len() < nodes.len() {
        found.insert(include, joined(&tier));
    }
    found
}

/// The nodes of the first of these tiers that has some (`DataTierAllocationDecider` of Elasticsearch). The twin stays
/// with it, while the field goes on to the next tier when the first one has no node left.
fn nodes_of_tier<'n>(preferred: &[String], nodes: &[&'n InventoryNode]) -> BTreeSet<&'n str> {
    let of = |tier: &String| {
        let is_there = |role: &String| role == tier || role == EVERY_TIER;
        let there = nodes.iter().filter(|node| node.roles.iter().any(is_there));
        there.map(|node| node.name.as_str()).collect::<BTreeSet<_>>()
    };
    preferred.iter().map(of).find(|nodes| !nodes.is_empty()).unwrap_or_default()
}

fn joined(names: &BTreeSet<&str>) -> Value {
    names.iter().copied().collect::<Vec<_>>().join(",").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, roles: &[&str]) -> InventoryNode {
        let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
        let boxes = roles.iter().take(1).map(|role| ("box".to_owned(), role.replace("data_", "")));
        InventoryNode {
            id: format!("id-of-{name}"),
            name: name.to_owned(),
            attributes: boxes.collect(),
            roles,
            ..InventoryNode::default()
        }
    }

    fn plain(found: Table, of: &str) -> Vec<(String, String)> {
        let plain = |(name, value): (String, Value)| {
            let name = name.strip_prefix(of).unwrap_or(&name).to_owned();
            (name, value.as_str().unwrap_or_default().to_owned())
        };
        found.into_iter().map(plain).collect()
    }

    /// The filters of a cluster with the nodes `hot-1`, `hot-2` and `10.0.0.3`, and what is told of them.
    fn of(set: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
        let nodes = ["hot-1", "hot-2", "10.0.0.3"].map(|name| node(name, &["data_hot"]));
        let full =
            |(name, value): &(&str, &str)| (format!("{OF_THE_CLUSTER}{name}"), (*value).to_owned());
        let set: Vec<(String, String)> = set.iter().map(full).collect();
        assert!(set.iter().all(|(name, _)| is_filter(name)));
        let set: Vec<(&str, &str)> =
            set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut told = Vec::new();
        let nodes: Vec<&InventoryNode> = nodes.iter().collect();
        let found = filters(OF_THE_CLUSTER, &set, &nodes, |one| told.push(one));
        (plain(found, OF_THE_CLUSTER), told)
    }

    /// The filters of an index where two nodes are hot and two are warm, and what is told of them.
    fn of_tiers(set: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
        let hot = ["hot-1", "hot-2"].map(|name| node(name, &["data_hot", "data_content"]));
        let warm = ["warm-1", "warm-2"].map(|name| node(name, &["data_warm"]));
        let nodes: Vec<&InventoryNode> = hot.iter().chain(&warm).collect();
        let full =
            |(name, value): &(&str, &str)| (format!("{OF_AN_INDEX}{name}"), (*value).to_owned());
        let mut told = Vec::new();
        let set = set.iter().map(full).collect();
        let found = of_index(&set, &nodes, |_| true, |one| told.push(one));
        (plain(found, OF_AN_INDEX), told)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn patterns_and_addresses_become_the_names_that_they_fit() {
        let (found, told) = of(&[("exclude._name", "hot-*"), ("exclude._ip", "10.*")]);
        assert_eq!(found, [pair("exclude._name", "10.0.0.3,hot-1,hot-2")]);
        assert!(told.is_empty(), "{told:?}");
        let (found, _) = of(&[("require._name", "hot-*"), ("require._host", "*-1")]);
        assert_eq!(found, [pair("include._name", "hot-1")], "all that is required");
        let (found, _) = of(&[("require._name", "hot-*"), ("include._name", "*-2,10.*")]);
        assert_eq!(found, [pair("include._name", "hot-2")], "of what is included");
        let (found, told) = of(&[("require._name", "hot-1"), ("include._name", "hot-2")]);
        assert_eq!((found, told.len()), (vec![pair("include._name", "hot-2")], 1), "{told:?}");
        assert_eq!(of(&[("exclude._name", "[]"), ("include._ip", "")]), (vec![], vec![]));
        let (found, _) = of(&[("exclude._id", "id-of-hot-2")]);
        assert_eq!(found, [pair("exclude._name", "hot-2")]);
    }

    #[test]
    fn nodes_are_known_by_their_addresses() {
        let nodes = [("a", "10.0.0.1"), ("b", "10.0.0.2")].map(|(name, ip)| InventoryNode {
            addresses: vec![format!("{name}.example"), ip.to_owned()],
            ..node(name, &["data"])
        });
        let nodes: Vec<&InventoryNode> = nodes.iter().collect();
        let of = |by: &str, value: &str| {
            let (filter, mut told) = (format!("{OF_THE_CLUSTER}{by}"), 0);
            let all = [(filter.as_str(), value)];
            let found = filters(OF_THE_CLUSTER, &all, &nodes, |_| told += 1);
            (plain(found, OF_THE_CLUSTER), told)
        };
        assert_eq!(of("exclude._ip", "10.0.0.2"), (vec![pair("exclude._name", "b")], 0));
        assert_eq!(of("require._host", "a.*,10.*"), (vec![pair("include._name", "a")], 0));
        let gone = of("include._ip", "10.0.0.1,10.0.0.9");
        assert_eq!(gone, (vec![pair("include._name", "a")], 1), "the others are known");
    }

    #[test]
    fn what_fits_no_node_is_told_and_not_taken() {
        let (found, told) = of(&[("exclude._name", "gone,hot-1"), ("exclude._ip", "10.9.9.9")]);
        assert_eq!(found, [pair("exclude._name", "hot-1")]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("exclude._ip = 10.9.9.9"), "{told:?}");
        // Nodes that nobody can find by their addresses might be the only ones that take copies.
        let (found, told) = of(&[("include._name", "hot-1"), ("include._ip", "10.9.9.9")]);
        assert_eq!((found, told.len()), (vec![], 2), "{told:?}");
        let (found, told) = of(&[("require._name", "warm-*")]);
        assert_eq!((found, told.len()), (vec![], 2), "{told:?}");
        let (found, _) = of(&[("include._name", "hot-2,gone")]);
        assert_eq!(found, [pair("include._name", "hot-2")]);
    }

    #[test]
    fn attributes_become_the_nodes_that_have_them() {
        let (found, told) = of_tiers(&[("include.box", "warm,frozen"), ("exclude.box", "hot")]);
        assert_eq!(
            found,
            [pair("exclude._name", "hot-1,hot-2"), pair("include._name", "warm-1,warm-2")]
        );
        assert!(told.is_empty(), "one of two values is enough: {told:?}");
        for nowhere in ["cold", "hot,warm"] {
            let (found, told) = of_tiers(&[("require.box", nowhere)]);
            assert_eq!((found, told.len()), (vec![], 1), "{told:?}");
        }
        let (found, _) = of_tiers(&[("require.box", "w*,*m")]);
        assert_eq!(found, [pair("include._name", "warm-1,warm-2")], "all that is required");
        let (found, _) = of(&[("require._ip", "10.0.0.3,hot-2")]);
        assert_eq!(found, [pair("include._name", "10.0.0.3,hot-2")], "one address is enough");
        let (_, told) = of(&[("exclude._tier", "data_warm")]);
        assert!(told[0].starts_with("cluster.routing.allocation.exclude._tier"), "{told:?}");
    }

    #[test]
    fn an_index_is_in_the_first_tier_that_has_a_node() {
        let preference = "include._tier_preference";
        let (found, told) = of_tiers(&[(preference, "data_cold,data_warm,data_hot")]);
        assert_eq!((found, told.len()), (vec![pair("include._name", "warm-1,warm-2")], 0));
        let (found, _) = of_tiers(&[(preference, "data_content"), ("include.box", "hot,warm")]);
        assert_eq!(found, [pair("include._name", "hot-1,hot-2")], "both have to be so");
        let (found, told) = of_tiers(&[(preference, "data_cold")]);
        assert_eq!((found, told.len()), (vec![], 1), "{told:?}");
        // A node of the role "data" is in every tier.
        let nodes = [node("a", &["data"]), node("b", &["data_hot"]), node("c", &["master"])];
        let of = |tier: &str| nodes_of_tier(&[tier.to_owned()], &nodes.iter().collect::<Vec<_>>());
        assert_eq!([of("data_hot").len(), of("data_cold").len()], [2, 1]);
        assert!(!is_filter(TIER_PREFERENCE) && !is_filter("index.routing.allocation.enable"));
    }
}
