//! The state of a cluster: one value, which the manager changes and every node reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};

use serde::{Deserialize, Serialize};

use super::changed_indices::{ChangedIndices, Places};
use super::cluster_info::ClusterInfo;
use super::counted::Counted;
use super::on_disk_copies::{Holders, OnDiskCopies};
use super::reported_extents::ReportedExtents;
use super::tombstones::Tombstones;
use super::{AutoFollow, IndexMeta, IndexShardRoutingTable, ShardCopy, Templates};
use crate::ids::{IdSource, Index};
use crate::settings::{Settings, SettingsMap};

/// The version of the serialized form that this build writes.
pub const FORMAT: u32 = 1;

/// A node and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name, unique in the cluster.
    pub name: String,
    /// Where other nodes reach it, `host:port`.
    pub transport_address: String,
    /// Where REST is served, `host:port`.
    pub http_address: String,
    /// `node.attr.*`, as awareness goes by.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// What is found once in a state, and asked for by every node. It makes no two states differ.
///
/// A clone begins without it, and whoever changes a state, or makes one from another, forgets it, so that it never
/// outlives a change.
#[derive(Debug)]
pub(super) struct FoundOnce<T>(pub(super) OnceLock<T>);

impl<T> Default for FoundOnce<T> {
    fn default() -> Self {
        FoundOnce(OnceLock::new())
    }
}

impl<T> Clone for FoundOnce<T> {
    fn clone(&self) -> Self {
        FoundOnce::default()
    }
}

impl<T> PartialEq for FoundOnce<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The state of a cluster. What is large is shared between clones, and copied where it changes: each index
/// with its shards, and the lists of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// [`FORMAT`] when written by this build.
    pub format: u32,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Drawn once.
    pub cluster_uuid: String,
    /// Counts the events that changed something.
    pub version: u64,
    /// The nodes that belong to the cluster, by name. No others may join.
    pub members: Arc<BTreeMap<String, Node>>,
    /// Names of the members that are there now.
    pub present: Arc<BTreeSet<String>>,
    /// Indices by name.
    pub indices: BTreeMap<String, Arc<IndexMeta>>,
    /// Shards of each index, by number.
    pub routing: BTreeMap<String, Arc<Vec<IndexShardRoutingTable>>>,
    /// Auto-follow patterns by name.
    #[serde(default)]
    pub auto_follow: BTreeMap<String, Arc<AutoFollow>>,
    /// What new indices are given.
    #[serde(default)]
    pub templates: Arc<Templates>,
    /// Settings kept over restarts.
    pub persistent: SettingsMap,
    /// Settings kept while the cluster runs.
    pub transient: SettingsMap,
    /// What is known of disks and of the sizes of shards.
    #[serde(default)]
    pub info: Arc<ClusterInfo>,
    pub(super) disks: OnDiskCopies,
    #[serde(default)]
    pub(super) tombstones: Tombstones,
    pub(super) ids: IdSource,
    #[serde(skip)]
    pub(super) extents: ReportedExtents,
    #[serde(skip)]
    pub(super) by_node: FoundOnce<Places>,
    /// What differs from the state before; that is known by its place in memory, which nothing else can take while this
    /// is here.
    #[serde(skip)]
    pub(super) since_before: FoundOnce<(Weak<ClusterState>, Arc<ChangedIndices>)>,
    #[serde(skip)]
    pub(super) counted: Counted,
}

impl ClusterState {
    /// A cluster of these members, none of them present yet. `random_u64` makes its ids unique.
    pub fn new(
        cluster_name: &str,
        members: impl IntoIterator<Item = Node>,
        random_u64: impl FnMut() -> u64,
    ) -> Self {
        let mut ids = IdSource::new(random_u64);
        ClusterState {
            format: FORMAT,
            cluster_name: cluster_name.to_owned(),
            cluster_uuid: ids.next_id(),
            members: Arc::new(members.into_iter().map(|n| (n.name.clone(), n)).collect()),
            ids,
            ..ClusterState::default()
        }
    }

    /// The typed settings: transient, else persistent, else default. A node puts its own
    /// configuration below with [`Settings::resolve`].
    pub fn settings(&self) -> Settings {
        Settings::resolve(&[&self.transient, &self.persistent])
    }

    /// Whether this is a cluster's state, and not that of a node that is yet to hear of one.
    pub fn is_joined(&self) -> bool {
        !self.members.is_empty()
    }

    pub(crate) fn present_node(&self, name: &str) -> Option<&Node> {
        self.members.get(name).filter(|_| self.present.contains(name))
    }

    /// The members that are there now.
    pub fn present_nodes(&self) -> impl Iterator<Item = &Node> {
        self.present.iter().filter_map(|name| self.members.get(name))
    }

    /// The index that has this name now, as a change of it names it.
    pub fn index(&self, name: &str) -> Option<Index> {
        let uuid = self.indices.get(name)?.uuid.clone();
        Some(Index { name: name.to_owned(), uuid })
    }

    /// A shard of an index; none if there is no such index or shard.
    pub fn shard(&self, index: &str, shard: u32) -> Option<&IndexShardRoutingTable> {
        self.routing.get(index)?.get(shard as usize)
    }

    /// The copies that belong on a node now: index, shard, copy. A node brings up those that it lacks
    /// and shuts down the others.
    ///
    /// The first question goes through all shards, the following ones only through those of the node.
    pub fn copies_on<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = (&'a str, u32, &'a ShardCopy)> {
        let places = self.by_node.0.get_or_init(|| Places::of(self.routing.iter()));
        places.on(node).iter().filter_map(move |(index, number)| {
            let copy = self.shard(index, *number)?.on_node(node)?;
            Some((&**index, *number, copy))
        })
    }

    /// Every shard: index, number, shard.
    pub fn shards(&self) -> impl Iterator<Item = (&str, u32, &IndexShardRoutingTable)> {
        self.routing.iter().flat_map(|(index, shards)| {
            (0..).zip(shards.iter()).map(move |(number, shard)| (index.as_str(), number, shard))
        })
    }

    /// What a node may delete of these copies on its disk, UUID of the index and shard: the index was deleted, or every
    /// copy of the shard is started and none belongs on this node. `indices` names all that they may be of.
    pub(crate) fn obsolete<'a>(
        &'a self,
        node: &str,
        indices: impl IntoIterator<Item = &'a String>,
        copies: &[(String, u32)],
    ) -> Vec<(String, u32)> {
        if copies.is_empty() {
            return Vec::new();
        }
        let uuid = |name: &'a String| Some((self.indices.get(name)?.uuid.as_str(), name));
        let names: BTreeMap<&str, &String> = indices.into_iter().filter_map(uuid).collect();
        let is_obsolete = |(uuid, shard): &&(String, u32)| {
            let Some(index) = names.get(uuid.as_str()) else {
                return self.tombstones.contains(uuid);
            };
            self.shard(index, *shard).is_some_and(|shard| {
                shard.copies.iter().all(ShardCopy::is_started) && shard.on_node(node).is_none()
            })
        };
        copies.iter().filter(is_obsolete).cloned().collect()
    }

    pub(super) fn on_disk(&self, node: &str, index: &str, shard: u32) -> Option<&str> {
        let uuid = &self.indices.get(index)?.uuid;
        self.disks.holders(uuid, shard)?.get(node).map(String::as_str)
    }

    /// Why a copy on a node's disk must not be the primary, although it counts as in sync.
    pub(super) fn falls_short(
        &self,
        (index, shard): (&str, u32),
        (node, allocation_id): (&str, &str),
    ) -> Option<String> {
        let meta = self.indices.get(index).filter(|meta| meta.knows_its_checkpoints())?;
        let in_sync = &self.shard(index, shard)?.in_sync;
        self.extents.falls_short((&meta.uuid, shard), (node, allocation_id), in_sync)
    }

    /// The present nodes whose disks hold a shard, with the allocation ids.
    pub(super) fn holders(&self, index: &str, shard: u32) -> Option<&Holders> {
        self.disks.holders(&self.indices.get(index)?.uuid, shard)
    }

    pub(super) fn shard_mut(
        &mut self,
        index: &str,
        shard: u32,
    ) -> Option<&mut IndexShardRoutingTable> {
        Arc::make_mut(self.routing.get_mut(index)?).get_mut(shard as usize)
    }
}
