//! How far the copies go that nodes found on their disks, and what these know of each other.
//!
//! Every copy in sync has everything up to the global checkpoint, whichever copy knows of it. One that ends before it
//! lost what was acknowledged: its log, or all of its directory, was put back as it was earlier. It must not be the
//! primary, from which the others would take over what it lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A shard copy that a node found on its disk when it started.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCopy {
    pub index_uuid: String,
    pub shard: u32,
    pub allocation_id: String,
    /// One more than the highest sequence number that is durable; none where nobody knows that.
    #[serde(default)]
    pub next_seq_no: Option<u64>,
    /// Every copy in sync had everything up to here, as far as this one was told.
    #[serde(default)]
    pub global_checkpoint: Option<u64>,
}

/// By UUID of the index and shard, then by node. Of a shard nothing is known any more once a copy joined its primary:
/// the copies have got operations since that they had not when they were found.
///
/// For the manager alone, and neither stored nor published: every node says it anew when it joins.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportedExtents(Arc<BTreeMap<(String, u32), BTreeMap<String, FoundCopy>>>);

/// Two states are the same where the manager of one of them knows more of the disks.
impl PartialEq for ReportedExtents {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ReportedExtents {
    pub fn insert(&mut self, node: &str, copy: FoundCopy) {
        let key = (copy.index_uuid.clone(), copy.shard);
        Arc::make_mut(&mut self.0).entry(key).or_default().insert(node.to_owned(), copy);
    }

    pub fn remove_node(&mut self, node: &str) {
        if self.0.values().any(|copies| copies.contains_key(node)) {
            Arc::make_mut(&mut self.0).retain(|_, copies| {
                copies.remove(node);
                !copies.is_empty()
            });
        }
    }

    pub fn remove_index(&mut self, uuid: &str) {
        if self.0.keys().any(|(of, _)| of == uuid) {
            Arc::make_mut(&mut self.0).retain(|(of, _), _| of != uuid);
        }
    }

    pub(crate) fn remove_shard(&mut self, uuid: &str, shard: u32) {
        let key = (uuid.to_owned(), shard);
        if self.0.contains_key(&key) {
            Arc::make_mut(&mut self.0).remove(&key);
        }
    }

    /// What the copy with this id on a node lacks, in words, and who says so of those in sync; none where it may be the
    /// primary.
    pub fn falls_short(
        &self,
        (uuid, shard): (&str, u32),
        (node, allocation_id): (&str, &str),
        in_sync: &BTreeSet<String>,
    ) -> Option<String> {
        let copies = self.0.get(&(uuid.to_owned(), shard))?;
        let own = copies.get(node).filter(|copy| copy.allocation_id == allocation_id)?;
        let next = own.next_seq_no?;
        let others = copies
            .iter()
            .filter(|(other, copy)| *other != node && in_sync.contains(&copy.allocation_id));
        let known = others.filter_map(|(other, copy)| Some((copy.global_checkpoint?, other)));
        let (checkpoint, other) = known.max()?;
        let lost = next..=checkpoint;
        (!lost.is_empty()).then(|| {
            format!(
                "copy [{allocation_id}] on [{node}] lacks operations {next} to {checkpoint}, which every copy in sync \
                 had, as the copy on [{other}] knows: it was put back as it was earlier, and is not used while [{other}] \
                 is there; write accept_data_loss into its oplog.ckp to have it used all the same"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::manager::lab::Lab;
    use super::super::{Status, health};

    /// An index of one shard, whose nodes are all gone; its primary was on the first of them.
    fn stopped(replicas: u32) -> (Lab, Vec<String>) {
        let mut lab = Lab::started(replicas + 1, (1, replicas));
        let shard = lab.shard("a", 0);
        let primary = shard.primary().node.clone().unwrap();
        let others = shard.replicas().map(|copy| copy.node.clone().unwrap());
        let nodes: Vec<String> = [primary].into_iter().chain(others).collect();
        // At once, before anybody can take the place of another.
        nodes.iter().for_each(|node| drop(lab.leave(node)));
        (lab, nodes)
    }

    fn primary_on(lab: &Lab) -> Option<String> {
        lab.shard("a", 0).primary().node.clone()
    }

    #[test]
    fn a_copy_that_others_know_more_of_is_no_primary() {
        let (mut lab, nodes) = stopped(2);
        let extents = [(150, Some(149)), (500, Some(480)), (500, Some(490))];
        lab.extents = nodes.iter().cloned().zip(extents).collect();
        // It comes first, and alone is all that there is.
        lab.join(&nodes[0]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[0]));
        lab.start_all();
        lab.join(&nodes[1]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[1]));
        lab.join(&nodes[2]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[1]));
        lab.start_all();
        assert_eq!(health(&lab.state).status, Status::Green);
    }

    #[test]
    fn it_is_refused_by_name_while_the_other_cannot_be_opened() {
        let (mut lab, nodes) = stopped(1);
        lab.extents = nodes.iter().cloned().zip([(150, Some(149)), (500, Some(480))]).collect();
        lab.join(&nodes[1]);
        lab.join(&nodes[0]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[1]));
        while let Some(copy) = lab.initializing().first().cloned() {
            lab.fail(&copy, "it is damaged");
        }
        assert_eq!(primary_on(&lab), None);
        let id = lab.state.on_disk(&nodes[0], "a", 0).unwrap();
        let said = lab.state.falls_short(("a", 0), (&nodes[0], id)).unwrap();
        assert!(said.contains("lacks operations 150 to 480"), "{said}");
        // Of an index that was a follower the copies' word does not count.
        let mut followed = lab.state.clone();
        Arc::make_mut(followed.indices.get_mut("a").unwrap()).has_followed = true;
        assert_eq!(followed.falls_short(("a", 0), (&nodes[0], id)), None);
        // Once the other is gone, nobody says that anything is missing.
        lab.leave(&nodes[1]);
        lab.leave(&nodes[0]);
        lab.join(&nodes[0]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[0]));
    }

    /// What was written since it was found is not in what its node said.
    #[test]
    fn a_primary_that_another_copy_joined_is_not_judged_by_what_it_began_with() {
        let (mut lab, nodes) = stopped(2);
        lab.extents = nodes.iter().cloned().zip([(150, Some(149)); 3]).collect();
        lab.join(&nodes[0]);
        lab.start_all();
        lab.join(&nodes[1]);
        lab.start_all();
        lab.leave(&nodes[1]);
        lab.extents.insert(nodes[1].clone(), (900, Some(899)));
        lab.join(&nodes[1]);
        assert_eq!(primary_on(&lab).as_ref(), Some(&nodes[0]));
    }
}
