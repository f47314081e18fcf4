//! Which nodes copies may be on by name or address: `exclude`, `include` and `require`, of the cluster and of each
//! index; and by what [`Awareness`] says of their attributes.

use std::collections::BTreeMap;

use record::names::matches;

use super::awareness::{Awareness, Uneven};
use super::{ClusterState, IndexShardRoutingTable, Node, ShardCopy};
use crate::settings::{FilterKind, IndexSettings, NodeFilter, Settings};

/// The filters that are set.
#[derive(Debug, Default)]
pub(super) struct Filters {
    cluster: Vec<NodeFilter>,
    by_index: BTreeMap<String, Vec<NodeFilter>>,
    awareness: Awareness,
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
            awareness: Awareness::of(state, settings),
        }
    }

    /// Whether every copy may be everywhere.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.by_index.is_empty() && self.awareness.is_empty()
    }

    /// What keeps a copy from a node, whether it is there or would go there; none where it may be there.
    pub fn against(
        &self,
        state: &ClusterState,
        (index, shard): (&str, &IndexShardRoutingTable),
        copy: &ShardCopy,
        node: &str,
    ) -> Option<Against> {
        if self.is_empty() {
            return None;
        }
        let uneven = || self.awareness.against(state, shard, copy, node).map(Against::Uneven);
        self.filter_against(state, index, node).or_else(uneven)
    }

    fn filter_against(&self, state: &ClusterState, index: &str, node: &str) -> Option<Against> {
        let node = state.members.get(node)?;
        let of_index = self.by_index.get(index).map(Vec::as_slice).unwrap_or_default();
        judge(&self.cluster, node).or_else(|| judge(of_index, node))
    }
}

/// What keeps a copy from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Against {
    /// A filter that the node does not pass.
    Filter { setting: &'static str, kind: FilterKind },
    /// Too many copies of the shard are on nodes like it.
    Uneven(Uneven),
}

impl Against {
    /// The name of the decider in the field.
    pub fn decider(&self) -> &'static str {
        match self {
            Against::Filter { .. } => "filter",
            Against::Uneven(_) => "awareness",
        }
    }

    pub fn words(&self) -> String {
        match self {
            Against::Filter { setting, kind: FilterKind::Exclude } => {
                format!("the node is named by {setting}")
            }
            Against::Filter { setting, .. } => format!("the node is not among those of {setting}"),
            Against::Uneven(uneven) => uneven.words(),
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
    let against =
        |filter: &NodeFilter| Against::Filter { setting: filter.setting, kind: filter.kind };
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
        let may = |node: &&String| filters.filter_against(&lab.state, index, node).is_none();
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
