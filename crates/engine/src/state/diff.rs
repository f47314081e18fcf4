//! From one state to the next: what is sent to a node that has the one before.
//!
//! As Elasticsearch publishes its cluster state: a node without the state that a diff begins from says so,
//! and is sent the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::changed_indices::{ChangedIndices, Places};
use super::differing::differing;
use super::on_disk_copies::Holders;
use super::tombstones::Tombstone;
use super::{
    AutoFollow, ClusterInfo, ClusterState, IndexMeta, IndexShardRoutingTable, Node, Template,
    Templates,
};
use crate::ids::IdSource;
use crate::settings::SettingsMap;

/// What differs between two states of one cluster. A shard that changed comes whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateDiff {
    cluster_uuid: String,
    from_version: u64,
    version: u64,
    members: BTreeMap<String, Node>,
    joined: BTreeSet<String>,
    left: BTreeSet<String>,
    /// Indices that are new or differ.
    indices: BTreeMap<String, Arc<IndexMeta>>,
    deleted: BTreeSet<String>,
    buried: Vec<Tombstone>,
    /// By index and number. Of a new index: all.
    shards: BTreeMap<String, BTreeMap<u32, IndexShardRoutingTable>>,
    /// Both, where one of them changed.
    settings: Option<(SettingsMap, SettingsMap)>,
    /// All of it, where it changed.
    info: Option<Arc<ClusterInfo>>,
    /// All of them, where one changed.
    auto_follow: Option<BTreeMap<String, Arc<AutoFollow>>>,
    /// All of them, where one changed.
    templates: Option<Arc<Templates>>,
    disks: BTreeMap<String, BTreeMap<u32, Holders>>,
    ids: IdSource,
    wire_bytes: u64,
}

/// The state that a diff begins from is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the change is from version {from} of the cluster state, and this node has version {found}"
)]
pub struct OtherVersion {
    /// The version that the diff begins from.
    pub from: u64,
    /// The version that is there; of another cluster where the numbers are the same.
    pub found: u64,
}

impl StateDiff {
    /// What leads from `old` to `new`, two states of one cluster. Costs what differs, and a look at each
    /// index.
    pub fn between(old: &ClusterState, new: &ClusterState) -> Self {
        let settings = (new.persistent.clone(), new.transient.clone());
        let settings_same = old.persistent == settings.0 && old.transient == settings.1;
        let mut diff = StateDiff {
            cluster_uuid: new.cluster_uuid.clone(),
            from_version: old.version,
            version: new.version,
            buried: new.tombstones.since(&old.tombstones),
            settings: (!settings_same).then_some(settings),
            info: (!Arc::ptr_eq(&old.info, &new.info)).then(|| new.info.clone()),
            auto_follow: (old.auto_follow != new.auto_follow).then(|| new.auto_follow.clone()),
            templates: (old.templates != new.templates).then(|| new.templates.clone()),
            disks: old.disks.changes_to(&new.disks),
            ids: new.ids.clone(),
            ..StateDiff::default()
        };
        if !Arc::ptr_eq(&old.members, &new.members) {
            let differs = |(name, node): &(&String, &Node)| old.members.get(*name) != Some(node);
            let members = new.members.iter().filter(differs);
            diff.members = members.map(|(name, node)| (name.clone(), node.clone())).collect();
        }
        if !Arc::ptr_eq(&old.present, &new.present) {
            diff.joined = new.present.difference(&old.present).cloned().collect();
            diff.left = old.present.difference(&new.present).cloned().collect();
        }
        for (name, before, after) in differing(&old.indices, &new.indices) {
            match after {
                Some(meta) if before != after => {
                    diff.indices.insert(name.clone(), meta.clone());
                }
                Some(_) => {}
                None => {
                    diff.deleted.insert(name.clone());
                }
            }
        }
        diff.find_shards(old, new);
        diff.wire_bytes = diff.count_bytes();
        diff
    }

    fn find_shards(&mut self, old: &ClusterState, new: &ClusterState) {
        for (index, before, after) in differing(&old.routing, &new.routing) {
            let Some(shards) = after else { continue };
            let differs = |number: u32, shard: &IndexShardRoutingTable| {
                before.and_then(|before| before.get(number as usize)) != Some(shard)
            };
            let changed: BTreeMap<u32, IndexShardRoutingTable> = (0..)
                .zip(shards.iter())
                .filter(|(number, shard)| differs(*number, shard))
                .map(|(number, shard)| (number, shard.clone()))
                .collect();
            if !changed.is_empty() {
                self.shards.insert(index.clone(), changed);
            }
        }
    }

    /// The state that follows `old`. Fails where the diff begins from another.
    pub fn apply(&self, old: &ClusterState) -> Result<ClusterState, OtherVersion> {
        self.check_from(old)?;
        let mut state = old.clone();
        (state.by_node, state.since_before) = Default::default();
        state.version = self.version;
        if !self.members.is_empty() {
            Arc::make_mut(&mut state.members).extend(self.members.clone());
        }
        if !self.joined.is_empty() || !self.left.is_empty() {
            let present = Arc::make_mut(&mut state.present);
            present.retain(|name| !self.left.contains(name));
            present.extend(self.joined.iter().cloned());
        }
        for index in &self.deleted {
            state.indices.remove(index);
            state.routing.remove(index);
        }
        state.indices.extend(self.indices.iter().map(|(k, v)| (k.clone(), v.clone())));
        for (index, changed) in &self.shards {
            let shards = Arc::make_mut(state.routing.entry(index.clone()).or_default());
            // An index that was deleted and made again may have fewer.
            shards.truncate(self.indices.get(index).map_or(shards.len(), |m| m.shards as usize));
            for (number, shard) in changed {
                match shards.get_mut(*number as usize) {
                    Some(place) => place.clone_from(shard),
                    // They come in order, and a new index comes whole.
                    None => shards.push(shard.clone()),
                }
            }
        }
        if let Some((persistent, transient)) = &self.settings {
            (state.persistent, state.transient) = (persistent.clone(), transient.clone());
        }
        if let Some(info) = &self.info {
            state.info.clone_from(info);
        }
        if let Some(auto_follow) = &self.auto_follow {
            state.auto_follow.clone_from(auto_follow);
        }
        if let Some(templates) = &self.templates {
            state.templates.clone_from(templates);
        }
        self.buried.iter().cloned().for_each(|tombstone| state.tombstones.add(tombstone));
        for (uuid, shards) in &self.disks {
            for (shard, holders) in shards {
                state.disks.set(uuid, *shard, holders.clone());
            }
        }
        state.ids = self.ids.clone();
        Ok(state)
    }

    pub(crate) fn check_from(&self, old: &ClusterState) -> Result<(), OtherVersion> {
        if old.cluster_uuid == self.cluster_uuid && old.version == self.from_version {
            return Ok(());
        }
        Err(OtherVersion { from: self.from_version, found: old.version })
    }

    /// Bytes on the wire, about.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    fn count_bytes(&self) -> u64 {
        let shards = self.shards.values().flat_map(BTreeMap::values).map(shard_bytes).sum::<u64>();
        let disks = self.disks.values().flat_map(BTreeMap::values).map(|h| 32 * h.len() as u64);
        let members = self.members.len() as u64 * MEMBER_BYTES;
        let names = 8 * (self.joined.len() + self.left.len() + self.deleted.len()) as u64;
        let indices = self.indices.len() as u64 * INDEX_BYTES;
        let patterns = self.auto_follow.iter().flatten().map(|(_, pattern)| pattern_bytes(pattern));
        let templates = self.templates.as_deref().map_or(0, templates_bytes);
        let info = self.info.as_deref().map_or(0, ClusterInfo::wire_bytes);
        let patterns = patterns.sum::<u64>();
        128 + shards + disks.sum::<u64>() + members + names + indices + patterns + templates + info
    }
}

const MEMBER_BYTES: u64 = 64;
const INDEX_BYTES: u64 = 512;

fn pattern_bytes(pattern: &AutoFollow) -> u64 {
    256 + 23 * pattern.settled.len() as u64
}

fn templates_bytes(templates: &Templates) -> u64 {
    let one = |template: &Template| 256 + template.mappings.to_string().len() as u64;
    templates.values().flat_map(BTreeMap::values).map(one).sum()
}

fn shard_bytes(shard: &IndexShardRoutingTable) -> u64 {
    let copy = |words: Option<&String>| 72 + words.map_or(0, |words| words.len() as u64);
    let all = shard.copies.iter().flat_map(|one| std::iter::once(one).chain(one.target.as_deref()));
    let copies = all.map(|shard| copy(shard.last_failure.as_ref())).sum::<u64>();
    8 + 21 * shard.in_sync.len() as u64 + copies
}

impl ClusterState {
    /// Bytes on the wire of the whole state, about.
    pub fn wire_bytes(&self) -> u64 {
        let shards: u64 = self.shards().map(|(_, _, shard)| shard_bytes(shard) + 64).sum();
        128 + shards
            + self.members.len() as u64 * MEMBER_BYTES
            + self.indices.len() as u64 * INDEX_BYTES
            + templates_bytes(&self.templates)
            + self.info.wire_bytes()
    }

    /// Names of the indices that differ from those of another state, are new or are gone. Costs a look at each index.
    pub(super) fn changed_since(&self, old: &ClusterState) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        changed.extend(differing(&old.indices, &self.indices).map(|(name, ..)| name.clone()));
        changed.extend(differing(&old.routing, &self.routing).map(|(name, ..)| name.clone()));
        changed
    }
}

fn changed_indices(old: &ClusterState, new: &ClusterState) -> ChangedIndices {
    let names = new.changed_since(old);
    let uuid = |state: &ClusterState, name: &String| Some(state.indices.get(name)?.uuid.clone());
    let uuids = [old, new].into_iter().flat_map(|state| {
        let uuids = names.iter().filter_map(move |name| uuid(state, name));
        uuids.collect::<Vec<_>>()
    });
    let buried = new.tombstones.since(&old.tombstones).into_iter().map(|tombstone| tombstone.uuid);
    let uuids = uuids.chain(buried).collect();
    let tables = names.iter().filter_map(|name| new.routing.get_key_value(name));
    let places = Places::of(tables);
    ChangedIndices { names, uuids, places }
}

impl ClusterState {
    /// What differs from an older state. Costs a look at each index, but for the second node that asks for the same
    /// two states.
    pub(crate) fn changed_indices(&self, old: &Arc<ClusterState>) -> Arc<ChangedIndices> {
        let between = || (Arc::downgrade(old), Arc::new(changed_indices(old, self)));
        let (before, changed) = self.since_before.0.get_or_init(between);
        if std::ptr::eq(before.as_ptr(), Arc::as_ptr(old)) { changed.clone() } else { between().1 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    #[test]
    fn names_only_what_changed() {
        let mut lab = Lab::started(3, (40, 1));
        let old = lab.state.clone();
        let place = lab.shard("a", 7).primary().allocation_id.clone();
        lab.fail(&("a".to_owned(), 7, place), "disk");
        let diff = StateDiff::between(&old, &lab.state);
        assert_eq!(diff.shards["a"].keys().collect::<Vec<_>>(), [&7]);
        assert!(diff.indices.is_empty() && diff.members.is_empty() && diff.settings.is_none());
        assert!(diff.wire_bytes() * 10 < old.wire_bytes());
        assert_eq!(diff.apply(&old).as_ref(), Ok(&lab.state));
        let said = diff.apply(&lab.state).unwrap_err();
        assert_eq!(said, OtherVersion { from: old.version, found: lab.state.version });
    }

    #[test]
    fn indices_that_changed_are_new_or_are_gone() {
        let mut lab = Lab::new(3);
        for name in ["a", "b", "c", "d"] {
            lab.create(name, 2, 1);
        }
        lab.start_all();
        let old = lab.state.clone();
        assert!(old.clone().changed_since(&old).is_empty());
        let place = lab.shard("b", 1).primary().allocation_id.clone();
        lab.fail(&("b".to_owned(), 1, place), "disk");
        lab.apply(super::super::Event::DeleteIndex { index: lab.state.meant("d") }).unwrap();
        lab.create("e", 1, 0);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(lab.state.changed_since(&old), names(&["b", "d", "e"]));
        assert_eq!(old.changed_since(&lab.state), names(&["b", "d", "e"]));
    }

    #[test]
    fn an_index_made_again_comes_whole() {
        let mut lab = Lab::new(2);
        lab.create("a", 5, 1);
        let old = lab.state.clone();
        lab.apply(super::super::Event::DeleteIndex { index: lab.state.meant("a") }).unwrap();
        lab.create("a", 2, 0);
        lab.set("indices.recovery.max_bytes_per_sec", "20mb");
        let diff = StateDiff::between(&old, &lab.state);
        let bytes = postcard::to_stdvec(&diff).unwrap();
        let read: StateDiff = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read.apply(&old).as_ref(), Ok(&lab.state));
    }

    #[test]
    fn two_other_states_are_compared_anew() {
        let mut lab = Lab::new(2);
        lab.create("a", 1, 1);
        let first = Arc::new(lab.state.clone());
        lab.create("b", 2, 1);
        let second = Arc::new(lab.state.clone());
        lab.create("c", 1, 0);
        let third = lab.state.clone();
        let names =
            |old: &Arc<ClusterState>| Vec::from_iter(third.changed_indices(old).names.clone());
        assert_eq!(names(&second), ["c"]);
        assert_eq!(names(&first), ["b", "c"]);
        assert_eq!(names(&second), ["c"]);
        let changed = second.changed_indices(&first);
        let on: Vec<(&str, u32)> = changed.on("n1").iter().map(|(i, n)| (&**i, *n)).collect();
        assert_eq!(on, [("b", 1)], "the other primary is on n2, and replicas wait for theirs");
    }
}
