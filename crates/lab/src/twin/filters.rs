//! Filters of the cluster on nodes, as virtual nodes can have them: lists of names.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::InventoryNode;
use record::names::matches;
use record::observation::Setting;
use toml::Table;

const ALLOCATION: &str = "cluster.routing.allocation.";
const EXCLUDE: &str = "exclude";
const REQUIRE: &str = "require";
const KINDS: [&str; 3] = [EXCLUDE, "include", REQUIRE];
const NAME: &str = "_name";
/// What a filter goes by: nodes of an inventory tell no address, and many are called by theirs.
const BY: [&str; 3] = [NAME, "_host", "_ip"];

/// The names of a list, as an API writes one.
pub(super) fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(|name| name.trim_matches(['[', ']', '"', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether it is a filter by names or addresses.
pub(super) fn is_filter(setting: &str) -> bool {
    let parts = setting.strip_prefix(ALLOCATION).and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(kind, by)| KINDS.contains(&kind) && BY.contains(&by))
}

/// The filters that are set, by the names of nodes. What fits no node's name is told. It is harmless in one by name and
/// in what is excluded; of others nobody knows which nodes they would let pass, so that they are not taken.
pub(super) fn filters(
    all: &BTreeMap<String, Setting>,
    nodes: &[&InventoryNode],
    left_out: &mut Vec<String>,
) -> Table {
    let mut filters = Table::new();
    for kind in KINDS {
        let mut named: Option<BTreeSet<&str>> = None;
        let mut is_known = true;
        for by in BY {
            let setting = format!("{ALLOCATION}{kind}.{by}");
            let patterns = all.get(&setting).map(|one| names(&one.value)).unwrap_or_default();
            if patterns.is_empty() {
                continue;
            }
            let called = || nodes.iter().map(|node| node.name.as_str());
            let fits = |name: &&str| patterns.iter().any(|pattern| matches(pattern, name));
            let fitting: BTreeSet<&str> = called().filter(fits).collect();
            let is_unknown =
                |pattern: &&String| !called().any(|name| matches(pattern.as_str(), name));
            let unknown: Vec<&str> =
                patterns.iter().filter(is_unknown).map(String::as_str).collect();
            if !unknown.is_empty() {
                left_out.push(format!(
                    "{setting} = {}: no node of the twin is called so",
                    unknown.join(",")
                ));
                is_known &= by == NAME;
            }
            named = Some(match named {
                Some(before) if kind == REQUIRE => before.intersection(&fitting).copied().collect(),
                Some(before) => before.union(&fitting).copied().collect(),
                None => fitting,
            });
        }
        let Some(named) = named else { continue };
        if !named.is_empty() && (is_known || kind == EXCLUDE) {
            let named: Vec<&str> = named.into_iter().collect();
            filters.insert(format!("{ALLOCATION}{kind}.{NAME}"), named.join(",").into());
        } else if kind != EXCLUDE {
            left_out.push(format!("{ALLOCATION}{kind}: copies may be on any node of the twin"));
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use record::observation::Scope;

    use super::*;

    /// The filters of a cluster with the nodes `hot-1`, `hot-2` and `10.0.0.3`, and what is told of them.
    fn of(set: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
        let node = |name: &str| InventoryNode { name: name.to_owned(), ..InventoryNode::default() };
        let nodes = ["hot-1", "hot-2", "10.0.0.3"].map(node);
        let setting = |(name, value): &(&str, &str)| {
            let setting = Setting { value: (*value).to_owned(), scope: Scope::Persistent };
            (format!("{ALLOCATION}{name}"), setting)
        };
        let all: BTreeMap<String, Setting> = set.iter().map(setting).collect();
        assert!(all.keys().all(|name| is_filter(name)));
        let mut left_out = Vec::new();
        let found = filters(&all, &nodes.iter().collect::<Vec<_>>(), &mut left_out);
        let plain = |(name, value): (String, toml::Value)| {
            let name = name.strip_prefix(ALLOCATION).unwrap_or(&name).to_owned();
            (name, value.as_str().unwrap_or_default().to_owned())
        };
        (found.into_iter().map(plain).collect(), left_out)
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
        assert_eq!(found, [pair("require._name", "hot-1")], "all that is required");
        assert_eq!(of(&[("exclude._name", "[]"), ("include._ip", "")]), (vec![], vec![]));
        assert!(!is_filter("cluster.routing.allocation.exclude.box_type"));
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
}
