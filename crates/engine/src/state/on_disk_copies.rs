//! What the disks of the present nodes hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::differing::differing;

pub(super) type Holders = BTreeMap<String, String>;

/// The copies that the disks of the present nodes hold, the assigned ones among them: uuid of the index, then
/// shard, then node, to the allocation id. What is asked is always who holds a shard, so it is kept that way;
/// it is stored by node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ByNode", into = "ByNode")]
pub(super) struct OnDiskCopies(BTreeMap<String, Arc<BTreeMap<u32, Holders>>>);

/// Node, then uuid of the index, then shard, to the allocation id.
type ByNode = BTreeMap<String, BTreeMap<String, BTreeMap<u32, String>>>;

impl From<ByNode> for OnDiskCopies {
    fn from(stored: ByNode) -> Self {
        let mut disks = OnDiskCopies::default();
        for (node, indices) in stored {
            for (uuid, shards) in indices {
                for (shard, id) in shards {
                    disks.insert(&uuid, shard, &node, id);
                }
            }
        }
        disks
    }
}

impl From<OnDiskCopies> for ByNode {
    fn from(disks: OnDiskCopies) -> Self {
        let mut stored = ByNode::new();
        for (uuid, shards) in disks.0 {
            for (shard, holders) in Arc::unwrap_or_clone(shards) {
                for (node, id) in holders {
                    let indices = stored.entry(node).or_default();
                    indices.entry(uuid.clone()).or_default().insert(shard, id);
                }
            }
        }
        stored
    }
}

impl OnDiskCopies {
    pub fn holders(&self, uuid: &str, shard: u32) -> Option<&Holders> {
        self.0.get(uuid)?.get(&shard)
    }

    /// The uuids of the indices that some node holds copies of.
    pub fn indices(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The nodes that hold copies of an index.
    pub fn nodes_of(&self, uuid: &str) -> BTreeSet<String> {
        let shards = self.0.get(uuid).into_iter().flat_map(|shards| shards.values());
        shards.flat_map(Holders::keys).cloned().collect()
    }

    pub fn insert(&mut self, uuid: &str, shard: u32, node: &str, allocation_id: String) {
        let shards = match self.0.get_mut(uuid) {
            Some(shards) => shards,
            None => self.0.entry(uuid.to_owned()).or_default(),
        };
        let holders = Arc::make_mut(shards).entry(shard).or_default();
        holders.insert(node.to_owned(), allocation_id);
    }

    pub fn remove_node(&mut self, node: &str) {
        self.0.retain(|_, shards| {
            if shards.values().any(|holders| holders.contains_key(node)) {
                Arc::make_mut(shards).retain(|_, holders| {
                    holders.remove(node);
                    !holders.is_empty()
                });
            }
            !shards.is_empty()
        });
    }

    pub fn remove_index(&mut self, uuid: &str) {
        self.0.remove(uuid);
    }

    /// Forgets a shard on all nodes but some.
    pub fn retain(&mut self, uuid: &str, shard: u32, keep: impl Fn(&str) -> bool) {
        let Some(holders) = self.holders(uuid, shard) else { return };
        if holders.keys().all(|node| keep(node)) {
            return;
        }
        let kept: Holders = holders.clone().into_iter().filter(|(node, _)| keep(node)).collect();
        self.set(uuid, shard, kept);
    }

    /// The shards whose holders are others in `newer`, with those.
    pub(crate) fn changes_to(
        &self,
        newer: &OnDiskCopies,
    ) -> BTreeMap<String, BTreeMap<u32, Holders>> {
        let mut changes: BTreeMap<String, BTreeMap<u32, Holders>> = BTreeMap::new();
        let none = Arc::default();
        for (uuid, old, new) in differing(&self.0, &newer.0) {
            let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
            for shard in old.keys().chain(new.keys()) {
                if old.get(shard) != new.get(shard) {
                    let holders = new.get(shard).cloned().unwrap_or_default();
                    changes.entry(uuid.clone()).or_default().insert(*shard, holders);
                }
            }
        }
        changes
    }

    /// Sets the holders of a shard, maybe to none.
    pub fn set(&mut self, uuid: &str, shard: u32, holders: Holders) {
        if holders.is_empty() {
            let Some(shards) = self.0.get_mut(uuid) else { return };
            Arc::make_mut(shards).remove(&shard);
            if shards.is_empty() {
                self.0.remove(uuid);
            }
            return;
        }
        let shards = self.0.entry(uuid.to_owned()).or_default();
        Arc::make_mut(shards).insert(shard, holders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_stored_by_node_and_read_back() {
        let mut disks = OnDiskCopies::default();
        disks.insert("u", 0, "n1", "a".to_owned());
        disks.insert("u", 1, "n1", "b".to_owned());
        disks.insert("u", 0, "n2", "c".to_owned());
        let text = serde_json::to_string(&disks).unwrap();
        assert_eq!(text, r#"{"n1":{"u":{"0":"a","1":"b"}},"n2":{"u":{"0":"c"}}}"#);
        assert_eq!(serde_json::from_str::<OnDiskCopies>(&text).unwrap(), disks);
        disks.remove_node("n1");
        assert_eq!(serde_json::to_string(&disks).unwrap(), r#"{"n2":{"u":{"0":"c"}}}"#);
        disks.retain("u", 0, |node| node == "n1");
        assert_eq!(disks, OnDiskCopies::default(), "nothing empty is kept");
    }
}
