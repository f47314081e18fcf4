//! Which nodes copies may be on by name or address: `exclude`, `include` and `require`, of the cluster and of each
//! index; and by what [`Awareness`] says of their attributes, [`ShardsLimit`] of what they hold, and [`DiskThreshold`]
//! of their disks.

use std::collections::BTreeMap;

use record::names::matches;

use super::awareness::{Awareness, Uneven};
use super::disk_threshold::{DiskThreshold, Full};
use super::shards_limit::{ShardsLimit, TooMany};
use super::{ClusterState, Node, ShardCopy};
use crate::settings::{FilterKind, IndexSettings, NodeFilter, Settings};

#[derive(Debug)]
pub(super) struct Filters {
    cluster: Vec<NodeFilter>,
    by_index: BTreeMap<String, Vec<NodeFilter>>,
    awareness: Awareness,
    limits: ShardsLimit,
    disks: DiskThreshold,
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
            limits: ShardsLimit::of(state, settings),
            disks: DiskThreshold::of(state, settings),
        }
    }

    /// Whether every copy may be everywhere.
    fn is_empty(&self) -> bool {
        self.go_by_nodes_alone() && self.limits.is_empty() && self.disks.is_empty()
    }

    fn go_by_nodes_alone(&self) -> bool {
        self.cluster.is_empty() && self.by_index.is_empty() && self.awareness.is_empty()
    }

    /// Whether every copy may stay where it is.
    pub fn all_may_stay(&self) -> bool {
        self.cluster.is_empty() && self.others_may_stay()
    }

    fn others_may_stay(&self) -> bool {
        let go_by_cluster_alone = self.by_index.is_empty() && self.awareness.is_empty();
        go_by_cluster_alone && self.limits.all_may_stay() && self.disks.all_may_stay()
    }

    /// The same where it is known which nodes hold no copy: those that the cluster's filters keep copies from.
    pub fn all_may_stay_on(&self, state: &ClusterState, is_empty: impl Fn(&str) -> bool) -> bool {
        let may_stay = |node: &Node| judge(&self.cluster, node).is_none() || is_empty(&node.name);
        self.others_may_stay() && state.present_nodes().all(may_stay)
    }

    /// A copy is to be made on a node, where it takes room; or moved there from another, which it leaves.
    pub fn place(
        &mut self,
        state: &ClusterState,
        (index, number): (&str, u32),
        to: &str,
        from: Option<&str>,
    ) {
        self.limits.place(index, to, from);
        let bytes = state.info.bytes_of(index, number);
        if state.on_disk(to, index, number).is_none() {
            self.disks.take(to, bytes);
        }
        from.into_iter().for_each(|from| self.disks.leave(from, bytes));
    }

    /// What keeps a copy from a node, whether it is there or would go there; none where it may be there.
    pub fn against(
        &self,
        state: &ClusterState,
        (index, number): (&str, u32),
        copy: &ShardCopy,
        node: &str,
    ) -> Option<Against> {
        if self.is_empty() {
            return None;
        }
        let uneven = || {
            let shard = state.shard(index, number)?;
            self.awareness.against(state, shard, copy, node).map(Against::Uneven)
        };
        let too_many = || {
            let shard = state.shard(index, number)?;
            self.limits.against(index, shard, copy, node).map(Against::TooMany)
        };
        let full = || self.disks.against(state, (index, number), copy, node).map(Against::Full);
        let filtered = self.filter_against(state, index, node);
        filtered.or_else(uneven).or_else(too_many).or_else(full)
    }

    /// The filter that keeps copies of an index from a node.
    pub fn filter_against(&self, state: &ClusterState, index: &str, node: &str) -> Option<Against> {
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
    /// The node holds as many copies as it may.
    TooMany(TooMany),
    /// The node's disk is too full.
    Full(Full),
}

impl Against {
    /// The name of the decider in the field.
    pub fn decider(&self) -> &'static str {
        match self {
            Against::Filter { .. } => "filter",
            Against::Uneven(_) => "awareness",
            Against::TooMany(_) => "shards_limit",
            Against::Full(_) => "disk_threshold",
        }
    }

    pub fn words(&self) -> String {
        match self {
            Against::Filter { setting, kind: FilterKind::Exclude } => {
                format!("the node is named by {setting}")
            }
            Against::Filter { setting, kind: FilterKind::Include } => {
                format!("the node is not among those of {setting}")
            }
            Against::Filter { setting, kind: FilterKind::Require } => {
                format!("the node does not fit all of {setting}")
            }
            Against::Uneven(uneven) => uneven.words(),
            Against::TooMany(too_many) => too_many.words(),
            Against::Full(full) => full.words(),
        }
    }
}

/// As in Elasticsearch: all that `require` asks for, one of what `include` names, nothing that `exclude` names.
fn judge(filters: &[NodeFilter], node: &Node) -> Option<Against> {
    let fits = |filter: &&NodeFilter| {
        let value = value_of(node, filter.attribute);
        let mut patterns = filter.patterns.iter();
        // All of a list is required, but for addresses of the network (`DiscoveryNodeFilters` of Elasticsearch).
        match filter.kind == FilterKind::Require && filter.attribute != "_ip" {
            true => patterns.all(|pattern| matches(pattern, value)),
            false => patterns.any(|pattern| matches(pattern, value)),
        }
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
    use super::super::manager::lab::Lab;
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

    #[test]
    fn all_of_a_list_is_required_but_for_addresses() {
        let mut lab = Lab::new(4);
        lab.create("a", 1, 0);
        lab.set("cluster.routing.allocation.require._name", "n*,*3");
        assert_eq!(allowed(&lab, "a"), ["n3"]);
        lab.set("cluster.routing.allocation.require._name", "n3,n4");
        assert_eq!(allowed(&lab, "a"), [""; 0], "no node has two names");
        lab.set("cluster.routing.allocation.require._name", "");
        lab.set_index("a", "index.routing.allocation.require._ip", "n3,n4");
        assert_eq!(allowed(&lab, "a"), ["n3", "n4"], "one address is enough");
        lab.set_index("a", "index.routing.allocation.require._host", "n3,n4");
        assert_eq!(allowed(&lab, "a"), [""; 0]);
    }
}
