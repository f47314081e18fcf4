//! The nodes that elect the cluster manager. A twin is managed by a node of its own that is never lost.

use std::collections::BTreeSet;

use record::inventory::{Inventory, InventoryNode};

use crate::plan::TwinNode;

/// The roles of a node that votes, in Elasticsearch and in OpenSearch.
const ROLES: [&str; 2] = ["master", "cluster_manager"];

/// The nodes of a cluster that vote, whether they hold data or not; none where they do not tell their roles.
pub(super) fn voters(seen: &Inventory, zone: Option<&str>) -> Vec<TwinNode> {
    let votes =
        |node: &&InventoryNode| node.roles.iter().any(|role| ROLES.contains(&role.as_str()));
    let voter = |node: &InventoryNode| TwinNode {
        name: node.name.clone(),
        id: Some(node.id.clone()),
        zone: zone.and_then(|zone| node.attributes.get(zone).cloned()),
        attributes: node.attributes.clone(),
        disk: None,
    };
    seen.nodes.iter().filter(votes).map(voter).collect()
}

/// What is to be said where nodes or zones are lost and those that are left may elect no manager; none otherwise.
pub fn without_manager(voters: &[TwinNode], lost: &[String]) -> Option<String> {
    let lost = lost.iter().flat_map(|lost| TwinNode::called(voters, lost));
    let (gone, all) = (lost.collect::<BTreeSet<usize>>().len(), voters.len());
    (gone > 0 && gone * 2 >= all).then(|| {
        format!(
            "that the cluster may be left without a manager: {gone} of the {all} nodes that elect it are lost at once, \
             and without most of them no copy is made until they are back"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::super::import::import;
    use super::super::tests::seen;
    use super::*;

    #[test]
    fn a_cluster_that_loses_half_of_its_voters_may_have_no_manager() {
        let mut seen = seen();
        let said = |seen: &Inventory, lost: &str| {
            let voters = import(seen, &Given::default()).unwrap().voters;
            without_manager(&voters, &[lost.to_owned()])
        };
        assert_eq!(said(&seen, "r1"), None, "roles are not told");
        for node in &mut seen.nodes {
            node.roles = vec!["cluster_manager".to_owned()];
        }
        assert_eq!(said(&seen, "a"), None, "two of three are left");
        // m holds no data, and is in the rack of a.
        let rack = said(&seen, "r1").unwrap();
        assert!(rack.contains("2 of the 3 nodes that elect it"), "{rack}");
        assert_eq!(said(&seen, "rack=r1"), Some(rack));
        seen.nodes[2].roles.clear();
        let half = said(&seen, "b").unwrap();
        assert!(half.contains("1 of the 2 nodes that elect it"), "{half}");
        seen.cluster.flavour = "narrows".to_owned();
        assert_eq!(said(&seen, "b"), None, "one node manages it, and none is elected");
    }
}
