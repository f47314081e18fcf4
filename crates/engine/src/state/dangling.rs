//! Dangling indices: copies on the disks of nodes whose index the state does not know. They are kept until somebody has
//! them imported or deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::applied::Applied;
use super::indices::check_new;
use super::tombstones::Tombstone;
use super::{
    Change, ClusterState, IndexMeta, IndexShardRoutingTable, ShardCopy, StateError,
    UnassignedReason,
};

/// What an index is, as it is written beside its copies.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredIndex {
    pub index: String,
    pub meta: IndexMeta,
}

/// A copy of a dangling index.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DanglingCopy {
    pub shard: u32,
    pub allocation_id: String,
    /// Term of the primary that the copy was last in sync with.
    pub primary_term: u64,
    /// One more than the highest sequence number that it has.
    pub next_seq_no: u64,
}

/// What a node has of a dangling index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DanglingIndex {
    /// What it is; none where that cannot be read.
    pub stored: Option<StoredIndex>,
    /// Its copies there.
    pub copies: Vec<DanglingCopy>,
}

impl ClusterState {
    /// The dangling indices by UUID, with the present nodes that hold copies of them.
    pub fn dangling(&self) -> BTreeMap<String, BTreeSet<String>> {
        let known: BTreeSet<&str> = self.indices.values().map(|meta| meta.uuid.as_str()).collect();
        let unknown = self.disks.indices().filter(|uuid| !known.contains(uuid));
        unknown.map(|uuid| (uuid.to_owned(), self.disks.nodes_of(uuid))).collect()
    }
}

fn find(state: &ClusterState, uuid: &str) -> Result<(), StateError> {
    match state.dangling().contains_key(uuid) {
        true => Ok(()),
        false => Err(StateError::NoDanglingIndex { uuid: uuid.to_owned() }),
    }
}

/// Gives a dangling index its place. Of each shard the copies of the highest term that have the most operations are
/// taken for in sync: one that fell out of the in-sync set has fewer. A shard of which nobody has one is lost, and not
/// begun anew.
pub(super) fn import(
    state: &mut ClusterState,
    now_ms: u64,
    stored: StoredIndex,
    found: &[DanglingCopy],
) -> Applied {
    let StoredIndex { index, meta } = stored;
    find(state, &meta.uuid)?;
    check_new(state, &index, &meta.aliases)?;
    let reason = UnassignedReason::DanglingIndexImported;
    let mut shards = Vec::new();
    for number in 0..meta.shards {
        let of_shard = found.iter().filter(|copy| copy.shard == number);
        let age = |copy: &&DanglingCopy| (copy.primary_term, copy.next_seq_no);
        let best = of_shard.clone().map(|copy| age(&copy)).max();
        let newest = of_shard.filter(|copy| Some(age(copy)) == best);
        let mut in_sync: BTreeSet<String> = newest.map(|copy| copy.allocation_id.clone()).collect();
        let copy = |n| ShardCopy::new(state.ids.next_id(), n == 0, reason, now_ms);
        let mut copies: Vec<ShardCopy> = (0..=meta.replicas).map(copy).collect();
        if in_sync.is_empty() {
            copies[0].in_sync = true;
            in_sync.insert(copies[0].allocation_id.clone());
        }
        let primary_term = best.map_or(0, |(term, _)| term) + 1;
        shards.push(IndexShardRoutingTable { primary_term, in_sync, copies });
    }
    state.routing.insert(index.clone(), Arc::new(shards));
    state.indices.insert(index.clone(), Arc::new(meta));
    Ok(vec![Change::Index { index }])
}

/// Has every node delete what it holds of a dangling index.
pub(super) fn delete(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    uuid: String,
) -> Applied {
    find(state, &uuid)?;
    state.disks.remove_index(&uuid);
    state.extents.remove_index(&uuid);
    state.tombstones.add(Tombstone { index, uuid, deleted_ms: now_ms });
    Ok(vec![Change::Other])
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{Event, FoundCopy, health};
    use super::*;
    use crate::state::Status;

    fn found(uuid: &str, shard: u32, id: &str) -> FoundCopy {
        let (index_uuid, allocation_id) = (uuid.to_owned(), id.to_owned());
        FoundCopy { index_uuid, shard, allocation_id, ..FoundCopy::default() }
    }

    fn copy(shard: u32, id: &str, primary_term: u64, next_seq_no: u64) -> DanglingCopy {
        DanglingCopy { shard, allocation_id: id.to_owned(), primary_term, next_seq_no }
    }

    /// A cluster that knows nothing of an index of two shards that `n1` has.
    fn dangling() -> (Lab, StoredIndex) {
        let mut other = Lab::new(1);
        other.create("a", 2, 0);
        let meta = IndexMeta::clone(&other.state.indices["a"]);
        let meta = IndexMeta { uuid: "lost".to_owned(), ..meta };
        let mut lab = Lab::new(1);
        let node = lab.state.members["n1"].clone();
        let found = vec![found("lost", 0, "x"), found("lost", 1, "y")];
        lab.apply(Event::NodeJoined { node, found }).unwrap();
        (lab, StoredIndex { index: "a".to_owned(), meta })
    }

    #[test]
    fn is_kept_and_can_be_imported() {
        let (mut lab, stored) = dangling();
        let nodes = BTreeSet::from(["n1".to_owned()]);
        assert_eq!(lab.state.dangling(), BTreeMap::from([("lost".to_owned(), nodes)]));
        let on_disk = [("lost".to_owned(), 0), ("lost".to_owned(), 1)];
        assert!(lab.state.obsolete("n1", lab.state.indices.keys(), &on_disk).is_empty());
        let copies = vec![copy(0, "stale", 3, 90), copy(0, "x", 3, 100), copy(0, "older", 2, 110)];
        let import = Event::ImportDangling { stored: Box::new(stored.clone()), copies };
        lab.apply(import.clone()).unwrap();
        let shard = lab.shard("a", 0);
        assert_eq!((shard.primary_term, shard.primary().allocation_id.as_str()), (4, "x"));
        assert_eq!(shard.in_sync, BTreeSet::from(["x".to_owned()]));
        let lost = lab.shard("a", 1).primary();
        assert!(!lost.is_assigned(), "a shard that nobody has is not begun anew");
        lab.start_all();
        assert_eq!(health(&lab.state).status, Status::Red);
        assert!(lab.state.dangling().is_empty());
        let said = lab.apply(import).unwrap_err().to_string();
        assert!(said.contains("[lost]"), "{said}");
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let (mut lab, stored) = dangling();
        lab.create("a", 1, 0);
        let import = Event::ImportDangling { stored: Box::new(stored), copies: Vec::new() };
        assert!(matches!(lab.apply(import), Err(StateError::IndexExists { .. })));
    }

    #[test]
    fn is_deleted_where_it_is_and_where_it_comes_back_from() {
        let (mut lab, _) = dangling();
        let (index, uuid) = ("a".to_owned(), "lost".to_owned());
        lab.apply(Event::DeleteDangling { index, uuid }).unwrap();
        assert!(lab.state.dangling().is_empty());
        let on_disk = [("lost".to_owned(), 0)];
        assert_eq!(lab.state.obsolete("n1", lab.state.indices.keys(), &on_disk), on_disk);
        lab.create("b", 1, 0);
        lab.start_all();
        let uuid = lab.state.meant("b").uuid;
        lab.apply(Event::DeleteIndex { index: lab.state.meant("b") }).unwrap();
        let node = lab.state.members["n1"].clone();
        let found = vec![found("lost", 0, "x"), found(&uuid, 0, "z")];
        lab.apply(Event::NodeJoined { node, found }).unwrap();
        assert!(lab.state.dangling().is_empty(), "both were deleted");
        assert_eq!(lab.state.obsolete("n1", [].iter(), &[(uuid.clone(), 0)]), [(uuid, 0)]);
    }
}
