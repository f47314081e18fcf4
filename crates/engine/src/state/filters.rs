//! Which nodes copies may be on by name or address: `exclude`, `include` and `require`, of the cluster and of each
//! index.

use std::collections::BTreeMap;

use record::names::matches;

use super::{ClusterState, Node};
use crate::settings::{FilterKind, IndexSettings, NodeFilter, Settings};

/// The filters that are set.
#[derive(Debug, Default)]
pub(super) struct Filters {
    cluster: Vec<NodeFilter>,
    by_index: BTreeMap<String, Vec<NodeFilter>>,
}

impl Filters {
    pub fn of(state: &ClusterState, settings: &Settings) -> Self {
        let of_index = |(name, meta): (&String, &std::sync::Arc<super::IndexMeta>)| {
            let filters = IndexSettings::filters_of(&meta.settings);
            (!filters.is_empty()).then(|| (name.clone(), filters))
        };
        Filters {
            cluster: settings.allocation_filters(),
            by_index: state.indices.iter().filter_map(of_index).collect(),
        }
    }

    /// Whether every copy may be everywhere.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.by_index.is_empty()
    }

    /// The setting that keeps copies of an index from a node; none where they may be there.
    pub fn against(&self, state: &ClusterState, index: &str, node: &str) -> Option<Against> {
        if self.is_empty() {
            return None;
        }
        let node = state.members.get(node)?;
        let of_index = self.by_index.get(index).map(Vec::as_slice).unwrap_or_default();
        judge(&self.cluster, node).or_else(|| judge(of_index, node))
    }
}

/// A filter that a node does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Against {
    setting: &'static str,
    kind: FilterKind,
}

impl Against {
    pub fn words(&self) -> String {
        match self.kind {
            FilterKind::Exclude => format!("the node is named by {}", self.setting),
            FilterKind::Include | FilterKind::Require => {
                format!("the node is not among those of {}", self.setting)
            }
        }
    }
}

/// As in Elasticsearch: all that `require` asks for, one of what `include` names, nothing that `exclude` names.
fn judge(filters: &[NodeFilter], node: &Node) -> Option<Against> {
    let fits = |filter: &&NodeFilter| {
        let value = value_of(node, filter.attribute);
        filter.patterns.iter().any(|pattern| matches(pattern, value))
    };
    let of = |kind: FilterKind| filters.iter().filter(move |filter| filter.kind == kind);
    let against = |filter: &NodeFilter| Against { setting: filter.setting, kind: filter.kind };
    let unmet = of(FilterKind::Require).find(|filter| !fits(filter));
    let named = of(FilterKind::Exclude).find(fits);
    let not_included = match of(FilterKind::Include).any(|filter| fits(&filter)) {
        true => None,
        false => of(FilterKind::Include).next(),
    };
    unmet.or(not_included).or(named).map(against)
}

fn value_of<'a>(node: &'a Node, attribute: &str) -> &'a str {
    match attribute {
        "_name" => &node.name,
        // A node is known by one address.
        _ => node.transport_address.rsplit_once(':').map_or("", |(host, _)| host),
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::Lab;
    use super::*;

    fn allowed(lab: &Lab, index: &str) -> Vec<String> {
        let filters = Filters::of(&lab.state, &lab.state.settings());
        let may = |node: &&String| filters.against(&lab.state, index, node).is_none();
        lab.state.present.iter().filter(may).cloned().collect()
    }

    #[test]
    fn one_of_include_all_of_require_none_of_exclude() {
        let mut lab = Lab::new(4);
        lab.create("a", 1, 0);
        lab.create("b", 1, 0);
        assert_eq!(allowed(&lab, "a").len(), 4);
        lab.set("cluster.routing.allocation.exclude._name", "n1,zzz");
        assert_eq!(allowed(&lab, "a"), ["n2", "n3", "n4"]);
        lab.set("cluster.routing.allocation.exclude._ip", "n2");
        assert_eq!(allowed(&lab, "a"), ["n3", "n4"]);
        lab.set_index("a", "index.routing.allocation.include._name", "n4");
        assert_eq!(allowed(&lab, "a"), ["n4"]);
        lab.set_index("a", "index.routing.allocation.include._host", "n3");
        assert_eq!(allowed(&lab, "a"), ["n3", "n4"], "one of all that is included");
        assert_eq!(allowed(&lab, "b"), ["n3", "n4"]);
        lab.set("cluster.routing.allocation.require._name", "n*");
        lab.set("cluster.routing.allocation.require._host", "*4");
        assert_eq!(allowed(&lab, "a"), ["n4"]);
    }
}
