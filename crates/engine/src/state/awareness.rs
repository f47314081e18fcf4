//! Copies of a shard that are spread over the values of attributes of nodes, such as zones.
//!
//! Elasticsearch's and OpenSearch's `AwarenessAllocationDecider`: of the copies of a shard (replicas and one) no more
//! may be on the nodes of one value than their number divided by the number of values, rounded up. The values are those
//! of the nodes that are present; with `awareness.force.NAME.values` those that are written there count, too, although
//! no node has them, so that the copies of a lost zone are not all made in the zones that are left. A node without the
//! attribute holds nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterState, IndexShardRoutingTable, ShardCopy};
use crate::settings::Settings;

/// An attribute that copies are spread over.
#[derive(Debug)]
struct Attribute {
    name: String,
    /// Of present nodes, and those that are forced.
    values: usize,
    /// Of those no present node has.
    forced: usize,
}

/// The attributes that copies are spread over.
#[derive(Debug, Default)]
pub(super) struct Awareness(Vec<Attribute>);

impl Awareness {
    pub fn of(state: &ClusterState, settings: &Settings) -> Self {
        let forced = settings.awareness_forced();
        let attribute = |name: &String| {
            let present = state.present.iter().filter_map(|node| value_of(state, node, name));
            let present: BTreeSet<&str> = present.collect();
            let all: BTreeSet<&str> =
                forced.get(name).into_iter().flatten().map(String::as_str).collect();
            let forced = all.difference(&present).count();
            Attribute { name: name.clone(), values: present.len() + forced, forced }
        };
        Awareness(settings.awareness_attributes().iter().map(attribute).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What keeps a copy of a shard from being on a node, whether it is there or would go there.
    pub fn against(
        &self,
        state: &ClusterState,
        shard: &IndexShardRoutingTable,
        copy: &ShardCopy,
        node: &str,
    ) -> Option<Uneven> {
        self.0.iter().find_map(|attribute| attribute.against(state, (shard, copy), node))
    }
}

impl Attribute {
    fn against(
        &self,
        state: &ClusterState,
        (shard, copy): (&IndexShardRoutingTable, &ShardCopy),
        node: &str,
    ) -> Option<Uneven> {
        let uneven = |here, most| Uneven {
            attribute: self.name.clone(),
            value: value_of(state, node, &self.name).map(str::to_owned),
            here,
            most,
            forced: self.forced,
        };
        let Some(value) = value_of(state, node, &self.name) else { return Some(uneven(0, 0)) };
        let is_here = |copy: &ShardCopy| {
            let of = copy.node.as_deref().and_then(|node| value_of(state, node, &self.name));
            !copy.is_relocating() && of == Some(value)
        };
        let mut here = shard.assigned().filter(|copy| is_here(copy)).count();
        if !copy.is_on(node) {
            // It counts where it goes, and no more where it comes from.
            here = here + 1 - usize::from(is_here(copy));
        }
        let most = shard.copies.len().div_ceil(self.values.max(1));
        (here > most).then(|| uneven(here, most))
    }
}

fn value_of<'a>(state: &'a ClusterState, node: &str, attribute: &str) -> Option<&'a str> {
    let attributes: &BTreeMap<String, String> = &state.members.get(node)?.attributes;
    attributes.get(attribute).map(String::as_str)
}

/// Too many copies of a shard on the nodes of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uneven {
    attribute: String,
    /// None where the node has no value.
    value: Option<String>,
    here: usize,
    most: usize,
    forced: usize,
}

impl Uneven {
    pub fn words(&self) -> String {
        let Uneven { attribute, value, here, most, forced } = self;
        let Some(value) = value else {
            return format!(
                "the node has no attribute [{attribute}], which cluster.routing.allocation.awareness.attributes names"
            );
        };
        let forced = match forced {
            0 => String::new(),
            forced => format!("; of the values that are forced no node has {forced} now"),
        };
        format!(
            "{here} copies of the shard would be on nodes with [{attribute}] = [{value}], and {most} may be{forced}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{Status, explain, health};

    const ATTRIBUTES: &str = "cluster.routing.allocation.awareness.attributes";
    const FORCED: &str = "cluster.routing.allocation.awareness.force.zone.values";

    /// Two nodes in each of two zones; a third zone has the next node to join.
    fn zoned() -> Lab {
        let mut lab = Lab::new(4);
        for (node, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")] {
            lab.in_zone(node, zone);
        }
        lab
    }

    fn zones(lab: &Lab, number: u32) -> Vec<String> {
        let shard = lab.shard("logs", number);
        let node = |node: &str| lab.state.members[node].attributes["zone"].clone();
        let mut zones: Vec<String> =
            shard.assigned().map(|copy| node(copy.node.as_deref().unwrap())).collect();
        zones.sort();
        zones
    }

    #[test]
    fn copies_of_a_shard_are_in_all_zones() {
        let mut lab = zoned();
        lab.set(ATTRIBUTES, "zone");
        lab.create("logs", 6, 1);
        lab.start_all();
        assert!((0..6).all(|number| zones(&lab, number) == ["a", "b"]));
    }

    #[test]
    fn what_was_laid_out_before_is_moved() {
        let mut lab = zoned();
        lab.leave("n3");
        lab.leave("n4");
        lab.create("logs", 2, 1);
        lab.start_all();
        lab.join("n3");
        lab.join("n4");
        assert!(lab.initializing().is_empty());
        lab.set(ATTRIBUTES, "zone");
        lab.start_all();
        assert!((0..2).all(|number| zones(&lab, number) == ["a", "b"]));
    }

    #[test]
    fn a_lost_zone_is_made_anew_in_the_other_unless_both_are_forced() {
        let lose = |forced: &str| {
            let mut lab = zoned();
            lab.set(ATTRIBUTES, "zone");
            lab.set(FORCED, forced);
            lab.create("logs", 2, 1);
            lab.start_all();
            lab.leave("n3");
            lab.leave("n4");
            lab.start_all();
            lab
        };
        assert_eq!(health(&lose("").state).status, Status::Green);
        let forced = lose("a,b");
        assert_eq!(health(&forced.state).unassigned_shards, 2);
        let explained = explain(&forced.state, forced.now_ms);
        let reason = explained[0]
            .nodes
            .iter()
            .find_map(|node| node.reason.clone().filter(|reason| reason.decider == "awareness"));
        let words = reason.unwrap().words;
        assert!(words.contains("[zone] = [a], and 1 may be; of the values"), "{words}");
    }

    #[test]
    fn a_node_without_the_attribute_holds_nothing() {
        let mut lab = Lab::new(2);
        lab.in_zone("n1", "a");
        lab.set(ATTRIBUTES, "zone");
        lab.create("logs", 2, 0);
        lab.start_all();
        assert_eq!(lab.on("n2"), 0);
        assert_eq!(lab.on("n1"), 2);
    }
}
