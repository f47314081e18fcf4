//! An index that is put in place with its copies, all started and equal: what a twin of a cluster begins with. Nobody
//! recovers, and nothing is chosen: whoever puts it there says which node has which copy, and has opened them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::applied::{Applied, NewIndex};
use super::indices::{REPLICAS, SHARDS, make_index};
use super::{Change, ClusterState, CopyState, Made, StateError};
use crate::settings::Update;

/// An index with the places of its copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedIndex {
    /// Its name.
    pub index: String,
    /// Copies of each shard besides the primary.
    pub replicas: u32,
    /// Settings by full name, but for the numbers of shards and replicas.
    pub settings: Update,
    /// The nodes of each shard, that of the primary first. Copies that have no node are placed by the allocator.
    pub nodes: Vec<Vec<String>>,
}

pub(super) fn place_index(state: &mut ClusterState, now_ms: u64, placed: PlacedIndex) -> Applied {
    check(state, &placed)?;
    let PlacedIndex { index, replicas, mut settings, nodes } = placed;
    settings.insert(SHARDS.to_owned(), Some(nodes.len().to_string()));
    settings.insert(REPLICAS.to_owned(), Some(replicas.to_string()));
    let made = Made { settings, ..Made::default() };
    let new = NewIndex { index: index.clone(), leader: None, made };
    let mut changes = make_index(state, now_ms, new, false)?;
    let uuid = state.indices[&index].uuid.clone();
    for (number, nodes) in (0..).zip(nodes) {
        for (at, node) in nodes.into_iter().enumerate() {
            let shard = state.shard_mut(&index, number).expect("it was just made");
            let copy = &mut shard.copies[at];
            (copy.node, copy.state, copy.in_sync) = (Some(node.clone()), CopyState::Started, true);
            let allocation_id = copy.allocation_id.clone();
            shard.in_sync.insert(allocation_id.clone());
            state.disks.insert(&uuid, number, &node, allocation_id);
            changes.push(Change::Started { index: index.clone(), shard: number });
        }
    }
    Ok(changes)
}

fn check(state: &ClusterState, placed: &PlacedIndex) -> Result<(), StateError> {
    let wrong = |number: usize, why: String| {
        let (index, shard) = (placed.index.clone(), u32::try_from(number).unwrap_or(u32::MAX));
        Err(StateError::Placement { index, shard, why })
    };
    for (number, nodes) in placed.nodes.iter().enumerate() {
        if let Some(node) = nodes.iter().find(|node| !state.present.contains(*node)) {
            return wrong(number, format!("there is no node [{node}]"));
        }
        if nodes.iter().collect::<BTreeSet<_>>().len() < nodes.len() {
            return wrong(number, "two of its copies are on one node".to_owned());
        }
        if nodes.len() > placed.replicas as usize + 1 {
            return wrong(number, format!("it has {} copies with a node", nodes.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{Status, health};
    use super::*;

    fn place(lab: &mut Lab, nodes: &[&[&str]]) -> Applied {
        let names = |nodes: &&[&str]| nodes.iter().map(|node| (*node).to_owned()).collect();
        lab.place("a", 1, nodes.iter().map(names).collect())
    }

    #[test]
    fn copies_are_where_they_were_put_and_move_when_their_node_leaves() {
        let mut lab = Lab::new(3);
        place(&mut lab, &[&["n3", "n1"], &["n1", "n3"]]).unwrap();
        assert_eq!(health(&lab.state).status, Status::Green);
        assert_eq!(lab.shard("a", 0).primary().node.as_deref(), Some("n3"));
        lab.leave("n3");
        assert_eq!(lab.initializing().len(), 2, "n2 takes both");
        lab.start_all();
        assert_eq!(health(&lab.state).status, Status::Green);
    }

    #[test]
    fn what_has_no_node_is_placed() {
        let mut lab = Lab::new(2);
        place(&mut lab, &[&["n1"]]).unwrap();
        assert_eq!(lab.initializing().len(), 1);
    }

    #[test]
    fn wrong_places_are_refused() {
        let mut lab = Lab::new(2);
        for nodes in [&["n9"][..], &["n1", "n1"], &["n1", "n2", "n3"]] {
            let said = place(&mut lab, &[nodes]).unwrap_err();
            assert_eq!(said.rest(), (400, "illegal_argument_exception"), "{said}");
        }
    }
}
